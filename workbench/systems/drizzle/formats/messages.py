"""The messages of `messages.proto` as they are read here: with every number that the wire can hold.

Classes generated from the file drop what a reader must report: a kind of statement that is not in the list goes among the
unknown fields, and its statement then lacks a required field. So an open form is derived from the same description, in which
every enumeration is a number, whatever it is, and every text is bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from workbench.systems.drizzle.formats import messages_pb2

_PACKAGE, _OPEN = messages_pb2.DESCRIPTOR.package, "open"

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
def _classes() -> dict[str, Any]:
    """The classes by name."""
    file = descriptor_pb2.FileDescriptorProto()
    messages_pb2.DESCRIPTOR.CopyToProto(file)
    file.name, file.package = f"{_OPEN}.proto", _OPEN
    for message in file.message_type:
        _open(message)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_OPEN}.{message.name}"))
        for message in file.message_type
    }


def _open(message: Any) -> None:
    for field in message.field:
        if field.type == field.TYPE_ENUM:
            field.type = field.TYPE_INT32
            field.ClearField("type_name")
        elif field.type == field.TYPE_STRING:
            # As bytes: text that is not UTF-8 is to be reported, not raised from the middle of a message.
            field.type = field.TYPE_BYTES
        elif field.type == field.TYPE_MESSAGE:
            field.type_name = field.type_name.replace(f".{_PACKAGE}.", f".{_OPEN}.")
    for inner in message.nested_type:
        _open(inner)


def open_form(name: str) -> Any:
    """The class of that name in which every enumeration is a number and every text is bytes."""
    return _classes()[name]


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
