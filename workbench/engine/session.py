"""One function for every Spark: in this process, on a standalone cluster, or behind Spark Connect.

    spark = spark_session()                                    # all cores of this machine
    spark = spark_session("spark://master.example:7077", size="large")
    spark = spark_session(remote="sc://spark.example:15002")

The same code runs on all three. It may use data frames and SQL only: a Connect session has nothing else.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal

import grpc
import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from workbench.engine.java import cache_folders, find_java, launcher
from workbench.engine.warmstart import sharing_options
from workbench.model import Problem
from workbench.safety import printable

Size = Literal["small", "large"]

LOCAL, CLUSTER, CONNECT = "local", "cluster", "connect"

SPARK_UI = "WORKBENCH_SPARK_UI"
"""In the environment: Spark shows its own pages, also of a session for small work."""

REACH_SECONDS = 10.0
"""How long a cluster or a Connect server may take to answer at all."""

# What every result rests on, wherever Spark runs.
_RULES = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}

# With Arrow off, pandas 3 sends a missing text as the text "nan"; with the fallback on, Spark turns it off silently for
# a column it does not like. Spark Connect knows no other way than Arrow and complains about these two.
_ARROW = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
}

# Java compiles lightly: half the CPU of a short session, but slower at the end of a long one.
_FAST = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

_OVERRULING = ("MASTER", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE")

# The variable SPARK_HOME may name another version than this Python package, which brings its own.
_SPARK_HOME = Path(pyspark.__file__).parent

# Spark says this at each conversion. It is about pandas without Arrow; `_ARROW` holds and the tests prove it.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)


@dataclass(frozen=True)
class _Place:
    """Where Spark runs: which of the three ways, and the address as the user gave it."""

    way: str
    address: str

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Host and port of each master of a cluster."""
        pairs = [part.rpartition(":") for part in self.address.removeprefix("spark://").split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]

    @property
    def on_this_machine(self) -> bool:
        """True if nothing but this machine is involved, so that nothing needs to listen on its network address."""
        return self.way == LOCAL or (self.way == CLUSTER and all(_loopback(host) for host, _ in self.hosts))


@dataclass
class _Running:
    session: SparkSession
    place: _Place
    size: Size
    config: dict[str, str]


_lock = threading.RLock()
_running: _Running | None = None
_java_size: Size | None = None  # the Java of a process starts once; stopping a session does not end it


def spark_session(
    master: str | None = None,
    remote: str | None = None,
    size: Size = "small",
    app_name: str = "replication workbench",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """The Spark session of this process, started if there is none.

    master    "local[*]" or "local[4]" (this machine), "spark://host:7077" (a standalone cluster)
    remote    "sc://host:15002" (a Spark Connect server); either takes any of these addresses. Give one of the two, or none:
              then the environment variables SPARK_REMOTE and MASTER count, else it is local[*]
    size      "small" starts fast and suits a case of some gigabytes; "large" takes half of the memory and lets Java
              compile thoroughly, for long jobs
    config    further Spark settings, stronger than those chosen here

    A session that this process already has is used again if it is the same kind of session. Raises Problem if there is
    no Java, if the cluster or the server does not answer, or if another session is in the way.
    """
    global _running
    if size not in ("small", "large"):
        raise Problem(f"the size of a session is small or large, not {size!r}")
    if master and remote:
        raise Problem("a session has a master or a remote, not both", f"master {master}, remote {remote}", "Give one")
    asked = _place(given) if (given := master or remote) else None
    more = {key: str(value) for key, value in (config or {}).items()}
    with _lock:
        if _running and not _stopped(_running.session):
            return _fitting(_running, asked, size, more).session
        _running = None
        if other := _session_of_others():
            session, place = _sister(other, asked, more)
        else:
            place = asked or _place(os.environ.get("SPARK_REMOTE") or os.environ.get("MASTER") or "local[*]")
            if place.way == CONNECT:
                session = _start_connect(place, more)
            else:
                session = _start_classic(place, size, app_name, more)
        if place.way != LOCAL:
            _ship_package(session)
        _running = _Running(session, place, size, more)
        return session


def _place(address: str) -> _Place:
    if re.fullmatch(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?", address):
        return _Place(LOCAL, address)
    host = r"(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}"
    if re.fullmatch(rf"spark://{host}(,{host})*", address):
        return _Place(CLUSTER, address)
    if re.fullmatch(r"sc://\S+", address):
        return _Place(CONNECT, address)
    raise Problem(
        f"no such place for Spark: {printable(address)[:200]}",
        "master, remote, SPARK_REMOTE or MASTER",
        "It is local[*], local[4], spark://host:7077 or sc://host:15002",
    )


def _fitting(running: _Running, asked: _Place | None, size: Size, config: dict[str, str]) -> _Running:
    """The running session if it does what is asked for; a session cannot move or grow."""
    differences = []
    if asked and asked != running.place:
        differences.append(f"it runs on {_shown(running.place)}, asked for is {_shown(asked)}")
    if size == "large" and running.size == "small" and running.place.way != CONNECT:
        differences.append("it is small, asked for is large")
    differences += [f"its {key} differs" for key, value in config.items() if running.config.get(key) != value]
    if differences:
        raise Problem(
            "this process already has another Spark session",
            "; ".join(differences),
            "Use that one (call spark_session() without arguments), or stop it first (spark.stop()); "
            "to change small into large restart the kernel",
        )
    return running


def _session_of_others() -> SparkSession | None:
    """A session that other code in this process started; Spark allows one driver in a process."""
    session = SparkSession._instantiatedSession
    if session is None and (connect := sys.modules.get("pyspark.sql.connect.session")):
        session = connect.SparkSession.getActiveSession()
    return None if session is None or _stopped(session) else session


def _sister(session: SparkSession, asked: _Place | None, config: dict[str, str]) -> tuple[SparkSession, _Place]:
    """A session beside that of other code: same driver, own settings, so that theirs stay as they are."""
    connect = hasattr(session, "is_stopped")
    address = "a Spark Connect server" if connect else session.conf.get("spark.master") or ""
    place = _Place(CONNECT if connect else LOCAL if address.startswith("local") else CLUSTER, address)
    if asked and asked != place:
        raise Problem(
            "this process already has another Spark session",
            f"it runs on {address}, asked for is {_shown(asked)}",
            "Use that one (call spark_session() without arguments), or stop it first",
        )
    sister = session.newSession()
    try:
        for key, value in {**_RULES, **({} if connect else _ARROW), **config}.items():
            sister.conf.set(key, value)
    except PySparkException as error:
        raise Problem(f"the Spark session of this process cannot be used: {_first_line(error)}") from None
    return sister, place


def _stopped(session: SparkSession) -> bool:
    stopped = getattr(session, "is_stopped", None)  # only Connect sessions have it
    return session._sc._jsc is None if stopped is None else bool(stopped)


def _shown(place: _Place) -> str:
    return re.sub(r"(?i)(token|password|secret)=[^;]*", r"\1=...", place.address)


def tagging(spark: SparkSession) -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[str], Any]]:
    """What marks the jobs of a thread with a tag, takes the mark away, and, called on any thread, ends the jobs that bear it.

    A session whose Java is here forgets on other threads what its `addTag` has marked: its `interruptTag` ends none there
    (PySpark 4.3). The context below it forgets nothing; over Connect there is none, and none is needed.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        return spark.addTag, spark.removeTag, spark.interruptTag
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


# Local and standalone cluster: the driver is a Java of this process.


def _start_classic(place: _Place, size: Size, app_name: str, config: dict[str, str]) -> SparkSession:
    global _java_size
    java_runs = SparkContext._gateway is not None
    if java_runs and size == "large" and _java_size != "large":
        raise Problem(
            "the Java of this process already runs and was not started for a large session",
            do='Restart the kernel (or the process), then ask for size="large" first',
        )
    if place.way == CLUSTER and not any(_answers(host, port) for host, port in place.hosts):
        raise Problem(
            "the Spark cluster does not answer",
            place.address,
            "Is the master running, and the port right? Without a cluster use local[*]",
        )
    logging.getLogger().addFilter(_is_news)
    options = {**_RULES, **_ARROW, **_driver_options(place, size, app_name), **config}
    environment = _environment(place)
    if not java_runs:
        _java_size = size
        java = find_java()
        environment["JAVA_HOME"] = str(launcher(java))
        quiet = Path(__file__).with_name("quiet.log4j2.properties").as_uri()
        started = [*(_FAST if size == "small" else []), f"-Dlog4j2.configurationFile={quiet}"]
        started += sharing_options(java, _SPARK_HOME, next(cache_folders()))
        theirs = config.get("spark.driver.extraJavaOptions", "")
        options["spark.driver.extraJavaOptions"] = " ".join([*map(_quoted, started), theirs]).strip()
    try:
        with _changed_environment(environment):
            return SparkSession.builder.config(map=dict(options)).getOrCreate()
    except KeyboardInterrupt as stopped:
        _end_half_started_java(stopped)
        raise
    except (PySparkException, Py4JError, OSError) as error:
        raise Problem(f"Spark did not start: {_first_line(error)}", place.address, _advice(place)) from None


def _end_half_started_java(stopped: BaseException) -> None:
    """pyspark forgets the Java that it waits for when the wait is broken off; nobody would ever end it."""
    for frame, _ in walk_tb(stopped.__traceback__):
        java = frame.f_locals.get("proc") if frame.f_code.co_name == "launch_gateway" else None
        if isinstance(java, subprocess.Popen):
            java.kill()
            java.wait()


def _is_news(record: logging.LogRecord) -> bool:
    """False for the pages that py4j writes when Ctrl-C breaks off a call: it raises or answers an error as well."""
    return record.module != "java_gateway"


def _driver_options(place: _Place, size: Size, app_name: str) -> dict[str, str]:
    options = {
        "spark.master": place.address,
        "spark.app.name": app_name,
        "spark.driver.memory": f"{_driver_gigabytes(size)}g",
        # The UI has no login and shows what the evidence holds: only if asked for, and only on the loopback address.
        "spark.ui.enabled": str((size == "large" or bool(os.environ.get(SPARK_UI))) and place.on_this_machine).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (_temporary_folder() / "warehouse").as_uri(),
    }
    if place.on_this_machine:
        options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if size == "small":
        options["spark.sql.shuffle.partitions"] = str(max(2, _cores(place)))
        options["spark.executor.extraJavaOptions"] = " ".join(_FAST)
    elif place.way == LOCAL:
        options["spark.sql.shuffle.partitions"] = str(max(16, 4 * _cores(place)))
    return options  # a large cluster: Spark's own 200, joined at run time where they turn out small


def _environment(place: _Place) -> dict[str, str | None]:
    """What Spark reads from the environment while it starts; None removes a variable that would overrule us."""
    environment: dict[str, str | None] = dict.fromkeys(_OVERRULING)
    environment["SPARK_HOME"] = str(_SPARK_HOME)
    # Without these, workers run the first python3 on PATH, which knows neither pandas nor us. The machines of a real
    # cluster may have their Python elsewhere: there the user's word counts.
    python = (not place.on_this_machine and os.environ.get("PYSPARK_PYTHON")) or sys.executable
    environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if place.on_this_machine:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Left behind by a Connect session that was stopped; with it, functions would still be built for Connect.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    return environment


def _cores(place: _Place) -> int:
    if place.way != LOCAL:
        return 8
    inside = re.search(r"\[(\*|\d+)", place.address)
    if not inside:
        return 1
    if inside[1] != "*":
        return int(inside[1])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _driver_gigabytes(size: Size) -> int:
    """Python workers parse; Java needs room for sorting and joining. It is only address space until it is used."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):
            memory = min(memory, int(Path(limit).read_text()))
    share, least, most = (4, 1, 4) if size == "small" else (2, 2, 30)  # from 32 GB on, Java's pointers double in size
    return min(max(memory // share >> 30, least), most)


def _advice(place: _Place) -> str:
    if place.way == CLUSTER:
        return f"Does the cluster run Spark {pyspark.__version__}, and can it reach this machine?"
    return "The lines above, from Java, say more. Is there memory and room in the temporary folder?"


# Spark Connect: the driver is a server elsewhere.


def _start_connect(place: _Place, config: dict[str, str]) -> SparkSession:
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(place.address).toChannel()
        try:
            grpc.channel_ready_future(channel).result(timeout=REACH_SECONDS)
        finally:
            channel.close()
    except grpc.FutureTimeoutError:
        raise Problem(
            f"no Spark Connect server answered within {REACH_SECONDS:.0f} s",
            _shown(place),
            "Is it running, and are the port and use_ssl right? Without a server use local[*]",
        ) from None
    except PySparkException as error:
        raise Problem(f"not an address of a Spark Connect server: {_first_line(error)}", _shown(place)) from None
    rules = {**_RULES, **config}
    try:
        with _changed_environment(dict.fromkeys(_OVERRULING)):
            session = SparkSession.builder.remote(place.address).config(map=dict(rules)).getOrCreate()
        # The builder passes over what the server refuses; a session with other rules would give other results.
        refused = [key for key, value in rules.items() if session.conf.get(key, None) != value]
    except (PySparkException, grpc.RpcError) as error:
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        raise Problem(f"the Spark Connect server refused: {_first_line(error)}", _shown(place)) from None
    if refused:
        session.stop()
        raise Problem("the Spark Connect server does not take these settings", ", ".join(refused))
    return session


def _ship_package(session: SparkSession) -> None:
    """Workers elsewhere have Python and its packages, but not this one: send it, so that they run the same code."""
    session.addArtifacts(str(package_zip()), pyfile=True)


@cache
def package_zip() -> Path:
    """The package `workbench` as a zip for workers, named by its content: two versions never share a name."""
    root = Path(__file__).parent.parent
    draft = _temporary_folder() / "workbench.zip"
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([root, *root.rglob("*")]):
            if "__pycache__" in file.parts:
                continue
            # Without times, so that the same files make the same zip; with folders, or those of them that have no
            # __init__.py cannot be imported.
            name = (Path("workbench") / file.relative_to(root)).as_posix()
            entry = zipfile.ZipInfo(name + "/" * file.is_dir())
            archive.writestr(entry, b"" if file.is_dir() else file.read_bytes(), zipfile.ZIP_DEFLATED)
    return draft.rename(draft.with_stem(f"workbench-{hashlib.sha256(draft.read_bytes()).hexdigest()[:12]}"))


@cache
def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="replication-workbench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """The environment of the user's process is lent, not kept."""
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError):
        return False
    return True


def _first_line(error: BaseException) -> str:
    """The sentence of an error that tells, without the stack traces of Java around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    told = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    return printable(told)[:300]


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
