"""A clock that was ahead, and a suffix in which nothing was written then: it has no CSN that shows it, and makes none either."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of, stamp, status, with_status
from mesh_samples import SUFFIX, agreement, claims, csn, elements, replica
from test_field_truth import with_a_clock

_OTHER = "o=second"
_NO_CSN = "Replication error acquiring replica: Unable to obtain current CSN. Replication is aborting. (internal error)"
_LIMIT = "ERR - _csngen_adjust_local_time - Adjustment limit exceeded; value - 259077, limit - 86400"


def of_other(text: str) -> str:
    return text.replace(SUFFIX, _OTHER).replace("dc\\3Dexample\\2Cdc\\3Dcom", "o\\3Dsecond")


@pytest.mark.parametrize("made_anew", [False, True])
def test_the_suffix_at_rest_is_named_beside_the_other_and_after_it(made_anew: bool, tmp_path: Path) -> None:
    """`made_anew`: the replica of the other suffix has been mended since, as the finding says."""
    files = with_a_clock(0 if made_anew else 3 * 86400, 60)
    own = elements({1: (csn(0, 1), csn(4, 1)), **claims(r2=(1, 2))})
    files["s1.other.replica.ldif"] = of_other(replica(1, own))
    refused = with_status(agreement("second-to-s2", 38902), status(8, _NO_CSN, "red", 5, 6))
    files["s1.other.agreements.ldif"] = of_other(refused)
    files["s1.errors.log"] += f"{stamp(60)} - {_LIMIT}\n"
    (one,) = of("CLOCK_AHEAD", findings(tmp_path, files))
    both = _OTHER if made_anew else f"{SUFFIX}, {_OTHER}"
    assert f"for each suffix ({both})" in one["fix"][0]["repair"]
    refuses = f"every write of {_OTHER}" if made_anew else "every write since its clock was set back"
    assert refuses in one["summary"]
    said = f"the CSNs of {_OTHER} would have to lie that far ahead, and it makes none"
    assert (said in one["summary"]) is made_anew


def test_what_is_made_anew_feeds_nobody_before_its_consumers_have_all(tmp_path: Path) -> None:
    """Its new log has nothing for a consumer that is behind: a session of it would pass over what that one lacks."""
    (one,) = of("CLOCK_AHEAD", findings(tmp_path, with_a_clock(3 * 86400, 60)))
    repair = one["fix"][0]["repair"]
    assert repair.index("initialise it from s2") < repair.index("wait until every server") < repair.index("create its")
