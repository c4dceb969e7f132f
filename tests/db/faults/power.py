# SPDX-License-Identifier: MIT
"""The power fails after any call. What was not synced by then may be on the disk or not, in any combination: a write, half
of a write, a name in a folder. Whatever is left opens, and holds all that was acknowledged.

The calls come from the shim's log. A file's bytes are durable once the file was synced, its name once its folder was
(POSIX promises no more); a rename is one change of a folder."""
import itertools
import os
import shutil

import fault

DOSE = 60 if fault.FULL else 8
PUTS = ("session a 1", f"puts n 1 {DOSE} 60", f"journal {DOSE} 200", "put a 9 400", f"puts m 1 {DOSE} 10", "journal 2 9000")
AB, ABDE = {"a": 1, "b": 2}, {"a": 1, "b": 2, "d": 4, "e": 5}
# how the store begins, what is done to it, what it holds after each acknowledgement (None: as the puts say)
RUNS = ((None, PUTS, None),
        (None, ("result a 1 50", "result b 2 300", "take", "rebuild", "gc"), [{}, {"a": 1}, AB, ABDE, ABDE, ABDE]))
ALL = 6  # pending changes of which every subset is tried; of more, DRAWS are drawn
DRAWS = 200 if fault.FULL else 40


class Node:
    def __init__(self, folder):
        self.folder = folder
        self.durable = {} if folder else b""  # name: node, or bytes
        self.pending = []
        self.now = {} if folder else b""


def write(old, offset, new):
    old = old.ljust(offset, b"\0")
    return old[:offset] + new + old[offset + len(new):]


def apply(state, change):
    """A change of a folder or of a file, on a copy of what it holds."""
    kind, *rest = change
    if kind == "write":
        return write(state, *rest)
    if kind == "truncate":
        return state[:rest[0]].ljust(rest[0], b"\0")
    state = dict(state)
    if kind == "set":
        state[rest[0]] = rest[1]
    elif kind == "unset":
        state.pop(rest[0], None)
    else:  # move: source, target, node
        if state.get(rest[0]) is rest[2]:
            del state[rest[0]]
        state[rest[1]] = rest[2]
    return state


class Disk:
    def __init__(self, root):
        self.root_path, self.inodes = root, {}
        self.root = self.load(root)

    def load(self, path):
        """The files before the log begins, all of them durable."""
        node = self.inodes[os.stat(path).st_ino] = Node(os.path.isdir(path))
        if node.folder:
            node.now = {name: self.load(os.path.join(path, name)) for name in os.listdir(path)}
        else:
            with open(path, "rb") as file:
                node.now = file.read()
        node.durable = node.now
        return node

    def find(self, path):
        node = self.root
        for name in os.path.relpath(path, self.root_path).split("/"):
            if name != ".":
                node = node.now[name]
        return node

    def change(self, node, *change):
        node.now = apply(node.now, change)
        node.pending.append(change)

    def name(self, path, node):
        self.change(self.find(os.path.dirname(path)), "set", os.path.basename(path), node)

    def line(self, line, stat):
        """One line of the log. stat: inode numbers of the folders made, as the log has only their names."""
        word, _, rest = line.partition(" ")
        if word == "mkdir":
            node = Node(True)
            self.inodes[stat[rest]] = node
            self.name(rest, node)
        elif word == "create":
            inode, path = rest.split(" ", 1)
            node = self.inodes[int(inode)] = Node(False)
            self.name(path, node)
        elif word == "write":
            inode, offset, data = rest.split(" ")
            self.change(self.inodes[int(inode)], "write", int(offset), bytes.fromhex(data))
        elif word == "truncate":
            inode, size = rest.split(" ")
            self.change(self.inodes[int(inode)], "truncate", int(size))
        elif word == "sync":
            node = self.inodes[int(rest)]
            node.durable, node.pending = node.now, []
        elif word == "link":
            old, new = rest.split("\t")
            self.name(new, self.find(old))
        elif word == "unlink":
            self.change(self.find(os.path.dirname(rest)), "unset", os.path.basename(rest))
        elif word == "rename":
            old, new = rest.split("\t")
            node = self.find(old)
            if os.path.dirname(old) != os.path.dirname(new):
                raise RuntimeError("a rename between folders")
            if self.find(os.path.dirname(new)).now.get(os.path.basename(new)) is not node:
                self.change(self.find(os.path.dirname(old)), "move", os.path.basename(old), os.path.basename(new), node)
        elif word != "ack":
            raise RuntimeError(line)

    def pending(self):
        seen, units = set(), []
        for node in self.inodes.values():
            if id(node) not in seen:
                seen.add(id(node))
                units += [(node, i) for i in range(len(node.pending))]
        return units

    def survivors(self, chosen):
        """chosen: {unit: share}. The files of that disk: {path: bytes}, folders as None."""
        files = {}

        def walk(node, path):
            state = node.durable
            for i, change in enumerate(node.pending):
                share = chosen.get((id(node), i), 0)
                if share < 1 and share > 0 and change[0] == "write":
                    change = ("write", change[1], change[2][:int(len(change[2]) * share)])
                elif share < 1:
                    continue
                state = apply(state, change)
            files[path] = None if node.folder else state
            if node.folder:
                for name, child in state.items():
                    walk(child, f"{path}/{name}")

        walk(self.root, "")
        return files

    def outcomes(self):
        units = [(id(node), i) for node, i in self.pending()]
        if len(units) <= ALL:
            for size in range(len(units) + 1):
                for subset in itertools.combinations(units, size):
                    yield dict.fromkeys(subset, 1)
            for torn in units:
                yield {**dict.fromkeys(units, 1), torn: 0.5}
        else:
            for _ in range(DRAWS):
                yield {unit: fault.RANDOM.choice((0, 0.5, 1)) for unit in units}
            yield dict.fromkeys(units, 1)


def lay(files, root):
    shutil.rmtree(root, ignore_errors=True)
    for path, data in sorted(files.items()):
        if data is None:
            os.makedirs(root + path, exist_ok=True)
        else:
            with open(root + path, "wb") as file:
                file.write(data)


class Judge:
    def __init__(self, folder, lines, states):
        self.root = os.path.join(folder, "left")
        self.actor = fault.Actor(self.root, os.path.join(self.root, "a/store"))
        self.states = states or [{}]
        for line in lines if not states else ():
            if line.startswith("ack ") and "/" not in line:
                model, value = line[4:].split("=")
                self.states.append({**self.states[-1], model: int(value)})
        self.seen = set()
        self.disks = 0

    def judge(self, what, files, puts, records):
        """puts: how many were acknowledged; one more may have been stored."""
        key = hash((puts, len(records), frozenset(files.items())))
        if key in self.seen:
            return
        self.seen.add(key)
        self.disks += 1
        lay(files, self.root)
        allowed = self.states[puts:puts + 2]
        entries, why = self.actor.entries()
        there = self.actor.records()
        if entries not in allowed:
            fault.fail(f"{what}: read {why or entries}, expected one of {allowed}")
        elif there is None or records - there:
            fault.fail(f"{what}: records lost: {records - (there or set())}")
        elif self.disks % 10 == 0 and self.actor.do("put next 1").how != "exit:0":
            fault.fail(f"{what}: the next run fails")


def record(folder, begin, verbs):
    """The disk before, the log of the calls, and the inode of each folder."""
    root, log = os.path.join(folder, "root"), os.path.join(folder, "log")
    os.makedirs(os.path.join(root, "a"))
    if begin:
        begin(os.path.join(root, "a/store"))
    disk = Disk(root)
    actor = fault.Actor(root, os.path.join(root, "a/store"), log=log)
    for verb in verbs:
        actor.must(verb)
    actor.close()
    stat = {path: os.stat(path).st_ino for path, _, _ in os.walk(root)}
    with open(log, encoding="utf-8") as file:
        return disk, file.read().splitlines(), stat


def replay(folder, begin, verbs, states):
    """Calls, most changes that were not synced, losses of power, different disks."""
    disk, lines, stat = record(folder, begin, verbs)
    judge = Judge(folder, lines, states)
    puts, records, most, outcomes = 0, set(), 0, 0
    for number, line in enumerate(lines, 1):
        disk.line(line, stat)
        if line.startswith("ack "):
            puts += "/" not in line
            records |= {line[4:]} if "/" in line else set()
        most = max(most, len(disk.pending()))
        for chosen in disk.outcomes():
            outcomes += 1
            judge.judge(f"{verbs[0]} ..., after line {number} ({line[:60]}), {len(chosen)} changes left",
                        disk.survivors(chosen), puts, frozenset(records))
    judge.actor.close()
    return len(lines), most, outcomes, judge.disks


def main():
    totals = []
    for begin, verbs, states in RUNS:
        with fault.scratch() as folder:
            totals.append(replay(folder, begin, verbs, states))
    calls, most, outcomes, disks = zip(*totals)
    fault.finish(f"power: {sum(calls)} changes, at most {max(most)} not synced, {sum(outcomes)} losses of power, "
                 f"{sum(disks)} different disks")


main()
