"""Whether what waits behind a link that fails is still in its supplier's changelog when the link is mended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from detector_samples import findings, of, with_status
from link_samples import REFUSED_LOGIN
from link_samples import told as session_told
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench import diagnose
from workbench.intake.collection import Access, Address, Wanted
from workbench.model import Problem
from workbench.safety import to_yaml
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.live.connection import Connection
from workbench.systems.ds389.live.database import settings_of
from workbench.systems.ds389.live.servers import DirectoryServers
from workbench.systems.ds389.rules.trim_settings import TrimSettings, spelt_out, trim_settings

MAPPING = f"dn: cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config\ncn: {SUFFIX}\nnsslapd-backend: userRoot\n\n"
PLACE = "cn=ldbm database,cn=plugins,cn=config"


def changelog_of(backend: str = "userroot", *lines: str) -> str:
    return "\n".join([f"dn: cn=changelog,cn={backend},{PLACE}", "cn: changelog", *lines]) + "\n\n"


WEEK = changelog_of("userroot", "nsslapd-changelogmaxage: 7d")


@pytest.mark.parametrize(
    ("written", "settings"),
    [
        ({"max_age": "7d"}, TrimSettings(timedelta(days=7), None)),
        ({"max_age": "10W", "max_entries": "500"}, TrimSettings(timedelta(weeks=10), 500)),
        ({"max_age": "90"}, TrimSettings(timedelta(seconds=90), None)),
        ({"max_age": "0", "max_entries": "-1"}, TrimSettings(None, None)),
        ({"max_age": None, "whole": "yes"}, TrimSettings(None, None)),
        ({"max_age": None}, None),
        ({"max_age": "soon"}, None),
        ({"max_entries": "many"}, None),
    ],
)
def test_what_the_settings_say(written: dict[str, str | None], settings: TrimSettings | None) -> None:
    assert trim_settings(written) == settings


def test_spans_in_words() -> None:
    assert [spelt_out(timedelta(seconds=n)) for n in (604_800, 129_600, 3600, 61)] == [
        "7 days",
        "36 hours",
        "1 hour",
        "61 seconds",
    ]


def mesh(
    settings: str = MAPPING + WEEK, *, session: bool = True, remembered: Any = (), ruv: str = ""
) -> dict[str, Any]:
    """s2 waits for five changes of s1, whose login it refuses. `ruv`: another replica entry of s2."""
    entry = agreement("to-s2", 38902, remembered=elements(remembered) if remembered else ())
    files: dict[str, Any] = dict(pair_of_servers())
    files["s1.agreements.ldif"] = with_status(entry, session_told(REFUSED_LOGIN, ended=4 if session else None))
    files["s1.replica.ldif"] += settings
    if ruv:
        files["s2.replica.ldif"] = ruv
        del files["s2.changelog.ldif"]
    return files


NOT_TRIMMED = "the changelog of s1 is not trimmed, so what waits stays there"
LIMIT = "the changelog of s1 has a limit of 7 days (nsslapd-changelogmaxage)"
SAFE = "s1 keeps what waits beyond its limit of 7 days (nsslapd-changelogmaxage), as long as this agreement exists"
OPEN = f"{LIMIT}: what waits may be trimmed from 2024-03-31 10:27:17 UTC on, unless the agreement remembers what its consumer had"


@pytest.mark.parametrize(
    ("about", "files", "says"),
    [
        ("a session ran: the consumer is remembered", mesh(), SAFE),
        ("it is remembered from before its start", mesh(session=False, remembered=claims(r1=(0, 4), r2=(1, 2))), SAFE),
        ("nothing tells that it is remembered", mesh(session=False), OPEN),
        ("the entry alone, of a server with one suffix", mesh(WEEK), SAFE),
        ("of up to 1.4", mesh("dn: cn=changelog5,cn=config\ncn: changelog5\nnsslapd-changelogmaxage: 7d\n\n"), SAFE),
        ("no limit", mesh(MAPPING + changelog_of("userroot", "objectClass: extensibleObject")), NOT_TRIMMED),
        ("an interval", mesh(MAPPING + changelog_of("userroot", "nsslapd-changelogtrim-interval: 300")), NOT_TRIMMED),
        ("limits of 0", mesh(MAPPING + changelog_of("userroot", "nsslapd-changelogmaxage: 0")), NOT_TRIMMED),
        (
            "a number",
            mesh(MAPPING + changelog_of("userroot", "nsslapd-changelogmaxentries: 5000"), session=False),
            "s1 has a limit of 5,000 changes (nsslapd-changelogmaxentries): what waits may be trimmed as soon as "
            "there are more, unless the agreement remembers what its consumer had",
        ),
    ],
)
def test_whether_the_changelog_keeps_what_waits(about: str, files: dict[str, Any], says: str, tmp_path: Path) -> None:
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert one["summary"].endswith(says), about


@pytest.mark.parametrize(
    ("about", "settings"),
    [
        ("not collected", ""),
        ("of another suffix", MAPPING + changelog_of("other", "nsslapd-changelogmaxage: 7d")),
        ("without limits, which may be hidden", MAPPING + changelog_of()),
        ("written in another way", MAPPING + changelog_of("userroot", "nsslapd-changelogmaxage: long")),
    ],
)
def test_what_is_not_known_is_not_guessed(about: str, settings: str, tmp_path: Path) -> None:
    (one,) = of("LINK_FAILING", findings(tmp_path, mesh(settings)))
    assert "trimmed" not in one["summary"] and "nsslapd" not in one["summary"], about


def test_an_origin_of_which_the_consumer_has_nothing_is_not_spared(tmp_path: Path) -> None:
    files = mesh()
    files["s2.replica.ldif"] = files["s2.replica.ldif"].replace("{replica 1 ", "{replica 7 ")
    files["s2.changelog.ldif"] = "\n\n".join(
        block for block in files["s2.changelog.ldif"].split("\n\n") if "00010000" not in block.partition("\nns")[0]
    )
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert (
        f"{LIMIT}: what waits of origin 1 may be trimmed from 2024-03-31 10:27:12 UTC on, for trimming may not spare "
        in one["summary"]
    )


def test_of_a_consumer_that_was_not_collected(tmp_path: Path) -> None:
    files = {name: text for name, text in mesh().items() if name.startswith("s1.")} | {"s2.DOWN": ""}
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert one["summary"].endswith(
        f"{LIMIT}, and may keep what its consumer lacks for longer, as long as this agreement exists"
    )


class _Asked:
    """A server that answers searches, but for one below a base that ends the connection."""

    def __init__(self, fails: str) -> None:
        self.fails = fails

    def search(self, base: str, *how: Any, **more: Any) -> list[Entry]:
        if base.startswith(self.fails):
            raise Problem("no answer within the time-out", "ldap://s1", "look at the server")
        if base.startswith("cn=mapping"):
            return [Entry(0, [("dn", b"cn=x"), ("cn", SUFFIX.encode()), ("nsslapd-backend", b"userRoot")])]
        return [Entry(0, [("dn", base.encode()), ("cn", b"changelog")])]


@pytest.mark.parametrize(
    ("fails", "read"),
    [("nothing", 6), ("cn=config", 5), ("cn=Multi", 3), ("cn=changelog5", 2), ("cn=changelog,", 1), ("cn=mapping", 0)],
)
def test_settings_that_could_not_be_read_are_said_to_be_lacking(fails: str, read: int) -> None:
    found, problem = settings_of(cast("Connection", _Asked(fails)), {SUFFIX})
    assert len(found) == read and (problem is None) == (fails == "nothing")
    assert problem is None or "no answer within the time-out" in str(problem)


def test_the_collection_names_them(tmp_path: Path) -> None:
    mesh_of = DirectoryServers([Address("s1", url="ldap://127.0.0.1:1")], Access())
    mesh_of._servers["s1"].settings_unread = Problem("no answer within the time-out", "ldap://s1", "look at the server")
    gathered = mesh_of.gather("s1", tmp_path, "s1", Wanted())
    mesh_of.close()
    assert any("settings of changelog and replication: no answer within" in one for one in gathered.without)


@pytest.mark.parametrize(
    ("limits", "days", "missing"),
    [
        ("nsslapd-changelogmaxentries: 3", 0, 0),
        ("nsslapd-changelogmaxage: 7d", 0, 1),
        ("nsslapd-changelogmaxage: 7d", 8, 0),  # it was read so many days later
    ],
)
def test_marks_of_a_log_that_may_be_trimmed_prove_nothing(limits: str, days: int, missing: int, tmp_path: Path) -> None:
    """The log of s2 was made anew at second 4, and shows the change of second 5 no more: it was never there, or trimmed.

    The origin 7 made its last change 30 days before: that its mark is old says nothing of the others.
    """
    vector = elements(claims(r1=(0, 9), r2=(1, 2)))
    made = [*(csn(second, 1) for second in range(10)), csn(1, 2), csn(2, 2)]
    begun = f"{datetime(2024, 3, 24, 10, 28, tzinfo=UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%S+00:00}"
    servers = [{"name": name, "files": [f"{name}.*"]} for name in ("s1", "s2")]
    read = [{"server": one["name"], "role": "supplier", "from": begun, "until": begun} for one in servers]
    marks = [csn(4, 1), csn(2, 2), csn(-30 * 86_400, 7)]
    files = {
        "s1.replica.ldif": replica(1, vector),
        "s1.changelog.ldif": changelog(made),
        "s2.replica.ldif": replica(2, vector) + MAPPING + changelog_of("userroot", limits),
        "s2.changelog.ldif": changelog([csn(second, 1) for second in (6, 7, 8, 9)], marks=marks),
        "case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": read}),
    }
    found = diagnose(case_of(tmp_path, files))
    assert [row["position"] for row in found["missing"]] == [csn(5, 1)] * missing
