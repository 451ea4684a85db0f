"""The files of Comdb2. `FORMATS` lists the kinds; the first that knows a file takes it."""

from workbench.model import Format

FORMATS: tuple[Format, ...] = ()
