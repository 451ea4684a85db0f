"""What was missed: the table of changes with the whole story of each, and the logs side by side on a line of time."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident, one_of
from workbench.diagnosis.incident import Incident
from workbench.model import Problem
from workbench.rules.verdicts import SAYS
from workbench.text_table import aligned
from workbench.topology.history import moment_of
from workbench.views.changelog_timeline import changes_between, lanes

_PAGE = 50
_LISTS = ("missing", "unknown", "pending", "stranded")
_AT = {"missing": "position", "stranded": "position", "unknown": "from", "pending": "first"}


def story_of(incident: Incident, position: str) -> dict[str, Any]:
    """The story of one change as `js/story.js` shows it."""
    told = incident.story(position)
    made = (told["made_at"] or "").replace("T", " ").removesuffix("+00:00")
    return {**told, "made_at": made, "servers": [_of_server(one) for one in told["servers"]]}


def _of_server(one: dict[str, Any]) -> dict[str, Any]:
    proofs = []
    for row in one["evidence"]:
        about = {key: row.get(key) for key in ("table", "snapshot", "file", "offset")}
        rest = {key: value for key, value in row.items() if key not in (*about, "server")}
        proofs.append({**about, "says": ", ".join(f"{key} {value}" for key, value in rest.items())})
    return {**one, "evidence": proofs}


class MissedChanges(OfIncident, drawn_by="story+missed"):
    """The changes that are missing, unknown, pending or stranded, a page at a time. Click one for its whole story."""

    _list, _first = _LISTS[0], 0

    def drawn(self) -> dict[str, Any]:
        """One page of one list, for the chosen server and origin."""
        lists = {name: self._mine(name) for name in _LISTS}
        if self._list not in _LISTS or not lists[self._list]:
            self._list = next((name for name in _LISTS if lists[name]), _LISTS[0])
        rows = lists[self._list]
        self._first = min(self._first, max(0, (len(rows) - 1) // _PAGE * _PAGE))
        whole = self.incident.found["run"]["truncated"]
        return {
            "lists": [{"name": name, "count": len(lists[name]), "of": whole.get(name)} for name in _LISTS],
            "list": self._list,
            "first": self._first,
            "total": len(rows),
            "rows": [self._row(row) for row in rows[self._first : self._first + _PAGE]],
            "story": None,
        }

    def _mine(self, name: str) -> list[dict[str, Any]]:
        server, origin = self.only("server"), self.only("origin")
        return [
            row
            for row in self.incident.found[name]
            if row["suffix"] == self.suffix and server in (None, row["server"]) and origin in (None, row["origin"])
        ]

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        times = {
            f"{key}_at": self.incident.when(row[key])
            for key in ("position", "first", "last", "from", "to")
            if key in row
        }
        lists: dict[str, Any] = {key: ", ".join(row[key]) or "nobody" for key in ("held_by", "suppliers") if key in row}
        words = {"why": row.get("says") or SAYS[row["why"]]} if "why" in row else {}
        if row.get("attribute"):
            words["target"] = f"{row['target']}: {row['attribute']}"
        return {**row, **times, **lists, **words}

    def on_list(self, message: dict[str, Any]) -> None:
        """Show another list."""
        self._list, self._first = str(message.get("name")), 0
        self.data = self.drawn()

    def on_page(self, message: dict[str, Any]) -> None:
        """Go a page on or back."""
        step = 1 if message.get("by") == 1 else -1
        self._first = max(0, self._first + step * _PAGE)
        self.data = self.drawn()

    def on_pick(self, message: dict[str, Any]) -> None:
        """Tell the story of one change; of a stretch, of its first change."""
        row = one_of(self.data["rows"], message)
        position = row.get(_AT[self.data["list"]])
        if not position:
            raise Problem("of this stretch no change is known by name", "", "load more evidence")
        position = self.incident.written(row["origin"], position)
        rows = [{**one, "chosen": index == message["index"]} for index, one in enumerate(self.data["rows"])]
        self.data = {**self.data, "rows": rows, "story": story_of(self.incident, position)}

    def as_text(self) -> str:
        """The page as a table."""
        named = any(row.get("attribute") for row in self.data["rows"])
        heads = (
            "SERVER",
            "ORIGIN",
            self.data["list"].upper(),
            "TARGET",
            *(["ATTRIBUTE"] if named else []),
            "CAUSE",
            "SAYS",
        )
        keys = (
            "server",
            "origin",
            _AT[self.data["list"]],
            "target",
            *(["attribute"] if named else []),
            "cause",
            "says",
        )
        rows = [
            tuple(row.get(key) or row.get("why" if key == "says" else key) or "" for key in keys)
            for row in self.data["rows"]
        ]
        counts = ", ".join(f"{one['count']:,} {one['name']}" for one in self.data["lists"])
        return f"{counts}\n\n{aligned([heads, *rows])}" if rows else counts


class TimeLine(OfIncident, drawn_by="lanes"):
    """The logs of all servers on one line of time, with what is missing in its place. Click a bar for its changes."""

    def drawn(self) -> dict[str, Any]:
        """For the time, the origin and the change that are chosen."""
        made = lanes(
            self.incident,
            self.suffix,
            self.only("origin"),
            self.value("since"),
            self.value("until"),
            self.value("position"),
        )
        self._edges = made.pop("edges", [])
        return {**made, "picked": None}

    def on_pick(self, message: dict[str, Any]) -> None:
        """The changes of one bar."""
        lane = one_of(self.data.get("lanes", []), message, "lane")
        at = message.get("bin")
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < self.data["bins"]:
            raise Problem("that bar is not there any more", "", "run the cell again")
        first, last = moment_of(self.data["from"]), moment_of(self.data["to"])
        begin, end = (first + (last - first) * n / self.data["bins"] for n in (at, at + 1))
        origin = self.only("origin")
        rows = changes_between(self.incident, lane["server"], self.suffix, origin, *self._edges[at : at + 2])
        count = lane["counts"][at] + lane["missing"].get(str(at), 0)  # what is stranded is in its log
        picked = {
            "server": lane["server"],
            "from": f"{begin:%H:%M:%S}",
            "to": f"{end:%H:%M:%S}",
            "rows": rows,
            "count": count,
        }
        self.data = {**self.data, "picked": picked}

    def as_text(self) -> str:
        """For each server the number of changes in its log, and of those that it lacks."""
        rows = [
            (
                one["server"],
                f"{sum(one['counts']):,}",
                f"{sum(one['missing'].values()):,}",
                "yes" if one["log"] else one["no_log"],
            )
            for one in self.data["lanes"]
        ]
        title = f"{self.data['from']} to {self.data['to']}"
        return (
            f"{title}\n\n{aligned([('SERVER', 'IN ITS LOG', 'MISSING', 'ITS LOG WAS COLLECTED'), *rows])}"
            if rows
            else "no time is told"
        )
