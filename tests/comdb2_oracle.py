"""A slow second reading of what is said of a made-up tree of Comdb2, against the truth that the tree knows.

It shares no code with the detectors. Sessions are let run, every node is tried as a supplier, and the registry's rules are asked
as the reference tells them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from comdb2_fleets import CUT, FROZEN, HEALTHY, KEEPALIVE, PENDING, RETIRED, SOURCE, STOPPED, Tree
from said_counts import shown_before

from workbench.repair.plan_types import Plan

Found = Mapping[str, Any]
FANOUT, STRICT_AGE = 2, 600


def contradictions(made: Tree, found: Found, planned: Plan, line: str) -> list[str]:
    """What is said of a tree and is not so, one sentence each."""
    checks = (
        _pending(made, found, line),
        _rebuilt(made, found),
        _gaps(made, found),
        _states(made, found),
        _lags(made, found),
        _offers(made, found),
        _held(made, found),
        _steps(made, planned),
        _table(found, planned),
    )
    return [said for check in checks for said in check]


def _rows(found: Found) -> Iterator[Mapping[str, Any]]:
    for tree in found["trees"]:
        yield from tree["nodes"]


def _pending(made: Tree, found: Found, line: str) -> Iterator[str]:
    then = made.played()
    waits = {row["server"]: row for row in found["pending"]}
    for name, node in made.nodes.items():
        comes = then[name] > node.made.at
        row = waits.get(name)
        if row is None:
            if comes:
                yield f"{name} gets {node.made.at} to {then[name]} when sessions run, and is said to wait for nothing"
            continue
        if row["suppliers"] and not comes:
            yield f"{name} is said to be sent what it waits for by {row['suppliers']}: nothing comes ({node.fault})"
        if comes and not row["suppliers"] and then[name] == max(n.made.at for n in made.nodes.values()):
            yield f"no sender of {name} is named: what it lacks comes from {node.made.source}"
        for supplier in row["suppliers"]:
            if not made.serves(supplier, name) and then[supplier] <= node.made.at:
                yield f"{supplier} is said to send {name} what it waits for, and does not have it"
            if not made.nodes[supplier].made.answers:
                yield f"{supplier} is said to send {name} what it waits for, and is {made.nodes[supplier].fault}"
        told = {place for place in (row["first"], row["last"]) if place}
        for place in told:
            if _place(place) <= node.made.at:
                yield f"{name} is said to wait for {place}, and is at {node.made.at}"
        servers = [other for other in made.nodes if other != name and made.serves(other, name)]
        if row["available"] and not servers:
            yield f"{row['available']} are said to be there for {name}: no node serves it"
        said = re.search(r"on the way to ([^;.]*)", line)
        if said and name in re.split(r", | and ", said[1]) and not comes:
            yield f"the first line says that something is on the way to {name}: nothing comes"


def _place(text: str) -> tuple[int, int]:
    file, offset = text.strip("{}").split(":")
    return int(file), int(offset)


def _files(made: Tree, name: str, silent: bool = True) -> list[str]:
    """Nodes from which a node gets to the head of the source, over others or not; `silent`: those that do not answer, too."""
    head = max(made.nodes[other].made.at for other in made.sources())
    nodes = {other for other, node in made.nodes.items() if silent or node.made.answers}
    useful = {other for other in nodes if made.nodes[other].made.at >= head}
    while more := {o for o in nodes if o not in useful and any(made.serves(other, o) for other in useful)}:
        useful |= more
    return [other for other in useful if other != name and made.serves(other, name)]


def _of(row: Mapping[str, Any]) -> list[str]:
    return row["servers"] or ([row["server"]] if row["server"] else [])


def _rebuilt(made: Tree, found: Found) -> Iterator[str]:
    for row in found["findings"]:
        if row["code"] == "REINIT_REQUIRED":
            name = row["server"]
            if having := _files(made, name):
                yield f"{name} has to be rebuilt, it is said: {having} have what it needs"
            if made.nodes[name].made.at >= max(node.made.at for node in made.nodes.values()):
                yield f"{name} has to be rebuilt, it is said: it has all there is"


def _gaps(made: Tree, found: Found) -> Iterator[str]:
    for row in _rows(found):
        name, node = row["node"], made.nodes[row["node"]]
        having = _files(made, name)
        answering = set(_files(made, name, silent=False))
        source = [other for other in made.sources() if made.serves(other, name)]
        behind = node.made.at < max(made.nodes[other].made.at for other in made.sources())
        if name in made.sources() or not behind:
            continue
        wanted = None if source else "source" if answering else "now"
        if row["gap"] != wanted:
            yield f"the gap of {name} is said to be {row['gap']}: it is {wanted}"
        silent = {o for o in made.nodes if not made.nodes[o].made.answers and made.serves(o, name)}
        if set(row["served_by"]) != answering or set(row["served_by_silent"]) != silent:
            yield f"{name} is said to be served by {row['served_by']}, {row['served_by_silent']}: {having} have its file"
        reported = {
            one["server"] for one in found["findings"] if one["code"] == "LOG_GAP" and one["severity"] == "error"
        }
        # Nothing is lacking where it pulls from a node that has the file and goes further, by itself or with what it gets. Where
        # no sender reaches the head, what is sent ends before it, and the gap stays.
        senders = {other for row in found["pending"] if row["server"] == name for other in row["suppliers"]}
        if idle := sorted(other for other in senders if not _sends(made, other, name)):
            yield f"{', '.join(idle)} is said to send to {name}, and does not have its file"
        if (wanted == "now" or (wanted == "source" and not senders)) != (name in reported):
            yield f"LOG_GAP of {name}: said {name in reported}, and its source {'has' if source else 'lacks'} its file"


def _sends(made: Tree, supplier: str, name: str) -> bool:
    """Whether a node has the file that another one needs and is further, or gets there: who hangs on a node that was cut back
    may be further than that one until it has caught up.
    """
    place = made.nodes[name].made.at
    return made.nodes[supplier].made.first <= place[0] and made.played()[supplier] > place


def _states(made: Tree, found: Found) -> Iterator[str]:
    then = made.played()
    for row in _rows(found):
        name, node = row["node"], made.nodes[row["node"]]
        age = node.made.age or 0
        texts = [row["says"]] + [
            one["summary"] for one in found["findings"] if name in _of(one) and one["summary"].startswith(f"{name}:")
        ]
        for text in texts:
            if re.search(r"(?:still|and) reports itself", text) and age > KEEPALIVE:
                yield f"{name} still reports itself, it is said ({text}): it did {age} s ago, and does each {KEEPALIVE} s"
            if "does not report itself" in text and age <= KEEPALIVE:
                yield f"{name} does not report itself, it is said ({text}): it did {age} s ago"
            if "does not answer" in text and node.made.answers:
                yield f"{name} does not answer, it is said: it does"
            if "it is slow" in text and then[name] == node.made.at:
                yield f"{name} is said to be slow ({row['condition']}): it gets nothing when sessions run (gap {row['gap']})"
        right = {HEALTHY: {"healthy", "behind", "delayed_above", "gapped"}, FROZEN: {"frozen"}, STOPPED: {"stopped"}}
        # One that waits for a source goes on to report itself (reference, registration 4): one that is silent does not wait.
        right |= {PENDING: {"pending", "no_source", "gapped"}, RETIRED: {"stopped", "retired"}}
        if _hangs_on_nothing(made, name):
            right[HEALTHY] = right[HEALTHY] | {"orphan"}
        right[CUT] = right[HEALTHY]
        if row["condition"] not in right[node.fault]:
            yield f"{name} is said to be {row['condition']}: it is {node.fault}"


def _hangs_on_nothing(made: Tree, name: str) -> bool:
    at = made.nodes[name].made.source
    while at is not None and at not in made.sources():
        at = made.nodes[at].made.source
    return at is None


def _lags(made: Tree, found: Found) -> Iterator[str]:
    heads = [made.nodes[name].made.at for name in made.sources()]
    for row in _rows(found):
        node = made.nodes[row["node"]]
        if node.fault == CUT and row["registry_lag_bytes"] is not None:
            yield f"a lag of {row['registry_lag_bytes']} of {row['node']} is told by a report of before its log was cut off"
        for key in ("registry_lag_bytes", "actual_lag_bytes"):
            lag = row[key]
            if lag is None or node.fault == CUT:
                continue
            bytes_there = max(heads)[1] - node.made.at[1] if node.made.at[0] == max(heads)[0] else None
            if bytes_there is not None and lag != bytes_there:
                yield f"{key} of {row['node']} is said to be {lag}: it is {bytes_there}"
            if lag == 0 and node.made.at < max(heads):
                yield f"{key} of {row['node']} is said to be 0: it is at {node.made.at}, its source at {max(heads)}"


def _offers(made: Tree, found: Found) -> Iterator[str]:
    """What the registry answers, by the rules of 2026 (with firstfile): strict first, then without limits."""
    for row in _rows(found):
        if not row["offered"]:
            continue
        told = {one["node"] for one in row["offered"] if one["offered"]}
        wanted = _offered(made, row["node"])
        if told != wanted:
            yield f"{row['node']} would be offered {sorted(told)}, it is said: by the rules {sorted(wanted)}"
    for one in found["findings"]:
        said = re.search(r"it would be offered ([^;.]*)", one["summary"])
        if said and " more" not in said[1] and set(said[1].split(", ")) != _offered(made, one["server"]):
            yield f"{one['server']} would be offered {said[1]}, it is said: by the rules {_offered(made, one['server'])}"


def _offered(made: Tree, caller: str) -> set[str]:
    """Whom the registry names to a node that registers now: its own rows are Inactive, its connections gone."""
    for strict in (True, False):
        found = _walked(made, caller, strict)
        if found:
            return found
    return set()


def _walked(made: Tree, caller: str, strict: bool) -> set[str]:
    file = (made.nodes[caller].made.reported or made.nodes[caller].made.at)[0]
    if made.nodes[caller].made.answers:
        file = made.nodes[caller].made.at[0]
    above = {name: node.made.source for name, node in made.nodes.items() if node.made.source and name != caller}
    reached, found = set[str](), set[str]()

    def covers(name: str) -> bool:
        node = made.nodes[name].made
        return node.first <= file <= (node.reported or node.at)[0]

    level = [name for name in made.sources() if covers(name)]
    while level:
        nodes = [name for name in level if name not in reached]
        reached |= set(nodes)
        for name in nodes:
            node = made.nodes[name].made
            children = sum(1 for to in above.values() if to == name)
            state = "Inactive" if name == caller else node.state
            if state in ("Pending", "Inactive"):
                continue
            if strict and max(children, 1) >= FANOUT:
                continue
            found.add(name)
        level = [
            name
            for name, to in above.items()
            if to in nodes and covers(name) and (not strict or (made.nodes[name].made.age or 0) < STRICT_AGE)
        ]
    return found


def _held(made: Tree, found: Found) -> Iterator[str]:
    told = [one for one in found["findings"] if one["code"] == "LOG_HELD"]
    if not made.holds:
        if told:
            yield f"log files are said to be held, and this program holds none: {told[0]['summary']}"
        return
    first = min(made.nodes[name].made.first for name in made.sources())
    databases = {
        SOURCE
    }  # joined by the name of the database alone, so that a sibling without a connection holds as well
    while (
        more := {
            name.split("@")[0]
            for name, node in made.nodes.items()
            if node.made.source and node.made.source.split("@")[0] in databases
        }
        - databases
    ):
        databases |= more
    pins = {
        name: (node.made.reported or node.made.at)[0]
        for name, node in made.nodes.items()
        if name.split("@")[0] in databases
    }
    active = {n: f for n, f in pins.items() if made.nodes[n].made.state == "Active" or n in made.sources()}
    lowest = min(active.values())
    holders = sorted(name for name, file in active.items() if file == lowest)
    then = min((file for file in active.values() if file > lowest), default=None)
    for one in told:
        said = re.search(r"keeps (?:(\d+) files, (\d+) to (\d+)|file (\d+))", one["summary"])
        if not said:
            continue
        files = (int(said[2]), int(said[3])) if said[1] else (int(said[4]), int(said[4]))
        end = then or max(active.values())
        wanted = max(first, lowest), end - 1
        if files != wanted:
            yield f"S is said to keep files {files} for {_of(one)}: it keeps {wanted} for {holders}"
        if said[1] and int(said[1]) != files[1] - files[0] + 1:
            yield f"S is said to keep {said[1]} files, {files}"
        pinning = one["summary"].split(" pin")[0].split(", ")
        if sorted(pinning) != holders:
            yield f"{pinning} are said to pin log files: {holders} do"
    end = then or max(active.values())
    if not told and end - 1 >= max(first, lowest) and lowest < max(active.values()):
        yield f"nothing is said of files {max(first, lowest)} to {end - 1}, which {holders} hold"


def _steps(made: Tree, planned: Plan) -> Iterator[str]:
    """Each step, tried: who gives must have what is taken, and nothing of the source is thrown away."""
    now, copies = deepcopy(made), dict[str, tuple[int, int]]()
    for step in planned.steps:
        for name, place in now.played().items():
            now.nodes[name].made.at = place
        if step.server and step.server.startswith(f"{SOURCE}@") and step.repair in ("rebuild", "reset", "donor"):
            yield f"step {step.key} does something to the source"
        pulls = re.match(r"(\S+) pulls from (\S+), which has file (\d+)", step.says)
        if pulls and not (now.has(pulls[2], int(pulls[3])) and now.nodes[pulls[2]].made.answers):
            yield f"step {step.key}: {pulls[2]} does not have file {pulls[3]}, or does not answer"
        if pulls:
            now.nodes[pulls[1]].made.source, now.nodes[pulls[1]].fault = pulls[2], HEALTHY
        copied = re.search(r"is replaced by a copy of (\S+), which", step.says)
        if copied:
            giver = made.nodes[copied[1]]
            at = copies.get(copied[1], giver.made.at)
            if not giver.made.answers or at < made.nodes[step.server].made.at:
                yield f"step {step.key} copies {copied[1]}, which is {giver.fault} at {at}"
            copies[step.server] = at  # an earlier step may have made the one that is copied anew


def _table(found: Found, planned: Plan) -> Iterator[str]:
    yield from shown_before(found, planned)
    brought = {step.server for step in planned.steps if step.repair != "reset"}
    # What was taken out of the tree and does not answer need not be named.
    brought |= {row["node"] for row in _rows(found) if row["probe"] == "unreachable"}
    # Who waits for a source asks each second, and gets one once there is one.
    brought |= {row["node"] for row in _rows(found) if row["state"] == "Pending"}
    for row in planned.after:
        before = next(one for one in planned.before if one["server"] == row["server"])
        own = next((one for one in found["pending"] if one["server"] == row["server"]), None)
        if row["server"] not in brought and own and not own["suppliers"] and row["pending"] < before["pending"]:
            fed = {step.server for step in planned.steps if step.repair != "reset"}
            above = {one["node"]: one["parent"] for one in _rows(found)}
            if not fed & _line(above, row["server"]):
                yield f"the plan shows {row} after, {before['pending']} before: no step brings {row['server']} anything"


def _line(above: Mapping[str, str | None], name: str) -> set[str]:
    found: set[str] = set()
    at: str | None = above.get(name)
    while at and at not in found:
        found.add(at)
        at = above.get(at)
    return found
