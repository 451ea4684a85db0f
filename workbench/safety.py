"""All distrust lives here: what may not leave a parser, and how text of unknown origin is shown.

Text from logs is hostile and may hold secrets. A parser drops secrets before its tables exist; whatever is printed,
stored as an excerpt or raised in an error goes through `excerpt` or `Secrets.redact` first.
"""

from __future__ import annotations

import binascii
import re
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import yaml

from workbench.model import REMOVED, Problem

_REMOVED = REMOVED.encode()

# `{SSHA}`, `{PBKDF2-SHA512}`, `{AES-TUhNR0==}`: the schemes are listed, because `{replica 1 ldap://...}`,
# `{replicageneration}` and `{description}` must survive.
_SCHEME = (
    r"\{(?:s?sha|s?md[245]|crypt|pbkdf2|aes|3?des|ns-mta-md5|gost|argon2|bcrypt|scrypt|yescrypt|x-fixed|x-nthash"
    r"|nthash|lanman|rc4|base64)(?:sha|crypt|id?|d)?[0-9]*(?:[._-][\w.+/=\\-]*)?\}"
)
_CLEAR = r"\{clear(?:text)?\}"
_CRYPT = r"\$(?:1|2[abxy]?|5|6|7|y|gy|argon2(?:id?|d)|pbkdf2[\w-]*|scrypt)\$"
_VALUE = r"[^\s\"'<>,;)\]]"
_HASHES = (
    (re.compile(rf"{_SCHEME}{_VALUE}*".encode(), re.IGNORECASE), b"{"),
    (re.compile(rf"{_CLEAR}[^\n]*".encode(), re.IGNORECASE), b"{"),
    (re.compile(rf"{_CRYPT}{_VALUE}{{8,}}".encode()), b"$"),
)

# Base64 of nine printable ASCII letters: four letters of base64 for each three. A hash or an attribute's name with its
# value always holds such a stretch; words, hex digits and base64 of anything but text seldom do, and need no unpacking.
_BASE64 = "[A-Za-z0-9+/]"
_THREE = f"[I-Za-f][C-HS-Xi-nyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589]{_BASE64}"
_NINE = _THREE * 3
_READABLE_RUN = re.compile(rf"(?:{_BASE64}{{4}})*?{_NINE}".encode())
_SHORTEST_RUN = 16
_RUNS = bytes(ord("A") if re.match(_BASE64, chr(byte)) else ord(" ") for byte in range(256))
_DEPTH = 2

_LONG_RUN = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)

# Behind the name of a secret attribute: its options, then the value up to the end of the line. Where it is only named,
# nothing follows but quotes and brackets, or more of an access rule: `(targetattr != "userPassword || cn")(version 3.0;`.
_ONLY_NAMED = r"""[ \t\r"'\\()\[\]{}<>,.;-]*+(?:\n|\Z)|["'\\]*+[ \t]*+(?:\)|\|\|)"""
_BEHIND_NAME = re.compile(rf"((?:;[\w-]+)*+)((?!\w|-\w|{_ONLY_NAMED})[^\n]*(?:\n\t[^\n]*)*)?".encode())


def _grouped(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The names in groups, each under a part that its names share: a text without the part holds none of them."""
    groups, left = [], set(names)
    while left:
        fours = Counter(four for name in left for four in _parts(name, min(4, len(name))))
        four = min(fours, key=lambda four: (-fours[four], four))
        group = sorted(name for name in left if four in name)
        # The longer what is looked for, the faster is the search.
        lengths = range(len(four), len(min(group, key=len)) + 1)
        common = (set.intersection(*(_parts(name, length) for name in group)) for length in lengths)
        groups.append((max((min(parts) for parts in common if parts), key=len), group))
        left.difference_update(group)
    return groups


def _parts(name: str, length: int) -> set[str]:
    return {name[at : at + length] for at in range(len(name) - length + 1)}


class Secrets:
    """The one set of rules for what is a secret, in every text of every format of one system.

    1. What stands behind the name of a secret attribute, up to the end of its line: `userPassword: x`,
       `userpassword;lang-et:: eA==`, `cn=a,userPassword=x,dc=b`, `{"userPassword": ["x"]}`, `userPassword value x`. The
       name may stand anywhere, also within the value of another attribute. The name itself stays, and so does a line
       that names the attribute and no value: `replace: userPassword`, `attrs="cn userPassword"`, an access rule. In
       doubt the rest of the line goes: `userPassword is not allowed` loses three words. A longer word is another
       attribute (`nsslapd-rootpwstoragescheme` is not `nsslapd-rootpw`).
    2. What looks like a password hash, wherever it stands: `{SSHA}...`, `{PBKDF2-SHA512}...`, `$6$...`; behind
       `{CLEAR}`, which may hold blanks, all up to the end of the line.
    3. A run of base64 letters that stands for a text with one of the first two in it, or with another such run.

    Folded lines (a newline and a blank) count as one line; a text that loses something comes back unfolded.

    >>> Secrets(["userPassword"]).redact("userPassword: hunter2 and {SSHA}abc")
    'userPassword: [secret removed]'
    """

    def __init__(self, attributes: Iterable[str]) -> None:
        self.attributes = frozenset(name.lower() for name in attributes)
        self._groups = _grouped(self.attributes)

    def is_secret(self, attribute: str) -> bool:
        """True for an attribute, with or without options, whose values must not be kept."""
        return attribute.split(";", 1)[0].strip().lower() in self.attributes

    def suspect(self, before_run: str = "^|[^A-Za-z0-9+/]") -> str:
        """An expression for RE2, to choose among many texts: it matches all without folds that `redact` changes, few others.

        `before_run` is what may stand before a run of base64 letters.
        """
        names = [re.escape(name) for name in sorted(self.attributes)]
        named = [rf"(?:{'|'.join(names)})(?:[^\w\n-]|-[^\w\n])"] if names else []
        readable_run = rf"(?:{before_run})(?:{_BASE64}{{4}})*{_NINE}"
        return f"(?i:{'|'.join([*named, _SCHEME, _CLEAR])})|{_CRYPT}|{readable_run}"

    def redact(self, text: str) -> str:
        """The text without secrets."""
        flat = text.replace("\n ", "")
        # As bytes: a letter and its lower case are of one length, and `\w` means what it means for RE2.
        raw = flat.encode("utf-8", "surrogatepass")
        clean = self._redact(raw, _DEPTH)
        return text if clean == raw else clean.decode("utf-8", "surrogatepass")

    def holds_one(self, text: str) -> bool:
        """True if `redact` would change the text."""
        return self.redact(text) != text

    def _redact(self, text: bytes, depth: int) -> bytes:
        # Plain searches: Python tries thirty alternatives of one expression one by one at every letter.
        lower = text.lower().decode("latin-1")  # a text is searched faster than bytes
        for mark, names in self._groups:
            if mark in lower:
                for name in names:
                    if name in lower:
                        text = _without_values(text, lower, name)
                        lower = text.lower().decode("latin-1")
        for shape, sign in _HASHES:
            if sign in text:
                text = shape.sub(_REMOVED, text)
        return self._without_runs(text, depth) if depth else text

    def _without_runs(self, text: bytes, depth: int) -> bytes:
        runs = text.translate(_RUNS)
        kept, done, at = [], 0, runs.find(b"A" * _SHORTEST_RUN)
        while at >= 0:
            end = runs.find(b" ", at)
            end = len(text) if end < 0 else end
            if _READABLE_RUN.match(text, at, end) and self._hides_one(text[at:end], depth):
                kept += [text[done:at], _REMOVED]
                padding = text[end : end + 2]
                done = end + len(padding) - len(padding.lstrip(b"="))
            at = runs.find(b"A" * _SHORTEST_RUN, end)
        return b"".join([*kept, text[done:]]) if kept else text

    def _hides_one(self, run: bytes, depth: int) -> bool:
        run = run[: len(run) - (len(run) % 4 == 1)]  # one letter alone is less than a byte: it was cut
        text = binascii.a2b_base64(run + b"=" * (-len(run) % 4)).replace(b"\n ", b"")
        return self._redact(text, depth - 1) != text


def _without_values(text: bytes, lower: str, name: str) -> bytes:
    kept, done, at = [], 0, lower.find(name)
    own = REMOVED.find(name)
    while at >= 0:
        # What stands for a value that was removed may hold the name itself: nothing is behind that.
        if 0 <= own <= at and text.startswith(_REMOVED, at - own):
            at = lower.find(name, at - own + len(_REMOVED))
            continue
        found = _BEHIND_NAME.match(text, at + len(name))
        assert found, "every part of the expression is optional"
        end = found.end()  # options are not looked at again: there may be megabytes of them
        if found[2]:
            kept += [text[done : found.end(1)], b": ", _REMOVED]
            done = end
        at = lower.find(name, end)
    return b"".join([*kept, text[done:]]) if kept else text


def excerpt(data: bytes | str, secrets: Secrets, length: int = 120) -> str:
    """The first characters of unreadable input, harmless to print.

    Stricter than `Secrets.redact`, because damage may have hit the very letter that gives a secret away. All goes that
    follows the name of a secret attribute, whatever stands behind it, or a base64 sign (`::`); so does any long run of
    base64 letters, which may be half of something packed twice. An input that begins with the rest of such a name
    (`word: hunter2`: the file's beginning was cut off) is not shown at all.

    Control and direction-changing characters are shown as escapes.
    """
    text = data[: 8 * length].decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data[: 8 * length]
    text = re.sub(r"\r?\n ", "", text)  # a fold may lie inside the name or inside the secret
    lines = text.split("\n")
    if _begins_inside_name(lines[0], secrets):
        return REMOVED
    # With the beginning of its line: a value may stand before the name.
    named = next((at for at, line in enumerate(lines) if _names_one(line, secrets)), None)
    text = "\n".join(lines if named is None else [*lines[:named], REMOVED])
    text = re.sub(r"::.*", ":: ...", text, flags=re.DOTALL)
    text = secrets.redact(text)
    text = _LONG_RUN.sub(lambda m: m[0] if re.fullmatch(r"[0-9a-f-]+", m[0]) else "...", text)
    return printable(text.replace("\n", "\\n"))[:length]


def _names_one(line: str, secrets: Secrets) -> bool:
    lower = line.lower()
    return any(name in lower for name in secrets.attributes)


def _begins_inside_name(line: str, secrets: Secrets) -> bool:
    begin = re.match(r"([^\s:=;\"']*)([\s:=;\"'])", line)
    if not begin:
        return False
    rest, sign = begin[1].lower(), begin[2]
    if not rest:
        return sign in ":="
    return (not sign.isspace() or len(rest) > 2) and any(name.endswith(rest) for name in secrets.attributes)


def as_file_name(text: str) -> str:
    """A name from the data as a part of a file's name: it leads to no other folder.

    >>> as_file_name("save-../../s3")
    'save-..-..-s3'
    """
    return re.sub(r"[^\w.@-]", "-", text)


def printable(text: str) -> str:
    """Text for a terminal or a log: no control sequences, no characters that reorder the line."""
    return _CONTROL.sub(lambda m: _escaped(ord(m[0])), text)


def _escaped(letter: int) -> str:
    return f"\\x{letter:02x}" if letter < 0x100 else f"\\u{letter:04x}" if letter < 0x10000 else f"\\U{letter:08x}"


def defect_of(error: BaseException) -> str:
    """A sentence about an error that nobody expected. Its own words stay out: they may hold what was read."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in Path(frame.filename).parents]
    at = f", {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"an error that nobody expected ({type(error).__name__}{at}). It is one of the workbench: tell its makers"


_PACKAGE = Path(__file__).parent


class _StrictLoader(yaml.BaseLoader):
    """Scalars stay text (`0011`, `no`, `12:30:45` and all-digit ids are what the user wrote); no aliases, no duplicates."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=event.start_mark)
        if getattr(self.peek_event(), "tag", None):
            raise yaml.MarkedYAMLError(problem="tags are not allowed", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            if key.value in keys:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands here twice", problem_mark=key.start_mark
                )
            keys.add(key.value)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


def to_yaml(value: Any) -> str:
    """Lists, mappings and texts as YAML that `strict_yaml` reads back."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _StrictLoader.construct_mapping)


class _StrictTypedLoader(_StrictLoader):
    """As above, but what stands without quotes for null, true, false or a number of at most 15 digits is that.

    Longer numbers stay text, for a CSN without a letter looks like one (`66000001000000010000`), and so do `0011`, `1.5`,
    `1e5`, `no` and all keys.
    """

    _MEANT: ClassVar = {"": None, "~": None, "null": None, "true": True, "false": False}
    _NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")

    def construct_scalar(self, node: Any) -> Any:
        text = super().construct_scalar(node)
        if node.style is not None:
            return text
        return int(text) if self._NUMBER.fullmatch(text) else self._MEANT.get(text, text)


LONGEST_YAML = 64 << 10
"""Bytes of what is read by `strict_yaml`."""


def strict_yaml(text: str, where: str) -> Any:
    """YAML in which every scalar is text. Raises Problem with line and column for anything ambiguous or over 64 KiB."""
    with _yaml_problems(text, where, LONGEST_YAML):
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - it only makes text, lists and mappings


def yaml_documents(text: str, where: str) -> list[Any]:
    """The documents of a YAML text with null, true, false and short numbers in them; as strict otherwise, up to 1 MiB."""
    with _yaml_problems(text, where, 1 << 20):
        return list(yaml.load_all(text, Loader=_StrictTypedLoader))


@contextmanager
def _yaml_problems(text: str, where: str, longest: int) -> Iterator[None]:
    if len(text.encode()) > longest:
        raise Problem(
            f"YAML of more than {longest >> 10} KiB", where, "what a person writes is shorter: is it the right file?"
        )
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise Problem(f"not valid YAML: {printable(error.problem or 'unreadable')}", place, "mend that line") from None
    except yaml.YAMLError as error:
        raise Problem(f"not valid YAML: {printable(str(error))[:200]}", where) from None
    except RecursionError:
        raise Problem("not valid YAML: nested too deeply", where) from None
