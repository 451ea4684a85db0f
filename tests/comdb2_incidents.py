"""Small incidents of Comdb2: the tables of the registry, what nodes answered, and dumps of logs, as they would be collected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import md5
from pathlib import Path

from comdb2_samples import DIGEST, TABS, digest, printed
from tier_files import TUNABLES, Made, written

Files = Callable[[Path], object]

SOURCE = Made("S@s1")
FOLLOWS = Made("A@a1", source="S@s1")
HOLDS = {"physrep_check_minlog_freq_sec": "600"}
CUT = "2026/11/20 11:59:58 comdb2_replicated_truncate complete [9:500]\n"
NOBODY = (
    "2026/11/20 11:40:00 physrep: physrep worker thread has started\n"
    "2026/11/20 11:40:01 physrep: Physical replicant is now replicating from S@s1\n"
    "2026/11/20 11:59:30 physrep: PHYSREP NO VIABLE SOURCE\n"
)
ENDED = "2026/11/20 11:50:00 physrep: physrep worker thread has stopped\n" * 2


def tree(*nodes: Made, awaited: Sequence[str] = (), **tunables: str) -> Files:
    """What was collected of these nodes."""
    return lambda folder: written(folder, nodes, awaited, **tunables)


def of_2023(*nodes: Made, **tunables: str) -> Files:
    """The same of the version that refuses when too many nodes wait."""

    def write(folder: Path) -> None:
        more = {"physrep_register_interval": "600", "physrep_max_pending_replicants": "10"}
        table = written(folder, nodes, **more, **tunables) / "nodes" / "tunables.tsv"
        lines = table.read_text().splitlines(keepends=True)
        table.write_text("".join(line for line in lines if "physrep_reconnect_interval" not in line))

    assert "physrep_reconnect_interval" in TUNABLES
    return write


def naming(host: str, name: str, write: Files) -> Files:
    """The same, where a node was told to follow that host of the source."""

    def with_it(folder: Path) -> None:
        write(folder)
        database, _, at = name.partition("@")
        told = {"physrep_source_dbname": "S", "physrep_source_host": host}
        with (folder / "nodes" / "tunables.tsv").open("a") as table:
            table.writelines(f"{database}\t{at}\t{key}\t{value}\n" for key, value in told.items())

    return with_it


COMMIT, CHANGE = 2151, 44
Line = tuple[str, bytes]
"""The place of a record, and the line of a dump."""


def log(count: int = 40, other_from: int = 0, turn: int = 25) -> list[Line]:
    """Records of a log, each fourth a commit; behind `turn` the next file begins.

    Those from `other_from` on are of another history.
    """
    file, start, lines = 8, 28, list[Line]()
    for number in range(count):
        payload = md5(b"%d" % number, usedforsecurity=False).digest() * (1 + number % 3)
        if other_from and number >= other_from:
            payload = payload[::-1]
        record = (file, start, COMMIT if number % 4 == 3 else CHANGE, payload)
        lines.append((f"{{{file}:{start}}}", printed(DIGEST, [digest(record)], TABS)))
        file, start = (file + 1, 28) if number == turn else (file, start + len(payload) + 12)
    return lines


def dumps(source: Sequence[Line], *copies: Sequence[Line], registry: bool = True) -> Files:
    """Dumps of the logs of S@s1 and of A@a1, A@a2 …, with or without the table that says who follows whom."""

    def write(folder: Path) -> None:
        for host, lines in zip(
            ("S.s1", *(f"A.a{at}" for at in range(1, len(copies) + 1))), (source, *copies), strict=True
        ):
            (folder / f"{host}.digest.tsv").write_bytes(b"".join(line for _, line in lines))
        if registry:
            rows = "".join(f"A\ta{at}\tS\ts1\n" for at in range(1, len(copies) + 1))
            (folder / "comdb2_physrep_connections.tsv").write_text(rows)

    return write


def beside(name: str, lines: Sequence[Line], write: Files) -> Files:
    """The same, and the dump of another node, which pulls from S@s2 unless it is of the source."""

    def with_it(folder: Path) -> None:
        write(folder)
        (folder / f"{name.replace('@', '.')}.digest.tsv").write_bytes(b"".join(line for _, line in lines))
        if not name.startswith("S@"):
            database, _, host = name.partition("@")
            with (folder / "comdb2_physrep_connections.tsv").open("a") as table:
                table.write(f"{database}\t{host}\tS\ts2\n")

    return with_it


def answered(write: Files, **generations: int) -> Files:
    """The same, and of which generation the newest commits of nodes of the source are."""

    def with_it(folder: Path) -> None:
        write(folder)
        ends = {name: max(PLACES) for name in generations}
        rows = [
            f"2026-11-20T12:00:00.000Z\tS\t{host}\t{{8:28}}\t{{{file}:{place}}}\t{newest}\t1795175995\t"
            f"{{{file}:{place}}}\t{newest}\t1795175995\t0\n"
            for host, newest in generations.items()
            for file, place in (ends[host],)
        ]
        (folder / "positions.tsv").write_text("".join(rows))

    return with_it


WHOLE = log()
FORKED = log(other_from=30)
PLACES = [(int(file), int(place)) for at, _ in WHOLE for file, _, place in (at.strip("{}").partition(":"),)]
FAR = Made("S@s1", at=(20, 900), first=15)

INCIDENTS: dict[str, Files] = {
    # --- positions
    "report_of_before_a_cut": tree(
        Made("S@s1", at=(9, 900)), Made("A@a1", at=(9, 700), source="S@s1", answers=None, age=9, log=CUT)
    ),
    "ends_that_part": dumps(WHOLE, log(34, other_from=30), WHOLE),
    "two_dumps_without_a_registry": dumps(WHOLE, log(34, other_from=30), registry=False),
    # --- nothing is on the way to them
    "frozen_and_behind": tree(SOURCE, Made("A@a1", at=(9, 500), source="S@s1", age=900, answers=False)),
    "pending_and_behind": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), state="Pending")),
    "unreachable_and_behind": tree(SOURCE, Made("A@a1", at=(9, 500), source="S@s1", age=5, answers=False)),
    "keepalive_39_s_old": tree(SOURCE, Made("A@a1", source="S@s1", age=39, answers=False)),
    "refused_below_a_pending_limit": of_2023(
        SOURCE, FOLLOWS, *(Made(f"W{at}@w", at=(9, 500), state="Pending") for at in range(12))
    ),
    "silent_node_has_the_file": tree(
        SOURCE,
        Made("S@s2", at=(9, 900), first=4, answers=False, age=500),
        Made("A@a1", at=(4, 500), first=4, source="S@s2", age=300),
    ),
    "names_a_host_without_a_row": naming(
        "s9", "A@a2", tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), state="Pending"))
    ),
    "hangs_below_a_stopped_node": tree(
        SOURCE,
        FOLLOWS,
        Made("A@a2", at=(9, 500), source="S@s1", age=395),
        Made("B@b1", at=(8, 500), source="A@a2"),
    ),
    "hangs_on_a_source_node_that_catches_up": tree(
        Made("S@s1", at=(9, 500)), Made("S@s2"), Made("A@a1", at=(9, 500), source="S@s1"), Made("A@a2", source="S@s2")
    ),
    "says_that_nobody_can_serve_it": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="S@s1", log=NOBODY)),
    # --- who holds log files
    "row_spelled_as_its_version_asks": of_2023(
        Made("S@s1", first=4),
        Made("A@a1", at=(5, 500), first=4, source="S@s1", age=90_000, answers=False, state="ACTIVE"),
        Made("A@a2", source="S@s1"),
        **HOLDS,
    ),
    "two_hold_log_files": tree(
        Made("S@s1", first=4),
        Made("A@a1", source="S@s1", first=4),
        Made("B@b1", at=(4, 500), first=3, source="A@a1", age=900, answers=False),
        Made("B@b2", at=(6, 500), first=5, source="A@a1"),
        **HOLDS,
    ),
    "registry_elsewhere_holds_nothing": tree(
        Made("S@s1", first=4),
        Made("A@a1", at=(4, 500), first=3, source="S@s1"),
        physrep_metadb_name="registry",
        **HOLDS,
    ),
    # --- logs
    "same_generation_after_a_cut": tree(
        Made("S@s1", cuts=1), Made("A@a1", source="S@s1", cuts=1), Made("A@a2", at=(9, 900), source="S@s1", cuts=1)
    ),
    "lower_generation_at_the_same_place": tree(SOURCE, Made("A@a1", source="S@s1", generation=3, asked_before=-9)),
    "gap_of_four_records": dumps(WHOLE, [*WHOLE[:12], *WHOLE[16:]], WHOLE),
    "end_of_a_file_lost": dumps(WHOLE, [*WHOLE[:24], *WHOLE[26:]], WHOLE),
    "other_record_in_the_middle": dumps(WHOLE, [*WHOLE[:17], *log(18, other_from=17)[17:], *WHOLE[18:]], WHOLE),
    "copy_is_behind": dumps(WHOLE, WHOLE[:36]),
    "source_was_cut_back": dumps(WHOLE[:35], WHOLE),
    "file_is_gone_at_the_source_alone": tree(
        FAR,
        Made("A@a1", at=(20, 900), first=12, source="S@s1"),
        Made("A@a2", at=(13, 5), first=12, source="S@s1", age=400),
    ),
    "file_is_gone_everywhere": tree(
        FAR, Made("A@a1", at=(20, 900), first=15, source="S@s1"), Made("A@a2", at=(9, 5), first=8, state="Pending")
    ),
    "two_nodes_of_the_source_differ": beside("A@a9", FORKED, beside("S@s2", FORKED, dumps(WHOLE, WHOLE))),
    "the_higher_generation_was_elected": answered(
        beside("A@a9", FORKED, beside("S@s2", FORKED, dumps(WHOLE, WHOLE))), s1=4, s2=6
    ),
    "newer_generation_than_its_source": tree(SOURCE, Made("A@a1", at=(9, 500), source="S@s1", generation=6)),
    "source_went_back_two_files": tree(
        Made("S@s1", at=(7, 100), first=5), Made("A@a1", at=(9, 500), first=5, source="S@s1")
    ),
    "no_log_file_in_common": tree(Made("S@s1", at=(3, 50), first=1), Made("A@a1", at=(9, 700), source="S@s1")),
    "source_and_copies_lack_the_same": dumps(*3 * [[*WHOLE[:32], *WHOLE[35:]]]),
    "silent_node_is_hidden_by_the_source": tree(
        FAR,
        Made("A@a1", at=(20, 900), source="S@s1", age=800, answers=False),
        Made("A@a2", at=(9, 5), source="A@a1"),
        Made("A@a3", at=(14, 5), first=9, state="Pending"),
    ),
    # --- the tree
    "healthy": tree(SOURCE, FOLLOWS, Made("A@a2", source="S@s1")),
    "stopped_by_command": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="S@s1", age=400)),
    "clean_exit": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="S@s1", log=ENDED, age=600, answers=False)),
    "circle_of_three": tree(
        SOURCE,
        Made("C@c1", source="S@s1"),
        *(Made(f"A@a{at}", at=(9, 900), source=f"A@a{at % 3 + 1}") for at in (1, 2, 3)),
    ),
    "below_a_node_without_a_row": tree(SOURCE, FOLLOWS, Made("B@b1", source="X@gone")),
    "waits_for_a_connection_nobody_makes": tree(
        SOURCE, FOLLOWS, Made("B@b1", state="Pending", at=(9, 500)), awaited=["B@b1 S@s1"]
    ),
    "delay_on_purpose": tree(
        SOURCE, Made("A@a1", at=(9, 500), source="S@s1", lrl="replicate_from S @s1\nreplicate_wait 45\n")
    ),
    "state_misspelled": tree(SOURCE, Made("A@a1", source="S@s1", state="active")),
    "taken_out": tree(SOURCE, FOLLOWS, Made("A@old", at=(3, 500), first=2, age=3e6, state="Inactive", answers=None)),
    "three_below_a_fanout_of_two": tree(SOURCE, *(Made(f"A@a{at}", source="S@s1") for at in (1, 2, 3))),
    "parent_froze": tree(
        FAR,
        Made("A@a1", at=(18, 5), first=12, source="S@s1", age=7000, answers=False),
        Made("A@a2", at=(18, 5), first=12, source="A@a1"),
    ),
    "source_list_cut": tree(
        SOURCE,
        Made("S@s2"),
        Made(
            "A@a1",
            source="S@s1",
            lrl="replicate_from S @s1,s2\n",
            tunables={"physrep_source_dbname": "S", "physrep_source_host": "@s1"},
        ),
    ),
    # --- and more
    "never_reported": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="S@s1", age=None)),
    "newer_file_and_smaller_offset": tree(
        Made("S@s1", at=(10, 50)), Made("A@a1", at=(10, 50), source="S@s1"), Made("A@a2", at=(9, 900), source="S@s1")
    ),
    "asked_after_its_source": tree(SOURCE, Made("A@a1", at=(9, 1200), source="S@s1", asked_before=-9)),
    "second_node_of_the_source_behind": tree(SOURCE, Made("S@s2", at=(9, 900)), FOLLOWS),
    "four_tiers": tree(
        SOURCE,
        FOLLOWS,
        *(Made(f"{name}@1", source=above) for name, above in (("B", "A@a1"), ("C", "B@1"), ("D", "C@1"))),
    ),
    "parent_lacks_the_file": tree(
        Made("S@s1", at=(20, 100), first=3),
        Made("A@a1", at=(20, 100), first=15, source="S@s1"),
        Made("B@b1", at=(8, 500), first=6, source="A@a1"),
    ),
    "two_trees": tree(
        SOURCE, FOLLOWS, Made("T@t1", at=(3, 50), first=1), Made("U@u1", at=(3, 50), first=1, source="T@t1")
    ),
    "dead_holder_is_level": tree(
        Made("S@s1", first=8), Made("B@b1", at=(9, 500), source="S@s1", age=900, answers=False), FOLLOWS, **HOLDS
    ),
    "source_gone_and_copies_go_on": tree(
        Made("S@s1", at=(9, 1000), age=900, answers=False), FOLLOWS, Made("A@a2", source="S@s1")
    ),
    "pulls_from_itself": tree(SOURCE, FOLLOWS, Made("A@a2", at=(9, 500), source="A@a2")),
    "row_of_no_replicant": tree(SOURCE, FOLLOWS, awaited=["Z@z S@s1"]),
    "two_copies_differ_at_one_place": dumps(
        WHOLE,
        [*WHOLE[:9], *log(10, other_from=9)[9:], *WHOLE[10:]],
        [*WHOLE[:20], *log(21, other_from=20)[20:], *WHOLE[21:]],
        WHOLE,
    ),
}
