"""The files that Kanidm and its tools write. `FORMATS` lists the kinds; the first that knows a file takes it.

backup      the JSON that `database backup` and the on-line backups write, in five layouts
database    the server's SQLite database, an offline copy
frames      what two servers said to each other, captured
log         the server's log: answers and ranges
scan        what `db-scan list-id2entry` and `database verify` print
config      `server.toml`: who pulls from whom
documents   what the JSON is made of: times, CIDs, change states
"""

from workbench.systems.kanidm.formats.backup import BACKUP
from workbench.systems.kanidm.formats.config import CONFIG
from workbench.systems.kanidm.formats.database import DATABASE
from workbench.systems.kanidm.formats.frames import FRAME_LINES, FRAMES
from workbench.systems.kanidm.formats.log import LOG
from workbench.systems.kanidm.formats.scan import DB_SCAN, VERIFY

FORMATS = (BACKUP, DATABASE, FRAMES, FRAME_LINES, DB_SCAN, VERIFY, LOG, CONFIG)
