"""Inputs, views and confirmations for notebooks: data in, events out. The only importer of ipywidgets.

    Inputs          what a notebook is about: pick lists out of the evidence, kept with the case
    Stepper         one session, record by record, under all rule sets side by side
    AnchorLine      where it begins: the candidates of the decision on a line
    Stops           where it stops: per origin, what lies beyond, what a reload would do
    View            what every view is; text of logs reaches a page as text only

A `Problem` in a cell is shown as its sentence, without a traceback.
"""

from widgets.inputs import Inputs
from widgets.plainly import show_problems_plainly
from widgets.session import AnchorLine, Stepper, Stops
from widgets.view import View

__all__ = ["AnchorLine", "Inputs", "Stepper", "Stops", "View"]

show_problems_plainly()
