"""What inputs are made of: CSNs, replica IDs, RUVs, as people and servers write them, and as the rules take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from workbench.input_validation import Inputs
from workbench.systems.ds389.csn import csn_or_none
from workbench.systems.ds389.rules.ruvs import Ruv as ReadRuv
from workbench.systems.ds389.rules.ruvs import read_ruv

_RID = re.compile(r"0*([0-9]{1,5})")
_LARGEST_RID = 65535


def rid_or_none(text: str) -> str | None:
    """The replica ID without leading zeros, or None if the text is none."""
    found = _RID.fullmatch(text)
    return str(int(found[1])) if found and int(found[1]) <= _LARGEST_RID else None


def _csn(text: str) -> str:
    csn = csn_or_none(text)
    if csn is None:
        raise ValueError("is not a CSN (20 hex digits)")
    return csn


def _rid(text: str) -> str:
    rid = rid_or_none(text)
    if rid is None:
        raise ValueError("is not a replica ID (a decimal number up to 65535)")
    return rid


def each_once(meant: Callable[[str], str | None], what: str) -> Callable[[Any], Any]:
    """A check that no two keys of an object are meant as one; `meant` gives None for a key that is wrong by itself."""

    def check(given: Any) -> Any:
        if isinstance(given, dict):
            met: dict[str, str] = {}
            for key in given:
                one = meant(key) if isinstance(key, str) else None
                if one is not None and met.setdefault(one, key) != key:
                    raise ValueError(f"has the {what} {key.lstrip('0') or '0'} twice")
        return given

    return check


Csn = Annotated[str, AfterValidator(_csn), WithJsonSchema({"type": "string", "format": "CSN"})]
"""In any case, taken as lower case."""

Rid = Annotated[str, AfterValidator(_rid), WithJsonSchema({"type": "string", "format": "rid"})]
"""As the key of an object: decimal text."""

RidNumber = Annotated[int, Field(ge=0, le=_LARGEST_RID), WithJsonSchema({"type": "integer", "format": "rid as number"})]

Value = TypeVar("Value")
PerRid = Annotated[dict[Rid, Value], BeforeValidator(each_once(rid_or_none, "replica ID"))]
"""`{"3": ..., "03": ...}` says two things of one replica ID."""

if TYPE_CHECKING:
    Ruv = ReadRuv
else:  # a list of nsds50ruv values, taken as the server takes them
    Ruv = Annotated[list[str], AfterValidator(read_ruv), WithJsonSchema({"type": "array", "format": "RUV"})]


def rejected_values(given: Any) -> list[str]:
    """The values of all RUVs in the inputs that the server would not take, each once: it goes on without them."""
    if isinstance(given, ReadRuv):
        return list(dict.fromkeys(given.rejected))
    if isinstance(given, Inputs):
        given = [value for _, value in given]
    inside = given.values() if isinstance(given, dict) else given if isinstance(given, list) else ()
    return list(dict.fromkeys(value for one in inside for value in rejected_values(one)))
