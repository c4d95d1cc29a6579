#!/usr/bin/env python3
"""How well an all-reduce on a stream goes on beside a computation of equal length, on this machine.

Two places: within the host, where sums and copies are processor work themselves, and over TCP on a loopback that lets 200 Mbit/s
through (root only: a network namespace of its own). Two programs: overlap.c, and overlap_numpy.py by the Python package where numpy
is at hand. Of --runs runs of each the one with the median ratio is shown. The ratio is the time of both together to

    over the wire    the longer of the two alone
    in the host      the same, or the processor seconds of both alone spread over all processors, whichever is more

and "parts" is how many of 8 smaller all-reduces are done when the computation beside them ends.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIMIT = 1.15  # what a ratio may be
SHAPE = "ip link set lo up && tc qdisc add dev lo root tbf rate 200mbit burst 256k latency 100ms && exec \"$@\""
COLUMNS = ("null", "stream", "work", "both", "reached")


def library():
    return os.path.abspath(os.environ.get("HCCL_LIB", os.path.join(ROOT, "build", "lib")))


def build(folder):
    lib, program = library(), os.path.join(folder, "overlap")
    subprocess.run([*os.environ.get("CC", "cc").split(), os.path.join(HERE, "overlap.c"), "-std=c11", "-O2", "-Wall", "-Wextra",
                    "-I", os.path.join(ROOT, "include"), "-L", lib, "-lnccl", f"-Wl,-rpath,{lib}", "-o", program], check=True)
    return [program]


def python():
    """The first interpreter that has numpy: this one, or that of the tests."""
    for found in (sys.executable, os.path.join(ROOT, "build", "venv", "bin", "python")):
        if os.path.exists(found) and subprocess.run([found, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0:
            return [found, os.path.join(HERE, "overlap_numpy.py")]
    return None


def go_first():
    """In the child: before other sessions of a busy machine, where the kernel groups threads by session and we may."""
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-20")
    except OSError:
        pass


def measure(command, **more):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=go_first,
                          env={**os.environ, "HCCL_LIB": library(), **more}) as running:
        try:
            said, _ = running.communicate(timeout=300)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode:
        sys.exit(f"overlap: {' '.join(command)} ended with {running.returncode}")
    return json.loads(said)


def bound(row, place):
    longer = max(row["stream"], row["work"])
    if place == "wire":
        return longer
    return max(longer, (row["stream_cpu"] + row["work_cpu"]) / len(os.sched_getaffinity(0)))


def middle(command, runs, place, **more):
    """The run with the median ratio: other work on the machine falls on one measurement of a run and not on the next."""
    rows = [measure(command, **more) for _ in range(runs)]
    for row in rows:
        row.update(place=place, bound=bound(row, place), ratio=row["both"] / bound(row, place))
    rows.sort(key=lambda row: row["ratio"])
    return {**rows[runs // 2], "least": rows[0]["ratio"], "most": rows[-1]["ratio"]}


def show(row):
    times = " ".join(f"{row[k] * 1e3:9.2f}" for k in (*COLUMNS, "stream_cpu", "both_cpu", "bound"))
    print(f"{row['place']:5} {row['program']:6} {row['ranks']:5} {row['bytes'] >> 10:6} {times} {row['parts']:3.0f}/8"
          f" {row['ratio']:6.2f}   {row['least']:.2f}-{row['most']:.2f}", flush=True)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--host-bytes", type=int, default=16 << 20)
    p.add_argument("--wire-bytes", type=int, default=1 << 20)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--place", choices=("host", "wire"), help="one of the two alone")
    p.add_argument("--json", action="store_true", help="a line of JSON for each row, in seconds")
    p.add_argument("--check", action="store_true", help=f"exit with 1 if a ratio is above {LIMIT}, or no part was done meanwhile")
    return p.parse_args()


def places(a):
    """What stands before the program, its last words, and its settings, by place."""
    found = {"host": ([], [str(a.ranks), str(a.host_bytes), "50"], {})}
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("tc") and shutil.which("ip"):
        found["wire"] = (["unshare", "--net", "sh", "-c", SHAPE, "sh"], [str(a.ranks), str(a.wire_bytes), "5"],
                         {"NCCL_SHM_DISABLE": "1"})
    elif a.place != "host":
        print("# the wire is left out: it needs root, unshare, ip and tc", file=sys.stderr)
    return {place: how for place, how in found.items() if a.place in (None, place)}


def main():
    a = arguments()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        programs = {"C": build(folder), "numpy": python()}
        if programs["numpy"] is None:
            print("# Python is left out: it has no numpy", file=sys.stderr)
        if not a.json:
            words = " ".join(f"{k:>9}" for k in ("NULL", "stream", "work", "together", "reached", "cpu", "cpu both", "bound"))
            print(f"{'':12} {'ranks':>5} {'KiB':>6} {words} parts  ratio   of all runs (times in ms)")
        for place, (before, words, settings) in places(a).items():
            for name, command in programs.items():
                if command is not None:
                    rows.append({"program": name, **middle([*before, *command, *words], a.runs, place, **settings)})
                    print(json.dumps(rows[-1])) if a.json else show(rows[-1])
    wrong = [row for row in rows if row["ratio"] > LIMIT or row["parts"] < 1]
    sys.exit(a.check and bool(wrong))


if __name__ == "__main__":
    main()
