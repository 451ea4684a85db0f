"""Agreements of one name in two suffixes: the lines of an errors log name no suffix."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, listening, of
from link_samples import BROKEN_OFF, FINE, NEVER_YET, NO_REPLICA, REFUSED_LOGIN, Files, line, mesh, refused_in_sessions

from workbench.safety import to_yaml
from workbench.systems.ds389.rules.link_reasons import cause_of

SKEWED = (
    "Unable to acquire replica: Excessive clock skew between the supplier and the consumer. Replication is aborting."
)
STOPPED = "Incremental update failed and requires administrator action"


def about(second: float, text: str, function: str) -> str:
    return line(second, f'ERR - NSMMReplicationPlugin - {function} - agmt="cn=to-s2" (localhost:38902): {text}')


def in_two_suffixes(first: Files, second: Files, log: str) -> Files:
    """The servers with these files of the one and of the other suffix, and one errors log of s1 for both."""
    files: Files = {"s1.errors.log": log}
    about = [{"name": "s1", "files": ["s1.errors.log"]}]
    for number, (suffix, mine) in enumerate((("dc=example,dc=com", first), ("o=two", second))):
        for name, text in mine.items():
            of = (
                str(text)
                .replace("dc=example,dc=com", suffix)
                .replace(r"dc\3Dexample\2Cdc\3Dcom", suffix.replace("=", r"\3D"))
            )
            files[f"{number}-{name}"] = of
            about.append({"name": name.partition(".")[0], "suffix": suffix, "files": [f"{number}-{name}"]})
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": about})}


@pytest.mark.parametrize("times", [1, 2])
def test_agreements_of_one_name_have_all_stopped_when_the_log_says_so_as_often(times: int, tmp_path: Path) -> None:
    """Seen on 3.1.2: "2 are on the way", over links that had stopped for a clock two days ahead."""
    log = (about(9, SKEWED, "acquire_replica") + about(9, STOPPED, "repl5_inc_run")) * times
    both = mesh(NEVER_YET, ended=None)
    found = of("LINK_FAILING", findings(tmp_path, in_two_suffixes(both, both, log)))
    assert {(one["suffix"], one["reason"]) for one in found} == (
        {("dc=example,dc=com", "clock_refused"), ("o=two", "clock_refused")} if times == 2 else set()
    )


@pytest.mark.parametrize("other", [FINE, REFUSED_LOGIN])
def test_what_a_line_says_is_of_the_agreement_whose_status_it_explains(other: str, tmp_path: Path) -> None:
    """Seen on 3.1.2: a consumer refused each change of one suffix, and the diagnosis was silent."""
    log = refused_in_sessions(20, 30)
    found = of(
        "LINK_FAILING",
        findings(tmp_path, in_two_suffixes(mesh(other), mesh(BROKEN_OFF, ended=None), log)),
    )
    told = {one["suffix"]: one["reason"] for one in found}
    assert told == {"o=two": "consumer_read_only"} | ({} if other == FINE else {"dc=example,dc=com": "bind_refused"})


def test_a_log_that_has_grown_is_read_on_where_it_ended_also_after_its_clock_was_set_back(tmp_path: Path) -> None:
    """Seen on 2.3.1: a link that ran again was told to fail, by lines of two days ahead that stood before its last start."""
    ahead = 2 * 86400
    failed = about(ahead, SKEWED, "acquire_replica") + about(ahead, STOPPED, "repl5_inc_run")
    started = line(20, "INFO - main - 389-Directory/2.3.1 B2024.056.0000 starting up")
    first, later = mesh(NEVER_YET, failed, ended=None), mesh(FINE, failed + started, ended=22)
    assert of("LINK_FAILING", findings(tmp_path / "one", first))
    assert not of("LINK_FAILING", findings(tmp_path / "two", first, later))


def test_a_consumer_that_has_another_suffix_alone_is_reached_for_the_wrong_one(tmp_path: Path) -> None:
    files = mesh(NO_REPLICA)
    for name in [name for name in files if name.startswith("s2.")]:
        files[name] = (
            str(files[name]).replace("dc=example,dc=com", "o=two").replace(r"dc\3Dexample\2Cdc\3Dcom", r"o\3Dtwo")
        )
    files |= listening("s2")
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert one["reason"] == "wrong_suffix" and "it has o=two" in one["summary"]


def test_a_consumer_without_data_is_told_as_not_initialised() -> None:
    cause = cause_of("Error (19) Replication error acquiring replica: replica is not initialized (not initialized)")
    assert cause is not None and (cause.reason, cause.code) == ("not_initialised", 19)


# --- the suffix that an agreement names is not the one below whose replica it stands


def _elsewhere(root: str, said: bool = True) -> Files:
    """The agreement of s1 names another suffix; s1 was started at 20 s, and says what it thinks of that."""
    files = mesh(NEVER_YET, ended=None)
    entry = str(files["s1.agreements.ldif"])
    files["s1.agreements.ldif"] = entry.replace("nsDS5ReplicaRoot: dc=example,dc=com", f"nsDS5ReplicaRoot: {root}")
    name = "cn=to-s2,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config"
    text = f"Failed to get replica for agreement {name} on replicated suffix {root})."
    files["s1.errors.log"] = line(20, f"ERR - NSMMReplicationPlugin - agmt_new_from_entry - {text}") * said
    files["s1.errors.log"] += line(21, "INFO - slapd_daemon - slapd started.  Listening on port 38901")
    return files


@pytest.mark.parametrize("said", [True, False])
def test_an_agreement_that_names_a_suffix_of_no_replica_is_passed_over(said: bool, tmp_path: Path) -> None:
    """Seen on 3.1.2 after a slip in dse.ldif: nothing was said of the link, and a change of the entry crashed the server."""
    found = findings(tmp_path, _elsewhere("dc=exampel,dc=com", said))
    (one,) = of("LINK_FAILING", found)
    assert (one["reason"], one["server"], one["link"]) == ("wrong_suffix", "s1", "to-s2")
    assert "names dc=exampel,dc=com as its suffix" in one["summary"] and "5 changes wait behind it" in one["summary"]
    assert ("as its errors log says" in one["summary"]) is said and bool(one.get("since")) is said
    assert one["fix"][0]["repair"].startswith(
        "stop s1, write `nsDS5ReplicaRoot: dc=example,dc=com` into the entry to-s2"
    )
    assert not any("exampel" in str(each["suffix"]) for each in found)


def test_the_suffix_of_an_agreement_may_be_spelled_otherwise(tmp_path: Path) -> None:
    assert not of("LINK_FAILING", findings(tmp_path, _elsewhere("DC=Example, DC=com", said=False)))
