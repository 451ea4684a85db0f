"""The story of one change as text for a terminal, server by server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workbench.diagnosis.pair_matrix_text import why_it_fails
from workbench.text_table import one_cell

Row = Mapping[str, Any]


def story_text(told: Row) -> str:
    """The story of one change, server by server."""
    made = datetime.fromisoformat(told["made_at"]) if told["made_at"] else None
    when = f", made {made:%Y-%m-%d %H:%M:%S} UTC by its origin's clock" if made else ""
    where = f" on {', '.join(told['made_on'])}" if told["made_on"] else ""
    lines = [
        one_cell(f"{told['position']} of origin {told['origin']}{where}{when}"),
        one_cell(f"{told['operation'] or 'a change'} of {told['target'] or 'an unknown target'}"),
    ]
    for one in told["servers"]:
        lines += ["", one_cell(f"{one['server']}: {one['verdict'].upper()} - {one['says']} ({one['rule']})")]
        for row in one["evidence"]:
            said = ", ".join(f"{key} {value}" for key, value in row.items() if key not in _WHERE)
            lines.append(f"    {one_cell(row['snapshot'])}/{one_cell(row['file'])}:{row['offset']}  {one_cell(said)}")
        for row in one["suppliers"]:
            link = f" over {row['link']}" if row["link"] else " (no link)"
            off = ", the link is disabled" if row["link_enabled"] is False else ""
            off = f", the link fails ({why_it_fails(row)})" if row.get("link_failing") else off
            does = row["outcome"] or "does not read it"
            lines.append(
                one_cell(f"    {row['supplier']}{link}: {row['decision'].replace('_', ' ')}, {does}{off}: {row['why']}")
            )
    return "\n".join(lines)


_WHERE = frozenset({"server", "table", "snapshot", "file", "offset"})
