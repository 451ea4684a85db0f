"""What every view is: data in, events out. A view draws a dictionary; what is clicked comes back as a message.

The page is drawn by `js/<name>.js` with the helpers of `js/dom.js`, which put text into a page as text and never as markup:
names, targets and messages come from logs and are hostile. Nothing in a page asks a network for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

import anywidget
import traitlets

from workbench.model import Problem
from workbench.safety import printable
from workbench.views.verdict_style import VERDICTS

_HERE = Path(__file__).parent


@cache
def script(name: str) -> str:
    """The page's part of a view: the helpers, its own drawing, and what holds both to the model; `a+b`: b draws with a."""
    parts = [(_HERE / "js" / f"{one}.js").read_text(encoding="utf-8") for one in ("dom", *name.split("+"), "page")]
    return "\n".join(parts)


@cache
def style() -> str:
    """The looks of all views; the colours of verdicts come from the one scale."""
    colours = "".join(f"--wb-{name}: {shade.colour}; " for name, shade in VERDICTS.items())
    signs = "".join(f'.wb-{name}::before {{ content: "{shade.sign}"; }}\n' for name, shade in VERDICTS.items())
    return f".wb {{ {colours}}}\n{signs}" + (_HERE / "look.css").read_text(encoding="utf-8")


class ReadsAsText:
    """A widget that is plain text where there are no scripts: an executed notebook in a review, a terminal."""

    def text(self) -> str:
        """What it shows, as plain text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle: Any = cast(Any, super())._repr_mimebundle_(**kwargs)
        (bundle[0] if isinstance(bundle, tuple) else bundle)["text/plain"] = self.text()
        return bundle


class View(ReadsAsText, anywidget.AnyWidget):
    """A part of a page that shows `data` and says what is clicked.

    notice   a sentence above it: what could not be done, and what to do about it
    picked   called with each message of the page that the view itself does not answer
    """

    data = traitlets.Dict().tag(sync=True)
    notice = traitlets.Unicode().tag(sync=True)

    _drawn_by: ClassVar[str] = ""

    def __init_subclass__(cls, drawn_by: str = "", **more: Any) -> None:
        if drawn_by:
            cls._drawn_by = drawn_by
            cls._esm, cls._css = script(drawn_by), style()
        super().__init_subclass__(**more)

    def __init__(self, data: Mapping[str, Any] | None = None, **traits: Any) -> None:
        super().__init__(data=dict(data or {}), **traits)
        self.on_msg(self._heard)

    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer a message of the page. What a user can mend is said in the view, not as a traceback somewhere."""
        self.notice = ""
        with self.told_here():
            what = str(message.get("what", "")) if isinstance(message, dict) else ""
            # ipywidgets has methods of such names itself: those are no answers to a page.
            answer: Callable[..., None] | None = getattr(type(self), f"on_{what}", None)
            if answer is not None and str(getattr(answer, "__module__", "")).startswith("widgets."):
                answer(self, message)
        self.send({"heard": True})  # also where nothing changed: the page waits for an answer

    def told_here(self) -> _ToldHere:
        """A block in which a Problem becomes the notice of this view."""
        return _ToldHere(self)


class _ToldHere:
    def __init__(self, view: View) -> None:
        self.view = view

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, Problem):
            self.view.notice = printable(str(error))
            return True
        return False
