"""Blocks of different sizes: the counts and places of the V operations, checked against their buffer."""

from __future__ import annotations

import ctypes as c
import operator
from typing import Sequence

from .buffers import View


class Blocks:
    """One block for each rank within a buffer. `counts` and `displs` are what the library reads."""

    def __init__(self, what: str, size: int, view: View, counts: Sequence[int], displs: Sequence[int] | None) -> None:
        self._counts = _numbers(what, "counts", size, counts)
        places = _numbers(what, "displs", size, displs) if displs is not None else [sum(self._counts[:k]) for k in range(size)]
        for rank, (place, count) in enumerate(zip(places, self._counts)):
            if place + count > view.count:
                raise ValueError(
                    f"{what} has {view.count} elements, but rank {rank}'s block of {count} would end at {place + count}"
                )
        width = view.element.width
        self.counts = (c.c_uint64 * size)(*(n * width for n in self._counts))
        self.displs = (c.c_uint64 * size)(*(n * width for n in places))

    def own(self, what: str, view: View, rank: int) -> None:
        """Refuses a buffer for this rank's own block that has another size."""
        if view.count != self._counts[rank]:
            raise ValueError(
                f"{what} has {view.count} elements, but counts[{rank}], which is this rank's, is {self._counts[rank]}"
            )


def _numbers(what: str, name: str, size: int, given: Sequence[int]) -> list[int]:
    numbers = [operator.index(n) for n in given]
    if len(numbers) != size:
        raise ValueError(f"{what}: {name} has {len(numbers)} entries for {size} ranks")
    if any(n < 0 for n in numbers):
        raise ValueError(f"{what}: {name} {numbers} has a negative entry")
    return numbers
