#!/usr/bin/env python3
"""What a no-op costs on this node, against `ip -d -j addr`: CPU seconds, memory, child processes.

Without address space randomization: QEMU's emulation translates a program anew wherever it is
loaded, which on these nodes takes ten times as long as running it.
"""

import json
import os
import subprocess
import sys

RUNS = 21


def cost(command):
    """Median CPU seconds and the most memory of all, bytes."""
    seconds, most = [], 0
    for _ in range(RUNS):
        process = subprocess.Popen(["setarch", "-R", *command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{command} exits with {process.returncode}")
        seconds.append(used.ru_utime + used.ru_stime)
        most = max(most, used.ru_maxrss * 1024)
    return sorted(seconds)[RUNS // 2], most


def processes(command):
    """Programs run and processes made by a command, itself not counted; its system calls."""
    strace = ["strace", "-f", "-qq", "-o", "/run/cost.strace", *command]
    subprocess.run(strace, stdout=subprocess.DEVNULL, check=True)
    with open("/run/cost.strace", encoding="utf-8", errors="replace") as trace:
        calls = [line.split(maxsplit=1)[1].split("(")[0] for line in trace if "(" in line]
    made = sum(call in ("execve", "execveat", "fork", "vfork", "clone", "clone3") for call in calls)
    return made - 1, len(calls)


def main():
    spec = sys.argv[1]
    ip, _ = cost(["ip", "-d", "-j", "addr"])
    found = {}
    for verb in ("drift", "apply"):
        command = ["selvedge", verb, spec]
        seconds, most = cost(command)
        children, calls = processes(command)
        found[verb] = {"ratio": seconds / ip, "bytes": most, "children": children, "calls": calls}
    print(json.dumps(found))


main()
