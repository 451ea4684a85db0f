"""The codes of findings that only Drizzle has."""

from __future__ import annotations

from workbench.model import Code

CODES = {
    "TXN_INCOMPLETE": Code("a transaction has its end, but messages of it are not there", ("warning", "error")),
    "TXN_UNFINISHED": Code("a transaction has no end in the log, and may still get one", ("info", "warning")),
    "TXN_ABORTED": Code("a transaction has no end, and its server started anew since", ("info", "warning")),
    "TXN_CONFLICT": Code("one transaction came with different contents", ("error",)),
    "CONTENT_NOT_COMPARED": Code(
        "messages of a log have no numbers: tables may be left out by a filter, and contents are not compared",
        ("info", "warning"),
    ),
    "TXN_REPEATED": Code("a transaction was delivered more than once", ("info",)),
    "RECORD_CORRUPT": Code("records do not fit their checksum, or the framing of the log is damaged", ("error",)),
    "RECORD_UNKNOWN": Code("records hold fields, statements or entries that this reader does not know", ("warning",)),
    "GONE_FROM_LOG": Code(
        "the log of a server lacks transactions that its earlier log or the queue of a replica shows",
        ("warning", "error"),
    ),
    "TORN_TAIL": Code("the last record of a log is cut", ("warning",)),
    "RAGGED_UPDATE": Code("rows of an update have other columns than its header lists", ("warning", "error")),
    "ID_REUSED": Code("a server used a transaction number again", ("warning",)),
    "BIG_TRANSACTION": Code("a transaction is so big that it holds others back", ("info", "warning")),
    "APPLIER_STOPPED": Code("a thread of a replica stands still", ("error",)),
    "APPLIED_WENT_BACK": Code("a replica says that it applied less than in an earlier snapshot", ("warning",)),
    "NOTHING_IN_COMMON": Code(
        "two logs have no transaction of one server id in common: nothing tells their order", ("info",)
    ),
    "PASSED_OVER": Code("a replica went on past what an earlier snapshot shows that it could not apply", ("warning",)),
    "MASTER_NOT_MATCHED": Code("nothing tells which collected log is that of a master of a replica", ("warning",)),
    "QUEUE_GAP": Code("commits are neither applied nor in the queue of a replica", ("warning", "error")),
}
