"""What several tests share: Spark (a local session, a real cluster, a Connect server) and real Directory Servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pyspark
import pytest
import sql_server
from case_samples import SNAPSHOTS
from hypothesis import settings
from live_installed import absent
from live_mesh import Mesh
from spark_application import Application, application
from sql_server import Database

from workbench import Case
from workbench.engine.java import find_java, launcher
from workbench.engine.session import spark_session
from workbench.model import Problem

settings.register_profile("workbench", deadline=None)  # a machine at its limit is slow, and nothing is wrong
settings.load_profile("workbench")

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 180
CHROMIUM = "/usr/bin/chromium"

STRIDES = [5, pytest.param(1, marks=pytest.mark.slow)]
"""Of places where something is cut or fails each fifth is tried every time, each one where there is time."""

COSTLY = ("live", "cluster", "browser", "spark", "sql")
"""What takes long to start: marks and fixtures of these names. A test that uses one bears its mark."""

Process = subprocess.Popen[bytes]


def pytest_configure() -> None:
    """Let Ctrl-C end what tests start: a shell without job control hands down that it is ignored to what it runs with `&`."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test by what it uses; of the processes that `make test` starts, one runs all that share what starts slowly."""
    for item in items:
        used = {mark.name for mark in item.iter_markers()}.union(getattr(item, "fixturenames", ()))
        costly = [name for name in COSTLY if name in used]
        for name in costly:
            item.add_marker(name)
        if costly:
            item.add_marker(pytest.mark.xdist_group(costly[0]))


def need(what: str, present: object) -> None:
    """Skip the test by name if something that it needs is not on this machine; in CI that is an error."""
    if not present:
        absent = f"needs {what}, which is not here"
        pytest.fail(absent) if os.environ.get("CI") == "true" else pytest.skip(absent)


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs keep what they have in flight: a folder of the test's own."""
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home / "replication-workbench"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one local session of the test process."""
    session = spark_session("local[2]", app_name="tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def one_sql_server() -> Iterator[Database]:
    """The one MariaDB of the test process, in memory if there is room, and of a short name: no socket has a long one."""
    need(f"{sql_server.absent()} (Debian: mariadb-server)", not sql_server.absent())
    memory = "/dev/shm" if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 1 << 30 else None
    with tempfile.TemporaryDirectory(prefix="sql-", dir=memory) as folder, sql_server.database(Path(folder)) as found:
        yield found


@pytest.fixture
def sql(one_sql_server: Database) -> Database:
    """A MariaDB that holds nothing."""
    one_sql_server.empty()
    return one_sql_server


@pytest.fixture(scope="session")
def case(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The incident, loaded once through Spark; nobody loads more into it."""
    made = Case.create(tmp_path_factory.mktemp("case") / "incident")
    made.load(SNAPSHOTS, spark)
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser; not for longer than a module, for as long nothing else of the process can have an event loop."""
    need("Debian's chromium", Path(CHROMIUM).exists())
    need("playwright", find_spec("playwright"))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", here]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone cluster: one master and two workers, on the loopback address, of this machine.

    They run in an empty folder and without PYTHONPATH: what a job needs of this project it has to bring along.
    """
    folder = tmp_path_factory.mktemp("cluster")
    port, status = _free_port(), _free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as started:
        here = ("--host", "127.0.0.1")
        options: tuple[object, ...] = (*here, "--port", port, "--webui-port", status)
        processes = [_start(started, folder, "master", "deploy.master.Master", *options)]
        for number in (1, 2):
            options = (*here, "--cores", 1, "--memory", "1g", "--webui-port", 0, "-d", folder, master)
            processes.append(_start(started, folder, f"worker{number}", "deploy.worker.Worker", *options))
        _wait("a standalone Spark cluster", folder, processes, lambda: _alive_workers(status) == 2)
        yield master


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, set up like the workers of the cluster."""
    folder = tmp_path_factory.mktemp("connect")
    port = _free_port()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with ExitStack() as started:
        options = ["--master", "local[2]", "--class", server, *options]
        process = _start(started, folder, "connect", "deploy.SparkSubmit", *options)
        _wait("a Spark Connect server", folder, [process], lambda: _listens(port))
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="session", params=["cluster", "connect_server"])
def there(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """The one application of the tests on the cluster, and the one behind Spark Connect.

    The session of its job is had in the other way than that of the questions: with a setting, or by the environment.
    """
    place = request.getfixturevalue(request.param)
    if request.param == "cluster":
        first: dict[str, Any] = {"master": place, "config": {"spark.executor.memory": "512m"}}
        then, environment = {"master": place}, {}
    else:
        first, then, environment = {}, {"remote": place}, {"SPARK_REMOTE": place, "MASTER": "local[1]"}
    folder = tmp_path_factory.mktemp("application")
    with application(folder, {**_environment_elsewhere(), **environment}, first, then) as started:
        yield started


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Three real suppliers, each feeding the two others; s1 speaks TLS. A test that breaks it mends it again."""
    _need_a_server()
    roles = dict.fromkeys(("s1", "s2", "s3"), "supplier")
    feeds = [(supplier, consumer) for supplier in roles for consumer in roles if supplier != consumer]
    with _live(Mesh(tmp_path_factory.mktemp("mesh"), roles, feeds, certified=["s1"])) as built:
        yield built


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Two real suppliers; s1 feeds the consumer c2 and the hub h1, which feeds the consumer c1."""
    _need_a_server()
    roles = {"s1": "supplier", "s2": "supplier", "h1": "hub", "c1": "consumer", "c2": "consumer"}
    feeds = [("s1", "s2"), ("s2", "s1"), ("s1", "h1"), ("s1", "c2"), ("h1", "c1")]
    with _live(Mesh(tmp_path_factory.mktemp("tree"), roles, feeds)) as built:
        yield built


@pytest.fixture
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Three real suppliers of one test alone, which may leave them broken.

    A server whose replica ID was cleaned can join again, but what it wrote before is then missing on the others for ever.
    """
    _need_a_server()
    roles = dict.fromkeys(("s1", "s2", "s3"), "supplier")
    feeds = [(supplier, consumer) for supplier in roles for consumer in roles if supplier != consumer]
    with _live(Mesh(tmp_path_factory.mktemp("trio"), roles, feeds)) as built:
        yield built


def _need_a_server() -> None:
    missing = absent()
    need(f"389 Directory Server and root (there is no {missing})", not missing)


@contextmanager
def _live(mesh: Mesh) -> Iterator[Mesh]:
    try:
        mesh.build()
        yield mesh
    finally:
        mesh.remove()


@dataclass(frozen=True)
class Elsewhere:
    """Runs Python code in a process of its own, in an empty folder: a process has one Java and one kind of session."""

    folder: Path

    def __call__(self, code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env={**_environment_elsewhere(), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on by itself, and threads take turns: a run with the same faults has to be the same run."""
    from memory_servers import InTurn

    from workbench.systems.ds389.live import planned

    clock = count(step=2)
    monkeypatch.setattr(planned, "ThreadPoolExecutor", InTurn)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    """A fresh process in an empty folder."""
    (tmp_path / "empty").mkdir()
    return Elsewhere(tmp_path / "empty")


def _bare_environment() -> dict[str, str]:
    """The environment without what would lead to another Spark, or make this project importable."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_")) and name not in ("PYTHONPATH", "MASTER")
    }


def _environment_elsewhere() -> dict[str, str]:
    """What another process needs to import this project and the tests."""
    return {**_bare_environment(), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}


def _start(started: ExitStack, folder: Path, name: str, what: str, *options: object) -> Process:
    return started.enter_context(_process(folder, name, what, *map(str, options)))


@contextmanager
def _process(folder: Path, name: str, what: str, *options: str) -> Iterator[Process]:
    """One Java of Spark, stopped by its process id whatever happens."""
    spark_home = Path(pyspark.__file__).parent
    try:
        java = launcher(find_java())
    except Problem as problem:
        need(str(problem), False)
    environment = _bare_environment() | {
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m" if what.startswith(("deploy.master", "deploy.worker")) else "1g",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [spark_home / "bin" / "spark-class", f"org.apache.spark.{what}", *options],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: Process) -> None:
    """Stop a process that a test started; one that does not listen is killed."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(what: str, folder: Path, processes: list[Process], ready: Callable[[], bool]) -> None:
    until = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > until or any(process.poll() is not None for process in processes):
            ends = [f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in sorted(folder.glob("*.log"))]
            need("\n".join([f"{what} (did not start)", *ends]), False)
        time.sleep(0.25)


def _alive_workers(status_port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{status_port}/json/", timeout=5) as answer:
            workers = json.load(answer)["workers"]
    except (OSError, ValueError):
        return 0
    return sum(worker["state"] == "ALIVE" for worker in workers)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
