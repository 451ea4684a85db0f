"""Repairs that change the registry alone: rows put right, and how many nodes it lets wait or pull from one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.repair.plan_types import Need, ProposedRepair, Step, View
from workbench.replication.tier.diagnosis.sole_suppliers import left_where_they_hang
from workbench.systems.comdb2 import sql
from workbench.systems.comdb2.detectors.shown import some
from workbench.systems.comdb2.repairs.consequences import who_may_move
from workbench.systems.comdb2.repairs.needs import (
    CYCLE,
    FULL,
    HUNG,
    INACTIVE,
    LIMIT,
    RESET_NODE,
    REVERSE,
    fanout_below,
    of_source,
    safe,
    tiers_of,
)


class ResetNode:
    """Take the row of a node that is gone out of the tree."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that do not answer and whose rows still say that they replicate."""
        if need.code != HUNG or need.server is None or of_source(view, need.server):
            return  # a node of the source that is inactive is no candidate any more, and it is whose log all others have
        says = f"take {need.server} out of the tree"
        names = (need.server, *tiers_of(view).parents(need.server))
        yield safe(ProposedRepair(RESET_NODE, says, (reset_step(view, need.server, _FOR_GOOD),)), *names)


_FOR_GOOD = "is gone for good: look at the machine, no table tells it from a frozen one"


def reset_step(view: View, name: str, why: str) -> Step:
    """What makes a row Inactive, and deletes its connection."""
    model = tiers_of(view)
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

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For circles that lead through the source."""
        if need.code != CYCLE or need.server is None or not of_source(view, need.server):
            return
        model, name = tiers_of(view), need.server
        source, parents = model.source_of[name], model.parents(name)
        says = f"delete the connection of {name}, which is of the source"
        if all(followed != source for followed, _ in model.follows.values()):
            # In a circle every database could be the one at the top.
            why = f"nobody is told to follow {source}: collect the tunables, to see which database is the source"
            yield ProposedRepair("disconnect", says, refused=why)
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
        yield safe(ProposedRepair("disconnect", says, (step,)), name, *parents)


class SetActive:
    """Make a node of the source a candidate again."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For sources none of whose nodes is offered to anybody: their rows say that they wait, or were set aside."""
        model, name = tiers_of(view), need.server
        row = model.row(name) if name else None
        if need.code != INACTIVE or name is None or row is None or name not in model.set_aside():
            return
        step = Step(
            key=f"set-active-{name}",
            repair="set_active",
            server=name,
            on="registry",
            suffix=view.suffix,
            says=f"the row of {name} says Active in place of {row.state}",
            stands_on=f"{name} is there, and nobody set it aside on purpose",
            expects=f"{name} is Active in comdb2_physreps, and is offered to those who register",
            risk="who registers from then on may pull from it, and costs it a query that does not end",
            undo=f"set the row to {row.state} again",
            commands=(("registry", sql.set_state(name, "Active")),),
            undo_commands=(("registry", sql.set_state(name, row.state or "")),),
            effects=({"do": "enlist", "server": name},),
        )
        yield safe(ProposedRepair("set-active", f"make {name} a candidate again", (step,)), name)


class ReverseRow:
    """Delete the row that makes a node wait for a connection which nobody makes."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that wait for their source to connect to them."""
        if need.code != REVERSE or need.server is None:
            return
        model = tiers_of(view)
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
            first = f"first see that {rows[0].source} can reach {name} and has read its list: no table tells whether {name} may "
            draft = ProposedRepair(
                "delete-reverse-row",
                f"let {name} connect by itself",
                (step,),
                unasked=f"{first}connect by itself, and where it may not, the row is what it needs",
            )
            yield safe(draft, name, *(row.source for row in rows))


class FanoutOverride:
    """Let more nodes pull from one below this source."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For nodes that serve more than the fanout, where nobody wants them moved."""
        if need.code != FULL or need.server is None:
            return
        model = tiers_of(view)
        source = model.source_of[need.server]
        before, serves = fanout_below(model, need.server), len(model.tree(source).places[need.server].children)
        step = Step(
            key=f"fanout-of-{source}",
            repair="fanout_override",
            server=need.server,
            on="registry",
            suffix=view.suffix,
            says=f"the registry lets {serves} nodes pull from each below {source}, in place of {before}",
            stands_on=f"{need.server} bears {serves} nodes: each of them runs a query on it that does not end",
            expects=f"nobody below {source} serves more than {serves}",
            risk="a node of the registry that is started again forgets it: for longer, the same line goes into its configuration "
            "file; and every other node below that source is filled up to it too",
            undo=f"set it back to {before}",
            commands=(("each_registry", sql.send(f"physrep_fanout_override {source} {serves}")),),
            undo_commands=(("each_registry", sql.send(f"physrep_fanout_override {source} {before}")),),
            effects=({"do": "set_fanout", "source": source, "fanout": serves},),
        )
        draft = ProposedRepair("fanout-override", f"raise the fanout below {source} to {serves}", (step,))
        yield safe(
            replace(draft, costs=f"{need.server} stays as busy as it is", unasked=_move_later(view, need.server)),
            f"{source}@x",
        )


def _move_later(view: View, name: str) -> str:
    """That nodes may be moved once they are past a file, so that nobody has to raise a limit for good; empty: that is not so."""
    model, left = tiers_of(view), view.context.once(left_where_they_hang)
    children = model.tree(model.source_of[name]).places[name].children
    if not (late := [one for one in children if one in left]) or who_may_move(
        view, [one for one in children if one in model.servers and model.servers[one].up]
    ):
        return ""
    file = max(left[one].until for one in late)
    return f"{some(late)} may register anew once past log file {file} (LOG_GAP): collect again then, and plan anew"


class RaiseLimit:
    """Let more nodes wait for a source before the registry refuses all."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For registries that refuse everybody although no row that waits is of a node that is gone."""
        if need.code != LIMIT:
            return
        model = tiers_of(view)
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
        yield ProposedRepair("raise-pending-limit", f"raise the limit of nodes that wait to {limit}", (step,))
