"""Random send sessions in which everything happens, as inputs of the kinds `session` and `design_session` at once."""

from __future__ import annotations

from random import Random
from typing import Any

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
        return None if random.random() < 0.1 else (low, high)

    def ruv(among: list[int], left_out: float) -> dict[int, tuple[str, str] | None]:
        return {rid: element(rid) for rid in random.sample(among, len(among)) if random.random() > left_out}

    def values(ruv: dict[int, tuple[str, str] | None]) -> list[str]:
        start = "{replicageneration} 65ffffff000000010000"
        return [start, *(f"{{replica {rid} ldap://r{rid}}}" + "".join(f" {end}" for end in ends or ()) for rid, ends in ruv.items())]

    supplier = ruv(rids, 0.05)
    consumer = ruv([*rids, 77], 0.2)
    if random.random() < 0.5:  # behind in most, like a consumer that is simply late
        consumer |= {rid: (ends[0], max(ends[0], min(ends[1], csn(rid)))) for rid, ends in supplier.items() if ends and rid in consumer}
    marks = []
    if random.random() < 0.15:  # a changelog made anew: dummies at the maxima, and what came since
        marks = [ends[1] for rid, ends in supplier.items() if ends and random.random() < 0.9]
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
