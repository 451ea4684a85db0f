"""Changelog LDIF of any size, as `dsconf replication export-changelog` writes it: same fields, folding and base64.

The bodies are made from a few thousand different ones, so that generating two million records takes seconds. About 6 %
hold values that are base64 inside the base64 (names with letters beyond ASCII), 1 % hold a password hash.
"""

from __future__ import annotations

import base64
import random
from pathlib import Path

START = 0x6B005930
NAMES = ["anna", "bram", "chloé", "dmitri", "eşref", "fatima", "gösta", "hiro", "inês", "jürgen", "kofi", "lena"]


def _line(attribute: str, value: str) -> str:
    if value.isascii():
        return f"{attribute}: {value}\n"
    packed = base64.b64encode(value.encode()).decode()
    return f"{attribute}:: {packed}\n"


def _body(rng: random.Random, operation: str, number: int) -> str:
    stamp = f"2026112014{rng.randrange(60):02d}{rng.randrange(60):02d}Z"
    plain = rng.random() < 0.94
    name = rng.choice([n for n in NAMES if n.isascii() == plain])
    if operation == "add":
        values = [("objectClass", "inetOrgPerson"), ("uid", f"u{number:06d}"), ("cn", f"{name} {number}"), ("sn", name)]
        values += [("mail", f"u{number}@example.com"), ("creatorsName", "cn=directory manager")]
        values += [("modifiersName", "cn=directory manager"), ("createTimestamp", stamp), ("modifyTimestamp", stamp)]
        if rng.random() < 0.08:
            values.append(("userPassword", "{PBKDF2-SHA512}10000$" + rng.randbytes(24).hex()))
        return "".join(f"add: {a}\n{_line(a, v)}-\n" for a, v in values)
    touched = rng.choice(["description", "telephoneNumber", "title", "mail", "givenName"])
    text = f"{name} {rng.randbytes(rng.randrange(8, 60)).hex()}"
    first = f"replace: {touched}\n{_line(touched, text)}-\n" if operation == "modify" else ""
    return (
        f"{first}replace: modifiersname\nmodifiersname: uid=admin{number % 7},ou=people,dc=example,dc=com\n-\n"
        f"replace: modifytimestamp\nmodifytimestamp: {stamp}\n-\n"
    )


def _folded(text: str) -> str:
    return text[:78] + "".join("\n " + text[at : at + 77] for at in range(78, len(text), 77))


def _templates(rng: random.Random) -> list[tuple[str, str, str]]:
    """(text before the CSN, between CSN and unique id, behind it) of some thousand records."""
    made = []
    for number in range(4000):
        operation = rng.choices(["modify", "add", "modrdn", "delete"], [76, 14, 4, 6])[0]
        dn = f"uid=u{number:06d},ou=people,dc=example,dc=com"
        if rng.random() < 0.05:
            dn = f"uid=u{number:06d},ou=a very long organisational unit name,ou=another one,ou=people,dc=example,dc=com"
        rest = "" if operation != "add" else "parentuniqueid: 9c403999-e4ee11f1-a8e4ae0b-27ac1ddf\n"
        rest += _folded(f"dn: {dn}") + "\n"
        if operation == "modrdn":
            rest += f"newrdn: uid=r{number:06d}\ndeleteoldrdn: true\n"
        if operation != "delete":
            body = base64.b64encode(_body(rng, operation, number).encode()).decode()
            rest += _folded(f"change:: {body}") + "\n"
        made.append((f"changetype: {operation}\nreplgen: 6b00592d000000010000\ncsn: ", "\nnsuniqueid: ", f"\n{rest}\n"))
    return made


def generate(folder: Path, records: int, servers: int = 4, malformed: int = 100, seed: int = 389) -> list[Path]:
    """Write `records` records over `servers` changelogs into the folder; about `malformed` of them cannot be read."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    templates = _templates(rng)
    files = []
    for server in range(1, servers + 1):
        path = folder / f"s{server}.changelog.ldif"
        count = records // servers
        broken = set(rng.sample(range(count), min(malformed // servers, count)))
        with open(path, "w", encoding="ascii") as out:
            out.write("clpurgeruv: {replicageneration} 6b00592d000000010000\n")
            out.write("clmaxruv: {replicageneration} 6b00592d000000010000\n\n")
            batch = []
            for number in range(count):
                second, sequence = divmod(number, 40)
                csn = f"{START + second:08x}{sequence:04x}{number % servers + 1:04x}0000"
                before, between, behind = templates[rng.randrange(4000)]
                if number in broken:
                    csn, behind = (csn[:15] + "x", behind) if number % 2 else (csn, behind.replace("dn:", "dn", 1))
                batch.append(f"{before}{csn}{between}{number:08x}-e4ee11f1-a8e4ae0b-{server:08x}{behind}")
                if len(batch) == 20000:
                    out.write("".join(batch))
                    batch.clear()
            out.write("".join(batch))
        files.append(path)
    return files
