"""The files of Comdb2. `FORMATS` lists the kinds; the first that knows a file takes it."""

from workbench.model import Format
from workbench.systems.comdb2.formats.asked import CLUSTER, LOG_FILES, POSITIONS, STATISTICS
from workbench.systems.comdb2.formats.lrl import LRL
from workbench.systems.comdb2.formats.program_log import PROGRAM_LOG
from workbench.systems.comdb2.formats.records import BOXED, RECORDS
from workbench.systems.comdb2.formats.registry import CLOCK, CONNECTIONS, PHYSREPS, SOURCES
from workbench.systems.comdb2.formats.settings import METRICS, TUNABLES

FORMATS: tuple[Format, ...] = (
    RECORDS,
    BOXED,
    PHYSREPS,
    POSITIONS,
    CLUSTER,
    STATISTICS,
    LOG_FILES,
    CLOCK,
    METRICS,
    TUNABLES,
    SOURCES,
    CONNECTIONS,
    PROGRAM_LOG,
    LRL,
)
