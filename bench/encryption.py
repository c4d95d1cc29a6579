#!/usr/bin/env python3
"""What encryption costs: an all-reduce between two hosts (network namespaces, a veth cable; root only) in clear and with a key, in turn.

For each size the median over --runs runs of the median call, of rank 0, and the ratio of the two.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(os.environ.get("HCCL_BIN", os.path.join(ROOT, "build", "bin")), "hccl")
RANGES = (("8", "64K", 400), ("1M", "64M", 20))  # least, most, calls of each size; a factor of 8 between sizes
ADDRESSES = ("10.77.0.1", "10.77.0.2")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Hosts:
    """Two namespaces and a cable between them."""

    def __init__(self):
        self.names = [f"hb{os.getpid()}{end}" for end in "ab"]

    def __enter__(self):
        for name in self.names:
            ip("netns", "add", name)
        ip("link", "add", "e0", "netns", self.names[0], "type", "veth", "peer", "name", "e0", "netns", self.names[1])
        for name, address in zip(self.names, ADDRESSES):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", address + "/24", "dev", "e0")
            ip("-n", name, "link", "set", "e0", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def perf(self, key, port, least, most, calls):
        """The median of rank 0's calls in us, by bytes."""
        ranks = []
        for rank, name in enumerate(self.names):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(port),
                   "HCCL_ENCRYPTION_KEY_FILE": key}
            command = ["ip", "netns", "exec", name, TOOL, "perf", "all_reduce", "-b", least, "-e", most, "-f", "8", "-w", "5", "-n",
                       str(calls), "-c", "0", "-a", "0", "--percentiles", "--csv"]
            ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        out = [rank.communicate(timeout=120)[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("a rank has failed: see above")
        return {int(row["size"]): float(row["p50"]) for row in csv.DictReader(out[0].splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    if os.geteuid() != 0:
        sys.exit("bench/encryption.py makes network namespaces: it needs root")
    found = {}
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        key = os.path.join(folder, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(os.urandom(32).hex())
        port = 45000
        for _ in range(runs):
            for least, most, calls in RANGES:
                for with_key in ("", key):
                    for size, p50 in hosts.perf(with_key, port, least, most, calls).items():
                        found.setdefault(size, {}).setdefault(bool(with_key), []).append(p50)
                    port += 20
    print(f"{'bytes':>10} {'clear':>12} {'encrypted':>12} {'ratio':>6}    us, medians of {runs}")
    for size, by_key in sorted(found.items()):
        clear, encrypted = (statistics.median(by_key[k]) for k in (False, True))
        print(f"{size:>10} {clear:>12.1f} {encrypted:>12.1f} {encrypted / clear:>6.2f}")


if __name__ == "__main__":
    main()
