"""What mends an agreement that does not run: the commands by reason, without any secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.model import step
from workbench.rules.initialisations import Initialisation
from workbench.rules.link_failures import (
    ANCHOR_LOST,
    BACKING_OFF,
    BIND_REFUSED,
    BUSY,
    CLOCK_REFUSED,
    CONSUMER_READ_ONLY,
    GENERATION_DIFFERS,
    LOG_CLOSED,
    NO_SUCH_REPLICA,
    NOT_INITIALISED,
    PASSWORD_EXPIRED,
    PERMISSION,
    REFUSED,
    SCHEDULE_CLOSED,
    TLS,
    UNKNOWN,
    UNREACHABLE,
    WRONG_SUFFIX,
)
from workbench.systems.ds389.native import replica_dn
from workbench.systems.ds389.session_log.agreement_addresses import address_words, host_damaged, not_prepared
from workbench.systems.ds389.session_log.certificate_fixes import certificate_fixes
from workbench.systems.ds389.session_log.change_fixes import (
    CRASHES_UNSTARTED,
    make_room,
    run,
    set_up_anew,
    supplier_again,
    take_the_change,
    take_the_schema,
    writable_again,
)
from workbench.systems.ds389.session_log.hubs import of_mistaken, own_element_first
from workbench.systems.ds389.session_log.read_only_suppliers import log_on_again, of_read_only
from workbench.systems.ds389.session_log.supplier_logins import allow, by_method

Fix = Mapping[str, str | None]
NOT_UNDERSTOOD = 4
"""The supplier's own code where the consumer's answer is none: nothing there knows the request."""
DUPLICATE_ID = 11
"""The consumer's answer to a supplier with its own replica ID."""


@dataclass(frozen=True)
class Agreement:
    """What the commands need of an agreement. `consumer` is the server, or the address if no file tells which server it is.

    meant       the address at which the agreement should reach its consumer, where that is another one
    down        the consumer could not be read when servers were collected
    refills     the supplier began to fill it, and its log does not say that this ended
    silent      it takes connections, and does not answer in time
    reads_only  the supplier is a read-only consumer: it keeps no changelog
    method      how it logs in, as written
    unlogged    the supplier makes changes, and its changelog was switched off
    locked      the consumer knows the login, and does not let it in: it is locked or inactive there
    rejected    why the link fails, in a few words: with TLS why the certificate of the consumer was rejected
    bare        the consumer answered when servers were collected, and showed no replicated suffix
    weak        the consumer demands stronger encryption than the connection has
    schema      the consumer refuses the schema that the supplier sends first
    guessed     it refused the password before it locked the login
    elsewhere   the one name or address on which the consumer listens, where the agreement leads to another one
    replicates  the consumer replicates the suffix: its RUV was collected
    allowed     the replica of the consumer names the login now
    groups      the groups whose members the consumer takes changes from
    paused      it waits long between two sessions, as it was told to
    unfilled    the consumer's last initialisation was aborted: the agreement that it has to be initialised over again
    offers_tls  False: the consumer has no encryption
    answered    the code with which the consumer refused a session; None: it was not reached, or refused no session
    refused     the result with which it refuses a change; None: it refuses none
    full        what is full there, or too small, so that it takes no change; empty: nothing that its log names
    stopped     the agreement tries no more until somebody acts
    itself      it leads to its own supplier
    plain       it asks for no encryption
    plain_port  it uses LDAPS, and its consumer listens for plain LDAP at that port
    encrypted_port  the port at which its consumer listens for LDAPS, where the collected files name one
    fed_by      the other servers with a changelog whose agreements to the consumer are on and do not fail
    led_to      another server with a changelog has an agreement to the consumer that is on, though it may fail
    makes_all   no other server than the consumer makes changes
    mistaken    the supplier is a hub, and the consumer takes it for itself
    not_first   the supplier's own element does not stand first in its RUV, and the consumer takes it for itself
    was         the replica ID with which that hub made changes once; empty: none is known
    consumer_writes  the consumer makes changes itself
    unprepared  the supplier could not prepare a connection
    """

    name: str
    supplier: str
    consumer: str
    suffix: str
    address: str
    login: str = ""
    meant: str | None = None
    down: bool = False
    offers_tls: bool = True
    answered: int | None = None
    refused: int | None = None
    full: str = ""
    stopped: bool = False
    itself: bool = False
    plain: bool = False
    silent: bool = False
    reads_only: bool = False
    unfilled: Initialisation | None = None
    locked: bool = False
    weak: bool = False
    paused: bool = False
    elsewhere: str = ""
    replicates: bool = False
    schema: bool = False
    guessed: bool = False
    fed_by: tuple[str, ...] = ()
    makes_all: bool = False
    consumer_writes: bool = False
    led_to: bool = False
    off_to: tuple[str, ...] = ()
    plain_port: bool = False
    encrypted_port: str = ""
    mistaken: bool = False
    not_first: bool = False
    was: str = ""
    refills: bool = False
    unprepared: bool = False
    usual_login: str = ""
    rejected: str = ""
    bare: bool = False
    allowed: bool = False
    groups: tuple[str, ...] = ()
    unlogged: bool = False
    method: str = ""


def fixes_of(reason: str, link: Agreement) -> tuple[Fix, ...]:
    """The steps that end a failure for this reason."""
    made = {
        BIND_REFUSED: _login,
        PASSWORD_EXPIRED: _expired,
        TLS: _encryption,
        UNREACHABLE: _address,
        REFUSED: _address if link.answered is None else _answer,
        NO_SUCH_REPLICA: _replica,
        WRONG_SUFFIX: _replica,
        PERMISSION: lambda link: allow(link, start_again(link)),
        SCHEDULE_CLOSED: _schedule,
        GENERATION_DIFFERS: _generation,
        NOT_INITIALISED: _initialise,
        CONSUMER_READ_ONLY: _read_only,
        CLOCK_REFUSED: _clocks,
        ANCHOR_LOST: _no_anchor,
        LOG_CLOSED: _log_closed,
        BUSY: _busy,
        BACKING_OFF: _wait,
    }.get(reason, _look)
    if link.itself:
        return _to_itself(link)
    if link.mistaken:
        return _of_hub(link)
    if link.not_first:
        return own_element_first(link, start_again(link))
    if link.unlogged:
        return log_on_again(link, replica_dn(link.suffix))
    if link.reads_only:
        return _of_consumer(link)
    if link.unprepared:
        return (not_prepared(link.supplier),)
    if link.refused is not None and reason == REFUSED:
        return _refused_change(link)
    if link.plain and reason == TLS:
        return _plain(link)
    if link.plain_port and reason == TLS:
        return _to_plain_port(link)
    if link.weak and reason == TLS:
        return _too_weak(link)
    if link.answered == NOT_UNDERSTOOD:
        return _not_understood(link)
    if link.stopped and link.answered != DUPLICATE_ID and reason in (REFUSED, UNREACHABLE, UNKNOWN):
        return (_restart(link),)
    fixes = made(link)
    if link.stopped and not {one["repair"] for one in (start_again(link), _restart(link))} & {
        one["repair"] for one in fixes
    }:
        fixes = (*fixes, _restart(link))
    return (*fixes, _fill_again(link, link.unfilled)) if link.unfilled and made not in _FILLING else fixes


def _set(link: Agreement, *words: str) -> str:
    return run(link.supplier, "repl-agmt", "set", "--suffix", link.suffix, *words, link.name)


def start_again(link: Agreement) -> Fix:
    """What has an agreement try again, after its cause was mended."""
    return step(
        f"then start the agreement again, {run(link.supplier, 'repl-agmt', 'poke', '--suffix', link.suffix, link.name)}",
        "the supplier has stopped trying or waits up to five minutes before it tries again",
    )


def backing_off(link: Agreement) -> tuple[Fix, ...]:
    """What ends the wait of a supplier that was told to wait long after a session that failed."""
    words = ("replication", "set", "--suffix", link.suffix)
    least, most = (
        run(link.supplier, *words, f"--repl-backoff-{end}", value) for end, value in (("min", "3"), ("max", "300"))
    )
    again = run(link.supplier, "repl-agmt", "poke", "--suffix", link.suffix, link.name)
    return (
        step(f"start the agreement again, {again}", "it tries at once then, and delivers what waits"),
        step(
            f"let {link.supplier} wait less from then on, {least}, then {most}",
            "3 and 300 seconds are the defaults; the server takes them in this order",
        ),
    )


def _restart(link: Agreement) -> Fix:
    return step(
        f"start the agreement again, {run(link.supplier, 'repl-agmt', 'poke', '--suffix', link.suffix, link.name)}",
        "it has stopped and tries no more by itself, not even when its consumer starts anew; this switches it off and on again",
    )


def _fill_again(link: Agreement, broke_off: Initialisation) -> Fix:
    at = f" at {broke_off.at:%Y-%m-%d %H:%M:%S} UTC" if broke_off.at else ""
    return step(
        f"then initialise {link.consumer} again, {initialise(broke_off.supplier, link.suffix, broke_off.link)}",
        f"its last initialisation, by {broke_off.supplier}, was aborted{at}: no session delivers the data that did not arrive",
        f"an initialisation replaces all data of {link.suffix} on {link.consumer}",
    )


def initialise(supplier: str, suffix: str, name: str) -> str:
    """The command that initialises the consumer of an agreement."""
    return run(supplier, "repl-agmt", "init", "--suffix", suffix, name)


def _of_consumer(link: Agreement) -> tuple[Fix, ...]:
    promote = run(link.supplier, "replication", "promote", "--suffix", link.suffix, "--newrole", "hub")
    delete = run(link.supplier, "repl-agmt", "delete", "--suffix", link.suffix, link.name)
    return of_read_only(link, promote, delete, initialise(link.supplier, link.suffix, link.name))


def _of_hub(link: Agreement) -> tuple[Fix, ...]:
    delete = run(link.supplier, "repl-agmt", "delete", "--suffix", link.suffix, link.name)
    promote = supplier_again(link.supplier, link.suffix, link.was or "ID")
    return of_mistaken(link, promote, start_again(link), delete)


def _to_itself(link: Agreement) -> tuple[Fix, ...]:
    if link.meant:
        return _address(link)
    return (
        step(
            f"delete the agreement, {run(link.supplier, 'repl-agmt', 'delete', '--suffix', link.suffix, link.name)}",
            f"it leads to {link.supplier} itself, and a server gets nothing from itself",
            "if it was made to reach another server, create it anew with the address of that one",
        ),
    )


def _plain(link: Agreement) -> tuple[Fix, ...]:
    off = "nsslapd-minssf=0" if link.weak else "nsslapd-require-secure-binds=off"
    return (
        step(
            f"let the agreement encrypt its connection, {_set(link, '--conn-protocol', 'StartTLS')}; or let "
            f"{link.consumer} accept logins without encryption again, {run(link.consumer, 'config', 'replace', off)}",
            "the agreement uses plain LDAP, and its consumer takes logins over encrypted connections only",
            f"with StartTLS {link.supplier} must trust the issuer of the certificate of {link.consumer}; LDAPS needs another "
            "port as well. Without encryption passwords and changes cross the network readable",
        ),
        start_again(link),
    )


def _to_plain_port(link: Agreement) -> tuple[Fix, ...]:
    both = f"{link.supplier} and {link.consumer} must have encryption switched on (nsslapd-security)"
    trust = f"{both}, and {link.supplier} must trust the issuer of the certificate of {link.consumer}"
    starttls, plain = (_set(link, "--conn-protocol", protocol) for protocol in ("StartTLS", "LDAP"))
    why = f"{link.consumer} takes plain LDAP at {link.address}: an agreement with LDAPS gets no answer there"
    if link.encrypted_port:
        port = _set(link, "--port", link.encrypted_port)
        mend = step(
            f"give the agreement the LDAPS port of {link.consumer}, {port}; or let it use StartTLS at the port that it has, "
            f"{starttls}",
            why,
            f"with both {trust}",
        )
    else:
        mend = step(
            f"let the agreement use plain LDAP, {plain}; or StartTLS at the same port, {starttls}; or give it the LDAPS port of "
            f"{link.consumer}, {_set(link, '--port', 'PORT')}",
            f"{why}, and no collected file names an LDAPS port of {link.consumer}",
            f"with StartTLS and LDAPS {trust}; with plain LDAP the password of the login and all changes cross the network "
            "readable",
        )
    return (mend, start_again(link))


def _too_weak(link: Agreement) -> tuple[Fix, ...]:
    least = run(link.consumer, "config", "replace", "nsslapd-minssf=SSF")
    return (
        step(
            f"let both ends enable a stronger cipher, {run(link.consumer, 'security', 'ciphers', 'enable', 'CIPHER')}, the same "
            f"on {link.supplier}, and restart both; or lower what {link.consumer} demands, {least}",
            "the agreement encrypts its connection, and the consumer counts that as too weak",
            "the access log of the consumer names the cipher and its bits (TLS1.3 256-bit AES-GCM): no larger SSF can be met "
            "with it. Find out first why nsslapd-minssf was raised",
        ),
        start_again(link),
    )


def _login(link: Agreement) -> tuple[Fix, ...]:
    dn = ["--bind-dn", link.usual_login] if link.usual_login else []
    other = f"give the agreement the login {link.usual_login}, which all others have, or " if dn else ""
    password = step(
        f"{other}see that {link.consumer} has an entry for {link.login or 'the login'}, and give the agreement its password, "
        + _set(link, *dn, "--bind-passwd", "PASSWORD"),
        "a login that the consumer does not have is refused like a wrong password: its access log says `Entry does not exist`",
        "type the password in place of PASSWORD yourself; it stays in the history of the shell",
    )
    if link.method.upper().startswith("SASL/"):
        return by_method(link, _set(link, "--bind-method", "SIMPLE"), start_again(link))
    if link.bare:
        fill = step(
            f"then, if it was set up anew, initialise it, {initialise(link.supplier, link.suffix, link.name)}",
            "a replica that was never initialised takes no changes",
        )
        return (set_up_anew(link.consumer, link.suffix), password, fill)
    if not link.locked:
        return (password, start_again(link))
    unlock = step(
        f"{'then ' if link.guessed else ''}let {link.login or 'the login'} in again on {link.consumer}: take nsAccountLock, "
        "passwordRetryCount and accountUnlockTime out of its entry (`replace: NAME` without a value; it need not be there)",
        f"{link.consumer} knows the login and refuses it whatever the password is",
        "every agreement with this login is refused until then"
        if link.guessed
        else "find out first who locked it: too many wrong passwords lock it again, of this agreement or of another one with the "
        "same login, and a person may have done it on purpose",
    )
    return (*([password] if link.guessed else []), unlock, start_again(link))


def _expired(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"set a new password for {link.login or 'the login of the agreement'} on {link.consumer}, and in the agreement, "
            + _set(link, "--bind-passwd", "PASSWORD"),
            f"with the password policy of {link.consumer} an expired password lets nobody in, whatever the agreement has",
            "as long as the policy covers this login its password expires again",
        ),
        start_again(link),
    )


def _encryption(link: Agreement) -> tuple[Fix, ...]:
    if not link.offers_tls:
        return (
            step(
                f"give {link.consumer} a certificate and switch encryption on, {run(link.consumer, 'security', 'enable')}, then "
                f"restart {link.consumer}; or let the agreement connect without it, {_set(link, '--conn-protocol', 'LDAP')}",
                "the agreement asks for an encrypted connection, and its consumer offers none",
                "without encryption the password of the login and all changes cross the network readable",
            ),
            start_again(link),
        )
    return (*certificate_fixes(link.rejected, link.supplier, link.consumer), start_again(link))


def _address(link: Agreement) -> tuple[Fix, ...]:
    if link.elsewhere:
        all_again = run(link.consumer, "config", "delete", "nsslapd-listenhost")
        return (
            step(
                f"let {link.consumer} listen on all its addresses again, {all_again}, and restart it; or lead the agreement to "
                f"the one that it listens at, {_set(link, '--host', link.elsewhere)}",
                f"{link.consumer} takes plain connections at {link.elsewhere} alone",
                f"find out first why it was told to; a new host needs a restart: {host_damaged(link.supplier)}",
            ),
            start_again(link),
        )
    if link.meant:
        words = address_words(link.address, link.meant)
        again = f", and {host_damaged(link.supplier)}"
        return (
            step(
                f"correct the address of the agreement, {_set(link, *words)}",
                f"{link.meant} is where the other collected files say that its consumer listens",
                "check first that this is the server that the agreement is meant for"
                + (again if "--host" in words else ""),
            ),
            start_again(link),
        )
    if link.silent:
        return (
            step(
                f"see whether {link.consumer} hangs: its processor time, its disk, the end of its errors log; restart it if it "
                "does, `dsctl INSTANCE restart` there",
                "the supplier tries again by itself, at the latest every five minutes, and then delivers what waits",
                "a slow network, or a firewall that drops packets, looks the same",
            ),
        )
    if link.down:
        then = "finds a consumer without whole data" if link.unfilled else "delivers what waits"
        then = "fills it with all data again, as it had begun to" if link.refills else then
        why = f"the supplier tries again by itself, at the latest every five minutes, and then {then}"
        goes = "what only the data and the changelog of the consumer have is lost then" if link.refills else None
        return (step(f"start {link.consumer}: `dsctl INSTANCE start` there", why, goes),)
    return (
        step(
            f"see that {link.consumer} runs, and that {link.supplier} reaches {link.address}; if the address is wrong, "
            + _set(link, "--host", "HOST", "--port", "PORT"),
            "no session begins before a connection is made",
            f"give only what is wrong; after another host {host_damaged(link.supplier)}",
        ),
        start_again(link),
    )


def _answer(link: Agreement) -> tuple[Fix, ...]:
    if link.answered == DUPLICATE_ID:
        return (
            step(
                f"give {link.supplier} or {link.consumer} another replica ID, and initialise it from a server that keeps its own",
                "two servers with one replica ID take each other's changes for their own, so no session begins between them",
                "to initialise a server throws away what only it has: see DUPLICATE_ORIGIN",
            ),
            start_again(link),
        )
    return (
        step(
            f"look into the errors log of {link.consumer} at the time of the last attempt: it refused the session, and says why",
            "the connection was made, so the address is not at fault",
        ),
        start_again(link),
    )


def _not_understood(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"see whether replication is switched on at {link.consumer}: `dsconf INSTANCE plugin show 'Multisupplier Replication "
            "Plugin'` there; if not, switch it on (`plugin set --enabled on`) and restart it",
            "a server whose plug-in for replication is disabled does not know the request that begins a session",
            "what clients write there meanwhile is in no changelog",
        ),
        start_again(link),
    )


def _replica(link: Agreement) -> tuple[Fix, ...]:
    if link.replicates:
        return (_restart(link),)
    words = ("replication", "enable", "--suffix", link.suffix, "--role", "ROLE", "--bind-dn", link.login or "DN")
    return (
        step(
            f"restart {link.consumer}, then make {link.suffix} a replica there, {run(link.consumer, *words)}",
            "a consumer takes changes only for suffixes that it replicates, and only from the logins that its replica names",
            f"{CRASHES_UNSTARTED}. With the role that it had, and of a supplier with the replica ID that it had; or remove the "
            "agreement if this server is no longer to get changes",
        ),
        step(
            f"then, if it has no data of {link.suffix} yet, initialise it, "
            + run(link.supplier, "repl-agmt", "init", "--suffix", link.suffix, link.name),
            "a replica that is new has no data to which changes could be applied; one that had data before goes on with these",
            f"an initialisation replaces all data of {link.suffix} on {link.consumer}, and what clients wrote there while it "
            "replicated nothing: no changelog has that, so compare its entries with those of the others before",
        ),
    )


def _schedule(link: Agreement) -> tuple[Fix, ...]:
    if link.paused:
        return (
            step(
                f"have it wait for less, {_set(link, '--session-pause-time', '0')}; then switch it off and on again, "
                + run(link.supplier, "repl-agmt", "poke", "--suffix", link.suffix, link.name),
                "it holds no session before that time is over; a wait that has begun keeps its old length",
                "find out first why it was made to wait",
            ),
        )
    return (
        step(
            f"wait for the schedule to open, or open it, {_set(link, '--schedule', '0000-2359 0123456')}",
            "outside its schedule an agreement holds no session",
            "find out first why there is a schedule",
        ),
    )


def _generation(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"decide which of the two data sets is the right one; if it is that of {link.supplier}, "
            + run(link.supplier, "repl-agmt", "init", "--suffix", link.suffix, link.name),
            "data of different generations exchange nothing until one side is initialised from the other",
            f"an initialisation throws away everything that only {link.consumer} holds",
        ),
    )


def _initialise(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"initialise {link.consumer}, {run(link.supplier, 'repl-agmt', 'init', '--suffix', link.suffix, link.name)}",
            "a replica that was never initialised takes no changes",
            f"an initialisation replaces all data of {link.suffix} on {link.consumer}",
        ),
    )


def _no_anchor(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"see whether another supplier still sends to {link.consumer}, or make a temporary agreement from one that has the "
            f"record which the errors log of {link.supplier} names; if there is none, save what only {link.consumer} has, and "
            f"initialise it, {run(link.supplier, 'repl-agmt', 'init', '--suffix', link.suffix, link.name)}",
            "a session begins at the record of what the consumer has, and without that record it sends nothing",
            f"an initialisation replaces all data of {link.suffix} on {link.consumer}. Do not set "
            "nsds5ReplicaIgnoreMissingChange before you have listed what that loses",
        ),
    )


_FILLING = (_replica, _generation, _initialise, _no_anchor)
"""What already says that the consumer has to be initialised."""


def _read_only(link: Agreement) -> tuple[Fix, ...]:
    return (writable_again(link.consumer, link.suffix),)


def _refused_change(link: Agreement) -> tuple[Fix, ...]:
    if link.schema:
        return (take_the_schema(link.consumer),)
    if link.full:
        return (make_room(link.consumer, link.full),)
    answered = link.refused if link.refused and link.refused > 0 else None
    return (take_the_change(link.consumer, link.suffix, answered),)


def _clocks(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"compare the clocks of {link.supplier} and {link.consumer} with a third one, and set right what is still wrong",
            "a server takes part in no session that would move its own positions too far into the future",
            "setting a clock back does not take back positions that were made in the future: see CLOCK_AHEAD",
        ),
        start_again(link),
    )


def _busy(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"see which supplier has {link.consumer}; if it has it for minutes, set nsds5ReplicaReleaseTimeout, "
            + run(link.consumer, "replication", "set", "--suffix", link.suffix, "--repl-release-timeout", "60"),
            "a consumer takes one session at a time; with the time-out the supplier that has it yields",
        ),
    )


def _wait(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"collect again in some minutes; if it still fails, read the errors logs of {link.supplier} and {link.consumer} at "
            "that time",
            "the supplier tries again by itself, at the latest every five minutes",
        ),
    )


def _log_closed(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"restart {link.supplier}, `dsctl INSTANCE restart` there, unless its data of {link.suffix} is being replaced",
            "a server opens its changelog when it starts; one that was made a supplier while it ran may have none open, and "
            "while its data is replaced there is none",
            f"what was written on {link.supplier} while no changelog was open is in none: no session sends it, and the first "
            "one may go past it. Compare its entries with those of the others before the restart",
        ),
    )


def _look(link: Agreement) -> tuple[Fix, ...]:
    return (
        step(
            f"read the errors logs of {link.supplier} and {link.consumer} at the time of the last attempt, mend what they say, "
            "and start the agreement again, "
            + run(link.supplier, "repl-agmt", "poke", "--suffix", link.suffix, link.name),
            "the status names the failure, and no collected file its cause",
        ),
    )
