"""What the evidence of 389 Directory Server means for the question whether a server has a change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from workbench.model import REMOVED
from workbench.rules import contents
from workbench.rules.spelling import parent_of
from workbench.rules.verdicts import LOG_REPLACED, REPLACED, TOTAL, Modification, Proving, Reset
from workbench.systems.ds389.rules.applying import skipped_for_good
from workbench.systems.ds389.rules.causes import causes
from workbench.systems.ds389.rules.ldap_results import in_words
from workbench.systems.ds389.rules.own_attributes import NOT_COMPARED, OWN_NOTES
from workbench.systems.ds389.rules.trim_settings import may_be_trimmed, settings_in


def resets(
    messages: Iterable[Mapping[str, Any]],
    suffix: str | None = None,
    stores: Mapping[str, str] = MappingProxyType({}),
    several: bool = False,
) -> list[Reset]:
    """The total initialisations, imports, restores and changelog imports of a suffix that the errors log of a server tells of.

    Messages of an import name the backend alone, some of a changelog the unique name of the replica. Whose these are says the
    configuration (`stores`), else an import that happens while just one replica is being replaced; of one that stays unknown
    the reset is not sure. A restore is of them all.
    """
    rows = list(messages)
    if suffix is None:  # nobody knows what the server holds
        return sorted([*_told(rows), *_unended(rows)], key=lambda reset: reset.began)
    several = several or any(row["suffix"] not in (None, suffix) for row in rows)
    owners = owners_of(rows, stores) if several else {}
    mine: list[Mapping[str, Any]] = []
    perhaps: list[Mapping[str, Any]] = []
    for row in rows:
        owner = row["suffix"] or owners.get(store_of(row))
        if owner in (None, suffix):
            (perhaps if several and owner is None and row["code"] in _OF_ONE else mine).append(row)
    may_be = [reset._replace(sure=False) for reset in _told(perhaps, _receiving(mine))]
    both = sorted([*mine, *perhaps], key=lambda row: row["at"])
    found = [*_told(mine), *may_be, *_unended(both)]
    return sorted(found, key=lambda reset: reset.began)


_OF_IMPORTS = ("import_begin", "import_end", "import_failed")
_OF_ONE = (*_OF_IMPORTS, "changelog_task")
"""They speak of one suffix, and need not name it."""


def store_of(row: Mapping[str, Any]) -> str:
    """The backend, or the unique name of the replica, that a message names."""
    numbers = dict(row["numbers"] or ())
    return str(numbers.get("backend") or numbers.get("suffix") or "").rstrip(": ").lower()


def owners_of(rows: Iterable[Mapping[str, Any]], stores: Mapping[str, str]) -> dict[str, str]:
    """The suffix of each backend, as far as anything tells it."""
    going: set[str] = set()
    begun: set[str] = set()  # an import says that it begins: that is no end of what a replica receives meanwhile
    seen: dict[str, set[str]] = {}
    for row in rows:
        if row["code"] in ("total_receive", "replica_offline") and row["suffix"]:
            going.add(row["suffix"])
        elif row["code"] == "replica_online":
            going.discard(row["suffix"])
        elif row["code"] == "import_begin":
            begun.add(store_of(row))
        elif row["code"] in _OF_IMPORTS and store_of(row) in begun:
            begun.remove(store_of(row))
        elif row["code"] in _OF_IMPORTS or row["code"] == "starting":
            if row["code"] == "starting":
                begun.clear()
            elif len(going) == 1:
                seen.setdefault(store_of(row), set()).update(going)
            going.clear()
    learned = {backend: next(iter(suffixes)) for backend, suffixes in seen.items() if backend and len(suffixes) == 1}
    return learned | dict(stores)


def _receiving(rows: Iterable[Mapping[str, Any]]) -> list[datetime]:
    """When a total initialisation began."""
    return [row["at"] for row in rows if row["code"] in ("total_receive", "replica_offline")]


def _told(messages: Iterable[Mapping[str, Any]], offline: Sequence[datetime] = ()) -> list[Reset]:
    """The resets out of messages of one suffix.

    A total initialisation ends with `Import complete` as an import does, but only an import says that it begins. At the
    default level of the log nothing else tells of a total initialisation than that the replica goes offline for it.
    `offline`: when one began whose end these messages may tell.
    """
    found: list[Reset] = []
    receiving = importing = logging = None
    for row in messages:
        at, code, step = row["at"], row["code"], dict(row["numbers"] or ()).get("step", "")
        if code == "starting":
            receiving = importing = None
        elif code == "total_receive":
            receiving, importing = at, None
        elif code == "replica_offline":
            receiving = receiving or at
        elif code == "import_begin":
            importing = at
        elif code in ("import_end", "import_failed"):
            if importing is not None or code == "import_failed":
                found.append(Reset(REPLACED, importing or receiving or at, at, failed=code == "import_failed"))
            elif receiving is not None:
                found.append(Reset(TOTAL, receiving, at))
            elif began := max((one for one in offline if one <= at), default=None):
                found.append(Reset(TOTAL, began, at))
            else:
                found.append(Reset(REPLACED, at, at))  # of an unknown kind: the log begins in the middle of it
            receiving = importing = None
        elif code == "restore":
            receiving = None
            if found and found[-1].kind == REPLACED and (at - found[-1].ended).total_seconds() < 60:
                found[-1] = found[-1]._replace(ended=at)
            else:
                found.append(Reset(REPLACED, at, at))
        elif code == "changelog_task" and dict(row["numbers"] or ()).get("task") == "import":
            if step == "Beginning":
                logging = at
            else:
                found.append(Reset(LOG_REPLACED, logging or at, at))
                logging = None
    return found


def _unended(messages: Iterable[Mapping[str, Any]]) -> Iterator[Reset]:
    """The replacements that began and of which no message tells the end: the log ends, or the server started again meanwhile."""
    began, kind = None, TOTAL
    for row in messages:
        code = row["code"]
        if code in ("total_receive", "replica_offline", "import_begin"):
            began, kind = began or row["at"], REPLACED if code == "import_begin" else kind
        elif code in ("import_end", "import_failed", "restore", "replica_online", "starting"):
            if began and code == "starting":
                yield Reset(kind, began, row["at"], sure=False)
            began, kind = None, TOTAL
    if began:
        yield Reset(kind, began, began, sure=False)


_OF_THE_WRITER = frozenset(
    {"modifiersname", "modifytimestamp", "internalmodifiersname", "internalcreatorsname", "entryusn"}
)
_NO_SUCH_ATTRIBUTE = 16
_KEEP_ALIVE = re.compile(r"cn=repl keep alive \d+\s*,", re.IGNORECASE)
_VERBS = ("add", "delete", "replace", "increment")


def _tells_verbs(body: str) -> bool:
    """False if it is by a tool that prints the values of a modification and not what was done to them (`dbscan`)."""
    first = next((line for line in body.split("\n") if line and line != "-"), "add:")
    return first.partition(":")[0].lower() in _VERBS


def _named(line: str) -> str:
    """The name in small letters; the letters of a value count."""
    name, colon, value = line.partition(":")
    return f"{name.lower()}{colon}{value}"


def groups(body: str) -> list[list[str]]:
    """The lines of each modification but who did it, and when: the verb with its attribute, then the values.

    Where the tool does not tell verbs, each value stands alone.
    """
    if not _tells_verbs(body):
        lines = [_named(line) for line in body.split("\n") if line and line != "-"]
        return [[line] for line in lines if line.partition(":")[0] not in _OF_THE_WRITER]
    kept: list[list[str]] = []
    group: list[str] = []
    for line in [*body.split("\n"), "-"]:
        if line == "-":
            if group and group[0].partition(":")[2].strip() not in _OF_THE_WRITER:
                kept.append(group)
            group = []
        elif line:
            group.append(_named(line) if group else line.lower())
    return kept


def modification(operation: str, body: str, rename: str) -> Modification | None:
    """What two servers write alike when each makes the same change under a CSN of its own: all but who did it, and when."""
    if operation == "add" or REMOVED in body:
        return None  # a name that is added twice is a conflict, and two new passwords look the same
    found = groups(body)
    if _tells_verbs(body):
        # The order of attributes is that of the program that wrote them.
        whole = "\n-\n".join([operation, rename, *sorted("\n".join(group) for group in found)])
        values = [line for group in found for line in group[1:]]
    else:
        whole, values = None, [line for group in found for line in group]
    return Modification(whole, "\n".join([operation, rename, *sorted(values)]))


def beginning(body: str) -> str:
    """How the text of a change begins, to find its twins by."""
    found = groups(body)
    return _text(found[0]) if found else ""


def beginnings(body: str) -> list[str]:
    """How the texts of its twins may begin: with any of its modifications, in the words of any tool.

    One twin is not found so: a removal of a whole attribute, in front of others, of which `dbscan` prints nothing.
    """
    found = [_text(group) for group in groups(body)]
    if _tells_verbs(body):
        return [*found, *(_text([line]) for group in groups(body) for line in group[1:]), ""]
    lines = [line for (line,) in groups(body)]
    return [*found, *(_text([f"{verb}: {line.partition(':')[0]}", line]) for line in lines for verb in _VERBS), ""]


def _text(lines: list[str]) -> str:
    return "\n".join([*lines, "-", ""])


MODIFICATION = re.compile(r"(add|delete|replace): ?([^\s:]+)\Z")


def modified(body: str) -> list[str]:
    """The attributes that the text of a modification names."""
    unfolded = body.replace("\n ", "").split("\n")
    starts = (MODIFICATION.match(text) for at, text in enumerate(unfolded) if at == 0 or unfolded[at - 1] == "-")
    return [found[2] for found in starts if found]


def touched(body: str) -> frozenset[str]:
    """The attributes that the text of a modification names, in small letters, but for what says only who wrote it and when."""
    return frozenset(name.lower() for name in modified(body)) - _OF_THE_WRITER


def took_nothing(body: str, result: int) -> bool:
    """True if a modification removes an attribute, or one value of it, does nothing else, and was refused as that is not there.

    >>> took_nothing("delete: memberOf\\n-\\nreplace: modifiersName\\nmodifiersName: cn=x\\n-", 16)
    True
    >>> took_nothing("delete: mail\\nmail: a@x\\nmail: b@x\\n-", 16)
    False
    """
    groups = [group.split("\n") for group in re.split(r"(?m)^-\n?", body.replace("\n ", "")) if group.strip()]
    done = [
        (start[1].lower(), sum(bool(line) for line in lines))
        for lines in groups
        if (start := MODIFICATION.match(lines[0])) and start[2].lower() not in _OF_THE_WRITER
    ]
    return result == _NO_SUCH_ATTRIBUTE and len(done) == 1 and done[0][0] == "delete" and done[0][1] <= 2


def rename_words(rename: str) -> dict[str, str]:
    """What a record says of a renaming: newrdn, deleteoldrdn, and the new parent."""
    return dict(line.split(": ", 1) for line in rename.replace("\n ", "").split("\n") if ": " in line)


def renamed(target: str, rename: str) -> str:
    r"""The name that a renaming gives an entry.

    >>> renamed("uid=a,ou=b,dc=c", "newrdn: uid=d\ndeleteoldrdn: true")
    'uid=d,ou=b,dc=c'
    """
    told = rename_words(rename)
    new = told.get("newrdn")
    parent = told.get("newsuperiordn") or told.get("newsuperior") or parent_of(target)
    return ",".join(filter(None, (new, parent))) if new else ""


_UNIQUE_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})1([0-9a-f]{3})-[0-9a-f]{8}-[0-9a-f]{8}")
_BEFORE_1970 = 0x01B21DD213814000
"""Steps of 100 ns from the beginning of the calendar that unique IDs count from."""


def entry_added(unique_id: str) -> datetime | None:
    """When an entry was added: a unique ID is made of the time, as a UUID of version 1 is, by the clock of its server.

    >>> entry_added("c61efb8b-ec6411f1-ae96b2c0-52c275da").isoformat(timespec="seconds")
    '2026-11-30T02:21:39+00:00'
    """
    found = _UNIQUE_ID.fullmatch(unique_id.lower())
    if not found:
        return None
    low, middle, high = (int(part, 16) for part in found.groups())
    steps = (high << 48 | middle << 32 | low) - _BEFORE_1970
    return datetime.fromtimestamp(steps / 1e7, UTC) if steps > 0 else None


PROVING = Proving(
    entry_added=entry_added,
    took_nothing=took_nothing,
    goes_on=skipped_for_good,
    reset_codes=frozenset(
        {
            *("total_receive", "replica_offline", "replica_online", "restore", "changelog_task", "starting"),
            *_OF_IMPORTS,
        }
    ),
    resets=resets,
    modification=modification,
    causes=causes,
    passed_over="alternative_start",
    cleaned="clean_done",
    unwritten="database_failed",
    remembers_cleaned=frozenset({"multisupplier_extop_cleanruv", "multimaster_extop_cleanruv"}),
    forgets_cleaned=frozenset({"starting", "started", "stopped"}),
    cleaning="clean_step",
    drops_from="Sending cleanAllRUV task to all the replicas",
    given_up="uccessfully aborted",
    started="starting",
    stopped="stopped",
    log_closed="changelog_not_open",
    log_opened=frozenset({"replica_online", "import_end", "changelog_task"}),
    log_removed=frozenset({"replica_removed", "changelog_recreated"}),
    claims_differ="vector_mismatch",
    sends_whole="total_begin",
    sent_whole="total_end",
    idle=lambda target: bool(_KEEP_ALIVE.match(target)),
    log_written="changelog_task",
    trimmed=lambda facts, suffix, several, records, age: may_be_trimmed(
        settings_in(facts, suffix, several), records, age
    ),
    beginning=beginning,
    beginnings=beginnings,
    usual=tuple(f"{verb}: " for verb in _VERBS),
    unusual=tuple(f"{verb}: {name}" for verb in _VERBS for name in _OF_THE_WRITER),
    not_compared=NOT_COMPARED,
    conflict="nsds5replconflict",
    kept_for_children="deletedentryhaschildren",
    brought_back="glue_entry",
    own_notes=OWN_NOTES,
    notes_refused="login_notes_refused",
    in_words=in_words,
    touched=touched,
    renamed=renamed,
    marks={
        "vucsn": contents.MADE,
        "mdcsn": contents.MADE,
        "vdcsn": contents.REMOVED,
        "adcsn": contents.CLEARED,
    },
    grave=("objectclass", "nstombstone"),
    traces_kept=timedelta(days=7),
)
