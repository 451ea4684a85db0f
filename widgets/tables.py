"""Tables that are searched and sorted in the page, of files and rejects: few thousand rows, any text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from itables import widget

from widgets.view import ReadsAsText, style
from workbench.text_table import aligned, one_cell

_MOST_BYTES = 4 << 20
"""What a page still sorts at once; of more, itables shows the first and last rows, and says so."""

_POSITIONS = ("position", "anchor", "min", "max", "first", "last", "claimed_min", "claimed_max")

_LOOKS = Path(widget.__file__).parent / "static" / "widget.css"


class Table(ReadsAsText, widget.ITable):
    """Rows as a table of the page: text escaped, positions in one width, numbers on the right.

    columns      which, and in which order; default: those of the first row
    positions    the columns that hold positions
    """

    _css: Any = _LOOKS.read_text(encoding="utf-8") + style()

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        columns: Sequence[str] | None = None,
        positions: Sequence[str] = _POSITIONS,
    ) -> None:
        self._rows = [dict(row) for row in rows]
        self._names = list(columns) if columns is not None else list(self._rows[0]) if self._rows else []
        cells = [[_cell(row.get(name)) for name in self._names] for row in self._rows]
        frame = pd.DataFrame(cells, columns=[one_cell(name) for name in self._names], dtype=object)
        classes = {name: self._class_of(name, positions) for name in self._names}
        looks = [{"targets": [at], "className": classes[name]} for at, name in enumerate(self._names) if classes[name]]
        super().__init__(
            frame,
            columnDefs=looks,
            showIndex=False,
            allow_html=False,
            maxBytes=_MOST_BYTES,
            classes="display compact nowrap wb",
            scrollX=True,
            order=[],
        )

    def _class_of(self, name: str, positions: Sequence[str]) -> str:
        if name in positions:
            return "dt-left wb-position"
        return "dt-right wb-number" if self._numbers(name) else "dt-left"

    def _numbers(self, name: str) -> bool:
        values = [row[name] for row in self._rows if row.get(name) is not None]
        return bool(values) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)

    def text(self) -> str:
        """The same as plain text."""
        if not self._names:
            return "(no rows)"
        right = [at for at, name in enumerate(self._names) if self._numbers(name)]
        return aligned([self._names, *([row.get(name) for name in self._names] for row in self._rows)], right=right)


def _cell(value: Any) -> Any:
    """Numbers stay numbers, so that they are sorted as such; of text, what a terminal would show."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else one_cell(value)
