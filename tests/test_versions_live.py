"""Real servers of the other installations: 3.1 with LMDB, whose access log is JSON from some moment on, and 2.3 with LMDB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import need
from live_installed import LMDB, Installed, absent, current
from live_mesh import Mesh, person

from workbench.cli import main
from workbench.intake.files import inspect_file

pytestmark = pytest.mark.live

ROLES = {"s1": "supplier", "s2": "supplier", "c1": "consumer"}
FEEDS = [("s1", "s2"), ("s2", "s1"), ("s1", "c1"), ("s2", "c1")]


def built(folder: Path, roles: dict[str, str], feeds: list[tuple[str, str]], at: Installed) -> Iterator[Mesh]:
    """A mesh, and its end."""
    mesh = Mesh(folder, roles, feeds, at=at)
    try:
        mesh.build()
        yield mesh
    finally:
        mesh.remove()


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Two suppliers and a consumer of the newer installation."""
    need(f"389 Directory Server and root (there is no {absent()})", not absent())
    at = current()
    need("Debian 13's Directory Server in a folder of its own (.ci/current-ds389 builds it)", at)
    assert at is not None
    yield from built(tmp_path_factory.mktemp("newer"), ROLES, FEEDS, at)


def diagnosed(folder: Path, tmp_path: Path) -> tuple[int, dict[str, Any]]:
    """The exit code of `workbench diagnose`, and what it found."""
    out = tmp_path / "found.json"
    done = CliRunner().invoke(main, ["diagnose", str(folder), "--json", str(out)])
    assert out.exists(), done.output
    return done.exit_code, json.loads(out.read_text())


def write_some(mesh: Mesh, label: str) -> None:
    """Entries that each supplier adds, changes and removes again."""
    for name in mesh.suppliers:
        for number in range(6):
            mesh.write(name, person(f"{label}-{name}-{number}"))
        dn = f"uid={label}-{name}-0,ou=people,dc=example,dc=com"
        mesh.modify(name, dn, "description", "changed")
        mesh.write(name, f"dn: uid={label}-{name}-1,ou=people,dc=example,dc=com\nchangetype: delete\n")


def test_a_healthy_mesh_of_the_newer_version_misses_nothing(newer: Mesh, tmp_path: Path) -> None:
    assert "/3." in newer.read("s1", "", ["vendorVersion"])["vendorVersion"][0]
    write_some(newer, "text")
    folder, _, _ = newer.collect_at_rest(tmp_path)
    code, found = diagnosed(folder, tmp_path)
    assert (found["missing"], found["pending"], found["unknown"], found["rejects"]) == ([], [], [], [])
    assert {one["severity"] for one in found["findings"]} <= {"info"}
    assert code == 0


def test_an_access_log_that_changes_its_form_in_the_middle_is_read_whole(newer: Mesh, tmp_path: Path) -> None:
    write_some(newer, "before")
    for name in newer.roles:
        newer.modify_config(name, "nsslapd-accesslog-log-format", "json")
    write_some(newer, "json")
    newer.wait_equal()
    newer.modify_config("c1", "nsslapd-accesslog-log-format", "default")
    write_some(newer, "after")
    newer.wait_equal()
    folder, _, _ = newer.collect_at_rest(tmp_path)
    for name in newer.roles:
        log = inspect_file(folder / f"{name}.access.log")
        assert (log["format"], log["rejected"]) == ("ds389.access-log", 0)
    code, found = diagnosed(folder, tmp_path)
    assert (found["missing"], found["rejects"]) == ([], [])
    assert {one["severity"] for one in found["findings"]} <= {"info"}
    # Debian's 3.1.2 writes no line of the JSON form, and nothing else instead. Suppliers have changelogs; of what the consumer
    # got while its log was silent nothing tells, and nothing may be said.
    assert {row["server"] for row in found["unknown"]} <= {"c1"}
    assert code == (3 if found["unknown"] else 0)


def test_servers_of_this_machine_can_keep_their_data_in_lmdb(tmp_path_factory: pytest.TempPathFactory) -> None:
    need(f"389 Directory Server and root (there is no {absent()})", not absent())
    # A consumer: 2.3.1 with LMDB crashes at times when it is initialised while a link of its own runs.
    roles = {"s1": "supplier", "c1": "consumer"}
    for mesh in built(tmp_path_factory.mktemp("lmdb"), roles, [("s1", "c1")], LMDB):
        where = "cn=config,cn=ldbm database,cn=plugins,cn=config"
        assert mesh.read("s1", where, ["nsslapd-backend-implement"])["nsslapd-backend-implement"] == ["mdb"]
        mesh.write("s1", person("of-lmdb"))
        mesh.wait_equal()
        assert mesh.entries("s1") == mesh.entries("c1")
