"""Who replicates with whom, out of folders where the evidence is scarce, doubled, contradictory or old."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_samples import SNAPSHOTS
from mesh_samples import (
    GENERATION,
    SUFFIX,
    agreement,
    case_of,
    changelog,
    claims,
    csn,
    elements,
    pair_of_servers,
    replica,
)

from workbench import Case
from workbench.model import Problem
from workbench.topology.topology import Link, Replica, Topology, topology


def shown(tmp_path: Path, *snapshots: dict[str, str | bytes]) -> Topology:
    return topology(case_of(tmp_path, *snapshots))


def only(found: Topology, server: str) -> Replica:
    (one,) = [one for one in found.replicas if one.server == server]
    return one


def link(found: Topology, name: str) -> Link:
    (one,) = [one for one in found.links if one.name == name]
    return one


def spans(one: Replica) -> dict[str, tuple[str | None, str | None]]:
    return {origin: (span.min, span.max) for origin, span in one.vector.items()}


def test_a_case_without_evidence_has_no_topology(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    with pytest.raises(Problem, match="holds no evidence"):
        topology(case)


def test_the_last_snapshot_counts_and_an_earlier_one_can_be_named(case: Case) -> None:
    now, before = topology(case), topology(case, SNAPSHOTS[0].name)
    assert (before.snapshot, now.snapshot) == tuple(folder.name for folder in SNAPSHOTS)
    for found in (before, now):
        assert [(one.server, one.origin, one.suffix) for one in found.replicas] == [
            ("s1", "1", "dc=example,dc=com"),
            ("s2", "2", "dc=example,dc=com"),
            ("s3", "3", "dc=example,dc=com"),
        ]
        ends = {(pair[0].server, pair[1].server): pair[2].name if pair[2] else None for pair in found.pairs()}
        servers = ("s1", "s2", "s3")
        assert ends == {(one, other): f"{one}-to-{other}" for one in servers for other in servers if one != other}
    assert only(before, "s3").evidence == ("changelog", "vector")
    assert only(now, "s3").evidence == (
        "access_log", "changelog", "entry_state", "errors_log", "snapshot", "vector",
    )  # fmt: skip


def test_a_suffix_is_a_replica(tmp_path: Path) -> None:
    other = "o=other"
    files = pair_of_servers()
    files["s1.replica.ldif"] += replica(11, elements(claims(r11=(0, 5))), suffix=other)
    files["s2.replica.ldif"] += replica(12, elements(claims(r11=(0, 3))), suffix=other)
    files["s1.other.changelog.ldif"] = changelog([csn(second, 11) for second in range(6)], suffix=other)
    files["s1.access.log"] = (
        "[20/Nov/2026:14:00:00.000000001 +0000] conn=7 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1 "
        f"csn={csn(1, 2)}\n"
    )
    found = shown(tmp_path, files)
    assert [(one.suffix, one.server, one.origin) for one in found.replicas] == [
        (SUFFIX, "s1", "1"),
        (SUFFIX, "s2", "2"),
        (other, "s1", "11"),
        (other, "s2", "12"),
    ]
    assert [one.log and one.log.file for one in found.replicas] == [
        "s1.changelog.ldif", "s2.changelog.ldif", "s1.other.changelog.ldif", None,
    ]  # fmt: skip
    assert [one.evidence for one in found.replicas if one.server == "s1"] == [("access_log", "changelog", "vector")] * 2
    assert {(a.server, b.server, a.suffix) for a, b, _ in found.pairs()} == {
        (one, two, suffix) for one, two in (("s1", "s2"), ("s2", "s1")) for suffix in (SUFFIX, other)
    }


def test_of_several_logs_the_one_that_claims_most_is_the_present_one(tmp_path: Path) -> None:
    early, late = [csn(second, 1) for second in range(8)], [csn(second, 1) for second in (5, 6)]
    claimed = {high: [f"{{replica 1}} {csn(0, 1)} {csn(high, 1)}"] for high in (7, 9)}
    files = {
        **pair_of_servers(),
        "s1.changelog.ldif": changelog(late, last=claimed[9]),
        "s1.a.changelog.ldif": changelog(early, last=claimed[7]),
        "s1.z.changelog.ldif": changelog(early, last=claimed[7]),
    }
    one = only(shown(tmp_path, files), "s1")
    assert one.log
    assert one.log.file == "s1.changelog.ldif"
    assert "changelog_earlier" in one.evidence


def test_of_several_logs_without_claims_the_one_that_goes_furthest_is_the_present_one(tmp_path: Path) -> None:
    files = {
        **pair_of_servers(),
        "s1.changelog.ldif": changelog([csn(9, 1)]),
        "s1.a.changelog.ldif": changelog([csn(second, 1) for second in range(9)]),
    }
    one = only(shown(tmp_path, files), "s1")
    assert one.log
    assert one.log.file == "s1.changelog.ldif"


def test_how_far_a_log_was_trimmed_is_known_only_where_it_says_so(tmp_path: Path) -> None:
    trimmed = [
        f"{{replicageneration}} {GENERATION}",
        f"{{replica 1 ldap://x:1}} {csn(0, 1)} {csn(3, 1)} 00000000",
        "{replica 2 ldap://x:1}",
    ]
    files = pair_of_servers()
    files["s1.changelog.ldif"] = changelog([csn(9, 1)], purge=trimmed)
    files["s2.changelog.ldif"] = changelog([csn(4, 1)], purge=trimmed[:1])
    files["s3.changelog.ldif"] = changelog([csn(4, 1)])
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(0, 4))))
    found = shown(tmp_path, files)
    assert only(found, "s1").purged == {"1": csn(3, 1), "2": None}
    assert only(found, "s2").purged == {}
    assert only(found, "s3").purged is None


def test_get_ruv_alone_shows_no_generation(tmp_path: Path) -> None:
    found = shown(tmp_path, {"s1.get-ruv.txt": "\n".join(elements(claims(r1=(0, 9)), None)) + "\n"})
    (one,) = found.replicas
    assert (one.server, one.suffix, one.generation, one.claims) == ("s1", None, None, True)
    assert spans(one) == {"1": (csn(0, 1), csn(9, 1))}


def test_a_remembered_generation_is_that_of_the_other_server(tmp_path: Path) -> None:
    files = pair_of_servers()
    files["s1.get-ruv.txt"] = "\n".join(elements(claims(r1=(0, 9)), None)) + "\n"
    del files["s1.replica.ldif"], files["s1.changelog.ldif"]
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, remembered=elements(claims(r1=(0, 4)), csn(7, 2)))
    found = shown(tmp_path, files)
    assert only(found, "s1").generation is None
    remembered = link(found, "to-s2").remembered
    assert remembered
    assert remembered["1"].max == csn(4, 1)


def test_a_vector_that_was_never_filled_is_a_vector(tmp_path: Path) -> None:
    files = pair_of_servers()
    files["s2.replica.ldif"] = replica(2, elements({}))
    found = shown(tmp_path, files)
    assert only(found, "s2").claims
    assert not only(found, "s2").vector
    assert len(list(found.pairs())) == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{replica 1 ldap://x:1} " + csn(0, 1), {}),  # one CSN only: the server would not take it
        ("{replica 1 ldap://x:1}", {"1": (None, None)}),
        ("{replica 0001 ldap://x:1} " + csn(0, 1).upper() + " " + csn(9, 1).upper(), {"1": (csn(0, 1), csn(9, 1))}),
        ("{replica 1 ldap://x:1} 81000000000000010000 ffffffff000a00010003",
         {"1": ("81000000000000010000", "ffffffff000a00010003")}),
    ],
)  # fmt: skip
def test_elements_as_the_server_takes_them(value: str, expected: dict, tmp_path: Path) -> None:
    found = shown(tmp_path, {"s1.replica.ldif": replica("0001", [f"{{replicageneration}} {GENERATION}", value])})
    assert spans(only(found, "s1")) == expected
    assert only(found, "s1").origin == "1"


def test_the_highest_claim_of_a_snapshot_counts_but_not_that_of_an_export(tmp_path: Path) -> None:
    files = pair_of_servers(ahead=9, behind=4)
    files["s2.get-ruv.txt"] = "\n".join(elements(claims(r1=(0, 6), r2=(1, 1)), None)) + "\n"
    ruv = "".join(f"nsds50ruv: {value}\n" for value in elements(claims(r1=(0, 9), r2=(1, 2))))
    files["s2.export.ldif"] = (
        f"dn: {SUFFIX}\nobjectClass: top\nnsUniqueId: 1-1-1-1\nentryid: 1\n\n"
        f"dn: nsuniqueid=ffffffff-ffffffff-ffffffff-ffffffff,{SUFFIX}\nobjectClass: nsTombstone\n{ruv}entryid: 2\n\n"
    )
    found = shown(tmp_path, files)
    assert "entry_state" in only(found, "s2").evidence
    assert spans(only(found, "s2")) == {"1": (csn(0, 1), csn(6, 1)), "2": (csn(1, 2), csn(2, 2))}
    del files["s2.replica.ldif"], files["s2.get-ruv.txt"]
    alone = only(shown(tmp_path / "alone", files), "s2")
    assert spans(alone)["1"] == (csn(0, 1), csn(9, 1))


def test_which_servers_keep_no_log(tmp_path: Path) -> None:
    files = pair_of_servers()
    del files["s2.changelog.ldif"]
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4))), flags=0)
    found = shown(tmp_path, files)
    assert [(one.server, one.origin, one.keeps_log, one.log is None) for one in found.replicas] == [
        ("c1", None, False, True), ("s1", "1", True, False), ("s2", "2", True, True),
    ]  # fmt: skip


def test_a_log_alone_makes_its_server_known(tmp_path: Path) -> None:
    line = f"[20/Nov/2026:14:00:00.000000001 +0000] conn=7 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(1, 2)}\n"
    found = shown(tmp_path, {"s1.access.log": line, "s2.access.log": line})
    assert [(one.server, one.suffix, one.evidence, one.claims) for one in found.replicas] == [
        ("s1", None, ("access_log",), False), ("s2", None, ("access_log",), False),
    ]  # fmt: skip
    assert not list(found.pairs())


# --- links


def three(*links: str, sends_to: tuple[str, ...] = (), port: int = 38900) -> dict[str, str]:
    """s1 with these agreements, and s2; of a third server only the vectors know."""
    ruv = elements(claims(r1=(0, 4), r2=(1, 2), r3=(1, 2)), port=port)
    files = {"s1.replica.ldif": replica(1, ruv, sends_to=sends_to), "s2.replica.ldif": replica("02", ruv)}
    return {**files, "s1.agreements.ldif": "".join(links)} if links else files


@pytest.mark.parametrize(
    ("links", "sends_to", "consumer"),
    [
        ([agreement("x", 38902, host="LOCALHOST.localdomain")], (), "s2"),  # its address
        ([agreement("x", 38902, host="10.0.0.2")], (), "s2"),  # its port, which no other server has
        ([agreement("x", 38903)], (), None),  # the address of a server that was not collected
        ([agreement("x", 38902)], ("x;localhost;38902;0003;" + csn(1, 1),), "s2"),  # 3 is nobody here: the port
        ([agreement("x", 636, host="far")], ("x;far;636;2;" + csn(1, 1),), "s2"),  # its replica ID
        ([], ("x;far;636;0002;" + csn(1, 1),), "s2"),
        ([agreement("x", 38902)], ("x;localhost;38902;unavailable",), "s2"),
        ([agreement("x", 636, host="far")], (), None),
        ([agreement("x", 38901)], (), None),  # its own address
    ],
)
def test_a_link_leads_to_the_server_that_its_origin_address_or_port_names(
    links: list[str], sends_to: tuple[str, ...], consumer: str | None, tmp_path: Path
) -> None:
    assert link(shown(tmp_path, three(*links, sends_to=sends_to)), "x").consumer == consumer


def test_a_deleted_link_for_which_the_server_still_counts_is_none(tmp_path: Path) -> None:
    counts = tuple(f"{name};localhost;38902;0002;{csn(1, 1)}" for name in ("x", "gone"))
    assert [one.name for one in shown(tmp_path, three(agreement("x", 38902), sends_to=counts)).links] == ["x"]
    files = {**three(sends_to=counts), "s1.agreements.ldif": ""}
    assert shown(tmp_path / "none", files).links == []


def test_an_agreement_says_where_it_leads_whatever_is_remembered_of_it(tmp_path: Path) -> None:
    """Moved while it was off, it goes on being counted under its old address."""
    files = three(agreement("x", 38902, host="new.test"), sends_to=("x;old.test;38902;2;" + csn(1, 1),))
    assert link(shown(tmp_path, files), "x").address == "new.test:38902"


def test_one_port_on_many_hosts_names_nobody(tmp_path: Path) -> None:
    same = [f"{{replica {rid} ldap://s{rid}.example.com:389}} {csn(1, rid)} {csn(2, rid)}" for rid in (1, 2, 3)]
    files = {
        "s1.replica.ldif": replica(1, same),
        "s1.agreements.ldif": agreement("a", 389, host="s3.example.com") + agreement("b", 389, host="S2.Example.com"),
        "s2.replica.ldif": replica(2, same),
    }
    found = shown(tmp_path, files)
    assert (link(found, "a").consumer, link(found, "b").consumer) == (None, "s2")


@pytest.mark.parametrize(
    ("host", "known", "consumer"),
    [
        ("far.example.com", "near.example.com", None),  # two machines that listen on one port
        ("NEAR.example.com", "near.example.com", "s2"),
        ("near", "near.example.com", "s2"),  # a container is called by another name from within
        ("far.example.com", "3f2a1b9c", "s2"),
        ("far.example.com", "localhost.localdomain", "s2"),
        ("localhost", "near.example.com", "s2"),
        ("10.0.0.2", "near.example.com", "s2"),
        ("far.example.com", "10.0.0.2", "s2"),
    ],
)
def test_a_port_names_nobody_where_full_names_differ(
    host: str, known: str, consumer: str | None, tmp_path: Path
) -> None:
    ruv = [f"{{replica {rid} ldap://{known}:{38900 + rid}}} {csn(1, rid)} {csn(2, rid)}" for rid in (1, 2)]
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.agreements.ldif": agreement("x", 38902, host=host),
        "s2.replica.ldif": replica(2, ruv),
    }
    assert link(shown(tmp_path, files), "x").consumer == consumer


def test_two_addresses_of_one_supplier_do_not_lead_to_one_server_by_its_port(tmp_path: Path) -> None:
    both = shown(tmp_path / "both", three(agreement("x", 38902, host="c1"), agreement("y", 38902, host="c2")))
    assert (link(both, "x").consumer, link(both, "y").consumer) == (None, None)
    one = shown(
        tmp_path / "one", three(agreement("x", 38902, host="localhost.localdomain"), agreement("y", 38902, host="c2"))
    )
    assert (link(one, "x").consumer, link(one, "y").consumer) == ("s2", None)


def test_one_origin_on_two_servers_names_neither(tmp_path: Path) -> None:
    files = three(agreement("x", 636, host="far"), sends_to=("x;far;636;2;" + csn(1, 1),))
    files["s9.replica.ldif"] = files["s2.replica.ldif"]
    assert link(shown(tmp_path, files), "x").consumer is None


def test_of_two_links_to_one_consumer_the_one_that_runs_counts(tmp_path: Path) -> None:
    links = [agreement("a", 38902, enabled=False), agreement("b", 38902), agreement("c", 38902)]
    found = shown(tmp_path, three(*links))
    assert [pair[2].name for pair in found.pairs() if pair[2]] == ["b"]


def test_a_persons_word_in_case_yaml_counts(tmp_path: Path) -> None:
    files = {
        **three(agreement("x", 636, host="far"), agreement("y", 38902)),
        "c9.replica.ldif": replica(65535, [], flags=0),
    }
    case = case_of(tmp_path, files)
    about = case.folder / "case.yaml"
    before = topology(case)
    assert (link(before, "x").consumer, link(before, "y").consumer) == (None, "s2")
    text = about.read_text().replace("address: far:636", "address: far:636\n  consumer: c9")
    text = text.replace("consumer: s2", "consumer: s7").replace("origin: '1'", "origin: '41'")
    about.write_text(text)
    after = topology(Case.open(case.folder))
    assert (link(after, "x").consumer, link(after, "y").consumer) == ("c9", "s7")
    assert (only(after, "s1").origin, only(after, "s2").origin) == ("41", "2")


def test_the_origin_that_the_collected_folder_names_counts(tmp_path: Path) -> None:
    case = case_of(tmp_path, three(agreement("x", 38902)))
    folder = Path(next(iter(case.snapshots.values())))
    (folder / "case.yaml").write_text("servers: [{name: s1, files: [s1.*], origin: '41'}]")
    case.load([folder])
    assert (only(topology(case), "s1").origin, only(topology(case), "s2").origin) == ("41", "2")
    assert [server["origin"] for server in case.about()["servers"]] == ["41", "2"]


def test_what_load_wrote_into_case_yaml_is_no_persons_word(tmp_path: Path) -> None:
    # s1 supplies one suffix and only receives the other: its one origin is not that of both.
    files = three(agreement("x", 38902))
    files["s1.replica.ldif"] += replica(65535, elements(claims(r11=(0, 4))), suffix="o=other", flags=0)
    found = shown(tmp_path, files)
    assert {one.suffix: one.origin for one in found.replicas if one.server == "s1"} == {SUFFIX: "1", "o=other": None}


def test_an_earlier_snapshot_knows_the_consumer_of_a_link(tmp_path: Path) -> None:
    hub = {"h1.replica.ldif": replica(65535, elements(claims(r1=(0, 4)))), **three(agreement("to-h1", 38905))}
    log = changelog(
        [csn(1, 1)], purge=[f"{{replicageneration}} {GENERATION}", "{replica 1 ldap://localhost.localdomain:38905}"]
    )
    assert link(shown(tmp_path / "alone", hub), "to-h1").consumer is None
    found = shown(tmp_path / "both", {**hub, "h1.changelog.ldif": log}, hub)
    assert found.snapshot == "2"
    assert link(found, "to-h1").consumer == "h1"
