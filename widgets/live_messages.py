"""Views whose buttons are heard while a cell runs.

A kernel that knows subshells takes the messages of a page on a thread of their own, and JupyterLab sends them there. But
ipykernel (7.4) then hands each to the shell which sent something over the same comm last: for a view that a running cell
draws anew that is the shell of this cell, which hears nothing before the cell has ended. The hand-over is meant for answers
to what the kernel asked; nothing of ours is one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def heard_meanwhile(view: Any) -> None:
    """Have the messages of this view taken where the page sends them."""
    with suppress(AttributeError):  # no comm, or one that does not hand over: then there is nothing to be done
        view.comm._reply_subshell_for = _where_it_was_sent


def _where_it_was_sent(data: Any, subshell: str | None) -> str | None:
    return subshell
