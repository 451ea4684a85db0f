"""Of the proven ways the one is gone that restores most: what nothing shows to be lacking does not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.planner import plan
from workbench.replication.changelog.style import ChangelogReplication


def test_a_link_that_is_off_is_switched_on_and_its_consumer_not_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on 2.3.1: s2 waits behind a disabled link; of an old change of its own nobody knows whether it still has it.

    The model took it for lacking, and to fill s2 for the way that restores more.
    """

    model_of = ChangelogReplication.plan_model

    def lacking(*about: Any) -> Any:
        model = model_of(*about)
        model.lots.append(replace(model.lots[0], origin="2", last=csn(2, 2), changes=2))
        model.servers["s1"].holds.add(len(model.lots) - 1)
        return model

    monkeypatch.setattr(ChangelogReplication, "plan_model", lacking)
    made, own = [csn(second, 1) for second in range(3, 10)], [csn(1, 2), csn(2, 2)]
    vector = claims(r2=(1, 2))
    files = {
        "s1.replica.ldif": replica(1, elements({**claims(r1=(3, 9)), **vector})),
        "s1.changelog.ldif": changelog(sorted([*made, *own]), own_entries=True),
        "s1.agreements.ldif": agreement("to-s2", 38902, enabled=False),
        "s2.replica.ldif": replica(2, elements({**claims(r1=(3, 5)), **vector})),
        "s2.changelog.ldif": changelog([*made[:3]], own_entries=True, marks=[csn(2, 2)]),
        "s2.agreements.ldif": agreement("to-s1", 38901),
    }
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert not found["missing"] and [(row["server"], row["origin"]) for row in found["unknown"]] == [("s2", "2")]
    made_plan = plan(case)
    restores = {course.way: course.restored for course in made_plan.courses}
    assert restores == {"enable": 4, "initialise-from-s1": 4}, restores
    assert [course.way for course in made_plan.courses if course.chosen] == ["enable"]
