"""The files that Drizzle and its tools write. `FORMATS` lists the kinds; the first that knows a file takes it.

exports          the tables in which masters and slaves keep the same messages
state            what a slave says of itself
transaction_log  the records of a server's stream, as it writes them to a file
framing          where these begin and end, and what lies between them where the file is damaged
messages         the protobuf messages in them, of `messages.proto`
statements       what a message tells of each of its statements
segments         the rows that a piece of a stream gives, many messages at a time
"""

from workbench.model import Format
from workbench.systems.drizzle.formats.exports import QUEUE, REPLICATION_LOG
from workbench.systems.drizzle.formats.state import STATE
from workbench.systems.drizzle.formats.transaction_log import TRANSACTION_LOG

FORMATS: tuple[Format, ...] = (TRANSACTION_LOG, *REPLICATION_LOG, *QUEUE, STATE)
