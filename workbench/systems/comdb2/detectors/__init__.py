"""What looks for findings of Comdb2's own.

nodes     nodes that are gone, stopped, or wait for a source
file_gaps nodes that cannot go on, because their source has deleted the file that they need
orphans   nodes that hang on no source, or of which nothing tells which one they follow
trees     the shape of the trees: circles, full and deep ones, reverse connections, who holds the log
logs      collected logs: gaps, and where they part from the source's
histories nodes of one source cluster that hold different logs
earlier   what earlier snapshots prove, and nothing since shows to be over
old_rows  rows of the registry that are older than what their nodes do
settings  what makes loss, or a false tree, likely
"""

from workbench.model import APPLYING, GENERATION, HOLES, LAG, Detectors
from workbench.systems.comdb2.detectors.earlier import (
    gone_back_before,
    gone_back_since_told,
    parted_before,
    rewritten_logs,
)
from workbench.systems.comdb2.detectors.file_gaps import cannot_go_on
from workbench.systems.comdb2.detectors.histories import apart_at_the_source, parted_siblings
from workbench.systems.comdb2.detectors.logs import (
    ahead_of_source,
    damaged_before,
    damaged_logs,
    ended_early,
    history_changed,
    newer_generation,
    older_generation,
    parted_logs,
)
from workbench.systems.comdb2.detectors.nodes import (
    gone,
    not_replicating,
    order_of_snapshots,
    reports_to_come,
    set_aside,
    standing_still,
)
from workbench.systems.comdb2.detectors.old_rows import reports_stand_still
from workbench.systems.comdb2.detectors.orphans import of_untold_source, orphans, unlisted
from workbench.systems.comdb2.detectors.settings import unsafe_settings
from workbench.systems.comdb2.detectors.trees import (
    cycles,
    full_nodes,
    held_log,
    pending_limit,
    reverse_links,
    too_deep,
)

DETECTORS: Detectors = {
    GENERATION: (history_changed,),
    HOLES: (
        damaged_logs,
        damaged_before,
        parted_before,
        gone_back_before,
        rewritten_logs,
        gone_back_since_told,
        apart_at_the_source,
        parted_siblings,
        parted_logs,
        ended_early,
        ahead_of_source,
        older_generation,
        newer_generation,
        cannot_go_on,
    ),
    APPLYING: (
        order_of_snapshots,
        reports_to_come,
        reports_stand_still,
        gone,
        not_replicating,
        standing_still,
        set_aside,
        cycles,
        orphans,
        unlisted,
        of_untold_source,
        reverse_links,
        pending_limit,
    ),
    LAG: (held_log, full_nodes, too_deep, unsafe_settings),
}
