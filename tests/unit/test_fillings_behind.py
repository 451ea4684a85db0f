"""A way that fills servers one behind the other: who is filled in the end is no cost of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from slow_mending import fresh, unlike

from workbench.diagnosis.closed_ways import LinkedPairs
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.model import Finding
from workbench.rules import repair_model
from workbench.rules.send_session import SortedLog
from workbench.rules.vectors import Span
from workbench.systems import system_named
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.repairs import links
from workbench.systems.ds389.repairs.filling import Initialise
from workbench.systems.ds389.rules.sending import ONCE, Sending


@dataclass(frozen=True)
class _ViewOfChain:
    """What a way that fills servers looks at."""

    suffix: str
    model: Any
    context: Any
    made_at: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    findings: tuple[Finding, ...] = ()


def test_whoever_a_way_fills_in_the_end_is_no_cost_of_it() -> None:
    """a feeds hub h, h feeds hub g, g feeds the read-only r; h is filled, and the others are where they stay behind."""
    at, feeds, suffix = [f"6600000{second}000000010000" for second in range(1, 9)], ["ah", "hg", "gr"], "dc=one"

    def one(name: str, origin: str | None) -> repair_model.Server:
        log = SortedLog(at, origin_of) if name != "r" else None
        return repair_model.Server(name, origin, "G", {"1": Span(at[0], at[-1])}, log)

    servers = {name: one(name, "1" if name == "a" else None) for name in "ahgr"}
    pairs = [repair_model.Link(by, to, True) for by, to in feeds]
    model = repair_model.LogModel(
        [], servers, pairs, origin_of, fresh, rules=Sending, losing=lambda: Sending(ONCE), refuses=unlike
    )
    links = [
        SimpleNamespace(
            supplier=by,
            consumer=to,
            name=f"{by}-to-{to}",
            suffix=suffix,
            address=f"{to}:389",
            enabled=True,
            runs=True,
            blocked=None,
            blind=False,
            failure=None,
        )
        for by, to in feeds
    ]
    about = {"suffix": suffix, "claims": True, "evidence": ()}
    replicas = [SimpleNamespace(server=name, origin=server.origin, **about) for name, server in servers.items()]
    topology = SimpleNamespace(
        links=links, replicas=replicas, down=frozenset(), pulling=False, snapshot="1", system=system_named("ds389")
    )
    context = SimpleNamespace(
        topology=topology,
        pairs=[],
        verdicts=Verdicts(),
        unrecorded={},
        linked=LinkedPairs(()),
        statuses=dict,
        replica=lambda *_: None,
        rows=lambda *_, **__: iter(()),
        once=lambda asked: {},
    )
    view: Any = _ViewOfChain(suffix, model, context)
    way = Initialise()
    draft = way._with_those_behind(view, way._draft(view, links[0], "h"), "h")
    assert [step.server for step in draft.steps] == ["h", "g", "r"]
    assert "no step of this way" not in draft.costs


@pytest.mark.parametrize(
    ("filled", "hides", "enabled", "switched"),
    [
        (set(), False, False, True),
        ({"a"}, False, False, False),
        (set(), True, False, False),
        (set(), False, True, False),
    ],
)
def test_a_link_that_is_off_comes_before_a_second_filling(
    filled: set[str], hides: bool, enabled: bool, switched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """g would be cut off; a-to-g is off, and a has the record: g keeps its data, unless a is filled itself or hides something."""

    def achieved(model: Any, effects: Any) -> tuple[Any, Any]:
        runs = any(effect["do"] == "run" for effect in effects)
        unsaid = [SimpleNamespace(server="g")] if runs and hides else []
        return SimpleNamespace(cut=frozenset() if runs else frozenset("g"), unsaid=unsaid), model

    monkeypatch.setattr(links, "achieved", achieved)
    link = SimpleNamespace(supplier="a", consumer="g", name="a-to-g", suffix="dc=one", address="g:389", enabled=enabled)
    about = {"inputs": (), "of_several": lambda server: False, "once": lambda asked: {}}
    context = SimpleNamespace(topology=SimpleNamespace(links=[link]), **about)
    model = SimpleNamespace(links=[repair_model.Link("a", "g", enabled)])
    view: Any = SimpleNamespace(suffix="dc=one", context=context, model=model)
    way = links.switched_on_instead(view, {"g"}, [{"do": "initialise", "server": "h", "source": "a"}], filled)
    assert [step.key for step in way.steps] == ["enable-a-to-g"] if switched and way else way is None and not switched
