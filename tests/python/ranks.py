"""Runs ranks as processes that are forked from a parent which has loaded the library, or as threads."""
import faulthandler
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback

import nccl

LIMIT = 60  # seconds for a job; only a hang takes longer


class Child:
    """A forked process that runs a function and passes on what it returns."""

    def __init__(self, body, *args):
        self.pipe, into = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _run(into, body, args)
        os.close(into)

    def result(self, until):
        """What the body returned; an AssertionError with its traceback, or how the process ended."""
        blob = b""
        while True:
            if not select.select([self.pipe], [], [], max(0, until - time.monotonic()))[0]:
                os.kill(self.pid, signal.SIGUSR2)  # it says on standard error where its threads are
                select.select([self.pipe], [], [], 1)
                self.kill()
                raise AssertionError(f"process {self.pid} is still running: it hangs")
            more = os.read(self.pipe, 1 << 16)
            if not more:
                break
            blob += more
        status = self.wait()
        if not blob:
            raise AssertionError(f"process {self.pid} ended with status {status} and said nothing")
        ok, value = pickle.loads(blob)
        if not ok:
            raise AssertionError(value)
        return value

    def wait(self):
        if self.pipe is None:
            return None
        os.close(self.pipe)
        self.pipe = None
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()


def _run(into, body, args):
    faulthandler.register(signal.SIGUSR2)
    os.environ.setdefault("HCCL_INIT_TIMEOUT", "15")  # whom it waits for is said before a test gives up
    try:
        said = (True, body(*args))
    except BaseException:  # a KeyboardInterrupt as well: the parent is to hear of it
        said = (False, traceback.format_exc())
    blob = pickle.dumps(said)
    while blob:
        blob = blob[os.write(into, blob):]
    os._exit(0)


def processes(n, body):
    """body(rank, comm) in n forked processes of one communicator; the list of what they return."""
    uid = nccl.unique_id()

    def rank_main(rank):
        comm = nccl.init(n, uid, rank)
        value = body(rank, comm)
        nccl.call("ncclCommDestroy", comm)
        return value

    children = [Child(rank_main, rank) for rank in range(n)]
    until = time.monotonic() + LIMIT
    try:
        return [child.result(until) for child in children]
    finally:
        for child in children:
            if child.pipe is not None:
                child.kill()


def threads(n, body):
    """body(rank, comm) in n threads of this process."""
    uid, results, failures = nccl.unique_id(), [None] * n, []

    def rank_main(rank):
        try:
            comm = nccl.init(n, uid, rank)
            results[rank] = body(rank, comm)
            nccl.call("ncclCommDestroy", comm)
        except BaseException:
            failures.append(traceback.format_exc())

    running = [threading.Thread(target=rank_main, args=(rank,), daemon=True) for rank in range(n)]
    for thread in running:
        thread.start()
    until = time.monotonic() + LIMIT
    for thread in running:
        thread.join(max(0, until - time.monotonic()))
    if failures:
        raise AssertionError("\n".join(failures))
    if any(thread.is_alive() for thread in running):
        raise AssertionError("a thread is still running: it hangs")
    return results
