"""To which server an agreement leads: the address that it has now counts, not what it remembers of an earlier consumer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from entry_samples import entry, mesh
from mesh_samples import agreement, case_of, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def diagnosed(tmp_path: Path, port: int, **claimed: tuple[int, int]) -> dict[str, Any]:
    """Of s1's two agreements s1-to-s2 has this port; it remembers replica ID 2 as its consumer."""
    files = mesh(claimed, {name: [entry("uid=one", 17)] for name in ("s1", "s2", "s3")}, {})
    remembered = [f"s1-to-s{n};localhost;{38900 + n};{n};{csn(1, 1)}" for n in (2, 3)]
    files["s1.replica.ldif"] = replica(1, elements(claims(**claimed)), sends_to=remembered)
    files["s1.agreements.ldif"] = agreement("s1-to-s2", port) + agreement("s1-to-s3", 38903)
    return diagnose(case_of(tmp_path, files))


def led(tmp_path: Path, port: int, **claimed: tuple[int, int]) -> dict[str, str | None]:
    """Where the agreements of s1 lead then."""
    found = diagnosed(tmp_path, port, **claimed)
    return {link["name"]: link["consumer"] for link in found["links"] if link["supplier"] == "s1"}


def test_an_agreement_leads_where_its_port_says(tmp_path: Path) -> None:
    three = {"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}
    assert led(tmp_path / "as named", 38902, **three) == {"s1-to-s2": "s2", "s1-to-s3": "s3"}
    assert led(tmp_path / "crossed", 38903, **three) == {"s1-to-s2": "s3", "s1-to-s3": "s3"}
    unknown = led(tmp_path / "unknown", 38950, **three)
    assert unknown == {"s1-to-s2": "s2", "s1-to-s3": "s3"}, "nobody is known to listen there: a new port of its own"


def test_two_agreements_to_one_server_are_named_with_the_server_that_one_led_to(tmp_path: Path) -> None:
    three = {"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}
    found = diagnosed(tmp_path / "crossed", 38903, **three)
    (one,) = (one for one in found["findings"] if one["code"] == "LINKS_TO_ONE_SERVER")
    assert (one["severity"], one["server"]) == ("warning", "s1")
    assert headline(found).startswith(
        "2 agreements of s1 lead to s3 (s1-to-s2 and s1-to-s3); s1-to-s2 led to s2 before; "
    )
    (fix,) = one["fix"]
    assert (
        "--suffix dc=example,dc=com --port 38902 s1-to-s2" in fix["repair"]
        and "s2 gets nothing from s1 itself" in fix["why"]
    )
    right = diagnosed(tmp_path / "as named", 38902, **three)
    assert not [one for one in right["findings"] if one["code"] == "LINKS_TO_ONE_SERVER"]


def test_two_agreements_to_one_address_are_named_although_nobody_knows_who_listens_there(tmp_path: Path) -> None:
    files = mesh({"r1": (1, 1)}, {"s1": [entry("uid=one", 17)]}, {})
    links = {name: agreement(name, 38902) for name in ("s1-to-s2", "s1-to-s2-again")}
    found = diagnose(case_of(tmp_path, files | {"s1.agreements.ldif": "".join(links.values())}))
    (one,) = (one for one in found["findings"] if one["code"] == "LINKS_TO_ONE_SERVER")
    assert one["summary"] == "2 agreements of s1 lead to localhost:38902: s1-to-s2 and s1-to-s2-again"


def test_an_origin_that_a_server_had_before_does_not_make_its_address_another_ones(tmp_path: Path) -> None:
    """s3 was replica ID 9 before: the vectors name both at its address."""
    three = {"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}
    files = mesh(three, {name: [entry("uid=one", 17)] for name in ("s1", "s2", "s3")}, {})
    earlier = f"nsds50ruv: {{replica 9 ldap://localhost.localdomain:38903}} {csn(1, 9)} {csn(1, 9)}\n"
    for name in ("s1", "s2", "s3"):
        files[f"{name}.replica.ldif"] = str(files[f"{name}.replica.ldif"]).rstrip("\n") + f"\n{earlier}\n"
    found = diagnose(case_of(tmp_path, files))
    assert {link["consumer"] for link in found["links"]} == {"s1", "s2", "s3"}
    assert found["not_collected"] == []


def test_a_server_that_stands_in_no_vector_is_known_by_the_port_of_its_own_configuration(tmp_path: Path) -> None:
    """A read-only consumer, whose errors log was emptied."""
    two = {"r1": (1, 1), "r2": (5, 5)}
    files = mesh(two, {name: [entry("uid=one", 17)] for name in ("s1", "s2")}, {})
    files["s1.agreements.ldif"] = str(files["s1.agreements.ldif"]) + agreement("s1-to-ro", 38977)
    files["ro.replica.ldif"] = replica(65535, elements(claims(**two)), flags=0)
    alone = diagnose(case_of(tmp_path / "without", files))
    assert {"s1-to-ro": None}.items() <= {link["name"]: link["consumer"] for link in alone["links"]}.items()
    files["ro.replica.ldif"] += (
        "dn: cn=config\ncn: config\nnsslapd-localhost: localhost.localdomain\nnsslapd-port: 38977\n\n"
    )
    found = diagnose(case_of(tmp_path / "with", files))
    assert {"s1-to-ro": "ro"}.items() <= {link["name"]: link["consumer"] for link in found["links"]}.items()


def elsewhere(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    three = {"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}
    files = mesh(three, {name: [entry("uid=one", 17)] for name in ("s1", "s2", "s3")}, {})
    files["s1.agreements.ldif"] = text
    found = diagnose(case_of(tmp_path, files))["findings"]
    return [one for one in found if one["code"] == "LINK_LEADS_ELSEWHERE"]


def test_an_agreement_that_names_a_server_and_leads_to_another_one_is_named(tmp_path: Path) -> None:
    """S14: the port of b-to-h was that of r; r was shown as the consumer of an ordinary link."""
    (one,) = elsewhere(tmp_path, agreement("s1-to-s2", 38903))
    assert one["severity"] == "warning" and one["root"]
    assert one["summary"].startswith("the agreement s1-to-s2 of s1 leads to s3, not to s2")
    assert "--suffix dc=example,dc=com --port 38902 s1-to-s2" in one["fix"][0]["repair"]


@pytest.mark.parametrize(
    "text",
    [
        agreement("s1-to-s2", 38902),
        agreement("to-the-north", 38903),
        agreement("s1-to-s20", 38903),
        agreement("s1-s2-s3", 38903),
        agreement("s1-to-s2", 38903, enabled=False),
        agreement("s1-to-s2", 38903) + agreement("other", 38902),
        agreement("s1-to-s2", 38903) + agreement("s1-to-s3", 38903),
    ],
    ids=["right", "no server", "another name", "both", "off", "another leads there", "two to one"],
)
def test_a_name_that_is_no_good_evidence_says_nothing(text: str, tmp_path: Path) -> None:
    assert not elsewhere(tmp_path, text)


@pytest.mark.parametrize(("name", "port"), [("s1-to-s2", 38903), ("s1-to-s3", 38903), ("to-the-north", 38903)])
def test_a_link_that_is_off_and_names_another_server_is_not_switched_on_as_it_is(
    name: str, port: int, tmp_path: Path
) -> None:
    """Seen on 3.1.2: the port was that of another server, and the plan switched the link on: that server was fed by it then."""
    three = {"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}
    files = mesh(three, {server: [entry("uid=one", 17)] for server in ("s1", "s2", "s3")}, {})
    files["s1.agreements.ldif"] = agreement(name, port, enabled=False)
    case = case_of(tmp_path, files)
    (off,) = (one for one in diagnose(case)["findings"] if one["code"] == "LINK_DISABLED")
    first, made = off["fix"][0]["repair"], plan(case)
    switched_on = [step for step in made.steps if "switch on" in step.says or "enable" in step.key]
    if name == "s1-to-s2":
        assert first == "see first where s1-to-s2 is to lead: correct its address, or rename it"
        assert "its name says s2, and its address is that of s3" in off["fix"][0]["why"]
        assert not switched_on
        assert any("the name of s1-to-s2 says s2" in course.refused for course in made.courses), made.courses
    else:
        assert first.startswith("switch it on") and switched_on
