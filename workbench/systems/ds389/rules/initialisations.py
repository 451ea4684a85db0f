"""How a total initialisation ended, by the sentence that the agreement keeps of it (nsds5replicaLastInitStatus)."""

from __future__ import annotations

import re

from workbench.rules.initialisations import ABORTED, FAILED, SUCCEEDED

_GOES_ON = re.compile(r"in progress|[Ss]chema update")
_BROKE_OFF = re.compile(r"Total update aborted(?!: Replication agreement)")
"""An agreement or a suffix that is switched off is refused before anything is sent."""
_NOT_BEGUN = re.compile(r"Total update aborted|LDAP error|Replication error acquiring replica|connection error")


def outcome_of(sentence: str | None, asked: bool = True) -> str | None:
    """How it ended; None: it goes on, or the sentence does not say.

    asked  the agreement still asks for it (nsds5BeginReplicaRefresh), as long as it goes on; a sentence may stay behind


    >>> outcome_of("Error (0) Total update succeeded")
    'succeeded'
    >>> outcome_of("Error (-1) connection error: operation failed - Total update aborted")
    'aborted'
    >>> outcome_of("10 Total update abortedLDAP error: Referral")
    'aborted'
    >>> outcome_of("Error (-1) - LDAP error: Can't contact LDAP server")
    'failed'
    >>> outcome_of("Error (0) Total update in progress", asked=False)
    'aborted'
    """
    text = sentence or ""
    if "Total update succeeded" in text:
        return SUCCEEDED
    if _GOES_ON.search(text):
        return None if asked else ABORTED
    if _BROKE_OFF.search(text):
        return ABORTED
    return FAILED if _NOT_BEGUN.search(text) else None
