"""Inputs, views and confirmations for notebooks: data in, events out. The only importer of ipywidgets.

    Inputs          what a notebook is about: pick lists out of the evidence, kept with the case
    View            what every view is; text of logs reaches a page as text only

A `Problem` in a cell is shown as its sentence, without a traceback.
"""

from widgets.entries import EntryDiff
from widgets.inputs import Inputs
from widgets.mesh import Findings, MeshMap, VectorGrid
from widgets.missed import MissedChanges, TimeLine
from widgets.plainly import show_problems_plainly
from widgets.view import View

__all__ = ["EntryDiff", "Findings", "Inputs", "MeshMap", "MissedChanges", "TimeLine", "VectorGrid", "View"]

show_problems_plainly()
