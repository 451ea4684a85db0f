"""What a failing link is said to need, by what the consumer says of it in logs and in its configuration."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from detector_samples import of, zulu
from link_samples import MANAGER, NO_CONNECTION, REFUSED_LOGIN, bind_failed, failing, mesh, not_connected
from mesh_samples import case_of

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.rules.link_failures import NO_SUCH_REPLICA
from workbench.systems.ds389.repairs.sources import locked_login
from workbench.systems.ds389.rules.link_reasons import LOCKED
from workbench.systems.ds389.session_log.link_fixes import Agreement, fixes_of


@pytest.mark.parametrize(
    ("more", "reason", "short", "repair"),
    [
        (
            "Account inactivated. Contact system administrator.",
            "bind_refused",
            "the account is inactive",
            f"let {MANAGER} in again",
        ),
        ("Minimum SSF not met.", "tls", "connection too weak", "let the agreement encrypt its connection"),
        ("", "bind_refused", "login refused", "see that s2 has an entry for"),
    ],
)
def test_why_a_login_is_refused_with_53_only_the_log_tells(
    more: str, reason: str, short: str, repair: str, tmp_path: Path
) -> None:
    status = "Error (53) Problem connecting to replica - LDAP error: Server is unwilling to perform (connection error)"
    log = bind_failed(7, "53 (Server is unwilling to perform)", more) if more else ""
    case = case_of(tmp_path, mesh(status, log))
    (found,) = of("LINK_FAILING", diagnose(case)["findings"])
    assert found["reason"] == reason and found["fix"][0]["repair"].startswith(repair)
    assert f"the link to-s2 fails ({short})" in headline(diagnose(case))
    assert "nsslapd-minssf=0" in found["fix"][0]["repair"] or reason != "tls"


@pytest.mark.parametrize("guessed", [True, False])
def test_a_login_that_wrong_passwords_locked_gets_the_password_first(guessed: bool, tmp_path: Path) -> None:
    status = "Error (19) Problem connecting to replica - LDAP error: Constraint violation (connection error)"
    wrong = bind_failed(6, "49 (Invalid credentials)", "") if guessed else ""
    locked = bind_failed(8, "19 (Constraint violation)", "Exceed password retry limit. Please try later.")
    one = failing(tmp_path, mesh(status, wrong + locked))
    repairs = [fix["repair"] for fix in one["fix"]]
    assert ("before that it refused the password (49)" in one["summary"]) is guessed
    assert repairs[0].startswith("see that s2 has an entry for" if guessed else f"let {MANAGER} in again")
    assert repairs[-1].startswith("then start the agreement again")
    assert len(repairs) == (3 if guessed else 2)


def test_no_way_is_taken_over_another_agreement_with_a_login_that_is_locked() -> None:
    def link(supplier: str, short: str) -> Any:
        failure = SimpleNamespace(short=short) if short else None
        return SimpleNamespace(supplier=supplier, consumer="c", suffix="o=x", name=f"{supplier}-to-c", failure=failure)

    def view(short: str, login: str) -> Any:
        links = [link("a", short), link("b", "")]
        rows = {("a", "o=x", "a-to-c"): {"login": MANAGER}, ("b", "o=x", "b-to-c"): {"login": login}}
        topology = SimpleNamespace(links=links)
        return SimpleNamespace(context=SimpleNamespace(topology=topology, statuses=lambda: rows))

    told = locked_login(view(LOCKED, MANAGER), "c", MANAGER.upper())
    assert told.startswith(f"c refuses {MANAGER.upper()}, as a-to-c shows (the account is locked)")
    assert not locked_login(view(LOCKED, MANAGER), "d", MANAGER)
    assert not locked_login(view(LOCKED, MANAGER), "c", "cn=other,cn=config")
    assert not locked_login(view("invalid credentials", MANAGER), "c", MANAGER)
    assert not locked_login(view(LOCKED, MANAGER), "c", "")


def test_a_connection_that_encrypts_and_is_called_too_weak_gets_no_advice_to_encrypt(tmp_path: Path) -> None:
    status = "Error (53) Problem connecting to replica - LDAP error: Server is unwilling to perform (connection error)"
    log = bind_failed(7, "53 (Server is unwilling to perform)", "Minimum SSF not met.")
    one = failing(tmp_path, mesh(status, log, "nsDS5ReplicaTransportInfo: TLS\n"))
    assert one["reason"] == "tls" and "stronger encryption" in one["summary"]
    assert one["fix"][0]["repair"].startswith("let both ends enable a stronger cipher")
    assert "`dsconf INSTANCE config replace nsslapd-minssf=SSF`" in one["fix"][0]["repair"]
    assert "StartTLS" not in str(one["fix"])


def test_a_consumer_that_listens_elsewhere_alone_is_said_to(tmp_path: Path) -> None:
    files = mesh(NO_CONNECTION, not_connected(9, "localhost:38902"))
    assert "nsslapd-listenhost" not in failing(tmp_path / "everywhere", files)["summary"]
    where = "nothing listens at localhost:38902; s2 listens at 127.0.0.9 alone (nsslapd-listenhost)"
    for host, told in (("127.0.0.9", True), ("0.0.0.0", False), ("localhost", False)):
        more = f"dn: cn=config\ncn: config\nnsslapd-listenhost: {host}\n\n"
        one = failing(tmp_path / host, files | {"s2.replica.ldif": files["s2.replica.ldif"] + more})
        assert (where in one["summary"]) is told
        assert ("config delete nsslapd-listenhost" in one["fix"][0]["repair"]) is told


def test_what_starts_a_stopped_agreement_again_is_said_once() -> None:
    """The consumer replicates the suffix by now: to start the agreement again is all that its cause and its stop need."""
    (step,) = fixes_of(NO_SUCH_REPLICA, Agreement("to-s2", "s1", "s2", "dc=x", "s2:389", replicates=True, stopped=True))
    assert str(step["repair"]).startswith("start the agreement again")


def test_a_link_fails_since_it_filled_its_consumer_where_that_was_later_than_its_last_session(tmp_path: Path) -> None:
    """Seen on 3.1.2: the agreement ended a session, filled its consumer a minute later, and failed after that."""
    filled = f"nsds5replicaLastInitStart: {zulu(60)}\nnsds5replicaLastInitEnd: {zulu(66)}\n"
    filled += "nsds5replicaLastInitStatus: Error (0) Total update succeeded\n"
    one = failing(tmp_path, mesh(REFUSED_LOGIN, more=filled))
    assert (one["since"], "its last filling of the consumer ended" in one["summary"]) == (
        "2024-03-24T10:28:18+00:00",
        True,
    )
