"""Whole incidents on real servers: a fault is made, looked at as it grows, repaired, and looked at again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_bench import (
    Bench,
    Look,
    assert_healthy,
    assert_nothing_lost,
    causes,
    chosen,
    codes,
    missing,
    pending,
    refused,
    stranded,
    wait_for,
)
from live_faults import TO_S3, behind, dn, modify, people, writes
from live_installed import until
from live_mesh import Mesh

pytestmark = pytest.mark.live


def test_changes_hidden_behind_equal_vectors_are_found_and_initialised(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    look, bench = Look(tmp_path), Bench(mesh, tmp_path / "bench")
    assert_healthy(look(mesh, "before"))
    with behind(mesh, TO_S3):
        lost = writes(mesh, "s1", *people("hidden-1", "hidden-2"), modify("hidden-1", "unseen"))
        mesh.wait_equal(["s1", "s2"])
        mesh.edit_vector("s3", "1", lost[-1])
    writes(mesh, "s1", *people("shown"))
    mesh.wait_equal()
    assert mesh.read("s3", dn("shown"))
    assert not mesh.read("s3", dn("hidden-1"))
    found = look(mesh, "now", "--entries")
    for one in (found, look.again("now", after=("before",))):
        assert missing(one) == {("s3", "1"): lost}
        assert causes(one) == {"CHANGELOG_RECREATED"}
        assert {tuple(row["held_by"]) for row in one["missing"]} == {("s1", "s2")}
        assert pending(one) == {}
        assert codes(one, "error") == {("MISSED_CHANGE", "s3")}
    assert missing(look(mesh, "without-entries")) == {("s3", "1"): lost}

    planned = bench.mend()
    assert chosen(planned) == ["initialise-from-s1"]
    assert {"modify-missing", "add-on-consumer", "initialise-from-s3-backwards"} <= refused(planned).keys()
    assert sum(row["count"] for row in planned["promise"] if row["server"] == "s3") >= len(lost)
    assert mesh.read("s3", dn("hidden-1"))["description"] == ["unseen"]
    bench.verify()

    writes(mesh, "s1", *people("after-the-initialisation"))
    mesh.wait_equal()
    for one in (look(mesh, "repaired"), look.again("repaired", after=("before", "now"))):
        assert_nothing_lost(one)
        assert codes(one, "error") == set()


def test_a_supplier_restored_from_its_backup_and_what_its_next_change_hides(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    look = Look(tmp_path)
    mesh.backup("s3", "own")
    own = writes(mesh, "s3", *people("own-1", "own-2", "own-3"))
    mesh.wait_equal()
    look(mesh, "before")
    with behind(mesh, TO_S3):
        mesh.restore("s3", "own")
        rolled = look(mesh, "rolled")
        for one in (rolled, look.again("rolled", after=("before",))):
            assert ("ROLLED_BACK", "s3") in codes(one, "error")
            wait_for(one, {("s3", "3"): own})
            assert missing(one) == {}
        new = writes(mesh, "s3", *people("own-after"))
        assert new[0] > own[-1]
        hidden = look(mesh, "hidden")
    for one in (hidden, look.again("hidden", after=("before", "rolled"))):
        assert missing(one) == {("s3", "3"): own}
        assert causes(one) == {"OWN_CHANGES_HIDDEN"}
        assert {("OWN_CHANGES_HIDDEN", "s3"), ("MISSED_CHANGE", "s3")} <= codes(one, "error")
        assert stranded(one) == {"s3": new}
        assert "ROLLED_BACK" not in {one["code"] for one in one["findings"]}
    mesh.initialise("s1", "s3")
    writes(mesh, "s1", *people("after-the-restore"))
    writes(mesh, "s3", *people("and-here"))
    mesh.wait_equal()
    # What s3 wrote after the restore went with its data, as STRANDED_CHANGE warned: the vectors of the others cover it now.
    for one in (look(mesh, "repaired"), look.again("repaired", after=("before", "rolled", "hidden"))):
        assert missing(one) == {("s1", "3"): new, ("s2", "3"): new}
        assert {tuple(row["held_by"]) for row in one["missing"] if row["position"] in new} == {()}
        assert stranded(one) == {}
        wait_for(one, {})


def test_read_only_consumers_miss_changes_behind_a_supplier_and_behind_a_hub(tree: Mesh, tmp_path: Path) -> None:
    tree.wait_equal()
    look, bench = Look(tmp_path), Bench(tree, tmp_path / "bench")
    assert_healthy(look(tree, "before", "--entries"))
    with behind(tree, [("s1", "c2"), ("h1", "c1")]):
        lost = writes(tree, "s1", *people("hidden-1", "hidden-2"), modify("hidden-1", "unseen"))
        tree.wait_equal(["s1", "h1"])
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: tree.edit_vector(name, "1", lost[-1]), ("c1", "c2")))
    writes(tree, "s1", *people("shown"))
    tree.wait_equal()
    for name in ("c1", "c2"):
        assert tree.read(name, dn("shown"))
        assert not tree.read(name, dn("hidden-1"))
    expected = {("c1", "1"): lost, ("c2", "1"): lost}
    found = look(tree, "logs")
    for one in (found, look.again("logs", after=("before",)), look(tree, "entries", "--entries")):
        assert missing(one) == expected
        assert pending(one) == {}
        assert causes(one) == {None}
        assert codes(one, "error") == {("MISSED_CHANGE", "c1"), ("MISSED_CHANGE", "c2")}

    # A change of an entry that they lack is refused: it waits as long as it is the newest, then it is passed over.
    skipped = writes(tree, "s1", modify("hidden-2", "refused"))
    until("refused", lambda: _refused(tree, "c1", skipped[0]) and _refused(tree, "c2", skipped[0]))
    found = look(tree, "newest")
    assert missing(found) == expected
    assert {key: row[:3] for key, row in pending(found).items()} == {
        (name, "1"): (1, 1, skipped[0]) for name in ("c1", "c2")
    }
    writes(tree, "s1", *people("passing"))
    tree.wait_equal()
    found = look(tree, "passed")
    for one in (found, look.again("passed", after=("before", "newest"))):
        assert missing(one) == {key: [*lost, *skipped] for key in expected}
        assert {row["cause"] for row in one["missing"] if row["position"] == skipped[0]} == {"APPLY_SKIPPED"}
        assert {"c1", "c2"} == {server for code, server in codes(one, "error") if code == "APPLY_SKIPPED"}
        assert pending(one) == {}

    # One by hand, the other by a plan.
    tree.initialise("s1", "c2")
    planned = bench.mend()
    assert chosen(planned) == ["initialise-from-h1"]
    assert "read-only" in refused(planned)["add-on-consumer"]
    assert tree.read("c1", dn("hidden-2"))
    bench.verify()

    writes(tree, "s1", *people("after-the-initialisation"))
    tree.wait_equal()
    for one in (look(tree, "repaired", "--entries"), look.again("repaired", after=("before", "passed"))):
        assert_nothing_lost(one)
        assert codes(one, "error") == set()


def _refused(mesh: Mesh, server: str, csn: str) -> bool:
    return any(
        "err=32" in line and f"csn={csn}" in line
        for line in (mesh.logs(server) / "access").read_text(errors="replace").splitlines()
    )
