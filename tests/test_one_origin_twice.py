"""Two servers that use one replica ID: which of them a link leads to, its address tells."""

from __future__ import annotations

from pathlib import Path

from detector_samples import listening
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.topology.topology import topology


def test_a_link_is_told_by_the_address_at_which_its_consumer_listens(tmp_path: Path) -> None:
    files = dict(pair_of_servers()) | listening("s1") | listening("s2") | listening("s3")
    files["s1.agreements.ldif"] += agreement("to-s3", 38903)
    files["s3.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(1, 2)), port=38901))
    files["s3.changelog.ldif"] = changelog([csn(second, 2) for second in (1, 2)])
    leads = {link.name: link.consumer for link in topology(case_of(tmp_path, files)).links}
    assert leads == {"to-s1": "s1", "to-s2": "s2", "to-s3": "s3"}
