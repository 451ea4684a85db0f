"""The files that Kanidm and its tools write. `FORMATS` lists the kinds; the first that knows a file takes it.

backup      the JSON that `database backup` and the on-line backups write, in five layouts
documents   what its JSON is made of: times, CIDs, change states
"""

from workbench.systems.kanidm.formats.backup import BACKUP

FORMATS = (BACKUP,)
