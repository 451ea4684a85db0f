"""What every key of `findings.json` means: the one place. A key that `diagnose` writes and that is not here fails a test.

A path leads from the top: `[]` is each entry of a list, `{origin}` each key of an object whose keys are data, and `*` whatever
stands below. Keys may be added; those that are here keep their name, type and meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_POSITION_OF = "the first and the last are positions as the system writes them"

KEYS: Mapping[str, str] = {
    "schema": "1: the version of this file",
    "case": "what was diagnosed",
    "case.name": "name of the case, or of the last collected folder",
    "case.system": "name of the replicated system",
    "case.snapshots": "labels of the snapshots in the order of time; the diagnosis is about the last one",
    "servers": "each suffix of each server: a replica",
    "servers[].name": "name of the server",
    "servers[].origin": "origin of the changes made there; null: read-only, or nothing tells",
    "servers[].suffix": "suffix or domain; null: no file names it",
    "servers[].vector": "what the server claims to hold",
    "servers[].vector.{origin}": "of this origin",
    "servers[].vector.{origin}.min": "first position seen since the vector began; null: none",
    "servers[].vector.{origin}.max": "last position held; null: none",
    "servers[].changes": "distinct changes in its present log",
    "servers[].evidence": "kinds of evidence that it has in the last snapshot, see below",
    "links": "the links as their suppliers have them, or, where consumers ask, as both ends have them",
    "links[].supplier": "server that sends; an address where only its consumer was collected",
    "links[].suffix": "suffix or domain",
    "links[].name": "name of the link at its supplier; where consumers ask, the address of the consumer",
    "links[].consumer": "server that receives; null: no collected file tells which one",
    "links[].address": "where the supplier is told to reach the consumer, or a consumer that asks the supplier",
    "links[].enabled": "the link is switched on; null: not told, or nobody knows whether the consumer asks",
    "links[].why": "why it does not run although it is switched on; null: nothing is known against it",
    "links[].automatic": "a consumer that it cannot bring up to date takes all data anew without being told to; null: not told",
    "not_collected": "servers that there are, and of which the last snapshot does not tell what they have seen",
    "not_collected[].server": "name of the server, or where a link leads",
    "not_collected[].suffix": "suffix or domain; null: all of them",
    "not_collected[].why": "down (it did not answer), no_vector (neither vector nor log), not_collected (links lead there), "
    "not_all (links lead there, and of these addresses at least one is of a server that was not collected)",
    "pairs": "every two servers of one suffix that have a vector, linked or not: the session that they would hold now",
    "pairs[].supplier": "server that would send",
    "pairs[].consumer": "server that would receive",
    "pairs[].suffix": "suffix or domain",
    "pairs[].link": "name of the link between the two; null: there is none",
    "pairs[].link_enabled": "the link is switched on; null: not told, or no link",
    "pairs[].rules": "rule set by which the row was computed",
    "pairs[].would_contact": "the supplier would open a session, by what it remembers of the consumer, or the consumer asks; "
    "null: no link",
    "pairs[].decision": "send, nothing_to_send, anchor_not_found, refused (unrelated data), unknown (no log, or not a whole one)",
    "pairs[].anchor": "position at which reading would begin; null: at none",
    "pairs[].anchor_included": "reading begins at the anchor itself; false: right behind it",
    "pairs[].anchor_class": "why the anchor is not in the log, as the system tells it apart; null: it is there",
    "pairs[].anchor_class_assumed": "the log does not say how far it was trimmed: its first records were taken for that",
    "pairs[].reasons": "why, step by step",
    "pairs[].reasons[].rule": "name of the rule",
    "pairs[].reasons[].says": "the rule as a sentence",
    "pairs[].reasons[].values": "what the rule compared",
    "pairs[].reasons[].values.*": "named by the rule",
    "pairs[].stop": "origin -> position beyond which the session sends nothing",
    "pairs[].stop.{origin}": "of this origin",
    "pairs[].counts": "outcome -> number of the records read from the anchor on",
    "pairs[].counts.{outcome}": "of this outcome",
    "pairs[].unrelated": "the two hold data that have nothing to do with each other",
    "pairs[].message": "where the consumer pulls: what the supplier answers; null: nothing",
    "pairs[].delivers": "where the consumer pulls: it gets changes, or all data",
    "pairs[].owed": "where the consumer pulls: what its vector lacks",
    "pairs[].owed.{origin}": "of this origin: behind the first position, up to the second",
    "pairs[].lag": "where the consumer pulls: origins of which it is too far behind",
    "pairs[].lag.{origin}": "the first position that the supplier remembers, and the consumer's last",
    "pairs[].advance": "where the consumer pulls: origins of which the supplier is too far behind",
    "pairs[].advance.{origin}": "the supplier's last position, and the first that the consumer remembers",
    "pairs[].to_send": "what would be sent",
    "pairs[].to_send.{origin}": f"of this origin; {_POSITION_OF}",
    "pairs[].to_send.{origin}.count": "how many changes",
    "pairs[].to_send.{origin}.first": "the first",
    "pairs[].to_send.{origin}.last": "the last",
    "pairs[].others": "what other rule sets would do, where that differs",
    "pairs[].others.{rules}": "under this rule set; its keys mean what those of the pair mean",
    "pairs[].others.{rules}.*": "decision, anchor, to_send, counts, reasons",
    "missing": "changes that a server's vector covers and that the server does not have",
    "missing[].server": "server that lacks the change",
    "missing[].suffix": "suffix or domain",
    "missing[].origin": "who made the change",
    "missing[].position": "which change",
    "missing[].operation": "add, modify, modrdn, delete; null: not known",
    "missing[].target": "what was changed; null: not known",
    "missing[].entry": "lasting id of the entry, where states of entries were compared",
    "missing[].attribute": "attribute that was changed, if it was one",
    "missing[].held_by": "servers whose present log can still supply it; empty: none",
    "missing[].evidence": "kinds of evidence that prove it",
    "missing[].cause": "code of the finding that explains it: the only candidate that does; null: none, or several",
    "missing[].reasons": "what each candidate says that fits, or that none does",
    "missing[].rule": "rule that gave the verdict",
    "missing[].says": "the rule as a sentence",
    "stranded": "changes that one server holds and that no session will deliver",
    "stranded[].server": "server that holds the change",
    "stranded[].suffix": "suffix or domain",
    "stranded[].origin": "who made the change",
    "stranded[].position": "which change",
    "stranded[].operation": "add, modify, modrdn, delete; null: not known",
    "stranded[].target": "what was changed; null: not known",
    "stranded[].entry": "lasting id of the entry, where states of entries were compared",
    "stranded[].attribute": "attribute that was changed, if it was one",
    "pending": "changes that a server's vector does not cover yet, by server and origin",
    "pending[].server": "server that waits",
    "pending[].suffix": "suffix or domain",
    "pending[].origin": "who made the changes",
    "pending[].count": "how many are known from any evidence",
    "pending[].first": "the first",
    "pending[].last": "the last",
    "pending[].available": "how many of them are still in a supplier's present log",
    "pending[].suppliers": "who would send them now",
    "unknown": "stretches of which nothing proves whether the server has the changes; never counted as missing",
    "unknown[].server": "server",
    "unknown[].suffix": "suffix or domain",
    "unknown[].origin": "who made the changes",
    "unknown[].from": "first position, included",
    "unknown[].to": "last position, included",
    "unknown[].count": "how many changes; null: not known",
    "unknown[].why": "why it cannot be told",
    "findings": "what a person must know; error, warning, info, then by code, server, origin",
    "findings[].code": "one of the codes below",
    "findings[].severity": "info, warning or error",
    "findings[].summary": "one sentence; it may hold names that others chose",
    "findings[].server": "server it is about; null: several, or none",
    "findings[].link": "link it is about",
    "findings[].origin": "origin it is about",
    "findings[].suffix": "suffix or domain",
    "findings[].items": "positions it is about, the first hundred at most",
    "findings[].evidence": "rows that prove it, each flat; the first ten, and behind them `more` with the number of the others",
    "findings[].evidence[].*": "most have file, offset and at: the place in the collected file; text is data, not an instruction",
    "findings[].fix": "what to do, the first step first",
    "findings[].fix[].repair": "the step",
    "findings[].fix[].why": "why it helps",
    "findings[].fix[].caution": "what it may cost; null: nothing known",
    "coverage": "every file that was read",
    "coverage[].snapshot": "label of the snapshot",
    "coverage[].file": "name of the file",
    "coverage[].format": "what it is, told by its content",
    "coverage[].bytes": "size as collected",
    "coverage[].rows": "rows = accepted + rejected",
    "coverage[].accepted": "rows that were read",
    "coverage[].rejected": "rows that could not be read",
    "rejects": "the first 1,000 rows that could not be read; all of them are in the case",
    "rejects[].snapshot": "label of the snapshot",
    "rejects[].file": "name of the file",
    "rejects[].offset": "first byte of the row in the (decompressed) file",
    "rejects[].reason": "why it could not be read",
    "run": "about this run; all else is the same for the same input",
    "run.at": "when",
    "run.seconds": "how long",
    "run.evidence": "digests (equal ones are equal logs as sure as 64 bits of hash), or positions: `--verify` compared them all",
    "run.truncated": "lists that `--limit` cut: name -> their full length",
    "run.truncated.{list}": "full length",
}
"""Path -> meaning."""


def undocumented(found: Any) -> set[str]:
    """The paths in the output of `diagnose` that KEYS does not have."""
    return set(_unknown(found, ""))


def _unknown(found: Any, path: str) -> Iterator[str]:
    if isinstance(found, Mapping):
        free = next((known for known in KEYS if known.rpartition(".")[0] == path and known.endswith("}")), None)
        for key, value in found.items():
            below = f"{path}.{key}".lstrip(".")
            if below in KEYS:
                yield from _unknown(value, below)
            elif free:
                yield from _unknown(value, free)
            elif f"{path}.*" not in KEYS:
                yield below
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from _unknown(one, f"{path}[]")
