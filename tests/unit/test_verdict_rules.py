"""The rules of the verdicts by themselves: grounds in every combination, messages of resets, twins, and causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mesh_samples import csn

from workbench.rules.verdicts import LOG_REPLACED, REPLACED, RULES, TABLE, TOTAL, Ground, Loss, verdict
from workbench.safety import REMOVED
from workbench.systems.ds389.rules.applying import skipped_for_good
from workbench.systems.ds389.rules.causes import causes
from workbench.systems.ds389.rules.proving import modification, resets

G = Ground


def by_the_contract(found: Ground) -> str:
    """The order of the contract, read once more. Rule 0: content is the last word."""
    if G.ENTRIES_LACK in found:
        return "missing"
    if G.ENTRIES_SHOW in found or G.NO_EFFECT in found:
        return "present"
    for ground in (G.IN_LOG, G.APPLIED, G.IN_STATE, G.IN_EARLIER_LOG):
        if ground in found:
            return "present"
    if G.UNCLEAR in found:
        return "unknown"
    if G.DROPPED in found or G.SKIPPED in found:
        return "missing"
    if G.CANCELLED in found and G.REFUSED not in found:
        return "present"
    if G.INITIALISED in found:
        return "present"
    proved = G.SOURCE_LACKS in found or G.STATE_LACKS in found or G.LOG_LACKS in found
    if G.TWIN not in found and G.MADE_HERE in found and not proved:
        return "present"
    if G.NOT_SHOWN in found and not proved:
        return "unknown"
    return "unknown" if G.TWIN in found else "missing"


def test_every_combination_of_grounds() -> None:
    assert len(TABLE) == 1 << len(Ground)
    # What entries prove decides whatever the lower bits are: of those combinations every seventh is enough.
    for bits in [*range(int(G.NO_EFFECT)), *range(int(G.NO_EFFECT), len(TABLE), 7)]:
        found = Ground(bits)
        assert RULES[TABLE[bits]].verdict == verdict(found).verdict == by_the_contract(found), found


def test_every_rule_decides_something() -> None:
    assert set(TABLE) == set(range(len(RULES)))
    assert len({rule.name for rule in RULES}) == len({rule.says for rule in RULES}) == len(RULES)


@given(st.integers(0, len(TABLE) - 1), st.sampled_from([G.IN_LOG, G.APPLIED, G.IN_STATE, G.IN_EARLIER_LOG]))
@settings(max_examples=200)
def test_a_proof_of_presence_is_never_overruled(bits: int, proof: Ground) -> None:
    assert verdict((Ground(bits) | proof) & ~G.ENTRIES_LACK).verdict == "present"


# --- results

GOES_ON = {0, 16, 17, 19, 20, 21, 32, 34, 35, 50, 64, 65, 66, 67, 68, 69}


def test_results_after_which_the_supplier_goes_on() -> None:
    assert {code for code in range(-2, 200) if skipped_for_good(code)} == GOES_ON - {0}


# --- messages of resets

A, B = "dc=a", "o=b"


def of(suffix: str | None, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "suffix": suffix} for one in messages]


def test_resets_of_two_suffixes_are_told_apart() -> None:
    import_of_b = [message(10, "import_begin", backend="ipaca"), message(20, "import_end", backend="ipaca")]
    assert [one.kind for one in resets(of(None, *import_of_b), B, {"ipaca": B}, True)] == [REPLACED]
    assert resets(of(None, *import_of_b), A, {"ipaca": B}, True) == []
    # Of a backend that nothing tells, the data of either may have been replaced.
    for suffix in (A, B):
        assert [(one.kind, one.sure) for one in resets(of(None, *import_of_b), suffix, {}, True)] == [(REPLACED, False)]
    assert [one.sure for one in resets(of(None, *import_of_b), A)] == [True]
    # The one that is offline alone is the one that is filled, and its backend is known from then on.
    filled = of(B, message(1, "replica_offline")) + of(None, message(5, "import_end", backend="ipaca"))
    assert [one.kind for one in resets(filled, B, {}, True)] == [TOTAL]
    assert resets(filled, A, {}, True) == resets(filled, A) == []
    assert resets(filled + of(None, *import_of_b), A, {}, True) == []
    # An import that says that it begins is no end of what A receives meanwhile: it may be of either.
    meanwhile = of(A, message(8, "total_receive")) + of(
        None, *import_of_b, message(30, "import_end", backend="userroot")
    )
    assert [(one.kind, one.sure) for one in resets(meanwhile, B, {}, True)] == [(REPLACED, False)]
    assert [(one.kind, one.sure) for one in resets(meanwhile, A, {}, True)] == [(TOTAL, True), (REPLACED, False)]
    # Two are offline: whose import ends is not told, nor whether it was the one that came from another server.
    both = of(A, message(0, "replica_offline")) + filled
    assert [(one.kind, one.sure) for one in resets(both, A, {}, True)] == [(TOTAL, False)]
    again = [*both, *of(A, message(20, "replica_offline"))]
    assert [(reset.kind, reset.began, reset.sure) for reset in resets(again, A, {}, True)] == [
        (TOTAL, NOON, False),
        (TOTAL, NOON + timedelta(seconds=20), False),
    ]
    received = of(A, message(0, "total_receive"), message(1, "replica_offline"))
    received += of(B, message(2, "replica_offline")) + of(None, message(5, "import_end", backend="ipaca"))
    assert [(reset.kind, reset.sure) for reset in resets(received, A, {}, True)] == [(TOTAL, False)]
    restored = of(None, message(1, "restore", step="Restore finished"))
    assert [one.sure for suffix in (A, B) for one in resets(restored, suffix, {}, True)] == [True, True]


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def message(second: int, code: str, **numbers: str) -> dict[str, Any]:
    return {"at": NOON + timedelta(seconds=second), "code": code, "numbers": list(numbers.items())}


IMPORT = [message(10, "import_begin"), message(20, "import_end")]
TOTAL_INIT = [message(10, "total_receive"), message(20, "import_end")]
RESTORE = [message(10, "restore", step="Beginning restore to"), message(20, "restore", step="Restore finished")]
LOG_IMPORT = [
    message(10, "changelog_task", task="import", step="Beginning"),
    message(20, "changelog_task", task="import", step="Finished"),
]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        (IMPORT, [(REPLACED, 10, 20)]),
        (TOTAL_INIT, [(TOTAL, 10, 20)]),
        (RESTORE, [(REPLACED, 10, 20)]),
        (LOG_IMPORT, [(LOG_REPLACED, 10, 20)]),
        (IMPORT[1:], [(REPLACED, 20, 20)]),  # the log begins in the middle: of whatever kind, it proves nothing
        (IMPORT[:1], [(REPLACED, 10, 10)]),
        (TOTAL_INIT[:1], [(TOTAL, 10, 10)]),  # it began, and nothing tells of its end
        ([message(5, "total_receive"), *IMPORT], [(REPLACED, 10, 20)]),  # one that broke off, then an import
        ([message(10, "total_receive"), message(20, "import_failed")], [(REPLACED, 10, 20)]),
        ([message(10, "import_begin"), message(20, "import_failed")], [(REPLACED, 10, 20)]),
        ([message(10, "changelog_task", task="export", step="Beginning")], []),
        ([*RESTORE, message(300, "restore")], [(REPLACED, 10, 20), (REPLACED, 300, 300)]),
        ([*TOTAL_INIT, message(30, "restore")], [(TOTAL, 10, 20), (REPLACED, 30, 30)]),
        (
            [*IMPORT, message(500, "total_receive"), message(510, "import_end")],
            [(REPLACED, 10, 20), (TOTAL, 500, 510)],
        ),
    ],
)
def test_what_messages_say_was_replaced(
    messages: list[Mapping[str, Any]], expected: list[tuple[str, int, int]]
) -> None:
    found = [
        (one.kind, int((one.began - NOON).total_seconds()), int((one.ended - NOON).total_seconds()))
        for one in resets(messages)
    ]
    assert found == expected


# --- twins

WRITER = "replace: modifiersname\nmodifiersname: cn={who}\n-\nreplace: modifytimestamp\nmodifytimestamp: {when}\n-\n"


def body(change: str, who: str = "a", when: str = "20261120120000Z") -> str:
    return change + WRITER.format(who=who, when=when)


ADDED = "add: memberOf\nmemberOf: cn=x\n-\n"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (body(ADDED), body(ADDED, "b", "20261120120003Z"), True),
        (body(ADDED), body("add: memberof\nmemberof: cn=x\n-\n"), True),
        (body(ADDED), body("delete: memberOf\nmemberOf: cn=x\n-\n"), False),
        (body(ADDED), body("add: memberOf\nmemberOf: cn=X\n-\n"), False),  # values keep their letters
        (body(ADDED), body("add: member\nmember: cn=x\n-\n"), False),
        (body(ADDED + "delete: mail\n-\n"), body("delete: mail\n-\n" + ADDED), True),
        (body(ADDED + "delete: mail\n-\n"), body(ADDED), False),
        (body(ADDED), ADDED, True),
    ],
)
def test_twins(one: str, other: str, same: bool) -> None:
    assert (modification("modify", one, "") == modification("modify", other, "")) is same


def test_what_has_no_twin() -> None:
    assert modification("add", ADDED, "") is None
    assert modification("modify", f"replace: userPassword\nuserPassword: {REMOVED}\n-\n", "") is None
    assert modification("modrdn", "", "newrdn: uid=a") != modification("modrdn", "", "newrdn: uid=b")
    assert modification("modrdn", "", "newrdn: uid=a") == modification("modrdn", "", "newrdn: uid=a")
    assert modification("modify", ADDED, "") != modification("delete", ADDED, "")


# --- causes

BEGAN = datetime.fromtimestamp(0x66000000, UTC)


def at(second: float) -> datetime:
    return BEGAN + timedelta(seconds=second)


def loss(*missing: int, **known: Any) -> Loss:
    """Changes of origin 1 that a server lacks, which has those up to second 4 and from second 50 on."""
    keys = tuple(csn(second, 1) for second in missing)
    nothing = Loss(
        origin="1",
        own=False,
        logs=True,
        missing=keys,
        held=(csn(50, 1),),
        only_here=frozenset(),
        below=csn(4, 1),
        seen=csn(50, 1),
        refused=frozenset(),
        codes={},
        before=None,
        mark=None,
        resets=(),
        passed_over=(),
        cleaned=None,
    )
    return replace(nothing, **known)


def reset(kind: str, second: int) -> Any:
    return resets(IMPORT)[0]._replace(kind=kind, began=at(second), ended=at(second))


C5, C6 = csn(5, 1), csn(6, 1)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (loss(5, 6), {}),
        # refused, and gone on
        (loss(5, 6, refused=frozenset({C5}), codes={C5: 32}), {"APPLY_SKIPPED": {C5}}),
        (loss(5, refused=frozenset({C5})), {"APPLY_SKIPPED": {C5}}),
        (loss(5, refused=frozenset({C5}), codes={C5: 51}), {}),  # it will be sent again
        # went back in time and wrote
        (loss(5, 6, own=True, only_here=frozenset({csn(50, 1)})), {"OWN_CHANGES_HIDDEN": {C5, C6}}),
        (loss(5, 6, own=True, held=()), {}),  # it wrote nothing since
        (loss(5, 6, held=(csn(50, 1),), only_here=frozenset({csn(50, 1)})), {}),  # not its own
        # data put in place
        (loss(5, 6, mark=C6, resets=(reset(REPLACED, 20),)), {"CHANGELOG_RECREATED": {C5, C6}}),
        (loss(5, 6, mark=C5, resets=(reset(REPLACED, 20),)), {"CHANGELOG_RECREATED": {C5}}),
        (loss(5, 6, mark=C6, resets=(reset(TOTAL, 20),)), {}),
        (loss(5, 30, mark=csn(30, 1), resets=(reset(REPLACED, 20),)), {"CHANGELOG_RECREATED": {C5}}),  # made later
        (loss(5, 6, mark=C6, before=C5, resets=(reset(REPLACED, 20),)), {"CHANGELOG_RECREATED": {C6}}),
        (loss(5, 6, resets=(reset(REPLACED, 20),)), {}),  # nothing marks where the new data begin
        (loss(5, 6, logs=False, resets=(reset(REPLACED, 20),)), {"": {C5, C6}}),  # it keeps no log
        (loss(5, 6, mark=C6, log_made=at(10), resets=(reset(REPLACED, 20),)), {"": {C5, C6}}),
        (loss(5, 6, mark=C6, log_made=at(30), resets=(reset(REPLACED, 20),)), {"CHANGELOG_RECREATED": {C5, C6}}),
        # an anchor passed over
        (loss(5, 6, passed_over=((at(20), C6),)), {"ANCHOR_PURGED": {C5}}),
        (loss(5, 6, passed_over=((at(5.5), csn(9, 1)),)), {"ANCHOR_PURGED": {C5}}),
        (loss(5, 6, passed_over=((at(2), csn(9, 1)),)), {}),
        # cleaned away
        (loss(5, 6, cleaned=at(5.5)), {"CLEAN_FORCED_LOSS": {C5}}),
        (loss(5, 6, cleaned=at(1)), {}),
        # two that fit: both are told
        (
            loss(5, refused=frozenset({C5}), codes={C5: 32}, cleaned=at(9)),
            {"APPLY_SKIPPED": {C5}, "CLEAN_FORCED_LOSS": {C5}},
        ),
    ],
)
def test_causes(given_: Loss, expected: dict[str, set[str]]) -> None:
    found = causes(given_)
    assert {one.code: set(one.loses) for one in found} == expected
    assert all(one.because and one.loses <= set(given_.missing) for one in found)
