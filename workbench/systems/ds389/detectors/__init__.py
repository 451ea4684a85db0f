"""What is looked for in 389 Directory Server alone, by stage."""

from __future__ import annotations

from workbench.model import ANCHOR, APPLYING, IDENTITY, LAG, Detectors
from workbench.systems.ds389.detectors.addresses import led_elsewhere, two_links_to_one
from workbench.systems.ds389.detectors.anchors import (
    anchor_not_found,
    changelog_closed,
    changelog_recreated,
    trim_stopped,
)
from workbench.systems.ds389.detectors.applying import apply_retry_loop, conflict_entries, login_notes_refused
from workbench.systems.ds389.detectors.certificates import certificate_expires
from workbench.systems.ds389.detectors.clocks import server_clocks
from workbench.systems.ds389.detectors.database import database_failing
from workbench.systems.ds389.detectors.disk_space import disk_low
from workbench.systems.ds389.detectors.fillings_again import fills_when_started
from workbench.systems.ds389.detectors.identity import (
    broken_vector,
    clean_hanging,
    cleaned_and_alive,
    cleaned_and_back,
    told_by_status,
)
from workbench.systems.ds389.detectors.ignored import missing_ignored
from workbench.systems.ds389.detectors.initialisations import initialisation_aborted, initialisation_running
from workbench.systems.ds389.detectors.logins import logins_fail
from workbench.systems.ds389.detectors.lost import apply_skipped, clean_forced_loss, refused_without_vector
from workbench.systems.ds389.detectors.moves import contradicting_moves
from workbench.systems.ds389.detectors.replicas_off import replication_off
from workbench.systems.ds389.detectors.sessions import busy, fractional_silence, never_contacted
from workbench.systems.ds389.detectors.silent import no_answer_in_time, search_refused, stopped_meanwhile
from workbench.systems.ds389.detectors.slow_clocks import behind_when_read, clock_behind, set_back
from workbench.systems.ds389.detectors.standing_vectors import vector_stands_still
from workbench.systems.ds389.detectors.unapplied import answered_not_applied
from workbench.systems.ds389.detectors.unlike_lists import lists_differ
from workbench.systems.ds389.detectors.unrecorded import replication_was_off
from workbench.systems.ds389.detectors.wrong_deletions import wrong_entry_deleted
from workbench.systems.ds389.session_log.comparison import anchor_disagrees

DETECTORS: Detectors = {
    IDENTITY: (
        replication_off,
        replication_was_off,
        no_answer_in_time,
        stopped_meanwhile,
        search_refused,
        database_failing,
        disk_low,
        broken_vector,
        server_clocks,
        clock_behind,
        behind_when_read,
        set_back,
        initialisation_aborted,
        initialisation_running,
        fills_when_started,
        told_by_status,
        clean_hanging,
        cleaned_and_back,
        cleaned_and_alive,
        two_links_to_one,
        led_elsewhere,
    ),
    ANCHOR: (anchor_not_found, changelog_closed, anchor_disagrees, changelog_recreated, trim_stopped, missing_ignored),
    APPLYING: (
        contradicting_moves,
        apply_skipped,
        refused_without_vector,
        apply_retry_loop,
        login_notes_refused,
        clean_forced_loss,
        conflict_entries,
        wrong_entry_deleted,
    ),
    LAG: (
        never_contacted,
        vector_stands_still,
        answered_not_applied,
        fractional_silence,
        lists_differ,
        busy,
        certificate_expires,
        logins_fail,
    ),
}
