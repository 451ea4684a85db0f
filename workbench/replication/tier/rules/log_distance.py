"""How far two places of a physical log are apart, and who can still give what a node needs next.

A log is a row of numbered files. A place is (file, offset); the files between two places count whole. The exact distance needs
the size of each file on the way, which any node tells that has it; the nominal one takes every file for full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.replication.tier.rules.tiers import Lsn


def exact(here: Lsn, there: Lsn, sizes: Mapping[int, int]) -> int | None:
    """Bytes of the log from one place to another, negative if that lies before it; None where a size is not known.

    >>> exact((4, 90), (6, 10), {4: 100, 5: 50})
    70
    """
    if there < here:
        back = exact(there, here, sizes)
        return None if back is None else -back
    if here[0] == there[0]:
        return there[1] - here[1]
    between = [sizes.get(file) for file in range(here[0], there[0])]
    known = [size for size in between if size is not None]
    return sum(known) - here[1] + there[1] if len(known) == len(between) else None


def nominal(here: Lsn, there: Lsn, file_size: int) -> int:
    """The same, as a server counts that knows no sizes: every file is as large as a file may be."""
    return (there[0] - here[0]) * file_size + there[1] - here[1]


def sizes_of(files: Iterable[Mapping[int, int]]) -> tuple[dict[int, int], frozenset[int]]:
    """Of each file the size that most was seen of it, and the files of which nobody shows the end.

    A node that lags has only the beginning of its newest file. A file is whole on a node that has a later one.
    """
    sizes: dict[int, int] = {}
    whole: set[int] = set()
    for held in files:
        newest = max(held, default=0)
        for file, size in held.items():
            sizes[file] = max(size, sizes.get(file, 0))
            if file < newest:
                whole.add(file)
    return sizes, frozenset(sizes.keys() - whole)


def file_size_of(sizes: Iterable[int]) -> int | None:
    """How large a file may be, guessed by the largest one: the next power of two from 64 KiB on. None: no file is known.

    A server begins a new file when the next record does not fit, so full files end just below their limit.
    """
    largest = max(sizes, default=None)
    if largest is None:
        return None
    size = 1 << 16
    while size < largest:
        size <<= 1
    return size
