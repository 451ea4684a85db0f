"""Every view with what it shows of recorded incidents, before and after it was clicked."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from incident_samples import incident_of
from kanidm_samples import case_of_graves, case_of_set
from repair_samples import Toy, plan_of
from stream_files import bulk_incident
from tier_samples import DELAYED, FROZEN, HEALTHY, tiers_incident

from widgets import (
    AnchorLine,
    Checks,
    ConfirmPanel,
    EntryDiff,
    Findings,
    FleetDifference,
    FloorGrid,
    Inputs,
    JournalView,
    LogCoverage,
    MeshMap,
    MissedChanges,
    PendingLanes,
    PlanView,
    PositionList,
    RangeBars,
    Stepper,
    Stops,
    TableHeat,
    TierChanges,
    TierTree,
    TimeLine,
    Tombstones,
    TransactionLanes,
    VectorGrid,
    View,
    WalkThrough,
)
from widgets.inputs import CopyFile, Note
from widgets.progress import Progress
from workbench.diagnosis.incident import Incident
from workbench.repair.plan_executor import apply
from workbench.repair.planner import plan as planned
from workbench.repair.server_access import ServerAccess
from workbench.runs.baseline_check import check_all

LOST, STUCK, LAGS = "missed_behind_equal_vectors", "purged_changelog", "lag_behind_disabled_links"

Message = dict[str, Any]


def say(view: View, **message: Any) -> None:
    """What the page says when something is clicked."""
    view._heard(view, message, [])


def samples() -> Iterator[tuple[str, Callable[[], View], list[Message]]]:
    """Name, a maker, and the messages of clicks that show more and more of it."""
    lost, stuck, lags = (incident_of(name) for name in (LOST, STUCK, LAGS))
    yield "note", lambda: Note({"text": "A sentence about <b>names</b>."}), []
    yield "copy", lambda: CopyFile({"file": "notebook: 20_overview\n"}), []
    for name, incident in (("lost", lost), ("stuck", stuck), ("lags", lags)):
        yield f"mesh {name}", lambda incident=incident: MeshMap(incident), [{"what": "pick", "index": 1}]
        yield f"grid {name}", lambda incident=incident: VectorGrid(incident), [{"what": "pick", "row": 2, "column": 0}]
        yield f"findings {name}", lambda incident=incident: Findings(incident), []
        yield (
            f"missed {name}",
            lambda incident=incident: MissedChanges(incident),
            [{"what": "pick", "index": 0}, {"what": "list", "name": "pending"}, {"what": "list", "name": "unknown"}],
        )
        yield f"work {name}", lambda incident=incident: PendingLanes(incident), []
    yield (
        "lanes",
        lambda: TimeLine(lost, Inputs(lost, "23_missed_changes", position="6b006176000000010000")),
        [{"what": "pick", "lane": 0, "bin": 18}],
    )
    for name, incident in (("lost", lost), ("stuck", stuck), ("lags", lags)):
        inputs = Inputs(incident, "21_anchor", supplier="s3", consumer="s1", rules="", per_load=20)
        yield (
            f"stepper {name}",
            lambda incident=incident, inputs=inputs: Stepper(incident, inputs),
            [{"what": "step", "by": 3}, {"what": "jump", "to": "end"}, {"what": "step", "by": -2}],
        )
        yield f"anchor {name}", lambda incident=incident, inputs=inputs: AnchorLine(incident, inputs), []
        yield f"stops {name}", lambda incident=incident, inputs=inputs: Stops(incident, inputs), []
    forgetting = {name: Incident(case_of_set(name)) for name in ("synth-missed", "synth-offline8d")}
    for name, incident in {"lost": lost, **forgetting, "graves": Incident(case_of_graves())}.items():
        pulls = incident is not lost
        pair = Inputs(incident, "31_entry_replication", supplier="A", consumer="C") if pulls else None
        picks = [{"what": "pick", "origin": 0, "bar": 0}, {"what": "pick", "origin": 0, "bar": 1}]
        yield f"ranges {name}", lambda incident=incident, pair=pair: RangeBars(incident, pair), picks if pulls else []
        turns = [{"what": "pick", "index": 0}, {"what": "page", "by": 1}, {"what": "page", "by": -1}]
        yield f"listed {name}", lambda incident=incident: PositionList(incident), turns if pulls else []
        dead = turns if name == "graves" else []
        yield f"tombstones {name}", lambda incident=incident: Tombstones(incident), dead
        cell = [{"what": "pick", "row": 0, "column": 0}] if pulls else []
        yield f"floors {name}", lambda incident=incident: FloorGrid(incident), cell
    walked = Inputs(forgetting["synth-missed"], "31_entry_replication", walk="flip-flop")
    yield (
        "walk",
        lambda: WalkThrough(forgetting["synth-missed"], walked),
        [{"what": "go", "to": 6}, {"what": "go", "to": 0}],
    )
    bulk, fleet = bulk_incident(), incident_of("drizzle-fleet")
    for name, incident in (("lost", lost), ("bulk", bulk), ("fleet", fleet)):
        first = [{"what": "pick", "index": 0}] if incident is not lost else []
        yield f"transactions {name}", lambda incident=incident: TransactionLanes(incident), first
        yield f"difference {name}", lambda incident=incident: FleetDifference(incident), first
        yield f"heat {name}", lambda incident=incident: TableHeat(incident), first
    every = Inputs(fleet, "32_transactions", server="replica2", which="all", by="time")
    turns = [{"what": "page", "by": 1}, {"what": "pick", "index": 1}, {"what": "page", "by": -1}]
    yield "transactions all", lambda: TransactionLanes(fleet, every), turns
    stuck_tiers, delayed = tiers_incident(HEALTHY, FROZEN), tiers_incident(HEALTHY, DELAYED)
    tried = Inputs(stuck_tiers, "33_physical_tiers", server="shopdb_an@r6", what_if="lose shopdb_ro@r1; fanout 3")
    for name, incident in (("lost", lost), ("stuck", stuck_tiers), ("delayed", delayed)):
        inputs = tried if incident is stuck_tiers else None
        first = [{"what": "pick", "index": 2}] if incident is not lost else []
        yield f"tiers {name}", lambda incident=incident, inputs=inputs: TierTree(incident, inputs), first
        yield f"coverage {name}", lambda incident=incident: LogCoverage(incident), []
        moves = [{"what": "write", "text": "move shopdb_dr@r4 under shopdb_dr@r5"}, {"what": "write", "text": ""}]
        asked = moves if incident is not lost else []
        yield f"tier changes {name}", lambda incident=incident, inputs=inputs: TierChanges(incident, inputs), asked
    yield "entries", lambda: EntryDiff(lost), [{"what": "pick", "index": 0}]
    plan = planned(lost.case)
    yield "progress", lambda: Progress("reading", lambda: None), [{"what": "cancel"}]
    yield "plan", lambda: PlanView(plan), []
    yield "panel to rehearse", lambda: ConfirmPanel(plan, lost.case.folder), [{"what": "look"}]
    servers = ServerAccess(urls=["s3=ldap://s3.test"])
    yield "panel to confirm", lambda: ConfirmPanel(plan, lost.case.folder, servers), [{"what": "look"}]
    yield "journal", lambda: JournalView(_begun()), [{"what": "look"}]
    yield "checks", lambda: Checks(check_all([lost.case.folder, "nowhere"])), [{"what": "pick", "index": 1}]


@cache
def _begun() -> Path:
    """A folder with the journal of a repair that was stopped."""
    folder = Path(mkdtemp(prefix="workbench-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    apply(plan_of("write", "write at a"), Toy(), folder, most_steps=1)
    return folder


@cache
def states() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, script, and data of every view in every state that the clicks lead to."""
    found = []
    for name, make, messages in samples():
        view = make()
        found.append((name, view._drawn_by, view.data))
        for number, message in enumerate(messages):
            say(view, **message)
            assert not view.notice, (name, message, view.notice)
            found.append((f"{name}, click {number + 1}", view._drawn_by, view.data))
    return found


def all_views(kind: type[View] = View) -> Iterator[type[View]]:
    """Every view there is."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("widgets.") and one._drawn_by:
            yield one
        yield from all_views(one)
