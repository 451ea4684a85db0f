"""A server that was given another replica ID: its old one keeps sessions with it away, and a cleaning lets them begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detector_samples import listening, of
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import models_of, plan

Files = dict[str, Any]


def renumbered(*, unsent: bool = False, whole: bool = False) -> Files:
    """s3 made five changes as 3, was given 33, and its RUV lost 3; the changelogs of s1 and s2 begin behind the first of these.

    unsent  s2 lacks the last change of 3; `whole`: the changelogs have all
    """
    files: Files = {}
    for name in ("s1", "s2", "s3"):
        files |= {f"{name}.errors.log": listening(name)[f"{name}.errors.log"].replace(":3890", ".localdomain:3890")}
    made = [csn(second, 3) for second in range(5)]
    late = {rid: [csn(second, rid) for second in range(20, 26)] for rid in (1, 2)}
    for rid in (1, 2):
        top = 3 if unsent and rid == 2 else 4
        spans = claims(r1=(0, 25), r2=(0, 25), r3=(0, top), r33=(10, 12))
        vector = [line.replace("localdomain:38933", "localdomain:38903") for line in elements(spans)]
        files[f"s{rid}.replica.ldif"] = replica(rid, vector)
        kept = made[0 if whole else 2 : top + 1]
        first = [csn(second, one) for one in (1, 2) for second in (10, 11)]
        own = [csn(second, 33) for second in (10, 12)]
        files[f"s{rid}.changelog.ldif"] = changelog([*kept, *first, *own, *late[1], *late[2]], own_entries=True)
        links = agreement(f"s{rid}-to-s{3 - rid}", 38903 - rid) + agreement(f"s{rid}-to-s3", 38903)
        files[f"s{rid}.agreements.ldif"] = links
    vector = [line.replace(":38933", ":38903") for line in elements(claims(r33=(10, 12), r1=(0, 11), r2=(0, 11)))]
    files["s3.replica.ldif"] = replica(33, vector)
    mine = [
        *made,
        *(csn(second, one) for one in (1, 2) for second in (10, 11)),
        *(csn(second, 33) for second in (10, 12)),
    ]
    files["s3.changelog.ldif"] = changelog(mine, own_entries=True)
    files["s3.agreements.ldif"] = agreement("s3-to-s1", 38901) + agreement("s3-to-s2", 38902)
    return files


def test_a_former_replica_id_is_cleaned_and_nothing_is_initialised(tmp_path: Path) -> None:
    case = case_of(tmp_path, renumbered())
    found = diagnose(case)
    assert headline(found).startswith("Nothing goes to s3: replica ID 3, which s3 had before, is in the way; ")
    assert not of("REINIT_REQUIRED", found["findings"])
    broken = {one["server"]: one for one in of("BROKEN_VECTOR", found["findings"])}
    assert {name: one["severity"] for name, one in broken.items()} == {"s1": "error", "s2": "error"}
    assert "once it is cleaned they begin, and bring the 12 changes that s3 waits for" in broken["s1"]["summary"]
    for one in of("PENDING_CHANGES", found["findings"]):
        assert one["fix"][0]["repair"] == "do what BROKEN_VECTOR says of s1: clean origin 3"
    made = plan(case)
    (step,) = made.steps
    assert (step.key, step.repair) == ("1-clean-3", "clean")
    (row,) = (row for row in made.after if row["server"] == "s3")
    assert (row["missing"], row["pending"]) == (0, 0)


def test_a_former_replica_id_of_which_a_server_lacks_changes_is_not_cleaned(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, renumbered(unsent=True)))
    assert of("REINIT_REQUIRED", found["findings"])
    assert {one["severity"] for one in of("BROKEN_VECTOR", found["findings"])} == {"warning"}


def test_a_former_replica_id_whose_changes_all_logs_have_is_in_nobodys_way(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, renumbered(whole=True)))
    assert {one["severity"] for one in of("BROKEN_VECTOR", found["findings"])} == {"warning"}
    assert not of("REINIT_REQUIRED", found["findings"])


def test_a_dead_replica_id_that_only_a_server_behind_a_hub_names_is_not_cleaned_again(tmp_path: Path) -> None:
    """All that a cleaning reaches was cleaned: only an initialisation takes it from the read-only server."""
    files: Files = {}
    spans = claims(r1=(0, 4), r2=(0, 4))
    for rid, name in ((1, "s1"), (2, "s2"), (65535, "h3"), (65535, "r4")):
        also = claims(r9=(0, 1)) if name == "r4" else {}
        vector = [line.replace(":38909", ":38902") for line in elements(spans | also)]
        files[f"{name}.replica.ldif"] = replica(rid, vector, flags=int(name != "r4"))
        files |= listening(name)
        if name != "r4":
            logged = [csn(second, one) for one in (1, 2) for second in range(5)]
            files[f"{name}.changelog.ldif"] = changelog(logged, own_entries=True)
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + agreement("s1-to-h3", 38903)
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
    files["h3.agreements.ldif"] = agreement("h3-to-r4", 38904)
    found = diagnose(case_of(tmp_path, files))
    (broken,) = of("BROKEN_VECTOR", found["findings"])
    assert broken["server"] == "r4" and "cleanallruv" not in str(broken["fix"])
    assert broken["fix"][0]["repair"].startswith("initialise r4 from a server whose RUV does not name replica ID 9")
    for one in of("DEAD_ORIGIN", found["findings"]):
        fix = one["fix"][-1]
        assert not any("only if its server is gone for good" in each["repair"] for each in one["fix"])
        assert fix["repair"] == "initialise r4 from a server whose vector does not name it"


def test_what_a_vector_does_not_name_no_session_of_a_plan_sends(tmp_path: Path) -> None:
    """s2 lives, and its replica ID was cleaned: its log has what it made since, and its RUV has one CSN of it, or none."""
    files: Files = {}
    for rid in (1, 2):
        vector = elements(claims(r1=(0, 4)))
        vector += [f"{{replica 2 ldap://localhost.localdomain:38902}} {csn(9, 2)}"] if rid == 2 else []
        logged = [csn(second, 1) for second in range(5)] + [csn(second, 2) for second in range(5, 10) if rid == 2]
        files[f"s{rid}.replica.ldif"] = replica(rid, vector)
        files[f"s{rid}.changelog.ldif"] = changelog(logged, own_entries=True)
        files[f"s{rid}.agreements.ldif"] = agreement(f"s{rid}-to-s{3 - rid}", 38903 - rid)
        files |= listening(f"s{rid}")
    case = case_of(tmp_path, files)
    (model,) = models_of(case).values()
    assert [*model.servers["s2"].vector] == ["1"]
    model.settle()
    assert [*model.servers["s1"].vector] == ["1"]
    assert not any("on their way" in line for line in plan(case).open)
