"""Repairs of real servers: each fault is made, diagnosed, planned, proven, applied and verified, and all servers end alike."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest
from live_bench import Bench, chosen, refused
from live_faults import TO_S3, behind, dn, modify, people, writes
from live_installed import MANAGER_PASSWORD, REPLICA
from live_mesh import Mesh

from workbench import Case
from workbench.repair.server_access import REPLICATION_PASSWORD

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def logs_of_this_test(mesh: Mesh) -> None:
    """Other tests of the mesh let changes get lost for good, which no plan brings back: the access logs begin behind them."""
    for name in mesh.roles:
        os.truncate(mesh.logs(name) / "access", 0)


def hide(mesh: Mesh, *ldif: str) -> list[str]:
    """s3 does not get these changes of s1, and claims to have them."""
    mesh.wait_equal()
    with behind(mesh, TO_S3):
        lost = writes(mesh, "s1", *ldif)
        mesh.wait_equal(["s1", "s2"])
        mesh.edit_vector("s3", "1", lost[-1])
    writes(mesh, "s1", *people(f"after-{lost[-1]}"))
    mesh.wait_equal()
    return lost


def test_hidden_modifications_are_written_again(mesh: Mesh, tmp_path: Path) -> None:
    secret = "Canary-of-a-user-1"
    writes(mesh, "s1", *people("mod-1", "mod-2", "mod-3"))
    mesh.wait_equal()
    hide(
        mesh,
        modify("mod-1", "unseen"),
        f"dn: {dn('mod-2')}\nchangetype: modify\nadd: mail\nmail: a@example.com\n-\nadd: telephoneNumber\ntelephoneNumber: 1\n",
        f"dn: {dn('mod-3')}\nchangetype: modify\nreplace: userPassword\nuserPassword: {secret}\n",
    )
    bench = Bench(mesh, tmp_path)
    planned = bench.mend()
    assert chosen(planned) == ["rewrite"]
    assert "add-on-consumer" in refused(planned)
    assert secret not in json.dumps(planned)
    assert "description" in mesh.read("s3", dn("mod-1"))
    assert mesh.read("s3", dn("mod-3"))["userPassword"] == mesh.read("s1", dn("mod-3"))["userPassword"]
    bench.verify()
    assert "{PBKDF2" not in (bench.case / "journal.jsonl").read_text()


def test_what_feeds_others_is_initialised_and_not_mended_by_a_deletion(mesh: Mesh, tmp_path: Path) -> None:
    """s3 would refuse the deletion and pass on what comes behind it: s2 would keep the old entry for good."""
    hide(
        mesh,
        *people("new-1"),
        f"dn: {dn('new-1')}\nchangetype: modify\nreplace: userPassword\nuserPassword: Canary-2\n",
    )
    password = mesh.read("s1", dn("new-1"))["userPassword"]
    bench = Bench(mesh, tmp_path)
    planned = bench.mend("--way", "recreate")
    (way,) = chosen(planned)
    assert way.startswith("initialise-from-")
    assert "never gets the deletion" in refused(planned)["recreate"]
    assert mesh.read("s3", dn("new-1"))["userPassword"] == password
    bench.verify()


def test_hidden_additions_are_deleted_and_added_under_traffic_through_a_kill(tree: Mesh, tmp_path: Path) -> None:
    """c2 feeds nobody, s1 and s2 are written to all the time: each entry is added once, and no server keeps two."""
    names = [f"again-{number}" for number in range(3)]
    tree.wait_equal()
    with behind(tree, [("s1", "c2")]):
        lost = writes(tree, "s1", *people(*names))
        secret = f"dn: {dn(names[0])}\nchangetype: modify\nreplace: userPassword\nuserPassword: Canary-3\n"
        lost += writes(tree, "s1", secret)
        tree.wait_equal(["s1", "s2", "h1", "c1"])
        tree.edit_vector("c2", "1", lost[-1])
    writes(tree, "s1", *people("again-after"))
    tree.wait_equal()
    password = tree.read("s1", dn(names[0]))["userPassword"]
    bench = Bench(tree, tmp_path).collect()
    assert chosen(bench.plan("--way", "recreate")) == ["recreate"]
    with traffic(tree, "s1", "s2"):
        assert bench.killed_after(2)  # after the first entry is back, and before the plan is done
        done = bench.apply(verb="resume")
        assert "6 of 6 applied" in done.output
    for name in names:
        assert tree.read("c2", dn(name))["nsUniqueId"] == tree.read("s2", dn(name))["nsUniqueId"]
    assert tree.read("c2", dn(names[0]))["userPassword"] == password
    bench.verify()


@contextmanager
def traffic(mesh: Mesh, *servers: str) -> Iterator[None]:
    """Clients add people on these servers, some each second, as long as the block runs."""
    ended, failed = Event(), []

    def write(server: str) -> None:
        for number in count():
            if ended.wait(0.3):
                return
            try:
                mesh.write(server, people(f"traffic-{server}-{time.monotonic_ns()}-{number}")[0])
            except AssertionError as error:
                failed.append(error)

    threads = [Thread(target=write, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failed


def test_restored_and_written_since(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    mesh.backup("s3", "own-repair")
    writes(mesh, "s3", *people("lost-1", "lost-2"))
    mesh.wait_equal()
    with behind(mesh, TO_S3):
        mesh.restore("s3", "own-repair")
        writes(mesh, "s3", *people("kept-1"))
        bench = Bench(mesh, tmp_path)
        planned = bench.mend(code=1)  # what only s3 has goes to a file, for a person to decide about
        assert any(way.startswith("initialise-from-") for way in chosen(planned))
        assert any(one.startswith("STRANDED_CHANGE s3: step 1-save-s3 saves") for one in planned["left"]), planned[
            "left"
        ]
    saved = (bench.case / "stranded-on-s3.ldif").read_text()
    assert dn("kept-1") in saved
    writes(mesh, "s3", *people("later-1"))
    mesh.wait_equal()
    assert mesh.read("s3", dn("lost-1"))
    bench.verify()


def test_restored_and_rescued_in_time(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    mesh.backup("s3", "in-time")
    own = writes(mesh, "s3", *people("rescued-1", "rescued-2"))
    mesh.wait_equal()
    for feed in TO_S3:
        mesh.pause(*feed)
    mesh.restore("s3", "in-time")
    bench = Bench(mesh, tmp_path).collect()
    mesh.stop("s3")
    planned = bench.plan()
    assert chosen(planned) == ["rescue"], (planned["courses"], planned["before"])
    started = time.monotonic()
    bench.apply()
    assert time.monotonic() - started < 30
    assert mesh.vector("s3")["3"] >= own[-1]
    assert mesh.read("s3", dn("rescued-2"))
    bench.verify()


def test_a_disabled_agreement_is_switched_on(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    for feed in TO_S3:
        mesh.pause(*feed)
    writes(mesh, "s1", *people("off-1"))
    mesh.wait_equal(["s1", "s2"])
    bench = Bench(mesh, tmp_path)
    assert chosen(bench.mend()) == ["enable"]
    assert mesh.read("s3", dn("off-1"))
    bench.verify()


def test_an_agreement_that_waits_is_woken(tree: Mesh, tmp_path: Path) -> None:
    """A consumer is put back to an older state, and its supplier has no reason to open a session."""
    for attempt in range(5):
        tree.wait_equal()
        tree.backup("c2", f"waits-{attempt}")
        made = writes(tree, "s1", *people(f"waits-{attempt}"))
        tree.wait_equal()
        bench = Bench(tree, tmp_path / str(attempt)).collect()
        bench.before = [bench.latest]
        tree.restore("c2", f"waits-{attempt}")
        planned = bench.collect().plan()
        # A supplier that happens to write to its keep-alive entry wakes the agreement by itself.
        if chosen(planned) == ["wake"] and bench.apply(code=None).exit_code == 0:
            break
    else:
        raise AssertionError("the supplier never waited")
    assert tree.vector("c2")["1"] >= made[0]
    assert tree.read("c2", dn(f"waits-{attempt}"))
    bench.verify()


def test_what_a_consumer_behind_a_hub_missed_is_written_on_a_supplier(tree: Mesh, tmp_path: Path) -> None:
    writes(tree, "s1", *people("hub-1"))
    tree.wait_equal()
    with behind(tree, [("h1", "c1")]):
        lost = writes(tree, "s1", modify("hub-1", "unseen"))
        tree.wait_equal(["s1", "h1"])
        tree.edit_vector("c1", "1", lost[-1])
    writes(tree, "s1", *people("hub-after"))
    tree.wait_equal()
    bench = Bench(tree, tmp_path)
    assert chosen(bench.mend()) == ["rewrite"]
    assert tree.read("c1", dn("hub-1"))["description"] == ["unseen"]
    bench.verify()


def test_a_purged_anchor_is_served_by_who_still_has_it(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.wait_equal()
    for feed in TO_S3:
        mesh.pause(*feed)
    writes(mesh, "s1", *people("purged-1", "purged-2"))
    mesh.wait_equal(["s1", "s2"])
    mesh.lose_changelog("s1")
    mesh.wait_equal(["s1", "s2"])
    mesh.write("s2", f"dn: cn=s2-to-s3,{REPLICA}\nchangetype: delete\n")
    mesh.resume("s1", "s3")
    try:
        bench = Bench(mesh, tmp_path)
        planned = bench.collect().plan()
        monkeypatch.setenv(REPLICATION_PASSWORD, "another one")
        stopped = bench.apply("--accept-progress", code=4)
        assert "s3 refuses cn=replication manager,cn=config with the password that was given" in stopped.output
        monkeypatch.setenv(REPLICATION_PASSWORD, MANAGER_PASSWORD)
        bench.apply("--accept-progress", verb="resume")
        assert chosen(planned) == ["temporary-agreement"]
        assert "import-changelog" in refused(planned)
        assert "ignore-missing" in refused(planned)
        assert MANAGER_PASSWORD not in (bench.case / "journal.jsonl").read_text() + json.dumps(planned)
    finally:
        mesh.agree("s2", "s3")
    assert mesh.read("s3", dn("purged-2"))
    bench.verify()


def test_a_dead_origin_is_cleaned(trio: Mesh, tmp_path: Path) -> None:
    trio.wait_equal()
    trio.stop("s2")  # a server that goes on without agreements may still end a session and send what nobody forwards
    for supplier in ("s1", "s3"):
        trio.write(supplier, f"dn: cn={trio.link(supplier, 's2')},{REPLICA}\nchangetype: delete\n")
    left = ["s1", "s3"]
    trio.wait_equal(left)
    bench = Bench(trio, tmp_path, left)
    assert "clean it only if that server is gone for good" in refused(bench.collect().plan(code=1))["clean"]
    planned = bench.mend("--for", "2", "--way", "clean")
    assert chosen(planned) == ["clean"]
    assert "clean-by-force" in refused(planned)
    assert all("2" not in trio.vector(name) for name in left)
    bench.verify()


def people_on(mesh: Mesh, name: str) -> dict[str, dict[str, list[str]]]:
    """All people of a server. Its vector tells nothing here: the server moves it by itself, half a minute after its start."""
    return {dn: entry for dn, entry in mesh.entries(name).items() if "ou=people" in dn}


def test_servers_under_each_others_names_are_refused(mesh: Mesh, tmp_path: Path) -> None:
    """The direction that is mistaken most easily: the good server under the name of the bad one."""
    mesh.wait_equal()
    mesh.pause("s1", "s3")
    try:
        bench = Bench(mesh, tmp_path).collect()
        assert chosen(bench.plan()) == ["enable"]
        swapped = [word.replace("s1=", "sX=").replace("s3=", "s1=").replace("sX=", "s3=") for word in bench.servers]
        before = {name: people_on(mesh, name) for name in mesh.roles}
        done = bench.run("apply", str(bench.case), *swapped, "--confirm", "s1", "--accept-progress")
        assert done.exit_code == 2
        assert "check which address belongs to which name" in done.output
        assert before == {name: people_on(mesh, name) for name in mesh.roles}
        assert mesh.read("s1", f"cn=s1-to-s3,{REPLICA}", ["nsds5ReplicaEnabled"])["nsds5ReplicaEnabled"] == ["off"]
    finally:
        mesh.resume("s1", "s3")


def test_a_repair_that_is_killed_half_way_is_resumed_and_ends_right(mesh: Mesh, tmp_path: Path) -> None:
    names = [f"killed-{number}" for number in range(6)]
    writes(mesh, "s1", *people(*names))
    mesh.wait_equal()
    hide(mesh, *(modify(name, "unseen") for name in names))
    bench = Bench(mesh, tmp_path)
    for _ in range(4):
        assert chosen(bench.collect().plan()) == ["rewrite"]
        killed = bench.killed_after(2)
        if killed:
            break
    steps_done = (bench.case / "journal.jsonl").read_text().count('"done"')
    assert 2 <= steps_done < len(names)
    done = bench.apply(verb="resume")
    assert "6 of 6 applied" in done.output
    journal = [json.loads(line) for line in (bench.case / "journal.jsonl").read_text().splitlines()]
    told = {what: sorted(row["step"] for row in journal if row["what"] == what) for what in ("done", "intent")}
    assert told["done"] == told["intent"]
    for name in names:
        assert mesh.read("s3", dn(name))["description"] == ["unseen"]
        assert len([csn for csn in rewritten(mesh, name) if csn.endswith("00010000")]) == 1
    bench.verify()


def rewritten(mesh: Mesh, name: str) -> list[str]:
    """The changes of the description of a person that are in the changelog of s1."""
    folder = mesh.folder / f"look-{time.monotonic_ns()}"
    assert mesh.collect(folder, names=["s1"]).exit_code == 0
    case = Case.create(mesh.folder / f"{folder.name}-case")
    case.load([folder])
    found = []
    for one in case.inputs:
        for part in case.parts("changes", one):
            for row in pq.read_table(part["path"], columns=["position", "target", "body"]).to_pylist():
                if row["target"] == dn(name) and "replace: description" in (row["body"] or ""):
                    found.append(row["position"])
    return sorted(found)[1:]  # the first one is the change that was hidden
