"""The replication workbench: which changes did this server miss, why, and how to put them back.

The public verbs, in the order in which an incident needs them:

    inspect(files)              what each file holds, without Spark
    Case.create(folder)         a case: one incident in one folder
    case.load(folders)          collected files -> evidence tables (Parquet, through Spark)
    case.holdings()             per server and origin: what its log shows and what its vector claims
    case.table(name, spark)     an evidence table as a Spark DataFrame
    case.arrow(name)            a small evidence table without Spark
    diagnose(case)              the pair matrix and the findings, as `workbench diagnose --json` writes them
    session_of(case, a, b)      the session that a would hold with b now, a page of changes at a time
    spark_session()             one Spark session: this machine, a cluster or Spark Connect

`workbench.model` is the vocabulary, `workbench.tables` says what every column means, `workbench.systems` holds what
is particular to each replicated system. Errors that the user can mend are `Problem`s: what, where and what to do.
"""

from typing import TYPE_CHECKING, Any

from workbench.case import Case
from workbench.files import inspect
from workbench.model import Problem

if TYPE_CHECKING:
    from workbench.diagnosis import diagnose, session_of
    from workbench.engine.session import spark_session

__version__ = "0.1.0"
__all__ = ["Case", "Problem", "__version__", "diagnose", "inspect", "session_of", "spark_session"]


def __getattr__(name: str) -> Any:
    # pyspark takes a second to import; `workbench inspect` and the workers do without it, and without the rules.
    if name == "spark_session":
        from workbench.engine.session import spark_session

        return spark_session
    if name in ("diagnose", "session_of"):
        from workbench import diagnosis

        return getattr(diagnosis, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
