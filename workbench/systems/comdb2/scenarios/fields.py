"""What inputs are made of: LSNs as texts and as lists, and the rows of the tables of a registry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from workbench.input_validation import NO_TEXTS, Inputs
from workbench.replication.tier.rules.tiers import Lsn as LsnPair
from workbench.replication.tier.rules.tiers import Node, Pull, Registry
from workbench.systems.comdb2.lsn import LARGEST

_WRITTEN = re.compile(r" *\{ *([0-9]{1,10}) *: *([0-9]{1,10}) *\} *", re.ASCII)
_BARE = re.compile(r"\{?([0-9]{1,10}):([0-9]{1,10})\}?", re.ASCII)


def _pair(found: re.Match[str] | None) -> LsnPair | None:
    lsn = (int(found[1]), int(found[2])) if found else None
    return lsn if lsn and max(lsn) <= LARGEST else None


def lsn_read(text: str) -> LsnPair | None:
    """An LSN as the server reads one: in braces, with or without spaces inside; None for what it does not take."""
    return _pair(_WRITTEN.fullmatch(text))


def _lsn(text: str) -> LsnPair:
    lsn = lsn_read(text)
    if lsn is None:
        raise ValueError("is not an LSN ({file:offset})")
    return lsn


def _called_with(text: str) -> LsnPair:
    lsn = _pair(_BARE.fullmatch(text))
    if lsn is None:
        raise ValueError("is not file:offset")
    return lsn


def _as_pair(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


Number = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Seconds = Annotated[float, Field(ge=-1e9, le=1e12)]

if TYPE_CHECKING:
    Lsn = LsnPair
    BareLsn = LsnPair
    ListedLsn = LsnPair
else:
    Lsn = Annotated[str, AfterValidator(_lsn), WithJsonSchema({"type": "string", "format": "{file:offset}"})]
    BareLsn = Annotated[str, AfterValidator(_called_with), WithJsonSchema({"type": "string", "format": "file:offset"})]
    ListedLsn = Annotated[
        tuple[Number, Number], BeforeValidator(_as_pair), WithJsonSchema({"type": "array", "format": "[file, offset]"})
    ]

Version = Literal["seed", "2023", "2026"]


class Versioned(Inputs):
    """What every kind takes: a version that nobody knows is an error, also where all answer alike."""

    version: Version = "2026"


class NodeRow(Inputs):
    """A row of comdb2_physreps; a column that is not given is null. keepalive_age_s null: the row has no keepalive."""

    dbname: str
    host: str
    file: Number | None = None
    offset: Number | None = None
    firstfile: Number | None = None
    keepalive_age_s: Seconds | None = None
    state: str | None = None


class PullRow(Inputs):
    """A row of comdb2_physrep_connections."""

    dbname: str
    host: str
    source_dbname: str
    source_host: str


def _each_once(rows: list[Any]) -> list[Any]:
    """No two rows with one key: the tables cannot hold them."""
    keys = Counter(tuple(getattr(row, name) for name in _KEY if hasattr(row, name)) for row in rows)
    for key, times in keys.most_common(1):
        if times > 1:
            raise ValueError(f"has the row of {'@'.join(key[:2])[:60]} twice")
    return rows


_KEY = ("dbname", "host", "source_dbname", "source_host")

NodeRows = Annotated[list[NodeRow], AfterValidator(_each_once)]
PullRows = Annotated[list[PullRow], AfterValidator(_each_once)]


class Tables(Versioned):
    """The rows of the registry."""

    physreps: NodeRows
    connections: PullRows = NO_TEXTS

    def registry(self, keeps_first_file: bool = False) -> Registry:
        """As the rules take them."""
        nodes = tuple(
            Node(row.dbname, row.host, row.file, row.offset, row.firstfile, row.keepalive_age_s, row.state)
            for row in self.physreps
        )
        pulls = tuple(Pull(row.dbname, row.host, row.source_dbname, row.source_host) for row in self.connections)
        return Registry(nodes, pulls, keeps_first_file=keeps_first_file)


def listed(rows: Iterable[Any]) -> list[list[Any]]:
    """Rows as an answer writes them, sorted; null comes before every text."""
    return sorted(map(list, rows), key=lambda row: [(value is not None, value) for value in row])
