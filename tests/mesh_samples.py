"""Collected folders of a made-up mesh, written file by file: changelogs, replica entries and agreements of small servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from workbench import Case

SUFFIX = "dc=example,dc=com"
GENERATION = "65ffabcd000000010000"
Claims = Mapping[int, tuple[str, str] | None]
"""Replica ID -> first and last CSN; None: an element without CSNs."""


def csn(seconds: int, rid: int, seq: int = 0, sub: int = 0) -> str:
    """A CSN so many seconds after the beginning."""
    return f"{0x66000000 + seconds:08x}{seq:04x}{rid:04x}{sub:04x}"


def claims(**spans: tuple[int, int]) -> dict[int, tuple[str, str] | None]:
    """`claims(r1=(0, 9))`: of replica ID 1 from second 0 to 9."""
    return {int(name[1:]): (csn(low, int(name[1:])), csn(high, int(name[1:]))) for name, (low, high) in spans.items()}


def elements(found: Claims, generation: str | None = GENERATION, port: int = 38900) -> list[str]:
    """The values of nsds50ruv; the server of each replica ID listens on `port` + ID."""
    lines = [f"{{replicageneration}} {generation}"] if generation else []
    for rid, span in found.items():
        lines.append(
            f"{{replica {rid} ldap://localhost.localdomain:{port + rid}}}" + (f" {span[0]} {span[1]}" if span else "")
        )
    return lines


def _escaped(suffix: str) -> str:
    return suffix.replace("=", "\\3D").replace(",", "\\2C")


def replica(
    rid: int | str,
    ruv: Iterable[str],
    *,
    suffix: str = SUFFIX,
    flags: int = 1,
    sends_to: Iterable[str] = (),
) -> str:
    """The replica entry; `sends_to` are values of nsds5agmtmaxcsn without the suffix."""
    lines = [
        f"dn: cn=replica,cn={_escaped(suffix)},cn=mapping tree,cn=config",
        "objectClass: nsds5Replica",
        f"nsDS5ReplicaRoot: {suffix}",
        f"nsDS5Flags: {flags}",
        f"nsDS5ReplicaId: {rid}",
        *(f"nsds5agmtmaxcsn: {suffix};{value}" for value in sends_to),
        *(f"nsds50ruv: {value}" for value in ruv),
    ]
    return "\n".join(lines) + "\n\n"


def agreement(
    name: str,
    port: int,
    *,
    host: str = "localhost",
    suffix: str = SUFFIX,
    enabled: bool = True,
    remembered: Iterable[str] = (),
) -> str:
    """An agreement's entry."""
    lines = [
        f"dn: cn={name},cn=replica,cn={_escaped(suffix)},cn=mapping tree,cn=config",
        "objectClass: nsds5replicationagreement",
        f"cn: {name}",
        f"nsDS5ReplicaRoot: {suffix}",
        f"nsDS5ReplicaHost: {host}",
        f"nsDS5ReplicaPort: {port}",
        f"nsds5ReplicaEnabled: {'on' if enabled else 'off'}",
        *(f"nsds50ruv: {value}" for value in remembered),
    ]
    return "\n".join(lines) + "\n\n"


def changelog(
    changes: Iterable[str],
    *,
    marks: Iterable[str] = (),
    purge: Iterable[str] = (),
    last: Iterable[str] = (),
    suffix: str = SUFFIX,
    own_entries: bool = False,
) -> str:
    """An exported changelog; `marks` are the dummy records of one that was made anew.

    `own_entries`: each change is of an entry of its own, the same one in every log.
    """
    head = [*(f"clpurgeruv: {value}" for value in purge), *(f"clmaxruv: {value}" for value in last)]
    found = ["\n".join(head)] if head else []
    for mark in marks:
        zeros = "00000000-00000000-00000000-00000000"
        found.append(f"changetype: delete\ncsn: {mark}\nnsuniqueid: {zeros}\ndn: cn=start iteration")
    for number, position in enumerate(changes):
        if own_entries:
            number = int(f"{position[4:8]}{position[10:12]}{position[14:16]}", 16)
        unique = f"{number:08x}-00000000-00000000-00000001"
        found.append(f"changetype: delete\ncsn: {position}\nnsuniqueid: {unique}\ndn: uid=u{number},{suffix}")
    return "\n\n".join(found) + "\n\n"


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files; of an existing one they are added."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def pair_of_servers(ahead: int = 9, behind: int = 4) -> dict[str, str]:
    """s1 made changes every second up to `ahead`, s2 has them up to `behind`; a link each way."""
    made = [csn(second, 1) for second in range(ahead + 1)]
    both = claims(r2=(1, 2))
    mine = [csn(second, 2) for second in (1, 2)]
    first, second = elements({**claims(r1=(0, ahead)), **both}), elements({**both, **claims(r1=(0, behind))})
    return {
        "s1.changelog.ldif": changelog([*made, *mine]),
        "s1.replica.ldif": replica(1, first),
        "s1.agreements.ldif": agreement("to-s2", 38902),
        "s2.changelog.ldif": changelog([*made[: behind + 1], *mine]),
        "s2.replica.ldif": replica(2, second),
        "s2.agreements.ldif": agreement("to-s1", 38901),
    }


def case_of(tmp_path: Path, *snapshots: dict[str, str | bytes]) -> Case:
    """A case with these files as its snapshots, in the order of time."""
    case = Case.create(tmp_path / "case")
    case.load([write(tmp_path / f"{number}", files) for number, files in enumerate(snapshots, 1)])
    return case
