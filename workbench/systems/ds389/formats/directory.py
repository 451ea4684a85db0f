"""The configuration entries of a replica: `ds389.replica` (cn=replica) and `ds389.agreements`.

Both are what a search below cn=mapping tree prints, and one search may print both, so one reader takes both kinds of
entries wherever they stand; the first one in the file gives the format its name. Other entries (the mapping tree
itself) are accepted and say nothing. Credentials are never looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from workbench import tables
from workbench.model import STRIPS_WRITER, Format, Parsed, Piece, Reject, Source
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.values import clean, suffix_named
from workbench.systems.ds389.formats.vectors import NUMBER, READ_ONLY, Row, link_row, vector_facts, vector_rows
from workbench.systems.ds389.rules.initialisations import outcome_of

_CONFIG = r",cn=mapping tree,cn=config"
_REPLICA_DN = re.compile(rf"cn=replica,cn=(.+){_CONFIG}", re.IGNORECASE)
_AGREEMENT_DN = re.compile(rf"(?:cn|nsds5replicaname)=.+?,cn=replica,cn=(.+){_CONFIG}", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,253}")
_PLUGIN_DN = re.compile(r"cn=multi(?:supplier|master) replication plugin,\s*cn=plugins,\s*cn=config\Z", re.IGNORECASE)
_CHANGELOG_DN = re.compile(
    r"cn=changelog5,cn=config|cn=changelog,cn=([^,]+),cn=ldbm database,cn=plugins,cn=config", re.IGNORECASE
)
"""Up to 1.4 a server has one changelog, since 2.0 each backend its own."""
_AGREEMENT_CLASSES = {"nsds5replicationagreement", "nsdswindowsreplicationagreement"}
_ESCAPED = re.compile(r"\\([0-9a-fA-F]{2})|\\(.)")
_OF_THE_WRITER = {"modifiersname", "modifytimestamp"}
_PLAIN_NAME = re.compile(r"[a-z0-9=,._ -]{1,1000}")
"""The name of a suffix that is the same in every spelling."""
_CODE = re.compile(r"(?:Error )?\(?(-?[0-9]{1,9})\)? ")


def kind_of(entry: Entry) -> str:
    """`replica`, `agreement`, or "" for any other entry: by its class, or by its place if no classes are shown."""
    classes = {value.strip().lower() for value in entry.texts("objectClass")}
    if "nsds5replica" in classes or _placed(_REPLICA_DN, entry):
        return "replica"
    return "agreement" if classes & _AGREEMENT_CLASSES or _placed(_AGREEMENT_DN, entry) else ""


def _placed(pattern: re.Pattern[str], entry: Entry) -> re.Match[str] | None:
    """The match of an entry's name; none for a monstrous one, over which the pattern would take for ever."""
    return pattern.fullmatch(entry.dn) if len(entry.dn) < 4096 else None


def suffix_of(entry: Entry) -> str | None:
    """The suffix that a replica or an agreement belongs to: its nsDS5ReplicaRoot, else the one its name holds."""
    if root := entry.text("nsDS5ReplicaRoot"):
        return suffix_named(root)
    return _suffix_above(entry)


def _suffix_above(entry: Entry) -> str | None:
    """The suffix that the name of a replica or of an agreement holds."""
    if found := _placed(_REPLICA_DN, entry) or _placed(_AGREEMENT_DN, entry):
        return suffix_named(_ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else m[2], found[1].strip('"')))
    return None


def _misplaced(known: Iterable[tuple[str, Entry]]) -> dict[int, str]:
    """Offset of an agreement -> the suffix above it, where it names another one below which nothing stands."""
    placed = [(kind, entry, _suffix_above(entry), suffix_of(entry)) for kind, entry in known]
    above = {place for _, _, place, _ in placed}
    return {
        entry.offset: place
        for kind, entry, place, named in placed
        if kind == "agreement" and place and named != place and named not in above and _PLAIN_NAME.fullmatch(place)
    }


def generalized_time(text: str | None) -> datetime | None:
    """`20261120143307Z` as a time; the first second of 1970 is how the server writes "never"."""
    try:
        time = datetime.strptime(text or "", "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return time if time.timestamp() else None


def status_code(sentence: str | None) -> int | None:
    """The number in `Error (18) Can't acquire replica (...)`, or in the older `0 Replica acquired successfully`."""
    return int(found[1]) if sentence and (found := _CODE.match(sentence)) else None


def switch(text: str | None) -> bool | None:
    """on/off and TRUE/FALSE as the server writes them; None for anything else."""
    return {"on": True, "true": True, "off": False, "false": False}.get((text or "").strip().lower())


def _judgement(entry: Entry) -> Row:
    """State, code and sentence of the last session. The JSON says more, older servers write the sentence only."""
    sentence = entry.text("nsds5replicaLastUpdateStatus")
    state = code = None
    try:
        status = json.loads(entry.text("nsds5replicaLastUpdateStatusJSON") or "{}")
        if isinstance(status, dict):
            state = status.get("state") if isinstance(status.get("state"), str) else None
            sentence = sentence or (status.get("message") if isinstance(status.get("message"), str) else None)
            codes = [
                text for key in ("repl_rc", "ldap_rc") if re.fullmatch("-?[0-9]{1,9}", text := str(status.get(key)))
            ]
            code = next((int(text) for text in codes if int(text)), 0) if codes else None
    except (ValueError, RecursionError):
        pass  # a damaged judgement: the sentence beside it remains
    return {
        "state": clean(state) if state else None,
        "status_code": status_code(sentence) if code is None else code,
        "status": clean(sentence) if sentence else None,
    }


_BY_ITSELF = re.compile(r"cn=Multi(master|supplier) Replication Plugin", re.IGNORECASE)
"""Who changes an agreement when the server itself does: to keep what it remembers of the consumer."""


def _tried(entry: Entry) -> datetime | None:
    """When an agreement tried last, as its status tells."""
    with suppress(ValueError, RecursionError, TypeError, AttributeError):
        tried = datetime.fromisoformat(json.loads(entry.text("nsds5replicaLastUpdateStatusJSON") or "{}").get("date"))
        return tried if tried.tzinfo else None
    return None


def _changed_since(entry: Entry, tried: datetime) -> datetime | None:
    """When somebody changed an agreement after its last attempt; None: nobody did, or nothing tells."""
    changed = generalized_time(entry.text("modifyTimestamp"))
    if changed is None or _BY_ITSELF.match(entry.text("modifiersName") or ""):
        return None
    return changed if changed > tried else None


def _initialised(entry: Entry) -> Row:
    """Times, sentence and outcome of the last total initialisation."""
    sentence = entry.text("nsds5replicaLastInitStatus")
    try:
        status = json.loads(entry.text("nsds5replicaLastInitStatusJSON") or "{}")
        if not sentence and isinstance(status, dict) and isinstance(status.get("message"), str):
            sentence = status["message"]
    except (ValueError, RecursionError):
        pass  # damaged: the sentence beside it remains
    began, ended = (generalized_time(entry.text(f"nsds5replicaLastInit{end}")) for end in ("Start", "End"))
    # One that ended has no request any more, or one that was left over.
    asked = entry.text("nsds5BeginReplicaRefresh") is not None and not (began and ended and ended > began)
    return {
        "init_started_at": began,
        "init_ended_at": ended,
        "init_status": clean(sentence) if sentence else None,
        "init_outcome": outcome_of(sentence, asked),
    }


def _agreement(entry: Entry, name: str) -> Row:
    """The row of the table `links` that an agreement tells."""
    port = entry.text("nsDS5ReplicaPort") or ""
    schedule = "; ".join(text.strip() for text in entry.texts("nsds5replicaupdateschedule"))
    sent = entry.text("nsds5replicaChangesSentSinceStartup")
    return {
        "offset": entry.offset,
        "name": name,
        "consumer_host": clean(entry.text("nsDS5ReplicaHost") or "") or None,
        "consumer_port": int(port) if re.fullmatch("[0-9]{1,5}", port) else None,
        "enabled": switch(entry.text("nsds5ReplicaEnabled") or "on"),
        "schedule": clean(schedule) if schedule not in ("", "*") else None,
        **_judgement(entry),
        "busy": switch(entry.text("nsds5replicaUpdateInProgress")),
        "started_at": generalized_time(entry.text("nsds5replicaLastUpdateStart")),
        "ended_at": generalized_time(entry.text("nsds5replicaLastUpdateEnd")),
        **_initialised(entry),
        "sent": clean(sent) if sent else None,
        "excluded": _left_out(entry, "nsDS5ReplicatedAttributeList") or None,
        "excluded_by_filling": _left_out(entry, "nsDS5ReplicatedAttributeListTotal"),
        "transport": _words(entry, "nsDS5ReplicaTransportInfo"),
        "method": _words(entry, "nsDS5ReplicaBindMethod"),
        "login": _words(entry, "nsDS5ReplicaBindDN"),
    }


def _left_out(entry: Entry, attribute: str) -> str | None:
    """The attributes that a list of an agreement leaves out; None: there is no such list."""
    text = entry.text(attribute)
    _, exclude, names = (text or "").rpartition("EXCLUDE")
    return None if text is None else clean(names.strip()) if exclude else ""


def _words(entry: Entry, attribute: str) -> str | None:
    return clean(entry.text(attribute) or "").strip() or None


def _trimming(entry: Entry) -> tuple[str, dict[str, str | None]] | None:
    """Backend ("": all of the server) and what its changelog is trimmed by, as written; None: it is another entry."""
    if len(entry.dn) >= 4096 or not (found := _CHANGELOG_DN.fullmatch(entry.dn)):
        return None
    about = {"max_age": "nsslapd-changelogmaxage", "max_entries": "nsslapd-changelogmaxentries"}
    texts = {key: entry.text(attribute) for key, attribute in about.items()}
    told = {key: text and clean(text) for key, text in texts.items()}
    # Who may not read the limits gets the entry without them. One that shows its class, or how often it trims, shows all.
    whole = any(entry.text(name) for name in ("objectClass", "nsslapd-changelogtrim-interval"))
    return clean(found[1] or "").lower(), told | {"whole": "yes" if whole else None}


def _listens_at(entry: Entry) -> tuple[str, int] | None:
    """The address that the server itself names, out of the entry of its configuration; None: it is another one."""
    host, port = (entry.text(name) or "" for name in ("nsslapd-localhost", "nsslapd-port"))
    if (
        entry.dn.strip().lower() != "cn=config"
        or not _HOST.fullmatch(host)
        or not re.fullmatch("[1-9][0-9]{0,4}", port)
    ):
        return None
    return f"{host.lower()}:{port}", 1


def _is_of_server(entry: Entry) -> bool:
    """True for the entry of the server itself, as a dse.ldif has it near its head, also where nothing is replicated."""
    return entry.dn.strip().lower() == "cn=config" and entry.text("nsslapd-port") is not None


def _is_every_address(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _listens_only_at(entries: Iterable[Entry]) -> str | None:
    """The one name or address on which the server takes plain connections, where it does not on all; None: it does."""
    for entry in entries:
        host = entry.text("nsslapd-listenhost") or ""
        if entry.dn.strip().lower() == "cn=config" and _HOST.fullmatch(host) and not _is_every_address(host):
            return host.lower()
    return None


def _switched(entry: Entry) -> tuple[str, int] | None:
    """How the plug-in that replicates is switched, out of its entry; None: it is another one, or tells nothing."""
    told = switch(entry.text("nsslapd-pluginEnabled")) if _PLUGIN_DN.match(entry.dn[:4096]) else None
    return None if told is None else ("on" if told else "off", 1)


def replica_tables(entries: Iterable[Entry], source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """(tables, facts) of the replica and agreement entries among these.

    Among the facts, `unreadable_links` counts the nsds5agmtmaxcsn values of an unknown shape, and `cleaning` has the tasks
    that clean a replica ID, as written; `logins_allowed` the names with which suppliers may log in (nsDS5ReplicaBindDN), and
    `groups_allowed` the groups whose members may, too (nsDS5ReplicaBindDNGroup).
    `traces_kept` has the seconds for which the server keeps traces of what was removed, as written; 0: for good.
    `trimming` has the settings of changelogs by their backends, where the file holds these, too, and `backends` their suffixes.
    `tried` has when an agreement (its suffix and name) made its last attempt, as its status tells.
    `untried` has when an agreement (its suffix and name) was changed, where its status tells of no attempt since.
    `pauses` has the seconds between two sessions of an agreement (its suffix and name), as written, where it has such; `backoff`
    the least and the most seconds that a replica waits after a session that failed.
    `misplaced` has the suffix that an agreement names (its suffix and name) where it stands below the replica of another one.
    `strips_writer` has the agreements (suffix and name) that leave out who made a change and when, if nothing else is left of it.
    `addresses`: where the server listens; `listens_only_at`: on which name or address alone.
    `replication`: how the plug-in that replicates is switched.
    `stores` has the suffix of each backend and of each replica by its unique name, for some messages name these alone.
    """
    entries = list(entries)
    known = [(kind, entry) for entry in entries if (kind := kind_of(entry))]
    misplaced = _misplaced(known)
    suffixes = {suffix: 1 for _, entry in known if (suffix := misplaced.get(entry.offset) or suffix_of(entry))}
    vectors: list[Row] = []
    links: list[Row] = []
    holders: dict[str, Any] = {}
    replicas = {}
    cleaning: dict[str, list[str]] = {}
    traces_kept: dict[str, str] = {}
    logins: dict[str, list[str]] = {}
    groups: dict[str, list[str]] = {}
    pauses: dict[str, str] = {}
    tried: dict[str, str] = {}
    untried: dict[str, str] = {}
    backoff: dict[str, list[str]] = {}
    ignoring: dict[str, str] = {}
    wrong_roots: dict[str, str] = {}
    strips_writer: dict[str, int] = {}
    unreadable = 0
    for kind, entry in known:
        suffix = misplaced.get(entry.offset) or suffix_of(entry)
        name = source.server
        if kind == "replica":
            found = [link_row(value, entry.offset, suffixes) for value in entry.texts("nsds5agmtmaxcsn")]
            mine = [row for row in found if row]
            unreadable += found.count(None)
            attributes = {"id": "nsDS5ReplicaId", "type": "nsDS5ReplicaType", "flags": "nsDS5Flags"}
            about = {key: entry.text(attribute) for key, attribute in attributes.items()}
            replicas[suffix or ""] = {key: text and clean(text) for key, text in about.items()}
            if names := [clean(text) for text in entry.texts("nsDS5ReplicaBindDN")]:
                logins[suffix or ""] = names
            if names := [clean(text) for text in entry.texts("nsDS5ReplicaBindDNGroup")]:
                groups[suffix or ""] = names
            if tasks := [clean(text) for text in entry.texts("nsds5ReplicaCleanRUV")]:
                cleaning[suffix or ""] = tasks
            if re.fullmatch("[0-9]{1,9}", kept := entry.text("nsDS5ReplicaPurgeDelay") or ""):
                traces_kept[suffix or ""] = kept
            waits = [entry.text(f"nsds5ReplicaBackoff{end}") or "" for end in ("Min", "Max")]
            if any(re.fullmatch("[0-9]{1,9}", text) for text in waits):
                backoff[suffix or ""] = [text if re.fullmatch("[0-9]{1,9}", text) else "" for text in waits]
        else:
            # The secret goes first: behind the `=` of `userPassword=x,cn=replica,...` nothing shows what x is.
            name = clean(entry.text("cn") or clean(entry.dn).split(",", 1)[0].partition("=")[2])
            mine = [_agreement(entry, name)]
            if entry.offset in misplaced:
                wrong_roots[f"{suffix or ''} {name}"] = suffix_of(entry) or ""
            if {*(entry.text("nsds5ReplicaStripAttrs") or "").lower().split()} >= _OF_THE_WRITER:
                strips_writer[f"{suffix or ''} {name}"] = 1
            if re.fullmatch("[0-9]{1,9}", pause := entry.text("nsds5ReplicaSessionPauseTime") or ""):
                pauses[f"{suffix or ''} {name}"] = pause
            if last := _tried(entry):
                tried[f"{suffix or ''} {name}"] = last.isoformat()
                if changed := _changed_since(entry, last):
                    untried[f"{suffix or ''} {name}"] = changed.isoformat()
            ignores = (entry.text("nsds5ReplicaIgnoreMissingChange") or "").lower()
            if ignores in ("once", "on", "always"):  # on is the older word for once
                ignoring[f"{suffix or ''} {name}"] = ignores.replace("on", "once") if ignores == "on" else ignores
        values, modified = entry.texts("nsds50ruv"), entry.texts("nsruvReplicaLastModified")
        whose = "server" if kind == "replica" else "link"
        rows = vector_rows(values, modified, offset=entry.offset, kind=whose, holder=name)
        # Several suffixes in one file are several vectors of one server: what `inspect` shows must keep them apart.
        shown_name = f"{name} {suffix}" if len(suffixes) > 1 else name
        holders |= vector_facts({**row, "holder": shown_name} for row in rows)
        vectors += [{**row, "suffix": suffix} for row in rows]
        links += [{**row, "suffix": suffix} for row in mine]
    facts: dict[str, Any] = {"vectors": holders, "suffixes": suffixes, "replica": replicas}
    if replicas:  # a list of agreements alone does not tell who makes changes
        # A read-only replica has the ID 65535, as every other one of them: it is the origin of nothing.
        facts["origins"] = {
            suffix: str(int(about["id"]))  # it may be written with leading zeros
            for suffix, about in replicas.items()
            if about["id"] not in (None, READ_ONLY) and NUMBER.fullmatch(about["id"])
        }
    # nsDS5Flags says whether a changelog is kept: suppliers and hubs do, read-only consumers do not.
    facts["without_log"] = {suffix: 1 for suffix, about in replicas.items() if about["flags"] == "0"}
    facts |= {"addresses": at} if (at := dict(filter(None, map(_listens_at, entries)))) else {}
    facts |= {"listens_only_at": only} if (only := _listens_only_at(entries)) else {}
    facts |= {"replication": switches} if (switches := dict(filter(None, map(_switched, entries)))) else {}
    facts |= {"unreadable_links": unreadable} if unreadable else {}
    facts |= {"cleaning": cleaning} if cleaning else {}
    facts |= {"traces_kept": traces_kept} if traces_kept else {}
    facts |= {"logins_allowed": logins} if logins else {}
    facts |= {"groups_allowed": groups} if groups else {}
    facts |= {"pauses": pauses} if pauses else {}
    facts |= {"tried": tried} if tried else {}
    facts |= {"untried": untried} if untried else {}
    facts |= {"backoff": backoff} if backoff else {}
    facts |= {"misplaced": wrong_roots} if wrong_roots else {}
    facts |= {STRIPS_WRITER: strips_writer} if strips_writer else {}
    facts |= {"ignores_missing": ignoring} if ignoring else {}
    stores = {
        clean(name).lower(): suffix
        for entry in entries
        for name, suffix in (
            (entry.text("nsslapd-backend"), suffix_named(entry.text("cn") or "")),
            (entry.text("nsDS5ReplicaName"), suffix_of(entry) if kind_of(entry) == "replica" else None),
        )
        if name and suffix
    }
    facts |= {"stores": stores} if stores else {}
    if trimmed := dict(filter(None, map(_trimming, entries))):
        mapped = {
            clean(one.text("nsslapd-backend") or "").lower(): suffix_named(one.text("cn") or "") for one in entries
        }
        facts |= {"trimming": trimmed, "backends": {name: suffix for name, suffix in mapped.items() if name and suffix}}
    made = {"vectors": vectors, "links": links}
    return {name: tables.table(name, rows) for name, rows in made.items() if rows}, facts


def read_replica(piece: Piece) -> Parsed:
    """Vectors and links out of replica and agreement entries."""
    records = list(ldif.records(piece))
    rejects = [record for record in records if isinstance(record, Reject)]
    made, facts = replica_tables((record for record in records if isinstance(record, Entry)), piece.source)
    return Parsed(len(records), rejects, made, facts)


@lru_cache(maxsize=4)
def kind_of_file(head: bytes) -> str:
    """`replica`, `agreement` or `entries` for LDIF of entries, told by its first bytes; "" for anything else.

    Damaged lines do not count here: a file with a broken entry is still the file it is, and its reader says what is
    broken. The last entry of the head may be cut anywhere.
    """
    kind, head = "", head.removeprefix(ldif.BYTE_ORDER_MARK)
    for start, end, _ in ldif.blocks(head):
        lines = ldif.content_lines(head[start:end])
        if not lines:
            continue
        if not kind and not lines[0].lower().startswith(b"dn:"):
            return ""
        if any(line.lower().startswith((b"changetype:", b"control:")) for line in lines[1:2]):
            return ""
        kind = "entries"
        readable = list(_readable(lines))
        if readable and (
            found := kind_of(entry := Entry(start, readable)) or ("replica" if _is_of_server(entry) else "")
        ):
            return found
    return kind


def _readable(lines: list[bytes]) -> Iterator[tuple[str, bytes]]:
    for line in lines:
        with suppress(ValueError):
            yield ldif.read_line(line)


def _is_replica(head: bytes, name: str) -> bool:
    return kind_of_file(head) == "replica"


def _is_agreements(head: bytes, name: str) -> bool:
    if not head.strip():
        return name.endswith(".agreements.ldif")  # a server without agreements: the search found nothing
    return kind_of_file(head) == "agreement"


_EMPTY: dict[str, Any] = {"vectors": {}}

REPLICA = Format(
    "ds389.replica", _is_replica, lambda: read_replica, empty=_EMPTY, tells_suffix=True, excerpt=ldif.safe_excerpt
)
AGREEMENTS = Format(
    "ds389.agreements",
    _is_agreements,
    lambda: read_replica,
    empty=_EMPTY,
    tells_suffix=True,
    tells_links=True,
    main_port=frozenset({"ldap", "tls", "starttls"}),
    excerpt=ldif.safe_excerpt,
)
