"""LDAP result codes in words."""

from __future__ import annotations

from collections.abc import Mapping

RESULTS: Mapping[int, str] = {
    1: "operations error",
    2: "protocol error",
    3: "time limit exceeded",
    7: "authentication method not supported",
    8: "strong authentication required",
    10: "referral",
    11: "administrative limit exceeded",
    13: "confidentiality required",
    16: "no such attribute",
    17: "undefined attribute type",
    19: "constraint violation",
    20: "type or value exists",
    21: "invalid syntax",
    32: "no such object",
    34: "invalid DN syntax",
    35: "entry is a leaf",
    48: "inappropriate authentication",
    49: "invalid credentials",
    50: "insufficient access",
    51: "busy",
    52: "unavailable",
    53: "unwilling to perform",
    64: "naming violation",
    65: "object class violation",
    66: "operation not allowed on non-leaf",
    67: "operation not allowed on RDN",
    68: "already exists",
    69: "cannot modify object class",
    71: "affects multiple servers",
    80: "other error",
    -1: "can't contact LDAP server",
    -2: "local error",
    -5: "timeout",
    -6: "unknown authentication method",
    -11: "connect error",
    81: "can't contact LDAP server",
    82: "local error",
    85: "timeout",
    86: "unknown authentication method",
    91: "connect error",
}
"""The codes of servers, and those with which a client library says that there was no answer."""


REFUSES_ALL = 53
"""What a server answers to every change while its backend is read-only, and to some for other reasons."""


def in_words(code: int) -> str:
    """`53 (unwilling to perform)`; of an unknown code the number alone."""
    return f"{code} ({RESULTS[code]})" if code in RESULTS else str(code)
