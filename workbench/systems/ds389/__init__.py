"""389 Directory Server: its files, and how its positions (CSNs) read as order keys."""

from workbench.model import System
from workbench.systems.ds389.csn import halves, order_key, origin_of, seconds, utc
from workbench.systems.ds389.formats import FORMATS
from workbench.systems.ds389.formats.values import suffix_named

SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=FORMATS,
    order_key=order_key,
    halves=halves,
    origin_of=origin_of,
    show=str,
    moment=lambda csn: utc(seconds(csn)),
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
    below=",",
    spelled=suffix_named,
)
