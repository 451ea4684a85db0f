"""The report as data, page, Markdown and archive: what it says, what it never says, and that it is the same every time."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from incident_samples import FOLDER, LOST, NAMES, case_of
from mesh_samples import SUFFIX, csn
from report_samples import HOSTILE, called, loaded, oddly_named, of_two_suffixes, three
from test_report_forms import Seen, as_read
from test_secrets import CANARY, NAMED, PACKED, SHAPED

from workbench import Case
from workbench.cli import main
from workbench.diagnosis.codes import all_codes
from workbench.diagnosis.incident import Incident
from workbench.engine.change_fingerprints import likeness
from workbench.journal import Journal
from workbench.model import Problem
from workbench.repair.case_plan import plan_for
from workbench.repair.plan_progress import BEGINS, JOURNAL
from workbench.repair.plan_types import NAME as PLAN
from workbench.repair.plan_types import as_json, read_plan
from workbench.report import export
from workbench.report.export import COLUMN_RULES, TABLE_RULES, case_export
from workbench.report.markdown import markdown
from workbench.report.page import page
from workbench.report.redaction import BY_KEY, DROPPED, KEPT, TIME, Pseudonyms, speaks
from workbench.report.report_data import gathered
from workbench.report.report_pipeline import pseudonyms_of, redacted_report, whole_report
from workbench.systems import system_named
from workbench.systems.ds389.naming import NAMING
from workbench.tables import COLUMNS

SECRET_NAMES = ["k1u0000", "s1-to-s3", "localhost.localdomain"]
WHO, BODY = "aaaaaaaa-11111111-22222222-33333333", "replace: employeePin\nemployeePin: 4711\n-\n"


def copied(tmp_path: Path, name: str = LOST) -> Case:
    """A case of our own: a report writes into it."""
    shutil.copytree(case_of(name).folder, tmp_path / "incident-acme")
    return Case.open(tmp_path / "incident-acme")


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, ["report", *map(str, words)])


def texts(value: Any) -> Any:
    """Every text in data, keys included."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


# --- what it says


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_incident_has_a_report_in_all_forms(tmp_path: Path, name: str) -> None:
    case = copied(tmp_path, name)
    incident = Incident(case)
    made = redacted_report(incident, pseudonyms_of(incident))
    assert json.loads(json.dumps(made)) == made, "plain data"
    assert made["redacted"] and made["report"] == 1
    html, text = page(made), markdown(made)
    assert html.index("<h1") < html.index(re.sub(r"&", "&amp;", made["headline"])) < html.index("</h1>")
    assert text.startswith("# ")
    assert len(made["inventory"]) == len(case.inputs)
    for one in case.inputs:
        assert one.sha256 in html and one.sha256 in text
    for group in made["missing"]:
        assert group["count"] == len(group["changes"]) + group["more"]
        assert group["proofs"] and all(row["servers"] for row in group["proofs"])
    assert sum(group["count"] for group in made["missing"]) == len(incident.found["missing"])


def test_the_lost_changes_are_told_with_proof_cause_and_replay(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan_for(case)
    made = whole_report(Incident(case))
    assert made["headline"].startswith("12 changes are MISSING on s3")
    assert made["verdict"] == "missing"
    (group,) = made["missing"]
    assert (group["server"], group["origin"], group["count"], group["made_on"]) == ("s3", "1", 12, "s1")
    verdicts = {one["server"]: one["verdict"] for one in group["proofs"][0]["servers"]}
    assert verdicts == {"s1": "present", "s2": "present", "s3": "missing"}
    (cause,) = made["causes"]
    assert cause["code"] == "CHANGELOG_RECREATED"
    assert [row["verdict"] for row in cause["records"]] == ["present", "present", "missing", "missing", "missing"]
    assert cause["records"][2]["position"] == group["first"]
    assert {one["supplier"] for one in cause["sessions"]} == {"s1", "s2"}
    assert all(one["does"] == "nothing" and one["outcome"] is None for one in cause["sessions"])
    assert any("initialise s3 from s1" in one for one in made["plain"])
    refused = [one for need in made["plan"]["needs"] for one in need["courses"] if one["verdict"] == "refused"]
    assert refused and all(one["why"] for one in refused)
    kinds = [one["kind"] for one in made["timeline"]["events"]]
    assert {"missed", "replaced", "message", "collected"} <= set(kinds)
    assert [one["at"] for one in made["timeline"]["events"]] == sorted(one["at"] for one in made["timeline"]["events"])
    assert any(one["there"].startswith("CSN") for one in made["glossary"])


def test_a_session_that_skips_a_change_says_so(tmp_path: Path) -> None:
    made = whole_report(Incident(copied(tmp_path, "refused_by_a_consumer")))
    assert sum(one["count"] for one in made["missing"]) == 2
    assert all(one["reasons"] for one in made["causes"])


def test_what_was_applied_is_told(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan = plan_for(case)
    journal = Journal(case.folder / JOURNAL, BEGINS)
    journal.append("begun", plan.id, steps=1, by={"user": "jane", "host": "desk7", "pid": 1})
    journal.append("intent", plan.id, step=plan.steps[0].key, memo={})
    journal.append("done", plan.id, step=plan.steps[0].key, vectors=[])
    journal.append("finished", plan.id)
    incident = Incident(case)
    made = whole_report(incident)
    assert [one["what"] for one in made["journal"]] == ["begun", "intent", "done", "finished"]
    assert made["plan"]["standing"] == "1 of 1 applied"
    assert made["plan"]["done"] == [plan.steps[0].key]
    assert [one["promised"] for one in made["verification"]] == [0, 0, 0]
    assert {one["found"] for one in made["verification"]} == {None}, "nothing was collected since"
    shown = json.dumps(redacted_report(incident, pseudonyms_of(incident)))
    assert "jane" not in shown and "desk7" not in shown
    assert "user-1" in shown


def test_a_damaged_plan_or_journal_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    case = copied(tmp_path)
    (case.folder / PLAN).write_text("{")
    (case.folder / JOURNAL).write_text('{"n": 7, "at": "", "what": "", "plan": ""}\n')
    made = whole_report(Incident(case))
    assert "not JSON" in made["plan"]["problem"] and "damaged" in made["journal_problem"]
    assert made["missing"]
    assert "damaged" in page(made) and "damaged" in markdown(made)


# --- what it never says


def named_in(folder: Path) -> set[str]:
    """The names in collected files, whatever the program knows of them: of entries, hosts, links, servers, files, folders."""
    names = {path.name for path in folder.rglob("*")}
    names |= {name.removesuffix(".gz") for name in names} | {name.partition(".")[0] for name in names}
    for path in folder.rglob("*"):
        if path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            text = re.sub(r"\n (?=\S)", "", data.decode("utf-8", "replace"))
            for pattern in (
                r"\b(?:uid|ou|dc)=([\w.-]+)",
                r"(?m)^nsDS5ReplicaHost: (\S+)",
                r"\bldaps?://([\w.-]+)",
                r'agmt="cn=([^"]+)"',
                r"(?m)^dn: cn=(\S+?-to-\S+?),",
            ):
                names |= {found.lower() for found in re.findall(pattern, text)}
    said = NAMING.common | NAMING.ordinary | {"access", "errors", "audit"}
    return {one for one in names if speaks(one) and one not in said and not one.isdecimal()}


def shown_in(out: dict[str, Path]) -> dict[str, str]:
    """What artefacts say, in plain letters; archives by what is in them."""
    shown = {
        "html": Seen(out["html"].read_text()).said,
        "json": json.dumps(json.loads(out["json"].read_text()), ensure_ascii=False),
        "md": as_read(out["md"].read_text()),
    }
    with zipfile.ZipFile(out["zip"]) as archive:
        assert all(entry.date_time == (1980, 1, 1, 0, 0, 0) for entry in archive.infolist())
        assert archive.namelist() == sorted(archive.namelist(), key=lambda one: (one.startswith("evidence"), one))
        for entry in archive.namelist():
            data = archive.read(entry)
            shown[entry] = (
                json.dumps(pq.read_table(io.BytesIO(data)).to_pylist(), default=str, ensure_ascii=False)
                if entry.endswith(".parquet")
                else data.decode()
            )
    return shown


def written(case: Case, folder: Path) -> dict[str, str]:
    out = {kind: folder / f"out.{kind}" for kind in ("html", "json", "md", "zip")}
    done = run(
        case.folder, "--out", out["html"], "--json", out["json"], "--markdown", out["md"], "--case-export", out["zip"]
    )
    assert done.exit_code == 0, done.output
    return {**shown_in(out), "what the command says": done.output.replace(str(folder), "")}


CODES = re.compile("|".join(sorted((code for some in all_codes().values() for code in some), key=len, reverse=True)))


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one == "restored_from_own_backup" else one for one in NAMES]
)  # the slow one takes as long as all others
def test_no_name_of_the_case_is_in_any_artefact(tmp_path: Path, name: str) -> None:
    case = copied(tmp_path, name)
    plan_for(case)
    names = named_in(FOLDER / name)
    assert len(names) > 10, "what is looked for"
    assert any(one.startswith(("k1u", "d3u", "s1", "u00")) for one in names) and "localhost.localdomain" in names
    for where, whole_text in written(case, tmp_path).items():
        text = CODES.sub("", whole_text)  # a snapshot may be called `purged`, and a code be ANCHOR_PURGED
        low = text.casefold()
        for one in names:
            if one.casefold() in low:  # most are nowhere: their borders need not be looked for
                found = re.search(rf"(?<![^\W_]){re.escape(one)}(?![^\W_])", text, re.IGNORECASE)
                assert not found, (where, one, text[max(0, found.start() - 80) : found.end() + 40])


@pytest.mark.parametrize("name", [one for one in HOSTILE if one != "missing"])
def test_a_name_with_odd_letters_is_in_no_artefact(tmp_path: Path, name: str) -> None:
    case = oddly_named(tmp_path, ("s1", "s2", name))
    plan_for(case)
    parts = [one.lower() for one in re.findall(r"[^\W_]{4,}", name) if one not in ("name", "onclick")]
    assert parts
    for where, text in written(case, tmp_path).items():
        assert "server-" in text or where == "README.txt" or "evidence" in where
        for one in parts:
            assert one not in text.lower(), (where, one)


def test_a_name_that_is_a_word_does_not_change_our_sentences(tmp_path: Path) -> None:
    for number, names in enumerate([("primary", "have", "missing"), ("reports", "heal", "covers")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        incident = Incident(oddly_named(folder, names))
        pseudonyms = pseudonyms_of(incident)
        third = pseudonyms.names()[names[2]]
        made = redacted_report(incident, pseudonyms)
        assert made["headline"] == f"2 changes are MISSING on {third} and will not come by themselves."
        assert made["plain"][1].startswith(f"{third} does not have 2 changes that were made on ")
        assert made["plain"][1].endswith(
            "It reports having seen them, so the other servers will not send them again: this does not heal by itself."
        )
        says = {one["name"]: one["says"] for one in made["topology"][0]["servers"]}
        assert says[third] == "2 missing" and {*says} == {"server-1", "server-2", "server-3"}
        assert made["missing"][0]["changes"][0]["says"] == "its log covers the change and does not hold it"
        assert f"{third} lacks 2 changes that " in json.dumps(made["topology"])


def test_the_suffix_of_another_database_does_not_change_our_sentences(tmp_path: Path) -> None:
    incident = Incident(of_two_suffixes(tmp_path))  # one of them is dc=other
    made = redacted_report(incident, pseudonyms_of(incident))
    assert "so the other servers will not send them again" in " ".join(made["plain"])


@pytest.mark.parametrize(("label", "name"), [("2026-11-20", "case"), ("11-20", "case"), ("now", "2026-11-20")])
def test_a_case_and_its_snapshots_may_be_called_by_days(tmp_path: Path, label: str, name: str) -> None:
    shutil.copytree(FOLDER / LOST / "2-during", tmp_path / label)
    case = Case.create(tmp_path / name)
    case.load([tmp_path / label])
    made = json.loads(run(case.folder, "--json", "-").stdout)
    whole_one = whole_report(Incident(case))
    assert (made["case"]["name"], made["case"]["snapshot"]) == ("case-1", "snapshot-1")
    assert [one["at"] for one in made["timeline"]["events"]] == [one["at"] for one in whole_one["timeline"]["events"]]
    assert "2026-11-20 15:04:22 UTC" in " ".join(made["plain"])
    assert run(case.folder).exit_code == 0 and (case.folder / "report.html").exists()


def times_in(value: Any, kind: str = "", within: str = "") -> Any:
    """The kind under which a time stands in data, of each that is nothing else."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from times_in(one, BY_KEY.get(f"{within}.{key}") or BY_KEY.get(key, f"no kind: {key}"), key)
    elif isinstance(value, list):
        for one in value:
            yield from times_in(one, kind, within)
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S{0,6}", value):
        yield kind


def test_every_time_of_ours_is_known_as_one(tmp_path: Path) -> None:
    case = copied(tmp_path, "restored_from_own_backup")
    plan = plan_for(case)
    Journal(case.folder / JOURNAL, BEGINS).append("begun", plan.id, steps=len(plan.steps))
    kinds = list(times_in(gathered(Incident(case))))
    assert len(kinds) > 50 and set(kinds) == {TIME}


def test_a_time_in_the_journal_that_is_none_is_shown_as_it_is(tmp_path: Path) -> None:
    for number, at in enumerate(["yesterday", "2026-13-45 99:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59"]):
        (tmp_path / str(number)).mkdir()
        case = copied(tmp_path / str(number))
        record = {"n": 1, "at": at, "what": "given_up", "plan": "x"}
        (case.folder / JOURNAL).write_text(json.dumps(record) + "\n")
        assert run(case.folder).exit_code == 0
        assert at in (case.folder / "report.html").read_text()


def test_names_of_files_tell_nobody(tmp_path: Path) -> None:
    files = {
        name.replace("x1", "acmecorp-berlin-kd4711"): text for name, text in three(20, {5}, ("x1", "x2", "x3")).items()
    }
    about = called(("s1", "s2", "s3"), ("acmecorp*", "x2.*", "x3.*"))
    case = loaded(tmp_path, ("now", {**files, "case.yaml": about}))
    shown = written(case, tmp_path)
    for where, text in shown.items():
        for one in ("acmecorp", "kd4711", "berlin"):
            assert one not in text.lower(), (where, one)
    rows = json.loads(shown["json"])["inventory"]
    assert len({one["file"] for one in rows}) == len(rows) == 9
    assert all(re.fullmatch(rf"{one['server']}\.[a-z_]+-[0-9]+", one["file"]) for one in rows)


def test_what_is_left_in_is_found_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = copied(tmp_path)
    monkeypatch.setattr(Pseudonyms, "_replaced", lambda self, text: text)
    done = run(case.folder)
    assert done.exit_code == 2 and "names would be left in it" in done.output
    assert not (case.folder / "report.html").exists()


def test_snapshots_are_numbered_in_their_order(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("zebra", three(20, set())), ("apple", three(20, {5})))
    incident = Incident(case)
    about = redacted_report(incident, pseudonyms_of(incident))["case"]
    assert (about["snapshots"], about["snapshot"]) == (["snapshot-1", "snapshot-2"], "snapshot-2")


def test_an_export_keeps_what_a_supporter_needs(tmp_path: Path) -> None:
    case = copied(tmp_path)
    incident = Incident(case)
    names = pseudonyms_of(incident)
    made = redacted_report(incident, names)
    for at in ("a.zip", "b.zip"):
        with case_export(incident, made, names, tmp_path / at):
            assert not (tmp_path / at).exists(), "what is done before it is published may fail"
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        found = json.loads(archive.read("findings.json"))
        tables: dict[str, list[dict[str, Any]]] = {}
        for entry in archive.namelist():
            if entry.startswith("evidence/"):
                tables.setdefault(entry.split("/")[1], []).extend(
                    pq.read_table(io.BytesIO(archive.read(entry))).to_pylist()
                )
    assert {row["position"] for row in found["missing"]} == {row["position"] for row in incident.found["missing"]}
    assert len(tables["changes"]) == sum(part["rows"] for part in case.parts("changes"))
    assert {row["body"] for row in tables["changes"]} == {row["value"] for row in tables["entry_states"]} == {None}
    ports = {row["consumer_port"] for row in case.arrow("links").to_pylist()}
    assert None not in ports and {row["consumer_port"] for row in tables["links"]} == {None}
    assert {row["server"] for row in tables["changes"]} == {"server-1", "server-2", "server-3"}
    targets = {row["target"] for row in found["missing"]}
    assert targets <= {row["target"] for row in tables["changes"]}, "the same name has the same pseudonym everywhere"


def test_a_name_that_is_left_in_a_table_is_found_and_nothing_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = copied(tmp_path)
    monkeypatch.setattr(export, "_of", lambda rule, text, names: text)
    done = run(case.folder, "--case-export", tmp_path / "out.zip")
    assert done.exit_code == 2 and "names would be left in it" in done.output
    assert not (tmp_path / "out.zip").exists()


def test_what_is_kept_as_it_is_is_looked_at_too() -> None:
    made = Pseudonyms(b"k" * 32)
    made.learn("server", ["berlin"])
    export._check(pa.array(["6b006176000000010000", None]), "position", "x", made)
    for text in ("berlin", "6b006176000000010000 at berlin"):
        with pytest.raises(Problem, match="1 names would be left"):
            export._check(pa.array(["6b006176000000010000", None, text]), "position", "x", made)


def test_every_column_of_text_has_a_rule() -> None:
    columns = {
        (table, name) for table, of in COLUMNS.items() for name, (kind, _) in of.items() if "string" in str(kind)
    }
    assert {one for one in columns if not COLUMN_RULES.keys() & {one[1], ".".join(one)}} == set()
    assert {COLUMN_RULES[name] for name in ("body", "value", "text", "raw", "excerpt", "numbers", "content")} == {
        DROPPED
    }


def test_every_table_has_a_rule_and_none_tells_a_value_that_was_left_out(tmp_path: Path) -> None:
    assert TABLE_RULES.keys() == COLUMNS.keys(), "whoever adds a table says whether values can be guessed from it"
    record = (
        f"changetype: modify\ncsn: {csn(9, 1)}\nnsuniqueid: {WHO}\ndn: uid=jdoe,{SUFFIX}\n"
        f"change:: {base64.b64encode(BODY.encode()).decode()}\n\n"
    )
    files = three(5, set())
    case = loaded(tmp_path, ("now", {**files, "s1.changelog.ldif": files["s1.changelog.ldif"] + record}))
    assert BODY in {row["body"] for row in case.arrow("changes").to_pylist()}
    proving = system_named("ds389").proving()
    (number,) = likeness(pa.array([WHO]), pa.array([BODY]), proving).tolist()
    assert number in case.arrow("alike")["number"].to_pylist(), "who knows the rest can try all values"
    assert run(case.folder, "--case-export", tmp_path / "x.zip").exit_code == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert "`alike`" in archive.read("README.txt").decode()
        tables = [entry for entry in archive.namelist() if entry.endswith(".parquet")]
        assert {entry.split("/")[1] for entry in tables} <= {name for name, rule in TABLE_RULES.items() if rule == KEPT}
        for entry in tables:
            columns = pq.read_table(io.BytesIO(archive.read(entry))).to_pydict()
            assert not [name for name, values in columns.items() if number in values], entry


CANARIES = [*NAMED[:60:2], *SHAPED, *PACKED[:20], f"ldap://cn=x:{CANARY}@h/", f"ldapmodify -w {CANARY} -H ldap://h"]


def test_no_secret_comes_back_by_journal_plan_or_address(tmp_path: Path) -> None:
    assert len(CANARIES) >= 50
    case = copied(tmp_path)
    plan = plan_for(case)
    whole = as_json(plan)
    (case.folder / PLAN).unlink()
    (step,) = whole["steps"]
    step |= {"risk": CANARIES[0], "sends": "\n".join(CANARIES), "commands": [[one] for one in CANARIES]}
    for at, one in enumerate(CANARIES):
        whole["courses"] = [*whole["courses"], {**whole["courses"][-1], "way": f"w{at}", "says": one, "refused": one}]
    whole["open"] = CANARIES
    (case.folder / PLAN).write_text(json.dumps(whole))
    with pytest.raises(Problem, match="changed"):
        read_plan(case.folder)  # so nobody can plant anything there without its id
    path = case.folder / PLAN
    path.write_text(json.dumps({**whole, "id": _id_of(path)}))
    journal = Journal(case.folder / JOURNAL, BEGINS)
    journal.append("begun", plan.id, steps=1)
    for one in CANARIES:
        journal.append("failed", plan.id, why=one, step=one)
    incident = Incident(case)
    names = pseudonyms_of(incident)
    for made in (whole_report(incident), redacted_report(incident, names)):
        assert "problem" not in made["plan"]
        assert len(made["journal"]) == len(CANARIES) + 1
        for text in (json.dumps(made), page(made), markdown(made)):
            assert CANARY not in text
            assert "removed" in text
    with case_export(incident, redacted_report(incident, names), names, tmp_path / "x.zip"):
        pass
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert not [entry for entry in archive.namelist() if CANARY.encode() in archive.read(entry)]


def _id_of(path: Path) -> str:
    """The id that a plan of this text would have."""
    import hashlib

    found = json.loads(path.read_text())
    about = {key: value for key, value in found.items() if key not in ("schema", "id")}
    for step in about["steps"]:
        del step["certain"]  # follows from what it assumes
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
