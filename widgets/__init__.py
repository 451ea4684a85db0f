"""Inputs, views and confirmations for notebooks: data in, events out. The only importer of ipywidgets.

    Inputs           what a notebook is about: pick lists out of the evidence, kept with the case
    Findings         the verdict, and each finding with what mends it
    MeshMap          servers and links, with what would go over each
    VectorGrid       servers x origins: what each claims, and what of that it lacks
    VectorsOverTime  when each server came to which change
    AnchorLine       where one session begins: the candidates of the decision on a line
    Stepper          one session, record by record, under all rule sets side by side
    Stops            where it stops: per origin, what lies beyond, what a reload would do
    MissedChanges    what is missing, unknown, pending or stranded, with the story of each change
    TimeLine         the logs side by side, with their gaps
    EntryDiff        the entries in which two servers differ
    PendingLanes     operations at work, and what may be claimed meanwhile
    RangeBars        servers that keep no log: what each remembers of each origin, and what two of them answer each other
    PositionList     the positions behind that, with the entries that carry each
    FloorGrid        what all servers have seen, and who holds that back
    WalkThrough      a small fleet that keeps no log, step by step
    TransactionLanes transactions of a stream, with their pieces against the commit
    FleetDifference  what each log lacks of its source's
    TableHeat        rows of tables over time, those that count and those that were taken back
    TierTree         nodes that pull a physical log in tiers, with the bytes lost on each edge
    LogCoverage      who has which files of that log, and who needs which
    TierChanges      what if nodes of the tree were lost, moved or reset
    Tombstones       deleted entries: who has seen that, who forgets it next, for whom it is kept
    Checks           the outcome of regression checks
    PlanView         a plan of repair whole: the ways compared, every step
    ConfirmPanel     rehearses a plan, or does it once the names of its servers were typed
    JournalView      what was done
    watched          long work under a bar, with a Cancel
    Table            rows that are searched and sorted in the page
    View             what every view is; text of logs reaches a page as text only

A `Problem` in a cell is shown as its sentence, without a traceback.
"""

from widgets.charts import VectorsOverTime
from widgets.checks import Checks
from widgets.confirm import ConfirmPanel, JournalView, PlanView
from widgets.entries import EntryDiff
from widgets.entry_ranges import FloorGrid, PositionList, RangeBars, Tombstones
from widgets.error_display import show_problems_plainly
from widgets.example_view import WalkThrough
from widgets.inputs import Inputs
from widgets.mesh import Findings, MeshMap, VectorGrid
from widgets.missed import MissedChanges, TimeLine
from widgets.pending_view import PendingLanes
from widgets.progress import watched
from widgets.session import AnchorLine, Stepper, Stops
from widgets.streams import FleetDifference, TableHeat, TransactionLanes
from widgets.tables import Table
from widgets.tiers import LogCoverage, TierChanges, TierTree
from widgets.view import View

__all__ = [
    "AnchorLine",
    "Checks",
    "ConfirmPanel",
    "EntryDiff",
    "Findings",
    "FleetDifference",
    "FloorGrid",
    "Inputs",
    "JournalView",
    "LogCoverage",
    "MeshMap",
    "MissedChanges",
    "PendingLanes",
    "PlanView",
    "PositionList",
    "RangeBars",
    "Stepper",
    "Stops",
    "Table",
    "TableHeat",
    "TierChanges",
    "TierTree",
    "TimeLine",
    "Tombstones",
    "TransactionLanes",
    "VectorGrid",
    "VectorsOverTime",
    "View",
    "WalkThrough",
    "watched",
]

show_problems_plainly()
