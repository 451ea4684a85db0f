"""Disabled links behind which changes wait: the first line names them, and no advice goes in a circle."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, of, status, with_status
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.output_keys import undocumented
from workbench.repair.case_plan import plan_for
from workbench.report.report_pipeline import pseudonyms_of, redacted_report

OLD, NEW = [csn(second, 4) for second in range(3)], [csn(second, 4) for second in range(3, 15)]


def mesh(off: Collection[str] = (), without: Collection[str] = (), seen: Collection[str] = ("d",)) -> dict[str, Any]:
    """a, b, c and d all send to each other; d made 12 changes that only those `seen` have. Links `off`, and none `without`."""
    numbers = {"a": 1, "b": 2, "c": 3, "d": 4}
    files: dict[str, Any] = {}
    for name, number in numbers.items():
        has = name in seen
        files[f"{name}.replica.ldif"] = replica(number, elements(claims(r4=(0, 14 if has else 2))))
        files[f"{name}.changelog.ldif"] = changelog([*OLD, *(NEW if has else [])], own_entries=True)
        files[f"{name}.agreements.ldif"] = "".join(
            agreement(link, 38900 + other, enabled=link not in off)
            for to, other in numbers.items()
            if to != name and (link := f"{name}-to-{to}") not in without
        )
        files[f"{name}.replica.ldif"] = files[f"{name}.replica.ldif"].replace(
            elements({4: None})[1], f"{{replica 4 ldap://localhost.localdomain:{38904}}}"
        )
    for name, number in numbers.items():
        title = f"\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost:{38900 + number} (/etc/dirsrv/slapd-{name})\n\n"
        files[f"{name}.errors.log"] = title
    return files


def diagnosed(tmp_path: Path, **about: Any) -> dict[str, Any]:
    found = diagnose(case_of(tmp_path, mesh(**about)))
    assert not undocumented(found)
    return found


FROM_D = ("d-to-a", "d-to-b", "d-to-c")


def test_the_first_line_names_disabled_links_behind_which_everything_waits(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, off=FROM_D)
    assert headline(found) == (
        "12 changes have not arrived at a, b, c: 3 links are disabled: d-to-a, d-to-b, d-to-c; no change is missing."
    )
    for one in of("PENDING_CHANGES", found["findings"]):
        (fix,) = one["fix"]
        assert fix["repair"] == "do what LINK_DISABLED says on d-to-a, d-to-b or d-to-c"
        assert fix["why"].startswith("they arrive as soon as one of these links runs")
    assert [one["waiting"] for one in of("LINK_DISABLED", found["findings"])] == [12, 12, 12]
    assert all("12 changes wait behind it" in one["summary"] for one in of("LINK_DISABLED", found["findings"]))


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (("d-to-a", "d-to-b"), "No change is missing; 12 are on the way to a, b, c; see also LINK_DISABLED."),
        (("a-to-b",), "No change is missing; 12 are on the way to a, b, c; see also LINK_DISABLED."),
        (
            (*FROM_D, "a-to-b", "b-to-a", "b-to-c"),
            "12 changes have not arrived at a, b, c: 3 links are disabled: d-to-a, d-to-b, d-to-c; no change is missing.",
        ),
    ],
)
def test_links_around_which_changes_get_are_not_named(off: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert headline(diagnosed(tmp_path, off=off)) == said


def test_on_a_way_with_two_closed_links_both_are_named(tmp_path: Path) -> None:
    """d feeds a alone, a feeds b, and b feeds c: d-to-a and a-to-b are off."""
    every = {f"{one}-to-{other}" for one in "abcd" for other in "abcd"}
    found = diagnosed(tmp_path, off=("d-to-a", "a-to-b"), without=every - {"d-to-a", "a-to-b", "b-to-c"})
    assert headline(found).startswith("12 changes have not arrived at a, b, c: 2 links are disabled: a-to-b, d-to-a;")
    fixes = {one["server"]: one["fix"][0]["repair"] for one in of("PENDING_CHANGES", found["findings"])}
    assert fixes == {
        "a": "do what LINK_DISABLED says on d-to-a",
        "b": "do what LINK_DISABLED says on a-to-b and d-to-a",
        "c": "do what LINK_DISABLED says on a-to-b and d-to-a",
    }


def test_no_advice_goes_in_a_circle(tmp_path: Path) -> None:
    """No link leads away from d: a, b and c would pass the changes on, and none of them gets them."""
    found = diagnosed(tmp_path, without=FROM_D)
    repairs = [one["fix"][0]["repair"] for one in of("PENDING_CHANGES", found["findings"])]
    assert repairs == ["make an agreement from d to a, b or c"] * 3
    assert headline(found) == (
        "No change is missing; 12 are stranded on d; 12 have not arrived at a, b, c, and nobody would send them now."
    )


@pytest.mark.parametrize(
    ("others", "first", "why"),
    [
        ("abc", "make an agreement from d to b or c", "a would take d for itself"),
        (
            "a",
            "make d a supplier with an origin of its own, and an agreement from there to a",
            "a would take d for itself",
        ),
    ],
)
def test_no_agreement_leads_from_a_hub_to_a_server_that_takes_it_for_itself(
    others: str, first: str, why: str, tmp_path: Path
) -> None:
    """Seen on 3.1.2: e (4) is gone, and only the hub d has its last changes; the element of a stands first in the RUV of d."""
    away = [f"{by}-to-{to}" for by in "abcd" for to in "abcd" if by == "d" or to not in f"{others}d"]
    files = mesh(without=away)
    del files["d.agreements.ldif"]
    for name, number in {"a": 1, "b": 2, "c": 3}.items():
        files[f"{name}.replica.ldif"] = replica(number, elements(claims(r1=(0, 1), r4=(0, 2))))
    files["d.replica.ldif"] = replica(65535, elements(claims(r1=(0, 1), r4=(0, 14))))
    for name in "abcd":
        files[f"{name}.replica.ldif"] = files[f"{name}.replica.ldif"].replace(":38904", ":38999")
    files = {name: text for name, text in files.items() if name[0] in f"{others}d"}
    found = diagnose(case_of(tmp_path, files))
    fixes = [one["fix"][0] for one in of("PENDING_CHANGES", found["findings"]) if one["origin"] == "4"]
    assert {fix["repair"] for fix in fixes} == {first} and all(why in fix["why"] for fix in fixes)


def test_what_no_link_can_bring_is_a_warning(tmp_path: Path) -> None:
    """d was a hub that feeds r, and was made a supplier: what it writes stands on d and r, and comes to no other server."""
    files = mesh(without=FROM_D)
    files["d.agreements.ldif"] = agreement("d-to-r", 38905)
    files["r.replica.ldif"] = replica(65535, elements(claims(r4=(0, 14))), flags=0)
    files["r.errors.log"] = files["d.errors.log"].replace("38904", "38905").replace("slapd-d", "slapd-r")
    found = diagnose(case_of(tmp_path, files))
    pending = of("PENDING_CHANGES", found["findings"])
    assert [finding["severity"] for finding in pending] == ["warning"] * 3
    assert all("no link leads from d or r to " in finding["summary"] for finding in pending)
    assert not found["stranded"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_link_of_a_server_that_keeps_no_log_is_not_switched_on(kept: bool, tmp_path: Path) -> None:
    """d was made a read-only consumer, and its agreements were switched off."""
    files = mesh(off=FROM_D)
    if not kept:
        files["d.replica.ldif"] = replica(65535, elements(claims(r4=(0, 14))), flags=0)
        del files["d.changelog.ldif"]
    case = case_of(tmp_path, files)
    for finding in of("LINK_DISABLED", diagnose(case)["findings"]):
        assert finding["fix"][-1]["repair"].startswith(
            "switch it on" if kept else "leave it off, and take it away if d is"
        )
    made = plan_for(case)
    assert bool([step for step in made.steps if step.repair == "enable"]) is kept


def test_what_a_demoted_server_made_is_sent_by_no_session_of_it(tmp_path: Path) -> None:
    """Seen on 2.3.1: d made 12 changes, and was made a hub: its vector ends before them, and no session brings them."""
    files = mesh(off=FROM_D)
    files["d.replica.ldif"] = replica(65535, elements(claims(r4=(0, 2))), flags=1)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert {row["server"] for row in found["stranded"]} == {"d"}
    made = plan_for(case)
    assert not [step for step in made.steps if step.repair in ("enable", "initialise")]
    assert any("d alone has changes of origin 4, as which it makes changes no more" in why for why in made.open)


def test_a_report_says_so_too_and_gives_no_name_away(tmp_path: Path) -> None:
    files = {name.replace("a.", "acme.", 1): text for name, text in mesh(off=("d-to-a", "d-to-b", "d-to-c")).items()}
    files = {name: text.replace("d-to-a", "d-to-acme") for name, text in files.items()}
    incident = Incident(case_of(tmp_path, files))
    said = redacted_report(incident, pseudonyms_of(incident))["headline"]
    assert "3 links are disabled: link-" in said and "acme" not in said


@pytest.mark.parametrize("begun_anew", [True, False])
def test_a_link_that_could_not_send_is_not_switched_on(begun_anew: bool, tmp_path: Path) -> None:
    """h waits behind a wrong password of a-to-h; b-to-h is off, and the changelog of b may begin behind what h has."""
    made = [csn(second, 1) for second in range(10)]
    both = claims(r1=(0, 9), r2=(1, 2))
    logged = [*made[8:], csn(9, 2)] if begun_anew else [*made, csn(1, 2), csn(2, 2)]
    refused = "Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
    case = case_of(
        tmp_path,
        {
            "s1.replica.ldif": replica(1, elements(both)),
            "s1.changelog.ldif": changelog([*made, csn(1, 2), csn(2, 2)]),
            "s1.agreements.ldif": agreement("s1-to-s2", 38902)
            + with_status(agreement("s1-to-s3", 38903), status(49, refused, "red", 10, 11)),
            "s2.replica.ldif": replica(2, elements(both)),
            "s2.changelog.ldif": changelog(logged),
            "s2.agreements.ldif": agreement("s2-to-s1", 38901) + agreement("s2-to-s3", 38903, enabled=False),
            "s3.replica.ldif": replica(65535, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0),
        }
        | listening("s3"),
    )
    made_plan = plan_for(case)
    enable = next(one for one in made_plan.courses if one.way == "enable")
    assert ("the record at which a session has to begin is not in its changelog" in enable.refused) is begun_anew
    first = made_plan.steps[0].repair if made_plan.steps else ""
    assert (first == "enable" and len(made_plan.steps) == 1) is not begun_anew, "else only with new data"


def test_nothing_is_switched_on_before_a_restored_server_is_thought_of(tmp_path: Path) -> None:
    """d was restored: what comes to it first, and its own next change, decide what of its own is lost."""
    files = mesh(seen="abc", off=("a-to-d", "b-to-d", "c-to-d"))
    started = (
        "[24/Mar/2024:10:28:00.000000000 +0000] - INFO - slapd_daemon - slapd started.  Listening on All Interfaces"
    )
    files["d.errors.log"] += f"{started} port 38904 for LDAP requests\n"
    found = diagnose(case_of(tmp_path, files))
    assert headline(found).startswith("Own changes are gone on d, which was restored from an older state")
    for finding in of("LINK_DISABLED", found["findings"]):
        assert finding["fix"][0]["repair"].startswith("first stop all writes on d"), finding["fix"]


@pytest.mark.parametrize("failing", [("a", "d"), ("a",)])
def test_a_server_that_alone_feeds_another_is_not_filled(failing: Collection[str], tmp_path: Path) -> None:
    """b lacks changes that its vector covers; filled now, its new log might have no record at which a session to c begins."""
    files = mesh(seen="abcd")
    files["b.changelog.ldif"] = changelog([*OLD, NEW[-1]], own_entries=True)
    refused = "Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
    for name in failing:
        links = files[f"{name}.agreements.ldif"].split("\n\n")
        given = [
            with_status(f"{one}\n\n", status(49, refused, "red", 20, 21)) if "to-c" in one else f"{one}\n\n"
            for one in links
        ]
        files[f"{name}.agreements.ldif"] = "".join(given)
    made = plan_for(case_of(tmp_path, files))
    course = next(course for course in made.courses if course.way == "initialise-from-a" and " b" in course.need)
    says = "b alone feeds c while a-to-c, d-to-c fail, and the log of a filled server is new"
    assert (says in course.refused) is (len(failing) == 2), course.refused
