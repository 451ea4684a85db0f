"""What a diagnosis and a plan say of servers, links and steps is no more than what the collected files show."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import link_samples
import pytest
from detector_samples import listening, of, with_status
from entry_samples import answered, entry, export, logged, mesh
from link_samples import line, told
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from planning_samples import READ_ONLY, purged_here_kept_there, server, stranded
from test_cleaned_and_filled import came_back
from test_left_out_attributes import with_lists
from test_refused_meanwhile import FULL, refusing, says
from test_thrown_away import verdicts
from test_ways_that_lose import begins_later

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.model import Finding
from workbench.repair.plan_types import IF_BEHIND, Step
from workbench.repair.planner import plan
from workbench.repair.unmended_findings import Taken, not_mended

Files = dict[str, Any]

NOTES = "replace: modifiersName\nmodifiersName: cn=dm\n-\n"
READ = "Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)"
IMPORTED = f"INFO - bdb_public_bdb_import_main - import userroot: {READ}"
LAST = logged(csn(9, 1), 9, "uid=end", "", "delete")


def fixes(found: dict[str, Any], code: str, server: str | None = None) -> list[str]:
    """Each step of the findings of a code: what to do, why, and the caution."""
    return [
        f"{fix['repair']} | {fix['why']} | {fix['caution']}"
        for finding in found["findings"]
        if finding["code"] == code and server in (None, finding["server"])
        for fix in finding["fix"]
    ]


# --- servers that were not collected


def test_what_a_hub_alone_has_of_the_collected_servers_came_from_one_that_was_not(tmp_path: Path) -> None:
    """s1 made 10 changes and feeds the hub h1; s2 has 5 of them. s1 was not collected."""
    all_of_them, some = claims(r1=(0, 9), r2=(0, 0)), claims(r1=(0, 4), r2=(0, 0))
    made, own = [csn(second, 1) for second in range(10)], [csn(0, 2)]
    links = {name: _plain(agreement(name, port)) for name, port in (("s2-to-s1", 38921), ("h1-to-c1", 38951))}
    files = {
        **server("s2", 2, some, [*made[:5], *own], links["s2-to-s1"]),
        **server("h1", READ_ONLY, all_of_them, [*made, *own], links["h1-to-c1"]),
        **listening("s2"),
        **listening("h1"),
    }
    found = diagnose(case_of(tmp_path, files))["findings"]
    (stranded,) = of("STRANDED_CHANGE", found)
    (pending,) = of("PENDING_CHANGES", found)
    save, collect, write = stranded["fix"]
    for one in (collect, *pending["fix"]):
        assert one["repair"].startswith("collect from ")
        assert one["caution"].startswith("do not write them once more before that")
    assert save["repair"] == "save them before anything else is done to h1"
    assert write["repair"].startswith("if no other server has them, write the values again")


def _plain(agreement: str) -> str:
    """The agreement of a link without encryption: it leads to the port that its consumer tells."""
    return agreement.replace("nsDS5ReplicaHost:", "nsDS5ReplicaTransportInfo: LDAP\nnsDS5ReplicaHost:")


# --- attributes that a link left out


def stripped_on(*names: str) -> Files:
    """s1 set the number of anna; the logs of these servers have the change without it, their entries lack it."""
    by = csn(5, 1)
    right = entry("uid=anna", 17, f"telephoneNumber;adcsn-{by};vucsn-{by}: 7")
    wrong = entry("uid=anna", 17, f"telephoneNumber;vucsn-{csn(1, 1)}: 1")
    servers = ("s1", "s2", "s3")
    whole = logged(by, 17, "uid=anna", f"replace: telephoneNumber\ntelephoneNumber: 7\n-\n{NOTES}")
    rest = logged(by, 17, "uid=anna", NOTES)
    return mesh(
        {"r1": (1, 5)},
        {name: [wrong if name in names else right] for name in servers},
        {name: rest if name in names else whole for name in servers},
    )


@pytest.mark.parametrize("stripped", [("s3",), ("s1", "s3"), ("s2", "s3")])
def test_a_plan_does_not_take_a_stripped_change_for_healed(stripped: tuple[str, ...], tmp_path: Path) -> None:
    """Whichever log is read first: what the change did is what any log shows of it."""
    case = case_of(tmp_path, stripped_on(*stripped))
    assert of("ENTRIES_DIFFER", diagnose(case)["findings"]) or of("MISSED_CHANGE", diagnose(case)["findings"])
    made = plan(case)
    assert not [line for line in made.open if "a later change already brought" in line], made.open


def without_mail(*names: str) -> Files:
    """s1-to-s3 excludes mail. s2 changed it; the logs of these servers have that change without mail."""
    files: Files = with_lists({"s1-to-s3": "mail"}) | listening("s3")
    files = {name: text for name, text in files.items() if "entries" not in name}
    whole = logged(csn(2, 1), 1, "uid=anna", f"replace: mail\nmail: a@example.com\n-\n{NOTES}") + LAST
    rest = logged(csn(2, 1), 1, "uid=anna", NOTES) + LAST
    return files | {f"{name}.changelog.ldif": rest if name in names else whole for name in ("s1", "s2", "s3")}


def test_which_logs_have_a_change_without_an_attribute_is_told(tmp_path: Path) -> None:
    """s3 passed the change on to s1 as it got it: s1 is a supplier of s3, and has it without mail, too."""
    found = diagnose(case_of(tmp_path, without_mail("s1", "s3")))
    differ = {finding["server"]: finding for finding in of("LISTS_DIFFER", found["findings"])}["s3"]
    assert "those of its suppliers have them whole" not in differ["summary"]
    assert (
        "the changelog of s1 has 1 of them without, too; the changelog of s2 has 1 of them whole" in differ["summary"]
    )
    again = differ["fix"][1]
    assert again["repair"].startswith(
        "then write the present values of mail of these entries once more on s2, or initialise s3 from s2"
    )
    assert again["caution"].startswith("s1 has changes without mail, too")


# --- links that fail


def test_a_link_over_which_the_refused_change_came_since_does_not_fail(tmp_path: Path) -> None:
    """The disk of s2 was full at 9, 12 and 15 s; a session began at 18 s, and s2 answered the refused change and three more."""
    full = "bdb_public_txn_commit - Serious Error---Failed in dblayer_txn_commit, err=28 (No space left on device)"
    files = refusing(began=18, read=24, off=False, own=says(full))
    files["s2.access.log"] = "".join(
        answered(14 + at, f"uid=u{at},ou=people", csn(at, 1), replicated=True) for at in (5, 6, 7, 8)
    )
    found = diagnose(case_of(tmp_path, files))
    assert "it has written since then" in of("DATABASE_FAILING", found["findings"])[0]["summary"]
    texts = [finding["summary"] for finding in of("LINK_FAILING", found["findings"])]
    assert not [text for text in texts if "refuses the change" in text], texts


@pytest.mark.parametrize("since", [True, False])
def test_a_change_that_was_taken_since_is_not_refused_again_and_again(since: bool, tmp_path: Path) -> None:
    """s2 refused 5 at 9, 12 and 15 s, was started at 17 s, and answered 5 with success at 19 s, or at 8 s."""
    files = refusing(began=18, read=20, off=False, own=says(FULL))
    start = "INFO - main - 389-Directory/2.3.1 B2022.272.1534 starting up"
    files["s2.errors.log"] += line(17, start) + line(
        17.5, "INFO - slapd_daemon - slapd started.  Listening on port 38902"
    )
    files["s2.access.log"] = answered(19 if since else 8, "uid=u5,ou=people", csn(5, 1), replicated=True)
    found = diagnose(case_of(tmp_path, files))
    assert bool(of("APPLY_RETRY_LOOP", found["findings"])) is not since


def test_a_server_that_passes_over_changes_cannot_deliver_them(tmp_path: Path) -> None:
    """s2 waits for 5 to 9. The login of s1 is refused there; h3, whose link runs, begins at 7 and passes over 5 and 6."""
    files = begins_later(True)
    files["s1.agreements.ldif"] += with_status(agreement("s1-to-s2", 38902), told(link_samples.REFUSED_LOGIN))
    found = diagnose(case_of(tmp_path, files))
    assert "passes over 2 of them for good" in of("PENDING_CHANGES", found["findings"])[0]["summary"]
    (failing,) = of("LINK_FAILING", found["findings"])
    assert "5 changes wait behind it" in failing["summary"] and "h3 can deliver them" not in failing["summary"]


NO_LOG = "Error (15) Replication error acquiring replica: Changelog database error was encountered (changelog error)"


@pytest.mark.parametrize("shown", [True, False])
def test_what_a_read_only_server_made_before_is_told_behind_its_links(shown: bool, tmp_path: Path) -> None:
    """s3 made 5 to 9, which s1 has not got, and is a read-only consumer now. `shown`: its access log has them."""
    ruv = elements(claims(r1=(1, 9), r3=(1, 4)))
    files: Files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([*(csn(at, 1) for at in range(1, 10)), *(csn(at, 3) for at in range(1, 5))]),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903),
        "s3.replica.ldif": replica(65535, ruv, flags=0),
        "s3.agreements.ldif": with_status(agreement("s3-to-s1", 38901), told(NO_LOG)),
    }
    if shown:
        files["s3.access.log"] = "".join(answered(at, f"uid=u{at},ou=people", csn(at, 3)) for at in range(1, 10))
    (failing,) = of("LINK_FAILING", diagnose(case_of(tmp_path, files | listening("s1")))["findings"])
    assert ("nothing waits behind it" in failing["summary"]) is not shown
    if shown:
        assert "s3 has 5 changes that s1 waits for, and no collected changelog has them" in failing["summary"]


def without_its_anchor(value: str = "", log: str = "") -> Files:
    """s2 has changes up to 4, the changelog of s1 begins at 6. `value`: nsds5ReplicaIgnoreMissingChange; `log`: of s1."""
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.changelog.ldif"] = changelog([csn(at, 1) for at in range(6, 10)])
    more = f"nsds5ReplicaIgnoreMissingChange: {value}\n" if value else ""
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), told(NO_LOG, more=more))
    head = 'ERR - agmt="cn=to-s2" (localhost:38902) - clcache_load_buffer - Can\'t locate CSN'
    tail = "in the changelog (DB rc=-12793). If replication stops, the consumer may need to be reinitialized."
    files["s1.errors.log"] = log or line(20, f"{head} {csn(4, 1)} {tail}")
    return files


def test_a_changelog_without_the_anchor_is_not_one_that_cannot_be_read(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, without_its_anchor()))
    (failing,) = of("LINK_FAILING", found["findings"])
    assert (
        f"the session finds no record of its anchor {csn(4, 1)} in the changelog of s1 (code 15" in failing["summary"]
    )
    assert failing["reason"] == "anchor_lost"
    assert not [text for text in fixes(found, "LINK_FAILING") if text.startswith("restart s1")]
    assert "ANCHOR_PURGED" in fixes(found, "LINK_FAILING")[0]


def test_over_a_link_that_lost_its_anchor_all_data_can_be_sent(tmp_path: Path) -> None:
    case = case_of(tmp_path, without_its_anchor())
    (failing,) = of("LINK_FAILING", diagnose(case)["findings"])
    assert failing["reason"] == "anchor_lost"
    made = plan(case)
    assert [step.key for step in made.steps] == ["1-initialise-s2-from-s1"]
    assert [course.way for course in made.courses if course.chosen] == ["initialise-from-s1"]


def test_a_changelog_that_is_not_open_is_opened_by_a_restart(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, without_its_anchor(log=line(20, "INFO - something - else"))))
    assert fixes(found, "LINK_FAILING")[0].startswith("restart s1")


@pytest.mark.parametrize("value", ["always", "once", "on", "never", "off", ""])
def test_an_agreement_that_ignores_what_its_supplier_lacks_is_told(value: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, without_its_anchor(value))
    found, is_set = diagnose(case), value in ("always", "once", "on")
    value = value.replace("on", "once") if value == "on" else value
    assert [finding["link"] for finding in of("MISSING_CHANGES_IGNORED", found["findings"])] == ["to-s2"] * is_set
    for finding in of("MISSING_CHANGES_IGNORED", found["findings"]):
        (row,) = finding["evidence"]
        assert (row["file"], row["name"]) == (
            "s1.agreements.ldif",
            "to-s2",
        ) and "nsds5ReplicaIgnoreMissingChange" in row
    text = " ".join(fixes(found, "ANCHOR_PURGED") + fixes(found, "ANCHOR_MISSING"))
    assert (f"nsds5ReplicaIgnoreMissingChange is set to {value} on to-s2" in text) is is_set
    assert ("not set nsds5ReplicaIgnoreMissingChange" in text) is not is_set
    assert any(line.startswith("MISSING_CHANGES_IGNORED to-s2") for line in plan(case).left) is is_set


def test_a_link_between_unrelated_data_is_not_to_be_switched_on(tmp_path: Path) -> None:
    """The data of s2 have another beginning."""
    files: Files = dict(pair_of_servers(9, 4))
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(1, 2)), generation="66ffabcd000000020000"))
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, enabled=False)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert of("UNRELATED_DATA", found["findings"])
    (text,) = fixes(found, "LINK_DISABLED")
    assert text.startswith("leave it off until what UNRELATED_DATA says is done, then switch it on")
    assert not [text for text in plan(case).left if "what to do: switch it on" in text]


def test_the_name_of_an_agreement_may_hold_a_name_within_a_name(tmp_path: Path) -> None:
    """Servers east, west and west1: east-west-1 leads to west1."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 2), r3=(1, 2)))
    made = [*(csn(at, 1) for at in range(1, 10)), csn(1, 2), csn(2, 2), csn(1, 3), csn(2, 3)]
    files: Files = {}
    for number, name in enumerate(("east", "west", "west1"), 1):
        files[f"{name}.replica.ldif"] = replica(number, ruv)
        files[f"{name}.changelog.ldif"] = changelog(made, own_entries=True)
        ran = f"localhost.localdomain:{38900 + number} (/etc/dirsrv/slapd-{name})"
        files[f"{name}.errors.log"] = f"\t389-Directory/2.3.1 B2022.300.0000\n\t{ran}\n\n"
    files["east.agreements.ldif"] = agreement("east-west-1", 38903)
    files["west1.agreements.ldif"] = agreement("west1-east", 38901) + agreement("west1-west", 38902)
    files["west.agreements.ldif"] = agreement("west-west1", 38903)
    found = diagnose(case_of(tmp_path, files))
    assert not of("LINK_LEADS_ELSEWHERE", found["findings"]), headline(found)


# --- what is on one server alone


def test_what_others_are_shown_to_have_is_not_on_one_server_alone(tmp_path: Path) -> None:
    """The access logs of s1 and s4 show that they applied the change at 3 s of s9, and cleaned its ID afterwards."""
    found = diagnose(case_of(tmp_path, came_back()))
    stranded = [row["position"] for row in found["stranded"] if row["server"] == "s9"]
    assert csn(3, 9) not in stranded and csn(30, 9) in stranded, headline(found)


def test_what_the_changelog_of_another_server_has_is_not_on_one_alone(tmp_path: Path) -> None:
    """Of s2 only the changelog was collected: it has the three changes that s3 waits for."""
    files = {
        name: text
        for name, text in purged_here_kept_there().items()
        if name not in ("s2.replica.ldif", "s2.agreements.ldif")
    }
    found = diagnose(case_of(tmp_path, files))
    assert not of("STRANDED_CHANGE", found["findings"]) and not found["stranded"]


@pytest.mark.parametrize(
    ("of_suffix", "alone"), [(SUFFIX, 0), ("o=other", 3)], ids=["of this suffix", "of another suffix"]
)
def test_only_a_record_of_an_entry_in_the_suffix_shows_that_another_server_has_the_change(
    of_suffix: str, alone: int, tmp_path: Path
) -> None:
    """s2 alone has 20, 21 and 22. Of s4 only a changelog was collected, which names no suffix and has these CSNs, too."""
    files = stranded(True)
    files["s4.changelog.ldif"] = changelog([csn(at, 2) for at in (1, 20, 21, 22)], suffix=of_suffix)
    found = diagnose(case_of(tmp_path, files))
    assert len([row for row in found["stranded"] if row["server"] == "s2"]) == alone


# --- entries in conflict


def filled_for_what_it_waits(*marked: str) -> Files:
    """s3 waits for 5 to 9; the logs of s1 and s2 begin at 7: only a filling helps. These servers have an entry in conflict."""
    files: Files = {}
    for rid in (1, 2, 3):
        name, top = f"s{rid}", 9 if rid < 3 else 4
        ruv = elements({**claims(r1=(1, top)), 2: None, 3: None})
        files[f"{name}.replica.ldif"] = replica(rid, ruv)
        files[f"{name}.changelog.ldif"] = "".join(
            logged(csn(at, 1), at, f"uid=e{at},ou=people", f"replace: description\ndescription: v{at}\n-\n")
            for at in (range(7, 10) if rid < 3 else range(1, 5))
        )
        links = (agreement(f"{name}-to-s{to}", 38900 + to) for to in (1, 2, 3) if to != rid)
        files[f"{name}.agreements.ldif"] = "".join(links)
        mark = f"nsds5ReplConflict;vucsn-{csn(2, 1)}: namingConflict uid=x"
        rows = [
            entry(
                f"uid=e{at},ou=people", at, *([f"description;vucsn-{csn(at, 1)}: v{at}"] if at <= top else []),
                *([mark] if at == 2 and name in marked else []),
            )
            for at in range(1, 10)
        ]  # fmt: skip
        files[f"{name}.entries.ldif"] = export(ruv, rows)
    return files


@pytest.mark.parametrize(("marked", "left"), [(("s3",), []), (("s1", "s2", "s3"), ["s1, s2, s3"])])
def test_marks_that_go_with_the_old_data_are_mended(marked: tuple[str, ...], left: list[str], tmp_path: Path) -> None:
    case = case_of(tmp_path, filled_for_what_it_waits(*marked))
    assert {finding["server"] for finding in of("CONFLICT_ENTRIES", diagnose(case)["findings"])} == {*marked}
    made = plan(case)
    assert [step.server for step in made.steps if step.repair == "initialise"] == ["s3"]
    lines = [text.partition(": ")[0] for text in made.left if text.startswith("CONFLICT_ENTRIES")]
    assert lines == [f"CONFLICT_ENTRIES {names}" for names in left]


@pytest.mark.parametrize(
    ("fillings", "gone"),
    [
        ([("s3", "s1", False)], True),
        ([("s3", "s1", True)], False),
        ([("s3", "s2", False)], False),
        ([("s1", "s2", False), ("s3", "s1", False)], False),
        ([("s3", "s1", False), ("s1", "s2", False)], True),
        ([("s3", "s1", False), ("s3", "s2", False)], False),
    ],
    ids=[
        "from a server without marks",
        "a step that may be left out",
        "from a server with marks",
        "from a server that got marks before",
        "from a server that gets marks later",
        "with marks once more",
    ],
)
def test_marks_go_with_data_that_have_none_as_the_steps_run(fillings: list[tuple[str, str, bool]], gone: bool) -> None:
    """The entries of s1 show no mark of conflict, those of s2 and s3 do. Each filling: of whom, from whom, if behind alone."""
    steps = [
        Step(
            f"{number}-initialise", "initialise", server, source, SUFFIX, "", "", "", "",
            effects=({"do": "initialise", "server": server, "source": source},), details={IF_BEHIND: True} if may else {},
        )
        for number, (server, source, may) in enumerate(fillings, 1)
    ]  # fmt: skip
    taken = Taken((), (), (), steps, (), {}, {}, {})
    marked = Finding("CONFLICT_ENTRIES", "warning", "x", server="s3", suffix=SUFFIX)
    shown: Any = SimpleNamespace(links=(), pulling=False)
    assert (not_mended([marked], shown, taken, {("s1", SUFFIX)}) == []) is gone


# --- a change of an entry that was deleted before


ANNA = "uid=anna,ou=people"


def changed_after_its_deletion(kind: str) -> Files:
    """s3 deleted anna at 8 s and changed anna, who was back there out of a backup, at 12 s. No changelog has the second change.

    added    an entry of that name was added at 10 s
    later    the deletion is of 14 s: the change has a lower position
    """
    deletion = csn(14 if kind == "later" else 8, 3)
    ruv = elements(claims(r1=(1, 20), r3=(1, 15)))
    end = logged(csn(20, 1), 9, "uid=else,ou=people", "replace: sn\nsn: x\n-\n")
    own = logged(csn(15, 3), 8, "uid=some,ou=people", "replace: sn\nsn: x\n-\n")
    gone = logged(deletion, 1, ANNA, "", "delete")
    added = logged(csn(10, 3), 2, ANNA, "add: sn\nsn: x\n-\n", "add") if kind == "added" else ""
    files: Files = {}
    for number in (1, 2, 3):
        files[f"s{number}.replica.ldif"] = replica(number, ruv)
        files[f"s{number}.agreements.ldif"] = "".join(
            agreement(f"s{number}-to-s{to}", 38900 + to) for to in (1, 2, 3) if to != number
        )
        files[f"s{number}.changelog.ldif"] = changelog([csn(1, 1), csn(1, 3)]) + gone + added + own + end
        took = [(1, "uid=some,ou=people", "ADD", csn(1, 3)), (8, ANNA, "DEL", deletion)]
        took += [(15, "uid=some,ou=people", "MOD", csn(15, 3)), (20, "uid=else,ou=people", "MOD", csn(20, 1))]
        if number == 3:
            took.insert(2, (12, ANNA, "MOD", csn(12, 3)))
        files[f"s{number}.access.log"] = "".join(
            answered(at, name, of_, replicated=of_[12:16] != f"{number:04d}", operation=what)
            for at, name, what, of_ in took
        )
    return files


@pytest.mark.parametrize("kind", ["deleted", "added", "later"])
def test_a_change_of_an_entry_that_was_deleted_before_is_not_missing(kind: str, tmp_path: Path) -> None:
    told_on = verdicts(tmp_path, changed_after_its_deletion(kind), csn(12, 3))
    lacks_nothing = kind == "deleted"
    expected = ("present", "deleted_before") if lacks_nothing else ("missing", "log_lacks")
    assert told_on["s1"] == told_on["s2"] == expected


# --- data that were replaced between two collections


def test_what_an_earlier_export_shows_went_with_the_data_that_were_replaced_since(tmp_path: Path) -> None:
    """s2 had all ten changes, was filled with old data that have five, and has taken a change of s3 since."""
    made = [csn(second, 1) for second in range(10)]

    def of_s2(last: int, *more: tuple[int, int]) -> Files:
        ruv = elements({1: (made[0], made[last]), 3: (csn(0, 3), csn(more[0][0] if more else 0, 3))})
        carried = [entry(f"uid=u{n}", 20 + n, f"sn;vucsn-{made[n]}: x") for n in range(last + 1)]
        return {"s2.replica.ldif": replica(2, ruv), "s2.entries.ldif": export(ruv, carried)}

    whole = elements({1: (made[0], made[-1]), 3: (csn(0, 3), csn(40, 3))})
    s1 = {
        "s1.replica.ldif": replica(1, whole),
        "s1.changelog.ldif": changelog([*made, csn(0, 3), csn(40, 3)], own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
    }
    moved = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is"
    filled = line(20, f"{moved} going offline; disabling replication") + line(25, IMPORTED)
    filled += line(25, f"{moved} coming online; enabling replication")
    now = {**s1, **of_s2(4, (40, 3)), "s2.errors.log": filled}
    case = case_of(tmp_path, {**s1, **of_s2(9)}, now)
    (waits,) = [row for row in diagnose(case)["pending"] if (row["server"], row["origin"]) == ("s2", "1")]
    assert (waits["count"], waits["first"], waits["last"]) == (5, made[5], made[9])
