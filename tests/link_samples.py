"""Statuses of agreements that fail and lines of errors logs about them, as real servers wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detector_samples import findings, of, stamp, with_status, zulu
from mesh_samples import agreement, csn, pair_of_servers

REFUSED_LOGIN = "Error (49) Problem connecting to replica - LDAP error: Invalid credentials (connection error)"
NO_CONNECTION = "Error (-1) Problem connecting to replica - LDAP error: Can't contact LDAP server (connection error)"
NO_PERMISSION = (
    "Error (3) Replication error acquiring replica: Unable to acquire replica: permission denied. The bind dn does not have "
    "permission to supply replication updates to the replica. Will retry later. (permission denied)"
)
NO_REPLICA = (
    "Error (6) Replication error acquiring replica: Unable to acquire replica: there is no replicated area on the consumer "
    "server. Replication is aborting. (no such replica)"
)
OTHER_GENERATION = (
    "Error (19) Replication error acquiring replica: Replica has different database generation ID, remote replica may need to "
    "be initialized (RUV error)"
)
BROKEN_OFF = (
    "Error (16) Replication error acquiring replica: Incremental update connection error.  Backing off, will retry update later. "
    "(connection error)"
)
BUSY = (
    "Error (1) Can't acquire busy replica (Unable to acquire replica: the replica is currently being updated by another "
    "supplier.)"
)
NOT_PREPARED = "Error (16) Replication error acquiring replica: Problem connecting to replica (connection error)"
NO_STARTTLS = "Error (2) Problem connecting to replica - LDAP error: Protocol error (connection error)"
OLD_CONNECTION = (
    "Error (-1) Unable to receive the response for a startReplication extended operation to consumer. Will retry later. - LDAP "
    "error: Can't contact LDAP server (connection error)"
)
FINE = "Error (0) Replica acquired successfully: Incremental update succeeded"
DISABLED_BEFORE = "Error (0) Replica acquired successfully: agreement disabled"
NEVER_YET = "Error (0) No replication sessions started since server startup"

MANAGER = "cn=replication manager,cn=config"
Files = dict[str, Any]


def line(second: float, text: str) -> str:
    return f"{stamp(second)} - {text}\n"


def bind_failed(second: float, error: str, more: str = "") -> str:
    text = f"Replication bind with SIMPLE auth failed: LDAP error {error} ({more})"
    return line(
        second, f'ERR - NSMMReplicationPlugin - bind_and_check_pwp - agmt="cn=to-s2" (localhost:38902) - {text}'
    )


def bind_resumed(second: float) -> str:
    text = "Replication bind with SIMPLE auth resumed"
    return line(
        second, f'INFO - NSMMReplicationPlugin - bind_and_check_pwp - agmt="cn=to-s2" (localhost:38902): {text}'
    )


def login_refused(second: float) -> str:
    how = f"could not bind id [{MANAGER}] authentication mechanism [SIMPLE]: error 49 (Invalid credentials)"
    return line(second, f"ERR - slapi_ldap_bind - Error: {how}")


def not_connected(second: float, address: str, network: str = "107 (Transport endpoint is not connected") -> str:
    how = f"Could not send bind request for id [{MANAGER}] authentication mechanism [SIMPLE]: error -1 (Can't contact LDAP "
    how += "server)"
    where = f'system error -5987 (Invalid function argument.), network error {network}, host "{address}")'
    return line(second, f"ERR - slapi_ldap_bind - {how}, {where}")


def refused_change(second: float, position: str, answer: str = "Server is unwilling to perform (53)") -> str:
    text = f"Receiver failed to replay change (uniqueid 732df886-e8a011f1-a14a8447-655bff93, CSN {position}): {answer}."
    text += " Will retry later."
    head = 'WARN - NSMMReplicationPlugin - repl5_inc_update_from_op_result - agmt="cn=to-s2" (localhost:38902)'
    return line(second, f"{head}: {text}")


def told(sentence: str, ended: float | None = 4, more: str = "") -> str:
    times = f"nsds5replicaLastUpdateEnd: {zulu(ended)}\n" if ended is not None else ""
    return f"nsDS5ReplicaBindDN: {MANAGER}\n{more}nsds5replicaLastUpdateStatus: {sentence}\n{times}"


def mesh(sentence: str, log: str = "", more: str = "", **about: Any) -> Files:
    """s2 lacks five changes that s1 has; the agreement of s1 has this status, and its errors log these lines."""
    entry = agreement("to-s2", about.pop("port", 38902), host=about.pop("host", "localhost"))
    files: Files = pair_of_servers() | {"s1.agreements.ldif": with_status(entry, told(sentence, more=more, **about))}
    return files | ({"s1.errors.log": log} if log else {})


def failing(tmp_path: Path, *snapshots: Files) -> dict[str, Any]:
    (found,) = of("LINK_FAILING", findings(tmp_path, *snapshots))
    return found


def refused_in_sessions(*seconds: int) -> str:
    """In each of three sessions the consumer refuses the changes of these seconds."""
    return "".join(
        bind_resumed(at) + "".join(refused_change(at, csn(second, 1)) for second in seconds) for at in (9, 12, 15)
    )
