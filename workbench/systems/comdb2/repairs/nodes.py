"""Repairs of nodes: started again, sent to another source, built anew from a copy; and what is better left alone."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.repair.plan_types import ALL, Need, ProposedRepair, Step, View
from workbench.replication.tier.rules.repair_model import APART, GONE, MOVED, PULLING, TierModel
from workbench.replication.tier.rules.tree_balancing import Files, balanced
from workbench.systems.comdb2 import sql
from workbench.systems.comdb2.detectors.shown import some
from workbench.systems.comdb2.lsn import shown
from workbench.systems.comdb2.repairs.consequences import who_may_move, why_none_moves
from workbench.systems.comdb2.repairs.needs import (
    CYCLE,
    FULL,
    ORPHAN,
    fanout_below,
    feeds,
    lacking_file,
    of_source,
    parted,
    safe,
    tiers_of,
)
from workbench.systems.comdb2.repairs.registry import reset_step

DONORS = 3
"""Of many nodes that could serve another one, so many are compared."""


class Restart:
    """Shut a node down and start it again: it registers when it starts."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes whose replication was stopped, or that wait though somebody would be offered to them."""
        model = tiers_of(view)
        name = need.server
        if name is None:
            return
        if of_source(view, name):
            if need.code == ORPHAN:
                steps, costs = (_enlisting(view, name),), _alone_writes(model, name)
                yield safe(
                    ProposedRepair(f"restart-{name}", f"restart {name}", steps, downtime=name, costs=costs), name
                )
            return
        if name in model.spoilt or model.condition.get(name) not in ("stopped", "pending", "orphan", "cycle"):
            return
        if not model.servers[name].up:
            yield ProposedRepair("restart", f"shut {name} down and start it again", refused=_unreached(name))
            return
        step = _restarted(
            view,
            name,
            {"do": "register", "server": name},
            says="it asks the registry for a source",
            stands_on="whoever runs it can start it",
            expects=f"{name} is Active, has a row in comdb2_physrep_connections, and sends keepalives",
            risk="what it is offered is left to the registry; nodes that pull from it find another source meanwhile"
            + _unheld(view, name),
            cannot_undo="from whom it pulled before, the registry may not offer again",
        )
        yield safe(ProposedRepair("restart", f"shut {name} down and start it again", (step,), downtime=name), name)


def _enlisting(view: View, name: str) -> Step:
    return _restarted(
        view,
        name,
        {"do": "enlist", "server": name},
        says="it writes its row into the registry when it starts",
        stands_on="whoever writes to it waits until it is back"
        if _alone_writes(tiers_of(view), name)
        else "the other nodes of its cluster do its work meanwhile",
        expects=f"{name} is Active in comdb2_physreps",
        risk="; ".join(
            filter(
                None,
                (_alone_writes(tiers_of(view), name), "nodes that pull from it find another source meanwhile, or wait"),
            )
        ),
        cannot_undo="a row that it wrote does no harm",
    )


def _restarted(
    view: View, name: str, effect: dict[str, str], says: str, stands_on: str, expects: str, risk: str, cannot_undo: str
) -> Step:
    return Step(
        key=f"restart-{name}",
        repair="restart",
        server=name,
        on=name,
        suffix=view.suffix,
        says=f"{name} is shut down cleanly and started again; {says}",
        stands_on=f"{name} can be shut down now: {stands_on}",
        expects=expects,
        risk=risk,
        cannot_undo=f"it runs as before; {cannot_undo}",
        commands=(("at", *sql.split(name), sql.send("exit")),),
        sends=f"# after it has ended, start {name} again, as its service does\n",
        effects=(effect,),
    )


class StartReplication:
    """Starting the replication of a node by command."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that were stopped by command: what everybody tries first."""
        model = tiers_of(view)
        if need.server is not None and model.condition.get(need.server) == "stopped":
            why = "in the one known try the whole node hung: it answered no SQL any more, its state was `InActive`"
            says = f"call sys.cmd.start_replication on {need.server}"
            yield ProposedRepair("start-replication", says, refused=why)


class ForceRegistration:
    """Let nodes ask the registry anew, without stopping them."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes under one that serves too many or is gone, and for nodes that hang on no source."""
        model = tiers_of(view)
        name = need.server
        if name is None or (need.code != FULL and of_source(view, name)):
            return  # of the source, `Disconnect` and `Restart` are for
        parents = model.parents(name)
        useless = parents and not any(node in model.servers and feeds(model, node, name) for node in parents)
        stuck = need.lacks and useless and model.condition.get(name) in PULLING | APART
        if need.code != FULL and name in model.spoilt:
            return
        if need.code not in (FULL, CYCLE, ORPHAN) and name not in model.parted and not stuck:
            return
        if need.code == FULL:
            # Those that have to move for the fewest moves, if each went where there is room.
            ends = {one.name: one.file for one in model.registry.nodes if one.file is not None}
            found = balanced(model.registry, model.source_of[name], fanout_below(model, name), _files(model), ends)
            moving = [one.name for one in found.moves if one.was == name and model.servers[one.name].up]
            children = [one for one in model.tree(model.source_of[name]).places[name].children if one in model.servers]
            able = who_may_move(view, [*moving, *(one for one in children if model.servers[one].up)])
            if moving and not able:
                why = why_none_moves(view, moving[0])
                yield ProposedRepair("force-registration", f"let {moving[0]} ask the registry anew", refused=why)
                return
            moving = able[: len(moving)]
        else:
            moving = [name]
        steps = tuple(_force(view, one) for one in moving)
        says = f"let {', '.join(moving[:3])}{', ...' if len(moving) > 3 else ''} ask the registry anew"
        if moving == [name] and not model.servers[name].up:
            yield ProposedRepair("force-registration", says, refused=_unreached(name))
        elif steps:
            yield safe(
                ProposedRepair("force-registration", says, steps),
                *moving,
                *(up for one in moving for up in model.parents(one)),
            )


def _unreached(name: str) -> str:
    return f"{name} did not answer: no command reaches it"


def _files(model: TierModel) -> Files:
    """Node -> first and last file of its log, of those that are there."""
    found = {}
    for name, server in model.servers.items():
        span = server.vector.get(model.source_of[name])
        if server.up and span and span.min and span.max:
            found[name] = (model.file_of(span.min), model.file_of(span.max))
    return found


def _force(view: View, name: str) -> Step:
    model = tiers_of(view)
    parents = model.parents(name)
    back = tuple(("registry", sql.connect(name, parent)) for parent in parents)
    cuts = ", and cuts off the end of its log, which its source does not have" if name in model.parted else ""
    return Step(
        key=f"force-registration-of-{name}",
        repair="force_registration",
        server=name,
        on=name,
        suffix=view.suffix,
        says=f"{name} closes its connection and registers anew{cuts}",
        stands_on=f"{name} replicates, and the registry would offer it a node that has its file",
        expects=f"{name} says in its log that it found a match, and the end of its log moves with that of the source"
        if cuts
        else f"the row of {name} in comdb2_physrep_connections names another source"
        if model.row(name)
        else f"{name} has a row in comdb2_physreps, and is Active",
        risk="of equal candidates the registry takes one by chance: it may be the same one again; builds that do not know the "
        f"message say so, and then a clean restart of the node does the same{_unheld(view, name)}",
        cannot_undo=f"what only {name} had is gone: dump its log first, if anybody may ask for it"
        if cuts
        else "from whom it pulled before, only the registry can offer it again",
        commands=(
            *((("registry", sql.disconnect(name)),) if _in_circle(model, name) else ()),
            ("at", *sql.split(name), sql.send("physrep_force_registration")),
        ),
        undo_commands=back if _in_circle(model, name) else (),
        effects=({"do": "register", "server": name},),
    )


def _unheld(view: View, name: str) -> str:
    """What may happen while a node registers for whom log files are kept; empty: none are kept for it."""
    model = tiers_of(view)
    held = model.hold(model.source_of[name])
    if held.kept_from is None or name not in held.holders:
        return ""
    return "; from the moment it registers until it pulls, its row keeps no log file: those that only it held may be deleted then"


def _in_circle(model: TierModel, name: str) -> bool:
    return name in model.in_circles()


class Donor:
    """Point a node at another one that still has the file it needs."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that lack something; those that do not have the file are named too, and refused."""
        model = tiers_of(view)
        name = need.server
        if name is None or not need.lacks or of_source(view, name) or name in model.spoilt:
            return
        able = [one for one in model.serving(name) if one not in parted(view)]
        for donor in able[:DONORS]:
            yield safe(
                ProposedRepair(
                    f"donor-{donor}", f"let {name} pull from {donor}", (_donor_step(view, name, donor),), downtime=name
                ),
                name,
                donor,
            )
        if not able:
            file = model.needed_file(name)
            for donor in sorted(one for one in model.tree(model.source_of[name]).roots if model.servers[one].up)[:1]:
                lacking = file if file is None else lacking_file(model, donor, file)
                having = [one for one in model.serving(name) if one in parted(view)]
                why = f"{donor} does not have file {lacking} any more, and "
                have, tiers = "has" if len(having) == 1 else "have", view.context.verdicts.tiers
                other = "may have" if having and tiers is not None and having[0] in tiers.last_holders else have
                why += (
                    f"{some(having)}, which {have} it, {other} another log than the source, or one that lacks records"
                    if having
                    else "neither has any other node that answers"
                )
                yield ProposedRepair(f"donor-{donor}", f"let {name} pull from {donor}", refused=why)


def _donor_step(view: View, name: str, donor: str) -> Step:
    model = tiers_of(view)
    file = model.needed_file(name)
    line = f"replicate_from {donor.partition('@')[0]} @{donor.partition('@')[2]}"
    return Step(
        key=f"{name}-from-{donor}",
        repair="replicate_from",
        server=name,
        on=name,
        suffix=view.suffix,
        says=f"{name} pulls from {donor}, which has file {file}",
        stands_on=f"{donor} still has file {file} when {name} starts: where it was gone by then it failed",
        expects=f"the end of the log of {name} moves past file {file}",
        risk=f"{donor} deletes files meanwhile like any other node: be quick, or let its MIN_KEEP_LOGS be raised first"
        + _unheld(view, name),
        undo=f"put the old line replicate_from back, and start {name} again, once it is up to date",
        sends=f"# in the configuration file of {name}, in place of replicate_from; then shut it down and start it\n{line}\n",
        effects=({"do": "pull_from", "server": name, "source": donor},),
        details={"line": line},
    )


class Rebuild:
    """Build a node anew from a copy of another one that was shut down cleanly."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that no log can bring up to date; from the nodes of its database first."""
        # One that is gone is taken out of the tree: nobody has to shut another node down for it.
        model = tiers_of(view)
        name = need.server
        bad = name in model.spoilt | model.parted
        if name is None or not (need.lacks or bad) or of_source(view, name):
            return
        silent, gone = _silent_holders(view, name) if not bad else ([], [])
        file = model.needed_file(name)
        given_up = f"; {some(gone)}, which had log file {file}, cannot be started: else start it first" if gone else ""
        tiers = view.context.verdicts.tiers
        # Of one that was made anew only the plan says that its log is whole.
        damaged = (
            {one for one in tiers.logs.spoilt if model.condition.get(one) == MOVED} if tiers is not None else set()
        )
        fit = [one for one in self._siblings(model, name) if one not in parted(view) | damaged]
        # Of a log that is not the source's its end tells nothing: it is replaced whatever it is.
        for sibling in [one for one in fit if bad or model.was_ahead(one, name)][:DONORS]:
            writes = _alone_writes(model, sibling)
            steps = (
                *((reset_step(view, name, "has ended"),) if model.parents(name) else ()),
                self._step(view, name, sibling, writes, given_up),
            )
            draft = ProposedRepair(
                f"rebuild-from-{sibling}",
                f"build {name} anew from a copy of {sibling}",
                steps,
                load=f"all data of {sibling} is copied once",
                costs=writes,
                downtime=f"{name}, and {sibling} while it is copied",
                unasked=_started_first(silent, file),
            )
            yield safe(draft, name, sibling, *model.parents(name))

    @staticmethod
    def _siblings(model: TierModel, name: str) -> list[str]:
        """Who is up to date, or comes there, and could be copied: of the same database, then any replicant; the source last."""
        source, database = model.source_of[name], name.partition("@")[0]
        here = [
            one
            for one in model.servers.values()
            if one.up and source in one.vector and model.source_of[one.name] == source
        ]
        most = max((len(one.holds) for one in here), default=0)
        whole = [one.name for one in here if len(one.holds) == most]
        # One that pulls and gets on is brought the rest by its source: the copy as well.
        fed = {link.consumer for link in model.links if link.runs} & model.going_on(source)
        fit = [
            one.name for one in here if one.name in whole or (one.name in fed and model.condition[one.name] in PULLING)
        ]
        # One that an earlier step made a copy of another one, or moved, is where that one was, or where it was itself.
        level = {one for one in whole if model.condition[one] == MOVED and model.was_at_head(one)}
        fit = [one for one in fit if one != name and (one in level or model.condition[one] in (*PULLING, "untold"))]

        def rank(one: str) -> tuple[bool, bool, bool, str]:
            base = one.partition("@")[0]
            return base == source, one not in whole, base != database, one

        return sorted(fit, key=rank)

    @staticmethod
    def _step(view: View, name: str, sibling: str, writes: str, given_up: str) -> Step:
        source, host = sibling.partition("@")[2], name.partition("@")[2]
        todo = [
            f"1. end the process of {name}, if it is still there",
            f"2. shut {sibling} down cleanly: {sql.send('exit')}; wait until its process has ended",
            f"3. copy its whole data directory, logs included, from {source} to {host}, in place of what is there",
            f"4. start {sibling} again",
            f"5. keep the configuration file of {name}: its own name, replicate_from, physrep_metadb; `nonames` must be set",
            f"6. start {name}",
        ]
        return Step(
            key=f"rebuild-{name}-from-{sibling}",
            repair="rebuild",
            server=name,
            on=name,
            suffix=view.suffix,
            says=f"all data of {name} is replaced by a copy of {sibling}, which is shut down for the time of copying",
            stands_on=f"{_standing(view, sibling)} can be shut down; there is room for the copy{given_up}"
            + (f"; the log of {name} was read once more, and is no better" if name in tiers_of(view).spoilt else ""),
            expects=f"{name} registers when it starts, and the end of its log moves with that of the source",
            risk="; ".join(filter(None, (writes, "a copy of a node that runs is no copy")))
            + "; nodes that pull from it find another source meanwhile"
            + (", or wait" if writes else ""),
            cannot_undo="the data directory is replaced: move the old one aside first, as long as there is room",
            sends="".join(f"{line}\n" for line in todo),
            changes=ALL,
            effects=(
                {"do": "initialise", "source": sibling, "server": name},
                {"do": "replace_log", "source": sibling, "server": name},
                {"do": "start", "server": name},
                {"do": "register", "server": name},
            ),
            details={"level": [sibling, name]},
        )


def _standing(view: View, name: str) -> str:
    """A node that is copied, and how far it was when it was collected."""
    model = tiers_of(view)
    if model.was_at_head(name):
        return f"{name} is up to date and"
    return f"{name}, which stood at {shown(model.stood[name])} when it was collected and is brought the rest by its source,"


def _silent_holders(view: View, name: str) -> tuple[list[str], list[str]]:
    """The nodes that do not answer and may bring the log file that one needs: those that are in the tree, and those that a step
    of this plan takes out as gone for good, which a person has to ask for.
    """
    model = tiers_of(view)
    silent = model.silent_holders(name)
    out = [node for node in silent if model.condition.get(node) in GONE and model.is_out(node)]
    return [node for node in silent if node not in out], out


def _started_first(silent: list[str], file: int | None) -> str:
    """Why a rebuild waits; empty: no node that stays in the tree may bring the file."""
    if not silent:
        return ""
    has, does, it = ("has", "does", "it") if len(silent) == 1 else ("have", "do", "one of them")
    return f"{some(silent)} {has} log file {file} and {does} not answer: first start {it}, collect again, and plan anew"


def _alone_writes(model: TierModel, name: str) -> str:
    """What it costs to shut down the only node of the source that is there; empty: it is not that one."""
    source = model.source_of[name]
    writing = [one for one in model.roots(source) if model.servers[one].up]
    return (
        f"while {name} is shut down nobody can write to {source}: no other node of it is there"
        if writing == [name]
        else ""
    )


class AskTopology:
    """The procedure that is said to return all nodes with their tiers."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For trees that are not whole: who looks for the shape of a tree finds this first."""
        if need.code in (CYCLE, ORPHAN):
            why = "it fails in every version: its query has no row to start from. The tree is worked out from the tables instead"
            yield ProposedRepair("ask-topology", "call sys.physrep.topology on the registry", refused=why)
