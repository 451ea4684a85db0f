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
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from workbench.journal import write_whole
from workbench.model import REMOVED, Naming, Problem
from workbench.report.redaction_stopwords import ORDINARY
from workbench.safety import Secrets, printable
from workbench.text_table import one_cell

NAME = "pseudonyms.json"
_KEY = 32
"""Bytes of the key."""

SERVER, HOST, ADDRESS, PORT, LINK, USER = "server", "host", "address", "port", "link", "user"
DOMAIN, UNIT, ENTRY, FOLDER, CASE, SNAPSHOT = "domain", "unit", "entry", "folder", "case", "snapshot"
ORIGIN, MAIL, FILE = "origin", "mail", "file"
TARGET = "target"
"""The name of an entry, made of parts: each part has a pseudonym of its own, so that the structure stays readable."""
URL = "url"
"""An address: nothing of it stays but how it is reached. What its host may look like is not asked: it may be any text."""
DROPPED, KEPT = "dropped", "kept"
TIME = "time"
"""A time of ours: it stays as it is, if it is one."""
LEFT_OUT = "(left out)"

KINDS = (SERVER, LINK, HOST, ADDRESS, PORT, USER, DOMAIN, UNIT, ENTRY, FOLDER, CASE, SNAPSHOT, ORIGIN, MAIL, FILE)
"""The first of these that a name belongs to gives its pseudonym."""
CODED = frozenset({UNIT, ENTRY})

WHOLE = Naming(lambda target: [(ENTRY, target)] if target else [])
"""Of a system that does not say what its names look like: nothing within the name of a target is known."""


class Rule(NamedTuple):
    """One rule: what stands under this key of the data, or fits this pattern anywhere in a text, is of this kind.

    A key `servers.name` is the key `name` right below `servers`, and goes before `name` alone.
    """

    kind: str
    keys: tuple[str, ...] = ()
    pattern: str = ""
    why: str = ""


_WORD = r"[^\W_]"
_WORDS, _ONE = re.compile(rf"{_WORD}+|.", re.DOTALL), re.compile(_WORD)
"""Names stand on the borders of words, and underscores are borders; what is no letter or digit stands for itself."""
_NO_HOST = r"\s/:@\"'`<>(){}\[\],;|\\?#&"
_HOST = rf"(?!-|%2[Ff])[^{_NO_HOST}]{{0,254}}[^{_NO_HOST}.!]"
"""A host in a sentence, in letters of any kind, up to what can be no part of one; an escaped path to a socket is none."""
_URL = re.compile(r"(\w{1,30}://)(?:[^/]*@)?(\[[^\]/]*\]|[^/]*?)(?::([0-9]+))?(/.*)?", re.DOTALL)

RULES = (
    Rule(SERVER, ("server", "supplier", "consumer", "on", "made_on", "held_by", "suppliers", "takes_from", "means")),
    Rule(SERVER, ("servers", "shown_by", "servers.name")),
    Rule(SERVER, ("streams.source", "fleet.source", "logs.source", "lacks.source")),
    Rule(LINK, ("link", "links.name", "failing.name", "disabled.name"), why="named after servers, sites and customers"),
    Rule(HOST, ("host",)),
    Rule(HOST, pattern=rf"--(?:[a-z]+-)?host[= ]+({_HOST})"),
    Rule(HOST, pattern=rf"(?<!\w)\w{{1,30}}://(?:[^/@\n]{{0,256}}@)?({_HOST})", why="the host of a URL"),
    Rule(ADDRESS, pattern=r"(?<![\w.])(?<![Vv]ersion )(?<![Rr]elease )((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?!\w|\.[0-9])"),
    Rule(
        ADDRESS,
        pattern=r"(?<![\w:.])((?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*::)[0-9A-Fa-f:]{3,45})(?![\w:])",
    ),
    Rule(USER, ("user",)),
    Rule(MAIL, pattern=r"(?<![\w.+-])([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8})"),
    Rule(URL, ("url",), why="of an address that is in no sentence all is known: it is understood, or left out"),
    Rule(TARGET, ("target", "suffix", "login", "rename"), why="names of entries are names of people"),
    Rule(TARGET, ("subject", "issuer")),
    Rule(CASE, ("case", "case.name"), why="people name cases after customers"),
    Rule(SNAPSHOT, ("snapshot", "snapshots")),
    Rule(FILE, ("file",), why="people name files after servers, sites and customers"),
    Rule(FOLDER, pattern=r"(?<![\w/:.<])((?:/[\w.@+~-]+){2,}/?)", why="paths tell users, customers and instances"),
    Rule(ORIGIN, ("origin",), why="a number stays, drawn by lot or not; where origins are names, they are names"),
    Rule(DROPPED, ("text", "sends", "undo_sends", "value", "body", "raw", "excerpt"), why="free text may name anybody"),
    Rule(KEPT, ("verdict", "severity", "code", "kind", "format", "sha256", "decision", "does"), why="our own words"),
    Rule(KEPT, ("odd.why", "odd.outcome", "others.outcome", "lacks.what")),
    Rule(KEPT, ("unknown.why", "verification.why", "plan.standing_state", "plan.of")),
    Rule(TIME, ("at", "first_at", "last_at", "from_at", "to_at", "made_at", "anchor_at", "oldest")),
    Rule(TIME, ("after", "by", "timeline.from", "timeline.to"), why="people name cases and snapshots by days"),
)
"""What is not said here is text: every known name in it is replaced."""

BY_KEY: Mapping[str, str] = {key: rule.kind for rule in RULES for key in rule.keys}
_PATTERNS = [(rule.kind, re.compile(rule.pattern)) for rule in RULES if rule.pattern]
_DRAWN = re.compile(r"[0-9]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # by lot: that names nobody
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_MOMENT = rf"{_DAY}[ T]{_CLOCK}(?: ?UTC|Z|[+-][0-9]{{2}}:?[0-9]{{2}})?"
_TIME = re.compile(_MOMENT)
_TIMES = re.compile(rf"(?<![0-9])(?:{_MOMENT}|{_DAY}|{_CLOCK})(?![0-9])")
_CLOSED = re.compile(r"[\w .:()/+-]{0,64}")
"""What may stand where words of the program are kept."""

_QUOTED = frozenset("'\"\\")
_ESCAPED = re.compile(r"\\(3[dD]|2[cC]|2[bB])|%(3[dD]|2[cC]|2[bB])")
_ALREADY = re.compile(rf"(?<!{_WORD})(?:{'|'.join(KINDS)})-(?:[a-z2-7]{{10}}|[0-9]+)(?:\.[a-z_]+-[0-9]+)?(?!{_WORD})")
_PORT = re.compile(r"(?:(?:host|server|address)-[0-9]+|localhost|\])(?<!\w://):([0-9]{2,5})(?!\w)")

_PASSWORDS = (
    re.compile(r"(?<=://)[^/\s:@]{0,256}:\S{0,256}(?=@)"),  # a password may have a slash or a further @ in it
    re.compile(
        r"(?<![\w-])(?:-w|--?[\w-]*(?:password|passwd|secret|token|credentials?|pw))(?:=| +)"
        r"(?!-|PASSWORD(?!\S))('[^']*'|\"[^\"]*\"|\S+)"  # PASSWORD is what our own commands have in its place
    ),
    re.compile(
        r"(?i)(?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|credentials?)[\"']?\s*[:=]\s*('[^']*'|\"[^\"]*\"|[^\s,;]+)"
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
    naming   what names look like in the system
    ours     words and sentences of the program that stay in any text: codes, of which a part may be a name
    position tells positions, which are no names wherever they stand: rows name what a `consumer` has, too
    files    name of a file -> its pseudonym: of which server it is, what it is, and the how manieth (`server-1.access_log-2`)
    """

    def __init__(
        self,
        key: bytes,
        numbered: Mapping[str, Mapping[str, int]] | None = None,
        naming: Naming | None = None,
        coded: Mapping[str, str] | None = None,
        position: Callable[[str], object] = lambda text: None,
        ours: Iterable[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.ours = frozenset(ours)
        self._vocabulary = {word for one in self.ours for word in re.findall(rf"{_WORD}+", one.lower())}
        self.naming = naming or WHOLE
        self.key, self.common, self.position = key, self.naming.common, position
        self._patterns = [*_PATTERNS, *self.naming.patterns]
        self.numbered: dict[str, dict[str, int]] = {kind: dict(names) for kind, names in (numbered or {}).items()}
        self.coded: dict[str, str] = dict(coded or {})
        self.files: dict[str, str] = dict(files or {})
        self._spellings: dict[str, str] = {}
        self._begins: dict[str, list[str]] | None = None
        self._names: dict[str, str] | None = None
        self._quiet: re.Pattern[str] | None = None

    # --- what is a name

    def learn(self, kind: str, names: Iterable[str]) -> None:
        """Names of this kind; new ones are numbered in their natural order, s2 before s10, snapshots in the order given."""
        given = [name for name in names if not self.position(name)]
        names = [_bare(name) if kind == HOST else name for name in given]
        for name, spelled in zip(names, given, strict=True):
            self._learn_spellings(name)
            self._spell(spelled, name)
        # What is known already stays what it is, also where it is called something else now.
        order = list(dict.fromkeys(map(fold, names)))
        new = {*order} - self.common - {""} - self._all()
        if kind in CODED:
            self.coded |= dict.fromkeys(new, kind)
        else:
            mine = self.numbered.setdefault(kind, {})
            taken, known = set(mine.values()), self._all() | new
            for name in filter(new.__contains__, order if kind == SNAPSHOT else sorted(new, key=_in_order)):
                if kind == ORIGIN and _DRAWN.fullmatch(name):
                    continue
                number = max(taken, default=0) + 1
                while f"{kind}-{number}" in known:  # somebody has named a server so
                    number += 1
                mine[name] = number
                taken.add(number)
        if new:
            self._begins = self._names = self._quiet = None

    def learn_file(self, name: str, server: str, kind: str) -> None:
        """The name of a file of this server (empty: of none that is known), which holds what the kind says."""
        if not server:
            self.learn(FILE, [name])
        elif fold(name) not in self.files:
            stem = f"{self.of(SERVER, server)}.{re.sub('[^a-z]+', '_', kind.lower()).strip('_') or FILE}"
            taken = [one.rpartition("-") for one in self.files.values()]
            number = max((int(last) for first, _, last in taken if first == stem), default=0) + 1
            self.files[fold(name)] = f"{stem}-{number}"
            self._begins = self._names = None
        self._learn_spellings(name)
        self._spell(name.removesuffix(".gz"), name)

    def _learn_spellings(self, name: str) -> None:
        """How a name may be written in a text that somebody made of it: with escapes or quotes for some of its letters."""
        if name.isascii() and name.isprintable() and not _QUOTED & {*name}:
            return
        self._spell(name.lower(), name)  # which may be more letters
        for way in (printable, one_cell, json.dumps, partial(json.dumps, ensure_ascii=False), shlex.quote):
            spelled = str(way(name))
            self._spell(spelled[1:-1] if way is not printable and way is not one_cell else spelled, name)

    def _spell(self, spelling: str, name: str) -> None:
        spelling = fold(spelling)
        if spelling and spelling != fold(name) and self._spellings.get(spelling) is None:
            self._spellings[spelling] = fold(name)
            self._begins = None

    def _all(self) -> set[str]:
        return {name for names in self.numbered.values() for name in names} | self.coded.keys() | self.files.keys()

    def names(self) -> dict[str, str]:
        """Every name -> its pseudonym."""
        if self._names is None:
            self._names = {name: self._coded(kind, name) for name, kind in self.coded.items()}
            for kind in reversed(KINDS):
                self._names |= {name: f"{kind}-{number}" for name, number in self.numbered.get(kind, {}).items()}
            self._names = self.files | self._names
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

    def _seen(self, value: Any, kind: str, within: str = "") -> Iterator[tuple[str, str]]:
        if isinstance(value, Mapping):
            for key, one in value.items():
                if self._is_target(key, one, within):
                    yield from self.parts_of(key)
                yield from self._seen(one, _kind_under(within, key), key)
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from self._seen(one, kind, within)
        elif isinstance(value, str) and kind == URL:
            yield from _names_in(_plain(value))
        elif isinstance(value, str) and kind not in (KEPT, DROPPED) and not _ours(kind, value):
            text = _plain(value)
            if kind == TARGET:
                yield from self.parts_of(text)
            elif kind in KINDS and (place := re.fullmatch(r"([^\s/:@]+):[0-9]+", text)):
                yield HOST, place[1]
            elif kind in KINDS:
                # Rows of evidence hold several servers in one text.
                yield from ((kind, one) for one in (text.split(", ") if kind == SERVER else [text]))
            for of, pattern in self._patterns:
                yield from ((of, found[1]) for found in pattern.finditer(text))
            for found in self.naming.in_text.finditer(text) if self.naming.in_text else ():
                yield from self.parts_of(self._cut(found[0])[0])

    def parts_of(self, target: str) -> Iterator[tuple[str, str]]:
        """Kind and name of every named part of a target's name."""
        for kind, name in self.naming.parts(target):
            if kind and name.strip() and not _ALREADY.fullmatch(name):
                yield kind, name.strip()

    # --- replacing

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name; one that is not known yet is of this kind."""
        name = _bare(name) if kind == HOST else name
        if fold(name) in self.common or not name.strip() or self.position(name):
            return name
        if fold(name) not in self.names():
            if kind in CODED:
                return self._coded(kind, name)
            self.learn(kind, [name])
        return self.names().get(fold(name)) or name

    def target(self, text: str) -> str:
        """The name of a target: each named part of it by its pseudonym; what has none is a text like others."""
        pieces = list(self.naming.parts(_plain(text)))
        if not any(kind for kind, _ in pieces):
            return self.text(text)
        return "".join(self.of(kind, name) if kind and not _ALREADY.fullmatch(name) else name for kind, name in pieces)

    def url(self, text: str) -> str:
        """An address with pseudonyms for its host and port; what is not understood is left out, never kept."""
        found = _URL.fullmatch(_plain(text))
        kind, host = _host_of(found[2]) if found else (HOST, "")
        shown = self.of(kind, host) if host else ""
        if (
            not found or not shown or (shown == _bare(host) and fold(shown) not in self.common)
        ):  # it looks like a position
            return LEFT_OUT if text.strip() else text
        port = f":{self.of(PORT, found[3])}" if found[3] else ""
        return f"{found[1]}[{shown}]{port}" if kind == ADDRESS else f"{found[1]}{shown}{port}"

    def text(self, text: str) -> str:
        """A text with every known name replaced, the longest first, on the borders of words."""
        if not text:
            return text
        flat = self._places().sub(lambda found: self.of(HOST, found[0]), self._replaced(_plain(text)))
        if self.naming.in_text:  # numbers and letters are names there
            flat = self.naming.in_text.sub(self._target_in_text, flat)
        return _PORT.sub(lambda found: f"{found[0][: -len(found[1])]}{self.of(PORT, found[1])}", flat)

    def _target_in_text(self, found: re.Match[str]) -> str:
        name, rest = self._cut(found[0])
        return f"{self.target(name)}{rest}"

    def _cut(self, found: str) -> tuple[str, str]:
        """The name of a target that was found in a sentence, and the words behind it: a name ends where a sentence goes on.

        Of words that are in no list it is not known whether they are the end of the name: they are taken for it.
        """
        (_, last), begin = [*self.naming.parts(found)][-1], 0
        words = list(re.finditer(r"\S+", last))
        ends = [last[: one.end()] for one in words]
        whole = max((one for one in ends if fold(one) in self.common), key=len, default="")
        if not whole and words:
            whole = ends[0]
            for word, upto in zip(words[1:], ends[1:], strict=True):
                known = _ALREADY.fullmatch(whole[begin:]) or _ALREADY.fullmatch(word[0])
                if known or fold(word[0]) in ORDINARY or fold(word[0]) in self.naming.ordinary:
                    break
                whole, begin = upto, word.start()
        end = len(found) - len(last) + len(whole)
        return found[:end], found[end:]

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
        times = [found.span() for found in _TIMES.finditer(text)]
        for word in _WORDS.finditer(low):
            begin = word.start()
            for name in begins.get(word[0], ()) if begin >= done else ():
                end = begin + len(name)
                if not low.startswith(name, begin) or (_ONE.match(name[-1]) and _ONE.match(low, end)):
                    continue
                if any(first <= begin and end <= last and end - begin < last - first for first, last in times):
                    continue  # a snapshot may be called by a day, and a time of that day tells nothing of it
                meant = name if name in names else self._spellings.get(name, name)
                ours = text[begin:end] in self.ours
                if ours or (meant in names and self._speaks(meant)):
                    yield begin, end, text[begin:end] if ours else names[meant]
                    done = end
                    break

    def _speaks(self, name: str) -> bool:
        """False for what is replaced only where a name stands; of entries, which may be called anything, also our own words."""
        ours = name in self.coded and name in self._vocabulary
        return speaks(name) and name not in self.naming.ordinary and not ours

    def _by_first_word(self) -> dict[str, list[str]]:
        if self._begins is None:
            self._begins = {}
            ports = self.numbered.get(PORT, {})
            names = self.names()
            spoken = {name for name in names if self._speaks(name) and name not in ports} | set(map(_small, self.ours))
            spoken |= {way for way, name in self._spellings.items() if name in names and self._speaks(name)}
            for name in sorted(spoken, key=lambda one: (-len(one), one)):
                first = _WORDS.match(name)
                assert first, "no name is empty"
                self._begins.setdefault(first[0], []).append(name)
        return self._begins

    def _places(self) -> re.Pattern[str]:
        """Where hosts stand that are called like a word of any sentence: in a URL, or in front of a port."""
        if self._quiet is None:
            hosts = {one for kind in (SERVER, HOST) for one in self.numbered.get(kind, {}) if not self._speaks(one)}
            words = "|".join(map(re.escape, sorted({one for one in hosts if not one.isdecimal()}))) or r"(?!)"
            places = rf"(?<=://)(?:{words})(?![^/:\s])|(?<![\w.%-])(?:{words})(?=:[0-9]{{2,5}}(?!\w))"
            self._quiet = re.compile(places, re.IGNORECASE)
        return self._quiet

    # --- data

    def redacted(self, value: Any, kind: str = "", within: str = "") -> Any:
        """The data without names; learn from it first."""
        if isinstance(value, Mapping):
            return {
                self.target(key) if self._is_target(key, one, within) else self._key(key): self.redacted(
                    one, _kind_under(within, key), key
                )
                for key, one in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.redacted(one, kind, within) for one in value]
        if not isinstance(value, str):
            return value
        if _ours(kind, value):
            return value
        if kind == DROPPED:
            return LEFT_OUT if value.strip() else value
        if kind == TARGET:
            return self.target(value)
        if kind == URL:
            return self.url(value)
        if kind == FILE and fold(value) in self.files:
            return self.files[fold(value)]
        if kind in KINDS and fold(value) in self.names():
            return self.of(kind, value)
        return self.text(value)

    def _is_target(self, key: str, value: Any, within: str) -> bool:
        """True for the key of what is counted by target: below `tables`, and below `rows`, there perhaps by position."""
        counted = within in ("tables", "rows") or (bool(self.position(within)) and not _kind_under("", within))
        return counted and isinstance(value, Mapping) and not self.position(key)

    def _key(self, key: str) -> str:
        """Keys are words of the program, but for origins, and targets of which something is counted."""
        return self.of(ORIGIN, key) if fold(key) in self.numbered.get(ORIGIN, {}) else key

    def check(self, value: Any, kind: str = "", within: str = "", where: str = "") -> None:
        """Raises Problem if a known name is anywhere in redacted data, but in the words of the program."""
        if isinstance(value, Mapping):
            for key, one in value.items():
                self.check(one, _kind_under(within, key), key, f"{where}.{key}".lstrip("."))
        elif isinstance(value, (list, tuple)):
            for one in value:
                self.check(one, kind, within, where)
        elif isinstance(value, str) and not _ours(kind, value) and (left := self.survivors(value)):
            do = "this is a fault of the workbench; `--unredacted --reason TEXT` writes one with all names"
            raise Problem(f"the report is not written: {len(left)} names would be left in it", where, do)


def _kind_under(within: str, key: str) -> str:
    """What stands under this key of a mapping which stands under the key `within`."""
    return BY_KEY.get(f"{within}.{key}") or BY_KEY.get(key, "")


def _ours(kind: str, value: str) -> bool:
    """True for words and times of the program. What stands in their place and is neither may name anybody."""
    return bool(_CLOSED.fullmatch(value) if kind == KEPT else kind == TIME and _TIME.fullmatch(value))


def _bare(host: str) -> str:
    """`ldap1.example.com.` is the host `ldap1.example.com`."""
    return host.strip().rstrip(".") or host


def _host_of(authority: str) -> tuple[str, str]:
    """Kind and name of the host that stands in a URL; empty for what holds no letter and no number."""
    kind, host = (ADDRESS, authority[1:-1]) if authority.startswith("[") else (HOST, authority)
    return kind, host if re.search(_WORD, host) else ""


def _names_in(url: str) -> Iterator[tuple[str, str]]:
    """The host of an address; and all behind `://`, if that is more than a host and a port: findings show it."""
    if found := _URL.fullmatch(url):
        address, path = url.partition("://")[2].strip("/"), (found[4] or "").strip("/")
        names = [_host_of(found[2]), *([(HOST, address)] if path else [])]
        yield from ((kind, name) for kind, name in names if name)


def fold(name: str) -> str:
    """A name as it is compared: in small letters, but for those that are two letters then."""
    return _small(name.strip())


def _small(text: str) -> str:
    """As many letters as before; which of two small sigmas one becomes would depend on what stands behind it."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(one if len(one := letter.lower()) == 1 else letter for letter in text)
    return low.replace("ς", "σ")


def speaks(name: str) -> bool:
    """False for what is no name outside a field for names: one letter, a number like those of counts, a word of any sentence."""
    return len(name) > 1 and not (name.isdecimal() and len(name) <= 4) and name not in ORDINARY


def _in_order(name: str) -> list[tuple[int, str]]:
    """s2 before s10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"([0-9]+)", name)]


def _plain(text: str) -> str:
    """A name within a name, or in a URL, is written with escapes: `cn=dc\\3Dexample\\2Cdc\\3Dcom`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text)


def kept_pseudonyms(
    folder: Path,
    naming: Naming | None = None,
    position: Callable[[str], object] = lambda text: None,
    ours: Iterable[str] = (),
) -> Pseudonyms:
    """The pseudonyms that a case keeps; fresh ones if it keeps none. Raises Problem if their file is damaged."""
    path = folder / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        key, numbered, coded = bytes.fromhex(found["key"]), found["numbered"], found["coded"]
        files = found.get("files", {})
        damage = _damage(key, numbered, coded, files)
    except FileNotFoundError:
        return Pseudonyms(chance.token_bytes(_KEY), None, naming, None, position, ours)
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _unreadable(path, "it is not what this program wrote") from None
    if damage:
        raise _unreadable(path, damage)
    return Pseudonyms(key, numbered, naming, coded, position, ours, files)


def _damage(
    key: bytes, numbered: Mapping[str, Mapping[str, int]], coded: Mapping[str, str], files: Mapping[str, str]
) -> str:
    """What is wrong with kept pseudonyms: with two names under one of them a report would say what is not so."""
    if len(key) != _KEY:
        return "its key is cut"
    if unknown := [kind for kind in (*numbered, *coded.values()) if kind not in KINDS]:
        return f"it has a kind that there is none of: {printable(str(unknown[0]))[:40]}"
    if not all(map(fold, [name for names in (*numbered.values(), coded, files) for name in names])):
        return "a name in it is empty"
    for kind, names in numbered.items():
        numbers = list(names.values())
        if any(type(number) is not int or number < 1 for number in numbers):
            return f"a number of kind {kind} is none"
        if len({*numbers}) < len(numbers):
            return f"two names of kind {kind} have one number"
    if any(not isinstance(one, str) or not _ALREADY.fullmatch(one) for one in files.values()):
        return "what stands for a file is no pseudonym"
    return "two files have one pseudonym" if len({*files.values()}) < len(files) else ""


def _unreadable(path: Path, why: str) -> Problem:
    do = "bring it back, or remove it: then names get other pseudonyms than in earlier reports"
    return Problem(f"the pseudonyms of the case cannot be read: {why}", printable(str(path)), do)


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
        if there.key != names.key or not same or not there.files.items() <= names.files.items():
            raise Problem(
                "another report of this case was made meanwhile", printable(str(folder / NAME)), "start again"
            )
    back = {shown: name for name, shown in sorted(names.names().items(), key=lambda one: _in_order(one[1]))}
    kept = {"schema": 1, "key": names.key.hex(), "numbered": names.numbered, "coded": names.coded}
    kept |= {"files": names.files, "names": back}
    write_whole(folder / NAME, json.dumps(kept, indent=1) + "\n", private=True)
