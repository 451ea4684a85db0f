"""Whether a secret got out, however it is packed."""

from __future__ import annotations

import base64
import re


def leaks(data: bytes, secrets: list[str], depth: int = 3) -> list[str]:
    """Which of the secrets stand in the data, in clear or packed in base64 as often as LDIF packs them, folded or not."""
    flat = data.replace(b"\r\n", b"\n").replace(b"\n ", b"")
    found = [secret for secret in secrets if secret.encode() in flat]
    if depth:
        for run in re.findall(rb"[A-Za-z0-9+/]{8,}={0,2}", flat):
            run = run.rstrip(b"=")
            inner = base64.b64decode(run[: len(run) - (len(run) % 4 == 1)] + b"===")
            found += leaks(inner, secrets, depth - 1) if len(inner) > 5 else []
    return found
