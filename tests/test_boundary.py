"""Distrust: secrets, excerpts, strict YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import CANARY, HASHES

from workbench.model import REMOVED, Problem
from workbench.safety import Secrets, excerpt, printable, strict_yaml
from workbench.systems.comdb2.secrets import SECRETS as COMDB2
from workbench.systems.comdb2.secrets import harmless
from workbench.systems.ds389.secrets import SECRETS


@pytest.mark.parametrize("shape", HASHES)
@pytest.mark.parametrize("around", ["%s", "x %s y", '"%s"', "userpassword=%s", "msg - (%s)"])
def test_a_hash_is_found_wherever_it_stands(shape: str, around: str) -> None:
    text = around % (shape % CANARY)
    assert CANARY not in SECRETS.redact(text)
    assert SECRETS.holds_one(text)


@pytest.mark.parametrize(
    "text",
    [
        "{replica 1 ldap://localhost:38901} 6b005930000200010000 6b005a21000100010000",
        "{replicageneration} 6b00592d000000010000",
        "passwordGraceUserTime: 0",
        "cn=UserPasswords,ou=groups",
        "a$b$c $ 5",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert SECRETS.redact(text) == text
    assert not SECRETS.holds_one(text)


def test_names_count_with_options_in_any_case_and_to_the_end_of_the_line() -> None:
    secrets = Secrets(["userPassword"])
    assert secrets.is_secret("USERPASSWORD;adcsn-6b005993000000010002")
    text = "x: 1\nUserPassword;lang-et: two words\n more of it\ny: 2"
    assert secrets.redact(text) == "x: 1\nUserPassword;lang-et: [secret removed]\ny: 2"


def test_an_excerpt_shows_no_base64_and_no_control_characters() -> None:
    shown = excerpt(b"change:: e1NTSEF9" + b"QUJD" * 30, SECRETS)
    assert shown == "change:: ..."
    assert "QUJDQUJD" not in excerpt(b" QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD cut", SECRETS)
    assert excerpt(b"\x1b[31mred\x07\n\xff\xe2\x80\xae", SECRETS) == "\\x1b[31mred\\x07\\n\\xff\\u202e"
    assert len(excerpt(b"a b " * 1000, SECRETS)) <= 120
    assert "6b005a21000100010000" in excerpt(b"csn: 6b005a21000100010000", SECRETS)


def test_printable_keeps_letters_and_line_ends() -> None:
    assert printable("Jürgen\n\t") == "Jürgen\n\t"


def test_yaml_scalars_stay_text() -> None:
    text = "rid: 0011\nhost: no\nt: 12:30:45\ncsn: 69123456000000010000\nn: null\nl: [1, 2.0]\n"
    assert strict_yaml(text, "f") == {
        "rid": "0011", "host": "no", "t": "12:30:45", "csn": "69123456000000010000", "n": "null", "l": ["1", "2.0"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "word"),
    [("a: 1\na: 2\n", "twice"), ("a: &x 1\nb: *x\n", "alias"), ("a: [\n", "not valid"), ("a: " + "x" * 70000, "64 KiB"),
     ("b:\n  c: 1\n  c: 2\n", "twice"), ("a: !!python/object/apply:os.system [x]\n", "tags")],
)  # fmt: skip
def test_ambiguous_or_dangerous_yaml_is_refused_with_its_place(text: str, word: str) -> None:
    with pytest.raises(Problem) as problem:
        strict_yaml(text, "case.yaml")
    assert word in str(problem.value)
    assert "case.yaml" in str(problem.value)


@pytest.mark.parametrize(
    "damaged",
    [
        f"unhashed#user#password {CANARY}",
        f"dn: x\nuserPa\n ssword: {CANARY}",
        f"description: {{SS\n HA}}{CANARY}",
        f"description: {{SSHA}}abcdefgh\n {CANARY}",
        f"replace: userPassword*userPassword {CANARY}",
    ],
)
def test_an_excerpt_of_a_damaged_record_holds_no_secret(damaged: str) -> None:
    assert CANARY not in excerpt(damaged, SECRETS)
    assert CANARY not in excerpt(damaged.encode(), SECRETS)


PARTS = [
    *(
        "password",
        "secret",
        "Token",
        "userPassword",
        ";lang-et",
        ": ",
        "=",
        ":: ",
        "[",
        "]",
        " ",
        "\n",
        "\n ",
        "removed",
    ),
    *(
        "{SSHA}abcdefgh",
        "{CLEAR}x y",
        "$6$abcdefghij",
        REMOVED,
        "http://user:hunter2@host/",
        "hunter2",
        "dXNlclBhc3N3b3JkOiBo",
    ),
]


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
def test_what_was_redacted_is_not_redacted_again(text: str) -> None:
    """What stands for a value that was removed holds a word that is the name of one elsewhere."""
    secrets = Secrets(["password", "secret", "token", "userPassword"])
    once = secrets.redact(text)
    assert secrets.redact(once) == once and f"secret: {REMOVED} removed" not in once
    shown = harmless("physrep_proxy", text)
    assert harmless("physrep_proxy", shown) == shown


def test_an_error_with_a_password_is_readable() -> None:
    assert COMDB2.redact("denied, password: hunter2 for x") == f"denied, password: {REMOVED}"
    assert excerpt("denied\npassword: hunter2", COMDB2) == f"denied\\n{REMOVED}"
