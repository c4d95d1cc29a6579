"""Ctrl-C: Python's handler stays in place, and a rank that waits can be ended."""
import os
import signal
import threading
import time
import unittest

import nccl
import ranks


def lonely_pair(body):
    """Two ranks; the second only joins and then sleeps, so that whatever the first starts waits."""
    uid = nccl.unique_id()

    def idle():
        comm = nccl.init(2, uid, 1)
        signal.pause()
        return comm.value

    def busy():
        return body(nccl.init(2, uid, 0))

    first, second = ranks.Child(busy), ranks.Child(idle)
    try:
        return first.result(until=time.monotonic() + 20)
    finally:
        second.kill()


class Interrupt(unittest.TestCase):
    def test_handlers_are_unchanged(self):
        def body(rank, comm):
            del rank
            nccl.all_reduce([1], comm)
            seen = []
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGURG, signal.SIGCHLD):
                signal.signal(number, lambda got, _: seen.append(got))
                os.kill(os.getpid(), number)
            return seen
        self.assertEqual(ranks.processes(1, body)[0], [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGURG, signal.SIGCHLD])

    def test_keyboard_interrupt_then_abort(self):
        """The main thread waits for a worker that is stuck in an all-reduce; ctrl-C reaches it, and Abort ends the worker."""
        def body(comm):
            said = []

            def worker():
                started.set()
                try:
                    nccl.all_reduce([1], comm)
                    said.append("it succeeded")
                except nccl.Error as e:
                    said.append(e.text or "no text")

            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
            started = threading.Event()
            thread = threading.Thread(target=worker)
            thread.start()
            started.wait()
            try:
                os.kill(os.getpid(), signal.SIGINT)
                while True:
                    thread.join(0.1)
            except KeyboardInterrupt:
                pass
            from_ = time.monotonic()
            nccl.call("ncclCommAbort", comm)
            thread.join(10)
            return thread.is_alive(), said, time.monotonic() - from_
        alive, said, took = lonely_pair(body)
        self.assertFalse(alive, "the worker is stuck after Abort")
        self.assertEqual(len(said), 1)
        self.assertNotIn("it succeeded", said)
        self.assertLess(took, 5)

    def test_default_action_ends_a_stuck_rank(self):
        """A process whose only thread is stuck in a call, with SIGTERM's default action, ends by it."""
        uid = nccl.unique_id()
        told, tell = os.pipe()

        def stuck():
            comm = nccl.init(2, uid, 0)
            os.write(tell, b"x")
            nccl.all_reduce([1], comm)

        def idle():
            nccl.init(2, uid, 1)
            signal.pause()

        first, second = ranks.Child(stuck), ranks.Child(idle)
        try:
            os.read(told, 1)
            os.kill(first.pid, signal.SIGTERM)
            self.assertEqual(first.wait(), -signal.SIGTERM)
        finally:
            second.kill()


if __name__ == "__main__":
    unittest.main()
