"""The vocabulary of the workbench. Every other module, every table and every page uses these words.

origin    who made a change (389: replica ID, Kanidm: server uuid, Drizzle: server id, Comdb2: source database)
position  one change of one origin (389: CSN, Kanidm: CID, Drizzle: transaction id, Comdb2: LSN)
vector    what a server claims to hold: origin -> (min, max)
change    position + target + operation
evidence  proof that a server has a change: its changelog, its logs, the state of its entries
link      supplier -> consumer
verdict   present, missing or unknown; a cut or absent log is always unknown, never a guess

A position is handled as its *order key*: fixed-width lower-case text whose plain string order is the order of the
protocol. Python compares strings, Spark compares UTF-8 bytes, people compare by eye; all three agree. The narrow
tables hold the same order as two non-negative 64-bit integers (`hi`, `lo`), because sorted integers pack three times
smaller and join faster. Nothing is lost on the way: sub-sequence numbers and times past 2038 fit.

This module needs the standard library only: the rules import it, and so does every worker of the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from workbench.contracts.replication import Replication


@dataclass(frozen=True)
class Source:
    """Where a file comes from: which server wrote it, in which snapshot (one collected folder), about which suffix.

    `suffixes` are all that the server holds, if it holds several: rows that name their target then go by it.
    """

    file: str
    snapshot: str
    server: str
    suffix: str | None = None
    suffixes: tuple[str, ...] = ()


Frame = tuple[int, int, str]
"""A unit of a binary file, or a stretch that is none: (first byte, byte behind it, what the format's framing says of it)."""


@dataclass(frozen=True)
class Piece:
    """Consecutive whole units (records or lines) of one file, as bytes.

    `offset` is the place of the first byte in the file as it reads after decompression, so that a reject can name the
    place whatever the packing. `ended` says that the file ends with this piece: a unit without its end mark there was
    cut. A piece never holds half a unit otherwise. `frames` are its units, where only the format can tell them.
    """

    source: Source
    data: bytes
    offset: int
    ended: bool
    frames: tuple[Frame, ...] = ()


CUT_LINE = "the file ends within this line"
"""How a reject's reason begins where the writer ends every line: the end of the file was not copied."""

NOT_TEXT = "not UTF-8"
"""Why a line of a log is set aside that a server wrote with bytes that are no text."""


@dataclass(frozen=True)
class Reject:
    """One unit that could not be read: what is wrong, where, and a short harmless excerpt."""

    offset: int
    reason: str
    excerpt: str = ""


@dataclass
class Parsed:
    """What a parser made of one piece.

    rows      units seen; accepted = rows - len(rejects)
    tables    evidence table name -> pyarrow.Table with that table's columns (workbench.tables), without the source columns
    facts     what `inspect` shows, in the shape of the contract; pieces are folded with `merge_facts`
    """

    rows: int = 0
    rejects: list[Reject] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    """Reads the pieces of one stream in order; may remember what earlier pieces said (open connections of a log).

    Where a unit could not be read the next piece begins behind it: `offset` shows the gap. A `copy.deepcopy` of a reader
    remembers the same and goes its own way; of one with a memory a copy is made before every piece, so it must be cheap.
    """

    def __call__(self, piece: Piece) -> Parsed: ...


class Detail(Protocol):
    """What `inspect` tells of one file: it is given each piece, in order, with what was read of it."""

    def add(self, piece: Piece, parsed: Parsed) -> None:
        """One more piece, and what was read of it."""

    def detail(self) -> dict[str, Any]:
        """What there is to show of all of them."""
        ...


RECORDS, LINES, ITEMS, FRAMES, WHOLE = "records", "lines", "items", "frames", "whole"


def _nothing(unit: bytes) -> str:
    return ""


@dataclass(frozen=True)
class Format:
    """One kind of file.

    name       as in the contract: `ds389.changelog-ldif`
    sniff      (first bytes, file name) -> is it this? The content decides; the name counts only where the content is empty
    reader     makes a fresh Reader for one stream
    unit       what the file is a sequence of: RECORDS (blocks between empty lines), LINES, ITEMS (of one long list, each of which
               begins with `opens`, its comma included), FRAMES (binary records, which only `frames` can tell), or WHOLE (one
               document)
    splittable pieces may be read in any order, by different workers; False when a line needs the lines before it
    empty      the facts of a file of this format that holds nothing
    variant    tells formats of one name apart that must be read in different ways
    tells_links   it lists all links of its server: without a row there is none
    tells_nodes   it lists all nodes of a registry: without a row there is none
    encrypted  the `addresses` that its facts have are those of encrypted connections
    main_port  of links: the words of `transport`, in lower case, with which one leads to the port that `addresses` tell
    tells_suffix  its facts have `suffixes`: the suffixes its server holds; such files are small and read first
    begins     first bytes -> the time of the first line as sortable text: what orders the files of one log
    opens      what each record begins with, where a value may hold empty lines: of these only those before it are borders; of
               items the only sign of a border
    evidence   what its rows prove of changes, as the contract calls it (`access_log`); empty: nothing. Vectors need no word
    is_log     holds the changes that its server can still supply; of several such files the latest one counts
    excerpt    a unit on which the reader failed -> a short harmless beginning; nothing, unless the format knows its secrets
    detail     makes what tells `inspect` of one file, piece by piece, where `facts` are not all there is to show
    stream     of a file that is no text, a database: path -> the text as which it is read, a chunk at a time. Places are those
               of that text. It raises ValueError where it cannot go on; what it gave before counts
    frames     of a binary file: ((place, length) -> bytes, size, start, end, known) -> all that begins in [start, end), without
               gaps: units, and stretches that are none. `known`: one begins at `start`; else the first behind it is guessed.
               What follows a place must depend on that place and the file alone: a guess is held against where the frames
               before it end, and read again if it was wrong
    streams    its records are those of a stream of transactions: its rows are `segments`
    records    of a stream: a piece -> what `inspect` lists of its records, and of the stretches in it that are none
    final_rows of a stream: (path, for each transaction (offset, length, statements, content) of its messages) -> what the
               tables hold in the end. Raises Problem at a row that cannot be read safely
    """

    name: str
    sniff: Callable[[bytes, str], bool]
    reader: Callable[[], Reader]
    unit: str = RECORDS
    splittable: bool = False
    empty: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    tells_suffix: bool = False
    tells_links: bool = False
    tells_nodes: bool = False
    encrypted: bool = False
    main_port: frozenset[str] = frozenset()
    begins: Callable[[bytes], str | None] | None = None
    opens: bytes = b""
    evidence: str = ""
    is_log: bool = False
    excerpt: Callable[[bytes], str] = _nothing
    detail: Callable[[], Detail] | None = None
    stream: Callable[[Path], Iterator[bytes]] | None = None
    frames: Callable[[Callable[[int, int], bytes], int, int, int, bool], Iterator[Frame]] | None = None
    streams: bool = False
    records: Callable[[Piece], tuple[list[dict[str, Any]], list[dict[str, Any]]]] | None = None
    final_rows: Callable[[Path, Iterable[Iterable[tuple[int, int, tuple[int, ...], int]]]], Any] | None = None

    @property
    def key(self) -> str:
        """What finds this format again: its name and variant."""
        return f"{self.name}:{self.variant}" if self.variant else self.name


@dataclass(frozen=True)
class Kind:
    """One kind of what-if case.

    question  what it answers, in one sentence
    inputs    the model of what has to be known (a class of `workbench.input_validation`)
    answer    inputs of that model -> the result of the contract, ready to be written as JSON
    """

    question: str
    inputs: type
    answer: Callable[[Any], dict[str, Any]]


Detectors = Mapping[str, Iterable[Callable[[Any], Iterable["Finding"]]]]
"""Stage -> what looks for findings there."""


@dataclass(frozen=True)
class Naming:
    """What names look like in one system, so that a report can do without them. Kinds are those of `workbench.report.redaction`.

    parts     the name of a target -> its pieces, which joined are the name again: ("", literal text) and (kind, name)
    in_text   finds names of targets within a sentence, with the words behind them that may belong to them, of which those are
              taken that are no words of any sentence; None: only names that are known are found there
    patterns  (kind, pattern): names in the system's own lines of logs; the first group is the name
    common    names that every installation has: they say nothing of whose data it is; lower case
    ordinary  words of the system's own sentences, which are no names there; lower case
    """

    parts: Callable[[str], Iterable[tuple[str, str]]]
    in_text: re.Pattern[str] | None = None
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()
    common: frozenset[str] = frozenset()
    ordinary: frozenset[str] = frozenset()


def _no_kinds() -> Mapping[str, Kind]:
    return {}


@dataclass(frozen=True)
class System:
    """One replicated system: a folder under `workbench/systems` whose package has `SYSTEM`, found by being there.

    formats       asked in order; the first whose `sniff` says yes takes the file
    show          order key -> the position as the system writes it
    instant       a time -> the lowest hi of the positions made then, by the clock of their origin
    moment        order key -> when the change was made, by the clock of its origin; None if positions carry no time
    order_key     (origin, hi, lo) -> order key; the integers are those of the table `changes`
    halves        order key -> (hi, lo)
    origin_of     order key -> who made the change
    change_of     a position that stands for a part of a change -> the position of the change
    typed         a position as a person types it -> its order key; None if it is none
    replication   gives its style of replication (`workbench.contracts.replication`)
    bucket_shift  hi >> bucket_shift is the digest bucket: aim for well under one missed change in each
    log_words     file names that name a kind of file, not a server (`access`, `backup-*`): the folder then names the server
    sides         file names of the same kind, of a file that both sides of a link may have -> the side that wrote it, which then
                  is the name of its server
    below         what stands in a target's name before the suffix it lies below; empty: names show none
    spelled       a suffix as a person types it -> the one spelling that the tables have
    supplying     gives what its suppliers do (`workbench.rules.send_session.Supplying`); None where no session is known
    proving       gives what its evidence means (`workbench.rules.verdicts.Proving`)
    vector_word   what the contract calls the evidence of a vector
    pulling       gives what its suppliers answer, where they keep no log of changes
                  (`workbench.replication.entry.rules.entries.Pulling`)
    tiering       gives how its nodes pull a physical log from each other in tiers, as a registry tells
                  (`workbench.replication.tier.rules.tiers.Tiering`); None: they do not
    rooms         names of folders within a collected folder, the files of which belong to the same snapshot
    server_in     (name of a file without the ending of its packing, its format) -> its server; None: the first dotted part tells
    streaming     its servers replicate a stream of transactions: each keeps a log of those that it has done
    settling      order key of a transaction -> what to ask its source, to learn what became of it; None: not known
    walks         gives worked examples of small fleets of it, by name (`workbench.replication.entry.rules.entries.Example`)
    detectors     gives what looks for findings of its own: stage -> detectors, each (context) -> findings
    codes         the codes of the findings that only this system has
    clock_levels  seconds that a position may lie ahead of the clock -> severity from there on, the gravest first
    replaced      codes of messages which say that a server's data became that of another time or server
    sent          codes of messages with which a supplier says that it sends a change over a link
    servers       gives what reaches its live servers: (addresses, access, suffixes) -> `workbench.intake.collection.Servers`
    schemes       the URLs of its live servers begin with one of these; empty: it has the instances of this machine, and each
                  URL that no other system knows
    repairs       gives its repairs (`workbench.repair.plan_types.Repairs`); None where none is known
    site          gives its live servers, where a plan is done (`workbench.repair.plan_executor.Site`); None: by hand only
    scenarios     its kinds of what-if cases by name; a function, so that reading files does not load the models
    pending       gives how its servers hold back claims (`workbench.replication.changelog.rules.pending_examples.Pending`); None:
                  they do not
    secrets       gives its rules of what is a secret (`workbench.safety.Secrets`); None: only those of every system hold
    notebook      the notebook that shows how its servers replicate, where the general ones cannot
    words         word of this vocabulary -> what people of this system call it, for readers of a report
    refill        the verb for giving a server all data of another one
    milestones    codes of messages that a line of time shows -> what happened, in a few words
    link_failures gives what finds links that are switched on and do not run: (case, topology) -> by supplier, suffix and name
                  `workbench.rules.link_failures.LinkFailure`; None: no evidence of it is known
    kept_behind   gives what says, in a clause, whether the log of a supplier keeps what waits behind a link: (context, link,
                  consumer, first waiting change by origin); None: nothing tells how long logs keep changes
    without_data  gives what tells who has no data: (context) -> server and suffix -> is it empty? None: nothing tells that
    unrecorded    gives what tells who took changes that no log recorded: (context) -> server and suffix -> what happened, in a
                  clause; None: nothing tells that
    filled_again  gives what tells whom a server fills as it starts: (context) -> supplier and suffix -> the servers that have
                  changes alone, each with the code of the finding that says how to save them; None: no server does that
    supplier_again  gives the command, in a clause, that makes a server a supplier again: (server, suffix, origin); None: roles
                  do not change
    switch_on     gives the command, in a clause, that switches a link on: (supplier, suffix, name); None: none does
    kept_origins  gives what tells which servers make no changes as the origin of their configuration: (case, topology) -> server
                  and suffix -> the origin that their data has; None: no evidence of it is known
    turns_away    gives what tells whether a server would turn a supplier away over whatever link: (case, topology, replica of the
                  supplier, replica of the consumer); None: none does
    naming        gives what its names look like (`Naming`); None: the name of a target is one name, whatever is in it
    """

    name: str
    title: str
    formats: tuple[Format, ...]
    order_key: Callable[[str, int, int], str]
    halves: Callable[[str], tuple[int, int]]
    origin_of: Callable[[str], str]
    typed: Callable[[str], str | None]
    show: Callable[[str], str]
    moment: Callable[[str], datetime | None]
    instant: Callable[[datetime], int]
    bucket_shift: int
    replication: Callable[[], Replication]
    log_words: frozenset[str] = frozenset()
    sides: Mapping[str, str] = field(default_factory=dict)
    below: str = ""
    spelled: Callable[[str], str | None] = str
    change_of: Callable[[str], str] = str
    replaced: frozenset[str] = frozenset()
    sent: frozenset[str] = frozenset()
    supplying: Callable[[], Any] | None = None
    proving: Callable[[], Any] | None = None
    vector_word: str = "vector"
    pulling: Callable[[], Any] | None = None
    tiering: Callable[[], Any] | None = None
    rooms: frozenset[str] = frozenset()
    server_in: Callable[[str, str], str | None] = lambda name, kind: None
    streaming: bool = False
    settling: Callable[[str], str] | None = None
    walks: Callable[[], Mapping[str, Any]] = dict
    detectors: Callable[[], Detectors] = dict
    codes: Mapping[str, Code] = field(default_factory=dict)
    clock_levels: tuple[tuple[int, str], ...] = ()
    servers: Callable[[], Callable[..., Any]] | None = None
    schemes: frozenset[str] = frozenset()
    repairs: Callable[[], Any] | None = None
    site: Callable[[], Callable[..., Any]] | None = None
    scenarios: Callable[[], Mapping[str, Kind]] = _no_kinds
    pending: Callable[[], Any] | None = None
    secrets: Callable[[], Any] | None = None
    notebook: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    refill: str = "initialise"
    milestones: Mapping[str, str] = field(default_factory=dict)
    without_data: Callable[[], Callable[..., Mapping[tuple[str, str | None], bool]]] | None = None
    unrecorded: Callable[[], Callable[..., Mapping[tuple[str, str | None], str]]] | None = None
    filled_again: Callable[[], Callable[..., Mapping[tuple[str, str | None], Sequence[tuple[str, str]]]]] | None = None
    supplier_again: Callable[[], Callable[..., str]] | None = None
    switch_on: Callable[[], Callable[..., str]] | None = None
    kept_origins: Callable[[], Callable[..., Mapping[tuple[str, str | None], str]]] | None = None
    turns_away: Callable[[], Callable[..., bool]] | None = None
    naming: Callable[[], Naming] | None = None
    link_failures: Callable[[], Callable[..., Mapping[Any, Any]]] | None = None
    kept_behind: Callable[[], Callable[..., str]] | None = None


REMOVED = "[secret removed]"
"""Stands where a secret was."""

SEVERITIES = ("info", "warning", "error")

GENERATION, IDENTITY, ROLLBACK, ANCHOR, HOLES, APPLYING, LAG = STAGES = (
    *("generation", "identity", "rollback", "anchor", "holes", "applying", "lag"),
)
"""What is looked for, in this order: what comes later may be the consequence of what comes before."""


@dataclass(frozen=True)
class Code:
    """A code that findings may have: what it says, and how grave such a finding can be."""

    says: str
    severities: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """Something that a person must know, in the shape of the contract.

    items         the positions it is about
    evidence      rows that prove it, each a flat mapping
    fix           what to do: `repair`, `why`, and `caution` or None
    quotes        what the errors log of a server says just before, word for word: `server`, `text`
    root          a clause for the first line, where this is a cause that other findings follow from
    overrules     codes of findings that this one leaves without meaning
    overruled_by  the code of the finding that leaves this one without meaning: it is shown, and not counted
    follows_from  the code of the root of which this one is a consequence: it is true, and ends with that root
    reason        of a link that fails or is switched off: why, one of `workbench.rules.link_failures.REASONS`
    since         of a link that fails: from when on, as ISO text
    waiting       of a link that fails or is switched off: how many changes wait behind it
    assumes       what it takes for granted, of `workbench.rules.assumptions.ASSUMPTIONS`
    """

    code: str
    severity: str
    summary: str
    server: str | None = None
    link: str | None = None
    origin: str | None = None
    suffix: str | None = None
    items: tuple[str, ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = ()
    fix: tuple[Mapping[str, Any], ...] = ()
    root: str = ""
    overrules: tuple[str, ...] = ()
    overruled_by: str | None = None
    follows_from: str | None = None
    reason: str | None = None
    since: str | None = None
    waiting: int | None = None
    assumes: tuple[str, ...] = ()
    quotes: tuple[Mapping[str, str], ...] = ()


EVIDENCE_SHOWN = 10
ITEMS_SHOWN = 100


def first_few(rows: Iterable[Mapping[str, Any]], total: int | None = None) -> tuple[Mapping[str, Any], ...]:
    """The first rows of evidence, and behind them a row that says how many `more` there are; `total` of rows not kept."""
    kept = list(rows)
    more = (len(kept) if total is None else total) - len(kept[:EVIDENCE_SHOWN])
    return (*kept[:EVIDENCE_SHOWN], *([{"more": more}] if more > 0 else ()))


def counted(count: int, one: str = "change", several: str = "") -> str:
    """A number with its noun.

    >>> counted(1), counted(2000, "file"), counted(2, "entry", "entries")
    ('1 change', '2,000 files', '2 entries')
    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def ends(first: str, last: str) -> str:
    """From where to where some changes lie, in their order; of one change only that one.

    >>> ends("a1", "a9"), ends("a1", "a1")
    ('a1 to a9', 'a1')
    """
    return first if first == last else f"{first} to {last}"


def listed(names: Sequence[str], word: str = "and", most: int | None = None) -> str:
    """Names as a sentence lists them; of more than the most the first ones.

    >>> listed(["s1"]), listed(["s1", "s2", "s3"]), listed(["s1", "s2"], "or"), listed(["s1", "s2", "s3"], most=1)
    ('s1', 's1, s2 and s3', 's1 or s2', 's1 and 2 more')
    """
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def time_passed(passed: timedelta) -> str:
    """A span of time in its largest unit of which there are two.

    >>> time_passed(timedelta(seconds=119)), time_passed(timedelta(minutes=119)), time_passed(timedelta(days=3))
    ('119 s', '119 min', '3 days')
    """
    seconds = int(passed.total_seconds())
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


NO_END = datetime(9998, 1, 1, tzinfo=UTC)
"""The end of a span of time that had not ended when a log was read."""


ACCESS_LOG_SWITCHES = "access_log_switches"
"""Fact of a log: when its server ended its log of operations (`OFF`), and had room for it again or started (`ROOM`, `START`)."""
OFF, ROOM, START = "off", "room", "start"
STRIPS_WRITER = "strips_writer"
"""Fact of a file of links: suffix and name of those that send nothing of a change where all that it did is left out."""
AHEAD_OF_CLOCK = "ahead_of_clock"
"""Fact of a log of operations: origin -> by how many seconds, at the most, its positions were ahead of the clock of that log."""


def step(repair: str, why: str, caution: str | None = None) -> dict[str, str | None]:
    """One entry of a finding's `fix`."""
    return {"repair": repair, "why": why, "caution": caution}


def merge_facts(facts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Fold the facts of pieces into those of the file: counts add up, `min` and `max` widen, null gives way.

    >>> merge_facts([{"n": 1, "1": {"min": "b", "max": "c"}}, {"n": 2, "1": {"min": "a", "max": None}}])
    {'n': 3, '1': {'min': 'a', 'max': 'c'}}
    """
    merged: dict[str, Any] = {}
    for more in facts:
        for key, value in more.items():
            old = merged.get(key)
            if old is None:
                merged[key] = merge_facts([value]) if isinstance(value, Mapping) else value
            elif isinstance(value, Mapping):
                merged[key] = merge_facts([old, value])
            elif value is None:
                continue
            elif key == "min":
                merged[key] = min(old, value)
            elif key == "max":
                merged[key] = max(old, value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                merged[key] = old + value
            elif isinstance(value, list):
                merged[key] = [*old, *value]
    return merged


@dataclass(eq=False)  # not frozen: Python itself sets the traceback of an exception that passes a `with` block
class Problem(Exception):
    """Something the user can mend: what is wrong, where, and what to do. Shown without a traceback."""

    what: str
    where: str = ""
    do: str = ""

    def __str__(self) -> str:
        return "".join([self.what, f" ({self.where})" if self.where else "", f". {self.do}" if self.do else ""])


class NotOfThisSystem(Problem):
    """What is asked of a system that has no such thing: nobody's fault, and nothing to mend. A page says it and goes on."""
