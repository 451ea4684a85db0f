"""Attributes that agreements leave out: no repair brings them to a server that is not to have them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from detector_samples import listening
from entry_samples import entry, logged, mesh
from mesh_samples import case_of, changelog, csn
from planning_samples import purged_here_kept_there

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.left_out_changes import name_only_who_has_it
from workbench.repair.planner import plan
from workbench.systems.ds389.live import entry_executors

FRACTIONAL = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE mail telephoneNumber\n\n"


@pytest.mark.parametrize("fractional", [False, True])
def test_a_temporary_agreement_leaves_out_what_the_present_ones_leave_out(fractional: bool, tmp_path: Path) -> None:
    files = purged_here_kept_there()
    if fractional:
        files["s1.agreements.ldif"] = files["s1.agreements.ldif"].rstrip("\n") + f"\n{FRACTIONAL}"
    feed = plan(case_of(tmp_path, files)).steps[0]
    assert feed.repair == "feed"
    assert ("EXCLUDE mail telephonenumber" in feed.sends) is fractional


def test_the_spelling_of_a_name_is_no_difference(tmp_path: Path) -> None:
    """3.1.2 writes `objectclass` on one server and `objectClass` on another."""
    right = entry("uid=anna", 1, f"mail;vucsn-{csn(1, 1)}: anna@example.com")
    other = entry("uid=anna", 1).replace("objectClass;", "objectclass;")
    found = diagnose(
        case_of(tmp_path, mesh({"r1": (1, 1), "r2": (5, 5)}, {"s1": [right], "s2": [other], "s3": [right]}, {}))
    )
    (differ,) = (one for one in found["findings"] if one["code"] == "ENTRIES_DIFFER")
    assert differ["server"] == "s2" and "(mail)" in differ["summary"]


def with_lists(lists: dict[str, str], *, last: bool = False) -> dict[str, Any]:
    """Each of three servers sends to both others; link -> what it leaves out. `last`: s3 sends nothing."""
    files = mesh({"r1": (1, 1), "r2": (5, 5)}, {name: [entry("uid=anna", 1)] for name in ("s1", "s2", "s3")}, {})
    for name in ("s1", "s2", "s3"):
        parts = [
            one.rstrip("\n")
            + "".join(
                f"\nnsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE {out}"
                for link, out in lists.items()
                if out and f"cn={link}," in one
            )
            for one in str(files[f"{name}.agreements.ldif"]).split("\n\n")
            if one.strip()
        ]
        files[f"{name}.agreements.ldif"] = "\n\n".join(parts) + "\n\n"
    if last:
        del files["s3.agreements.ldif"]
    return files | listening("s3")


@pytest.mark.parametrize(
    ("lists", "named"),
    [
        ({"s1-to-s3": "mail memberOf", "s2-to-s3": "mail"}, ""),
        ({"s1-to-s3": "mail", "s2-to-s3": ""}, "s1-to-s3 of s1 excludes mail, which another one sends"),
        (
            {"s1-to-s3": "mail", "s2-to-s3": "cn"},
            "s1-to-s3 of s1 excludes mail and s2-to-s3 of s2 excludes cn, which another one sends",
        ),
        (
            {"s1-to-s3": "mail", "s2-to-s3": "mail", "s1-to-s2": "mail"},
            "",
        ),
    ],
)
def test_lists_that_differ_are_told_before_anything_is_lost(lists: dict[str, str], named: str, tmp_path: Path) -> None:
    """The servers send to each other, but for s3, which sends nothing; memberOf is computed by each of them."""
    case = case_of(tmp_path, with_lists(lists, last=True))
    told = [one for one in diagnose(case)["findings"] if one["code"] == "LISTS_DIFFER"]
    assert [f"attributes: {named}. What a change does" in one["summary"] for one in told] == [True] * bool(named), told
    assert any(one.startswith("LISTS_DIFFER") for one in plan(case).left) is bool(named)


@pytest.mark.parametrize("back", [True, False])
def test_what_a_way_over_another_server_leaves_out_is_told_too(back: bool, tmp_path: Path) -> None:
    """s2 gets no mail from s1, nor from s3: what it passes on comes without, and may come first."""
    lists = {"s1-to-s2": "mail"} | ({"s3-to-s2": "mail"} if back else {})
    case = case_of(tmp_path, with_lists(lists))
    findings = diagnose(case)["findings"]
    told = {finding["server"]: finding for finding in findings if finding["code"] == "LISTS_DIFFER"}
    by = "s1-to-s2 of s1 excludes mail from what comes by s2-to-s3, which another way lets through"
    if back:
        assert set(told) == {"s1", "s3"}
        assert told["s3"]["summary"].startswith(f"the agreements on the ways to s3 exclude different attributes: {by}")
    else:
        assert set(told) == {"s2"}, "s3 sends s2 all of it"


def test_nothing_is_written_again_that_may_come_without_it_over_another_server(tmp_path: Path) -> None:
    files = with_lists({"s1-to-s2": "mail", "s3-to-s2": "mail"})
    right, wrong = entry("uid=anna", 1, f"mail;vucsn-{csn(2, 1)}: a@example.com"), entry("uid=anna", 1)
    shown = mesh({"r1": (1, 9), "r2": (5, 5)}, {"s1": [right], "s2": [wrong], "s3": [wrong]}, {})
    files |= {name: text for name, text in shown.items() if "agreements" not in name}
    log = logged(csn(2, 1), 1, "uid=anna", "add: mail\nmail: a@example.com\n-\n")
    last = logged(csn(9, 1), 9, "uid=end", "replace: sn\nsn: x\n-\n")
    planned = plan(case_of(tmp_path, files | {"s1.changelog.ldif": log + last}))
    ways = {course.way: course.refused for course in planned.courses if course.need.endswith("s3")}
    assert "excludes mail from what comes by s2-to-s" in ways["rewrite"], ways
    assert "s1-to-s2 of s1 excludes mail from what comes by s2-to-s3" in ways["initialise-from-s2"], ways


@pytest.mark.parametrize(("position", "later"), [(csn(4, 1)[:16] + "0001", False), (csn(5, 1), True)])
def test_a_step_inside_a_change_is_covered_with_it(position: str, later: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vector of s1 ends at a change; a value of another server carries the second step of it."""
    monkeypatch.setattr(entry_executors, "changes_of", lambda *_: {"mail": {position}})
    servers: Any = SimpleNamespace(
        names=lambda _: ["s1", "s2"],
        connected=lambda _: nullcontext(),
        vectors=lambda _: {"s1": {"1": csn(4, 1)}},
    )
    step: Any = SimpleNamespace(details={"dn": "uid=anna,dc=example,dc=com"}, suffix="dc=example,dc=com", on="s1")
    told = [*entry_executors._later_elsewhere(servers, step, {"mail"})]
    assert bool(told) is later


@pytest.mark.parametrize("stripped", [True, False])
def test_a_change_that_a_link_passed_on_without_an_attribute_is_told_by_two_logs(
    stripped: bool, tmp_path: Path
) -> None:
    """The list of the link was set when s1 changed the number, and taken back since: the log of s3 has the rest of the change."""
    by = csn(5, 1)
    number = f"telephoneNumber;adcsn-{by};vucsn-{by}: 7"
    entries = {name: [entry("uid=anna", 17, number)] for name in ("s1", "s2")}
    entries["s3"] = [entry("uid=anna", 17, f"telephoneNumber;vucsn-{csn(1, 1)}: 1")]
    rest = "replace: modifiersName\nmodifiersName: cn=dm\n-\n"
    whole = logged(by, 17, "uid=anna", f"replace: telephoneNumber\ntelephoneNumber: 7\n-\n{rest}")
    logs = dict.fromkeys(entries, whole) | ({"s3": logged(by, 17, "uid=anna", rest)} if stripped else {})
    found = diagnose(case_of(tmp_path, mesh({"r1": (1, 5)}, entries, logs)))
    (row,) = found["missing"]
    assert (row["server"], row["position"]) == ("s3", by)
    (missed,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
    if stripped:
        assert (
            row["says"] == "its log has the change without telephoneNumber, which the log of s1 has: a link left it out"
        )
        assert row["reasons"] == [row["says"]]
        assert "a link left attributes out" in missed["summary"] and "only its entries show" not in missed["summary"]
    else:
        assert "a link" not in row["says"] and "a link left" not in missed["summary"]


def test_who_need_not_have_an_attribute_is_no_source_of_it(tmp_path: Path) -> None:
    """Seen on 2.3.1: no way lets the number through to s2, s3 lacks it, and s2 was named as the server to fill s3 from."""
    by = csn(5, 1)
    number = f"telephoneNumber;adcsn-{by};vucsn-{by}: 7"
    old = f"telephoneNumber;vucsn-{csn(1, 1)}: 1"
    entries = {
        "s1": [entry("uid=anna", 17, number)],
        "s2": [entry("uid=anna", 17, old)],
        "s3": [entry("uid=anna", 17, old)],
    }
    rest = "replace: modifiersName\nmodifiersName: cn=dm\n-\n"
    whole = logged(by, 17, "uid=anna", f"replace: telephoneNumber\ntelephoneNumber: 7\n-\n{rest}")
    part = logged(by, 17, "uid=anna", rest)
    lists = with_lists({"s1-to-s2": "telephoneNumber", "s3-to-s2": "telephoneNumber"}) | listening("s2")
    files = mesh({"r1": (1, 5)}, entries, {"s1": whole, "s2": part, "s3": part})
    files |= {name: text for name, text in lists.items() if name not in files or "agreements" in name}
    case = case_of(tmp_path, files)
    assert {row["server"]: row["held_by"] for row in diagnose(case)["missing"]} == {"s3": ["s1"]}
    assert not [course.way for course in plan(case).courses if "s2" in course.way and not course.refused]


def test_who_misses_a_change_is_not_named_as_one_who_has_it() -> None:
    """The log of c has the change without an attribute; those of d have it whole, which its entries lack."""

    def held(position: str, *names: str) -> list[str]:
        rows = [
            {"server": server, "suffix": "o=x", "position": position, "held_by": [*names]} for server in ("c", "d", "r")
        ]
        name_only_who_has_it(rows, {("c", "o=x", position)})
        return rows[-1]["held_by"]

    assert held(csn(1, 1), "a", "c", "d") == ["a"]
    assert (held(csn(1, 1), "c", "d"), held(csn(1, 1), "c")) == (["d"], [])


def test_a_plan_claims_nothing_of_a_cleaned_origin_and_knows_the_conflicts(tmp_path: Path) -> None:
    """The log of s1 still has a change of origin 7, which its vector does not name any more."""
    mark = f"nsds5ReplConflict;vucsn-{csn(2, 1)}: namingConflict uid=x"
    files = mesh({"r1": (1, 9), "r2": (5, 5)}, {name: [entry("uid=anna", 1, mark)] for name in ("s1", "s2")}, {})
    files["s1.changelog.ldif"] = changelog([csn(2, 7), csn(9, 1)], own_entries=True)
    rows = {row["server"]: row for row in plan(case_of(tmp_path, files)).servers}
    assert rows["s1"]["vector"] == {"1": csn(9, 1), "2": csn(5, 2)}
    assert {name: row["conflicts"] for name, row in rows.items()} == {"s1": 1, "s2": 1}


@pytest.mark.parametrize("without", [True, False])
def test_what_came_without_an_attribute_is_told_by_the_logs(without: bool, tmp_path: Path) -> None:
    """No entries were collected: the log of s3 has the change without mail, that of s1 with it."""
    files = with_lists({"s1-to-s3": "mail"}) | listening("s3")
    files = {name: text for name, text in files.items() if "entries" not in name}
    notes, last = "replace: modifiersname\nmodifiersname: cn=x\n-\n", logged(csn(9, 1), 9, "uid=end", "", "delete")
    whole = logged(csn(2, 1), 1, "uid=anna", f"replace: mail\nmail: a@example.com\n-\n{notes}") + last
    part = logged(csn(2, 1), 1, "uid=anna", notes) + last
    files |= {"s1.changelog.ldif": whole, "s3.changelog.ldif": part if without else whole}
    found = diagnose(case_of(tmp_path, files))
    (told,) = (finding for finding in found["findings"] if finding["code"] == "LISTS_DIFFER")
    assert told["severity"] == ("error" if without else "warning")
    assert list(told["items"]) == ([csn(2, 1)] if without else [])
    assert headline(found).startswith("s3 got 1 change without mail: the agreements to it exclude") is without


def test_of_two_attributes_the_one_that_is_lacking_is_named(tmp_path: Path) -> None:
    """mail is left out on one way, telephoneNumber on the other; the change did both, and came without mail."""
    files = with_lists({"s1-to-s3": "mail", "s2-to-s3": "telephoneNumber"}) | listening("s3")
    files = {name: text for name, text in files.items() if "entries" not in name}
    phone, last = "replace: telephoneNumber\ntelephoneNumber: 7\n-\n", logged(csn(9, 1), 9, "uid=end", "", "delete")
    for name, mail in (("s1", "replace: mail\nmail: a@example.com\n-\n"), ("s3", "")):
        files[f"{name}.changelog.ldif"] = logged(csn(2, 1), 1, "uid=anna", mail + phone) + last
    found = diagnose(case_of(tmp_path, files))
    (told,) = (finding for finding in found["findings"] if finding["code"] == "LISTS_DIFFER")
    assert (told["severity"], "s3 got 1 change without mail, as" in told["summary"]) == ("error", True)
    assert told["fix"][1]["repair"].startswith("then write the present values of mail of these entries once more")


def test_no_server_is_filled_whose_values_would_be_left_out_again(tmp_path: Path) -> None:
    files = with_lists({"s1-to-s3": "mail"})
    right, wrong = entry("uid=anna", 1, f"mail;vucsn-{csn(2, 1)}: a@example.com"), entry("uid=anna", 1)
    shown = mesh({"r1": (1, 9), "r2": (5, 5)}, {"s1": [right], "s2": [right], "s3": [wrong]}, {})
    files |= {name: text for name, text in shown.items() if "agreements" not in name}
    planned = plan(case_of(tmp_path, files))
    ways = {course.way: course.refused for course in planned.courses if course.need.endswith("s3")}
    assert "s1-to-s3 of s1 excludes mail" in ways["initialise-from-s2"], ways
    assert not planned.steps


def test_lists_that_differ_are_the_root_where_entries_lack_what_they_leave_out(tmp_path: Path) -> None:
    """Seen on 2.3.1: of a read-only server, which shows no changelog, only entries and missing changes were told first."""
    files = with_lists({"s1-to-s3": "mail"}, last=True)
    mail = f"mail;vucsn-{csn(1, 1)}: anna@example.com\n\n"
    for name in ("s1", "s2"):
        files[f"{name}.entries.ldif"] = str(files[f"{name}.entries.ldif"]).rstrip("\n") + f"\n{mail}"
    found = diagnose(case_of(tmp_path, files))
    (told,) = (one for one in found["findings"] if one["code"] == "LISTS_DIFFER")
    assert told["severity"] == "error"
    assert headline(found).startswith(
        "The agreements to s3 exclude different attributes, in which 1 entry of it differs"
    )


@pytest.mark.parametrize(
    ("strips", "what", "cause"),
    [
        ("modifiersname modifytimestamp", "replace: mail\nmail: a@example.com\n-\n", "LISTS_DIFFER"),
        ("modifytimestamp", "replace: mail\nmail: a@example.com\n-\n", None),
        ("modifiersname modifytimestamp", "replace: mail\nmail: a@x\n-\nreplace: sn\nsn: x\n-\n", None),
    ],
    ids=["nothing is left of it", "who wrote it is left", "another attribute is left"],
)
def test_a_change_of_which_a_link_leaves_out_all_is_missed_for_that(
    strips: str, what: str, cause: str | None, tmp_path: Path
) -> None:
    """Seen on 3.1.2: of 58 changes of description alone nothing told why the hub missed them."""
    files = with_lists({"s1-to-s3": "mail"}) | listening("s3")
    files = {name: text for name, text in files.items() if "entries" not in name}
    lists = str(files["s1.agreements.ldif"])
    here = "nsDS5ReplicatedAttributeList: "
    assert lists.count(here) == 1
    files["s1.agreements.ldif"] = lists.replace(here, f"nsds5ReplicaStripAttrs: {strips}\n{here}")
    first, last = (logged(csn(second, 1), second, f"uid=n{second}", "", "delete") for second in (1, 9))
    files |= {
        "s1.changelog.ldif": first + logged(csn(2, 1), 2, "uid=anna", what) + last,
        "s3.changelog.ldif": first + last,
    }
    rows = {
        row["position"]: row["cause"] for row in diagnose(case_of(tmp_path, files))["missing"] if row["server"] == "s3"
    }
    assert rows == {csn(2, 1): cause}
