"""Parameters files: what is run as it is written, and what is refused before anything starts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from case_samples import everything
from conftest import ROOT
from incident_samples import LOST, case_of

from workbench.jupyter import OWN
from workbench.model import Problem
from workbench.runs.baseline_check import check_all
from workbench.runs.run_config import Orders, declared, read_orders
from workbench.safety import to_yaml
from workbench.views.parameters import as_parameters_file

CASE = "case_folder"


def ready(path: Path) -> Orders:
    """The orders of a file, if all of them can be run."""
    orders = read_orders(path)
    for one in orders.refused:
        raise Problem(one.why)
    return orders


def written(folder: Path, text: str) -> Path:
    path = folder / "it.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A case beside the parameters file."""
    (tmp_path / "case").symlink_to(case_of(LOST).folder)
    return tmp_path / "case"


def test_each_value_is_what_the_notebook_declares(tmp_path: Path, case: Path) -> None:
    text = "notebook: 22_stop_csn\nparameters: {case_folder: case, supplier: 0011, consumer: no, per_load: -1}\n"
    (order,) = read_orders(written(tmp_path, text)).runs
    assert order.parameters == {CASE: str(case.resolve()), "supplier": "0011", "consumer": "no", "per_load": -1}
    text = (
        "notebook: 40_repair\ntimeout: 2h\nparameters:\n  case_folder: case\n  only: [69123456000000010000, 1e5]\n"
        "  accept_progress: true\n  ca_file: certs/ca.pem\n"
    )
    (order,) = read_orders(written(tmp_path, text)).runs
    assert order.timeout == 7200
    assert order.parameters["only"] == ["69123456000000010000", "1e5"]
    assert order.parameters["accept_progress"] is True
    assert order.parameters["ca_file"] == str((tmp_path / "certs" / "ca.pem").resolve())


def test_what_a_notebook_copies_is_what_is_run(tmp_path: Path, case: Path) -> None:
    shown = {CASE: str(case.resolve()), "server": "*", "origin": "1", "since": "2026-11-20T15:04:30Z"}
    (order,) = read_orders(written(tmp_path, as_parameters_file("23_missed_changes", shown))).runs
    assert order.parameters == shown


def cases(folder: Path, *places: str) -> None:
    for place in places:
        (folder / place).mkdir(parents=True)
        (folder / place / "case.yaml").write_text("layout: '6'\n")


def test_a_run_is_called_by_its_case_as_it_is_written_and_by_its_notebook(tmp_path: Path) -> None:
    cases(tmp_path, "a/eu/case", "b/eu/case", "other")
    text = "cases: [a/eu/case, ./b/eu/case/, other]\nruns: [{notebook: 20_overview}, {notebook: 21_anchor, name: by-hand}]\n"
    orders = read_orders(written(tmp_path, text))
    places = ("a/eu/case", "b/eu/case", "other")
    assert [one.name for one in orders.runs] == [
        f"{case}/{name}" for name in ("20_overview", "by-hand") for case in places
    ]
    assert {one.file for one in orders.runs} == {"../../../it.yaml", "../it.yaml"}
    # What is added changes no name.
    more = (
        text.replace("[a/eu", "[other, a/eu")
        .replace(", other]", "]")
        .replace("runs: [", "runs: [{notebook: 22_stop_csn}, ")
    )
    assert {one.name for one in orders.runs} < {one.name for one in read_orders(written(tmp_path, more)).runs}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: [eu]\nruns: [{notebook: 20_overview}, {notebook: 20_overview, parameters: {server: s3}}]",
         "two runs are called eu/20_overview"),
        ("cases: [eu]\nruns: [{notebook: 20_overview}, {notebook: 21_anchor, name: 20_overview}]", "two runs are called"),
        ("cases: [eu]\nruns: [{notebook: 20_overview}, {notebook: 20_overview}]", "eu/20_overview twice"),
        ("cases: [eu]\nruns: [{notebook: 20_overview}, {notebook: 20_overview, name: again}]", "are the same run"),
        ("cases: [eu, eu]\nruns: [{notebook: 20_overview}]", "twice"),
        ("cases: [eu, us/../eu]\nruns: [{notebook: 20_overview}]", "are the same run"),
        ("cases: [eu, link]\nruns: [{notebook: 20_overview}]", "are the same run"),
        ("notebook: 50_checks\nparameters: {case_folders: [eu, link]}", "one case is named twice"),
        ("notebook: 50_checks\ncases: [eu, us, ./eu]", "one case is named twice"),
        ("name: x\ncases: [eu]\nruns: [{notebook: 20_overview}]", "a name for several runs"),
        ("cases: [eu]\nparameters: {server: s3}\nruns: [{notebook: 20_overview}]", "parameters for several runs"),
        ("cases: [eu, us]\nruns: [{notebook: 50_checks, parameters: {case_folders: [eu]}}]", "cases are named twice"),
        ("cases: [eu, us]\nnotebook: 50_checks\nparameters: {case_folders: []}", "cases are named twice"),
        ("notebook: 50_checks\nname: notify\ncases: [eu]", "cannot be called notify"),
        ("notebook: 50_checks\nname: parameters\ncases: [eu]", "cannot be called parameters"),
        ("notebook: 20_overview\nname: ../x\ncases: [eu]", "is no name of a run"),
        ("notebook: 20_overview\nname: [x]\ncases: [eu]", "not text"),
        ("notebook: 20_overview\nname: ''\ncases: [eu]", "is no name of a run"),
    ],
)  # fmt: skip
def test_no_run_is_asked_for_twice_and_no_two_are_taken_for_one(text: str, words: str, tmp_path: Path) -> None:
    cases(tmp_path, "eu", "us")
    (tmp_path / "link").symlink_to(tmp_path / "eu")
    with pytest.raises(Problem, match=words):
        read_orders(written(tmp_path, text))


def test_a_case_that_is_not_there_does_not_hold_up_the_others(tmp_path: Path) -> None:
    cases(tmp_path, "eu", "us")
    text = "cases: [eu, gone, us]\nruns: [{notebook: 20_overview}]\n"
    orders = read_orders(written(tmp_path, text))
    assert [one.name for one in orders.runs] == ["eu/20_overview", "us/20_overview"]
    ((refused),) = orders.refused
    assert (refused.order.name, "there is no such case" in refused.why) == ("gone/20_overview", True)


def test_every_notebook_declares_parameters_of_known_types() -> None:
    for name in OWN:
        assert declared(ROOT / "notebooks" / name)


HOSTILE_NAMES = [
    'csn = 1; open("x","w").write("x"); z',
    "__import__('os').system('touch x')",
    "case_folder; import os",
    "case_folder\n",
    "case_folder ",
    " case_folder",
    "Case_Folder",
    "CASE_FOLDER",
    "case-folder",
    "typo_csn",
    "serverr",
    "__class__",
    "__builtins__",
    "self",
    "lambda",
    "",
    " ",
    "\u200bserver",
    "ser\u200bver",
    "\u0455erver",  # a Cyrillic letter
    "server\u202e",
    "server=1",
    "server: s1",
    "{server}",
    "{{server}}",
    "%run",
    "!touch x",
    "password",
    "bind_password",
    "token",
    "a" * 5_000,
    "1",
    "null",
    "True",
    "[]",
    "papermill",
    "PAPERMILL_OUTPUT_PATH",
    "<script>",
    "=cmd|' /C calc'!A0",
    "../server",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_that_the_notebook_does_not_have_is_refused(name: str, tmp_path: Path, case: Path) -> None:
    text = to_yaml({"notebook": "20_overview", "parameters": {CASE: "case", name: "1"}})
    with pytest.raises(Problem, match="there is no ") as told:
        read_orders(written(tmp_path, text))
    assert len(str(told.value)) < 500
    if "pass" in name or name == "token":
        assert "a secret is never a parameter" in str(told.value)


def test_a_mistyped_name_is_told_with_what_was_meant(tmp_path: Path, case: Path) -> None:
    for text, meant in (
        ("notebook: 20_overview\nparameters: {case_folder: case, serverr: s1}\n", "did you mean server?"),
        ("notebok: 20_overview\n", "did you mean notebook?"),
        ("notebook: 20_overviw\nparameters: {case_folder: case}\n", "did you mean 20_overview?"),
        ("notebook: 20_overview\ntimout: 3h\nparameters: {case_folder: case}\n", "did you mean timeout?"),
    ):
        with pytest.raises(Problem) as told:
            read_orders(written(tmp_path, text))
        assert meant in str(told.value)


HOSTILE_TEXTS = {
    "a duplicate": "parameters: {case_folder: case, server: s1, server: s2}",
    "an alias": "parameters: {case_folder: case, server: &a s1, origin: *a}",
    "a bomb": "a: &a [x]\nb: &b [*a, *a]\nparameters: {case_folder: case}",
    "a tag": "parameters: {case_folder: case, server: !!python/object:os.system x}",
    "another tag": "parameters: {case_folder: case, server: !!str s1}",
    "a binary": "parameters: {case_folder: case, server: !!binary aGk=}",
    "a merge": "parameters: {case_folder: case, <<: {server: s1}}",
    "a list for a text": "parameters: {case_folder: case, server: [s1]}",
    "names for a text": "parameters: {case_folder: case, server: {a: b}}",
    "a list of lists": "parameters: {case_folder: [case]}",
    "no number": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: many}",
    "a number with a point": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: 1.0}",
    "an octal number": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: 0011}",
    "a number as Python writes it": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: 1_000}",
    "a number in hex": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: 0x10}",
    "a number too long": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: 69123456000000010000}",
    "digits of another script": "notebook: 22_stop_csn\nparameters: {case_folder: case, per_load: \u0661\u0662}",
    "no truth": "notebook: 40_repair\nparameters: {case_folder: case, accept_progress: yes}",
    "a text for a list": "notebook: 40_repair\nparameters: {case_folder: case, only: MISSED_CHANGE}",
    "a long value": f"parameters: {{case_folder: case, server: {'x' * 5000}}}",
    "a line end": 'parameters: {case_folder: case, server: "s1\\nimport os"}',
    "a null": 'parameters: {case_folder: case, server: "s1\\0"}',
    "an escape": 'parameters: {case_folder: case, server: "\\e[31m"}',
    "right to left": "parameters: {case_folder: case, server: \u202es1}",
    "a letter without width": "parameters: {case_folder: case, server: s\u200b1}",
    "half a letter": 'parameters: {case_folder: case, server: "\\ud800"}',
    "no time": "timeout: soon\nparameters: {case_folder: case}",
    "no end": "timeout: 0s\nparameters: {case_folder: case}",
    "a time without a unit": "timeout: 30\nparameters: {case_folder: case}",
    "nothing kept": "keep: 0\nparameters: {case_folder: case}",
    "an unknown key": "retries: 3\nparameters: {case_folder: case}",
    "a secret": "password: x\nparameters: {case_folder: case}",
    "a list of parameters": "parameters: [case_folder]",
    "text for parameters": "parameters: case",
    "no case": "parameters: {server: s1}",
    "an empty case": "parameters: {case_folder: ''}",
    "two ways to name a case": "cases: [case]\nparameters: {case_folder: case}",
    "cases as a text": "cases: case\nparameters: {}",
    "an empty case of several": "cases: ['']\nparameters: {}",
    "two documents": "parameters: {case_folder: case}\n---\nnotebook: 20_overview",
    "unclosed": "parameters: {case_folder: case",
    "a tabulator": "parameters:\n\tcase_folder: case",
    "nested deeply": f"parameters: {{case_folder: {'[' * 3000}{']' * 3000}}}",
    "as long as a log": f"parameters: {{case_folder: case}}\n{'# x' * 40_000}",
}


@pytest.mark.parametrize("what", HOSTILE_TEXTS)
def test_what_would_not_be_run_as_it_is_written_is_refused(what: str, tmp_path: Path, case: Path) -> None:
    text = HOSTILE_TEXTS[what]
    before = everything(tmp_path)
    path = tmp_path / "it.yaml"
    path.write_bytes((text if "notebook:" in text.partition("\n")[0] else f"notebook: 20_overview\n{text}").encode())
    with pytest.raises(Problem) as told:
        ready(path)
    assert "it.yaml" in str(told.value)
    assert "\x1b" not in str(told.value)
    assert everything(tmp_path).keys() - before.keys() == {str(path)}


PATH_SHAPES = [
    "~/case",
    "~root/case",
    "$HOME/case",
    "${HOME}/case",
    "`pwd`/case",
    "$(pwd)/case",
    "case/*",
    "cas?",
    "file:///case",
    "http://example.com/case",
    "s3://bucket/case",
    "hdfs:case",
    "C:\\case",
    "\\\\server\\case",
    "..\\case",
    "case\\..\\..",
    "case|other",
    "case>other",
    "<case>",
    "case\0",
    "case\nother",
    "case\r",
    "case\tother",
    "case\x1b[31m",
    "\u202ecase",
    "ca\u200bse",
    " case",
    "case ",
    "case/ /x",
    "a" * 300,
    "a/" * 3_000,
    "/",
    ".",
    "..",
    "../..",
    "../../../../../../etc",
    "/etc/passwd",
    "/dev/null",
    "/dev/stdin",
    "/proc/self/mem",
    "it.yaml",
    "case/evidence",
    "case/case.yaml",
    "case/../nothing",
    "nothing",
    "loop",
    "dangling",
    "{case_folder}",
    "-case",
    "--help",
]


@pytest.mark.parametrize("shape", PATH_SHAPES)
@pytest.mark.parametrize("where", ["cases", CASE, "case_folders", "snapshots"])
def test_no_path_leads_anywhere_but_to_a_case(shape: str, where: str, tmp_path: Path, case: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    said = {
        "cases": {"notebook": "20_overview", "cases": [shape]},
        CASE: {"notebook": "20_overview", "parameters": {CASE: shape}},
        "case_folders": {"notebook": "50_checks", "parameters": {"case_folders": [shape]}},
        # The case of a notebook that makes it need not be there, but nothing else may be in its place.
        "snapshots": {"notebook": "10_load", "parameters": {CASE: f"{shape}/new/case"}},
    }[where]
    before = everything(tmp_path)
    path = tmp_path / "it.yaml"
    path.write_bytes(to_yaml(said).encode("utf-8", "surrogatepass"))
    with pytest.raises(Problem, match=r"it\.yaml"):
        ready(path)
    if where == "case_folders":  # beside one that is there, the notebook says of it that it is no case
        said["parameters"] = {where: [shape, "case"]}
        path.write_bytes(to_yaml(said).encode("utf-8", "surrogatepass"))
        with suppress(Problem):
            (order,) = ready(path).runs
            assert order.case_folder == case.resolve(), "nothing is written anywhere else"
            folders = order.parameters[where]
            assert isinstance(folders, list)
            told = {one.case: one.outcome for one in check_all(folders)}
            assert [outcome for name, outcome in told.items() if name != str(order.case_folder)] == ["failed"]
    assert everything(tmp_path).keys() - before.keys() == {str(path)}


@pytest.mark.parametrize(
    "name",
    ["../notebooks/20_overview", "20_overview.ipynb", "/etc/passwd", "", "..", "20_overview\0", "%run", "[a]", "*"],
)
def test_a_notebook_is_named_and_no_path(name: str, tmp_path: Path, case: Path) -> None:
    with pytest.raises(Problem, match="there is no notebook"):
        read_orders(written(tmp_path, to_yaml({"notebook": name, "parameters": {CASE: "case"}})))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no parameters file"),
        (b"- 20_overview\n", "no parameters file"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"runs: []\n", "`runs` is empty"),
        (b"runs: [20_overview]\n", "this is no run"),
        (b"notebook: 20_overview\nruns: []\n", "names no notebook, or one beside"),
        (b"cases: [case]\n", "names no notebook, or one beside"),
        (b"PK\x03\x04", "not valid YAML|no text"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(content: bytes, words: str, tmp_path: Path, case: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_bytes(content)
    with pytest.raises(Problem, match=words):
        read_orders(path)
    with pytest.raises(Problem, match="cannot read it"):
        read_orders(tmp_path)
    with pytest.raises(Problem, match="cannot read it"):
        read_orders(tmp_path / "gone.yaml")


@pytest.mark.parametrize("what", ["/dev/zero", "/dev/stdin", "a pipe", "too large"])
def test_what_has_no_end_is_not_read(what: str, tmp_path: Path) -> None:
    path = Path(what) if what.startswith("/") else tmp_path / "it.yaml"
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "too large":
        with open(path, "wb") as file:
            file.truncate(1 << 30)
    with pytest.raises(Problem, match=r"no plain file|more than 64 KiB|cannot read it"):
        read_orders(path)
