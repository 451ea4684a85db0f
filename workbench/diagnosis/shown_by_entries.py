"""Missing changes that no log has any more, where the entries of other servers show what they did.

c   its clients removed uid=base-10 while replication was off; a, b and h were filled from c
r   still has uid=base-10, which the change 6b0a184a000700010000 added; it is read-only, and feeds no other server
No session and no initialisation brings it back: what r shows of it is written once more on a supplier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def shown_by(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The servers whose entries show what these missing changes did that no log has, but for those that no entry shows."""
    shown = [{*row["shown_by"]} for row in rows if not row["held_by"] and row.get("shown_by")]
    return sorted(set[str].intersection(*shown)) if shown else []


def not_supplied(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> str:
    """That no log has some of these changes, and who shows them all the same; empty: each is in a log."""
    gone = sum(1 for row in rows if not row["held_by"])
    if not gone:
        return ""
    if shown := shown_by(rows):
        does, names = "shows" if len(shown) == 1 else "show", listed(shown)
        count = sum(1 for row in rows if not row["held_by"] and row.get("shown_by"))
        it = "it" if gone == 1 else "they" if count == gone else f"{count:,} of these"
        keep = f": do not {context.topology.system.refill} {names} before that" if len(shown) == 1 else ""
        return f"no log has {gone:,} of them, and the data of {names} {does} what {it} did{keep}"
    return supplied_by_none(context, rows[0]["suffix"], gone, " of them")


def supplied_by_none(
    context: DetectorContext, suffix: str | None, count: int, of_them: str = "", unread_log: bool = False
) -> str:
    """That no log has some changes, or no pull brings them; what was not collected may have them."""
    if context.topology.pulling:
        return f"no pull brings {counted(count)}{of_them or ' of them'}"
    who = "in no collected log" if unread_log or context.not_collected(suffix) else "in no log any more"
    return f"{counted(count)}{of_them} {'is' if count == 1 else 'are'} {who}"


def clients_first(context: DetectorContext, server: str, suffix: str | None) -> Iterator[Mapping[str, str | None]]:
    """What comes first on a server that took changes while replication was off: clients may have removed what it lacks."""
    if took := context.unrecorded.get((server, suffix)):
        yield step(
            f"do what REPLICATION_WAS_OFF says of {server} first",
            f"{took}: what differs or is lacking there may be what clients wrote and removed, and right",
        )
