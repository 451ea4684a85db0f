"""The what-if kinds of Kanidm: their inputs as models, their answers by `rules`. A kind is one line here."""

from workbench.model import Kind
from workbench.systems.kanidm.scenarios import days, design, positions, ranges, states

KINDS = {
    "kanidm.range_diff": Kind(
        "Would this supplier serve this consumer, and which ranges?", ranges.TwoRanges, ranges.compared
    ),
    "kanidm.session_reply": Kind(
        "What does the consumer hear, and does a stalled link look fine?", ranges.Pull, ranges.answered
    ),
    "kanidm.filter_ruv_range": Kind("Which servers does a supplier still show?", ranges.Shown, ranges.shown),
    "kanidm.trim_up_to": Kind("What is left of a RUV after a trim?", ranges.Trimmed, ranges.left_after_trim),
    "kanidm.anchored_ranges": Kind("What does a message carry per server?", ranges.Carried, ranges.carried),
    "kanidm.incremental_preflight": Kind("May the consumer apply this?", ranges.Preflight, ranges.preflighted),
    "kanidm.cid_compare": Kind("Which change came first?", positions.CidCompare, positions.cid_compare),
    "kanidm.cid_lamport": Kind("When is the next own CID?", positions.CidLamport, positions.cid_lamport),
    "kanidm.cid_text": Kind("How does the server print this CID?", positions.CidText, positions.cid_as_text),
    "kanidm.merge_entry": Kind("Which state of an entry wins?", states.MergeEntry, states.merge_entry),
    "kanidm.attributes_to_send": Kind(
        "Which attributes of a selected entry are sent?", states.AttributesToSend, states.attributes_to_send
    ),
    "kanidm.tombstone_reap": Kind(
        "Which tombstones are deleted for good at each purge?", states.TombstoneReap, states.tombstone_reap
    ),
    "kanidm.scenario": Kind("What happens over days of writes, purges and pulls?", days.Scenario, days.scenario),
    "kanidm.design_may_supply": Kind("May this pair talk?", design.TwoVectors, design.may_supply),
    "kanidm.design_cids_to_send": Kind("Which changes, in which order?", design.CidsToSend, design.cids_to_send),
    "kanidm.design_ruv_after": Kind("What does the consumer claim afterwards?", design.RuvAfter, design.ruv_after),
    "kanidm.design_sort_cids": Kind("Which change came first?", design.SortCids, design.sort_cids),
    "kanidm.design_next_csn": Kind("When is the next own change?", design.NextCsn, design.next_csn),
    "kanidm.design_replay": Kind("What do the changelogs add up to?", design.Replay, design.replay),
    "kanidm.design_suppressed_noops": Kind(
        "Which purge was wrongly left out?", design.SuppressedNoops, design.suppressed_noops
    ),
    "kanidm.design_entry_session": Kind(
        "Which entries go whole to the other side?", design.EntrySession, design.entry_session
    ),
    "kanidm.design_readonly_condition": Kind(
        "May this source feed this read-only without flip-flop?", design.ReadonlyCondition, design.readonly_condition
    ),
    "kanidm.design_trim": Kind("How far may the own changelog be cut?", design.Trim, design.trim),
    "kanidm.design_tombstone_purge": Kind("May this tombstone go?", design.TombstonePurge, design.tombstone_purge),
}
