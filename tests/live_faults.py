"""Changes and faults on real servers that several live tests make."""

from __future__ import annotations

from contextlib import ExitStack

from live_installed import SUFFIX
from live_mesh import Mesh, person


def writes(mesh: Mesh, server: str, *ldif: str) -> list[str]:
    """The CSNs of these changes, as the vector of the server that made them told right after each."""
    made = []
    for one in ldif:
        mesh.write(server, one)
        made.append(mesh.vector(server)[mesh.rids[server]])
    assert sorted(set(made)) == made
    return made


def people(*names: str) -> list[str]:
    return [person(name) for name in names]


def dn(name: str) -> str:
    return f"uid={name},ou=people,{SUFFIX}"


def modify(name: str, value: str) -> str:
    return f"dn: {dn(name)}\nchangetype: modify\nreplace: description\ndescription: {value}\n"


def behind(mesh: Mesh, feeds: list[tuple[str, str]]) -> ExitStack:
    """These agreements do not run while the block does."""
    stack = ExitStack()
    for supplier, consumer in feeds:
        stack.enter_context(mesh.paused(supplier, consumer))
    return stack


TO_S3 = [("s1", "s3"), ("s2", "s3")]
