"""What people use today for the same extraction: `python -m benchmarks.peers NAME FOLDER`; prints records and seconds.

The extraction: operation, CSN, unique id, DN and the unpacked modifications of every record, written as Parquet (zstd).
python-ldap writes no Parquet, it only gets the values: a head start for it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def _python_ldap_file(path: Path) -> int:
    import ldif

    class Records(ldif.LDIFParser):
        """`parse()` wants `dn` first, which changelogs do not have; its own reader of lines and values is driven here."""

        def count(self) -> int:
            records, now = 0, {}
            try:
                while True:
                    try:
                        name, value = self._next_key_and_value()
                    except ValueError:
                        continue
                    if name is None:
                        records += "csn" in now
                        now = {}
                    else:
                        now[name] = value
            except EOFError:
                return records + ("csn" in now)

    with open(path, encoding="utf-8", errors="replace") as file:
        return Records(file).count()


def python_ldap(folder: Path, processes: int = 1) -> int:
    """python-ldap's LDIF parser, file by file, in one process or several."""
    files = sorted(folder.glob("*.ldif"))
    if processes == 1:
        return sum(map(_python_ldap_file, files))
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(_python_ldap_file, files))


def python_ldap_2(folder: Path) -> int:
    """Two processes, as many as the machine has cores."""
    return python_ldap(folder, 2)


def polars(folder: Path) -> int:
    """Polars: each file as one text, split at empty lines, all columns by expressions on all cores."""
    import polars as pl

    records = 0
    with tempfile.TemporaryDirectory() as out:
        for path in sorted(folder.glob("*.ldif")):
            text = pl.Series("record", [path.read_text(encoding="utf-8", errors="replace")])
            frame = (
                text.str.split("\n\n").explode().to_frame().lazy()
                .filter(pl.col("record").str.starts_with("changetype"))
                .with_columns(pl.col("record").str.replace_all("\n ", "", literal=True))
                .select(
                    pl.col("record").str.extract(r"^changetype: (add|modify|modrdn|delete)\n").alias("operation"),
                    pl.col("record").str.extract(r"\ncsn: ([0-9a-f]{20})\n").alias("csn"),
                    pl.col("record").str.extract(r"\nnsuniqueid: ([^\n]*)").alias("entry"),
                    pl.col("record").str.extract(r"\ndn: ([^\n]*)").alias("target"),
                    pl.col("record").str.extract(r"\nchange:: ([^\n]*)").str.decode("base64", strict=False).alias("body"),
                )
                .drop_nulls(["operation", "csn", "entry", "target"])
                .collect()
            )  # fmt: skip
            frame.write_parquet(Path(out) / f"{path.stem}.parquet", compression="zstd", compression_level=1)
            records += len(frame)
    return records


def duckdb(folder: Path) -> int:
    """DuckDB: lines, a running number of records, and one aggregation that puts each record together."""
    import duckdb as db

    records = 0
    with tempfile.TemporaryDirectory() as out:
        connection = db.connect()
        for path in sorted(folder.glob("*.ldif")):
            connection.execute(
                f"""
                copy (
                  with lines as (
                    select line, row_number() over () as n from read_csv('{path}', delim='\x01', header=false, quote='',
                      escape='', columns={{'line': 'VARCHAR'}}, auto_detect=false, ignore_errors=true)
                    where line is not null and line <> ''),
                  numbered as (select line, n, sum((line[1:11] = 'changetype:')::int) over (order by n) as record from lines),
                  records as (
                    select record,
                      max(line[13:]) filter (line[1:12] = 'changetype: ') as operation,
                      max(line[6:]) filter (line[1:5] = 'csn: ') as csn,
                      max(line[13:]) filter (line[1:12] = 'nsuniqueid: ') as entry,
                      max(line[5:]) filter (line[1:4] = 'dn: ') as target,
                      string_agg(case when line[1] = ' ' then line[2:] else line[10:] end, '' order by n)
                        filter (line[1] = ' ' or line[1:9] = 'change:: ') as packed
                    from numbered where record > 0 group by record)
                  select operation, csn, entry, target, try(from_base64(packed)) as body from records
                  where regexp_full_match(csn, '[0-9a-f]{{20}}') and target is not null and operation is not null
                ) to '{out}/{path.stem}.parquet' (format parquet, compression zstd, compression_level 1)
                """
            )
            records += connection.execute(f"select count(*) from '{out}/{path.stem}.parquet'").fetchall()[0][0]
    return records


PEERS = {
    "python-ldap, 1 process": python_ldap,
    "python-ldap, 2 processes": python_ldap_2,
    "Polars": polars,
    "DuckDB": duckdb,
}

if __name__ == "__main__":
    peer, where = PEERS[sys.argv[1]], Path(sys.argv[2])
    started = time.perf_counter()
    count = peer(where)
    print(json.dumps({"records": count, "seconds": time.perf_counter() - started}))
