"""`workbench diagnose` and `workbench explain` as a user meets them: what they print, write and refuse, and how they end."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT, SNAPSHOTS
from click.testing import CliRunner, Result
from conftest import need
from mesh_samples import agreement, changelog, claims, csn, elements, pair_of_servers, replica, write

from workbench import cli
from workbench.case.case import LAYOUT
from workbench.cli import main
from workbench.model import IDENTITY, Finding
from workbench.systems import system_named

NOW = INCIDENT / "2-during"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def diagnosed(*arguments: str | Path) -> dict[str, Any]:
    done = run("diagnose", *arguments, "--json", "-")
    assert done.exit_code in (0, 1, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    graver = any(one["severity"] != "info" for one in found["findings"])
    open_ = found["unknown"] or not any(one["vector"] or one["changes"] for one in found["servers"])
    assert done.exit_code == (1 if graver else 3 if open_ else 0)
    return found


@pytest.fixture
def behind(tmp_path: Path) -> Path:
    """A collected folder: s2 is five changes behind s1."""
    return write(tmp_path / "now", pair_of_servers(9, 4))


@pytest.fixture
def behind_case(behind: Path, tmp_path: Path) -> Path:
    assert run("load", behind, "--case", tmp_path / "case").exit_code == 0
    return tmp_path / "case"


def test_the_matrix_of_the_incident() -> None:
    shown = run("diagnose", *SNAPSHOTS)
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    assert lines[0] == "389 Directory Server, snapshot 2-during (the last of 2)"
    assert lines[2].startswith("12 changes are MISSING on s3 and will not come by themselves")
    matrix = next(number for number, line in enumerate(lines) if line.split() == ["s1", "s2", "s3"])
    assert [line.split() for line in lines[matrix : matrix + 4]] == [
        ["s1", "s2", "s3"],
        ["s1", "-", "nothing", "nothing"],
        ["s2", "nothing", "-", "nothing"],
        ["s3", "nothing", "nothing", "-"],
    ]  # the vectors are equal: what s3 lacks, no session will bring


def test_what_a_session_would_send_is_told(behind: Path) -> None:
    shown = run("diagnose", behind).stdout
    assert f"s1 -> s2 (to-s2): sends 5 changes from behind {csn(4, 1)} of 2024-03-24 " in shown
    assert f"    of origin 1: 5, {csn(5, 1)} of " in shown
    assert "s2 -> s1" not in shown  # it has nothing to send
    assert "case" not in [path.name for path in behind.parent.iterdir()]


def test_json_csv_and_text_tell_the_same(behind: Path, tmp_path: Path) -> None:
    found = diagnosed(behind)
    assert set(found) == {
        "schema", "case", "servers", "links", "not_collected", "pairs", "missing", "stranded", "errant", "pending", "unknown",
            "findings",
        "floors", "tombstones", "streams", "fleet", "appliers", "transactions", "trees", "coverage", "rejects", "run",
    }  # fmt: skip
    assert (found["schema"], found["case"]) == (1, {"name": "now", "system": "ds389", "snapshots": ["now"]})
    assert found["servers"][0]["vector"]["1"] == {"min": csn(0, 1), "max": csn(9, 1)}
    out = tmp_path / "pairs.csv"
    assert run("diagnose", behind, "--csv", out).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(one["supplier"], one["decision"]) for one in rows] == [("s1", "send"), ("s2", "nothing_to_send")]
    assert json.loads(rows[0]["to_send"]) == found["pairs"][0]["to_send"]


def test_a_case_is_diagnosed_where_it_is(behind: Path, behind_case: Path) -> None:
    shown = run("diagnose", behind_case)
    assert shown.exit_code == 0
    assert not shown.stderr  # nothing is read again
    assert shown.stdout == run("diagnose", behind).stdout
    to = behind_case / "findings.json"
    assert run("diagnose", behind_case, "--json", to).exit_code == 0
    assert diagnosed(behind_case)["pairs"] == json.loads(to.read_text())["pairs"] == diagnosed(behind)["pairs"]


def test_case_keeps_the_evidence(behind: Path, tmp_path: Path) -> None:
    assert run("diagnose", behind, "--case", tmp_path / "kept").exit_code == 0
    assert "6 known already" in run("diagnose", behind, "--case", tmp_path / "kept").stderr
    assert run("session", tmp_path / "kept", "s1", "s2").exit_code == 0


def test_verify_counts_the_same_once_more(spark: Any, behind: Path) -> None:
    shown = run("diagnose", behind, "--verify", "--master", "local[2]")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.endswith("verified: Spark found the same from every position\n")


def test_a_limit_shortens_the_lists_and_nothing_that_is_said_of_them() -> None:
    whole, cut = diagnosed(*SNAPSHOTS), diagnosed(*SNAPSHOTS, "--limit", "1")
    assert cut["findings"] == whole["findings"]
    assert cut["missing"] == whole["missing"][:1]
    assert (whole["run"]["truncated"], cut["run"]["truncated"]) == ({}, {"missing": 12})


def test_a_limit_counts_the_rows_that_were_asked_for() -> None:
    of_s2 = diagnosed(*SNAPSHOTS, "--server", "s2", "--limit", "1")
    assert (len(of_s2["pending"]), of_s2["run"]["truncated"]) == (1, {})
    assert diagnosed(*SNAPSHOTS, "--server", "s3", "--limit", "1")["run"]["truncated"] == {"missing": 12}


def test_what_only_one_collected_server_holds_may_be_elsewhere(tmp_path: Path) -> None:
    for path in NOW.iterdir():
        if not path.name.startswith("s1."):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (told,) = [one for one in diagnosed(tmp_path)["findings"] if one["code"] == "STRANDED_CHANGE"]
    assert told["summary"].startswith("of the collected servers (not ")
    assert "only s2 holds 12 changes of origin 1" in told["summary"]
    assert told["severity"] == "warning"  # with all servers it is an error: see the incidents


def test_the_rule_set_is_chosen_and_the_other_one_named(behind: Path) -> None:
    write(behind, {"s1.changelog.ldif": changelog([csn(second, 1) for second in range(7, 10)])})
    real, design = diagnosed(behind)["pairs"][0], diagnosed(behind, "--rules", "design")["pairs"][0]
    assert (real["rules"], real["decision"], list(real["others"])) == ("ds389", "anchor_not_found", ["design"])
    assert (design["rules"], design["decision"], list(design["others"])) == ("design", "send", ["ds389"])
    assert real["others"]["design"]["to_send"] == design["to_send"]
    shown = run("diagnose", behind).stdout
    assert "STUCK: purged" in shown
    assert "(assumed: the log does not say how far it was trimmed)" in shown
    assert "rule set design: sends 3 changes" in shown


def test_findings_decide_the_exit_code(behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Finding] = []
    system = replace(system_named("ds389"), detectors=lambda: {IDENTITY: (lambda context: given,)})
    monkeypatch.setattr("workbench.topology.topology.system_named", lambda name: system)
    assert run("diagnose", behind).exit_code == 0
    given += [Finding("B_CODE", "info", "harmless"), Finding("A_CODE", "warning", "two\nlines \x1b[31m", "s2")]
    given += [Finding("C_CODE", "error", "worst", "s1", origin="1")]
    codes = {level: run("diagnose", behind, "--threshold", level).exit_code for level in ("info", "warning", "error")}
    assert codes == {"info": 1, "warning": 1, "error": 1}
    shown = run("diagnose", behind)
    assert (
        "\n\nERROR C_CODE (server s1, origin 1)\n    worst\nWARNING A_CODE (server s2)\n    two\\nlines \\x1b[31m\n"
        "INFO B_CODE\n    harmless\nINFO PENDING_CHANGES (server s2, origin 1)\n"
    ) in shown.stdout
    told = json.loads(run("diagnose", behind, "--json", "-").stdout)["findings"]
    assert [one["code"] for one in told] == ["C_CODE", "A_CODE", "B_CODE", "PENDING_CHANGES"]
    given.pop()
    assert [run("diagnose", behind, "--threshold", level).exit_code for level in ("error", "warning")] == [0, 1]
    del given[1:]
    assert [run("diagnose", behind, *more).exit_code for more in ([], ["--threshold", "info"])] == [0, 1]


# --- what cannot be diagnosed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose"], "Missing argument"),
        (["diagnose", "gone"], "the folder does not exist"),
        (["diagnose", "empty"], "holds no files"),
        (["diagnose", "now/s1.replica.ldif"], "is a file, not a folder"),
        (["diagnose", "foreign"], "none of 2 files holds evidence"),
        (["diagnose", "now", "--rules", "fast"], "there is no rule set fast. the rule sets are ds389, design"),
        (["diagnose", "now", "--threshold", "fatal"], "'fatal' is not one of"),
        (["diagnose", "case", "--case", "other"], "case is a case already: give it alone, without --case"),
        (["diagnose", "now", "case"], "case is a case already: give it alone"),
        (["diagnose", "broken"], "the evidence of this case is gone"),
        (["diagnose", "now", "--case", "foreign"], "has other files in it"),
        (["diagnose", "now", "--json", "-", "--csv", "-"], "cannot both go to standard output"),
        (["diagnose", "now", "--json", "out", "--csv", "./out"], "cannot both go to the same file"),
        (["diagnose", "now", "--json", "now/s1.replica.ldif"], "overwrite an input"),
        (["diagnose", "now", "--csv", "now/new.csv"], "overwrite an input"),
        (["diagnose", "now", "--case", "other", "--json", "other/case.yaml"], "or the case itself"),
        (["diagnose", "case", "--json", "case/case.yaml"], "or the case itself"),
        (["diagnose", "case", "--csv", "case/evidence/manifest.json"], "or the case itself"),
        (["diagnose", "case", "--json", "now/s1.replica.ldif"], "overwrite an input"),
        (["diagnose", "now", "--json", "gone/out.json"], "cannot write"),
        (["session", "gone", "s1", "s2"], "this is not a case"),
        (["session", "now", "s1", "s2"], "give a folder that `workbench load` wrote"),
        (["session", "case", "s1"], "Missing argument"),
        (["session", "case", "s1", "s9"], "there is no pair s1 -> s9 (now). servers with a vector: s1, s2"),
        (["session", "case", "s1", "s2", "--suffix", "o=x"], "there is no pair s1 -> s2 of o=x"),
        (["session", "case", "s1", "s2", "--rules", "x"], "there is no rule set x"),
        (["session", "case", "s1", "s2", "--after", "garbage\x1b[2J"], "garbage\\x1b[2J is not a position"),
        (["session", "case", "s2", "s1", "--after", "garbage"], "garbage is not a position"),
        (["session", "case", "s1", "s2", "--limit", "0"], "0 is not in the range"),
        (["session", "case", "s1", "s2", "--json", "case/case.yaml"], "or the case itself"),
        (["session", "case", "s1", "s2", "--csv", "now/s1.replica.ldif"], "overwrite an input"),
        (["session", "bare", "s1", "s2"], "the case holds no evidence"),
        (["diagnose", "bare"], "the case holds no evidence"),
        (["diagnose", "case", "--limit", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    arguments: list[str], words: str, behind_case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = behind_case.parent
    monkeypatch.chdir(place)
    (place / "empty").mkdir()
    write(place / "foreign", {"x.txt": "hello\n", "y.bin": bytes(range(256))})
    shutil.copytree(behind_case, place / "broken")
    (place / "broken" / "evidence" / "manifest.json").unlink()
    write(place / "bare", {"case.yaml": f"layout: '{LAYOUT}'\nname: bare\n"})
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    failed = run(*arguments)
    assert failed.exit_code == 2
    assert words in failed.stderr
    assert not failed.stdout
    assert "\x1b" not in failed.output
    after = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != ".owner"}
    assert after == {path: content for path, content in before.items() if path.name != ".owner"}


def test_outputs_are_refused_before_anything_is_read(behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.diagnosis, "loaded_into", lambda *_: pytest.fail("it was read"))
    assert run("diagnose", behind, "--json", behind / "s1.replica.ldif").exit_code == 2


def test_little_evidence_gives_no_pairs_and_says_why(tmp_path: Path) -> None:
    lone = write(tmp_path / "lone", {"s1.replica.ldif": pair_of_servers()["s1.replica.ldif"]})
    shown = run("diagnose", lone)
    assert shown.exit_code == 3
    assert "there is no pair to look at" in shown.stdout
    assert "s1 (dc=example,dc=com): in no pair, for no other server has a vector of its suffix" in shown.stdout
    assert run("diagnose", lone, "--csv", "-").stdout.startswith("supplier,consumer,suffix,link,")
    line = f"[20/Nov/2026:14:00:00.000000001 +0000] conn=7 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(1, 2)}\n"
    logs = write(tmp_path / "logs", {"s1.access.log": line, "s2.access.log": line})
    assert diagnosed(logs)["servers"][1]["evidence"] == ["access_log"]
    shown = run("diagnose", logs)
    assert "s2 (suffix not named): in no pair, for it has no vector" in shown.stdout
    assert (shown.exit_code, "No vector was collected: of which" in shown.stdout) == (3, True)


def test_a_server_alone_is_not_called_clean(tmp_path: Path) -> None:
    files = pair_of_servers()
    alone = write(tmp_path / "alone", {name: text for name, text in files.items() if name.startswith("s1.")})
    shown = run("diagnose", alone)
    assert shown.exit_code == 3
    said = (
        "Only s1 was collected: of which changes are missing, nothing can be said; localhost:38902 was not collected."
    )
    assert said in shown.stdout
    shown = run("diagnose", write(tmp_path / "both", files))
    assert (shown.exit_code, "No change is missing" in shown.stdout) == (0, True)


def test_what_vectors_cover_and_nothing_shows_is_unknown(tmp_path: Path) -> None:
    for path in NOW.glob("*.replica.ldif"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    found = diagnosed(tmp_path)
    assert {(row["server"], row["origin"]) for row in found["unknown"]} == {
        (s, o) for s in ("s1", "s2", "s3") for o in "123"
    }
    of_1 = next(row for row in found["unknown"] if (row["server"], row["origin"]) == ("s3", "1"))
    vector = next(one["vector"] for one in found["servers"] if one["name"] == "s3")["1"]
    assert (of_1["from"], of_1["to"], of_1["count"], of_1["why"]) == (vector["min"], vector["max"], None, "not_shown")
    shown = run("diagnose", tmp_path)
    assert (shown.exit_code, "9 stretches cannot be judged" in shown.stdout) == (3, True)


def test_without_vectors_the_logs_tell_what_is_covered(tmp_path: Path) -> None:
    for path in NOW.iterdir():
        if not any(word in path.name for word in ("replica", "get-ruv", "status")):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert not any(one["vector"] for one in diagnosed(tmp_path)["servers"])
    shown = run("diagnose", tmp_path)
    assert (shown.exit_code, "12 changes are MISSING on s3" in shown.stdout, "No vector" in shown.stdout) == (
        1,
        True,
        False,
    )


def test_servers_and_links_that_nobody_recognises_are_named(behind: Path) -> None:
    ruv = elements(claims(r1=(0, 4)), None)
    more = agreement("to-far", 636, host="far")
    write(behind, {
        "s9.get-ruv.txt": "\n".join(ruv) + "\n",
        "s3.DOWN": "",
        "s1.agreements.ldif": pair_of_servers()["s1.agreements.ldif"] + more,
    })  # fmt: skip
    shown = run("diagnose", behind).stdout
    assert "s9 (suffix not named): in no pair" in shown
    assert "s1 -> far:636 (to-far): no file says which server this is" in shown
    assert "s2 -> " not in shown


def test_a_get_ruv_is_enough_where_nothing_names_a_suffix(tmp_path: Path) -> None:
    files = {
        f"s{rid}.get-ruv.txt": "\n".join(elements(claims(r1=(0, high), r2=(1, 2)), None)) + "\n"
        for rid, high in ((1, 9), (2, 4))
    }
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(10)])
    (one, other) = diagnosed(write(tmp_path / "now", files))["pairs"]
    assert (one["suffix"], one["decision"], one["to_send"]["1"]["count"]) == (None, "send", 5)
    assert (other["decision"], other["anchor"]) == ("nothing_to_send", None)


def test_cut_files_are_named_and_leave_their_part_open(behind: Path) -> None:
    packed = gzip.compress((behind / "s1.changelog.ldif").read_bytes())
    write(
        behind,
        {"s1.changelog.ldif.gz": packed[:-20], "s2.replica.ldif": (behind / "s2.replica.ldif").read_bytes()[:200]},
    )
    (behind / "s1.changelog.ldif").unlink()
    done = run("diagnose", behind)
    assert done.exit_code == 1  # both files are named as cut
    assert "s2 (dc=example,dc=com): in no pair" in done.stdout


HOSTILE = "s1\x1b[31m\n<script>alert(1)</script>=cmd|' /C calc'!A0\u202e"


def test_names_from_files_act_nowhere(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**pair_of_servers(9, 4)}
    files["s1.agreements.ldif"] = agreement("=cmd|' /C calc'!A0<script>\x1b[31m", 38902)
    files["s2.agreements.ldif"] = agreement("+to\x9bfar", 636, host="=far\x1b[2J")
    for kind in ("changelog", "replica", "agreements"):
        files[f"=x.{kind}"] = files.pop(f"s1.{kind}.ldif")
        files[f"@y.{kind}"] = files.pop(f"s2.{kind}.ldif")
    quoted = json.dumps(HOSTILE)
    listed = '["=x.changelog", "=x.replica", "=x.agreements"]'
    folder = write(tmp_path / "now\x1b[31m\nforged", files)
    (folder / "case.yaml").write_text(f'{{"servers": [{{"name": {quoted}, "files": {listed}}}]}}')
    case = tmp_path / "case"
    texts = [run("diagnose", folder), run("diagnose", folder, "--csv", "-"), run("diagnose", folder, "--json", "-")]
    texts.append(run("diagnose", folder, "--case", case))
    explained = [run("session", case, HOSTILE, "@y", *more) for more in ((), ("--csv", "-"), ("--json", "-"))]
    for one in [*texts, *explained]:
        assert one.exit_code == 0, one.stderr
        assert not [mark for mark in "\x1b\x9b\u202e" if mark in one.output]
    for one in (texts[0], texts[3], explained[0]):
        assert not [line for line in one.output.splitlines() if line.startswith(("<script>", "forged"))]
    assert "sends 5 changes" in texts[0].stdout
    rows = list(csv.DictReader(io.StringIO(texts[1].stdout)))
    cells = {key: cell for key, cell in rows[1].items() if cell}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert cells["supplier"].startswith(("s1\\x1b", "'@y"))
    assert json.loads(texts[2].stdout)["pairs"][0]["supplier"] in (HOSTILE, "@y")


# --- explain


def test_one_session_is_explained_change_by_change(behind_case: Path) -> None:
    shown = run("session", behind_case, "s1", "s2")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"s1 -> s2 (to-s2): sends 5 changes from behind {csn(4, 1)}")
    assert any("the consumer is behind: the CSN it has, not included (rid 1, " in line for line in lines)
    table = lines[lines.index("") + 1 :]
    assert [line.split() for line in table] == [
        ["POSITION", "ORIGIN", "OUTCOME"],
        *([csn(second, 1), "1", "sent"] for second in range(5, 10)),
    ]


def test_pages_follow_each_other_until_nothing_is_left(behind_case: Path) -> None:
    whole = json.loads(run("session", behind_case, "s1", "s2", "--json", "-").stdout)
    assert (whole["next"], len(whole["outcomes"]), whole["decision"]) == (None, 5, "send")
    for limit in (1, 2, 3, 5, 6):
        after: list[str] = []
        found: list[dict[str, str]] = []
        for _ in range(6):
            page = json.loads(
                run("session", behind_case, "s1", "s2", "--limit", str(limit), "--json", "-", *after).stdout
            )
            found += page["outcomes"]
            if page["next"] is None:
                break
            after = ["--after", page["next"]]
        assert found == whole["outcomes"]
    shown = run("session", behind_case, "s1", "s2", "--limit", "2").stdout
    assert shown.endswith(f"\nmore: --after {csn(6, 1)}\n")
    assert "more:" not in run("session", behind_case, "s1", "s2", "--limit", "5").stdout
    table = run("session", behind_case, "s1", "s2", "--after", csn(7, 1).upper(), "--csv", "-").stdout
    assert table == f"position,origin,outcome\n{csn(8, 1)},1,sent\n{csn(9, 1)},1,sent\n"


def test_a_pair_at_rest_is_explained_too(behind_case: Path) -> None:
    shown = run("session", behind_case, "s2", "s1")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("s2 -> s1 (to-s1): nothing to send")
    assert "no replica ID has anything to send" in shown.stdout
    assert run("session", behind_case, "s2", "s1", "--csv", "-").stdout == "position,origin,outcome\n"


def test_sessions_that_cannot_be_held_are_explained(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    del files["s1.changelog.ldif"]
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(0, 4)), csn(7, 7)))
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(0, 6), r2=(1, 2))), flags=0)
    assert run("load", write(tmp_path / "now", files), "--case", tmp_path / "case").exit_code == 0
    for pair, words in {
        ("s1", "s2"): "unknown: its log was not collected: is the anchor there?",
        ("s1", "s3"): "refused: generation differs",
        ("c1", "s2"): "can send nothing: it keeps no log: it supplies nobody",
    }.items():
        shown = run("session", tmp_path / "case", *pair)
        assert shown.exit_code == 0
        assert words in shown.stdout.splitlines()[0]
    matrix = run("diagnose", tmp_path / "case").stdout
    assert "c1 -> s2" not in matrix  # nobody expects it to
    assert "(keeps no log)" in matrix
    assert "UNKNOWN" in matrix
    assert "(REFUSED)" in matrix


# --- where nothing may be written


def test_a_case_that_cannot_be_written_is_diagnosed_as_ever(behind_case: Path) -> None:
    drop = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    need("setpriv", not drop or shutil.which("setpriv"))
    code = "from workbench.cli import main; main()"
    folders = [behind_case, *(path for path in behind_case.rglob("*") if path.is_dir())]
    for path in [*behind_case.rglob("*"), behind_case]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for words, first in (
            (["diagnose", behind_case], "389 Directory"),
            (["session", behind_case, "s1", "s2"], "s1 -> s2"),
        ):
            command = [*drop, sys.executable, "-c", code, *map(str, words)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith(first)
    finally:
        for path in folders:
            path.chmod(0o755)
