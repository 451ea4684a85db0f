"""The rules of 389 as what-if kinds: worked cases, and slow, obvious readings of the contract on random input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from given_cases import given_cases
from hypothesis import given
from hypothesis import strategies as st
from rule_cases import disagreements

from workbench.model import Problem
from workbench.scenarios import answer
from workbench.systems.ds389.rules.applying import skipped_for_good
from workbench.systems.ds389.rules.cleaning import clean_task
from workbench.systems.ds389.rules.clocks import time_skew_code

OURS = [
    "csn_decode",
    "csn_order",
    "time_skew_class",
    "ruv_parse",
    "ruv_compare",
    "generation",
    "session_precheck",
    "trim",
    "apply_result",
    "missed_change",
    "cleanallruv",
    "restore_order",
    "lag_report",
]
CASES = [case for case in given_cases("ds389-rules") if case["kind"] in OURS]


@pytest.mark.parametrize("kind", OURS)
def test_worked_cases(kind: str) -> None:
    cases = [case for case in CASES if case["kind"] == kind]
    assert len(cases) >= 3
    assert disagreements(cases) == []


def test_the_comparison_of_worked_cases_sees_a_difference() -> None:
    case = {"id": "x", "kind": "time_skew_class", "inputs": {"skew_seconds": [0]}}
    expected: list[dict[str, Any]] = [{"ignore_off": [0]}, {"gone": None}]
    assert all(disagreements([{**case, "expected": one}]) for one in expected)
    assert disagreements([{**case, "expected": {}, "inputs": {}}])


# Random input: few replica IDs and times, so that CSNs meet


def text_of(time: int, rid: int, seq: int = 0, sub: int = 0) -> str:
    return f"{time:08x}{seq:04x}{rid:04x}{sub:04x}"


def parts(csn: str) -> tuple[int, int, int, int]:
    """The order of the protocol, number by number."""
    return int(csn[:8], 16), int(csn[8:12], 16), int(csn[12:16], 16), int(csn[16:], 16)


def rid_of(csn: str) -> str:
    return str(int(csn[12:16], 16))


RIDS = [1, 2, 10, 65535]
csns = st.builds(text_of, st.integers(1, 12), st.sampled_from(RIDS), st.integers(0, 2))
csns_of_7 = st.builds(text_of, st.integers(1, 15), st.just(7), st.integers(0, 1))
Elements = dict[str, tuple[str, str] | None]


@st.composite
def ruvs(draw: st.DrawFn, generations: Sequence[str | None] = (None,)) -> tuple[list[str], Elements]:
    """The values of a RUV, and what they say: rid -> (min, max), or None for an element without CSNs."""
    said: Elements = {}
    values = []
    if named := draw(st.sampled_from(generations)):
        values.append(f"{{replicageneration}} {named}")
    for rid in draw(st.lists(st.sampled_from(RIDS), unique=True)):
        times = sorted(draw(st.lists(st.integers(1, 12), min_size=2, max_size=2)))
        zeros = "0" * draw(st.integers(0, 2))
        if draw(st.integers(0, 4)) == 0:
            said[str(rid)] = None
            values.append(f"{{replica {zeros}{rid} ldap://h{rid}:389}}")
        else:
            low, high = (text_of(time, rid) for time in times)
            said[str(rid)] = low, high
            cased = high.upper() if draw(st.booleans()) else high
            values.append(f"{{replica {zeros}{rid} ldap://h{rid}:389}} {low} {cased}")
    return draw(st.permutations(values)), said


def max_of(said: Elements, rid: str) -> str | None:
    found = said.get(rid)
    return found[1] if found else None


GENERATIONS = [None, text_of(1, 10), text_of(1, 10).upper(), "restored", "Restored"]


@given(ruvs(GENERATIONS), ruvs(GENERATIONS))
def test_two_vectors_are_compared(supplier: tuple[list[str], Elements], consumer: tuple[list[str], Elements]) -> None:
    result = answer("ruv_compare", {"supplier_ruv": supplier[0], "consumer_ruv": consumer[0]})
    assert result["rids"].keys() == supplier[1].keys() | consumer[1].keys()
    for rid, row in result["rids"].items():
        ours, theirs = max_of(supplier[1], rid), max_of(consumer[1], rid)
        if ours is None and theirs is None:
            state = "no_changes"
        elif theirs is None:
            state = "unknown_to_consumer"
        elif ours is None:
            state = "unknown_to_supplier"
        elif parts(ours) == parts(theirs):
            state = "in_sync"
        else:
            state = "consumer_behind" if parts(theirs) < parts(ours) else "consumer_ahead"
        assert row["state"] == state
        assert row["seconds"] == (abs(parts(ours)[0] - parts(theirs)[0]) if ours and theirs else None)
        both = supplier[1].get(rid), consumer[1].get(rid)
        assert row["min_differs"] is bool(both[0] and both[1] and both[0][0] != both[1][0])
    generations = [next((v.split()[1] for v in ruv[0] if "generation" in v), None) for ruv in (supplier, consumer)]
    generations = [text.lower() if text and len(text) == 20 else text for text in generations]
    same = generations[0] is not None and generations[0] == generations[1]
    assert result["same_generation"] is same
    may = answer("generation", {"supplier_ruv": supplier[0], "consumer_ruv": consumer[0]})
    reason = None if same else "generation_differs"
    expected = {"decision": "allowed" if same else "blocked", "reason": reason, "exchange": same}
    assert may == {**expected, "status_code": None if same else 19}


@given(ruvs(), st.none() | ruvs(), ruvs(), st.lists(csns))
def test_a_session_opens_by_what_is_remembered(
    local: tuple[list[str], Elements],
    remembered: tuple[list[str], Elements] | None,
    real: tuple[list[str], Elements],
    changelog: list[str],
) -> None:
    inputs = {
        "local_ruv": local[0],
        "remembered_consumer_ruv": remembered[0] if remembered else None,
        "real_consumer_ruv": real[0],
        "supplier_changelog": changelog,
    }
    newer = []
    for rid in sorted(map(int, local[1])):
        ours = max_of(local[1], str(rid))
        if remembered and ours:
            theirs = max_of(remembered[1], str(rid))
            if theirs is None or parts(ours) > parts(theirs):
                newer.append(str(rid))
    opens = remembered is None or newer != []
    missing = []
    for csn in changelog:
        ours, theirs = max_of(local[1], rid_of(csn)), max_of(real[1], rid_of(csn))
        in_reach = ours is not None and parts(csn) <= parts(ours)
        if in_reach and (theirs is None or parts(csn) > parts(theirs)) and csn not in missing:
            missing.append(csn)
    assert answer("session_precheck", inputs) == {
        "open_session": opens,
        "newer_rids": newer,
        "missing_on_consumer": sorted(missing, key=parts),
        "finding": "consumer_rolled_back_unnoticed" if missing and not opens else None,
    }


@given(ruvs(), st.lists(st.none() | ruvs(), max_size=3), st.data())
def test_what_may_be_trimmed(
    local: tuple[list[str], Elements], remembered: list[tuple[list[str], Elements] | None], data: st.DataObject
) -> None:
    known = [csn for csn in data.draw(st.lists(csns, unique=True)) if max_of(local[1], rid_of(csn))]
    ages = {csn: data.draw(st.integers(0, 3)) for csn in known}
    result = answer(
        "trim",
        {
            "supplier_ruv": local[0],
            "max_age_s": 1,
            "changelog": [{"csn": csn, "logged_age_s": age} for csn, age in ages.items()],
            "agreements": [
                {"to": "x", "enabled": bool(at % 2), "remembered_consumer_ruv": ruv[0] if ruv else None}
                for at, ruv in enumerate(remembered)
            ],
        },
    )
    limits: dict[str, str | None] = {}
    for rid in local[1]:
        if ours := max_of(local[1], rid):
            seen = [ours, *(max_of(ruv[1], rid) for ruv in remembered if ruv)]
            limits[rid] = None if None in seen else min((csn for csn in seen if csn), key=parts)
    gone = []
    for csn in sorted(known, key=parts):
        limit = limits[rid_of(csn)]
        if ages[csn] > 1 and limit is not None and parts(csn) < parts(limit):
            gone.append(csn)
        else:
            break
    risk = sorted((rid for rid in limits if limits[rid] is None), key=int)
    assert result == {"limit_per_rid": limits, "removable": gone, "trim_risk_rids": risk}


codes = st.sampled_from([0, 1, 20, 32, 51, 68])
SKIPPED = ["16", "17", "19", "20", "21", "32", "34", "35", "50", "64", "65", "66", "67", "68", "69"]


@given(
    st.dictionaries(st.sampled_from(RIDS), st.integers(1, 12)),
    st.lists(csns),
    st.lists(csns),
    st.lists(st.tuples(csns, codes)),
    st.dictionaries(st.sampled_from(RIDS), st.integers(1, 12)),
)
def test_what_the_consumer_missed(
    claims: dict[int, int],
    supplier: list[str],
    consumer: list[str],
    log: list[tuple[str, int]],
    kept: dict[int, int],
) -> None:
    claimed = {str(rid): text_of(time, rid) for rid, time in claims.items()}
    first_kept = {str(rid): text_of(time, rid) for rid, time in kept.items()}
    missed, unknown, pending = set(), set(), set()
    cause = {}
    for csn in supplier:
        if csn in consumer:
            continue
        rows = [code for logged, code in log if logged == csn]
        mine = rid_of(csn)
        if mine not in claimed or parts(csn) > parts(claimed[mine]):
            pending.add(csn)
        elif (rows and rows[-1] == 0) or (not rows and mine in first_kept and parts(csn) < parts(first_kept[mine])):
            unknown.add(csn)
        else:
            missed.add(csn)
            skipped = bool(rows) and str(rows[-1]) in SKIPPED
            reason = "skipped_apply_error" if skipped else "unexplained"
            cause[csn] = {"reason": reason, "ldap_result": rows[-1] if rows else None}
    inputs = {
        "consumer_max_csn": claimed,
        "changes_on_supplier": supplier,
        "consumer_changelog": consumer,
        "consumer_access_log": [{"csn": csn, "result": code} for csn, code in log],
        "consumer_first_kept_csn": first_kept,
    }
    assert answer("missed_change", inputs) == {
        "missed": sorted(missed, key=parts),
        "unknown": sorted(unknown, key=parts),
        "pending": sorted(pending, key=parts),
        "cause": cause,
    }


@given(
    st.sampled_from(["yes", "no"]),
    csns_of_7,
    st.lists(csns_of_7),
    st.dictionaries(
        st.sampled_from("ABCDE"),
        st.tuples(st.sampled_from(["self", "direct", "indirect"]), st.booleans(), st.booleans(), st.none() | csns_of_7),
    ),
    st.sampled_from([None, "yes", "no"]),
)
def test_whom_a_clean_waits_for_and_who_loses(
    force: str,
    max_csn: str,
    changes: list[str],
    servers: dict[str, tuple[str, bool, bool, str | None]],
    certify: str | None,
) -> None:
    inputs = {
        "task": f"07:{max_csn.upper()}:{force}:0",
        "changes": changes,
        "abort": {"certify_all": certify} if certify else None,
        "servers": {
            name: {"reach": reach, "agreement_enabled": enabled, "online": online, "ruv_max": has}
            for name, (reach, enabled, online, has) in servers.items()
        },
    }
    state, waits, lost = "proceeds", [], {}
    if certify:
        waits = [name for name in sorted(servers) if not servers[name][2]] if certify == "yes" else []
        state = "abort_waits" if waits else "abort_ends"
    else:
        for name in sorted(servers):
            reach, enabled, online, has = servers[name]
            covered = has is not None and parts(has) >= parts(max_csn)
            blocks = (reach == "self" and not covered) or (
                reach == "direct" and enabled and (not online or not covered)
            )
            if force == "no" and blocks:
                state, waits = "waits", [*waits, name]
    if state == "proceeds":
        for name, (_, _, _, has) in servers.items():
            above = {csn for csn in changes if has is None or parts(csn) > parts(has)}
            if above:
                lost[name] = sorted(above, key=parts)
    safe = all(one[2] and one[3] is not None and parts(one[3]) >= parts(max_csn) for one in servers.values())
    assert answer("cleanallruv", inputs) == {
        "task": {"rid": "7", "max_csn": max_csn, "force": force, "original_task": False},
        "state": state,
        "waits_for": waits,
        "lost": lost,
        "safe": safe,
    }


@given(csns_of_7, st.lists(csns_of_7), st.lists(st.tuples(st.sampled_from(["replayed", "own_write"]), csns_of_7)))
def test_a_restored_server_that_writes_too_early(start: str, peers: list[str], events: list[tuple[str, str]]) -> None:
    largest, has, violation = start, set(), None
    for do, csn in events:
        if do == "own_write":
            jumped = [one for one in peers if parts(largest) < parts(one) < parts(csn)]
            if jumped and violation is None:
                violation = csn
            has.add(csn)
        elif parts(csn) > parts(largest):
            has.add(csn)
        largest = max(largest, csn, key=parts)
    owed = {csn for csn in peers if parts(csn) > parts(start) and csn not in has}
    lost = sorted((csn for csn in owed if parts(csn) <= parts(largest)), key=parts)
    inputs = {"restored_to": start, "peers_hold": peers, "events": [{"do": do, "csn": csn} for do, csn in events]}
    assert answer("restore_order", inputs) == {
        "lost": lost,
        "still_to_come": sorted(owed - set(lost), key=parts),
        "first_violation": violation,
        "finding": "own_rid_hole_after_restore" if lost else None,
    }


@given(
    st.sets(st.sampled_from("ABCD")),
    csns,
    st.dictionaries(st.sampled_from(RIDS), st.sampled_from("ABCD")),
    st.lists(st.tuples(st.sampled_from("ABCDE"), st.integers(0, 5))),
)
def test_how_a_change_travelled(
    servers: set[str], csn: str, owners: dict[int, str], arrivals: list[tuple[str, int]]
) -> None:
    result = answer(
        "lag_report",
        {
            "servers": sorted(servers),
            "csn": csn,
            "server_of_rid": {str(rid): name for rid, name in owners.items()},
            "arrivals": [{"server": name, "t_ms": at} for name, at in arrivals],
        },
    )
    came = sorted((min(at for other, at in arrivals if other == name), name) for name in {name for name, _ in arrivals})
    hops = [
        {"from": came[at][1], "to": came[at + 1][1], "lag_ms": came[at + 1][0] - came[at][0]}
        for at in range(len(came) - 1)
    ]
    origin = owners.get(int(rid_of(csn)))
    missing = [name for name in sorted(servers) if all(name != other for _, other in came)]
    assert result == {
        "origin_server": origin,
        "origin_in_arrivals": origin in [name for _, name in came],
        "server_count": len(came),
        "global_lag_ms": came[-1][0] - came[0][0] if came else None,
        "hops": hops,
        "missing_on": missing,
        "replicated_to_all": missing == [],
    }


@given(st.lists(st.none() | csns.flatmap(lambda csn: st.sampled_from([csn, csn.upper()]))))
def test_the_order_of_csns(given_csns: list[str | None]) -> None:
    pairs = [[one, other] for one in given_csns[:4] for other in given_csns[-4:]]
    result = answer("csn_order", {"csns": given_csns, "pairs": pairs})
    lowest = (-1, 0, 0, 0)
    keys = [parts(csn) if csn else lowest for csn in given_csns]
    assert [parts(csn) if csn else lowest for csn in result["ascending"]] == sorted(keys)
    assert all(csn is None or csn == csn.lower() for csn in result["ascending"])
    for (one, other), order in zip(pairs, result["compare"], strict=True):
        ours, theirs = parts(one) if one else lowest, parts(other) if other else lowest
        assert order == (0 if ours == theirs else -1 if ours < theirs else 1)


# The edges


def test_csns_are_decoded_to_the_last_second() -> None:
    texts = ["FFFFFFFFFFFFFFFFFFFF", "00000000000000000000", "66000000000000010000 ", "0x000000000000010000", ""]
    last, first, *bad = answer("csn_decode", {"csns": texts})["decoded"]
    assert last == {
        "time_utc": "2106-02-07T06:28:15Z",
        "epoch": 2**32 - 1,
        "seq": 65535,
        "rid": "65535",
        "subseq": 65535,
    }
    assert first["time_utc"] == "1970-01-01T00:00:00Z"
    assert bad == [None, None, None]


@pytest.mark.parametrize(
    ("skew", "off", "on"),
    [
        (21599, None, None),
        (21600, "DSSKEWLE0001", None),
        (-43200, "DSSKEWLE0002", None),
        (86399, "DSSKEWLE0002", None),
        (-86400, "DSSKEWLE0003", None),
        (365 * 86400 - 1, "DSSKEWLE0003", None),
        (-365 * 86400, "DSSKEWLE0003", "DSSKEWLE0004"),
    ],
)
def test_the_borders_of_clock_skew(skew: int, off: str | None, on: str | None) -> None:
    assert (time_skew_code(skew, ignored=False), time_skew_code(skew, ignored=True)) == (off, on)


def test_the_result_codes_are_those_of_the_table() -> None:
    assert [str(code) for code in range(-1, 130) if skipped_for_good(code)] == SKIPPED


def test_a_ruv_says_what_the_server_takes() -> None:
    c1, c2 = text_of(1, 3), text_of(2, 3)
    values = [
        "{replica 03 ldap://first:389}",
        f"{{replica 3 ldap://second:389}} {c1} {c2}",
        f"{{replica 65535 ldap://ro:389}} {c1.upper()} {c2.upper()} 6600ABCD",
        f"{{replica 4 ldap://max-only:389}} {c2}",
        "{replica 5}",
        "{replicageneration}",
        "  padded",
        f"{{replicageneration}} {c1.upper()}",
        f"{{replicageneration}} {c2}",
        f"{{Replica  7   ldap://blanks:389 }}   {c1} {c2}",
        f"{{replica 8}}{c1} {c2}",
    ]
    result = answer("ruv_parse", {"values": values, "lookup_rids": ["3", "0003", "65535", "ffff", "4", "", "٣"]})
    assert result["generation"] == c1
    assert result["elements"] == {
        "3": {"url": "ldap://first:389", "min": None, "max": None, "last_modified": None},
        "65535": {"url": "ldap://ro:389", "min": c1, "max": c2, "last_modified": 0x6600ABCD},
        "7": {"url": "ldap://blanks:389", "min": c1, "max": c2, "last_modified": None},
        "8": {"url": None, "min": c1, "max": c2, "last_modified": None},
    }
    assert result["rejected"] == values[3:7]
    lookup = {"3": "3", "0003": "3", "65535": "65535", "ffff": None, "4": None, "": None, "٣": None}
    assert result["lookup"] == lookup


def test_a_ruv_value_that_counts_for_nothing_is_named() -> None:
    good, slip = f"{{replica 3 ldap://h:389}} {text_of(1, 3)} {text_of(9, 3)}", "{replica 3 ldap://h:389} 66"
    answers = [
        answer("ruv_compare", {"supplier_ruv": [good], "consumer_ruv": [slip, slip]}),
        answer("generation", {"supplier_ruv": [slip], "consumer_ruv": None}),
        answer("missed_after_init", case_of_two(good, slip)),
    ]
    assert [one["ruv_values_rejected"] for one in answers] == [[slip]] * 3
    assert "ruv_values_rejected" not in answer("generation", {"supplier_ruv": [good], "consumer_ruv": None})


def case_of_two(ours: str, theirs: str) -> dict[str, Any]:
    suppliers = {name: {"ruv": [ours, theirs], "changelog": [], "purge_ruv": {}} for name in ("a", "b")}
    return {"consumer": {"name": "c", "replica_id": 4, "ruv": [theirs]}, "suppliers": suppliers}


def test_a_generation_is_text_and_may_be_no_csn() -> None:
    result = answer("ruv_parse", {"values": ["{replicageneration}  Restored "], "lookup_rids": []})
    assert (result["generation"], result["rejected"]) == ("Restored", [])


@pytest.mark.parametrize(
    "text",
    ["8:66:no:1", "8:66000001000000080000:maybe:1", "8:66000001000000080000:no", "x:66000001000000080000:no:1", ""],
)
def test_what_is_no_clean_task(text: str) -> None:
    assert clean_task(text) is None
    with pytest.raises(Problem, match=r"inputs\.task: .* is not a task"):
        answer("cleanallruv", {"task": text, "changes": [], "servers": {}})


def test_one_moment_of_a_session_is_not_named_twice() -> None:
    case = next(case for case in given_cases("ds389-sessions") if case["kind"] == "session")
    happens = [{"do": "changelog_delete", "csn": text_of(1, 3)}]
    for keys, said in (
        (("1", "01"), "number 1 twice"),
        (("0", "00"), "number 0 twice"),
        (("1", "x"), "key 'x' is not"),
    ):
        events = {"events_after_n_changes_sent": dict.fromkeys(keys, happens)}
        with pytest.raises(Problem, match=said):
            answer("session", case["inputs"] | events)
    at_once = [
        answer("session", case["inputs"] | {"events_after_n_changes_sent": {key: happens}}) for key in ("0", "00")
    ]
    assert at_once[0] == at_once[1]


def test_one_replica_id_is_not_named_twice() -> None:
    inputs = {"servers": [], "csn": text_of(1, 3), "server_of_rid": {"3": "a", "03": "b"}, "arrivals": []}
    with pytest.raises(Problem, match=r"server_of_rid.*replica ID 3 twice"):
        answer("lag_report", inputs)
    padded = answer("lag_report", {**inputs, "server_of_rid": {"03": "b"}})
    assert padded["origin_server"] == "b"
