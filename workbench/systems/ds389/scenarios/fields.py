"""What the inputs of the scenario kinds are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from workbench.systems.ds389.csn import csn_or_none


def _csn(text: str) -> str:
    csn = csn_or_none(text)
    if csn is None:
        raise ValueError("not a CSN: 20 hex digits")
    return csn


Csn = Annotated[str, AfterValidator(_csn)]
"""A CSN in any case, as lower case."""
