"""Repairs of real servers of the newer version (3.1, LMDB): what `test_repair_live` does, on a mesh and a tree of that one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import need
from live_installed import absent, current
from live_mesh import Mesh
from test_repair_live import (
    logs_of_this_test,
    test_a_repair_that_is_killed_half_way_is_resumed_and_ends_right,
    test_hidden_additions_are_deleted_and_added_under_traffic_through_a_kill,
    test_hidden_modifications_are_written_again,
    test_restored_and_written_since,
    test_what_a_consumer_behind_a_hub_missed_is_written_on_a_supplier,
    test_what_feeds_others_is_initialised_and_not_mended_by_a_deletion,
)

__all__ = [
    "logs_of_this_test",
    "test_a_repair_that_is_killed_half_way_is_resumed_and_ends_right",
    "test_hidden_additions_are_deleted_and_added_under_traffic_through_a_kill",
    "test_hidden_modifications_are_written_again",
    "test_restored_and_written_since",
    "test_what_a_consumer_behind_a_hub_missed_is_written_on_a_supplier",
    "test_what_feeds_others_is_initialised_and_not_mended_by_a_deletion",
]

pytestmark = pytest.mark.live


def built(
    factory: pytest.TempPathFactory, name: str, roles: dict[str, str], feeds: list[tuple[str, str]]
) -> Iterator[Mesh]:
    need(f"389 Directory Server and root (there is no {absent()})", not absent())
    at = current()
    need("Debian 13's Directory Server in a folder of its own (.ci/current-ds389 builds it)", at)
    assert at is not None
    mesh = Mesh(factory.mktemp(name), roles, feeds, at=at)
    try:
        mesh.build()
        assert "/3." in mesh.read("s1", "", ["vendorVersion"])["vendorVersion"][0]
        yield mesh
    finally:
        mesh.remove()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Three suppliers, each feeding the two others."""
    roles = dict.fromkeys(("s1", "s2", "s3"), "supplier")
    feeds = [(supplier, consumer) for supplier in roles for consumer in roles if supplier != consumer]
    yield from built(tmp_path_factory, "nmesh", roles, feeds)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Two suppliers; s1 feeds the consumer c2 and the hub h1, which feeds the consumer c1."""
    roles = {"s1": "supplier", "s2": "supplier", "h1": "hub", "c1": "consumer", "c2": "consumer"}
    feeds = [("s1", "s2"), ("s2", "s1"), ("s1", "h1"), ("s1", "c2"), ("h1", "c1")]
    yield from built(tmp_path_factory, "ntree", roles, feeds)
