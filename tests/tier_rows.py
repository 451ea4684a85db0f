"""Random rows of a registry of tiers, and its queries as SQL: the slow obvious reading."""

from __future__ import annotations

import sqlite3
from typing import Any

from hypothesis import strategies as st

from workbench.replication.tier.rules.candidates import Call
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Node, Pull, Registry

NAMES = [("S", "s1"), ("S", "s2"), ("A", "a1"), ("A", "a2"), ("B", "b1"), ("B", "b2"), ("C", "c1")]
STATES = ["Active", "Active", "Active", "Pending", "Inactive", "InActive", "ACTIVE", None]
DEEPER_THAN_ANY = 9
"""No way without a circle is so long here: one that is has gone round."""


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    """Rows as the tables can hold them, and some that only a fault could make: without a row of the node, in circles."""
    nodes = tuple(
        Node(
            *name,
            file=draw(st.sampled_from([None, 0, 4, 5, 6, 9])),
            first_file=draw(st.sampled_from([None, 1, 5, 6])),
            age=draw(st.sampled_from([None, 5.0, 59.0, 60.0, 599.0, 600.0, 610.0])),
            state=draw(st.sampled_from(STATES)),
        )
        for name in NAMES
        if draw(st.integers(0, 7))
    )
    names = st.sampled_from(NAMES)
    ends = st.tuples(names, names)
    # Mostly from a later name to an earlier one: deep trees; at times any two: circles.
    downwards = ends.map(lambda pair: (max(pair, key=NAMES.index), min(pair, key=NAMES.index)))
    drawn = draw(st.sets(st.one_of(downwards, downwards, downwards, ends), max_size=9))
    loops = draw(st.booleans())
    pulls = tuple(Pull(*child, *parent) for child, parent in sorted(drawn) if loops or child != parent)
    return Registry(nodes, pulls, keeps_first_file=draw(st.booleans()))


CALLS = st.builds(
    lambda name, file, hosts: Call(*name, file, "S", tuple(hosts)),
    st.sampled_from([*NAMES, ("new", "x1")]),
    st.sampled_from([4, 5, 6]),
    st.lists(st.sampled_from(["s1", "s2", "zz"]), max_size=3),
)


def tables(registry: Registry) -> sqlite3.Connection:
    """The rows in a database."""
    base = sqlite3.connect(":memory:")
    base.execute("create table node (base, host, file, first, age, state)")
    base.execute("create table pull (base, host, from_base, from_host)")
    base.executemany(
        "insert into node values (?, ?, ?, ?, ?, ?)",
        [(one.database, one.host, one.file, one.first_file, one.age, one.state) for one in registry.nodes],
    )
    base.executemany(
        "insert into pull values (?, ?, ?, ?)",
        [(one.database, one.host, one.source_database, one.source_host) for one in registry.pulls],
    )
    return base


def candidates(rules: Rules, registry: Registry, call: Call, strict: bool) -> tuple[list[tuple[Any, ...]], bool]:
    """One pass of the query: rows (tier, count, database, host) in order, and whether it would never have ended."""
    covers = "true"
    if rules.checks_files and registry.keeps_first_file:
        covers = f"n.file >= {call.file} and (n.first <= {call.file} or n.first is null and {not strict})"
    young = f"n.age < {rules.fresh_s}" if strict and rules.fresh_s is not None else "true"
    row = "left join" if (covers, young) == ("true", "true") else "join"
    hosts = ",".join(f"'{host}'" for host in call.source_hosts)
    counted = "count(*)" if rules.least_count else "count(p.base)"
    down = f"""
        with recursive down (base, host, tier) as (
            select n.base, n.host, 0 from node n where n.base = '{call.source_database}' and n.host in ({hosts}) and {covers}
            union all
            select p.base, p.host, down.tier + 1
            from down join pull p on p.from_base = down.base and p.from_host = down.host
            {row} node n on n.base = p.base and n.host = p.host and {covers} and {young}
            where down.tier < {DEEPER_THAN_ANY}
        )"""
    base = tables(registry)
    endless = base.execute(f"{down} select max(tier) from down").fetchone()[0] == DEEPER_THAN_ANY
    found = base.execute(f"""{down}, child (tier, cnt, base, host) as (
            select min(down.tier), {counted}, down.base, down.host
            from down left join pull p on p.from_base = down.base and p.from_host = down.host
            group by down.base, down.host
        )
        select tier, cnt, c.base, c.host from child c join node n on n.base = c.base and n.host = c.host
        where (n.state is null or n.state not in ('Pending', 'Inactive'))
        and (cnt < {rules.fanout} or {not strict})
        order by tier, {"cnt, " if rules.evenest_first or "n.file" in covers else ""} c.base, c.host""").fetchall()
    return found, endless


def lowest_file(registry: Registry, state: str, source: str, hosts: list[str]) -> int | None:
    """The query for the file that is needed, as the program had it: followed by database alone."""
    named = ",".join(f"'{host}'" for host in hosts)
    return (
        tables(registry)
        .execute(f"""
        with recursive need (base, host, file) as (
            select base, host, file from node where base = '{source}' and host in ({named})
            union
            select n.base, n.host, n.file from need
            join pull p on p.from_base = need.base join node n on n.base = p.base
            where n.state = '{state}' and n.file <> 0
        )
        select min(file) from need where file is not null""")
        .fetchone()[0]
    )
