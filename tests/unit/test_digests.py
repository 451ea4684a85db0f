"""Digests of positions against the obvious: the positions themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine.digests import digest, fold

positions = st.lists(
    st.tuples(st.sampled_from(["1", "2", "65535"]), st.integers(0, 2**48 - 1), st.integers(0, 2**32 - 1)), max_size=40
)
SHIFT = 24


def digested(rows: list[tuple[str, int, int]]) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    origin = pa.array([row[0] for row in rows], pa.string()).dictionary_encode()
    hi, lo = (np.array([row[at] for row in rows], np.int64) for at in (1, 2))
    return {
        (r["origin"], r["bucket"]): (r["count"], r["xor_hi"], r["xor_lo"], r["mix"])
        for r in digest(origin, hi, lo, SHIFT).to_pylist()
    }


@given(positions, st.randoms())
@settings(max_examples=200, deadline=None)
def test_order_and_splitting_change_nothing(rows: list, random) -> None:
    whole = digested(rows)
    shuffled = random.sample(rows, len(rows))
    assert digested(shuffled) == whole
    cut = random.randrange(len(rows) + 1)
    parts = [part for part in (shuffled[:cut], shuffled[cut:]) if part]
    tables = []
    for part in parts:
        origin = pa.array([row[0] for row in part], pa.string()).dictionary_encode()
        tables.append(digest(origin, *(np.array([row[at] for row in part], np.int64) for at in (1, 2)), SHIFT))
    if tables:
        folded = {
            (r["origin"], r["bucket"]): (r["count"], r["xor_hi"], r["xor_lo"], r["mix"])
            for r in fold(pa.concat_tables(tables)).to_pylist()
        }
        assert folded == whole


@given(positions.filter(bool), st.data())
@settings(max_examples=200, deadline=None)
def test_of_two_digests_that_differ_by_one_position_the_exclusive_or_is_that_position(
    rows: list, data: st.DataObject
) -> None:
    rows = sorted(set(rows))
    lost = data.draw(st.sampled_from(rows))
    key = (lost[0], lost[1] >> SHIFT)
    full, less = digested(rows), digested([row for row in rows if row != lost])
    have = less.get(key, (0, 0, 0, 0))
    assert full[key][0] - have[0] == 1
    assert (full[key][1] ^ have[1], full[key][2] ^ have[2]) == lost[1:]
    assert {k: v for k, v in full.items() if k != key} == {k: v for k, v in less.items() if k != key}


@given(positions.filter(lambda rows: len(set(rows)) > 1), st.data())
@settings(max_examples=200, deadline=None)
def test_the_mix_tells_different_positions_apart(rows: list, data: st.DataObject) -> None:
    rows = sorted(set(rows))
    swapped = data.draw(st.sampled_from(rows))
    other = (swapped[0], swapped[1] ^ 1, swapped[2])
    changed = [other if row == swapped else row for row in rows]
    if sorted(changed) != rows and other not in rows:
        assert {k: v[3] for k, v in digested(changed).items()} != {k: v[3] for k, v in digested(rows).items()}
