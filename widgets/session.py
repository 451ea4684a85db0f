"""One session in a page: stepped record by record, where it begins, where it stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from widgets.incident_view import OfIncident
from workbench.model import Problem
from workbench.safety import printable
from workbench.text_table import aligned, one_cell
from workbench.views.session_bounds import starting_points, stopping_points
from workbench.views.session_replay import Stepping, stepping_of

_FURTHEST = 1_000
"""Rows that one step may go."""


class _OfSession(OfIncident):
    """What is chosen of one session."""

    def asked(self) -> dict[str, str]:
        """What the inputs say of it: those that the notebook has."""
        return {name: str(self.value(name)) for name in ("supplier", "consumer", "suffix", "rules")}

    def per_load(self) -> int:
        """Records in one buffer; 0: all in one load."""
        return int(self.value("per_load", 0))


class Stepper(_OfSession, drawn_by="stepper"):
    """The session played record by record under all rule sets side by side.

    What the page says: `step` (by: so many rows), `jump` (to: start, end, first_skip, skip, load, difference), `go`
    (row: the number of a row, from 0).
    """

    stepping: Stepping | None = None
    at = 0

    def drawn(self) -> dict[str, Any]:
        self.stepping, self.at = None, 0
        self.stepping = stepping_of(self.incident, **self.asked(), per_load=self.per_load())
        return self.stepping.page(0)

    def on_step(self, message: Mapping[str, Any]) -> None:
        """Go some rows on, or back."""
        by = message.get("by")
        if isinstance(by, int) and not isinstance(by, bool) and abs(by) <= _FURTHEST:
            self._go(self.at + by)

    def on_go(self, message: Mapping[str, Any]) -> None:
        """Go to a row that is seen."""
        row = message.get("row")
        if isinstance(row, int) and not isinstance(row, bool) and abs(row - self.at) <= _FURTHEST:
            self._go(row)

    def on_jump(self, message: Mapping[str, Any]) -> None:
        """Go where something happens. Raises Problem where it does not happen any more."""
        stepping, to = self.stepping, message.get("to")
        if stepping is None or not isinstance(to, str):
            return
        jumps: dict[str, tuple[Callable[[], int | None], str]] = {
            "start": (lambda: 0, ""),
            "end": (stepping.last, ""),
            "first_skip": (lambda: stepping.next_skip(-1), "No record is left out"),
            "skip": (lambda: stepping.next_skip(self.at), "No record behind this one is left out"),
            "load": (lambda: stepping.next_load(self.at), "No buffer is loaded behind this record"),
            "difference": (
                lambda: stepping.next_difference(self.at),
                "The rule sets send the same of all that is behind this record",
            ),
        }
        if to not in jumps:
            return
        find, otherwise = jumps[to]
        found = find()
        if found is None:
            self._go(self.at)  # how many rows there are is known now
            only = f"Only the first {stepping.last() + 1:,} rows are played" if stepping.cut else ""
            raise Problem(otherwise, "", only)
        self._go(found)

    def _go(self, row: int) -> None:
        """Stand at the row, or at the end that lies before it."""
        stepping = self.stepping
        if stepping is None:
            return
        row = max(0, row)
        if stepping.row(row) is None:
            row = max(0, stepping.last())
        self.at = row
        self.data = stepping.page(row)

    def as_text(self) -> str:
        data = self.data
        lines = []
        for side in data["sides"]:
            lines += [f"rule set {side['rules']}", side["says"]]
            if side["counts"]:
                counts = ", ".join(f"{many:,} {words}" for words, many in side["counts"])
                lines.append(f"    the whole session, undisturbed and in one load: {counts}")
        if not data["rows"]:
            return "\n".join(map(printable, lines))
        lines.append(f"row {data['at'] + 1:,}" + (f" of {data['total']:,}" if data["total"] is not None else ""))
        if data["cut"]:
            lines.append(_cut(data))
        cells = [["", "row", "position", "origin", *(side["rules"] for side in data["sides"])]]
        for row in data["rows"]:
            mark = ">" if row["number"] - 1 == data["at"] else "≠" if row["differs"] == "sent" else ""
            told = [_cell(cell) for cell in row["cells"]]
            cells.append([mark, f"{row['number']:,}", row["position"], row["origin"], *told])
        lines.append(aligned(cells, right=[1]))
        for side in data["sides"]:
            now = side["now"]
            values = ", ".join(f"{name} {value}" for name, value, _ in now["values"])
            lines.append(f"{side['rules']}: {now.get('words', '')}{': ' if now['read'] else ''}{now['says']}")
            lines += [f"    {one_cell(values)}"] if values else []
            lines += [f"    it ends here: {side['end']}"] if side["end"] else []
        return "\n".join(map(printable, lines))


def _cell(cell: Mapping[str, Any] | None) -> str:
    return f"{cell['words']} (load {cell['load']})" if cell else "-"


def _cut(data: Mapping[str, Any]) -> str:
    return (
        f"Only the first {data['played']:,} records are played here; the counts above are those of the whole session."
    )


class AnchorLine(_OfSession, drawn_by="anchor"):
    """The candidates of the decision on a line of positions, under each rule set, and the anchor that was taken."""

    def drawn(self) -> dict[str, Any]:
        return starting_points(self.incident, **self.asked())

    def as_text(self) -> str:
        lines = []
        for side in self.data["sides"]:
            lines += [f"rule set {side['rules']}", side["says"]]
            if side["anchor"]:
                there = "in the log" if side["in_log"] else "NOT in the log"
                lines.append(f"    anchor {side['anchor']}, {there}; the first record read: {side['next'] or 'none'}")
            cells = [["origin", "consumer has", "stop", "first", "first in log", "candidate", ""]]
            for one in side["candidates"]:
                keys = ("origin", "consumer", "stop", "first", "first_in_log", "candidate")
                told = f"{'the anchor comes from it: ' if one['chosen'] else ''}{one['says']}"
                cells.append([*(one[key] or "-" for key in keys), told])
            lines.append(aligned(cells))
        return "\n".join(map(printable, lines))


class Stops(_OfSession, drawn_by="stops"):
    """The stop of every origin under each rule set, what lies beyond it, and what a reload would do."""

    def drawn(self) -> dict[str, Any]:
        return stopping_points(self.incident, **self.asked(), per_load=self.per_load())

    def as_text(self) -> str:
        lines = []
        for side in self.data["sides"]:
            lines += [f"rule set {side['rules']}", side["says"]]
            cells = [["origin", "consumer has", "stop", "beyond", "first", "last", ""]]
            for one in side["origins"]:
                ends = [one[key] or "-" for key in ("first", "last")]
                row = [
                    one["origin"],
                    one["consumer"] or "-",
                    one["stop"] or "-",
                    f"{one['beyond']:,}",
                    *ends,
                    one["says"],
                ]
                cells.append(row)
            lines.append(aligned(cells, right=[3]))
            lines += [side["why"]] if side["why"] else []
            for one in side["reloads"]:
                lines.append(f"{one['with']}: {one['count']:,} loads, {one['records']:,} records, {one['sent']:,} sent")
                for load in one["loads"]:
                    where = f"from{'' if load['included'] else ' behind'} {load['from']}"
                    what = f"{load['records']:,} records, {load['sent']:,} sent, last {load['last'] or '-'}"
                    lines.append(f"    load {load['number']:,} {where}: {what} ({load['says']})")
                lines.append(
                    f"    it ends: {one['end']}" if one["end"] else f"    only {one['records']:,} records are played"
                )
        return "\n".join(map(printable, lines))
