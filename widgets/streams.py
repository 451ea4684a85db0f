"""Streams of transactions: pieces against commits, what each server lacks of the source, and which tables changed when."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident, one_of
from widgets.missed import story_of
from workbench.text_table import aligned
from workbench.views.stream_lanes import WHICH, Wanted, lane_says, lanes
from workbench.views.stream_views import fleet_grid, heat

_ROWS_SHOWN = 50
_ALIKE, _ONE_LOG = (
    "no log lacks anything of its source's",
    "of each origin one log was collected: there is none to compare it with",
)
_PIECES_SHOWN = 40


class TransactionLanes(OfIncident, drawn_by="story+turns+transactions"):
    """Transactions of one log, a lane each, with their pieces as they came: what may be applied before the commit, what must be
    undone after a ROLLBACK. Click one for its pieces and its story.
    """

    def drawn(self) -> dict[str, Any]:
        """The first page of the chosen log: around the chosen transaction, if one is."""
        self._marks: list[Any] = [None]
        return self._page()

    def _page(self) -> dict[str, Any]:
        which = str(self.value("which")) or next(iter(WHICH))
        wanted = Wanted(self.only("server"), self.only("origin"), which, str(self.value("transaction")))
        by = str(self.value("by")) or "order"
        page = lanes(self.incident, wanted, self._marks[-1])
        return {**page, "by": by, "number": len(self._marks), "picked": None}

    def on_page(self, message: dict[str, Any]) -> None:
        """Go a page on or back."""
        if not self.data:
            return
        if message.get("by") == 1 and self.data.get("more"):
            self._marks.append(self.data["mark"])
        elif message.get("by") != 1 and len(self._marks) > 1:
            self._marks.pop()
        self.data = self._page()

    def on_pick(self, message: dict[str, Any]) -> None:
        """One transaction: in words, its pieces, and who has it."""
        lane = one_of(self.data.get("lanes", []), message)
        picked = {
            "title": f"transaction {lane['position']} of origin {lane['origin']}, as {self.data['server']} has it",
            "says": lane_says(lane),
            "marks": lane["marks"][:_PIECES_SHOWN],
            "count": len(lane["marks"]),
            "rows": [
                {"table": table, "operation": operation, "rows": count}
                for table, of in (lane["rows"] or {}).items()
                for operation, count in of.items()
            ],
            "story": story_of(self.incident, lane["story"]),
        }
        chosen = [{**one, "chosen": index == message["index"]} for index, one in enumerate(self.data["lanes"])]
        self.data = {**self.data, "lanes": chosen, "picked": picked}

    def as_text(self) -> str:
        """A line for each transaction."""
        heads = (
            "TRANSACTION",
            "OUTCOME",
            "MESSAGES",
            "ROWS",
            "COUNT",
            "BEFORE ITS END",
            "TO UNDO",
            "AT RISK",
            "MEANWHILE",
        )
        keys = ("messages", "seen", "kept", "ahead", "undo", "at_risk", "meanwhile")
        rows = [
            (one["position"], one["outcome"], *("" if one[key] is None else f"{one[key]:,}" for key in keys))
            for one in self.data["lanes"]
        ]
        title = f"{self.data['server']}: {self.data['which']}"
        return f"{title}\n\n{aligned([heads, *rows], right=range(2, 9))}" if rows else f"{title}: none"


class FleetDifference(OfIncident, drawn_by="story+fleet"):
    """Transactions that some log lacks of its source's, or holds otherwise, in the order of commits. Click one for its story."""

    def drawn(self) -> dict[str, Any]:
        """The first page, of the chosen server and origin."""
        grids = fleet_grid(self.incident, self.only("origin"), self.only("server"))
        about = [{key: one[key] for key in ("origin", "source", "servers")} for one in grids]
        self._all = [{**row, **of} for one, of in zip(grids, about, strict=True) for row in one["rows"]]
        self._names = list(dict.fromkeys(name for row in self._all for name in row["servers"]))
        self._first, self._compared = 0, any(one["servers"] for one in grids)
        return self._page(None)

    def _page(self, story: Any, chosen: int = -1) -> dict[str, Any]:
        rows = self._all[self._first : self._first + _ROWS_SHOWN]
        return {
            "servers": self._names,
            "compared": self._compared,
            "first": self._first,
            "total": len(self._all),
            "rows": [
                {
                    **row,
                    "cells": dict(zip(row["servers"], row["cells"], strict=True)),
                    "chosen": index == chosen,
                }
                for index, row in enumerate(rows)
            ],
            "story": story,
        }

    def on_page(self, message: dict[str, Any]) -> None:
        """Leaf through the transactions."""
        last = max(0, (len(self._all) - 1) // _ROWS_SHOWN * _ROWS_SHOWN)
        by = 1 if message.get("by") == 1 else -1
        self._first = min(max(0, self._first + by * _ROWS_SHOWN), last)
        self.data = self._page(None)

    def on_pick(self, message: dict[str, Any]) -> None:
        """The story of a transaction; of several alike, of the first."""
        row = one_of(self.data.get("rows", []), message)
        self.data = self._page(story_of(self.incident, row["story"]), message["index"])

    def as_text(self) -> str:
        """The grid as aligned text."""
        if not self.data["rows"]:
            return _ALIKE if self.data["compared"] else _ONE_LOG
        heads = ["TRANSACTION", "ORIGIN", "AT THE SOURCE", "ROWS", *self.data["servers"]]
        rows = [
            [
                row["first"] if row["count"] == 1 else f"{row['first']} to {row['last']} ({row['count']:,})",
                row["origin"],
                f"{row['outcome'] or '-'} ({row['source']})",
                f"{row['kept']:,}",
                *(row["cells"].get(name, {"says": ""})["says"] or "has it" for name in self.data["servers"]),
            ]
            for row in self.data["rows"]
        ]
        return aligned([heads, *rows], right=(3,))


class TableHeat(OfIncident, drawn_by="heat"):
    """Rows of each table over time, or along the log: those that count, and those that were taken back. Click a table."""

    def drawn(self) -> dict[str, Any]:
        """Of the log of the chosen server, or of the source."""
        by = "log" if self.value("by") == "log" else "time"
        return {**heat(self.incident, self.only("server"), self.only("origin"), by), "picked": None}

    def on_pick(self, message: dict[str, Any]) -> None:
        """The numbers of one table."""
        one = one_of(self.data.get("tables", []), message)
        edges = self.data["edges"]
        rows = [
            {"from": edges[at], "to": edges[at + 1], **{key: one[key][at] for key in ("seen", "kept", "cancelled")}}
            for at in range(self.data["bins"])
            if one["seen"][at]
        ]
        self.data = {**self.data, "picked": {"table": one["table"], "rows": rows}}

    def as_text(self) -> str:
        """The sums of each table."""
        heads = ("TABLE", "ROWS", "COUNT", "TAKEN BACK", "UNDECIDED")
        rows = [
            (one["table"], *(f"{sum(one[key]):,}" for key in ("seen", "kept", "cancelled")), f"{one['open']:,}")
            for one in self.data["tables"]
        ]
        title = f"{self.data['server']}: {self.data['from']} to {self.data['to']}"
        return f"{title}\n\n{aligned([heads, *rows], right=(1, 2, 3, 4))}" if rows else f"{title}: no rows"
