"""389 Directory Server: its files, and how its positions (CSNs) read as order keys."""

from collections.abc import Mapping

from workbench.model import Kind, System
from workbench.systems.ds389.csn import order_key, seconds, utc
from workbench.systems.ds389.formats import FORMATS
from workbench.systems.ds389.formats.values import suffix_named


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.ds389.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=FORMATS,
    order_key=order_key,
    show=str,
    moment=lambda csn: utc(seconds(csn)),
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
    below=",",
    spelled=suffix_named,
    scenarios=_scenarios,
)
