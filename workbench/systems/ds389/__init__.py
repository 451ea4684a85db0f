"""389 Directory Server: its files, and how its positions (CSNs) read as order keys."""

from workbench.model import System
from workbench.systems.ds389.access_log import ACCESS_LOG
from workbench.systems.ds389.audit_log import AUDIT_LOG
from workbench.systems.ds389.changelog_fast import CHANGELOG_DECODED, CHANGELOG_LDIF
from workbench.systems.ds389.csn import order_key, seconds, utc
from workbench.systems.ds389.dbscan import DBSCAN
from workbench.systems.ds389.directory import AGREEMENTS, REPLICA
from workbench.systems.ds389.entries import ENTRIES
from workbench.systems.ds389.errors_log import ERRORS_LOG
from workbench.systems.ds389.reports import LAG_REPORT, MONITOR, REPLCHECK, STATUS
from workbench.systems.ds389.ruv_text import RUV

SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=(
        CHANGELOG_LDIF, CHANGELOG_DECODED, DBSCAN, RUV, REPLICA, AGREEMENTS, ENTRIES,
        ACCESS_LOG, ERRORS_LOG, AUDIT_LOG, STATUS, MONITOR, REPLCHECK, LAG_REPORT,
    ),
    order_key=order_key,
    show=str,
    moment=lambda csn: utc(seconds(csn)),
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
)  # fmt: skip
