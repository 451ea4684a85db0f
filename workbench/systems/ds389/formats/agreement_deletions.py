"""When agreements were deleted, as an access log tells it: a person took the link to a consumer away.

`[time] conn=108 op=5 DEL dn="cn=s1-to-s3,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config"`
"""

from __future__ import annotations

import re

from workbench.systems.ds389.formats.log_lines import Lines
from workbench.systems.ds389.formats.log_times import NO_TIME, iso_time, stamps
from workbench.systems.ds389.formats.values import clean, suffix_named

_LINE = re.compile(rb' DEL dn="(cn=[^"\n]{1,2048},cn=mapping tree,cn=config)"')
_DN = re.compile(r"cn=((?:[^,\\]|\\.)+),cn=replica,cn=(.+),cn=mapping tree,cn=config", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([0-9a-fA-F]{2})|\\(.)")


def deletions(lines: Lines) -> list[str]:
    """The deletions that lines of the text form tell: time, suffix and name of the agreement, with tabs between them."""
    said = list(_LINE.finditer(lines.data))
    if not said:
        return []
    times, _ = stamps(lines)
    at = [int(times[lines.data.count(b"\n", 0, found.start())]) for found in said]
    told = (deletion(when, found[1].decode("utf-8", "replace")) for when, found in zip(at, said, strict=True))
    return [*filter(None, told)]


def deletion(at: int, target: str | None) -> str:
    """The same of one deletion; empty if the target is no agreement."""
    if not target or at == NO_TIME or target[-9:].lower() != "cn=config" or len(target) > 4096:
        return ""
    if not (found := _DN.fullmatch(target)):
        return ""
    name, suffix = (_plain(part) for part in found.groups())
    return "\t".join((iso_time(at), suffix_named(suffix) or "", clean(name)))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text.strip('"'))
