"""What mends a server that refuses changes of its suppliers: the commands, without any secret."""

from __future__ import annotations

import shlex

from workbench.model import step
from workbench.systems.ds389.rules.ldap_results import REFUSES_ALL, in_words
from workbench.systems.ds389.session_log.refusals import DATABASE_FULL, DISK_FULL

CRASHES_UNSTARTED = "2.3.1 was seen to crash where replication was switched off and on again without a restart between"
_FIRST_AGAIN = "the supplier sends the same change first in every session until the consumer takes it"


def run(server: str, *words: str) -> str:
    """A command of the server's own tool, as a person types it there. The instance is theirs to fill in."""
    return f"on {server}: `dsconf INSTANCE {shlex.join(words)}`"


def switch_on(supplier: str, suffix: str | None, name: str) -> str:
    """The command that switches an agreement on."""
    return run(supplier, "repl-agmt", "enable", "--suffix", suffix or "SUFFIX", name)


def supplier_again(server: str, suffix: str | None, replica_id: str) -> str:
    """The command that makes a hub or a read-only consumer a supplier."""
    words = (
        "replication",
        "promote",
        "--suffix",
        suffix or "SUFFIX",
        "--newrole",
        "supplier",
        "--replica-id",
        replica_id,
    )
    return run(server, *words)


def not_begun(supplier: str, suffix: str, name: str) -> dict[str, str | None]:
    """What has an agreement begin that was switched off and on while it waited."""
    return step(
        f"start the agreement again, {run(supplier, 'repl-agmt', 'poke', '--suffix', suffix, name)}",
        "3.1.2 was seen to begin nothing where an agreement was switched off and on while it waited after a failure, and to "
        "begin at once after this",
    )


def set_up_anew(server: str, suffix: str) -> dict[str, str | None]:
    """What a server needs on which nothing is replicated, and to which an agreement leads."""
    enable = run(server, "replication", "enable", "--suffix", suffix, "--role", "ROLE", "--bind-dn", "LOGIN")
    return step(
        f"see on {server} whether {suffix} is still replicated there, {run(server, 'replication', 'list')}; if it is not, and "
        f"{server} should take part, restart it, then {enable}, with the role that it had and the login of the agreement",
        f"{server} showed no replicated suffix: one that was set up anew at this address has none, and no login of suppliers",
        f"{CRASHES_UNSTARTED}. If it is replicated there, whoever collected may not read that: then the password alone is wrong",
    )


def writable_again(server: str, suffix: str) -> dict[str, str | None]:
    """What mends a server that refuses all changes as one with a read-only backend does."""
    return step(
        f"see whether the backend of {server} is read-only (nsslapd-readonly: on), and make it writable, "
        + _writable(server, suffix),
        f"a read-only backend answers every change with {in_words(REFUSES_ALL)}, those of suppliers, too; {_FIRST_AGAIN}",
        "find out first why it was set: somebody may be exporting or moving the data. If it is off, see nsslapd-readonly in "
        "cn=config",
    )


def make_room(server: str, full: str) -> dict[str, str | None]:
    """What mends a server that takes no change because something is full."""
    if full == DATABASE_FULL:
        larger = run(server, "backend", "config", "set", "--mdb-max-size", "BYTES")
        return step(
            f"give the database of {server} more room, {larger}, and restart {server}",
            f"it takes no change that needs room, from clients either; {_FIRST_AGAIN}",
            "see first that its disk has that room",
        )
    if full != DISK_FULL:
        more = run(server, "config", "replace", "nsslapd-maxbersize=BYTES")
        return step(
            f"have {server} take larger messages, {more}; if the link goes on failing, restart {server}",
            f"it ends the connection at a message that is larger; {_FIRST_AGAIN}",
            "give all servers the same limit: whoever passes the change on meets the next one",
        )
    return step(
        f"free room on the disk of {server}, and start it again if it has stopped",
        f"it can write neither data nor changelog; {_FIRST_AGAIN}",
        "delete no file of its database; old logs and old exports can go",
    )


def take_the_schema(server: str) -> dict[str, str | None]:
    """What mends a server that refuses the schema of its suppliers."""
    read, write = run(server, "config", "get", "nsslapd-schemareplace"), "nsslapd-schemareplace=replication-only"
    return step(
        f"see whether {server} takes the schema of its suppliers, {read}; if that is off, set it, "
        f"{run(server, 'config', 'replace', write)}; else give both servers the same schema files and restart them",
        "a supplier whose schema is newer sends it first in every session, and no change comes behind a schema that is refused",
        "find out first why it was set: somebody may want the schema as it is there",
    )


def take_the_change(server: str, suffix: str, result: int | None) -> dict[str, str | None]:
    """What mends a server that refuses a change with this result, where the collected files do not say why."""
    where = f"RESULT err={result}" if result is not None else "the lines about this change"
    readonly = ""
    if result == REFUSES_ALL:
        command = _writable(server, suffix)
        readonly = f". If they say nothing, see whether nsslapd-readonly is on, and make the data writable, {command}"
    return step(
        f"find the cause in the errors log of {server} at the times of the attempts ({where} in its access log), and mend it "
        f"there; the next session sends the change again{readonly}",
        _FIRST_AGAIN,
        f"do not skip it by editing a RUV: it would be missing for good. If {server} cannot take it, initialise {server} from "
        "one that has it: that throws away what only it has",
    )


def _writable(server: str, suffix: str) -> str:
    return run(server, "backend", "suffix", "set", "--disable-readonly", suffix)
