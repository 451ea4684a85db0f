"""What mends a link whose supplier rejects the certificate of its consumer, where only its log says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.model import step
from workbench.systems.ds389.rules.link_reasons import EXPIRED, NOT_TRUSTED, NOT_YET_VALID, OTHER_HOST
from workbench.systems.ds389.session_log.change_fixes import run

Fix = Mapping[str, Any]


def certificate_fixes(rejected: str, supplier: str, consumer: str) -> tuple[Fix, ...]:
    """The steps for one that was rejected for this reason; without a known reason, how to find it out."""
    shown = run(consumer, "security", "certificate", "list")
    trusted = run(supplier, "security", "ca-certificate", "list")
    trust = (
        run(supplier, "security", "ca-certificate", "add", "--file", "CA.pem", "--name", "NAME")
        + f", then restart {supplier}"
    )
    at_start = "a server reads the authorities that it trusts at its start"
    never = "do not switch the check of certificates off: whoever answers at that address would be sent all changes"
    renew = f"`dsctl INSTANCE tls generate-server-cert-csr`, have it signed, import it, then restart {consumer}"
    again = "the request makes a new key: give the host names of the old certificate again"
    if rejected == EXPIRED:
        return (
            step(
                f"see which has expired, the certificate of {consumer}, {shown}, or that of the authority that signed it, "
                f"{trusted}; renew it: that of {consumer} by {renew}; that of the authority by its own renewed one, {trust}",
                f"{supplier} accepts no certificate that has expired, or whose authority has",
                again,
            ),
        )
    if rejected == NOT_YET_VALID:
        return (
            step(
                f"compare the clocks of {supplier} and {consumer}; if they are right, give {consumer} a certificate that is "
                f"valid now ({shown}): {renew}",
                f"by the clock of {supplier} the certificate of {consumer}, or of the authority above it, is not valid yet",
                again,
            ),
        )
    if rejected == OTHER_HOST:
        return (
            step(
                f"give {consumer} a certificate that is for the host of the agreement ({shown} shows the present one): {renew}; "
                "or let the agreement use a host that the certificate is for",
                f"{supplier} accepts no certificate of another host (nsslapd-ssl-check-hostname)",
                "do not switch that check off: then no certificate is checked at all",
            ),
        )
    if rejected == NOT_TRUSTED:
        return (
            step(
                f"see who signed the certificate of {consumer}, {shown}; if that authority should sign for it, have {supplier} "
                f"trust it, {trust}; if not, give {consumer} another certificate",
                f"{supplier} does not trust that authority, or the certificate signed itself; {at_start}",
                never,
            ),
        )
    return (
        step(
            f"compare the certificate of {consumer}, {shown}, with the authorities that {supplier} trusts, {trusted}",
            "the supplier must trust the issuer, the certificate must be valid today, and its name must be the host in the "
            "agreement",
        ),
        step(f"where the authority is missing, {trust}", at_start, never),
    )
