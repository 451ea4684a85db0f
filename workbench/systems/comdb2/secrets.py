"""The secrets of Comdb2: words in the name of a setting whose value no table, log or error may hold."""

import re

from workbench.model import REMOVED
from workbench.safety import Secrets

_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token"),
    *("credential", "credentials", "api_key", "apikey", "private_key"),
)
SECRETS = Secrets(_WORDS)
_NAMES = re.compile("|".join(_WORDS) + r"|(?:pass|key)\Z")
_USER = re.compile(r"[^\s:/@,]*:[^\s/@,]+(?=@)")
"""Who connects, and with what: `http://user:password@host`."""


def harmless(name: str, value: str | None) -> str | None:
    """The value of a setting without what is secret in it; nothing of it where the name of the setting says so.

    >>> harmless("physrep_metadb_password", "x"), harmless("physrep_fanout", "2")
    ('[secret removed]', '2')
    >>> harmless("physrep_proxy", "http://user:hunter2@host/")
    'http://[secret removed]@host/'
    """
    if value is None:
        return None
    return REMOVED if _NAMES.search(name.lower()) else _USER.sub(REMOVED, SECRETS.redact(value))
