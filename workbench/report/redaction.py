"""Redaction: the names of a case out of everything that leaves it, by a table of rules, with pseudonyms that stay the same.

What is redacted is the data of a report, before anything is drawn from it: whatever is made of the data holds no name.

Two kinds of pseudonyms. Of servers, hosts, links and the like a case has few: they are numbered (`server-2`), which reads
well. Of entries it may have millions, which stream through an export: theirs is a code (`entry-k3f9a2m7qx`), a hash with a
key, so that nothing has to be kept for each, and neither the code nor its place tells anything of the name. Numbers and
key are kept in the case (`pseudonyms.json`, for its owner only): the next report of the case has the same ones.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets as chance
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.boundary import Secrets, printable
from workbench.journal import write_whole
from workbench.model import REMOVED, Problem

NAME = "pseudonyms.json"

SERVER, HOST, ADDRESS, PORT, LINK, USER = "server", "host", "address", "port", "link", "user"
DOMAIN, UNIT, ENTRY, FOLDER, CASE, SNAPSHOT = "domain", "unit", "entry", "folder", "case", "snapshot"
ORIGIN, MAIL = "origin", "mail"
TARGET = "target"
"""The name of an entry, made of parts: each part has a pseudonym of its own, so that the structure stays readable."""
DROPPED, KEPT = "dropped", "kept"
LEFT_OUT = "(left out)"

KINDS = (SERVER, LINK, HOST, ADDRESS, PORT, USER, DOMAIN, UNIT, ENTRY, FOLDER, CASE, SNAPSHOT, ORIGIN, MAIL)
"""The first of these that a name belongs to gives its pseudonym."""
CODED = frozenset({UNIT, ENTRY})


class Rule(NamedTuple):
    """One rule: what stands under this key of the data, or fits this pattern anywhere in a text, is of this kind."""

    kind: str
    keys: tuple[str, ...] = ()
    pattern: str = ""
    why: str = ""


_WORD = r"[^\W_]"
_WORDS, _ONE = re.compile(rf"{_WORD}+|.", re.DOTALL), re.compile(_WORD)
"""Names stand on the borders of words, and underscores are borders; what is no letter or digit stands for itself."""
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"

RULES = (
    Rule(SERVER, ("server", "supplier", "consumer", "on", "made_on", "held_by", "suppliers", "takes_from")),
    Rule(LINK, ("link",), why="agreements are named after servers, sites and customers"),
    Rule(LINK, pattern=r'agmt="(?:cn=)?([^"\n]+)"'),
    Rule(HOST, ("host",)),
    Rule(HOST, pattern=rf'agmt="[^"\n]*" \(({_HOST})[:)]', why="as errors logs name links"),
    Rule(HOST, pattern=rf"--(?:consumer-)?host[= ]+({_HOST})"),
    Rule(HOST, pattern=rf"(?<!\w)\w{{1,30}}://(?:[^/@\n]{{0,256}}@)?({_HOST})(?=[:/\s]|$)", why="the host of a URL"),
    Rule(ADDRESS, pattern=r"(?<![\w.])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?!\w|\.[0-9])"),
    Rule(
        ADDRESS,
        pattern=r"(?<![\w:.])((?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*::)[0-9A-Fa-f:]{3,45})(?![\w:])",
    ),
    Rule(USER, ("user",)),
    Rule(MAIL, pattern=r"(?<![\w.+-])([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8})"),
    Rule(TARGET, ("target", "suffix", "login", "rename"), why="names of entries are names of people"),
    Rule(CASE, ("case",), why="people name cases after customers"),
    Rule(SNAPSHOT, ("snapshot", "snapshots")),
    Rule(FOLDER, pattern=r"(?<![\w/:.<])((?:/[\w.@+~-]+){2,}/?)", why="paths tell users, customers and instances"),
    Rule(ORIGIN, ("origin",), why="a number stays; where origins are names, they are names"),
    Rule(DROPPED, ("text", "sends", "undo_sends", "value", "body", "raw", "excerpt"), why="free text may name anybody"),
    Rule(
        KEPT, ("glossary", "verdict", "severity", "code", "kind", "format", "sha256", "decision"), why="our own words"
    ),
)
"""What is not said here is text: every known name in it is replaced."""

BY_KEY: Mapping[str, str] = {key: rule.kind for rule in RULES for key in rule.keys}
_PATTERNS = [(rule.kind, re.compile(rule.pattern)) for rule in RULES if rule.pattern]
_CLOSED = re.compile(r"[\w .:()/+-]{0,64}")
"""What may stand where words of the program are kept."""

_ATTRIBUTE = r"[A-Za-z][A-Za-z0-9.-]{0,40}(?:;[\w-]+)*"
_NAMED_BY = {"dc": DOMAIN, "ou": UNIT, "o": UNIT}
_IN_TEXT = re.compile(
    rf"(?<![\w-])(?:{_ATTRIBUTE}=[^,+=\n\"<>]{{0,256}}[,+] ?){{0,30}}(?i:uid|cn|ou|dc|o|c|sn|mail|nsuniqueid)="
    r"(?:[^\s,\"'()<>;=+:.?!]|[:.?!](?=[^\s,\"'()<>;=+:.?!]))++(?!=)"
)
"""The name of an entry in a sentence: its last part ends with the word."""
ORDINARY = frozenset(
    re.findall(
        r"\w+",
        "add after all and as at before by case change changes client cn com consumer data dc delete dn domain during end "
        "entry example file first folder for from group groups has host hub in incident is it last later link log lost mail "
        "modify modrdn name net new no none not now of off old on one or org origin ou people port positions present read "
        "replica report root same second send sends sent server servers snapshot start state supplier test than that the them "
        "then they this time to today two uid unit unknown user users vector was what will with",
    )
)
"""Names that are words of any sentence: they are replaced where a name stands, not wherever the word is used."""
_ESCAPED = re.compile(r"\\(3[dD]|2[cC]|2[bB])|%(3[dD]|2[cC]|2[bB])")
_ALREADY = re.compile(rf"(?<!{_WORD})(?:{'|'.join(KINDS)})-(?:[a-z2-7]{{10}}|[0-9]+)(?!{_WORD})")
_PORT = re.compile(r"(?:(?:host|server|address)-[0-9]+|localhost|\])(?<!\w://):([0-9]{2,5})(?!\w)")

_PASSWORDS = (
    re.compile(r"(?<=://)[^/\s:@]{0,256}:\S{0,256}(?=@)"),  # a password may have a slash or a further @ in it
    re.compile(
        r"(?<![\w-])(?:-w|--?[\w-]*(?:password|passwd|secret|token|credentials?|pw))(?:=| +)(?!-)('[^']*'|\"[^\"]*\"|\S+)"
    ),
    re.compile(
        r"(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|credentials?)[\"']?\s*[:=]\s*"
        r"('[^']*'|\"[^\"]*\"|[^\s,;]+)"
    ),
    re.compile(r"(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{6,})"),
)
"""Passwords where no attribute is named: in URLs, on command lines, in sentences."""


def without_secrets(value: Any, secrets: Secrets | None) -> Any:
    """The data with every secret taken out of every text, keys included: whatever brought it in, it goes no further."""
    if isinstance(value, Mapping):
        return {without_secrets(key, secrets): without_secrets(one, secrets) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_secrets(one, secrets) for one in value]
    if not isinstance(value, str):
        return value
    text = secrets.redact(value) if secrets else value
    for shape in _PASSWORDS:
        text = shape.sub(lambda found: found[0].replace(found[found.lastindex or 0], REMOVED), text)
    return text


class Pseudonyms:
    """Name -> pseudonym, one to one; a name is the same name in capitals.

    key      of the codes
    numbered kind -> name -> its number; what is there stays
    coded    name -> kind, of those that have codes and were met
    common   names that say nothing, in lower case
    ours     words of the program that stay in any text: codes, of which a part may be a name
    position tells positions, which are no names wherever they stand: rows name what a `consumer` has, too
    """

    def __init__(
        self,
        key: bytes,
        numbered: Mapping[str, Mapping[str, int]] | None = None,
        common: Iterable[str] = (),
        coded: Mapping[str, str] | None = None,
        position: Callable[[str], object] = lambda text: None,
        ours: Iterable[str] = (),
    ) -> None:
        self.ours = frozenset(ours)
        self.key, self.common, self.position = key, frozenset(common), position
        self.numbered: dict[str, dict[str, int]] = {kind: dict(names) for kind, names in (numbered or {}).items()}
        self.coded: dict[str, str] = dict(coded or {})
        self._begins: dict[str, list[str]] | None = None
        self._names: dict[str, str] | None = None

    # --- what is a name

    def learn(self, kind: str, names: Iterable[str]) -> None:
        """Names of this kind; new ones are numbered in their natural order, s2 before s10."""
        # What is known already stays what it is, also where it is called something else now.
        new = {fold(name) for name in names if not self.position(name)} - self.common - {""} - self._all()
        if kind in CODED:
            self.coded |= dict.fromkeys(new, kind)
        else:
            mine = self.numbered.setdefault(kind, {})
            taken, known = set(mine.values()), self._all() | new
            for name in sorted(new, key=_in_order):
                if kind == ORIGIN and name.isdecimal():
                    continue
                number = max(taken, default=0) + 1
                while f"{kind}-{number}" in known:  # somebody has named a server so
                    number += 1
                mine[name] = number
                taken.add(number)
        if new:
            self._begins = self._names = None

    def _all(self) -> set[str]:
        return {name for names in self.numbered.values() for name in names} | self.coded.keys()

    def names(self) -> dict[str, str]:
        """Every name -> its pseudonym."""
        if self._names is None:
            self._names = {name: self._coded(kind, name) for name, kind in self.coded.items()}
            for kind in reversed(KINDS):
                self._names |= {name: f"{kind}-{number}" for name, number in self.numbered.get(kind, {}).items()}
        return self._names

    def _coded(self, kind: str, name: str) -> str:
        digest = hmac.digest(self.key, fold(name).encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{kind}-{base64.b32encode(digest).decode().lower()[:10]}"

    def learn_from(self, value: Any, kind: str = "") -> None:
        """The names in data: under the keys that hold names, and by the patterns in any text."""
        found: dict[str, set[str]] = {}
        for of, name in self._seen(value, kind):
            found.setdefault(of, set()).add(name)
        for of in KINDS:
            self.learn(of, found.get(of, ()))

    def _seen(self, value: Any, kind: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, Mapping):
            for key, one in value.items():
                yield from self._seen(one, BY_KEY.get(key, ""))
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from self._seen(one, kind)
        elif isinstance(value, str) and kind not in (KEPT, DROPPED):
            text = _plain(value)
            if kind == TARGET:
                yield from (self._kind_of(attribute, part) for attribute, part in parts_of(text))
            elif kind and not re.fullmatch(rf"{_HOST}:[0-9]+", text):
                # Rows of evidence hold several servers in one text.
                yield from ((kind, one) for one in (text.split(", ") if kind == SERVER else [text]))
            for of, pattern in _PATTERNS:
                yield from ((of, found[1]) for found in pattern.finditer(text))
            for found in _IN_TEXT.finditer(text):
                yield from (self._kind_of(attribute, part) for attribute, part in parts_of(found[0]))

    def _kind_of(self, attribute: str, part: str) -> tuple[str, str]:
        kind = _NAMED_BY.get(attribute.lower(), ENTRY)
        return kind, part

    # --- replacing

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name; one that is not known yet is of this kind."""
        if fold(name) in self.common or not name.strip() or self.position(name):
            return name
        if fold(name) not in self.names():
            if kind in CODED:
                return self._coded(kind, name)
            self.learn(kind, [name])
        return self.names().get(fold(name)) or name

    def target(self, text: str) -> str:
        """The name of an entry: each part of it by its pseudonym."""
        shown = []
        for part in _split(_plain(text), ","):
            pairs = []
            for pair in _split(part, "+"):
                attribute, sign, name = pair.strip().partition("=")
                if not sign or not re.fullmatch(_ATTRIBUTE, attribute):
                    pairs.append(self._coded(ENTRY, pair))
                elif _ALREADY.fullmatch(name) or fold(name) in self.common or not name:
                    pairs.append(f"{attribute}={name}")
                else:
                    kind, _ = self._kind_of(attribute, name)
                    pairs.append(f"{attribute}={self.of(kind, name)}")
            shown.append("+".join(pairs))
        return ",".join(shown)

    def text(self, text: str) -> str:
        """A text with every known name replaced, the longest first, on the borders of words."""
        if not text:
            return text
        flat = self._replaced(_plain(text))
        flat = _IN_TEXT.sub(lambda found: self.target(found[0]), flat)  # numbers and letters are names there
        return _PORT.sub(lambda found: f"{found[0][: -len(found[1])]}{self.of(PORT, found[1])}", flat)

    def survivors(self, text: str) -> list[str]:
        """The known names that a text still holds, pseudonyms left aside."""
        left = _ALREADY.sub(" \0 ", _plain(text))
        return [left[begin:end] for begin, end, shown in self._found(left) if shown != left[begin:end]]

    def _replaced(self, text: str) -> str:
        shown, done = [], 0
        for begin, end, instead in self._found(text):
            shown += [text[done:begin], instead]
            done = end
        return "".join([*shown, text[done:]])

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where known names stand, and what stands for each; a word of ours stands for itself.

        By the words that names begin with: one expression with ten thousand names in it takes seconds for a page.
        """
        low, done, names = _small(text), 0, self.names()
        begins = self._by_first_word()
        for word in _WORDS.finditer(low):
            begin = word.start()
            for name in begins.get(word[0], ()) if begin >= done else ():
                end = begin + len(name)
                if not low.startswith(name, begin) or (_ONE.match(name[-1]) and _ONE.match(low, end)):
                    continue
                ours = text[begin:end] in self.ours
                if ours or (name in names and speaks(name)):
                    yield begin, end, text[begin:end] if ours else names[name]
                    done = end
                    break

    def _by_first_word(self) -> dict[str, list[str]]:
        if self._begins is None:
            self._begins = {}
            ports = self.numbered.get(PORT, {})
            spoken = {name for name in self.names() if speaks(name) and name not in ports} | set(map(_small, self.ours))
            for name in sorted(spoken, key=lambda one: (-len(one), one)):
                first = _WORDS.match(name)
                assert first, "no name is empty"
                self._begins.setdefault(first[0], []).append(name)
        return self._begins

    # --- data

    def redacted(self, value: Any, kind: str = "") -> Any:
        """The data without names; learn from it first."""
        if isinstance(value, Mapping):
            inside = KEPT if kind == KEPT else ""
            return {self._key(key): self.redacted(one, inside or BY_KEY.get(key, "")) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.redacted(one, kind) for one in value]
        if not isinstance(value, str):
            return value
        if kind == KEPT and _CLOSED.fullmatch(value):
            return value
        if kind == DROPPED:
            return LEFT_OUT if value.strip() else value
        if kind == TARGET:
            return self.target(value) if "=" in value else self.text(value)
        if kind in KINDS and fold(value) in self.names():
            return self.of(kind, value)
        return self.text(value)

    def _key(self, key: str) -> str:
        """Keys are words of the program, but for origins."""
        return self.of(ORIGIN, key) if fold(key) in self.numbered.get(ORIGIN, {}) else key

    def check(self, value: Any, where: str = "") -> None:
        """Raises Problem if a known name is anywhere in redacted data, but in the words of the program."""
        if isinstance(value, Mapping):
            for key, one in value.items():
                if key != "glossary":
                    self.check(one, f"{where}.{key}".lstrip("."))
        elif isinstance(value, (list, tuple)):
            for one in value:
                self.check(one, where)
        elif isinstance(value, str):
            ours = BY_KEY.get(where.rpartition(".")[2]) == KEPT and _CLOSED.fullmatch(value)
            if not ours and (left := self.survivors(value)):
                do = "this is a fault of the workbench; `--unredacted --reason TEXT` writes one with all names"
                raise Problem(f"the report is not written: {len(left)} names would be left in it", where, do)


def fold(name: str) -> str:
    """A name as it is compared: in small letters, but for those that are two letters then."""
    return _small(name.strip())


def _small(text: str) -> str:
    """As many letters as before."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(one if len(one := letter.lower()) == 1 else letter for letter in text)


def speaks(name: str) -> bool:
    """False for what is no name outside a field for names: one letter, a number like those of counts, a word of any sentence."""
    return len(name) > 1 and not (name.isdecimal() and len(name) <= 4) and name not in ORDINARY


def _in_order(name: str) -> list[tuple[int, str]]:
    """s2 before s10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"([0-9]+)", name)]


def _plain(text: str) -> str:
    """A name within a name, or in a URL, is written with escapes: `cn=dc\\3Dexample\\2Cdc\\3Dcom`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text)


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """Attribute and value of every part of an entry's name."""
    for part in _split(text, ","):
        for pair in _split(part, "+"):
            attribute, sign, name = pair.strip().partition("=")
            if sign and re.fullmatch(_ATTRIBUTE, attribute) and name.strip() and not _ALREADY.fullmatch(name):
                yield attribute, name.strip()
            elif not sign and pair.strip():
                yield "", pair.strip()


def _split(text: str, sign: str) -> list[str]:
    """At every such sign that is not escaped or quoted."""
    return [part for part in re.findall(rf'((?:\\.|"[^"]*"|[^\\{sign}])+|\\$)', text, re.DOTALL) if part]


def kept_pseudonyms(
    folder: Path,
    common: Iterable[str] = (),
    position: Callable[[str], object] = lambda text: None,
    ours: Iterable[str] = (),
) -> Pseudonyms:
    """The pseudonyms that a case keeps; fresh ones if it keeps none. Raises Problem if their file is damaged."""
    path = folder / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Pseudonyms(bytes.fromhex(found["key"]), found["numbered"], common, found["coded"], position, ours)
    except FileNotFoundError:
        return Pseudonyms(chance.token_bytes(32), None, common, None, position, ours)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        do = "bring it back, or remove it: then names get other pseudonyms than in earlier reports"
        raise Problem("the pseudonyms of the case cannot be read", printable(str(path)), do) from None


def keep(names: Pseudonyms, folder: Path) -> None:
    """Keep them in the case, for its owner only, with the names that they stand for.

    Raises Problem if another report has given away the same numbers meanwhile.
    """
    if (folder / NAME).exists():
        there = kept_pseudonyms(folder)
        same = all(
            names.numbered.get(kind, {}).get(one) == number
            for kind, some in there.numbered.items()
            for one, number in some.items()
        )
        if there.key != names.key or not same:
            raise Problem(
                "another report of this case was made meanwhile", printable(str(folder / NAME)), "start again"
            )
    back = {shown: name for name, shown in sorted(names.names().items(), key=lambda one: _in_order(one[1]))}
    kept = {"schema": 1, "key": names.key.hex(), "numbered": names.numbered, "coded": names.coded, "names": back}
    write_whole(folder / NAME, json.dumps(kept, indent=1) + "\n", private=True)
