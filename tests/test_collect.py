"""`workbench collect`: the order, what becomes of silent servers, what does not leave the servers - and real ones."""

from __future__ import annotations

import base64
import gzip
import io
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from case_samples import SNAPSHOTS
from leaks import leaks
from live_installed import ROOT_DN
from live_mesh import asked

from workbench.cli import collect as cli_collect
from workbench.cli.collect import _moment
from workbench.intake.collection import Access, Gathered, Survey, Wanted, collect
from workbench.intake.disk_room import Limits
from workbench.intake.inputs import look_into, named_in
from workbench.model import REMOVED, Piece, Problem, Source
from workbench.repair.server_access import PASSWORD
from workbench.safety import strict_yaml
from workbench.systems import systems
from workbench.systems.ds389.formats.changelog import read_exactly
from workbench.systems.ds389.live import instances, scrubbed, servers
from workbench.systems.ds389.live.connection import Place, place_of, starts_tls
from workbench.systems.ds389.live.feeding import Feeder, why_quiet
from workbench.systems.ds389.live.logs import copy_log, log_files

# The order and the folder, without a server


@dataclass
class Acted:
    """Servers that exist in this test only. `events` is what happened to them, in order."""

    ranks: Mapping[str, int]
    silent: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    later: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return list(self.ranks)

    def survey(self, name: str) -> Survey:
        if name in self.silent:
            raise Problem(self.silent[name], f"ldap://{name}")
        return Survey(servers.ROLES[self.ranks[name]], self.ranks[name], {})

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        self.events.append(f"read {name}")
        (folder / f"{prefix}.replica.ldif").write_text("dn: cn=replica\n\n")
        if name in self.broken:
            raise Problem(self.broken[name])
        return Gathered({f"{prefix}.replica.ldif": None})

    def left_behind(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        (folder / f"{prefix}.errors.log").write_text("it ended\n")
        return Gathered({f"{prefix}.errors.log": None})

    def vectors(self, name: str) -> Mapping[str, Mapping[str, str]]:
        self.events.append(f"vector {name}")
        if name in self.stopped:
            raise Problem(self.stopped[name], f"ldap://{name}")
        later = self.later.get(name, {}) if self.events.count(f"vector {name}") > 1 else {}
        return {"dc=x": {"1": "a", "2": "b", **later}}

    def close(self) -> None:
        self.events.append("closed")


def test_consumers_are_read_before_those_that_feed_them_and_all_vectors_once_more(tmp_path: Path) -> None:
    acted = Acted({"s2": 2, "h1": 1, "s1": 2, "c1": 0})
    told: list[str] = []
    readings = collect(acted, "any", tmp_path / "now", Wanted(), told.append)
    order = ["c1", "h1", "s1", "s2"]
    assert [reading.server for reading in readings] == order
    each = [event for name in order for event in (f"vector {name}", f"read {name}")]
    assert acted.events == [*each, *(f"vector {name}" for name in order)]
    assert told == ["c1 (consumer)", "h1 (hub)", "s1 (supplier)", "s2 (supplier)"]
    about = strict_yaml((tmp_path / "now" / "case.yaml").read_text(), "case.yaml")
    assert [one["server"] for one in about["collected"]] == order
    assert all(one["from"] <= one["until"] for one in about["collected"])
    assert stat.S_IMODE((tmp_path / "now").stat().st_mode) == 0o700


def test_a_server_that_stops_before_its_turn_is_down_and_its_logs_are_read(tmp_path: Path) -> None:
    acted = Acted({"s1": 2, "s2": 2}, stopped={"s1": "no connection"})
    s1, s2 = collect(acted, "any", tmp_path / "now", Wanted())
    assert (s1.server, s1.role, s1.down, s2.whole) == ("s1", "supplier", "no connection (ldap://s1)", True)
    assert set(s1.gathered.files) == {"s1.DOWN", "s1.errors.log"}
    assert acted.events == ["vector s1", "vector s2", "read s2", "vector s2"]


def test_what_moved_while_the_servers_were_read_is_told(tmp_path: Path) -> None:
    acted = Acted({"s1": 2, "c1": 0}, later={"c1": {"2": "c", "3": "d"}})
    moved = {reading.server: reading.moved for reading in collect(acted, "any", tmp_path / "now", Wanted())}
    assert moved == {"c1": {"dc=x": {"2": "c", "3": "d"}}, "s1": {}}
    about = strict_yaml((tmp_path / "now" / "case.yaml").read_text(), "case.yaml")
    assert {one["server"]: one.get("moved_to") for one in about["collected"]} == {"c1": moved["c1"], "s1": None}


def test_a_silent_server_is_down_with_its_reason_and_the_others_are_read(tmp_path: Path) -> None:
    acted = Acted({"s1": 2, "s2": 2, "s3": 2}, silent={"s1": "no connection"}, broken={"s2": "it broke\noff"})
    s3, s2, s1 = sorted(collect(acted, "any", tmp_path / "now", Wanted()), key=lambda r: r.server, reverse=True)
    assert (tmp_path / "now" / "s1.DOWN").read_text() == "no connection (ldap://s1)\n"
    assert (s1.down, s1.whole) == ("no connection (ldap://s1)", False)
    assert set(s1.gathered.files) == {"s1.DOWN", "s1.errors.log"}
    assert (s2.down, s2.whole, set(s2.gathered.files)) == ("", False, {"s2.replica.ldif"})
    assert s3.whole
    named = named_in(look_into(tmp_path / "now"))
    assert {file: one.server for file, one in named.items()} == {
        "s1.DOWN": "s1",
        "s1.errors.log": "s1",
        "s2.replica.ldif": "s2",
        "s3.replica.ldif": "s3",
    }


def test_if_no_server_answers_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"s1: off.*s2: also off.*nothing was written"):
        collect(Acted({"s1": 2, "s2": 0}, {"s1": "off", "s2": "also off"}), "any", tmp_path / "now", Wanted())
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_collection_leaves_nothing(tmp_path: Path) -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(Acted({"s1": 2}), "any", tmp_path / "now", Wanted(), stop)
    assert list(tmp_path.iterdir()) == []


class Stuck(Acted):
    """Something that was begun on a server cannot be put back at the end."""

    def close(self) -> None:
        raise Problem("not everything could be put back: the task cn=x still runs", "ldap://s1", "wait for it")


def test_what_could_not_be_put_back_hides_neither_what_was_collected_nor_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = next(one for one in systems() if one.servers)
    acted = Stuck({"s1": 2, "c1": 0})
    monkeypatch.setattr(cli_collect, "_system", lambda addresses: (system, lambda *about: acted))
    done = asked("--url", "s1=ldap://127.0.0.1:1", "--into", tmp_path / "all")
    assert done.exit_code == 2 and "collected: " in done.output and "the task cn=x still runs" in done.output
    assert (tmp_path / "all" / "case.yaml").exists()
    acted.silent = {"s1": "no answer", "c1": "no answer"}
    done = asked("--url", "s1=ldap://127.0.0.1:1", "--into", tmp_path / "none")
    assert done.exit_code == 2 and "no server could be read" in done.output and "still runs" in done.output


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, there: str) -> None:
    into = tmp_path / "now"
    if there == "folder":
        into.mkdir()
        (into / "s1.changelog.ldif").write_text("evidence")
    elif there == "file":
        into.write_text("evidence")
    else:
        into.symlink_to(tmp_path / "nothing")
    acted = Acted({"s1": 2})
    with pytest.raises(Problem, match="this is there already"):
        collect(acted, "any", into, Wanted())
    assert acted.events == [], "no server was asked"


def test_an_empty_folder_is_taken_and_one_that_filled_meanwhile_is_not(tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    collect(Acted({"s1": 2}), "any", tmp_path / "now", Wanted())
    assert (tmp_path / "now" / "case.yaml").exists()
    with pytest.raises(Problem, match="this is there already"):
        collect(Acted({"s1": 2}), "any", tmp_path / "b", Wanted(), lambda _: (tmp_path / "b").mkdir() or fill(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "now"]
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["other"]


def fill(folder: Path) -> None:
    (folder / "b" / "other").write_text("")


def test_names_become_file_names_and_no_two_are_alike(tmp_path: Path) -> None:
    names = ["ldap.example.com", "LDAP-example-com", "../up", "-", "ldap.example.com:636"]
    collect(Acted(dict.fromkeys(names, 2)), "any", tmp_path / "now", Wanted())
    files = named_in(look_into(tmp_path / "now"))
    assert sorted(one.server or "" for one in files.values()) == sorted(names)
    assert len({file.lower() for file in files}) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["now"]


# What an instance folder says

DSE = """\
dn:
objectClass: top

dn: cn=config
cn: config
nsslapd-port: 3890
nsslapd-securePort: 6360
nsslapd-security: on
nsslapd-rootpw: {PBKDF2-SHA512}10000$canary
nsslapd-ldapilisten: on
nsslapd-ldapifilepath: /run/slapd-first one.socket
nsslapd-ldifdir: /var/lib/dirsrv/slapd-first/ld
 if
nsslapd-accesslog: /var/log/dirsrv/slapd-first/access
nsslapd-errorlog: relative/errors

dn: cn=plugins,cn=config
nsslapd-port: 1
"""


def configured(folder: Path, name: str, text: str) -> None:
    (folder / f"slapd-{name}").mkdir()
    (folder / f"slapd-{name}" / "dse.ldif").write_text(text)


def test_an_instance_is_what_its_folder_says(tmp_path: Path) -> None:
    configured(tmp_path, "first", DSE)
    configured(tmp_path, "other", DSE.replace("listen: on", "listen: off").replace("security: on", "security: off"))
    configured(tmp_path, "gone.removed", DSE)
    (tmp_path / "slapd-empty").mkdir()
    assert list(instances.instances(tmp_path)) == ["first", "other"]
    first = instances.instance_named("slapd-first", tmp_path)
    assert first == instances.instance_named("first", tmp_path)
    assert (first.port, first.secure_port, first.url) == (3890, 6360, "ldapi://%2Frun%2Fslapd-first%20one.socket")
    assert first.exports == Path("/var/lib/dirsrv/slapd-first/ldif")
    assert first.access_log == Path("/var/log/dirsrv/slapd-first/access")
    assert first.errors_log is None, "a path that depends on where the server stood is no path"
    assert "canary" not in repr(first)
    other = instances.instance_named("other", tmp_path)
    assert (other.secure_port, other.url) == (None, "ldap://localhost:3890")


def test_a_server_that_writes_its_configuration_anew_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on 2.3.1: it moves dse.ldif away before the new one takes its place."""
    configured(tmp_path, "first", DSE)
    file = tmp_path / "slapd-first" / "dse.ldif"
    file.rename(aside := file.with_name("dse.ldif.bak"))
    waited: list[float] = []

    def goes_on(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            aside.rename(file)

    monkeypatch.setattr(instances.time, "sleep", goes_on)
    assert instances.instance_named("first", tmp_path).port == 3890
    assert len(waited) == 3


def test_an_instance_that_is_not_there_or_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="there is none there: name the folder with --instances-folder"):
        instances.instance_named("first", tmp_path)
    configured(tmp_path, "first", "dn: cn=other\ncn: other\n\n")
    with pytest.raises(Problem, match="did you mean first"):
        instances.instance_named("frist", tmp_path)
    with pytest.raises(Problem, match="has no cn=config"):
        instances.instance_named("first", tmp_path)
    (tmp_path / "slapd-first" / "dse.ldif").unlink()
    (tmp_path / "slapd-first" / "dse.ldif").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Problem, match="cannot be read: No such file"):
        instances.instance_named("first", tmp_path)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("ldap://ldap1", Place("ldap://ldap1:389", "ldap1", 389)),
        ("LDAPS://Ldap1/", Place("ldaps://Ldap1:636", "Ldap1", 636, True)),
        ("ldap://[::1]:3890", Place("ldap://[::1]:3890", "::1", 3890)),
        ("ldapi://%2Frun%2Fslapd-a.socket", Place("ldapi://%2Frun%2Fslapd-a.socket", socket="/run/slapd-a.socket")),
    ],
)
def test_a_url_says_where_a_server_listens(url: str, place: Place) -> None:
    assert place_of(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ldap1:389",
        "http://ldap1",
        "ldap://",
        "ldap://a:0",
        "ldap://a:70000",
        "ldap://u@a",
        "ldap://a/dc=x",
        "ldapi://x",
    ],
)
def test_what_is_no_url_is_a_problem(url: str) -> None:
    with pytest.raises(Problem, match="not the URL of a server"):
        place_of(url)


@pytest.mark.parametrize(
    ("url", "asked_for", "starts"),
    [
        ("ldap://10.0.0.1", None, True),
        ("ldap://ldap1", None, True),
        ("ldap://ldap1", False, False),
        ("ldap://localhost", None, False),
        ("ldap://127.0.0.2", None, False),
        ("ldap://[::1]", None, False),
        ("ldap://[::1]", True, True),
        ("ldaps://ldap1", True, False),  # it is TLS from its first byte
        ("ldapi://%2Fx", True, False),
    ],
)
def test_a_password_is_encrypted_unless_it_stays_on_this_machine(
    url: str, asked_for: bool | None, starts: bool
) -> None:
    assert starts_tls(place_of(url), Access(tls=asked_for)) is starts


# Behind whom replication is not logged


def feeder(name: str, role: str, feeds: str = "", holds: str = "1 2", own: str = "") -> Feeder:
    to = tuple((one, 389) for one in feeds.split())
    return Feeder(name, role, frozenset([(name, 389)]), to, frozenset(own.split()), frozenset(holds.split()))


S1, S2 = feeder("s1", "supplier", "s2 h1 c2", own="1"), feeder("s2", "supplier", "s1", own="2")
H1, C1, C2 = feeder("h1", "hub", "c1"), feeder("c1", "consumer"), feeder("c2", "consumer")


@pytest.mark.parametrize(
    ("server", "others", "why"),
    [
        (S1, [S2, H1, C1, C2], ""),
        (H1, [S1, S2, C1, C2], ""),  # suppliers feed it
        (C2, [S1, S2, H1, C1], ""),
        (C1, [S1, S2, H1, C2], "it is fed by the hub h1"),
        (H1, [S1, S2, feeder("h2", "hub", "h1"), C1, C2], "it is fed by the hub h2"),
        (S2, [S1, feeder("h1", "hub", "s2"), C2], "it is fed by the hub h1"),
        (C2, [S1, S2, H1], "the hub h1 feeds c1:389, which may be this one"),
        (S2, [S1, H1, C2], "the hub h1 feeds c1:389, which may be this one"),
        (C2, [S1, S2, Feeder("h1")], "it may be fed by a hub: h1 did not answer"),
        (C2, [S1, S2, C1], "it may be fed by a hub: s1 feeds h1:389, which is not among these servers"),
        (C1, [], "it may be fed by a hub: the supplier with the replica ID 1 is not among these servers"),
        (S1, [S2], ""),
        (S1, [Feeder("s2")], ""),  # a mesh of which one is down still tells
    ],
)
def test_replication_is_not_logged_where_a_hub_may_feed(server: Feeder, others: list[Feeder], why: str) -> None:
    said = why_quiet(server, {one.name: one for one in [server, *others]})
    assert said.startswith(why)
    assert bool(said) == bool(why)
    assert said.endswith("crashes when replication is logged") or not why


# What does not leave the servers

HASH = "{PBKDF2-SHA512}10000$Ej0zWpCnQ1Zx7Rl$k3JQ2m9cVb8sT6yHnWq4"


def change(number: int, body: bytes) -> bytes:
    packed = base64.b64encode(body)
    head = b"changetype: modify\nreplgen: 6b00592d000000010000\ncsn: 6b005c14%04x00010000\nnsuniqueid: a-b-c-%d\n"
    lines = [b"dn: uid=a%d,dc=x" % number, b"change:: " + packed[:69]]
    folded = [packed[at : at + 77] for at in range(69, len(packed), 77)]
    return head % (number, number) + b"\n ".join([b"\n".join(lines), *folded]) + b"\n\n"


def test_the_changelog_comes_without_secrets_and_is_read_as_before() -> None:
    secret = base64.b64encode(HASH.encode())
    bodies = [
        b"replace: mail\nmail: a@example.com\n-\n",
        b"replace: userPassword\nuserPassword:: "
        + secret[:40]
        + b"\n "
        + secret[40:]
        + b"\n-\nreplace: sn\nsn: b\n-\n",
        b"add: description\ndescription: see " + HASH.encode() + b"\n-\n",
        b"add: unhashed#user#password\nunhashed#user#password: canary\n-\nadd: jpegPhoto\njpegPhoto:: /9j/4AAQ\n-\n",
        b"replace: cn\ncn: \xff\xfe\n-\nreplace: userPassword\nuserPassword: canary\n-\n",
    ]
    data = b"\nclpurgeruv: {replica 1 ldap://a:1}\n\n" + b"".join(map(change, range(len(bodies)), bodies))
    clean = b"".join(scrubbed.changelog(io.BytesIO(data)))
    assert not leaks(clean, [HASH, "canary"])
    assert leaks(data, [HASH, "canary"]), "the search finds nothing at all"
    assert clean.startswith(data[: data.index(b"dn: uid=a1")]), "what holds no secret stays as it was, byte for byte"
    assert max(map(len, clean.splitlines())) <= 78
    source = Source("s1.changelog.ldif", "", "s1", None)
    before, after = (read_exactly(Piece(source, one, 0, True)) for one in (data, clean))
    rows = [one.tables["changes"].drop_columns(["offset"]).to_pylist() for one in (before, after)]
    assert rows[0] == rows[1]
    assert REMOVED in rows[1][1]["body"]


def test_a_captured_changelog_is_not_changed_beyond_its_secrets() -> None:
    file = next(SNAPSHOTS[0].glob("s1.changelog.ldif*"))
    data = gzip.decompress(file.read_bytes())
    clean = b"".join(scrubbed.changelog(io.BytesIO(data)))
    source = Source(file.name, "", "s1", None)
    before, after = (read_exactly(Piece(source, one, 0, True)) for one in (data, clean))
    assert (after.rows, after.rejects, after.facts) == (before.rows, before.rejects, before.facts)
    rows = [one.tables["changes"].drop_columns(["offset"]).to_pylist() for one in (before, after)]
    assert rows[0] == rows[1]


def test_a_change_that_cannot_be_looked_into_is_not_kept() -> None:
    record = b"changetype: modify\ncsn: 6b005c14000000010000\nnsuniqueid: a-b\ndn: dc=x\nchange:: Y2FuYXJ5=Y2FuYXJ5\n\n"
    clean = b"".join(scrubbed.changelog(io.BytesIO(record)))
    assert b"Y2FuYXJ5" not in clean
    assert b"csn: 6b005c14000000010000" in clean


def test_blocks_are_whole_whatever_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"dn: dc=x\ndc: x\n\n\ndn: cn=a\nuserPassword: canary\nsn: a\n\r\ndn: cn=b\n"
    whole = b"".join(scrubbed.entries(io.BytesIO(data)))
    assert whole == data.replace(b"canary", REMOVED.encode())
    for size in range(1, len(data)):
        monkeypatch.setattr(scrubbed, "_CHUNK", size)
        assert b"".join(scrubbed.entries(io.BytesIO(data))) == whole, size


def test_a_log_ends_with_its_last_whole_line_and_loses_only_its_secrets(tmp_path: Path) -> None:
    log = tmp_path / "errors"
    lines = ["[01/Jan] - INFO - a\n", " continued\n", f"[01/Jan] - ERR - userPassword: {HASH}\n", " continued\n"]
    log.write_text("".join([*lines, "[01/Jan] - INFO - not fin"]))
    copy_log(log, tmp_path / "copy", Limits(0))
    lines[2] = f"[01/Jan] - ERR - userPassword: {REMOVED}\n"
    assert (tmp_path / "copy").read_text() == "".join(lines)
    (tmp_path / "packed.gz").write_bytes(gzip.compress("".join(lines).encode()))
    copy_log(tmp_path / "packed.gz", tmp_path / "unpacked", Limits(0))
    assert (tmp_path / "unpacked").read_text() == "".join(lines)
    (tmp_path / "cut.gz").write_bytes(gzip.compress("".join(lines).encode())[:-12])
    with pytest.raises(Problem, match="the log cannot be read"):
        copy_log(tmp_path / "cut.gz", tmp_path / "cut", Limits(0))


def test_rotated_logs_are_taken_unless_they_ended_too_early(tmp_path: Path) -> None:
    names = [
        "access",
        "access.20261101-000000",
        "access.20261120-000000.gz",
        "access.rotationinfo",
        "access.bak",
        "audit",
    ]
    for number, name in enumerate(names):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (number * 86400, number * 86400))
    now = tmp_path / "access"
    assert [name for _, name in log_files(now, None)] == ["", "20261101-000000", "20261120-000000"]
    since = datetime(1970, 1, 2, 12, tzinfo=UTC)
    assert [path.name for path, _ in log_files(now, since)] == ["access", "access.20261120-000000.gz"]


# The command line, without a server


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the servers"),
        (["--instance", "no-such-instance"], "no instance is named no-such-instance"),
        (["--url", "ldap1"], "not the URL of a server"),
        (["--url", "ldap://localhost:1", "--password-file", __file__], "needs --bind-dn"),
        (["--url", "ldap://localhost:1", "--bind-dn", ROOT_DN], f"or {PASSWORD} in the environment"),
        (["--url", "ldap://localhost:1"], "give --bind-dn"),
        (["--url", "a=ldap://localhost:1", "--url", "a=ldap://localhost:2"], "two servers are named a"),
        (["--url", "ldap://localhost:1", "--since", "yesterday"], "write 90m, 24h, 7d"),
    ],
)
def test_wrong_arguments_are_told_before_any_server_is_asked(tmp_path: Path, words: list[str], says: str) -> None:
    done = asked(*words, "--into", tmp_path / "now")
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_empty_and_comes_from_the_first_line_of_its_file(tmp_path: Path) -> None:
    where = ("--url", "ldap://localhost:1", "--bind-dn", ROOT_DN, "--into", tmp_path / "now")
    assert "the password is empty" in asked(*where, **{PASSWORD: ""}).output
    (tmp_path / "password").write_text("\nsecond line\n")
    assert "the password is empty" in asked(*where, "--password-file", tmp_path / "password").output
    refused = asked(*where, **{PASSWORD: "x"})
    assert (refused.exit_code, "Connection refused" in refused.output) == (2, True)


@contextmanager
def listening() -> Iterator[int]:
    """A port where somebody takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        yield deaf.getsockname()[1]


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_a_server_that_says_nothing_costs_one_time_out(tmp_path: Path, scheme: str) -> None:
    with listening() as port:
        began = time.monotonic()
        done = asked(
            *(
                "--url",
                f"{scheme}://127.0.0.1:{port}",
                "--bind-dn",
                ROOT_DN,
                "--timeout",
                1,
                "--into",
                tmp_path / "now",
            ),
            **{PASSWORD: "x"},
        )
    assert time.monotonic() - began < 10
    assert (done.exit_code, "no answer within the time-out" in done.output) == (2, True), done.output


def test_a_moment_is_a_span_or_a_time() -> None:
    assert _moment("2026-01-31T12:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert 89 * 60 < (datetime.now(UTC) - _moment("90m")).total_seconds() < 91 * 60
