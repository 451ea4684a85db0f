"""The codes of the findings that only 389 Directory Server has."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.model import Code

_INFO, _WARNING, _ERROR = "info", "warning", "error"

CODES: Mapping[str, Code] = {
    "BROKEN_VECTOR": Code(
        "a RUV has an element without URL or with one CSN only, an element twice, or one host under two replica IDs; an "
        "error where an element, or its own that is gone, keeps sessions from beginning",
        (_INFO, _WARNING, _ERROR),
    ),
    "CLOCK_BEHIND": Code(
        "a server gets changes before others, whose clocks agree, made them; an error from a day on if these were right then",
        (_INFO, _WARNING, _ERROR),
    ),
    "CLEAN_HANGING": Code(
        "a task that cleans a replica ID waits and does not end; an error where the ID is that of a collected server",
        (_INFO, _WARNING, _ERROR),
    ),
    "LISTS_DIFFER": Code(
        "agreements to one server exclude different attributes; error where changes came to it without them",
        (_WARNING, _ERROR),
    ),
    "DATABASE_FAILING": Code(
        "a server could not write its database since its last start; a warning where it has written later",
        (_WARNING, _ERROR),
    ),
    "DISK_LOW": Code(
        "the disk of a server is low by its own log; an error where it refuses changes for that, or stops",
        (_WARNING, _ERROR),
    ),
    "NO_ANSWER_IN_TIME": Code(
        "a server that runs did not answer a question in time when it was collected", (_WARNING,)
    ),
    "STOPPED_MEANWHILE": Code(
        "a server answered when it was read, and took no connection when all were read", (_ERROR,)
    ),
    "SEARCH_REFUSED": Code(
        "a server refused to be searched for its data when it was collected: they come anew, or are gone", (_ERROR,)
    ),
    "CLEANED_ORIGIN_ALIVE": Code("a server has a replica ID that others cleaned from their vectors", (_ERROR,)),
    "CLEANED_ORIGIN_BACK": Code(
        "a server makes changes under a replica ID that others have cleaned, and these do not take them", (_ERROR,)
    ),
    "CLEAN_FORCED_LOSS": Code(
        "a replica ID was cleaned by force while a server lacked changes of it: they are never sent again",
        (_WARNING, _ERROR),
    ),
    "INITIALISATION_ABORTED": Code(
        "the last initialisation of a server broke off, or could not begin (warning), and nothing tells of a later one",
        (_WARNING, _ERROR),
    ),
    "INITIALISATION_RUNNING": Code("a server was offline when it was read, for new data were arriving", (_WARNING,)),
    "FILLS_WHEN_STARTED": Code(
        "a supplier that was stopped while it filled a consumer may fill it again whenever that agreement is started anew",
        (_WARNING,),
    ),
    "LINKS_TO_ONE_SERVER": Code(
        "several agreements of one supplier lead to one server: as a rule, one is meant for another server", (_WARNING,)
    ),
    "LINK_LEADS_ELSEWHERE": Code(
        "an agreement leads to another collected server than the one that its name names, and no other agreement of its supplier "
        "leads there",
        (_WARNING,),
    ),
    "ANSWERED_NOT_APPLIED": Code(
        "a server answered a change with success and did not apply it: sessions send it again, until a later one hides it",
        (_INFO, _ERROR),
    ),
    "NEVER_CONTACTED": Code(
        "the supplier opens no session: the RUV that it remembers of the consumer is newer than the consumer's own, "
        "or, where that was not collected, nothing shows one since other data came to the consumer",
        (_WARNING,),
    ),
    "ANCHOR_PURGED": Code(
        "the record at which a session has to start was trimmed away, or never was in this changelog",
        (_WARNING, _ERROR),
    ),
    "ANCHOR_MISSING": Code(
        "the record at which a session has to start should be in the changelog and is not", (_INFO, _WARNING, _ERROR)
    ),
    "ANCHOR_DISAGREES": Code("the server's own log shows another anchor than the rules compute", (_WARNING,)),
    "CHANGELOG_RECREATED": Code(
        "the changelog was made anew and shows nothing of what was before; a warning when a consumer needs that",
        (_INFO, _WARNING),
    ),
    "REPLICA_ID_CHANGED": Code(
        "a server does not replicate, for its configuration has another replica ID than it made changes with", (_ERROR,)
    ),
    "REPLICATION_OFF": Code(
        "replication does not run on a server: its plug-in is disabled, or a replica could not be set up at its start",
        (_ERROR,),
    ),
    "REPLICATION_WAS_OFF": Code(
        "replication was switched off on a server and on again: what clients wrote there meanwhile is in no changelog; a warning "
        "where the access log of that time is missing, an information where nothing was written",
        (_INFO, _WARNING, _ERROR),
    ),
    "VECTOR_STANDS_STILL": Code(
        "a server answers changes with success, and its RUV covers none of them though it was read later", (_WARNING,)
    ),
    "CHANGELOG_CLOSED": Code(
        "a supplier has no changelog open: what is written there is recorded nowhere, and no session sends it",
        (_ERROR,),
    ),
    "MISSING_CHANGES_IGNORED": Code(
        "an agreement skips changes whose record is missing in the changelog: the skipped changes never arrive",
        (_WARNING,),
    ),
    "TRIM_STOPPED": Code("the changelog keeps records that are long due and that no consumer needs", (_WARNING,)),
    "APPLY_SKIPPED": Code(
        "the consumer refused a change with a result for which the supplier goes on without it, for good",
        (_INFO, _WARNING, _ERROR),
    ),
    "APPLY_RETRY_LOOP": Code(
        "the consumer fails again and again on one change, and nothing behind it arrives; a warning where it was started again "
        "since and no log shows another attempt",
        (_WARNING, _ERROR),
    ),
    "LOGIN_NOTES_REFUSED": Code(
        "the server refuses what its suppliers note of failed logins, as it does by default: no fault", (_INFO,)
    ),
    "CONTRADICTING_MOVES": Code(
        "two servers moved two entries below each other while neither knew the other's move: no server can take both; a "
        "warning once both are moved back",
        (_WARNING, _ERROR),
    ),
    "WRONG_ENTRY_DELETED": Code(
        "a deletion took another entry of the name than the one that it is of, which lives on in conflict", (_ERROR,)
    ),
    "CONFLICT_ENTRIES": Code(
        "entries carry a mark of a conflict, of a parent that was made up, or of a schema that they do not fit",
        (_INFO, _WARNING),
    ),
    "FRACTIONAL_SILENCE": Code(
        "sessions of a fractional agreement send nothing, for all that waits consists of attributes that it leaves out",
        (_INFO,),
    ),
    "LOGINS_FAIL": Code(
        "somebody logs in again and again under the name of suppliers and is refused, and no collected link explains that",
        (_WARNING,),
    ),
    "CERTIFICATE_EXPIRES": Code(
        "a certificate that a link needs expires within a week, or has expired while the link still runs", (_WARNING,)
    ),
    "BUSY_STARVATION": Code("a supplier is turned away by a busy consumer for minutes", (_INFO, _WARNING)),
    "SESSION_MONOPOLY": Code("one supplier has the consumer while another one is turned away for minutes", (_WARNING,)),
}
