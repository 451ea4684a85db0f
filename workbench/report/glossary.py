"""The words of a report, each in one sentence, for readers who know neither the workbench nor the system."""

from __future__ import annotations

from workbench.model import System

WORDS = {
    "server": "A machine that keeps a copy of the data and takes part in replication.",
    "change": "One write: an entry was added, modified, renamed or deleted.",
    "origin": "Who made a change: the server at which a client wrote it.",
    "position": "The name of one change: it tells when the change was made and where, and puts all changes in order.",
    "vector": "What a server claims to have seen, as the highest position of each origin. It is a claim, not a proof.",
    "log": "The list of changes that a server keeps, so that it can send them to others. Old ones are trimmed.",
    "link": "The connection over which one server, the supplier, sends changes to another, the consumer.",
    "session": "One run of a link: the supplier compares two vectors, decides where to begin, and sends from there on.",
    "anchor": "The place in the supplier's log at which a session begins to read.",
    "evidence": "What proves that a server has a change, or has it not: its log, its access log, the state of its entries.",
    "missing": "The server claims to have seen the change and does not have it. Nobody will send it again.",
    "pending": "The change has not arrived yet and is not claimed either: normally it comes by itself.",
    "stranded": "A change that one server holds and that no session will deliver to the others.",
    "unknown": "The evidence does not reach: neither present nor missing is proven, and nothing is guessed.",
    "present": "Something proves that the server has the change.",
    "initialisation": "All data of a server is replaced by that of another one.",
    "snapshot": "The files that were collected from the servers at one moment.",
    "finding": "Something that a person must know, with what proves it and what to do.",
    "plan": "Ordered steps of a repair, tried on a model of the servers before anybody touches a real one.",
    "journal": "What was done of a plan, written down before and after every step.",
}

OF_STREAMS = {
    "anchor": "The last transaction that two servers both have: what follows it is sent.",
    "change": "A transaction: changes that count together, or not at all. A big one is sent in pieces while it still runs.",
    "log": "The transactions that a server has done, in the order of their commits.",
    "missing": "The server's log goes on behind the transaction and does not hold it, or holds a part. Nobody will send it.",
    "pending": "The transaction has not arrived yet: normally it comes by itself.",
    "position": "The name of one transaction: its origin numbers them as they begin; the order of commits is that of the log.",
    "session": "One look of a consumer into its supplier's log: it asks for what follows the last transaction that it has.",
    "vector": "What a server claims to have, as the highest position of each origin. It is a claim, not a proof.",
}
"""Words that mean something else where servers replicate a stream of transactions."""

OF_TIERS = {
    "anchor": "The newest commit that two nodes both have: what follows it on the node that pulls is cut off when it connects.",
    "change": "One record of the log, as the database writes it to disk. A transaction has several.",
    "log": "What the database writes to disk before it changes its data, in numbered files. Every node's log is the beginning of "
    "its source's. Old files are deleted, whoever needs them.",
    "missing": "The node's log goes on behind the record and does not hold it: the log is damaged, or its copy is.",
    "pending": "The record has not arrived yet: normally it comes by itself.",
    "position": "A place in the log: the number of the file, and the place in that file.",
    "session": "One connection over which a node pulls the log of its source.",
    "vector": "Where the log of a node begins and ends. It is a claim, not a proof.",
}
"""Words that mean something else where nodes pull a physical log from each other."""

OF_LOGS = frozenset({"log", "anchor"})
"""Words of systems whose servers keep a log of changes."""


def glossary(system: System) -> list[dict[str, str]]:
    """Every word with its sentence, and what people of the system call it; not those of what the system has not."""
    words = {word: means for word, means in WORDS.items() if not (system.pulling and word in OF_LOGS)}
    words |= OF_STREAMS if system.streaming else OF_TIERS if system.tiering else {}
    return [
        {"word": word, "means": means, "there": system.words.get(word, "")} for word, means in sorted(words.items())
    ]
