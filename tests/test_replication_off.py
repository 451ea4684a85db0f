"""A server whose plug-in for replication is disabled: the root of what its links say; what `collect` reads tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, plain_line, stamp, status, with_status
from entry_samples import export
from link_samples import NO_CONNECTION, not_connected
from link_samples import told as told_by
from mesh_samples import agreement, case_of, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.pair_matrix_text import matrix_text
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan
from workbench.systems import system_named

NOT_UNDERSTOOD = status(
    4,
    "Replication error acquiring replica: Unable to parse the response to the startReplication extended operation. Replication "
    "is aborting. (decoding error)",
    "red",
    6,
    7,
)


def files(plugin: str = "") -> dict[str, Any]:
    """s2 lacks changes; the link to it fails as it does where nothing there knows the request."""
    found: dict[str, Any] = dict(pair_of_servers())
    found["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), NOT_UNDERSTOOD)
    found["s2.replica.ldif"] += plugin
    return found


def stopped(plugin: str) -> dict[str, Any]:
    """The same; s2 was started since: it shows no RUV of its own and no status, and its entries alone tell what it has."""
    found = files(plugin)
    shown = [line for line in found["s2.replica.ldif"].splitlines() if line.startswith("nsds50ruv: ")]
    found["s2.replica.ldif"] = "".join(
        f"{line}\n" for line in found["s2.replica.ldif"].splitlines() if not line.startswith("nsds50ruv: ")
    )
    found["s2.entries.ldif"] = export([line.removeprefix("nsds50ruv: ") for line in shown], [])
    return found


def plugin(name: str, switch: str) -> str:
    dn = f"cn={name} Replication Plugin,cn=plugins,cn=config"
    return f"dn: {dn}\ncn: {name}\nobjectClass: top\nnsslapd-pluginEnabled: {switch}\n\n"


@pytest.mark.parametrize("name", ["Multisupplier", "Multimaster"])
def test_it_is_the_first_thing_said_and_its_links_follow(name: str, tmp_path: Path) -> None:
    found = diagnose(case := case_of(tmp_path, stopped(plugin(name, "off"))))
    assert headline(found).startswith("Replication is switched off on s2; 5 changes have not arrived at s2: ")
    (one,) = of("REPLICATION_OFF", found["findings"])
    assert (one["severity"], one["server"]) == ("error", "s2")
    links = of("LINK_FAILING", found["findings"])
    assert {one["link"] for one in links} == {one["name"] for one in found["links"]}, (
        "those from it run no more than those to it"
    )
    for link in links:
        assert (link["follows_from"], link["reason"]) == ("REPLICATION_OFF", "replication_off")
        assert link["fix"][0]["repair"] == "do what REPLICATION_OFF says first"
    assert {(one["supplier"], one["consumer"]) for one in found["pairs"] if one["link_failing"]} == {
        ("s1", "s2"),
        ("s2", "s1"),
    }
    assert not any(row["suppliers"] or row["through"] for row in found["pending"])
    assert "LINK FAILS" in matrix_text(system_named("ds389"), found["pairs"])
    made = plan(case)
    assert made.steps == () and made.unmended
    said = plan_text(made)
    assert "on their way" not in said and "(replication off on s2)" in said


def test_a_plugin_that_still_runs_is_a_warning(tmp_path: Path) -> None:
    """What was switched off is in force from the next start on: s2 shows its RUV."""
    found = diagnose(case_of(tmp_path, files(plugin("Multisupplier", "off"))))
    (one,) = of("REPLICATION_OFF", found["findings"])
    assert (one["severity"], one.get("root")) == ("warning", "") and "still runs" in one["summary"]
    (link,) = of("LINK_FAILING", found["findings"])
    assert link["reason"] == "refused"


def test_a_link_that_is_disabled_does_not_help_either(tmp_path: Path) -> None:
    told = stopped(plugin("Multisupplier", "off"))
    told["s1.agreements.ldif"] = agreement("to-s2", 38902, enabled=False)
    made = plan(case_of(tmp_path, told))
    assert made.steps == ()


def test_a_consumer_that_is_not_reached_is_said_to_be(tmp_path: Path) -> None:
    told = stopped(plugin("Multisupplier", "off"))
    told["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), told_by(NO_CONNECTION))
    told["s1.errors.log"] = not_connected(9, "localhost:38902")
    found = diagnose(case_of(tmp_path, told))
    reasons = {one["name"]: one["failing"] for one in found["links"]}
    assert reasons == {"to-s2": "refused", "to-s1": "replication_off"}


def test_where_it_is_on_or_nobody_knows_nothing_is_said_but_what_to_look_at(tmp_path: Path) -> None:
    for number, more in enumerate(("", plugin("Multisupplier", "on"), plugin("Other", "off"))):
        found = diagnose(case_of(tmp_path / str(number), files(more)))
        assert not of("REPLICATION_OFF", found["findings"])
        (link,) = of("LINK_FAILING", found["findings"])
        assert link["fix"][0]["repair"].startswith("see whether replication is switched on at s2")


STARTS = "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"
NOT_SET_UP = "ERR - NSMMReplicationPlugin - replica_new - Unable to configure replica dc=example,dc=com: "


@pytest.mark.parametrize("again", [False, True])
def test_a_replica_that_was_not_set_up_at_the_last_start(again: bool, tmp_path: Path) -> None:
    """Lines of a real 2.3.1 server without the index of its unique IDs."""
    found: dict[str, Any] = dict(pair_of_servers())
    lines = [(10, STARTS), (13, NOT_SET_UP), *([(40, STARTS)] if again else [])]
    found["s2.errors.log"] = "".join(plain_line(second, text) for second, text in lines)
    told = diagnose(case_of(tmp_path, found))
    named = of("REPLICATION_OFF", told["findings"])
    assert [one["failing"] for one in told["links"]] == [None if again else "replication_off"] * 2
    assert [(one["server"], one["suffix"], one["severity"]) for one in named] == (
        [] if again else [("s2", "dc=example,dc=com", "error")]
    )
    assert headline(told).startswith("The replica of s2 was not set up at its start; ") is not again


NOT_SET_UP = (
    "ERR - NSMMReplicationPlugin - replica_new - Unable to configure replica dc=example,dc=com: Failed to create csn generator "
    r"for replica (cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config)"
)


@pytest.mark.parametrize("again", [False, True])
def test_a_server_with_another_replica_id_than_its_data_makes_no_changes_as_that(again: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: the ID of s2 was set to that of s1 in dse.ldif; set back, nothing is lost."""
    found: dict[str, Any] = dict(pair_of_servers())
    found["s2.replica.ldif"] = found["s2.replica.ldif"].replace("nsDS5ReplicaId: 2", "nsDS5ReplicaId: 1")
    starts = f"{stamp(20)} - INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up\n"
    mismatch = "ERR - _csngen_parse_state - Replica id mismatch; current id - 1, replica id in the state - 2"
    found["s2.errors.log"] = f"{starts}{stamp(21)} - {mismatch}\n{stamp(22)} - {NOT_SET_UP}\n"
    if again:  # started once more, without that line
        found["s2.errors.log"] += starts.replace(stamp(20), stamp(30))
    told = diagnose(case_of(tmp_path, found))
    codes = {finding["code"] for finding in told["findings"] if not finding["overruled_by"]}
    assert ("REPLICA_ID_CHANGED" in codes, "DUPLICATE_ORIGIN" in codes) == (not again, again)
    if not again:
        assert headline(told).startswith("The replica ID of s2 was changed from 2 to 1 in its configuration; ")
        assert {server["name"]: server["origin"] for server in told["servers"]} == {"s1": "1", "s2": "2"}
        (changed,) = of("REPLICA_ID_CHANGED", told["findings"])
        assert "set nsDS5ReplicaId of its replica back to 2 in dse.ldif" in changed["fix"][0]["repair"]
        (off,) = of("REPLICATION_OFF", told["findings"])
        assert off["fix"][0]["repair"] == "do what REPLICA_ID_CHANGED says"


def test_a_start_in_a_later_log_file_is_the_last_one(tmp_path: Path) -> None:
    found: dict[str, Any] = dict(pair_of_servers())
    found["s2.replica.ldif"] = found["s2.replica.ldif"].replace("nsDS5ReplicaId: 2", "nsDS5ReplicaId: 4")
    starts = "- INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"
    mismatch = "ERR - _csngen_parse_state - Replica id mismatch; current id - 4, replica id in the state - 2"
    found["s2.errors.log.20240324-102740"] = (
        f"{stamp(20)} {starts}\n{stamp(21)} - {mismatch}\n{stamp(22)} - {NOT_SET_UP}\n"
    )
    found["s2.errors.log"] = f"{stamp(40)} {starts}\n"
    told = diagnose(case_of(tmp_path, found))
    assert {server["name"]: server["origin"] for server in told["servers"]} == {"s1": "1", "s2": "4"}
    assert not of("REPLICA_ID_CHANGED", told["findings"])


def test_a_replica_that_was_set_up_anew_with_that_id_has_it(tmp_path: Path) -> None:
    """Its RUV names the new ID with its own address: replication was switched off and on, without a start."""
    found: dict[str, Any] = dict(pair_of_servers())
    own = "{replica 4 ldap://localhost.localdomain:38902}"
    found["s2.replica.ldif"] = found["s2.replica.ldif"].replace("nsDS5ReplicaId: 2", "nsDS5ReplicaId: 4").rstrip("\n")
    found["s2.replica.ldif"] += f"\nnsds50ruv: {own}\n\n"
    title = "\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost.localdomain:38902 (/etc/dirsrv/slapd-s2)\n\n"
    starts = f"{stamp(20)} - INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up\n"
    mismatch = "ERR - _csngen_parse_state - Replica id mismatch; current id - 4, replica id in the state - 2"
    found["s2.errors.log"] = f"{title}{starts}{stamp(21)} - {mismatch}\n{stamp(22)} - {NOT_SET_UP}\n"
    told = diagnose(case_of(tmp_path, found))
    assert {server["name"]: server["origin"] for server in told["servers"]} == {"s1": "1", "s2": "4"}
    assert not of("REPLICA_ID_CHANGED", told["findings"])
