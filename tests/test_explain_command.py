"""The story of one change, and the choices of `diagnose`: an earlier snapshot, one server, one origin, short lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_samples import SNAPSHOTS
from click.testing import CliRunner, Result
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench import Case, Problem, diagnose, story
from workbench.cli import main

SUFFIX = "dc=example,dc=com"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def without(log: str, *seconds: int) -> str:
    """A log without these changes of s1: each of the others is of the same entry as in the whole log."""
    gone = [csn(second, 1) for second in seconds]
    return "\n\n".join(record for record in log.split("\n\n") if not any(position in record for position in gone))


def refused_files() -> dict[str, Any]:
    """s2 lacks change 3 of s1 behind its vector; its access log shows how it was refused. Change 9 is still to come."""
    files: dict[str, Any] = dict(pair_of_servers(9, 8))
    files["s2.changelog.ldif"] = without(files["s1.changelog.ldif"], 3, 9)
    line = "[24/Mar/2024:10:27:16.000000001 +0000] conn=7 op=4"
    files["s2.access.log"] = (
        f'{line} MOD dn="uid=u3,{SUFFIX}"\n{line} RESULT err=32 tag=103 nentries=0 etime=0.1 csn={csn(3, 1)}\n'
        f'{line[:-1]}5 MOD dn="uid=u4,{SUFFIX}"\n{line[:-1]}5 RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(4, 1)}\n'
    )
    return files


def test_a_refused_change_is_told_with_its_result_and_what_the_log_says_just_before(tmp_path: Path) -> None:
    """Also where another server was asked to log at the same moment: only the consumer's own log counts."""
    said = "[24/Mar/2024:10:27:{:02}.000000000 +0000] - ERR - memberof-plugin - memberof_postop_add - Failed to add dn({})\n"
    files = refused_files() | {
        "s2.errors.log": said.format(10, "cn=long before") + said.format(16, "cn=g1") + said.format(40, "cn=later"),
        "s1.errors.log": said.format(16, "cn=elsewhere"),
    }
    (told,) = (one for one in diagnose(case_of(tmp_path, files))["findings"] if one["code"] == "APPLY_SKIPPED")
    assert "s2 refused one change of replica ID 1 with 32 (no such object), and the supplier went on" in told["summary"]
    assert told["quotes"] == [
        {"server": "s2", "text": "memberof-plugin - memberof_postop_add - Failed to add dn(cn=g1)"}
    ]


@pytest.fixture
def refused(tmp_path: Path) -> Case:
    return case_of(tmp_path, refused_files())


def test_the_story_names_who_lacks_it_by_which_rule_and_what_proves_it(refused: Case) -> None:
    told = story(refused, csn(3, 1))
    assert (told["origin"], told["made_on"], told["operation"]) == ("1", ["s1"], "delete")
    one, other = told["servers"]
    assert (one["server"], one["verdict"], one["rule"]) == ("s1", "present", "in_log")
    assert [row["file"] for row in one["evidence"]] == ["s1.changelog.ldif"]
    assert (other["server"], other["verdict"], other["rule"]) == ("s2", "missing", "skipped")
    (proof,) = other["evidence"]
    assert (proof["file"], proof["outcome"], proof["code"]) == ("s2.access.log", "refused", 32)
    (supplier,) = other["suppliers"]
    assert (supplier["supplier"], supplier["link"], supplier["outcome"]) == ("s1", "to-s2", None)  # it is covered


def test_the_story_agrees_with_the_diagnosis_of_every_change(refused: Case) -> None:
    found = diagnose(refused)
    missing = {(row["server"], row["position"]) for row in found["missing"]}
    for position in [*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)]:
        for one in story(refused, position)["servers"]:
            assert (one["verdict"] == "missing") == ((one["server"], position) in missing), (position, one)
    assert missing == {("s2", csn(3, 1))}


def test_a_change_on_its_way_tells_who_would_send_it(refused: Case) -> None:
    (one,) = story(refused, csn(9, 1), server="s2")["servers"]
    assert (one["verdict"], one["rule"]) == ("pending", "not_covered")
    assert [(row["supplier"], row["decision"], row["outcome"]) for row in one["suppliers"]] == [("s1", "send", "sent")]


def test_a_change_that_only_a_vector_names_is_told_of(tmp_path: Path) -> None:
    files = refused_files()
    files["s1.replica.ldif"] = files["s1.replica.ldif"].replace(csn(9, 1), csn(20, 1))
    told = {one["server"]: one["verdict"] for one in story(case_of(tmp_path, files), csn(20, 1))["servers"]}
    assert told == {"s1": "unknown", "s2": "pending"}


@pytest.mark.parametrize(
    ("position", "server", "words"),
    [
        ("garbage", None, "garbage is not a position"),
        (csn(77, 1), None, "nothing in the case names"),
        (csn(3, 1), "s9", "no verdict is known of s9.*there are s1, s2"),
    ],
)
def test_what_cannot_be_told_is_a_sentence(refused: Case, position: str, server: str | None, words: str) -> None:
    with pytest.raises(Problem, match=words):
        story(refused, position, server)


def test_the_command_tells_the_same(refused: Case, tmp_path: Path) -> None:
    shown = run("explain", csn(3, 1), "--server", "s2", "--case", refused.folder)
    assert shown.exit_code == 0
    assert "s2: MISSING - it refused the change, and the supplier went on without it (skipped)" in shown.stdout
    assert "1/s2.access.log:" in shown.stdout
    assert json.loads(run("explain", csn(3, 1), "--case", refused.folder, "--json", "-").stdout) == story(
        refused, csn(3, 1)
    )
    wrong = run("explain", csn(3, 1), "--case", tmp_path)
    assert wrong.exit_code == 2
    assert "this is not a case" in wrong.stderr
    kept = run("explain", csn(3, 1), "--case", refused.folder, "--json", refused.folder / "case.yaml")
    assert kept.exit_code == 2


def test_an_earlier_snapshot_by_its_name_or_by_a_time(tmp_path: Path) -> None:
    before: dict[str, Any] = dict(pair_of_servers(4, 2))
    whole = pair_of_servers(9, 8)["s1.changelog.ldif"]
    before |= {"s1.changelog.ldif": without(whole, *range(5, 10)), "s2.changelog.ldif": without(whole, *range(3, 10))}
    case = case_of(tmp_path, before, refused_files())
    assert diagnose(case)["case"]["snapshots"] == ["1", "2"]
    assert diagnose(case)["missing"]
    then = diagnose(case, as_of="1")
    assert (then["case"]["snapshots"], then["missing"], then["pending"][0]["count"]) == (["1"], [], 2)
    incident = Case.create(tmp_path / "incident")
    incident.load(SNAPSHOTS[:1])
    alone = diagnose(incident)
    incident.load(SNAPSHOTS[1:])
    assert list(incident.snapshots) == [*alone["case"]["snapshots"], SNAPSHOTS[1].name]
    then = diagnose(incident, as_of=SNAPSHOTS[0].name)
    assert {key: value for key, value in then.items() if key != "run"} == {
        key: value for key, value in alone.items() if key != "run"
    }
    assert run("diagnose", case.folder, "--as-of", "1").exit_code == 0
    assert run("diagnose", case.folder, "--as-of", "2031-01-01T00:00:00Z").exit_code == 1
    early = run("diagnose", case.folder, "--as-of", "2001-01-01T00:00:00Z")
    assert early.exit_code == 2
    assert "no snapshot is as old as" in early.stderr
    assert "one of: 1, 2" in early.stderr
    assert run("diagnose", case.folder, "--as-of", "yesterday").exit_code == 2


def test_one_server_one_origin_and_short_lists(refused: Case) -> None:
    found = diagnose(refused, servers=["s1"])
    assert (found["missing"], found["pending"]) == ([], [])
    assert {one["server"] for one in found["findings"]} <= {"s1", None}
    assert [row["position"] for row in diagnose(refused, origins=["1"])["missing"]] == [csn(3, 1)]
    assert diagnose(refused, origins=["2"])["missing"] == []
    cut = diagnose(refused, limit=0)
    assert (cut["missing"], cut["run"]["truncated"]["missing"]) == ([], 1)
    for option, name in (("--server", "s9"), ("--origin", "9")):
        wrong = run("diagnose", refused.folder, option, name)
        assert wrong.exit_code == 2
        assert f"is named {name}" in wrong.stderr


def test_what_nobody_can_know_is_exit_code_3(tmp_path: Path) -> None:
    vector = claims(r1=(0, 9), r2=(1, 2))
    both = elements(vector)
    files = {
        "s1.changelog.ldif": changelog([*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)]),
        "s1.replica.ldif": replica(1, both),
        "s1.agreements.ldif": agreement("to-s2", 38902),
        "s2.changelog.ldif": changelog([*(csn(second, 1) for second in range(5, 10)), csn(1, 2), csn(2, 2)]),
        "s2.replica.ldif": replica(2, both),
        "s2.agreements.ldif": agreement("to-s1", 38901),
    }
    case = case_of(tmp_path, files)
    shown = run("diagnose", case.folder)
    assert shown.exit_code == 3
    assert "No change is known to be missing; 1 stretch cannot be judged" in shown.stdout
    (row,) = diagnose(case)["unknown"]
    assert (row["server"], row["from"], row["to"], row["count"]) == ("s2", csn(0, 1), csn(4, 1), 5)
