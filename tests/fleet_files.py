"""The collected files of a made-up fleet, written from what was collected of each server."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from fleet_histories import READ_ONLY, Fleet, Line, Note, Shown, origin_of
from mesh_samples import GENERATION, write


def files_of(fleet: Fleet, shown: Shown) -> Iterator[tuple[str, str]]:
    """The files of one server, by name."""
    yield from _own_files(fleet, shown, shown.name)
    if shown.lines:
        yield f"{shown.name}.access.log", _in_time(_access(fleet, shown.lines, shown.lines[0].at))
    if shown.notes:
        yield f"{shown.name}.errors.log", _in_time(_errors(fleet, shown.notes))


def _own_files(fleet: Fleet, shown: Shown, name: str) -> Iterator[tuple[str, str]]:
    """The files of one suffix of a server, by name."""
    yield f"{name}.replica.ldif", _replica(fleet, shown)
    yield f"{name}.agreements.ldif", _agreements(fleet, shown)
    if shown.log is not None:
        yield f"{name}.changelog.ldif", _changelog(fleet, shown)
    if shown.states is not None:
        yield f"{name}.entries.ldif", _entries(fleet, shown)


def write_fleet(folder: Path, fleet: Fleet) -> list[Path]:
    """The snapshots of a fleet: an earlier one, if there is one, and the last."""
    snapshots = [one for one in (fleet.earlier, fleet.shown) if one]
    return [
        write(folder / str(number), {name: text for one in shown.values() for name, text in files_of(fleet, one)})
        for number, shown in enumerate(snapshots, 1)
    ]


def write_suffixes(folder: Path, chosen: list[Fleet], every: list[Fleet]) -> list[Path]:
    """The snapshots of the servers as if they held the chosen ones of some suffixes: the logs begin and end as with all."""
    snapshots = {
        "1": [(fleet, fleet.earlier) for fleet in chosen if fleet.earlier],
        "2": [(fleet, fleet.shown) for fleet in chosen],
    }
    written = []
    for label, shown in snapshots.items():
        files: dict[str, str] = {}
        told: list[str] = []
        for fleet, servers in shown:
            for name, one in servers.items():
                files |= dict(_own_files(fleet, one, f"{name}.{fleet.suffix}"))
                if fleet.tells_backend or not one.log:  # a log without changes does not tell what it is of
                    told.append(f"- name: {name}\n  files: ['{name}.{fleet.suffix}.*']\n  suffix: {fleet.suffix}\n")
        for name in chosen[0].shown if label == "2" else ():
            files |= dict(_shared_logs(name, chosen, every))
        if told:
            files["case.yaml"] = "servers:\n" + "".join(told)
        if files:
            written.append(write(folder / label, files))
    return written


def _shared_logs(name: str, chosen: list[Fleet], every: list[Fleet]) -> Iterator[tuple[str, str]]:
    """The logs of one server, which speak of all its suffixes in the order of time."""
    times = [line.at for fleet in every for line in fleet.shown[name].lines or ()]
    if times:
        told = [
            (max(times), f'{_stamp(max(times))} conn=99 op=1 SRCH base="" scope=0 filter="(objectClass=*)" attrs=ALL\n')
        ]
        for number, fleet in enumerate(every):
            if fleet in chosen:
                told += _access(fleet, fleet.shown[name].lines or [], min(times), 10 * number)
        yield f"{name}.access.log", _in_time(told)
    times = [note.at for fleet in every for note in fleet.shown[name].notes or ()]
    if times:
        told = [(at, f"{_stamp(at)} - INFO - main - it is still there\n") for at in (min(times), max(times))]
        for fleet in every:
            mine = fleet.shown[name].notes or []
            # A restore brings back everything that the server holds.
            told += _errors(fleet, mine if fleet in chosen else [one for one in mine if "restore" in one.kind])
        yield f"{name}.errors.log", _in_time(told)


def _in_time(told: Iterable[tuple[int, str]]) -> str:
    return "".join(text for _, text in sorted(told, key=itemgetter(0)))


def _port(at: int) -> int:
    return 10000 + at


def _elements(fleet: Fleet, vector: dict[str, str]) -> list[str]:
    ports = {one.origin: _port(at) for at, one in enumerate(fleet.servers)}
    return [
        f"{{replicageneration}} {GENERATION}",
        *(
            f"{{replica {rid} ldap://host:{ports.get(rid, 9)}}} {_first(fleet, rid)} {top}"
            for rid, top in vector.items()
        ),
    ]


def _first(fleet: Fleet, rid: str) -> str:
    return min(csn for csn in fleet.changes if origin_of(csn) == rid)


def _dn(fleet: Fleet) -> str:
    escaped = fleet.suffix.replace("=", "\\3D").replace(",", "\\2C")
    return f"cn=replica,cn={escaped},cn=mapping tree,cn=config"


def _replica(fleet: Fleet, shown: Shown) -> str:
    tree = ["objectClass: nsMappingTree", f"cn: {fleet.suffix}", f"nsslapd-backend: {fleet.backend}", ""]
    lines = [
        *([f"dn: {_dn(fleet).partition(',')[2]}", *tree] if fleet.tells_backend else []),
        f"dn: {_dn(fleet)}",
        "objectClass: nsds5Replica",
        f"nsDS5ReplicaRoot: {fleet.suffix}",
        f"nsDS5Flags: {0 if shown.log is None else 1}",
        f"nsDS5ReplicaId: {shown.rid}",
        *(f"nsds50ruv: {value}" for value in _elements(fleet, shown.vector)),
    ]
    return "\n".join(lines) + "\n\n"


def _agreements(fleet: Fleet, shown: Shown) -> str:
    """Links from every server with a log to every other one."""
    text = ""
    for at, one in enumerate(fleet.servers):
        if shown.log is None or one.name == shown.name or one.rid == READ_ONLY:
            continue
        lines = [
            f"dn: cn={fleet.links}{one.name},{_dn(fleet)}",
            "objectClass: nsds5replicationagreement",
            f"cn: {fleet.links}{one.name}",
            f"nsDS5ReplicaRoot: {fleet.suffix}",
            "nsDS5ReplicaHost: host",
            f"nsDS5ReplicaPort: {_port(at)}",
            "nsds5ReplicaEnabled: on",
            *(
                f"nsds5replicaLastInit{what}: {datetime.fromtimestamp(second, UTC):%Y%m%d%H%M%SZ}"
                for what, second in zip(("Start", "End"), shown.inits.get(one.name, ()), strict=False)
            ),
        ]
        text += "\n".join(lines) + "\n\n"
    return text


def _target(fleet: Fleet, entry: int) -> str:
    return f"uid=u{entry},{fleet.suffix}"


def _identity(entry: int) -> str:
    return f"{entry:08x}-00000000-00000000-00000001"


def _changelog(fleet: Fleet, shown: Shown) -> str:
    assert shown.log is not None
    head = [f"clpurgeruv: {{replica {rid} ldap://host:1}} {csn}" for rid, csn in shown.purged.items()]
    head += [f"clmaxruv: {{replica {rid}}} {_first(fleet, rid)} {csn} 00000000" for rid, csn in shown.claims.items()]
    records = [("\n".join(head) + "\n\n")] if head else []
    zeros = "00000000-00000000-00000000-00000000"
    every = [
        (mark, f"changetype: delete\ncsn: {mark}\nnsuniqueid: {zeros}\ndn: cn=start iteration\n\n")
        for mark in shown.marks.values()
    ]
    for csn in (*shown.log, *shown.damaged):
        change = fleet.changes[csn]
        body = f"replace: description\ndescription: {change.value}\n-\nreplace: modifytimestamp\nmodifytimestamp: {csn}\n-\n"
        every.append(
            (
                csn,
                f"changetype: modify\ncsn: {'nonsense' if csn in shown.damaged else csn}\nnsuniqueid: {_identity(change.entry)}\n"
                f"dn: {_target(fleet, change.entry)}\nchange:: {base64.b64encode(body.encode()).decode()}\n\n",
            )
        )
    records += [text for _, text in sorted(every)]
    if shown.cut:
        records.append("changetype: modify\ncsn: 66")
    return "".join(records)


def _stamp(at: int) -> str:
    return f"[{datetime.fromtimestamp(at, UTC):%d/%b/%Y:%H:%M:%S}.000000000 +0000]"


def _access(fleet: Fleet, lines: list[Line], begin: int, conns: int = 0) -> Iterator[tuple[int, str]]:
    """The lines with their times; the numbers of the connections of other suffixes are others."""
    sent, asked = conns + 1, conns + 2
    session = 'EXT oid="2.16.840.1.113730.3.5.12" name="x"\n'
    yield begin, f"{_stamp(begin)} conn={sent} fd=64 slot=64 connection from 10.0.0.1 to 10.0.0.2\n"
    yield begin, f"{_stamp(begin)} conn={sent} op=3 {session}"
    yield begin, f"{_stamp(begin)} conn={asked} fd=65 slot=65 connection from 10.0.0.3 to 10.0.0.2\n"
    for number, line in enumerate(lines, 4):
        where = f"{_stamp(line.at)} conn={sent if line.replicated else asked} op={number}"
        yield line.at, f'{where} MOD dn="{_target(fleet, line.entry)}"\n'
        tail = f" csn={line.csn}" if line.csn else ""
        times = "wtime=0.000389 optime=0.003129 etime=0.003517"
        yield line.at, f"{where} RESULT err={line.code} tag=103 nentries=0 {times}{tail}\n"
        if number % 50 == 0:
            yield line.at, f"{_stamp(line.at)} conn={sent} op={number}1 {session}"


_SAYS = {
    "dropped": "DEBUG - NSMMReplicationPlugin - ruv_add_csn_inprogress - The csn {csn} has already be seen (in ruv) - ignoring",
    "cancelled": "DEBUG - NSMMReplicationPlugin - process postop - conn=1 op=1 csn={csn} canceling operation csn",
    "skipped": 'WARN - NSMMReplicationPlugin - replay_update - agmt="cn={to}" (host:1): Receiver failed to replay change '
    "(uniqueid 1, CSN {csn}): No such object (32). Skipping.",
    "import_begin": "INFO - bdb_import_main - import {backend}: Beginning import job...",
    "import_end": "INFO - bdb_import_main - import {backend}: Import complete.  Processed 12 entries in 5 seconds.",
    "total_receive": "DEBUG - NSMMReplicationPlugin - multisupplier_extop_StartNSDS50ReplicationRequest - "
    'conn=1 op=3 repl="{suffix}": Begin total protocol',
    "restore_begin": "INFO - bdb_restore - Beginning restore to 'ldbm database'",
    "restore_end": "INFO - bdb_restore - Restore finished.",
    "log_import_begin": 'INFO - NSMMReplicationPlugin - changelog_import - Beginning changelog import of replica "{suffix}"',
    "log_import_end": 'INFO - NSMMReplicationPlugin - changelog_import - Finished changelog import of replica "{suffix}"',
}


def _errors(fleet: Fleet, notes: list[Note]) -> Iterator[tuple[int, str]]:
    names = {"suffix": fleet.suffix, "backend": fleet.backend}
    for note in notes:
        said = _SAYS[note.kind].format(csn=note.about, to=f"{fleet.links}{note.to}", **names)
        yield note.at, f"{_stamp(note.at)} - {said}\n"


def _entries(fleet: Fleet, shown: Shown) -> str:
    assert shown.states is not None
    zone = "ffffffff-ffffffff-ffffffff-ffffffff"
    entries = [
        f"dn: {fleet.suffix}\nobjectClass: domain\nnsUniqueId: 99999999-00000000-00000000-00000001\n",
        f"dn: nsuniqueid={zone},{fleet.suffix}\nobjectClass: nsTombstone\nnsUniqueId: {zone}\n"
        + "".join(f"nsds50ruv: {value}\n" for value in _elements(fleet, shown.exported)),
    ]
    for entry, csn in sorted(shown.states.items()):
        entries.append(
            f"dn: {_target(fleet, entry)}\nobjectClass: person\nnsUniqueId: {_identity(entry)}\n"
            f"description;adcsn-{csn[:16]}0001;vucsn-{csn[:16]}0002: {fleet.changes[csn].value}\n"
        )
    return (
        "version: 1\n\n" + "\n".join(f"# entry-id: {number}\n{text}" for number, text in enumerate(entries, 1)) + "\n"
    )
