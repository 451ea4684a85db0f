"""Who feeds whom among the servers of a collection, as far as their agreements tell.

It matters for one switch: at the level of the errors log at which replication speaks, a server that a hub feeds crashes
whenever the hub begins a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_CRASH = "a server that is fed by a hub crashes when replication is logged"

Listens = tuple[str, int]
"""Host and port, the host in the one spelling in which it is compared."""


@dataclass(frozen=True)
class Feeder:
    """What is known of a server: nothing but its name if it did not answer.

    known_as  where it listens
    feeds     where its agreements lead
    own       the replica IDs of its own changes
    holds     the replica IDs of its vectors
    """

    name: str
    role: str = ""
    known_as: frozenset[Listens] = frozenset()
    feeds: tuple[Listens, ...] = ()
    own: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()


def why_quiet(server: Feeder, all_servers: Mapping[str, Feeder]) -> str:
    """Why replication logging must stay off at the server; empty if it is known that no hub feeds it.

    Of a read-only replica every server that may feed it has to be known. A supplier takes changes from suppliers: it is
    enough that no hub that we know leads to it, or to where nobody knows who listens.
    """
    answered = [one for one in all_servers.values() if one.role]

    def unknown(to: Listens) -> bool:
        return not any(to in one.known_as for one in answered)

    for hub in (one for one in answered if one.role == "hub" and one.name != server.name):
        for to in hub.feeds:
            if to in server.known_as:
                return f"it is fed by the hub {hub.name}; {_CRASH}"
            if unknown(to):
                return f"the hub {hub.name} feeds {to[0]}:{to[1]}, which may be this one; {_CRASH}"
    if server.role == "supplier":
        return ""
    doubts = [f"{one.name} did not answer" for one in all_servers.values() if not one.role]
    for one in answered:
        doubts += [
            f"{one.name} feeds {to[0]}:{to[1]}, which is not among these servers" for to in one.feeds if unknown(to)
        ]
    origins = server.holds - {origin for one in answered for origin in one.own}
    doubts += [f"the supplier with the replica ID {origin} is not among these servers" for origin in sorted(origins)]
    return f"it may be fed by a hub: {doubts[0]}; {_CRASH}" if doubts else ""
