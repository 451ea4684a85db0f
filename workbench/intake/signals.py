"""Signals that are handled otherwise for a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled(handler: Any, *numbers: signal.Signals) -> Iterator[Mapping[int, Any]]:
    """These signals go to another handler while the block runs; gives those that they had, none outside the main thread."""
    try:
        before: Mapping[int, Any] = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # nobody sends a signal to a thread
        yield {}
        return
    try:
        yield before
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No Ctrl-C and no order to end is heard while the block runs: it puts back what must not stay, and takes seconds."""
    with handled(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield
