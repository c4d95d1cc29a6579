"""Ctrl-C in the package: it ends a call that waits, leaves handlers of one's own alone, and gets on with asyncio."""

import array
import asyncio
import os
import signal
import threading
import time
import unittest

import ranks
from package import hccl, job, raised

F = lambda *values: array.array("f", values)  # noqa: E731


class Interrupt(unittest.TestCase):
    """Ctrl-C, as the signal that a terminal sends, while the main thread waits in the library."""

    def interrupted(self, body):
        """body(ready) on a forked rank, which gets SIGINT once it has called ready() and sleeps in the library; what it
        returns."""
        told, tell = os.pipe()
        child = ranks.Child(lambda: ignoring(lambda: body(lambda: ready(tell))))
        self.assertEqual(os.read(told, 1), b"x")
        os.close(told)
        os.close(tell)
        asleep(child.pid)
        os.kill(child.pid, signal.SIGINT)
        return child.result(time.monotonic() + ranks.LIMIT)

    def test_in_an_operation(self):
        unique_id = hccl.unique_id()

        def idle():
            comm = hccl.Communicator(1, 2, unique_id)
            comm.barrier()
            said = raised(comm.recv, F(0), 0)
            comm.abort()
            return type(said).__name__, "rank 0" in str(said)

        def waits(ready):
            comm = hccl.Communicator(0, 2, unique_id)
            comm.barrier()
            ready()
            try:
                comm.recv(F(0), 1)
                return "it succeeded"
            except KeyboardInterrupt:
                return repr(comm), str(raised(comm.barrier)), signal.set_wakeup_fd(-1)

        other = ranks.Child(idle)
        self.assertEqual(
            self.interrupted(waits),
            (
                "<hccl.Communicator that was aborted by Ctrl-C>",
                "hcclBarrier: the communicator was aborted by Ctrl-C [INVALID_USAGE]",
                -1,
            ),
        )
        self.assertEqual(other.result(time.monotonic() + ranks.LIMIT), ("RemoteError", True))

    def test_while_ranks_are_awaited(self):
        for blocking in (True, False):

            def waits(ready, blocking=blocking):
                ready()
                try:
                    hccl.Communicator(0, 2, hccl.unique_id(), hccl.Config(blocking=blocking)).wait()
                except KeyboardInterrupt:
                    return "interrupted"

            with self.subTest(blocking=blocking):
                self.assertEqual(self.interrupted(waits), "interrupted")

    def test_in_a_group_of_two(self):
        def waits(ready):
            first, second = hccl.Communicator.all(2)
            ready()
            try:
                with hccl.group():
                    first.recv(F(0), 1)
            except KeyboardInterrupt:
                return repr(first), type(raised(second.barrier)).__name__, raised(second.abort)

        self.assertEqual(self.interrupted(waits), ("<hccl.Communicator that was aborted by Ctrl-C>", "RemoteError", None))

    def test_in_a_synchronisation(self):
        """It ends the wait alone: what is queued goes on, and can be waited for again."""
        unique_id = hccl.unique_id()
        told, tell = os.pipe()

        def sends():
            with hccl.Communicator(1, 2, unique_id) as comm:
                comm.barrier()
                os.read(told, 1)
                comm.send(F(7), 0)

        def waits(ready):
            with hccl.Communicator(0, 2, unique_id) as comm, hccl.Stream() as stream, hccl.Event() as event:
                comm.barrier()
                mine = comm.recv(F(0), 1, stream=stream)
                event.record(stream)
                ready()
                try:
                    stream.synchronize()
                    return "it succeeded"
                except KeyboardInterrupt:
                    os.write(tell, b"x")
                event.synchronize(ranks.LIMIT)
                stream.synchronize(ranks.LIMIT)
                return mine[0], repr(comm)

        other = ranks.Child(sends)
        self.assertEqual(self.interrupted(waits), (7, "<hccl.Communicator, rank 0 of 2>"))
        self.assertIsNone(other.result(time.monotonic() + ranks.LIMIT))

    def test_a_handler_runs_during_a_synchronisation(self):
        """Also one of the program's own, at once: here it lets the stream go on."""

        def waits(ready):
            gate = threading.Event()
            with hccl.Stream() as stream:
                stream.launch(gate.wait, ranks.LIMIT)
                ready()
                signal.signal(signal.SIGINT, lambda *_: gate.set())
                stream.synchronize(ranks.LIMIT)
                return gate.is_set()

        self.assertIs(self.interrupted(waits), True)

    def test_a_handler_of_ones_own_is_left_alone(self):
        """It runs when the call has ended, and nothing is aborted."""
        told, tell = os.pipe()
        unique_id = hccl.unique_id()

        def waits():
            seen = []
            signal.signal(signal.SIGINT, lambda *_: seen.append("handler"))
            with hccl.Communicator(0, 2, unique_id) as comm:
                comm.barrier()
                os.write(tell, b"x")
                got = comm.recv(F(0), 1)[0]
                return got, seen

        def sends():
            with hccl.Communicator(1, 2, unique_id) as comm:
                comm.barrier()
                os.read(told, 1)
                os.kill(first.pid, signal.SIGINT)
                comm.send(F(7), 0)

        first = ranks.Child(waits)
        second = ranks.Child(sends)
        until = time.monotonic() + ranks.LIMIT
        self.assertEqual((first.result(until), second.result(until)), ((7, ["handler"]), None))

    def test_a_forked_child_keeps_nothing(self):
        """The descriptors of the watcher are closed in a child, which makes its own when it needs them."""

        def descriptors():
            return {
                os.readlink(f"/proc/self/fd/{fd}")
                for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")
            }

        def body():
            before = descriptors()
            hccl.interrupt.call((object(),), int)  # as any call does, without the library
            return len(descriptors() - before), ranks.Child(lambda: len(sockets(descriptors()) - before)).result(
                time.monotonic() + ranks.LIMIT
            )

        def sockets(of):
            return {name for name in of if name.startswith("socket:")}

        child = ranks.Child(body)
        self.assertEqual(child.result(time.monotonic() + ranks.LIMIT), (2, 0))

    def test_beside_asyncio(self):
        """asyncio holds the wakeup descriptor; a signal during a call of ours still reaches its handler."""

        def body(comm):
            async def main():
                seen = asyncio.Event()
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
                if comm.rank == 1:
                    os.kill(os.getpid(), signal.SIGUSR1)  # before the call, during it, and after it
                    await asyncio.wait_for(seen.wait(), ranks.LIMIT)
                    seen.clear()
                    sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1))
                    sender.start()
                    comm.barrier()
                    sender.join()
                    await asyncio.wait_for(seen.wait(), ranks.LIMIT)
                else:
                    comm.barrier()
                return seen.is_set()

            return asyncio.run(main())

        self.assertEqual(job(2, body), [False, True])

    def test_turns_with_signals(self):
        """Signals at any moment of many calls: each is seen once, no call fails."""

        def body(comm):
            seen = []
            signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
            stop = threading.Event()

            def shoot():
                while not stop.is_set():
                    os.kill(os.getpid(), signal.SIGUSR1)
                    stop.wait(0.001)

            shooter = threading.Thread(target=shoot)
            shooter.start()
            wrong = sum(comm.all_reduce(F(1))[0] != 2 for _ in range(500))
            stop.set()
            shooter.join()
            return wrong, bool(seen), signal.set_wakeup_fd(-1)

        self.assertEqual(job(2, body), [(0, True, -1)] * 2)


def ignoring(body):
    """Runs a body with SIGINT ignored until it calls ready()."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return body()


def ready(tell):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(tell, b"x")


def asleep(pid):
    """Waits until the process's main thread sleeps, and goes on sleeping: it spins for a moment first, and its making of a
    communicator sleeps in between."""
    count, until = 0, time.monotonic() + ranks.LIMIT
    while count < 10 and time.monotonic() < until:
        with open(f"/proc/{pid}/task/{pid}/stat", encoding="utf-8") as f:
            count = count + 1 if f.read().rpartition(")")[2].split()[0] == "S" else 0
        time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
