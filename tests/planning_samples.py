"""Made-up cases that ask for each of the repairs, written file by file, for what the real incidents do not show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mesh_samples import SUFFIX, Claims, agreement, changelog, claims, csn, elements, replica, write

from workbench import Case

Files = dict[str, str]
READ_ONLY = 65535


def stamps(rid: int, *seconds: int) -> list[str]:
    """Changes of one origin."""
    return [csn(second, rid) for second in seconds]


def server(
    name: str,
    rid: int,
    vector: Claims,
    logged: Iterable[str] | None,
    links: str = "",
    *,
    suffix: str = SUFFIX,
    dropped: Iterable[str] = (),
    port: int = 0,
    purge: Iterable[str] = (),
) -> Files:
    """The files of one server; `dropped`: what it took for something that it had."""
    at = 38900 + (port or rid)
    ran = f"\t389-Directory/2.3.1 B2022.300.0000\n\tlocalhost.localdomain:{at} (/etc/dirsrv/slapd-{name})\n\n"
    says = "DEBUG - NSMMReplicationPlugin - ruv_add_csn_inprogress - The csn {} has already be seen (in ruv) - ignoring"
    ran += "".join(f"[29/Apr/2024:12:00:00.000000000 +0000] - {says.format(one)}\n" for one in dropped)
    files = {
        f"{name}.replica.ldif": replica(rid, elements(vector), suffix=suffix, flags=int(logged is not None)),
        f"{name}.agreements.ldif": links,
        f"{name}.errors.log": ran,
    }
    if logged is not None:
        files[f"{name}.changelog.ldif"] = changelog(sorted(logged), own_entries=True, suffix=suffix, purge=purge)
    return {key: text for key, text in files.items() if text}


MADE = stamps(1, *range(10))
ALL = claims(r1=(0, 9), r2=(0, 0))
OWN = stamps(2, 0)


def behind_a_hub() -> Files:
    """h1 and c1 behind it dropped one change; s1 and s2 have it."""
    lacking = [csn(5, 1)]
    less = [one for one in MADE if one not in lacking]
    return {
        **server("s1", 1, ALL, [*MADE, *OWN], agreement("s1-to-s2", 38902) + agreement("s1-to-h1", 38950)),
        **server("s2", 2, ALL, [*MADE, *OWN], agreement("s2-to-s1", 38901)),
        **server("h1", READ_ONLY, ALL, [*less, *OWN], agreement("h1-to-c1", 38951), port=50, dropped=lacking),
        **server("c1", READ_ONLY, ALL, None, port=51, dropped=lacking),
    }


def stranded(known: bool) -> Files:
    """s2 took its own data back and dropped a change of s1; what it made since, s1 never got. `known`: its log has all of it."""
    own = stamps(2, 0, 20, 21, 22)
    logged = own if known else own[:-1]
    lacking = [csn(5, 1)]
    less = [one for one in MADE if one not in lacking]
    return {
        **server("s1", 1, ALL, [*MADE, *OWN], agreement("s1-to-s2", 38902)),
        **server("s2", 2, claims(r1=(0, 9), r2=(0, 22)), [*less, *logged], dropped=lacking),
    }


def purged_here_kept_there() -> Files:
    """s3 waits for changes that s1, which feeds it, has trimmed; s2 has them, and no agreement to s3."""
    trimmed = [f"{{replica 1 ldap://localhost:38901}} {csn(6, 1)}"]
    behind = claims(r1=(0, 3), r2=(0, 0))
    return {
        **server(
            "s1", 1, ALL, [*MADE[7:], *OWN], agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903), purge=trimmed
        ),
        **server("s2", 2, ALL, [*MADE, *OWN], agreement("s2-to-s1", 38901)),
        **server("s3", 3, behind, [*MADE[:4], *OWN]),
    }


def newest_dropped() -> Files:
    """s2 dropped the newest change of s1; s3 waits for it and for others before it, behind a disabled agreement."""
    behind = claims(r1=(0, 3), r2=(0, 0))
    links = agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903, enabled=False)
    return {
        **server("s1", 1, ALL, [*MADE, *OWN], links),
        **server("s2", 2, ALL, [*MADE[:-1], *OWN], dropped=MADE[-1:]),
        **server("s3", 3, behind, [*MADE[:4], *OWN]),
    }


def half_by_itself() -> Files:
    """s3 waits for what s1 has trimmed, and a disabled agreement from s2 would bring it half."""
    trimmed = [f"{{replica 1 ldap://localhost:38901}} {csn(6, 1)}"]
    half, less = claims(r1=(0, 6), r2=(0, 0)), claims(r1=(0, 3), r2=(0, 0))
    return {
        **server("s1", 1, ALL, [*MADE[7:], *OWN], agreement("s1-to-s3", 38903), purge=trimmed),
        **server("s2", 2, half, [*MADE[:7], *OWN], agreement("s2-to-s3", 38903, enabled=False)),
        **server("s3", 3, less, [*MADE[:4], *OWN]),
    }


def asleep() -> Files:
    """s1 and s2 each feed a server of their own, and believe it up to date; they do not feed one another."""
    has = [*MADE, *OWN]
    known = elements(ALL)
    behind = claims(r1=(0, 3), r2=(0, 0))
    return {
        **server("s1", 1, ALL, has, agreement("s1-to-s3", 38903, remembered=known)),
        **server("s2", 2, ALL, has, agreement("s2-to-s4", 38904, remembered=known)),
        **server("s3", 3, behind, [*MADE[:4], *OWN]),
        **server("s4", 4, behind, [*MADE[:4], *OWN]),
    }


def rolled_back(enabled: bool = False) -> tuple[Files, Files]:
    """s1 and s2 had all; then s2 was restored, lacks what it made last, and has not written since.

    `enabled`: the agreement that leads to it is on, and what it remembers of s2 is not told.
    """
    own = stamps(2, *range(6))
    whole, less = claims(r1=(0, 9), r2=(0, 5)), claims(r1=(0, 9), r2=(0, 2))
    links = agreement("s1-to-s2", 38902, enabled=enabled)
    first = {
        **server("s1", 1, whole, [*MADE, *own], agreement("s1-to-s2", 38902)),
        **server("s2", 2, whole, [*MADE, *own], agreement("s2-to-s1", 38901)),
    }
    then = {
        **server("s1", 1, whole, [*MADE, *own], links),
        **server("s2", 2, less, [*MADE, *own[:3]], agreement("s2-to-s1", 38901)),
    }
    return first, then


def two_suffixes() -> Files:
    """o=one: s2 is behind and its link asleep; o=two: it is behind and the link of the same name is disabled."""
    behind = claims(r1=(0, 3), r2=(0, 0))
    known = elements(ALL)
    files = {
        "s1.agreements.ldif": agreement("to-s2", 38902, suffix="o=one", remembered=known)
        + agreement("to-s2", 38902, suffix="o=two", enabled=False),
        "s1.replica.ldif": replica(1, elements(ALL), suffix="o=one") + replica(1, elements(ALL), suffix="o=two"),
        "s2.replica.ldif": replica(2, elements(behind), suffix="o=one") + replica(2, elements(behind), suffix="o=two"),
    }
    for name in ("one", "two"):
        files[f"s1.changelog-{name}.ldif"] = changelog([*MADE, *OWN], own_entries=True, suffix=f"o={name}")
        files[f"s2.changelog-{name}.ldif"] = changelog([*MADE[:4], *OWN], own_entries=True, suffix=f"o={name}")
    return files


def one_name_for_all() -> Files:
    """Nothing is lacking; both agreements are disabled, and both are called `peer`."""
    return {
        **server("s1", 1, ALL, [*MADE, *OWN], agreement("peer", 38902, enabled=False)),
        **server("s2", 2, ALL, [*MADE, *OWN], agreement("peer", 38901, enabled=False)),
    }


def case_of(folder: Path, *snapshots: Files) -> Case:
    """A case of these."""
    case = Case.create(folder / "case")
    case.load([write(folder / f"{number}", files) for number, files in enumerate(snapshots, 1)])
    return case
