# SPDX-License-Identifier: MIT
"""A program whose locale writes 0,1: the store it makes is the one that any other makes, byte for byte."""
import os
import re
import subprocess

import fault


def make(folder, name):
    store = os.path.join(folder, name)
    actor = fault.Actor(folder, store)
    for verb in (*fault.BASE, "put a 5", "rebuild salvage", "put b 6"):
        actor.must(verb)
    actor.close()
    with open(os.path.join(store, "best.json"), "rb") as file:
        return store, file.read()


def main():
    with fault.scratch() as folder:
        built = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")],
                               capture_output=True, check=False)
        if built.returncode != 0:
            fault.skip("there is nothing to make the locale de_DE from; install locales")
        plain, expected = make(folder, "plain")
        os.environ.update(LOCPATH=folder, LC_ALL="de_DE.UTF-8")
        if "," not in subprocess.run(["printf", "%.1f", "1,5"], capture_output=True, text=True, check=False).stdout:
            fault.skip("de_DE is not taken")
        german, written = make(folder, "german")
        if written != expected or b"0.1" not in written:
            fault.fail("another file")
        reader = fault.Actor(folder, plain)
        seen, why = reader.entries()
        if seen != {"a": 5, "b": 6, "c": 3}:
            fault.fail(f"read {why or seen}")
        reader.close()
        real = re.search(rb'"share":[^,}]*[,}]', written)[0].decode()
    fault.finish(f"locale: {len(written)} bytes, {real}")


main()
