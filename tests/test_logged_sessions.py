"""What the errors log of a supplier says of its sessions against what the rules compute: `ANCHOR_DISAGREES`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT
from collected import SHARED, needs_collected_files

from workbench import Case
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.systems.ds389.rules import sending
from workbench.systems.ds389.session_log.comparison import (
    END,
    FIRST,
    NOTHING,
    RELOAD,
    Comparison,
    anchor_disagrees,
    compare_logged,
)
from workbench.topology.topology import topology

SUFFIX = "dc=example,dc=com"
RIDS = {"s1": 1, "s2": 2, "s3": 3}


def csn(number: int, rid: int, sequence: int = 0) -> str:
    return f"{0x6B005000 + number:08x}{sequence:04x}{rid:04x}0000"


class ErrorsLog:
    """An errors log at level 8192, in the words of the server; a line each 10 ms."""

    def __init__(self, begin: int = 0) -> None:
        self.lines: list[str] = []
        self._begin = begin

    def line(self, text: str) -> None:
        at = self._begin + len(self.lines)
        self.lines.append(f"[20/Nov/2026:14:{at // 6000:02}:{at // 100 % 60:02}.{at % 100:02}0000000 +0000] - {text}")

    def of(self, link: str, text: str) -> None:
        self.line(f'DEBUG - agmt="cn={link}" (localhost:389) - {text}')

    def plugin(self, link: str, where: str, text: str) -> None:
        self.line(f'DEBUG - NSMMReplicationPlugin - {where}agmt="cn={link}" (localhost:389): {text}')

    def blocks(self, link: str, *blocks: tuple[str, str], read: str = "", previous: Iterable[str] = ()) -> None:
        """Control blocks of (stop, consumer's maximum); at a reload with the last record read and the stops before."""
        function = "clcache_adjust_anchorcsn" if read else "clcache_initial_anchorcsn"
        stops = [*previous] or [stop if read else "" for stop, _ in blocks]
        for number, ((stop, consumer), before) in enumerate(zip(blocks, stops, strict=True)):
            self.of(
                link,
                f'{function} - agmt="cn={link}" (localhost:389) - (cscb {number} - state 0) - csnPrevMax ({before}) '
                f"csnMax ({stop}) csnBuf ({read or '0' * 20}) csnConsumerMax ({consumer})",
            )

    def acquired(self, link: str) -> None:
        self.plugin(link, "acquire_replica - ", "Replica was successfully acquired.")

    def anchor(self, position: str) -> None:
        self.line(f"DEBUG - clcache_initial_anchorcsn - anchor is now: {position}")

    def found(self, link: str, position: str) -> None:
        self.plugin(link, "changelog program - ", f"CSN {position} found, position set for replay")

    def reload(self, link: str, position: str) -> None:
        self.of(link, f"clcache_adjust_anchorcsn - anchor is now: {position}")

    def sent(self, link: str, *positions: str) -> None:
        for position in positions:
            self.plugin(link, "replay_update - ", f'Sending modify operation (dn="cn=x" csn={position})')

    def own(self, link: str, position: str, rid: int) -> None:
        self.of(link, f"clcache_skip_change - Skipping {position} because the consumer with Rid: [{rid}] is ignored")

    def end(
        self, link: str, load: int, sent: int, covered: int = 0, own: int = 0, beyond: int = 0, used_up: bool = True
    ) -> None:
        if used_up:
            what = "No more updates to send (cl5GetNextOperationToReplay)" if load else "No changes to send"
            self.plugin(link, "send_updates - ", what)
        self.of(
            link,
            f"clcache_return_buffer - session end: state=5 load={load} sent={sent} skipped={covered + own + beyond} "
            f"skipped_new_rid=0 skipped_csn_gt_cons_maxcsn={own} skipped_up_to_date=0 skipped_csn_gt_ruv={beyond} "
            f"skipped_csn_covered={covered}",
        )

    def session(self, link: str, *blocks: tuple[str, str], anchor: str, sent: Iterable[str], **counters: int) -> None:
        """A session in one load that sends what it lists and finds nothing more."""
        sent = list(sent)
        self.acquired(link)
        self.blocks(link, *blocks)
        self.anchor(anchor)
        self.found(link, anchor)
        self.sent(link, *sent)
        stops = [stop for stop, _ in blocks]
        self.blocks(link, *[(stop, stop) for stop in stops], read=max(sent), previous=stops)
        self.end(link, 1, counters.pop("counted", len(sent)), **counters)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def changelog(positions: Iterable[str], marks: Iterable[str] = ()) -> str:
    names = dict.fromkeys(positions, "cn=x,dc=example,dc=com") | dict.fromkeys(marks, "cn=start iteration")
    return "".join(
        f"changetype: delete\nreplgen: {csn(0, 1)}\ncsn: {position}\n"
        f"nsuniqueid: {'00000000-00000000-00000000-00000000' if 'iter' in name else '1-1-1-1'}\ndn: {name}\n\n"
        for position, name in sorted(names.items())
    )


def replica(server: str, vector: dict[int, tuple[str, str]]) -> str:
    lines = [
        "dn: cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config",
        "objectClass: nsds5Replica",
        f"nsDS5ReplicaRoot: {SUFFIX}",
        "nsDS5ReplicaType: 3",
        f"nsDS5ReplicaId: {RIDS[server]}",
        f"nsds50ruv: {{replicageneration}} {csn(0, 1)}",
        *(f"nsds50ruv: {{replica {rid} ldap://h:{rid}}} {low} {high}" for rid, (low, high) in vector.items()),
        *(
            f"nsds5agmtmaxcsn: {SUFFIX};{server}-to-{other};localhost;389;{RIDS[other]};{csn(1, RIDS[server])}"
            for other in RIDS
            if other != server
        ),
    ]
    return "\n".join(lines) + "\n\n"


WHOLE = {rid: (csn(1, rid), csn(40, rid)) for rid in RIDS.values()}
ALL = [csn(number, rid) for rid in RIDS.values() for number in range(1, 41)]


def collect(folder: Path, log: object, positions: Iterable[str] = ALL, **files: object) -> Path:
    """A snapshot: the errors log of s1, its changelog, and the replica entries of three servers."""
    folder.mkdir()
    (folder / "s1.errors.log").write_text(str(log))
    (folder / "s1.changelog.ldif").write_text(changelog(positions))
    for server in RIDS:
        (folder / f"{server}.replica.ldif").write_text(replica(server, WHOLE))
    for name, text in files.items():
        (folder / f"s1.{name}").write_text(str(text))
    return folder


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    def compare(*logs: object, **kwargs: Iterable[str]) -> Comparison:
        case = Case.create(tmp_path / "case")
        case.load([collect(tmp_path / f"{number}", log, **kwargs) for number, log in enumerate(logs)])
        found = compare_logged(case, topology(case))
        findings = list(anchor_disagrees(DetectorContext(case, topology(case), [], Verdicts())))
        assert {(one.link, one.code, one.severity) for one in findings} == {
            (one.link, "ANCHOR_DISAGREES", "warning") for one in found.disagreements
        }
        assert sum(len(one.evidence) for one in findings) == len(found.disagreements)
        return found

    return compare


def totals(found: Comparison) -> dict[str, tuple[int, int]]:
    return {kind: found.total(kind) for kind in (FIRST, NOTHING, RELOAD, END) if found.total(kind)[0]}


def reasons(found: Comparison) -> dict[tuple[str, str], int]:
    return {(kind, reason): number for (_, _, kind, reason), number in found.not_comparable.items()}


def exact(found: Comparison) -> dict[str, int]:
    """Counter -> played sessions in which it could have one value only."""
    return {
        name: sum(n for key, n in found.exact.items() if key[2] == name) for name in {key[2] for key in found.exact}
    }


EXACT = dict.fromkeys(
    ("sent", "skipped_csn_covered", "skipped_csn_gt_cons_maxcsn", "skipped_new_rid", "skipped_csn_gt_ruv"), 1
)


def told(found: Comparison) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.what, one.logged, one.computed) for one in found.disagreements]


# s2 lacks the changes 11 to 15 of s1. Of s3, which s1 holds as well, it has everything. Between them lie changes of s2.
DUE = [csn(number, 1) for number in range(11, 16)]
BLOCKS = (csn(15, 1), csn(10, 1)), (csn(15, 3), csn(15, 3))
SPAN = {"positions": [csn(number, rid) for rid in (1, 3) for number in range(1, 16)]}


def test_a_session_agrees_in_its_anchor_and_in_every_counter(compared) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    found = compared(log, **SPAN)
    assert totals(found) == {FIRST: (1, 1), NOTHING: (1, 1), END: (1, 1)}
    assert exact(found) == EXACT and not reasons(found) and not told(found)


def test_a_wrong_anchor_is_found_with_both_values_and_its_place(compared, tmp_path: Path) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    log.session("s1-to-s2", *BLOCKS, anchor=csn(9, 1), sent=DUE, covered=7)
    found = compared(log, **SPAN)
    assert told(found) == [(FIRST, "anchor", csn(9, 1), csn(10, 1))]
    assert totals(found)[FIRST] == (2, 1) and reasons(found) == {(END, "its first anchor disagrees"): 1}
    place = found.disagreements[0].place
    line = (tmp_path / "0" / "s1.errors.log").read_bytes()[place.offset :].split(b"\n")[0].decode()
    assert line.endswith(f"clcache_initial_anchorcsn - anchor is now: {csn(9, 1)}")
    case = Case.open(tmp_path / "case")
    (finding,) = anchor_disagrees(DetectorContext(case, topology(case), [], Verdicts()))
    assert finding.items == (csn(9, 1), csn(10, 1)) and (finding.server, finding.suffix) == ("s1", SUFFIX)
    assert f"s1.errors.log:{place.offset}" in finding.summary and csn(9, 1) in finding.summary
    assert finding.evidence[0]["logged"] == csn(9, 1) and finding.evidence[0]["computed"] == csn(10, 1)
    assert all(isinstance(value, (str, int)) for value in finding.evidence[0].values())


@pytest.mark.parametrize(
    ("counters", "off"),
    [
        ({"counted": 4, "covered": 5}, ("sent", "4", "5")),
        ({"covered": 3}, ("skipped_csn_covered", "3", "5")),
        ({"covered": 5, "own": 1}, ("skipped_csn_gt_cons_maxcsn", "1", "0")),
        ({"covered": 5, "beyond": 1}, ("skipped_csn_gt_ruv", "1", "0")),
    ],
)
def test_a_wrong_counter_is_found(compared, counters: dict[str, int], off: tuple[str, str, str]) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, **counters)
    assert told(compared(log, **SPAN)) == [(END, *off)]


def test_the_last_record_counted_twice_is_neither_right_nor_wrong(compared) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    # The buffer ends with a change of s3, left out; LMDB counts this one again when it finds nothing behind it.
    text = str(log).replace(f"csnBuf ({csn(15, 1)})", f"csnBuf ({csn(15, 3)})").replace("covered=5", "covered=7")
    found = compared(text, **SPAN)
    assert not told(found) and [reason[-4:] for _, reason in reasons(found)] == ["does"]
    assert END not in totals(found)


def test_records_that_came_later_are_no_part_of_the_session(compared) -> None:
    """Changes of s3 with CSNs inside the span, written after the session; those of s2 may have been there."""
    log = ErrorsLog()
    blocks = BLOCKS[0], (csn(12, 3), csn(12, 3))
    log.session("s1-to-s2", *blocks, anchor=csn(10, 1), sent=DUE, covered=3)
    own = [csn(number, 2) for number in (11, 12)]
    found = compared(log, positions=[*SPAN["positions"], *own])
    assert totals(found)[END] == (1, 1) and not told(found)
    doubtful = {"skipped_csn_gt_cons_maxcsn": 0, "skipped_csn_gt_ruv": 0}  # those of s2 and of s3
    assert exact(found) == EXACT | doubtful


def test_the_consumers_own_changes_are_counted_as_such(compared) -> None:
    log = ErrorsLog()
    log.acquired("s1-to-s2")
    log.blocks("s1-to-s2", BLOCKS[0])
    log.anchor(csn(10, 1))
    log.found("s1-to-s2", csn(10, 1))
    log.sent("s1-to-s2", DUE[0])
    log.own("s1-to-s2", csn(12, 2, 1), 2)
    log.sent("s1-to-s2", *DUE[1:])
    log.blocks("s1-to-s2", (csn(15, 1), csn(15, 1)), read=csn(15, 1))
    log.end("s1-to-s2", 1, 5, own=1)
    positions = [csn(number, 1) for number in range(1, 16)]
    assert totals(compared(log, positions=[*positions, csn(12, 2, 1)])) == {FIRST: (1, 1), NOTHING: (1, 1), END: (1, 1)}


def test_a_block_of_an_unseen_replica_id_takes_the_first_of_the_vector(compared) -> None:
    log = ErrorsLog()
    due = [csn(number, 3) for number in range(1, 6)]
    log.session("s1-to-s2", (csn(15, 1), csn(15, 1)), (csn(5, 3), ""), anchor=csn(1, 3), sent=due, covered=4)
    found = compared(log, **SPAN)
    assert totals(found) == {FIRST: (1, 1), NOTHING: (1, 1), END: (1, 1)} and exact(found) == EXACT


def test_an_unseen_replica_id_without_a_known_first_is_not_compared(compared) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", (csn(15, 1), csn(15, 1)), (csn(5, 9), ""), anchor=csn(1, 9), sent=[csn(5, 9)])
    found = compared(log, **SPAN)
    assert FIRST not in totals(found)
    assert {kind for kind, _ in reasons(found)} == {FIRST, END}


def three_loads(log: ErrorsLog, second: str = csn(12, 1), of_s3: int = 12) -> None:
    """A buffer of two records: on from the last one read, then back to what the consumer has of s3, whose stop moved."""
    link, had = "s1-to-s2", csn(of_s3, 3)
    log.acquired(link)
    log.blocks(link, (csn(15, 1), csn(10, 1)), (had, had))
    log.anchor(csn(10, 1))
    log.found(link, csn(10, 1))
    log.sent(link, csn(11, 1), csn(12, 1))
    log.blocks(link, (csn(15, 1), csn(12, 1)), (had, had), read=csn(12, 1))
    log.reload(link, second)
    log.sent(link, csn(13, 1), csn(14, 1))
    log.blocks(link, (csn(15, 1), csn(14, 1)), (csn(14, 3), had), read=csn(14, 1), previous=[csn(15, 1), had])
    log.reload(link, had)


IN_THREE = [*(csn(number, 1) for number in range(1, 16)), *(csn(number, 3) for number in (1, 12, 13, 14))]


def test_reloads_go_on_and_go_back(compared) -> None:
    log = ErrorsLog()
    three_loads(log)
    log.sent("s1-to-s2", csn(13, 3), csn(14, 3), csn(15, 1))
    log.blocks("s1-to-s2", (csn(15, 1), csn(15, 1)), (csn(14, 3), csn(14, 3)), read=csn(15, 1))
    log.end("s1-to-s2", 3, 7, covered=3)
    found = compared(log, positions=IN_THREE)
    assert totals(found) == {FIRST: (1, 1), NOTHING: (1, 1), RELOAD: (2, 2), END: (1, 1)}


def test_a_wrong_reload_anchor_is_found(compared) -> None:
    log = ErrorsLog()
    three_loads(log, second=csn(11, 1))
    found = compared(log, positions=IN_THREE)
    assert told(found) == [(RELOAD, "reload", csn(11, 1), csn(12, 1))] and totals(found)[RELOAD] == (2, 1)


def test_a_session_that_would_go_back_behind_its_start_ends(compared) -> None:
    log = ErrorsLog()
    three_loads(log, of_s3=9)
    log.of(
        "s1-to-s2",
        f"clcache_load_buffer - bulk load cursor ({csn(9, 3)}) is lower than starting csn {csn(10, 1)}. Ending session.",
    )
    log.end("s1-to-s2", 2, 4)
    found = compared(log, positions=[one for one in IN_THREE if one != csn(12, 3)])
    assert totals(found) == {FIRST: (1, 1), RELOAD: (2, 2), END: (1, 1)}


def test_the_blocks_must_follow_from_the_records_read(compared) -> None:
    """Each block by itself is in order, but a block of the reload claims a stop from which the session would not go on."""
    log = ErrorsLog()
    log.acquired("s1-to-s2")
    log.blocks("s1-to-s2", (csn(15, 1), csn(10, 1)))
    log.anchor(csn(10, 1))
    log.found("s1-to-s2", csn(10, 1))
    log.sent("s1-to-s2", csn(11, 1), csn(12, 1))
    log.blocks("s1-to-s2", (csn(16, 1), csn(11, 1)), read=csn(12, 1), previous=[csn(11, 1)])
    log.reload("s1-to-s2", csn(11, 1))
    log.end("s1-to-s2", 2, 2, used_up=False)
    found = compared(log, positions=[csn(number, 1) for number in range(1, 17)])
    assert told(found) == [(END, "reload, played from the changelog", csn(11, 1), csn(12, 1))]


def interleaved(first: str, second: str) -> ErrorsLog:
    """Two sessions whose blocks are printed before either anchor."""
    log = ErrorsLog()
    for link in ("s1-to-s2", "s1-to-s3"):
        log.acquired(link)
    log.blocks("s1-to-s2", (csn(15, 1), csn(10, 1)))
    log.blocks("s1-to-s3", (csn(15, 1), csn(12, 1)))
    log.anchor(first)
    log.anchor(second)
    return log


def test_interleaved_anchors_go_to_the_agreement_that_goes_on_from_them(compared) -> None:
    log = interleaved(csn(12, 1), csn(10, 1))
    log.found("s1-to-s2", csn(10, 1))
    log.found("s1-to-s3", csn(12, 1))
    for link, due in (("s1-to-s3", DUE[2:]), ("s1-to-s2", DUE)):
        log.sent(link, *due)
        log.blocks(link, (csn(15, 1), csn(15, 1)), read=csn(15, 1))
        log.end(link, 1, len(due))
    found = compared(log, positions=[csn(number, 1) for number in range(1, 16)])
    assert totals(found) == {FIRST: (2, 2), NOTHING: (2, 2), END: (2, 2)} and not found.ambiguous


def test_interleaved_anchors_that_changed_places_are_found(compared) -> None:
    log = interleaved(csn(12, 1), csn(10, 1))
    log.found("s1-to-s2", csn(12, 1))
    log.found("s1-to-s3", csn(10, 1))
    assert told(compared(log)) == [
        (FIRST, "anchor", csn(12, 1), csn(10, 1)),
        (FIRST, "anchor", csn(10, 1), csn(12, 1)),
    ]


@pytest.mark.parametrize(("second", "agreeing"), [(csn(12, 1), 2), (csn(13, 1), 1)])
def test_anchors_that_nothing_attributes_are_counted_apart(compared, second: str, agreeing: int) -> None:
    log = interleaved(csn(10, 1), second)
    for link in ("s1-to-s2", "s1-to-s3"):
        log.end(link, 1, 5)
    found = compared(log)
    assert totals(found)[FIRST] == (2, agreeing) and found.ambiguous == {("0", "s1"): agreeing}
    assert [entry[2:] for entry in told(found)] == [(f"{csn(10, 1)} or {second}", csn(12, 1))][: 2 - agreeing]


def test_an_anchor_that_is_not_located_ends_the_session(compared) -> None:
    log = ErrorsLog()
    log.acquired("s1-to-s2")
    log.blocks("s1-to-s2", *BLOCKS)
    log.anchor(csn(10, 1))
    log.of("s1-to-s2", f"clcache_load_buffer - Can't locate CSN {csn(10, 1)} in the changelog (DB rc=-12797).")
    log.end("s1-to-s2", 0, 0, used_up=False)
    found = compared(log, positions=DUE)
    assert totals(found) == {FIRST: (1, 1), END: (1, 1)} and not found.played


def test_an_alternative_start_is_read_from(compared) -> None:
    log = ErrorsLog()
    log.acquired("s1-to-s2")
    log.blocks("s1-to-s2", BLOCKS[0])
    log.anchor(csn(10, 1))
    log.of(
        "s1-to-s2",
        f"clcache_load_buffer - Can't load changelog buffer starting at CSN {csn(10, 1)} with rc(-12797). "
        "Trying to use an alternative start CSN.",
    )
    log.of("s1-to-s2", f"clcache_load_buffer - Using alternative start iteration csn: {csn(13, 1)} ")
    log.found("s1-to-s2", csn(13, 1))
    log.sent("s1-to-s2", *DUE[2:])
    log.blocks("s1-to-s2", (csn(15, 1), csn(15, 1)), read=csn(15, 1))
    log.end("s1-to-s2", 1, 3)
    found = compared(log, positions=DUE[2:])
    assert totals(found) == {FIRST: (1, 1), NOTHING: (1, 1), END: (1, 1)} and exact(found) == EXACT


def test_a_session_with_nothing_to_send_has_no_anchor(compared) -> None:
    log = ErrorsLog()
    for anchored in (False, True):
        log.acquired("s1-to-s2")
        log.blocks("s1-to-s2", (csn(15, 1), csn(15, 1)))
        if anchored:
            log.anchor(csn(15, 1))
        log.end("s1-to-s2", 0, 0)
    found = compared(log)
    assert totals(found)[NOTHING] == (2, 1) and told(found) == [(NOTHING, "anchor", csn(15, 1), "none")]


def test_a_log_that_is_cut_says_so(compared) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    head, tail = log.lines[:4], log.lines[4:]
    assert totals(compared("\n".join(head) + "\n", **SPAN)) == {FIRST: (1, 1)}
    assert "csnMax" in head[-3] and tail


def test_a_log_that_begins_inside_a_session_is_not_guessed_at(compared) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    found = compared("\n".join(log.lines[2:]) + "\n", **SPAN)
    assert not told(found) and FIRST not in totals(found)


def test_a_session_goes_on_in_the_next_file_and_is_not_counted_twice(tmp_path: Path) -> None:
    """Rotated inside the session; collected once more later, grown: what was told is passed over."""
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    before, after = "\n".join(log.lines[:5]) + "\n", "\n".join(log.lines[5:]) + "\n"
    first = collect(tmp_path / "1", after, **SPAN)
    (first / "s1.errors.log.20261120-140000").write_text(before)
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=5)
    second = collect(tmp_path / "2", log, **SPAN)
    case = Case.create(tmp_path / "case")
    case.load([first, second])
    found = compare_logged(case, topology(case))
    assert totals(found) == {FIRST: (2, 2), NOTHING: (2, 2), END: (2, 2)} and not reasons(found)
    assert {key[0] for key in found.compared} == {"1", "2"}


@pytest.mark.parametrize(
    ("positions", "more", "reason"),
    [
        (DUE[1:], "", "an anchor is no longer in the changelog: it was trimmed since"),
        ([*SPAN["positions"][:12]], "", "the changelog ends before the session: it was collected earlier"),
        (
            SPAN["positions"],
            "Data for replica dc=example,dc=com does not match the data in the changelog. Recreating the changelog file.",
            "the changelog was made anew, imported or cleaned since",
        ),
    ],
)
def test_a_changelog_that_no_longer_shows_the_session_is_not_used(compared, positions, more: str, reason: str) -> None:
    log = ErrorsLog()
    log.session("s1-to-s2", *BLOCKS, anchor=csn(10, 1), sent=DUE, covered=2)  # wrong, if it were compared
    log.line(f"WARNING - NSMMReplicationPlugin - replica_check_for_data_reload - {more}")
    found = compared(log, positions=positions)
    assert reasons(found) == {(END, reason): 1} and not told(found) and totals(found)[FIRST] == (1, 1)


def test_a_log_at_the_default_level_gives_nothing(compared) -> None:
    log = ErrorsLog()
    log.line("INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 389 for LDAP requests")
    found = compared(log)
    assert not totals(found) and not reasons(found)


# --- captured logs


def of(case: Case) -> Comparison:
    return compare_logged(case, topology(case))


def in_case(tmp_path: Path, *folders: Path) -> Case:
    case = Case.create(tmp_path / "case")
    case.load(folders)
    return case


def test_the_captured_incident_agrees(tmp_path: Path) -> None:
    found = of(in_case(tmp_path, INCIDENT / "1-before", INCIDENT / "2-during"))
    assert totals(found) == {FIRST: (8, 8), NOTHING: (20, 20), RELOAD: (10, 10), END: (20, 20)}
    assert not told(found) and not reasons(found)
    assert sum(found.played.values()) == exact(found)["sent"] == 8


def test_an_edited_anchor_of_the_captured_incident_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "2-during"
    folder.mkdir()
    for file in (INCIDENT / "2-during").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    path = folder / "s2.errors.log.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "adjust_anchorcsn - anchor is now: " in line)
    old = lines[at].split()[-1]
    new = f"{int(old[:8], 16) - 1:08x}{old[8:]}"
    lines[at] = lines[at].replace(f"now: {old}", f"now: {new}")
    path.write_bytes(gzip.compress("".join(lines).encode()))
    found = of(in_case(tmp_path, folder))
    assert (RELOAD, "reload", new, old) in told(found) and totals(found)[RELOAD] == (10, 9)


@needs_collected_files
@pytest.mark.parametrize(
    ("kind", "name", "fault"),
    [
        (FIRST, "_candidates", lambda old: lambda self: sorted(old(self), key=lambda one: one.bound.position)[-1:]),
        (RELOAD, "_again", lambda old: lambda self, read: list(old(self, read))[:1]),
        (END, "_claimed", lambda old: lambda self, rid: None if rid == "2" else old(self, rid)),
    ],
)
def test_a_fault_in_the_rules_disagrees_with_captured_logs(
    kind: str, name: str, fault, tmp_path: Path, monkeypatch
) -> None:
    case = in_case(tmp_path, SHARED / "base")
    monkeypatch.setattr(sending._Talk, name, fault(getattr(sending._Talk, name)))
    assert kind in {one.kind for one in of(case).disagreements}


@needs_collected_files
def test_every_anchor_in_the_captured_logs_is_that_of_the_rules(tmp_path: Path) -> None:
    sums = dict.fromkeys((FIRST, NOTHING, RELOAD, END), 0)
    played, left_out, surely = 0, 0, dict.fromkeys(EXACT, 0)
    folders = [SHARED / "base", *sorted(path for path in (SHARED / "incidents").glob("*/*") if path.is_dir())]
    for number, folder in enumerate(folders):
        found = of(in_case(tmp_path / f"{number}", folder))
        assert not told(found), folder
        for kind in sums:
            sums[kind] += found.total(kind)[1]
        played += sum(found.played.values())
        surely = {name: number + exact(found).get(name, 0) for name, number in surely.items()}
        left_out += sum(found.not_comparable.values())
    assert sums == {FIRST: 280, NOTHING: 185, RELOAD: 230, END: 295}
    assert (played, left_out) == (141, 86)
    assert list(surely.values()) == [141, 140, 108, 141, 70]
