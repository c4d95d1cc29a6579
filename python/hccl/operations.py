"""The operations of a communicator: they check what they are given, then make one call of the library.

Counts never need to be given: they follow from the buffers. Where `recv` may be left out, the result goes to `send`'s place.
Every operation gives back the buffer that holds its result, or None on a rank that gets none. On a stream it returns at once, and
the result is there when the stream has come so far.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Sequence

from . import buffers, calls
from .buffers import Data
from .calls import ANY_SOURCE, ANY_TAG, Status
from .checks import SUM, Checks
from .vectors import Blocks

if TYPE_CHECKING:
    from .checks import Reduction
    from .streams import Stream


class Operations(Checks):
    """What a Communicator can do with buffers."""

    def run(self, name: str, *arguments: Any, held: Sequence[object] = (), stream: Stream | None = None) -> None:
        """Makes the call with these arguments, this communicator and the stream."""
        raise NotImplementedError

    # ---- Reductions ----

    def all_reduce(self, send: Data, recv: Data | None = None, op: Reduction = SUM, *, stream: Stream | None = None) -> Data:
        """The reduction of all ranks' `send`, on all ranks."""
        s, r, out = self._pair("all_reduce", send, recv, 1, 1)
        number = self._op("all_reduce", op, s)
        self.run("ncclAllReduce", s.address, r.address, s.count, s.element.number, number, held=(s, r), stream=stream)
        return out

    def reduce(
        self, send: Data, recv: Data | None = None, root: int = 0, op: Reduction = SUM, *, stream: Stream | None = None
    ) -> Data | None:
        """The reduction of all ranks' `send`, on rank `root`; the others need no `recv`."""
        root = self._rank("reduce", "root", root)
        if self.rank != root:
            s = buffers.view(send, "reduce: send")
            number = self._op("reduce", op, s)
            self.run("ncclReduce", s.address, None, s.count, s.element.number, number, root, held=(s,), stream=stream)
            return None
        s, r, out = self._pair("reduce", send, recv, 1, 1)
        number = self._op("reduce", op, s)
        self.run("ncclReduce", s.address, r.address, s.count, s.element.number, number, root, held=(s, r), stream=stream)
        return out

    def reduce_scatter(self, send: Data, recv: Data, op: Reduction = SUM, *, stream: Stream | None = None) -> Data:
        """`send` has one block for each rank; `recv` gets the reduction of this rank's blocks."""
        s, r, _ = self._pair("reduce_scatter", send, recv, self.size, 1)
        number = self._op("reduce_scatter", op, s)
        self.run("ncclReduceScatter", s.address, r.address, r.count, r.element.number, number, held=(s, r), stream=stream)
        return recv

    # ---- Moving ----

    def broadcast(self, buffer: Data, root: int = 0, *, stream: Stream | None = None) -> Data:
        """`buffer` of rank `root`, on all ranks, in its place."""
        root = self._rank("broadcast", "root", root)
        b = buffers.view(buffer, "broadcast: buffer", writes=self.rank != root)
        self.run(
            "ncclBroadcast", b.address, b.address, b.count * b.element.width, b.element.number, root, held=(b,), stream=stream
        )
        return buffer

    def all_gather(self, send: Data, recv: Data, *, stream: Stream | None = None) -> Data:
        """All ranks' `send`, one after the other, on all ranks. `send` may be this rank's block of `recv`."""
        s, r, _ = self._pair("all_gather", send, recv, 1, self.size)
        self.run(
            "ncclAllGather", s.address, r.address, s.count * s.element.width, s.element.number, held=(s, r), stream=stream
        )
        return recv

    def gather(self, send: Data, recv: Data | None = None, root: int = 0, *, stream: Stream | None = None) -> Data | None:
        """All ranks' `send`, one after the other, on rank `root`; the others need no `recv`."""
        root = self._rank("gather", "root", root)
        if self.rank == root:
            s, r, _ = self._pair("gather", send, self._needed("gather", "recv", recv), 1, self.size)
            self.run(
                "ncclGather",
                s.address,
                r.address,
                s.count * s.element.width,
                s.element.number,
                root,
                held=(s, r),
                stream=stream,
            )
            return recv
        s = buffers.view(send, "gather: send")
        self.run("ncclGather", s.address, None, s.count * s.element.width, s.element.number, root, held=(s,), stream=stream)
        return None

    def scatter(self, send: Data | None, recv: Data, root: int = 0, *, stream: Stream | None = None) -> Data:
        """One block of `send` of rank `root` to each rank; the others give None for `send`."""
        root = self._rank("scatter", "root", root)
        if self.rank == root:
            s, r, _ = self._pair("scatter", self._needed("scatter", "send", send), recv, self.size, 1)
            self.run(
                "ncclScatter",
                s.address,
                r.address,
                r.count * r.element.width,
                r.element.number,
                root,
                held=(s, r),
                stream=stream,
            )
            return recv
        r = buffers.view(recv, "scatter: recv", writes=True)
        self.run("ncclScatter", None, r.address, r.count * r.element.width, r.element.number, root, held=(r,), stream=stream)
        return recv

    def all_to_all(self, send: Data, recv: Data, *, stream: Stream | None = None) -> Data:
        """Block p of `send` goes to rank p; block p of `recv` comes from it. Not in place."""
        s, r, _ = self._pair("all_to_all", send, recv, self.size, self.size)
        self.run(
            "ncclAlltoAll",
            s.address,
            r.address,
            s.count // self.size * s.element.width,
            s.element.number,
            held=(s, r),
            stream=stream,
        )
        return recv

    def send(self, buffer: Data, peer: int, tag: int = 0, *, stream: Stream | None = None) -> None:
        """A message to rank `peer`, which must receive it. In a group, where messages cross."""
        peer, tag = self._rank("send", "peer", peer), calls.tag_of("send", tag, 0)
        b = buffers.view(buffer, "send: buffer")
        what = b.address, b.count * b.element.width, b.element.number, peer
        if tag == 0:
            self.run("ncclSend", *what, held=(b,), stream=stream)
        else:
            self.run("hcclSend", *what, tag, held=(b,), stream=stream)

    def recv(
        self, buffer: Data, peer: int, tag: int = 0, status: Status | None = None, *, stream: Stream | None = None
    ) -> Data:
        """The next message of rank `peer` with this tag, into `buffer`, which must be as long. Where `status` is given, which then
        says what came, or `peer` is ANY_SOURCE or `tag` ANY_TAG, the message may be shorter."""
        anyone = operator.index(peer) == ANY_SOURCE
        peer, tag = ANY_SOURCE if anyone else self._rank("recv", "peer", peer), calls.tag_of("recv", tag, ANY_TAG)
        b = buffers.view(buffer, "recv: buffer", writes=True)
        what = b.address, b.count * b.element.width, b.element.number, peer
        if tag == 0 and status is None and not anyone:
            self.run("ncclRecv", *what, held=(b,), stream=stream)
        else:
            if status is not None and not isinstance(status, Status):
                raise TypeError(f"recv: status is of type {type(status).__name__}: give an hccl.Status to be filled")
            self.run("hcclRecv", *what, tag, status, held=(b, status), stream=stream)
        return buffer

    def barrier(self, timeout: float | None = None, *, stream: Stream | None = None) -> None:
        """Returns, or is passed by the stream, when all ranks have come to it. LimitError names those that have not come within
        `timeout` seconds; without one the communicator's limit holds."""
        self.run("hcclBarrier", calls.milliseconds("barrier", timeout) if timeout is not None else 0, stream=stream)

    # ---- Blocks of different sizes ----

    def all_gather_v(
        self,
        send: Data,
        recv: Data,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
        *,
        stream: Stream | None = None,
    ) -> Data:
        """As all_gather; rank p's block has counts[p] elements and stands at element displs[p] of `recv`, without gaps by
        default."""
        s, r = self._two("all_gather_v", send, recv)
        blocks = Blocks("all_gather_v: recv", self.size, r, counts, displs)
        blocks.own("all_gather_v: send", s, self.rank)
        self.run(
            "hcclAllGatherV",
            s.address,
            r.address,
            blocks.counts,
            blocks.displs,
            s.element.number,
            held=(s, r, blocks),
            stream=stream,
        )
        return recv

    def reduce_scatter_v(
        self,
        send: Data,
        recv: Data,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
        op: Reduction = SUM,
        *,
        stream: Stream | None = None,
    ) -> Data:
        """As reduce_scatter; the block of `send` that is rank p's has counts[p] elements and stands at element displs[p]."""
        s, r = self._two("reduce_scatter_v", send, recv)
        number = self._op("reduce_scatter_v", op, s)
        blocks = Blocks("reduce_scatter_v: send", self.size, s, counts, displs)
        blocks.own("reduce_scatter_v: recv", r, self.rank)
        self.run(
            "hcclReduceScatterV",
            s.address,
            r.address,
            blocks.counts,
            blocks.displs,
            s.element.number,
            number,
            held=(s, r, blocks),
            stream=stream,
        )
        return recv

    def all_to_all_v(
        self,
        send: Data,
        send_counts: Sequence[int],
        recv: Data,
        recv_counts: Sequence[int],
        send_displs: Sequence[int] | None = None,
        recv_displs: Sequence[int] | None = None,
        *,
        stream: Stream | None = None,
    ) -> Data:
        """As all_to_all, with a count and a place for each block of both buffers, in elements."""
        s, r = self._two("all_to_all_v", send, recv)
        out = Blocks("all_to_all_v: send", self.size, s, send_counts, send_displs)
        into = Blocks("all_to_all_v: recv", self.size, r, recv_counts, recv_displs)
        self.run(
            "hcclAlltoAllV",
            s.address,
            out.counts,
            out.displs,
            r.address,
            into.counts,
            into.displs,
            s.element.number,
            held=(s, r, out, into),
            stream=stream,
        )
        return recv
