"""The pair matrix and the pages of one session, held against a replay over positions read by a few lines of their own."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_samples import INCIDENT
from collected import SHARED, needs_collected_files
from mesh_samples import (
    GENERATION,
    SUFFIX,
    agreement,
    case_of,
    changelog,
    claims,
    csn,
    elements,
    pair_of_servers,
    replica,
    write,
)

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.engine.parquet_read import read_near
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import highest, rows_at, rows_of
from workbench.model import Problem
from workbench.replication.changelog.diagnosis.pair_matrix import pair_matrix
from workbench.replication.changelog.diagnosis.planned_sessions import session_of
from workbench.rules.send_session import Session, SortedLog, replay
from workbench.rules.vectors import Span
from workbench.systems.ds389 import SYSTEM
from workbench.systems.ds389.rules.supplying import SUPPLYING
from workbench.topology.topology import logs_of, topology

Row = dict[str, Any]


def found_in(tmp_path: Path, *snapshots: dict[str, str | bytes]) -> Row:
    return diagnose(case_of(tmp_path, *snapshots))


def row(found: Row, supplier: str, consumer: str) -> Row:
    (one,) = [one for one in found["pairs"] if (one["supplier"], one["consumer"]) == (supplier, consumer)]
    return one


def rules_given(one: Row) -> list[str]:
    return [reason["rule"] for reason in one["reasons"]]


# --- a second opinion on every pair of every captured snapshot


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def unfolded(path: Path) -> str:
    return text_of(path).replace("\n ", "")


class Server:
    """One server of a captured folder, by regular expressions over its files."""

    def __init__(self, folder: Path, name: str) -> None:
        entry = unfolded(folder / f"{name}.replica.ldif")
        self.generation = re.findall(r"^nsds50ruv: \{replicageneration\} (\S+)", entry, re.M)
        self.vector = {
            rid: Span(low or None, high or None)
            for rid, low, high in re.findall(r"^nsds50ruv: \{replica (\d+)[^}]*\}(?: (\w{20}) (\w{20}))?", entry, re.M)
        }
        rid, flags = (re.findall(rf"^{key}: (\d+)", entry, re.M)[0] for key in ("nsDS5ReplicaId", "nsDS5Flags"))
        self.rid, self.keeps_log = "" if rid == "65535" else rid, flags != "0"
        logs = [path for path in folder.glob(f"{name}.changelog.ldif*") if not path.name.endswith("MISSING")]
        self.has_log = bool(logs)
        records = unfolded(logs[0]).split("\n\n") if logs else []
        self.changes, self.marks = [], []
        for record in records:
            if position := re.search(r"^csn: (\w{20})$", record, re.M):
                (self.marks if "dn: cn=start iteration" in record else self.changes).append(position[1])


def captured() -> Iterator[Any]:
    folders = [INCIDENT / "1-before", INCIDENT / "2-during"]
    if SHARED.is_dir():
        folders += sorted({path.parent for path in SHARED.rglob("*.replica.ldif")})
    for folder in folders:
        yield pytest.param(folder, id="-".join(folder.parts[-2:]))


def replayed(rules: str, supplier: Server, consumer: Server) -> Session:
    log = SortedLog(supplier.changes, lambda position: str(int(position[12:16], 16)), supplier.marks)
    return replay(SUPPLYING.rule_sets[rules](), log, supplier.vector, consumer.vector, consumer.rid)


@pytest.mark.parametrize("folder", list(captured()))
def test_every_pair_of_every_captured_snapshot_is_what_a_replay_does(folder: Path, tmp_path: Path) -> None:
    names = sorted(path.name.removesuffix(".replica.ldif") for path in folder.glob("*.replica.ldif"))
    servers = {name: Server(folder, name) for name in names}
    case = Case.create(tmp_path / "case")
    case.load([folder])
    shown = topology(case)
    logs = logs_of(case, shown)
    assert [one.server for one in shown.replicas] == names
    counts = [
        sum(seen["count"] for seen in one.log.facts["by_origin"].values()) if one.log else 0 for one in shown.replicas
    ]
    assert counts == [len(set(servers[name].changes)) for name in names]
    for rules in SUPPLYING.rule_sets:
        pairs = pair_matrix(shown, logs, rules)
        ends = [(one["supplier"], one["consumer"]) for one in pairs]
        assert ends == [(one, other) for one in names for other in names if one != other]
        for one in pairs:
            supplier, consumer = servers[one["supplier"]], servers[one["consumer"]]
            session = replayed(rules, supplier, consumer)
            assert (one["rules"], one["suffix"]) == (rules, SUFFIX)
            assert one["anchor"] == session.anchor
            if session.decision == "anchor_not_found" and supplier.keeps_log and not supplier.has_log:
                assert (one["decision"], one["counts"], one["to_send"]) == ("unknown", {}, {})
                continue
            assert (one["decision"], one["anchor_included"]) == (session.decision, session.included)
            assert one["counts"] == Counter(step.outcome for step in session.steps)
            sent: dict[str, list[str]] = {}
            for position in session.sent:
                sent.setdefault(str(int(position[12:16], 16)), []).append(position)
            assert one["to_send"] == {
                origin: {"count": len(mine), "first": min(mine), "last": max(mine)} for origin, mine in sent.items()
            }
            pages_equal(case, one, session, rules)


def pages_equal(case: Case, one: Row, session: Session, rules: str) -> None:
    """The pages of the session, of several sizes, hold exactly its steps."""
    planned = session_of(case, one["supplier"], one["consumer"], rules=rules)
    steps = [(step.position, str(int(step.position[12:16], 16)), step.outcome) for step in session.steps]
    assert {key: planned.row[key] for key in one if key != "others"} == {
        key: one[key] for key in one if key != "others"
    }
    for size in (1, 7, 1000) if len(steps) < 60 else (13, 1000):
        shown: list[tuple[str, str, str]] = []
        after = None
        while page := planned.page(after, size).to_pylist():
            assert len(page) <= size
            shown += [tuple(change.values()) for change in page]
            after = page[-1]["position"]
        assert shown == steps, size


@needs_collected_files
def test_the_captured_incidents_say_what_happened(tmp_path: Path) -> None:
    def seen(folder: str) -> dict[tuple[str, str], Row]:
        case = Case.create(tmp_path / folder.replace("/", "-"))
        case.load([SHARED / "incidents" / folder])
        return {(one["supplier"], one["consumer"]): one for one in diagnose(case)["pairs"]}

    lag = seen("i_lag/during")
    assert {origin: sent["count"] for origin, sent in lag["s3", "s2"]["to_send"].items()} == {"1": 79, "3": 77}
    assert (lag["s3", "s2"]["link"], lag["s3", "s2"]["link_enabled"]) == ("s3-to-s2", False)
    purged = seen("iii_purged_changelog/stuck")["s1", "s3"]
    assert (purged["decision"], purged["anchor_class"]) == ("anchor_not_found", "purged")
    assert purged["anchor"] == "6b006063002000010000"
    assert purged["others"]["design"]["decision"] == "send"
    hidden = seen("ii_restored_backup/after")["s3", "s1"]
    assert (hidden["anchor"], hidden["anchor_class"]) == ("6b005c17001300030000", "missing")
    hub = seen("vi_consumer_missed/during")
    assert hub["s1", "h1"]["link"] == "s1-to-h1"
    assert hub["c1", "s1"]["decision"] == hub["s1", "c1"]["decision"] == "nothing_to_send"


# --- what is known of a log decides what can be said


def test_who_is_ahead_sends_and_who_is_behind_has_nothing(tmp_path: Path) -> None:
    found = found_in(tmp_path, pair_of_servers(9, 4))
    one, other = row(found, "s1", "s2"), row(found, "s2", "s1")
    assert (one["decision"], one["anchor"], one["anchor_included"]) == ("send", csn(4, 1), False)
    assert one["to_send"] == {"1": {"count": 5, "first": csn(5, 1), "last": csn(9, 1)}}
    assert (one["stop"], one["counts"]) == ({"1": csn(9, 1)}, {"sent": 5})
    assert (one["link"], one["link_enabled"], one["would_contact"]) == ("to-s2", True, True)
    assert (other["decision"], other["anchor"], other["stop"]) == ("nothing_to_send", None, {})
    assert found["links"][0] == {
        "supplier": "s1", "suffix": SUFFIX, "name": "to-s2", "consumer": "s2", "address": "localhost:38902",
        "enabled": True, "why": None, "automatic": None, "failing": None, "fails": None, "means": None,
    }  # fmt: skip
    assert found["run"]["truncated"] == {}


def test_a_log_that_was_not_collected_leaves_the_question_open(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    del files["s1.changelog.ldif"]
    case = case_of(tmp_path, files)
    one = row(diagnose(case), "s1", "s2")
    assert (one["decision"], one["anchor"], one["counts"], one["anchor_class"]) == ("unknown", csn(4, 1), {}, None)
    assert "was not collected" in one["reasons"][-1]["says"]
    planned = session_of(case, "s1", "s2")
    assert planned.row["decision"] == "unknown"
    assert planned.page().num_rows == 0


def test_a_log_of_which_records_could_not_be_read_proves_no_absence(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    files["s1.changelog.ldif"] = files["s1.changelog.ldif"].replace(f"csn: {csn(4, 1)}", "csn: 6z")
    cut = row(found_in(tmp_path / "cut", files), "s1", "s2")
    assert (cut["decision"], cut["anchor"], cut["to_send"]) == ("unknown", csn(4, 1), {})
    assert "1 record of its log could not be read" in cut["reasons"][-1]["says"]
    files = pair_of_servers(9, 4)
    files["s1.changelog.ldif"] = files["s1.changelog.ldif"].replace(f"csn: {csn(7, 1)}", "csn: 6z")
    holed = row(found_in(tmp_path / "holed", files), "s1", "s2")
    assert (holed["decision"], holed["to_send"]["1"]["count"]) == ("send", 4)
    assert "log_not_whole" in rules_given(holed)


def test_a_packed_log_that_was_cut_proves_no_absence(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**pair_of_servers(2000, 1990)}
    packed = gzip.compress(str(files.pop("s1.changelog.ldif")).encode())
    found = found_in(tmp_path, {**files, "s1.changelog.ldif.gz": packed[: len(packed) // 2]})
    assert row(found, "s1", "s2")["decision"] == "unknown"
    (reject,) = found["rejects"]
    assert (reject["file"], reject["snapshot"]) == ("s1.changelog.ldif.gz", "1")


def test_a_consumer_that_keeps_no_log_supplies_nobody(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(0, 6), r2=(1, 2))), flags=0)
    found = found_in(tmp_path, files)
    one = row(found, "c1", "s2")
    assert (one["decision"], one["anchor"]) == ("anchor_not_found", csn(4, 1))
    assert rules_given(one)[-1] == "keeps_no_log"
    assert not one["anchor_class_assumed"]
    assert row(found, "s1", "c1")["to_send"]["1"]["count"] == 3


def test_a_mark_of_a_log_made_anew_is_an_anchor_and_never_sent(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(5, 10)], marks=[csn(4, 1)])
    one = row(found_in(tmp_path, files), "s1", "s2")
    assert (one["decision"], one["anchor"], one["counts"]) == ("send", csn(4, 1), {"sent": 5})


@pytest.mark.parametrize(
    ("purge", "marks", "absent", "assumed"),
    [
        ([f"{{replica 1 ldap://x:1}} {csn(0, 1)} {csn(6, 1)} 00000000"], [], "purged", False),
        ([f"{{replica 1 ldap://x:1}} {csn(0, 1)} {csn(2, 1)} 00000000"], [], "missing", False),
        (["{replica 1 ldap://x:1}"], [], "purged", False),  # never trimmed: the server calls it so all the same
        ([], [], "purged", True),
    ],
)
def test_why_an_anchor_is_absent(
    purge: list[str], marks: list[str], absent: str, assumed: bool, tmp_path: Path
) -> None:
    files = pair_of_servers(9, 4)
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(7, 10)], purge=purge, marks=marks)
    found = found_in(tmp_path, files)
    one = row(found, "s1", "s2")
    assert (one["decision"], one["anchor_class"]) == ("anchor_not_found", absent)
    assert one["anchor_class_assumed"] == assumed
    told = next(each for each in found["findings"] if each["code"] in ("ANCHOR_PURGED", "ANCHOR_MISSING"))
    assert told["assumes"] == (["log_begins_at_first_record"] if assumed else [])
    assert one["others"]["design"]["to_send"]["1"]["count"] == 3


# --- what comes before a session


@pytest.mark.parametrize(("theirs", "decision"), [(csn(5, 7), "refused"), (None, "send"), (GENERATION.upper(), "send")])
def test_other_data_is_refused_and_an_unseen_generation_is_not(
    theirs: str | None, decision: str, tmp_path: Path
) -> None:
    files = pair_of_servers(9, 4)
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(1, 2)), theirs))
    case = case_of(tmp_path, files)
    one = row(diagnose(case), "s1", "s2")
    assert one["decision"] == decision
    if decision == "refused":
        assert (one["anchor"], one["counts"], one["stop"], one["to_send"]) == (None, {}, {}, {})
        assert session_of(case, "s1", "s2").page().num_rows == 0


def test_a_consumer_that_was_rolled_back_is_not_contacted(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    remembered = elements(claims(r1=(0, 9), r2=(1, 2)))
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, remembered=remembered, enabled=False)
    one = row(found_in(tmp_path, files), "s1", "s2")
    assert (one["decision"], one["would_contact"], one["link_enabled"]) == ("send", False, False)
    assert one["to_send"]["1"]["count"] == 5


def test_without_a_link_nobody_is_contacted_or_not(tmp_path: Path) -> None:
    files = {name: content for name, content in pair_of_servers(9, 4).items() if "agreements" not in name}
    one = row(found_in(tmp_path, files), "s1", "s2")
    assert (one["decision"], one["link"], one["link_enabled"], one["would_contact"]) == ("send", None, None, None)


def test_broken_and_empty_elements_are_no_claims(tmp_path: Path) -> None:
    files = pair_of_servers(3, 3)
    broken = [*elements(claims(r2=(1, 2))), f"{{replica 1 ldap://x:1}} {csn(0, 1)}"]
    for ruv in (broken, elements({**claims(r2=(1, 2)), 1: None}), elements(claims(r2=(1, 2)))):
        one = row(found_in(tmp_path / str(len(ruv[-1])), {**files, "s2.replica.ldif": replica(2, ruv)}), "s1", "s2")
        assert (one["anchor"], one["anchor_included"]) == (csn(0, 1), True)
        assert one["counts"] == {"consumer_rid": 2, "sent": 4}


def test_a_server_that_was_never_filled_gets_everything(tmp_path: Path) -> None:
    one = row(found_in(tmp_path, {**pair_of_servers(9, 4), "s2.replica.ldif": replica(2, elements({}))}), "s1", "s2")
    assert sum(sent["count"] for sent in one["to_send"].values()) == 12


def test_positions_of_any_time_and_spelling(tmp_path: Path) -> None:
    late = [f"{0xFFFFFF00 + second:08x}00{second:02x}00ff000{second}" for second in range(8)]
    have = {"255": (late[0], late[2])}
    ruv = [elements({}, csn(0, 1))[0]]
    whole = [*ruv, f"{{replica 255 ldap://a:1}} {late[0].upper()} {late[7].upper()}"]
    behind = [*ruv, f"{{replica 00255 ldap://a:1}} {have['255'][0]} {have['255'][1]}"]
    files = {
        "s1.changelog.ldif": changelog([position.upper() for position in late]),
        "s1.replica.ldif": replica("00255", whole),
        "s2.replica.ldif": replica(2, behind),
    }
    case = case_of(tmp_path, files)
    one = row(diagnose(case), "s1", "s2")
    assert one["to_send"] == {"255": {"count": 5, "first": late[3], "last": late[7]}}
    page = session_of(case, "s1", "s2").page(late[5].upper(), 10).to_pylist()
    assert [(change["position"], change["outcome"]) for change in page] == [(late[6], "sent"), (late[7], "sent")]


# --- the whole


def bytes_of(found: Row) -> bytes:
    return json.dumps({key: value for key, value in found.items() if key != "run"}, indent=1).encode()


def test_the_same_input_gives_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    files = {**pair_of_servers(400, 300), "s3.replica.ldif": replica(3, elements(claims(r1=(0, 20))))}
    files["s1.changelog.ldif"] += "changetype: delete\ncsn: bad\n\n" * 3
    first = write(tmp_path / "a" / "now", files)
    second = write(tmp_path / "b" / "now", dict(reversed(files.items())))
    cases = []
    for number, folder in enumerate((first, second, first)):
        case = Case.create(tmp_path / f"case{number}", "incident")
        case.load([folder], spark if number == 2 else None)
        cases.append(case)
    plain = [bytes_of(diagnose(case)) for case in cases]
    assert plain[0] == plain[1] == plain[2]
    assert bytes_of(diagnose(cases[0], spark=spark)) == plain[0]
    assert [reject["offset"] for reject in json.loads(plain[0])["rejects"]] == sorted(
        reject["offset"] for reject in json.loads(plain[0])["rejects"]
    )


def test_the_findings_speak_of_the_last_snapshot_and_the_inputs_of_all(tmp_path: Path) -> None:
    case = case_of(tmp_path, pair_of_servers(9, 9), pair_of_servers(9, 4))
    found = diagnose(case)
    assert found["case"]["snapshots"] == ["1", "2"]
    assert row(found, "s1", "s2")["to_send"]["1"]["count"] == 5
    assert [(one["snapshot"], one["file"]) for one in found["coverage"]] == [
        (snapshot, name) for snapshot in "12" for name in sorted(pair_of_servers())
    ]
    assert found["servers"][0]["evidence"] == ["changelog", "snapshot", "vector"]
    back = case_of(tmp_path / "back", pair_of_servers(9, 4), pair_of_servers(9, 9))
    assert row(diagnose(back), "s1", "s2")["decision"] == "nothing_to_send"


def test_every_reject_up_to_a_thousand_is_told(tmp_path: Path) -> None:
    files = pair_of_servers()
    files["s1.changelog.ldif"] += "changetype: delete\ncsn: bad\n\n" * 800
    files["s2.changelog.ldif"] += "changetype: delete\ncsn: bad\n\n" * 800
    rejects = found_in(tmp_path, files)["rejects"]
    assert len(rejects) == 1000
    assert Counter(one["file"] for one in rejects) == {"s1.changelog.ldif": 800, "s2.changelog.ldif": 200}
    assert set(rejects[0]) == {"snapshot", "file", "offset", "reason"}


def test_damaged_evidence_is_a_problem_and_no_answer(tmp_path: Path) -> None:
    for table in ("digests", "positions", "vectors", "rejects", "changes"):
        files = pair_of_servers()
        files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(3, 10)], marks=[csn(2, 1)])
        files["s1.changelog.ldif"] += "changetype: delete\ncsn: bad\n\n"
        case = case_of(tmp_path / table, files)
        for part in case.parts(table):
            Path(part["path"]).write_bytes(b"no parquet")
        with pytest.raises(Problem, match="damaged or gone"):
            diagnose(case)


@pytest.mark.parametrize("table", ["changes", "positions", "alike"])
def test_a_changed_bit_in_any_footer_is_damage(table: str, tmp_path: Path) -> None:
    """Where only some rows are read, others could be taken for them, and reading could end the whole process."""
    case = case_of(tmp_path, pair_of_servers(60, 20))
    wanted = of_keys(SYSTEM, [csn(second, 1) for second in range(3, 20)], {"1": 0, "2": 1})
    part = max(case.parts(table), key=lambda part: int(part["rows"]))
    data = Path(part["path"]).read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    for at in range(len(data) - 8 - length, len(data), 7):
        Path(part["path"]).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(Problem, match="damaged or gone"):
            read_near(part, ["number"], wanted.hi)
        with pytest.raises(Problem, match="damaged or gone"):
            list(rows_at([{"first": (0, 0), "last": (1 << 62, 0), **part}], wanted, {"1": 0, "2": 1}, ["operation"]))
        with pytest.raises(Problem, match="damaged or gone"):
            highest([part], "logged_at")
        with pytest.raises(Problem, match="damaged or gone"):
            list(rows_of([(part, pa.array(["x"]))], "entry", ["kind"]))


def test_counts_that_spark_cannot_confirm_are_a_problem(spark: Any, tmp_path: Path) -> None:
    case = case_of(tmp_path, pair_of_servers(2000, 4))
    path = case.parts("digests")[0]["path"]
    digests = pq.read_table(path)
    of_1 = [at for at, origin in enumerate(digests["origin"].to_pylist()) if origin == "1"]
    counts = digests["count"].to_pylist()

    def wrong_by_one(bucket: int) -> None:
        changed = [count + (at == of_1[bucket]) for at, count in enumerate(counts)]
        pq.write_table(digests.set_column(digests.column_names.index("count"), "count", [changed]), path)

    wrong_by_one(len(of_1) // 2)  # nobody looks into the buckets between the anchor and the stop
    assert diagnose(case)["pairs"]
    with pytest.raises(Problem, match="disagree on s1 -> s2"):
        diagnose(case, spark=spark)
    wrong_by_one(0)
    with pytest.raises(Problem, match="damaged or gone"):
        diagnose(case)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("s1", "s9"), "no pair s1 -> s9"),
        (("s1", "s1"), "servers with a vector: s1, s2"),
        (("s1", "s2", "o=none"), "no pair s1 -> s2 of o=none"),
        (("s1", "s2", None, "fast"), "the rule sets are ds389, design"),
    ],
)
def test_what_nobody_can_explain(arguments: tuple[Any, ...], words: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, pair_of_servers())
    with pytest.raises(Problem, match=words):
        session_of(case, *arguments)


def test_a_suffix_is_named_as_one_likes_and_where_there_are_several_one_must(tmp_path: Path) -> None:
    files = pair_of_servers(9, 4)
    files["s1.replica.ldif"] += replica(11, elements(claims(r11=(0, 5))), suffix="o=other")
    files["s2.replica.ldif"] += replica(12, elements(claims(r11=(0, 3))), suffix="o=other")
    case = case_of(tmp_path, files)
    assert session_of(case, "s1", "s2", "DC=Example, dc=com").row["suffix"] == SUFFIX
    assert session_of(case, "s1", "s2", "O=other").row["decision"] == "unknown"
    with pytest.raises(Problem, match=r"several suffixes.*choose one of dc=example,dc=com, o=other"):
        session_of(case, "s1", "s2")


def test_a_page_begins_where_it_is_told(tmp_path: Path) -> None:
    planned = session_of(case_of(tmp_path, pair_of_servers(9, 4)), "s1", "s2")
    assert planned.page(csn(0, 1), 100).num_rows == 5  # nothing before the anchor is read
    assert planned.page(csn(7, 1), 1)["position"].to_pylist() == [csn(8, 1)]
    assert planned.page(csn(9, 1)).num_rows == planned.page(None, 0).num_rows == 0
    for nothing in ("", "yesterday", csn(1, 1)[:-1]):
        with pytest.raises(Problem, match="is not a position"):
            planned.page(nothing)
