"""What a person or a program gives as data, held against a model: what does not fit is told in words, with its path.

Not part of `boundary`, because pydantic takes a while to load and nothing that only reads files needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.model import Problem
from workbench.safety import printable

_NAMED = 40
"""How much of a value a message quotes."""


class Inputs(BaseModel):
    """The base of every model: 1 is not true, "1" is not 1, 7 is not "7"; keys that the model does not name are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", hide_input_in_errors=True)


def called(name: str) -> Any:
    """A field that is called so in the data, where Python has another use for the word: `from`."""
    return Field(alias=name)


NO_TEXTS: Any = Field(default_factory=list)
NOTHING: Any = Field(default_factory=dict)
"""Fields that may be absent: an empty list, an empty object."""


Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], given: Any, where: str) -> Model:
    """The data as the model; else a Problem that begins with the path of the first thing that is wrong.

    `where` is what the paths begin with: `inputs.supplier_changelog[3]: 'xyz' is not a CSN (20 hex digits)`.
    """
    if not isinstance(given, Mapping):
        raise Problem(f"{where}: {quoted(given)} is not an object of names and values")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        raise Problem(f"{_path(where, given, first['loc'])}{_complaint(first)}{more}") from None


def quoted(value: Any) -> str:
    """The beginning of a value as it may stand in a message: texts in quotes, of anything that nests only what it is."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = printable(str(value)[: _NAMED + 1]).replace("\n", "\\n")
    text = text[:_NAMED] + "..." if len(text) > _NAMED else text
    return f"'{text}'" if isinstance(value, str) else text


def _path(where: str, given: Any, steps: Sequence[int | str]) -> str:
    for number, step in enumerate(steps, 1):
        if step == "[key]":  # the key itself is wrong, and is quoted behind the path
            return where.rpartition(".")[0] + ": the key "
        inside = isinstance(given, Mapping) if isinstance(step, str) else isinstance(given, list)
        if not inside or (isinstance(step, str) and step not in given and number < len(steps)):
            continue  # the name of one form of several that the value may have
        where += f"[{step}]" if isinstance(step, int) else f".{quoted(step)[1:-1]}"
        if isinstance(given, Mapping):
            given = given.get(step)
        else:  # an entry that is missing lies behind the end
            given = given[int(step)] if int(step) < len(given) else None
    return where + ": "


def _complaint(error: Any) -> str:
    kind, value, context = error["type"], quoted(error["input"]), error.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        whole = isinstance(error["input"], (Mapping, list))
        return f"{context['error']}" if whole else f"{value} {context['error']}"
    if kind == "literal_error":
        return f"{value} is not {context['expected']}"
    if kind == "union_tag_invalid":
        return (
            f"{context['discriminator'][1:-1]} is '{quoted(context['tag'])[1:-1]}', none of {context['expected_tags']}"
        )
    if kind == "union_tag_not_found":
        return f"{context['discriminator'][1:-1]} is missing"
    if kind in ("too_short", "too_long"):
        wanted = context.get("min_length", context.get("max_length"))
        return f"has {context['actual_length']} of {wanted} entries"
    said = {
        "string_type": "is not text" + (": put it in quotes" if isinstance(error["input"], (int, float)) else ""),
        "int_type": "is not a whole number",
        "float_type": "is not a number",
        "bool_type": "is neither true nor false",
        "list_type": "is not a list",
        "dict_type": "is not an object of names and values",
        "model_type": "is not an object of names and values",
        "model_attributes_type": "is not an object of names and values",
        "greater_than_equal": f"is less than {context.get('ge')}",
        "less_than_equal": f"is more than {context.get('le')}",
    }
    return f"{value} {said[kind]}" if kind in said else f"{value}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def described(model: type[BaseModel]) -> dict[str, str]:
    """What the model asks for: name -> what to give, in words."""
    schema = model.model_json_schema()
    parts = schema.get("$defs", {})
    needed = schema.get("required", [])
    return {
        name: _in_words(one, parts) + ("" if name in needed else " (optional)")
        for name, one in schema.get("properties", {}).items()
    }


def _in_words(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    if "format" in schema:
        return str(schema["format"])
    if "$ref" in schema:
        return _in_words(parts[schema["$ref"].rpartition("/")[2]], parts)
    if forms := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_in_words(one, parts) for one in forms)
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "properties" in schema:
        return "{" + ", ".join(f"{name}: {_in_words(one, parts)}" for name, one in schema["properties"].items()) + "}"
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_in_words(schema.get('items', {}), parts)}"
    if kind == "object":
        key = _in_words(schema.get("propertyNames", {"format": "name"}), parts)
        return f"{{{key}: {_in_words(schema.get('additionalProperties', {}), parts)}, ...}}"
    return {"string": "text", "integer": "whole number", "boolean": "true|false"}.get(kind, re.sub("_", " ", kind))
