"""Every place where a repair can be cut short, and every way in which it can be there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workbench import journal
from workbench.journal import Journal
from workbench.model import Problem
from workbench.repair import plan_executor
from workbench.repair.plan_executor import Site
from workbench.repair.plan_progress import FINISHED, HALF_DONE, state_of
from workbench.repair.plan_types import Plan, Step, Vectors

Fault = tuple[int, str]
"""Which moment of a run, counted from 0, and what happens there."""

WAYS = {
    # A record: not yet written; cut in the middle, or before its line end; written, and the run over; half of it
    # written because the disk is full, of which the run is told.
    "record": ("before", "torn", "torn at end", "after", "disk full"),
    # A step: not yet sent; taken, and the run over; taken, but reported as failed; failed.
    "step": ("before", "after", "landed but failed", "timed out", "failed"),
    # A part of a step, when it is taken: the run over; the rest failed.
    "part": ("killed", "failed"),
    # A connection to a server: it does not come about.
    "look": ("unreachable",),
    # A write to a server. Not taken: the run over, the connection broken, refused. Taken: the run over, the connection broken.
    "write": ("killed before", "lost", "refused", "killed", "landed but failed"),
}


class Killed(BaseException):
    """The end of the process: nothing of the program may catch it."""


@dataclass
class Moments:
    """Counts the moments of a run, and lets the fault happen when its moment comes."""

    fault: Fault | None = None
    seen: list[str] = field(default_factory=list)

    def now(self, kind: str) -> str:
        self.seen.append(kind)
        return self.fault[1] if self.fault and self.fault[0] == len(self.seen) - 1 else ""


@dataclass
class Cut:
    """A site whose steps can be cut short."""

    site: Site
    moments: Moments

    def vectors(self, suffix: str | None) -> Vectors:
        return self.site.vectors(suffix)

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        return self.site.obstacles(step, begun)

    def memo(self, step: Step) -> dict[str, Any]:
        return self.site.memo(step)

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        return self.site.done(step, memo)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        return self.site.shortfall(step, memo)

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        what = self.moments.now("step")
        if what == "before":
            raise Killed
        if what == "failed":
            raise Problem("the server is busy")
        self.site.apply(step, memo)
        if what == "after":
            raise Killed
        if what == "landed but failed":
            raise Problem("the connection was lost")
        if what == "timed out":
            raise TimeoutError

    def at_part(self, effect: str) -> None:
        what = self.moments.now("part")
        if what == "killed":
            raise Killed
        if what == "failed":
            raise ConnectionResetError


def writing(moments: Moments) -> Callable[[Journal, bytes], None]:
    """Writes records as the journal does, but for the fault."""
    write = Journal._write

    def cut(book: Journal, line: bytes) -> None:
        what = moments.now("record")
        if what in ("", "after"):
            write(book, line)
        else:
            size = {"before": 0, "torn at end": len(line) - 1}.get(what, len(line) // 2)
            with open(book.path, "ab") as file:
                file.write(line[:size])
        if what == "disk full":
            raise OSError(errno.ENOSPC, "No space left on device")
        if what:
            raise Killed

    return cut


def run(
    plan: Plan, plan_id: str, folder: Path, site: Site, fault: Fault | None, connect: Callable[[Cut], None]
) -> list[str]:
    """One run, of `apply` or `resume` as the journal wants it; returns the moments that it came to.

    `connect` is given the site around the site, to let it know of the parts of its steps.
    """
    moments = Moments(fault)
    cut = Cut(site, moments)
    connect(cut)
    resume = state_of(folder, plan_id).state == HALF_DONE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_write", writing(moments))
        patch.setattr(plan_executor.time, "sleep", lambda seconds: None)
        patch.setattr(os, "fsync", lambda descriptor: None)  # no machine ends here
        patch.setattr(journal, "_names_to_disk", lambda folder: None)
        try:
            outcome = plan_executor.apply(plan, cut, folder, resume=resume)
            assert fault or outcome.state == FINISHED, outcome
        except Killed:
            pass
        except Problem:
            # Before anything was done: nothing may have been.
            assert fault, "a run without a fault was refused"
            assert "step" not in moments.seen
    assert fault is None or fault[1] in WAYS[moments.seen[fault[0]]], "this is another run than the one without faults"
    return moments.seen


def faults(seen: list[str]) -> Iterator[Fault]:
    """Every fault in every moment of such a run."""
    for number, kind in enumerate(seen):
        for way in WAYS[kind]:
            yield number, way
