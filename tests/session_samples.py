"""Random send sessions in which everything happens, as inputs of the kinds `session` and `design_session` at once."""

from __future__ import annotations

from random import Random
from typing import Any


def session_inputs(changes: list[str], supplier: list[str], consumer: list[str], **others: Any) -> dict[str, Any]:
    """The inputs of a session; of a RUV element, `rid min max` is enough."""
    return {
        "supplier_changelog": changes,
        "start_iteration_records": [],
        "supplier_ruv": [f"{{replica {rid} ldap://r{rid}}} {ends}" for rid, _, ends in map(_parted, supplier)],
        "consumer_ruv": [f"{{replica {rid} ldap://r{rid}}} {ends}" for rid, _, ends in map(_parted, consumer)],
        "consumer_replica_id": 65535,
        "consumer_rid_policy": "ignore",
        "records_per_buffer": 1000,
        "ignore_missing_change": "never",
        "cleaned_replica_ids": [],
        "events_after_n_changes_sent": {},
        **others,
    }


def _parted(element: str) -> tuple[str, str, str]:
    return element.partition(" ")


def add(csn: str) -> dict[str, str]:
    return {"do": "changelog_add", "csn": csn}


def delete(csn: str) -> dict[str, str]:
    return {"do": "changelog_delete", "csn": csn}


def advance(csn: str) -> dict[str, str]:
    return {"do": "supplier_ruv_advance", "csn": csn}


def csn(time: int, rid: int, sequence: int = 0) -> str:
    return f"{0x66000000 + time:08x}{sequence:04x}{rid:04x}0000"


CORNERS = {
    "endless": session_inputs([csn(1, 1, 1)], [f"1 {csn(1, 1, 1)} {csn(1, 1)}"], []),
    "sent twice": session_inputs(
        [csn(1, 1, 1), csn(2, 1)],
        [f"1 {csn(1, 1)} {csn(1, 1)}"],
        [],
        ignore_missing_change="always",
        events_after_n_changes_sent={
            "1": [add(csn(1, 1)), advance(csn(2, 1))],
            "4": [add(csn(3, 1)), advance(csn(3, 1))],
        },
    ),
    "promotable only behind one before the start": session_inputs(
        [csn(1, 1, 1), csn(1, 2, 1), csn(1, 1, 2)],
        [f"1 {csn(1, 1)} {csn(1, 1)}", f"2 {csn(1, 2, 1)} {csn(1, 2, 1)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}"],
    ),
    "a first CSN that moves down in mid-session": session_inputs(
        [csn(1, 1), csn(5, 1)],
        [f"1 {csn(1, 1)} {csn(5, 1)}", f"2 {csn(3, 2)} {csn(4, 2)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}"],
        events_after_n_changes_sent={"1": [add(csn(2, 2)), advance(csn(2, 2)), add(csn(6, 2)), advance(csn(6, 2))]},
    ),
    "equal anchors": session_inputs(
        [csn(1, 2), csn(2, 2), csn(3, 1)],
        [f"1 {csn(1, 1)} {csn(3, 1)}", f"2 {csn(1, 2)} {csn(2, 2)}"],
        [f"1 {csn(1, 2)} {csn(1, 2)}"],
    ),
    "a mark is deleted and a change of its position written": session_inputs(
        [csn(3, 1)],
        [f"1 {csn(1, 1)} {csn(3, 1)}", f"2 {csn(2, 2)} {csn(2, 2)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}"],
        start_iteration_records=[csn(1, 1), csn(2, 2)],
        records_per_buffer=1,
        events_after_n_changes_sent={"0": [delete(csn(2, 2)), add(csn(2, 2))]},
    ),
    "the only change of an unknown origin is deleted": session_inputs(
        [csn(2, 1), csn(5, 2)],
        [f"1 {csn(1, 1)} {csn(2, 1)}", f"2 {csn(5, 2)} {csn(5, 2)}"],
        [f"1 {csn(1, 1)} {csn(1, 1)}"],
        records_per_buffer=1,
        events_after_n_changes_sent={"1": [delete(csn(5, 2)), advance(csn(8, 3))]},
    ),
    "the last CSNs of a second beside those of the helper records": session_inputs(
        ["0000006effffffffffff", "0000006fffffffffffff", "000000ddffffffffffff", "000000deffffffffffff", csn(1, 65535)],
        [f"65535 0000006effffffffffff {csn(1, 65535)}"],
        [],
        consumer_replica_id=9,
    ),
}
"""Sessions that turn on one detail, and that random ones hardly ever meet."""

HELPERS = ["0000006f000000000000", "000000de000000000000", "0000006f000100010000", "000000de000000020000"]
NEIGHBOURS = ["0000006e000000010000", "00000070000000020000", "000000df000000010000", "0000014d000000000000"]
"""Times beside those of the helper records, and the helper record that the server does not know for one."""


def random_session(random: Random) -> dict[str, Any]:
    """Few times and few sequence numbers, so that changes of one second, chains and equal seconds come by themselves."""
    rids = random.sample([1, 2, 3, 10, 65535], random.randint(1, 4))
    times = random.randint(2, 9)

    def csn(rid: int | None = None) -> str:
        time = 0x66000000 + random.randrange(times)
        sequence, sub = random.choice([0, 0, 1, 2, 3]), random.choice([0, 0, 0, 0, 1, 2])
        if random.random() < 0.02:
            time, sequence = 0xFFFFFFFF, random.choice([0xFFFE, 0xFFFF])
        elif random.random() < 0.02:
            time, sequence = 0x66000000 + random.randrange(times), random.choice([0xFFFF, 0x00FF, 0x0100])
        return f"{time:08x}{sequence:04x}{rid or random.choice(rids):04x}{sub:04x}"

    changes = {csn() for _ in range(random.randint(1, 24))}
    if random.random() < 0.15:
        changes |= set(random.sample(HELPERS + NEIGHBOURS, 2))

    def element(rid: int) -> tuple[str, str] | None:
        mine = sorted(change for change in changes if int(change[12:16], 16) == rid)
        ends = [random.choice(mine) if mine and random.random() < 0.9 else csn(rid) for _ in range(2)]
        low, high = min(ends), max(ends)
        if mine and random.random() < 0.6:
            low = min(mine[0], high)
        if random.random() < 0.02:
            low, high = high, low
        if random.random() < 0.01:
            low = high = csn()
        elif random.random() < 0.02:
            low, high = random.choice([("-", high), (low, "-")])
        return None if random.random() < 0.1 else (low, high)

    def ruv(among: list[int], left_out: float) -> dict[int, tuple[str, str] | None]:
        return {rid: element(rid) for rid in random.sample(among, len(among)) if random.random() > left_out}

    def values(ruv: dict[int, tuple[str, str] | None]) -> list[str]:
        start = "{replicageneration} 65ffffff000000010000"
        return [
            start,
            *(
                f"{{replica {rid} ldap://r{rid}}}" + "".join(f" {end}" for end in ends or ())
                for rid, ends in ruv.items()
            ),
        ]

    supplier = ruv(rids, 0.05)
    consumer = ruv([*rids, 77], 0.2)
    if random.random() < 0.5:  # behind in most, like a consumer that is simply late
        consumer |= {
            rid: (ends[0], max(ends[0], min(ends[1], csn(rid))))
            for rid, ends in supplier.items()
            if ends and "-" not in ends and rid in consumer
        }
    marks = []
    if random.random() < 0.15:  # a changelog made anew: dummies at the maxima, and what came since
        marks = [ends[1] for ends in supplier.values() if ends and ends[1] != "-" and random.random() < 0.9]
        changes = {change for change in changes if not marks or change > min(marks)}
    elif random.random() < 0.5:
        changes -= set(random.sample(sorted(changes), min(len(changes), random.randint(1, 3))))
    known = sorted(changes) or [csn()]

    def happening() -> list[dict[str, str]]:
        rid = random.choice([*rids, 9])
        kind = random.random()
        if kind < 0.3:  # what a busy supplier does: a change, and the vector moves with it
            new = csn(rid)
            return [{"do": "changelog_add", "csn": new}, {"do": "supplier_ruv_advance", "csn": new}]
        do = "changelog_add" if kind < 0.5 else "changelog_delete" if kind < 0.75 else "supplier_ruv_advance"
        return [{"do": do, "csn": random.choice(known) if random.random() < 0.5 else csn(rid)}]

    events: dict[str, list[dict[str, str]]] = {}
    if random.random() < 0.6:
        for _ in range(random.randint(1, 6)):
            events.setdefault(str(random.randint(0, 7)), []).extend(happening())
    return {
        "supplier_changelog": random.sample(sorted(changes), len(changes)),
        "start_iteration_records": marks,
        "supplier_ruv": values(supplier),
        "consumer_ruv": values(consumer),
        "consumer_replica_id": random.choice([*rids, 65535]),
        "consumer_rid_policy": random.choice(["ignore", "include"]),
        "records_per_buffer": random.choice([1, 2, 3, 4, 5, 100]),
        "ignore_missing_change": random.choice(["never", "once", "always"]),
        "cleaned_replica_ids": [rid for rid in rids if random.random() < 0.08],
        "events_after_n_changes_sent": events,
    }
