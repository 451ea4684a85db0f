"""What every log of a stream would send to every other one: the rows of the matrix of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.replication.stream.rules.streams import UNRELATED, WHY_UNKNOWN
from workbench.rules.send_session import NOTHING, REFUSED, SEND, SENT

if TYPE_CHECKING:
    from workbench.engine.stream_diff import Compared
    from workbench.replication.stream.diagnosis.log_comparison import Streams


def pairs_of(streams: Streams) -> Iterator[dict[str, Any]]:
    """What every log would send to every other one: what it holds behind the last transaction that both have."""
    show, names = streams.shown.system.show, sorted(streams.logs)
    for supplier in names:
        for consumer in names:
            if supplier == consumer:
                continue
            to_send: dict[str, dict[str, Any]] = {}
            both: list[Compared] = []
            anchors: list[tuple[int, str]] = []
            for origin in sorted(streams.logs[supplier].sums.keys() & streams.logs[consumer].sums.keys()):
                one = streams.between(supplier, consumer, origin)
                both.append(one)
                if one.shared and one.shared.last:
                    anchors.append((one.shared.covers, one.shared.last))
                if one.first and one.last:
                    to_send[origin] = {"count": one.counts["behind"], "first": show(one.first), "last": show(one.last)}
            anchor = max(anchors, default=(0, None))[1]
            row: dict[str, Any] = {"supplier": supplier, "consumer": consumer, "suffix": None, "link": None}
            row |= {"link_enabled": None, "rules": "stream", "would_contact": None, "unrelated": False, "others": {}}
            row |= {
                "decision": SEND if to_send else NOTHING,
                "anchor": anchor and show(anchor),
                "anchor_included": False,
            }
            row |= {"anchor_class": None, "anchor_class_assumed": False, "delivers": True}
            row["reasons"] = [_reason(to_send, anchor)]
            if both and all(one.difference.unrelated for one in both):
                row |= {"decision": REFUSED, "unrelated": True}
                row["reasons"] = [{"rule": UNRELATED, "says": WHY_UNKNOWN[UNRELATED], "values": {}}]
            row["stop"] = {origin: one["last"] for origin, one in to_send.items()}
            row["counts"] = {SENT: sum(one["count"] for one in to_send.values())} if to_send else {}
            yield row | {"to_send": to_send}


def _reason(to_send: Mapping[str, Any], anchor: str | None) -> dict[str, Any]:
    if anchor is None:
        return {"rule": "nothing_shared", "says": "the logs share no transaction", "values": {}}
    if to_send:
        return {"rule": "behind", "says": "transactions follow the last one that both have", "values": {}}
    return {"rule": "at_the_end", "says": "nothing follows the last transaction that both have", "values": {}}
