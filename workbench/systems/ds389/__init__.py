"""389 Directory Server: its files, and how its positions (CSNs) read as order keys."""

from workbench.model import System
from workbench.systems.ds389.changelog_fast import CHANGELOG_DECODED, CHANGELOG_LDIF
from workbench.systems.ds389.csn import order_key, seconds, utc

SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=(CHANGELOG_LDIF, CHANGELOG_DECODED),
    order_key=order_key,
    show=str,
    moment=lambda csn: utc(seconds(csn)),
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
)
