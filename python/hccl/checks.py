"""Checks of an operation's arguments: what is wrong is told by a sentence before the library is called."""

from __future__ import annotations

import enum
import operator
from typing import TYPE_CHECKING, Union

from . import buffers
from .buffers import Data, View

if TYPE_CHECKING:
    from .reductions import ScaledSum

    Reduction = Union["Op", ScaledSum]


class Op(enum.IntEnum):
    """How elements of all ranks become one. AVG is the sum divided by the number of ranks. BAND, BOR and BXOR work on the bits of
    integers and on the truth of bool."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4
    BAND = 64
    BOR = 65
    BXOR = 66


SUM, PROD, MAX, MIN, AVG, BAND, BOR, BXOR = Op
_BITS = (BAND, BOR, BXOR)


class Checks:
    """What a communicator's operations ask of their arguments."""

    rank: int
    size: int

    def _two(self, what: str, send: Data, recv: Data) -> tuple[View, View]:
        s, r = buffers.view(send, f"{what}: send"), buffers.view(recv, f"{what}: recv", writes=True)
        if s.element is not r.element and s.element != r.element:
            raise TypeError(
                f"{what}: send has elements of type {s.element.name}, recv of type {r.element.name}: both must be of one type"
            )
        return s, r

    def _pair(self, what: str, send: Data, recv: Data | None, sends: int, recvs: int) -> tuple[View, View, Data]:
        """Both buffers, of `sends` and `recvs` blocks of one size."""
        if recv is None:
            s = buffers.view(send, f"{what}: send", writes=True)
            return s, s, send
        s, r = self._two(what, send, recv)
        if s.count * recvs != r.count * sends or s.count % sends:
            raise ValueError(
                f"{what}: {_blocks('send', s, sends)} and {_blocks('recv', r, recvs)} do not fit each other"
                f" among {self.size} ranks"
            )
        return s, r, recv

    def _needed(self, what: str, name: str, given: Data | None) -> Data:
        if given is None:
            raise TypeError(f"{what}: {name} is None, but rank {self.rank} is the root and needs it")
        return given

    def _rank(self, what: str, name: str, value: int) -> int:
        number = operator.index(value)
        if not 0 <= number < self.size:
            raise ValueError(f"{what}: {name} {number} is none of {self.size} ranks (0 to {self.size - 1})")
        return number

    def _op(self, what: str, op: Reduction, view: View) -> int:
        if not view.element.computes:
            raise TypeError(f"{what}: elements of type {view.element.name} can be moved, but not computed with")
        if isinstance(op, Op):
            if view.element.name == "bool" and op is AVG:
                raise TypeError(f"{what}: AVG of bool makes no sense: take BOR, BAND or BXOR, or another type of elements")
            if "float" in view.element.name and op in _BITS:
                raise TypeError(f"{what}: {op.name} of {view.element.name} makes no sense: only integers and bool have bits")
            return int(op)
        number = getattr(op, "number_for", None)
        if number is None:
            raise TypeError(
                f"{what}: op is {op!r}: choose hccl.SUM, PROD, MAX, MIN, AVG, BAND, BOR, BXOR, or what scaled_sum makes"
            )
        return int(number(what, self, view.element))


def _blocks(name: str, view: View, blocks: int) -> str:
    said = f"{name} with {view.count} elements"
    return said if blocks == 1 else f"{said} in {blocks} blocks"
