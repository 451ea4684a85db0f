"""Clients that write to the suppliers of a mesh without a pause, at a rate that is asked of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

from live_installed import SUFFIX
from live_mesh import Mesh, person

_KEPT = 40
"""Entries of one writer at a time: the oldest goes for each new one."""


def changes(name: str, others: list[str]) -> Iterator[str]:
    """What one writer sends, for ever: additions, changes of its own entries and of others', moves and deletions."""
    for number in count():
        yield person(f"{name}-{number}", f"description: {number}\n")
        yield _modified(f"{name}-{number}", "replace: description", f"description: {number} of {name}")
        yield _modified(f"{name}-{number}", "add: telephoneNumber", f"telephoneNumber: +49 30 {number:07}")
        for other in others:  # may be gone by now: the server refuses it, and nothing is replicated
            yield _modified(f"{other}-{max(number - _KEPT // 2, 0)}", "replace: title", f"title: by {name}")
        if number % 5 == 0:
            moved = f"dn: uid={name}-{number},ou=people,{SUFFIX}\nchangetype: modrdn\nnewrdn: uid={name}-m{number}\n"
            yield f"{moved}deleteoldrdn: 1\n"
        if (old := number - _KEPT) >= 0:
            yield f"dn: uid={name}-{'m' * (old % 5 == 0)}{old},ou=people,{SUFFIX}\nchangetype: delete\n"


def _modified(uid: str, how: str, value: str) -> str:
    return f"dn: uid={uid},ou=people,{SUFFIX}\nchangetype: modify\n{how}\n{value}\n"


@contextmanager
def writing(mesh: Mesh, rate: float) -> Iterator[dict[str, int]]:
    """`rate` changes a second in all, while the block runs; how many each supplier was sent."""
    end, sent = Event(), dict.fromkeys(mesh.suppliers, 0)

    def write(name: str) -> None:
        command = ["ldapmodify", "-Q", "-c", "-Y", "EXTERNAL", "-H", mesh.ldapi(name)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, text=True) as client:
            assert client.stdin
            began = time.monotonic()
            for one in changes(name, [other for other in mesh.suppliers if other != name]):
                client.stdin.write(one + "\n")
                client.stdin.flush()  # a server that is slower than the rate fills the pipe: then this waits
                sent[name] += 1
                ahead = sent[name] * len(mesh.suppliers) / rate - (time.monotonic() - began)
                if end.wait(max(ahead, 0)):
                    break
            client.stdin.close()

    threads = [Thread(target=write, args=(name,), daemon=True) for name in mesh.suppliers]
    for thread in threads:
        thread.start()
    try:
        yield sent
    finally:
        end.set()
        for thread in threads:
            thread.join(120)
