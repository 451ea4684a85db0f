"""Findings as text: the worst first, one paragraph each; equal ones of several servers are one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.text_table import one_cell

Row = Mapping[str, Any]

_WORDS = frozenset({"a", "i"})
_ABOUT = ("server", "link", "origin", "suffix")


def findings_text(findings: Iterable[Row], suffixes: bool = False) -> str:
    """What was found, what to do, and what that may cost, finding by finding.

    `suffixes`: name that of each, for there are several. Of findings that another one leaves without meaning only the number
    is said.
    """
    texts = []
    void: Counter[tuple[str, str]] = Counter()
    counted = []
    for one in sorted(findings, key=_gravest):
        if root := one.get("overruled_by"):
            void[root, one["code"]] += 1
        else:
            counted.append(one)
    for one in together(counted):
        words = _ABOUT if suffixes else _ABOUT[:3]
        about = ", ".join(f"{'servers' if ' ' in one[word] and word == 'server' else word} {one[word]}" for word in words
                          if one[word])  # fmt: skip
        lines = [f"{one['severity'].upper()} {one['code']}" + (f" ({one_cell(about)})" if about else "")]
        lines.append(f"    {one_cell(one['summary'])}")
        lines += [f"    the errors log of {one_cell(quote['server'])} says just before: {one_cell(quote['text'])}"
                  for quote in one.get("quotes", ())]  # fmt: skip
        for number, fix in enumerate(one["fix"], 1):
            lines.append(f"    {number}. {one_cell(fix['repair'])}: {one_cell(fix['why'])}")
            if fix["caution"]:
                lines.append(f"       Beware: {one_cell(fix['caution'])}")
        texts.append("\n".join(lines))
    for root in dict.fromkeys(root for root, _ in void):
        codes = ", ".join(f"{code} ({count:,})" for (of, code), count in sorted(void.items()) if of == root)
        texts.append(f"Not concluded, because of {root}: {codes}")
    return "\n".join(texts)


def _gravest(finding: Row) -> tuple[bool, bool]:
    """Errors first, and of them those that others follow from."""
    return finding["severity"] != "error", not finding.get("root")


def together(findings: Sequence[Row]) -> Iterator[Row]:
    """The findings, those that differ in nothing but the name of their server as one: it stands where the first of them does.

    >>> rows = [{"code": "LAG", "severity": "info", "server": name, "link": None, "origin": "1", "suffix": None,
    ...          "summary": f"{name} waits for 3 changes", "fix": []} for name in ("s1", "s2")]
    >>> [(one["server"], one["summary"]) for one in together(rows)]
    [('s1 and s2', 's1 and s2: each waits for 3 changes')]
    """
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for one in findings:
        alike.setdefault(_but_for_server(one), []).append(one)
    for rows in alike.values():
        if len(names := list(dict.fromkeys(one["server"] for one in rows if one["server"]))) < 2:
            yield from rows
            continue
        listed = f"{', '.join(names[:-1])} and {names[-1]}"

        def of_all(text: str | None, name: str = names[0], listed: str = listed) -> str | None:
            if text is None:
                return None
            if (rest := text.removeprefix(f"{name} ")) != text:
                return f"{listed}: each {_masked(rest, name, 'it')}"
            return _masked(text, name, "each of them") if text != _masked(text, name, "") else text

        first = rows[0]
        summary = of_all(first["summary"]) or ""
        summary = summary if summary.startswith(listed) else f"{listed}: {summary}"
        fixes = [
            {key: _masked(text, names[0], "each of them") if text else text for key, text in fix.items()}
            for fix in first["fix"]
        ]
        yield {**first, "server": listed, "summary": summary, "fix": fixes}


def with_servers(findings: Sequence[Row]) -> list[dict[str, Any]]:
    """The findings, each with `servers`: its own, and those of equal ones.

    >>> rows = [{"code": "LAG", "severity": "info", "server": name, "link": None, "origin": "1", "suffix": None,
    ...          "summary": f"{name} waits", "fix": []} for name in ("s1", "s2")]
    >>> [one["servers"] for one in with_servers(rows)]
    [['s1', 's2'], ['s1', 's2']]
    """
    alike: dict[tuple[Any, ...], list[str]] = {}
    for one in findings:
        servers = alike.setdefault(_but_for_server(one), [])
        if one["server"] and one["server"] not in servers:
            servers.append(one["server"])
    return [{**one, "servers": alike[_but_for_server(one)]} for one in findings]


def _but_for_server(one: Row) -> tuple[Any, ...]:
    """What two findings must have in common to be one."""
    name = one["server"]
    if not name:
        return (id(one),)
    texts = [one["summary"], *(text for fix in one["fix"] for text in fix.values())]
    masked = (_masked(text, name, "\0") if text else text for text in texts)
    return (one["code"], one["severity"], one["link"], one["origin"], one["suffix"], *masked)


def _masked(text: str, name: str, by: str) -> str:
    """The text with another word in place of the name, where it stands as a word of its own.

    A server that is called like a word of the language, as `a`, is only looked for at the beginning.
    """
    if name.lower() in _WORDS:
        return by + text[len(name) :] if text.startswith(f"{name} ") else text
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", lambda _: by, text)
