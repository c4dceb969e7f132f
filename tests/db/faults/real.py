# SPDX-License-Identifier: MIT
"""The program itself, with the shim before libc: each allocation since it first touched the store fails, and each call on a
file of the store; once and for ever. It ends with an exit code and a sentence, never by a signal, and the store is readable."""
import os
import shutil
import struct
import subprocess

import fault

COMMANDS = (("lookup", "--require", "none"), ("lookup", "--require", "none", "--format", "json"), ("db", "show"), ("db", "verify"),
            ("db", "show", "--json"), ("db", "rebuild", "--salvage"), ("db", "gc", "--yes", "--keep", "0"))
MOST = 10 ** 9 if fault.FULL else 6  # runs of a command and kind of fault
ERRORS = ("EIO", "ENOSPC", "EINTR")


class Program:
    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.store = os.path.join(self.folder, "work", "store")
        self.template = os.path.join(self.folder, "template")
        self.shared = os.path.join(self.folder, "shared")
        actor = fault.Actor(folder, self.template)
        for verb in fault.BASE:
            actor.must(verb)
        actor.close()
        self.actor = fault.Actor(folder, self.store)
        self.shim = os.path.join(self.folder, "shim.so")  # LD_PRELOAD ends a name at a blank, which the build folder may have
        os.symlink(os.path.realpath(fault.SHIM), self.shim)

    def run(self, command, what):
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self.template, self.store)
        environment = dict(os.environ, FAULT=what, FAULT_ROOT=self.store, FAULT_SHARED=self.shared, LD_PRELOAD=self.shim,
                           XDG_CACHE_HOME=os.path.join(self.folder, "cache"))
        return subprocess.run([fault.DITTUNE, *command, "--db", self.store], env=environment, capture_output=True, text=True,
                              check=False)

    def counts(self):
        with open(self.shared, "rb") as file:
            calls, _, allocations, _ = struct.unpack("iiqq", file.read(24))
        return calls, allocations


def points(n):
    every = list(range(1, n + 1))
    return every if len(every) <= MOST else sorted(fault.RANDOM.sample(every, MOST))


def judge(program, command, what):
    result = program.run(command, what)
    line = f"dittune {' '.join(command)}, {what}"
    if result.returncode < 0:
        fault.fail(f"{line}: signal {-result.returncode}")
    elif result.returncode != 0 and not result.stderr.startswith("dittune: "):
        fault.fail(f"{line}: exit {result.returncode} without a sentence: {result.stderr[:100]}")
    seen, why = program.actor.entries()
    if seen != fault.SEEN:
        fault.fail(f"{line}: the store has {why or seen}")
    return result.returncode != 0


def main():
    runs = told = 0
    with fault.scratch() as folder:
        program = Program(folder)
        for command in COMMANDS:
            program.run(command, "0")
            if program.run(command, "0").returncode != 0:
                raise RuntimeError(program.run(command, "0").stderr)
            calls, allocations = program.counts()
            for n in points(allocations):
                for ever in ("", " ever"):
                    told += judge(program, command, f"{n} memory{ever}")
                    runs += 1
            for n in points(calls):
                for error in ERRORS:
                    told += judge(program, command, f"{n} {error}")
                    runs += 1
        program.actor.close()
    fault.finish(f"real: {len(COMMANDS)} commands, {runs} runs, {told} told")


main()
