"""The diagnosis of real servers: what they are in is collected and has to be named, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_bench import Look, assert_healthy, assert_nothing_lost, codes, missing, wait_for
from live_faults import TO_S3, behind, dn, modify, people, writes
from live_installed import REPLICA
from live_mesh import Mesh

pytestmark = pytest.mark.live


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Look(tmp_path)


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


# --- a hub and read-only consumers


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
    assert_nothing_lost(found)
    assert codes(found, "error") == set()


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
    assert_nothing_lost(found)
    writes(tree, "s2", *people("alive-again"))
    tree.wait_equal()
    assert_healthy(look(tree, "again"))
