"""What a plan tells of its model: which changes by server and origin, and what each server lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from workbench.diagnosing.situation import Situation
from workbench.model import System
from workbench.rules.mending import Lack, Lot, Model

TARGETS_SHOWN = 100
"""Of what was restored, so many entries are compared afterwards, for each server and origin."""


def changes_by_origin(model: Model, lacks: Iterable[Lack], suffix: str | None, system: System) -> list[dict[str, Any]]:
    """By server and origin: how many changes, from where to where, and the entries that they are about, as far as is known."""
    some: dict[tuple[str, str], list[Lot]] = {}
    for lack in lacks:
        lot = model.lots[lack.lot]
        some.setdefault((lack.server, lot.origin), []).append(lot)
    rows = []
    for (server, origin), lots in sorted(some.items()):
        lots.sort(key=lambda lot: lot.first)
        about = {"server": server, "suffix": suffix, "origin": origin, "count": sum(lot.changes for lot in lots)}
        ends = {"first": system.show(lots[0].first), "last": system.show(lots[-1].last)}
        targets = list(dict.fromkeys(lot.entry for lot in lots if lot.entry))[:TARGETS_SHOWN]
        rows.append({**about, **ends, "targets": targets})
    return rows


def standing_of(model: Model, suffix: str | None, lost: Collection[int]) -> list[dict[str, Any]]:
    """What each server lacks, in changes. `lost`: what no server had any more at the beginning; it is lacking all the same."""
    thrown_away = model.gone().difference(lost)
    lacking: dict[str, dict[str, list[Lack]]] = {name: {"missing": [], "pending": []} for name in sorted(model.servers)}
    for what, some in (("missing", model.missing()), ("pending", model.pending())):
        for lack in some:
            if lack.lot in model.given and lack.lot not in thrown_away:
                lacking[lack.server][what].append(lack)
    return [
        {"server": name, "suffix": suffix} | {what: model.changes(lacks) for what, lacks in mine.items()}
        for name, mine in lacking.items()
    ]


def need_not_have(situation: Situation, server: str, suffix: str | None) -> list[str]:
    """The attributes that no way to a server lets through; where no entries tell, whatever some link leaves out."""
    for contents in situation.verdicts.contents:
        if contents.suffix == suffix and server in contents.fractional.need_not:
            return sorted(contents.fractional.need_not[server])
    some = [row.get("excluded") or "" for (_, of, _), row in situation.statuses().items() if of == suffix]
    return sorted({word for text in some for word in text.lower().split()})
