"""A server whose plug-in for replication is disabled: the root of what its links say; what `collect` reads tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, status, with_status
from mesh_samples import agreement, case_of, pair_of_servers

from workbench.diagnosing.diagnosis import diagnose
from workbench.diagnosing.diagnosis_text import headline

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


def plugin(name: str, switch: str) -> str:
    dn = f"cn={name} Replication Plugin,cn=plugins,cn=config"
    return f"dn: {dn}\ncn: {name}\nobjectClass: top\nnsslapd-pluginEnabled: {switch}\n\n"


@pytest.mark.parametrize("name", ["Multisupplier", "Multimaster"])
def test_it_is_the_first_thing_said_and_its_links_follow(name: str, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, files(plugin(name, "off"))))
    assert headline(found).startswith("Replication is switched off on s2; 5 changes have not arrived at s2: ")
    (one,) = of("REPLICATION_OFF", found["findings"])
    assert (one["severity"], one["server"]) == ("error", "s2")
    (link,) = of("LINK_FAILING", found["findings"])
    assert link["follows_from"] == "REPLICATION_OFF"
    assert link["fix"][0]["repair"] == "do what REPLICATION_OFF says first"


def test_where_it_is_on_or_nobody_knows_nothing_is_said_but_what_to_look_at(tmp_path: Path) -> None:
    for number, more in enumerate(("", plugin("Multisupplier", "on"), plugin("Other", "off"))):
        found = diagnose(case_of(tmp_path / str(number), files(more)))
        assert not of("REPLICATION_OFF", found["findings"])
        (link,) = of("LINK_FAILING", found["findings"])
        assert link["fix"][0]["repair"].startswith("see whether replication is switched on at s2")
