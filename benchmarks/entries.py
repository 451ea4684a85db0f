"""Which changes of entries did each server miss? Beside a streaming reader in Python: `python -m benchmarks.entries -h`.

Three servers have written backups of so many entries each. The workbench loads them into a case, sets aside what it cannot
read, removes secrets, and diagnoses everything: Spark's start counts, too. The reader is what somebody would write who needs
no more than the answer: it reads in chunks, cuts them into items, hands each to `json.loads`, keeps a hash of each entry's
change state, reads once more, and compares what differs by the very rule. Each runs in a process of its own, in turn, and both
must find exactly what was planted. Beside the seconds of a clock stand those of processors, all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from benchmarks.entry_data import ORIGINS, SERVERS, generate
from benchmarks.ingest import peak_memory

ROOT = Path(__file__).parent.parent
_BORDER = b',{"ent":{'
_UUID = b'"uuid":{"UU":["'
Told = dict[str, Any]


def workbench(folder: Path) -> Told:
    """Load and diagnose, as `workbench diagnose` does."""
    from workbench import Case
    from workbench.diagnosis.case_diagnosis import diagnose

    with tempfile.TemporaryDirectory(dir=folder.parent) as where, peak_memory() as memory:
        began = time.perf_counter()
        case = Case.create(Path(where) / "case")
        loaded = case.load([folder])
        between = time.perf_counter()
        found = diagnose(case)
        ended, worked = time.perf_counter(), _worked()
        size = sum(one.stat().st_size for one in case.folder.rglob("*") if one.is_file())
    assert not found["run"]["truncated"] and not any(one.rejected for one in loaded.added)
    pending: dict[str, dict[str, int]] = {}
    for row in found["pending"]:
        pending.setdefault(row["server"], {})[_name(row["origin"])] = row["count"]
    missing = [[row["server"], row["entry"], row["attribute"] or "", row["position"]] for row in found["missing"]]
    times = {"seconds": ended - began, "worked": worked, "load": between - began, "diagnose": ended - between}
    return {**times, **memory, "case": size / 1e6, "missing": missing, "pending": pending}


def _name(origin: str) -> str:
    return next(name for name, one in ORIGINS.items() if one == origin)


def _worked() -> float:
    """Seconds that processors have worked for this process and all below it: on a busy machine the fairer measure."""
    import psutil

    me = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in [me, *me.children(recursive=True)])


def reader(folder: Path) -> Told:
    """The same answers from the same files, in plain Python."""
    from workbench.replication.entry.rules.entries import Kept, lacking

    began = time.perf_counter()
    seen, first, differ, forgotten = {}, {}, set(), {}
    for name in SERVERS:
        ours: set[str] | None = None if name == SERVERS[0] else set(first)
        with open(folder / f"{name}.json", "rb") as file:
            head, items = _items(file)
            seen[name] = _ranges(head["repl_meta"]["V1"]["ruv"])
            forgotten[name] = (head["db_ts_max"]["secs"] - 7 * 86_400) * 10**9
            for item in items:
                uuid, state = _entry(json.loads(item))
                if ours is None:
                    first[uuid] = hash(state)
                    continue
                if first.get(uuid) != hash(state):
                    differ.add(uuid)
                ours.discard(uuid)
        differ |= ours or set()
    shown: dict[str, dict[str, Kept]] = {uuid: {} for uuid in differ}
    for name in SERVERS:
        with open(folder / f"{name}.json", "rb") as file:
            for item in _items(file)[1]:
                at = item.index(_UUID) + len(_UUID)
                if item[at : at + 36].decode() in differ:
                    uuid, (gone, when, changes) = _entry(json.loads(item))
                    shown[uuid][name] = Kept(None, when) if gone else Kept(when, None, dict(changes))
    missing: list[list[str]] = []
    pending: dict[str, dict[str, int]] = {}
    for uuid, of in shown.items():
        kept = [of.get(name, Kept()) for name in SERVERS]
        for number, name in enumerate(SERVERS):
            others = kept[:number] + kept[number + 1 :]
            for one in lacking(kept[number], others, seen[name], forgotten[name]):
                position = f"{one.cid[0]:032d}-{one.cid[1]}"
                missing.append([name, uuid, one.attribute or "", position])
            changes = {pair for other in others for pair in other.changes.items()}
            for _, (at, origin) in changes | {(None, other.gone) for other in others if other.gone}:
                if at > seen[name].get(origin, (0, -1))[1]:
                    mine = pending.setdefault(name, {})
                    mine[_name(origin)] = mine.get(_name(origin), 0) + 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "worked": _worked(), "python": peak, "missing": missing, "pending": pending}


def _items(file: IO[bytes], chunk: int = 1 << 20) -> tuple[Any, Iterator[bytes]]:
    """What stands before the entries, and the JSON of each."""
    begin, data = b',"entries":[', b""
    while begin not in data:
        data += file.read(chunk)
    head, _, kept = data.partition(begin)

    def items(kept: bytes) -> Iterator[bytes]:
        while more := file.read(chunk):
            *whole, kept = (kept + more).split(_BORDER)
            for item in whole:
                yield item if item.startswith(_BORDER[1:]) else _BORDER[1:] + item
            kept = kept if kept.startswith(_BORDER[1:]) else _BORDER[1:] + kept
        kept = kept[:-2]
        for item in kept.split(_BORDER):
            yield item if item.startswith(_BORDER[1:]) else _BORDER[1:] + item

    return json.loads(head + b"}"), items(kept)


def _cid(given: Any) -> tuple[int, str]:
    return given["t"]["secs"] * 10**9 + given["t"]["nanos"], given["s"]


def _entry(item: Any) -> tuple[str, tuple[bool, tuple[int, str], tuple[Any, ...]]]:
    body = item["ent"]["V3"]
    uuid, state = body["attrs"]["uuid"]["UU"][0], body["changestate"]
    if dead := state.get("V1Tombstone"):
        return uuid, (True, _cid(dead["at"]), ())
    live = state["V1Live"]
    return uuid, (False, _cid(live["at"]), tuple([(name, _cid(cid)) for name, cid in live["changes"].items()]))


def _ranges(cids: list[Any]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for time_, origin in map(_cid, cids):
        low, high = found.get(origin, (time_, time_))
        found[origin] = min(low, time_), max(high, time_)
    return found


WAYS: dict[str, Callable[[Path], Told]] = {"workbench": workbench, "reader": reader}


def main() -> None:
    """Generate the backups, let both answer, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--entries", type=int, default=2_000_000, help="of each of the three servers")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated files are kept")
    options.add_argument("--drop", action="store_true", help="take the generated files away in the end")
    options.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    asked = options.parse_args()
    folder: Path = asked.data / f"entries-{asked.entries}"
    if asked.one:
        print(json.dumps(WAYS[asked.one](folder)))
        return
    told = folder.with_suffix(".planted.json")
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"generating 3 x {asked.entries:,} entries in {folder} ...")
        generate(folder, asked.entries)
    planted = json.loads(told.read_text())
    size = sum(path.stat().st_size for path in folder.glob("*.json")) / 1e6
    print(f"3 servers, {asked.entries:,} entries each, {size:,.0f} MB, {os.cpu_count()} cores; best of {asked.rounds}")
    best: dict[str, Told] = {}
    for _ in range(asked.rounds):
        for name in WAYS:
            answer = _asked(name, asked)
            if sorted(answer["missing"]) != sorted(planted["missing"]) or answer["pending"] != planted["pending"]:
                raise SystemExit(f"{name} has not found what was planted")
            if name not in best or answer["seconds"] < best[name]["seconds"]:
                best[name] = answer
    ours, theirs = best["workbench"], best["reader"]
    print(f"\n{'':12}{'seconds':>9}{'of processors':>15}{'entries/s':>12}{'MB/s':>7}{'MB of memory':>14}")
    for name, one in best.items():
        rate = 3 * asked.entries / one["seconds"]
        speed = f"{rate:12,.0f}{size / one['seconds']:7.0f}"
        print(f"{name:12}{one['seconds']:9.1f}{one['worked']:15.1f}{speed}{one['python']:14,.0f}")
    print(
        f"\nthe workbench took {ours['load']:.1f} s to load and {ours['diagnose']:.1f} s to diagnose; its case has "
        f"{ours['case']:,.0f} MB; Java {ours['java']:,.0f} MB of memory beside Python\n"
        f"both found all {len(planted['missing'])} planted losses and what is pending; "
        f"the reader took {theirs['seconds'] / ours['seconds']:.1f} times as long"
    )
    if asked.drop:
        shutil.rmtree(folder)
        told.unlink()


def _asked(name: str, asked: argparse.Namespace) -> Told:
    command = [sys.executable, "-m", "benchmarks.entries", "--one", name]
    command += ["--entries", str(asked.entries), "--data", str(asked.data)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    answer: Told = json.loads(run.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    main()
