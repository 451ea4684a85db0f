"""Kanidm: secrets and names in what was collected: none of the ones in what is made of it, none of the others in what leaves."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from kanidm_samples import DOMAIN, Entry, backup, entry_id, origin, text_of
from test_kanidm_diagnosis import BASE, RUV
from test_kanidm_logged import line

from workbench.cli import main
from workbench.systems.kanidm.naming import NAMING

SECRET = "canary{}hunter2"
SECRET_TAGS = ("CR", "KI", "EK", "RU", "E2", "AS", "OZ", "IT", "TO", "AT", "AP", "PK", "DK", "JE", "JR")
PEOPLE = ("wilhelmina", "ostrowski", "zacharias")
PLACES = ("gotham-one", "metropolis-two", "smallville.example.net")

_ATTRIBUTES = (
    "primary_credential",
    "key_internal_data",
    "radius_secret",
    "user_auth_token_session",
    "oauth2_rs_basic_secret",
)


def secret(number: int) -> str:
    return SECRET.format(number)


def filled(name: str, now: int, ruv: Any, entries: Any) -> dict[str, Any]:
    """A backup whose entries hold a secret of every kind, and names of people and places."""
    made = backup(name, now, ruv, entries)
    made["keyhandles"] = {entry_id(1): {"Der": {"key": secret(90)}}, "more": [secret(91)]}
    for at, item in enumerate(made["entries"]):
        attributes = item["ent"]["V3"]["attrs"]
        if "name" not in attributes:
            continue
        person = PEOPLE[at % len(PEOPLE)]
        attributes["name"] = {"N8": [f"{person}{at}"]}
        attributes["spn"] = {"SP": [[f"{person}{at}", PLACES[2]]]}
        attributes["displayname"] = {"U8": [f"{person} of {PLACES[2]}"]}
        for number, tag in enumerate(SECRET_TAGS):
            attributes[f"kept_{tag.lower()}"] = {tag: [{"secret": secret(number), "more": [secret(number)]}]}
        for number, attribute in enumerate(_ATTRIBUTES):
            attributes[attribute] = {"U8": [secret(50 + number)]}
    return made


def as_database(path: Path, one: dict[str, Any]) -> None:
    """The same in the tables of the server."""
    with sqlite3.connect(path) as database:
        for table in ("db_sid", "db_did", "db_op_ts"):
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, data TEXT)")
        database.execute("CREATE TABLE id2entry (id INTEGER PRIMARY KEY, data BLOB)")
        database.execute("CREATE TABLE ruv (cid TEXT)")
        database.execute("CREATE TABLE keyhandles (id TEXT, data TEXT)")
        database.execute("INSERT INTO keyhandles VALUES ('1', ?)", (secret(92),))
        database.execute("INSERT INTO db_sid VALUES (2, ?)", (json.dumps(one["db_s_uuid"]),))
        database.execute("INSERT INTO db_did VALUES (2, ?)", (json.dumps(one["db_d_uuid"]),))
        database.execute("INSERT INTO db_op_ts VALUES (1, ?)", (json.dumps(one["db_ts_max"]),))
        rows = [
            (number, json.dumps(item, separators=(",", ":")).encode()) for number, item in enumerate(one["entries"])
        ]
        database.executemany("INSERT INTO id2entry VALUES (?, ?)", rows)
        database.executemany(
            "INSERT INTO ruv VALUES (?)", [(json.dumps(cid),) for cid in one["repl_meta"]["V1"]["ruv"]]
        )


def config(own: str, *partners: str) -> str:
    text = f'tls_key = "/home/{PEOPLE[0]}/{secret(93)}.pem"\n[replication]\norigin = "repl://{own}.{PLACES[2]}:8444"\n'
    for one in partners:
        text += f'[replication."repl://{one}.{PLACES[2]}:8444"]\ntype = "mutual-pull"\npartner_cert = "{secret(94)}"\n'
    return text


LINES = [
    "Replication - Consumer is lagging and must be refreshed.",
    f"Unable to connect to supplier, tried to connect to [{PLACES[0]}.{PLACES[2]}:8444]",
    f"failed for {PEOPLE[1]}@{PLACES[2]} | password: {secret(95)}",
    f"bad value | primary_credential: {secret(96)}",
    f'{{"radius_secret": "{secret(97)}"}} for {PEOPLE[2]}',
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a case leads to."""
    place = tmp_path_factory.mktemp("canaries")
    folder = place / "collected" / f"{PEOPLE[2]}-night"
    folder.mkdir(parents=True)
    lost = {
        **BASE,
        3: Entry((0, "a"), {"mail": (100, "a"), "name": (100, "a")}),
        4: Entry((0, "a"), {"mail": (100, "a")}),
    }
    lost |= {60: Entry((50, "b"), source=2)}
    whole = filled("a", 200, RUV, lost)
    (folder / f"{PLACES[0]}.json").write_text(json.dumps(whole))
    (folder / f"{PLACES[1]}.json").write_text(json.dumps(filled("b", 200, RUV, BASE)))
    as_database(folder / f"{PLACES[1]}.db", filled("b", 210, RUV, BASE))
    (folder / f"{PLACES[0]}.server.toml").write_text(config(PLACES[0], PLACES[1]))
    (folder / f"{PLACES[1]}.server.toml").write_text(config(PLACES[1]))
    (folder / f"{PLACES[0]}.log").write_text("\n".join(map(line, LINES)) + "\n" + line(LINES[2])[40:] + "\n")
    frame = {
        "uuid": entry_id(1),
        "st": {"Live": {"at": None, "attrs": {"primary_credential": {"attr": {"CR": [secret(98)]}}}}},
    }
    said = {"domain_uuid": DOMAIN, "ranges": {}, "entries": [frame]}
    (folder / f"{PLACES[1]}.jsonl").write_text(
        json.dumps({"Incremental": {"v1": said}}) + "\n" + json.dumps({"Incremental": {"v1": secret(99)}}) + "\n"
    )
    scan = f"1: v3 - {{ Uuid([{entry_id(1)}]), created: {text_of(0, 'a')}, Iname([{PEOPLE[0]}]), }}\n"
    (folder / f"{PLACES[1]}.scan").write_text(scan + f"2: v3 - {{ {PEOPLE[1]} password: {secret(89)}\n")
    # What is cut and what is broken says what it was about.
    text = json.dumps(whole)
    (place / "cut.json").write_text(text[: text.rindex("hunter2")])
    (place / "broken.json").write_text(text.replace('"changestate"', '"changed"'))
    (folder / "broken.server.toml").write_text(config("x", "y") + f"\n{secret(88)}\n")
    made = place / "made"
    made.mkdir()
    said_by: list[str] = []

    def run(*words: object, codes: tuple[int, ...] = (0, 1, 3)) -> None:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code in codes, result.output
        said_by.append(result.output)

    case = made / "case"
    run(
        "inspect",
        *sorted(folder.iterdir()),
        place / "cut.json",
        place / "broken.json",
        "--json",
        made / "inspect.json",
        codes=(0, 2),
    )
    run("load", folder, "--case", case)
    run("plan", case, "--bundle", made / "bundle")
    run("diagnose", case, "--json", made / "findings.json", "--csv", made / "missing.csv")
    forms = ("--json", made / "report.json", "--markdown", made / "report.md", "--case-export", made / "export.zip")
    run("report", case, "--out", made / "report.html", *forms)
    row = json.loads((made / "findings.json").read_text())["missing"][0]
    run("explain", row["position"], "--case", case)
    (made / "output.txt").write_text("\n".join(said_by))
    return made


def artefacts(place: Path) -> Iterator[tuple[str, str]]:
    """Everything that was written, as text."""
    for path in sorted(place.rglob("*")):
        if path.suffix == ".parquet":
            yield str(path), json.dumps(pq.read_table(path).to_pylist(), default=str)
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for inner in archive.namelist():
                    out = path.parent / "inner.tmp"
                    out.write_bytes(archive.read(inner))
                    packed = inner.endswith(".parquet")
                    text = (
                        json.dumps(pq.read_table(out).to_pylist(), default=str)
                        if packed
                        else out.read_text("utf-8", "replace")
                    )
                    out.unlink()
                    yield f"{path}/{inner}", inner + text
        elif path.is_file():
            yield str(path), path.read_text("utf-8", "replace")


def test_no_secret_is_in_anything_that_is_made_of_a_case(place: Path) -> None:
    seen = set()
    for name, text in artefacts(place):
        seen.add(Path(name).suffix)
        assert "hunter2" not in text, (name, re.findall(r".{60}hunter2", text)[:3])
    assert {".parquet", ".json", ".csv", ".html", ".md", ".txt", ".yaml"} <= seen


def test_the_findings_speak_of_what_was_planted(place: Path) -> None:
    found = json.loads((place / "findings.json").read_text())
    codes = {one["code"] for one in found["findings"]}
    assert codes >= {"MISSED_CHANGE", "ENTRY_CONFLICT", "LINK_DISABLED", "UNREADABLE_INPUT"}
    report = json.loads((place / "report.json").read_text())
    assert sum(one["count"] for one in report["missing"]) == 4, "each entry and attribute once"
    assert report["headline"].startswith("4 changes are MISSING"), report["headline"]
    assert "in the log" not in " ".join(report["plain"])
    assert {"log", "anchor"}.isdisjoint(one["word"] for one in report["glossary"])


def test_no_name_is_in_what_leaves_the_case(place: Path) -> None:
    leaving = ("report.json", "report.md", "report.html", "export.zip")
    told = [
        (name, text) for name, text in artefacts(place) if any(one in name for one in leaving) and "/case/" not in name
    ]
    assert len(told) > 5
    for name, text in told:
        for word in (*PEOPLE, *PLACES, "smallville"):
            at = text.lower().find(word)
            assert at < 0, (name, text[max(0, at - 150) : at + 60])
    assert any(origin("a") in text for _, text in told), "a UUID is drawn by lot and names nobody"


def test_a_name_of_a_domain_is_two_names() -> None:
    assert list(NAMING.parts("wilhelmina@idm.example.com")) == [
        ("entry", "wilhelmina"),
        ("", "@"),
        ("domain", "idm.example.com"),
    ]
    assert list(NAMING.parts("wilhelmina")) == [("entry", "wilhelmina")]
