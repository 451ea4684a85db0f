"""What becomes of a change at the consumer: applied, to be sent again, or lost behind a vector that covers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.systems.ds389.csn import origin_of

_SKIPPED = frozenset({16, 17, 19, 20, 21, 32, 34, 35, 50, 64, 65, 66, 67, 68, 69})

SKIPPED_APPLY_ERROR, UNEXPLAINED = "skipped_apply_error", "unexplained"


def skipped_for_good(code: int) -> bool:
    """True if the supplier goes on behind a change that the consumer answered with this LDAP result.

    The next change of the replica ID then moves the consumer's vector over it, and it is never sent again.
    """
    return code in _SKIPPED


def after_result(code: int) -> str:
    """`applied`, `skipped_for_good`, or `retry`: the session ends, the next one begins with this change again."""
    return "applied" if code == 0 else "skipped_for_good" if skipped_for_good(code) else "retry"


@dataclass
class Judged:
    """Changes that are not in the consumer's changelog, each list ascending."""

    missed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


def judge(
    absent: Iterable[str], claimed: Mapping[str, str], answers: Mapping[str, int], first_kept: Mapping[str, str]
) -> Judged:
    """Which of the changes that the consumer's changelog lacks it has missed.

    claimed     replica ID -> last CSN of the consumer's vector; above it, or without it, a change is still to come
    answers     CSN -> what the consumer answered last; 0 may stand for "covered, not applied"
    first_kept  replica ID -> first CSN still in the consumer's changelog: a record below it may have been trimmed, which
                an answer other than 0 speaks against
    """
    judged = Judged()
    for csn in sorted(set(absent)):
        rid = origin_of(csn)
        if csn > claimed.get(rid, ""):
            judged.pending.append(csn)
        elif answers.get(csn) == 0 or (csn not in answers and csn < first_kept.get(rid, "")):
            judged.unknown.append(csn)
        else:
            judged.missed.append(csn)
    return judged


def cause_of(answer: int | None) -> str:
    """Why a change was missed, by what the consumer answered; None: no trace of it."""
    return SKIPPED_APPLY_ERROR if answer is not None and skipped_for_good(answer) else UNEXPLAINED


_ATTEMPTS, _ANSWERS = 3, 2
_BUSY = 51


def loops_from(result: int) -> int:
    """From how many attempts at one change on a consumer counts as failing at it for good; `result`: its answer, 0 or less: none.

    A second attempt is how a session goes on that broke for another reason, or met a busy server. Whoever answered twice with
    another error will do so a third time: sessions may be minutes apart.
    """
    return _ANSWERS if result > 0 and result != _BUSY else _ATTEMPTS
