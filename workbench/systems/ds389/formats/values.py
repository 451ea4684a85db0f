"""How a value of an entry is shown: harmless, short, and still comparable between servers."""

from __future__ import annotations

import base64
import hashlib
import re

from workbench.systems.ds389.secrets import SECRETS

LONGEST = 1024
"""No shown value has more characters. A longer one keeps its beginning, its size and a part of its SHA-256."""

_AROUND_SIGNS = re.compile(r"(?<!\\) *([,=+]) *")

SUSPECT = rf"{SECRETS.suspect()}|\n "
"""RE2: matches every value that may hold a secret, and few others. A fold may lie inside the secret."""


def clean(text: str) -> str:
    """Text as it may stand in a table: no secrets, and no half characters, which JSON can spell and Arrow refuses."""
    return SECRETS.redact(text.encode("utf-8", "replace").decode())


def suffix_named(text: str) -> str | None:
    """The suffix of that name in the one spelling in which it is compared; None for an empty name.

    Every server, and every agreement, prints it as somebody once typed it, and to the protocol all spellings are one.

    >>> suffix_named("DC=Example, dc=com")
    'dc=example,dc=com'
    """
    return _AROUND_SIGNS.sub(r"\1", clean(text).strip()[:LONGEST]).lower() or None


def shown(value: bytes) -> str | None:
    """The value as text, `base64:...` if it is not text, or None if it holds a secret.

    >>> shown("Ülo".encode()), shown(b"{SSHA}c2VjcmV0"), shown(bytes(3))
    ('Ülo', None, 'base64:AAAA')
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return None if SECRETS.holds_one(text) else shortened(value)


def shortened(value: bytes) -> str:
    """A value without secrets as `shown` gives it.

    What is not UTF-8 or holds a NUL is not text. Values longer than LONGEST characters end in their size and the first
    16 digits of their SHA-256, so that two servers' values can still be compared.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        if len(text) <= LONGEST:
            return text
        size = f"{len(text)} characters"
    else:
        # LONGEST bytes make more than LONGEST letters: encoding more of a photo would be wasted.
        text, size = "base64:" + base64.b64encode(value[:LONGEST]).decode(), f"{len(value)} bytes"
    if len(text) <= LONGEST:
        return text
    note = f"... [{size}, sha256 {hashlib.sha256(value).hexdigest()[:16]}]"
    return text[: LONGEST - len(note)] + note


def shown_name(value: bytes) -> str:
    """The name of an entry, shown: never null, a secret inside is cut out instead."""
    text = shown(value)
    return clean(value.decode("utf-8", "replace"))[:LONGEST] if text is None else text
