"""`workbench collect` on real servers: what it collects is what they say, and what may not leave them stays there."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from leaks import leaks
from live_installed import MANAGER_PASSWORD, REPLICA, ROOT_DN, ROOT_PASSWORD, SUFFIX
from live_mesh import Mesh, asked, person

from workbench import Case, diagnose
from workbench.cli import main
from workbench.intake.collection import Access, Address, Wanted, collect
from workbench.intake.files import inspect_file
from workbench.model import REMOVED, Problem
from workbench.repair.server_access import PASSWORD
from workbench.safety import strict_yaml
from workbench.systems.ds389.live import reached, servers

pytestmark = pytest.mark.live


def collected(folder: Path) -> dict[str, dict[str, Any]]:
    """File name -> what `inspect` says of it."""
    return {path.name: inspect_file(path) for path in sorted(folder.iterdir())}


FORMATS = {
    "replica.ldif": "ds389.replica",
    "agreements.ldif": "ds389.agreements",
    "changelog.ldif": "ds389.changelog-ldif",
    "entries.ldif": "ds389.entries",
    "access.log": "ds389.access-log",
    "errors.log": "ds389.errors-log",
}


def test_a_mesh_is_collected_and_shows_what_its_servers_claim(mesh: Mesh, tmp_path: Path) -> None:
    for name in mesh.roles:
        mesh.write(name, person(f"from-{name}"))
    now, vectors, _ = mesh.collect_at_rest(tmp_path, "--entries")
    seen = collected(now)
    expected = {f"{name}.{ending}": kind for name in mesh.roles for ending, kind in FORMATS.items()}
    expected |= {"s1.certificates.pem": "ds389.certificates", "case.yaml": "text"}  # s1 alone encrypts
    assert {file: one["format"] for file, one in seen.items()} == expected
    assert [file for file, one in seen.items() if one["rejected"]] == []
    case = Case.create(tmp_path / "case")
    case.load([now])
    held = {(row["server"], row["origin"]): row for row in case.holdings()}
    for name, vector in vectors.items():
        assert {origin: held[name, origin]["claimed_max"] for origin in vector} == vector
        assert {origin: held[name, origin]["last"] for origin in vector} == vector
    found = diagnose(case)
    assert {(one["supplier"], one["consumer"], one["decision"]) for one in found["pairs"] if one["link"]} == {
        (supplier, consumer, "nothing_to_send") for supplier, consumer in mesh.feeds
    }


def test_a_change_made_meanwhile_is_told_as_movement(mesh: Mesh, tmp_path: Path) -> None:
    mesh.wait_equal()
    names = [Address(name, instance=mesh.instance(name)) for name in ("s1", "s2")]

    def write(line: str) -> None:
        if line.startswith("s2"):  # s1 has been read by then
            mesh.write("s1", person("meanwhile"))

    readings = collect(servers.reach(names, Access()), "ds389", tmp_path / "now", Wanted(), write)
    moved = {reading.server: reading.moved for reading in readings}
    assert moved["s1"][SUFFIX].keys() == {"1"}
    assert moved["s1"][SUFFIX]["1"] <= mesh.vector("s1")["1"]
    assert "meanwhile" not in (tmp_path / "now" / "s1.access.log").read_text()


def test_a_dead_server_is_down_and_leaves_its_logs(mesh: Mesh, tmp_path: Path) -> None:
    mesh.kill("s3")
    try:
        done = mesh.collect(tmp_path / "now", "--json", str(tmp_path / "told.json"))
    finally:
        mesh.start("s3")
    assert done.exit_code == 3, done.output
    assert "Connection refused" in (tmp_path / "now" / "s3.DOWN").read_text()
    assert {path.name for path in (tmp_path / "now").glob("s3.*")} == {"s3.DOWN", "s3.access.log", "s3.errors.log"}
    told = {one["name"]: one for one in json.loads((tmp_path / "told.json").read_text())["servers"]}
    assert [bool(told[name]["down"]) for name in ("s1", "s2", "s3")] == [False, False, True]
    shown = CliRunner().invoke(main, ["diagnose", str(tmp_path / "now"), "--threshold", "error", "--json", "-"])
    servers_seen = {one["supplier"] for one in json.loads(shown.stdout)["pairs"]}
    assert servers_seen == {"s1", "s2"}
    mesh.wait_equal()


def test_who_is_not_let_in_gets_a_sentence(mesh: Mesh, tmp_path: Path) -> None:
    where = ("--url", f"s1={mesh.url('s1')}", "--into", tmp_path / "now", "--bind-dn")
    wrong = asked(*where, ROOT_DN, **{PASSWORD: "wrong"})
    assert (wrong.exit_code, "wrong name or password" in wrong.output) == (2, True), wrong.output
    absent = asked(*where, f"uid=nobody,{SUFFIX}", **{PASSWORD: "wrong"})
    assert (absent.exit_code, "wrong name or password" in absent.output) == (2, True), absent.output
    mesh.write("s1", person("weak", "userPassword: weak-but-long\n"))
    blind = asked(*where, f"uid=weak,ou=people,{SUFFIX}", **{PASSWORD: "weak-but-long"})
    assert (blind.exit_code, "shows no replicated suffix" in blind.output) == (2, True), blind.output
    other = asked(*where, ROOT_DN, "--suffix", "dc=other", **{PASSWORD: ROOT_PASSWORD})
    assert (other.exit_code, f"it has {SUFFIX}" in other.output) == (2, True), other.output
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_is_checked(mesh: Mesh, tmp_path: Path) -> None:
    secure = f"s1=ldaps://localhost:{mesh.secure_ports['s1']}"
    start_tls = ("--tls", "--url", f"s1={mesh.url('s1')}")
    given = ("--bind-dn", ROOT_DN, "--into")
    trusted = ("--ca", mesh.configuration("s1") / "ca.crt")
    password = {PASSWORD: ROOT_PASSWORD}
    for number, words in enumerate([("--url", secure), start_tls]):
        refused = asked(*words, *given, tmp_path / f"no{number}", **password)
        assert (refused.exit_code, "certificate is not trusted" in refused.output) == (2, True), refused.output
        taken = asked(*words, *trusted, *given, tmp_path / f"yes{number}", **password)
        assert taken.exit_code == 0, taken.output
    by_address = ("--url", f"s1=ldaps://127.0.0.1:{mesh.secure_ports['s1']}")
    other = asked(*by_address, *trusted, *given, tmp_path / "other", **password)
    assert (other.exit_code, "that of another host" in other.output) == (2, True), other.output
    plain = asked("--url", f"s2={mesh.url('s2')}", "--tls", *given, tmp_path / "plain", **password)
    assert (plain.exit_code, "no TLS" in plain.output) == (2, True), plain.output


def test_a_remote_server_gives_its_vectors_and_says_what_it_does_not_give(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reached, "instances", lambda folder: {})  # as if the instance were on another machine
    into = tmp_path / "now"
    done = asked("--url", f"s2={mesh.url('s2')}", "--bind-dn", ROOT_DN, "--into", into, **{PASSWORD: ROOT_PASSWORD})
    assert done.exit_code == 0, done.output
    assert {path.name for path in into.iterdir()} == {"case.yaml", "s2.replica.ldif", "s2.agreements.ldif"}
    assert "s2 without changelog, access log and errors log: they are on its own machine" in done.output


def test_replication_is_logged_during_the_export_only(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mesh.setting("s2", "nsslapd-errorlog-level")
    assert not int(before) & 8192
    done = mesh.collect(tmp_path / "quiet", names=["s2"])
    assert done.exit_code == 0, done.output
    assert b"clmaxruv:" not in (tmp_path / "quiet" / "s2.changelog.ldif").read_bytes()
    done = mesh.collect(tmp_path / "now", "--replication-log", names=["s2"])
    assert done.exit_code == 0, done.output
    assert b"clmaxruv: {replica 2}" in (tmp_path / "now" / "s2.changelog.ldif").read_bytes()
    assert mesh.setting("s2", "nsslapd-errorlog-level") == before
    during: list[str] = []

    def fails(how: BaseException | int) -> None:
        def export(*_: object) -> None:
            during.append(mesh.setting("s2", "nsslapd-errorlog-level"))
            if isinstance(how, int):
                os.kill(os.getpid(), how)
                time.sleep(5)
            else:
                raise how

        monkeypatch.setattr(servers.Exporter, "changelog", export)

    ways = {"problem": (Problem("no room"), 3), "stop": (KeyboardInterrupt(), 130), "bug": (ValueError("bug"), 2)}
    for name, (how, code) in {**ways, "end": (signal.SIGTERM, 130)}.items():
        fails(how)
        done = mesh.collect(tmp_path / name, "--replication-log", names=["s2"])
        assert done.exit_code == code, done.output
        assert mesh.setting("s2", "nsslapd-errorlog-level") == before, name
    assert during == [str(int(before) | 8192)] * 4
    assert not list(tmp_path.glob(".*")), "what was not finished is gone"


def test_no_secret_leaves_the_servers(mesh: Mesh, tmp_path: Path) -> None:
    clear, later = "Canary-of-a-person-42", "Canary-of-a-person-43"
    dn = f"uid=canary,ou=people,{SUFFIX}"
    mesh.write("s1", person("canary", f"userPassword: {clear}\n"))
    hashes = mesh.read("s1", dn, ["userPassword"])["userPassword"]
    mesh.modify("s1", dn, "userPassword", later)
    hashes += mesh.read("s1", dn, ["userPassword"])["userPassword"]
    mesh.modify("s1", dn, "description", f"his old one was {hashes[0]}")
    link = mesh.read("s1", f"cn={mesh.link('s1', 's2')},{REPLICA}", ["nsDS5ReplicaCredentials"])
    kept = [*hashes, *link["nsDS5ReplicaCredentials"], clear, later, ROOT_PASSWORD, MANAGER_PASSWORD]
    assert len({*hashes}) == 2
    mesh.wait_equal()
    done = mesh.collect(tmp_path / "now", "--entries", "--replication-log")
    assert done.exit_code == 0, done.output
    files = list((tmp_path / "now").iterdir())
    assert {path.name: found for path in files if (found := leaks(path.read_bytes(), kept))} == {}
    for ending in ("changelog.ldif", "entries.ldif"):
        flat = (tmp_path / "now" / f"s2.{ending}").read_bytes()
        assert leaks(flat, [REMOVED, "canary"]), "that there was one stays"
    left = Path("/var/lib/dirsrv") / f"slapd-{mesh.instance('s1')}" / "ldif"
    assert list(left.iterdir()) == [], "the exports are gone"


def test_behind_a_hub_consumers_come_first_and_replication_is_not_logged(tree: Mesh, tmp_path: Path) -> None:
    tree.write("s1", person("down-the-tree"))
    now, vectors, done = tree.collect_at_rest(tmp_path, "--replication-log")
    about = strict_yaml((now / "case.yaml").read_text(), "case.yaml")
    order = [(one["server"], one["role"]) for one in about["collected"]]
    assert order == [("c1", "consumer"), ("c2", "consumer"), ("h1", "hub"), ("s1", "supplier"), ("s2", "supplier")]
    assert "c1 without replication log: it is fed by the hub h1" in done.output
    assert "c2 without" not in done.output
    seen = collected(now)
    assert [file for file, one in seen.items() if one["rejected"]] == []
    assert {file for file in seen if file.endswith("changelog.ldif")} == {
        f"{name}.changelog.ldif" for name in ("h1", "s1", "s2")
    }
    assert b"clmaxruv:" in (now / "h1.changelog.ldif").read_bytes()
    case = Case.create(tmp_path / "case")
    case.load([now])
    claimed: dict[str, dict[str, str]] = {}
    for row in case.holdings():
        claimed.setdefault(row["server"], {})[row["origin"]] = row["claimed_max"]
    assert claimed == vectors
    alone = tree.collect(tmp_path / "alone", "--replication-log", names=["h1"])
    assert "h1 without replication log: the hub" not in alone.output
    assert "h1 without replication log: it may be fed by a hub" in alone.output
    assert b"clmaxruv:" not in (tmp_path / "alone" / "h1.changelog.ldif").read_bytes()
    tree.write("s2", person("still-alive"))
    tree.wait_equal()
