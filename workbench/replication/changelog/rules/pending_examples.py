"""The scenarios of the design of the pending list, as examples: what each rule set makes of them.

>>> from workbench.replication.changelog.rules.pending import RULE_SETS
>>> [play("2.2", rules).state()[0]["1"].max for rules in RULE_SETS.values()]
['66000002000000010000', '66000002000000010000', '66000000000000010000']
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from workbench.replication.changelog.rules.pending import (
    PRIMARY_CSN,
    RULE_SETS,
    Replica,
    Rules,
    Server,
    Step,
    origin_of,
)
from workbench.rules.vectors import Span


class Example(NamedTuple):
    """Something that a server is put through, and what it shows."""

    title: str
    replicas: tuple[Replica, ...]
    steps: tuple[Step, ...]


def play(name: str, rules: Rules = PRIMARY_CSN) -> Server:
    """The server after all steps of an example; its `history` tells how it came there."""
    example = EXAMPLES[name]
    server = Server(example.replicas, rules)
    for step in example.steps:
        server.take(step)
    return server


def _csn(number: int, rid: int) -> str:
    return f"6600000{number:x}0000{rid:04x}0000"


def _replica(*maxima: str) -> Replica:
    return Replica(origin_of(maxima[0]), {origin_of(csn): Span(csn, csn) for csn in maxima})


_OLD, _OLD_2 = _csn(0, 1), _csn(0, 2)
_C1, _C2, _C3, _C4 = (_csn(number, 1) for number in (1, 2, 3, 4))
_R1 = _csn(1, 2)

EXAMPLES = {
    "1": Example(
        "Parallel writers, the last one commits first: a max above 1 and 2 would keep them from every consumer",
        (_replica(_OLD),),
        (
            Step("begin", "op 1", 0, _C1),
            Step("begin", "op 2", 0, _C2),
            Step("begin", "op 3", 0, _C3),
            Step("commit", "op 3", 0, _C3),
            Step("commit", "op 1", 0, _C1),
            Step("commit", "op 2", 0, _C2),
        ),
    ),
    "2.1": Example(
        "A client's operation fails after its nested updates: none of the three is in the changelog",
        (_replica(_OLD),),
        (
            Step("begin", "client", 0, _C1),
            Step("begin", "client", 0, _C2),
            Step("commit", "client", 0, _C2),
            Step("begin", "client", 0, _C3),
            Step("commit", "client", 0, _C3),
            Step("cancel", "client", 0, _C1),
            Step("end", "client"),
        ),
    ),
    "2.1 beside another writer": Example(
        "The same behind an operation that succeeds: reverting #359 handles 2.1 only where writers exclude each other",
        (_replica(_OLD),),
        (
            Step("begin", "other", 0, _C1),
            Step("begin", "client", 0, _C2),
            Step("begin", "client", 0, _C3),
            Step("commit", "client", 0, _C3),
            Step("cancel", "client", 0, _C2),
            Step("end", "client"),
            Step("commit", "other", 0, _C1),
            Step("end", "other"),
        ),
    ),
    "2.2": Example(
        "A replicated operation fails after its nested update, which waits in the list of the local replica ID",
        (_replica(_OLD, _OLD_2),),
        (
            Step("begin", "supplier", 0, _R1),
            Step("begin", "supplier", 0, _C2),
            Step("commit", "supplier", 0, _C2),
            Step("cancel", "supplier", 0, _R1),
            Step("end", "supplier"),
        ),
    ),
    "2.3": Example(
        "It fails after a nested update of another backend, which has the same replica ID and makes the same CSN",
        (_replica(_OLD), _replica(_OLD)),
        (
            Step("begin", "client", 0, _C1),
            Step("begin", "client", 1, _C1),
            Step("commit", "client", 1, _C1),
            Step("begin", "client", 1, _C4),
            Step("commit", "client", 1, _C4),
            Step("cancel", "client", 0, _C1),
            Step("end", "client"),
        ),
    ),
}
"""The scenarios of the design by their number. Where an operation is cancelled, no max should have moved past it."""


class Pending(NamedTuple):
    """All that a page asks of the pending list: its rule sets, a server under one of them, and the worked examples."""

    rule_sets: Mapping[str, Rules] = RULE_SETS
    server: Callable[[Sequence[Replica], Rules], Server] = Server
    replica: Callable[[str, Mapping[str, Span]], Replica] = Replica
    step: Callable[[str, Hashable, int, str], Step] = Step
    examples: Mapping[str, Example] = EXAMPLES
