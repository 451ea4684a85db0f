"""Why agreements that are switched on do not run: the status of the last attempt, made precise by the errors logs.

The status is the last word, for the first session that runs overwrites it; only a login that succeeds after a failed one may
leave the old status, and stands in the log. Logs are read only where a status tells of a failure: a healthy mesh costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.intake.readings import NO_SUFFIX
from workbench.model import first_few
from workbench.rules.initialisations import ABORTED, Initialisation
from workbench.rules.link_failures import (
    ANCHOR_LOST,
    BACKING_OFF,
    BIND_REFUSED,
    CLOCK_REFUSED,
    CONSUMER_READ_ONLY,
    FILLED_LAST,
    LAST_SESSION,
    NO_SUCH_REPLICA,
    PERMISSION,
    REFUSED,
    TLS,
    TRANSIENT,
    UNKNOWN,
    UNREACHABLE,
    WRONG_SUFFIX,
    LinkFailure,
    LinkKey,
)
from workbench.systems.ds389.rules.applying import loops_from
from workbench.systems.ds389.rules.ldap_results import REFUSES_ALL, in_words
from workbench.systems.ds389.rules.link_reasons import (
    BROKEN,
    CONSUMER_DOWN,
    INACTIVE,
    LOCKED,
    NO_LISTENER,
    NO_TLS,
    NOT_PREPARED,
    PLAIN_PORT,
    REFUSED_SESSIONS,
    SCHEMA_REFUSED,
    TIMEOUT,
    TOO_WEAK,
    Cause,
    as_said,
    as_verified,
    cause_of,
    encrypted,
)
from workbench.systems.ds389.session_log.addresses import Addresses
from workbench.systems.ds389.session_log.certificates import with_certificates
from workbench.systems.ds389.session_log.closed_links import (
    answers_another,
    changed_since_tried,
    fails_still,
    not_in_session,
    read_after,
    started_again,
    status_shown,
    tried_last,
)
from workbench.systems.ds389.session_log.failing_agreements import (
    FATAL,
    FailingAgreement,
    read_lines,
    refused_by_log,
    stopped_for_good,
)
from workbench.systems.ds389.session_log.fillings_begun import fills_anew
from workbench.systems.ds389.session_log.hubs import AS_HUB, NOT_FIRST, mistaken_says, once_of, taken_for
from workbench.systems.ds389.session_log.initialisations import filled_at, left_unfilled
from workbench.systems.ds389.session_log.lines import session_logs
from workbench.systems.ds389.session_log.link_fixes import DUPLICATE_ID, Agreement, fixes_of, start_again
from workbench.systems.ds389.session_log.listening_ports import plain_port, why_not_reached
from workbench.systems.ds389.session_log.lost_anchors import by_its_log
from workbench.systems.ds389.session_log.read_only_suppliers import (
    log_switched_off,
    of_consumer,
    read_only_last,
    reads_only,
    says_no_log,
)
from workbench.systems.ds389.session_log.refusals import (
    LOGIN_NOTES,
    LOGIN_NOTES_SAY,
    NOT_SAID,
    READ_ONLY,
    closed_with,
    no_room,
    of_data,
    reason_for_53,
    refused_by,
    refused_no_more,
    said_at,
    too_large,
)
from workbench.systems.ds389.session_log.replicas_off import link_begins, not_reached, off_at, replicas_off
from workbench.systems.ds389.session_log.statuses import statuses_of
from workbench.systems.ds389.session_log.supplier_logins import allowed_since, groups_allowed, is_allowed
from workbench.systems.ds389.session_log.unread_agreements import passed_over

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link, Replica, Topology

Row = Mapping[str, Any]

_MOMENT = timedelta(seconds=5)
"""An agreement writes its status moments after the line of its log."""


def link_failures(case: Case, shown: Topology) -> dict[LinkKey, LinkFailure]:
    """The links of the snapshot that are switched on and do not run, each with the reason."""
    statuses = statuses_of(case, shown.snapshot)
    found = _by_status(case, shown, statuses)
    off = [one for one in replicas_off(case, shown, statuses) if one.in_force]
    for link in shown.links:
        key = _key(link)
        told = found.get(key)
        ends = [one for one in off if one.is_end_of(link, told)]
        if ends and link.enabled is not False and not (told and not_reached(told) and not link_begins(link, ends)):
            found[key] = off_at(ends, link, told)
    return found | closed_with(shown.links, found)


def _by_status(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> dict[LinkKey, LinkFailure]:
    """The links of which the status of their agreement, or the log of their supplier, says that they do not run."""
    found: dict[LinkKey, LinkFailure] = passed_over(case, shown)
    failing: dict[str, list[FailingAgreement]] = {}
    places = Addresses(case, shown)
    counts = ((one.server, one.facts.get("codes", {}).get("retry_later", 0)) for one in case.inputs)
    retrying, begun = {server for server, count in counts if count >= loops_from(1)}, set[LinkKey]()
    for link in shown.links:
        key = _key(link)
        row = statuses.get(key, {})
        if link.enabled is False or key in found:
            continue
        if told := not_in_session(case, shown, link, row):
            found[key] = told
        elif cause := cause_of(row.get("status"), row.get("transport")) or _to_itself(link, places):
            failing.setdefault(link.supplier, []).append(FailingAgreement(link, row, cause))
        elif link.consumer and link.supplier in retrying:
            # Between two failures the status tells of the attempt that has just begun.
            failing.setdefault(link.supplier, []).append(FailingAgreement(link, row, Cause(BACKING_OFF, 0, "", "")))
            begun.add(key)
    empty = left_unfilled(places, statuses) if failing else {}
    stopped = {one.server for one in case.inputs if one.facts.get("codes", {}).get(FATAL)}
    unread = _without_status(case, shown, statuses)
    if not failing and not stopped and not unread:
        return found
    logs = session_logs(case.until(shown.snapshot))
    suffixes = Counter((link.supplier, link.name) for link in shown.links)
    # Lines name no suffix: nobody knows which one has stopped of agreements of one name in two suffixes.
    known = {name for name, count in suffixes.items() if count == 1}
    for log in (log for log in logs if log.server in stopped):
        # An agreement that was turned away at its first attempt stops, and its status goes on saying that it never tried.
        fails = {_key(one.link) for one in failing.get(log.server, ())} - begun
        quiet = [
            (link, statuses.get(_key(link), {}))
            for link in shown.links
            if link.supplier == log.server and link.enabled is not False and _key(link) not in fails | {*found}
        ]
        on = Counter(link.name for link in shown.links if link.supplier == log.server and link.enabled is not False)
        _now_known(stopped_for_good(log, quiet, on), failing.setdefault(log.server, []), begun)
    for log in (log for log in logs if log.server in unread):
        on = Counter(link.name for link in shown.links if link.supplier == log.server and link.enabled is not False)
        named = {one.link.name for one in failing.get(log.server, ()) if _key(one.link) not in begun}
        left = [(link, row) for link, row in unread[log.server] if link.name not in named]
        _now_known(refused_by_log(log, left, on), failing.setdefault(log.server, []), begun)
    for log in logs:
        logins = {name: row.get("login") or "" for (server, _, name), row in statuses.items() if server == log.server}
        read_lines(log, [one for one in failing.get(log.server, ()) if not one.counts], logins, known)
    for one in read_only_last(shown, (one for mine in failing.values() for one in mine)):
        key = _key(one.link)
        # Of a login that succeeds the status says nothing while there is nothing to send: then the log is the later word.
        if not (one.healed and one.connecting):
            unfilled = empty.get((one.link.consumer or one.link.address or "", one.link.suffix))
            told = _told(case, shown, one, places, logs, unfilled, found, _usual_login(one.link, statuses))
            if key not in begun or (
                told.reason not in TRANSIENT and fails_still(case, shown, one.link, one.row, one.last)
            ):
                found[key] = told
    return with_certificates(case, shown, statuses, found, logs)


def _now_known(more: Iterable[FailingAgreement], failing: list[FailingAgreement], begun: set[LinkKey]) -> None:
    """Adds agreements of which a log tells why they fail; of those whose attempt had just begun it is the better word."""
    for one in more:
        failing[:] = [other for other in failing if other.link != one.link]
        begun.discard(_key(one.link))
        failing.append(one)


def _key(link: Link) -> LinkKey:
    return link.supplier, link.suffix, link.name


def _without_status(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> dict[str, list[tuple[Link, Row]]]:
    """Supplier -> its agreements of which no status was collected, as from a dse.ldif, where its log tells of failed logins."""
    here = {one.server for one in case.inputs if one.snapshot == shown.snapshot and one.facts.get("codes")}
    telling = here & {one.server for one in case.inputs if one.facts.get("codes", {}).get("bind")}
    found: dict[str, list[tuple[Link, Row]]] = {}
    for link in shown.links if telling else ():
        row = statuses.get(_key(link), {})
        if link.supplier in telling and link.enabled is not False and not row.get("status"):
            found.setdefault(link.supplier, []).append((link, row))
    return found


def _by_method(cause: Cause, one: FailingAgreement) -> Cause:
    """The cause of a refused login; with the method, where it is neither a password nor a certificate."""
    method = str(one.row.get("method") or "")
    if cause.reason != BIND_REFUSED or not method.upper().startswith("SASL/"):
        return cause
    says = f"{cause.says}; the agreement logs in with {method} (nsDS5ReplicaBindMethod)"
    return replace(cause, says=says, short=f"{cause.short} with {method}")


def _usual_login(link: Link, statuses: Mapping[LinkKey, Mapping[str, Any]]) -> str:
    """The login of all other agreements of the suffix, if they have one, and this agreement has another; else empty."""
    mine = (statuses.get(_key(link), {}).get("login") or "").lower()
    others = {
        (row.get("login") or "").lower(): row.get("login") or ""
        for (supplier, suffix, name), row in statuses.items()
        if suffix == link.suffix and (supplier, name) != (link.supplier, link.name)
    }
    return "" if len(others) != 1 or not mine or mine in others else next(iter(others.values()))


def _to_itself(link: Link, places: Addresses) -> Cause | None:
    """A link to the address of its own supplier fails, whatever its status still says of sessions that it had elsewhere."""
    return Cause(REFUSED, 0, "", "") if places.leads_back(link) else None


def _since(one: FailingAgreement) -> tuple[datetime | None, str]:
    """From when on it fails, and what tells so. After its last session it may have had nothing to send for long."""
    last = LAST_SESSION if one.session_ended == one.ended else FILLED_LAST
    # Of lines that may be of another agreement only those count that name this one.
    first = one.firsts.get("bind") if one.shared else one.first
    if one.ended is None or (first and first > one.ended):
        ended = f"; {last} at {one.ended:%Y-%m-%d %H:%M:%S}" if one.ended else ""
        return first or one.first, f"its log first shows a failure{ended}"
    return one.ended, last


def _told(
    case: Case,
    shown: Topology,
    one: FailingAgreement,
    places: Addresses,
    logs: Iterable[Any],
    unfilled: Initialisation | None,
    failing: Container[LinkKey],
    usual_login: str,
) -> LinkFailure:
    """The failure with all that the logs add to the status."""
    link, cause, meant, plain = one.link, one.cause, None, None
    consumer = next((x for x in shown.replicas if (x.server, x.suffix) == (link.consumer, link.suffix)), None)
    serves = bool(consumer and consumer.claims)
    silent = places.silent_at(link.address) if link.consumer is None else None
    down = bool(silent) or link.consumer in shown.down
    hangs = any(reading.server == link.consumer and reading.down and reading.unanswered for reading in shown.readings)
    bare = any(x.server == link.consumer and x.down.startswith(NO_SUFFIX) for x in shown.readings)
    tried = tried_last(case, shown, link)
    if one.stopped and tried and tried > one.stopped + _MOMENT:
        one.stopped = None  # whoever has stopped tries no more
    changed = changed_since_tried(case, shown, link)
    later = changed and not one.stopped and not (one.last and one.last > changed)
    untried = bool(later) and cause.reason not in TRANSIENT and not one.switched
    itself = places.leads_back(link)
    elsewhere = places.elsewhere(link, one.row.get("transport"))
    there = places.listening(link) if link.consumer is None and not silent else None
    if itself:
        code = f" (code {cause.code})" if cause.code else ""
        says = f"the agreement {link.name} leads to {link.supplier} itself{code}"
        cause = Cause(REFUSED, cause.code, says, "leads to its own server")
        meant = places.meant(link) if link.consumer != link.supplier else None
    elif cause.reason not in TRANSIENT and one.switched and not (one.last and one.last >= one.switched):
        says = f"it was switched on again at {one.switched:%Y-%m-%d %H:%M:%S}, and its log shows no attempt since"
        cause = Cause(BACKING_OFF, cause.code, says, "just switched on")
    elif untried:
        says = (
            f"its last attempt failed, {in_words(cause.code)}; it was changed at {changed:%Y-%m-%d %H:%M:%S}, and nothing shows "
            "an attempt since"
        )
        cause = Cause(UNKNOWN, cause.code, says, "changed since its last attempt")
    elif cause.reason == BIND_REFUSED:
        cause = as_said(cause, one.login_refused, one.row.get("login") or "its login")
    elif (cause.reason == UNREACHABLE and cause.code in (-1, 81)) or (down and cause.short == BROKEN):
        live = any(x.server == link.consumer for x in shown.readings)
        plain = plain_port(case, shown.snapshot, link, link.consumer or there, one.row.get("transport"), logs)
        who = silent or link.consumer if down else None
        cause = why_not_reached(link, one.row, cause.code, one.network, who, live, elsewhere, plain)
        waits = cause.reason in (REFUSED, UNREACHABLE) and not down and not one.stopped
        again = started_again(link, one.last, cause, logs) if waits else None
        if again:
            cause = again
        elif not down and not there:
            meant = places.meant(link)
    elif cause.reason in TRANSIENT and link.consumer in shown.down:
        last = f"; at the last attempt, {cause.says}" if cause.says else ""
        says = f"{link.consumer} could not be read when servers were collected{last}"
        cause = Cause(UNREACHABLE, cause.code, says, CONSUMER_DOWN)
    elif cause.reason in TRANSIENT:
        # A consumer that refuses a change is busy with the other suppliers that send it that change.
        if refusing := _refusing(case, shown, one, consumer, logs):
            cause = started_again(link, one.last, cause, logs) or refusing
        if one.no_anchor and not consumer:  # of a known consumer the vectors and the changelog prove it
            says = f"the session finds no record of its anchor in the changelog of {link.supplier} (its errors log says so)"
            cause = replace(cause, reason=ANCHOR_LOST, says=says, short="anchor not in the changelog")
    elif cause.reason == NO_SUCH_REPLICA:
        others = sorted({x.suffix for x in shown.replicas if x.server == link.consumer and x.suffix and x.claims})
        if others and link.suffix not in others:
            says = f"{cause.says}: it has {', '.join(others)}"
            cause = replace(cause, reason=WRONG_SUFFIX, says=says, short="wrong suffix")
        elif serves := serves or answers_another(case, shown, link, one.last or one.row.get("started_at")):
            says = f"the consumer did not replicate this suffix when it was asked (code {cause.code}), and does now"
            cause = replace(cause, says=says, short="not tried again since")
    allowed = cause.reason == PERMISSION and is_allowed(
        case, shown, link, one.row.get("login") or "", tried or one.last
    )
    if allowed and link.consumer:
        cause = allowed_since(cause, link.consumer)
    cause = _by_method(as_verified(cause, one.login_refused), one)
    if cause.reason == CLOCK_REFUSED and tried and read_after(case, shown, link, one.row, tried):
        says = f"{cause.says}; that was at its last attempt, at {tried:%Y-%m-%d %H:%M:%S}: they may be right by now"
        cause = replace(cause, says=says, short=f"{cause.short} at its last attempt")
    if bare and cause.reason == BIND_REFUSED:
        says = f"{cause.says}; {link.consumer} answered when servers were collected, and showed no replicated suffix"
        cause = replace(cause, says=says, short=f"{cause.short}, and it shows no replicated suffix")
    if hangs and cause.short == CONSUMER_DOWN:
        cause = replace(cause, short="consumer gives no answer")
    cause = by_its_log(cause, link, logs, shown.links)
    if one.stopped and "stopped" not in cause.says:
        says = f"{cause.says}; the agreement has stopped until somebody acts (its log says so)"
        cause = replace(cause, reason=UNKNOWN if cause.reason in TRANSIENT else cause.reason, says=says)
    supplier = next((x for x in shown.replicas if (x.server, x.suffix) == (link.supplier, link.suffix)), None)
    mistaken = (
        supplier
        and consumer
        and cause.code == DUPLICATE_ID
        and not itself
        and taken_for(case, shown, supplier, consumer)
    )
    was = once_of(case, shown, link) if mistaken else ""
    if mistaken:
        own = supplier.origin if supplier else None
        short = AS_HUB if own is None else NOT_FIRST
        cause = replace(cause, says=mistaken_says(link, cause.code, own, was), short=short)
    elif cause.code == DUPLICATE_ID and not itself and supplier and consumer and supplier.origin != consumer.origin:
        says = f"the consumer said that it has the supplier's replica ID (code {cause.code}), and its own entry shows another"
        cause = replace(cause, code=0, says=f"{says} one; it was changed since, or the agreement led elsewhere then")
    if no_log := reads_only(shown, link):
        says, short = says_no_log(shown, link, cause.code)
        cause = replace(cause, says=says, short=short)
    means = silent or there or (meant[0] if meant and meant[0] != link.consumer else None)
    if meant and cause.reason == TLS:
        meant = None  # the encrypted port is another one, so the address may be right
        cause = replace(cause, says=cause.says + (f"; it probably means {means}" if means else ""))
    elif meant:
        who = f"; it probably means {means}: " if means else "; "
        cause = replace(cause, says=f"{cause.says}{who}the other files name {meant[1]} as the address of {meant[0]}")
    since, since_is = _since(one)
    if one.guessed:
        since = min(one.guessed, since or one.guessed)
        says = f"{cause.says}; before that it refused the password (49), and wrong passwords lock a login"
        cause = replace(cause, says=says)
    agreement = Agreement(
        link.name, link.supplier, link.consumer or means or link.address or "the consumer", link.suffix or "SUFFIX",
        link.address or "its address", one.row.get("login") or "", meant[1] if meant else None, down,
        cause.short != NO_TLS, cause.code if cause.reason == REFUSED and cause.short in REFUSED_SESSIONS else None,
        cause.code if cause.reason == REFUSED and one.refusals else None, one.full, bool(one.stopped), itself,
        not encrypted(one.row.get("transport")), cause.short == TIMEOUT or hangs, no_log,
        unfilled if unfilled and unfilled.outcome == ABORTED and not (consumer and consumer.claims) else None,
        cause.short in (LOCKED, INACTIVE), cause.short == TOO_WEAK,
        schema=cause.short == SCHEMA_REFUSED, replicates=bool(serves),
        elsewhere=elsewhere if cause.short == NO_LISTENER else "", guessed=bool(one.guessed),
        mistaken=cause.short == AS_HUB, not_first=cause.short == NOT_FIRST, was=was, unprepared=cause.short == NOT_PREPARED,
        usual_login=usual_login, rejected=cause.short, bare=bare, allowed=allowed, groups=groups_allowed(case, shown, link),
        unlogged=log_switched_off(shown, link), method=str(one.row.get("method") or ""),
        plain_port=cause.short == PLAIN_PORT, encrypted_port=plain.encrypted if plain else "",
        refills=down and fills_anew(case, link, one.row, places, str(link.consumer or silent)),
        **of_consumer(shown, link, failing),
    )  # fmt: skip
    return LinkFailure(
        cause.reason, cause.says, cause.short, since, since_is if since else "", one.attempts, means=means,
        itself=itself, of_data=one.of_data, to_all=bool(one.full) and cause.code > 0, quotes=one.said, refills=agreement.refills,
        restarts=agreement.not_first,
        evidence=(status_shown(one.row), *first_few(one.kept, sum(one.counts.values()))),
        fix=(start_again(agreement),) if untried else fixes_of(cause.reason, agreement),
    )  # fmt: skip


def _refusing(
    case: Case, shown: Topology, one: FailingAgreement, consumer: Replica | None, logs: Iterable[Any]
) -> Cause | None:
    """What the consumer answers to the change with which each session begins, if it does so again and again."""
    filled = filled_at(logs, consumer.server, consumer.suffix) if consumer and one.refusals else None
    over = refused_no_more(case, shown, consumer, one.refusals, one.refused_at) if consumer and one.refusals else set()
    refused = {
        key: count
        for key, count in one.refusals.items()
        if key not in over and not (filled and (at := one.refused_at.get(key)) and at <= filled)
    }
    looping = {key: count for key, count in refused.items() if count >= loops_from(key[1])}
    if not looping:
        return None
    # A connection that ends has no result: what the consumer answered counts, if its log tells it as often.
    own = refused_by(case, shown.snapshot, consumer.server, [csn for csn, _ in looping], one.ended) if consumer else {}
    answered = {key: count for key, count in looping.items() if key[1] > 0}
    if not answered:
        answered = {key: len(moments) for key, moments in own.items() if len(moments) >= loops_from(key[1])}
        one.shared = bool(answered)  # these are the attempts of all its suppliers
    looping = answered or looping
    why, others = NOT_SAID, set[str]()
    if all(error == REFUSES_ALL for _, error in looping):
        unwilling = {csn for csn, error in refused if error == REFUSES_ALL}
        why, others = reason_for_53(case, shown, consumer, unwilling, one.first)
    if why == LOGIN_NOTES:
        says = f"each session ends at a change that only notes failed logins, which the consumer refuses: {LOGIN_NOTES_SAY}"
        return Cause(BACKING_OFF, REFUSES_ALL, says, "notes of failed logins refused")
    csn, error = min((key for key in looping if key[0] in others), default=min(looping))
    one.counts = Counter({"retry_later": looping[csn, error]})  # a session may be refused several changes
    begun = one.refused_from.get((csn, error))
    one.firsts = {"retry_later": begun} if begun else one.firsts  # what failed before it failed for another reason
    if error < 0 and len(one.schema) >= loops_from(error):
        answer = f"in every session the consumer refuses the schema of {one.link.supplier} ({one.schema[-1]})"
        return Cause(REFUSED, error, f"{answer}, and the connection ends", SCHEMA_REFUSED)
    if error < 0:
        one.full = too_large(case, one.link.consumer or "", one.first)
        says = f"the connection ends in every session at the change {csn}: {one.full or in_words(error)}"
        return Cause(REFUSED, error, says, "message too large there" if one.full else "breaks off at one change")
    what = f"the consumer refuses the change {csn} in every session with {in_words(error)}"
    if why == READ_ONLY:
        says = f"{what}, and took no change since, as a backend with nsslapd-readonly: on does"
        return Cause(CONSUMER_READ_ONLY, error, says, "consumer read-only")
    told = own.get((csn, error), ())
    said = said_at(case, consumer.server, told) if consumer else ()
    one.said, one.full = said, no_room(said)
    if one.full:
        return Cause(REFUSED, error, f"{what}: {one.full}", f"{one.full.removeprefix('its ')} there")
    one.of_data = of_data(error, said)
    log = "says why" if said else "says no more than that" if told else "may say why"
    return Cause(REFUSED, error, f"{what}; its own log {log}", f"change refused, {in_words(error)}")
