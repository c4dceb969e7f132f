# SPDX-License-Identifier: MIT
"""A file system that is really full: 1.0, 1.5, 2.0 and 2.5 times the store, in a mount namespace of its own."""
import os
import shutil
import subprocess
import sys

import fault

SIZES = (1.0, 1.5, 2.0, 2.5)
ENTRIES = 400 if fault.FULL else 100


def fill(actor, puts):
    """Puts and appends until each of them is refused. How many were stored."""
    stored = 0
    for i in range(200):
        result = actor.do(f"put new{i} {i} 3000")
        if result.how == "exit:0":
            puts[f"new{i}"] = i
            stored += 1
        elif result.how != "exit:74" or "No space left" not in result.message:
            fault.fail(f"full: {result.how} {result.message}")
            break
        else:
            break
    result = actor.do("journal 2000 3000")
    if result.how != "exit:74" or "No space left" not in result.message:
        fault.fail(f"full journal: {result.how} {result.message}")
    return stored, {ack for ack in result.acks if "/" in ack}


def one(mount, template, factor):
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(template) for name in names)
    pages = int(size * factor / 4096) + 8  # some for the folders
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * 4096}", "none", mount], check=True)
    store = os.path.join(mount, "store")
    shutil.copytree(template, store)
    actor = fault.Actor(mount, store)
    puts, _ = actor.entries()
    stored, records = fill(actor, puts)
    seen, why = actor.entries()
    if seen != puts:
        fault.fail(f"{factor} x: {why or len(seen)} entries, expected {len(puts)}")
    if records - (actor.records() or set()):
        fault.fail(f"{factor} x: records lost")
    if fault.temps(store):
        fault.fail(f"{factor} x: temporary files were left")
    subprocess.run(["mount", "-o", f"remount,size={pages * 4096 * 8}", mount], check=True)
    after = actor.do("put next 1")
    seen, why = actor.entries()
    if after.how != "exit:0" or seen != {**puts, "next": 1}:
        fault.fail(f"{factor} x: after room was made: {after.how} {after.message} {why}")
    actor.close()
    subprocess.run(["umount", mount], check=True)
    return f"{factor} x: {stored} puts and {len(records)} records stored"


def inside():
    with fault.scratch() as folder:
        mount = os.path.join(folder, "mount")
        store = os.path.join(folder, "template")
        os.mkdir(mount)
        actor = fault.Actor(folder, store)
        actor.must("check")
        actor.must(f"puts e 1 {ENTRIES} 20000")
        actor.must("put last 1")
        actor.close()
        os.remove(os.path.join(store, "best.json.1"))
        words = [one(mount, store, factor) for factor in SIZES]
    fault.finish(f"full: {'; '.join(words)}")


def main():
    if len(sys.argv) > 2:
        inside()
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    if probe.returncode != 0:
        fault.skip("a namespace of mounts is not allowed here, as in a chroot")
    sys.exit(subprocess.run(["unshare", "-rm", sys.executable, "-B", __file__, fault.BUILD, "inside"], check=False).returncode)


main()
