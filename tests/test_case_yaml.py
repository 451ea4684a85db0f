"""CASE/case.yaml: told by the evidence, and a person's words in it stay."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from case_samples import SNAPSHOTS, about

from workbench import Case
from workbench.case.case_yaml import renewed
from workbench.case.case_yaml import told as case_told
from workbench.intake import inputs
from workbench.intake.inputs import Input
from workbench.safety import strict_yaml


def test_case_yaml_tells_what_the_evidence_says(case: Case) -> None:
    told = about(case)
    assert [one["label"] for one in told["snapshots"]] == ["1-before", "2-during"]
    newest = max(path.stat().st_mtime for path in SNAPSHOTS[0].iterdir())
    assert told["snapshots"][0]["newest_file"] == f"{datetime.fromtimestamp(int(newest), UTC):%Y-%m-%dT%H:%M:%SZ}"
    times = [row["last_at"] for row in case.arrow("coverage").to_pylist() if row["snapshot"] == "2-during"]
    assert told["snapshots"][1]["logs"]["until"][:19] == f"{max(filter(None, times)):%Y-%m-%dT%H:%M:%S}"
    assert [(one["name"], one["origin"]) for one in told["servers"]] == [("s1", "1"), ("s2", "2"), ("s3", "3")]
    assert "1-before/s1.changelog.ldif.gz" in told["servers"][0]["files"]
    links = {(one["supplier"], one["name"]): one for one in told["links"]}
    rows = case.arrow("links").to_pylist()
    assert set(links) == {(row["server"], row["name"]) for row in rows}
    for (supplier, name), link in links.items():
        assert name == f"{supplier}-to-{link['consumer']}"
        assert link["address"] in {f"{row['consumer_host']}:{row['consumer_port']}" for row in rows}


def test_what_a_person_wrote_into_case_yaml_stays(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    file = tmp_path / "case" / "case.yaml"
    text = file.read_text().replace("name: case\n", "# named after the ticket\nname: INC-4711\n")
    text = text.replace("origin: '3'", "origin: '33'") + "# added by hand\nnotes:\n- s3 was down at 14:00  # says Ops\n"
    file.write_text(text)
    again = Case.open(tmp_path / "case")
    again.load(SNAPSHOTS[:1])
    assert file.read_text() == text
    again.load(SNAPSHOTS)
    mended, told = file.read_text(), about(again)
    assert "# named after the ticket\nname: INC-4711\n" in mended
    assert "# added by hand\nnotes:\n- s3 was down at 14:00  # says Ops\n" in mended
    assert [one["label"] for one in told["snapshots"]] == ["1-before", "2-during"]
    assert told["servers"][2]["origin"] == "33"
    assert any(name.startswith("2-during/") for name in told["servers"][2]["files"])
    assert Case.open(tmp_path / "case").name == "INC-4711"


def test_case_yaml_of_another_style_keeps_its_content(tmp_path: Path) -> None:
    before = {"name": "a", "servers": [{"name": "s1", "files": ["x"]}, {"name": "s2", "files": ["z"]}]}
    now = {"name": "a", "servers": [{"name": "s1", "files": ["x", "y"]}, {"name": "s3", "files": []}]}
    theirs = '{"name": a, servers: [{name: s1, files: [x], room: "12"}, {name: ldap2, files: [z]}], ticket: "7"}'
    assert strict_yaml(renewed(theirs, "case.yaml", before, now), "case.yaml") == {
        "name": "a",
        "servers": [
            {"name": "s1", "files": ["x", "y"], "room": "12"},
            {"name": "ldap2", "files": ["z"]},
            {"name": "s3", "files": []},
        ],
        "ticket": "7",
    }


def test_case_yaml_of_a_large_case_can_be_read(tmp_path: Path) -> None:
    part = {"table": "changes", "name": "x", "rows": 1}
    one = inputs.identify("now", SNAPSHOTS[0] / "s1.replica.ldif")
    for servers in (1, 5000):
        many = [
            Input(**{**vars(one), "file": f"{n}.ldif", "server": f"s{n % servers}", "parts": [part]})
            for n in range(5000)
        ]
        said = case_told("large", 1, {"now": "/now"}, many, [], [])
        assert strict_yaml(renewed("", "case.yaml", {}, said), "case.yaml") == said
        assert "5000" in str(said["servers"])
