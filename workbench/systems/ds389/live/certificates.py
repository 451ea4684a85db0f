"""The public certificates of an instance of this machine, by NSS's own `certutil`, which reads the database beside the server.

Only listings are asked for. NSS opens the database for reading, no password and no pin file is read, and nothing is asked of a
person: a token that wants a password shows nothing. NSS also loads the modules that the folder of the database names, so root
has it run as the owner of the database, who can do nothing to the machine with it that the server could not.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.ds389.formats.certificates import ABOUT, LARGEST
from workbench.systems.ds389.live.instances import Instance

DATABASES = ("cert9.db", "cert8.db")
_SECONDS = 30
"""For all calls of `certutil` together: with the authorities that an operating system brings they are 150."""
_LONGEST = 4 << 20
"""Bytes that one call may print."""
_SAID = 300
"""Bytes of what `certutil` says of a failure that are shown."""
_MOST = 400
"""Certificates of a server; a file of more says so."""
_LISTED = re.compile(r"(\S.*?)\s+([pPcCTugw]*,[pPcCTugw]*,[pPcCTugw]*)\s*")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\r?\n[A-Za-z0-9+/=\r\n]+-----END CERTIFICATE-----")


def certificates_of(instance: Instance) -> str | None:
    """The certificates of an instance as text, see `formats.certificates`; None if it has no database of them.

    Raises Problem if there is no certutil, or if it cannot read the database.
    """
    folder = next((one for one in _folders(instance) if any(os.path.exists(one / name) for name in DATABASES)), None)
    if folder is None:
        return None
    until = time.monotonic() + _SECONDS
    listed = _listed(_asked(instance, folder, until, "-L", "-h", "all"))
    blocks = [
        "\n".join([
            f"{ABOUT}{instance.name}: certutil -L -d {printable(str(folder))} -h all",
            f"# certificates of consumers checked: {'on' if instance.checks_certificates else 'off'}",
            f"# encryption: {'on' if instance.encrypts else 'off'}",
            *([f"# encrypts at: {printable(address)}"] if (address := _address(instance)) else []),
            *([f"# left out: {len(listed) - _MOST} of {len(listed)}"] if len(listed) > _MOST else []),
        ])
    ]  # fmt: skip
    mine = set(instance.certificates)
    # Its own first: of a database of thousands these are never left out.
    for nickname, trust in sorted(listed.items(), key=lambda one: one[0] not in mine)[:_MOST]:
        for pem in _PEM.findall(_asked(instance, folder, until, "-L", "-a", "-n", nickname)):
            if len(pem) < LARGEST // 2:
                blocks.append(_block(nickname, trust, nickname in mine, pem))
    return "\n\n".join(blocks) + "\n\n"


def _address(instance: Instance) -> str:
    """Where it takes encrypted connections: no vector names that port."""
    return f"{instance.host}:{instance.secure_port}" if instance.host and instance.secure_port else ""


def _folders(instance: Instance) -> Iterator[Path]:
    if instance.certificates_folder:
        yield instance.certificates_folder
    yield instance.configuration.parent


def _owner(folder: Path) -> dict[str, Any]:
    """As whom root runs it."""
    if os.geteuid():
        return {}
    about = next(os.stat(folder / name) for name in DATABASES if os.path.exists(folder / name))
    return {"user": about.st_uid, "group": os.stat(folder).st_gid, "extra_groups": []}


def _listed(text: str) -> dict[str, str]:
    """Nickname -> trust flags, of the listing that `certutil -L` prints."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if (match := _LISTED.fullmatch(line)) and len(match[1]) < 1024:
            found.setdefault(match[1], match[2])
    return found


def _block(nickname: str, trust: str, used: bool, pem: str) -> str:
    notes = {"nickname": printable(nickname), "trust": trust, "in use": "yes" if used else "no"}
    return "\n".join([*(f"# {key}: {value}" for key, value in notes.items()), pem.replace("\r", "")])


def _asked(instance: Instance, folder: Path, until: float, *words: str) -> str:
    """What certutil prints. Raises Problem if it is not there, fails, or takes longer than all calls may."""
    program = shutil.which(instance.tool("certutil"))
    if not program:
        raise Problem("there is no certutil", "", "install it (libnss3-tools, nss-tools)")
    ended_for: list[str] = []
    with tempfile.TemporaryFile() as said:  # a file: nobody has to read it while the output is read
        try:
            process = subprocess.Popen(
                [program, *words[:1], "-d", str(folder), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                # Whom it runs as may not be whom our own environment is for.
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                cwd="/",
                start_new_session=True,  # without a terminal it can ask nobody for a password
                **_owner(folder),
            )
        except OSError as error:
            raise Problem(f"certutil cannot be run: {error.strerror}", program, "run it by hand") from None

        def end(why: str) -> None:
            ended_for.append(why)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        clock = Timer(max(until - time.monotonic(), 0.1), end, [f"did not end within {_SECONDS} s"])
        clock.start()
        with process:
            assert process.stdout, "it is a pipe"
            data = process.stdout.read(_LONGEST + 1)
            if len(data) > _LONGEST:
                end(f"printed more than {_LONGEST >> 20} MiB")
            code = process.wait()
        clock.cancel()
        said.seek(0)
        reason = " ".join(said.read(_SAID).decode("utf-8", "replace").split())
    if ended_for or code:
        root = os.geteuid() == 0
        do = (
            "run it by hand: `certutil -L -d` with this folder"
            if root
            else "start as root, or as the user of the server"
        )
        why = ended_for[0] if ended_for else f"ended with {code}{f', {printable(reason)}' if reason else ''}"
        raise Problem(f"certutil {why}", str(folder), do)
    return data.decode("utf-8", "replace")
