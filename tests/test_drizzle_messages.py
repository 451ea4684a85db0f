"""Our own messages.proto: its numbers are those of the real servers, and the code made from it is made from it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from drizzle_samples import delete, insert, read_bytes, record, sample, statement, transaction
from google.protobuf import descriptor_pb2

from workbench.systems.drizzle import formats
from workbench.systems.drizzle.formats import messages_pb2

FOLDER = Path(formats.__file__).parent
TYPES = descriptor_pb2.FieldDescriptorProto.Type
LABELS = descriptor_pb2.FieldDescriptorProto.Label


def wire_fields() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sample("wire_fields.json"))
    return found


def ours() -> tuple[dict[str, list[list[Any]]], dict[str, dict[str, int]]]:
    """(fields of each message, numbers of each enumeration), as wire_fields.json has them."""
    file = descriptor_pb2.FileDescriptorProto()
    messages_pb2.DESCRIPTOR.CopyToProto(file)
    fields: dict[str, list[list[Any]]] = {}
    enums: dict[str, dict[str, int]] = {}

    def look(message: Any, above: str) -> None:
        name = f"{above}{message.name}"
        fields[name] = [
            [
                field.number,
                field.name,
                field.type_name.removeprefix(f".{file.package}.")
                or TYPES.Name(field.type).removeprefix("TYPE_").lower(),
                LABELS.Name(field.label).removeprefix("LABEL_").lower(),
            ]
            for field in message.field
        ]
        for enum in message.enum_type:
            enums[f"{name}.{enum.name}"] = {value.name: value.number for value in enum.value}
        for inner in message.nested_type:
            look(inner, f"{name}.")

    for message in file.message_type:
        look(message, "")
    return fields, enums


def test_every_number_is_that_of_the_real_servers() -> None:
    fields, enums = ours()
    wanted = wire_fields()
    assert {name: sorted(map(list, of)) for name, of in wanted["messages"].items()} == {
        name: sorted(of) for name, of in fields.items()
    }
    assert wanted["enums"] == enums


def test_the_generated_code_is_made_from_the_file(tmp_path: Path) -> None:
    from shutil import which

    need("protoc (Debian: protobuf-compiler)", which("protoc"))
    made = tmp_path / "made.bin"
    command = ["protoc", "-I", str(FOLDER), f"--descriptor_set_out={made}", "messages.proto"]
    subprocess.run(command, check=True)
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    mine = descriptor_pb2.FileDescriptorProto()
    messages_pb2.DESCRIPTOR.CopyToProto(mine)
    for one in (file, mine):
        one.ClearField("syntax")
        _without_json_names(one.message_type)
    assert file == mine


def _without_json_names(messages: Any) -> None:
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        _without_json_names(message.nested_type)


def strange(body: bytes) -> list[str | None]:
    return [row["unknown"] for row in read_bytes(record(body)).tables["segments"].to_pylist()]


def test_fields_that_the_reader_does_not_know_are_told_at_any_depth() -> None:
    plain = transaction(7, insert((b"1",)), delete(b"1"))
    assert strange(plain.SerializeToString()) == [None, None]
    assert strange(plain.SerializeToString() + b"\x7a\x01x") == ["field 15", None]
    inner = transaction(7, insert((b"1",)), delete(b"1"))
    inner.statement[1].delete_data.record[0].MergeFromString(b"\x4a\x01x")
    assert strange(inner.SerializeToString()) == [None, "delete_data.record.field 9"]
    header = transaction(7, insert((b"1",)), delete(b"1"))
    header.statement[0].insert_header.field_metadata[0].MergeFromString(b"\x4a\x01x")
    assert strange(header.SerializeToString()) == ["insert_header.field_metadata.field 9", None]


def test_kinds_that_the_reader_does_not_know_are_told_by_their_number() -> None:
    odd = statement("INSERT").SerializeToString().replace(b"\x08\x01", b"\x08\x39", 1)
    body = transaction(7, insert((b"1",))).SerializeToString() + b"\x12" + bytes([len(odd)]) + odd
    rows = read_bytes(record(body)).tables["segments"].to_pylist()
    assert [(row["operation"], row["unknown"]) for row in rows] == [("INSERT", None), ("kind 57", "kind 57")]
    column = insert((b"1",)).SerializeToString().replace(b"\x08\x01\x12\x02id", b"\x08\x21\x12\x02id")
    body = transaction(7).SerializeToString() + b"\x12" + bytes([len(column)]) + column
    assert strange(body) == ["insert_header.field_metadata.type 33"]


@pytest.mark.parametrize("secret", ["row", "sql", "variable", "raw"])
def test_no_value_reaches_a_table(secret: str) -> None:
    made = {
        "row": insert((b"topsecret",)),
        "sql": statement("ROLLBACK_STATEMENT", sql="SET PASSWORD = 'topsecret'"),
        "variable": statement("SET_VARIABLE"),
        "raw": statement("RAW_SQL", sql="ALTER TABLE t COMMENT 'topsecret'", raw_sql_schema="test"),
    }[secret]
    if secret == "variable":
        made.set_variable_statement.variable_metadata.name = "password"
        made.set_variable_statement.variable_metadata.type = 1
        made.set_variable_statement.variable_value = b"topsecret"
    body = transaction(7, made).SerializeToString()
    assert b"topsecret" in body
    parsed = read_bytes(record(body) + record(body)[:-9] + record(body[:-3]))
    assert "topsecret" not in repr(parsed.tables["segments"].to_pylist())
    assert "topsecret" not in repr(parsed.rejects)
