"""The verdicts of the contract, read directly: change by change, in sets and dictionaries, over what was collected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fleet_histories import LOG_REPLACED, REPLACED, TOTAL, Fleet, Line, Shown, origin_of, time_of

PRESENT, MISSING, UNKNOWN = "present", "missing", "unknown"

SKIPPED_FOR_GOOD = {16, 17, 19, 20, 21, 32, 34, 35, 50, 64, 65, 66, 67, 68, 69}

_MINUTE = 60
"""Clocks and the moments in which one thing is noted may differ by that."""


def known_of(one: Shown, others: list[Shown]) -> dict[str, str]:
    """The highest of each origin by vector, header and records."""
    known = dict(one.vector)
    for csn in [*one.claims.values(), *(one.log or ())]:
        known[origin_of(csn)] = max(csn, known.get(origin_of(csn), ""))
    return known


def named(fleet: Fleet) -> set[str]:
    """Every change that any evidence names."""
    found: set[str] = set()
    for one in fleet.shown.values():
        found |= {*(one.log or ())}
        for log in one.earlier:
            found |= {*log}
        found |= {line.csn for line in one.lines or () if line.csn and (line.code == 0 or line.replicated)}
        found |= {note.about for note in one.notes or () if note.kind in ("dropped", "skipped")}
        found |= {*(one.states or {}).values()}
    return found


@dataclass
class SlowVerdicts:
    """verdict  (server, change) -> (verdict, why), of all that the server has seen; what it has not is pending."""

    fleet: Fleet
    verdict: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    pending: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.named = named(self.fleet)
        self.shown = list(self.fleet.shown.values())
        self.known = {one.name: known_of(one, self.shown) for one in self.shown}
        tops = {csn for one in self.shown for csn in one.vector.values()}
        evidence = [_Evidence(self.fleet, one, self.named) for one in self.shown]
        for seen in sorted(evidence, key=lambda one: one.filled_at):
            one = seen.one
            for csn in sorted(self.named | tops):
                if csn > self.known[one.name].get(origin_of(csn), ""):
                    if seen.came_since(csn):
                        if csn in self.named and seen.entry_lacks(csn):
                            self.verdict[one.name, csn] = MISSING, "not in its entries"
                    elif not seen.made_since(csn, self.known[one.name]):
                        self.pending[one.name, origin_of(csn)].add(csn)
                elif csn in self.named:
                    self.verdict[one.name, csn] = seen.verdict(csn, self.verdict)

    def those(self, verdict: str) -> set[tuple[str, str]]:
        """(server, change) with this verdict."""
        return {key for key, (what, _) in self.verdict.items() if what == verdict}

    def available(self, server: str, origin: str) -> set[str]:
        """Of what is pending there, what the logs of others hold."""
        held = {csn for one in self.shown if one.name != server for csn in one.log or ()}
        return self.pending[server, origin] & held

    def held_by(self, csn: str) -> list[str]:
        """Whose log holds the change."""
        return sorted(one.name for one in self.shown if csn in (one.log or ()))

    def stranded(self, pairs: list[dict[str, Any]]) -> set[tuple[str, str]]:
        """Held by one server, of no use to any other, and sent to none."""
        sent = {
            (row["supplier"], row["consumer"], origin)
            for row in pairs
            if row["decision"] == "send" and row["link"]
            for origin in row["to_send"]
        }

        def lost_to(one: str, holder: str, csn: str) -> bool:
            if csn in self.pending[one, origin_of(csn)]:
                return (holder, one, origin_of(csn)) not in sent
            return (one, csn) in self.verdict and self.verdict[one, csn][0] == MISSING

        names = [one.name for one in self.shown]
        return {
            (one.name, csn)
            for one in self.shown
            for csn in one.log or ()
            if all(lost_to(other, one.name, csn) for other in names if other != one.name)
        }


class _Evidence:
    """What was collected about one server."""

    def __init__(self, fleet: Fleet, one: Shown, every: set[str]) -> None:
        self.fleet, self.one, self.every = fleet, one, every
        self.others = [other for other in fleet.shown.values() if other is not one]
        # Links are told by the address of their consumer, and no vector holds that of a read-only one.
        self.suppliers = [other for other in self.others if one.origin is not None]
        self.resets = sorted(self._resets(), key=lambda reset: reset[1])
        replacing = [reset for reset in self.resets if reset[0] != LOG_REPLACED]
        self.last = replacing[-1] if replacing else None
        self.since = replacing[-1][2] if replacing else 0

    def _resets(self) -> Iterator[tuple[str, int, int]]:
        found = list(self.one.resets)
        for other in self.suppliers:
            began, ended = other.inits.get(self.one.name, (0, 0))
            if began and not any(kind == TOTAL and abs(at - began) < _MINUTE for kind, at, _ in found):
                found.append((TOTAL, began, ended))
        replacing = max((ended for kind, _, ended in found if kind != LOG_REPLACED), default=None)
        made_anew = max(map(time_of, self.one.marks.values()), default=None)
        if made_anew is not None and (replacing is None or replacing + _MINUTE < made_anew):
            found.append((REPLACED, made_anew, made_anew))
        yield from found

    def came_since(self, csn: str) -> bool:
        """The vector in its export, which is read last, covers the change."""
        return self._export_counts() and csn <= self.one.exported.get(origin_of(csn), "")

    def made_since(self, csn: str, known: dict[str, str]) -> bool:
        """An own change that it is not known to have: made with the data that it has, or after it was read."""
        if origin_of(csn) != self.one.origin:
            return False
        if any(line.csn == csn and not line.code and line.at >= self.since for line in self.one.lines or ()):
            return True
        notes, told = [note.at for note in self.one.notes or ()], [line.at for line in self.one.lines or ()]
        if notes:
            return time_of(csn) >= max(
                min(notes), *(ended for kind, _, ended in self.resets if kind != LOG_REPLACED), 0
            )
        # No agreement with a read-only server is written, nor what it says of its initialisation.
        named = [name for name, other in self.fleet.shown.items() if other.origin is not None]
        told += [at for name, moments in self.one.inits.items() for at in moments if name in named]
        return bool(told) and time_of(csn) >= max(*told, *map(time_of, filter(None, known.values())))

    # --- the rules, in their order

    def verdict(self, csn: str, told: dict[tuple[str, str], tuple[str, str]]) -> tuple[str, str]:
        """Of a change that the server has seen, or a later one of the origin; `told`: of the servers before it."""
        one = self.one
        if self._entry_is_as_where_it_is_held(csn):
            return PRESENT, "its entry shows it"
        if self._replaced_later(csn):
            return PRESENT, "all that it wrote was replaced later"
        if csn in (one.log or ()):
            return PRESENT, "in its log"
        lines = [line for line in one.lines or () if line.csn == csn and line.at >= self.since]
        if any(line.code == 0 for line in lines):
            return PRESENT, "applied"
        if self._export_counts() and csn in (one.states or {}).values():
            return PRESENT, "in an entry"
        if not self.since and any(csn in log for log in one.earlier):
            return PRESENT, "in an earlier log"
        notes = {note.kind for note in one.notes or () if note.about == csn and note.at >= self.since}
        if "dropped" in notes:
            return MISSING, "dropped"
        if any(line.code in SKIPPED_FOR_GOOD for line in lines) or self._skipped_by_supplier(csn):
            return MISSING, "skipped"
        if "cancelled" in notes and not any(line.code for line in lines):
            return PRESENT, "changed nothing"
        came_from = self._sources()
        unseen = bool(came_from) and all(self._got_later(other, csn) for other in came_from)
        doubted = unseen or (
            bool(self.filled_at) and any(told.get((other.name, csn), ("",))[0] == MISSING for other in self.others)
        )
        sources = [MISSING if unseen else told.get((one.name, csn), ("",))[0] for one in came_from] if doubted else []
        came = self._came_with_the_data(csn) and not self._entries_lack(csn)
        if came and (not doubted or (sources and {*sources} == {PRESENT})):
            return PRESENT, "initialised"
        without = bool(sources) and {*sources} == {MISSING}
        shown = self._log_shows(csn) or (without and self._never_came(csn, unseen or self._export_counts()))
        if not shown and not self._entries_lack(csn) and not self._lines_lack(csn):
            return UNKNOWN, "not_shown"
        return (UNKNOWN, "twin") if self._has_twin(csn) else (MISSING, "not there")

    def _entry_is_as_where_it_is_held(self, csn: str) -> bool:
        """The entry is what it is on a server that has the change: whatever else is told, its effect is there, or overwritten."""
        exported = [other for other in self.others if _Evidence(self.fleet, other, self.every)._export_counts()]
        if not self._export_counts():
            return False
        having = [
            other for other in exported if csn in (other.log or ()) and csn <= other.exported.get(origin_of(csn), "")
        ]
        if any(csn in (other.log or ()) for other in self.others):
            entry = self.fleet.changes[csn].entry
            return any(self._value(self.one, entry) == self._value(other, entry) for other in having)
        # No log has it any more: what is told of it is which entry of another server carries it.
        carrying = {entry for other in exported for entry, held in (other.states or {}).items() if held == csn}
        if not carrying and (entry := self._written_over_at_its_maker(csn)) is not None:
            carrying = {entry}
        return bool(carrying) and all(
            self._value(self.one, entry) == self._value(other, entry) for entry in carrying for other in exported
        )

    def _replaced_later(self, csn: str) -> bool:
        """Its entry shows a later change, and each change replaces all that earlier ones wrote: nothing of it is lacking here."""
        logged = any(csn in (other.log or ()) for other in self.others)
        carried = any(csn in (other.states or {}).values() for other in self.others)
        if not self._export_counts() or not (logged or carried):
            return False
        return (self.one.states or {}).get(self.fleet.changes[csn].entry, "") > csn

    def _written_over_at_its_maker(self, csn: str) -> int | None:
        """The entry of a change that results alone name, where its maker's export has a later change of it; else None."""
        if not any(line.csn == csn for one in self.fleet.shown.values() for line in one.lines or ()):
            return None
        entry = self.fleet.changes[csn].entry
        for maker in self.fleet.shown.values():
            seen = _Evidence(self.fleet, maker, self.every)
            kept = (
                seen._export_counts() and time_of(csn) > seen.since
            )  # else other data are in the place of those that it made
            if maker.origin == origin_of(csn) and kept and csn <= maker.exported.get(origin_of(csn), ""):
                return entry if (maker.states or {}).get(entry, "") > csn else None
        return None

    def _value(self, one: Shown, entry: int) -> str | None:
        state = (one.states or {}).get(entry)
        return self.fleet.changes[state].value if state else None

    def _skipped_by_supplier(self, csn: str) -> bool:
        return any(
            note.kind == "skipped" and (note.about, note.to) == (csn, self.one.name) and note.at >= self.since
            for other in self.suppliers
            for note in other.notes or ()
        )

    def _came_with_the_data(self, csn: str) -> bool:
        if self.last is None or self.last[0] != TOTAL or time_of(csn) >= self.last[1]:
            return False
        mark = self.one.marks.get(origin_of(csn))
        if mark is not None:
            return csn <= mark
        suppliers = [
            other
            for other in self.suppliers
            if self.one.name in other.inits and abs(other.inits[self.one.name][0] - self.last[1]) < _MINUTE
        ]
        if any(other.origin == origin_of(csn) for other in suppliers):
            return True
        began = self.last[1]
        return any(
            line.csn == csn and line.code == 0 and line.at < began for other in suppliers for line in other.lines or ()
        )

    @property
    def filled_at(self) -> int:
        """When its present data came whole from another server; 0: they did not."""
        return self.last[1] if self.last and self.last[0] == TOTAL else 0

    def _sources(self) -> list[Shown]:
        """Where its data may have come from, if the data of all of these are what they were then."""
        began = self.filled_at
        found = [
            other
            for other in self.suppliers
            if (told := other.inits.get(self.one.name, (0, 0))[0])
            and abs(told - began) < _MINUTE
            and min(self.resets, key=lambda reset: abs(reset[1] - told)) is self.last
        ]
        return found if all(_Evidence(self.fleet, other, self.every).since <= began for other in found) else []

    def _got_later(self, source: Shown, csn: str) -> bool:
        """True if the source had not seen the change when it had filled the server, as far as is shown."""
        if csn > known_of(source, []).get(origin_of(csn), ""):
            return True
        took = [line.at for line in source.lines or () if line.csn == csn and line.code == 0]
        return bool(took) and min(took) > source.inits[self.one.name][1]

    def _never_came(self, csn: str, proved: bool) -> bool:
        """Of a change that its source lacked: the vector that came along covers it, or what was logged since would show it.

        `proved`: what came back of its own changes would show
        """
        one, origin = self.one, origin_of(csn)
        if csn <= one.marks.get(origin, ""):
            return True
        if origin == one.origin:
            return proved and origin in one.marks and self._log_shows(csn, own_kept=True)
        lines, since = one.lines or [], max(end for kind, _, end in self.resets if kind == TOTAL)
        named = any(line.csn == csn and (line.replicated or not line.code) for line in lines)
        later = any(
            line.csn and line.csn > csn and origin_of(line.csn) == origin and line.at > since
            for line in lines
            if line.code == 0 and line.replicated
        )
        return bool(lines) and lines[0].at < since and later and not named

    def _log_shows(self, csn: str, own_kept: bool = False) -> bool:
        """True if the log would hold the change, had the server made or got it; `own_kept`: or got its own back."""
        one, origin = self.one, origin_of(csn)
        if one.log is None:
            return False
        mine = [held for held in one.log if origin_of(held) == origin]
        mark = one.marks.get(origin)
        if not (csn > mark if mark is not None else mine and csn >= mine[0]):
            return False
        written = max(one.log, default="")
        ends = max([*mine[-1:], min(one.claims.get(origin, ""), written)])
        if csn > ends:
            return False
        for kind, began, ended in self.resets:
            if kind == LOG_REPLACED and time_of(csn) < ended:
                return False
            if kind == TOTAL and origin == one.origin and time_of(csn) < began and not own_kept:
                return False
            # Its source may have got it while the data came: they bring it, and no log.
            if kind == TOTAL and origin != one.origin and mark is not None and time_of(csn) < ended:
                return False
        records = sorted([*one.log, *one.marks.values()])
        for damaged in [*one.damaged, *(["~"] if one.cut else [])]:
            before = max((held for held in records if held < damaged), default="")
            behind = min((held for held in records if held > damaged), default="~")
            if before < csn < behind:
                return False
        return True

    def _export_counts(self) -> bool:
        newest = max(map(time_of, self.one.exported.values()), default=None)
        return self.one.states is not None and (not self.since or newest is None or newest >= self.since)

    def _entries_lack(self, csn: str) -> bool:
        if not self._export_counts() or csn > self.one.exported.get(origin_of(csn), ""):
            return False
        states = self.one.states or {}
        return any(
            states.get(entry, "") < csn
            for other in self.others
            for entry, held in (other.states or {}).items()
            if held == csn
        )

    def entry_lacks(self, csn: str) -> bool:
        """Its vector covered the change when its entries were exported, and they differ from those that show it."""
        return self._entries_lack(csn) and not self._entry_is_as_where_it_is_held(csn)

    def _lines_lack(self, csn: str) -> bool:
        """The access log covers the time in which the change could come, and names the next one of its origin."""
        lines = self.one.lines
        began = max(
            [*(line.at for line in (lines or ())[:1]), *(end for kind, _, end in self.resets if kind == TOTAL)],
            default=0,
        )
        if not lines or origin_of(csn) == self.one.origin or time_of(csn) < began + 1:
            return False
        if any(line.csn == csn and (line.replicated or not line.code) for line in lines):
            return False
        later: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            if (
                line.csn
                and line.csn > csn
                and origin_of(line.csn) == origin_of(csn)
                and (line.replicated or not line.code)
            ):
                later[line.csn].append(line)
        applied = [line.at for line in later[min(later)] if line.code == 0 and line.replicated] if later else []
        ahead = max(0, time_of(min(later)) - min(applied)) if applied else 0
        return bool(applied) and time_of(csn) >= began + ahead + 1

    def _has_twin(self, csn: str) -> bool:
        logged = [self.one, *self.others]
        if not any(csn in log for other in logged for log in [other.log or [], *other.earlier]):
            return False  # nobody knows what it did
        mine = self.fleet.changes[csn]
        return any(
            (held.entry, held.value) == (mine.entry, mine.value)
            for held in (self.fleet.changes[other] for other in self.one.log or () if other != csn)
        )
