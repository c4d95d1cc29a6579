"""How a communicator is made."""

from __future__ import annotations

import ctypes as c
import dataclasses

_UNSET = -(2**31)
_MAGIC, _VERSION = 0xCAFEBEEF, 23203

_TEXTS = ("netName", "commName")
_MEMBERS = (
    "blocking",
    "cgaClusterSize",
    "minCTAs",
    "maxCTAs",
    "netName",
    "splitShare",
    "trafficClass",
    "commName",
    "collnetEnable",
    "CTAPolicy",
    "shrinkShare",
    "nvlsCTAs",
    "nChannelsPerNetPeer",
    "nvlinkCentricSched",
    "graphUsageMode",
    "numRmaCtx",
    "maxP2pPeers",
    "graphStreamOrdering",
    "launchOrderImplicit",
    "numRmaSig",
    "rmaEagerInit",
    "hostCftMode",
    "nvlsHostMode",
)


class Struct(c.Structure):
    """ncclConfig_t of 2.32.3."""

    _fields_ = [("size", c.c_size_t), ("magic", c.c_uint), ("version", c.c_uint)] + [
        (name, c.c_char_p if name in _TEXTS else c.c_int) for name in _MEMBERS
    ]


@dataclasses.dataclass(frozen=True)
class Config:
    """What can be asked of a communicator when it is made; None leaves it to the library.

    name: appears in the log. min_channels, max_channels: how many parts of an operation run beside each other. blocking=False:
    making it and its operations only begin when they are called; Communicator.wait ends them.
    """

    name: str | None = None
    min_channels: int | None = None
    max_channels: int | None = None
    blocking: bool = True

    def struct(self) -> Struct:
        made = Struct(size=c.sizeof(Struct), magic=_MAGIC, version=_VERSION)
        for name in _MEMBERS:
            setattr(made, name, None if name in _TEXTS else _UNSET)
        made.blocking = int(self.blocking)
        made.minCTAs = _UNSET if self.min_channels is None else self.min_channels
        made.maxCTAs = _UNSET if self.max_channels is None else self.max_channels
        made.commName = None if self.name is None else self.name.encode()
        return made
