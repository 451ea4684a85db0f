"""The diagnosis of real servers: each fault is made, collected, and has to be named; what was lost is known beforehand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from live_faults import TO_S3, behind, dn, modify, people, writes
from live_mesh import REPLICA, Mesh, until

from workbench import Case, diagnose

pytestmark = pytest.mark.live

Found = dict[str, Any]


class Look:
    """Collects a mesh under a label and diagnoses that snapshot alone, or with those of earlier labels before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, mesh: Mesh, label: str, *options: str, after: tuple[str, ...] = (), **which: Any) -> Found:
        done = mesh.collect(self.folder / label, *options, **which)
        assert done.exit_code in (0, 3), done.output
        return self.again(label, after)

    def again(self, label: str, after: tuple[str, ...] = ()) -> Found:
        """What was collected under the label, diagnosed once more."""
        case = Case.create(self.folder / "-".join(("case", *after, label)))
        case.load([self.folder / one for one in (*after, label)])
        return diagnose(case)


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Look(tmp_path)


def missing(found: Found) -> dict[tuple[str, str], list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for row in found["missing"]:
        # A server updates its own keep-alive entry some time after each start: such a change can be lost with the others.
        if not (row["target"] or "").startswith("cn=repl keep alive"):
            rows.setdefault((row["server"], row["origin"]), []).append(row["position"])
    return rows


def pending(found: Found) -> dict[tuple[str, str], tuple[int, int, str, str]]:
    return {
        (row["server"], row["origin"]): (row["count"], row["available"], row["first"], row["last"])
        for row in found["pending"]
    }


def wait_for(found: Found, made: dict[tuple[str, str], list[str]]) -> None:
    """Just these changes are pending, and a supplier still has them all.

    One more of each origin may be: a server updates its keep-alive entry half a minute after each of its starts.
    """
    rows = pending(found)
    for key, changes in made.items():
        count, available, first, last = rows.pop(key)
        assert count == available
        assert count - len(changes) in (0, 1)
        assert first <= changes[0] <= changes[-1] <= last
    assert all(count == 1 for count, *_ in rows.values())


def codes(found: Found, *severities: str) -> set[tuple[str, str]]:
    """(code, server or link) of the findings of these severities, by default of warnings and errors."""
    return {
        (one["code"], one["link"] or one["server"] or one["origin"])
        for one in found["findings"]
        if one["severity"] in (severities or ("warning", "error"))
    }


def causes(found: Found) -> set[str | None]:
    return {row["cause"] for row in found["missing"]}


def assert_healthy(found: Found) -> None:
    assert (found["missing"], found["stranded"], found["pending"]) == ([], [], [])
    assert codes(found) == set()


# --- three suppliers


def test_servers_in_step_are_healthy(mesh: Mesh, look: Look) -> None:
    for name in mesh.suppliers:
        writes(mesh, name, *people(*(f"{name}-{number}" for number in range(5))))
    mesh.wait_equal()
    for name in mesh.suppliers:
        writes(
            mesh,
            name,
            modify(f"{name}-0", "new"),
            f"dn: {dn(f'{name}-1')}\nchangetype: modrdn\nnewrdn: uid={name}-moved\ndeleteoldrdn: 1\n",
            f"dn: {dn(f'{name}-2')}\nchangetype: delete\n",
        )
    mesh.wait_equal()
    found = look(mesh, "now", "--entries")
    assert_healthy(found)
    assert {one["decision"] for one in found["pairs"]} == {"nothing_to_send"}


def test_what_waits_behind_disabled_links_is_counted(mesh: Mesh, look: Look) -> None:
    mesh.wait_equal()
    with behind(mesh, TO_S3):
        one = writes(mesh, "s1", *people("lag-1", "lag-2", "lag-3"), modify("lag-1", "late"))
        two = writes(mesh, "s2", *people("lag-4", "lag-5"))
        mesh.wait_equal(["s1", "s2"])
        found = look(mesh, "now")
    assert codes(found) == {("LINK_DISABLED", "s1-to-s3"), ("LINK_DISABLED", "s2-to-s3")}
    wait_for(found, {("s3", "1"): one, ("s3", "2"): two})
    assert [row["suppliers"] for row in found["pending"]] == [[], []]
    assert (found["missing"], found["stranded"]) == ([], [])
    mesh.wait_equal()
    assert_healthy(look(mesh, "later", after=("now",)))


def test_changes_hidden_behind_equal_vectors_are_found(mesh: Mesh, look: Look) -> None:
    mesh.wait_equal()
    before = look(mesh, "before")
    assert_healthy(before)
    with behind(mesh, TO_S3):
        lost = writes(mesh, "s1", *people("hidden-1", "hidden-2"), modify("hidden-1", "unseen"))
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
    mesh.initialise("s1", "s3")
    writes(mesh, "s1", *people("after-the-initialisation"))
    mesh.wait_equal()
    assert mesh.read("s3", dn("hidden-1"))
    for one in (look(mesh, "repaired"), look.again("repaired", after=("before", "now"))):
        assert (one["missing"], one["stranded"], one["pending"]) == ([], [], [])
        assert codes(one, "error") == set()


def test_a_supplier_restored_from_its_backup_and_what_its_next_change_hides(mesh: Mesh, look: Look) -> None:
    mesh.wait_equal()
    mesh.backup("s3", "own")
    own = writes(mesh, "s3", *people("own-1", "own-2", "own-3"))
    mesh.wait_equal()
    look(mesh, "before")
    with behind(mesh, TO_S3):
        mesh.restore("s3", "own")
        rolled = look(mesh, "rolled")
        for one in (rolled, look.again("rolled", after=("before",))):
            assert ("ROLLED_BACK", "s3") in codes(one, "error")
            ((key, (count, available, _, last)),) = pending(one).items()
            assert (key, count, last) == (("s3", "3"), available, own[-1])
            assert count - len(own) in (0, 1)  # its keep-alive update may have come between the backup and these
            assert missing(one) == {}
        new = writes(mesh, "s3", *people("own-after"))
        assert new[0] > own[-1]
        hidden = look(mesh, "hidden")
    for one in (hidden, look.again("hidden", after=("before", "rolled"))):
        assert missing(one) == {("s3", "3"): own}
        assert causes(one) == {"OWN_CHANGES_HIDDEN"}
        assert {("OWN_CHANGES_HIDDEN", "s3"), ("MISSED_CHANGE", "s3")} <= codes(one, "error")
        assert [(row["server"], row["position"]) for row in one["stranded"]] == [("s3", new[0])]
        assert "ROLLED_BACK" not in {one["code"] for one in one["findings"]}
    mesh.initialise("s1", "s3")
    writes(mesh, "s1", *people("after-the-restore"))
    writes(mesh, "s3", *people("and-here"))
    mesh.wait_equal()
    # What s3 wrote after the restore went with its data, as STRANDED_CHANGE warned: the vectors of the others cover it now.
    for one in (look(mesh, "repaired"), look.again("repaired", after=("before", "rolled", "hidden"))):
        assert missing(one) == {("s1", "3"): new, ("s2", "3"): new}
        assert {tuple(row["held_by"]) for row in one["missing"] if row["position"] in new} == {()}
        assert (one["stranded"], one["pending"]) == ([], [])


# --- a hub and read-only consumers


def test_read_only_consumers_miss_changes_behind_a_supplier_and_behind_a_hub(tree: Mesh, look: Look) -> None:
    tree.wait_equal()
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
        assert causes(one) == {"CHANGELOG_RECREATED"}
        assert codes(one, "error") == {("MISSED_CHANGE", "c1"), ("MISSED_CHANGE", "c2")}
    # A change of an entry that they lack is refused: it waits as long as it is the newest, then it is passed over.
    refused = writes(tree, "s1", modify("hidden-2", "refused"))
    until("refused", lambda: _refused(tree, "c1", refused[0]) and _refused(tree, "c2", refused[0]))
    found = look(tree, "newest")
    assert missing(found) == expected
    assert {key: row[:3] for key, row in pending(found).items()} == {
        (name, "1"): (1, 1, refused[0]) for name in ("c1", "c2")
    }
    writes(tree, "s1", *people("passing"))
    tree.wait_equal()
    found = look(tree, "passed")
    for one in (found, look.again("passed", after=("before", "newest"))):
        assert missing(one) == {key: [*lost, *refused] for key in expected}
        assert {row["cause"] for row in one["missing"] if row["position"] == refused[0]} == {"APPLY_SKIPPED"}
        assert {"c1", "c2"} == {server for code, server in codes(one, "error") if code == "APPLY_SKIPPED"}
        assert pending(one) == {}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda feed: tree.initialise(*feed), [("s1", "c2"), ("h1", "c1")]))
    writes(tree, "s1", *people("after-the-initialisation"))
    tree.wait_equal()
    assert tree.read("c1", dn("hidden-2"))
    for one in (look(tree, "repaired", "--entries"), look.again("repaired", after=("before", "passed"))):
        assert (one["missing"], one["stranded"], one["pending"]) == ([], [], [])
        assert codes(one, "error") == set()


def _refused(mesh: Mesh, server: str, csn: str) -> bool:
    return any(
        "err=32" in line and f"csn={csn}" in line
        for line in (mesh.logs(server) / "access").read_text(errors="replace").splitlines()
    )


def test_behind_a_stopped_hub_changes_wait_and_nothing_is_lost(tree: Mesh, look: Look) -> None:
    tree.wait_equal()
    with tree.stopped("h1"):
        made = writes(tree, "s1", *people("past-the-hub-1", "past-the-hub-2"))
        tree.wait_equal(["s1", "s2", "c2"])
        found = look(tree, "stopped")
    assert missing(found) == {}
    wait_for(found, {("c1", "1"): made})
    tree.wait_equal()
    found = look(tree, "started", after=("stopped",))
    assert (found["missing"], found["pending"], codes(found, "error")) == ([], [], set())


def test_an_origin_without_a_server_is_dead(tree: Mesh, look: Look) -> None:
    tree.wait_equal()
    feeds = [("s1", "s2"), ("s2", "s1")]
    for supplier, consumer in feeds:
        tree.write(supplier, f"dn: cn={tree.link(supplier, consumer)},{REPLICA}\nchangetype: delete\n")
    try:
        found = look(tree, "now", names=["s1", "h1", "c1", "c2"])
    finally:
        for supplier, consumer in feeds:
            tree.agree(supplier, consumer)
    assert codes(found) == {("DEAD_ORIGIN", "2")}
    assert (found["missing"], found["pending"]) == ([], [])
    writes(tree, "s2", *people("alive-again"))
    tree.wait_equal()
    assert_healthy(look(tree, "again"))
