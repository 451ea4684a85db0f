"""The secrets of Comdb2: words in the name of a setting whose value no table, log or error may hold."""

from workbench.boundary import Secrets
from workbench.model import REMOVED

_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token"),
    *("credential", "credentials", "api_key", "apikey", "private_key"),
)
SECRETS = Secrets(_WORDS)


def harmless(name: str, value: str | None) -> str | None:
    """The value of a setting without what is secret in it; nothing of it where the name of the setting says so.

    >>> harmless("physrep_metadb_password", "x"), harmless("physrep_fanout", "2")
    ('[secret removed]', '2')
    """
    if value is None:
        return None
    return REMOVED if any(word in name.lower() for word in _WORDS) else SECRETS.redact(value)
