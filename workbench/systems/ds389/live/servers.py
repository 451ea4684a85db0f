"""The servers of one collection: what each is, what is read of it and in which order.

Of one server the vector is read before the changelog, and the changelog before the logs: what the vector claims is then
in a changelog that is younger than it. The other way round, a change made in between would look lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from workbench.intake.collection import Access, Address, Gathered, Survey, Vectors, Wanted, now
from workbench.intake.in_flight import FlightJournal
from workbench.intake.readings import NO_SUFFIX
from workbench.model import Problem
from workbench.systems.ds389.formats.directory import kind_of, suffix_of
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.values import suffix_named
from workbench.systems.ds389.live import scrubbed
from workbench.systems.ds389.live.certificates import certificates_of
from workbench.systems.ds389.live.connection import BELOW, Connection, connected
from workbench.systems.ds389.live.database import Database, database_of, settings_of
from workbench.systems.ds389.live.dumping import dbscan_program
from workbench.systems.ds389.live.exports import Exporter, dump_changelog, speaking
from workbench.systems.ds389.live.feeding import why_quiet
from workbench.systems.ds389.live.instances import Instance
from workbench.systems.ds389.live.logs import copy_log, log_files
from workbench.systems.ds389.live.reached import REPLICAS, ROLES, Reached, known_as, role_of, server_at, vector_of
from workbench.systems.ds389.live.undo import LEVEL, TASK, put_back_on_disk, put_back_on_server
from workbench.systems.ds389.native import line
from workbench.systems.ds389.rules.link_reasons import encrypted
from workbench.systems.ds389.secrets import SECRETS

_REPLICATES = "(|(objectClass=nsds5replica)(objectClass=nsds5replicationagreement))"
_COMPUTED = ("*", "+", "nsds50ruv", "nsruvReplicaLastModified", "nsds5agmtmaxcsn")
"""The last three are made up at every search, and only when they are asked for by name."""


class DirectoryServers:
    """The servers of one collection; see `workbench.intake.collection.Servers`."""

    def __init__(self, addresses: Sequence[Address], access: Access, suffixes: Sequence[str] = ()) -> None:
        self._access = access
        self._suffixes = {suffix_named(suffix) for suffix in suffixes}
        self._servers: dict[str, Reached] = {}
        for address in addresses:
            server = server_at(address)
            if server.name in self._servers:
                do = "name them apart: NAME=URL, NAME=INSTANCE"
                raise Problem(f"two servers are named {server.name}", server.place.url, do)
            self._servers[server.name] = server
        self.names = list(self._servers)
        self._journal = FlightJournal()
        self._earlier: list[FlightJournal] | None = None
        self._mended: dict[str, list[str]] = {}
        self._not_mended: dict[str, list[str]] = {}
        self._mending = Lock()

    def survey(self, name: str) -> Survey:
        """Reach the server and say what it is."""
        server = self._servers[name]
        self._mend(server)
        with connected(server.place, self._access) as connection:
            server.known_as = known_as(server, connection)
            self._read(server, connection)
            server.settings, server.settings_unread = settings_of(connection, server.vectors)
            server.unshown = list(_unshown(connection, server.vectors))
        return Survey(server.role, ROLES.index(server.role), server.vectors)

    def vectors(self, name: str) -> Vectors:
        """What the server claims to hold now."""
        server = self._servers[name]
        with connected(server.place, self._access) as connection:
            self._read(server, connection)
        return server.vectors

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """Vectors and links over LDAP; changelog, logs and entries where the instance's folders can be reached."""
        server, gathered = self._servers[name], Gathered()
        if wanted.records:
            gathered.without.append("records: its changelog is no physical log")
        if server.settings_unread:
            gathered.without.append(f"settings of changelog and replication: {server.settings_unread}")
        self._tell_of_earlier(name, gathered)
        gathered.failed += server.unshown
        for kind, ending in ("replica", "replica.ldif"), ("agreement", "agreements.ldif"):
            more = server.settings if kind == "replica" else []
            (folder / f"{prefix}.{ending}").write_bytes(b"".join(map(_ldif, [*server.of_kind(kind), *more])))
            gathered.files[f"{prefix}.{ending}"] = None
            gathered.read_at[f"{prefix}.{ending}"] = server.read_at
        if server.instance is None:
            what = "changelog, access log and errors log" + (" and entries" if wanted.entries else "")
            gathered.without.append(
                f"{what}: they are on its own machine; collect there with --instance, or export them"
            )
            return gathered
        # A server without its data refuses to tell of its database: its logs say why.
        _tried(lambda: self._changelogs(server, folder, prefix, wanted, gathered), "changelog", gathered)
        _logs(server.instance, folder, prefix, wanted, gathered)
        sends = any(encrypted(link.text("nsDS5ReplicaTransportInfo")) for link in server.links)
        if server.instance.encrypts or sends:
            _certificates(server.instance, folder, prefix, wanted, gathered)
        if wanted.entries:
            self._entries(server, folder, prefix, wanted, gathered)
        return gathered

    def left_behind(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """The logs of an instance that does not answer: they may say why."""
        server, gathered = self._servers[name], Gathered()
        self._tell_of_earlier(name, gathered)
        if server.instance:
            _logs(server.instance, folder, prefix, wanted, gathered)
            if server.instance.encrypts:
                _certificates(server.instance, folder, prefix, wanted, gathered)
        return gathered

    def close(self) -> None:
        """Put back whatever of this collection is still in flight. Raises Problem if that is not possible now.

        Every connection was closed after its use.
        """
        left = []
        places = {server.key: server.place for server in self._servers.values()}
        for one in self._journal.unsettled():
            try:
                if put_back_on_disk(one) is None:
                    put_back_on_server(one, places[one.where], self._access)
                self._journal.settle(one.number)
            except Problem as problem:
                left.append(str(problem))
        for journal in (self._journal, *(self._earlier or ())):
            journal.close()
        self._earlier = None
        if left:
            what = f"not everything could be put back: {'; '.join(left)}"
            raise Problem(what, "", "collect from this server again, with any options: that puts it back")

    def _mend(self, server: Reached) -> None:
        """Put back what an earlier run that was killed left on this machine and at this server."""
        with self._mending:
            first = self._earlier is None
            unread: list[Problem] = []
            self._earlier = FlightJournal.of_dead_runs(unread) if self._earlier is None else self._earlier
            notes = [f"what an earlier run left behind is not known: {problem}" for problem in unread]
            self._not_mended.setdefault(server.name, []).extend(notes)
            keys = {one.key for one in self._servers.values()}
            for journal in self._earlier:
                for one in journal.unsettled():
                    try:
                        done = put_back_on_disk(one) if first else None
                        if done is None and one.where == server.key and one.what in (LEVEL, TASK):
                            done = put_back_on_server(one, server.place, self._access)
                    except Problem as problem:
                        note = f"what an earlier run left at {one.since} could not be put back: {problem}"
                        self._not_mended.setdefault(server.name, []).append(note)
                        continue
                    if done is not None:
                        journal.settle(one.number)
                        self._mended.setdefault(server.name, []).append(f"{done} (left at {one.since})")
                    elif first and one.what in (LEVEL, TASK) and one.where not in keys:
                        note = f"an earlier run left a {one.what} at {one.where}: collect from that server, which puts it back"
                        self._not_mended.setdefault(server.name, []).append(note)

    def _tell_of_earlier(self, name: str, gathered: Gathered) -> None:
        gathered.mended += self._mended.get(name, [])
        gathered.failed += self._not_mended.get(name, [])

    def _read(self, server: Reached, connection: Connection) -> None:
        """The entries of the replicas and their agreements, and what they say."""
        server.read_at = now()
        found = connection.search(REPLICAS, BELOW, _REPLICATES, _COMPUTED, absent=True)
        there = {suffix_of(entry) for entry in found if kind_of(entry) == "replica"}
        server.links = [entry for entry in found if kind_of(entry) == "agreement"]
        server.entries = [entry for entry in found if not self._suffixes or suffix_of(entry) in self._suffixes]
        replicas = server.of_kind("replica")
        if not replicas:
            who = self._access.user or "the user of its socket"
            has = f"it has {', '.join(sorted(filter(None, there)))}" if there else f"check what {who} may read"
            what = "none of these suffixes is replicated there" if there else NO_SUFFIX
            raise Problem(what, server.place.url, has)
        server.role = max(map(role_of, replicas), key=ROLES.index)
        server.vectors = {suffix_of(entry) or "": vector_of(entry) for entry in replicas}

    def _changelogs(self, server: Reached, folder: Path, prefix: str, wanted: Wanted, gathered: Gathered) -> None:
        refused = (
            why_quiet(server.feeder, {name: one.feeder for name, one in self._servers.items()})
            if wanted.verbose
            else ""
        )
        if refused:
            gathered.without.append(f"replication log: {refused}")
        with_log = [entry for entry in server.of_kind("replica") if entry.text("nsDS5Flags") != "0"]
        if not with_log:
            return  # a read-only consumer keeps none
        assert server.instance, "there is an instance"
        databases = {entry.dn: self._database(server, entry) for entry in with_log}
        dumps = {dn for dn, database in databases.items() if database.changelog_loops}
        if dumps:
            database = databases[min(dumps)]
            gathered.without.append(
                f"changelog export: version {database.version_text} with LMDB writes it without end (upstream issue 5661, fixed "
                "in 2.3.3). dbscan read the changelog instead: it does not show what was trimmed"
            )
        suffixes = {entry.dn: suffix_of(entry) or "" for entry in with_log}
        endings = _endings(list(suffixes.values()), "changelog")

        def read() -> None:
            for entry in with_log:
                suffix, database = suffixes[entry.dn], databases[entry.dn]
                file = f"{prefix}.{endings[suffix]}.{'dbscan' if entry.dn in dumps else 'ldif'}"
                gathered.reading(file)
                if entry.dn in dumps:
                    assert server.instance, "there is an instance"
                    program = dbscan_program(server.instance.prefix)
                    dump_changelog(database, program, wanted.limits, self._access.patience, folder / file)
                else:
                    exporter = self._exporter(server, wanted)
                    exporter.changelog(database, entry.dn, entry.text("nsDS5ReplicaName") or "", folder / file)
                gathered.files[file] = suffix

        with ExitStack() as restored:
            try:
                if wanted.verbose and not refused and len(dumps) < len(with_log):
                    restored.enter_context(speaking(server.key, server.place, self._access, self._journal))
                read()
            except Problem as problem:
                gathered.failed.append(f"changelog: {problem}")
            finally:
                _tried(restored.close, "replication log", gathered)

    def _entries(self, server: Reached, folder: Path, prefix: str, wanted: Wanted, gathered: Gathered) -> None:
        suffixes = list(server.vectors)
        names = _endings(suffixes, "entries.ldif")
        for suffix in suffixes:
            file = f"{prefix}.{names[suffix]}"

            def export(suffix: str = suffix, file: str = file) -> None:
                exporter = self._exporter(server, wanted)
                with connected(server.place, self._access) as connection:
                    database = database_of(connection, suffix)
                gathered.reading(file)
                exporter.entries(database, folder / file)
                gathered.files[file] = suffix

            _tried(export, f"entries of {suffix}", gathered)

    def _database(self, server: Reached, entry: Entry) -> Database:
        with connected(server.place, self._access) as connection:
            return database_of(connection, suffix_of(entry) or "")

    def _exporter(self, server: Reached, wanted: Wanted) -> Exporter:
        """What has the server export. Raises Problem if its instance names no folder for that."""
        instance = server.instance
        assert instance, "there is an instance"
        if instance.exports is None:
            raise Problem("the instance names no folder for exports (nsslapd-ldifdir)", str(instance.configuration))
        return Exporter(
            server.key,
            server.place,
            self._access,
            instance.exports,
            instance.owner(),
            wanted.limits,
            self._journal,
        )


def _unshown(connection: Connection, vectors: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What a server answers that does not show the entry of a suffix: it has no data of it, or does not show them."""
    for suffix in vectors:
        try:
            connection.search(suffix, attributes=("entryid",))
        except Problem as problem:
            yield f"data of {suffix}: {problem}"


def _tried(step: Callable[[], None], what: str, gathered: Gathered) -> None:
    """One step of many: what fails is told, and the others are done."""
    try:
        step()
    except Problem as problem:
        gathered.failed.append(f"{what}: {problem}")


def _endings(suffixes: Sequence[str], ending: str) -> dict[str, str]:
    """Suffix -> what its file's name ends in: of several suffixes each has its own."""
    if len(suffixes) == 1:
        return {suffixes[0]: ending}
    return {suffix: f"{number}.{ending}" for number, suffix in enumerate(sorted(suffixes), 1)}


def _logs(instance: Instance, folder: Path, prefix: str, wanted: Wanted, gathered: Gathered) -> None:
    for what, present in ("access", instance.access_log), ("errors", instance.errors_log):
        if present is None:
            gathered.without.append(f"{what} log: the instance names none")
            continue

        def copy(what: str = what, present: Path = present) -> None:
            found = list(log_files(present, wanted.since))
            if not any(not rotated for _, rotated in found):
                gathered.without.append(f"{what} log: there is no {present}")
            for path, rotated in found:
                file = f"{prefix}.{what}{f'.{rotated}' if rotated else ''}.log"
                gathered.reading(file)
                copy_log(path, folder / file, wanted.limits)
                gathered.files[file] = None

        _tried(copy, f"{what} log", gathered)


def _certificates(instance: Instance, folder: Path, prefix: str, wanted: Wanted, gathered: Gathered) -> None:
    """Why a session is not encrypted stands there; everything else can be diagnosed without them, so this never fails."""
    file = f"{prefix}.certificates.pem"
    gathered.reading(file)
    try:
        text = certificates_of(instance)
        if text is None:
            return
        wanted.limits.write(folder / file, [text.encode()], "the copy of the certificates")
        gathered.files[file] = None
    except Problem as problem:
        gathered.without.append(f"certificates: {problem}")
    finally:
        if file not in gathered.files:
            gathered.read_at.pop(file, None)


def _ldif(entry: Entry) -> bytes:
    """An entry as LDIF without secrets, ended by an empty line: without one, a reader takes it for cut off."""
    lines = [(name, value) for name, value in entry.lines if not SECRETS.is_secret(name)]
    return scrubbed.entry(b"".join(line(name, value) for name, value in lines)) + b"\n"


def reach(addresses: Iterable[Address], access: Access, suffixes: Sequence[str] = ()) -> DirectoryServers:
    """The servers at these addresses; none of them is contacted yet."""
    return DirectoryServers(list(addresses), access, suffixes)
