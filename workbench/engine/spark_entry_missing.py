"""What each server claims and does not show, by one job of Spark over all rows of the table `states`.

No digest is asked, and nothing is shared with `workbench.engine.states`: of each entry the states at all servers come together,
and `workbench.replication.entry.rules.entries.lacking` is written out as expressions. What comes back is a count and a checksum
for each server and origin, so that the two ways can be held against each other however much is lacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.engine.states import WHYS, EntryStates, Lacked
from workbench.model import Problem
from workbench.replication.entry.rules.entries import Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Claimant:
    """A server of a group that is compared: the file that shows its entries, what it claims, and how far back graves are kept.

    whole  all entries of the file could be read
    """

    snapshot: str
    file: str
    seen: Ranges
    forgotten: int
    whole: bool = True


Sums = dict[tuple[int, int, str, str], tuple[int, int]]
"""Group, number of the server in it, origin, why -> how many changes are lacked, and the sum of their checksums."""


def add_to(sums: Sums, group: int, server: int, held: EntryStates, lacked: Lacked) -> None:
    """Count these in, as `summed` does."""
    for at in range(len(lacked)):
        time, origin = held.cid(lacked, at)
        attribute = int(lacked.attribute[at])
        name = "" if attribute < 0 else held.attributes[attribute]
        key = group, server, origin, WHYS[int(lacked.why[at])]
        count, total = sums.get(key, (0, 0))
        text = f"{held.entries[int(lacked.entry[at])]}|{name}|{time}"
        sums[key] = count + 1, total + zlib.crc32(text.encode())


def summed(spark: SparkSession, groups: Sequence[Sequence[Claimant]], parts: Sequence[str]) -> Sums:
    """The same of all groups, counted by Spark from the parts of the table `states`."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from workbench.engine.evidence import cause_of

    if not parts:
        return {}
    checksum = F.expr("crc32(encode(concat_ws('|', entry, coalesce(attribute, ''), cast(cid.hi as string)), 'utf-8'))")
    by = lacked_rows(spark, groups, parts).groupBy("group", "me", F.col("cid.origin").alias("origin"), "why")
    try:
        rows = by.agg(F.count("*").alias("count"), F.sum(checksum).alias("total")).collect()
    except PySparkException as error:
        raise Problem(f"the states of entries could not be compared: {cause_of(error)}") from None
    return {(row.group, row.me, row.origin, row.why): (row["count"], row.total) for row in rows}


_COVERED = "coalesce(x.cid.hi <= try_element_at(seen, x.cid.origin), x.cid.hi < forgotten)"
_THEIR_AT = "get(filter(states, y -> y.server = x.server and y.kind = 'created'), 0).cid"
_LATER = "exists(states, y -> y.server = me and y.kind = 'changed' and y.attribute = x.attribute and y.cid >= x.cid)"
_UNLIKE = "case when at is null then if(whole, '', 'not_read') when at = x.made then '' else 'made_twice' end"
_COLUMNS: Mapping[str, str] = {
    "at": "get(filter(states, x -> x.server = me and x.kind = 'created'), 0).cid",
    "gone": "exists(states, x -> x.server = me and x.kind = 'deleted')",
    "graves": f"transform(filter(states, x -> x.server != me and x.kind = 'deleted' and {_COVERED}), x -> x.cid)",
    "last": "array_max(graves)",
    "deletion": "transform(filter(graves, x -> at is not null), x -> struct(cast(null as string) as attribute, x as cid, "
    "if((x.hi >= forgotten or x > at) and map_contains_key(seen, x.origin), '', 'forgotten') as why))",
    "theirs": "transform(filter(states, x -> x.server != me and x.kind = 'changed' "
    f"and {_COVERED}), x -> struct(x.attribute as attribute, x.cid as cid, {_THEIR_AT} as made))",
    "open": "filter(theirs, x -> x.made is not null and not (size(graves) > 0 and (last.hi >= forgotten or last > x.made)) "
    f"and (at is null or at >= x.made) and not (at is not null and at = x.made and {_LATER}))",
    "behind": "transform(open, x -> struct(x.attribute as attribute, x.cid as cid, if(map_contains_key(seen, x.cid.origin) "
    f"and (at <=> x.made or x.made.hi >= forgotten), {_UNLIKE}, 'forgotten') as why))",
    "lacked": "array_distinct(concat(deletion, behind))",
}
"""Columns, made one after the other, of an entry and a server, `me`; `states` are those of the entry at all servers."""


def lacked_rows(spark: SparkSession, groups: Sequence[Sequence[Claimant]], parts: Sequence[str]) -> DataFrame:
    """A row for each change that a server lacks: group, me (the number of the server), entry, attribute, cid, why."""
    from pyspark.sql import functions as F

    from workbench.engine.evidence import read_table

    lasts = [[{who: last for who, (_, last) in one.seen.items()} for one in servers] for servers in groups]
    claims = [
        (group, number, len(servers), one.snapshot, one.file, lasts[group][number], one.forgotten, one.whole)
        for group, servers in enumerate(groups)
        for number, one in enumerate(servers)
    ]
    columns = (
        "group int, me int, servers int, snapshot string, file string, seen map<string,bigint>, forgotten bigint, "
    )
    columns += "whole boolean"
    claimed = F.broadcast(spark.createDataFrame(claims, columns))
    whose = claimed.select("snapshot", "file", "group", F.col("me").alias("server"))
    cid = F.struct("last.hi", "last.origin").alias("cid")
    entries = (
        read_table(spark, "states", list(parts))
        .select("snapshot", "file", "offset", "entry", "kind", "attribute", "origin", "hi")
        .join(whose, ["snapshot", "file"])
        .repartition("group", "entry")
        .groupBy("group", "entry", "server", "kind", "attribute")
        .agg(F.max(F.struct("offset", "hi", "origin")).alias("last"))
        .select("group", "entry", F.struct("server", "kind", "attribute", cid).alias("state"))
        .groupBy("group", "entry")
        .agg(F.collect_list("state").alias("states"))
    )
    # Each state that all servers show is there as often as there are servers: of an entry without others nothing is lacked.
    alike = F.expr(
        "size(array_distinct(transform(states, x -> struct(x.kind, x.attribute, x.cid)))) * servers = size(states)"
    )
    found = entries.join(claimed.drop("snapshot", "file"), "group").where(~alike)
    for name, text in _COLUMNS.items():
        found = found.withColumn(name, F.expr(text))
    found = found.where("not gone").select("group", "me", "entry", F.explode("lacked").alias("one"))
    return found.select("group", "me", "entry", "one.attribute", "one.cid", "one.why")
