"""What servers remember, where they keep no log of changes: ranges, the positions behind them, floors, tombstones."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident, one_of
from widgets.missed import story_of
from workbench.text_table import aligned
from workbench.views.entry_ranges import compared, floor_grid, range_bars
from workbench.views.position_pages import PageQuery, positions_page, tombstones_page

_ORIGINS_SHOWN = 20
_SERVERS_SHOWN = 25


class _OfRemembered(OfIncident):
    """What is chosen of it, and where one is in it."""

    def asked(self) -> PageQuery:
        """What the inputs say: those that the notebook has."""
        return PageQuery(
            self.suffix, self.only("origin"), self.only("server"), str(self.value("since")), str(self.value("until"))
        )


class RangeBars(_OfRemembered, drawn_by="ranges"):
    """Of each origin a bar for every server, from the first position that it lists to the last, on one line of time.

    Click a bar, then one of another server: what each of the two answers when the other one pulls.
    """

    def drawn(self) -> dict[str, Any]:
        """The bars, and the pair that is chosen by the inputs, if one is."""
        asked = self.asked()
        self._whole = range_bars(self.incident, *asked)
        self._first, self._ends = 0, (str(self.value("supplier")), str(self.value("consumer")))
        return self._page(self._compared())

    def _page(self, pair: list[dict[str, Any]] | None) -> dict[str, Any]:
        origins = self._whole["origins"]
        page = origins[self._first : self._first + _ORIGINS_SHOWN]
        about = {"first": self._first, "total": len(origins), "ends": list(self._ends), "pair": pair}
        return {**self._whole, "origins": page, **about}

    def _compared(self) -> list[dict[str, Any]] | None:
        one, other = self._ends
        return compared(self.incident, one, other, self.suffix) if one and other and one != other else None

    def on_page(self, message: dict[str, Any]) -> None:
        """Leaf through the origins."""
        if not self.data:
            return
        last = max(0, (len(self._whole["origins"]) - 1) // _ORIGINS_SHOWN * _ORIGINS_SHOWN)
        by = 1 if message.get("by") == 1 else -1
        self._first = min(max(0, self._first + by * _ORIGINS_SHOWN), last)
        self.data = self._page(self._compared())

    def on_pick(self, message: dict[str, Any]) -> None:
        """Compare the server of a bar with the one that was clicked before."""
        origin = one_of(self.data.get("origins", []), message, "origin")
        server = one_of(origin["bars"], message, "bar")["server"]
        if server != self._ends[1]:
            self._ends = self._ends[1], server
        self.data = self._page(self._compared())

    def as_text(self) -> str:
        """A line for each server and origin, and both ways of the chosen pair."""
        rows = [
            (one["origin"], bar["server"], bar["first_at"] or "-", bar["last_at"] or "-", _notes(bar))
            for one in self.data["origins"]
            for bar in one["bars"]
        ]
        parts = [aligned([("ORIGIN", "SERVER", "LISTS FROM", "TO", ""), *rows])]
        for way in self.data["pair"] or ():
            title = f"{way['supplier']} -> {way['consumer']}: {way['decision']}, {way['message'] or 'no message'}"
            parts.append("\n".join([title, *([way["why"]] if way["why"] else []), *map(_range_says, way["rows"])]))
        return "\n\n".join(parts)


def _notes(bar: dict[str, Any]) -> str:
    if bar["last"] is None:
        return "lists nothing of it"
    notes = {
        "begins at time 0": bar["zero"],
        "as a supplier leaves it out": not bar["shows"],
        "a gap longer than servers remember": bar["gap"],
        f"waits for {bar['waits']:,}": bar["waits"],
    }
    return ", ".join(says for says, holds in notes.items() if holds)


def _range_says(row: dict[str, Any]) -> str:
    count = f", {row['count']:,} changes" if row["count"] else ""
    return f"    {row['what']}: {row['from_says']} {row['from']}, {row['to_says']} {row['to']}{count}"


class _Paged(_OfRemembered):
    """A list that is read a page at a time: nobody knows how long it is, so a page leads to the next one, and back."""

    def drawn(self) -> dict[str, Any]:
        """The first page."""
        self._marks: list[Any] = [None]
        return self.page()

    def page(self) -> dict[str, Any]:
        """The page that begins behind the last mark."""
        raise NotImplementedError

    def on_page(self, message: dict[str, Any]) -> None:
        """Go a page on or back."""
        if not self.data:
            return
        if message.get("by") == 1 and self.data.get("more"):
            self._marks.append(self._mark(self.data["rows"][-1]))
        elif message.get("by") != 1 and len(self._marks) > 1:
            self._marks.pop()
        self.data = self.page()

    def _mark(self, row: dict[str, Any]) -> Any:
        raise NotImplementedError

    def on_pick(self, message: dict[str, Any]) -> None:
        """The story of one row."""
        row = one_of(self.data.get("rows", []), message)
        rows = [{**one, "chosen": index == message["index"]} for index, one in enumerate(self.data["rows"])]
        story = None if row.get("anchor") else story_of(self.incident, row["position"])
        self.data = {**self.data, "rows": rows, "story": story}


class PositionList(_Paged, drawn_by="story+turns+listed"):
    """The positions that vectors are made of, in their order, with the entries that carry each at each server.

    No entry carries an anchor, and that is no loss. Click a position for its story.
    """

    def page(self) -> dict[str, Any]:
        found = positions_page(self.incident, self.asked(), self._marks[-1])
        return {**found, "number": len(self._marks), "story": None}

    def _mark(self, row: dict[str, Any]) -> Any:
        return row["key"]

    def as_text(self) -> str:
        """The page as a table."""
        heads = ["POSITION", *self.data["servers"]]
        rows = [[row["position"], *(_cell_says(cell) for cell in row["cells"])] for row in self.data["rows"]]
        return aligned([heads, *rows]) if rows else "no position is listed"


def _cell_says(cell: dict[str, Any]) -> str:
    entries = [f"{one['target'] or one['entry']} ({one['attributes']})" for one in cell["entries"]]
    entries += [f"and {cell['more']:,} more"] if cell["more"] else []
    return "; ".join(filter(None, [cell["says"], *entries]))


class Tombstones(_Paged, drawn_by="story+turns+graves"):
    """Deleted entries whose tombstones are kept: who has seen them, who forgets them next, and for whom they are kept."""

    def page(self) -> dict[str, Any]:
        found = tombstones_page(self.incident, self.asked(), self._marks[-1])
        return {**found, "number": len(self._marks), "story": None}

    def _mark(self, row: dict[str, Any]) -> Any:
        return row["mark"]

    def as_text(self) -> str:
        """The page as a table."""
        heads = ["DELETED", "ENTRY", "BY", *self.data["servers"], "FORGOTTEN NEXT BY", "STILL NEEDED BY"]
        rows = [
            [
                row["at"] or row["position"],
                row["target"] or row["entry"],
                row["made_on"] or row["origin"],
                *(cell["says"] for cell in row["cells"]),
                ", ".join(row["reapable"]) or "nobody",
                ", ".join(row["held_by"]) or "nobody",
            ]
            for row in self.data["rows"]
        ]
        return aligned([heads, *rows]) if rows else "no tombstone is kept"


class FloorGrid(_OfRemembered, drawn_by="floors"):
    """How far above the floor each server stands, who holds it, and of whom nobody knows. Click a cell for what may go."""

    def drawn(self) -> dict[str, Any]:
        """The grid, of the chosen origin or of all."""
        self._first, self._whole = 0, floor_grid(self.incident, self.suffix, self.only("origin"))
        return self._page()

    def _page(self) -> dict[str, Any]:
        rows = self._whole["rows"]
        about = {"first": self._first, "total": len(rows), "picked": None}
        return {**self._whole, "rows": rows[self._first : self._first + _SERVERS_SHOWN], **about}

    def on_page(self, message: dict[str, Any]) -> None:
        """Leaf through the servers."""
        if not self.data:
            return
        last = max(0, (len(self._whole["rows"]) - 1) // _SERVERS_SHOWN * _SERVERS_SHOWN)
        by = 1 if message.get("by") == 1 else -1
        self._first = min(max(0, self._first + by * _SERVERS_SHOWN), last)
        self.data = self._page()

    def on_pick(self, message: dict[str, Any]) -> None:
        """What a server lists of an origin, and what of that may go."""
        row = one_of(self.data.get("rows", []), message, "row")
        cell = one_of(row["cells"], message, "column")
        head = self.data["origins"][message["column"]]
        self.data = {**self.data, "picked": {"server": row["server"], "origin": head["origin"], **cell}}

    def as_text(self) -> str:
        """The grid as aligned text, and why no floor is certain."""
        heads = ["SERVER", *(one["origin"] for one in self.data["origins"])]
        floors = [
            "the floor",
            *(
                (one["floor_at"] or one["floor"] or "nothing") + ("" if one["certain"] else " at most")
                for one in self.data["origins"]
            ),
        ]
        rows = [
            [
                f"the server of {row['origin']}" if row["origin"] else row["server"],
                *(cell["says"] for cell in row["cells"]),
            ]
            for row in self.data["rows"]
        ]
        return "\n".join([aligned([heads, floors, *rows]), *self.data["doubts"]])
