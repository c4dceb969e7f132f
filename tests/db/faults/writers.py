# SPDX-License-Identifier: MIT
"""Sixteen writers, eight readers without a lock, and a killer of writers after each forty commits or so. A killed writer
is started again after the last commit that was acknowledged. Nothing acknowledged is lost, no reader ever fails or sees
an entry vanish or age."""
import os
import subprocess
import time

import fault

WRITERS, READERS = 16, 8
COMMITS = 1000 if fault.FULL else 150
KILL_EVERY = 40 * len("ack w10_x100=100\n")  # bytes of acknowledgements
LOOK = 0.002  # seconds between two looks at them
NAP = 2000 if fault.FULL else 20000  # microseconds between two looks of a reader


class Writer:
    def __init__(self, number, folder, store):
        self.number, self.store = number, store
        self.path = os.path.join(folder, f"acks{number}")
        self.log = open(self.path, "ab", buffering=0)  # what was acknowledged outlives the writer
        self.process = None
        self.start()

    def acknowledged(self):
        with open(self.path, encoding="ascii") as file:
            lines = [line for line in file.read().split("\n")[:-1] if line.startswith("ack ")]
        return lines

    def kill(self):
        """True when it was still running."""
        running = self.process.poll() is None
        if running:
            self.process.kill()
        return running

    def start(self):
        lines = self.acknowledged()
        done = int(lines[-1].split("=")[1]) if lines else 0
        if done < COMMITS:
            verb = f"puts w{self.number}_ {done + 1} {COMMITS} 60"
            self.process = subprocess.Popen([fault.ACTOR, self.store, verb], stdout=self.log)
        return done < COMMITS


def expected(writers):
    values = {}
    for writer in writers:
        for line in writer.acknowledged():
            model, value = line[4:].split("=")
            values[model] = max(int(value), values.get(model, 0))
    return values


def run(folder, store):
    writers = [Writer(number, folder, store) for number in range(WRITERS)]
    readers = [subprocess.Popen([fault.ACTOR, store, f"watch {NAP}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for _ in range(READERS)]
    logs = [os.fdopen(os.dup(reader.stdout.fileno()), "rb", buffering=0) for reader in readers]
    counts = [b""] * READERS
    for log in logs:
        os.set_blocking(log.fileno(), False)
    kills, live, began, next_kill = 0, list(writers), time.monotonic(), KILL_EVERY
    while live:
        time.sleep(LOOK)
        written = sum(os.fstat(writer.log.fileno()).st_size for writer in writers)
        if written >= next_kill:
            kills += fault.RANDOM.choice(live).kill()
            next_kill = written + KILL_EVERY
        for writer in list(live):
            code = writer.process.poll()
            if code is None:
                continue
            if code not in (0, -9):
                fault.fail(f"writer {writer.number} ended with {code}")
                live.remove(writer)
            elif not writer.start():
                live.remove(writer)
        for i, log in enumerate(logs):
            counts[i] = (counts[i] + (log.read() or b""))[-200:]
    reads = 0
    for i, reader in enumerate(readers):
        if reader.poll() is not None:
            fault.fail(f"reader {i}: {reader.stderr.read().decode()}")
        reader.kill()
        reader.wait()
        words = counts[i].split()
        reads += int(words[-1]) if words and words[-1].isdigit() else 0
    return writers, kills, reads, time.monotonic() - began


def main():
    with fault.scratch() as folder:
        store = os.path.join(folder, "store")
        actor = fault.Actor(folder, store)
        actor.must("check")
        writers, kills, reads, seconds = run(folder, store)
        wanted = expected(writers)
        seen, why = actor.entries()
        if seen != wanted:
            lost = {model for model in wanted if (seen or {}).get(model) != wanted[model]}
            fault.fail(f"{len(lost)} of {len(wanted)} entries lost {why}: {sorted(lost)[:5]}")
        actor.must("put last 1")
        if fault.temps(store):
            fault.fail(f"{len(fault.temps(store))} temporary files were not swept")
        bad = [name for name in os.listdir(store) if ".bad-" in name]
        if bad:
            fault.fail(f"broken files were set aside: {bad}")
        actor.close()
    fault.finish(f"writers: {WRITERS} x {COMMITS} commits, {kills} killed, {reads} reads by {READERS} readers, "
                 f"{len(wanted)} entries, {seconds:.0f} s")


main()
