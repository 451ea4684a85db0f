"""The messages of `messages.proto` as they are read here: with every number that the wire can hold, and in a light form.

Classes generated from the file drop what a reader must report: a kind of statement that is not in the list goes among the
unknown fields, and its statement then lacks a required field. So two forms are derived from the same description:

open    every enumeration is a number, whatever it is
light   open, for messages with nothing but rows: these and their headers stay bytes. Headers repeat, so each is read once;
        rows are counted all at once. All else is unknown to it, and such a message is read in its open form
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from workbench.systems.drizzle.formats import messages_pb2

_PACKAGE = messages_pb2.DESCRIPTOR.package
_ROWS_ONLY = re.compile(r"(insert|update|delete)_(data|header)|(start|end)_timestamp|type|sql")
_LIGHT = {"transaction_context", "statement", "insert_data", "update_data", "delete_data"}
"""Fields that the light form takes apart."""

KINDS: dict[int, str] = {value.number: value.name for value in messages_pb2.Statement.Type.DESCRIPTOR.values}
EVENTS: dict[int, str] = {value.number: value.name for value in messages_pb2.Event.Type.DESCRIPTOR.values}

_ENUMS = {
    f"{message.full_name.removeprefix(_PACKAGE + '.')}.{field.name}": frozenset(field.enum_type.values_by_number)
    for message in (
        found for top in messages_pb2.DESCRIPTOR.message_types_by_name.values() for found in (top, *top.nested_types)
    )
    for field in message.fields
    if field.enum_type
}
"""Field -> the numbers that are known of its enumeration."""


@cache
def _classes(form: str) -> dict[str, Any]:
    """The classes of a form by name; `Batch` holds transactions, so that many are read with one call."""
    file = descriptor_pb2.FileDescriptorProto()
    messages_pb2.DESCRIPTOR.CopyToProto(file)
    file.name, file.package = f"{form}.proto", form
    for message in file.message_type:
        _open(message, form)
        if form == "light":
            _lighten(message)
    batch = file.message_type.add(name="Batch")
    many = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    inner = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    batch.field.add(name="transaction", number=1, label=many, type=inner, type_name=f".{form}.Transaction")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{form}.{message.name}"))
        for message in file.message_type
    }


def _open(message: Any, form: str) -> None:
    for field in message.field:
        if field.type == field.TYPE_ENUM:
            field.type = field.TYPE_INT32
            field.ClearField("type_name")
        elif field.type == field.TYPE_STRING:
            # As bytes: text that is not UTF-8 is to be reported, not raised from the middle of a message.
            field.type = field.TYPE_BYTES
        elif field.type == field.TYPE_MESSAGE:
            field.type_name = field.type_name.replace(f".{_PACKAGE}.", f".{form}.")
    for inner in message.nested_type:
        _open(inner, form)


def _lighten(message: Any) -> None:
    kept = [field for field in message.field if message.name != "Statement" or _ROWS_ONLY.fullmatch(field.name)]
    kept = [field for field in kept if message.name != "Transaction" or field.name != "event"]
    for field in kept:
        if field.type == field.TYPE_MESSAGE and field.name not in _LIGHT:
            field.type = field.TYPE_BYTES
            field.ClearField("type_name")
    copies = [type(field).FromString(field.SerializeToString()) for field in kept]
    del message.field[:]
    message.field.extend(copies)


def open_form(name: str) -> Any:
    """The class of that name in which every enumeration is a number and every text is bytes."""
    return _classes("open")[name]


def light_form(name: str) -> Any:
    """The class of that name in which rows and headers are bytes, and which knows nothing beside them."""
    return _classes("light")[name]


def whole(name: str, data: bytes) -> Any:
    """The message that these bytes are, in its open form; None if they are none, or lack a required field."""
    try:
        message = open_form(name).FromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def unknown_in(message: Any) -> Iterator[str]:
    """What of a message in its open form is not in the list of fields and numbers, each as its path and its number."""
    for one in UnknownFieldSet(message):
        yield f"field {one.field_number}"
    about = message.DESCRIPTOR.full_name.partition(".")[2]
    for field, value in message.ListFields():
        many = not isinstance(value, bytes | int) and hasattr(value, "__len__")
        if field.message_type:
            for inner in value if many else [value]:
                for said in unknown_in(inner):
                    yield f"{field.name}.{said}"
        elif known := _ENUMS.get(f"{about}.{field.name}"):
            for number in value if many else [value]:
                if number not in known:
                    yield f"{field.name} {number}"
