"""Of what servers wait for: where it comes from when no supplier would send it now."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from mesh_samples import SUFFIX

from workbench.diagnosis.behind_links import alone_without_log
from workbench.diagnosis.relayed_changes import held_up, mark_arrival
from workbench.rules.verdicts import TOTAL


def _waits(server: str, *suppliers: str) -> dict[str, Any]:
    return {"server": server, "suffix": SUFFIX, "origin": "3", "suppliers": [*suppliers], "first": "5", "last": "5"}


def _link(supplier: str, consumer: str, failing: str | None = None) -> dict[str, Any]:
    about = {"link": "x", "link_enabled": True, "link_failing": failing, "decision": "send"}
    return {"supplier": supplier, "consumer": consumer, "suffix": SUFFIX, **about}


def _shows_it(*_: Any) -> bool:
    return True


def _when(position: str) -> datetime:
    return datetime(2024, 1, 1, 0, 0, int(position), tzinfo=UTC)


_SYSTEM = SimpleNamespace(
    moment=_when, origin_of=lambda _: "3", instant=lambda at: at.second, order_key=lambda _, hi, __: f"{hi}"
)
_EVIDENCE: Any = SimpleNamespace(inputs=[], system=_SYSTEM, origins_of=lambda one: [one.origin] if one.origin else [])


def test_what_comes_through_a_server_that_waits_itself() -> None:
    pending = [_waits("r"), _waits("h"), _waits("a", "c")]
    mark_arrival(pending, [_link("c", "a"), _link("a", "h"), _link("h", "r")], [], SUFFIX, _shows_it, _EVIDENCE)
    assert [row["through"] for row in pending] == [["h"], ["a"], []]
    mark_arrival(
        pending, [_link("c", "a"), _link("a", "h", "permission"), _link("h", "r")], [], SUFFIX, _shows_it, _EVIDENCE
    )
    assert [row["through"] for row in pending] == [[], [], []]


@pytest.mark.parametrize(
    ("newest", "replaced", "shows", "uncovered", "lost_by"),
    [
        ("4", None, (), True, None),
        ("5", None, (), False, None),
        ("6", 9, (), False, None),
        ("4", 9, ("c",), True, None),
        ("4", 9, (), False, "c"),
        ("4", 3, (), True, None),  # replaced before it was made
        ("4", 9, ("a",), True, None),
    ],
)
def test_what_is_beyond_every_vector_is_young_or_lost(
    newest: str, replaced: int | None, shows: tuple[str, ...], uncovered: bool, lost_by: str | None
) -> None:
    """c made the change. It is lost if the data of c were replaced later and no server shows it."""
    pending = [_waits("r"), _waits("a", "c")]
    resets = [SimpleNamespace(sure=True, kind=TOTAL, began=_when(str(replaced)))] if replaced else []
    maker = SimpleNamespace(seen={"3": newest}, replica=SimpleNamespace(server="c", origin="3"), resets=resets)
    other = SimpleNamespace(seen={"3": "4"}, replica=SimpleNamespace(server="a", origin="1"), resets=[])
    behind = SimpleNamespace(seen={"3": ""}, replica=SimpleNamespace(server="r", origin=None), resets=[])
    servers: Any = [maker, other, behind]
    mark_arrival(pending, [], servers, SUFFIX, lambda one, _: one.replica.server in shows, _EVIDENCE)
    assert [(row["uncovered"], row["lost_by"]) for row in pending] == [(uncovered, lost_by), (False, None)]
    servers = [other, behind]
    mark_arrival(pending, [], servers, SUFFIX, _shows_it, _EVIDENCE)
    assert not pending[0]["uncovered"], "the vector of its maker was not read"


@pytest.mark.parametrize(("replaced", "lost_by"), [(None, None), (9, "c")])
def test_what_a_former_supplier_made_is_lost_or_stays_there_and_is_never_just_young(
    replaced: int | None, lost_by: str | None
) -> None:
    """c made it as 3, and makes no changes any more: no vector that is read later covers it."""
    pending = [_waits("r")]
    resets = [SimpleNamespace(sure=True, kind=TOTAL, began=_when(str(replaced)))] if replaced else []
    maker: Any = SimpleNamespace(seen={"3": "4"}, replica=SimpleNamespace(server="c", origin=None), resets=resets)
    evidence: Any = SimpleNamespace(**{**vars(_EVIDENCE), "origins_of": lambda one: ["3"] if one.server == "c" else []})
    behind: Any = SimpleNamespace(seen={"3": ""}, replica=SimpleNamespace(server="r", origin=None), resets=[])
    mark_arrival(pending, [], [maker, behind], SUFFIX, lambda *_: False, evidence)
    assert (pending[0]["uncovered"], pending[0]["lost_by"]) == (False, lost_by)


def test_what_waits_for_servers_that_take_or_send_nothing() -> None:
    waits: Any = {
        ("b", SUFFIX, "1"): ["a"],
        ("r", SUFFIX, "1"): ["b"],
        ("c", SUFFIX, "1"): ["a", "d"],
        ("d", SUFFIX, "2"): [],
        ("b", SUFFIX, "2"): ["c"],
    }

    def names(stopped: dict[str, str]) -> set[tuple[str | None, str | None]]:
        return {(server, origin) for server, _, origin in held_up(waits, stopped)}

    assert names({}) == set()
    assert names({"a": "NO_ANSWER_IN_TIME"}) == {("b", "1"), ("r", "1")}
    assert names({"a": "DATABASE_FAILING"}) == set(), "it still sends what it has"
    assert names({"c": "DATABASE_FAILING"}) == {("c", "1")}
    assert names({"b": "DATABASE_FAILING"}) == {("b", "1"), ("r", "1"), ("b", "2")}


@pytest.mark.parametrize(("gone", "lost", "alone"), [(7, 0, 7), (7, 7, 0), (0, 0, 0)])
def test_a_server_alone_has_what_no_log_has_and_not_what_its_own_log_has(gone: int, lost: int, alone: int) -> None:
    """Seen on 2.3.1: 34 of 41 changes stood in the changelog of b, and the 7 others b had lost."""
    claims = SimpleNamespace(min="1", max="9")
    holder = SimpleNamespace(server="b", suffix=SUFFIX, vector={"3": claims})
    waits = {"suffix": SUFFIX, "server": "a", "origin": "3", "first": "1", "last": "9", "count": 41, "suppliers": []}
    rows = [{**waits, "available": 41 - gone, "gone": gone, "lost": lost}]
    other = SimpleNamespace(server="a", suffix=SUFFIX, vector={})
    shown = SimpleNamespace(replicas=[other, holder], system=SimpleNamespace(typed=lambda one: one))
    context: Any = SimpleNamespace(
        verdicts=SimpleNamespace(pending=rows),
        topology=shown,
        replica=lambda server, _: {"a": other, "b": holder}[server],
    )
    assert alone_without_log(context, "b", SUFFIX) == alone
