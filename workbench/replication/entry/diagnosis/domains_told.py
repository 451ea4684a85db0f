"""Which servers may be compared: those of one domain. A file that does not tell its domain is of the only one that others tell.

A and C of one domain, B untold                    all three are compared
A of one domain, C of another one, B untold        B is compared with nobody: nothing tells whose changes it lacks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from workbench.topology.topology import Replica


def told_domains(replicas: Iterable[Replica]) -> list[str]:
    """The domains that files tell."""
    return list(dict.fromkeys(one.generation for one in replicas if one.generation))


def of_untold_domain(replicas: Sequence[Replica]) -> list[Replica]:
    """The servers whose file does not tell their domain, where those of the others tell several."""
    return [one for one in replicas if not one.generation] if len(told_domains(replicas)) > 1 else []


def by_domain(replicas: Sequence[Replica]) -> Iterator[list[Replica]]:
    """The servers that may be compared with each other, group by group; those of `of_untold_domain` are in none."""
    known: list[str | None] = [*told_domains(replicas)]
    if len(known) < 2:
        yield list(replicas)
    else:
        for domain in known:
            yield [one for one in replicas if one.generation == domain]


def with_domain(replicas: Sequence[Replica]) -> list[Replica]:
    """Those that may be compared, each with its domain: who does not say of which it is, is of the only one that is told."""
    told, untold = told_domains(replicas), of_untold_domain(replicas)
    known = [one for one in replicas if one not in untold]
    return [replace(one, generation=told[0]) for one in known] if len(told) == 1 else known
