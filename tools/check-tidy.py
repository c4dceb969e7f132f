#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy on the sources of a build folder, as many at once as there are cores.

    tools/check-tidy.py --all BUILD            every source: minutes
    tools/check-tidy.py --since COMMIT BUILD   what differs from the commit, and what includes a header that does
    tools/check-tidy.py --sample BUILD         one source in 96, always the same ones

All findings are shown. Exit code 1 when there are any, 77 without clang-tidy."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
ONE_IN = 96


def sources(build):
    """Every C source of ours that the build compiles, relative to the root."""
    found = set()
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        if path.suffix == ".c" and path.is_relative_to(ROOT) and not path.is_relative_to(build):
            found.add(str(path.relative_to(ROOT)))
    return sorted(found)


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


def changed(commit):
    """Files that differ from the commit, those git does not know yet included."""
    return set(git("diff", "--name-only", "-z", commit)) | set(git("ls-files", "--others", "--exclude-standard", "-z"))


def includes(build):
    """{source: headers of ours}, as the compiler noted them for ninja."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout.splitlines()
    found, files = {}, []
    for line in lines + [""]:
        if line.startswith("    "):
            path = pathlib.Path(build, line.strip()).resolve()
            if path.is_relative_to(ROOT):
                files.append(str(path.relative_to(ROOT)))
        else:
            for source in (file for file in files if file.endswith(".c")):
                found.setdefault(source, set()).update(files)
            files = []
    return found


def since(commit, build, known):
    """None when the settings themselves have changed."""
    files = changed(commit)
    if files & {".clang-tidy", "tools/tidy.h"}:
        return None
    needs = includes(build)
    return [source for source in known if source in files or needs.get(source, set()) & files]


def tidy(program, build, source):
    # base/status.c defines what the header redefines.
    know = [] if source == "base/status.c" else ["--extra-arg=-include", f"--extra-arg={ROOT}/tools/tidy.h"]
    done = subprocess.run([program, "-p", build, "--quiet", *know, ROOT / source], capture_output=True, text=True)
    return source, done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)


def main(args):
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if program is None:
        print("skipped: there is no clang-tidy here; install clang-tidy")
        return 77
    if len(args) < 2 or args[0] not in ("--all", "--since", "--sample"):
        print("usage: tools/check-tidy.py --all | --since COMMIT | --sample  BUILD", file=sys.stderr)
        return 2
    build = pathlib.Path(args[-1]).resolve()
    known = sources(build)
    chosen = since(args[1], build, known) if args[0] == "--since" else known
    if args[0] == "--sample" or chosen is None:
        chosen = [source for source in known if zlib.crc32(source.encode()) % ONE_IN == 0]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, text in pool.map(lambda one: tidy(program, build, one), chosen):
            if code != 0:
                failed += 1
                print(f"{source}:\n{text}", flush=True)
    print(f"tidy: {len(chosen)} of {len(known)} sources read, findings in {failed}")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
