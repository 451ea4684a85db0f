"""A server that cleaned its own replica ID and was started again: its log was emptied, and its data stayed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from detector_samples import listening, of, plain_line, zulu
from entry_samples import answered
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.rules.vectors import Span
from workbench.rules.verdicts import LOG_REPLACED, REPLACED
from workbench.systems.ds389.repairs.restarting import restarted_first

PLUGIN = "NSMMReplicationPlugin"
CLEANED = f"INFO - {PLUGIN} - CleanAllRUV Task (rid 1): Successfully cleaned rid(1)"


def differs(origin: int) -> str:
    """What a start says of an element that the log has, and the vector no more."""
    return (
        f"ERR - {PLUGIN} - ruv_compare_ruv - The max CSN [{csn(11, origin)}] from RUV [changelog max RUV] is larger than the max "
        f"CSN [] from RUV [database RUV] for element [{{replica {origin}}} {csn(1, origin)} {csn(11, origin)}]"
    )


def folder(*, of_origin: int = 1, cleaned: bool = True) -> dict[str, Any]:
    """s1 made changes at 10 and 11 s, cleaned its own ID at 20 s, and started at 40 s; s2 cleaned it, and took neither.

    of_origin  whose element its log and its data tell differently at the start
    cleaned    its log says that it cleaned the ID
    """
    emptied = (
        f"WARN - {PLUGIN} - replica_check_for_data_reload - Data for replica {SUFFIX} does not match the data in the "
    )
    lines = [
        *([(20, CLEANED)] if cleaned else []),
        (40, "INFO - main - 389-Directory/3.1.2 B2026.125.0709 starting up"),
        (41, differs(of_origin)),
        (
            42,
            f"{emptied}changelog. Recreating the changelog file. This could affect replication with replica's consumers",
        ),
    ]
    ruv = elements({**claims(r2=(1, 12)), 1: None})
    name = "uid=u,ou=people"
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([], marks=[csn(12, 2)]),
        "s1.errors.log": "".join(plain_line(second, text) for second, text in lines),
        "s1.access.log": "".join(answered(second, name, csn(second, 1)) for second in (10, 11)),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, ruv),
        "s2.changelog.ldif": changelog([csn(1, 2), csn(12, 2)]),
        "s2.errors.log": plain_line(19, CLEANED),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }


@pytest.mark.parametrize(
    ("about", "more", "kind"),
    [
        ("it cleaned its own ID", {}, LOG_REPLACED),
        ("the element of another one differs", {"of_origin": 2}, REPLACED),
        ("nothing tells of a cleaning", {"cleaned": False}, REPLACED),
    ],
)
def test_a_log_that_is_emptied_because_of_a_cleaning_tells_of_no_other_data(
    about: str, more: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    """Seen on 3.1.2: its changes were said to be lost with its data, which were never replaced."""
    context, found = context_of(case_of(tmp_path, folder(**more)))
    kinds = [one.kind for one in context.verdicts.resets["s1", SUFFIX]]
    assert kinds == [kind], about
    assert kind == REPLACED or not [one for one in found if one.code == "CHANGES_THROWN_AWAY"]


def test_who_has_an_element_without_a_csn_cleaned_it_as_well(tmp_path: Path) -> None:
    (alive,) = of("CLEANED_ORIGIN_ALIVE", diagnose(case_of(tmp_path, folder()))["findings"])
    assert alive["root"] == "replica ID 1 was cleaned on s2, and s1 has it"


def test_what_nobody_would_send_is_not_dropped(tmp_path: Path) -> None:
    """Seen on 3.1.2: the vector of the maker has no element of its own, so that its sessions send nothing."""
    drops = f"{PLUGIN} - multisupplier_extop_cleanruv - CleanAllRUV Task - Successfully cleaned rid(1)."
    files = folder() | {
        "s2.replica.ldif": replica(65535, elements(claims(r2=(1, 12))), flags=0),
        "s2.errors.log": plain_line(19, f"INFO - {drops}"),
        "s1.access.log": "".join(answered(second, "uid=u,ou=people", csn(second, 1)) for second in (30, 31)),
    }
    del files["s2.changelog.ldif"], files["s2.agreements.ldif"]
    found = diagnose(case_of(tmp_path, files))
    (row,) = (row for row in found["pending"] if row["server"] == "s2")
    assert row["dropped_since"] and not row["suppliers"]
    assert "which drops" not in headline(found)
    (waits,) = (one for one in of("PENDING_CHANGES", found["findings"]) if one["server"] == "s2")
    assert waits["fix"][0]["why"].startswith("nobody would send them now")


@pytest.mark.parametrize(("filled", "waits"), [(20, 1), (None, 3)])
def test_what_came_with_the_data_of_its_maker_is_not_waited_for(filled: int | None, waits: int, tmp_path: Path) -> None:
    """Seen on 2.3.1: a server was said to wait for 382 changes, 380 of which had come with data; its vector names none."""
    ruv = elements({**claims(r2=(1, 12)), 1: None})
    init = f"nsds5replicaLastInitStart: {zulu(filled)}\nnsds5replicaLastInitEnd: {zulu(filled + 1)}\n" if filled else ""
    name = "uid=u,ou=people"
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([csn(12, 2), csn(30, 1)]),
        "s1.access.log": "".join(answered(second, name, csn(second, 1)) for second in (10, 11, 30)),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903).rstrip("\n") + f"\n{init}\n",
        "s3.replica.ldif": replica(65535, elements(claims(r2=(1, 12))), flags=0),
    } | listening("s3")
    found = diagnose(case_of(tmp_path, files))
    assert [row["count"] for row in found["pending"] if (row["server"], row["origin"]) == ("s3", "1")] == [waits]


@pytest.mark.parametrize(
    ("claims_it", "makes_it", "refused"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_who_drops_an_origin_is_restarted_before_it_is_filled_with_more_of_it(
    claims_it: bool, makes_it: bool, refused: bool
) -> None:
    """Seen on 2.3.1: the vector of the maker had no element of its own, and the plan filled a hub that dropped its changes."""
    vector = {"2": Span(csn(1, 2), csn(9, 2))} if claims_it else {}
    servers = {"b": SimpleNamespace(vector=vector), "h": SimpleNamespace(forgets={"2"})}
    maker = SimpleNamespace(origin="2" if makes_it else "1")
    context = SimpleNamespace(replica=lambda *about: maker, verdicts=SimpleNamespace(remembers={}))
    view: Any = SimpleNamespace(model=SimpleNamespace(servers=servers), context=context, suffix=SUFFIX)
    assert bool(restarted_first(view, "b", "h")) is refused
