"""How ranks find each other: launchers' variables, files, the TCP store, torch's stores."""

import array
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from package import free_port, hccl, needs_torch, packaged, together
from hccl import meeting

F = lambda *values: array.array("f", values)  # noqa: E731
VARIABLES = {name for each in meeting.LAUNCHERS for name in (each.rank, each.size, each.local_size, *each.job)}
VARIABLES |= {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"}
PROGRAM = """
import array, hccl
for turn in range(3):
    with hccl.Communicator.from_environment(timeout=30) as comm:
        total = comm.all_reduce(array.array("f", [comm.rank]))[0]
print(f"rank {comm.size} {total}\\n", end="")  # one write: lines of ranks do not mix
"""


def clean():
    return {k: v for k, v in packaged().items() if k not in VARIABLES}


def under(env, body):
    """A function that runs a body with these variables alone."""

    def run():
        for name in VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(env)
        return body()

    return run


def sum_of_ranks():
    with hccl.Communicator.from_environment(timeout=30) as comm:
        return comm.rank, comm.all_reduce(F(comm.rank))[0]


class Environment(unittest.TestCase):
    def meet(self, envs):
        self.assertEqual(together([under(env, sum_of_ranks) for env in envs]), [(0, 3), (1, 3), (2, 3)])

    def test_torchrun(self):
        port = str(free_port())
        self.meet([{"RANK": str(r), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} for r in range(3)])

    def test_a_host_by_name(self):
        port = str(free_port())
        self.meet([{"RANK": str(r), "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": port} for r in range(3)])

    def test_one_host_without_an_address(self):
        for env in (
            {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_NAMESPACE": f"test-{os.getpid()}.1"},
            {"PMI_SIZE": "3", "MPI_LOCALNRANKS": "3"},
            {"SLURM_NTASKS": "3", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": f"test{os.getpid()}", "SLURM_STEP_ID": "0"},
        ):
            name = next(each.rank for each in meeting.LAUNCHERS if each.size in env)
            with self.subTest(name):
                self.meet([{**env, name: str(r)} for r in range(3)])

    def test_what_is_missing_is_said(self):
        for env, text in (
            ({}, "no launcher's variables are set .RANK and WORLD_SIZE of torchrun, OMPI_COMM_WORLD_RANK"),
            ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x', which is no number"),
            ({"RANK": "1", "WORLD_SIZE": "2"}, "rank 1 of torchrun does not know where rank 0 is: set MASTER_ADDR"),
            ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_NODES": "2"}, "rank 1 of Slurm does not know where"),
            (
                {"RANK": "5", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
                r"rank 5 is none of 2 ranks \(0 to 1\)",
            ),
        ):

            def refused():
                try:
                    hccl.Communicator.from_environment(timeout=0.2)
                except (hccl.MeetingError, ValueError) as e:
                    return str(e)

            with self.subTest(text):
                self.assertRegex(together([under(env, refused)])[0], text)

    def launched(self, *command):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(PROGRAM)
            program.flush()
            done = subprocess.run(
                [*command, sys.executable, program.name],
                env=clean(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
        self.assertEqual((done.returncode, done.stdout.count("rank 3 3.0")), (0, 3), done.stdout)

    @unittest.skipIf(shutil.which("mpirun.openmpi") is None, "Open MPI's mpirun is not installed")
    def test_open_mpi(self):
        self.launched("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "3")

    @unittest.skipIf(shutil.which("mpirun.mpich") is None, "MPICH's mpirun is not installed")
    def test_mpich(self):
        self.launched("mpirun.mpich", "-np", "3")

    @needs_torch
    def test_torchrun_itself(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(PROGRAM)
            program.flush()
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "torch.distributed.run",
                    "--nproc-per-node",
                    "3",
                    "--master-port",
                    str(free_port()),
                    program.name,
                ],
                env=clean(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
        self.assertEqual((done.returncode, done.stdout.count("rank 3 3.0")), (0, 3), done.stdout)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "id")

    def rank(self, rank, size=2, timeout=30, config=None):
        def run():
            try:
                with hccl.Communicator.from_file(self.path, rank, size, config, timeout) as comm:
                    comm.wait()
                    comm.all_reduce(F(1))
                    comm.wait()
                    return "met"
            except (hccl.MeetingError, ValueError) as e:
                return str(e)

        return run

    def test_meeting_leaves_nothing(self):
        for config in (None, hccl.Config(blocking=False)):
            self.assertEqual(together([self.rank(1, config=config), self.rank(0, config=config)]), ["met", "met"])
            self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_of_a_job_that_died_is_passed_over(self):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("2 " + "00" * 128)
        self.assertEqual(together([self.rank(1), self.rank(0)]), ["met", "met"])

    def test_rank_0_does_not_come(self):
        (said,) = together([self.rank(1, timeout=0.05)])
        self.assertEqual(
            said,
            f"rank 1 waited 0.05 s for the id in file {self.path} (it is not there): is rank 0 running, with the same path?",
        )

    def test_sizes_that_differ(self):
        def maker():
            os.environ["HCCL_INIT_TIMEOUT"] = "1"
            try:
                hccl.Communicator.from_file(self.path, 0, 3)
            except hccl.LimitError as e:
                return "missing" in e.text

        said = together([self.rank(1, size=2), maker])
        self.assertEqual(said, ["rank 1 was started as one of 2 ranks, rank 0 as one of 3: start all with the same size", True])

    def test_a_folder_that_is_not_there(self):
        self.path = os.path.join(self.folder, "no", "id")
        self.assertRegex(together([self.rank(0)])[0], "rank 0 cannot write the id beside .*: No such file")


class Stores(unittest.TestCase):
    def test_set_and_get(self):
        server = hccl.TCPStore("127.0.0.1", 0, serve=True, timeout=20)
        self.addCleanup(server.close)
        client, got = hccl.TCPStore("127.0.0.1", server.port, timeout=20), []
        waiting = threading.Thread(target=lambda: got.append(client.get("late")))  # asks before it is there
        waiting.start()
        server.set("early", b"1")
        self.assertEqual(client.get("early"), b"1")
        client.set("late", b"\0" * 1000)
        waiting.join(20)
        self.assertEqual(got, [b"\0" * 1000])

    def test_strangers_do_no_harm(self):
        server = hccl.TCPStore("127.0.0.1", 0, serve=True, timeout=20)
        self.addCleanup(server.close)
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"S\xff\xff\xff\xff", b"G", b""):
            with socket.create_connection(("127.0.0.1", server.port)) as s:
                s.sendall(said)
        server.set("key", b"value")
        self.assertEqual(server.get("key"), b"value")

    def test_limits_and_addresses(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(
                hccl.MeetingError, f"cannot listen at 127.0.0.1 port {port}: Address already in use.*free port"
            ):
                hccl.TCPStore("127.0.0.1", port, serve=True)
        with self.assertRaisesRegex(
            hccl.MeetingError, f"'key' did not come within 0.05 s .* port {port} .Connection refused.: is the rank"
        ):
            hccl.TCPStore("127.0.0.1", port, timeout=0.05).get("key")
        with self.assertRaisesRegex(hccl.MeetingError, "the store's host 'no.such.host.invalid' is not known"):
            hccl.TCPStore("no.such.host.invalid", port, timeout=5).get("key")

    def test_many_meetings_at_one_port(self):
        port = free_port()

        def rank(number):
            def run():
                got = []
                for _ in range(5):
                    with hccl.Communicator.from_tcp("127.0.0.1", port, number, 2, timeout=30) as comm:
                        got.append(comm.all_reduce(F(1))[0])
                return got

            return run

        self.assertEqual(together([rank(1), rank(0)]), [[2] * 5] * 2)

    def test_another_store_with_that_name(self):
        class Other:
            def get(self, key):
                return b"something else"

        with self.assertRaisesRegex(hccl.MeetingError, "rank 1: key 'mine/1' of the store holds no id"):
            hccl.Communicator.from_store(Other(), 1, 2, name="mine")

    @needs_torch
    def test_stores_of_torch(self):
        from torch.distributed import FileStore, PrefixStore

        with tempfile.TemporaryDirectory() as folder:

            def rank(number):
                def run():
                    store = PrefixStore("job", FileStore(os.path.join(folder, "store"), 2))
                    with hccl.Communicator.from_store(store, number, 2) as comm:
                        return comm.all_reduce(F(1))[0]

                return run

            self.assertEqual(together([rank(0), rank(1)]), [2, 2])


if __name__ == "__main__":
    unittest.main()
