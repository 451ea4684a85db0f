"""What servers of 3.2 with LMDB write, captured from a healthy mesh: read whole, and nothing in it taken for a loss."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from log_samples import CSN, STAMP, read, rows, same_in_pieces

from workbench.cli import main
from workbench.model import Format, Piece, Source
from workbench.rules.verdicts import shown_up_to
from workbench.systems.ds389.csn import seconds, utc
from workbench.systems.ds389.formats import FORMATS
from workbench.systems.ds389.formats.access_log import ACCESS_LOG
from workbench.systems.ds389.formats.dbscan import DBSCAN
from workbench.systems.ds389.formats.errors_log import ERRORS_LOG, ERRORS_LOG_PRETTY
from workbench.systems.ds389.formats.printed_reports import STATUS_TEXT

SAMPLES = Path(__file__).parent / "samples" / "ds389-3x"
OPEN = f"{STAMP} conn=10 fd=65 slot=65 connection from 127.0.0.1 to 127.0.0.1"
START = f'{STAMP} conn=10 op=3 EXT oid="2.16.840.1.113730.3.5.12" name="replication-multisupplier-extop"'
TIMES = "wqtime=0.000014 wtime=0.000389772 optime=0.003129032 etime=0.003517412"
NEW_RESULT = f"{STAMP} conn=10 op=7 RESULT err=0 tag=105 nentries=0 {TIMES}"


def captured(name: str) -> bytes:
    """A captured file, unpacked."""
    data = (SAMPLES / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def request(csn: str, op: int = 7, **more: object) -> str:
    """An ADD of the JSON form on connection 10, sent by a supplier with this CSN."""
    uuid = b"\x04\x23" + b"e2e9b692-e89311f1-8e1feb69-2d9039ec"
    content = uuid + b"\x04\x14" + csn.encode()
    value = json.dumps(base64.b64encode(b"\x30\x84" + len(content).to_bytes(4, "big") + content).decode())
    control = f'{{"oid":"2.16.840.1.113730.3.4.13","value":{value},"isCritical":true}}'
    about = f'"conn_id":10,"op_id":{op},"target_dn":"uid=a,dc=example,dc=com","request_controls":[{control}]'
    return f'{{"local_time":"2026-11-20T14:42:08.2 +0000","operation":"ADD","key":"1-10",{about}}}'


def answer(err: int = 0, op: int = 7, tag: int = 105) -> str:
    """The RESULT of the JSON form, which never names a CSN."""
    about = f'"conn_id":10,"op_id":{op},"msg":"","tag":{tag},"err":{err},"nentries":0,"wqtime":"0.0001","wbusy":1,"wqdepth":0'
    return f'{{"local_time":"2026-11-20T14:42:08.3 +0000","operation":"RESULT","key":"1-10",{about}}}'


@pytest.mark.parametrize("load", ["", " wbusy=3/16 wqdepth=0"])
@pytest.mark.parametrize(
    ("tail", "outcome"), [(f" csn={CSN}", "applied"), (f' csn={CSN} sid="Bcea   3"', "applied"), ("", "dropped")]
)
def test_results_with_the_time_in_the_queue_are_read(load: str, tail: str, outcome: str) -> None:
    (row,) = rows(ACCESS_LOG, OPEN, START, NEW_RESULT + load + tail)
    assert (row["outcome"], row["position"]) == (outcome, CSN if outcome == "applied" else None)


def test_a_result_without_any_duration_may_have_lost_its_csn() -> None:
    _, parsed = read(ACCESS_LOG, f"{OPEN}\n{START}\n{NEW_RESULT.partition(' wqtime')[0]}\n{CSN}\n")
    reasons = {reject.reason for reject in parsed.rejects}
    assert "RESULT of an update with something unknown in the place of its csn=" in reasons


LATE = "6b7e9a00000000030000"  # made after the log began


def test_a_received_change_is_known_by_the_control_of_its_request() -> None:
    (row,) = rows(ACCESS_LOG, request(LATE), answer())
    assert (row["outcome"], row["position"], row["target"]) == ("received", LATE, "uid=a,dc=example,dc=com")
    (row,) = rows(ACCESS_LOG, request(LATE), answer(err=32))
    assert (row["outcome"], row["position"], row["code"]) == ("refused", LATE, 32)


def test_success_proves_nothing_of_a_change_that_was_not_the_newest() -> None:
    older = LATE.replace("6b7e9a00", "6b7e99ff")
    first, second = rows(ACCESS_LOG, request(LATE), answer(), request(older, 8), answer(op=8))
    assert (first["outcome"], second["outcome"]) == ("received", "acknowledged")
    (row,) = rows(ACCESS_LOG, request(CSN), answer())  # made before the log began
    assert row["outcome"] == "acknowledged"


def test_a_json_result_without_a_change_is_no_dropped_one() -> None:
    tables, parsed = read(ACCESS_LOG, "\n".join([OPEN, START, answer(), ""]))
    assert not tables and not parsed.rejects
    assert parsed.facts["results_without_position"] == 1


@pytest.mark.parametrize(
    "name", ["switched.access.log.gz", "kyiv.access.json-pretty.log.gz", "during/lima.access.log.gz"]
)
def test_every_line_of_an_access_log_is_read_by_its_own_form(name: str) -> None:
    data = captured(name)
    tables, parsed = read(ACCESS_LOG, data)
    assert parsed.rejects == []
    printed = re.findall(rb" csn=([0-9a-f]{20})", data)
    received = {
        row["position"] for row in tables["applied"].to_pylist() if row["outcome"] in ("received", "acknowledged")
    }
    named = {row["position"] for row in tables["applied"].to_pylist()}
    assert {csn.decode() for csn in printed} | received == named
    assert bool(received) == (b"3.4.13" in data)
    assert parsed.facts["results_with_csn"] == len(printed) + sum(
        row["outcome"] in ("received", "acknowledged") for row in tables["applied"].to_pylist()
    )
    assert same_in_pieces(ACCESS_LOG, data, 1 << 9, 1 << 13)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ERRORS_LOG, "traffic/lima.errors.log.gz"), (ERRORS_LOG_PRETTY, "kyiv.errors.json-pretty.log.gz")],
)
def test_no_line_of_an_errors_log_is_swallowed(kind: Format, name: str) -> None:
    data = captured(name)
    tables, parsed = read(kind, data)
    assert parsed.rejects == []
    sent = re.findall(rb"replay_update - sid=[^\n]*: Sending \w+ operation", data)
    codes = [row["code"] for row in tables["messages"].to_pylist()]
    assert codes.count("sending") == len(sent) > 0
    assert same_in_pieces(kind, data, 1 << 9, 1 << 13)


def test_dbscan_of_lmdb_tells_what_was_done_to_the_values() -> None:
    data = captured("kyiv.dbscan-stopped.first120.txt.gz")
    parsed = DBSCAN.reader()(Piece(Source("f", "s", "kyiv"), data, 0, True))
    assert parsed.rejects == []
    bodies = [row["body"] or "" for row in parsed.tables["changes"].to_pylist() if row["operation"] == "modify"]
    assert bodies and all(re.match(r"(?:add|replace|delete): ", body) for body in bodies)
    renames = [row["rename"] for row in parsed.tables["changes"].to_pylist() if row["operation"] == "modrdn"]
    assert any("deleteoldrdn: -1" in rename for rename in renames)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("oslo.healthcheck-all.json", "ds389.healthcheck"),
        ("oslo.healthcheck.txt", "ds389.healthcheck"),
        ("failed-monitor.json", "ds389.tool-error"),
    ],
)
def test_other_answers_of_the_tools_are_recognised(name: str, expected: str) -> None:
    data = captured(name)
    (kind,) = [kind for kind in FORMATS if kind.sniff(data, name)]
    assert kind.name == expected
    assert kind.reader()(Piece(Source("f", "s", "oslo"), data, 0, True)).rejects == []


def test_a_status_as_text_says_what_its_json_says() -> None:
    text = (
        'Status For Agreement: "oslo-to-kyiv" (localhost:39603)\nReplica Enabled: off\nUpdate In Progress: FALSE\n'
        "Last Update Start: 20261125061732Z\nLast Update Status: Error (0) Replica acquired successfully\n"
        "Replication Status: In Synchronization\nReplication Lag Time: 00:00:00\n\n"
    )
    assert STATUS_TEXT.sniff(text.encode(), "x")
    parsed = STATUS_TEXT.reader()(Piece(Source("f", "s", "oslo"), text.encode(), 0, True))
    (row,) = parsed.tables["links"].to_pylist()
    assert (row["name"], row["consumer_port"], row["enabled"], row["status_code"]) == ("oslo-to-kyiv", 39603, False, 0)
    assert STATUS_TEXT.reader()(Piece(Source("f", "s", "oslo"), text[:150].encode(), 0, True)).rejects


def test_a_claim_shows_a_change_only_where_the_log_goes_on_for_longer_than_a_moment() -> None:
    last, claimed = "6b0678740000000b0000", "6b0678750005000b0000"
    assert shown_up_to(last, claimed, "6b06787500060fb50000", moment) == last
    assert shown_up_to(last, claimed, "6b0679a900000fb50000", moment) == claimed


def moment(csn: str) -> datetime | None:
    """When a change was made."""
    return utc(seconds(csn))


def diagnosed(folder: Path, tmp_path: Path) -> tuple[int, dict]:
    """The exit code and the findings of `workbench diagnose`."""
    out = tmp_path / "found.json"
    done = CliRunner().invoke(main, ["diagnose", str(folder), "--json", str(out)])
    return done.exit_code, json.loads(out.read_text()) if out.exists() else {"output": done.output}


def test_a_healthy_mesh_collected_under_traffic_misses_nothing(tmp_path: Path) -> None:
    code, found = diagnosed(SAMPLES / "traffic", tmp_path)
    assert code == 0, found["findings"]
    assert (found["missing"], found["unknown"], found["rejects"]) == ([], [], [])
    assert {one["severity"] for one in found["findings"]} <= {"info"}
    own = {one["name"]: one["origin"] for one in found["servers"]}
    assert not [row for row in found["pending"] if own[row["server"]] == row["origin"]]


def test_what_waits_behind_disabled_links_is_pending_and_nothing_is_missing(tmp_path: Path) -> None:
    _, found = diagnosed(SAMPLES / "during", tmp_path)
    assert found["missing"] == []
    assert {(row["server"], row["origin"], row["count"], row["first"], row["last"]) for row in found["pending"]} == {
        ("kyiv", "11", 13, "6b067a830000000b0000", "6b067a83000d000b0000"),
        ("kyiv", "22", 13, "6b067a83000000160000", "6b067a83000d00160000"),
    }


@pytest.mark.parametrize("pack", ["files", "all", "unpacked"])
def test_a_folder_that_was_packed_after_it_was_collected_loads(pack: str, tmp_path: Path) -> None:
    folder = tmp_path / "collected"
    folder.mkdir()
    for name in ("oslo.changelog.ldif.gz", "lima.changelog.ldif.gz", "oslo.agreements.ldif"):
        shutil.copy(SAMPLES / "during" / name, folder / name.replace("oslo", "one").replace("lima", "two"))
    named = {"one.changelog.ldif.gz": "oslo", "two.changelog.ldif.gz": "lima", "one.agreements.ldif": "oslo"}
    about = "".join(f"- name: {server}\n  files: [{name}]\n" for name, server in named.items())
    (folder / "case.yaml").write_text(f"servers:\n{about}")
    for path in sorted(folder.iterdir()):
        if pack == "unpacked" and path.suffix == ".gz":
            path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
            path.unlink()
        elif pack != "unpacked" and path.suffix != ".gz" and (pack == "all" or path.name != "case.yaml"):
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    code, found = diagnosed(folder, tmp_path)
    assert code != 2, found
    assert {one["name"] for one in found["servers"]} == {"oslo", "lima"}


def test_a_log_that_went_silent_says_from_when_on_it_tells_again() -> None:
    off = f'{STAMP} conn=9 op=1 MOD dn="cn=config"'
    meanwhile = NEW_RESULT.replace("14:42:07", "14:42:08")  # of another thread, before the change takes effect
    later = NEW_RESULT.replace("14:42:07", "14:50:00") + f" csn={CSN}"
    for size in (1 << 20, 20):
        _, parsed = read(ACCESS_LOG, f"{OPEN}\n{off}\n{meanwhile}\n{later}\n", size)
        spans = [one.split("/") for one in parsed.facts["silent"]]
        assert {since for since, _ in spans} == {spans[0][0]}
        assert max(until for _, until in spans) == "2026-11-20T14:50:00.217971Z"
    assert "silent" not in read(ACCESS_LOG, f"{OPEN}\n{later}\n")[1].facts
