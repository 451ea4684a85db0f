"""Charts over time, by Plotly: how the vectors grew, how far the links were behind. The only importer of plotly.

Plotly takes some markup in texts for its own. What comes from data is escaped here, and nowhere else.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from workbench.model import System
from workbench.safety import printable

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#f0e442")
_DASHES = ("solid", "dash", "dot", "dashdot")
_POINTS = 5_000
"""Of one line: more would not be seen, and would be sent to the page."""


def vectors_figure(system: System, grown: pa.Table) -> go.Figure:
    """How the vectors grew (`vectors_over_time`): across, when a server had come to a position; up, when that was made.

    A line that leaves the others is a server that stopped to receive; one that falls was restored or initialised.
    """
    figure = _figure("time, by each server's own clock (UTC)", "made, by the clock of its origin (UTC)")
    rows = grown.to_pylist()
    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        series.setdefault((row["server"], row["origin"]), []).append(row)
    servers = list(dict.fromkeys(server for server, _ in series))
    origins = sorted({origin for _, origin in series}, key=lambda name: (len(name), name))
    for (server, origin), points in sorted(series.items()):
        shown = points[-_POINTS:]
        made = [system.moment(system.typed(row["position"]) or "") for row in shown]
        if not any(made):
            continue
        figure.add_scatter(
            x=[row["at"] for row in shown],
            y=made,
            name=_text(f"{server}: origin {origin}"),
            mode="lines+markers",
            line={
                "shape": "hv",
                "width": 1.5,
                "color": _COLOURS[servers.index(server) % len(_COLOURS)],
                "dash": _DASHES[origins.index(origin) % len(_DASHES)],
            },
            marker={"size": 4},
            text=[_text(f"{row['position']} by {row['evidence']}") for row in shown],
            hovertemplate="%{text}<br>%{x}<extra>%{fullData.name}</extra>",
        )
    return figure


def as_output(figure: go.Figure) -> dict[str, Any]:
    """The figure as the output of a cell, as JSON has it."""
    shown = {**json.loads(figure.to_json()), "config": {"displaylogo": False}}
    return {"application/vnd.plotly.v1+json": shown}


def _figure(across: str, up: str) -> go.Figure:
    """An empty chart that suits light and dark pages."""
    figure = go.Figure()
    grey = "#888888"
    axis = {"gridcolor": "rgba(136,136,136,0.25)", "zeroline": False, "linecolor": grey, "automargin": True}
    figure.update_layout(
        height=380,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": grey, "size": 12},
        legend={"orientation": "h", "y": -0.25},
        hoverlabel={"font": {"family": "monospace"}},
        xaxis={**axis, "title": across},
        yaxis={**axis, "title": up},
        showlegend=True,
    )
    return figure


def _text(text: str) -> str:
    """Text of data as Plotly shows it: `<b>` is three letters and no bold type, and what stands between `$` no formula.

    Setting a formula can take the page for ever.
    """
    return escape(printable(text)[:200], quote=False).replace("$", "&#36;")
