"""The codes of findings that only Kanidm has."""

from __future__ import annotations

from workbench.model import Code

CODES = {
    "REFRESH_REQUIRED": Code("a consumer is behind what its suppliers still remember", ("warning", "error")),
    "SUPPLIER_BEHIND": Code(
        "a supplier is behind what its consumer still remembers, and supplies nothing", ("warning", "error")
    ),
    "VERSIONS_DIFFER": Code(
        "servers are of different versions: nothing goes between them until all are of one", ("warning",)
    ),
    "DIVERGED": Code("of two servers each is behind what the other one remembers, of different origins", ("error",)),
    "NO_OVERLAP": Code("two servers have no origin in common that is still remembered", ("warning", "error")),
    "STALE_ORIGIN": Code(
        "an origin of which nothing came for longer than the window still stands in vectors", ("info", "warning")
    ),
    "TOMBSTONE_REAPABLE": Code("tombstones are past the window: the next purge forgets them", ("info",)),
    "TOMBSTONE_HELD": Code(
        "tombstones are past the window, and servers are without them: who holds the floor", ("warning",)
    ),
    "ENTRY_CONFLICT": Code("an entry was made on two servers at once, and one of the two was set aside", ("warning",)),
    "IDLE_ORIGIN_JUMP": Code(
        "an origin was quiet for longer than the window: its range jumps over what nobody remembers", ("warning",)
    ),
}
