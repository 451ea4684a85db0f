"""What the lines of the errors log say: the closed list of codes, each with the sentence and the pattern it stands for.

Texts of 389-ds-base 1.3 to 3.1. A pattern is matched at the *start* of the text behind the parts (`- DEBUG -
NSMMReplicationPlugin - repl5_inc_run - agmt="cn=a" (host:389): `), never searched in it: names that a client chose
stand inside texts and may hold any of these sentences. `signs` are the words by which lines of interest are found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CSN = r"[0-9a-fA-F]{20}"


@dataclass(frozen=True)
class Meaning:
    """One code.

    says      the sentence for the documentation
    signs     one of these stands in every line of this meaning, in the letters of the server
    pattern   matched at the start of the text; named groups: `csn` (position), `origin`, all others go to `numbers`
    function  a word that must stand in the name of the function
    """

    says: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    function: str = ""


def _meaning(says: str, signs: str | tuple[str, ...], pattern: str, function: str = "") -> Meaning:
    given = (signs,) if isinstance(signs, str) else signs
    return Meaning(says, given, re.compile(pattern.replace("CSN!", CSN)), function)


_REQUEST = r"(?:conn=(?P<conn>\d+) op=(?P<op>-?\d+) repl(?:ica)?=\"(?P<suffix>[^\"]*)\": )?"
_REPLAY = (
    r"(?:(?:Receiver|Consumer) )?(?:[Ff]ailed|timed out) to replay change "
    r"\(uniqueid (?P<uniqueid>[^,]*), CSN (?:(?P<csn>CSN!)|\(null\))\): "
)

# Frequent lines first.
MEANINGS: dict[str, Meaning] = {
    # --- a session, at the supplier (most lines: replication log level 8192)
    "sending": _meaning(
        "the supplier sends this change",
        "operation (dn=",
        r'Sending (?P<operation>\w+) operation \(dn=".*" csn=(?P<csn>CSN!)\)',
    ),
    "change_skipped": _meaning(
        "the supplier leaves this change out, for the reason given",
        "because ",
        r"Skipping (?P<csn>CSN!) because (?P<reason>.*)",
    ),
    "change_out_of_order": _meaning(
        "the supplier leaves a change out whose origin has no place in the session",
        "is not in the list of changelog csn buffers",
        r"Skipping update because the changelog buffer current csn \[(?P<csn>CSN!)\]",
    ),
    "stripped_to_nothing": _meaning(
        "a fractional agreement leaves nothing of this change to send",
        "Skipping update operation with no message_id",
        r"Skipping update operation with no message_id \(uniqueid (?P<uniqueid>[^,]*), CSN (?P<csn>CSN!)\)",
    ),
    "state": _meaning(
        "the agreement goes from one state to another",
        "State: ",
        r"State: (?P<before>\w+) -> (?P<after>\w+)",
    ),
    "control_block": _meaning(
        "what the session knows of one origin: position = the supplier's newest change, consumer = the consumer's",
        "csnPrevMax (",
        r"\(cscb (?P<block>\d+) - state (?P<state>\d+)\) - csnPrevMax \((?P<previous>(?:CSN!)?)\) "
        r"csnMax \((?P<csn>(?:CSN!)?)\) csnBuf \((?P<buffer>(?:CSN!)?)\) csnConsumerMax \((?P<consumer>(?:CSN!)?)\)",
    ),
    "anchor_initial": _meaning(
        "the session starts reading the changelog at this change",
        "anchor is now: ",
        r"anchor is now: (?P<csn>CSN!)",
        "initial",
    ),
    "anchor_reload": _meaning(
        "the session reads on from this change",
        "anchor is now: ",
        r"anchor is now: (?P<csn>CSN!)",
        "adjust",
    ),
    "session_start": _meaning(
        "the session starts reading the changelog at this change (texts before 1.3.6)",
        "anchorcsn=",
        r"(?:session start|load next): anchorcsn=(?P<csn>CSN!)",
    ),
    "position_found": _meaning(
        "the anchor is in the changelog",
        "position set for replay",
        r"CSN (?P<csn>CSN!) found, position set for replay",
    ),
    "session_end": _meaning(
        "the session ends; numbers = how many changes were loaded, sent and skipped, and why",
        "session end: ",
        r"session end: (?P<counters>\w+=-?\d+(?: \w+=-?\d+)*)",
    ),
    "nothing_to_send": _meaning(
        "the session has nothing (more) to send",
        ("No more updates to send", "No changes to send"),
        r"No (?:more updates|changes) to send",
    ),
    "acquired": _meaning(
        "the consumer lets this supplier in",
        "Replica was successfully acquired",
        r"Replica was successfully acquired",
    ),
    "released": _meaning(
        "the supplier ends its session", "uccessfully released consumer", r"[Ss]uccessfully released consumer"
    ),
    "busy": _meaning(
        "another supplier has the consumer",
        ("is currently being updated", "replica busy"),
        _REQUEST + r"Unable to acquire replica: "
        r"(?:the replica is currently being updated|error: replica busy(?: locked by (?P<holder>\S+ \S+))?)",
    ),
    "duplicate_origin": _meaning(
        "supplier and consumer have the same replica ID",
        ("same Replica ID", "same replicaID", "same replica ID"),
        _REQUEST
        + r"(?:Unable to acquire replica: the replica has the same Replica ID|Replica has (?:the )?same replica ?ID)",
    ),
    "acquire_failed": _meaning(
        "the consumer did not let this supplier in",
        (
            "nable to acquire replica",
            "nable to receive the response for a start",
            "nable to parse the response to the start",
        ),
        _REQUEST + r"Unable to (?:acquire replica|receive the response for a start|parse the response to the start)",
    ),
    "release_failed": _meaning(
        "the consumer did not answer at the end of the session",
        "Attempting to release replica, but",
        r"Attempting to release replica, but unable to receive",
    ),
    "backing_off": _meaning(
        "the agreement waits before it tries again",
        "backing off for",
        r"Replication session backing off for (?P<seconds>\d+) seconds",
    ),
    "bind": _meaning(
        "the supplier cannot log in at the consumer, or can again",
        "Replication bind with",
        r"Replication bind with (?P<method>\S+) auth (?P<outcome>failed|resumed)",
    ),
    "session_fatal": _meaning(
        "the agreement has stopped: it tries no more until somebody acts",
        "requires administrator action",
        r"(?:Incremental|Total) update failed and requires administrator action",
    ),
    "connect_failed": _meaning(
        "an attempt of this server to connect to another one or to log in there failed",
        ("ould not send bind request", "ould not bind id"),
        r"(?:Error: )?[Cc]ould not (?:send bind request for|bind) id \[[^\]]*\] authentication mechanism \[[^\]]*\]: "
        r"error (?P<error>-?\d{1,9}) \([^)]*\)(?:, system error -?\d+ \([^)]*\), network error (?P<network>-?\d{1,9}) "
        r"\(.*, host \"(?P<address>[^\"]*)\"\))?",
        "slapi_ldap_bind",
    ),
    # --- the anchor is not in the changelog
    "anchor_not_located": _meaning(
        "the changelog has no record of this change, so the session cannot start or go on there",
        "Can't locate CSN",
        r"Can't locate CSN (?P<csn>CSN!) in the changelog(?: \(DB rc=(?P<rc>-?\d+)\))?",
    ),
    "anchor_missing": _meaning(
        "the changelog should have the anchor and lacks it",
        "seems to be missing",
        r"CSN (?P<csn>CSN!) not found, seems to be missing",
    ),
    "anchor_purged": _meaning(
        "the anchor was trimmed away, or this server never had it in its changelog",
        "or we purged",
        r"CSN (?P<csn>CSN!) not found, we aren't as up to date, or we purged",
    ),
    "purged_here": _meaning(
        "this server trimmed the change; numbers = how far it has trimmed",
        "has been purged by this server",
        r"(?:the )?change with (?P<csn>CSN!) csn has been purged by this server; "
        r"the current purge point for that replica is (?P<purged>CSN!)",
    ),
    "never_logged": _meaning(
        "the change came with an initialisation and was never in this changelog",
        "was never logged because",
        r"(?:the )?change with (?P<csn>CSN!) csn was never logged because",
    ),
    "missing_data": _meaning(
        "the session ends: its anchor is missing", "Missing data encountered", r"Missing data encountered"
    ),
    "purged_data": _meaning(
        "the session ends: its anchor was trimmed away",
        "Data required to update replica has been purged",
        r"Data required to update replica has been purged",
    ),
    "alternative_tried": _meaning(
        "the anchor is missing and the agreement is set to go on without it",
        "to use an al",
        r"Can't load changelog buffer starting at CSN (?P<csn>CSN!)",
    ),
    "alternative_start": _meaning(
        "the session leaves out everything before this change",
        "alternative start iteration csn",
        r"Using alternative start iteration csn: (?P<csn>CSN!)",
    ),
    "reload_below_start": _meaning(
        "the session ends, reported as success: the next change to read lies before its start",
        "is lower than starting csn",
        r"(?:\(\w+\) )?bulk load cursor \((?P<csn>CSN!)\) is lower than starting csn (?P<start>CSN!)",
    ),
    # --- applying, at the consumer, and what the supplier hears of it
    "already_seen": _meaning(
        "the server took the change as one that it has and did not apply it",
        "already be seen",
        r"[Tt]he csn (?P<csn>CSN!) has already be seen (?:\((?P<where>[^)]*)\) )?- ignoring",
        "ruv_add_csn_inprogress",
    ),
    "operation_ignored": _meaning(
        "a change sent to this server was not processed: seen before, or the replica is not available",
        "replica unavailable or csn ignored",
        r"(?:conn=(?P<conn>\d+) op=(?P<op>-?\d+) )?"
        r"replication operation not processed, replica unavailable or csn ignored",
        "_preop_",
    ),
    "cancelled": _meaning(
        "the operation failed or changed nothing, and its change was taken out of the pending list",
        "canceling operation csn",
        r"(?:conn=(?P<conn>\d+) op=(?P<op>-?\d+))? ?csn=(?P<csn>CSN!)(?: process postop:)? canceling operation csn",
    ),
    "apply_failed": _meaning(
        "this server could not apply the change and ended the session; the supplier tries again",
        "ailed to apply update (",
        r"Failed to apply update \((?P<csn>CSN!)\) error \((?P<error>-?\d{1,9})\)\.\s+Aborting replication session"
        r"(?:\s*\(conn=(?P<conn>\d+) op=(?P<op>-?\d+)\))?",
    ),
    "skipped_by_supplier": _meaning(
        "the consumer refused the change and the supplier goes on without it",
        ". Skipping.",
        _REPLAY + r"(?P<result>.*?)(?: ?\((?P<error>\d{1,9})\))?\. Skipping\.",
    ),
    "retry_later": _meaning(
        "the consumer did not take the change; the supplier will send it again",
        ("Will retry later", "timed out to replay change"),
        _REPLAY + r"(?P<result>.*?)(?: ?\((?P<error>-?\d{1,9})\))?\.",
    ),
    "login_notes_refused": _meaning(
        "this server refused a change that only notes failed logins on another one: passwordIsGlobalPolicy is off here",
        "Rejecting replicated password policy operation",
        r"Rejecting replicated password policy operation ?\(conn=(?P<conn>\d+) op=(?P<op>-?\d+)\)",
        "do_modify",
    ),
    "pending_failed": _meaning(
        "the list of changes under way lost track of this one",
        ("into pending list", "annot commit csn", "an't find csn"),
        r"(?:[Ff]ailed to insert|[Cc]annot commit|[Cc]an't find) csn \(?(?P<csn>CSN!)",
    ),
    # --- the changelog
    "changelog_recreated": _meaning(
        "the changelog did not fit the data and was emptied",
        "does not match the data in the changelog",
        r"(?:New data|Data) for replica (?P<suffix>.*?) does not match the data in the changelog",
    ),
    "replica_removed": _meaning(
        "replication was switched off for a suffix, and its changelog was removed",
        "since the replica config is being deleted",
        r"The changelog for replica (?P<suffix>.*?) is no longer valid since the replica config is being deleted",
    ),
    "vector_mismatch": _meaning(
        "changelog and database do not claim the same changes",
        ("is larger than the max CSN", "which is present in RUV"),
        r"The max CSN \[(?P<csn>CSN!)\] from RUV \[(?P<vector>[^\]]*)\] is larger than the max CSN "
        r"\[(?P<other>CSN!)?[^\]]*\] from RUV \[(?P<other_vector>[^\]]*)\]|RUV \[[^\]]*\] does not contain element",
    ),
    "vector_differs": _meaning(
        "changelog and database know different origins",
        "there were some differences between the changelog max RUV",
        r"For replica (?P<suffix>.*?) there were some differences between the changelog max RUV",
    ),
    "vector_forced": _meaning(
        "after a crash the database's vector was moved forward to the changelog's",
        "Force update of database RUV",
        r"Force update of database RUV",
    ),
    "changelog_vector": _meaning(
        "first and last change of one origin found in the changelog",
        "maxcsn: ",
        r"Replica id: (?P<origin>\d{1,9}) mincsn: (?P<first>CSN!) maxcsn: (?P<csn>CSN!)",
    ),
    "changelog_vector_rebuilt": _meaning(
        "the changelog was read from end to end to learn what it holds: the server had not closed it",
        "ebuilding ",
        r"Rebuilding (?:the )?replication changelog RUV(?: complete\.\s+Result (?P<result>-?\d+))?",
    ),
    "trim_kept_anchor": _meaning(
        "trimming left the newest change of an origin in place",
        "purge skipped anchor csn",
        r"Changelog purge skipped anchor csn (?P<csn>CSN!)",
    ),
    "trimmed": _meaning(
        "old changes were trimmed away", "Trimmed ", r"Trimmed (?P<count>\d+) changes from the changelog"
    ),
    "origin_purged": _meaning(
        "the changes of a cleaned origin were removed from the changelog",
        ("that originated from rid", "Purged rid ("),
        r"(?:Removed \((?P<count>\d+) entries\) that originated from|Purged) rid \((?P<origin>\d{1,9})\)",
    ),
    "database_failed": _meaning(
        "a transaction could not be written to the database",
        ("Serious Error---Failed in", "No enough space left on device"),
        r"(?:Serious Error---Failed in (?P<what>\w+_txn_commit), err=(?P<result>-?\d+)|No enough space left on device)",
    ),
    "replica_not_set_up": _meaning(
        "a replica could not be set up as the server started: it takes and sends nothing",
        "Unable to configure replica",
        r"Unable to configure replica (?P<suffix>[^:]*)",
    ),
    "replica_id_changed": _meaning(
        "the replica ID of the configuration is not the one that the server made changes with",
        "Replica id mismatch",
        r"Replica id mismatch; current id - (?P<now>\d{1,9}), replica id in the state - (?P<before>\d{1,9})",
    ),
    "agreement_passed_over": _meaning(
        "an agreement names a suffix that is not replicated here: the server passes over it",
        "Failed to get replica for agreement",
        r"Failed to get replica for agreement ",
        "agmt_new_from_entry",
    ),
    "certificate_refused": _meaning(
        "the server finds a fault with its own certificate as it starts",
        "CERT_VerifyCertificateNow: verify certificate failed",
        r"(?:Security Initialization - )?SSL alert: CERT_VerifyCertificateNow: verify certificate failed for cert "
        r"(?P<name>.{1,200}) of family \S{1,300} "
        r"\(Netscape Portable Runtime error (?P<error>-\d{1,9}) - (?P<said>[^)]{1,300})\)",
    ),
    "changelog_not_open": _meaning(
        "there is no changelog to export or read",
        ("Changelog is not open", "Changelog is not available"),
        r"Changelog is not (?:open|available)",
    ),
    "changelog_task": _meaning(
        "export or import of the changelog begins or ends",
        ("changelog export", "changelog import"),
        r"\s*(?P<step>Beginning|Finished) changelog (?P<task>export|import) of replica \"(?P<suffix>[^\"]*)\"",
    ),
    # --- initialisation, restore, import, start and stop
    "total_begin": _meaning(
        "a total update begins to be sent", "Beginning total update", r"Beginning total update of replica"
    ),
    "total_end": _meaning(
        "a total update was sent",
        "Finished total update",
        r"Finished total update of replica.*?(?:Sent (?P<entries>\d+) entries)?\.?$",
    ),
    "total_failed": _meaning(
        "a total update broke off",
        ("Total update failed", "otal update aborted"),
        r"Total update (?:failed|aborted)",
    ),
    "total_receive": _meaning(
        "a total update begins to arrive",
        "Begin total protocol",
        _REQUEST + r"Begin total protocol",
    ),
    "replica_offline": _meaning(
        "the replica's data is being replaced: total update, import or restore",
        "is going offline",
        r"Replica (?P<suffix>.*?) is going offline; disabling replication",
    ),
    "replica_online": _meaning(
        "the replica's data is there again",
        "is coming online",
        r"Replica (?P<suffix>.*?) is coming online; enabling replication",
    ),
    "import_begin": _meaning(
        "an import begins", "Beginning import job", r"import (?P<backend>\S+): Beginning import job"
    ),
    "import_end": _meaning(
        "an import is complete",
        "Import complete",
        r"import (?P<backend>\S+): Import complete\.\s+Processed (?P<entries>\d+) entries",
    ),
    "import_failed": _meaning(
        "an import broke off",
        ("mport failed", "mport aborted", "Aborting all Import threads"),
        r"(?:import )?(?P<backend>\S+: )?(?:Import (?:failed|aborted)|Aborting all Import threads)",
    ),
    "export": _meaning(
        "an export of the entries begins or goes on",
        ("xport of '", ": Processed ", "Export finished"),
        r"(?:Beginning (?:LDIF )?export of '(?P<name>[^']*)'|Export finished"
        r"|export (?P<backend>\S+): Processed (?P<entries>\d+) entries(?: \((?P<percent>-?\d+)%\))?)",
    ),
    "backup": _meaning(
        "a backup begins or ends",
        ("Beginning backup of", "Backup finished"),
        r"(?P<step>Beginning backup of|Backup finished)",
    ),
    "restore": _meaning(
        "a restore from a backup begins, goes on or ends: the data is that of an earlier time",
        ("Beginning restore to", "Restore finished", "Restoring file ", "/data.mdb to "),
        # With LMDB the file of all data is copied by a restore alone: a backup has the database copy itself.
        r"(?P<step>Beginning restore to|Restore finished|Restoring file|Copying (?=\S+/data\.mdb to ))(?: ?(?P<file>\d+))?",
    ),
    "starting": _meaning("the server starts", "starting up", r"(?P<version>\S+-Directory/\S+)(?: \S+)? starting up"),
    "started": _meaning("the server is ready", "slapd started.", r"slapd started\."),
    "listening_encrypted": _meaning(
        "the server listens for encrypted connections",
        "for LDAPS requests",
        r"Listening on .{1,300} port (?P<port>\d+) for LDAPS requests",
    ),
    "stopping": _meaning(
        "the server stops", "slapd shutting down - signaling", r"slapd shutting down - signaling operation threads"
    ),
    "stopped": _meaning("the server has stopped in good order", "slapd stopped.", r"slapd stopped\."),
    "disorderly_shutdown": _meaning(
        "the server had not stopped in good order and recovers",
        ("Disorderly Shutdown", "Disorderly shutdown"),
        r"(?:Detected )?Disorderly [Ss]hutdown(?: for replica (?P<suffix>\S+?)\.)?",
    ),
    # --- the disk, as the server watches it (nsslapd-disk-monitoring)
    "disk_low": _meaning(
        "a disk is low: the server writes less into its logs, and stops if it stays so",
        "Disk space is ",
        r"Disk space is (?:critically |too )?low on disk \((?P<path>[^)]{1,300})\), remaining space: (?P<kilobytes>\d{1,15}) Kb",
        "disk_monitoring_thread",
    ),
    "disk_stopping": _meaning(
        "a disk stays low: the server waits for room, and stops",
        ("Disk space on ", "Disk space is still"),
        r"Disk space (?:on \((?P<path>[^)]{1,300})\) is too far below the threshold ?\((?P<threshold>\d{1,18}) bytes\)"
        r"|is still too low \((?P<kilobytes>\d{1,15}) Kb\))",
        "disk_monitoring_thread",
    ),
    "disk_read_only": _meaning(
        "a disk is low: the server refuses all changes of one backend",
        "Putting the backend ",
        r"Putting the backend '(?P<backend>[^']{1,100})' to read-only mode",
        "disk_monitoring_thread",
    ),
    "disk_writable": _meaning(
        "the server takes changes of one backend again that it had refused for its disk",
        "Putting the backend ",
        r"Putting the backend '(?P<backend>[^']{1,100})' back to read-write mode",
        "disk_monitoring_thread",
    ),
    "disk_room": _meaning(
        "a disk that was low has room again",
        "isk space is now ",
        r"(?:Available d|D)isk space is now (?:within acceptable levels|acceptable)",
        "disk_monitoring_thread",
    ),
    # --- identity and clocks
    "generation_differs": _meaning(
        "the two replicas do not come from the same initialisation",
        "eneration ID",
        r"(?:The remote replica|Replica) has a different (?:database )?generation ID",
    ),
    "not_initialised": _meaning(
        "the consumer was never initialised",
        ("has never been initialized", "is not initialized"),
        r"(?:Replica has no update vector\. It has never been initialized|(?:The )?[Rr]eplica is not initialized)",
    ),
    "time_skew": _meaning(
        "positions and clocks lie too far apart",
        ("ime skew", "lock skew", "djustment limit exceeded"),
        _REQUEST + r"(?:Incremental protocol: )?(?:[Ff]atal error - |Warning - |Warning: )?"
        r"(?:[Tt]oo much time skew|[Ee]xcessive clock skew|[Aa]djustment limit exceeded)"
        r"(?: \((?P<seconds>-?\d+) secs?\)|; value - (?P<value>-?\d+), limit - (?P<limit>\d+))?",
    ),
    "keep_alive_created": _meaning(
        "the keep-alive entry of this server had to be made anew",
        "Need to create replication keep alive entry",
        r"Need to create replication keep alive entry <cn=repl keep alive (?P<origin>\d{1,9}),",
    ),
    "keep_alive_updated": _meaning(
        "the server made a change of its own to its keep-alive entry",
        "Successful update of replication keep alive entry",
        r"Successful update of replication keep alive entry \"?(?:cn=repl keep alive (?P<origin>\d{1,9}))?",
    ),
    "agreement_switched": _meaning(
        "an agreement was enabled or disabled", "agreement is now ", r"agreement is now (?P<state>enabled|disabled)"
    ),
    # --- cleaning an origin
    "clean_waiting": _meaning(
        "cleaning an origin waits for other servers",
        "retrying in ",
        r"(?:Abort )?Clean\w+ Task \(rid (?P<origin>\d{1,9})\): (?P<step>.*?)\W{1,4}retrying in (?P<seconds>\d+)",
    ),
    "clean_done": _meaning(
        "an origin was cleaned here",
        "uccessfully cleaned rid",
        r"Clean\w+ Task (?:\(rid \d{1,9}\):|-) Successfully cleaned rid ?\(?(?P<origin>\d{1,9})",
    ),
    "clean_step": _meaning(
        "cleaning an origin goes on; numbers = the step",
        "Task (rid ",
        r"(?:Abort )?Clean\w+ Task \(rid (?P<origin>\d{1,9})\): (?P<step>[^(.]*)",
    ),
    # --- entries that differ
    "schema_violation": _meaning(
        "an entry does not fit this server's schema",
        ("unknown object class", "required by object class", "not allowed", "single-valued attribute"),
        r"Entry \"",
        "schema_check",
    ),
    "schema_refused": _meaning(
        "the consumer did not take the schema that the supplier sent it at the beginning of a session",
        "Schema replication update failed",
        r"Schema replication update failed: (?P<said>.*)",
    ),
    "schema_kept": _meaning(
        "the schemas of two servers differ and none covers the other",
        "must not be overwritten",
        r"(?:\[\w\] )?Schema .* must not be overwritten",
    ),
    "naming_conflict": _meaning(
        "two entries were given the same name on different servers; one was renamed",
        "Naming conflict ",
        r"Naming conflict (?P<operation>\w+)\.",
    ),
    "glue_entry": _meaning(
        "an entry whose parent is missing got a made-up parent, or a deleted one that has children came back as such",
        ("reated glue entry", " to glue reason "),
        r"(?:conn=\d+ op=-?\d+ csn=(?P<csn>CSN!)(?:: | - ))?"
        r"(?:Created glue entry|Resurrected tombstone) .* reason '?(?P<reason>\w+)",
    ),
}

# Steps of the pending list go to the table `operations`, one row for each change, and not to `messages`.
STEPS: dict[str, Meaning] = {
    "begin": _meaning(
        "the change is put on the list of changes under way",
        "into pending list",
        r"[Ss]uccessfully inserted csn (?P<csn>CSN!) into pending list",
        "ruv_add_csn_inprogress",
    ),
    "commit": _meaning(
        "the change is marked as done",
        "uccessfully committed csn",
        r"[Ss]uccessfully committed csn (?P<csn>CSN!)",
        "ruv_update_ruv",
    ),
    "rolled_up": _meaning(
        "the server's vector moves to this change",
        "olled up to csn",
        r"[Rr]olled up to csn (?P<csn>CSN!)",
        "ruv_update_ruv",
    ),
}
