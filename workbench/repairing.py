"""Doing a plan: each step exactly once, whatever happens in between.

Of every step the journal gets the intent first. Then it is looked whether the step is done already (a run before this one
may have been killed after the server took it), the servers are compared with what the plan stands on, the step is done,
its effect is looked for on all servers, and the journal says done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from workbench.plans import Step, Vectors


class Site(Protocol):
    """Where a plan is done: real servers, or the model of a case. What fails raises Problem."""

    def vectors(self, suffix: str | None) -> Vectors:
        """What every server of the suffix that can be reached claims to hold now."""

    def obstacles(self, step: Step) -> list[str]:
        """Why the step may not be done: what is no longer as it was planned on, but for the vectors. Writes nothing."""

    def memo(self, step: Step) -> dict[str, Any]:
        """What has to be known from before the step to tell later whether it is done; goes into the journal."""

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if the step has taken effect at its server. Writes nothing."""

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Do the step, as far as it is not done."""

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """What is not yet as the step expects, on its server and on all others; empty if all is. Writes nothing."""
