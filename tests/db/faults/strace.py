# SPDX-License-Identifier: MIT
"""The same faults by another hand: strace kills the program itself at each of its system calls since it first touched the
store, and makes each fail. (strace counts calls of one name, so call n of openat is another point than call n of read.)"""
import os
import re
import shutil
import subprocess

import fault

ERRORS = ("EIO", "ENOSPC")
CALLS = "openat,read,write,fsync,fdatasync,renameat,linkat,unlinkat,mkdir,mkdirat,flock,fstatfs,newfstatat,close,getdents64"
MOST = 10 ** 9 if fault.FULL else 8


class Traced:
    def __init__(self, folder, begin, command):
        self.folder, self.command = folder, command
        self.store, self.template = os.path.join(folder, "store"), os.path.join(folder, "template")
        self.log = os.path.join(folder, "log")
        actor = fault.Actor(folder, self.template)
        for verb in begin:
            actor.must(verb)
        actor.close()
        self.actor = fault.Actor(folder, self.store)

    def run(self, *options):
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self.template, self.store)
        return subprocess.run(["strace", "-o", self.log, "-e", "trace=" + CALLS, *options, fault.DITTUNE, *self.command, "--db",
                               self.store], capture_output=True, text=True, check=False)

    def points(self):
        """(name, n) of each call since the store's folder was first named."""
        if self.run().returncode != 0:
            return []
        counts, found, on = {}, [], False
        with open(self.log, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.match(r"(\w+)\(", line)
                if not match:
                    continue
                name = match[1]
                counts[name] = counts.get(name, 0) + 1
                on = on or self.store in line
                if on:
                    found.append((name, counts[name]))
        return found

    def judge(self, what, result, silent):
        if result.returncode == 0 and not silent:
            fault.fail(f"{what}: success")
        elif result.returncode > 0 and "dittune: " not in result.stderr:
            fault.fail(f"{what}: exit {result.returncode} without a sentence")
        seen, why = self.actor.entries()
        if seen != fault.SEEN:
            fault.fail(f"{what}: read {why or seen}")
        if self.actor.do("put next 1").how != "exit:0" or fault.temps(self.store):
            fault.fail(f"{what}: the next run fails, or leaves {fault.temps(self.store)}")


def main():
    if shutil.which("strace") is None:
        fault.skip("there is no strace here; install strace")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0:
        fault.skip("strace may not trace a process here")
    kills = errors = 0
    with fault.scratch() as folder:
        traced = Traced(os.path.realpath(folder), fault.RESULTS, ("db", "rebuild"))
        points = traced.points()
        if len(points) < 20:
            fault.fail(f"{len(points)} calls")
        some = points if len(points) <= MOST else fault.RANDOM.sample(points, MOST)
        for name, n in some:
            result = traced.run(f"--inject={name}:signal=SIGKILL:when={n}")
            if result.returncode != -9:
                fault.fail(f"{name} {n}: not killed: {result.returncode}")
            traced.judge(f"{name} {n}, killed", result, True)
            kills += 1
            for error in ERRORS:
                result = traced.run(f"--inject={name}:error={error}:when={n}")
                traced.judge(f"{name} {n} {error}", result, name not in ("fsync", "fdatasync", "renameat"))
                errors += 1
        traced.actor.close()
    fault.finish(f"strace: {len(points)} calls of db rebuild, {kills} kills, {errors} errors")


main()
