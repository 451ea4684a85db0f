"""Long work in a cell, with a bar that counts rows, and a Cancel that works while the cell runs."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from IPython import get_ipython
from IPython.display import display

from widgets.live_messages import heard_meanwhile
from widgets.view import View
from workbench.model import Problem
from workbench.safety import printable

RUNNING, CANCELLING, DONE, CANCELLED, FAILED = "running", "cancelling", "done", "cancelled", "failed"

_BETWEEN = 0.2
"""Seconds from one drawing of the bar to the next."""

_GRACE = 1.0
"""Seconds that work which was cancelled is given to count once more, before it is interrupted where it is."""


class Progress(View, drawn_by="progress"):
    """How far a work is: bytes of bytes (or what `unit` says), rows, and rows a second."""

    def __init__(self, what: str, cancel: Callable[[], None], unit: str = "MB") -> None:
        self._cancel, self._began, self._drawn = cancel, time.monotonic(), 0.0
        self._showing = threading.Lock()
        self._first: tuple[float, int] | None = None
        super().__init__(
            {
                "what": what,
                "state": RUNNING,
                "done": 0,
                "total": 0,
                "rows": 0,
                "rate": 0,
                "seconds": 0.0,
                "says": "",
                "unit": unit,
            }
        )
        heard_meanwhile(self)

    def count(self, done: int, total: int, rows: int) -> None:
        """Show how far it is, not oftener than anybody can see."""
        now = time.monotonic()
        if now - self._drawn >= _BETWEEN:
            self._drawn = now
            # Not since it began: a Spark that had to be started first would be seen as slow reading.
            self._first = self._first or (now, rows)
            since, before = self._first
            rate = round((rows - before) / (now - since)) if now > since else 0
            self._show(done=done, total=total, rows=rows, rate=rate)

    def end(self, state: str, says: str = "") -> None:
        """Show how it ended; nothing can be cancelled any more."""
        self._show(state=state, says=says)

    def on_cancel(self, message: dict[str, Any]) -> None:
        """Somebody pressed Cancel."""
        if self.data["state"] == RUNNING:
            self._cancel()
            self._show(state=CANCELLING)

    def _show(self, **news: Any) -> None:
        # Heard on one thread, counted on another: an end that is shown is not taken back by either.
        with self._showing:
            if self.data["state"] in (RUNNING, CANCELLING):
                self.data = {**self.data, "seconds": time.monotonic() - self._began, **news}

    def text(self) -> str:
        """The same as one line."""
        data = self.data
        told = [f"{data['what']}: {data['state']}", f"{data['seconds']:.1f} s", data["says"]]
        return printable(", ".join(one for one in told if one))


class _Brake:
    """Ends the work of a thread as Ctrl-C would: when it counts next, or, if it does not, where it is.

    Once the work has counted all there is, it is about to keep what it made, and is not ended any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = threading.current_thread()
        self.pulled = self.too_late = self._heard = False

    def pull(self) -> None:
        """End the work; may be called from any thread."""
        with self._lock:
            if self.pulled:
                return
            if self.too_late:
                raise Problem("too late to cancel: all is read, and is being kept")
            self.pulled = True
        if self._thread is threading.main_thread():  # only that one can be interrupted
            timer = threading.Timer(_GRACE, self._interrupt)
            timer.daemon = True
            timer.start()

    def count(self, done: int, total: int) -> None:
        """Called by the work itself: raises KeyboardInterrupt if it is to end."""
        with self._lock:
            if self.pulled:
                self._heard = True
                raise KeyboardInterrupt
            self.too_late = done >= total

    def release(self) -> None:
        """The work has ended, and nothing interrupts what comes behind it."""
        with self._lock:
            self.too_late = True

    def _interrupt(self) -> None:
        with self._lock:  # so that the work cannot pass its last count before it has the signal
            if not (self._heard or self.too_late):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def watched(work: Callable[..., Any], *given: Any, what: str = "reading", unit: str = "MB", **named: Any) -> Any:
    """Do long work, `work(*given, **named, progress=...)`, under a bar with a Cancel; returns what the work does.

    The work calls `progress(done, total, rows)` now and then, keeps nothing before it has told that all is done, and leaves
    everything as it was if it is interrupted, or if that call raises: such as `Case.load`. Cancelled, this ends with a
    Problem that says so; errors of the work come out as they are. Without a browser it does the same, without a bar.

    What the work returns may say in `says` what was done. `unit` is what it counts; MB: bytes.
    """
    brake = _Brake()
    view = Progress(what, brake.pull, unit)
    shown = display(view, display_id=True) if get_ipython() is not None else None

    def progress(done: int, total: int, rows: int) -> None:
        view.count(done, total, rows)
        brake.count(done, total)

    try:
        result = work(*given, progress=progress, **named)
        brake.release()
        view.end(DONE, str(getattr(result, "says", "")))
    except KeyboardInterrupt:
        if brake.too_late:  # nobody can say from here what was kept
            view.end(FAILED, "interrupted at its end")
            raise
        brake.release()
        view.end(CANCELLED, "nothing was changed")
        raise Problem("cancelled: nothing was changed") from None
    except BaseException as error:
        brake.release()
        view.end(FAILED, str(error) if isinstance(error, Problem) else type(error).__name__)
        raise
    finally:
        if shown is not None:
            shown.update(view)
    return result
