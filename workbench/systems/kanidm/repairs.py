"""The repairs of Kanidm: a few changes written again, a new link, a refresh of one server.

Each is done by hand, at the server. A refresh brings whatever no pull brings, and throws the server's own database away: so it
is tried from every supplier that could be right, and what it would lose is counted and backed up first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.missed_by_vector import may_come_back
from workbench.diagnosis.unrelated_data import odd_ones
from workbench.model import Finding, counted, listed
from workbench.repair.plan_types import ALL, ROLLED_BACK, Need, ProposedRepair, Repairs, Step, View
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.rules.assumptions import DATA_NAMED, NEW_DOMAIN_ENDS
from workbench.rules.repair_model import ChangeGroup
from workbench.safety import as_file_name, printable
from workbench.systems.kanidm.domains import (
    ONLY_A_PERSON,
    Filling,
    ask_which,
    in_words,
    moved,
    of_another_domain,
    only_new,
)
from workbench.systems.kanidm.filling_order import after_what_others_miss
from workbench.systems.kanidm.lone_changes import has_alone, shows_entries, untold_loss
from workbench.systems.kanidm.purge_and_clock import CLOCK, STALE, SetClock, WaitForPurge
from workbench.systems.kanidm.refresh_direction import only_throws_away
from workbench.systems.kanidm.rules.ranges import CRITICAL, NO_OVERLAP, UNWILLING

if TYPE_CHECKING:
    from workbench.rules.repair_model import Model

REFRESH, BEHIND, DIVERGED, APART = "REFRESH_REQUIRED", "SUPPLIER_BEHIND", "DIVERGED", "NO_OVERLAP"
UNRELATED, OF_TWO = "UNRELATED_DATA", "DUPLICATE_ORIGIN"

SOURCES = 3
"""Of many servers that could fill another one, so many are compared."""

BY_HAND = 50
"""So many changes a person may write again one by one."""

BY_SERVER = frozenset(
    ["class", "uuid", "spn", "memberof", "directmemberof", "last_modified_cid", "created_at_cid", "version"]
)
"""Attributes that the server writes: who lacks them lacks the entry itself."""

Command = tuple[str, ...]

_PREAMBLE = """\
# How a command is run on a server: change this line where it is not `ssh NAME`, to `docker exec "$server" "$@"` for example.
on() { server=$1; shift; ssh -- "$server" "$@"; }
"""


def _kanidmd(server: str, *words: str) -> Command:
    return ("on", server, "kanidmd", *words)


def _backup(server: str, when: str) -> str:
    name = as_file_name(server).lstrip("-") or "server"  # no command takes it for an option
    return f"{name}-{when}.json"


def _back_up(server: str, file: str) -> Command:
    """`database backup` takes the lock that a running server holds, and would fail there."""
    return _kanidmd(server, "scripting", "backup", file)


def _checks(servers: Sequence[Mapping[str, Any]]) -> Iterator[Command]:
    """A backup of each server: no command prints a vector. One of an earlier check would not be written over."""
    for server in sorted({one["server"] for one in servers}):
        file = _backup(server, "checked")
        yield ("on", server, "rm", "-f", file)
        yield _back_up(server, file)


# --- what is to be mended although nothing is lacking


def _also(view: View, model: Model) -> Iterator[Need]:
    """Servers with which nothing can be exchanged any more, clocks that are ahead, origins that nobody has heard of for long."""
    assert isinstance(model, PullModel)
    yield from _stuck(view, model)
    for one in view.about(CLOCK):
        if one.server in model.servers and one.server not in model.in_time:
            yield Need(CLOCK, view.suffix, one.server)
    own = {server.origin for server in model.servers.values()}
    for one in view.about(STALE):
        if one.origin not in own and any(one.origin in server.vector for server in model.servers.values()):
            yield Need(STALE, view.suffix, origin=one.origin)


def _stuck(view: View, model: PullModel) -> Iterator[Need]:
    """One need for each server that has to be refreshed so that all pulls work again.

    Of servers that cannot be brought together it is the odd one; of two nobody can tell, and both ways are proposed.
    """
    found: dict[str, str] = {}
    pulled = {frozenset((link.supplier, link.consumer)) for link in model.links if model.stuck(link)}
    rolled_back = {one.server for one in view.about(ROLLED_BACK)}
    for link in model.links:
        answer = model.stuck(link)
        if answer is None:
            continue
        if answer.unrelated or answer.decision in _APART:
            continue
        if answer.decision == UNWILLING:
            found.setdefault(link.supplier, BEHIND)
        elif answer.replaces:
            found[link.consumer] = REFRESH
        else:
            # The other server may have another origin since: what it wrote as this one is there all the same.
            of_two = model.servers[link.consumer].origin in model.shared
            found[link.consumer] = OF_TWO if of_two else ROLLED_BACK
    for code, pairs in _apart(model).items():
        for server, others in odd_ones(pairs):
            if any(frozenset((server, other)) in pulled for other in others):
                found[server] = code
    for server, code in found.items():
        yield Need(ROLLED_BACK if server in rolled_back else code, view.suffix, server)


def _apart(model: PullModel) -> dict[str, set[frozenset[str]]]:
    """Code -> the pairs of servers that nothing can bring together, linked or not, as the diagnosis names them."""
    found: dict[str, set[frozenset[str]]] = {}
    for supplier in model.servers.values():
        for consumer in model.servers.values():
            if supplier is not consumer:
                answer = model.answer(supplier, consumer)
                if code := UNRELATED if answer.unrelated else _APART.get(answer.decision, ""):
                    found.setdefault(code, set()).add(frozenset((supplier.name, consumer.name)))
    return found


_APART = {CRITICAL: DIVERGED, NO_OVERLAP: APART}
_STUCK = (OF_TWO, ROLLED_BACK, UNRELATED, APART, DIVERGED, REFRESH, BEHIND)


# --- the ways


def _until_the_purge(view: View, supplier: str, server: str) -> Iterator[str]:
    """Whom the supplier can supply until its next purge alone, and then no more than whoever was filled from it."""
    behind = {
        name
        for row in view.context.floors.floors
        for one in (row["servers"] if row["suffix"] == view.suffix else ())
        if one["server"] == supplier
        for name in one["leaves_behind"]
    }
    if late := sorted(behind - {server, supplier}):
        names = ", ".join(late)
        yield (
            f"{supplier} can supply {names} only until its next purge, every ten minutes while it runs, and {server} no longer "
            f"than that: links between {supplier} and {names} in both server.toml, before that purge, delete nothing"
        )


class WriteAgain:
    """Write the few attributes that a server missed once more where they are right: a new change of them is sent to all."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For changes of attributes that people write, and for missing deletions, as long as they are few.

        Also for what waits and no session delivers, of an origin that suppliers leave out: no refresh is needed for that.
        """
        if need.server is None or not need.lacks:
            return
        verdicts = view.context.verdicts
        missing = [row for row in verdicts.missing if row["server"] == need.server and row["held_by"]]
        of = missing if need.hidden else verdicts.stranded
        rows = [row for row in of if row["suffix"] == view.suffix]
        system = view.context.topology.system
        asked = [(system.typed(row["position"]) or "", row) for row in rows]
        lots = sorted(lack.lot for lack in need.lacks)
        wanted = [view.model.lots[number] for number in lots]
        known = {lot.last for lot in wanted} <= {position for position, _ in asked}
        rows = [row for position, row in asked if any(_is_within(lot, position, system.origin_of) for lot in wanted)]
        if not known or not 0 < len(rows) <= BY_HAND or any(row["attribute"] in BY_SERVER for row in rows):
            return
        assert isinstance(view.model, PullModel)
        shows = view.model.shows
        right = [one.name for one in view.model.servers.values() if one.holds >= set(lots) and one.name != need.server]
        # One that has something in their place may have deleted the entry, and then nothing can be written there.
        for server in sorted(right, key=lambda name: (not shows[name] >= set(lots), name))[:1]:
            yield self._draft(view, need.server, server, rows, lots)

    @staticmethod
    def _draft(
        view: View, server: str, right: str, rows: Sequence[Mapping[str, Any]], lots: list[int]
    ) -> ProposedRepair:
        """Values are written where they are right, and what was deleted elsewhere is deleted where it still is."""
        system = view.context.topology.system
        values = [row for row in rows if row["attribute"]]
        deletions = [row for row in rows if not row["attribute"]]
        written = {
            number
            for number in lots
            for row in values
            if _is_within(view.model.lots[number], system.typed(row["position"]) or "", system.origin_of)
        }
        steps = []
        for on, mine, some in ((right, values, written), (server, deletions, {*lots} - written)):
            if mine:
                effect = {"do": "rewrite", "server": right, "lots": sorted(some), "entry": None}
                steps.append(_by_hand_on(view, server, on, mine, (effect,) if some else ()))
        return ProposedRepair(
            "write-again",
            f"write {counted(len(rows))} again, by hand",
            tuple(steps),
            load=f"{counted(len(rows))} on every server",
        )


def _is_within(lot: ChangeGroup, position: str, origin_of: Callable[[str], str]) -> bool:
    """True if a change is one of a lot."""
    return lot.origin == origin_of(position) and lot.first <= position <= lot.last


def _by_hand_on(
    view: View, server: str, on: str, rows: Sequence[Mapping[str, Any]], effects: tuple[Mapping[str, Any], ...]
) -> Step:
    """The step that a person does on one server: values written again on the one that has them, or entries deleted."""
    deletes = on == server
    todo = [
        f"on {on}: delete {row['target']} ({row['entry']}), which was deleted elsewhere"
        if deletes
        else f"on {on}: write {row['attribute']} of {row['target']} ({row['entry']}) again, with the value that it has there"
        for row in rows
    ]
    later = f"; what is deleted on {server} goes to the recycle bin first, and counts as missing there for a week"
    return Step(
        key=f"{'delete' if deletes else 'write-again'}-on-{on}",
        repair="write_again",
        server=on,
        on=on,
        suffix=view.suffix,
        says=f"{on} deletes {counted(len(rows), 'entry', 'entries')} that {'was' if len(rows) == 1 else 'were'} deleted elsewhere"
        if deletes
        else f"{on} gets {counted(len(rows))} written once more, one by one, so that {server} gets what it lacks",
        stands_on="the entries were deleted on purpose, and nobody changes them meanwhile"
        if deletes
        else f"{on} shows the right values, and nobody changes these entries meanwhile",
        expects=f"`workbench diagnose` of new backups shows nothing missing on {server}" + (later if deletes else ""),
        risk="an entry that was made again on purpose is deleted, too"
        if deletes
        else "a value that somebody changes elsewhere meanwhile is overwritten; a value that no client may write, or may "
        "see, cannot be written again",
        undo="revive the entries out of the recycle bin" if deletes else "",
        cannot_undo="" if deletes else "the values stay as they are where they were right; only their changes are new",
        sends="".join(f"{printable(line)}\n" for line in todo),
        changes=len(rows),
        effects=effects,
    )


class LinkServers:
    """Let two servers pull from each other that do not, or not both: what one can supply is brought, and nothing is deleted."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For what no link brings: between a server at the end of a link that brings nothing and one that can supply it, and to
        servers that lack what the other one has, over a link that leads the other way alone.
        """
        model = view.model
        assert isinstance(model, PullModel)
        if need.server is None or need.hidden or not (need.lacks or need.code in (REFRESH, BEHIND)):
            return
        linked = {(link.supplier, link.consumer) for link in model.links}
        ends = {name for link in model.links if model.stuck(link) for name in (link.supplier, link.consumer)}
        for behind in sorted(ends):
            for supplier in sorted(model.servers.keys() - {behind}):
                apart = not {(supplier, behind), (behind, supplier)} & linked
                if apart and self._both_supply(model, supplier, behind):
                    yield self._draft(view, supplier, behind, linked)
        lots = {lack.lot for lack in need.lacks}
        for behind, supplier in sorted(linked):
            brings = lots & model.shows[supplier] - model.servers[behind].holds
            if brings and (supplier, behind) not in linked and self._both_supply(model, supplier, behind):
                yield self._draft(view, supplier, behind, linked)

    @staticmethod
    def _both_supply(model: PullModel, supplier: str, behind: str) -> bool:
        """True if each of two servers can pull from the other, and one has something for the other."""
        servers = model.servers
        answers = [
            model.answer(servers[one], servers[other]) for one, other in ((supplier, behind), (behind, supplier))
        ]
        return not any(answer.refused for answer in answers) and bool(answers[0].owed)

    @staticmethod
    def _draft(view: View, supplier: str, server: str, linked: Collection[tuple[str, str]]) -> ProposedRepair:
        until = "; ".join(_supplied_until(view, supplier, server))
        there = (server, supplier) in linked
        todo = [
            f"on {name}: in server.toml, type mutual-pull in the table for repl://{other}; then start {name} anew"
            if there
            else f"on {name}: in server.toml, a table for repl://{other} of type mutual-pull, with partner_cert of {other}; then "
            f"start {name} anew"
            for name, other in ((supplier, server), (server, supplier))
        ]
        yet = f"only {supplier} pulls from {server} yet" if there else "have no link yet"
        step = Step(
            key=f"link-{supplier}-and-{server}",
            repair="link",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{supplier} and {server} pull from each other: {supplier} can still supply {server}, and nothing is deleted",
            stands_on=f"{supplier} and {server} can reach each other, and {yet}" + (f"; {until}" if until else ""),
            expects=f"the log of {server} shows a session with {supplier} that brings something, and `workbench diagnose` of new "
            "backups no pair that is refused",
            risk="none to the data: what a session brings is merged"
            + (f"; behind that purge {server} would have to be refreshed" if until else ""),
            undo="write the former types into both tables" if there else "take both tables out again",
            sends="".join(f"{printable(line)}\n" for line in todo),
            effects=tuple(
                {"do": "feed", "supplier": one, "consumer": other}
                for one, other in ((supplier, server), (server, supplier))
                if (one, other) not in linked
            ),
        )
        says = f"link {supplier} and {server}{' both ways' if there else ''}"
        return ProposedRepair(f"link-{supplier}-and-{server}", says, (step,), load=f"what {server} lacks is sent once")


def _supplied_until(view: View, supplier: str, server: str) -> Iterator[str]:
    """Until when a server can supply another one, if it forgets soon what that needs."""
    rows = (row for row in view.context.floors.floors if row["suffix"] == view.suffix)
    if any(one["server"] == supplier and server in one["leaves_behind"] for row in rows for one in row["servers"]):
        yield f"{supplier} has not purged since its backup: it can supply {server} only until its next purge, every ten minutes"


class Refresh:
    """Give a server all data of another one."""

    automatic = False
    _from_then_on = ""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For whatever no pull brings; from the servers it pulls from, the most complete data first.

        Where two servers are apart and nobody can tell which one is right, also the other way round. Of two domains one ends.
        """
        if need.server is None or not (need.lacks or need.code in _STUCK):
            return
        sources = self._sources(view, need.server)
        if not need.hidden and need.code not in _STUCK:
            # It waits for what nobody can send, and pulls all else: whoever lacks anything of that is no source for it.
            holds = view.model.servers[need.server].holds
            sources = [name for name in sources if view.model.servers[name].holds >= holds]
        for supplier in sources[:SOURCES] if need.code != UNRELATED or need.lacks else ():
            yield self._draft(view, (supplier, need.server))
        if need.code in (REFRESH, BEHIND):
            for other in sources:
                if only_throws_away(view, need.server, other):
                    yield self._draft(view, (need.server, other))
        if need.code in (APART, DIVERGED):
            for other in sources:
                if len(self._sources(view, other)) == 1:
                    yield self._draft(view, (need.server, other))
        if need.code in (UNRELATED, ROLLED_BACK):
            yield from self._of_domains(view, need.server)

    def _of_domains(self, view: View, server: str) -> Iterator[ProposedRepair]:
        """Of servers of two domains, all of one join the other: a person says which, unless one shows no data of people."""
        sources = [*self._sources(view, server, strange=True)[:SOURCES], server]
        found = {fillings[0][0]: fillings for source in sources if (fillings := moved(view.model, source))}
        ask = ask_which([f"refresh-from-{source}" for source in found])
        for fillings in found.values():
            yield self._draft(view, *fillings, ask="" if only_new(view, [to for _, to in fillings]) else ask)

    @staticmethod
    def _sources(view: View, server: str, *, strange: bool = False) -> list[str]:
        """The servers that it could be filled from, of its own domain or of others; those of unknown entries come last."""
        model = view.model
        linked = {link.supplier for link in model.links if link.consumer == server and link.runs} - {server}
        others = of_another_domain(model, server)
        linked &= others if strange else model.servers.keys() - others
        blind = {name for name in linked if not shows_entries(view, name)}
        return sorted(linked, key=lambda name: (name in blind, -len(model.servers[name].holds), name))

    def _draft(self, view: View, *fillings: Filling, ask: str = "") -> ProposedRepair:
        """Each filled server is backed up before anything is filled. `ask`: why a person has to ask for it."""
        supplier = fillings[0][0]
        says = in_words(fillings)
        if self.automatic:
            says = f"let {fillings[0][1]} refresh itself from {supplier}, now and whenever it is too far behind"
        steps = [self._save(view, server, {to for _, to in fillings}) for _, server in fillings]
        steps += [self._step(view, by, to, asked=bool(ask)) for by, to in fillings]
        return ProposedRepair(
            f"{'automatic-' * self.automatic}refresh-from-{supplier}",
            says,
            tuple(steps),
            load=f"all data of {supplier} is sent {'once' if len(fillings) == 1 else f'{len(fillings)} times'}",
            downtime=f"{listed([to for _, to in fillings], 'and')}, until {'it is' if len(fillings) == 1 else 'they are'} filled",
            costs="; ".join(filter(None, (untold_loss(view, fillings), self._from_then_on))),
            unasked=ask,
            by_way=True,
        )

    @staticmethod
    def _save(view: View, server: str, filled: Collection[str]) -> Step:
        """The backup of a server that is filled, with what none has that keeps its data."""
        model = view.model
        kept = {lack.lot for lack in model.kept() if lack.server not in filled}
        only = sorted(model.servers[server].holds - kept)
        count = sum(model.lots[number].changes for number in only)
        back_up = _backup(server, "before-refresh")
        where = (
            "it has to be written where the server may write, and kept well: it holds all entries, secrets among them"
        )
        return Step(
            key=f"back-up-{server}",
            repair="back_up",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{server} writes its database to {back_up}: {has_alone(view, server, filled, count)}",
            stands_on=f"{server} runs, and has room for a copy of its database",
            expects=f"{back_up} is there, and `workbench inspect` reads it whole",
            risk=where,
            undo=f"delete {back_up}",
            # A backup that is there already is not written over, and no failure of it has to end with another code than 0.
            commands=(
                ("on", server, "test", "!", "-e", back_up),
                _back_up(server, back_up),
                ("on", server, "test", "-s", back_up),
            ),
            undo_commands=(("on", server, "rm", back_up),),
            effects=({"do": "save", "lots": only},),
        )

    def _step(self, view: View, supplier: str, server: str, *, asked: bool = False) -> Step:
        """One server is filled; `asked`: a person named whose data stays."""
        to, of = view.model.servers[server], view.model.servers[supplier]
        moves = to.generation != of.generation
        domain = f"; it becomes a member of the domain of {supplier}, {of.generation}" if moves else ""
        others = {*self._sources(view, server), *self._sources(view, server, strange=True)} - {supplier}
        first = f"the first of its suppliers that answers fills it: leave only {supplier} in its server.toml until it is done"
        return Step(
            key=f"refresh-{server}-from-{supplier}",
            repair="refresh",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{server} throws its database away and takes all of {supplier}'s{domain}",
            stands_on=f"{supplier} can be reached from {server}, and its data is the right one",
            expects=f"{server} holds what {supplier} holds, and makes its changes under a new UUID; the old one leaves the "
            "vectors with the purges, a week later",
            risk="; ".join(
                [
                    f"what only {server} holds is gone: nobody can log in there while it is filled",
                    *([first] if others else []),
                    *_until_the_purge(view, supplier, server),
                    *filter(None, [may_come_back(view.context, server, view.suffix, supplier).removeprefix("; ")]),
                ]
            ),
            cannot_undo="the database is replaced; restoring the backup would bring the old UUID back to an older state, and "
            "the other servers would refuse it",
            **self._how(server, supplier),
            changes=ALL,
            effects=({"do": "initialise", "source": supplier, "server": server},),
            details={"level": [supplier, server]},
            assumes=(DATA_NAMED if asked else NEW_DOMAIN_ENDS,) if moves else (),
        )

    @staticmethod
    def _how(server: str, supplier: str) -> dict[str, Any]:
        sure = "--i-want-to-refresh-this-servers-database"
        return {"commands": (_kanidmd(server, "refresh-replication-consumer", sure),)}


class AutomaticRefresh(Refresh):
    """Let a server that is too far behind refresh itself, by its configuration."""

    automatic = True
    _from_then_on = "from then on it throws its data away without asking"

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """Where its suppliers answer that it has to be refreshed: on no other answer does a server do it by itself."""
        if need.server is None or need.code not in (REFRESH, UNRELATED):
            return
        model = view.model
        assert isinstance(model, PullModel)
        unrelated = need.code == UNRELATED
        ask = "" if not unrelated or only_new(view, [need.server]) else ONLY_A_PERSON
        for supplier in self._sources(view, need.server, strange=unrelated)[:SOURCES]:
            answer = model.answer(model.servers[supplier], model.servers[need.server])
            if answer.replaces or answer.unrelated:
                yield self._draft(view, (supplier, need.server), ask=ask)

    @staticmethod
    def _how(server: str, supplier: str) -> dict[str, Any]:
        where = printable(
            f"in server.toml of {server}, in the table of the link to {supplier}; then start {server} anew"
        )
        return {"sends": f"# {where}\nautomatic_refresh = true\n"}


class RefreshBackwards(Refresh):
    """Refreshing a good server from the one that lacks changes."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing changes: the direction that is mistaken most easily."""
        if need.server is not None and need.hidden:
            for supplier in self._sources(view, need.server)[:1]:
                draft = self._draft(view, (need.server, supplier))
                yield replace(draft, way=f"{draft.way}-backwards", refused=f"{supplier} has what {need.server} lacks")


class RestoreBackup:
    """Restoring a backup of its own at a server that lacks changes."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For whatever no pull brings."""
        if need.server is not None and (need.lacks or need.code in _STUCK):
            why = "it brings the same UUID back in an older state: what the server wrote since is lost to it, and hidden once it "
            why += "writes again; until then the others refuse to supply it"
            yield ProposedRepair("restore-backup", f"restore a backup at {need.server}", refused=why)


def _with_assumptions(view: View, need: Need, draft: ProposedRepair) -> ProposedRepair:
    """The way takes for granted what the findings do that it is for; to save data needs nothing."""
    about = (one for one in view.about(need.code) if one.server == need.server and need.server)
    codes = tuple(dict.fromkeys(code for one in about for code in one.assumes))
    steps = (one if one.repair == "back_up" else replace(one, assumes=(*one.assumes, *codes)) for one in draft.steps)
    return replace(draft, steps=tuple(steps))


def _settled(finding: Finding, model: Model) -> bool:
    """True of a finding on a server that supplies others, and is supplied, when all is done: another one was refreshed."""
    server = model.servers.get(finding.server or "")
    if finding.code not in (REFRESH, BEHIND) or server is None:
        return False
    assert isinstance(model, PullModel)
    pairs = ((one, server) for one in model.servers.values() if one is not server)
    return not any(model.answer(*ends).refused for one, other in pairs for ends in ((one, other), (other, one)))


_REFRESHED = ("REFRESH_REQUIRED", "SUPPLIER_BEHIND", "NO_OVERLAP", "DIVERGED", "UNRELATED_DATA")
"""Codes of findings about a server that are no longer true once it has taken all data of another one."""

REPAIRS = Repairs(
    (
        WriteAgain(),
        LinkServers(),
        Refresh(),
        AutomaticRefresh(),
        WaitForPurge(),
        SetClock(),
        RestoreBackup(),
        RefreshBackwards(),
    ),
    _checks,
    ending="txt",
    by_hand="Commands run on the servers themselves, as a user who may use their admin socket; `on NAME` at the head of each "
    "script says how they are reached. While a refresh runs its server answers nobody.",
    checked="`sh check.sh` has each server write a backup, for no command prints a vector; where `kanidmd scripting backup` is "
    "not known, stop the server first and use `kanidmd database backup`, which a running one refuses. Fetch them into one "
    "folder: `workbench diagnose FOLDER` shows how they stand, and when all is well that nothing is missing and no pair is "
    "refused.",
    stuck=_STUCK,
    also=_also,
    late=after_what_others_miss,
    mends={"link": (REFRESH, BEHIND), "refresh": _REFRESHED, "automatic-refresh": _REFRESHED},
    preamble=_PREAMBLE,
    settled=_settled,
    weighed=_with_assumptions,
)
"""In the order in which they are considered."""
