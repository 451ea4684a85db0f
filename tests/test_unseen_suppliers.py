"""A supplier that lives and was not collected is not dead: cleaning its replica ID is chosen only if a person asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import BEGAN, of, stamp
from entry_samples import answered
from log_samples import read, same_in_pieces
from mesh_samples import agreement, case_of, claims, csn, elements, pair_of_servers, replica

from workbench import diagnose
from workbench.diagnosis import unseen_suppliers as unseen
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan
from workbench.systems.ds389.formats.access_log import ACCESS_LOG

Files = dict[str, Any]
DELETED = '{} conn=9 op=1 DEL dn="cn=s1-to-s3,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config"\n'
LATER = '{} conn=10 op=0 BIND dn="cn=Directory Manager" method=128 version=3\n'


def moved(rid: int, second: float) -> str:
    when = int(BEGAN.timestamp() + second)
    return f"nsruvReplicaLastModified: {{replica {rid} ldap://localhost.localdomain:3890{rid}}} {when:08x}\n"


def feeding(*, log: bool = True, vector: bool = False, deleted: float | None = None, read: float = 60) -> Files:
    """s3 feeds s1 and s2, and no link leads to it; its newest change reached s1 at 4 s. s3 was not collected."""
    files: Files = pair_of_servers(4, 4)
    spans = claims(r1=(0, 4), r2=(1, 2), r3=(0, 3))
    for rid in (1, 2):
        more = moved(1, 4) + (moved(3, 4) if vector else "")
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(spans)).rstrip("\n") + "\n" + more + "\n"
    lines = (
        "".join(answered(at + 1, f"uid=u{at},ou=people", csn(at, 3), replicated=True) for at in (2, 3)) if log else ""
    )
    lines += DELETED.format(stamp(deleted)) if deleted is not None else ""
    files["s1.access.log"] = lines + LATER.format(stamp(read))
    return files


@pytest.mark.parametrize("by", ["log", "vector"])
@pytest.mark.parametrize("deleted", [None, 2.5])
def test_a_supplier_whose_changes_arrive_is_not_dead(by: str, deleted: float | None, tmp_path: Path) -> None:
    case = case_of(tmp_path, feeding(log=by == "log", vector=by == "vector", deleted=deleted))
    found, made = diagnose(case), plan(case)
    assert not of("DEAD_ORIGIN", found["findings"]) and not made.steps
    (unseen,) = of("SUPPLIER_NOT_COLLECTED", found["findings"])
    assert (unseen["origin"], unseen["severity"], unseen["items"]) == ("3", "warning", [csn(3, 3)])
    assert "(localhost.localdomain:38903) was not collected" in unseen["summary"]
    assert "reached s1 at" in unseen["summary"] or by == "vector"
    said = headline(found)
    assert (
        said.startswith("No change is known to be missing; ")
        and "localhost.localdomain:38903 was not collected" in said
    )
    (course,) = made.courses
    assert (course.way, course.chosen) == ("clean", False)
    assert "clean it only if that server is gone for good, then plan with --for 3 --way clean" in course.refused
    (left,) = made.left
    assert "collect it, too" in left and "clean origin 3 only if that server is gone for good" in left
    assert not made.unmended and made.unread == ("localhost.localdomain:38903",)


def test_who_asks_for_it_gets_the_clean_with_what_has_to_be_known_before(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, feeding()), only=["3"], ways=["clean"])
    assert [step.key for step in made.steps] == ["1-clean-3"] and not made.left
    assert "no server uses replica ID 3 any more" in made.steps[0].stands_on


@pytest.mark.parametrize("only", [[], ["SUPPLIER_NOT_COLLECTED"]])
def test_who_asks_for_the_way_alone_does_not_get_it(only: list[str], tmp_path: Path) -> None:
    """Several servers may not have been collected: each has to be named."""
    case = case_of(tmp_path, feeding())
    made = plan(case, only=only, ways=["clean"])
    assert not made.steps and made.left


@pytest.mark.parametrize(
    ("files", "lately"),
    [
        (feeding(deleted=5), "reached s1 only 56 s"),  # a person took the link to it away, and nothing came since
        (feeding(read=8 * 86400), ""),  # nothing came for long
        (feeding(log=False), "was made only 57 s"),  # nothing tells when its newest change came
    ],
    ids=["link deleted", "quiet", "untold"],
)
def test_an_origin_is_dead_if_its_link_was_deleted_and_nothing_came_since(
    files: Files, lately: str, tmp_path: Path
) -> None:
    case = case_of(tmp_path, files)
    found, made = diagnose(case)["findings"], plan(case)
    (dead,) = of("DEAD_ORIGIN", found)
    assert "no collected server makes changes as it" in dead["summary"] and not of("SUPPLIER_NOT_COLLECTED", found)
    assert "only if its server is gone for good" in dead["fix"][0]["repair"]
    if lately:
        # The deleted link may have been one of several: seen on 3.1.2, its server lived on, and what it wrote then was lost.
        course = next(one for one in made.courses if one.way == "clean")
        assert not made.steps and made.unmended
        assert f"{lately} before the servers were read: clean it only if that server is gone for good" in course.refused
        made = plan(case, only=["3"], ways=["clean"])
    assert [step.key for step in made.steps] == ["1-clean-3"]
    assert "no server uses replica ID 3 any more" in made.steps[0].stands_on


@pytest.mark.parametrize("replicated", [True, False])
def test_what_a_client_did_on_a_server_itself_did_not_arrive_there(replicated: bool, tmp_path: Path) -> None:
    """s1 had ID 3 before: its access log shows a client's connection, and the newest change of 3 on it."""
    files = feeding(log=False)
    opened = f"{stamp(2)} conn=2 fd=64 slot=64 connection from 10.0.0.1 to 10.0.0.2\n"
    made = answered(4, "uid=u3,ou=people", csn(3, 3), replicated=replicated)
    files["s1.access.log"] = opened + made + files["s1.access.log"]
    found = diagnose(case_of(tmp_path, files))["findings"]
    assert bool(of("SUPPLIER_NOT_COLLECTED", found)) is replicated
    assert bool(of("DEAD_ORIGIN", found)) is not replicated


def test_a_deleted_link_that_is_there_again_does_not_count(tmp_path: Path) -> None:
    files = feeding(deleted=5)
    files["s1.access.log"] = files["s1.access.log"].replace("cn=s1-to-s3", "cn=to-s2")
    assert of("SUPPLIER_NOT_COLLECTED", diagnose(case_of(tmp_path, files))["findings"])


def test_a_deleted_link_to_a_server_that_was_collected_does_not_count(tmp_path: Path) -> None:
    """Seen on 3.1.2: the agreement to a hub was deleted, and the supplier that was not collected went on writing."""
    files = feeding(deleted=5)
    files["s1.access.log"] = files["s1.access.log"].replace("cn=s1-to-s3", "cn=old-to-s2")
    assert of("SUPPLIER_NOT_COLLECTED", diagnose(case_of(tmp_path, files))["findings"])


def test_a_link_that_was_deleted_is_read_in_the_form_of_json_too(tmp_path: Path) -> None:
    files = feeding(vector=True, log=False)
    said = '{"local_time":"2024-03-24T10:30:0%d.000000000 +0000","operation":"%s","key":"1","conn_id":9,"op_id":%d%s}\n'
    name = ',"target_dn":"cn=s1-to-s3,cn=replica,cn=dc\\\\3Dexample\\\\2Cdc\\\\3Dcom,cn=mapping tree,cn=config"'
    files["s1.access.log"] = said % (0, "DELETE", 1, name) + said % (1, "UNBIND", 2, "")
    assert of("DEAD_ORIGIN", diagnose(case_of(tmp_path, files))["findings"])


@pytest.mark.parametrize(("err", "taken_away"), [(0, True), (50, False), (32, False)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_deletion_that_was_refused_took_no_link_away(form: str, err: int, taken_away: bool, tmp_path: Path) -> None:
    """An earlier operation of the same numbers succeeded, and another client's later one."""
    files = feeding(deleted=5) if form == "text" else feeding(vector=True, log=False)
    result = " RESULT err={} tag=107 nentries=0 etime=0.1\n"
    if form == "text":
        asked = DELETED.format(stamp(5))
        before = f"{stamp(1)} conn=9 op=1{result.format(0)}"
        after = f"{stamp(5)} conn=8 op=1{result.format(0)}{stamp(5)} conn=9 op=1{result.format(err)}"
        files["s1.access.log"] = before + files["s1.access.log"].replace(asked, asked + after)
    else:
        said = '{{"local_time":"2024-03-24T10:30:0{}.000000000 +0000","operation":"{}","key":"1","conn_id":{},"op_id":1{}}}\n'
        name = ',"target_dn":"cn=s1-to-s3,cn=replica,cn=dc\\\\3Dexample\\\\2Cdc\\\\3Dcom,cn=mapping tree,cn=config"'
        answer = ',"msg":"","tag":107,"err":{},"nentries":0'
        files["s1.access.log"] = (
            said.format(0, "DELETE", 9, name)
            + said.format(0, "RESULT", 8, answer.format(0))
            + said.format(1, "RESULT", 9, answer.format(err))
            + said.format(2, "UNBIND", 9, "")
        )
    found = diagnose(case_of(tmp_path, files))["findings"]
    assert bool(of("DEAD_ORIGIN", found)) is taken_away
    assert bool(of("SUPPLIER_NOT_COLLECTED", found)) is not taken_away


def test_a_result_in_a_later_piece_of_the_log_counts() -> None:
    """A deletion of which the log has no result counts as one that succeeded."""
    asked, text = DELETED.format(stamp(5)), LATER.format(stamp(6))
    answer = "{} conn=9 op=1 RESULT err={} tag=107 nentries=0 etime=0.1\n"
    for err, told in ((0, 1), (50, 0), (None, 1)):
        log = asked + text * 20 + (answer.format(stamp(9), err) if err is not None else "") + text
        assert same_in_pieces(ACCESS_LOG, log, 100, 900, 5000)
        assert len(read(ACCESS_LOG, log)[1].facts.get("unlinked", ())) == told


def test_an_earlier_origin_of_a_collected_server_is_no_server_of_its_own(tmp_path: Path) -> None:
    files = feeding()
    for name in ("s1", "s2"):
        files[f"{name}.replica.ldif"] = files[f"{name}.replica.ldif"].replace("localdomain:38903", "localdomain:38902")
    assert of("DEAD_ORIGIN", diagnose(case_of(tmp_path, files))["findings"])


def test_the_addresses_of_the_collected_servers_are_read_once_for_all_origins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, asked = feeding(), list[Any]()
    spans = claims(r1=(0, 4), r2=(1, 2), r3=(0, 3), r4=(0, 2))
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(spans))
    read = unseen._listening
    monkeypatch.setattr(unseen, "_listening", lambda context: asked.append(context) or read(context))
    found = diagnose(case_of(tmp_path, files))["findings"]
    assert {one["origin"] for one in of("SUPPLIER_NOT_COLLECTED", found) + of("DEAD_ORIGIN", found)} == {"3", "4"}
    assert len(asked) == 1


def test_of_servers_that_make_no_changes_no_all_clear_is_given(tmp_path: Path) -> None:
    """The hub h1 feeds c1; both have the same of two suppliers, of which none was collected."""
    ruv = elements(claims(r1=(0, 4), r2=(1, 2)))
    files = {
        "h1.replica.ldif": replica(65535, ruv),
        "h1.agreements.ldif": agreement("h1-to-c1", 38951),
        "c1.replica.ldif": replica(65535, ruv, flags=0),
    }
    found = diagnose(case_of(tmp_path / "readers", files))
    said = "; localhost.localdomain:38901 and localhost.localdomain:38902 were not collected."
    assert headline(found).startswith("No change is known to be missing; ") and headline(found).endswith(said)
    with_one = diagnose(case_of(tmp_path / "with one", {**files, "s1.replica.ldif": replica(1, ruv)}))
    assert "localhost.localdomain:38901" not in headline(with_one)
