"""Does a server have this change? What speaks for and against it, and the order in which that counts.

`Ground` lists what evidence can say of one change at one server that covers it (the vector or the log of the server claims
the change or a later one of its origin). `verdict` decides by the first rule of `RULES` that fits. The bits are numbers so
that millions of changes are decided by one look-up table, `TABLE`, made of the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag, auto
from typing import Any, NamedTuple

PRESENT, MISSING, UNKNOWN = "present", "missing", "unknown"
PENDING, NOT_COVERED = "pending", "what it claims and shows ends before the change"


class Ground(IntFlag):
    """What the evidence says of one change at one server.

    IN_LOG           its present log holds the change
    APPLIED          it logged that it applied the change, and its data were not replaced since
    IN_STATE         an entry of it carries the change, and its data were not replaced since
    IN_EARLIER_LOG   a log collected earlier held the change, and its data were not replaced since
    INITIALISED      its data came whole from another server that had the change by then, as far as is known
    DROPPED          it acknowledged the change and did not apply it, taking it for one that it had
    SKIPPED          it refused the change with a result after which the supplier goes on, or the supplier says it went on
    REFUSED          it refused the change with a result after which it is sent again
    CANCELLED        it took the change off its list: the operation failed or changed nothing
    NOT_SHOWN        its log cannot show the change: it begins later, ends before, was made anew, or a record there is damaged
    TWIN             its log has the same modification of the same entry under another position
    STATE_LACKS      its entries should carry the change, as those of another server do or as an addition always does, and do not
    LOG_LACKS        the log of its operations covers the time in which the change could come, and does not name it
    SOURCE_LACKS     its data came whole from a server that lacked the change, and nothing brought it since
    UNCLEAR          a line names the position that may be of another suffix, or tells of what may have been replaced since
    NO_EFFECT        it changed only what the server need not have: notes of another server, or what links leave out
    ENTRIES_SHOW     the entry that it changed is there as it is on a server that has the change, or gone on both
    ENTRIES_LACK     its entries should show what the change did, and do not, and nothing later in them explains it
    """

    IN_LOG = auto()
    APPLIED = auto()
    IN_STATE = auto()
    IN_EARLIER_LOG = auto()
    INITIALISED = auto()
    DROPPED = auto()
    SKIPPED = auto()
    REFUSED = auto()
    CANCELLED = auto()
    NOT_SHOWN = auto()
    TWIN = auto()
    STATE_LACKS = auto()
    LOG_LACKS = auto()
    SOURCE_LACKS = auto()
    UNCLEAR = auto()
    MADE_HERE = auto()
    NO_EFFECT = auto()
    ENTRIES_SHOW = auto()
    ENTRIES_LACK = auto()


SKIPPED, NOTHING_THERE = "skipped", "nothing_there"
"""The rule by which a server lacks a change that it refused and that is not sent again, and why it lacks nothing by that."""
TWIN = "twin"
"""The rule by which it is not known whether a server has a change: it has one that did the same."""
ENTRIES_LACK = "entries_lack"
"""The rule by which a change is missing that no log tells to be missing: the entries alone tell it."""
NEVER_ADDED = "never_added"
"""The rule by which a server lacks nothing of a deletion: it never had the entry."""
UNCLEAR, PERHAPS_BACK, RENAMED_OTHERWISE, MAY_REPEAT = "unclear", "perhaps_back", "renamed_otherwise", "may_repeat"
"""Rules by which it is not known whether a server that does not have a deletion or a renaming lacks anything."""
PERHAPS_NO_EFFECT = frozenset({PERHAPS_BACK, RENAMED_OTHERWISE, MAY_REPEAT})
"""Those by which its log lacks it: whoever has it may lose it to the data of that server."""


class Rule(NamedTuple):
    """One rule: if it holds, that is the verdict; `says` is the sentence for people.

    It holds where one of the grounds `of` was found, or always if it names none, and none of `unless`.
    """

    name: str
    verdict: str
    says: str
    of: Ground = Ground(0)
    unless: Ground = Ground(0)


G = Ground

RULES = (
    # Content is the last word: these go before whatever a log says.
    Rule(ENTRIES_LACK, MISSING, "its entries do not show what the change did", G.ENTRIES_LACK),
    Rule("entries_show", PRESENT, "the entry is as on a server that has the change: there, or gone", G.ENTRIES_SHOW),
    Rule("no_effect", PRESENT, "it changed only what the server need not have", G.NO_EFFECT),
    Rule("in_log", PRESENT, "its log holds the change", G.IN_LOG),
    Rule("applied", PRESENT, "it logged that it applied the change", G.APPLIED),
    Rule("in_state", PRESENT, "an entry of it carries the change", G.IN_STATE),
    Rule("in_earlier_log", PRESENT, "a log of it collected earlier holds the change", G.IN_EARLIER_LOG),
    # What such a line would prove, if it were of this suffix, may be either: presence as well as absence.
    Rule("unclear", UNKNOWN, "what speaks of it may be of another suffix, or of data replaced since", G.UNCLEAR),
    Rule("dropped", MISSING, "it took the change for one that it had, and did not apply it", G.DROPPED),
    Rule(SKIPPED, MISSING, "it refused the change, and the supplier went on without it", G.SKIPPED),
    Rule(
        "cancelled",
        PRESENT,
        "the operation changed nothing there",
        # A refusal that is sent again cancels as well: then the change is not there.
        G.CANCELLED,
        unless=G.REFUSED,
    ),
    Rule("initialised", PRESENT, "its data came from a server that had the change", G.INITIALISED),
    # Before the rules that take absence for a proof: plug-ins write the same modification under a position of their own.
    Rule(TWIN, UNKNOWN, "its log has the same modification under another position", G.TWIN),
    Rule("source_lacks", MISSING, "its data came from a server that did not have the change then", G.SOURCE_LACKS),
    Rule("state_lacks", MISSING, "its entries would carry the change, and do not", G.STATE_LACKS),
    Rule(
        "log_lacks",
        MISSING,
        "the log of its operations covers the time in which it could come, and does not name it",
        G.LOG_LACKS,
    ),
    # Changes that plug-ins make stand in no log of operations, and a changelog that is trimmed soon forgets them.
    Rule(
        "made_here", PRESENT, "it made the change itself, and has neither started nor got new data since", G.MADE_HERE
    ),
    Rule("not_shown", UNKNOWN, "its log does not reach there, and nothing else tells", G.NOT_SHOWN),
    Rule("not_in_log", MISSING, "its log covers the change and does not hold it"),
)
"""In this order; the last one always holds."""

SAYS: Mapping[str, str] = {rule.name: rule.says for rule in RULES} | {
    "logged_and_lost": "its log holds the change, but its entries do not show what it did",
    NOTHING_THERE: "it refused the change, for it does not have what that removes: nothing is lacking",
    "superseded": "its entries carry later changes of the same attributes",
    NEVER_ADDED: "no log that would show the addition of its entry there names it: the server never had it, and lacks nothing",
    "made_again": "no log holds it, and the same operation on the same entry was done again later: it may have done the same",
    "written_since": "no log holds it, and later changes replaced values of the same entry: perhaps those that it wrote",
    "deleted_since": "it does not have the change, and its entry was deleted later wherever the change was: nothing is lacking",
    "gone_already": "it does not have the change, and another deletion took the entry of that name: nothing is lacking",
    "renamed_since": "it does not have the change, and has the same renaming of its entry: nothing is lacking",
    "renamed_otherwise": "its log does not have the change, and its entry was renamed later: only entries show what is missing",
    "deleted_before": "it does not have the change, and an older change had deleted its entry there: nothing is lacking",
    "deleted_here": "it does not have the change, and deleted its entry, as the unique ID tells: nothing is lacking",
    "may_repeat": "its log does not have the change, but has another deletion or renaming of this name: perhaps the same entry",
    "perhaps_back": "its log does not have the change, and its entry was deleted earlier: only entries show if it had come back",
    "cleaned_here": "it has cleaned the origin since, and waits for none of its changes; whether it had this one, nothing tells",
    "kept": "it cleaned the origin, and its logs or entries show that it has the change",
    "forgotten": "it lies so far back that what would tell of it is gone: a deletion, a vector's element",
    "made_twice": "it shows the entry as made at another time than others do: one of the two was lost or set aside",
    "not_read": "the file with its entries could not be read whole: the entry may be in what is lacking",
    "duplicate_origin": "two servers make changes as this origin: one position may stand for two changes",
    "no_entries": "what the server's entries are was not collected",
    "domain_untold": "its file does not tell its domain, and those of others tell several: it cannot be compared",
}
"""What each of them says, by its name. The last ones are no rules of logs: they are of servers that show states of entries and
keep no log, and of an origin that two servers use."""


class Verdict(NamedTuple):
    """What is known of one change at one server: present, missing, unknown or pending, by a rule and its sentence."""

    server: str
    suffix: str | None
    verdict: str
    rule: str
    says: str


def verdict(found: Ground) -> Rule:
    """The first rule that holds for what was found.

    >>> verdict(Ground.NOT_SHOWN | Ground.APPLIED).verdict, verdict(Ground(0)).name
    ('present', 'not_in_log')
    """
    return RULES[_deciding(int(found))]


_MASKS = tuple((int(rule.of), int(rule.unless)) for rule in RULES)


def _deciding(bits: int) -> int:
    # Plain numbers: sixteen thousand sets of flags took a fifth of a second of every import.
    return next(at for at, (of, unless) in enumerate(_MASKS) if (bits & of or not of) and not bits & unless)


_OF_LOGS = int(Ground.NO_EFFECT)
"""The grounds of content are the highest bits, and each decides whatever the lower ones are: they need no look-up."""

TABLE = (
    *map(_deciding, range(_OF_LOGS)),
    *(rule for of in (1, 2, 4) for rule in [_deciding(of * _OF_LOGS)] * of * _OF_LOGS),
)
"""Grounds as a number -> which of RULES decides."""

MOMENTS_APART = timedelta(seconds=60)
"""The files of one server are read moments apart: a change of that time may stand in one of them and not in the other."""


def shown_up_to(last: str, claimed: str, end: str, moment: Callable[[str], datetime | None]) -> str:
    """Up to where a log shows the own changes of its server: to the last record of them, or as far as it claims to hold them.

    A log writes down what it claims before its records, and a record that was not committed when reading began is not
    among them. So a claim alone shows nothing. But the server gave its own change the time of its making: if the newest
    record of the log (`end`) is younger by more than a moment, the change was committed long before, and would be there.

        last 6b067874..., claimed 6b067875..., end 6b067875...    shown up to 6b067874...
        last 6b067874..., claimed 6b067875..., end 6b0679a9...    shown up to 6b067875..., which is not there

    How long a change of another server was on its way nobody knows, so of others' changes a claim never counts.
    """
    made, newest = moment(claimed), moment(end)
    if claimed <= last or made is None or newest is None or newest - made < MOMENTS_APART:
        return last
    return claimed


COMMITTED = timedelta(seconds=5)
"""A vector may be ahead of what a reader of log or entries sees by the time that a commit takes: far less than this."""

TOTAL, REPLACED, LOG_REPLACED = "total", "replaced", "log_replaced"


class Reset(NamedTuple):
    """Something that put other data, or another log, in the place of what a server had.

    total         its data came whole from another server
    replaced      its data came from a backup or a file: they may be of any earlier time
    log_replaced  its log was replaced by an older copy, or was closed and then opened anew; the data stayed

    `sure` is False where what tells of it may speak of another suffix of the server; `failed`: the new data did not come whole,
    whether from a server or from a file.
    """

    kind: str
    began: datetime
    ended: datetime
    sure: bool = True
    failed: bool = False


@dataclass(frozen=True)
class Loss:
    """Missing changes of one origin at one server, and what is known around them. Positions are order keys, ascending.

    own          the server itself made them
    logs         the server has a log of changes
    held         if they are its own: what the server has of the origin from the first missing one on
    only_here    those of them that no other server has
    below        the last that the server has before the first missing one
    seen         the highest that it claims or shows
    refused      those that it refused, with a result after which the supplier goes on; `codes`: with which
    before       the highest that it had seen in the snapshot before; None: there is none
    mark         up to where a log made anew knows nothing
    resets       what replaced its data or its log
    passed_over  (when, position): sessions to it that left out everything before the position
    cleaned      when the origin was cleaned away
    unwritten    those that it answered with a failure, where its log tells that its database could not be written
    log_made     when its log was removed last, and began anew; None: no message tells it
    left_out     those that did nothing but what a link on a way to it leaves out
    """

    origin: str
    own: bool
    logs: bool
    missing: tuple[str, ...]
    held: tuple[str, ...]
    only_here: frozenset[str]
    below: str | None
    seen: str
    refused: frozenset[str]
    codes: Mapping[str, int]
    before: str | None
    mark: str | None
    resets: tuple[Reset, ...]
    passed_over: tuple[tuple[datetime, str], ...]
    cleaned: datetime | None
    unwritten: frozenset[str] = frozenset()
    log_made: datetime | None = None
    left_out: frozenset[str] = frozenset()


class Candidate(NamedTuple):
    """Something that may have happened: the code of the finding, the changes that the server would lack by it, and why.

    The code is empty where no finding is about it.
    """

    code: str
    loses: frozenset[str]
    because: str


class Modification(NamedTuple):
    """What a change did, but for who did it and when: as a whole, if the tool that printed it tells, and its values alone."""

    whole: str | None
    values: str


@dataclass(frozen=True)
class Proving:
    """What the evidence of one system means.

    goes_on       a result with which a change was refused -> does the supplier go on without it?
    reset_codes   the codes of messages that tell of resets
    resets        such messages of one server in the order of time, a suffix, the suffix of each store by the name that messages
                  call it by, and whether the server may hold other suffixes -> what was reset of the suffix
    causes        missing changes -> the candidates for why
    passed_over   the code of the message by which a supplier says that it left out everything before a change
    cleaned       the code of the message that says that an origin was cleaned away
    unwritten     the code of the message by which a server says that its database could not be written; empty: none does
    remembers_cleaned  parts of the program: where one of these writes that message, the server drops what is of the origin
    forgets_cleaned    codes of messages that tell of the end of that: of a stop, or of a start
    cleaning      the code of the message that tells of a step of a task that cleans an origin; empty: none does
    drops_from    how the text of the step begins from which on the server drops the changes of the origin, until the task ends
    given_up      what the text of the step says by which such a task ends without having cleaned
    started       the code of the message by which a server tells that it starts; empty: it does not
    stopped       the code of the message by which a server tells that it has stopped in good order; empty: it does not
    log_closed    the code of the message by which a server says that no log of changes is open; empty: none does
    log_opened    codes of messages that show an open log, beside those of a start
    log_removed   codes of messages by which a server tells that its log of changes was removed and begins anew
    claims_differ the code of the message by which a server that starts says that its log and its data claim different changes of
                  an origin; empty: none does
    sends_whole   the code of the message by which a supplier tells that it begins to fill another one; empty: it does not
    sent_whole    the code of the one that tells that it has sent all
    log_written   the code of the message that tells when the log was written out; empty: there is none
    modification  (operation, body, rename) of a change -> what is equal in a twin; None: it has none
    idle          the target of a change -> does it carry nothing that anybody stored? Whether it is there then matters to nobody
    beginning     the body of a change -> how it begins, but for what says only who wrote it
    beginnings    the body of a change -> how those of its twins may begin, as `beginning` gives it: among them that of any twin
    usual         how bodies begin of which `beginning` only takes the first two lines, so that it need not be asked
    unusual       beginnings of these that it must be asked of all the same
    not_compared  attributes, in small letters, in which servers may differ although nothing was lost
    conflict      the attribute, in small letters, that marks an entry as one of two of one name
    kept_for_children  its value, in small letters, at an entry that was deleted and stays for the sake of its children
    brought_back  the code of the message that tells that a deleted entry came back for its children; empty: there is none
    own_notes     those of them that no client writes: a change of nothing else is of no effect elsewhere
    notes_refused the code of the message by which a server says that it refuses such changes; empty: none does
    took_nothing  the body of a modification, a result with which it was refused -> was there nothing of all that it removes?
    in_words      a result with which a change was refused -> its number and its words
    touched       the body of a modification -> the attributes that it names, in small letters
    entry_added   the unique ID of an entry -> when it was added, by the clock of the server that added it; None: it does not tell
    renamed       target and rename of a change -> the name of the entry afterwards; empty: it does not tell
    marks         mark of a value's state -> what its position did (`workbench.rules.contents`); empty: entries tell no states
    grave         attribute and value, in small letters, that a deleted entry has
    trimmed       what the files of a server tell of their own, a suffix, whether the server holds several, how many records its
                  log has and how old a mark is -> may changes behind the mark have been trimmed?
    traces_kept   how long entries keep a trace of what was removed, where the server does not say it itself
    """

    goes_on: Callable[[int], bool]
    reset_codes: frozenset[str]
    resets: Callable[[Iterable[Mapping[str, Any]], str | None, Mapping[str, str], bool], list[Reset]]
    modification: Callable[[str, str, str], Modification | None]
    causes: Callable[[Loss], list[Candidate]]
    passed_over: str = ""
    cleaned: str = ""
    unwritten: str = ""
    remembers_cleaned: frozenset[str] = frozenset()
    forgets_cleaned: frozenset[str] = frozenset()
    cleaning: str = ""
    drops_from: str = ""
    given_up: str = ""
    started: str = ""
    stopped: str = ""
    log_closed: str = ""
    log_opened: frozenset[str] = frozenset()
    log_removed: frozenset[str] = frozenset()
    claims_differ: str = ""
    sends_whole: str = ""
    sent_whole: str = ""
    log_written: str = ""
    idle: Callable[[str], bool] = lambda target: False
    entry_added: Callable[[str], datetime | None] = lambda entry: None
    beginning: Callable[[str], str] = str
    beginnings: Callable[[str], list[str]] = lambda body: [body]
    usual: tuple[str, ...] = ("",)
    unusual: tuple[str, ...] = ()
    not_compared: frozenset[str] = frozenset()
    conflict: str = ""
    kept_for_children: str = ""
    brought_back: str = ""
    own_notes: frozenset[str] = frozenset()
    notes_refused: str = ""
    took_nothing: Callable[[str, int], bool] = lambda body, result: False
    in_words: Callable[[int], str] = str
    touched: Callable[[str], frozenset[str]] = lambda body: frozenset()
    renamed: Callable[[str, str], str] = lambda target, rename: ""
    marks: Mapping[str, str] = field(default_factory=dict)
    grave: tuple[str, str] = ("", "")
    trimmed: Callable[[Iterable[Mapping[str, Any]], str | None, bool, int, timedelta | None], bool] = lambda *_: False
    traces_kept: timedelta = timedelta(0)
