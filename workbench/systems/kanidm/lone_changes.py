"""What a server that is filled with the data of another one has alone, as far as collected entries tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from workbench.model import listed
from workbench.repair.plan_types import View
from workbench.replication.entry.diagnosis.file_times import read_in_part
from workbench.replication.entry.diagnosis.state_comparison import states_of
from workbench.systems.kanidm.domains import Filling


def has_alone(view: View, server: str, filled: Collection[str], count: int) -> str:
    """What a server that is filled has, and no server that keeps its data is known to have."""
    if _untold(view, server, filled):
        blind = listed(_kept_blind(view, filled))
        return f"nothing tells what of it another server has, for entries of {blind} were not collected"
    kept = view.model.servers.keys() - {*filled}
    in_part = _in_part(view, kept)
    has = "has" if not (_kept_blind(view, filled) or in_part) else "is known to have"
    changes = f"{count:,} {'change' if count == 1 else 'changes'}" if count else "no changes"
    if _in_part(view, [server]):
        return (
            f"of the entries that could be read in its file it has {changes} that no "
            f"{'other server' if len(filled) == 1 else 'server that keeps its data'} {has}; what its other entries have is "
            "not known"
        )
    return f"it has {changes} that no {'other server' if len(filled) == 1 else 'server that keeps its data'} {has}"


def _kept_blind(view: View, filled: Collection[str]) -> list[str]:
    """The servers that keep their data, and whose entries were not collected."""
    kept = view.model.servers.keys() - {*filled}
    return sorted(name for name in kept if not shows_entries(view, name))


def _untold(view: View, server: str, filled: Collection[str]) -> bool:
    """True if nothing tells what a server alone has: no entries of it, or of none that keeps its data, were collected."""
    kept = view.model.servers.keys() - {*filled}
    return not shows_entries(view, server) or len(_kept_blind(view, filled)) == len(kept)


def shows_entries(view: View, server: str) -> bool:
    """True if entries of a server were collected."""
    replica = view.context.replica(server, view.suffix)
    return replica is not None and states_of(view.context.case, view.context.topology, replica) is not None


def untold_loss(view: View, fillings: Sequence[Filling]) -> str:
    """What goes with the data of servers that are filled, and that no file tells."""
    filled = [to for _, to in fillings]
    if untold := [server for server in filled if _untold(view, server, filled)]:
        return f"whatever only {listed(untold, 'and')} {'has' if len(untold) == 1 else 'have'}: no collected entries tell it"
    if cut := _in_part(view, filled):
        return f"whatever only {listed(cut, 'and')} {'has' if len(cut) == 1 else 'have'} of what could not be read in {_its(cut)}"
    return ""


def _its(cut: Sequence[str]) -> str:
    return "its file" if len(cut) == 1 else "their files"


def _in_part(view: View, servers: Collection[str]) -> list[str]:
    """Those of these servers of which some entries could not be read."""
    return sorted(name for name in servers if read_in_part(view.context, name, view.suffix))
