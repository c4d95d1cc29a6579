"""Sums that scale each rank's input by a factor of its own."""

from __future__ import annotations

import ctypes as c
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import elements, lib
from .results import error

if TYPE_CHECKING:
    from .membership import Membership

_AT_ONCE = 1  # ncclScalarHostImmediate: the factor is read when the reduction is made


class ScaledSum:
    """A reduction made by Communicator.scaled_sum: each rank's input times that rank's factor, summed. For one communicator and
    one type of elements; `close`, or the end of a `with` block, gives it back."""

    def __init__(self, comm: Membership, factor: float, element: Any) -> None:
        self._comm, self._element = comm, elements.named(element)
        made = c.c_int()
        comm.ask(
            "ncclRedOpCreatePreMulSum",
            c.byref(made),
            elements.pack(self._element, factor),
            self._element.number,
            _AT_ONCE,
            comm.handle,
        )
        self._number: int | None = made.value

    def number_for(self, what: str, comm: object, element: elements.Element) -> int:
        """The library's number of it, for a call on this communicator with such elements."""
        if self._number is None:
            raise ValueError(f"{what}: op is a scaled sum that was closed")
        if comm is not self._comm:
            raise ValueError(f"{what}: op is a scaled sum of another communicator")
        if element != self._element:
            raise TypeError(f"{what}: op is a scaled sum of {self._element.name}, but the elements are {element.name}")
        return self._number

    def close(self) -> None:
        number, self._number = self._number, None
        if number is not None and self._comm.handle:
            result = lib.load().ncclRedOpDestroy(number, self._comm.handle)
            if result:
                raise error("ncclRedOpDestroy", result, lib.text(result, self._comm.handle))

    def __enter__(self) -> ScaledSum:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
