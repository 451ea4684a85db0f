"""What inputs are made of: CSNs, replica IDs, RUVs, as people and servers write them, and as the rules take them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

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


def _each_once(given: Any) -> Any:
    """`{"3": ..., "03": ...}` says two things of one replica ID."""
    if isinstance(given, dict):
        rids = [rid_or_none(key) for key in given if isinstance(key, str)]
        twice = next((rid for at, rid in enumerate(rids) if rid and rid in rids[:at]), None)
        if twice:
            raise ValueError(f"has the replica ID {twice} twice")
    return given


Csn = Annotated[str, AfterValidator(_csn), WithJsonSchema({"type": "string", "format": "CSN"})]
"""In any case, taken as lower case."""

Rid = Annotated[str, AfterValidator(_rid), WithJsonSchema({"type": "string", "format": "rid"})]
"""As the key of an object: decimal text."""

RidNumber = Annotated[int, Field(ge=0, le=_LARGEST_RID), WithJsonSchema({"type": "integer", "format": "rid as number"})]

Value = TypeVar("Value")
PerRid = Annotated[dict[Rid, Value], BeforeValidator(_each_once)]

if TYPE_CHECKING:
    Ruv = ReadRuv
else:  # a list of nsds50ruv values, taken as the server takes them
    Ruv = Annotated[list[str], AfterValidator(read_ruv), WithJsonSchema({"type": "array", "format": "RUV"})]
