"""The report as one page: no script, no request, pictures drawn as static shapes, readable on paper and on a phone.

Charts by Plotly would be 4.8 MB of script, and under this policy Plotly cannot set its own styles (it writes some sixty
warnings of that for one chart); static shapes need no script, and paper and phones show them. Whatever comes from data passes
the escaping of the template: no text is ever marked as safe.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from workbench.diagnosis.diagnosis_text import what_changed
from workbench.report.redaction import LEFT_OUT
from workbench.report.report_text import absence, holders, judged_otherwise
from workbench.safety import printable
from workbench.views.verdict_style import NOTHING, SEVERITIES, VERDICTS

Row = Mapping[str, Any]

WIDE = 480
"""Letters in a picture as wide as a phone can still be read."""
_BOX = 158, 66
_MOST = 16
_LANES = 24
_LEFT, _RIGHT = 8, 8
_KINDS = ("missed", "replaced", "message", "collected", "repair")


def page(report: Row, unfolded: bool = False) -> str:
    """The report as HTML; the same report gives the same text. `unfolded`: for paper, on which nobody opens anything."""
    sheet = style()
    return (
        _environment()
        .get_template("report")
        .render(
            report=report,
            unfolded=unfolded,
            left_out=LEFT_OUT,
            policy=f"default-src 'none'; style-src 'sha256-{_hash(sheet)}'; base-uri 'none'; form-action 'none'",
            maps=[network(one) for one in report["topology"]],
            line=time_line(report["timeline"]),
            shades={name: shade for name, shade in VERDICTS.items() if name != NOTHING},
        )
    )


@cache
def style() -> str:
    """The style sheet, with the colours of the verdicts."""
    colours = "".join(f".v-{name}{{--shade:{shade.colour}}}\n" for name, shade in VERDICTS.items())
    return _file("report.css") + colours


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    # The style sheet is ours and stands in the template: the policy names its hash, so it may not be escaped.
    template = _file("report.html.j2").replace("/* style */", style())
    made = Environment(
        loader=DictLoader({"report": template}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "holders": holders,
        "absence": absence,
        "judged_otherwise": judged_otherwise,
        "what_changed": what_changed,
    }
    made.filters |= {"shade": _shade, "grave": lambda one: one if one in SEVERITIES else NOTHING, "sign": _sign}
    return made


def _shown(value: Any) -> Any:
    """What stands on the page for a value: nothing for None, thousands in groups, letters that act as their escapes."""
    if value is None:
        return ""
    if isinstance(value, (bool, Markup)):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return printable(value) if isinstance(value, str) else value


def _shade(verdict: Any) -> str:
    """A class of ours, whatever the data says."""
    return verdict if verdict in VERDICTS else NOTHING


def _sign(verdict: Any) -> str:
    return VERDICTS[_shade(verdict)].sign


# --- the servers and links


def network(drawn: Row) -> dict[str, Any]:
    """Boxes and arrows of one suffix. Of more than sixteen servers those of which most is to be told."""
    servers, links = _weighty(drawn)
    high = max(330, len(servers) * 66 + 60)
    places = {one["name"]: _place(at, len(servers), high) for at, one in enumerate(servers)}
    arrows = [
        _arrow(one, places[one["supplier"]], places[one["consumer"]])
        for one in links
        if one["supplier"] in places and one["consumer"] in places and one["supplier"] != one["consumer"]
    ]
    boxes = [
        {
            "x": _round(places[one["name"]][0] - _BOX[0] / 2),
            "y": _round(places[one["name"]][1] - _BOX[1] / 2),
            "verdict": one["verdict"],
            "name": _cut(one["name"], 16),
            "says": _cut(_first(one["says"]), 22),
            "more": _cut(one["says"][len(_first(one["says"])) + 2 :], 22),
            "name_fits": _fit(_cut(one["name"], 16), 14, _BOX[0] - 20),
            "says_fits": _fit(_cut(_first(one["says"]), 22), 12.5, _BOX[0] - 16),
            "more_fits": _fit(_cut(one["says"][len(_first(one["says"])) + 2 :], 22), 12.5, _BOX[0] - 16),
            "collected": one["collected"],
        }
        for one in servers
    ]
    heights = [at[1] for at in places.values()] or [0]
    top, low = min(heights) - _BOX[1], max(heights) + _BOX[1]
    return {
        "suffix": drawn["suffix"],
        "servers": drawn["servers"],
        "links": drawn["links"],
        "left": len(drawn["servers"]) - len(servers),
        "view": f"0 {_round(top)} {WIDE} {_round(low - top)}",
        "boxes": boxes,
        "arrows": arrows,
        "width": _BOX[0],
        "height": _BOX[1],
    }


def _first(says: str) -> str:
    """What is gravest: the rest has a line of its own."""
    return says.partition(", ")[0]


def _weighty(drawn: Row) -> tuple[list[Row], list[Row]]:
    order = list(VERDICTS)
    weight = {one["name"]: order.index(_shade(one["verdict"])) % (len(order) - 1) for one in drawn["servers"]}
    kept = set(sorted(weight, key=lambda name: -weight[name])[:_MOST])
    return [one for one in drawn["servers"] if one["name"] in kept], list(drawn["links"])


def _place(at: int, count: int, high: float) -> tuple[float, float]:
    if count == 1:
        return WIDE / 2, high / 2
    turn = 2 * math.pi * at / count - math.pi / 2 - (math.pi / 2 if count == 2 else 0)
    return WIDE / 2 + math.cos(turn) * (WIDE / 2 - _BOX[0] / 2 - 8), high / 2 + math.sin(turn) * (high / 2 - 40)


def _arrow(link: Row, begin: tuple[float, float], end: tuple[float, float]) -> dict[str, Any]:
    """One direction of a pair, a little to its right, so that both are seen; its head as three points."""
    (x0, y0), (x1, y1) = begin, end
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    nx, ny = -uy * 10, ux * 10
    sx, sy = _edge(begin, ux, uy, nx, ny)
    ex, ey = _edge(end, -ux, -uy, nx, ny)
    bx, by = ex - ux * 11, ey - uy * 11
    head = ((ex, ey), (bx - uy * 5, by + ux * 5), (bx + uy * 5, by - ux * 5))
    words = _cut(link["label"], 20)
    # Near the beginning, so that those of both directions stand apart; beside each other there is room in the middle only.
    along, apart = (0.5, 1.3) if abs(ux) > 0.9 else (0.4, 1.0)
    tx, ty = sx + (ex - sx) * along + nx, sy + (ey - sy) * along + ny * apart
    width = len(words) * 9.3 + 12
    tx = min(max(tx, width / 2 + 2), WIDE - width / 2 - 2)
    return {
        "verdict": link["verdict"],
        "off": link["enabled"] is False,
        "line": tuple(map(_round, (sx, sy, bx, by))),
        "head": " ".join(f"{_round(x)},{_round(y)}" for x, y in head),
        "words": words,
        "fits": _fit(words, 14, width - 8),
        "x": _round(tx),
        "y": _round(ty),
        "left": _round(tx - width / 2),
        "width": _round(width),
    }


def _edge(middle: tuple[float, float], ux: float, uy: float, nx: float, ny: float) -> tuple[float, float]:
    """Where a line that runs beside the middle of a box leaves it."""
    across = (_BOX[0] / 2 + 5 - math.copysign(nx, nx * ux)) / max(abs(ux), 1e-9)
    up = (_BOX[1] / 2 + 5 - math.copysign(ny, ny * uy)) / max(abs(uy), 1e-9)
    reach = max(0.0, min(across, up))
    return middle[0] + nx + ux * reach, middle[1] + ny + uy * reach


def _cut(text: Any, most: int) -> str:
    text = printable(str(text or "")).replace("\n", " ")
    return text if len(text) <= most else f"{text[: most - 1]}…"


_NARROW = frozenset("abcdefghijklnopqrstuvxyz0123456789ABCEFGHIJKLPRSTXYZ-_.,:;()[]|!'\"/ ")


def _fit(text: str, size: float, room: float) -> float:
    """The length into which a text is pressed that would not fit; 0 for one that does. Nobody knows the font of the reader."""
    long = sum(0.66 if one in _NARROW else 1.0 for one in text) * size
    return _round(room) if long > room else 0


def _round(number: float) -> float:
    """Short numbers, the same everywhere."""
    return round(number, 1)


# --- what happened when


def time_line(told: Row) -> dict[str, Any] | None:
    """One lane for each server of which something is told, one mark for each event. None: there is nothing to draw."""
    placed = [(one, at) for one in told["events"] if (at := _seconds(one["at"])) is not None]
    events, times = [one for one, _ in placed], [at for _, at in placed]
    if not events or min(times) == max(times):
        return None
    begin, end = _reach(times)
    near = (one for one, at in zip(events, times, strict=True) if begin <= at <= end)
    told_of = sorted({one["server"] for one in near if one["server"]})
    names = told_of[:_LANES]
    across = (WIDE - _LEFT - _RIGHT) / (end - begin)

    def x(at: float) -> float:
        return _round(_LEFT + (at - begin) * across)

    lanes = [
        {"name": _cut(name, 40), "fits": _fit(_cut(name, 40), 14, WIDE - 4), "y": _lane(number)}
        for number, name in enumerate(names)
    ]
    low = _lane(len(names))
    marks = [
        {"x": x(at), "y": _lane(names.index(one["server"])) + 18, "kind": one["kind"]}
        for one, at in zip(events, times, strict=True)
        if one["server"] in names and one["kind"] in _KINDS and begin <= at <= end
    ]
    whole = [
        {"x": x(at), "kind": one["kind"]}
        for one, at in zip(events, times, strict=True)
        if one["server"] is None and begin <= at <= end
    ]
    seen = list(dict.fromkeys((one["x"], one["y"], one["kind"]) for one in marks))
    return {
        "wide": WIDE,
        "high": low + 26,
        "low": low,
        "lanes": lanes,
        "marks": [dict(zip(("x", "y", "kind"), one, strict=True)) for one in seen],
        "whole": [dict(one) for one in dict.fromkeys(tuple(one.items()) for one in whole)],
        "ticks": list(_ticks(begin, end, x)),
        "left": len(told_of) - len(names),
        "outside": sum(not begin <= at <= end for at in times),
    }


def _lane(number: int) -> float:
    """Where a lane begins; like all numbers of pictures none of `int`, for these get signs between their thousands."""
    return 34.0 + 46 * number


def _reach(times: Sequence[float]) -> tuple[float, float]:
    """From the first to the last event; one that lies alone, ten times farther off than all others, is left out."""
    ordered = sorted(times)
    begin, end = ordered[0], ordered[-1]
    while len(ordered) > 4 and ordered[1] - ordered[0] > 10 * max(1.0, end - ordered[1]):
        ordered = ordered[1:]
        begin = ordered[0]
    while len(ordered) > 4 and ordered[-1] - ordered[-2] > 10 * max(1.0, ordered[-2] - begin):
        ordered = ordered[:-1]
        end = ordered[-1]
    room = max(1.0, (end - begin) * 0.02)
    return begin - room, end + room


_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def _ticks(begin: float, end: float, x: Any) -> Iterator[dict[str, Any]]:
    step: float = next((one for one in _STEPS if (end - begin) / one <= 5), 86400)
    while (end - begin) / step > 5:
        step *= 2
    at, days = math.ceil(begin / step) * step, end - begin > 86400
    while at <= end:
        moment = datetime.fromtimestamp(at, tz=_UTC)
        place = min(max(x(at), 30), WIDE - 30)
        yield {"x": place, "at": x(at), "says": f"{moment:%m-%d %H:%M}" if days else f"{moment:%H:%M:%S}"}
        at += step


def _seconds(at: str) -> float | None:
    """None for what is no time that has a place on a line: a journal is a file that anybody may have written."""
    try:
        moment = datetime.fromisoformat(f"{at}+00:00")
    except ValueError:
        return None
    return moment.timestamp() if 1900 < moment.year < 9000 else None


_UTC = datetime.fromisoformat("2000-01-01T00:00:00+00:00").tzinfo
