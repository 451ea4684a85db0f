"""`server.toml`: which partners a server pulls from, and which it lets pull.

    [replication]
    origin = "repl://a.example.org:8444"            its own address, as partners reach it
    [replication."repl://b.example.org:8444"]
    type = "mutual-pull"                            it pulls from there and lets it pull; "pull", "allow-pull": one of the two
    partner_cert = "..."                            dropped, as all that is not named here
    automatic_refresh = true                        where it cannot be brought up to date, it takes all data anew by itself

A link is configured at its consumer, and runs where the supplier allows it. It is called by the address of the consumer,
for both ends know that.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from workbench import tables
from workbench.model import WHOLE, Format, Parsed, Piece, Reject

_SECTION = re.compile(rb"^\s*\[\s*replication\s*[.\]]", re.MULTILINE)
_KEY = re.compile(
    rb"^\s*(?:version|domain|origin|bindaddress|ldapbindaddress|db_path|tls_chain|tls_key)\s*=", re.MULTILINE
)
_ADDRESS = re.compile(r"repl://(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?")
_PULLS, _ALLOWS = ("pull", "mutual-pull"), ("allow-pull", "mutual-pull")
_PLACE = re.compile(r"at line (\d+), column (\d+)")


def _is_config(head: bytes, name: str) -> bool:
    # Two keys: one of them alone stands in files of many programs.
    return (
        b"\0" not in head and bool(_SECTION.search(head) or len(_KEY.findall(head)) >= 2) and head.lstrip()[:1] != b"<"
    )


def _address(text: Any) -> tuple[str, int | None]:
    """Host and port of `repl://host:port`."""
    found = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError("the address of a partner, or its own, is no repl://host:port")
    return found["host"].lower(), int(found["port"]) if found["port"] else None


def _called(address: tuple[str, int | None]) -> str:
    host, port = address
    return f"repl://{host}" + (f":{port}" if port else "")


def _links(about: Mapping[str, Any], own: str) -> Iterator[dict[str, Any]]:
    for key, partner in about.items():
        if not isinstance(partner, Mapping):
            continue  # a setting of the server itself
        kind = partner.get("type")
        if kind not in (*_PULLS, *_ALLOWS):
            raise ValueError("a partner without a known type: mutual-pull, pull or allow-pull")
        address = _address(key)
        host, port = address
        if kind in _PULLS:
            automatic = partner.get("automatic_refresh", False) is True
            asks = {"name": own, "role": "asks", "supplier_host": host, "supplier_port": port}
            yield {"offset": 0, **asks, "enabled": True, "automatic": automatic}
        if kind in _ALLOWS:
            yield {
                "offset": 0,
                "name": _called(address),
                "role": "allows",
                "consumer_host": host,
                "consumer_port": port,
            }


def read_config(piece: Piece) -> Parsed:
    """The links of one server, and its own address. Of what else stands there nothing is kept."""
    try:
        about = tomllib.loads(piece.data.decode()).get("replication", {})
        if not isinstance(about, Mapping):
            raise ValueError("`replication` is no table")
        own = _address(about["origin"]) if "origin" in about else None
        links = list(_links(about, _called(own) if own else piece.source.server))
    except UnicodeDecodeError as error:
        return Parsed(1, [Reject(piece.offset + error.start, "not UTF-8 text")])
    except tomllib.TOMLDecodeError as error:
        return Parsed(1, [_broken(piece, str(error))])
    except RecursionError:
        return Parsed(1, [Reject(piece.offset, "broken TOML: nested too deeply")])
    except ValueError as error:
        return Parsed(1, [Reject(piece.offset, str(error))])
    facts: dict[str, Any] = {"pulls": [], "allows": []}
    for one in links:
        facts["pulls" if one["role"] == "asks" else "allows"].append(
            _called(
                (one.get("supplier_host") or one["consumer_host"], one.get("supplier_port", one.get("consumer_port")))
            )
        )
    if own:
        facts["addresses"] = {_called(own).removeprefix("repl://"): 1}
    return Parsed(1, [], {"links": tables.table("links", links)} if links else {}, facts)


def _broken(piece: Piece, why: str) -> Reject:
    """A reject without any text of the file: it may be a key or a path."""
    found = _PLACE.search(why)
    if not found:
        return Reject(piece.offset + len(piece.data), "broken TOML: it ends too early")
    line, column = int(found[1]), int(found[2])
    before = piece.data.decode().split("\n")[: line - 1]
    place = sum(len(one.encode()) + 1 for one in before) + column - 1
    return Reject(piece.offset + place, f"broken TOML in line {line}, column {column}")


CONFIG = Format(
    "kanidm.config",
    _is_config,
    lambda: read_config,
    WHOLE,
    empty={"pulls": [], "allows": []},
    tells_links=True,
)
