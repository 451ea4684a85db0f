"""Backups of three servers that replicate entries, of any size: what `benchmarks.entries` reads.

Persons, of whom one in fifty is a tombstone by now: six to twelve attributes of each carry a change, most of them that of the
creation, others later ones of any server, and their values come along, also those that no table may hold. The vectors are made
of the anchors of a week. One server lags behind what the first did last, and each has missed some changes that its vector covers.
"""

from __future__ import annotations

import json
import random
import uuid
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

SERVERS = ("A", "B", "C")
ORIGINS = {name: str(uuid.UUID(int=number << 120 | 0x5C0FFEE)) for number, name in enumerate(SERVERS, 0xA1)}
DOMAIN = "e8d79f49-af6d-414c-8a6f-188a424e617b"
SECRET = "$argon2id$v=19$m=19456,t=2,p=1$"
NOW, DAY = 1_767_225_600, 86_400
_BEGAN = NOW - 400 * DAY
_ANCHOR = 600
_LOST, _LATE = 40, 200
_PAGE = 2000

_PERSON = ("class", "displayname", "name", "spn", "uuid")
_MORE = ("description", "legalname", "mail", "primary_credential", "gidnumber", "loginshell", "unix_password")
Lost = tuple[str, str, str, str]
"""Server, entry, attribute (empty: its deletion), position."""


@dataclass
class Planted:
    """What a diagnosis has to find: what each server missed, and how many changes are still to come to it, by origin."""

    missing: list[Lost] = field(default_factory=list)
    pending: dict[str, dict[str, int]] = field(default_factory=dict)


Cid = tuple[int, int, str]
"""Seconds, nanoseconds, server."""


def _cid(one: Cid) -> str:
    return f'{{"t":{{"secs":{one[0]},"nanos":{one[1]}}},"s":"{ORIGINS[one[2]]}"}}'


def _position(one: Cid) -> str:
    return f"{one[0] * 10**9 + one[1]:032d}-{ORIGINS[one[2]]}"


def _entry_id(number: int) -> str:
    return str(uuid.UUID(int=(number + 1) * 0x9E3779B97F4A7C15_F39CC0605CEDC835 % (1 << 128)))


def _live(at: Cid, changes: dict[str, Cid], attrs: str) -> str:
    told = ",".join([f'"{name}":{_cid(cid)}' for name, cid in changes.items()])
    return f',{{"ent":{{"V3":{{"changestate":{{"V1Live":{{"at":{_cid(at)},"changes":{{{told}}}}}}},"attrs":{{{attrs}}}}}}}}}'


def _dead(at: Cid, entry: str) -> str:
    attrs = f'"class":{{"I8":["object","tombstone"]}},"uuid":{{"UU":["{entry}"]}}'
    return f',{{"ent":{{"V3":{{"changestate":{{"V1Tombstone":{{"at":{_cid(at)}}}}},"attrs":{{{attrs}}}}}}}}}'


def _values(number: int, entry: str, names: list[str], at: Cid, last: Cid) -> str:
    """What the entry holds; of an attribute that was deleted nothing is there but its change."""
    values = {
        "class": '{"I8":["account","memberof","object","person"]}',
        "created_at_cid": f'{{"CI":[{_cid(at)}]}}',
        "description": f'{{"U8":["person {number}, of the {number % 97}th team"]}}',
        "displayname": f'{{"U8":["Person {number}"]}}',
        "gidnumber": f'{{"UI":[{70000 + number}]}}',
        "last_modified_cid": f'{{"CI":[{_cid(last)}]}}',
        "legalname": f'{{"U8":["Person Number {number}"]}}',
        "loginshell": '{"I8":["/bin/zsh"]}',
        "mail": f'{{"EM":["p{number}@example.com",["p{number}@example.com"]]}}',
        "memberof": f'{{"RF":["{_entry_id(number % 1000)}","{_entry_id(number % 77)}"]}}',
        "name": f'{{"N8":["p{number:07d}"]}}',
        "primary_credential": f'{{"CR":[{{"t":"primary","d":{{"type_":"V2Pw","password":{{"ARGON2ID":"{SECRET}{entry}"}}}}}}]}}',
        "spn": f'{{"SP":[["p{number:07d}","example.com"]]}}',
        "unix_password": f'{{"CR":[{{"t":"unix","d":{{"type_":"V2Pw","password":{{"ARGON2ID":"{SECRET}{entry}"}}}}}}]}}',
        "uuid": f'{{"UU":["{entry}"]}}',
    }
    always = ("created_at_cid", "last_modified_cid", "memberof")
    return ",".join([f'"{name}":{value}' for name, value in values.items() if name in always or name in names])


def _head(name: str, cids: list[Cid]) -> str:
    about = {"version": "1.10", "db_s_uuid": ORIGINS[name], "db_d_uuid": DOMAIN}
    now = f'{{"secs":{NOW},"nanos":0}}'
    ruv = ",".join(map(_cid, sorted(cids, key=lambda cid: (cid[:2], ORIGINS[cid[2]]))))
    begin = json.dumps(about, separators=(",", ":"))[:-1]
    return f'{begin},"db_ts_max":{now},"keyhandles":{{}},"repl_meta":{{"V1":{{"ruv":[{ruv}]}}}},"entries":['


def generate(folder: Path, entries: int) -> Planted:
    """Write `A.json`, `B.json` and `C.json` with so many entries each, and beside the folder what is planted in them."""
    folder.mkdir(parents=True)
    planted = Planted(pending={"B": {"A": 0}})
    lost, late = _LOST, min(_LATE, entries // 20)
    step = max(entries // lost, 1)
    # What a server did in the last minute before the backups: the one that lags has not seen it.
    latest = [(NOW - 60, number, "A") for number in range(late)]
    anchors = [(at, 0, name) for name in SERVERS for at in range(NOW - 7 * DAY, NOW - 120, _ANCHOR)]
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / f"{name}.json", "w", buffering=1 << 20)) for name in SERVERS}
        for name, file in files.items():
            seen = [*anchors, *[(NOW - 90, number, other) for other in SERVERS for number in range(lost)]]
            file.write(_head(name, seen if name == "B" else [*seen, *latest]))
        for begin in range(0, entries, _PAGE):
            pages: dict[str, list[str]] = {name: [] for name in SERVERS}
            for number in range(begin, min(begin + _PAGE, entries)):
                _one(number, number // step if number % step == step // 2 else None, latest, pages, planted)
            for name, page in pages.items():
                text = "".join(page)
                files[name].write(text[1:] if begin == 0 else text)
        for file in files.values():
            file.write("]}")
    (folder.with_suffix(".planted.json")).write_text(json.dumps(asdict(planted)))
    return planted


def _one(
    number: int,
    loss: int | None,
    latest: list[Cid],
    pages: dict[str, list[str]],
    planted: Planted,
) -> None:
    """One entry, as each server shows it."""
    draw, entry = random.Random(number), _entry_id(number)
    by = SERVERS[number % 3]
    at = (_BEGAN + number % (300 * DAY), draw.randrange(10**9), by)
    if loss is None and number % 50 == 7:
        dead = _dead((NOW - draw.randrange(DAY, 6 * DAY), draw.randrange(10**9), by), entry)
        for page in pages.values():
            page.append(dead)
        return
    names = sorted([*_PERSON, *draw.sample(_MORE, draw.randrange(1, len(_MORE) + 1))])
    changes = dict.fromkeys(names, at)
    for name in draw.sample(names, draw.randrange(0, 4)):
        changes[name] = (at[0] + draw.randrange(1, 60 * DAY), draw.randrange(10**9), draw.choice(SERVERS))
    attrs = _values(number, entry, names, at, max(changes.values()))
    text = _live(at, changes, attrs)
    shown = dict.fromkeys(SERVERS, text)
    if loss is not None:
        # Within what every vector covers: the others have it, one server has not.
        who, cid = SERVERS[loss % 3], (NOW - 90, loss % _LOST, SERVERS[(loss + 1) % 3])
        if loss % 4 == 3:
            shown = dict.fromkeys(SERVERS, _dead(cid, entry)) | {who: text}
            planted.missing.append((who, entry, "", _position(cid)))
        else:
            shown = dict.fromkeys(SERVERS, _live(at, changes | {"displayname": cid}, attrs)) | {who: text}
            planted.missing.append((who, entry, "displayname", _position(cid)))
    elif number % 20 == 3 and number // 20 < len(latest):
        shown |= dict.fromkeys("AC", _live(at, changes | {"displayname": latest[number // 20]}, attrs))
        planted.pending["B"]["A"] += 1
    for name, page in pages.items():
        page.append(shown[name])
