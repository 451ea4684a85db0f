"""What every style of replication promises (`workbench.contracts.replication`): the same promises, of each system's incidents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from build_incidents import FOLDER, SYSTEMS
from mesh_samples import SUFFIX, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench import Case, diagnose
from workbench.case.case import Case as Loaded
from workbench.contracts.replication import PlanGrounds
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.detectors import detected
from workbench.systems import system_named
from workbench.topology.topology import Topology, logs_of, topology

OF_A_STYLE = {"servers", "streams", "fleet", "appliers", "transactions", "trees"}
FEW = 12
"""So many incidents of each system are asked, spread over all that there are."""


def mesh_with_a_loss(folder: Path) -> Loaded:
    """s2 never got the change of second 3, and claims a later one."""
    vector = elements(claims(r1=(0, 4), r2=(1, 2)))
    every = [csn(second, 1) for second in range(5)]
    return case_of(
        folder,
        {
            "s1.replica.ldif": replica(1, vector),
            "s1.changelog.ldif": changelog([*every, csn(1, 2), csn(2, 2)], own_entries=True),
            "s2.replica.ldif": replica(2, vector),
            "s2.changelog.ldif": changelog([*every[:3], every[4], csn(1, 2), csn(2, 2)], own_entries=True),
        },
    )


def names() -> Iterator[str]:
    yield from ("ds389/loss", "ds389/behind")
    for system, incidents in SYSTEMS.items():
        every = sorted(incidents)
        yield from (f"{system}/{name}" for name in every[:: max(1, len(every) // FEW)])


@pytest.fixture(params=[*names()])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Loaded, Topology]:
    """A case and its topology."""
    system, name = request.param.split("/")
    if system == "ds389":
        case = mesh_with_a_loss(tmp_path) if name == "loss" else case_of(tmp_path, pair_of_servers(40, 4))
    else:
        case = Case.create(tmp_path / "case")
        case.load([FOLDER / system / name])
    return case, topology(case)


def test_it_judges_the_servers_of_the_topology_and_the_same_each_time(given: tuple[Loaded, Topology]) -> None:
    case, shown = given
    style = shown.system.replication()
    pairs, judged = style.judge(case, shown, 1000)
    known = {replica.server for replica in shown.replicas}
    assert {row[end] for row in pairs for end in ("supplier", "consumer")} <= known
    judged_servers = {row["server"] for row in (*judged.missing, *judged.unknown, *judged.stranded)}
    reported = {row["name"] for row in style.tables(judged, 1000).get("servers", ())}
    assert judged_servers <= known | reported
    assert style.tables(judged, 1000).keys() <= OF_A_STYLE
    again, once_more = style.judge(case, shown, 1000)
    assert again == pairs
    for name in ("missing", "pending", "unknown", "stranded", "errant"):
        assert getattr(once_more, name) == getattr(judged, name), name


def test_what_it_takes_for_granted_changes_no_finding(given: tuple[Loaded, Topology]) -> None:
    case, shown = given
    style = shown.system.replication()
    pairs, judged = style.judge(case, shown, 1000)
    context = DetectorContext(case, shown, pairs, judged)
    plain, grounded = [*detected(context)], [*style.grounded(detected(context), judged)]
    assert [(finding.code, finding.server, finding.severity) for finding in grounded] == [
        (finding.code, finding.server, finding.severity) for finding in plain
    ]
    assert all({*before.assumes} <= {*after.assumes} for before, after in zip(plain, grounded, strict=True))


def test_it_explains_what_it_found_missing(given: tuple[Loaded, Topology]) -> None:
    case, shown = given
    style, found = shown.system.replication(), diagnose(case)
    logs = logs_of(case, shown)
    for row in found["missing"][:5]:
        key = shown.system.typed(row["position"])
        assert key is not None
        explained = style.explain(case, shown, key, logs)
        verdicts = {(verdict.server, verdict.suffix): verdict.verdict for verdict in explained.verdicts}
        assert verdicts[row["server"], row["suffix"]] == "missing"
        assert all(verdicts[name, row["suffix"]] == "present" for name in row["held_by"])
        for sender in explained.senders(explained.position, row["server"], row["suffix"]):
            assert {"supplier", "link", "decision", "outcome", "why"} <= sender.keys()
            assert sender["supplier"] != row["server"]


def test_its_sections_are_of_the_diagnosis(given: tuple[Loaded, Topology]) -> None:
    case, shown = given
    found = diagnose(case)
    own = shown.system.replication().sections(shown.system, found)
    shows = any(found[name] for name in OF_A_STYLE - {"servers"})
    assert bool(own.tables) == shows, "what a style alone has stands in its tables"


def test_its_plan_model_lacks_what_it_found_missing_and_settles_to_what_stays(given: tuple[Loaded, Topology]) -> None:
    """What a model lacks after all sessions have run is missing or waits for somebody; it never lacks more than before."""
    case, shown = given
    style = shown.system.replication()
    pairs, judged = style.judge(case, shown, 1000)
    context = DetectorContext(case, shown, pairs, judged)
    for suffix in {one.suffix for one in shown.replicas if one.claims or shown.system.streaming}:
        model = style.plan_model(context, suffix, PlanGrounds())
        missing = {
            row["server"] for row in judged.missing if row["suffix"] == suffix and row["server"] in model.servers
        }
        assert missing <= {one.server for one in model.missing() | model.pending()}
        later = model.copy()
        later.settle()
        assert later.missing() | later.pending() <= model.missing() | model.pending()
        assert later.servers.keys() == model.servers.keys()


def test_every_system_picks_a_style() -> None:
    styles = {
        name: type(system_named(name).replication()).__name__ for name in ("ds389", "kanidm", "drizzle", "comdb2")
    }
    assert len({*styles.values()}) == len(styles)


def test_the_loss_is_a_loss(tmp_path: Path) -> None:
    (row,) = diagnose(mesh_with_a_loss(tmp_path))["missing"]
    assert (row["server"], row["suffix"], row["position"], row["held_by"]) == ("s2", SUFFIX, csn(3, 1), ["s1"])
