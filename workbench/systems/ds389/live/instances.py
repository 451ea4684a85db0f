"""The instances of this machine, as their folders describe them: `/etc/dirsrv/slapd-NAME/dse.ldif`.

An installation under a prefix has them in `PREFIX/etc/dirsrv`. As for its own tools, the environment variable PREFIX names it."""

from __future__ import annotations

import difflib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from workbench.model import Piece, Problem, Source
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.ldif import Entry

_WITHIN = Path("etc/dirsrv")
_MOST = 64 << 20
_LOOKS, _BETWEEN = 20, 0.1
"""How often a file is looked for that its server may be writing anew, and seconds between two looks."""


@dataclass(frozen=True)
class Instance:
    """What the folder of an instance tells; paths are None where it does not name them."""

    name: str
    port: int | None
    secure_port: int | None
    socket: str | None
    exports: Path | None
    access_log: Path | None
    errors_log: Path | None
    configuration: Path = Path()
    """Its `dse.ldif`."""
    encrypts: bool = False
    """It offers encryption (`nsslapd-security`)."""
    checks_certificates: bool = True
    """As a supplier it checks the certificates of consumers: with `nsslapd-ssl-check-hostname: off` not even their validity."""
    certificates: tuple[str, ...] = ()
    """Nicknames of the certificates that it shows."""
    certificates_folder: Path | None = None
    host: str | None = None
    """What it calls its machine."""

    @property
    def prefix(self) -> Path:
        """Where its installation is: `/` unless its folder is in some `PREFIX/etc/dirsrv`."""
        above = self.configuration.parent.parent
        return above.parents[1] if above.parts[-2:] == _WITHIN.parts else Path("/")

    def tool(self, name: str) -> str:
        """The command of that name of its installation, if that is under a prefix and has it; else that of the system."""
        if self.prefix == Path("/"):
            return name
        folders = [str(self.prefix / folder) for folder in ("sbin", "usr/sbin", "bin", "usr/bin")]
        return shutil.which(name, path=os.pathsep.join(folders)) or name

    def environment(self) -> dict[str, str]:
        """In which its tools find it."""
        under = {} if self.prefix == Path("/") else {"PREFIX": str(self.prefix)}
        return {**os.environ, **under}

    def owner(self) -> tuple[int, int]:
        """The user and the group that the server runs as: the errors log is its own, and so is the folder of its exports."""
        for path in (self.errors_log, self.exports, self.configuration):
            with suppress(OSError):
                if path:
                    about = path.stat()
                    return about.st_uid, about.st_gid
        return os.geteuid(), os.getegid()

    @property
    def url(self) -> str:
        """Where its server listens: its socket, where root needs no password, else its port."""
        if self.socket:
            return f"ldapi://{quote(self.socket, safe='')}"
        return f"ldap://localhost:{self.port or 389}"


def instances_folder() -> Path:
    """Where the instances are looked for if no folder is named: below PREFIX if that is set, else in /etc/dirsrv."""
    return Path(os.environ.get("PREFIX") or "/") / _WITHIN


def instances(folder: Path | None = None) -> dict[str, Path]:
    """Name -> configuration file of every instance in the folder."""
    folder = folder or instances_folder()
    found = {path.name.removeprefix("slapd-"): path / "dse.ldif" for path in sorted(folder.glob("slapd-*"))}
    return {name: file for name, file in found.items() if not name.endswith(".removed") and _is_there(file)}


def _is_there(file: Path) -> bool:
    """True if a configuration file is there. A server that writes it anew moves the old one away first, for a moment."""
    for _ in range(_LOOKS):
        if os.path.lexists(file):
            return True
        if not os.path.lexists(file.with_name(f"{file.name}.bak")):
            return False
        time.sleep(_BETWEEN)
    return False


def instance_named(name: str, folder: Path | None = None) -> Instance:
    """The instance of that name, with or without `slapd-`. Raises Problem if there is none that can be read."""
    given, folder = folder is not None, folder or instances_folder()
    known = instances(folder)
    plain = name.removeprefix("slapd-")
    if plain not in known:
        near = difflib.get_close_matches(plain, known, 1)
        elsewhere = "name the folder with --instances-folder, or give the URL of the server"
        there = f"there are {', '.join(known)}" if known else f"there is none there: {elsewhere}"
        why = "" if given else " (PREFIX is set)" if os.environ.get("PREFIX") else ""
        what = f"no instance is named {plain}; looked for slapd-{plain}/dse.ldif{why}"
        raise Problem(what, str(folder), f"did you mean {near[0]}?" if near else there)
    return read_instance(plain, known[plain])


def read_instance(name: str, file: Path) -> Instance:
    """An instance out of its configuration file. Only what is named here is looked at: the file holds secrets."""
    try:
        _is_there(file)
        with open(file, "rb") as opened:
            data = opened.read(_MOST)
    except OSError as error:
        do = "start as root, or as the user of the server"
        raise Problem(f"the configuration of {name} cannot be read: {error.strerror}", str(file), do) from None
    entries = _entries(data)
    config = next((entry for entry in entries if entry.dn.replace(" ", "").lower() == "cn=config"), None)
    if config is None:
        raise Problem(f"the configuration of {name} has no cn=config", str(file), "give its URL")
    listens = (config.text("nsslapd-ldapilisten") or "").lower() == "on"
    secure = (config.text("nsslapd-security") or "").lower() == "on"
    return Instance(
        name=name,
        port=_port(config, "nsslapd-port"),
        secure_port=_port(config, "nsslapd-securePort") if secure else None,
        socket=config.text("nsslapd-ldapifilepath") if listens else None,
        exports=_path(config, "nsslapd-ldifdir"),
        access_log=_path(config, "nsslapd-accesslog"),
        errors_log=_path(config, "nsslapd-errorlog"),
        configuration=file,
        encrypts=secure,
        checks_certificates=(config.text("nsslapd-ssl-check-hostname") or "").lower() != "off",
        certificates=tuple(_certificates(entries)),
        certificates_folder=_path(config, "nsslapd-certdir"),
        host=config.text("nsslapd-localhost"),
    )


def _certificates(entries: Iterable[Entry]) -> Iterator[str]:
    """What the kinds of keys below cn=encryption name as their certificate."""
    for entry in entries:
        name = entry.text("nsSSLPersonalitySSL")
        below = entry.dn.replace(" ", "").lower().endswith(",cn=encryption,cn=config")
        if name and below and (entry.text("nsSSLActivation") or "").lower() != "off":
            yield name


def _entries(data: bytes) -> list[Entry]:
    piece = Piece(Source("dse.ldif", "", "", None), data, 0, True)
    return [record for record in ldif.records(piece) if isinstance(record, Entry)]


def _port(config: Entry, attribute: str) -> int | None:
    text = config.text(attribute) or ""
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else None


def _path(config: Entry, attribute: str) -> Path | None:
    text = config.text(attribute)
    return Path(text) if text and text.startswith("/") else None
