#!/usr/bin/env python3
"""HCCL beside Open MPI on this machine, by one method (method.c), both in turn in the same minutes.

Prints for each size the time of both, their ratio, p99 and the phase of the machine. Medians are taken over the repetitions and
within one phase: a virtual machine changes the time of a cache line, and every latency with it, by a factor of four within
seconds. A size for which both sides have not been seen in the same phase is run again, a few times, and else marked with "?".

2 ranks on 2 processors are pinned and compared by latency (p50 of the slowest rank). More ranks than processors are compared by
the mean time back to back, with Open MPI told to yield when idle, which is the better choice for it there.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
OPS = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")
SIZES = "8,64,512,4K,16K,64K,256K,1M,4M,16M,64M"
FAR_NS = 120  # between the two phases' times of a cache line
MOST_RUNS = 9
LIMIT = 300  # seconds for one run of one side


def number(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def human(n):
    for letter, unit in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{letter}"
    return str(n)


def phase(row):
    """near, far, or None where it changed during the measurement."""
    far = [ns >= FAR_NS for ns in row["line"]]
    return None if far[0] != far[1] else "far" if far[0] else "near"


def build(folder, mpicc):
    """Compiles both programs; returns their paths, None for a side that cannot be."""
    os.makedirs(folder, exist_ok=True)
    method = [os.path.join(HERE, "method.c"), "-std=c11", "-O2", "-Wall", "-Wextra"]
    lib = os.path.abspath(os.environ.get("HCCL_LIB", os.path.join(ROOT, "build", "lib")))
    ours, theirs = os.path.join(folder, "bench_hccl"), os.path.join(folder, "bench_mpi")
    cc = os.environ.get("CC", "cc").split()
    subprocess.run([*cc, os.path.join(HERE, "side_hccl.c"), *method, "-I", os.path.join(ROOT, "include"), "-L", lib,
                    "-lnccl", f"-Wl,-rpath,{lib}", "-o", ours], check=True)
    if not mpicc:
        return ours, None
    subprocess.run([mpicc, os.path.join(HERE, "side_mpi.c"), *method, "-o", theirs], check=True)
    return ours, theirs


def output_of(command, name):
    """What the command prints; ends the bench if it fails or hangs, and leaves none of its processes behind."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            said, _ = running.communicate(timeout=LIMIT)
        except BaseException as e:  # ctrl-C as well: ranks that wait at a barrier would wait for ever
            os.killpg(running.pid, signal.SIGKILL)
            if isinstance(e, subprocess.TimeoutExpired):
                sys.exit(f"bench: {name} was still running after {LIMIT} s: {' '.join(command)}")
            raise
    if running.returncode:
        sys.exit(f"bench: {name} ended with {running.returncode}: {' '.join(command)}")
    return said


class Side:
    """One program and what it measured: rows by size, as many as there were runs."""

    def __init__(self, name, command, args):
        self.name, self.command, self.args, self.rows = name, command, args, {}

    def run(self, sizes):
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.NamedTemporaryFile(prefix="hccl-bench-", dir=folder) as page:
            command = [*self.command, str(self.args.ranks), page.name, self.args.op, ",".join(map(str, sizes)), str(self.args.seconds)]
            command += ["shareable"] if self.args.shareable and self.name == "ours" else []
            said = output_of(command, self.name)
        for line in said.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                self.rows.setdefault(row["bytes"], []).append(row)

    def seen(self, size, wanted):
        return [row for row in self.rows.get(size, []) if phase(row) == wanted]


def common_phase(sides, size, least):
    for wanted in ("near", "far"):
        if all(len(side.seen(size, wanted)) >= least for side in sides):
            return wanted
    return None


def measure(sides, sizes, repeats):
    least = max(1, repeats // 2)
    for turn in range(MOST_RUNS):
        missing = sizes if turn < repeats else [s for s in sizes if common_phase(sides, s, least) is None]
        if not missing:
            return
        for side in sides:
            side.run(missing)


def report(sides, sizes, args):
    figure = "p50" if args.ranks <= os.cpu_count() else "mean"
    print(f"# {args.op}, {args.ranks} ranks, float32; {'latency, p50' if figure == 'p50' else 'mean time back to back'} in us, "
          f"medians of {args.repeats} runs or more; ratio: ours / theirs, below 1 is faster")
    print(f"# {'size':>8} {'ours':>11} {'Open MPI':>11} {'ratio':>7} {'p99 ours':>11} {'p99 theirs':>11} {'line ns':>8}  phase")
    for size in sizes:
        wanted = common_phase(sides, size, 1)
        rows = [side.seen(size, wanted) or side.rows[size] for side in sides]
        at = [statistics.median(row[figure] for row in some) for some in rows]
        p99 = [statistics.median(row["p99"] for row in some) for some in rows]
        line = statistics.median(ns for some in rows for row in some for ns in row["line"])
        theirs, ratio, tail = (f"{at[1]:.2f}", f"{at[0] / at[1]:.2f}", f"{p99[1]:.2f}") if len(sides) > 1 else ("-", "-", "-")
        shown = "-" if args.ranks > os.cpu_count() or args.ranks < 2 else wanted or "?"
        print(f"{human(size):>10} {at[0]:11.2f} {theirs:>11} {ratio:>7} {p99[0]:11.2f} {tail:>11} {line:8.0f}  {shown}", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="numbers of ranks, separated by commas (default %(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="bytes of the larger buffer (default %(default)s)")
    parser.add_argument("--op", default="allreduce", choices=OPS)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.05, help="time for each size and figure (default %(default)s)")
    parser.add_argument("--shareable", action="store_true", help="our buffers from ncclMemAlloc")
    args = parser.parse_args()
    sizes = [number(word) for word in args.sizes.split(",")]
    mpirun, mpicc = shutil.which("mpirun.openmpi"), shutil.which("mpicc.openmpi")
    if not (mpirun and mpicc):
        mpicc = None
        print("# Open MPI is not here, so that only our side runs: apt-get install openmpi-bin libopenmpi-dev")
    ours, theirs = build(os.path.join(ROOT, "build", "bench"), mpicc)
    busy = os.getloadavg()[0]
    if busy > 0.5:
        print(f"# the machine is busy (load {busy:.1f}): these figures are not those of a quiet one")
    for ranks in map(int, args.ranks.split(",")):
        args.ranks = ranks
        sides = [Side("ours", [ours], args)]
        if theirs:
            crowded = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if ranks > os.cpu_count() else []
            launch = [mpirun, "--allow-run-as-root", "--bind-to", "none", "-np", str(ranks), *crowded]
            sides.append(Side("theirs", [*launch, theirs], args))
        measure(sides, sizes, args.repeats)
        report(sides, sizes, args)


if __name__ == "__main__":
    main()
