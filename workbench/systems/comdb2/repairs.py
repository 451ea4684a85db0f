"""The repairs of Comdb2: rows of the registry put right, nodes sent to another source, a node built anew from a copy.

Most are SQL for the database that holds the registry, to be read and run by a person; some are lines of a node's configuration
file. What hung or failed when it was tried is among the ways, refused, so that nobody tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.repairs.plans import ALL, Draft, Need, Repairs, Step, View
from workbench.rules.balancing import Files, balanced
from workbench.rules.tier_mending import GONE, TierModel
from workbench.systems.comdb2 import sql

if TYPE_CHECKING:
    from workbench.rules.mending import Model

HUNG, INACTIVE, FULL, GAP, REBUILT = (
    "REPLICANT_HUNG",
    "REPLICANT_INACTIVE",
    "FANOUT_EXCEEDED",
    "LOG_GAP",
    "REINIT_REQUIRED",
)
CYCLE, ORPHAN, REVERSE = "TOPOLOGY_CYCLE", "TOPOLOGY_ORPHAN", "REVERSE_LINK_MISSING"
LIMIT = "PENDING_LIMIT"

DONORS = 3
"""Of many nodes that could serve another one, so many are compared."""

Command = tuple[str, ...]

_PREAMBLE = """\
# The database that holds the registry, and how SQL is run there: name it, as in `REGISTRY=physmeta sh repair.sh`.
registry() { cdb2sql --tabs "${REGISTRY:?the database that holds the comdb2_physrep tables}" default "$1"; }
# How SQL is run on one node: database, host, statement.
at() { cdb2sql --tabs --host "$2" "$1" "$3"; }
"""


def _checks(servers: Sequence[Mapping[str, Any]]) -> Iterator[Command]:
    """The rows of the registry; then of each node the ends of its log, as it tells itself."""
    yield "registry", sql.NODES
    yield "registry", sql.PULLS
    for name in sorted({one["server"] for one in servers}):
        if sql.is_plain(name):
            yield "at", *sql.split(name), sql.FIRST
            yield "at", *sql.split(name), sql.LAST


def _safe(draft: Draft, *names: str) -> Draft:
    """A name that is no plain word stands in no statement: what it would become there nobody can say."""
    odd = [name for name in names if not sql.is_plain(name)]
    if not odd:
        return draft
    return Draft(draft.way, draft.says, refused=f"{odd[0]!a} is no plain name, and goes into no statement")


def _tiers(view: View) -> TierModel:
    assert isinstance(view.model, TierModel), "these repairs are of nodes in tiers"
    return view.model


def _of_source(view: View, name: str) -> bool:
    """A node of the source cluster: its cluster brings it up to date, and no node below it may be copied over it."""
    return name.partition("@")[0] == _tiers(view).source_of.get(name)


def _parted(view: View) -> set[str | None]:
    """Nodes whose log is another history than that of the source, or goes on behind it: who pulls from one gets that, too."""
    return {one.server for one in view.about("LOG_DIVERGED")}


# --- what is to be mended although nothing is lacking


def _also(view: View, model: Model) -> Iterator[Need]:
    """Rows of nodes that are gone, nodes that serve too many, and nodes that hang on no source."""
    assert isinstance(model, TierModel)
    for name in model.ghosts():
        yield Need(HUNG, view.suffix, name)
    told = {one.server for one in view.about(FULL)}
    for name in model.over_full():
        if name in told:
            yield Need(FULL, view.suffix, name)
    circles = set(model.in_circles())
    cut = any(model.servers[name].up for name in circles)  # then not at a node that does not answer
    for name, condition in sorted(model.condition.items()):
        if name in circles and cut and not model.servers[name].up:
            continue
        if condition in _APART:
            yield Need(_APART[condition], view.suffix, name)
        elif name in circles and condition not in GONE:  # those are reset, and their row is gone then
            yield Need(CYCLE, view.suffix, name)
    if model.refuses_all() and not model.ghosts():  # with those out of the way others may be answered
        yield Need(LIMIT, view.suffix)
    for name in model.unlisted() if view.about(ORPHAN) else ():
        if model.condition[name] not in _APART:
            yield Need(ORPHAN, view.suffix, name)
    for one in view.about(REVERSE):
        if one.server in model.servers and model.condition.get(one.server) in ("no_source", "pending"):
            yield Need(REVERSE, view.suffix, one.server)


_APART = {"cycle": CYCLE, "orphan": ORPHAN}
_STUCK = (REBUILT, GAP, CYCLE, ORPHAN, HUNG, INACTIVE, REVERSE)


# --- the ways


class ResetNode:
    """Take the row of a node that is gone out of the tree."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that do not answer and whose rows still say that they replicate."""
        if need.code != HUNG or need.server is None or _of_source(view, need.server):
            return  # a node of the source that is inactive is no candidate any more, and it is whose log all others have
        says = f"take {need.server} out of the tree"
        names = (need.server, *_tiers(view).parents(need.server))
        yield _safe(Draft("reset-node", says, (reset_step(view, need.server, _FOR_GOOD),)), *names)


_FOR_GOOD = "is gone for good: look at the machine, no table tells it from a frozen one"


def reset_step(view: View, name: str, why: str) -> Step:
    """What makes a row Inactive, and deletes its connection."""
    model = _tiers(view)
    row, parents, held = model.row(name), model.parents(name), model.hold(model.source_of[name]).holders
    state = row.state if row and row.state is not None else "Active"
    below = model.tree(model.source_of[name]).places.get(name)
    children = ", ".join(below.children) if below else ""
    back = [sql.set_state(name, state), *(sql.connect(name, parent) for parent in parents)]
    holds = "log files that only it held may be deleted by the others at once" if name in held else ""
    stays = f"{children} go on pulling from it, if it still serves them" if children else ""
    frozen = "a node that was only frozen registers anew when it goes on, and what it needs may be gone by then"
    return Step(
        key=f"reset-{name}",
        repair="reset",
        server=name,
        on="registry",
        suffix=view.suffix,
        says=f"the registry sets {name} to Inactive and forgets from whom it pulls",
        stands_on=f"the process of {name} {why}",
        expects=f"{name} is Inactive in comdb2_physreps, and has no row in comdb2_physrep_connections",
        risk="; ".join(filter(None, (holds, stays, frozen))),
        undo=f"give {name} its row and its connection back",
        commands=(("registry", sql.reset(name)),),
        undo_commands=tuple(("registry", statement) for statement in back),
        effects=({"do": "reset", "server": name},),
        details={"parents": parents, "state": state},
    )


class Disconnect:
    """Delete the row that says that a node of the source pulls from one below it."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For circles that lead through the source."""
        if need.code != CYCLE or need.server is None or not _of_source(view, need.server):
            return
        model, name = _tiers(view), need.server
        source, parents = model.source_of[name], model.parents(name)
        says = f"delete the connection of {name}, which is of the source"
        if all(followed != source for followed, _ in model.follows.values()):
            # In a circle every database could be the one at the top.
            why = f"nobody is told to follow {source}: collect the tunables, to see which database is the source"
            yield Draft("disconnect", says, refused=why)
            return
        step = Step(
            key=f"disconnect-{name}",
            repair="disconnect",
            server=name,
            on="registry",
            suffix=view.suffix,
            says=f"the registry forgets that {name} pulls from {', '.join(parents)}",
            stands_on=f"{name} is of the source: look that no replicate_from stands in its configuration",
            expects=f"{name} has no row in comdb2_physrep_connections",
            risk="what pulls from it stays as it is",
            undo="insert the row again",
            commands=(("registry", sql.disconnect(name)),),
            undo_commands=tuple(("registry", sql.connect(name, parent)) for parent in parents),
            effects=({"do": "disconnect", "server": name},),
        )
        yield _safe(Draft("disconnect", says, (step,)), name, *parents)


class RaiseLimit:
    """Let more nodes wait for a source before the registry refuses all."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For registries that refuse everybody although no row that waits is of a node that is gone."""
        if need.code != LIMIT:
            return
        model = _tiers(view)
        before, waiting = model.rules.most_pending, model.waiting()
        limit = 2 * len(waiting)
        step = Step(
            key="pending-limit",
            repair="pending_limit",
            server=next(name for name in waiting if name in model.servers),
            on="registry",
            suffix=view.suffix,
            says=f"the registry lets {limit} nodes wait in place of {before}, and answers again",
            stands_on="the database that holds the registry can be restarted, its nodes one after the other",
            expects=f"fewer than {len(waiting)} nodes are Pending within a minute: each asks once a second",
            risk="while it restarts nobody registers and no report is recorded; who pulls goes on pulling",
            undo=f"take the line out, or set it back to {before}, and restart",
            sends="# in the configuration file of the database that holds the registry, on each of its nodes; then restart them\n"
            f"physrep_max_pending_replicants {limit}\n",
            effects=({"do": "set_pending_limit", "limit": limit},),
        )
        yield Draft("raise-pending-limit", f"raise the limit of nodes that wait to {limit}", (step,))


class Restart:
    """Shut a node down and start it again: it registers when it starts."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes whose replication was stopped, or that wait though somebody would be offered to them."""
        model = _tiers(view)
        name = need.server
        if name is None:
            return
        if _of_source(view, name):
            if need.code == ORPHAN:
                yield _safe(Draft(f"restart-{name}", f"restart {name}", (_enlisting(view, name),), downtime=name), name)
            return
        if model.condition.get(name) not in ("stopped", "pending", "orphan", "cycle"):
            return
        step = Step(
            key=f"restart-{name}",
            repair="restart",
            server=name,
            on=name,
            suffix=view.suffix,
            says=f"{name} is shut down cleanly and started again; it asks the registry for a source",
            stands_on=f"{name} can be shut down now, and whoever runs it can start it",
            expects=f"{name} is Active, has a row in comdb2_physrep_connections, and sends keepalives",
            risk="what it is offered is left to the registry; nodes that pull from it find another source meanwhile",
            cannot_undo="it runs as before; from whom it pulled before, the registry may not offer again",
            commands=(("at", *sql.split(name), sql.send("exit")),),
            sends=f"# after it has ended, start {name} again, as its service does\n",
            effects=({"do": "register", "server": name},),
        )
        yield _safe(Draft("restart", f"shut {name} down and start it again", (step,), downtime=name), name)


def _enlisting(view: View, name: str) -> Step:
    return Step(
        key=f"restart-{name}",
        repair="restart",
        server=name,
        on=name,
        suffix=view.suffix,
        says=f"{name} is shut down cleanly and started again; it writes its row into the registry when it starts",
        stands_on=f"{name} can be shut down now: the other nodes of its cluster do its work meanwhile",
        expects=f"{name} is Active in comdb2_physreps",
        risk="where it is the only node of its cluster, nobody can write until it is back; nodes that pull from it find another "
        "source meanwhile, or wait",
        cannot_undo="it runs as before; a row that it wrote does no harm",
        commands=(("at", *sql.split(name), sql.send("exit")),),
        sends=f"# after it has ended, start {name} again, as its service does\n",
        effects=({"do": "enlist", "server": name},),
    )


class StartReplication:
    """Starting the replication of a node by command."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that were stopped by command: what everybody tries first."""
        model = _tiers(view)
        if need.server is not None and model.condition.get(need.server) == "stopped":
            why = "in the one known try the whole node hung: it answered no SQL any more, its state was `InActive`"
            says = f"call sys.cmd.start_replication on {need.server}"
            yield Draft("start-replication", says, refused=why)


class ForceRegistration:
    """Let nodes ask the registry anew, without stopping them."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes under one that serves too many or is gone, and for nodes that hang on no source."""
        model = _tiers(view)
        name = need.server
        if name is None or (need.code != FULL and _of_source(view, name)):
            return  # of the source, `Disconnect` and `Restart` are for
        above = {model.condition.get(one) for one in model.parents(name)}
        if need.code not in (FULL, CYCLE, ORPHAN) and not (need.lacks and above and above <= GONE):
            return
        if need.code == FULL:
            # Those that have to move for the fewest moves, if each went where there is room.
            found = balanced(model.registry, model.source_of[name], _fanout(model, name), _files(model))
            moving = [one.name for one in found.moves if one.was == name and model.servers[one.name].up]
        else:
            moving = [name]
        steps = tuple(_force(view, one) for one in moving)
        says = f"let {', '.join(moving[:3])}{', ...' if len(moving) > 3 else ''} ask the registry anew"
        if steps:
            yield _safe(
                Draft("force-registration", says, steps), *moving, *(up for one in moving for up in model.parents(one))
            )


def _fanout(model: TierModel, name: str) -> int:
    return model.rules.fanout_of(model.source_of[name])


def _files(model: TierModel) -> Files:
    """Node -> first and last file of its log, of those that are there."""
    found = {}
    for name, server in model.servers.items():
        span = server.vector.get(model.source_of[name])
        if server.up and span and span.min and span.max:
            found[name] = (model.file_of(span.min), model.file_of(span.max))
    return found


def _force(view: View, name: str) -> Step:
    model = _tiers(view)
    parents = model.parents(name)
    back = tuple(("registry", sql.connect(name, parent)) for parent in parents)
    return Step(
        key=f"force-registration-of-{name}",
        repair="force_registration",
        server=name,
        on=name,
        suffix=view.suffix,
        says=f"{name} closes its connection and registers anew",
        stands_on=f"{name} replicates, and the registry would offer it a node that has its file",
        expects=f"the row of {name} in comdb2_physrep_connections names another source"
        if model.row(name)
        else f"{name} has a row in comdb2_physreps, and is Active",
        risk="of equal candidates the registry takes one by chance: it may be the same one again; builds that do not know the "
        "message say so, and then a clean restart of the node does the same",
        cannot_undo="from whom it pulled before, only the registry can offer it again",
        commands=(
            *((("registry", sql.disconnect(name)),) if _in_circle(model, name) else ()),
            ("at", *sql.split(name), sql.send("physrep_force_registration")),
        ),
        undo_commands=back if _in_circle(model, name) else (),
        effects=({"do": "register", "server": name},),
    )


def _in_circle(model: TierModel, name: str) -> bool:
    return name in model.in_circles()


class FanoutOverride:
    """Let more nodes pull from one below this source."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that serve more than the fanout, where nobody wants them moved."""
        if need.code != FULL or need.server is None:
            return
        model = _tiers(view)
        source = model.source_of[need.server]
        before, serves = _fanout(model, need.server), len(model.tree(source).places[need.server].children)
        step = Step(
            key=f"fanout-of-{source}",
            repair="fanout_override",
            server=need.server,
            on="registry",
            suffix=view.suffix,
            says=f"the registry lets {serves} nodes pull from each below {source}, in place of {before}",
            stands_on=f"{need.server} bears {serves} nodes: each of them runs a query on it that does not end",
            expects=f"nobody below {source} serves more than {serves}",
            risk="it holds until the registry is started again: for longer, the same line goes into its configuration file; and "
            "every other node below that source is filled up to it too",
            undo=f"set it back to {before}",
            commands=(("registry", sql.send(f"physrep_fanout_override {source} {serves}")),),
            undo_commands=(("registry", sql.send(f"physrep_fanout_override {source} {before}")),),
            effects=({"do": "set_fanout", "source": source, "fanout": serves},),
        )
        draft = Draft("fanout-override", f"raise the fanout below {source} to {serves}", (step,))
        yield _safe(
            Draft(draft.way, draft.says, draft.steps, costs=f"{need.server} stays as busy as it is"), f"{source}@x"
        )


class Donor:
    """Point a node at another one that still has the file it needs."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that lack something; those that do not have the file are named too, and refused."""
        model = _tiers(view)
        name = need.server
        if name is None or not need.lacks or _of_source(view, name):
            return
        able = [one for one in model.serving(name) if one not in _parted(view)]
        for donor in able[:DONORS]:
            yield _safe(
                Draft(
                    f"donor-{donor}", f"let {name} pull from {donor}", (_donor_step(view, name, donor),), downtime=name
                ),
                name,
                donor,
            )
        if not able:
            file = model.needed_file(name)
            for donor in sorted(one for one in model.tree(model.source_of[name]).roots if model.servers[one].up)[:1]:
                why = f"{donor} does not have file {file} any more, and neither has any other node that answers"
                yield Draft(f"donor-{donor}", f"let {name} pull from {donor}", refused=why)


def _donor_step(view: View, name: str, donor: str) -> Step:
    model = _tiers(view)
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
        risk=f"{donor} deletes files meanwhile like any other node: be quick, or let its MIN_KEEP_LOGS be raised first",
        undo=f"put the old line replicate_from back, and start {name} again, once it is up to date",
        sends=f"# in the configuration file of {name}, in place of replicate_from; then shut it down and start it\n{line}\n",
        effects=({"do": "pull_from", "server": name, "source": donor},),
        details={"line": line},
    )


class Rebuild:
    """Build a node anew from a copy of another one that was shut down cleanly."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that no log can bring up to date; from the nodes of its database first."""
        # One that is gone is taken out of the tree: nobody has to shut another node down for it.
        model = _tiers(view)
        name = need.server
        if name is None or not need.lacks or _of_source(view, name):
            return
        for sibling in [one for one in self._siblings(model, name) if one not in _parted(view)][:DONORS]:
            writes = _alone_writes(model, sibling)
            steps = (
                *((reset_step(view, name, "has ended"),) if model.parents(name) else ()),
                self._step(view, name, sibling, writes),
            )
            draft = Draft(
                f"rebuild-from-{sibling}",
                f"build {name} anew from a copy of {sibling}",
                steps,
                load=f"all data of {sibling} is copied once",
                costs=writes,
                downtime=f"{name}, and {sibling} while it is copied",
            )
            yield _safe(draft, name, sibling, *model.parents(name))

    @staticmethod
    def _siblings(model: TierModel, name: str) -> list[str]:
        """Who is up to date and could be copied: of the same database, then any replicant; the source itself last."""
        source, database = model.source_of[name], name.partition("@")[0]
        here = [one for one in model.servers.values() if one.up and model.source_of[one.name] == source]
        most = max((len(one.holds) for one in here), default=0)
        whole = [one.name for one in here if one.name != name and len(one.holds) == most]
        whole = [one for one in whole if model.condition[one] in ("healthy", "behind", "delayed", "delayed_above")]

        def rank(one: str) -> tuple[bool, bool, str]:
            base = one.partition("@")[0]
            return base == source, base != database, one

        return sorted(whole, key=rank)

    @staticmethod
    def _step(view: View, name: str, sibling: str, writes: str) -> Step:
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
            stands_on=f"{sibling} is up to date and can be shut down; there is room for the copy",
            expects=f"{name} registers when it starts, and the end of its log moves with that of the source",
            risk="; ".join(filter(None, (writes, "a copy of a node that runs is no copy")))
            + "; nodes that pull from it find another source meanwhile"
            + (", or wait" if writes else ""),
            cannot_undo="the data directory is replaced: move the old one aside first, as long as there is room",
            sends="".join(f"{line}\n" for line in todo),
            changes=ALL,
            effects=(
                {"do": "initialise", "source": sibling, "server": name},
                {"do": "start", "server": name},
                {"do": "register", "server": name},
            ),
            details={"level": [sibling, name]},
        )


def _alone_writes(model: TierModel, name: str) -> str:
    """What it costs to shut down the only node of the source that is there; empty: it is not that one."""
    source = model.source_of[name]
    writing = [one for one in model.roots(source) if model.servers[one].up]
    return (
        f"while {name} is shut down nobody can write to {source}: no other node of it is there"
        if writing == [name]
        else ""
    )


class ReverseRow:
    """Delete the row that makes a node wait for a connection which nobody makes."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For nodes that wait for their source to connect to them."""
        if need.code != REVERSE or need.server is None:
            return
        model = _tiers(view)
        name = need.server
        rows = [row for row in model.registry.awaited if row.name == name]
        step = Step(
            key=f"reverse-row-of-{name}",
            repair="reverse_row",
            server=name,
            on="registry",
            suffix=view.suffix,
            says=f"{name} no longer waits for {', '.join(row.source for row in rows)}, and connects by itself",
            stands_on=f"{name} may open connections to its source: where no network lets it, the row is needed",
            expects=f"{name} registers within a minute, and has a row in comdb2_physrep_connections",
            risk="where the connection is forbidden it finds no source this way either: then see why the source does not connect",
            undo="insert the rows again",
            commands=(("registry", sql.await_nobody(name)),),
            undo_commands=tuple(("registry", sql.await_source(name, row.source)) for row in rows),
            effects=({"do": "await_nobody", "server": name}, {"do": "register", "server": name}),
        )
        if rows:
            draft = Draft("delete-reverse-row", f"let {name} connect by itself", (step,))
            yield _safe(draft, name, *(row.source for row in rows))


class AskTopology:
    """The procedure that is said to return all nodes with their tiers."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For trees that are not whole: who looks for the shape of a tree finds this first."""
        if need.code in (CYCLE, ORPHAN):
            why = "it fails in every version: its query has no row to start from. The tree is worked out from the tables instead"
            yield Draft("ask-topology", "call sys.physrep.topology on the registry", refused=why)


REPAIRS = Repairs(
    (
        ResetNode(),
        Disconnect(),
        ForceRegistration(),
        Restart(),
        ReverseRow(),
        FanoutOverride(),
        Donor(),
        Rebuild(),
        StartReplication(),
        RaiseLimit(),
        AskTopology(),
    ),
    _checks,
    ending="txt",
    by_hand="SQL runs in the database that holds the registry, or on the node itself, by cdb2sql; `REGISTRY` names the database. "
    "Lines of a configuration file are written where the node runs, by whoever may.",
    checked="`sh check.sh` shows the rows of the registry and the ends of each node's log. Collect again, and `workbench "
    "diagnose` shows how they stand; when all is well no node is gone, waits or lacks a file.",
    stuck=_STUCK,
    also=_also,
    preamble=_PREAMBLE,
)
"""In the order in which they are considered."""
