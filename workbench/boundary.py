"""All distrust lives here: what may not leave a parser, and how text of unknown origin is shown.

Text from logs is hostile and may hold secrets. A parser drops secrets before its tables exist; whatever is printed,
stored as an excerpt or raised in an error goes through `excerpt` or `Secrets.redact` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import yaml

from workbench.model import Problem

REMOVED = "[secret removed]"

# A password hash as LDAP servers store it: {SSHA}..., {PBKDF2-SHA512}10000$..., {AES-TUhN...}... - in any case and
# wherever it stands. `{replica 1 ldap://...}` and `{replicageneration}` must survive, so the scheme names are listed.
SCHEME = (
    r"\{(?:s?sha|s?md[245]|crypt|pbkdf2|clear|cleartext|aes|3?des|ns-mta-md5|gost|argon2|bcrypt|scrypt|yescrypt"
    r"|x-fixed|x-nthash|nthash|lanman|rc4|base64-)[\w.-]*\}"
)
_SHAPE = re.compile(SCHEME + r"[^\s\"'<>,;)\]]*", re.IGNORECASE)
_CRYPT = re.compile(r"\$(?:1|2[abxy]?|5|6|7|y|gy|argon2(?:id?|d)|pbkdf2[\w-]*|scrypt)\$[^\s\"'<>,;)\]]{8,}")
_PACKED = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c\u2028\u2029\ufeff]")


@lru_cache(maxsize=256)
def _named(names: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the attributes with its value, to the end of the (folded) line: a password may contain blanks."""
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({either})((?:;[\w-]+)*)\s*(::?<?|=)[^\n]*(?:\n [^\n]*)*", re.IGNORECASE)


class Secrets:
    """The secrets of one system: attributes whose values are never kept, and values that are secrets wherever they stand.

    >>> Secrets(["userPassword"]).redact("userPassword: hunter2 and {SSHA}abc")
    'userPassword: [secret removed]'
    """

    def __init__(self, attributes: Iterable[str]) -> None:
        self.attributes = frozenset(name.lower() for name in attributes)

    def is_secret(self, attribute: str) -> bool:
        """True for an attribute, with or without options, whose values must not be kept."""
        return attribute.split(";", 1)[0].strip().lower() in self.attributes

    def names_one(self, text: str) -> bool:
        """True if the name of a secret attribute stands anywhere in the text."""
        lower = text.lower()
        return any(name in lower for name in self.attributes)

    def redact(self, text: str) -> str:
        """The text without any secret that an attribute name before it, anywhere in the text, or its shape gives away."""
        # Plain searches first: thirty of them are ten times faster than one expression with thirty alternatives.
        lower = text.lower()
        if names := tuple(name for name in self.attributes if name in lower):
            text = _named(names).sub(rf"\1\2: {REMOVED}", text)
        return self.without_hashes(text)

    @staticmethod
    def without_hashes(text: str) -> str:
        """The text without values that look like password hashes."""
        if "{" in text:
            text = _SHAPE.sub(REMOVED, text)
        return _CRYPT.sub(REMOVED, text) if "$" in text else text

    def holds_one(self, text: str) -> bool:
        """True if `redact` would change the text."""
        return self.redact(text) != text


def excerpt(data: bytes | str, secrets: Secrets, length: int = 120) -> str:
    """The first characters of unreadable input, harmless to print.

    Control and direction-changing characters are shown as escapes. What follows a base64 sign (`::`) and any long run
    of base64 letters is dropped: a cut record may hold half a password hash packed twice, which no shape betrays. So
    is a line that names a secret attribute: in a damaged record the colon behind the name may be what is wrong.
    """
    text = data[: 8 * length].decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data[: 8 * length]
    text = re.sub(r"\r?\n ", "", text)  # a fold may lie inside the name or inside the secret
    text = re.sub(r"::.*", ":: ...", text, flags=re.DOTALL)
    text = "\n".join(REMOVED if secrets.names_one(line) else line for line in text.split("\n"))
    text = secrets.without_hashes(text)
    text = _PACKED.sub(lambda m: m[0] if re.fullmatch(r"[0-9a-f-]+", m[0]) else "...", text)
    return printable(text.replace("\n", "\\n"))[:length]


def printable(text: str) -> str:
    """Text for a terminal or a log: no control sequences, no characters that reorder the line."""
    return _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)


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
            if key.value in keys:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands here twice", problem_mark=key.start_mark
                )
            keys.add(key.value)
        return super().construct_mapping(node, deep=True)


def to_yaml(value: Any) -> str:
    """Lists, mappings and texts as YAML that `strict_yaml` reads back."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _StrictLoader.construct_mapping)


def strict_yaml(text: str, where: str) -> Any:
    """YAML in which every scalar is text. Raises Problem with line and column for anything ambiguous or over 64 KiB."""
    if len(text.encode()) > 64 * 1024:
        raise Problem(
            "the file is larger than 64 KiB", where, "a parameters or case file is short: is it the right file?"
        )
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - the loader above only makes text, lists and mappings
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise Problem(f"not valid YAML: {printable(error.problem or 'unreadable')}", place, "mend that line") from None
    except yaml.YAMLError as error:
        raise Problem(f"not valid YAML: {printable(str(error))[:200]}", where) from None
