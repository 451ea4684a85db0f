"""Hosts of any shape are in nothing that leaves a case: no sentence, no page, no column of a table."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from report_samples import loaded, three
from test_report import shown_in

from workbench.diagnosis.incident import Incident
from workbench.report import export
from workbench.report.export import case_export
from workbench.report.markdown import markdown
from workbench.report.page import page
from workbench.report.redaction import LEFT_OUT, Pseudonyms
from workbench.report.report_pipeline import pseudonyms_of, redacted_report
from workbench.systems.ds389.naming import NAMING

CORES = ("Qzxacmeq", "Münchenß", "İstanbulİ", "ΑΘΗΝΑΣ", "Пример", "例え話", "उदाहरण", "مثال", "0qzx47110815")
"""By these a host is known again wherever a part of it is left: no text of ours holds one."""
around = st.text(st.sampled_from("azAZ059-_.%.-äßÅİΣςжЖ例ि"), max_size=5)
hosts = st.builds("{}{}{}".format, around, st.sampled_from(CORES), around)


def artefacts(folder: Path, hosts: list[str]) -> dict[str, str]:
    """What leaves a case in which each server knows each origin by one of these hosts, which no agreement names."""
    files = three(8, {5})
    for at, host in enumerate(hosts):
        name = f"s{at // 3 + 1}.replica.ldif"
        files[name] = files[name].replace("localhost.localdomain", host, 1)
    incident = Incident(loaded(folder, ("now", files)))
    names = pseudonyms_of(incident)
    made = redacted_report(incident, names)
    out = {kind: folder / f"out.{kind}" for kind in ("html", "json", "md", "zip")}
    with case_export(incident, made, names, out["zip"]):
        pass
    for kind, text in (("html", page(made)), ("md", markdown(made)), ("json", json.dumps(made))):
        out[kind].write_text(text)
    return shown_in(out)


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # an example is a case
@given(st.lists(hosts, min_size=9, max_size=9, unique_by=str.lower))
def test_no_host_of_a_vector_is_in_any_artefact(some: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shown = artefacts(Path(folder), some)
    assert shown["json"].count("is known under 3 addresses: ") >= 3, "sentences name them"
    for where, text in shown.items():
        for host in some:
            core = next(core for core in CORES if core in host)
            assert core.casefold() not in text.casefold(), (where, host)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ldap://db_1.acme.example:38901", "ldap://host-1:port-1"),
        ("ldap://acme.example.:389/", "ldap://host-1:port-1"),
        ("ldap://acme%2dx.example", "ldap://host-1"),
        ("LDAPS://münchen.example:636/dc=acme", "LDAPS://host-1:port-1"),
        ("ldap://jane:acme@hub:389", "ldap://host-1:port-1"),
        ("ldap://mail", "ldap://host-1"),
        ("ldap://a", "ldap://host-1"),
        ("ldap://4711:4711", "ldap://host-1:host-1"),
        ("ldap://[2001:db8::17]:389", "ldap://[address-1]:port-1"),
        ("ldap://2001:db8::17:389", "ldap://host-1:port-1"),
        ("ldap://acme:x:y", "ldap://host-1"),
        ("ldap://localhost:389", "ldap://localhost:port-1"),
        ("ldap://..", LEFT_OUT),
        ("ldap:///acme", LEFT_OUT),
        ("ldap://acme/:389\n", "ldap://host-1"),
        ("acme:389", LEFT_OUT),
        ("acme", LEFT_OUT),
        ("  ", "  "),
    ],
)
def test_of_an_address_nothing_is_kept_that_is_not_understood(url: str, shown: str) -> None:
    names = Pseudonyms(b"k" * 32, None, NAMING)
    assert names.url(url) == shown
    names = Pseudonyms(b"k" * 32, None, NAMING)
    names.learn_from({"url": url})
    assert names.redacted({"url": url}) == {"url": shown}


def test_a_host_that_looks_like_a_position_is_left_out() -> None:
    names = Pseudonyms(b"k" * 32, position=lambda text: text == "6b006176")
    assert (names.url("ldap://6b006176:389"), names.url("ldap://6b006177")) == (LEFT_OUT, "ldap://host-1")


@pytest.mark.parametrize("host", ["mail", "hub", "a", "ldap", "db_1.acme", "ΑΣ", "İs", "acme."])
def test_a_host_is_replaced_in_front_of_a_port_whatever_word_it_is(host: str) -> None:
    names = Pseudonyms(b"k" * 32, None, NAMING)
    names.learn_from({"url": f"ldap://{host}:389"})
    says = f"mail of the hub: known as {host.lower()}:389, ldap://{host.upper()}:636 and ldap://{host}/x"
    shown = names.text(says)
    assert shown.endswith("known as host-1:port-1, ldap://host-1:port-2 and ldap://host-1/x")
    names.check(shown)


@pytest.mark.parametrize(
    "text",
    ["see ldap://db_1.acme.example:389.", 'ldap://münchen_acme, "ldap://acme_x".', "dsconf --host db_1_acme list"],
)
def test_hosts_are_found_in_sentences_by_their_place(text: str) -> None:
    names = Pseudonyms(b"k" * 32, None, NAMING)
    names.learn_from({"says": text})
    shown = names.text(text)
    assert "host-1" in shown and "acme" not in shown and shown[-1] == text[-1]


@pytest.mark.parametrize(("column", "text"), [("url", "ldap://mail:389"), ("consumer_host", "mail"), ("holder", "hub")])
def test_in_a_column_of_names_a_word_of_any_sentence_is_a_name(column: str, text: str) -> None:
    names = Pseudonyms(b"k" * 32, None, NAMING)
    names.learn("host", ["mail"])
    names.learn("server", ["hub"])
    shown = export._redacted(pa.array([text, None]), "links", column, pa.string(), names).to_pylist()
    assert shown == [{"url": "ldap://host-1:port-1", "consumer_host": "host-1", "holder": "server-1"}[column], None]
