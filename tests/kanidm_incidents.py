"""Small incidents of Kanidm: a backup of each server, as `kanidmd database backup` writes them. Times are seconds of 2026."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kanidm_samples import DAY, DOMAIN, Cid, Entry, backup, entry_id

Files = Mapping[str, bytes]

OTHER_DOMAIN = DOMAIN.replace("e8", "aa")
RUV: list[Cid] = [(time, name) for time in (0, 100) for name in "abc"]
BASE = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(6)}
LATE = 20 * DAY
CUT = LATE - 7 * DAY
"""The end of the window of a server that wrote at LATE: what is older goes at its next purge."""


def mail(*numbers: int, cid: Cid) -> dict[int, Entry]:
    """The entries, the mail of some changed last by this CID."""
    return {**BASE, **{number: Entry((0, "a"), {"mail": cid}) for number in numbers}}


def files(**backups: dict[str, Any]) -> Files:
    return {f"{name}.json": json.dumps(one).encode() for name, one in backups.items()}


def alike(names: str, now: int, ruv: Sequence[Cid], entries: Mapping[int, Entry]) -> dict[str, Any]:
    return {name.upper(): backup(name, now, ruv, entries) for name in names}


def config(name: str, **partners: str) -> bytes:
    """A server.toml; partners by name: `pull`, `allow-pull`, `mutual-pull`."""
    text = f'[replication]\norigin = "repl://{name}.example.com:8444"\n'
    for partner, kind in partners.items():
        text += f'[replication."repl://{partner}.example.com:8444"]\ntype = "{kind}"\n'
    return text.encode()


def mesh(names: str, refreshes: str = "") -> Files:
    """Each pulls from each; those in `refreshes` take all data anew by themselves."""
    found = {}
    for name in names:
        text = config(name, **{other: "mutual-pull" for other in names if other != name}).decode()
        automatic = 'type = "mutual-pull"\nautomatic_refresh = true\n'
        found[f"{name.upper()}.server.toml"] = (
            text.replace('type = "mutual-pull"\n', automatic) if name in refreshes else text
        ).encode()
    return found


def _cut(one: dict[str, Any]) -> bytes:
    """A backup of which the end was not copied: within the fourth entry."""
    text = json.dumps(one)
    return text[: text.index(entry_id(4)) + 20].encode()


GONE = {**BASE, 3: Entry(gone=(100, "a"))}
KEPT: list[Cid] = [(CUT + 3600, "a"), (LATE, "a"), (CUT + 3600, "b"), (LATE, "b")]
"""What servers remember that ran all the time and purged."""
RUN: list[Cid] = [
    *((0, name) for name in "abc"),
    *((CUT - DAY, name) for name in "abc"),
    (CUT + 3600, "a"),
    (CUT + 3600, "b"),
]
"""Of servers that have not purged since LATE."""
OWN = {**BASE, 5: Entry((0, "a"), {"mail": (90, "c")})}

PURGED = backup(
    "a",
    LATE,
    [(CUT + 3600, "a"), (LATE, "a"), (CUT + 3600, "b"), (LATE - 10, "b")],
    mail(2, cid=(LATE - 5 * DAY, "a")),
)
"""A, which forgot all that is older than the window."""
NOT_PURGED = backup(
    "b",
    LATE - 10,
    [
        *((time, name) for time in (CUT - DAY, CUT + 3600) for name in "ab"),
        (LATE - 5 * DAY, "a"),
        (LATE - 20, "a"),
        (LATE - 10, "b"),
    ],
    mail(2, cid=(LATE - 5 * DAY, "a")),
)
"""B, which purges next and still remembers."""
FROM_C = {5: Entry((0, "a"), {"mail": (LATE, "c")})}
BEHIND: list[Cid] = [*((time, name) for time in (CUT - DAY, CUT - 10) for name in "ab"), (LATE - 10, "c")]

INCIDENTS: dict[str, Files] = {
    # --- a server's own changes
    "own_changes_younger_than_its_file": files(
        A=backup("a", 300, [(0, "a"), (0, "b"), (100, "b")], mail(2, cid=(100, "b"))),
        B=backup("b", 90, [(0, "a"), (0, "b")], BASE),
    ),
    "restored_and_refuses": files(
        A=backup("a", 300, [(0, "a"), (0, "b"), (100, "b"), (200, "a")], mail(2, cid=(100, "b"))),
        B=backup("b", 300, [(0, "a"), (0, "b"), (200, "a")], BASE),
    ),
    "restored_among_three": files(
        A=backup("a", 300, [*RUV, (250, "b"), (260, "a")], mail(2, cid=(250, "b"))),
        B=backup("b", 320, RUV, BASE),
        C=backup("c", 300, [*RUV, (250, "b"), (260, "a")], mail(2, cid=(250, "b"))),
    ),
    "two_servers_of_one_uuid": files(
        a=backup("a", 300, [(0, "a"), (0, "b"), (100, "b"), (250, "b")], mail(2, cid=(100, "b"))),
        b=backup("b", 300, [(0, "a"), (0, "b"), (100, "b"), (200, "b")], mail(2, cid=(200, "b"))),
        c=backup("b", 300, [(0, "a"), (0, "b"), (100, "b"), (250, "b")], mail(3, cid=(250, "b"))),
    ),
    # --- what a purge takes
    "consumer_at_the_edge_of_the_next_purge": files(
        A=backup("a", LATE, [*RUN, (LATE, "a")], mail(2, cid=(LATE, "a"))),
        C=backup("c", LATE, [*RUN, (LATE, "c")], BASE),
    ),
    "consumer_behind_the_next_purge": files(
        A=backup("a", LATE, [*RUN, (LATE, "a")], mail(2, cid=(LATE, "a"))),
        C=backup("c", LATE, [*(one for one in RUN if one[0] < CUT), (LATE, "c")], BASE),
    ),
    "tombstone_at_the_cut": files(
        **alike(
            "ab",
            LATE,
            [*(one for one in RUN if one[1] != "c"), (CUT, "a"), (CUT - 1, "a"), (LATE, "a"), (LATE, "b")],
            {**BASE, 1: Entry(gone=(CUT, "a")), 2: Entry(gone=(CUT - 1, "a"))},
        )
    ),
    # --- domains
    "another_domain": files(A=backup("a", 200, RUV, BASE), B=backup("b", 200, RUV, {9: BASE[0]}, OTHER_DOMAIN)),
    "no_domain_in_the_file": files(
        A=backup("a", 200, RUV, BASE),
        B={key: value for key, value in backup("b", 200, RUV, BASE).items() if key != "db_d_uuid"},
    ),
    # --- more of each kind
    "healthy": files(**alike("abc", 200, RUV, BASE)),
    "deletion_missed": files(**alike("ab", 200, RUV, GONE), C=backup("c", 200, RUV, BASE)),
    "change_missed_behind_equal_ranges": files(
        **alike("ab", 200, RUV, mail(1, 2, cid=(100, "b"))), C=backup("c", 200, RUV, mail(1, cid=(100, "b")))
    ),
    "plain_lag": files(
        A=backup("a", 200, [*RUV, (150, "a"), (160, "a")], {**mail(2, cid=(150, "a")), 3: Entry(gone=(160, "a"))}),
        B=backup("b", 200, RUV, BASE),
    ),
    "down_for_13_days": files(
        A=backup("a", LATE, KEPT, BASE),
        B=backup("b", LATE, KEPT, BASE),
        C=backup("c", 100, [(0, "a"), (0, "b"), (0, "c"), (90, "c")], OWN),
    ),
    "each_behind_the_other": files(
        A=backup("a", 200, [(100, "a"), (150, "a"), (0, "b"), (10, "b")], BASE),
        B=backup("b", 200, [(100, "b"), (150, "b"), (0, "a"), (10, "a")], BASE),
    ),
    "nothing_in_common": files(
        A=backup("a", 200, [(0, "a"), (100, "a")], BASE), B=backup("b", 200, [(0, "b"), (100, "b")], BASE)
    ),
    "ranges_meet_at_the_edge": files(
        A=backup("a", 300, [(0, "b"), (100, "a"), (200, "a")], mail(2, cid=(200, "a"))),
        B=backup("b", 300, [(0, "b"), (100, "a")], BASE),
    ),
    "clock_ahead": files(
        A=backup("a", 200, [*RUV, (DAY, "c")], BASE),
        B=backup("b", 200, [*RUV, (DAY, "c")], BASE),
        C=backup("c", DAY, [*RUV, (DAY, "c")], BASE),
    ),
    "origin_of_no_server_past_the_window": files(
        **alike("ab", LATE, [(5, "d"), *KEPT], BASE),
    ),
    "created_twice": files(
        A=backup("a", 200, RUV, {**BASE, 30: Entry((50, "a"), {"mail": (60, "a")})}),
        B=backup("b", 200, RUV, {**BASE, 30: Entry((55, "b"), {"name": (70, "b")})}),
    ),
    "conflict_entries": files(**alike("ab", 200, RUV, {**BASE, 60: Entry((50, "b"), source=2)})),
    "later_value_stands_for_the_earlier": files(
        A=backup("a", 300, [*RUV, (150, "a"), (170, "b")], mail(2, cid=(170, "b"))),
        B=backup("b", 300, [*RUV, (150, "a"), (170, "b")], mail(2, cid=(170, "b"))),
        C=backup("c", 300, [*RUV, (150, "a")], mail(2, cid=(150, "a"))),
    ),
    "two_deletions_of_one_entry": files(
        A=backup("a", 300, [*RUV, (150, "a"), (170, "b")], {**BASE, 2: Entry(gone=(150, "a"))}),
        B=backup("b", 300, [*RUV, (150, "a"), (170, "b")], {**BASE, 2: Entry(gone=(150, "a"))}),
        C=backup("c", 300, [*RUV, (170, "b")], {**BASE, 2: Entry(gone=(170, "b"))}),
    ),
    "deleted_here_changed_there": files(
        A=backup("a", 300, [*RUV, (150, "a")], {**BASE, 2: Entry(gone=(150, "a"))}),
        B=backup("b", 300, [*RUV, (200, "b")], mail(2, cid=(200, "b"))),
    ),
    "backup_cut_in_the_middle": {
        **files(A=backup("a", 200, RUV, BASE)),
        "B.json": _cut(backup("b", 200, RUV, BASE)),
    },
    "entries_not_collected": files(A=backup("a", 200, RUV, BASE), B=backup("b", 200, RUV)),
    "consumer_knows_more_origins": files(
        A=backup("a", 200, [one for one in RUV if one[1] != "c"], BASE), B=backup("b", 200, RUV, BASE)
    ),
    # --- and more
    "restored_and_wrote_again": files(
        A=backup("a", 500, [*RUV, (250, "b")], mail(2, cid=(250, "b"))),
        B=backup("b", 500, [*RUV, (400, "b")], mail(3, cid=(400, "b"))),
        C=backup("c", 500, [*RUV, (250, "b")], mail(2, cid=(250, "b"))),
    ),
    "consumer_of_another_week": files(
        A=backup("a", LATE, KEPT, mail(2, cid=(LATE, "a"))),
        B=backup("b", LATE, [(CUT + 3600, "a"), (CUT + 3600, "b"), (LATE, "b")], BASE),
    ),
    "origin_at_the_very_cut": files(A=backup("a", LATE, [*KEPT, (CUT, "d")], BASE), B=backup("b", LATE, KEPT, BASE)),
    "origin_a_second_before_the_cut": files(
        A=backup("a", LATE, [*KEPT, (CUT - 1, "d")], mail(2, cid=(CUT - 1, "d"))), B=backup("b", LATE, KEPT, BASE)
    ),
    "deletion_forgotten_and_entry_lives": files(
        **alike("ab", LATE, KEPT, {number: one for number, one in BASE.items() if number != 3}),
        C=backup("c", LATE, [*KEPT, (LATE, "c")], BASE),
    ),
    "reverted_under_an_older_change": files(
        **alike("ab", 200, RUV, mail(2, cid=(100, "b"))), C=backup("c", 200, RUV, mail(2, cid=(90, "a")))
    ),
    "pulls_one_way": {
        **files(
            A=backup("a", 200, RUV, BASE),
            B=backup("b", 200, [*RUV, (150, "b")], mail(2, cid=(150, "b"))),
        ),
        "A.server.toml": config("a", b="allow-pull"),
        "B.server.toml": config("b", a="pull"),
    },
    "two_backups_of_one_server": {
        **files(A=backup("a", 300, [*RUV, (250, "a")], mail(2, cid=(250, "a"))), B=backup("b", 300, RUV, BASE)),
        "A.before.json": files(A=backup("a", 200, RUV, BASE))["A.json"],
    },
    "new_server_without_changes": files(
        A=backup("a", 300, [(0, "a"), (100, "a"), (200, "a")], BASE),
        B=backup("b", 300, [(0, "a"), (100, "a"), (200, "a"), (250, "b")], BASE),
    ),
    "clocks_a_minute_apart": files(
        A=backup("a", 200, [*RUV, (260, "c")], BASE),
        B=backup("b", 200, [*RUV, (260, "c")], BASE),
        C=backup("c", 270, [*RUV, (260, "c")], BASE),
    ),
    "log_of_a_refusal_alone": {
        **files(A=backup("a", LATE, KEPT, BASE), B=backup("b", LATE, KEPT, BASE)),
        "C.log": (
            b"2026-01-21T00:00:00Z 0aaa0000-0000-0000-0000-000000000000 ERROR    \xe2\x94\x9d\xe2\x94\x81 [error]: "
            b"The incoming data contains changes matching this server's UUID, "
            b"and those changes are newer than the local version.\n"
        ),
    },
    # --- over links
    "restored_among_linked": {
        **files(
            A=backup("a", 300, [*RUV, (250, "b"), (260, "a")], mail(2, cid=(250, "b"))),
            B=backup("b", 320, RUV, BASE),
            C=backup("c", 300, [*RUV, (250, "b"), (260, "a")], mail(2, cid=(250, "b"))),
        ),
        **mesh("abc"),
    },
    "change_goes_over_one_between": {
        **files(
            A=backup("a", 200, [*RUV, (150, "a")], mail(2, cid=(150, "a"))),
            B=backup("b", 200, RUV, BASE),
            C=backup("c", 200, RUV, BASE),
        ),
        "A.server.toml": config("a", b="mutual-pull"),
        "B.server.toml": config("b", a="mutual-pull", c="mutual-pull"),
        "C.server.toml": config("c", b="mutual-pull"),
    },
    "refused_between_one_who_has_it_and_one_who_waits": {
        **files(
            A=backup("a", 300, [*RUV, (250, "b"), (260, "a")], mail(2, cid=(260, "a"))),
            B=backup("b", 320, RUV, BASE),
            C=backup("c", 200, RUV, BASE),
        ),
        "A.server.toml": config("a", b="mutual-pull"),
        "B.server.toml": config("b", a="mutual-pull", c="mutual-pull"),
        "C.server.toml": config("c", b="mutual-pull"),
    },
    "consumer_refreshes_itself": {
        **files(
            A=backup("a", LATE, KEPT, BASE),
            B=backup("b", LATE, KEPT, BASE),
            C=backup("c", LATE, [(CUT - DAY, "a"), (CUT - DAY, "b"), (LATE, "c")], mail(4, cid=(LATE, "c"))),
        ),
        **mesh("abc", refreshes="c"),
    },
    "two_islands": {
        **files(
            A=backup("a", 200, [*RUV, (150, "a")], mail(2, cid=(150, "a"))),
            B=backup("b", 200, [*RUV, (150, "a")], mail(2, cid=(150, "a"))),
            C=backup("c", 200, RUV, BASE),
        ),
        "A.server.toml": config("a", b="mutual-pull"),
        "B.server.toml": config("b", a="mutual-pull"),
        "C.server.toml": config("c"),
    },
    # --- another supplier can still help
    "purged_by_a_while_b_still_serves": {
        **files(A=PURGED, B=NOT_PURGED, C=backup("c", LATE - 10, BEHIND, BASE)),
        **mesh("abc"),
    },
    "a_new_link_helps_until_the_next_purge": {
        **files(
            A=PURGED,
            B=NOT_PURGED,
            C=backup("c", LATE - 10, BEHIND, {**BASE, 4: Entry((0, "a"), {"mail": (LATE - 10, "c")})}),
        ),
        "A.server.toml": config("a", b="mutual-pull", c="mutual-pull"),
        "B.server.toml": config("b", a="mutual-pull"),
        "C.server.toml": config("c", a="mutual-pull"),
    },
    "linked_over_one_that_was_not_collected": {
        **files(
            A=backup("a", 300, [*RUV, (250, "c")], mail(2, cid=(250, "c"))),
            B=backup("b", 300, RUV, BASE),
        ),
        "A.server.toml": config("a", c="mutual-pull"),
        "B.server.toml": config("b", c="mutual-pull"),
    },
    # --- and more
    "empty_backup": {
        **files(A=backup("a", 200, [*RUV, (150, "a")], mail(2, cid=(150, "a"))), C=backup("c", 200, RUV, BASE)),
        "B.json": b"",
    },
    "own_change_newer_than_its_file": files(
        **alike("ab", 200, [*RUV, (230, "c")], mail(2, cid=(230, "c"))), C=backup("c", 210, RUV, BASE)
    ),
    "deletion_missed_among_values": files(
        **alike("ab", 200, RUV, {**mail(1, cid=(100, "b")), 3: Entry(gone=(100, "a"))}), C=backup("c", 200, RUV, BASE)
    ),
    "perhaps_deleted_and_forgotten": files(
        **alike(
            "ab",
            LATE,
            [*KEPT, (CUT + 3600, "c"), (LATE, "c")],
            {number: entry for number, entry in mail(1, cid=(LATE, "a")).items() if number != 3},
        ),
        C=backup("c", LATE, [*KEPT[:1], *KEPT[2:], (CUT + 3600, "c"), (LATE, "c")], {**BASE, **FROM_C}),
    ),
    "attribute_of_a_dead_origin": {
        **files(
            A=backup("a", LATE, [*KEPT, (CUT - 100, "d"), (CUT - 50, "d")], mail(2, cid=(CUT - 50, "d"))),
            B=backup("b", LATE, [*KEPT, (CUT - 100, "d")], BASE),
        ),
        **mesh("ab"),
    },
}
