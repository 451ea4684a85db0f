"""What the consumer of an agreement loses with it, whose supplier was made a read-only consumer and sends nothing any more."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from workbench.model import listed, step

if TYPE_CHECKING:
    from workbench.rules.link_failures import LinkKey
    from workbench.systems.ds389.session_log.link_fixes import Agreement
    from workbench.topology.topology import Link, Topology


class _OfLink(Protocol):
    link: Link


Failing = TypeVar("Failing", bound=_OfLink)


def reads_only(shown: Topology, link: Link) -> bool:
    """True if the supplier keeps no changelog."""
    return any((one.server, one.suffix) == (link.supplier, link.suffix) and not one.keeps_log for one in shown.replicas)


def log_switched_off(shown: Topology, link: Link) -> bool:
    """True if the supplier makes changes and keeps no changelog: nobody made it a consumer, its nsDS5Flags was set to 0."""
    ends = [one for one in shown.replicas if (one.server, one.suffix) == (link.supplier, link.suffix)]
    return any(one.origin is not None and not one.keeps_log for one in ends)


def says_no_log(shown: Topology, link: Link, code: int) -> tuple[str, str]:
    """Why a supplier without a changelog sends nothing, as the end of a sentence, and in a few words."""
    if log_switched_off(shown, link):
        says = (
            f"{link.supplier} is a supplier that keeps no changelog (nsDS5Flags is 0), and sends nothing (code {code})"
        )
        return says, "its supplier keeps no changelog"
    says = f"{link.supplier} is a read-only consumer now, and sends nothing (code {code})"
    return says, "its supplier is a read-only consumer"


def log_on_again(link: Agreement, replica: str) -> tuple[Mapping[str, str | None], ...]:
    """What has a supplier keep a changelog again whose nsDS5Flags was set to 0. `replica`: the name of its replica entry."""
    return (
        step(
            f"have {link.supplier} keep a changelog again: set nsDS5Flags to 1 in {replica} there (ldapmodify), and restart it",
            "its own changes reach nobody: a replica whose nsDS5Flags is 0 keeps no changelog, whatever its type and its ID",
            "first save what it alone has (PENDING_CHANGES): its new changelog does not have that, and a session passes over it",
        ),
    )


def read_only_last(shown: Topology, failing: Iterable[Failing]) -> list[Failing]:
    """Failing links, those of read-only suppliers last: by then it is known which other links to their consumers run."""
    return sorted(failing, key=lambda one: reads_only(shown, one.link))


def of_consumer(shown: Topology, link: Link, failing: Container[LinkKey]) -> dict[str, Any]:
    """What an `Agreement` tells of the consumer: who feeds it, too, and who makes changes. `failing`: links that do not run."""
    return {
        "fed_by": _feeding_too(shown, link, failing),
        "led_to": any(True for _ in _to_it_too(shown, link)),
        "off_to": tuple(sorted({other.name for other in _to_it_too(shown, link, on=False)})),
        "makes_all": _makes_all(shown, link),
        "consumer_writes": _makes_changes(shown, link),
    }


def _feeding_too(shown: Topology, link: Link, failing: Container[LinkKey]) -> tuple[str, ...]:
    """The other servers with a changelog that were read, and have an agreement to the consumer which is on and does not fail."""
    running = (other for other in _to_it_too(shown, link) if (other.supplier, other.suffix, other.name) not in failing)
    return tuple(sorted({other.supplier for other in running} - shown.down))


def _to_it_too(shown: Topology, link: Link, on: bool = True) -> Iterator[Link]:
    logging = {one.server for one in shown.replicas if one.suffix == link.suffix and one.keeps_log} - {link.supplier}
    for other in shown.links if link.consumer else ():
        same = (other.consumer, other.suffix) == (link.consumer, link.suffix)
        if same and (other.enabled is not False) is on and other.supplier in logging:
            yield other


def _makes_changes(shown: Topology, link: Link) -> bool:
    """True if the consumer makes changes itself: what the agreement brought it were changes of its supplier, or passed on."""
    return any((one.server, one.suffix) == (link.consumer, link.suffix) and one.origin for one in shown.replicas)


def _makes_all(shown: Topology, link: Link) -> bool:
    """True if the consumer makes changes and no other collected server does: nothing could ever come to it."""
    makers = {one.server for one in shown.replicas if one.suffix == link.suffix and one.origin}
    return makers == {link.consumer}


def of_read_only(link: Agreement, promote: str, delete: str, fill: str) -> tuple[Mapping[str, str | None], ...]:
    """What mends such an agreement, with the commands: it is deleted only where another server feeds the consumer.

    A supplier is never filled over it: it has changes of its own.
    """
    feed = f"{listed(link.fed_by)} feed{'s' * (len(link.fed_by) == 1)} {link.consumer}, too" if link.fed_by else ""
    if link.makes_all or (link.consumer_writes and feed):
        return (
            step(
                f"delete the agreement, {delete}",
                "a read-only consumer keeps no changelog, so there is nothing that it could send; "
                + (feed or f"no other server than {link.consumer} makes changes"),
                f"if {link.supplier} should be a supplier or a hub, make it one again instead, with the replica ID that it had; "
                "first save what it alone has: its new changelog does not have that, and a session would pass over it",
            ),
        )
    other = "that leads there runs" if link.led_to or link.off_to else f"leads to {link.consumer}"
    alone = "" if feed else f", and no other collected agreement {other}"
    again = step(
        f"have {link.supplier} keep a changelog again: make it a hub again, {promote}, or a supplier, if it was one, with the "
        "replica ID that it had; and restart it at once, for it opens its changelog as it starts",
        f"a read-only consumer keeps no changelog (nsDS5Flags is 0), so it sends nothing to {link.consumer}{alone}",
        "find out first why it was made a read-only consumer, and save what it alone has"
        + ("" if feed else f"; do not delete the agreement before another server feeds {link.consumer}"),
    )
    if link.off_to and not feed:
        names, single = listed(link.off_to), len(link.off_to) == 1
        on = step(
            f"if {link.supplier} is to stay a read-only consumer, do what LINK_DISABLED says on {names}, then delete this "
            f"agreement, {delete}",
            f"{names}, which {'leads' if single else 'lead'} to {link.consumer}, too, {'is' if single else 'are'} switched off",
        )
        return (on, {**again, "repair": f"or {again['repair']}"})
    if feed:
        return (again, step(f"or, if it is to stay a read-only consumer, delete the agreement, {delete}", feed))
    if link.consumer_writes:
        return (again,)
    then = step(
        f"then, if {link.consumer} stays behind, initialise it, {fill}",
        "a changelog that is kept from now on may lack what was written before",
        f"an initialisation replaces all data of {link.suffix} on {link.consumer}: first see that it has nothing that "
        f"{link.supplier} lacks",
    )
    return (again, then)
