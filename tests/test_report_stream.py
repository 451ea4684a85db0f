"""The report of a stream of transactions: what it says, and that no name of a table or server is left in it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hostile import MARKUP
from incident_samples import incident_of
from stream_files import bulk, case_of_logs, log_of, without
from stream_histories import Sent

from workbench.cli import main
from workbench.diagnosis.incident import Incident
from workbench.replication.stream.rules.segments import Message, Piece
from workbench.report.markdown import markdown
from workbench.report.page import page
from workbench.report.redaction import Pseudonyms
from workbench.report.report_pipeline import redacted, whole_report
from workbench.systems.drizzle.naming import NAMING, parts

SECTIONS = ("The stream of transactions", "What each log lacks of its source", "Transactions that are no plain commits")


def test_the_report_tells_what_each_log_lacks_and_what_was_taken_back() -> None:
    report = whole_report(incident_of("drizzle-fleet"))
    stream = report["stream"]
    assert [(one["server"], one["committed"], one["rows_cancelled"], one["behind"]) for one in stream["logs"]] == [
        ("primary", 22, 125, "its source is not known"),
        ("replica1", 22, 125, "nothing"),
        ("replica2", 17, 0, "1 transaction, 1 row, 0 s"),
    ]
    assert [(one["what"], one["positions"]) for one in stream["lacks"]] == [
        ("inside", ["780", "784", "794"]),
        ("incomplete", ["789"]),
        ("behind", ["796"]),
        ("discard", ["790"]),
    ]
    odd = {(one["server"], one["position"]): one for one in stream["odd"]}
    assert odd["replica2", "789"]["says"].startswith("messages of it are not there; number 2; ")
    assert "at its source: rolled back" in odd["replica2", "790"]["says"]
    for text in (page(report), markdown(report)):
        for section in SECTIONS:
            assert section in text
        assert "rolled back" in text
    (missed,) = [one for one in report["plain"] if "does not have" in one]
    assert "Its log goes on behind them, so the other servers will not send them again" in missed
    assert not any("vector covers" in one["summary"] for one in report["findings"])


def test_of_other_systems_there_is_no_such_section() -> None:
    report = whole_report(incident_of("purged_changelog"))
    assert report["stream"]["logs"] == []
    for text in (page(report), markdown(report)):
        assert SECTIONS[0] not in text
    words = {one["word"]: one["means"] for one in report["glossary"]}
    assert words["log"].startswith("The list of changes")


def named_case(folder: Path) -> Path:
    """Servers called like words of any sentence, and tables called like people."""

    def named(one: Sent) -> Sent:
        pieces = tuple(
            Piece(
                piece.operation,
                piece.target and piece.target.replace("test.person", "karlsruhe.meier").replace("shop", "acme"),
                piece.number,
                piece.ended,
                piece.rows,
            )
            for piece in one.message.pieces
        )
        message = one.message
        return Sent(one.transaction, Message(message.offset, message.number, message.ended, pieces, message.content))

    sent = [named(one) for one in bulk()]
    return case_of_logs(folder, source=log_of(sent), replica=log_of(without(sent, 2, 3, 6)[:-2])).folder


def test_no_name_of_a_table_or_server_leaves_the_case(tmp_path: Path) -> None:
    folder = named_case(tmp_path)
    assert CliRunner().invoke(main, ["plan", str(folder)]).exit_code in (0, 1)
    files = {name: tmp_path / name for name in ("page.html", "report.json", "report.md", "export.zip")}
    words = ["--out", files["page.html"], "--json", files["report.json"], "--markdown", files["report.md"]]
    done = CliRunner().invoke(
        main, ["report", str(folder), *map(str, words), "--case-export", str(files["export.zip"])]
    )
    assert done.exit_code in (0, 1), done.output
    texts = {name: path.read_text() for name, path in files.items() if name != "export.zip"}
    with zipfile.ZipFile(files["export.zip"]) as archive:
        texts |= {name: archive.read(name).decode() for name in ("findings.json", "report.json")}
        tables = {
            table: [
                row
                for name in archive.namelist()
                if name.startswith(f"evidence/{table}/")
                for row in pq.read_table(io.BytesIO(archive.read(name))).to_pylist()
            ]
            for table in ("segments", "transactions")
        }
    texts |= {table: str(rows) for table, rows in tables.items()}
    for name, text in texts.items():
        for secret in ("karlsruhe", "meier", "acme", "orders"):
            assert secret not in text, (name, secret)
    found = json.loads(texts["findings.json"])
    assert {row["source"] for row in [*found["streams"], *found["fleet"]]} <= {"server-1", "server-2"}
    counted = [
        *found["streams"][0]["tables"],
        *(table for one in found["fleet"] for of in one["rows"].values() for table in of),
    ]
    assert counted
    assert all(table.startswith("unit-") and ".entry-" in table for table in counted)
    assert {row["content"] for rows in tables.values() for row in rows} == {None}
    assert {row["rows"] for row in tables["transactions"]} == {None}
    assert any(row["rows"] for row in tables["segments"])
    assert {row["position"] for row in tables["transactions"]} == {
        row["position"] for row in Incident(folder).case.arrow("transactions").to_pylist()
    }


def test_a_table_is_named_by_its_schema_and_itself() -> None:
    assert list(parts("shop.orders")) == [("unit", "shop"), ("", "."), ("entry", "orders")]
    assert list(parts("shop")) == [("unit", "shop")]
    assert list(parts("a.b.c")) == [("unit", "a"), ("", "."), ("entry", "b.c")]


def test_keys_that_are_words_of_the_program_stay() -> None:
    names = Pseudonyms(b"k" * 32, naming=NAMING, position=lambda text: text.isdecimal())
    data = {
        "rows": {"780": {"shop.rows": {"insert": 1}}, "shop.tables": {"update": 2}},
        "tables": {"tables.rows": {"delete": 1}},
        "outcomes": {"committed": 3},
    }
    made = redacted(data, names)
    assert made["outcomes"] == {"committed": 3}
    (inner,) = made["rows"]["780"].items()
    assert inner[0].startswith("unit-")
    assert inner[1] == {"insert": 1}
    assert [list(one.values()) for one in made["tables"].values()] == [[1]]
    assert "shop" not in str(made)


@pytest.mark.parametrize("payload", [one for one in MARKUP if "<" in one][:10])
def test_hostile_names_of_tables_stay_text(payload: str, tmp_path: Path) -> None:
    piece = Piece("INSERT", f"{payload}.{payload}", 1, True, 1)
    sent = [Sent(number, Message(number * 10, 1, True, (piece,), number)) for number in (1, 2, 3)]
    incident = Incident(case_of_logs(tmp_path, main=log_of(sent), copy=log_of(without(sent, 2))))
    report = whole_report(incident)
    assert [one["target"] for one in report["missing"][0]["changes"]] == [f"{payload}.{payload}"]
    for text in (page(report), markdown(report)):
        assert payload not in text
