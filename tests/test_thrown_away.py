"""Changes that went with the old data of their maker: said once, with who threw them away, and no way that could bring them."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, of, plain_line, zulu
from entry_samples import answered, entry, export
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import Case, diagnose
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.verdicts import verdicts_on
from workbench.safety import to_yaml
from workbench.topology.topology import logs_of, topology

LOST = [csn(second, 1) for second in (10, 11)]
LATER = csn(40, 1)


def folder(began: int | None, *, there: bool = False, third: bool = False) -> dict[str, Any]:
    """s1 made the lost changes, was initialised from s2 in that second, and made a later one, which s2 got.

    `there`: s2 had got the lost ones. `third`: a server without any log but its vector.
    """
    ruv = elements(claims(r1=(1, 40), r2=(1, 2)))
    initialised = (
        f"nsds5replicaLastInitStart: {zulu(began)}\nnsds5replicaLastInitEnd: {zulu(began + 1)}\n" if began else ""
    )
    name = "uid=u,ou=people"
    got = [*(LOST if there else []), LATER]
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([LATER], marks=[csn(9, 1)]),
        "s1.access.log": "".join(answered(second, name, csn(second, 1)) for second in (5, 10, 11, 40)),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, ruv),
        "s2.changelog.ldif": changelog([*(csn(second, 1) for second in (1, 5)), *got, *(csn(n, 2) for n in (1, 2))]),
        "s2.access.log": "".join(
            answered(second, name, position, replicated=True)
            for second, position in [(6, csn(5, 1)), *((int(one[:8], 16) - 0x66000000 + 1, one) for one in got)]
        ),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901).rstrip("\n") + f"\n{initialised}\n",
    }
    if third:
        files["s3.replica.ldif"] = replica(3, ruv)
    return files


def test_what_an_initialisation_threw_away_is_said_with_who_did_it(tmp_path: Path) -> None:
    found = findings(tmp_path, folder(20))
    (one,) = of("CHANGES_THROWN_AWAY", found)
    assert (one["server"], one["origin"], one["items"], one["severity"]) == ("s1", "1", LOST, "error")
    assert "no collected server holds 2 changes of s1 any more" in one["summary"]
    assert "s1 made them before s2 initialised it at 2024-" in one["summary"]
    assert one["root"] == "no collected server holds 2 changes of s1 any more"
    # Without its entries the log of s1, made anew, proves nothing of its own changes.
    (missed,) = of("MISSED_CHANGE", found)
    assert (missed["server"], missed["items"]) == ("s2", LOST)
    assert [fix["repair"] for fix in missed["fix"]] == ["do what CHANGES_THROWN_AWAY of s1 says"]
    assert "initialise" not in str(missed["fix"])


@pytest.mark.parametrize(
    ("about", "more"),
    [
        ("they were there before", {"began": 8}),
        ("nothing was replaced", {"began": None}),
        ("s2 has them", {"there": True}),
    ],
)
def test_nothing_was_thrown_away_where(about: str, more: dict[str, Any], tmp_path: Path) -> None:
    assert not of("CHANGES_THROWN_AWAY", findings(tmp_path, folder(**{"began": 20} | more))), about


def test_a_server_of_which_nothing_is_known_may_have_them(tmp_path: Path) -> None:
    found = findings(tmp_path, folder(20, third=True))
    assert of("MISSED_CHANGE", found)
    assert not of("CHANGES_THROWN_AWAY", found)


def test_what_its_maker_still_shows_is_not_thrown_away(tmp_path: Path) -> None:
    """s1 was filled from a file that had them: its entries carry what s2 lacks."""
    ruv = elements(claims(r1=(1, 40), r2=(1, 2)))
    files = folder(20)
    shown = f"description;adcsn-{LOST[0]};vucsn-{LOST[0]}: a\nmail;vucsn-{LOST[1][:16]}0001: a@example.com"
    files["s1.entries.ldif"] = export(ruv, [entry("uid=u,ou=people", 17, shown)])
    files["s2.entries.ldif"] = export(ruv, [entry("uid=u,ou=people", 17)])
    found = findings(tmp_path, files)
    assert not of("CHANGES_THROWN_AWAY", found)
    (missed,) = of("MISSED_CHANGE", found)
    assert "CHANGES_THROWN_AWAY" not in str(missed["fix"])


def test_nobody_knows_what_a_source_had_that_was_not_collected(tmp_path: Path) -> None:
    files = folder(None)
    begun = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
    ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    files["s1.errors.log"] = plain_line(20, f"{begun}; disabling replication") + plain_line(21, ended)
    assert not of("CHANGES_THROWN_AWAY", findings(tmp_path, files))


def test_each_suffix_has_its_own_makers(tmp_path: Path) -> None:
    """The replica ID 1 is of s1 in one suffix and of s2 in the other; changes of both were thrown away."""
    first = folder(20)
    other = {
        name.replace("s1.", "x.").replace("s2.", "s1.").replace("x.", "s2."): text for name, text in folder(20).items()
    }
    case = tmp_path / "both"
    case.mkdir()
    about = []
    for number, (suffix, files) in enumerate((("dc=example,dc=com", first), ("o=two", other))):
        for name, text in files.items():
            path = f"{number}-{name}"
            place = suffix.replace("=", r"\3D").replace(",", r"\2C")  # as an agreement has it in its name
            (case / path).write_text(
                text.replace("dc=example,dc=com", suffix).replace(r"dc\3Dexample\2Cdc\3Dcom", place)
            )
            about.append(f"- name: {name.partition('.')[0]}\n  suffix: {suffix}\n  files: [{path}]\n")
    (case / "case.yaml").write_text(f"system: ds389\nservers:\n{''.join(about)}")
    made = Case.create(tmp_path / "case")
    made.load([case])
    thrown = [one for one in diagnose(made)["findings"] if one["code"] == "CHANGES_THROWN_AWAY"]
    assert {(one["server"], one["suffix"]) for one in thrown} == {("s1", "dc=example,dc=com"), ("s2", "o=two")}


@pytest.mark.parametrize("told", [True, False])
def test_equal_entries_show_nothing_of_changes_that_went_with_the_old_data(told: bool, tmp_path: Path) -> None:
    """The maker's data were replaced, so equal entries prove nothing. The summary says that a later change may have replaced
    the values. Where the access log of s2 covers the time and does not name the change, it is missing on s2."""
    ruv = elements(claims(r1=(1, 40), r2=(1, 2)))
    for number, old in enumerate(("description: old\n", "")):
        shown = export(ruv, [entry("uid=u,ou=people", 1, f"{old}telephoneNumber;adcsn-{LATER};vucsn-{LATER}: 117")])
        files = folder(20) | {f"{name}.entries.ldif": shown for name in ("s1", "s2")}
        if not told:
            del files["s2.access.log"]
        found = diagnose(case_of(tmp_path / str(number), files))
        (one,) = of("CHANGES_THROWN_AWAY", found["findings"])
        assert (one["items"], one["severity"]) == (LOST, "error" if told else "warning")
        unsure = {(row["server"], row["count"]) for row in found["unknown"] if row["why"] == "written_since"}
        assert (unsure, bool(found["missing"])) == (set() if told else {("s1", 2), ("s2", 2)}, told)
        assert "later changes replaced values of their entries: perhaps what they wrote" in one["summary"]


def verdicts(folder_of: Path, files: dict[str, Any], position: str = LOST[0]) -> dict[str, tuple[str, str]]:
    """Server -> verdict and rule on one change, by the diagnosis and as `explain` tells it."""
    given = folder_of / "given"
    given.mkdir(parents=True)
    for name, text in files.items():
        (given / name).write_text(text)
    case = Case.create(folder_of / "case")
    case.load([given])
    found, shown = diagnose(case), topology(case)
    told = {one.server: (one.verdict, one.rule) for one in verdicts_on(case, shown, logs_of(case, shown), position)}
    missing = {row["server"] for row in found["missing"] if row["position"] == position}
    assert missing == {server for server, (verdict, _) in told.items() if verdict == "missing"}
    return told


def filled_from_s2(mark: str) -> dict[str, Any]:
    """s1 made the lost changes, s2 initialised it without them and it made a later one; then s2 initialised s3."""
    files = folder(20)
    files["s1.changelog.ldif"] = changelog([LATER], marks=[mark])
    ruv = elements({**claims(r1=(1, 40), r2=(1, 2)), 3: None})
    begun = f"nsds5replicaLastInitStart: {zulu(50)}\nnsds5replicaLastInitEnd: {zulu(51)}\n"
    files["s2.agreements.ldif"] += agreement("s2-to-s3", 38903).rstrip("\n") + f"\n{begun}\n"
    files["s3.replica.ldif"] = replica(3, ruv)
    files["s3.changelog.ldif"] = changelog([csn(55, 2)], marks=[LATER])
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    return files


def test_no_server_has_what_the_server_lacked_that_its_data_came_from(tmp_path: Path) -> None:
    """The vector that came along claims the lost changes, for their maker made a later one: no proof that they came."""
    lacking = ("missing", "source_lacks")
    told = verdicts(tmp_path, filled_from_s2(csn(12, 1)))
    assert told == {"s1": lacking, "s2": ("missing", "log_lacks"), "s3": lacking}
    (one,) = of("CHANGES_THROWN_AWAY", findings(tmp_path / "found", filled_from_s2(csn(12, 1))))
    assert "no collected server holds 2 changes" in one["summary"]


def test_what_a_server_got_since_it_was_filled_it_has(tmp_path: Path) -> None:
    files = filled_from_s2(csn(12, 1))
    files["s3.access.log"] = answered(52, "uid=u,ou=people", LOST[0], replicated=True)
    assert verdicts(tmp_path, files)["s3"] == ("present", "applied")


@pytest.mark.parametrize("later", [True, False])
def test_what_its_source_got_only_after_it_had_filled_the_server_did_not_come_with_it(
    later: bool, tmp_path: Path
) -> None:
    """s2 filled s1 at 20 to 21 s; it took the changes that s1 had lost by that at 30 s, or had them before."""
    files = folder(20, there=True)
    files["s1.changelog.ldif"] = changelog([LATER], marks=[csn(12, 1)])
    name = "uid=u,ou=people"
    times = ((30, LOST[0]), (31, LOST[1])) if later else ((10, LOST[0]), (11, LOST[1]))
    lines = [(6, csn(5, 1)), *times, (41, LATER)]
    files["s2.access.log"] = "".join(answered(second, name, position, replicated=True) for second, position in lines)
    assert (verdicts(tmp_path, files)["s1"] == ("missing", "source_lacks")) is later


@pytest.mark.parametrize("doubt", ["switched", "clock", ""])
def test_a_log_that_may_have_begun_later_proves_nothing_by_what_it_does_not_name(doubt: str, tmp_path: Path) -> None:
    """s2 filled s3 at 50 s, and took two changes of s1 at 60 s; the log of s3 was switched then, or began by a clock behind."""
    last, name = csn(61, 1), "uid=u,ou=people"
    files = folder(None, there=True)
    ruv = elements({**claims(r1=(1, 61), r2=(1, 2)), 3: None})
    files |= {f"s{number}.replica.ldif": replica(number, ruv) for number in (1, 2, 3)}
    files["s1.changelog.ldif"] = changelog([csn(5, 1), *LOST, LATER, last])
    files["s2.changelog.ldif"] = changelog([csn(1, 1), csn(5, 1), *LOST, LATER, last, csn(1, 2), csn(2, 2)])
    came = [(6, csn(5, 1)), (41, LATER), *((60, one) for one in LOST), (62, last)]
    files["s2.access.log"] = "".join(answered(second, name, position, replicated=True) for second, position in came)
    filled = f"nsds5replicaLastInitStart: {zulu(50)}\nnsds5replicaLastInitEnd: {zulu(51)}\n"
    files["s2.agreements.ldif"] += agreement("s2-to-s3", 38903).rstrip("\n") + f"\n{filled}\n"
    switch = answered(60, "cn=config", "").replace(f",{SUFFIX}", "") if doubt == "switched" else ""
    files["s3.access.log"] = "".join(
        (
            answered(40, "uid=x,ou=people", csn(100 if doubt == "clock" else 1, 2)),
            switch,
            answered(61, name, last, replicated=True),
            answered(70, "uid=x,ou=people", csn(2, 2), replicated=True),
        )
    )
    lacks = ("unknown", "not_shown") if doubt else ("missing", "log_lacks")
    assert verdicts(tmp_path, files)["s3"] == lacks


def test_a_claim_that_is_false_elsewhere_proves_nothing(tmp_path: Path) -> None:
    """s3 was filled by a server that was not collected: whether that one had what s2 lacks, nobody knows."""
    files = filled_from_s2(csn(12, 1))
    files["s2.agreements.ldif"] = files["s2.agreements.ldif"].partition("dn: cn=s2-to-s3")[0]
    begun = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
    ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    files["s3.errors.log"] = plain_line(50, f"{begun}; disabling replication") + plain_line(51, ended)
    assert verdicts(tmp_path, files)["s3"] == ("unknown", "not_shown")


@pytest.mark.parametrize(("filled", "rule"), [(3, "state_lacks"), (30, "source_lacks")])
def test_data_that_came_before_a_change_are_no_reason_for_its_lack(filled: int, rule: str, tmp_path: Path) -> None:
    """s2 filled s3 before s1 added the entry, or behind that; the entries of s3 do not have it."""
    files = filled_from_s2(csn(12, 1))
    added = [answered(second, f"uid=u{second},ou=people", csn(second, 1), operation="ADD") for second in (10, 11)]
    files["s1.access.log"] = "".join([answered(5, "uid=u,ou=people", csn(5, 1)), *added])
    for before, now in ((zulu(50), zulu(filled)), (zulu(51), zulu(filled + 1))):
        files["s2.agreements.ldif"] = files["s2.agreements.ldif"].replace(before, now)
    ruv = elements({**claims(r1=(1, 40), r2=(1, 2)), 3: None})
    files |= {f"{name}.entries.ldif": export(ruv, [entry("uid=other,ou=people", 1)]) for name in ("s2", "s3")}
    del files["s3.changelog.ldif"]
    assert verdicts(tmp_path, files)["s3"] == ("missing", rule)


@pytest.mark.parametrize(("later", "lost"), [([csn(38, 1)], "s1"), ([], None)])
def test_a_maker_whose_clock_was_ahead_lost_changes_with_its_old_data(
    later: list[str], lost: str | None, tmp_path: Path
) -> None:
    """s1 made a change a day ahead; its clock was set back, s2 initialised it, and its next change has a lower position."""
    ahead = csn(86_400, 1)
    files = folder(20)
    lines = [answered(second, "uid=u,ou=people", csn(second, 1)) for second in (5, 10, 11)]
    lines += [answered(86_400, "uid=ahead,ou=people", ahead)]
    files["s1.access.log"] = "".join([*lines, *(answered(38, "uid=u,ou=people", one) for one in later)])
    case = case_of(tmp_path, files)
    (waits,) = (row for row in diagnose(case)["pending"] if row["last"] == ahead)
    assert (waits["server"], waits["lost_by"]) == ("s2", lost)


def held_back(*, got: bool = False) -> dict[str, Any]:
    """s1 made the lost changes, which s2 did not get, was filled from s2, and made another one that is still to come.

    got  s2 has applied the lost ones since it told its vector
    """
    files = folder(20)
    ruv = elements(claims(r1=(1, 5), r2=(1, 2)))
    files |= {"s1.replica.ldif": replica(1, ruv), "s2.replica.ldif": replica(2, ruv)}
    files["s1.changelog.ldif"] = changelog([], marks=[csn(5, 1)])
    files["s2.changelog.ldif"] = changelog([csn(1, 1), csn(5, 1), csn(1, 2), csn(2, 2)])
    name = "uid=u,ou=people"
    lines = [answered(6, name, csn(5, 1), replicated=True)]
    lines += [answered(30, name, one, replicated=True) for one in LOST] if got else []
    files["s2.access.log"] = "".join(lines)
    return files


def test_of_what_waits_the_part_is_named_that_went_with_the_old_data(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, held_back()))
    (one,) = (one for one in found["findings"] if one["code"] == "CHANGES_THROWN_AWAY")
    assert (one["server"], one["items"], one["severity"]) == ("s1", LOST, "error")
    assert "the access log of s1 names operation and entry" in one["fix"][-1]["repair"]
    rows = {row["server"]: (row["count"], row["lost"], row["lost_by"]) for row in found["pending"]}
    assert rows == {"s1": (2, 2, "s1"), "s2": (3, 2, None)}
    assert headline(found).startswith(
        "No collected server holds 2 changes of s1 any more; no other change is known to be missing; 1 change is newer"
    )
    about = ("PENDING_CHANGES", "s2")
    (waits,) = (one for one in found["findings"] if (one["code"], one["server"]) == about)
    assert [fix["repair"] for fix in waits["fix"]] == ["do what CHANGES_THROWN_AWAY says of 2 changes of origin 1"]


def test_what_another_server_has_got_meanwhile_is_not_lost(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, held_back(got=True)))
    assert not [one for one in found["findings"] if one["code"] == "CHANGES_THROWN_AWAY"]
    assert not any(row["lost"] for row in found["pending"])


def test_what_another_server_claimed_when_it_was_read_once_more_is_not_said_to_be_lost(tmp_path: Path) -> None:
    """s2 has come to the later one of the two by then: another server s3 waits for both all the same."""
    files = held_back() | {"s3.replica.ldif": replica(3, elements({**claims(r1=(1, 5), r2=(1, 2)), 3: None}))}
    read = {"from": "2024-03-24T10:00:00+00:00", "until": "2024-03-24T10:00:01+00:00"}
    collected = [{"server": name, "role": "supplier", **read} for name in ("s1", "s2", "s3")]
    for moved in ({}, {"moved_to": {SUFFIX: {"1": LOST[1]}}}):
        collected[1] |= moved
        servers = [{"name": name, "files": [f"{name}.*"]} for name in ("s1", "s2", "s3")]
        about = {"system": "ds389", "servers": servers, "collected": collected}
        found = diagnose(case_of(tmp_path / str(len(moved)), files | {"case.yaml": to_yaml(about)}))
        assert bool(of("CHANGES_THROWN_AWAY", found["findings"])) == (not moved)


@pytest.mark.parametrize("added", [True, False])
def test_what_was_made_again_is_not_said_to_be_missing(added: bool, tmp_path: Path) -> None:
    """Somebody wrote on s2 what was saved of s1; without the addition it may be any later change of an entry that was there."""
    files = folder(20)
    name = "uid=v,ou=people"
    files["s1.access.log"] = answered(5, "uid=u,ou=people", csn(5, 1)) + "".join(
        answered(second, name, csn(second, 1), operation=what) for second, what in ((10, "ADD"), (11, "MOD"))
    )
    files["s1.access.log"] += answered(40, "uid=u,ou=people", LATER)
    again = ((50, "ADD"), (51, "MOD")) if added else ((51, "MOD"),)
    files["s2.access.log"] += "".join(answered(second, name, csn(second, 2), operation=what) for second, what in again)
    ruv = elements(claims(r1=(1, 40), r2=(1, 51)))
    files |= {f"{one}.replica.ldif": replica(number, ruv) for number, one in ((1, "s1"), (2, "s2"))}
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert bool(found["missing"]) is not added
    assert any(row["why"] == "made_again" for row in found["unknown"]) is added
    assert [one["items"] for one in of("PERHAPS_MADE_AGAIN", found["findings"])] == [LOST] * added
    shown = topology(case)
    told = {one.verdict for one in verdicts_on(case, shown, logs_of(case, shown), LOST[0])}
    assert ("missing" in told) is not added


def deleted(
    *, on_s2: bool = True, again: bool = False, renamed: bool = False, replaced: bool = False
) -> dict[str, Any]:
    """s2 refused a change of an entry that it had deleted before; s1, which made it, deleted the entry after it.

    replaced  the data of s1 was replaced by that of s2 after its deletion
    """
    name = "uid=v,ou=people"
    ruv = elements(claims(r1=(1, 12), r2=(1, 5)))
    lines = [answered(10, name, csn(10, 1)), answered(14, name, csn(5, 2), operation="DEL", replicated=True)]
    lines += [answered(16, name, csn(13, 1), operation="ADD")] if again else []
    if renamed:  # what is deleted then is another entry
        lines[1:1] = [
            answered(12, name, csn(3, 2), operation="MODRDN"),
            answered(13, name, csn(4, 2), operation="ADD"),
        ]
    refused = answered(10, name, csn(10, 1), replicated=True).replace("err=0", "err=32")
    body = b64encode(b"replace: description\ndescription: x\n-\n").decode()
    unique = "00000077-00000000-00000000-00000001"
    made = f"changetype: modify\ncsn: {csn(10, 1)}\nnsuniqueid: {unique}\ndn: {name},{SUFFIX}\nchange:: {body}\n\n"
    filled = f"\nnsds5replicaLastInitStart: {zulu(20)}\nnsds5replicaLastInitEnd: {zulu(21)}\n\n" if replaced else "\n\n"
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": changelog([csn(1, 1), csn(12, 1), csn(1, 2), csn(5, 2)]) + made,
        "s2.changelog.ldif": changelog([csn(1, 1), csn(12, 1), csn(1, 2), csn(5, 2)]),
        "s1.access.log": answered(1, "uid=u,ou=people", csn(1, 1)) + "".join(lines if on_s2 else lines[:1]),
        "s2.access.log": answered(5, name, csn(5, 2), operation="DEL") + refused,
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901).rstrip("\n") + filled,
    }


@pytest.mark.parametrize(
    ("about", "more", "lacks"),
    [
        ("gone on both", {}, False),
        ("deleted in data that its maker does not have any more", {"replaced": True}, True),
        ("still there on its maker", {"on_s2": False}, True),
        ("added again on its maker", {"again": True}, True),
        ("renamed on its maker before", {"renamed": True}, True),
    ],
)
def test_a_change_of_an_entry_that_was_deleted_since_lacks_nowhere(
    about: str, more: dict[str, bool], lacks: bool, tmp_path: Path
) -> None:
    told = verdicts(tmp_path, deleted(**more), csn(10, 1))
    assert told["s2"] == (("missing", "skipped") if lacks else ("present", "deleted_since")), about
    found = diagnose(Case.open(tmp_path / "case"))
    assert bool(of("APPLY_SKIPPED", found["findings"])) is bool(found["stranded"]) is lacks


def passing(*, deleted_again: bool = True, before: bool = False) -> dict[str, Any]:
    """s1 added, changed and deleted an entry; of none of it s2 has a record, although its log goes on behind it.

    before  an older entry of that name, which s2 has, was deleted at 9 s: s2 has no record of that either
    """
    name = "uid=v,ou=people"
    done = [(10, "ADD"), (11, "MOD"), *([(12, "DEL")] if deleted_again else [])]
    old = [(2, "ADD"), (9, "DEL")] if before else []
    ruv = elements(claims(r1=(1, 20), r2=(1, 5)))
    kept = [csn(1, 1), *([csn(2, 1)] if before else []), csn(20, 1)]
    lines = [*old, *done]
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": changelog([csn(20, 1)]),
        "s2.changelog.ldif": changelog(kept),
        "s1.access.log": "".join(answered(second, name, csn(second, 1), operation=what) for second, what in lines),
        "s2.access.log": answered(1, "uid=u,ou=people", csn(1, 1), replicated=True)
        + "".join(answered(2, name, csn(2, 1), replicated=True, operation="ADD") for _ in old[:1])
        + answered(21, "uid=u,ou=people", csn(20, 1), replicated=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }


@pytest.mark.parametrize(
    ("about", "more", "lacks"),
    [
        ("gone again", {}, set()),
        ("still there", {"deleted_again": False}, {10, 11}),
        ("in the place of one that s2 has still", {"before": True}, {9}),
    ],
)
def test_an_entry_that_came_and_went_lacks_nowhere(
    about: str, more: dict[str, bool], lacks: set[int], tmp_path: Path
) -> None:
    files = passing(**more)
    for second in (*((9,) if more.get("before") else ()), 10, 11, *((12,) if more.get("deleted_again", True) else ())):
        told = verdicts(tmp_path / str(second), files, csn(second, 1))
        assert (told["s2"][0] == "missing") is (second in lacks), (about, second, told)
    found = diagnose(Case.open(tmp_path / "10" / "case"))
    assert {row["position"] for row in found["missing"]} == {csn(second, 1) for second in lacks}, about


U, V, W = (f"uid={name},ou=people" for name in "uvw")
Told = tuple[int, str, str, str]
"""Second, entry, operation and position of a line of an access log."""


def of_one_name(s1: list[Told], s2: list[Told], kept: list[str]) -> dict[str, Any]:
    """What two servers did under a few names, and what the log of s2 keeps; all that s1 made is covered by its vector."""

    def lines(mine: list[Told], own: str) -> str:
        done = [*mine, (20 if own == "1" else 21, U, "MOD", csn(20, 1))]
        return "".join(
            answered(second, name, position, replicated=int(position[12:16], 16) != int(own), operation=what)
            for second, name, what, position in done
        )

    ruv = elements(claims(r1=(1, 20), r2=(1, 5)))
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s2.replica.ldif": replica(2, ruv),
        "s1.changelog.ldif": changelog([csn(20, 1)]),
        "s2.changelog.ldif": changelog([csn(1, 1), *kept, csn(20, 1)]),
        "s1.access.log": lines(s1, "1"),
        "s2.access.log": lines(s2, "2"),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }


SEVERAL = {
    "another entry was renamed to the name, and deleted under it": of_one_name(
        [
            *((2, W, "ADD", csn(2, 1)), (3, V, "ADD", csn(3, 1)), (4, V, "DEL", csn(4, 1))),
            *((6, W, "MODRDN", csn(6, 1)), (12, V, "DEL", csn(12, 1))),
        ],
        [(2, W, "ADD", csn(2, 1)), (6, W, "MODRDN", csn(6, 1))],
        [csn(2, 1), csn(6, 1)],
    ),
    "another entry of the name was added, as no access log shows": of_one_name(
        [(3, V, "ADD", csn(3, 1)), (4, V, "DEL", csn(4, 1)), (12, V, "DEL", csn(12, 1))], [], [csn(6, 1)]
    ),
    "both servers added one of the name, and the older one was deleted": of_one_name(
        [(6, V, "ADD", csn(6, 1)), (7, V, "ADD", csn(5, 2)), (12, V, "DEL", csn(12, 1))],
        [(5, V, "ADD", csn(5, 2)), (13, V, "DEL", csn(12, 1))],
        [csn(5, 2), csn(12, 1)],
    ),
    "the deletion of the entry before came late": of_one_name(
        [(1, V, "ADD", csn(1, 1)), (8, V, "DEL", csn(8, 1)), (10, V, "ADD", csn(10, 1)), (12, V, "DEL", csn(4, 2))],
        [(2, V, "ADD", csn(1, 1)), (4, V, "DEL", csn(4, 2)), (9, V, "DEL", csn(8, 1))],
        [csn(4, 2), csn(8, 1)],
    ),
}


@pytest.mark.parametrize(("about", "lacks"), [*zip(SEVERAL, (12, 12, 6, 10), strict=True)])
def test_a_deletion_of_another_entry_of_that_name_tells_nothing(about: str, lacks: int, tmp_path: Path) -> None:
    assert verdicts(tmp_path, SEVERAL[about], csn(lacks, 1))["s2"][0] == "missing"
    found = diagnose(Case.open(tmp_path / "case"))
    assert [(row["server"], row["position"]) for row in found["missing"]] == [("s2", csn(lacks, 1))]


FORMER = {
    "renamed away before": of_one_name(
        [
            *((2, V, "ADD", csn(2, 1)), (3, V, "MODRDN", csn(3, 1))),
            *((5, V, "ADD", csn(5, 1)), (12, V, "DEL", csn(12, 1))),
        ],
        [(2, V, "ADD", csn(2, 1)), (3, V, "MODRDN", csn(3, 1))],
        [csn(2, 1), csn(3, 1)],
    ),
    "one of two that were deleted": of_one_name(
        [
            *((2, V, "ADD", csn(2, 1)), (3, V, "ADD", csn(2, 2)), (4, V, "DEL", csn(4, 1))),
            *((7, V, "ADD", csn(7, 1)), (12, V, "DEL", csn(12, 1))),
        ],
        [(2, V, "ADD", csn(2, 2)), (3, V, "ADD", csn(2, 1)), (5, V, "DEL", csn(4, 1))],
        [csn(2, 1), csn(2, 2), csn(4, 1)],
    ),
}


@pytest.mark.parametrize(("about", "added"), [*zip(FORMER, (5, 7), strict=True)])
def test_a_former_entry_of_that_name_does_not_matter(about: str, added: int, tmp_path: Path) -> None:
    """An entry of that name came and went behind it, and never was on s2."""
    assert verdicts(tmp_path, FORMER[about], csn(added, 1))["s2"] == ("present", "deleted_since")
    assert not diagnose(Case.open(tmp_path / "case"))["missing"]


def refilled() -> dict[str, Any]:
    """s1 added, changed and deleted an entry that nobody got; then it was initialised from s2."""
    files = passing()
    times = f"nsds5replicaLastInitStart: {zulu(15)}\nnsds5replicaLastInitEnd: {zulu(16)}\n"
    files["s2.agreements.ldif"] = files["s2.agreements.ldif"].rstrip("\n") + f"\n{times}\n"
    return files


def test_an_entry_that_came_and_went_before_the_data_was_replaced_is_nowhere(tmp_path: Path) -> None:
    """Whoever made its addition again would bring back what somebody deleted."""
    assert verdicts(tmp_path, refilled(), csn(10, 1))["s2"][0] == "present"
    found = diagnose(Case.open(tmp_path / "case"))
    assert not [row for row in found["missing"] if row["operation"] == "add"]


def test_a_log_that_was_collected_twice_tells_of_no_second_entry(tmp_path: Path) -> None:
    """A rotated copy of the access log of s1 holds the lines that the log itself holds as well."""
    files = passing()
    files["s1.access.rotated.log"] = files["s1.access.log"]
    told = verdicts(tmp_path, files, csn(10, 1))
    assert told["s2"] == ("present", "deleted_since")


@pytest.mark.parametrize("fraction", [".000000000", ".500000000"])
def test_what_a_source_took_in_the_second_in_which_it_filled_another_may_have_come_along(
    fraction: str, tmp_path: Path
) -> None:
    files = folder(20, there=True)
    files["s1.changelog.ldif"] = changelog([LATER], marks=[csn(12, 1)])
    lines = [(6, csn(5, 1)), (21, LOST[0]), (21, LOST[1]), (41, LATER)]
    told = [(second, answered(second, "uid=u,ou=people", position, replicated=True)) for second, position in lines]
    files["s2.access.log"] = "".join(
        line.replace(".000000000", fraction) if second == 21 else line for second, line in told
    )
    assert verdicts(tmp_path, files)["s1"][0] == "present"


def written_again(name: str, ruv: list[str]) -> dict[str, Any]:
    """Nobody has what s1 made and lost of an entry; what was saved of it was written again on s2."""
    files = held_back()
    lost = ((10, "ADD"), (11, "MOD"))
    files["s1.access.log"] = "".join(answered(second, name, csn(second, 1), operation=what) for second, what in lost)
    files["s1.access.log"] += answered(40, "uid=u,ou=people", LATER)
    again = ((50, "ADD"), (51, "MOD"))
    files["s2.access.log"] += "".join(answered(second, name, csn(second, 2), operation=what) for second, what in again)
    files |= {f"{server}.replica.ldif": replica(number, ruv) for number, server in ((1, "s1"), (2, "s2"))}
    return files


def test_what_waits_and_was_made_again_waits_no_more(tmp_path: Path) -> None:
    """Nobody has what s1 made and lost; what was saved of it was written again on s2, which waits for it by its vector."""
    ruv = elements(claims(r1=(1, 5), r2=(1, 51)))
    files = written_again("uid=v,ou=people", ruv)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert not of("CHANGES_THROWN_AWAY", found["findings"])
    assert {row["server"] for row in found["unknown"] if row["why"] == "made_again"} == {"s1", "s2"}
    assert {row["server"]: (row["count"], row["lost"]) for row in found["pending"]} == {"s2": (1, 0)}
    assert context_of(case)[0].verdicts.unsure == {(SUFFIX, one): "made_again" for one in LOST}


def test_what_a_server_has_by_its_entries_is_not_taken_out_of_what_it_waits_for(tmp_path: Path) -> None:
    """s2 waits for one of the two changes and for a later one: its entries show the other one, which no count has."""
    ruv = elements(claims(r1=(1, 5), r2=(1, 51)))
    files = written_again("uid=v,ou=people", ruv)
    files["s2.entries.ldif"] = export(
        ruv, [entry("uid=v,ou=people", 17, f"cn;vucsn-{csn(50, 2)}: v", f"description;vucsn-{LOST[1]}: x")]
    )
    files["s2.errors.log"] = plain_line(0, "INFO - slapd_daemon - slapd started.")
    found = diagnose(case_of(tmp_path, files))
    assert {row["server"]: row["count"] for row in found["pending"]} == {"s2": 1}
