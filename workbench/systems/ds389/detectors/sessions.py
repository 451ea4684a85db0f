"""Sessions that do not come about, send nothing, or wait for each other: never contacted, fractional, busy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.resting_links import resting
from workbench.model import EVIDENCE_SHOWN, Finding, first_few, step
from workbench.rules.send_session import SEND
from workbench.rules.vectors import last
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.detectors.shown import Row, suffix_of_link
from workbench.systems.ds389.session_log.lines import WITH_TEXT, SessionLog, line_shown, session_logs

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link

_LONG = timedelta(seconds=300)
_OFTEN = 5
"""A supplier is turned away for long: minutes, and several times. In a mesh a busy consumer is the usual thing."""
_MOSTLY = 0.8
_BUSY = 1
"""Code of the last session: the consumer was busy."""


def never_contacted(context: DetectorContext) -> Iterator[Finding]:
    """Agreements that would open no session although the consumer's own RUV is behind: it was rolled back.

    The supplier compares itself with what it remembers of the consumer. Both being read moments apart, the first thing that
    the consumer lacks must be older than that; unless the snapshot before shows the consumer itself further on. A server that
    runs does not tell what it remembers: then it counts that the consumer was restored after the last session, and that the
    supplier has got nothing since and began none.
    """
    for rest in context.once(resting):
        row, behind = rest.row, rest.behind
        supplier, consumer = (context.replica(row[end], row["suffix"]) for end in ("supplier", "consumer"))
        if not (supplier and consumer):
            continue
        names, remembered = f"replica ID {', '.join(behind)}", rest.link.remembered
        yield Finding(
            "NEVER_CONTACTED",
            "warning",
            f"nothing shows that {row['supplier']} opens a session with {row['consumer']}: the last one over {row['link']} ended "
            f"at {_time(rest.session)}, the data of {row['consumer']} came from a backup or a file at {_time(rest.replaced)}, "
            f"and {row['supplier']} has got nothing newer since; the RUV of {row['consumer']} is behind for {names}"
            if rest.session and rest.replaced
            else f"{row['supplier']} opens no session with {row['consumer']}: it remembers a RUV of it that covers everything, "
            f"and the RUV that {row['consumer']} has now is behind for {names}",
            server=row["consumer"],
            link=row["link"],
            suffix=row["suffix"],
            items=tuple(sorted(filter(None, (last(supplier.vector, rid) for rid in behind)))),
            evidence=first_few(
                {"origin": rid, "supplier": last(supplier.vector, rid)}
                | ({"remembered": last(remembered, rid)} if remembered is not None else {})
                | {"consumer": last(consumer.vector, rid)}
                for rid in behind
            ),
            fix=(
                step(
                    f"make one change on {row['supplier']}",
                    "the next change of its own makes it connect, and then it learns what the consumer really has",
                    f"if {row['consumer']} is a supplier itself, make it before {row['consumer']} writes anything: its own write "
                    "hides what it lost of its own",
                ),
            ),
        )


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else ""


def fractional_silence(context: DetectorContext) -> Iterator[Finding]:
    """Fractional agreements whose sessions leave out all that waits: the consumer's RUV stands still, and nothing is wrong.

    Asked of the log (level 8192): of what lies above the consumer's vector, changes were stripped to nothing, and none sent.
    """
    statuses = context.statuses()
    waiting = {
        (row["supplier"], row["suffix"], row["link"]): row
        for row in context.pairs
        if row["decision"] == SEND
        and row["to_send"]
        and row["link_enabled"] is not False
        and not row.get("link_failing")
        and statuses.get((row["supplier"], row["suffix"], row["link"]), {}).get("excluded")
    }
    if not waiting:
        return
    for log in session_logs(context.case):
        if not any(server == log.server for server, _, _ in waiting):
            continue
        of = {link.name: suffix_of_link(context, log.server, link.name) for link in context.topology.links}
        stripped: dict[str, list[dict[str, Any]]] = {}
        counts: dict[str, int] = {}
        sent: set[str] = set()
        for line, place in log.lines(("stripped_to_nothing", "sending"), WITH_TEXT):
            row = waiting.get((log.server, of.get(line["link"]), line["link"]))
            consumer = row and context.replica(row["consumer"], row["suffix"])
            csn = line["position"]
            if not (row and consumer and csn) or csn <= (last(consumer.vector, origin_of(csn)) or ""):
                continue
            if line["code"] == "sending":
                sent.add(line["link"])
                continue
            counts[line["link"]] = counts.get(line["link"], 0) + 1
            kept = stripped.setdefault(line["link"], [])
            if len(kept) < EVIDENCE_SHOWN:
                kept.append(line_shown(line, place))
        for name in sorted(stripped.keys() - sent):
            row = waiting[log.server, of[name], name]
            excluded = statuses[log.server, row["suffix"], name]["excluded"]
            yield Finding(
                "FRACTIONAL_SILENCE",
                "info",
                f"the agreement {name} of {log.server} sends nothing to {row['consumer']}: of what waits it leaves out every "
                f"attribute ({excluded}), so the RUV of {row['consumer']} stands still",
                server=log.server,
                link=name,
                suffix=row["suffix"],
                items=tuple(sorted({line["position"] for line in stripped[name]})),
                evidence=first_few(stripped[name], counts[name]),
                fix=(
                    step(
                        "wait for the next keep-alive update, or make one change of another attribute on the supplier",
                        "a change that is sent moves the consumer's RUV over those that were left out",
                        "until then every session reads them again, and they are not trimmed",
                    ),
                ),
            )


@dataclass
class _Run:
    """A supplier turned away time after time, without a session between."""

    server: str
    link: str
    began: datetime
    ended: datetime
    times: int = 0
    open: bool = True
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def lasts(self) -> timedelta:
        return self.ended - self.began


_OF_SESSIONS = ("busy", "acquired", "released", "starting")


def busy(context: DetectorContext) -> Iterator[Finding]:
    """Suppliers that a busy consumer turned away for minutes, and those that had it all the while.

    Told by the errors log (level 8192), or by the statuses of two snapshots in a row while changes wait.
    """
    logs = session_logs(context.case)
    runs = [run for log in logs for run in _runs(log) if run.lasts >= _LONG and run.times >= _OFTEN]
    latest: dict[tuple[str, str], _Run] = {}
    for run in runs:
        if (run.server, run.link) not in latest or run.lasts >= latest[run.server, run.link].lasts or run.open:
            latest[run.server, run.link] = run
    # Lines about agreements of one name in two suffixes tell of neither.
    links = {
        (one.supplier, one.name): one
        for one in context.topology.links
        if context.only_link(one.supplier, one.suffix, one.name)
    }
    for key, run in sorted(latest.items()):
        link = links.get(key)
        yield _starved(
            run.server, run.link, link, "warning" if run.open else "info",
            f"turned it away {run.times:,} times, from {run.began:%Y-%m-%d %H:%M:%S} to {run.ended:%Y-%m-%d %H:%M:%S}"
            + ("" if run.open else "; it was let in since"),
            first_few(run.lines, run.times),
        )  # fmt: skip
        if link and link.consumer:
            yield from _holders(logs, run, link, links.values())
    yield from _busy_in_two_snapshots(context, latest.keys())


def _runs(log: SessionLog) -> Iterator[_Run]:
    going: dict[str, _Run] = {}
    for row, place in log.lines(_OF_SESSIONS, WITH_TEXT):
        name, at = row["link"] or "", place.at
        if row["code"] == "starting":
            for run in going.values():
                run.open = False
            yield from going.values()
            going.clear()
        elif row["code"] == "acquired" and name in going:
            run = going.pop(name)
            run.open = False
            yield run
        elif row["code"] == "busy" and name and at:
            run = going.setdefault(name, _Run(log.server, name, at, at))
            run.ended, run.times = at, run.times + 1
            if len(run.lines) < EVIDENCE_SHOWN:
                run.lines.append(line_shown(row, place))
    yield from going.values()


def _starved(server: str, name: str, link: Link | None, severity: str, how: str, evidence: tuple[Row, ...]) -> Finding:
    consumer = link.consumer or link.address if link else None
    return Finding(
        "BUSY_STARVATION",
        severity,
        f"the agreement {name} of {server} does not get to its turn: {consumer or 'the consumer'} {how}",
        server=server,
        link=name,
        suffix=link.suffix if link else None,
        evidence=evidence,
        fix=(
            step(
                "see which supplier has the consumer (SESSION_MONOPOLY), and set nsds5ReplicaReleaseTimeout on the consumer",
                "a consumer takes one session at a time; with the time-out the one that has it yields",
                "being busy for seconds is the usual thing in a mesh, and nothing is lost by it",
            ),
        ),
    )


def _holders(logs: Iterable[SessionLog], run: _Run, starved: Link, links: Iterable[Link]) -> Iterator[Finding]:
    """The suppliers that had the consumer for most of the time in which another one was turned away."""
    rivals = {
        (one.supplier, one.name)
        for one in links
        if (one.consumer, one.suffix) == (starved.consumer, starved.suffix) and one.supplier != starved.supplier
    }
    for log in logs:
        held: dict[str, timedelta] = {}
        since: dict[str, datetime] = {}
        lines: dict[str, list[dict[str, Any]]] = {}
        end: datetime | None = None
        for row, place in log.lines(_OF_SESSIONS, WITH_TEXT):
            name, at = row["link"] or "", place.at
            if at is None:
                continue
            end = at
            if row["code"] == "starting":
                since.clear()
            elif (log.server, name) in rivals and row["code"] == "acquired":
                since[name] = at
                if at <= run.ended and len(lines.setdefault(name, [])) < EVIDENCE_SHOWN:
                    lines[name].append(line_shown(row, place))
            elif row["code"] == "released" and name in since:
                held[name] = held.get(name, timedelta()) + _overlap(run, since.pop(name), at)
        for name, began in since.items():
            held[name] = held.get(name, timedelta()) + _overlap(run, began, end or began)
        for name, time in sorted(held.items()):
            if time >= _MOSTLY * run.lasts:
                yield Finding(
                    "SESSION_MONOPOLY",
                    "warning",
                    f"the agreement {name} of {log.server} had {starved.consumer} for {time.total_seconds():,.0f} of the "
                    f"{run.lasts.total_seconds():,.0f} seconds in which {run.server} was turned away",
                    server=log.server,
                    link=name,
                    suffix=starved.suffix,
                    evidence=first_few([{"turned_away": run.server, "link": run.link}, *lines.get(name, [])]),
                    fix=(
                        step(
                            "set nsds5ReplicaReleaseTimeout on the consumer",
                            "the supplier that has it then yields when another one asks",
                            "let a session that delivers a long backlog end first, if it will soon",
                        ),
                    ),
                )


def _overlap(run: _Run, began: datetime, ended: datetime) -> timedelta:
    return max(min(run.ended, ended) - max(run.began, began), timedelta())


def _busy_in_two_snapshots(context: DetectorContext, told: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """The same by the statuses: turned away now and minutes ago, and the consumer got nothing of what waits in between."""
    before = context.earlier
    if before is None:
        return
    then, now, told = context.statuses(before.snapshot), context.statuses(), set(told)
    earlier, newest = context.newest(before.snapshot), context.newest()
    for row in context.pairs:
        server, key = row["supplier"], (row["supplier"], row["suffix"], row["link"])
        states = [known.get(key, {}) for known in (then, now)]
        if (
            not row["to_send"]
            or (server, row["link"]) in told
            or any(one.get("status_code") != _BUSY for one in states)
        ):
            continue
        if not (server in earlier and server in newest and newest[server] - earlier[server] >= _LONG):
            continue
        consumers = [
            one
            for one in (*before.replicas, *context.topology.replicas)
            if (one.server, one.suffix) == (row["consumer"], row["suffix"])
        ]
        if all(len({last(one.vector, origin) for one in consumers}) == 1 for origin in row["to_send"]):
            link = next((one for one in context.topology.links if (one.supplier, one.suffix, one.name) == key), None)
            shown = ("snapshot", "file", "offset", "status_code", "status")
            evidence = tuple({name: one.get(name) for name in shown} for one in states)
            how = "was busy in two snapshots, and got nothing of what waits in between"
            yield _starved(server, row["link"], link, "warning", how, evidence)
