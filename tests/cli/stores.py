# SPDX-License-Identifier: MIT
# ctest:
"""Several stores: the best tier wins and on a tie the earlier one, whatever is behind the first is only read, and a list
may have blanks, empty folders, folders that are not there and damaged ones. The program and libdittune agree."""
import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune
import lib_store

SMALL = SOURCE / "tests/cli/small.json"
t = Dittune(clock="real")
described = t.tool("machine", "--json")
machine = described.json
t.write("machine.json", described.out)
mine, image = t.path / "my store", t.path / "image"
t.environment["DITTUNE_STORE"] = f"{mine}:{image}"
FAR = {"key.height": 24}  # another size


def store(folder, **changes):
    """A store of one entry, whose time tells the folder; __ stands for the point of a path in it."""
    time = {mine: 32, image: 64}.get(folder, 128)
    lib_store.write(folder, machine, [{"figures.median_ns": time, **{path.replace("__", "."): value for path, value in changes.items()}}])


def ask(*words, **environment):
    return t.tool("lookup", "--model", SMALL, *words, env=environment)


def answers(name, done, tier, folder, time):
    answer = done.json or {}
    return t.check(name, done.code == 0 and (answer["tier"], answer["store"]) == (tier, str(folder))
                   and answer["median_ns"] == time, done)


def by_library(stores):
    """What libdittune answers for the same list: status, message, tier, store."""
    library = ctypes.CDLL(str(BUILD / "libdittune.so.1"))
    db, described, query, answer, text = (ctypes.c_void_p() for _ in range(5))
    message = ctypes.create_string_buffer(512)
    library.dittune_answer_json.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    code = library.dittune_db_open(stores.encode(), ctypes.byref(db), message, ctypes.c_size_t(512))
    if code != 0:
        return code, message.value.decode(), None, None
    library.dittune_machine_open(str(t.path / "machine.json").encode(), ctypes.byref(described), message, ctypes.c_size_t(512))
    library.dittune_query_new(described, ctypes.byref(query), message, ctypes.c_size_t(512))
    library.dittune_query_set(query, b"model", str(SMALL).encode(), message, ctypes.c_size_t(512))
    library.dittune_query_seal(query, message, ctypes.c_size_t(512))
    code = library.dittune_lookup(db, query, ctypes.byref(answer), message, ctypes.c_size_t(512))
    tier = library.dittune_answer_tier(answer)
    library.dittune_answer_json(answer, b"store", ctypes.byref(text), message, 512)
    folder = ctypes.string_at(text.value).decode()
    library.dittune_text_free(text)
    for free, it in (("answer_free", answer), ("query_free", query), ("machine_free", described), ("db_close", db)):
        getattr(library, "dittune_" + free)(it)
    return code, message.value.decode(), tier, folder


def which_wins():
    store(mine), store(image)
    answers("on a tie the first", ask("--json"), "exact", mine, 32)
    answers("the order is that of the list", ask("--json", "--db", f"{image}:{mine}"), "exact", image, 64)
    t.check("libdittune takes the first, too", by_library(t.environment["DITTUNE_STORE"]) == (0, "", 5, f'"{mine}"'),
            by_library(t.environment["DITTUNE_STORE"]))
    t.exits("the table names the store", ask(), 0, out=f"  store      {mine}\n")
    t.check("of one store it does not", "  store " not in ask("--db", mine).out)
    store(mine, **FAR)
    answers("the best tier wins", ask("--json"), "exact", image, 64)
    t.check("in libdittune, too", by_library(t.environment["DITTUNE_STORE"]) == (0, "", 5, f'"{image}"'), "")
    store(mine, provisional=True, verdict="provisional")
    answers("a decided plan goes before a provisional one", ask("--json", "--require", "decided"), "exact", image, 64)
    store(mine, fingerprint__info__t_wall_ns=1)
    answers("a stale one of the first store is its answer all the same", ask("--json"), "exact", mine, 32)
    store(mine, key__height=20), store(image, **FAR)
    answers("of two that are near the nearer one", ask("--json"), "near", mine, 32)
    t.check("nothing is made in a store that is asked", sorted(os.listdir(image)) == ["best.json"], os.listdir(image))


def lists():
    store(mine), store(image, **FAR)
    home = t.path / "home/.local/share/dittune"
    store(home)
    usual = {"HOME": str(t.path / "home"), "XDG_DATA_HOME": ""}
    answers("an empty folder is the user's", ask("--json", DITTUNE_STORE=f":{image}", **usual), "exact", home, 128)
    answers("also behind", ask("--json", DITTUNE_STORE=f"{image}:", **usual), "exact", home, 128)
    answers("twice the same", ask("--json", "--db", f"{mine}:{mine}"), "exact", mine, 32)
    os.symlink(mine, t.path / "link")
    answers("under two names", ask("--json", "--db", f"{t.path / 'link'}:{mine}"), "exact", t.path / "link", 32)
    done = ask("--json", "--db", f"{mine}:{t.path / 'nowhere'}")
    answers("one behind that is not there", done, "exact", mine, 32)
    t.check("is noted", done.err == f"dittune: no store is in {t.path / 'nowhere'}: it is left out\n", done)
    done = ask("--json", "--db", f"{t.path / 'nowhere'}:{mine}")
    t.check("the first need not be there", done.err == "" and done.json["store"] == str(mine), done)
    t.check("and is not made by a look-up", not (t.path / "nowhere").exists())
    t.exits("all of them are named when none has a plan", ask("--dtype", "bfloat16", "--require", "exact"), 10,
            err=f"no plan is stored in {mine}, {image} for")
    t.exits("too many", ask("--db", ":".join(str(i) for i in range(17))), 2, err="at most 16 folders")
    t.exits("other commands work on the first", t.tool("db", "show"), 0, out="1 ")
    t.exits("whose absence they name", t.tool("db", "show", "--db", f"{t.path / 'nowhere'}:{mine}"), 74, err=f"--db {t.path / 'nowhere'}: No such")


def damaged():
    store(mine), store(image)
    best = image / "best.json"
    best.write_bytes(best.read_bytes().replace(b"latency", b"latencY"))
    t.exits("a damaged one is an error, though the first could answer", ask(), 7, out="", err=["image/best.json", "checksum"])
    code, message, _, _ = by_library(t.environment["DITTUNE_STORE"])
    t.check("of libdittune, too", code == -7 and "image/best.json" in message, message)
    good = t.path / "good"
    store(good), os.rename(good / "best.json", image / "best.json.1")
    t.exits("the version before is read", ask(), 0, err=["warning", "image/best.json", "best.json.1 was read"])
    (image / "best.json.1").unlink(), best.unlink(), image.rmdir()
    image.write_text("no folder")
    t.exits("a file in a folder's place", ask(), 74, err=f"cannot open the directory {image}: Not a directory")
    image.unlink()


def mounted():
    """As Kubernetes mounts a ConfigMap: best.json is a link into a folder that is a link itself, and all is read-only."""
    store(mine, **FAR), store(image)
    version = image / "..2026_01"
    version.mkdir()
    os.rename(image / "best.json", version / "best.json")
    os.symlink("..2026_01", image / "..data"), os.symlink("..data/best.json", image / "best.json")
    os.chmod(image, 0o555)
    answers("a mounted ConfigMap", ask("--json"), "exact", image, 64)
    answers("alone", ask("--json", "--db", image), "exact", image, 64)
    t.check("in libdittune, too", by_library(str(image)) == (0, "", 5, f'"{image}"'), by_library(str(image)))
    os.chmod(image, 0o755)
    (image / "best.json").unlink(), os.symlink("nothing/best.json", image / "best.json")
    t.exits("a link to nothing is refused", ask(), 74, err="symbolic link")
    (image / "best.json").unlink()


which_wins()
lists()
damaged()
mounted()
t.finish()
