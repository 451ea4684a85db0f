"""`server.toml`: who pulls from whom, as both ends are told, and what the diagnosis makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kanidm_samples import DAY, Entry, backup
from test_kanidm_diagnosis import BASE, RUV, codes, of, pair

from workbench import Case
from workbench.diagnosis.incident import Incident
from workbench.intake.files import inspect_file
from workbench.safety import strict_yaml
from workbench.views.overview import mesh_data

SECRET = "MIIBvjCCAWSgAwIBAgIBATAKBggqhkjOPQQDAjBM-canary"


def config(name: str, **partners: str) -> str:
    """The file of one server; partners by name: `pull`, `pull!` with automatic_refresh."""
    text = f"""
version = "2"
bindaddress = "[::]:443"
db_path = "/data/kanidm.db"
tls_key = "/data/key.pem"
domain = "idm.example.com"
origin = "https://idm.example.com"

[replication]
origin = "repl://{name}.example.com:8444"
bindaddress = "[::]:8444"
"""
    for partner, kind in partners.items():
        automatic = kind.endswith("!")
        kind = kind.rstrip("!")
        cert = {"pull": "supplier_cert", "allow-pull": "consumer_cert"}.get(kind, "partner_cert")
        text += f'\n[replication."repl://{partner}.example.com:8444"]\ntype = "{kind}"\n{cert} = "{SECRET}"\n'
        text += "automatic_refresh = true\n" if automatic else ""
    return text


def collected(folder: Path, configs: dict[str, str], **backups: dict[str, Any]) -> Path:
    folder.mkdir()
    for name, text in configs.items():
        (folder / f"{name}.server.toml").write_text(text)
    for name, one in (backups or {n: backup(n, 200, RUV, BASE) for n in configs}).items():
        (folder / f"{name}.json").write_text(json.dumps(one))
    return folder


def links(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["supplier"], one["consumer"]): one for one in found["links"]}


def test_a_file_is_told_by_what_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "anything.txt"
    path.write_text(config("a", b="mutual-pull", c="pull", d="allow-pull"))
    found = inspect_file(path)
    assert (found["format"], found["rows"], found["rejected"]) == ("kanidm.config", 1, 0)
    assert found["detail"] == {
        "pulls": ["repl://b.example.com:8444", "repl://c.example.com:8444"],
        "allows": ["repl://b.example.com:8444", "repl://d.example.com:8444"],
    }
    path.write_text('[tool.poetry]\nname = "x"\nversion = "1"\n')
    assert inspect_file(path)["format"] == "text"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[replication]\norigin = "repl://a:1"\nbroken', "broken TOML"),
        ("[replication]\norigin = 5\n", "repl://host:port"),
        ('[replication]\n[replication."http://b"]\ntype = "pull"\n', "repl://host:port"),
        ('[replication]\n[replication."repl://b:1"]\ntype = "push"\n', "without a known type"),
        ('domain = "x"\norigin = "y"\nreplication = 5\n', "no table"),
        ("[replication]\nx = " + "[" * 3000, "TOML"),
    ],
)
def test_what_cannot_be_read_is_set_aside_and_says_nothing_of_links(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.server.toml"
    path.write_text(text)
    found = inspect_file(path)
    assert (found["format"], found["rows"], found["accepted"]) == ("kanidm.config", 1, 0)
    assert reason in found["rejects"][0]["reason"]


def test_no_certificate_is_kept(tmp_path: Path) -> None:
    folder = collected(
        tmp_path / "in", {"a": config("a", b="mutual-pull"), "b": config("b", a="mutual-pull") + "\nbroken " + SECRET}
    )
    case = Case.create(tmp_path / "case")
    case.load([folder])
    kept = [path.read_bytes() for path in (tmp_path / "case").rglob("*") if path.is_file()]
    assert kept and not any(b"canary" in one or b"key.pem" in one for one in kept)


def test_both_ends_of_a_link_are_known(tmp_path: Path) -> None:
    folder = collected(
        tmp_path / "in",
        {
            "a": config("a", b="mutual-pull", c="allow-pull"),
            "b": config("b", a="mutual-pull!"),
            "c": config("c", a="pull"),
        },
    )
    found = of(folder, case=tmp_path / "case")
    told = links(found)
    assert told.keys() == {("a", "b"), ("b", "a"), ("a", "c")}
    assert {one["enabled"] for one in told.values()} == {True} and found["not_collected"] == []
    assert [told[ends]["automatic"] for ends in (("a", "b"), ("b", "a"))] == [True, False]
    assert (told["a", "c"]["name"], told["a", "c"]["address"]) == ("repl://c.example.com:8444", "a.example.com:8444")
    assert (pair(found, "a", "c")["link"], pair(found, "a", "c")["would_contact"]) == (
        "repl://c.example.com:8444",
        True,
    )
    assert (pair(found, "c", "a")["link"], pair(found, "c", "a")["would_contact"]) == (None, None)
    assert found["findings"] == []
    about = strict_yaml((tmp_path / "case" / "case.yaml").read_text(), "case.yaml")
    assert {(one["supplier"], one["consumer"], one["address"]) for one in about["links"]} == {
        ("a", "b", "a.example.com:8444"),
        ("b", "a", "b.example.com:8444"),
        ("a", "c", "a.example.com:8444"),
    }
    drawn = mesh_data(Incident(Case.open(tmp_path / "case")))
    assert {(one["supplier"], one["consumer"]) for one in drawn["links"]} == set(told)


def test_a_pull_that_its_supplier_does_not_allow_does_not_run(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", {"a": config("a", b="pull"), "b": config("b", a="mutual-pull")})
    found = of(folder, case=tmp_path / "case")
    told = links(found)
    assert told.keys() == {("a", "b"), ("b", "a")}
    assert (told["a", "b"]["enabled"], told["b", "a"]["enabled"]) == (False, True)
    (one,) = (one for one in found["findings"] if one["code"] == "LINK_DISABLED")
    assert one["server"] == "a" and "its supplier does not let the consumer ask" in one["summary"]
    assert one["evidence"][0]["file"] == "b.server.toml" and "allow it" in one["fix"][0]["repair"]
    assert (pair(found, "a", "b")["link_enabled"], pair(found, "a", "b")["would_contact"]) == (False, False)


def test_what_is_allowed_and_not_asked_for_is_no_link(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", {"a": config("a", b="allow-pull"), "b": config("b", a="allow-pull")})
    assert of(folder, case=tmp_path / "case")["links"] == []


def test_what_was_not_collected_is_named(tmp_path: Path) -> None:
    """Of a supplier only the address is known, of a consumer nobody knows whether it asks."""
    folder = collected(tmp_path / "in", {"a": config("a", x="pull", y="allow-pull")})
    found = of(folder, case=tmp_path / "case")
    told = {(one["supplier"], one["consumer"], one["address"], one["enabled"]) for one in found["links"]}
    assert told == {
        ("x.example.com:8444", "a", "x.example.com:8444", True),
        ("a", None, "y.example.com:8444", None),
    }
    assert {(one["server"], one["why"]) for one in found["not_collected"]} == {
        ("x.example.com:8444", "not_collected"),
        ("y.example.com:8444", "not_collected"),
    }


def test_an_address_that_its_server_does_not_know_is_told_by_who_lets_ask(tmp_path: Path) -> None:
    asking = config("b", a="pull").replace("repl://a.example.com:8444", "repl://10.0.0.1:9")
    folder = collected(tmp_path / "in", {"a": config("a", b="allow-pull"), "b": asking})
    found = of(folder, case=tmp_path / "case")
    assert [(one["supplier"], one["consumer"], one["address"]) for one in found["links"]] == [("a", "b", "10.0.0.1:9")]


def lagging(tmp_path: Path, kind: str, verified: str = "") -> dict[str, Any]:
    now = 20 * DAY
    kept = [(now - 7 * DAY + 60, "a"), (now, "a"), (now - 7 * DAY + 60, "b"), (now, "b")]
    folder = collected(
        tmp_path / "in",
        {
            "a": config("a", b="mutual-pull", c="mutual-pull"),
            "b": config("b", a="mutual-pull"),
            "c": config("c", a=kind),
        },
        a=backup("a", now, kept, BASE),
        b=backup("b", now, kept, BASE),
        c=backup(
            "c", 100, [(0, "a"), (0, "b"), (0, "c"), (90, "c")], {**BASE, 9: Entry((0, "a"), {"mail": (90, "c")})}
        ),
    )
    if verified:
        (folder / "a.verify.txt").write_text(verified)
        (folder / "b.verify.txt").write_text(verified)
    return of(folder, case=tmp_path / "case")


def test_data_that_a_verification_finds_broken_are_mended_before_others_take_them(tmp_path: Path) -> None:
    found = lagging(tmp_path, "mutual-pull", "Err(RefintNotUpheld(17))\nErr(RefintNotUpheld(18))\n")
    (one,) = (one for one in found["findings"] if one["code"] == "REFRESH_REQUIRED")
    assert "a verification tells 2 errors" in one["fix"][0]["caution"]


def test_a_consumer_that_refreshes_by_itself_need_only_pull(tmp_path: Path) -> None:
    found = lagging(tmp_path, "mutual-pull!")
    (one,) = (one for one in found["findings"] if one["code"] == "REFRESH_REQUIRED")
    first, then = (step["repair"] for step in one["fix"])
    assert first.startswith("stop c now") and "it takes all data of a by itself" in then, "c has a change alone"
    # b pulls from a alone, so its log is not green about c.
    assert {server for code, server in codes(found) if code == "STALLED_BUT_GREEN"} == {"a"}
    (green,) = (one for one in found["findings"] if one["code"] == "STALLED_BUT_GREEN")
    assert green["link"] == "repl://a.example.com:8444"


def test_a_consumer_that_does_not_has_to_be_refreshed(tmp_path: Path) -> None:
    (one,) = (one for one in lagging(tmp_path, "mutual-pull")["findings"] if one["code"] == "REFRESH_REQUIRED")
    assert "refresh c from" in one["fix"][0]["repair"]


def test_a_file_called_server_is_of_the_server_that_the_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / "ldap-one"
    folder.mkdir()
    (folder / "server.toml").write_text(config("a", b="pull"))
    (folder / "kanidm.json").write_text(json.dumps(backup("a", 200, RUV, BASE)))
    found = of(folder, case=tmp_path / "case")
    assert [(one["supplier"], one["consumer"]) for one in found["links"]] == [("b.example.com:8444", "ldap-one")]


def test_a_refreshed_server_leaves_a_dead_origin_that_needs_no_cleaning(tmp_path: Path) -> None:
    folder = collected(
        tmp_path / "in",
        {"a": config("a", b="mutual-pull"), "b": config("b", a="mutual-pull")},
        a=backup("a", 200, RUV, BASE),
        b=backup("b", 200, RUV, BASE),
    )
    (one,) = of(folder, case=tmp_path / "case")["findings"]
    assert (one["code"], one["severity"]) == ("DEAD_ORIGIN", "info")
    assert "forget" in one["fix"][0]["repair"] and "log" not in one["summary"]


@pytest.mark.parametrize(("partners", "stranded"), [({"a": "pull"}, 1), ({"a": "pull", "d": "mutual-pull"}, 0)])
def test_what_nobody_pulls_is_stranded(partners: dict[str, str], stranded: int, tmp_path: Path) -> None:
    """Of a partner that was not collected nobody knows whether it pulls."""
    own = {**BASE, 4: Entry((0, "a"), {"mail": (150, "c")})}
    whole, late = backup("a", 200, RUV, BASE), backup("c", 200, [*RUV, (150, "c")], own)
    configs = {"a": config("a", c="allow-pull"), "c": config("c", **partners)}
    folder = collected(tmp_path / "in", configs, a=whole, c=late)
    found = of(folder, case=tmp_path / "case")
    assert [row["server"] for row in found["stranded"]] == ["c"] * stranded
    assert ("STRANDED_CHANGE" in {code for code, _ in codes(found)}) == bool(stranded)


def test_a_server_of_another_domain_that_deletes_its_data_by_itself_is_told_of(tmp_path: Path) -> None:
    """By `automatic_refresh` it takes the data of its suppliers at its next pull: what it alone shows is named before."""
    other = "11111111-2222-4333-8444-555555555555"
    mine = {**BASE, 30: Entry((150, "c"), {"mail": (150, "c")})}
    backups = {name: backup(name, 200, RUV, BASE) for name in "ab"} | {
        "c": backup("c", 200, [*RUV, (150, "c")], mine, domain=other)
    }
    for sign in ("!", ""):
        configs = {
            "a": config("a", b="mutual-pull", c="mutual-pull"),
            "b": config("b", a="mutual-pull", c="mutual-pull"),
            "c": config("c", a=f"mutual-pull{sign}", b=f"mutual-pull{sign}"),
        }
        found = of(collected(tmp_path / f"in{sign}", configs, **backups), case=tmp_path / f"case{sign}")
        (one,) = (one for one in found["findings"] if one["code"] == "UNRELATED_DATA")
        assert one["server"] == "c"
        assert ("deletes its data at its next pull, and takes those of a or b" in one["summary"]) == bool(sign)
        assert ("deletes its data" in one["root"]) == bool(sign)
        assert len(one["fix"]) == (2 if sign else 1)
        if sign:
            assert one["fix"][0]["repair"].startswith(
                "stop c now, and set `automatic_refresh = false` on its links to a and b"
            )
            assert "no other collected server shows 2 changes of 1 entry of c (entry0030)" in one["fix"][0]["caution"]
