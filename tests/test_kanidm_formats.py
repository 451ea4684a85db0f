"""The files of Kanidm: each layout tells the same, nothing of a secret is kept, and whatever is damaged is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from workbench.intake import files
from workbench.intake.files import CarefulReader, facts_of, inspect, pieces, recognise
from workbench.model import Parsed, Piece, Reject, Source, merge_facts
from workbench.tables import joined

FOLDER = Path(__file__).parent / "samples" / "kanidm"
TOLD = json.loads((FOLDER / "expected.json").read_text())
A = TOLD["servers"]["A"]
LAYOUTS = [*sorted(FOLDER.glob("backup-*")), FOLDER / "kanidm-synth.db.gz"]


def read(path: Path) -> Parsed:
    """All that the reader of the file's format gives."""
    kind = recognise(path)[0]
    assert kind, path
    reader, whole, made = CarefulReader(kind), Parsed(), []
    for piece in pieces(path, Source(path.name, "now", "A"), kind.unit, opens=kind.opens, stream=kind.stream):
        parsed = Parsed(1, [piece]) if isinstance(piece, Reject) else reader(piece)
        whole.rows += parsed.rows
        whole.rejects += parsed.rejects
        whole.facts = merge_facts([whole.facts, parsed.facts])
        made.append(parsed.tables)
    for name in {name for one in made for name in one}:
        whole.tables[name] = joined([one[name] for one in made if name in one])
    return whole


def rows(parsed: Parsed, name: str) -> list[dict[str, Any]]:
    found = parsed.tables[name].to_pylist() if name in parsed.tables else []
    return sorted(
        ({key: one[key] for key in one if key != "offset"} for one in found),
        key=lambda one: json.dumps(one, default=str),
    )


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.name[:9])
def test_every_layout_of_a_backup_gives_the_same_entries(path: Path) -> None:
    whole, other = read(FOLDER / "backup-v5.json.gz"), read(path)
    assert rows(other, "states") == rows(whole, "states") != []
    assert rows(other, "entries") == rows(whole, "entries") != []
    assert (other.rows, other.rejects) == (TOLD["entries"], [])
    with_vector = not path.name.startswith(("backup-v1", "backup-v2", "backup-v3"))
    assert rows(other, "vectors") == (rows(whole, "vectors") if with_vector else [])
    assert len(rows(other, "listed")) == (TOLD["ruv_cids"] if with_vector else 0)


def test_a_backup_tells_whose_it_is() -> None:
    facts = facts_of(FOLDER / "backup-v5.json.gz")
    assert (facts["s_uuid"], facts["d_uuid"], facts["origins"]) == (A, TOLD["domain"], {"": A})
    assert facts["tombstones"] == len(TOLD["tombstones_in_refresh"])
    (mine,) = [one for one in rows(read(FOLDER / "backup-v5.json.gz"), "vectors") if one["origin"] == A]
    assert mine["max"].startswith(f"{facts['ts_max_ns']:032d}-") and mine["generation"] == TOLD["domain"]


@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_a_backup_in_pieces_is_the_backup(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "A.json"
    path.write_bytes(gzip.decompress((FOLDER / "backup-v5.json.gz").read_bytes()))
    whole = read(path)
    monkeypatch.setattr(files, "PIECE", size)
    assert len(list(pieces(path, Source("f", "now", "A"), "items", opens=b',{"ent":{'))) > 1
    parts = read(path)
    assert (parts.rows, parts.facts, parts.rejects) == (whole.rows, whole.facts, [])
    for name in ("states", "entries", "vectors", "listed"):
        assert parts.tables[name].to_pylist() == whole.tables[name].to_pylist()


def test_the_lists_of_entries_agree() -> None:
    scanned, backup = read(FOLDER / "db-scan-list-id2entry.txt.gz"), read(FOLDER / "backup-v5.json.gz")
    assert (scanned.rows, scanned.rejects) == (4, [])
    assert [one["entry"] for one in rows(scanned, "entries")] == [one["entry"] for one in rows(backup, "entries")]
    made = [one for one in rows(backup, "states") if one["kind"] != "changed"]
    assert rows(scanned, "states") == made


def test_frames_tell_the_same_in_both_forms_and_agree_with_the_backup() -> None:
    for side in ("consumer", "supplier"):
        binary, lines = (read(FOLDER / f"{side}-frames.{form}.gz") for form in ("bin", "jsonl"))
        for name in ("messages", "vectors"):
            assert rows(binary, name) == rows(lines, name)
        assert binary.rejects == lines.rejects == []
    supplier = {
        one["code"]: dict(one["numbers"] or []) for one in rows(read(FOLDER / "supplier-frames.bin.gz"), "messages")
    }
    assert set(supplier) == {
        "pong",
        "supplies",
        "domain_mismatch",
        "no_changes",
        "refresh_required",
        "unwilling",
        "refreshes",
    }
    low, high = TOLD["B_pulls_from_A"][A]
    assert supplier["supplies"] == {
        f"range {A}": f"{low:032d} -> {high:032d}",
        "domain_uuid": TOLD["domain"],
        "entries": str(len(TOLD["entries_in_incremental"])),
    }
    consumer = {one["origin"]: one["max"] for one in rows(read(FOLDER / "consumer-frames.bin.gz"), "vectors")}
    assert consumer[A].startswith(f"{low:032d}")


def test_the_log_tells_each_of_its_messages() -> None:
    parsed = read(FOLDER / "log-lines-from-format-strings.txt.gz")
    said = rows(parsed, "messages")
    assert (parsed.rows, len(said), parsed.rejects) == (16, 16, [])
    assert {one["code"] for one in said} == {
        *("refresh_required", "supplier_behind", "diverged", "no_overlap", "supplies", "domain_mismatch"),
        *("clock_ahead", "origin_forgotten", "split_data", "ranges"),
    }
    (lag,) = [
        dict(one["numbers"])
        for one in said
        if one["text"].startswith(" | lag_range") or "| lag_range: {d76" in one["text"]
    ]
    assert lag == {f"lag_range {A}": "00000000000001767484807000000001 -> 00000000000001766707207000000001"}


def test_lines_as_json_say_the_same() -> None:
    line = {
        "timestamp": "2026-01-04T22:00:00.5Z",
        "level": "ERROR",
        "fields": {"message": "Replication - Consumer is lagging and must be refreshed."},
    }
    kind = recognise(FOLDER / "log-lines-from-format-strings.txt.gz")[0]
    assert kind
    parsed = kind.reader()(Piece(Source("f", "now", "A"), json.dumps(line).encode() + b"\n", 0, True))
    (row,) = parsed.tables["messages"].to_pylist()
    assert (row["code"], row["severity"], f"{row['at']:%H:%M:%S}") == ("refresh_required", "error", "22:00:00")


# --- secrets

CANARY = "canary-hunter2-0123456789"


def test_no_secret_of_a_backup_is_kept(tmp_path: Path) -> None:
    backup = json.loads(gzip.decompress((FOLDER / "backup-v5.json.gz").read_bytes()))
    backup["keyhandles"] = {"a": {"private_key": CANARY}}
    for entry in backup["entries"]:
        attributes = entry["ent"]["V3"]["attrs"]
        for tag in ["CR", "KI", "EK", "RU", "E2", "AS", "OZ", "IT", "TO", "AT", "AP", "PK", "DK", "JE", "JR"]:
            attributes[f"secret_{tag.lower()}"] = {tag: [CANARY, {"v": CANARY}]}
        attributes["name"] = {"RU": [CANARY]}  # a known name with a value of a secret kind
    path = tmp_path / "A.json"
    path.write_text(json.dumps(backup, separators=(",", ":")))
    parsed = read(path)
    assert parsed.rows == TOLD["entries"] and not parsed.rejects
    said = json.dumps([parsed.facts, {name: one.to_pylist() for name, one in parsed.tables.items()}], default=str)
    assert CANARY not in said
    text = path.read_text()
    for at in range(0, len(text), 97):  # what cannot be read shows nothing, either
        path.write_text(text[:at] + "\0" + text[at + 1 :])
        (told,) = inspect([path])
        assert CANARY not in json.dumps(told)
