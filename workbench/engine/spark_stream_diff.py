"""Two logs of a stream held against each other by one job of Spark: `workbench.replication.stream.rules.streams` as expressions.

Nothing is shared with `workbench.engine.stream_diff` but the words: what both say of how many transactions must agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.engine.streams import StreamLog
from workbench.model import Problem
from workbench.replication.stream.rules.segments import (
    COMMITTED,
    CONFLICT,
    CORRUPT,
    EVENT,
    INCOMPLETE,
    REPEATED,
    ROLLED_BACK,
    UNKNOWN,
)
from workbench.replication.stream.rules.streams import (
    ANYWHERE,
    BEGINS_LATER,
    BELOW_ALL,
    DAMAGED,
    LOST,
    NOT_HERE_YET,
    NOT_READ,
    NOTHING_SHARED,
    SETTLED,
    SOURCE_UNCLEAR,
    UNCLEAR,
    UNRELATED,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _listed(words: frozenset[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


_UNLIKE = (
    f"(s.outcome = '{COMMITTED}' and c.outcome = '{CONFLICT}') "
    f"or (s.outcome = '{COMMITTED}' and c.outcome = '{COMMITTED}' and s.content != c.content) "
    f"or (s.outcome = '{COMMITTED}' and c.outcome = '{ROLLED_BACK}') "
    f"or (s.outcome = '{ROLLED_BACK}' and c.outcome = '{COMMITTED}')"
)
_ALIKE = (
    f"s.outcome = '{COMMITTED}' and ((c.outcome = '{COMMITTED}' and (s.content is null) != (c.content is null)) "
    f"or (c.outcome in ('{COMMITTED}', '{UNKNOWN}') and s.hash <=> c.hash))"
)
_IN_GAP = f"exists(gaps, x -> x.low < s.place and s.place < x.high and (x.low != {ANYWHERE} or s.place <= covers))"
_SAID = (
    f"case when unrelated then if(s.outcome = '{COMMITTED}', '{UNRELATED}', null) when s.outcome is null "
    f"then if(c.outcome = '{COMMITTED}' and c.place > ends.first and c.place < ends.last "
    f"and not exists(holes, x -> x.low < c.place and c.place < x.high), 'errant', null) "
    f"when coalesce({_UNLIKE}, false) then 'conflicts' "
    f"when begins is not null and (c.outcome is null or c.outcome in ({_listed(NOT_HERE_YET)})) "
    f"and s.outcome in ({_listed(UNCLEAR)}) then '{SOURCE_UNCLEAR}' "
    f"when s.outcome != '{COMMITTED}' or coalesce(c.outcome = '{COMMITTED}', false) then null "
    f"when begins is null then '{NOTHING_SHARED}' "
    f"when c.outcome = '{CORRUPT}' then '{DAMAGED}' when c.outcome = '{UNKNOWN}' then '{NOT_READ}' "
    f"when c.outcome is not null and lost and (c.outcome = '{INCOMPLETE}' or s.place < covers or c.place < last_lost) "
    f"then '{LOST}' "
    f"when c.outcome in ({_listed(NOT_HERE_YET)}) and s.place > covers then 'behind' "
    f"when c.outcome is not null then 'inside' when {_IN_GAP} then '{LOST}' "
    f"when s.place < begins then '{BEGINS_LATER}' when s.place > covers then 'behind' else 'inside' end"
)


def counted(
    spark: SparkSession, source: StreamLog, copy: StreamLog, origin: str, others: Sequence[StreamLog] | None = None
) -> Counter[str]:
    """What is said of how many transactions: inside, behind, why unknown, conflicts, errant, undecided, and alone.

    `others` as in `workbench.engine.stream_diff`.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from workbench.engine.evidence import cause_of

    again = _used_again(spark, (source, copy, *(others or ())), origin)
    theirs, mine = (_one_each(spark, log, origin, again).alias(name) for log, name in ((source, "s"), (copy, "c")))
    both = theirs.join(mine, ["position", "event", "life"]).select(
        F.col("s.place").alias("there"),
        F.col("c.place").alias("here"),
        F.col("c.outcome").alias("outcome"),
        F.col("c.whole").alias("here_whole"),
        F.col("s.whole").alias("there_whole"),
        F.expr(f"if(s.outcome = '{COMMITTED}', c.begin, c.place)").alias("here_begin"),
        F.expr(f"if(s.outcome = '{COMMITTED}' and c.outcome = '{COMMITTED}', s.content = c.content, null)").alias(
            "same"
        ),
    )
    settled = F.when(F.col("outcome").isin(*SETTLED) & F.col("here_whole"), F.col("there"))
    goes_beyond = F.coalesce(F.min(F.when(F.col("here_whole"), F.col("there"))), F.lit(-1))
    reach = both.agg(
        F.when(F.max(settled).isNull() & F.min("there").isNotNull(), goes_beyond)
        .otherwise(F.min("there"))
        .alias("begins"),
        F.coalesce(F.max(settled), F.lit(-1)).alias("covers"),
        F.struct(F.min("here_begin").alias("first"), F.max("here").alias("last")).alias("ends"),
        (F.count_if(~F.col("same")) > F.count_if("same")).alias("unrelated"),
    )

    def gaps(name: str, lost: tuple[int, ...], of: str, other: str) -> DataFrame:
        """Between which places of the other log records of this one were lost."""
        places = spark.createDataFrame([(place,) for place in lost], "place bigint")
        nearest = (
            F.broadcast(places)
            .crossJoin(both)
            .groupBy("place")
            .agg(
                F.max(of).alias("ended"),
                F.expr(
                    f"coalesce(max_by({other}, {of}) filter (where {of}_whole and {of} <= place), "
                    f"if(place = {ANYWHERE}, {ANYWHERE}, {BELOW_ALL}))"
                ).alias("low"),
                F.expr(
                    f"coalesce(min_by({other}, {of}) filter (where {other}_whole and {of} > place and place != {ANYWHERE}), "
                    "9223372036854775807)"
                ).alias("high"),
            )
        )
        # The last that both have may be the damaged one itself.
        counts = F.when(F.col("place") != F.col("ended"), F.struct("low", "high"))
        return nearest.agg(F.collect_set(counts).alias(name))

    whole = (
        theirs.join(mine, F.expr("s.position = c.position and s.event = c.event and s.life = c.life"), "full")
        .crossJoin(F.broadcast(reach))
        .crossJoin(F.broadcast(gaps("gaps", copy.lost, "here", "there")))
        .crossJoin(F.broadcast(gaps("holes", source.lost, "there", "here")))
        .withColumn("lost", F.lit(bool(copy.lost)))
        .withColumn("last_lost", F.lit(max(copy.lost, default=ANYWHERE)).cast("bigint"))
    )
    undecided = (
        f"if(not unrelated and s.outcome is not null and c.outcome in ({_listed(NOT_HERE_YET)}), 'undecided', null)"
    )
    said = F.expr(_SAID)
    if others is not None:
        known = mine.where("not event").select("position", "life")
        for log in others:
            there = theirs.join(_one_each(spark, log, origin, again).alias("c"), ["position", "event", "life"])
            known = known.union(there.where(_ALIKE).select("position", "life"))
        known = known.distinct().select(F.col("position").alias("elsewhere"), F.col("life").alias("lived"))
        same = (F.col("s.position") == F.col("elsewhere")) & (F.col("s.life") == F.col("lived"))
        whole = whole.join(known, same, "left")
        said = F.when(said.isin("inside", "behind") & F.col("elsewhere").isNull(), "alone").otherwise(said)
    words = whole.select(F.explode(F.array(said, F.expr(undecided))).alias("word")).where("word is not null")
    try:
        return Counter({row.word: row["count"] for row in words.groupBy("word").count().collect()})
    except PySparkException as error:
        raise Problem(f"the logs could not be compared: {cause_of(error)}") from None


def _used_again(spark: SparkSession, logs: Sequence[StreamLog], origin: str) -> DataFrame:
    """Positions that one of two logs has of several transactions, and all logs as commits with contents that can be compared."""
    from pyspark.sql import functions as F

    from workbench.engine.evidence import read_table

    found = None
    for number, log in enumerate(logs):
        rows = read_table(spark, "transactions", [part["path"] for part in log.parts])
        rows = rows.where((F.col("origin") == origin) & ~F.col("outcome").isin(REPEATED, EVENT))
        told = (F.col("outcome") == COMMITTED) & F.col("ended").isNotNull() & F.col("content").isNotNull()
        several = F.count_distinct("content") if number < 2 else F.lit(0).cast("bigint")
        plain = F.min(F.coalesce(told, F.lit(False))).alias("plain")
        of_log = rows.groupBy("position").agg(several.alias("contents"), plain)
        found = of_log if found is None else found.union(of_log)
    assert found is not None
    each = found.groupBy("position").agg(F.max("contents").alias("contents"), F.min("plain").alias("plain"))
    return each.where("contents > 1 and plain").select("position", F.lit(True).alias("again"))


def _one_each(spark: SparkSession, log: StreamLog, origin: str, again: DataFrame) -> DataFrame:
    """Its transactions of one origin; of a position that was used twice the last one, unless contents tell them apart."""
    from pyspark.sql import functions as F

    from workbench.engine.evidence import read_table

    begin, place = (
        F.coalesce(F.col(column), F.lit(0)).alias(name) for column, name in ((log.begin, "begin"), (log.order, "place"))
    )
    content = F.when(F.col("ended").isNotNull(), F.col("content")).alias("content")
    rows = read_table(spark, "transactions", [part["path"] for part in log.parts])
    mine = rows.where((F.col("origin") == origin) & (F.col("outcome") != REPEATED))
    event = F.expr(f"outcome = '{EVENT}'").alias("event")
    cut = f"outcome = '{CORRUPT}' and not coalesce(ended, true)"
    whole = F.expr(f"outcome not in ({_listed(NOT_HERE_YET)}) and not ({cut})").alias("whole")
    last = F.max_by(F.struct("place", "outcome", "content", "hash", "whole", "begin"), "place").alias("one")
    return (
        mine.select("position", event, begin, place, "outcome", content, F.col("content").alias("hash"), whole)
        .join(F.broadcast(again), "position", "left")
        .withColumn("life", F.expr("if(again and not event, cast(content as string), '')"))
        .withColumn("life", F.coalesce("life", F.lit("")))
        .groupBy("position", "event", "life")
        .agg(last)
        .select("position", "event", "life", "one.*")
    )
