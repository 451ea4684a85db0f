"""The files that 389 Directory Server and its tools write. `FORMATS` lists the kinds; the first that knows a file takes it.

changelog       the changelog LDIF, record by record (`changelog_fast`: whole pieces at once, the same answer)
dbscan          the changelog database as dbscan prints it
ruv_text        update vectors as `dsconf replication get-ruv` prints them
directory       the configuration: cn=replica and agreements
entries         entries with their state (db2ldif -r); `entry_states`: the same, entry by entry
access_log      which changes a server applied, refused or dropped; `access_operations` joins requests and results
errors_log      what the replication plug-in did; `errors_meanings` is the registry of known messages
acknowledged    which change a JSON result answers for, and whether it proves that it was applied
audit_log       audit and security logs: recognised; they name no positions
certificates    the public certificates of a server: its own one, and the authorities that it trusts
reports         status, monitor, ds-replcheck and lag reports: the tools' own judgement
printed_reports the same as text, healthchecks, and what a tool says where it fails
"""

from workbench.systems.ds389.formats.access_log import ACCESS_LOG
from workbench.systems.ds389.formats.audit_log import AUDIT_LOG, SECURITY_LOG
from workbench.systems.ds389.formats.certificates import CERTIFICATES
from workbench.systems.ds389.formats.changelog_fast import CHANGELOG_DECODED, CHANGELOG_LDIF
from workbench.systems.ds389.formats.dbscan import DBSCAN
from workbench.systems.ds389.formats.directory import AGREEMENTS, REPLICA
from workbench.systems.ds389.formats.entries import ENTRIES
from workbench.systems.ds389.formats.errors_log import ERRORS_LOG, ERRORS_LOG_PRETTY
from workbench.systems.ds389.formats.printed_reports import HEALTHCHECK, MONITOR_TEXT, STATUS_TEXT, TOOL_ERROR
from workbench.systems.ds389.formats.reports import LAG_REPORT, MONITOR, REPLCHECK, STATUS
from workbench.systems.ds389.formats.ruv_text import RUV

FORMATS = (
    CHANGELOG_LDIF, CHANGELOG_DECODED, DBSCAN, RUV, REPLICA, AGREEMENTS, ENTRIES,
    ACCESS_LOG, ERRORS_LOG, ERRORS_LOG_PRETTY, AUDIT_LOG, SECURITY_LOG,
    STATUS, STATUS_TEXT, MONITOR, MONITOR_TEXT, REPLCHECK, LAG_REPORT, HEALTHCHECK, TOOL_ERROR, CERTIFICATES,
)  # fmt: skip
