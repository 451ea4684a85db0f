"""Certificates: read from the file that `collect` writes, judged, and said beside the status of a link that does not run."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from certificate_samples import Signed, block, certificate, kept_file, pem
from detector_samples import findings, of, stamp
from link_samples import FINE, NO_CONNECTION, REFUSED_LOGIN, Files, bind_failed, line, mesh, not_connected
from mesh_samples import case_of
from test_report import shown_in

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.intake.files import inspect_file
from workbench.model import Parsed, Piece, Source
from workbench.report.export import case_export
from workbench.report.markdown import markdown
from workbench.report.page import page
from workbench.report.report_pipeline import pseudonyms_of, redacted_report
from workbench.systems.ds389.formats.certificates import CERTIFICATES
from workbench.systems.ds389.live import certificates as live
from workbench.systems.ds389.live.instances import Instance
from workbench.systems.ds389.rules.certificates import (
    EXPIRED,
    NOT_YET,
    OTHER_HOST,
    UNTRUSTED,
    Certificate,
    faults,
    in_use,
)

NOW = datetime(2024, 3, 24, 10, 27, 20, tzinfo=UTC)
"""About when the servers of the mesh were read."""
DAY = timedelta(days=1)
LATER, EARLIER = NOW + 300 * DAY, NOW - 300 * DAY
HOST = "ldap2.example.com"


# --- the rules


def of_key(key: str, since: datetime = EARLIER, until: datetime = LATER, **more: Any) -> Certificate:
    return Certificate(key, key, f"CN={key}", "CN=x", since, until, **more)


def kinds(shown: Certificate, *rest: Any, **more: Any) -> list[tuple[str, str]]:
    return [(one.kind, one.certificate.key) for one in faults(shown, *rest, **more)]


@pytest.mark.parametrize(
    ("since", "until", "kind"),
    [
        (EARLIER, LATER, []),
        (EARLIER, NOW - DAY, [(EXPIRED, "leaf")]),
        (NOW + DAY, LATER, [(NOT_YET, "leaf")]),
        (EARLIER, NOW, []),
    ],
)
def test_when_a_certificate_is_valid(since: datetime, until: datetime, kind: list[tuple[str, str]]) -> None:
    ca = of_key("ca")
    assert kinds(of_key("leaf", since, until), [], [ca], {"leaf": ["ca"]}, NOW) == kind


def test_the_way_leads_over_what_the_server_sends_along_to_an_authority() -> None:
    leaf, middle, ca, other = (of_key(name) for name in ("leaf", "middle", "ca", "other"))
    signed = {"leaf": ["middle"], "middle": ["ca"], "ca": ["ca"], "other": ["other"]}
    assert kinds(leaf, [middle], [ca], signed, NOW) == []
    assert kinds(leaf, [middle], [other], signed, NOW) == [(UNTRUSTED, "leaf")]
    assert kinds(leaf, [], [ca], signed, NOW) == [(UNTRUSTED, "leaf")], "nobody has the one in the middle"
    assert kinds(leaf, [middle], [], signed, NOW) == [(UNTRUSTED, "leaf")]
    assert kinds(leaf, [middle], None, signed, NOW) == [], "whom the other server trusts is not known"
    assert kinds(leaf, [middle], [leaf], signed, NOW) == [], "it is trusted itself"
    assert kinds(leaf, [middle, ca], [middle], signed, NOW) == []


def test_an_authority_that_has_expired_counts_unless_there_is_another_way() -> None:
    leaf, old, renewed = of_key("leaf"), of_key("old", until=NOW - DAY), of_key("renewed")
    assert kinds(leaf, [], [old], {"leaf": ["old"]}, NOW) == [(EXPIRED, "old")]
    assert kinds(leaf, [], [old, renewed], {"leaf": ["old", "renewed"]}, NOW) == []
    gone = of_key("leaf", until=NOW - 2 * DAY)
    assert kinds(gone, [], [old], {"leaf": ["old"]}, NOW) == [(EXPIRED, "leaf"), (EXPIRED, "old")]
    middle = of_key("middle", NOW + DAY)
    assert kinds(leaf, [middle], [renewed], {"leaf": ["middle"], "middle": ["renewed"]}, NOW) == [(NOT_YET, "middle")]


@pytest.mark.parametrize(
    ("hosts", "host", "fits"),
    [
        (["ldap2.example.com"], HOST, True),
        (["LDAP2.Example.com"], HOST, True),
        (["ldap1.example.com", "ldap2.example.com"], HOST, True),
        (["*.example.com"], HOST, True),
        (["*.example.com"], "a.b.example.com", False),
        (["*.example.com"], "example.com", False),
        (["ldap1.example.com"], HOST, False),
        (["ldap2"], HOST, False),
        (["192.0.2.7"], "192.0.2.7", True),
        (["2001:db8::1"], "[2001:DB8:0::1]", True),
        (["192.0.2.7"], "192.0.2.8", False),
        ([], HOST, True),
        (["ldap1.example.com"], None, True),
    ],
)
def test_which_host_a_certificate_is_for(hosts: list[str], host: str | None, fits: bool) -> None:
    leaf = of_key("leaf", hosts=tuple(hosts))
    assert kinds(leaf, [], None, {}, NOW, host) == ([] if fits else [(OTHER_HOST, "leaf")])


def test_of_one_nickname_the_newest_that_is_valid_is_in_use() -> None:
    def named(key: str, name: str, since: datetime, until: datetime) -> Certificate:
        return Certificate(key, name, "", "", since, until)

    old = named("old", "Server-Cert", EARLIER, NOW - DAY)
    new = named("new", "Server-Cert", NOW - 2 * DAY, LATER)
    future = named("future", "Server-Cert", NOW + DAY, LATER)
    elliptic = named("ec", "EC-Cert", EARLIER, NOW - DAY)
    for order in ([old, new, future, elliptic], [elliptic, future, new, old]):
        assert {one.key for one in in_use(order, NOW)} == {"new", "ec"}


def test_whom_trust_flags_make_an_authority() -> None:
    for flags, servers, clients in (
        ("CT,,", True, True), ("C,C,C", True, False), ("T,,", True, True), ("c,,", True, False), ("u,u,u", False, False),
        (",C,C", False, False), ("", False, False), ("P,,", False, False),
    ):  # fmt: skip
        one = of_key("ca", trust=flags)
        assert (one.trusted, one.trusted_for_clients) == (servers, clients), flags


# --- the file


def read(data: bytes) -> Parsed:
    return CERTIFICATES.reader()(Piece(Source("s1.certificates.pem", "", "s1"), data, 0, True))


def test_a_file_is_read_and_every_block_is_accounted_for(tmp_path: Path) -> None:
    ca = certificate("The CA", authority=True)
    mine = certificate("s1", ca, hosts=["ldap1.example.com", "192.0.2.7"], since=NOW, until=LATER)
    text = kept_file(
        [("Server-Cert", "u,u,u", mine), ("The CA", "CT,,", ca)], "Server-Cert", at="LOCALHOST.localdomain:36362"
    )
    path = tmp_path / "s1.certificates.pem"
    path.write_text(text)
    seen = inspect_file(path)
    assert (seen["format"], seen["rows"], seen["accepted"], seen["rejects"]) == ("ds389.certificates", 3, 3, [])
    assert seen["detail"] == {
        "certificates": 2,
        "checks_certificates": {"on": 1},
        "addresses": {"localhost.localdomain:36362": 1},
    }
    first, second = read(text.encode()).tables["certificates"].to_pylist()
    assert (first["nickname"], first["trust"], first["in_use"]) == ("Server-Cert", "u,u,u", True)
    assert (first["subject"], first["issuer"]) == ("CN=s1", "CN=The CA")
    assert (first["not_before"], first["not_after"]) == (NOW, LATER)
    assert first["hosts"] == "s1 ldap1.example.com 192.0.2.7"
    assert (second["nickname"], second["in_use"], second["hosts"]) == ("The CA", False, None)
    assert text.encode()[first["offset"] :].startswith(b"# nickname: Server-Cert")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda one: one.replace("\n-----END", "!\n-----END"), "something else in it"),
        (lambda one: one[: len(one) // 2], "the file ends within this block"),
        (lambda one: one.replace("MII", "MIJ", 1), "cannot be read"),
        (lambda one: one.replace("CERTIFICATE", "PRIVATE KEY"), "no certificate"),
        (lambda one: one.replace("# nickname: a\n", ""), "without a nickname"),
        (lambda one: one.replace("-----BEGIN", "A" * 70_000 + "\n-----BEGIN"), "longer than 64 KiB"),
        (lambda one: one.replace("# trust", "# \udcff"), "not UTF-8"),
        (lambda one: one.split("MII")[0] + "QUJD\n-----END CERTIFICATE-----\n\n", "cannot be read"),
        (lambda one: one.split("MII")[0] + "QUJDR\n-----END CERTIFICATE-----\n\n", "not base64"),
    ],
)
def test_a_damaged_block_is_a_reject_with_its_place_and_nothing_of_it_is_shown(make: Any, reason: str) -> None:
    head, good = "# certificates of a\n\n", block("b", "CT,,", certificate("b", authority=True))
    text = head + good + make(block("a", "u,u,u", certificate("a")))
    parsed = read(text.encode("utf-8", "surrogateescape"))
    (reject,) = parsed.rejects
    assert (parsed.rows, reject.offset, reject.excerpt) == (3, len(head + good), "")
    assert reason in reject.reason
    assert parsed.tables["certificates"]["nickname"].to_pylist() == ["b"]


def test_a_certificate_cut_anywhere_is_never_half_a_row() -> None:
    whole = (kept_file([("a", "u,u,u", certificate("a", hosts=["a.example.com"]))], "a")).encode()
    for at in range(0, len(whole) - 2, 7):
        parsed = read(whole[:at])
        rows = parsed.tables["certificates"].num_rows if "certificates" in parsed.tables else 0
        assert rows == 0 or whole[:at].rstrip().endswith(b"-----END CERTIFICATE-----")


def test_names_in_certificates_are_harmless() -> None:
    evil = certificate("\x1b[31mred\u202e", hosts=["a\tb.example.com"])
    (row,) = read(kept_file([("n\x1b[0m", "u,u,u", evil)], "").encode()).tables["certificates"].to_pylist()
    assert not set("\x1b\u202e\t") & set("".join(str(row[key]) for key in ("nickname", "subject", "issuer", "hosts")))


# --- what certutil prints


def with_certutil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Instance:
    """An instance with a database, and a certutil that does this."""
    folder = tmp_path / "etc/dirsrv/slapd-s1"
    folder.mkdir(parents=True)
    (folder / "cert9.db").touch()
    program = tmp_path / "bin/certutil"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return Instance("s1", None, None, None, None, None, None, folder / "dse.ldif", certificates=("Server-Cert",))


LISTING = """
Certificate Nickname                                         Trust Attributes
                                                             SSL,S/MIME,JAR/XPI

An authority, with  blanks                                   CT,,
Server-Cert                                                  u,u,u
"""


def test_what_certutil_lists_is_kept_the_own_one_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca = certificate("An authority", authority=True)
    (tmp_path / "own").write_text(
        pem(certificate("s1", ca)) + "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n"
    )
    (tmp_path / "ca").write_text(pem(ca) + pem(certificate("An authority", authority=True)))
    (tmp_path / "listing").write_text(LISTING)
    script = (
        f'case "$*" in *Server-Cert) cat {tmp_path}/own;; *blanks) cat {tmp_path}/ca;; *) cat {tmp_path}/listing;; esac'
    )
    text = live.certificates_of(with_certutil(tmp_path, monkeypatch, script))
    assert text is not None and "PRIVATE" not in text
    rows = read(text.encode()).tables["certificates"].to_pylist()
    shown = [(row["nickname"], row["trust"], row["in_use"], row["subject"]) for row in rows]
    assert shown == [
        ("Server-Cert", "u,u,u", True, "CN=s1"),
        *[("An authority, with  blanks", "CT,,", False, "CN=An authority")] * 2,
    ]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 3", "certutil ended with 3"),
        ("echo 'SEC_ERROR_OLD:\n old database.' >&2; exit 3", "certutil ended with 3, SEC_ERROR_OLD: old database."),
        ("sleep 60; sleep 60", "did not end within"),
        ("yes", "printed more than 4 MiB"),
    ],
)
def test_a_certutil_that_fails_or_hangs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    monkeypatch.setattr(live, "_SECONDS", 0.5)
    with pytest.raises(live.Problem, match=says):
        live.certificates_of(with_certutil(tmp_path, monkeypatch, script))


def test_certutil_gets_nothing_of_our_environment_and_is_not_run_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_PASSWORD", "canary")
    one, folder = with_certutil(tmp_path, monkeypatch, "env"), tmp_path / "etc/dirsrv/slapd-s1"
    said = live._asked(one, folder, time.monotonic() + 9, "-L")
    assert "canary" not in said and "LC_ALL=C" in said
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert live._owner(folder) == {}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    about = folder.stat()
    assert live._owner(folder) == {"user": about.st_uid, "group": about.st_gid, "extra_groups": []}


def test_without_certutil_or_without_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = with_certutil(tmp_path, monkeypatch, "exit 0")
    (tmp_path / "bin/certutil").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(live.Problem, match=r"there is no certutil.*libnss3-tools"):
        live.certificates_of(one)
    (tmp_path / "etc/dirsrv/slapd-s1/cert9.db").unlink()
    assert live.certificates_of(one) is None


# --- the finding

LDAPS = "nsDS5ReplicaTransportInfo: LDAPS\n"
BY_CERTIFICATE = f"{LDAPS}nsDS5ReplicaBindMethod: SSLCLIENTAUTH\n"


def encrypted(more: str = LDAPS, sentence: str = NO_CONNECTION) -> Files:
    """s1 reaches s2 and no encrypted connection comes about."""
    network = "11 (Resource temporarily unavailable"
    return mesh(sentence, not_connected(9, f"{HOST}:38902", network), more, host=HOST)


def told(
    tmp_path: Path, own: Iterable[Signed], trusted: Iterable[Signed], files: Files | None = None, **about: Any
) -> dict[str, Any]:
    """The finding about the link of s1 to s2, which shows `own` certificates, where s1 has these authorities."""
    (found,) = of("LINK_FAILING", findings(tmp_path, {
        **(files or encrypted()),
        "s1.certificates.pem": kept_file([(f"ca{at}", "CT,,", one) for at, one in enumerate(trusted)], **about),
        "s2.certificates.pem": kept_file([("Server-Cert", "u,u,u", one) for one in own], "Server-Cert"),
    }))  # fmt: skip
    return found


CA = certificate("The CA", authority=True, since=EARLIER, until=LATER)
WITHIN = {"since": EARLIER, "until": LATER, "hosts": [HOST]}
PLAIN = "accepts connections, and no encrypted connection comes about: -1"


def test_an_expired_certificate_is_named_in_the_first_line(tmp_path: Path) -> None:
    old = certificate("s2", CA, since=EARLIER, until=NOW - DAY, hosts=[HOST])
    found = told(tmp_path, [old], [CA])
    assert found["reason"] == "tls" and PLAIN in found["summary"]
    assert "; the certificate of s2 (Server-Cert) expired at 2024-03-23 10:27 UTC; since" in found["summary"]
    row = found["evidence"][-1]
    assert (row["file"], row["nickname"], row["subject"], row["issuer"]) == (
        "s2.certificates.pem", "Server-Cert", "CN=s2", "CN=The CA",
    )  # fmt: skip
    assert row["not_after"] == "2024-03-23T10:27:20+00:00"
    first, last = found["fix"]
    assert "on s2: `dsctl INSTANCE tls generate-server-cert-csr`" in first["repair"]
    assert "`dsctl INSTANCE tls import-server-cert CERTIFICATE.pem`, then restart s2" in first["repair"]
    assert "repl-agmt poke" in last["repair"]
    case = case_of(
        tmp_path / "again",
        {**encrypted(), "s2.certificates.pem": kept_file([("Server-Cert", "u,u,u", old)], "Server-Cert")},
    )
    assert "(TLS fails, the certificate of s2 expired at 2024-03-23 10:27 UTC)" in headline(diagnose(case))


VERIFIED = "WARN - Security Initialization - SSL alert: CERT_VerifyCertificateNow: verify certificate failed for cert Server-Cert"
FAMILY = "of family cn=RSA,cn=encryption,cn=config (Netscape Portable Runtime error"
SAID = f"{VERIFIED} {FAMILY} -8181 - Peer's Certificate has expired.)"
ISSUER = f"{VERIFIED} {FAMILY} -8179 - Peer's Certificate issuer is not recognized.)"
UP = "INFO - main - 389-Directory/3.1.2 B2026.125.0709 starting up"


@pytest.mark.parametrize(
    ("lines", "names"),
    [((SAID, UP), True), ((SAID, UP, UP), False), ((UP, SAID, UP), True), ((ISSUER, UP), False)],
    ids=["at its start", "at the start before", "only at the last start", "an authority of its own"],
)
def test_a_server_says_of_its_own_certificate_that_it_has_expired(
    lines: tuple[str, ...], names: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2, where no certificate was collected: only the log of the consumer had the word."""
    log = "".join(line(3 + second, text) for second, text in enumerate(lines))
    (one,) = of("LINK_FAILING", findings(tmp_path, {**encrypted(), "s2.errors.log": log}))
    assert one["reason"] == "tls" and ("Peer's Certificate has expired" in one["summary"]) is names
    assert ("dsctl INSTANCE tls import-server-cert" in one["fix"][0]["repair"]) is names


def test_each_cause_is_said_and_all_of_them(tmp_path: Path) -> None:
    other = certificate("Another CA", authority=True, since=EARLIER, until=LATER)
    twin = certificate("The CA", authority=True, since=EARLIER, until=LATER)
    gone = certificate("Old CA", authority=True, since=EARLIER, until=NOW - DAY)
    for number, (own, trusted, says) in enumerate([
        (certificate("s2", CA, **{**WITHIN, "since": NOW + DAY}), [CA], ["is not valid before 2024-03-25 10:27 UTC"]),
        (certificate("s2", CA, **WITHIN), [other],
         ["(Server-Cert) is signed by CN=The CA, which s1 does not trust (it trusts CN=Another CA)"]),
        (certificate("s2", CA, **WITHIN), [], ["is signed by CN=The CA, which s1 does not trust (it trusts none)"]),
        (certificate("s2", **WITHIN), [CA], ["is signed by itself, which s1 does not trust (it trusts CN=The CA)"]),
        (certificate("s2", CA, **WITHIN), [twin],
         ["is not signed by the CN=The CA that s1 trusts, but by another one of that name"]),
        (certificate("s2", gone, **WITHIN), [gone],
         ["the authority CN=Old CA above the certificate of s2 (Server-Cert) expired at 2024-03-23 10:27 UTC"]),
        (certificate("s2", CA, **{**WITHIN, "hosts": ["ldap3.example.com"]}), [CA],
         [f"is for s2, ldap3.example.com, not for {HOST}, the host of the agreement"]),
        (certificate("s2", CA, **{**WITHIN, "until": NOW - DAY, "hosts": ["ldap3.example.com"]}), [other],
         ["expired at", "which s1 does not trust", "the host of the agreement"]),
    ]):  # fmt: skip
        found = told(tmp_path / str(number), [own], trusted)
        for one in says:
            assert one in found["summary"], found["summary"]
        assert len(found["fix"]) == len(says) + 1


@pytest.mark.parametrize("words, short, do", [
    ("certificate has expired", "certificate expired", "see which has expired, the certificate of s2"),
    ("certificate is not yet valid", "certificate not yet valid", "compare the clocks of s1 and s2"),
    ("self-signed certificate in certificate chain", "certificate not trusted", "see who signed the certificate of s2"),
    ("Hostname mismatch", "certificate of another host", "give s2 a certificate that is for the host"),
    ("certificate revoked", "TLS fails", "compare the certificate of s2"),
])  # fmt: skip
def test_the_log_alone_tells_why_a_certificate_was_rejected(words: str, short: str, do: str, tmp_path: Path) -> None:
    files = encrypted()
    files["s1.errors.log"] += rejected(words)
    found = diagnose(case_of(tmp_path, files))
    (one,) = of("LINK_FAILING", found["findings"])
    assert f"errors log says why: certificate verify failed, {words.lower()}" in one["summary"]
    assert f"({short})" in headline(found) and one["fix"][0]["repair"].startswith(do)


def rejected(words: str) -> str:
    """The line of 3.1.2 about a certificate that its library did not accept."""
    error = f"error:0A000086:SSL routines::certificate verify failed ({words})"
    return bind_failed(9, "-1 (Can't contact LDAP server)", error)


def test_what_the_certificates_show_comes_before_what_the_log_says(tmp_path: Path) -> None:
    old = certificate("s2", CA, since=EARLIER, until=NOW - DAY, hosts=[HOST])
    files = encrypted()
    files["s1.errors.log"] += rejected("certificate has expired")
    files["s2.certificates.pem"] = kept_file([("Server-Cert", "u,u,u", old)], "Server-Cert")
    found = diagnose(case_of(tmp_path, files))
    assert "(TLS fails, the certificate of s2 expired at 2024-03-23 10:27 UTC)" in headline(found)


def test_certificates_without_a_fault_add_nothing(tmp_path: Path) -> None:
    good, old = certificate("s2", CA, **WITHIN), certificate("s2", CA, **{**WITHIN, "until": NOW - DAY})
    for number, (own, trusted, about) in enumerate([
        ([good], [CA], {}), ([old, good], [CA], {}), ([good, old], [CA], {}), ([old], [CA], {"checks": "off"}),
    ]):  # fmt: skip
        found = told(tmp_path / str(number), own, trusted, **about)
        assert "certificate of s2" not in found["summary"] and "compare the certificate" in found["fix"][0]["repair"]


def test_a_renewed_certificate_that_the_consumer_has_not_read_yet(tmp_path: Path) -> None:
    def fails(start: float, since: datetime) -> dict[str, Any]:
        log = (
            stamp(start)
            + " - INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38902 for LDAP requests\n"
        )
        files = {**encrypted(), "s2.errors.log": log}
        return told(
            tmp_path / f"{start}{since.day}", [certificate("s2", CA, **{**WITHIN, "since": since})], [CA], files
        )

    began = NOW - timedelta(seconds=20)
    found = fails(-3600, began)
    assert (
        "; the certificate of s2 (Server-Cert) is valid from 2024-03-24 10:27 UTC on, and s2 last started"
        in found["summary"]
    )
    assert "at 2024-03-24 09:27 UTC: it may still show an older one; since" in found["summary"]
    assert "restart s2" in found["fix"][0]["repair"] and found["evidence"][-1]["subject"] == "CN=s2"
    assert "certificate of s2" not in fails(-3600, began - DAY)["summary"]
    assert "certificate of s2" not in fails(0, began - timedelta(minutes=1))["summary"]


def test_of_an_incomplete_file_nobody_says_whom_a_server_trusts(tmp_path: Path) -> None:
    own = kept_file([("Server-Cert", "u,u,u", certificate("s2", CA, **WITHIN))], "Server-Cert")
    for number, text in enumerate([
        kept_file([]).rstrip() + "\n# left out: 3 of 403\n\n", kept_file([]) + "# nickname: x\nnonsense\n\n", "",
    ]):  # fmt: skip
        files = {**encrypted(), "s2.certificates.pem": own, **({"s1.certificates.pem": text} if text else {})}
        (found,) = of("LINK_FAILING", findings(tmp_path / str(number), files))
        assert "trust" not in found["summary"]


def test_a_supplier_that_encrypts_nothing_itself_trusts_nobody(tmp_path: Path) -> None:
    good = certificate("s2", CA, **WITHIN)
    found = told(tmp_path / "off", [good], [CA], encryption="off")
    assert (
        "; s1 has encryption switched off itself (nsslapd-security), and 2.3.1 was seen to trust no" in found["summary"]
    )
    assert "on s1: `dsconf INSTANCE security enable`, then restart s1" in found["fix"][0]["repair"]
    assert "switched off" not in told(tmp_path / "on", [good], [CA], encryption="on")["summary"]
    assert "switched off" not in told(tmp_path / "unchecked", [good], [CA], encryption="off", checks="off")["summary"]


def test_a_plain_link_and_a_wrong_password_have_nothing_to_do_with_certificates(tmp_path: Path) -> None:
    old = certificate("s2", CA, **{**WITHIN, "until": NOW - DAY})
    for number, files in enumerate([mesh(NO_CONNECTION, host=HOST), encrypted(sentence=REFUSED_LOGIN)]):
        assert "certificate" not in told(tmp_path / str(number), [old], [CA], files)["summary"]


def test_a_supplier_that_logs_in_with_a_certificate_needs_a_good_one_too(tmp_path: Path) -> None:
    mine = certificate("s1", CA, since=EARLIER, until=NOW - DAY)
    for number, (flags, more) in enumerate([
        ("CT,,", []), ("C,,", ["is signed by CN=The CA, which s2 does not trust (it trusts none)"]),
    ]):  # fmt: skip
        for sentence in (NO_CONNECTION, REFUSED_LOGIN):
            (found,) = of("LINK_FAILING", findings(tmp_path / f"{number}{sentence[7:9]}", {
                **encrypted(BY_CERTIFICATE, sentence),
                "s1.certificates.pem": kept_file([("Own", "u,u,u", mine), ("ca", "CT,,", CA)], "Own"),
                "s2.certificates.pem": kept_file(
                    [("Server-Cert", "u,u,u", certificate("s2", CA, **WITHIN)), ("ca", flags, CA)], "Server-Cert"
                ),
            }))  # fmt: skip
            for says in ("the certificate of s1 (Own) expired at 2024-03-23", *more):
                assert says in found["summary"], found["summary"]
            assert (
                "security certificate add --file CERTIFICATE.pem --name Own --primary-cert" in found["fix"][0]["repair"]
            )


def test_a_thousand_authorities_of_one_name_are_not_looked_at_for_ever(tmp_path: Path) -> None:
    twins = [certificate("The CA", authority=True, since=EARLIER, until=LATER) for _ in range(60)]
    own = certificate("s2", twins[0], **WITHIN)
    found = told(tmp_path, [own], twins[1:])
    assert "by another one of that name" in found["summary"]


def test_openssl_agrees_that_the_samples_are_what_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text(pem(CA))
    (tmp_path / "own").write_text(pem(certificate("s2", CA, **WITHIN)))
    command = ["openssl", "verify", "-attime", str(int(NOW.timestamp())), "-CAfile", tmp_path / "ca", tmp_path / "own"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_no_name_in_a_certificate_leaves_a_case(tmp_path: Path) -> None:
    acme = certificate("Qzxacme Root", authority=True, since=EARLIER, until=LATER)
    own = certificate(
        "Qzxhost", acme, since=EARLIER, until=NOW - DAY, hosts=["ldap7.qzxacme.example", "*.qzxweb.example"]
    )
    other = certificate("Qzxother", authority=True, since=EARLIER, until=LATER)
    files = {
        **encrypted(),
        "s1.certificates.pem": kept_file([("Qzxtrust", "CT,,", other)]),
        "s2.certificates.pem": kept_file([("Qzxcert", "u,u,u", own)], "Qzxcert"),
    }
    incident = Incident(case_of(tmp_path, files))
    names = pseudonyms_of(incident)
    made = redacted_report(incident, names)
    with case_export(incident, made, names, tmp_path / "out.zip"):
        pass
    for kind, text in (("html", page(made)), ("md", markdown(made)), ("json", json.dumps(made))):
        (tmp_path / f"out.{kind}").write_text(text)
    shown = shown_in({kind: tmp_path / f"out.{kind}" for kind in ("html", "json", "md", "zip")})
    assert "expired at 2024-03-23 10:27 UTC" in shown["json"]
    for where, text in shown.items():
        assert "qzx" not in text.casefold(), (where, text[text.casefold().index("qzx") - 200 :][:400])


# --- ahead of time


def running(more: str = LDAPS) -> Files:
    return mesh(FINE, more=more, host=HOST)


def expiring(tmp_path: Path, own: Signed, trusted: Signed, files: Files | None = None) -> list[dict[str, Any]]:
    """The findings on certificates that will expire; the files of the servers end ten seconds after their beginning."""
    return of("CERTIFICATE_EXPIRES", findings(tmp_path, {
        **(files or running()),
        "s2.errors.log": stamp(10) + " - INFO - slapd_daemon - x\n",
        "s1.certificates.pem": kept_file([("ca", "CT,,", trusted)]),
        "s2.certificates.pem": kept_file([("Server-Cert", "u,u,u", own)], "Server-Cert"),
    }))  # fmt: skip


def test_a_certificate_that_expires_within_a_week_is_told(tmp_path: Path) -> None:
    (found,) = expiring(tmp_path, certificate("s2", CA, **{**WITHIN, "until": NOW + 4 * DAY}), CA)
    assert (found["severity"], found["server"], found["link"]) == ("warning", "s2", "to-s2")
    assert found["summary"].startswith(
        "the certificate of s2 (Server-Cert) expires at 2024-03-28 10:27 UTC, 3 days after it"
    )
    assert found["summary"].endswith("then to-s2 will not connect any more")
    assert "renew the certificate of s2" in found["fix"][0]["repair"]


def test_what_expires_later_or_is_not_needed_is_not_told(tmp_path: Path) -> None:
    soon = certificate("s2", CA, **{**WITHIN, "until": NOW + 3 * DAY})
    assert expiring(tmp_path / "1", certificate("s2", CA, **WITHIN), CA) == []
    assert expiring(tmp_path / "2", soon, CA, running(more="")) == []
    gone = certificate("s2", CA, **{**WITHIN, "until": NOW - DAY})
    assert expiring(tmp_path / "3", gone, CA, encrypted()) == [], "LINK_FAILING says it"


def test_an_authority_that_expires_and_a_link_that_outlives_its_certificate_are_told(tmp_path: Path) -> None:
    short = certificate("Short CA", authority=True, since=EARLIER, until=NOW + DAY)
    (found,) = expiring(tmp_path / "1", certificate("s2", short, **WITHIN), short)
    assert found["summary"].startswith("the authority CN=Short CA above the certificate of s2 (Server-Cert) expires at")
    gone = certificate("s2", CA, **{**WITHIN, "until": NOW - DAY})
    (found,) = expiring(tmp_path / "2", gone, CA)
    assert found["summary"].endswith("expired at 2024-03-23 10:27 UTC; the next connection of to-s2 will be refused")
