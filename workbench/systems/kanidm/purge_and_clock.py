"""The repairs of Kanidm that change no data: waiting for the purge, and a clock set right."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.repair.plan_types import Need, ProposedRepair, Step, View

STALE, CLOCK = "STALE_ORIGIN", "CLOCK_AHEAD"


class WaitForPurge:
    """Let an origin that nobody has heard of for longer than the window leave the vectors by itself."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For origins without a server."""
        if need.code != STALE or need.origin is None:
            return
        for one in sorted(name for name, server in view.model.servers.items() if need.origin in server.vector):
            step = Step(
                key=f"wait-for-the-purge-of-{one}",
                repair="wait",
                server=one,
                on=one,
                suffix=view.suffix,
                says=f"{one} runs for ten minutes: its purge takes origin {need.origin} out of its vector",
                stands_on=f"no server makes changes as {need.origin} any more",
                expects=f"the next backup of {one} does not name {need.origin}",
                risk="none: nothing is written by hand; changes of that origin that a server lacks are sent no more",
                cannot_undo="what was forgotten by age stays forgotten",
                effects=({"do": "forget", "origin": need.origin},),
            )
            yield ProposedRepair("wait-for-purge", f"wait until the servers forget {need.origin}", (step,))
            return


class SetClock:
    """Set a clock that is ahead."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server whose changes lie in the future of others."""
        if need.code != CLOCK or need.server is None:
            return
        server = need.server
        step = Step(
            key=f"set-clock-of-{server}",
            repair="clock",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{server} takes its time from the network",
            stands_on=f"{server} can reach a time server, and nobody else sets its clock",
            expects=f"`timedatectl` of {server} shows the time that the others show",
            risk="positions are not taken back: until time has caught up it counts on by nanoseconds, its changes win over "
            "later ones of others, and its tombstones stay longer",
            undo="switch it off again",
            commands=(("on", server, "timedatectl", "status"), ("on", server, "timedatectl", "set-ntp", "true")),
            undo_commands=(("on", server, "timedatectl", "set-ntp", "false"),),
            effects=({"do": "set_clock", "server": server},),
        )
        yield ProposedRepair("set-clock", f"let {server} take its time from the network", (step,))
