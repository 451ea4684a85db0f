"""Initialisations that broke off: what the status of an agreement tells of a consumer that nobody collected."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of, plain_line, zulu
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_thrown_away import folder

from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.initialisations import initialisations
from workbench.repair.planner import plan
from workbench.report.report_pipeline import pseudonyms_of, redacted_report
from workbench.rules.initialisations import ABORTED, FAILED, SUCCEEDED, Initialisation, unfilled
from workbench.rules.verdicts import REPLACED, TOTAL
from workbench.systems.ds389.rules.initialisations import outcome_of

BROKE_OFF = "Error (-11) connection error: Unknown connection error (-11) - Total update aborted"
NOT_BEGUN = "Error (-1) - LDAP error: Can't contact LDAP server - no response received"
WHOLE = "Error (0) Total update succeeded"
LINK = 's2-to-s1" (localhost:38901)'
NO_CONNECTION = "Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server (connection error)"


@pytest.mark.parametrize(
    ("sentence", "outcome"),
    [
        (WHOLE, SUCCEEDED),
        (BROKE_OFF, ABORTED),
        ("Error (0) Total update aborted", ABORTED),
        ("10 Total update abortedLDAP error: Referral", ABORTED),
        (NOT_BEGUN, FAILED),
        (
            'Error (255) Total update aborted: Replication agreement for "x" can not be updated while the agreement',
            FAILED,
        ),
        ("Error (3) Replication error acquiring replica: permission denied", FAILED),
        ("Error (0) Total update in progress", None),
        ("Error (2) Replication error acquiring replica: x - Total schema update failed", None),
        ("", None),
        (None, None),
    ],
)
def test_how_an_initialisation_ended(sentence: str | None, outcome: str | None) -> None:
    assert outcome_of(sentence) == outcome


def told(
    outcome: str | None, began: int | None, ended: int | None = None, session: int | None = None, by: str = "s1"
) -> Any:
    times = [None if at is None else datetime.fromtimestamp(at, UTC) for at in (began, ended, session)]
    return Initialisation(by, f"{by}-to-s3", "s3", times[0], times[1], outcome, times[2])


@pytest.mark.parametrize(
    ("about", "others", "left"),
    [
        ("nothing came later", (), True),
        ("another one filled it before", (told(SUCCEEDED, 1, 5, by="s2"),), True),
        ("another one filled it since", (told(SUCCEEDED, 11, 12, by="s2"),), False),
        ("another one fills it now", (told(None, 11, by="s2"),), False),
        ("a session succeeded since", (told(SUCCEEDED, 1, 5, 20, by="s2"),), False),
        ("a session succeeded before", (told(SUCCEEDED, 1, 5, 6, by="s2"),), True),
        ("another one could not begin since", (told(FAILED, 12, by="s2"),), True),
    ],
)
def test_who_is_left_without_whole_data(about: str, others: tuple[Any, ...], left: bool) -> None:
    bad = told(ABORTED, 9, 10)
    assert unfilled([bad, *others]) == ({"s3": bad} if left else {}), about


def mesh(*, status: str = BROKE_OFF, other: str = "", log: str = "") -> dict[str, Any]:
    """s1 and s2 are equal; s3 was down, and s1 initialised it from second 20 to 22 with this result; `other`: what s2 keeps."""
    ruv = elements(claims(r1=(1, 30), r2=(1, 2)))
    made = changelog([*(csn(second, 1) for second in range(1, 31)), csn(1, 2), csn(2, 2)])
    ended = "19700101000000Z" if "in progress" in status else zulu(22)
    began = f"nsds5replicaLastInitStart: {zulu(20)}\nnsds5replicaLastInitEnd: {ended}\nnsds5replicaLastInitStatus: {status}\n"
    session = f"nsds5replicaLastUpdateStatus: {NO_CONNECTION}\nnsds5replicaLastUpdateEnd: {zulu(9)}\n"
    files: dict[str, Any] = {}
    for rid, more in (1, began + session), (2, other):
        peer = 3 - rid
        files |= {
            f"s{rid}.replica.ldif": replica(rid, ruv),
            f"s{rid}.changelog.ldif": made,
            f"s{rid}.agreements.ldif": agreement(f"s{rid}-to-s{peer}", 38900 + peer)
            + agreement(f"s{rid}-to-s3", 38903).rstrip("\n")
            + f"\n{more}\n",
        }
    title = "\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost:38903 (/etc/dirsrv/slapd-s3)\n\n"
    return files | {"s3.DOWN": "", "s3.errors.log": title + plain_line(0, "INFO - slapd_daemon - slapd started.") + log}


def test_a_consumer_that_is_down_and_was_not_filled_to_the_end(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, mesh()))
    assert headline(found).startswith(
        "The initialisation of s3 by s1 was aborted at 2024-03-24 10:27:34 UTC: s3 has to be ini"
    )
    (one,) = of("INITIALISATION_ABORTED", found["findings"])
    assert (one["server"], one["link"], one["severity"]) == ("s3", "s1-to-s3", "error")
    assert "to start it does not fill it" in one["summary"]
    assert "10:27:34 UTC (code -11 (connect error)): it had" in one["summary"] and "Unknown" not in one["summary"]
    assert [row["text"] for row in one["evidence"]] == [BROKE_OFF]
    assert "repl-agmt init --suffix dc=example,dc=com s1-to-s3" in one["fix"][0]["repair"]
    (link,) = of("LINK_FAILING", found["findings"])
    assert "delivers what waits" not in str(link["fix"])
    assert "then initialise s3 again" in link["fix"][-1]["repair"]


OFFLINE = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {} is going offline; disabling replication"


@pytest.mark.parametrize("second", [21, -200], ids=["as it was filled", "before"])
def test_who_refused_the_schema_of_its_supplier_takes_it_first(second: int, tmp_path: Path) -> None:
    said = 'ERR - NSMMReplicationPlugin - agmt="cn=s1-to-s3" (localhost:38903): Schema replication update failed: '
    log = {"s1.errors.log": plain_line(second, f"{said}Server is unwilling to perform")}
    (one,) = of("INITIALISATION_ABORTED", diagnose(case_of(tmp_path, mesh() | log))["findings"])
    assert ("nsslapd-schemareplace" in one["fix"][0]["repair"]) is (second == 21)


@pytest.mark.parametrize(("second", "known"), [(21, True), (200, False)], ids=["that one", "a later one"])
def test_a_filling_that_its_agreement_tells_as_aborted_is_told_once(second: int, known: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: beside "has to be initialised again" it was said to wait until it has been filled."""
    log = plain_line(second, OFFLINE.format("dc=example,dc=com"))
    found = diagnose(case_of(tmp_path, mesh(log=log)))["findings"]
    assert of("INITIALISATION_ABORTED", found)
    assert bool(of("INITIALISATION_RUNNING", found)) is not known


@pytest.mark.parametrize("second", [None, 10, 20], ids=["no log", "an earlier one", "that one"])
def test_a_filling_that_its_supplier_began_goes_on_though_no_agreement_asks_for_it(
    second: int | None, tmp_path: Path
) -> None:
    """Seen on 2.3.1: a request of before a stop is in no entry, and began a filling: it was said to be aborted."""
    begun = 'repl5_tot_run - Beginning total update of replica "agmt="cn=s1-to-s3" (localhost:38903)".'
    begun = f"INFO - NSMMReplicationPlugin - {begun}"
    lines = plain_line(0, "INFO - slapd_daemon - slapd started.") + (plain_line(second, begun) if second else "")
    found = diagnose(case_of(tmp_path, mesh(status="Error (0) Total update in progress") | {"s1.errors.log": lines}))
    assert bool(of("INITIALISATION_ABORTED", found["findings"])) is (second != 20)


def test_what_a_hub_has_is_not_looked_for_on_a_server_whose_data_are_gone(tmp_path: Path) -> None:
    """Seen on 2.3.1: the old data of s3 are replaced, and the hub s9 has its last changes: "start s3, which may have them"."""
    files = mesh(log=plain_line(21, OFFLINE.format("dc=example,dc=com")))
    seen = elements(claims(r2=(1, 2), r1=(1, 30), r3=(1, 9)))
    files |= {
        "s9.replica.ldif": replica(65535, seen),
        "s9.changelog.ldif": files["s1.changelog.ldif"] + changelog([csn(second, 3) for second in range(1, 10)]),
        **listening("s9"),
    }
    waits = of("PENDING_CHANGES", diagnose(case_of(tmp_path, files))["findings"])
    assert {one["fix"][0]["repair"] for one in waits if one["origin"] == "3"} == {"make an agreement from s9 to s1"}


IMPORTED = plain_line(
    90, "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
)


@pytest.mark.parametrize(
    ("about", "more"),
    [
        ("it succeeded", {"status": WHOLE}),
        ("it goes on", {"status": "Error (0) Total update in progress\nnsds5BeginReplicaRefresh: start"}),
        (
            "s2 filled it since",
            {"other": f"nsds5replicaLastInitStart: {zulu(25)}\nnsds5replicaLastInitStatus: {WHOLE}\n"},
        ),
        (
            "it took a session since",
            {
                "other": f"nsds5replicaLastUpdateEnd: {zulu(29)}\n"
                "nsds5replicaLastUpdateStatus: Error (0) Replica acquired successfully: Incremental update succeeded\n"
            },
        ),
        ("it was filled from a file since", {"log": IMPORTED}),
        (
            "it takes changes now",
            {
                "other": f"nsds5replicaLastUpdateStart: {zulu(29)}\nnsds5replicaLastUpdateEnd: 19700101000000Z\n"
                "nsds5replicaLastUpdateStatus: Error (0) Replica acquired successfully: Incremental update started\n"
            },
        ),
    ],
)
def test_a_consumer_that_may_be_whole(about: str, more: dict[str, Any], tmp_path: Path) -> None:
    found = findings(tmp_path, mesh(**more))
    assert not of("INITIALISATION_ABORTED", found), about
    assert "initialise" not in str([fix["repair"] for one in of("LINK_FAILING", found) for fix in one["fix"]]), about


def test_one_that_could_not_begin_says_nothing_of_the_data(tmp_path: Path) -> None:
    files = mesh(status=NOT_BEGUN)
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].replace(
        f"LastInitEnd: {zulu(22)}", "LastInitEnd: 19700101000000Z"
    )
    (one,) = of("INITIALISATION_ABORTED", found := findings(tmp_path, files))
    assert (one["severity"], one.get("root")) == ("warning", "")
    assert "could not begin at 2024-03-24 10:27:32 UTC" in one["summary"] and "replaced" not in one["summary"]
    (link,) = of("LINK_FAILING", found)
    assert "delivers what waits" in str(link["fix"])


def test_a_collected_consumer_that_exchanges_changes_is_whole(tmp_path: Path) -> None:
    files: dict[str, Any] = pair_of_servers(9, 9)
    told_of = f"nsds5replicaLastInitStart: {zulu(1)}\nnsds5replicaLastInitEnd: {zulu(2)}\n"
    told_of += f"nsds5replicaLastInitStatus: {BROKE_OFF}\n"
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].rstrip("\n") + f"\n{told_of}\n"
    assert not of("INITIALISATION_ABORTED", findings(tmp_path, files))


@pytest.mark.parametrize(("status", "kind"), [("", TOTAL), (WHOLE, TOTAL), (BROKE_OFF, REPLACED), (NOT_BEGUN, None)])
def test_only_one_that_succeeded_brought_whole_data(status: str, kind: str | None, tmp_path: Path) -> None:
    files = folder(20)
    end = zulu(21) if status != NOT_BEGUN else "19700101000000Z"
    more = f"nsds5replicaLastInitEnd: {end}\n" + (f"nsds5replicaLastInitStatus: {status}\n" if status else "")
    files["s2.agreements.ldif"] = files["s2.agreements.ldif"].replace(f"nsds5replicaLastInitEnd: {zulu(21)}\n", more)
    context = context_of(case_of(tmp_path, files))[0]
    resets = [one.kind for one in context.verdicts.resets["s1", "dc=example,dc=com"] if one.began.second == 32]
    assert resets == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("about", "lines", "by"),
    [
        ("it began and ended", ("Beginning", "Finished"), "s2"),
        ("it began", ("Beginning",), None),
        ("it did not end before the next one began", ("Beginning", "Beginning"), None),
        ("the log begins in the middle of it", ("Finished",), None),
    ],
)
def test_a_supplier_that_was_restarted_tells_by_its_log_whom_it_filled(
    about: str, lines: tuple[str, ...], by: str | None, tmp_path: Path
) -> None:
    """Its agreement forgot it: `nsds5replicaLastInitStart` is 1970 again."""
    files = folder(None)
    files["s2.errors.log"] = "".join(
        plain_line(
            20 + at, f'INFO - NSMMReplicationPlugin - repl5_tot_run - {word} total update of replica "agmt="cn={LINK}".'
        )
        for at, word in enumerate(lines)
    )
    context = context_of(case_of(tmp_path, files))[0]
    replica = next(one for one in context.topology.replicas if one.server == "s1")
    (contents,) = context.verdicts.contents
    found = initialisations(contents.evidence, replica)
    assert [supplier for supplier, _, _ in found] == ([by] if by else []), about
    resets = [one.kind for one in context.verdicts.resets["s1", "dc=example,dc=com"] if one.began.second == 32]
    assert resets == ([TOTAL] if by else []), about


@pytest.mark.parametrize(
    "sentence", ["agreement disabled", "No replication sessions started since server startup", "Replica acquired"]
)
def test_the_number_0_alone_is_no_session_that_succeeded(sentence: str, tmp_path: Path) -> None:
    other = f"nsds5replicaLastUpdateEnd: {zulu(29)}\nnsds5replicaLastUpdateStatus: Error (0) {sentence}\n"
    assert of("INITIALISATION_ABORTED", findings(tmp_path, mesh(other=other)))


def received(suffix: str, backend: str) -> str:
    """A total initialisation of a suffix, as the log of its consumer tells it."""
    state = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change"
    return "".join(
        plain_line(at, text)
        for at, text in (
            (1, f"{state} - Replica {suffix} is going offline; disabling replication"),
            (2, f"INFO - bdb_import_main - import {backend}: Import complete.  Processed 9 entries in 1 seconds."),
            (3, f"{state} - Replica {suffix} is coming online; enabling replication"),
        )
    )


SUFFIX, OTHER = "dc=example,dc=com", "o=other"


@pytest.mark.parametrize(
    ("about", "log", "told", "unless"),
    [
        ("of another suffix", received(OTHER, "userroot"), True, ""),
        ("of this one", received(SUFFIX, "userroot"), False, ""),
        ("of one of several", received(OTHER, "other"), True, ", unless a file filled it since"),
    ],
    ids=["of another", "of this one", "of one of several"],
)
def test_of_which_suffix_an_import_was(about: str, log: str, told: bool, unless: str, tmp_path: Path) -> None:
    found = of("INITIALISATION_ABORTED", findings(tmp_path, mesh(log=log + IMPORTED)))
    assert [one["severity"] for one in found] == (["error"] if told else []), about
    if told:
        line = headline(diagnose(case_of(tmp_path / "again", mesh(log=log + IMPORTED))))
        assert f"s3 has to be initialised again{unless};" in line, about


@pytest.mark.parametrize("lacking", ["s2.agreements.ldif", "s2."])
def test_a_supplier_that_was_not_read_may_have_filled_it(lacking: str, tmp_path: Path) -> None:
    files = {name: text for name, text in mesh().items() if not name.startswith(lacking)}
    files |= {"s2.DOWN": ""} if lacking == "s2." else {}
    found = diagnose(case_of(tmp_path, files))
    assert "s3 has to be initialised again, unless another server filled it since" in headline(found)
    (one,) = of("INITIALISATION_ABORTED", found["findings"])
    assert "see whether another server filled s3 since; if not, initialise s3 from s1" in one["fix"][0]["repair"]


def test_a_consumer_of_which_only_the_address_is_known(tmp_path: Path) -> None:
    files = {name: text for name, text in mesh().items() if not name.startswith("s3.")}
    text = files["s1.agreements.ldif"]
    files["s1.agreements.ldif"] = text.replace(BROKE_OFF, "Error (-11) Acme said no - Total update aborted")
    incident = Incident(case_of(tmp_path, files))
    (one,) = of("INITIALISATION_ABORTED", incident.found["findings"])
    assert one["server"] is None and "the initialisation of the server at localhost:38903 by s1" in one["summary"]
    assert "Acme" not in json.dumps(redacted_report(incident, pseudonyms_of(incident)))


OFFLINE = (
    "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going offline; "
)
OFFLINE += "disabling replication"
ONLINE = OFFLINE.replace("going offline; disabling", "coming online; enabling")
FAILED_IMPORT = "ERR - bdb_public_bdb_import_main - import userroot: Import failed."
STARTS = "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([OFFLINE, FAILED_IMPORT], True),
        ([OFFLINE, FAILED_IMPORT, OFFLINE, ONLINE], False),
        ([OFFLINE, FAILED_IMPORT, STARTS], False),
        ([OFFLINE, ONLINE, FAILED_IMPORT], False),
        ([OFFLINE], False),
    ],
)
def test_new_data_that_did_not_arrive_whole_is_told_by_the_log_of_the_server(
    lines: list[str], told: bool, tmp_path: Path
) -> None:
    """As 2.3.1 writes it where the supplier was killed meanwhile: the RUV of before goes on being shown."""
    files: dict[str, Any] = dict(pair_of_servers())
    files["s2.errors.log"] = "".join(plain_line(10 + second, text) for second, text in enumerate(lines))
    found = diagnose(case_of(tmp_path, files))
    named = of("INITIALISATION_ABORTED", found["findings"])
    assert [(one["severity"], one["server"], one["suffix"]) for one in named] == [
        ("error", "s2", "dc=example,dc=com")
    ] * told
    assert headline(found).startswith("New data for s2 did not arrive whole at 2024-03-24 ") is told
    assert all(one["fix"][0]["repair"].startswith("initialise s2 from s1, on s1: ") for one in named)


def test_the_plan_fills_that_server_and_nobody_from_it(tmp_path: Path) -> None:
    """s1 feeds s2, which has lost its data and feeds s3."""
    files: dict[str, Any] = dict(pair_of_servers())
    files["s2.errors.log"] = "".join(
        plain_line(10 + second, text) for second, text in enumerate((OFFLINE, FAILED_IMPORT))
    )
    files["s2.agreements.ldif"] += agreement("to-s3", 38903)
    files["s3.replica.ldif"] = replica(3, elements({**claims(r1=(0, 9)), **claims(r2=(1, 2))}))
    made = plan(case_of(tmp_path, files))
    filled = [(step.on, step.server) for step in made.steps if step.repair == "initialise"]
    assert filled[:1] == [("s1", "s2")] and ("s2", "s1") not in filled


@pytest.mark.parametrize("told", ["log", "agreement", "neither"])
def test_a_server_that_stopped_while_it_was_filled_is_filled_anew_as_it_starts(told: str, tmp_path: Path) -> None:
    """Seen on 3.1.2: c was killed a second after its filling began; its supplier had no sentence on that, and went on trying."""
    agreement_says = ["nsds5replicaLastInitStart: 20240324104020Z", "nsds5replicaLastInitEnd: 19700101000000Z"]
    files: dict[str, Any] = dict(pair_of_servers())
    for name in [name for name in files if name.startswith("s2.")]:
        del files[name]
    files["s2.DOWN"] = "no connection: Connection refused"
    if told != "neither":
        files["s2.errors.log"] = listening("s2")["s2.errors.log"] + plain_line(20, OFFLINE)
    if told == "agreement":
        more = "\n".join(["nsds5BeginReplicaRefresh: start", *agreement_says])
        files["s1.agreements.ldif"] = files["s1.agreements.ldif"].rstrip("\n") + f"\n{more}\n\n"
    found = diagnose(case_of(tmp_path, files))
    named = of("INITIALISATION_RUNNING", found["findings"])
    assert len(named) == (told != "neither")
    for finding in named:
        repair = finding["fix"][0]["repair"]
        assert repair.startswith("start s2, and collect again when s2 has been filled")
        assert ("initialise s2 from one that has all data" in repair) is (told == "log")
        assert headline(found).startswith("s2 answers nobody since new data for it were arriving")


@pytest.mark.parametrize(
    ("lines", "made", "told"),
    [
        ([OFFLINE], 9, True),
        ([OFFLINE, FAILED_IMPORT, OFFLINE], 9, True),
        ([OFFLINE, ONLINE], 9, False),
        ([OFFLINE, STARTS], 9, False),
        ([OFFLINE], 40, False),  # it took a later change: the end of its log was not collected
    ],
)
def test_data_that_are_arriving_are_told_by_the_log_of_the_server(
    lines: list[str], made: int, told: bool, tmp_path: Path
) -> None:
    files: dict[str, Any] = dict(pair_of_servers(made, made))
    files["s2.errors.log"] = "".join(plain_line(20 + second, text) for second, text in enumerate(lines))
    case = case_of(tmp_path, files)
    found = diagnose(case)
    named = of("INITIALISATION_RUNNING", found["findings"])
    assert [(finding["severity"], finding["server"]) for finding in named] == [("warning", "s2")] * told
    assert headline(found).startswith("New data for s2 were arriving when it was read") is told
    made_plan = plan(case)
    assert not made_plan.steps and any("INITIALISATION_RUNNING s2" in line for line in made_plan.left) is told


def emptied() -> dict[str, Any]:
    """s2 made 12 and 13, which no server got; its initialisation from s1 broke off, and s2 started again without data."""
    ruv = elements(claims(r1=(1, 9), r2=(1, 5)))
    empty = [
        element[:-12] + "777700000000" if "replicageneration" in element else element.split(" 6")[0] for element in ruv
    ]
    both = [*(csn(second, 1) for second in range(1, 10)), *(csn(second, 2) for second in range(1, 6))]
    status = f"nsds5replicaLastInitStatus: {BROKE_OFF}\nnsds5replicaLastInitStart: {zulu(20)}\n"
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s3.replica.ldif": replica(65535, ruv, flags=0),
        "s2.replica.ldif": replica(2, empty),
        "s1.changelog.ldif": changelog(both),
        "s2.changelog.ldif": changelog([*both, csn(12, 2), csn(13, 2)]),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903)
        + agreement("s1-to-s2", 38902).rstrip("\n")
        + f"\n{status}nsds5replicaLastInitEnd: {zulu(21)}\n\n",
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }


def test_what_only_the_log_of_a_server_without_data_has_is_said_and_saved_first(tmp_path: Path) -> None:
    case = case_of(tmp_path, emptied())
    found = diagnose(case)
    rows = [(row["server"], row["position"], row["log_only"]) for row in found["stranded"]]
    assert rows == [("s2", csn(12, 2), True), ("s2", csn(13, 2), True)]
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert f"its changelog still has 2 changes, {csn(12, 2)} to {csn(13, 2)}" in aborted["summary"]
    assert "which throws away 2 changes that only its changelog has: save them first" in headline(found)
    assert aborted["fix"][0]["repair"].startswith("save these 2 changes from the changelog of s2")
    assert not of("STRANDED_CHANGE", found["findings"])
    made = plan(case)
    assert [step.repair for step in made.steps][:2] == ["save", "initialise"]
    assert csn(12, 2) in made.steps[0].sends and csn(13, 2) in made.steps[0].sends
    (chosen,) = (course for course in made.courses if course.chosen)
    assert (chosen.lost, chosen.saved) == (2, 2)
    assert all(row["missing"] >= 0 and row["pending"] >= 0 for row in made.after)


def test_a_plan_stands_on_what_a_server_without_data_claims_and_not_on_its_log(tmp_path: Path) -> None:
    (mine,) = (row for row in plan(case_of(tmp_path, emptied())).servers if row["server"] == "s2")
    assert mine["vector"] == {}


def test_data_that_are_arriving_are_told_by_the_agreement_alone(tmp_path: Path) -> None:
    """A server that is being filled answers no question about its suffix: of s2 nothing but the agreement to it was collected."""
    files: dict[str, Any] = dict(pair_of_servers())
    status = f"nsds5replicaLastInitStatus: Error (0) Total update in progress\nnsds5replicaLastInitStart: {zulu(30)}\n"
    status += "nsds5BeginReplicaRefresh: start\n"
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902).rstrip("\n") + f"\n{status}\n"
    (finding,) = of("INITIALISATION_RUNNING", diagnose(case_of(tmp_path, files))["findings"])
    assert finding["server"] == "s2" and "by s1, over s1-to-s2" in finding["summary"]
    assert "the agreement says that it goes on" in finding["summary"]
