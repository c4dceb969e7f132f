#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants the mistakes of tools/mutations.txt, one at a time, in a copy of the tree and asks whether the tests notice.

    tools/mutate.py                 all of them
    tools/mutate.py --only NAME     this one; may be given several times
    tools/mutate.py --gates         one for each kind of gate of test.sh
    tools/mutate.py --list          their names, the step of test.sh that notices each, and what they spoil
    tools/mutate.py --fit           only asks whether each still fits the source; builds nothing

    --jobs N        copies at work at once, 2 when not given
    --keep FOLDER   the copies are made there, and stay for the next call

A step of test.sh is a preset (CMakePresets.json): the copy is configured with it, the targets that the named tests need are
built, and the tests run as that preset runs them. Ends with 1 when a mistake survives or fits no longer. Standard library only.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
TABLE = SOURCE / "tools" / "mutations.txt"
# What the scripts of a folder start: those of tools/ only read the sources.
ANY_PROGRAM = ("dittune", "dittune-virtual", "dittune-worker", "dittune-worker-command", "scenario")
PROGRAMS = {"tools": (), "cli": (*ANY_PROGRAM, "fault_shim"), "faults": ("fault_actor",), "gpu": (*ANY_PROGRAM, "nvidia-ml-fake"),
            "workers": (*ANY_PROGRAM, "nvidia-ml-fake"), "devices": (*ANY_PROGRAM, "nvml-listed")}
# The same code, built sooner. A mistake may leave a function without use, which is no error here.
QUICK = ("-DDT_CUDA=OFF", "-DDT_WERROR=OFF")
DEV = ("-DDT_MPI=OFF", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1")
PATIENCE = 1800  # seconds for one test; one that hangs has noticed
SIGNS = re.compile(r"^.*(FAIL|ERROR|runtime error|WARNING: ThreadSanitizer|may not include).*$", re.M)


class Unfit(Exception):
    """A mistake that fits the source, the build or the tests no longer."""


class Mutation:
    """A block of the table: places (old lines, new lines) in one file, and tests (name, check) in one step of test.sh."""

    def __init__(self, name, about):
        self.name, self.about = name, about
        self.file, self.step, self.gate = None, "dev", None
        self.places, self.tests = [], []

    def add(self, line):
        word, _, rest = line.partition(" ")
        if line[0] == "-":
            if not self.places or self.places[-1][1]:
                self.places.append(([], []))
            self.places[-1][0].append(line[1:].strip())
        elif line[0] == "+":
            self.places[-1][1].append(line[1:])
        elif word == "by":
            name, _, check = rest.strip().partition(" ")
            self.tests.append((name, check.strip()))
        elif word in ("file", "step", "gate"):
            setattr(self, word, rest.strip())
        else:
            sys.exit(f"mutate: {TABLE.name}: what is '{line}'?")

    def planted(self):
        """The file with the mistake in it."""
        lines = (SOURCE / self.file).read_text(encoding="utf-8").split("\n")
        for old, new in self.places:
            bare = [line.strip() for line in lines]
            at = [i for i in range(len(bare)) if bare[i:i + len(old)] == old]
            if len(at) != 1:
                raise Unfit(f"{self.file} has {len(at)} such places, not one: {old[0]}")
            lines[at[0]:at[0] + len(old)] = new
        return "\n".join(lines)


def read_table():
    mutations = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("mutation "):
            mutations.append(Mutation(*line[len("mutation "):].split(None, 1)))
        elif line and line[0] != "#":
            mutations[-1].add(line)
    return mutations


def sources(root):
    """Every file that belongs to the tree, by its path in it."""
    for folder, folders, files in os.walk(root):
        top = pathlib.Path(folder) == root
        folders[:] = [name for name in folders if name not in (".git", "__pycache__") and not (top and name.startswith("build"))]
        for name in [*files, *(name for name in folders if (pathlib.Path(folder) / name).is_symlink())]:
            if name != ".git":
                yield (pathlib.Path(folder) / name).relative_to(root)


class Copy:
    """A copy of the tree, with a build folder for each step in which something was planted."""

    def __init__(self, root):
        self.root, self.known, self.clean = root, {}, {}
        ours = set(sources(SOURCE))
        root.mkdir(parents=True, exist_ok=True)
        for path in set(sources(root)) - ours:
            (root / path).unlink()
        for path in ours:
            self.bring(path)

    def bring(self, path):
        """The file as it is in the tree; one that is so already keeps its time, and is not compiled again."""
        to = self.root / path
        if (SOURCE / path).is_dir():  # a link to a folder of the tree
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.is_symlink():
                to.symlink_to(os.readlink(SOURCE / path))
            return
        text = (SOURCE / path).read_bytes()
        if not to.exists() or to.read_bytes() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(text)
            shutil.copymode(SOURCE / path, to)

    def run(self, *words, check=""):
        """A program in the copy: whether it ended well, and what it said. `check` is a part of a test of tests/truth."""
        env = {**os.environ, "TRUTH_ONLY": check} if check else None
        try:
            done = subprocess.run(words, cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return False, f"FAILED to end within {PATIENCE} s"
        return done.returncode == 0, done.stdout.decode(errors="replace")

    def configure(self, step):
        """The step's tests, and the program of each that is one."""
        if step in self.known:
            return self.known[step]
        ok, said = self.run("cmake", "--preset", step, *QUICK, *(DEV if step == "dev" else ()))
        if not ok:
            raise Unfit(f"the step {step} cannot be configured:\n{said[-2000:]}")
        ok, said = self.run("ctest", "--preset", step, "--show-only=json-v1")
        names = [test["name"] for test in json.loads(said)["tests"]] if ok else []
        programs = {}
        for path in (self.root / "build" / step).rglob("CTestTestfile.cmake"):
            programs.update(re.findall(r'^add_test\(\[=*\[(.*?)\]=*\] "([^"]+)"', path.read_text(encoding="utf-8"), re.M))
        self.known[step] = {name: pathlib.Path(programs[name]).name for name in names if name in programs}
        return self.known[step]

    def targets(self, mutation):
        """What must be built for the mutation's tests: the programs that they are, or those that their scripts start."""
        known, needed = self.configure(mutation.step), set()
        for name, _ in mutation.tests:
            if name not in known:
                raise Unfit(f"the step {mutation.step} has no test {name}")
            own = known[name].startswith("test_")
            needed.update([known[name]] if own else PROGRAMS.get(name.partition("_")[0], ANY_PROGRAM))
        return sorted(needed)

    def build(self, mutation):
        targets = self.targets(mutation)
        ok, said = self.run("cmake", "--build", "--preset", mutation.step, "-j1", "--target", *targets) if targets else (True, "")
        if not ok:
            raise Unfit(f"it does not compile:\n{said[-2000:]}")

    def test(self, step, name, check):
        """Whether the test passes, and what it said. One that is skipped notices nothing."""
        return self.run("ctest", "--preset", step, "-R", f"^{name}$", "--output-on-failure", check=check)

    def passes_clean(self, mutation):
        """Each of its tests must pass, and not be skipped, where nothing is planted."""
        for name, check in mutation.tests:
            key = (mutation.step, name, check)
            if key not in self.clean:
                self.build(mutation)
                ok, said = self.test(*key)
                self.clean[key] = "" if ok and "***Skipped" not in said else said[-2000:]
            if self.clean[key]:
                raise Unfit(f"{name} {check} does not pass without any mistake:\n{self.clean[key]}")

    def killer(self, mutation):
        """Which test notices the mistake, and its words; None when it survives."""
        text = mutation.planted()
        self.passes_clean(mutation)
        (self.root / mutation.file).write_text(text, encoding="utf-8")
        try:
            self.build(mutation)
            for name, check in mutation.tests:
                ok, said = self.test(mutation.step, name, check)
                if not ok:
                    sign = SIGNS.search(said.partition("\n    Start")[2] or said)
                    return f"{name} {check}".strip(), sign.group().strip()[:90] if sign else ""
            return None
        finally:
            self.bring(mutation.file)


class Tally:
    """What became of them, said one line each as it is known."""

    def __init__(self):
        self.lock, self.killed, self.bad, self.unfit = threading.Lock(), 0, [], []

    def judge(self, copy, mutation):
        try:
            found = copy.killer(mutation)
        except Unfit as why:
            return self.tell(self.unfit, mutation, f"UNFIT     {mutation.name}: {why}")
        if found is None:
            return self.tell(self.bad, mutation, f"SURVIVED  {mutation.name}: {mutation.about}")
        with self.lock:
            self.killed += 1
            print(f"killed    {mutation.name:22} {mutation.step}: {found[0]:34} {found[1]}", flush=True)

    def tell(self, bad, mutation, text):
        with self.lock:
            bad.append(mutation.name)
            print(text, flush=True)

    def summary(self, seconds):
        print(f"mutate: {self.killed} killed, {len(self.bad)} survived, {len(self.unfit)} no longer fit, {seconds:.0f} s")
        for word, names in (("survived", self.bad), ("no longer fit", self.unfit)):
            if names:
                print(f"mutate: {word}: {' '.join(names)}")
        return 1 if self.bad or self.unfit else 0


def groups_of(mutations):
    """Those that need about the same programs are planted in one copy, one after the other; large groups first."""
    groups = {}
    for mutation in mutations:
        groups.setdefault((mutation.step, mutation.tests[0][0].partition("_")[0]), []).append(mutation)
    return sorted(groups.values(), key=len, reverse=True)


def plant(mutations, jobs, folder):
    tally, start, waiting = Tally(), time.monotonic(), groups_of(mutations)

    def work(number):
        copy = Copy(folder / f"copy-{number}")
        while True:
            with tally.lock:
                group = waiting.pop(0) if waiting else []
            if not group:
                return
            for mutation in group:
                tally.judge(copy, mutation)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work, number) for number in range(min(jobs, len(waiting)))]:
            done.result()
    return tally.summary(time.monotonic() - start)


def fit(mutations):
    bad = 0
    for mutation in mutations:
        try:
            mutation.planted()
        except Unfit as why:
            bad += 1
            print(f"UNFIT     {mutation.name}: {why}")
    print(f"mutate: {len(mutations) - bad} of {len(mutations)} fit the source")
    return 1 if bad else 0


def chosen(options):
    mutations = read_table()
    unknown = set(options.only) - {mutation.name for mutation in mutations}
    if unknown:
        sys.exit(f"mutate: there is no mutation {' '.join(sorted(unknown))}; see --list")
    if options.only:
        mutations = [mutation for mutation in mutations if mutation.name in options.only]
    if options.gates:
        mutations = [mutation for mutation in mutations if mutation.gate]
    return mutations


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    for flag in ("--gates", "--list", "--fit"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    mutations = chosen(options)
    if options.list:
        for mutation in mutations:
            print(f"{mutation.name:22} {mutation.step:6} {mutation.about}")
        return 0
    if options.fit:
        return fit(mutations)
    if options.keep:
        return plant(mutations, options.jobs, options.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="dittune-mutate-") as folder:
        return plant(mutations, options.jobs, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
