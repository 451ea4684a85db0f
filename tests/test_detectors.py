"""What holds for every system: the general detectors, their order, and the closed list of codes."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from detector_samples import BEGAN, agreement_line, findings, of, plain_line, stamp, status, with_status
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.codes import all_codes
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.detectors import DETECTORS, detected
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.model import SEVERITIES, STAGES, Problem
from workbench.systems import systems
from workbench.topology.topology import topology

Files = dict[str, Any]
GREEN = "Replica acquired successfully: Incremental update succeeded"


def equal_servers() -> Files:
    return pair_of_servers(4, 4)


def test_equal_servers_give_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, equal_servers()) == []
    assert findings(tmp_path / "twice", equal_servers(), equal_servers()) == []


# --- generation, identity


def test_of_three_servers_the_odd_one_is_named_once(tmp_path: Path) -> None:
    files: Files = {
        f"s{rid}.replica.ldif": replica(rid, elements(claims(r1=(0, 4)), csn(9, 9) if rid == 2 else csn(0, 9)))
        for rid in (1, 2, 3)
    }
    (one,) = of("UNRELATED_DATA", findings(tmp_path, files))
    assert (one["server"], one["severity"]) == ("s2", "error")
    assert [row["other"] for row in one["evidence"]] == ["s1", "s3"]
    assert {row["generation"] for row in one["evidence"]} == {csn(9, 9)}


def test_two_servers_of_one_origin(tmp_path: Path) -> None:
    files = equal_servers()
    files["s2.replica.ldif"] = replica(1, elements(claims(r1=(0, 4), r2=(1, 2))))
    (one,) = of("DUPLICATE_ORIGIN", findings(tmp_path, files))
    assert (one["origin"], one["severity"]) == ("1", "error")
    assert [row["server"] for row in one["evidence"][:2]] == ["s1", "s2"]


def test_one_origin_under_two_addresses_is_a_warning_and_letters_do_not_matter(tmp_path: Path) -> None:
    files = equal_servers()
    files["s2.replica.ldif"] = files["s2.replica.ldif"].replace("localdomain:38901", "localdomain:40000")
    (one,) = of("DUPLICATE_ORIGIN", findings(tmp_path / "two", files))
    assert (one["origin"], one["severity"], len(one["evidence"])) == ("1", "warning", 2)
    files["s2.replica.ldif"] = files["s2.replica.ldif"].replace(
        "localhost.localdomain:40000", "LOCALHOST.localdomain:38901"
    )
    assert not of("DUPLICATE_ORIGIN", findings(tmp_path / "one", files))


def with_a_third_origin() -> Files:
    files = equal_servers()
    spans = claims(r1=(0, 4), r2=(1, 2), r3=(0, 3))
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(spans))
    return files


def test_an_origin_that_nobody_is(tmp_path: Path) -> None:
    (one,) = of("DEAD_ORIGIN", findings(tmp_path, with_a_third_origin()))
    assert (one["origin"], one["severity"], one["items"]) == ("3", "warning", [csn(3, 3)])


def test_an_origin_that_nobody_is_is_not_cleaned_before_its_changes_have_arrived(tmp_path: Path) -> None:
    files = with_a_third_origin()
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 2))))
    (one,) = of("DEAD_ORIGIN", findings(tmp_path, files))
    assert one["summary"].endswith("; s2 waits for changes of it")
    assert one["fix"][0]["repair"].startswith("first do what PENDING_CHANGES says of s2")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s1.agreements.ldif", agreement("to-s2", 38902) + agreement("to-s3", 38903)),  # linked, not collected
        ("s3.replica.ldif", replica(3, elements(claims(r3=(0, 3))))),  # collected
        ("s1.agreements.ldif", None),  # its links are not known
        ("s3.DOWN", ""),  # nothing else is known of it
        ("s3.access.log", f"{stamp(1)} conn=7 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(1, 3)}\n"),
    ],
)
def test_an_origin_may_live_where_nothing_was_collected(name: str, content: str | None, tmp_path: Path) -> None:
    files = with_a_third_origin() | {name: content}
    assert not of("DEAD_ORIGIN", findings(tmp_path, {name: text for name, text in files.items() if text is not None}))


def test_read_only_servers_alone_do_not_tell_who_makes_the_changes(tmp_path: Path) -> None:
    vector = elements(claims(r1=(0, 4), r2=(1, 2)))
    files = {f"c{number}.replica.ldif": replica(65535, vector, flags=0) for number in (1, 2)}
    assert not of("DEAD_ORIGIN", findings(tmp_path, files))


def moved_at(rid: int, second: float) -> str:
    when = int(BEGAN.timestamp() + second)
    return f"nsruvReplicaLastModified: {{replica {rid} ldap://localhost.localdomain:3890{rid}}} {when:08x}\n"


@pytest.mark.parametrize(
    ("hours", "severity"), [(5.9, None), (6.1, "info"), (12.1, "warning"), (24.1, "error"), (-48, None)]
)
def test_a_clock_that_is_ahead(hours: float, severity: str | None, tmp_path: Path) -> None:
    files = equal_servers()
    files["s2.replica.ldif"] = files["s2.replica.ldif"].rstrip("\n") + "\n" + moved_at(1, 4 - hours * 3600) + "\n"
    found = of("CLOCK_AHEAD", findings(tmp_path, files))
    assert [one["severity"] for one in found] == ([severity] if severity else [])
    if found:
        assert (found[0]["server"], found[0]["origin"], found[0]["items"]) == ("s1", "1", [csn(4, 1)])


def test_a_clock_that_is_ahead_is_seen_in_an_access_log_and_an_old_log_proves_nothing(tmp_path: Path) -> None:
    line = "conn=7 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1 csn="
    files = equal_servers() | {"s2.access.log": f"{stamp(4 - 90000)} {line}{csn(4, 1)}\n"}
    (one,) = of("CLOCK_AHEAD", findings(tmp_path / "new", files))
    assert (one["severity"], one["evidence"][0]["file"]) == ("error", "s2.access.log")
    files["s2.access.log"] = f"{stamp(3 - 90000)} {line}{csn(0, 1)[:8]}000000090000\n"
    assert not of("CLOCK_AHEAD", findings(tmp_path / "old", files))


# --- links


def test_a_link_that_is_switched_off(tmp_path: Path) -> None:
    files = equal_servers() | {"s1.agreements.ldif": agreement("to-s2", 38902, enabled=False)}
    (one,) = of("LINK_DISABLED", findings(tmp_path, files))
    assert (one["severity"], one["server"], one["link"]) == ("warning", "s1", "to-s2")


def lagging(ended: float, last_line: float, state: str = "green", waits_from: int = 1000) -> Files:
    """s1 made a change at second `waits_from` that s2 lacks; its last session ended, and its log ends, at these seconds."""
    early, late = [csn(second, 1) for second in range(5)], [csn(waits_from, 1)]
    files = equal_servers()
    spans = {"1": (csn(0, 1), csn(waits_from, 1))}
    files["s1.replica.ldif"] = replica(1, elements({1: spans["1"], **claims(r2=(1, 2))}))
    files["s1.changelog.ldif"] = changelog([*early, *late, csn(1, 2), csn(2, 2)])
    told = status(0 if state == "green" else 18, GREEN, state, ended, ended)
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), told)
    files["s1.errors.log"] = agreement_line(last_line, "to-s2", "Replica was successfully acquired.")
    return files


@pytest.mark.parametrize(
    ("ended", "last_line", "state", "stalls"),
    [
        (500, 1400, "green", True),
        (500, 1400, "amber", False),  # it does not call itself well
        (900, 1400, "green", False),  # the session ended shortly before: the next one may be due
        (500, 1100, "green", False),  # collected shortly after
        (1350, 1400, "green", False),  # a session since, which had reasons of its own
    ],
)
def test_green_and_at_a_standstill(ended: float, last_line: float, state: str, stalls: bool, tmp_path: Path) -> None:
    found = of("STALLED_BUT_GREEN", findings(tmp_path, lagging(ended, last_line, state)))
    assert [(one["severity"], one["server"], one["link"]) for one in found] == [("warning", "s2", "to-s2")] * stalls


@pytest.mark.parametrize(
    ("then", "now", "moved", "stalls"),
    [(1010, 1400, False, True), (1010, 1020, False, False), (1010, 1400, True, False)],
)
def test_the_same_waits_in_two_snapshots(then: float, now: float, moved: bool, stalls: bool, tmp_path: Path) -> None:
    before, after = lagging(1005, then), lagging(1005, now)
    if moved:
        before["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 3), r2=(1, 2))))
    found = of("STALLED_BUT_GREEN", findings(tmp_path, before, after))
    assert len(found) == stalls
    assert all("in the snapshot 1 already" in one["summary"] for one in found)


def test_a_session_that_runs_is_no_standstill(tmp_path: Path) -> None:
    files = lagging(500, 1400)
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].rstrip("\n") + "\nnsds5replicaUpdateInProgress: TRUE\n\n"
    assert not of("STALLED_BUT_GREEN", findings(tmp_path, files))


@pytest.mark.parametrize(
    ("now", "moved", "began_anew", "stalls"),
    [(1080, False, False, True), (1030, False, False, False), (1080, True, False, False), (1080, False, True, False)],
    ids=["nothing moves", "read too soon", "its consumer got something", "another session"],
)
def test_an_open_session_that_sends_nothing(
    now: float, moved: bool, began_anew: bool, stalls: bool, tmp_path: Path
) -> None:
    before, after = lagging(1005, 1010), lagging(1005, now)
    for files, began in ((before, 1005), (after, 1050 if began_anew else 1005)):
        told = status(0, GREEN, "green", began, -1000)
        files["s1.agreements.ldif"] = (
            with_status(agreement("to-s2", 38902), told).rstrip("\n") + "\nnsds5replicaUpdateInProgress: TRUE\n\n"
        )
    if moved:
        before["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 3), r2=(1, 2))))
    found = of("STALLED_BUT_GREEN", findings(tmp_path, before, after))
    assert [one["root"] for one in found] == ["the link to-s2 stands still"] * stalls
    assert all("restart s2" in one["fix"][0]["repair"] for one in found)


def test_a_consumer_whose_log_has_it_is_not_at_a_standstill(tmp_path: Path) -> None:
    files = lagging(500, 1400)
    files["s2.changelog.ldif"] = changelog(
        [*(csn(second, 1) for second in range(5)), csn(1000, 1), csn(1, 2), csn(2, 2)]
    )
    assert not of("STALLED_BUT_GREEN", findings(tmp_path, files))


# --- input


@pytest.mark.parametrize(("broken", "weak"), [(0, False), (1, False), (2, True)])
def test_input_that_could_not_be_read(broken: int, weak: bool, tmp_path: Path) -> None:
    files = equal_servers()
    files["s2.changelog.ldif"] += "changetype: delete\ncsn: nonsense\n\n" * broken
    found = of("UNREADABLE_INPUT", findings(tmp_path, files))
    assert [(one["severity"], one["server"]) for one in found] == [("warning", "s2")] * weak


def test_a_few_rows_of_very_many_are_left_to_the_coverage(tmp_path: Path) -> None:
    files = equal_servers()
    lines = [f'{stamp(second)} conn={second} op=1 BIND dn="" method=128 version=3\n' for second in range(300)]
    files["s2.access.log"] = "".join([*lines, "nonsense\n", "nonsense\n"])
    found = diagnose(case_of(tmp_path, files))
    assert [one["rejected"] for one in found["coverage"] if one["file"] == "s2.access.log"] == [2]
    assert not of("UNREADABLE_INPUT", found["findings"])


@pytest.mark.parametrize(("damaged", "nonsense", "severity"), [(4, 0, "info"), (4, 1, "warning"), (20, 0, "warning")])
def test_lines_that_a_server_wrote_without_text_are_no_reason_to_collect_again(
    damaged: int, nonsense: int, severity: str, tmp_path: Path
) -> None:
    """Seen on 2.3.1: it named a host by damaged bytes, and a mended mesh was never clean again."""
    whole = "".join(plain_line(second, "INFO - slapd_daemon - slapd started.") for second in range(100)).encode()
    text = (
        plain_line(5, 'ERR - slapi_ldap_bind - server "HOST:389": error -1').encode().replace(b"HOST", b"\xd7\xebf\x84")
    )
    files = equal_servers() | {"s2.errors.log": whole + text * damaged + b"\0\0\n" * nonsense}
    (one,) = of("UNREADABLE_INPUT", findings(tmp_path, files))
    assert (one["severity"], bool(one["fix"])) == (severity, severity == "warning")


# --- what a detector may look at


def context(case: Case) -> DetectorContext:
    return DetectorContext(case, topology(case), [], Verdicts())


def test_rows_are_read_filtered_and_a_damaged_part_is_named(tmp_path: Path) -> None:
    import pyarrow.compute as pc

    case = case_of(tmp_path, equal_servers(), equal_servers())
    seen = context(case)
    where = pc.field("origin") == "2"
    asked: list[dict[str, Any]] = [{}, {"server": "s1"}, {"server": "s1", "snapshot": "2"}, {"server": "s9"}]
    counts = [sum(batch.num_rows for batch in seen.rows("changes", ["position"], where, **kwargs)) for kwargs in asked]
    assert counts == [8, 4, 2, 0]
    part = Path(case.parts("changes")[0]["path"])
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 255
    part.write_bytes(data)
    with pytest.raises(Problem, match="damaged"):
        list(seen.rows("changes", ["position", "target", "entry", "operation"]))


def test_detectors_run_in_the_order_of_the_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def asked(name: str) -> Any:
        return lambda context: ran.append(name) or ()

    monkeypatch.setattr(
        "workbench.diagnosis.detectors.DETECTORS", {stage: (asked(stage),) for stage in reversed(STAGES)}
    )
    list(detected(context(case_of(tmp_path, equal_servers()))))
    assert ran == list(STAGES)
    theirs = [dict(one.detectors()) for one in systems()]
    assert all(set(stages) <= set(STAGES) for stages in (DETECTORS, *theirs))


# --- the closed list of codes


def codes_made(source: str) -> set[str]:
    """The codes that the source gives to findings; a code that is no constant there is `?`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Finding":
            given = next((one.value for one in node.keywords if one.arg == "code"), None) or (node.args or [None])[0]
            branches = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
            found |= {one.value if isinstance(one, ast.Constant) else "?" for one in branches}
    return found


def test_every_finding_of_the_house_has_a_registered_code() -> None:
    registered = all_codes()
    assert not any(registered[""].keys() & theirs.keys() for name, theirs in registered.items() if name)
    made = set()
    for file in sorted((ROOT / "workbench").rglob("*.py")):
        codes = codes_made(file.read_text(encoding="utf-8"))
        parts = file.relative_to(ROOT / "workbench").parts
        system = parts[1] if parts[0] == "systems" and len(parts) > 2 else ""
        assert codes <= {*registered[""], *registered.get(system, {})}, file
        made |= codes
    assert {"LINK_DISABLED", "ANCHOR_PURGED", "ANCHOR_MISSING", "ANCHOR_DISAGREES"} <= made
    assert codes_made("Finding('A' if x else code, 'info', '')\nmodel.Finding(code='B')") == {"A", "?", "B"}
    for theirs in registered.values():
        assert all(one.says and set(one.severities) <= set(SEVERITIES) for one in theirs.values())
