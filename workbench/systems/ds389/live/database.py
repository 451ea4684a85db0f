"""The database of a live server: which kind it is, where it lies, how large it is, and whether an export of it is known to loop.

Of LMDB (`mdb`) all databases of a server are one file, `data.mdb`; of Berkeley DB (`bdb`) each index has a file of its own.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from workbench.model import Problem
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.values import suffix_named
from workbench.systems.ds389.live.connection import BELOW, Connection
from workbench.systems.ds389.versions import Version, version_in

MDB, BDB = "mdb", "bdb"
CHANGELOG, ENTRIES = "replication_changelog.db", "id2entry.db"

_DATABASES = "cn=ldbm database,cn=plugins,cn=config"
_CONFIG = f"cn=config,{_DATABASES}"
_MAPPINGS = "cn=mapping tree,cn=config"
_TRIMMING = (
    "cn",
    "objectClass",
    "nsslapd-changelogmaxage",
    "nsslapd-changelogmaxentries",
    "nsslapd-changelogtrim-interval",
)
_PLUGINS = ("Multisupplier", "Multimaster")
"""What replication is called in the name of its plug-in: since 2.0, and before."""
_FIRST_WITHOUT_LOOP = (2, 3, 3)
"""Upstream #5661, fixed on 2 March 2023: in 2.3.3, 2.4.0 and everything after them; never in 2.0, 2.1 and 2.2."""

_TWICE = 2
"""LDIF of a changelog or of entries takes at most about twice what its own database file takes: base64, names, folds."""


@dataclass(frozen=True)
class Database:
    """The database that holds a suffix.

    implementation   `mdb` or `bdb`; None if the server does not say
    version          of the server, as three numbers; None if it does not say
    folder           where the files of the server's databases lie; of Berkeley DB, those of this backend
    first_id         the entry ID of the suffix entry
    """

    backend: str
    implementation: str | None
    version: Version | None
    folder: Path | None
    first_id: str | None = None

    @property
    def version_text(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version)) if self.version else "of unknown version"

    @property
    def changelog_loops(self) -> bool:
        """True if an export of the changelog is known to write its first record for ever, or may be such a one."""
        return self.implementation == MDB and (self.version is None or self.version < _FIRST_WITHOUT_LOOP)

    @property
    def entries_loop(self) -> bool:
        """True if an export of the entries is reported to loop: with LMDB, where the suffix entry is not the first (#7310).

        Not every version does: 2.3.1 and 3.1.2 did not in a trial with few entries. Where one does, only a restart ends it.
        """
        return self.implementation == MDB and self.first_id not in (None, "1")

    def file(self, name: str) -> Path | None:
        """Where a database of the backend lies. With LMDB the name is only one inside `data.mdb`."""
        if self.folder is None:
            return None
        return self.folder / self.backend / name if self.implementation == MDB else self.folder / name

    def estimate(self, name: str) -> int | None:
        """About how large the LDIF of a database will be; None if its file cannot be looked at.

        Of LMDB only the size of all databases together is known: an upper limit.
        """
        if self.folder is None:
            return None
        try:
            if self.implementation == MDB:
                return (self.folder / "data.mdb").stat().st_blocks * 512  # the file may have holes
            return _TWICE * (self.folder / name).stat().st_size
        except OSError:
            return None


def database_of(server: Connection, suffix: str) -> Database:
    """The database of a suffix. Raises Problem if no backend of it is shown."""
    backend = _backend(server, suffix)
    found = server.search(_DATABASES, BELOW, "(|(cn=config)(objectClass=nsBackendInstance))", ("*",), absent=True)
    config = next((one for one in found if _same(one.dn, _CONFIG)), None)
    instance = next((one for one in found if _same(one.dn, f"cn={backend},{_DATABASES}")), None)
    implementation = (config.text("nsslapd-backend-implement") if config else None) or None
    holder = config if implementation == MDB else instance
    folder = holder.text("nsslapd-directory") if holder else None
    top = server.search(suffix, attributes=("entryid",), absent=True) if implementation == MDB else ()
    return Database(
        backend,
        implementation,
        _version(server),
        Path(folder) if folder and folder.startswith("/") else None,
        top[0].text("entryid") if top else None,
    )


def _version(server: Connection) -> Version | None:
    (root,) = server.search("", attributes=("vendorVersion",))
    return version_in(root.text("vendorVersion"))


def _backend(server: Connection, suffix: str) -> str:
    """The name of the backend that holds a suffix."""
    for entry in server.search(_MAPPINGS, BELOW, "(objectClass=nsMappingTree)", ("cn", "nsslapd-backend")):
        names = {suffix_named(name.strip('"')) for name in entry.texts("cn")}
        if suffix in names and (backend := entry.text("nsslapd-backend")):
            return backend
    raise Problem(f"no backend of {suffix} is shown", _MAPPINGS, "check what the user may read")


_LISTENS = ("cn", "objectClass", "nsslapd-localhost", "nsslapd-port", "nsslapd-listenhost")


def settings_of(server: Connection, suffixes: Container[str]) -> tuple[list[Entry], Problem | None]:
    """The mapping of these suffixes to their backends, what the changelogs of these are trimmed by, whether replication is
    switched on at all, and where the server listens; nothing secret.

    With the problem for which some of them could not be read: what they would tell is no part of what is missing, so
    everything else is collected without them.
    """
    found: list[Entry] = []
    try:
        for entry in server.search(_MAPPINGS, BELOW, "(objectClass=nsMappingTree)", ("cn", "nsslapd-backend")):
            backend = entry.text("nsslapd-backend")
            if backend and any(suffix_named(name.strip('"')) in suffixes for name in entry.texts("cn")):
                found.append(entry)
                found += server.search(f"cn=changelog,cn={backend},{_DATABASES}", attributes=_TRIMMING, absent=True)
        found += server.search("cn=changelog5,cn=config", attributes=_TRIMMING, absent=True)
        for name in _PLUGINS:
            plugin = f"cn={name} Replication Plugin,cn=plugins,cn=config"
            found += server.search(plugin, attributes=("cn", "objectClass", "nsslapd-pluginEnabled"), absent=True)
        found += server.search("cn=config", attributes=_LISTENS, absent=True)
    except Problem as problem:
        return found, problem
    return found, None


def _same(dn: str, other: str) -> bool:
    return dn.replace(" ", "").lower() == other.replace(" ", "").lower()
