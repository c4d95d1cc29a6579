"""A communicator's life in the package: splits, all ranks of one process, non-blocking ones, aborts, deaths, closing, Ctrl-C."""
import array
import asyncio
import gc
import os
import pickle
import signal
import threading
import time
import unittest
import warnings

import ranks
from package import hccl, job, together

F = lambda *values: array.array("f", values)  # noqa: E731


def raised(call, *arguments, **named):
    """The exception of a call, or None."""
    try:
        call(*arguments, **named)
    except Exception as e:
        return e
    return None


class Life(unittest.TestCase):
    def test_split(self):
        def body(comm):
            half = comm.split(comm.rank % 2, key=-comm.rank)
            with half:
                got = half.rank, half.size, half.all_reduce(F(comm.rank))[0]
            nobody = comm.split(None if comm.rank else 5)
            if nobody is not None:
                nobody.close()
            return got, nobody is None, comm.all_reduce(F(1))[0]
        want = [((1, 2, 2), False, 4), ((1, 2, 4), True, 4), ((0, 2, 2), True, 4), ((0, 2, 4), True, 4)]
        self.assertEqual(job(4, body), want)

    def test_all_ranks_of_one_process(self):
        def body():
            comms = hccl.Communicator.all(4)
            values = [F(c.rank) for c in comms]
            with hccl.group():
                for c, v in zip(comms, values):
                    c.all_reduce(v)
            with hccl.group():
                children = [c.split(c.rank // 2) for c in comms]
            numbers = [(c.rank, c.size) for c in children]
            for c in children + comms:
                c.close()
            return [v[0] for v in values], numbers
        self.assertEqual(together([body]), [([6] * 4, [(0, 2), (1, 2)] * 2)])

    def test_threads(self):
        def body():
            unique_id, got = hccl.unique_id(), [None] * 4

            def run(rank):
                with hccl.Communicator(rank, 4, unique_id) as comm:
                    got[rank] = comm.all_reduce(F(rank))[0]
            running = [threading.Thread(target=run, args=(rank,)) for rank in range(4)]
            for t in running:
                t.start()
            for t in running:
                t.join(ranks.LIMIT)
            return got
        self.assertEqual(together([body]), [[6] * 4])

    def test_not_blocking(self):
        def body(comm):
            comm.wait(timeout=ranks.LIMIT)
            sums = [F(comm.rank), F(comm.rank)]
            for each in sums:
                comm.all_reduce(each)
            with hccl.group():
                comm.all_reduce(F(1))  # held by the communicator until wait
            comm.wait(ranks.LIMIT)
            child = comm.split(0)
            size = child.size
            child.close()
            return [s[0] for s in sums], comm.done(), size
        self.assertEqual(job(3, body, hccl.Config(blocking=False)), [([3, 3], True, 3)] * 3)

    def test_wait_with_a_limit(self):
        """Both ranks wait for a message that nobody sends. One has a limit, and aborts, which ends the other's wait."""
        def body(comm):
            comm.wait(ranks.LIMIT)
            comm.recv(F(0), 1 - comm.rank)
            said = raised(comm.wait, 0.05 if comm.rank == 0 else ranks.LIMIT)
            comm.abort()
            return (type(said).__name__, str(said)) if comm.rank == 0 else str(said)
        (kind, text), other = job(2, body, hccl.Config(blocking=False))
        self.assertEqual(kind, "LimitError")
        self.assertIn("rank 0: calls still go on after 0.05 s", text)
        self.assertIn("rank 0", other)

    def test_config(self):
        self.assertEqual(job(2, lambda c: c.all_reduce(F(1))[0], hccl.Config(name="mine", min_channels=1, max_channels=2)), [2, 2])

        def wrong():
            return str(raised(hccl.Communicator, 0, 1, hccl.unique_id(), hccl.Config(min_channels=-4)))
        self.assertRegex(together([wrong])[0], r"minCTAs.*\[INVALID_ARGUMENT\]")

    def test_an_exception_aborts(self):
        """A rank that leaves its block by an exception does not let the other wait."""
        unique_id = hccl.unique_id()

        def leaves():
            with hccl.Communicator(1, 2, unique_id) as comm:
                comm.barrier()
                raise KeyError("of the program")

        def waits():
            with hccl.Communicator(0, 2, unique_id) as comm:
                comm.barrier()
                said = raised(comm.all_reduce, F(1))
                return type(said).__name__, said.result, "rank 1" in said.text
        self.assertEqual(together([waits, lambda: type(raised(leaves)).__name__]), [("RemoteError", 6, True), "KeyError"])

    def test_ranks_that_disagree(self):
        def body(comm):
            said = raised(comm.all_reduce, F(*[1] * (1 + comm.rank)))
            comm.abort()
            return said.result == hccl.Result.INVALID_USAGE and said.call == "ncclAllReduce", str(said)
        for right, text in job(2, body):
            self.assertTrue(right, text)

    def test_a_fault_is_told_once(self):
        def body(comm):
            first = raised(comm.all_reduce, F(*[1] * (1 + comm.rank)))
            return "disagree" in str(first), raised(comm.close), repr(comm)
        self.assertEqual(job(2, body), [(True, None, "<hccl.Communicator that was closed>")] * 2)

    def test_errors_travel_by_pickle(self):
        before = hccl.LimitError("ncclAllReduce", 8, "rank 1 is late")
        after = pickle.loads(pickle.dumps(before))
        self.assertEqual((type(after), after.args, vars(after)), (type(before), before.args, vars(before)))

    def test_closed(self):
        def body(comm):
            comm.close()
            comm.close()  # again: nothing
            calls = (comm.barrier, comm.done, comm.abort, lambda: comm.split(0), lambda: comm.scaled_sum(1, "float32"))
            return [str(raised(call)) for call in calls], repr(comm)
        text = "the communicator was closed [INVALID_USAGE]"
        for said, shown in job(2, body):
            self.assertEqual([each[-len(text):] for each in said], [text, text, "None", text, text])
            self.assertEqual(shown, "<hccl.Communicator that was closed>")

    def test_never_closed(self):
        def body():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                hccl.Communicator(0, 1, hccl.unique_id())
                gc.collect()
            return [str(w.message) for w in caught]
        self.assertEqual(together([body]), [["<hccl.Communicator, rank 0 of 1> was never closed: use it in a with block"]])

    def test_child_of_a_fork(self):
        """A forked child may drop its parent's communicator, and cannot use it; the parent goes on."""
        def body(comm):
            child = ranks.Child(lambda: (str(raised(comm.all_reduce, F(1))), raised(comm.close)))
            said, closing = child.result(time.monotonic() + ranks.LIMIT)
            return "fork" in said, closing is None or "fork" in str(closing), comm.all_reduce(F(1))[0]
        self.assertEqual(job(2, body), [(True, True, 2)] * 2)


class Interrupt(unittest.TestCase):
    """Ctrl-C, as the signal that a terminal sends, while the main thread waits in the library."""

    def interrupted(self, body):
        """body(ready) on a forked rank, which gets SIGINT once it has called ready() and sleeps in the library; what it returns."""
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
        self.assertEqual(self.interrupted(waits), ("<hccl.Communicator that was aborted by Ctrl-C>",
                         "ncclAllReduce: the communicator was aborted by Ctrl-C [INVALID_USAGE]", -1))
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
                return repr(first), type(raised(second.barrier)).__name__
        self.assertEqual(self.interrupted(waits), ("<hccl.Communicator that was aborted by Ctrl-C>", "RemoteError"))

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
