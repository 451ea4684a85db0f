"""The repairs of 389 Directory Server: the ladder that was really tried, the gentlest first.

native    change records, names of entries, and the server's own commands
evidence  what a repair asks the case: missing modifications, present values, stranded changes
links     let the changes flow that are there: enable, one harmless change, rescue, a temporary agreement
data      put back what no session will bring: write again, delete and add, initialise, clean
differing write values once more that entries of a server lack
refused   what people try and must not: each with its reason, and where it can be shown, with what it loses

Planning only: what does the steps on real servers is `workbench.systems.ds389.live.step_executors`.
"""

from workbench.repair.obstacles import EMPTY
from workbench.repair.plan_types import DISABLED, ROLLED_BACK, Repairs
from workbench.systems.ds389.native import checks
from workbench.systems.ds389.repairs.data import Recreate, Rewrite, healed
from workbench.systems.ds389.repairs.differing import REPLICATION_WAS_OFF, WriteLacked, also
from workbench.systems.ds389.repairs.filling import Clean, CleanFormer, Initialise
from workbench.systems.ds389.repairs.links import Enable, Rescue, TemporaryAgreement, Wake, comes_first, lets_trim
from workbench.systems.ds389.repairs.refused import (
    AddOnConsumer,
    CleanByForce,
    IgnoreMissing,
    ImportChangelog,
    InitialiseBackwards,
    ModifyMissing,
)

_LADDER = (
    Enable(),
    Wake(),
    CleanFormer(),
    Rescue(),
    TemporaryAgreement(),
    Rewrite(),
    WriteLacked(),
    Initialise(),
    Recreate(),
    Clean(),
    CleanByForce(),
    IgnoreMissing(),
    ModifyMissing(),
    AddOnConsumer(),
    ImportChangelog(),
    InitialiseBackwards(),
)
"""In the order in which they are considered. A way that gives something up comes behind one that does not, whatever stands
here: delete and add takes an entry's identity from it on every server, so it stands behind an initialisation."""

_WAITING = ("NEVER_CONTACTED", "STALLED_BUT_GREEN")

_ANCHOR = ("REINIT_REQUIRED", "ANCHOR_MISSING", "ANCHOR_PURGED")
_MENDS = {
    "initialise": (
        *_ANCHOR,
        *_WAITING,
        ROLLED_BACK,
        "OWN_CHANGES_HIDDEN",
        "VECTOR_AHEAD_OF_LOG",
        "ENTRIES_DIFFER",
        REPLICATION_WAS_OFF,
    ),
    "temporary-agreement": _ANCHOR,
    "wake": (*_ANCHOR, *_WAITING, "BROKEN_VECTOR"),
    "rescue": (ROLLED_BACK, *_WAITING),
    "enable": _WAITING,
}
"""What made a server lack changes is not among them, unless it is gone with the repair: a refusal comes again."""

REPAIRS = Repairs(
    _LADDER,
    checks,
    ending="ldif",
    by_hand="The names of servers stand for their instances on this machine: elsewhere, write a URL in their place. "
    "The commands act as the user who runs them, over the server's socket.",
    checked="`sh check.sh` shows what the servers claim, and entries in conflict: when all is well the same position of every "
    "origin on all servers, and no such entry.",
    stuck=(EMPTY, ROLLED_BACK, "REINIT_REQUIRED", *_WAITING, DISABLED),
    waiting=frozenset(_WAITING),
    healed=healed,
    also=also,
    first=comes_first,
    late=lets_trim,
    mends=_MENDS,
)
