"""Element types: what the library computes with, and what it can only move.

A type that the library does not have (complex64, a struct) travels as bytes in operations that move data, and is refused in those
that compute.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any


@dataclasses.dataclass(frozen=True)
class Element:
    """A type of elements: its ncclDataType_t, how many of those an element is, its bytes, and what may be computed with it."""

    name: str
    number: int
    width: int
    size: int
    computes: bool = True


_TABLE = (
    ("int8", 0, 1),
    ("uint8", 1, 1),
    ("int32", 2, 4),
    ("uint32", 3, 4),
    ("int64", 4, 8),
    ("uint64", 5, 8),
    ("float16", 6, 2),
    ("float32", 7, 4),
    ("float64", 8, 8),
    ("bfloat16", 9, 2),
    ("float8_e4m3fn", 10, 1),
    ("float8_e5m2", 11, 1),
    ("int16", 64, 2),  # HCCL's own: hcclInt16 and so on
    ("uint16", 65, 2),
    ("bool", 66, 1),
)
ELEMENTS = {name: Element(name, number, 1, size) for name, number, size in _TABLE}

_KINDS = {**dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float")}


def moved(name: str, size: int) -> Element:
    """A type that is only moved, as bytes."""
    return Element(name, ELEMENTS["uint8"].number, size, size, computes=False)


def of_format(what: str, text: str, size: int) -> Element:
    """The type that a struct format of the buffer protocol names."""
    code = text.lstrip("@=<") if struct.pack("=h", 1) == struct.pack("<h", 1) else text.lstrip("@=>")
    if code in ("c", "?"):
        return ELEMENTS["uint8" if code == "c" else "bool"]
    if code in _KINDS:
        name = f"{_KINDS[code]}{8 * size}"
        return ELEMENTS.get(name) or moved(name, size)
    if code[:1] in ("<", ">", "!") and code[1:] in _KINDS:
        raise TypeError(
            f"{what} has elements of format {text!r}, which have the other byte order: convert them to the machine's own"
        )
    if "O" in code:
        raise TypeError(f"{what} has Python objects as elements: only numbers and bytes can travel")
    return moved(f"format {text!r}", size)


def of_numpy(what: str, dtype: Any) -> Element:
    """The type that a numpy dtype is, those of ml_dtypes among them."""
    if dtype.hasobject:
        raise TypeError(f"{what} has Python objects as elements: only numbers and bytes can travel")
    if not dtype.isnative:
        raise TypeError(
            f"{what} has elements of type {dtype.str!r}, which have the other byte order: convert them by "
            "astype(dtype.newbyteorder('='))"
        )
    return ELEMENTS.get(dtype.name) or moved(dtype.name, dtype.itemsize)


def of_torch(dtype: Any) -> Element:
    """The type that a torch dtype is."""
    name = str(dtype).rpartition(".")[2]
    return ELEMENTS.get(name) or moved(name, dtype.itemsize)


def named(what: Any) -> Element:
    """The type that a person names: "float32", a numpy dtype or scalar class, a torch dtype."""
    name = (
        what
        if isinstance(what, str)
        else getattr(what, "name", None) or getattr(what, "__name__", None) or str(what).rpartition(".")[2]
    )
    found = ELEMENTS.get(name)
    if found is None:
        raise TypeError(f"{what!r} is no type of elements that can be computed with: choose one of {', '.join(ELEMENTS)}")
    return found


_BITS = {"bfloat16": (8, 7), "float8_e4m3fn": (4, 3), "float8_e5m2": (5, 2)}  # of the exponent and of the mantissa
_PACK = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def pack(element: Element, value: float) -> bytes:
    """One number as the bytes of an element."""
    if element.name in _BITS:
        return _pack_small(element, value)
    code = _PACK.get(element.name)
    if code is None:
        raise TypeError(f"a factor of type {element.name} makes no sense")
    whole = element.name.lstrip("u").startswith("int")
    if whole and value != int(value):
        raise ValueError(f"factor {value} is not a whole number, but the elements are {element.name}")
    try:
        return struct.pack("=" + code, int(value) if whole else float(value))
    except (struct.error, OverflowError) as e:
        raise ValueError(f"factor {value} does not fit {element.name}") from e


def _pack_small(element: Element, value: float) -> bytes:
    """The nearest of all values of a small float, by halving the range of its positive codes; a tie goes to the even code."""
    exponent, mantissa = _BITS[element.name]
    bias, low, high = (
        (1 << exponent - 1) - 1,
        0,
        ((1 << exponent + mantissa) - (1 if element.name == "float8_e4m3fn" else 1 << mantissa)) - 1,
    )

    def decode(code: int) -> float:
        e, m = code >> mantissa, code & (1 << mantissa) - 1
        return float((m if e == 0 else m + (1 << mantissa)) * 2.0 ** (max(e, 1) - bias - mantissa))

    size = abs(value)
    if not size <= decode(high):
        raise ValueError(f"factor {value} does not fit {element.name}, whose greatest value is {decode(high):g}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decode(middle) <= size else (low, middle)
    above, below = decode(high) - size, size - decode(low)
    code = high if above < below or (above == below and low % 2) else low
    negative = struct.pack("=d", value)[7 if struct.pack("=h", 1)[0] else 0] >> 7
    return int(code | negative << exponent + mantissa).to_bytes(element.size, "little")
