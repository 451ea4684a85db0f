"""Redaction: no known name survives, pseudonyms are one to one and stay, secrets do not come back."""

from __future__ import annotations

import json
import re
import shlex
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_secrets import CANARY, SHAPED

from workbench.model import REMOVED, Naming, Problem
from workbench.report.redaction import (
    BY_KEY,
    DROPPED,
    KEPT,
    KINDS,
    LEFT_OUT,
    NAME,
    ORDINARY,
    RULES,
    Pseudonyms,
    fold,
    keep,
    kept_pseudonyms,
    speaks,
    without_secrets,
)
from workbench.safety import printable
from workbench.systems.ds389.naming import NAMING
from workbench.systems.ds389.secrets import SECRETS
from workbench.text_table import one_cell

KEY = b"k" * 32
letters = st.text(st.sampled_from("abcxyzABZ0189-_.: äßİΣς<>&\\$(["), min_size=1, max_size=9)
names = st.lists(letters.filter(lambda one: speaks(fold(one))), min_size=1, max_size=8)
kinds = st.sampled_from([kind for kind in KINDS if kind not in ("port", "origin", "domain")])


def fresh() -> Pseudonyms:
    return Pseudonyms(KEY, None, NAMING)


def without_pseudonyms(text: str) -> str:
    words = "|".join(KINDS)
    return re.sub(rf"(?<![^\W_])(?:{words})-(?:[a-z2-7]{{10}}|[0-9]+)(?![^\W_])", "\0", text)


def stands_in(name: str, text: str) -> bool:
    """Looked for slowly: at every place, with neither a letter nor a digit beside it where the name ends with one."""
    low, text = ("".join(low if len(low := one.lower()) == 1 else one for one in some) for some in (name, text))
    for at in range(len(text) - len(low) + 1):
        if text[at : at + len(low)] == low:
            before, after = text[at - 1 : at], text[at + len(low) : at + len(low) + 1]
            if not (before.isalnum() and low[0].isalnum()) and not (after.isalnum() and low[-1].isalnum()):
                return True
    return False


@given(
    st.lists(st.tuples(kinds, letters.filter(lambda one: speaks(fold(one)))), min_size=1, max_size=8),
    st.lists(
        st.one_of(st.integers(0, 7), st.sampled_from([" ", ", ", "-", "_", ".", "/", "(", "=", " to ", "x", "12"])),
        max_size=24,
    ),
    st.booleans(),
)
def test_no_known_name_survives_whatever_the_text(
    known: list[tuple[str, str]], pieces: list[Any], capitals: bool
) -> None:
    made = fresh()
    for kind, name in known:
        made.learn(kind, [name])
    text = "".join(known[one % len(known)][1] if isinstance(one, int) else one for one in pieces)
    shown = made.text(text.upper() if capitals and text.upper().lower() == text.lower() else text)
    left = without_pseudonyms(shown)
    for _, name in known:
        assert not stands_in(name.strip(), left), (name, shown)
    made.check({"says": shown})


@given(st.lists(st.tuples(kinds, letters), max_size=12), st.lists(st.tuples(kinds, letters), max_size=6))
def test_pseudonyms_are_one_to_one_and_stay(known: list[tuple[str, str]], more: list[tuple[str, str]]) -> None:
    made = fresh()
    for kind, name in known:
        made.learn(kind, [name])
    first = dict(made.names())
    assert len(set(first.values())) == len(first)
    again = Pseudonyms(KEY, made.numbered, NAMING, made.coded)
    for kind, name in [*more, *known]:
        again.learn(kind, [name])
    then = again.names()
    assert len(set(then.values())) == len(then)
    assert {name: then[name] for name in first} == first


def test_a_server_called_like_a_pseudonym_does_not_become_another_one() -> None:
    made = fresh()
    made.learn("server", ["server-1", "a1", "server-2"])
    shown = made.names()
    assert len(set(shown.values())) == 3
    assert not set(shown.values()) & {"server-1", "server-2"}
    assert made.text("a1 to server-1") == f"{shown['a1']} to {shown['server-1']}"


def test_the_structure_of_a_name_stays() -> None:
    made = fresh()
    made.learn("domain", ["example", "com"])
    data = {"target": "uid=jdoe,ou=people,dc=example,dc=com", "says": "see UID=JDoe,ou=People,dc=example,dc=com."}
    made.learn_from(data)
    shown = made.redacted(data)
    assert re.fullmatch(r"uid=entry-[a-z2-7]{10},ou=unit-[a-z2-7]{10},dc=domain-2,dc=domain-1", shown["target"])
    assert shown["target"].removeprefix("uid=") in shown["says"]
    assert made.target("cn=config") == "cn=config"
    within = "cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config"
    assert made.text(within) == "cn=replica,cn=dc=domain-2,dc=domain-1,cn=mapping tree,cn=config"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("ldaps://ldap7.acme.org:636/x", ["ldap7", "acme", "636"]),
        ("from 10.20.30.40 and fe80::1:2", ["10.20", "fe80"]),
        ("/home/jane/cases/acme/now", ["jane", "acme"]),
        ("write to jane.roe@acme.org", ["jane", "acme"]),
        ('agmt="cn=to-berlin" (ldap7:389)', ["berlin", "ldap7", "389)"]),
        ("dsconf --host ldap7 -D uid=jane,ou=staff,dc=acme,dc=org", ["ldap7", "jane", "staff", "acme"]),
        ("the entry uid=jane was added", ["jane"]),
        ("ou=x%2Cdc%3Dacme,dc=org", ["acme"]),
    ],
)
def test_names_are_found_by_their_shape(text: str, gone: list[str]) -> None:
    made = fresh()
    made.learn_from({"says": text})
    shown = made.redacted({"says": text})
    assert [one for one in gone if one in shown["says"]] == [], shown


@pytest.mark.parametrize(
    ("text", "gone", "stays"),
    [
        ("the entry cn=John Doe was added", ["John", "Doe"], " was added"),
        ("the entry cn=john doe has 2 values", ["john", "doe"], " has 2 values"),
        ("cn=Conor O'Brien, and others", ["Conor", "Brien"], ", and others"),
        ("it is in l=Berlin,st=BE, too", ["Berlin", "BE"], ", too"),
        ("see o=Acme Ltd.", ["Acme", "Ltd"], "see o="),
        (r"of cn=Doe\, John,ou=staff,dc=acme", ["Doe", "John", "staff", "acme"], "of cn="),
        ("(sn=Doe)", ["Doe"], "(sn="),
    ],
)
def test_an_entry_that_nobody_knows_is_found_whole(text: str, gone: list[str], stays: str) -> None:
    made = fresh()
    shown = made.text(text)
    assert stays in shown and [one for one in gone if one in shown] == [], shown
    made.learn_from({"says": text})
    shown = made.redacted({"says": text})["says"]
    assert stays in shown and [one for one in gone if one in shown] == [], shown


def test_what_every_installation_has_is_no_name() -> None:
    made = fresh()
    for text in (
        "cn=directory manager may do that",
        "cn=Directory Manager has, and the directory manager does",
        "cn=mapping tree of cn=config was read",
    ):
        made.learn_from({"says": text})
        assert made.text(text) == text
    made.learn_from({"says": "version 1.4.4.19 at 10.4.4.19"})
    assert made.text("version 1.4.4.19 at 10.4.4.19") == "version 1.4.4.19 at address-1"
    made.learn("link", ["to berlin"])
    assert made.text("cn=to berlin waits") == "cn=link-1 waits"


def test_a_command_can_be_run_but_for_the_names() -> None:
    made = fresh()
    made.learn("host", ["ldap.acme.org", "dsconf.acme.org", "s1.acme.org"])
    made.learn("host", ["ldap", "dsconf", "s1"])
    made.learn("link", ["init", "s1-to-s3"])
    made.learn("domain", ["acme"])
    for command, shown in (
        ("dsconf s1 repl-agmt init --suffix dc=acme s1-to-s3", "dsconf host-6 repl-agmt init --suffix dc=domain-1 link-2"),
        ("ldapsearch -H ldap://ldap.acme.org:389 -b dc=acme", "ldapsearch -H ldap://host-2:port-1 -b dc=domain-1"),
        ("ldapmodify -Y EXTERNAL -H ldapi://%2Frun%2Fslapd-s1.socket", "ldapmodify -Y EXTERNAL -H ldapi://%2Frun%2Fslapd-host-6.socket"),
    ):  # fmt: skip
        assert re.sub("host-[0-9]", "host", made.text(command)) == re.sub("host-[0-9]", "host", shown)


def test_an_entry_that_is_called_like_a_word_of_ours_leaves_our_sentences_alone() -> None:
    made = Pseudonyms(KEY, None, NAMING, None, ours=["its data was restored from a backup of its own", "ANCHOR_PURGED"])
    data = {
        "target": "uid=backup,ou=anchor,dc=x1",
        "says": "restored from a backup: the anchor is gone from uid=backup",
    }
    made.learn_from(data)
    shown = made.redacted(data)
    code = made.names()["backup"]
    assert shown["target"].startswith(f"uid={code},ou=unit-")
    assert shown["says"] == f"restored from a backup: the anchor is gone from uid={code}"
    made.check(shown)
    made.learn("server", ["restored"])
    assert made.text("restored has it") == "server-1 has it"


def test_what_is_no_name_stays() -> None:
    text = "12 changes of origin 1, 6b006176000000010000 to 6b006176000f00010000 at 2026-11-20 15:04:22, version 2.3.1"
    made = fresh()
    data = {"says": text, "origin": "1", "verdict": "missing", "count": 12, "none": None, "yes": True}
    made.learn_from(data)
    assert made.redacted(data) == data


def test_ordinary_words_are_replaced_where_a_name_stands_alone() -> None:
    made = fresh()
    data = {"server": "server", "snapshot": "now", "says": "the server would send nothing now"}
    made.learn_from(data)
    shown = made.redacted(data)
    assert shown == {"server": "server-1", "snapshot": "snapshot-1", "says": data["says"]}
    assert "server" in ORDINARY


def test_a_code_of_which_a_part_is_a_name_stays_a_code() -> None:
    made = Pseudonyms(KEY, ours=["ANCHOR_PURGED"])
    made.learn("snapshot", ["purged", "ANCHOR_PURGED-acme"])
    assert made.text("ANCHOR_PURGED of purged, Purged_ANCHOR") == "ANCHOR_PURGED of snapshot-1, snapshot-1_ANCHOR"
    assert made.text("see ANCHOR_PURGED-acme") == "see snapshot-2"
    assert made.survivors("ANCHOR_PURGED of purged") == ["purged"]


def test_a_name_that_is_a_day_is_not_replaced_within_a_time() -> None:
    made = fresh()
    made.learn("snapshot", ["2026-11-20", "11-20", "15-04"])
    data = {
        "at": "2026-11-20 15:04:22",
        "snapshots": ["2026-11-20", "11-20"],
        "says": "made 2026-11-20T15:04:22Z, 2026-11-20 15:04 UTC and 15:04:22; see 2026-11-20/s1.log, 11-20 and 1999-11-20",
    }
    made.learn_from(data)
    shown = made.redacted(data)
    assert (shown["at"], shown["snapshots"]) == (data["at"], ["snapshot-1", "snapshot-2"])
    assert shown["says"] == (
        "made 2026-11-20T15:04:22Z, 2026-11-20 15:04 UTC and 15:04:22; see snapshot-1/s1.log, snapshot-2 and 1999-11-20"
    )
    made.check(shown)


def test_what_stands_in_place_of_a_time_and_is_none_is_a_text() -> None:
    made = fresh()
    made.learn("server", ["ldap1"])
    assert made.redacted({"at": "when ldap1 fell"}) == {"at": "when server-1 fell"}
    with pytest.raises(Problem, match="would be left"):
        made.check({"at": "ldap1"})
    made.learn("snapshot", ["2026-11-20 15:04:22"])
    data = {"at": "2026-11-20 15:04:22", "snapshot": "2026-11-20 15:04:22"}
    assert made.redacted(data) == {**data, "snapshot": "snapshot-1"}


def test_free_text_of_others_is_left_out() -> None:
    made = fresh()
    assert made.redacted({"text": "Jane was here", "sends": "dn: x\ncn: Jane"}) == {"text": LEFT_OUT, "sends": LEFT_OUT}
    assert {BY_KEY[key] for key in ("text", "value", "body", "sends")} == {DROPPED}


def test_the_check_sees_a_name_that_was_left() -> None:
    made = fresh()
    made.learn("server", ["ldap1"])
    with pytest.raises(Problem, match="1 names would be left"):
        made.check({"rows": [{"says": "see LDAP1."}]})
    made.check({"verdict": "ldap1"})
    assert BY_KEY["verdict"] == KEPT


def test_the_case_keeps_them_for_its_owner_only(tmp_path: Path) -> None:
    made = kept_pseudonyms(tmp_path)
    made.learn("server", ["s1", "s2", "s10"])
    made.learn("entry", ["jdoe"])
    keep(made, tmp_path)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    again = kept_pseudonyms(tmp_path)
    again.learn("server", ["s1", "s11"])
    assert [again.names()[name] for name in ("s1", "s2", "s10", "s11")] == [
        "server-1",
        "server-2",
        "server-3",
        "server-4",
    ]
    assert again.of("entry", "JDoe") == made.names()["jdoe"] in json.loads((tmp_path / NAME).read_text())["names"]
    assert kept_pseudonyms(tmp_path / "other").of("entry", "jdoe") != made.names()["jdoe"], "another case, another code"
    (tmp_path / NAME).write_text("{")
    with pytest.raises(Problem, match="cannot be read"):
        kept_pseudonyms(tmp_path)


WRONG = [
    {"key": "00"},
    {"numbered": {"server": {"s1": 1, "s2": 1}}},
    {"numbered": {"server": {"": 1}}},
    {"numbered": {"server": {" ": 1}}},
    {"numbered": {"server": {"s1": "x"}}},
    {"numbered": {"server": {"s1": None}}},
    {"numbered": {"server": {"s1": True}}},
    {"numbered": {"server": {"s1": 0}}},
    {"numbered": {"server": {"s1": 1.5}}},
    {"numbered": {"server": ["s1"]}},
    {"numbered": {"planet": {"s1": 1}}},
    {"numbered": []},
    {"coded": {"jane": "planet"}},
    {"coded": {"": "entry"}},
    {"coded": {"jane": ["entry"]}},
    {"coded": ["jane"]},
    {"files": {"a": "server-1.log-1", "b": "server-1.log-1"}},
    {"files": {"a": "acme"}},
    {"files": {"a": 1}},
    {"files": ["a"]},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_damaged_pseudonyms_are_refused_with_a_sentence(tmp_path: Path, wrong: dict[str, Any]) -> None:
    whole = {"key": KEY.hex(), "numbered": {"server": {"s1": 1}}, "coded": {"jane": "entry"}}
    (tmp_path / NAME).write_text(json.dumps(whole))
    assert kept_pseudonyms(tmp_path).names()["s1"] == "server-1"
    (tmp_path / NAME).write_text(json.dumps({**whole, **wrong}))
    with pytest.raises(Problem, match="the pseudonyms of the case cannot be read: ") as told:
        kept_pseudonyms(tmp_path)
    assert NAME in told.value.where and "bring it back" in told.value.do


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"', "{}", "[" * 50_000, "\0", '{"key": 1}'])
def test_what_holds_no_pseudonyms_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(Problem, match="cannot be read"):
        kept_pseudonyms(tmp_path)


# --- what is no plain text of a name


ODD = ["berlin \u202e=cmd", "tab\tname", "zero\u200bwidth", "o'Brien", "Zürich\\süd", 'sa"id', "line\nend"]


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_replaced_however_it_is_spelled(name: str) -> None:
    made = fresh()
    made.learn("server", [name])
    quoted = shlex.quote(name)
    for spelled in (
        name,
        name.upper(),
        printable(name),
        one_cell(name),
        json.dumps(name),
        json.dumps({"says": name}),
        quoted,
    ):
        if spelled == name.upper() and len(name.upper()) != len(name):
            continue
        shown = made.text(f"see {spelled}, now")
        assert "server-1" in shown, (spelled, shown)
        for part in re.findall(r"[^\W_]{4,}", name):
            assert part.lower() not in shown.lower(), (spelled, shown)
        assert made.survivors(shown) == []


def test_a_file_tells_its_server_and_kind_and_nothing_else(tmp_path: Path) -> None:
    made = fresh()
    made.learn("server", ["s1", "s2"])
    for name, server, kind in (
        ("acme-kd4711.access", "s1", "access-log"),
        ("acme-kd4711.access.gz", "s1", "access-log"),
        ("acme-kd4712.ldif.gz", "s2", "changelog-ldif"),
        ("notes of jane.txt", "", ""),
        ("acme-kd4711.access", "s1", "access-log"),
    ):
        made.learn_file(name, server, kind)
    data = {"rows": [{"file": name} for name in [*made.files, "notes of jane.txt"]], "says": "see acme-kd4712.ldif:12"}
    made.learn_from(data)
    shown = made.redacted(data)
    assert [one["file"] for one in shown["rows"]] == [
        "server-1.access_log-1", "server-1.access_log-2", "server-2.changelog_ldif-1", "file-1"
    ]  # fmt: skip
    assert shown["says"] == "see server-2.changelog_ldif-1:12"
    made.learn("user", ["access"])
    made.check(shown)
    keep(made, tmp_path)
    again = kept_pseudonyms(tmp_path)
    again.learn_file("later.access", "s1", "access-log")
    assert again.files == {**made.files, "later.access": "server-1.access_log-3"}


def test_a_log_that_is_called_by_its_kind_leaves_sentences_alone() -> None:
    made = fresh()
    made.learn("server", ["s1"])
    made.learn_file("access", "s1", "access-log")
    data = {"file": "access", "says": "its access log does not name it"}
    made.learn_from(data)
    assert made.redacted(data) == {"file": "server-1.access_log-1", "says": data["says"]}


def test_a_name_is_known_by_its_place_where_it_is_a_word_of_any_sentence() -> None:
    made = fresh()
    data: dict[str, Any] = {
        "servers": [{"name": "have"}],
        "links": [{"name": "missing"}],
        "case": {"name": "4711"},
        "says": "they have 4711",
    }
    data["rows"] = [{"file": "report"}]
    made.learn("case", ["4711"])
    made.learn_from(data)
    shown = made.redacted(data)
    assert (shown["servers"][0]["name"], shown["links"][0]["name"], shown["case"]["name"]) == (
        "server-1",
        "link-1",
        "case-1",
    )
    assert shown["says"] == "they have 4711"
    assert shown["rows"] == [{"file": "file-1"}]


def test_snapshots_are_numbered_in_their_order() -> None:
    made = fresh()
    made.learn("snapshot", ["monday", "after", "10-last", "2-first"])
    assert [made.names()[name] for name in ("monday", "after", "10-last", "2-first")] == [
        f"snapshot-{number}" for number in (1, 2, 3, 4)
    ]


# --- what names look like


def test_what_a_system_does_not_tell_is_one_name() -> None:
    made = Pseudonyms(KEY)
    data = {"target": "orders.eu,dc=acme", "says": 'write orders.eu,dc=acme with agmt="cn=berlin" (x:1)'}
    made.learn_from(data)
    shown = made.redacted(data)
    assert re.fullmatch(r"entry-[a-z2-7]{10}", shown["target"])
    assert shown["says"] == f'write {shown["target"]} with agmt="cn=berlin" (x:1)'


def test_a_system_of_other_names_brings_its_own() -> None:
    def parts(target: str) -> list[tuple[str, str]]:
        schema, dot, table = target.partition(".")
        return [("domain", schema), ("", dot), ("unit", table)]

    naming = Naming(
        parts, re.compile(r"\b[a-z]+\.tbl_[a-z]+\b"), (("host", re.compile(r"node=(\w+)")),), frozenset({"public"})
    )
    made = Pseudonyms(KEY, None, naming)
    data = {"target": "acme.orders", "says": "public.tbl_secret of node=berlin"}
    made.learn_from(data)
    shown = made.redacted(data)
    assert re.fullmatch(r"domain-1\.unit-[a-z2-7]{10}", shown["target"])
    assert re.fullmatch(r"public\.unit-[a-z2-7]{10} of node=host-1", shown["says"])


@given(st.text(st.sampled_from('abc=,+\\ "UIDdcou;-.é\n'), max_size=30))
def test_the_pieces_of_a_name_are_the_whole_of_it(text: str) -> None:
    pieces = list(NAMING.parts(text))
    assert {kind for kind, _ in pieces} <= {"", *KINDS}
    assert re.sub(r"[ \n\\,+]", "", "".join(piece for _, piece in pieces)) == re.sub(r"[ \n\\,+]", "", text)


def test_nothing_of_one_system_is_left_in_the_rules() -> None:
    patterns = " ".join(rule.pattern for rule in RULES) + " ".join(ORDINARY)
    assert not re.search(r"agmt|nsunique|\b(?:cn|dc|uid|ou|dn|modrdn)\b", patterns)


def test_two_reports_at_once_do_not_give_one_number_twice(tmp_path: Path) -> None:
    one, other = kept_pseudonyms(tmp_path), kept_pseudonyms(tmp_path)
    one.learn("server", ["s1"])
    keep(one, tmp_path)
    other.learn("server", ["s2"])
    with pytest.raises(Problem, match="meanwhile"):
        keep(other, tmp_path)
    again = kept_pseudonyms(tmp_path)
    again.learn("server", ["s2"])
    keep(again, tmp_path)
    assert kept_pseudonyms(tmp_path).names() == {"s1": "server-1", "s2": "server-2"}


def test_ten_thousand_names_take_no_longer_than_ten() -> None:
    made = fresh()
    made.learn("entry", [f"user{number:05}" for number in range(10_000)])
    text = " and ".join(f"uid=user{number:05},ou=x,dc=y" for number in range(0, 10_000, 2))
    began = time.monotonic()
    shown = made.text(text)
    assert time.monotonic() - began < 5
    assert "user0" not in shown and shown.count("entry-") == 5_000


@pytest.mark.parametrize(
    "unit", ["x", "a=b,", "1.2.3.", "a@", ":", "abcd:", "x://", "-w ", "dc=a+", "/a", "a.a.", "uid="]
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (24_000 // len(unit)) + "=@:"
    began = time.monotonic()
    data = without_secrets({"rows": [{"says": text, "target": text, "server": text}]}, SECRETS)
    made = fresh()
    made.learn_from(data)
    made.check(made.redacted(data))
    assert time.monotonic() - began < 10  # hostile text, on a busy machine; what is quadratic takes minutes


PLACES = [
    f"ldap://admin:{CANARY}@ldap1.example.com:389/",
    f"https://x:{CANARY}@h/",
    f"https://x:a/b@c{CANARY}@h/",
    f"ldapmodify -x -w {CANARY} -H ldap://h",
    f"ldapmodify -w '{CANARY}'",
    f"dsconf --password {CANARY} x",
    f"dsconf --password PASSWORD{CANARY} x",
    f"tool --bind-password={CANARY}",
    f"the password: {CANARY}",
    f"passwd={CANARY}",
    f"token = {CANARY}, and more",
    f"Authorization: Bearer {CANARY}",
    f"api_key={CANARY}",
    f'"secret": "{CANARY}"',
    *SHAPED,
]


@pytest.mark.parametrize("text", PLACES)
def test_no_secret_comes_back(text: str) -> None:
    shown = without_secrets({"rows": [{"says": text, text: 1}]}, SECRETS)
    assert CANARY not in json.dumps(shown)
    assert REMOVED in json.dumps(shown)


@pytest.mark.parametrize(
    "text",
    [
        "ldapmodify -x -y file -H ldap://h:389",
        "the password is asked for when it is run",
        "dsconf --password-file pw x",
        "dsconf INSTANCE repl-agmt set --bind-passwd PASSWORD a-to-c",
        "cn: Jane, description: basic data",
        "-w",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text, SECRETS) == text
