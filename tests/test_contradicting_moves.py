"""Two entries that two servers moved below each other while apart: named with both moves, and how to undo them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, of, with_status, zulu
from entry_samples import logged
from link_samples import refused_change
from mesh_samples import SUFFIX, agreement, case_of, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan
from workbench.rules.spelling import parent_of, parts_of
from workbench.systems.ds389.detectors import moves as reading
from workbench.systems.ds389.rules.moves import Move, exclusive, move_of
from workbench.systems.ds389.rules.proving import renamed

BACKING_OFF = (
    "Error (16) Replication error acquiring replica: Incremental update connection error.  Backing off, will retry update later. "
    "(connection error)"
)


def rename(rdn: str, parent: str) -> str:
    return f"newrdn: {rdn}\ndeleteoldrdn: false\nnewsuperiordn: {parent}\n"


def moved(second: int, rid: int, name: str, parent: str, entry: str = "") -> Move:
    words = rename(name.partition(",")[0], f"{parent},dc=x" if parent else "dc=x")
    return move_of(csn(second, rid), str(rid), entry or name[3:4], f"{name},dc=x", words)


@pytest.mark.parametrize(
    ("about", "moves", "added", "found"),
    [
        ("below each other", [moved(10, 1, "ou=a", "ou=b"), moved(12, 2, "OU=b", "ou=A")], {}, True),
        (
            "below a child of each other",
            [moved(10, 1, "ou=a", "ou=c, ou=b"), moved(12, 2, "ou=b", "ou=d,ou=a")],
            {},
            True,
        ),
        ("of one server", [moved(10, 1, "ou=a", "ou=b"), moved(12, 1, "ou=b", "ou=a")], {}, False),
        ("one elsewhere", [moved(10, 1, "ou=a", "ou=b"), moved(12, 2, "ou=b", "ou=c")], {}, False),
        (
            "one was back by then",
            [moved(10, 1, "ou=a", "ou=b"), moved(11, 1, "ou=a,ou=b", "", "a"), moved(12, 2, "ou=b", "ou=a")],
            {},
            False,
        ),
        (
            "another entry had that name by then",
            [moved(10, 1, "ou=a", "ou=b"), moved(12, 2, "ou=b", "ou=a")],
            {"ou=a,dc=x": [csn(11, 2)]},
            False,
        ),
        (
            "another entry was renamed to that name by then",
            [
                moved(10, 1, "ou=a", "ou=b"),
                move_of(csn(11, 2), "2", "z", "ou=z,dc=x", "newrdn: ou=A\ndeleteoldrdn: true\n"),
                moved(12, 2, "ou=b", "ou=a"),
            ],
            {},
            False,
        ),
    ],
)
def test_which_moves_exclude_each_other(
    about: str, moves: list[Move], added: dict[str, list[str]], found: bool
) -> None:
    assert exclusive(reversed(moves), added) == ([(moves[0], moves[-1])] if found else []), about


def test_the_name_above() -> None:
    assert [parent_of(name) for name in (r"cn=a\, b,dc=d", "dc=d", r"cn=a\,", "")] == ["dc=d", "", "", ""]
    assert parts_of(r"cn=a\\,ou=b\\\,c,dc=d") == [r"cn=a\\", r"ou=b\\\,c", "dc=d"]
    assert renamed(r"cn=a\\,ou=b,dc=d", "newrdn: cn=e") == "cn=e,ou=b,dc=d"


A, B = csn(10, 1), csn(12, 2)


def apart(
    *, told: bool = True, undone: bool = False, both: bool = False, then: str = "", later: str = ""
) -> dict[str, Any]:
    """s1 moved ou=a below ou=b, and s2 the other way round; the links refuse the other's. `undone`: s1 moved its entry back.

    then   another rename of s1's entry, instead
    later  a rename of s2's entry
    """
    names = enumerate(("ou=a", "ou=b"), 1)
    first = "".join(logged(csn(number, 1), number, name, "add: x\nx: y\n-\n", "add") for number, name in names)
    first += logged(csn(1, 2), 3, "ou=c", "add: x\nx: y\n-\n", "add")
    one = logged(A, 1, "ou=a", rename("ou=a", f"ou=b,{SUFFIX}"), "modrdn")
    other = logged(B, 2, "ou=b", rename("ou=b", f"ou=a,{SUFFIX}"), "modrdn")
    then = then or (rename("ou=a", SUFFIX) if undone else "")
    back = logged(csn(20, 1), 1, "ou=a,ou=b", then, "modrdn") if then else ""
    other += logged(csn(22, 2), 2, "ou=b,ou=a", later, "modrdn") if later else ""
    last, end = 20 if then else 10, 22 if later else 12
    files: dict[str, Any] = {
        "s1.changelog.ldif": first + one + (other if both else "") + back,
        "s2.changelog.ldif": first + other + (one if both else ""),
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, last), r2=(1, end if both else 1)))),
        "s2.replica.ldif": replica(2, elements(claims(r1=(1, last if both else 2), r2=(1, end)))),
    }
    status = f"nsds5replicaLastUpdateStatus: {BACKING_OFF}\nnsds5replicaLastUpdateEnd: {zulu(9)}\n"
    for name, peer, position in (("s1", 2, A), ("s2", 1, B)):
        entry = agreement("to-s2" if peer == 2 else "to-s1", 38900 + peer)
        files[f"{name}.agreements.ldif"] = with_status(entry, status) if told else entry
        lines = "".join(refused_change(second, position, "Operations error (1)") for second in range(30, 60, 5))
        files[f"{name}.errors.log"] = lines.replace("to-s2", f"to-s{peer}") if told else ""
    return {key: text for key, text in files.items() if text}


def test_two_moves_that_exclude_each_other(tmp_path: Path) -> None:
    case = case_of(tmp_path, apart())
    found = diagnose(case)
    assert headline(found).startswith(
        f"s1 moved ou=a,{SUFFIX} below ou=b,{SUFFIX} while s2 moved ou=b,{SUFFIX} below ou=a,{SUFFIX}; "
    )
    (one,) = of("CONTRADICTING_MOVES", found["findings"])
    assert one["items"] == [A, B] and one["severity"] == "error"
    assert f"s1 moved ou=a,{SUFFIX} below ou=b,{SUFFIX} at 2024-03-24 10:27:22 UTC ({A})" in one["summary"]
    assert f"s2 does not have {A}; s1 does not have {B}" in one["summary"]
    assert f"on s1: `ldapmodrdn -H URL -D MANAGER -W -s {SUFFIX} ou=a,ou=b,{SUFFIX} ou=a`" in one["fix"][0]["repair"]
    assert f"on s2: `ldapmodrdn -H URL -D MANAGER -W -s {SUFFIX} ou=b,ou=a,{SUFFIX} ou=b`" in one["fix"][0]["repair"]
    for code in ("LINK_FAILING", "APPLY_RETRY_LOOP"):
        said = [fix["repair"] for x in of(code, found["findings"]) for fix in x["fix"]]
        assert said and {*said} == {"do what CONTRADICTING_MOVES says"}, code
    said = "\n".join(plan(case).open)
    assert "No change waits for them alone" not in said
    assert "s (change refused, 1 (operations error)): LINK_FAILING" in said.replace("to-s1 ", "s ").replace(
        "to-s2 ", "s "
    )


def test_what_is_undone_already_is_not_asked_for_again(tmp_path: Path) -> None:
    (one,) = of("CONTRADICTING_MOVES", findings(tmp_path, apart(undone=True)))
    assert "on s2: `ldapmodrdn" in one["fix"][0]["repair"] and "on s1" not in one["fix"][0]["repair"]


def test_before_any_session_tried_it_is_said_already(tmp_path: Path) -> None:
    assert of("CONTRADICTING_MOVES", findings(tmp_path, apart(told=False)))


def test_moves_that_all_servers_have_are_settled(tmp_path: Path) -> None:
    assert not of("CONTRADICTING_MOVES", findings(tmp_path, apart(told=False, both=True)))


def test_when_both_are_undone_only_the_links_have_to_catch_up(tmp_path: Path) -> None:
    found = findings(tmp_path, apart(undone=True, later=rename("ou=b", SUFFIX)))
    (one,) = of("CONTRADICTING_MOVES", found)
    assert one["severity"] == "warning" and "ldapmodrdn" not in str(one["fix"])
    assert one["summary"].startswith(
        "two moves excluded each other, and both are moved back; the links have not caught up: s1 moved "
    )


def test_an_entry_that_was_only_renamed_since_is_still_below_the_other(tmp_path: Path) -> None:
    files = apart(then="newrdn: ou=n\ndeleteoldrdn: true\n", later=rename("ou=m", SUFFIX))
    (one,) = of("CONTRADICTING_MOVES", findings(tmp_path, files))
    assert one["severity"] == "error"
    assert f"on s1: `ldapmodrdn -H URL -D MANAGER -W -s {SUFFIX} ou=n,ou=b,{SUFFIX} ou=n`" in one["fix"][0]["repair"]
    assert "on s2" not in one["fix"][0]["repair"]


@pytest.mark.parametrize("most", [1, 1000])
def test_other_renames_are_not_read(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand renames and moves that all servers have, and one that waits later: none of them is looked at."""
    files = apart(told=False)
    names = [f"uid={number}" for number in range(500)]

    def numbered(second: int, at: int) -> str:
        """Several changes of s2 of one second."""
        return f"{csn(second, 2)[:8]}{at:04x}{csn(second, 2)[12:]}"

    more = "".join(
        logged(numbered(2, at), 10 + at, name, rename(name, f"ou=c,{SUFFIX}"), "modrdn")
        + logged(numbered(3, at), 10 + at, name, "newrdn: uid=x\n", "modrdn")
        for at, name in enumerate(names)
    )
    files["s2.changelog.ldif"] += more
    read: list[Any] = []
    monkeypatch.setattr(reading, "_MOST_MOVES", most)
    monkeypatch.setattr(reading, "move_of", lambda *given: read.append(given) or move_of(*given))
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(1, 10), r2=(1, 4))))
    assert of("CONTRADICTING_MOVES", findings(tmp_path, files))
    assert len(read) < 20
