"""Who lacks what from whom: the map of servers and links, the grid of servers and origins, and the findings."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident, one_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.findings_text import findings_text
from workbench.text_table import aligned
from workbench.views.overview import grid, mesh, pair_of
from workbench.views.verdict_style import SEVERITIES, VERDICTS

_CHANGES_SHOWN = 50
_FINDINGS_SHOWN = 50
_SERVERS_SHOWN = 25
_NO_LINKS = "No collected file tells of a link: who would send what to whom is in the matrix of `workbench diagnose`."


class MeshMap(OfIncident, drawn_by="mesh"):
    """The servers and the links between them, with what would go over each link now. Click a link for the reasons."""

    def drawn(self) -> dict[str, Any]:
        """The map, and the pair that was clicked."""
        return {**mesh(self.incident, self.suffix), "shades": _shades(), "pair": None, "no_links": _NO_LINKS}

    def on_pick(self, message: dict[str, Any]) -> None:
        """Show the reasons of one link."""
        link = one_of(self.data.get("links", []), message)
        nothing = {"title": f"{link['supplier']} → {link['consumer']}", "decision": link["says"]}
        pair = self.reasons(link["supplier"], link["consumer"])
        self.data = {**self.data, "pair": pair or nothing, "chosen": message["index"], "says": link["says"]}

    def reasons(self, supplier: str, consumer: str) -> dict[str, Any] | None:
        """One pair in words, linked or not; None: one of the two has no vector."""
        return pair_of(self.incident, supplier, consumer, self.suffix)

    def as_text(self) -> str:
        """A line for each server and each link."""
        servers = [(one["name"], one["verdict"], one["says"]) for one in self.data["servers"]]
        links = [(f"{one['supplier']} -> {one['consumer']}", one["name"], one["says"]) for one in self.data["links"]]
        tables = [[("SERVER", "VERDICT", "CHANGES"), *servers], [("LINK", "NAME", "WHAT GOES OVER IT"), *links]]
        told = [aligned(rows) for rows in tables if len(rows) > 1]
        return "\n\n".join(told if links else [*told, _NO_LINKS])


class VectorGrid(OfIncident, drawn_by="grid"):
    """What each server claims of each origin, coloured by the verdict. Click a cell for its changes."""

    def drawn(self) -> dict[str, Any]:
        """The grid, and the cell that is chosen by the inputs, if one is."""
        self._first, self._whole = 0, grid(self.incident, self.suffix)
        server, origin = self.only("server"), self.only("origin")
        there = any(row["server"] == server for row in self._whole["rows"])
        return self._page(self._cell(server, origin) if server and origin and there else None)

    def _page(self, cell: dict[str, Any] | None) -> dict[str, Any]:
        rows = self._whole["rows"]
        page = rows[self._first : self._first + _SERVERS_SHOWN]
        return {
            **self._whole,
            "rows": page,
            "first": self._first,
            "total": len(rows),
            "shades": _shades(),
            "cell": cell,
        }

    def on_page(self, message: dict[str, Any]) -> None:
        """Leaf through the servers."""
        last = max(0, (len(self._whole["rows"]) - 1) // _SERVERS_SHOWN * _SERVERS_SHOWN)
        by = 1 if message.get("by") == 1 else -1
        self._first = min(max(0, self._first + by * _SERVERS_SHOWN), last)
        self.data = self._page(None)

    def on_pick(self, message: dict[str, Any]) -> None:
        """Show the changes of one cell; where the notebook has these inputs, they follow."""
        row = one_of(self.data.get("rows", []), message, "row")
        head = one_of(self.data.get("origins", []), message, "column")
        self.data = {**self.data, "cell": self._cell(row["server"], head["origin"])}

    def _cell(self, server: str, origin: str) -> dict[str, Any]:
        incident = self.incident
        cell = incident.cell(server, origin, self.suffix)
        for key in ("min", "max", "first", "last"):
            cell[f"{key}_at"] = incident.when(cell[key])
        for name, ends in (("missing", ("position",)), ("stranded", ("position",)), ("pending", ("first", "last"))):
            rows = cell[name]
            cell[f"{name}_count"] = sum(row.get("count", 1) for row in rows)
            cell[name] = [
                {**row, **{f"{end}_at": incident.when(row[end]) for end in ends}} for row in rows[:_CHANGES_SHOWN]
            ]
        counts = [row["count"] for row in cell["unknown"]]
        cell["unknown_count"] = sum(one or 0 for one in counts)
        cell["unknown_says"] = f"{len(counts):,} stretches" + (", not all of known length" if None in counts else "")
        cell["unknown"] = cell["unknown"][:_CHANGES_SHOWN]
        return cell

    def as_text(self) -> str:
        """The grid as aligned text."""
        heads = ["SERVER", *(one["origin"] for one in self.data["origins"])]
        rows = [
            [row["server"], *(f"{one['max'] or '-'} {one['says']}" for one in row["cells"])]
            for row in self.data["rows"]
        ]
        return aligned([heads, *rows]) if rows else "No server was collected."


class Findings(OfIncident, drawn_by="findings"):
    """The verdict in one line, then the findings, worst first, each with what to do and what that may cost."""

    def drawn(self) -> dict[str, Any]:
        """Of the chosen suffix, server and origin only, if they are chosen."""
        found = self.incident.found
        mine = self._mine()
        shown = [{**one, "verdict": SEVERITIES[one["severity"]]} for one in mine[:_FINDINGS_SHOWN]]
        for one in shown:
            positions = dict.fromkeys(one["items"][:5])
            one["items"] = [{"position": item, "at": self.incident.when(item)} for item in positions]
        snapshot = found["case"]["snapshots"][-1]
        return {"headline": headline(found), "snapshot": snapshot, "findings": shown, "more": len(mine) - len(shown)}

    def _mine(self) -> list[dict[str, Any]]:
        chosen = {"server": self.only("server"), "origin": self.only("origin"), "suffix": self.suffix}
        return [
            one
            for one in self.incident.found["findings"]
            if all(value is None or one[key] in (None, value) for key, value in chosen.items())
        ]

    def as_text(self) -> str:
        """As `workbench diagnose` tells it."""
        return f"{self.data['headline']}\n\n{findings_text(self._mine())}".rstrip()


def _shades() -> list[dict[str, str]]:
    return [{"name": name, "says": shade.says} for name, shade in VERDICTS.items()]
