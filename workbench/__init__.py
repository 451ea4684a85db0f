"""The replication workbench: which changes did this server miss, why, and how to put them back.

The public verbs, in the order in which an incident needs them:

    inspect(files)              what each file holds, without Spark
    Case.create(folder)         a case: one incident in one folder
    case.load(folders)          collected files -> evidence tables (Parquet, through Spark)
    case.holdings()             per server and origin: what its log shows and what its vector claims
    diagnose(case)              which changes each server missed, why, what is on its way, and what to do
    story(case, position)       one change: who made it, who has it, who would send it, and what proves each
    session_of(case, "a", "b")  what a session from a to b would do with each change, a page at a time
    known_at(case, "a", "3", t) what server a knew of origin 3 at the time t, and what proves it
    vectors_over_time(case)     how the vector of each server grew
    lag(case)                   how far each link was behind, over time or at one time
    disagreement(case)          since when the vectors of two servers differ
    arrivals(case, position)    where a change arrived when, and over which links it came
    difference(a, b)            what is new, gone and changed from one diagnosis to another
    Incident(case)              a case with its diagnosis at hand: what pages ask again and again
    answer(kind, inputs)        a what-if case, as of `workbench scenario`
    plan(case)                  what needs mending and how, proven on a model of the case; writes to no server
    apply(plan, site, folder)   do a plan, each step exactly once; again with `resume=True` after whatever stopped it
    case.table(name, spark)     an evidence table as a Spark DataFrame
    case.arrow(name)            a small evidence table without Spark
    spark_session()             one Spark session: this machine, a cluster or Spark Connect

`workbench.model` is the vocabulary, `workbench.tables` says what every column means, `workbench.systems` holds what
is particular to each replicated system. Errors that the user can mend are `Problem`s: what, where and what to do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.intake.files import inspect
from workbench.model import Problem

if TYPE_CHECKING:
    from workbench.diagnosis.case_diagnosis import diagnose
    from workbench.diagnosis.change_explanation import story
    from workbench.diagnosis.diagnosis_diff import difference
    from workbench.diagnosis.incident import Incident
    from workbench.diagnosis.propagation import arrivals
    from workbench.engine.session import spark_session
    from workbench.repair.plan_executor import apply
    from workbench.repair.planner import plan
    from workbench.replication.changelog.diagnosis.planned_sessions import session_of
    from workbench.scenarios import answer
    from workbench.topology.history import disagreement, known_at, lag, vectors_over_time

__version__ = "0.1.0"
__all__ = [
    "Case",
    "Incident",
    "Problem",
    "__version__",
    "answer",
    "apply",
    "arrivals",
    "diagnose",
    "difference",
    "disagreement",
    "inspect",
    "known_at",
    "lag",
    "plan",
    "session_of",
    "spark_session",
    "story",
    "vectors_over_time",
]

_LATER = {
    "Incident": "workbench.diagnosis.incident",
    "answer": "workbench.scenarios",
    "apply": "workbench.repair.plan_executor",
    "arrivals": "workbench.diagnosis.propagation",
    "diagnose": "workbench.diagnosis.case_diagnosis",
    "difference": "workbench.diagnosis.diagnosis_diff",
    "disagreement": "workbench.topology.history",
    "known_at": "workbench.topology.history",
    "lag": "workbench.topology.history",
    "plan": "workbench.repair.planner",
    "session_of": "workbench.replication.changelog.diagnosis.planned_sessions",
    "spark_session": "workbench.engine.session",
    "story": "workbench.diagnosis.change_explanation",
    "vectors_over_time": "workbench.topology.history",
}
"""Verbs that are loaded when they are first used: pyspark and pydantic take a second that the workers do not have."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
