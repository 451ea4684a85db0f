"""Plain text for terminals and files: aligned columns, and CSV that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.safety import printable


def one_cell(value: Any) -> str:
    """A value as one cell of a table: a line end in a file's name must not look like a further row."""
    return "" if value is None else printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def csv_text(rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> str:
    """CSV that a spreadsheet shows as text: a cell that begins like a formula gets a quote in front.

    The columns are those of the first row; give them where a table without rows shall have a head.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or (list(rows[0]) if rows else []), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {key: one_cell(value) for key, value in row.items()}
        writer.writerow({key: f"'{cell}" if cell[:1] in tuple("=+-@\t") else cell for key, cell in cells.items()})
    return out.getvalue()


def aligned(rows: Iterable[Sequence[Any]], right: Sequence[int] = ()) -> str:
    """Rows of cells as aligned text."""
    cells = [[one_cell(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        line = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)
