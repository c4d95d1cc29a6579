#!/usr/bin/env python3
"""How well an all-reduce on a stream goes on beside a computation of equal length (overlap.c), on this machine.

Two places: within the host, where sums and copies are processor work themselves, and over TCP on a loopback that lets 200 Mbit/s
through (root only: a network namespace of its own), where the time is the wire's. The bound is the longer of the two alone, or the
processor seconds of both spread over all processors, whichever is more; the ratio says how far above it both together are.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SHAPE = "ip link set lo up && tc qdisc add dev lo root tbf rate 200mbit burst 256k latency 100ms && exec \"$@\""


def build(folder):
    lib = os.path.abspath(os.environ.get("HCCL_LIB", os.path.join(ROOT, "build", "lib")))
    program = os.path.join(folder, "overlap")
    subprocess.run([*os.environ.get("CC", "cc").split(), os.path.join(HERE, "overlap.c"), "-std=c11", "-O2", "-Wall", "-Wextra",
                    "-I", os.path.join(ROOT, "include"), "-L", lib, "-lnccl", f"-Wl,-rpath,{lib}", "-o", program], check=True)
    return program


def measure(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, env={**os.environ, **more},
                          start_new_session=True, check=True)
    return json.loads(done.stdout)


def bound(row, processors):
    return max(row["stream"], row["work"], (row["stream_cpu"] + row["work_cpu"]) / processors)


def ratio(row, processors):
    return row["both"] / bound(row, processors)


def middle(command, runs, processors, **more):
    """The run with the median ratio: other work on the machine falls on one measurement of a run and not on the next."""
    rows = sorted((measure(command, **more) for _ in range(runs)), key=lambda row: ratio(row, processors))
    return {**rows[runs // 2], "ratio": ratio(rows[runs // 2], processors), "ratios": [ratio(r, processors) for r in rows]}


def show(name, row, processors):
    print(f"{name:8} {row['ranks']:5} {row['bytes'] >> 10:9} " +
          " ".join(f"{row[k] * 1e3:9.2f}" for k in ("null", "stream", "work", "both", "reached")) +
          f" {row['stream_cpu'] * 1e3:9.2f} {row['both_cpu'] * 1e3:9.2f} {bound(row, processors) * 1e3:9.2f}"
          f" {row['ratio']:6.2f}   {row['ratios'][0]:.2f}-{row['ratios'][-1]:.2f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--host-bytes", type=int, default=16 << 20)
    p.add_argument("--wire-bytes", type=int, default=1 << 20)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--json", action="store_true", help="one line for each place, in seconds")
    a = p.parse_args()
    processors = len(os.sched_getaffinity(0))
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        rows["host"] = middle([program, str(a.ranks), str(a.host_bytes), "50"], a.runs, processors)
        if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("tc"):
            rows["wire"] = middle(["unshare", "--net", "sh", "-c", SHAPE, "sh", program, str(a.ranks), str(a.wire_bytes), "5"],
                                  a.runs, processors, NCCL_SHM_DISABLE="1")
        else:
            print("the wire is left out: it needs root, unshare and tc", file=sys.stderr)
    if a.json:
        for name, row in rows.items():
            print(json.dumps({"place": name, "processors": processors, **row}))
        return
    words = " ".join(f"{k:>9}" for k in ("NULL", "stream", "work", "together", "reached", "cpu", "cpu both", "bound"))
    print(f"{'':8} {'ranks':>5} {'KiB':>9} {words} {'ratio':>6}   of all runs (times in ms)")
    for name, row in rows.items():
        show(name, row, processors)


if __name__ == "__main__":
    main()
