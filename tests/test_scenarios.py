"""What-if cases: how their files are read, what is said of a case that cannot be answered, and the command."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
import zstandard
from click.testing import CliRunner, Result
from given_cases import given_cases
from pydantic import Field, model_validator
from rule_cases import disagreements

from workbench import scenarios
from workbench.cli import main
from workbench.input_validation import Inputs, checked, described
from workbench.model import Kind, Problem
from workbench.scenarios import answer, evaluate, kinds, read_cases

SAMPLE = Path(__file__).parent / "samples" / "scenarios" / "before-a-clean.yaml"
CSN = "66000001000000010000"
GOOD = {"id": "good", "kind": "csn_decode", "inputs": {"csns": [CSN]}}


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    result = CliRunner().invoke(main, ["scenario", *map(str, arguments)], input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def answers(path: Path) -> list[dict[str, Any]]:
    return list(evaluate(read_cases(path)))


def errors(*cases: Any) -> list[str]:
    return [said.get("error", "") for said in evaluate(cases)]


def written(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# Reading


def forms(cases: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    yield "lines", lines.encode()
    yield (
        "lines with empty ones, CRLF, a mark and no last end",
        ("\ufeff\r\n" + lines.replace("\n", "\r\n\r\n").rstrip()).encode(),
    )
    yield "array", json.dumps(cases).encode()
    yield "array laid out", json.dumps(cases, indent=2).encode()
    yield "objects laid out", "\n".join(json.dumps(case, indent=2) for case in cases).encode()
    yield "yaml list", yaml.safe_dump(cases, sort_keys=False).encode()
    yield "yaml documents", yaml.safe_dump_all(cases, explicit_start=True).encode()
    yield "gzip", gzip.compress(lines.encode())
    yield "zstandard of an array", zstandard.compress(json.dumps(cases).encode())
    yield "gzip of yaml", gzip.compress(yaml.safe_dump(cases).encode())


def test_the_content_tells_the_form_and_the_name_nothing(tmp_path: Path) -> None:
    cases = [case for case in given_cases("ds389-rules") if case["kind"] in kinds()][:12]
    expected = list(evaluate(cases))
    assert all("result" in said for said in expected)
    for name, data in forms(cases):
        for misleading in ("cases.csv.gz", "cases.json", "cases"):
            assert answers(written(tmp_path / misleading, data)) == expected, name
    assert answers(written(tmp_path / "one", json.dumps(cases[0], indent=1))) == expected[:1]
    assert answers(written(tmp_path / "one", yaml.safe_dump(cases[0]))) == expected[:1]


def test_yaml_takes_csns_replica_ids_and_numbers_for_what_they_are(tmp_path: Path) -> None:
    text = f"""\
id: 007
kind: lag_report
inputs:
  servers: [a, "2"]
  csn: {CSN}
  server_of_rid: {{1: a}}
  arrivals: [{{server: a, t_ms: -12}}]
---
id: 7
kind: ruv_parse
inputs: {{values: [], lookup_rids: [0010, 1e5, 1_0, 0x10, 1:30, .5]}}
---
id: null is null
kind: csn_order
inputs: {{csns: [null, ~, {CSN}], pairs: []}}
---
id: a short one
kind: csn_decode
inputs: {{csns: [66000001]}}
---
id: on
kind: cleanallruv
inputs:
  task: '1:{CSN}:no:1'
  changes: []
  servers: {{s: {{reach: self, agreement_enabled: yes, online: true, ruv_max:}}}}
"""
    first, second, third, fourth, fifth = answers(written(tmp_path / "y", text))
    assert (first["id"], first["result"]["origin_server"], first["result"]["missing_on"]) == ("007", "a", ["2"])
    assert (second["id"], set(second["result"]["lookup"])) == (7, {"0010", "1e5", "1_0", "0x10", "1:30", ".5"})
    assert third["result"]["ascending"] == [None, None, CSN]
    assert fourth["error"] == "inputs.csns[0]: 66000001 is not text: put it in quotes"
    assert fifth["error"] == "inputs.servers.s.agreement_enabled: 'yes' is neither true nor false"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "there is no case in it"),
        (b" \r\n\n", "there is no case in it"),
        (b"just words", "neither JSON nor a YAML list or mapping"),
        (b"5", "neither JSON nor a YAML list or mapping"),
        (b"a: [", "not valid YAML"),
        (b"- id: 1\n  id: 2\n", "twice"),
        (b"a: &x 1\nb: *x\n", "alias"),
        (b"? [a]\n: b\n", "a key must be text"),
        (b"- " * 5000, "nested too deeply"),
        (b"\xff\xfe[\x00", "not UTF-8 text: byte 0xff at 0"),
        (b"[\xff]", "not UTF-8 text: byte 0xff at 1"),
        (b"x: " + b"x" * (1 << 20), "YAML of more than 1024 KiB"),
        (gzip.compress(b"", mtime=0)[:-3], "the file was cut"),
        (gzip.compress(b"[]", mtime=0)[:-3], "the file was cut"),
    ],
)
def test_a_file_without_cases(tmp_path: Path, data: bytes, said: str) -> None:
    path = written(tmp_path / "f", data)
    shown = run(path)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert said in shown.stderr
    assert str(path) in shown.stderr
    assert "Traceback" not in shown.stderr


def test_an_empty_array_asks_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "f", "[ ]\n")
    assert (run(path).exit_code, run(path).output) == (0, "")
    assert run(path, "--json", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_text() == ""


# One case that cannot be read


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"id": "x", "kind": "csn_dec', "not whole: was it cut?"),
        ('{"id": "x", "kind": nope, "inputs": {}}', "broken JSON at 'nope, "),
        ('{"id": "x", "id": "y", "kind": "csn_decode", "inputs": {}}', "the key 'id' stands in one object twice"),
        ('{"id": "x", "kind": "csn_decode", "inputs": {"a": {"b": 1, "b": 1}}}', "the key 'b'"),
        ('{"id": "x", "kind": "csn_decode", "inputs": {"n": NaN}}', "NaN is not a number"),
        ('{"id": -Infinity, "kind": "csn_decode", "inputs": {}}', "-Infinity is not a number"),
        ('{"id": 1e999, "kind": "csn_decode", "inputs": {}}', "1e999 is too large"),
        ('{"id": "x", "n": %s}' % ("9" * 5000), "is too large for a number"),
        ('{"id": "x", "n": %s}' % ("[" * 100_000 + "]" * 100_000), "nested too deeply"),
    ],
)
def test_one_bad_case_costs_no_other(tmp_path: Path, bad: str, said: str) -> None:
    good = [json.dumps({**GOOD, "id": number}) for number in (1, 2, 3)]
    lines = answers(written(tmp_path / "lines", "\n".join([good[0], "", bad, *good[1:]])))
    assert ["result" in one for one in lines] == [True, False, True, True]
    assert lines[1]["error"].startswith("line 3: ")
    assert said in lines[1]["error"]
    array = answers(written(tmp_path / "array", "[" + ",\n".join([good[0], bad, *good[1:]]) + "]"))
    assert said in array[1]["error"] or "not whole" in said
    assert array[1]["error"].startswith("line 2: ")
    if "not whole" not in said:
        assert ["result" in one for one in array] == [True, False, True, True]


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({**GOOD, "id": number}) for number in range(5))
    *whole, cut = answers(written(tmp_path / "lines", lines[:-10]))
    assert ["result" in one for one in whole] == [True] * 4
    assert cut == {"id": 5, "kind": None, "error": "line 5: not whole: was it cut?"}
    *whole, cut = answers(written(tmp_path / "array", "[" + lines.replace("\n", ",\n")[:-10]))
    assert ["result" in one for one in whole] == [True] * 4
    assert "not whole" in cut["error"]
    *whole, cut = answers(written(tmp_path / "ended", "[" + lines.replace("\n", ",\n")))
    assert ["result" in one for one in whole] == [True] * 5
    assert cut["error"] == "line 5: the array does not end: was the file cut?"
    packed = gzip.compress(os.urandom(99).hex().join([lines + "\n", "\n"]).encode())
    *whole, cut = answers(written(tmp_path / "packed", packed[:-12]))
    assert ["result" in one for one in whole][:5] == [True] * 5
    assert "cut" in cut["error"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1}] x', "'x' stands behind the array"),
        ('[{"id": 1} {"id": 2}]', "no comma"),
        ("[nope, 5]", "nothing is read from here on"),
        ('{"id": 1} {"id": 2}', "stands behind the object"),
        ('{"id": "\xff"}'.encode("latin-1"), "not UTF-8 text: byte 0xff at 8"),
        ('[{"id": 1},', "not whole"),
        ('[{"id": 1},]', "nothing is read from here on"),
        ("[7]", "case 1 of the file is 7, not an object"),
        ("- [a]", "case 1 of the file is a list, not an object"),
        ("{", "not whole"),
    ],
)
def test_what_is_no_case(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in answers(written(tmp_path / "f", text))[-1]["error"]


# One case that cannot be answered


def test_ids_come_back_as_they_were_given() -> None:
    ids = ["a", "", "7", 7, 7.5, 0, -1, 10**19, "\ud800", "x" * 10_000]
    said = list(evaluate([{**GOOD, "id": one} for one in ids]))
    assert [one["id"] for one in said] == ids
    assert all("result" in one for one in said)


def test_a_case_without_a_usable_id_goes_by_its_number() -> None:
    for given, shown in ((None, "has no id"), (True, "has true as its id"), ([1], "has a list as its id")):
        (_, said) = evaluate([GOOD, {**GOOD, "id": given}])
        assert said == {
            "id": 2,
            "kind": "csn_decode",
            "error": f"case 2 of the file {shown}: give it a text or a number",
        }
    assert "has no id" in errors({"kind": "csn_decode", "inputs": {}})[0]


def test_every_case_gets_its_line_also_two_of_one_id() -> None:
    said = list(evaluate([GOOD, {**GOOD, "id": "other"}, GOOD]))
    assert [one["id"] for one in said] == ["good", "other", "good"]
    assert all("result" in one for one in said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "csn_decod"}, "unknown kind 'csn_decod': did you mean csn_decode or csn_order?"),
        ({"kind": "zzz"}, "unknown kind 'zzz'"),
        ({"kind": "z" * 100_000}, "unknown kind '" + "z" * 40 + "...'"),
        ({"kind": None}, "unknown kind null"),
        ({"kind": ["csn_decode"]}, "unknown kind a list"),
        ({"inputs": None}, "inputs: null is not an object of names and values"),
        ({"inputs": [CSN]}, "inputs: a list is not an object of names and values"),
        ({"inputs": {}}, "inputs.csns: is missing"),
        ({"inputs": {"csns": CSN}}, f"inputs.csns: '{CSN}' is not a list"),
        ({"inputs": {"csns": [CSN, 66000001000000010000]}}, f"inputs.csns[1]: {CSN} is not text: put it in quotes"),
        ({"kind": "csn_order", "inputs": {"csns": ["xyz", "q"], "pairs": []}},
         "inputs.csns[0]: 'xyz' is not a CSN (20 hex digits) (and 1 more)"),
        ({"kind": "csn_order", "inputs": {"csns": [], "pairs": [[CSN]]}}, "inputs.pairs[0]: has 1 of 2 entries"),
        ({"kind": "time_skew_class", "inputs": {"skew_seconds": [True]}},
         "inputs.skew_seconds[0]: true is not a whole number"),
        ({"kind": "time_skew_class", "inputs": {"skew_seconds": ["5"]}},
         "inputs.skew_seconds[0]: '5' is not a whole number"),
        ({"kind": "ruv_compare", "inputs": {"supplier_ruv": [1], "consumer_ruv": []}},
         "inputs.supplier_ruv[0]: 1 is not text: put it in quotes"),
        ({"kind": "restore_order", "inputs": {"restored_to": CSN, "peers_hold": [], "events": [{"do": "x", "csn": CSN}]}},
         "inputs.events[0].do: 'x' is not 'replayed' or 'own_write'"),
        ({"kind": "lag_report", "inputs": {"servers": [], "csn": CSN, "server_of_rid": {"65536": "a"}, "arrivals": []}},
         "inputs.server_of_rid: the key '65536' is not a replica ID (a decimal number up to 65535)"),
        ({"kind": "lag_report", "inputs": {"servers": [], "csn": CSN, "server_of_rid": {"1": None}, "arrivals": []}},
         "inputs.server_of_rid.1: null is not text"),
        ({"inputs": {"csns": ["\x1b[31m" * 100, 1]}}, "inputs.csns[1]: 1 is not text: put it in quotes"),
        ({"kind": "csn_order", "inputs": {"csns": ["\x1b[31m\u202e"], "pairs": []}}, "inputs.csns[0]: '\\x1b[31m\\u202e' is"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_path(change: dict[str, Any], said: str) -> None:
    first, second = errors({**GOOD, **change}, {**GOOD, "id": 2})
    assert first.startswith(said)
    assert len(first) < 200
    assert second == ""


@pytest.mark.parametrize("absent", ["kind", "inputs"])
def test_a_key_that_is_absent(absent: str) -> None:
    assert errors({key: GOOD[key] for key in GOOD if key != absent}) == [f"{absent} is missing"]


def test_other_keys_are_ignored() -> None:
    noise = {"note": "x", "expected": {"decoded": []}, "Kind": 5}
    assert errors({**GOOD, **noise, "inputs": {"csns": [], "also": {"any": "thing"}}}) == [""]


def test_a_fault_in_one_rule_costs_one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(given: Any) -> dict[str, Any]:
        raise KeyError("userPassword: hunter2")

    monkeypatch.setattr(scenarios, "kinds", lambda: {**kinds(), "broken": Kind("?", Inputs, fails)})
    broken, good = evaluate([{"id": 1, "kind": "broken", "inputs": {}}, GOOD])
    assert broken["error"] == "broken failed (KeyError): please report it with the case"
    assert "result" in good


def test_cases_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "many"
    line = json.dumps({**GOOD, "id": None, "note": "x" * 1000})
    with open(path, "w", encoding="utf-8") as file:
        for number in range(30_000):
            file.write(line.replace("null", str(number), 1) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for said in evaluate(read_cases(path)) if "result" in said) == 30_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 30 << 20
    assert peak < 24 << 20, "the pieces and the ids seen, not the cases"


def test_lines_are_counted_once_however_many_cases_are_bad(tmp_path: Path) -> None:
    """Counted from the beginning for each, the 60,000 took half a minute."""
    bad = '{"id": 1, "kind": "csn_decode",\n "inputs": {"csns": [NaN]}}'
    path = written(tmp_path / "bad", "[\n" + ",\n\n".join([bad] * 60_000) + "]")
    began = time.monotonic()
    where = [case.where for case in read_cases(path)]
    assert time.monotonic() - began < 10
    assert where == [f"line {2 + 3 * number}" for number in range(60_000)]


# Every kind


def test_every_kind_is_explained_and_agrees_with_its_worked_cases() -> None:
    worked = [case for case in given_cases("ds389-rules") if case["kind"] in kinds()]
    assert len(worked) >= 49
    assert disagreements(worked) == []
    for name, kind in kinds().items():
        assert kind.question.endswith("?"), name
        assert described(kind.inputs), name
        with pytest.raises(Problem, match="is missing"):
            answer(name, {})


def test_a_model_is_strict() -> None:
    class Numbers(Inputs):
        count: int
        sure: bool = False

    assert checked(Numbers, {"count": 3, "more": 1}, "given").count == 3
    for bad in ({"count": True}, {"count": "3"}, {"count": 3.0}, {"count": 3, "sure": 1}, {"count": 3, "sure": "true"}):
        with pytest.raises(Problem, match=r"^given\.(count|sure): "):
            checked(Numbers, bad, "given")
    assert described(Numbers) == {"count": "whole number", "sure": "true|false (optional)"}


class Begin(Inputs):
    op: Literal["begin"]
    thread: int | str
    replica: Annotated[int, Field(ge=0, le=9)]


class End(Inputs):
    op: Literal["end"]


class Steps(Inputs):
    steps: list[Annotated[Begin | End, Field(discriminator="op")]]

    @model_validator(mode="after")
    def _begins(self) -> Steps:
        if self.steps and isinstance(self.steps[0], End):
            raise ValueError("the first step ends nothing")
        return self


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"op": "begin", "thread": "a", "replica": -1}, "x.steps[0].replica: -1 is less than 0"),
        ({"op": "begin", "thread": 1, "replica": 10}, "x.steps[0].replica: 10 is more than 9"),
        ({"op": "begin", "replica": 1}, "x.steps[0].thread: is missing"),
        ({"op": "begin", "thread": None, "replica": 1}, "x.steps[0].thread: null is not a whole number (and 1 more)"),
        ({"op": "stop"}, "x.steps[0]: op is 'stop', none of 'begin', 'end'"),
        ({}, "x.steps[0]: op is missing"),
        ({"op": "end"}, "x: the first step ends nothing"),
        (7, "x.steps[0]: 7 is not an object of names and values"),
    ],
)
def test_of_several_forms_the_path_names_what_was_given(step: Any, said: str) -> None:
    with pytest.raises(Problem) as raised:
        checked(Steps, {"steps": [step]}, "x")
    assert str(raised.value).startswith(said)


def test_several_forms_are_described_one_by_one() -> None:
    words = "list of {op: begin, thread: whole number or text, replica: whole number} or {op: end}"
    assert described(Steps) == {"steps": words}


# The command


def test_the_sample_of_the_readme() -> None:
    shown = run(SAMPLE)
    assert (shown.exit_code, shown.stderr) == (0, "")
    _, compared, cleaned = (json.loads(line) for line in shown.stdout.splitlines())
    assert compared["result"]["rids"]["7"] == {"state": "consumer_behind", "seconds": 10, "min_differs": False}
    assert cleaned["id"] == "what if it is cleaned by force now?"
    assert cleaned["result"]["lost"]["s2"] == ["6600001e000000070000"]


def test_one_compact_line_each_to_the_screen_or_to_a_file(tmp_path: Path) -> None:
    shown = run(SAMPLE)
    assert run(SAMPLE, "--json", tmp_path / "out").stdout == ""
    assert (tmp_path / "out").read_text() == shown.stdout == run(SAMPLE, "--json", "-").stdout
    assert all(json.dumps(json.loads(line), separators=(",", ":")) == line for line in shown.stdout.splitlines())
    assert run("-", given=SAMPLE.read_bytes()).stdout == shown.stdout
    assert run("-", given=gzip.compress(SAMPLE.read_bytes())).stdout == shown.stdout


def test_many_answers_to_a_file_are_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.cli.what_if._KEPT_IN_MEMORY", 1 << 20)
    texts = [CSN] * 400
    cases = "".join(json.dumps({**GOOD, "id": number, "inputs": {"csns": texts}}) + "\n" for number in range(300))
    path, out = written(tmp_path / "many", cases), tmp_path / "out"
    run(written(tmp_path / "one", json.dumps(GOOD)))  # what is loaded once is not what is measured
    tracemalloc.start()
    try:
        run(path, "--json", out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out.stat().st_size > 8 << 20
    assert peak < 8 << 20
    assert out.read_text() == run(path).stdout


def test_a_pipe_is_read_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(SAMPLE.read_bytes()))
    writer.start()
    assert run(pipe).stdout == run(SAMPLE).stdout
    writer.join()


def test_errors_are_told_on_both_sides(tmp_path: Path) -> None:
    cases = [{**GOOD, "id": f"\x1b[2J{number}\n", "kind": "nope"} for number in range(7)]
    path = written(tmp_path / "f", json.dumps([*cases, GOOD]))
    shown = run(path)
    assert shown.exit_code == 2
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [one["id"] for one in lines] == [case["id"] for case in [*cases, GOOD]]
    assert "result" in lines[7]
    told = shown.stderr.splitlines()
    assert told[0] == "workbench: case '\\x1b[2J0\\n' (nope): unknown kind 'nope'"
    assert told[5:] == ["workbench: 7 cases could not be answered; the first 5 are above"]
    assert "\x1b" not in shown.stdout + shown.stderr
    assert run(path, "--json", tmp_path / "out").exit_code == 2
    assert (tmp_path / "out").read_text() == shown.stdout


def test_some_kinds_only() -> None:
    shown = run(SAMPLE, "--kind", "cleanallruv", "--kind", "csn_decode")
    assert [json.loads(line)["kind"] for line in shown.stdout.splitlines()] == ["csn_decode", "cleanallruv"]
    none = run(SAMPLE, "--kind", "trim")
    assert (none.exit_code, none.stdout) == (2, "")
    assert "no case of the kind trim" in none.stderr
    typo = run(SAMPLE, "--kind", "cleanalruv")
    assert typo.exit_code == 2
    assert "did you mean cleanallruv?" in typo.stderr


def test_the_list_says_what_each_kind_asks_for() -> None:
    shown = run("--list").stdout
    assert "trim: Which records may go, and who is put at risk?" in shown
    assert "agreements    list of {to: text, enabled: true|false, remembered_consumer_ruv: RUV or null}" in shown
    assert "consumer_first_kept_csn  {rid: CSN, ...} (optional)" in shown
    assert all(f"{name}: " in shown for name in kinds())
    assert run("--list", "--kind", "csn_decode").stdout == (
        "csn_decode: When and where was this change made?\n    csns  list of text\n"
    )


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    for arguments, said in (
        ([tmp_path / "gone"], "No such file"),
        ([tmp_path], "is a folder"),
        ([], "give a FILE of cases"),
        ([SAMPLE, "--json", SAMPLE], "would overwrite an input"),
        ([SAMPLE, "--json", tmp_path], "is a folder"),
    ):
        shown = run(*arguments)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert said in shown.stderr


def test_standard_input_may_be_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(Problem, match=r"no case in it \(standard input\)"):
        list(read_cases("-"))
