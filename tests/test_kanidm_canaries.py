"""Secrets and names in what was collected of Kanidm servers: no secret is in anything that is made of it, no name in what is
made for strangers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kanidm_samples import Cid, Entry, backup, entry_id, origin, text_of
from test_canaries import _unpacked as unpacked
from test_canaries import artefacts

from workbench.cli import main
from workbench.systems.kanidm.formats.documents import SECRET_TAGS

SECRET = "hunter2"
NAMES = ("quetzalcoatl", "vonnegut", "acme-widgets.example", "zanzibar", "kestrelhouse")
"""Of a person, of a group, of a domain, of a server, of a host."""

PERSON, GROUP, DOMAIN, SERVER, HOST = NAMES

RUV: list[Cid] = [(0, "a"), (0, "b"), (100, "a"), (100, "b")]
TASK = "7f0c2c57-0000-4000-8000-000000000001"

LINES = [
    ("ERROR", "error", f"authentication of {PERSON}@{DOMAIN} failed: password={SECRET}-1"),
    ("ERROR", "error", f"cannot connect to repl://{HOST}.{DOMAIN}:8444, radius_secret: {SECRET}-2"),
    ("WARN", "warn", f"es256_private_key_der: {SECRET}-3 of {GROUP}"),
    ("ERROR", "error", f'{{"primary_credential": "{SECRET}-4"}} for {PERSON}'),
    ("ERROR", "error", "Replication - Consumer is lagging and must be refreshed."),
    ("DEBUG", "debug", f"api_token_session: {SECRET}-5"),
]


def with_secrets(made: dict[str, Any]) -> dict[str, Any]:
    """Every kind of secret value in every entry, and in the keys; names as people have them."""
    made["keyhandles"] = {"a": {"private_key": f"{SECRET}-key"}, f"{SECRET}-handle": 1}
    for number, item in enumerate(made["entries"]):
        attributes = item["ent"]["V3"]["attrs"]
        for tag in sorted(SECRET_TAGS):
            attributes[f"kept_{tag.lower()}"] = {tag: [f"{SECRET}-{tag}-{number}", {"v": f"{SECRET}-{tag}"}]}
        attributes["displayname"] = {"U8": [f"{PERSON} {SECRET}-display"]}
        attributes["mail"] = {"EM": [f"{PERSON}@{DOMAIN}", [f"{PERSON}@{DOMAIN}"]]}
        if "name" in attributes:
            attributes["name"] = {"N8": [f"{PERSON if number % 2 else GROUP}{number}"]}
        attributes["spn"] = {"SP": [[f"{PERSON}{number}", DOMAIN]]}
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that a case leads to: what is for its owner under `own`, what is for strangers under `told`."""
    place = tmp_path_factory.mktemp("canaries")
    collected, own, told = (place / name for name in ("collected", "own", "told"))
    for folder in (collected, own, told):
        folder.mkdir()
    base = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(12)}
    new = {
        **base,
        3: Entry((0, "a"), {"mail": (100, "a")}),
        4: Entry(gone=(100, "b")),
        5: Entry((0, "a"), {}, source=6),
    }
    for name, entries in ((f"{SERVER}1", new), (f"{SERVER}2", base)):
        one = backup("a" if name.endswith("1") else "b", 200, RUV, entries)
        (collected / f"{name}.backup.json").write_text(json.dumps(with_secrets(one), separators=(",", ":")))
    lines = (f"{TASK} {level:<8} ┝━ x [{kind}]: {text}" for level, kind, text in LINES)
    (collected / f"{SERVER}1.log").write_text("\n".join(lines) + "\n")
    named = f'Iname(["{PERSON}9"]), Cred(["{SECRET}-scan"])'
    scan = f"       1: v3 - {{ Uuid([{entry_id(1)}]), created: {text_of(0, 'a')}, {named}, }}"
    (collected / f"{SERVER}2.db-scan.txt").write_text(scan + "\n")
    said: list[str] = []

    def run(*words: object, codes: tuple[int, ...] = (0, 1)) -> str:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code in codes, result.output
        said.append(result.output)
        return result.output

    case = own / "case"
    run("inspect", *sorted(collected.iterdir()), "--json", own / "inspect.json")
    run("load", collected, "--case", case)
    run("diagnose", case, "--json", own / "findings.json", "--csv", own / "missing.csv")
    run("plan", case, "--way", f"refresh-from-{SERVER}2", "--bundle", own / "bundle")
    missing = json.loads((own / "findings.json").read_text())["missing"]
    assert {row["attribute"] for row in missing} >= {"mail", None}
    run("explain", missing[0]["position"], "--case", case)
    run("report", case, "--unredacted", "--reason", "a test", "--out", own / "whole.html")
    cut = own / "cut.json"
    text = next(collected.glob("*1.backup.json")).read_text()
    for at in (len(text) // 3, len(text) // 2):
        cut.write_text(text[:at])
        run("inspect", cut, codes=(0, 1, 2))
    cut.unlink()
    (own / "output.txt").write_text("\n".join(said))
    forms = ("--json", told / "report.json", "--markdown", told / "report.md", "--case-export", told / "export.zip")
    (told / "output.txt").write_text(run("report", case, "--out", told / "report.html", *forms))
    return place


def test_no_secret_is_in_anything_that_is_made(made: Path) -> None:
    kinds = set()
    for folder in ("own", "told"):
        for name, text in artefacts(made / folder):
            kinds.add(Path(name).suffix)
            assert SECRET not in text and SECRET not in unpacked(text), name
    assert kinds >= {".parquet", ".html", ".json", ".md", ".csv", ".txt", ".sh", ".yaml"}


def test_no_name_is_in_what_strangers_are_given(made: Path) -> None:
    seen = {name: text.lower() for name, text in artefacts(made / "own")}
    for word in NAMES:
        assert any(word in text for text in seen.values()), f"{word} is not in the case: nothing is proven"
    for name, text in artefacts(made / "told"):
        for word in NAMES:
            assert word not in text.lower(), (name, word)
    told = (made / "told" / "report.md").read_text()
    assert origin("a") in told, "the UUID of a server is no name"
    assert "server-1" in told and "on server-1 kanidmd refresh-replication-consumer" in told
