"""Random input for the tests: changelog records as the server writes them, and the damage that files suffer."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

from workbench.systems.ds389.secrets import SECRETS

CANARY = "Canary-5ecret"
"""No table, fact, reject or message may ever hold this, nor its base64."""

HASHES = ["{SSHA}%s", "{PBKDF2-SHA512}10000$%s", "{ssha512}%s", "{AES-TUhNR0}%s", "$6$salt$%s", "{CRYPT}$1$ab$%s"]

csns = st.builds(
    lambda time, seq, rid, sub: f"{time:08x}{seq:04x}{rid:04x}{sub:04x}",
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 0xFFFF),
    st.integers(1, 65535),
    st.sampled_from([0, 0, 0, 1, 0xFFFF]),
)
words = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=30
)
names = st.sampled_from(
    ["mail", "description", "cn;lang-et", "telephoneNumber", "postalAddress", "passwordGraceUserTime", "x"]
)


def ldif_line(attribute: str, value: str) -> str:
    """The value as the server writes it: base64 where LDIF wants that, folded at 78."""
    safe = value.isascii() and value.isprintable() and value[:1] not in (" ", ":", "<") and value[-1:] != " "
    line = f"{attribute}: {value}" if safe else f"{attribute}:: {base64.b64encode(value.encode()).decode()}"
    return folded(line) + "\n"


def folded(line: str, width: int = 78) -> str:
    """The line folded as in LDIF: a newline and a blank."""
    return line[:width] + "".join("\n " + line[at : at + width - 1] for at in range(width, len(line), width - 1))


@st.composite
def modifications(draw: st.DrawFn) -> str:
    """An LDIF body; now and then with a secret in it."""
    body = ""
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            secret = draw(st.sampled_from(sorted(SECRETS.attributes)))
            body += f"replace: {secret}\n" + ldif_line(secret, draw(st.sampled_from(["", "ü "])) + CANARY) + "-\n"
        elif kind == 1:
            shape = draw(st.sampled_from(HASHES)) % CANARY
            body += (
                "add: description\n"
                + ldif_line("description", draw(st.sampled_from(["", "é", "see "])) + shape)
                + "-\n"
            )
        elif kind == 2:
            body += f"delete: {draw(names)}\n-\n"
        else:
            name = draw(names)
            body += (
                f"replace: {name}\n"
                + "".join(ldif_line(name, draw(words)) for _ in range(draw(st.integers(1, 2))))
                + "-\n"
            )
    return body


@st.composite
def records(draw: st.DrawFn, decoded: bool = False) -> str:
    """One record of a changelog export, with the empty line behind it."""
    operation = draw(st.sampled_from(["add", "modify", "modify", "modify", "modrdn", "delete"]))
    text = f"changetype: {operation}\n"
    if draw(st.integers(0, 19)):
        text += "replgen: 6b00592d000000010000\n"
    csn = draw(csns)
    text += f"csn: {csn if draw(st.integers(0, 9)) else csn.upper()}\n"
    text += "nsuniqueid: 9fd3c09b-e4ee11f1-a8e4ae0b-27ac1ddf\n"
    if operation == "add":
        text += "parentuniqueid: 9c403999-e4ee11f1-a8e4ae0b-27ac1ddf\n"
    text += ldif_line(
        "dn", f"uid={draw(words)},ou=people,dc=example,dc=com" + draw(st.sampled_from(["", ",o=" + "long" * 30]))
    )
    if operation == "modrdn":
        text += ldif_line("newrdn", f"uid={draw(words)}") + "deleteoldrdn: true\n"
        if draw(st.booleans()):
            text += ldif_line("newsuperiordn", "ou=staff,dc=example,dc=com")
    body = draw(modifications())
    if operation != "delete" and body:
        text += (
            f"change::\n{body}" if decoded else folded(f"change:: {base64.b64encode(body.encode()).decode()}") + "\n"
        )
    return text + "\n"


HEADER = (
    "clpurgeruv: {replicageneration} 6b00592d000000010000\nclpurgeruv: {replica 1 ldap://localhost:38901}\n"
    "clmaxruv: {replicageneration} 6b00592d000000010000\n"
    "clmaxruv: {replica 1} 6b005930000200010000 6b005a21000100010000 6b005a21\nclmaxruv: {replica 2}\n\n"
)
DUMMY = (
    "changetype: delete\nreplgen: 6b006059000000010000\ncsn: 6b006063002500030000\n"
    "nsuniqueid: 00000000-00000000-00000000-00000000\ndn: cn=start iteration\n\n"
)
