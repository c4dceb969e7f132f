#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plan that a program would run with: what dittune stored, else the program's own.

    lookup.py STORE MACHINE [NAME=VALUE ...]      as in  lookup.py - machine.json model=dit-s/2 devices=4

STORE is the directory that `dittune --db` took, MACHINE what `dittune machine --json` printed; "-" stands for the usual place
of either. Needs nothing but Python: ctypes loads libdittune.so.1, or what $LIBDITTUNE names.
"""
import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_void_p

ROOM = 512
library = ctypes.CDLL(os.environ.get("LIBDITTUNE", "libdittune.so.1"))


def declare(name, result, *arguments):
    """Without these ctypes takes every pointer for an int and cuts it in half."""
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


MESSAGE = (c_char_p, c_size_t)
db_open = declare("dittune_db_open", c_int32, c_char_p, POINTER(c_void_p), *MESSAGE)
db_close = declare("dittune_db_close", None, c_void_p)
machine_open = declare("dittune_machine_open", c_int32, c_char_p, POINTER(c_void_p), *MESSAGE)
machine_free = declare("dittune_machine_free", None, c_void_p)
query_new = declare("dittune_query_new", c_int32, c_void_p, POINTER(c_void_p), *MESSAGE)
query_set = declare("dittune_query_set", c_int32, c_void_p, c_char_p, c_char_p, *MESSAGE)
query_seal = declare("dittune_query_seal", c_int32, c_void_p, *MESSAGE)
query_free = declare("dittune_query_free", None, c_void_p)
db_lookup = declare("dittune_lookup", c_int32, c_void_p, c_void_p, POINTER(c_void_p), *MESSAGE)
answer_tier = declare("dittune_answer_tier", c_int32, c_void_p)
answer_json = declare("dittune_answer_json", c_int32, c_void_p, c_char_p, POINTER(c_void_p), *MESSAGE)
answer_free = declare("dittune_answer_free", None, c_void_p)
text_free = declare("dittune_text_free", None, c_void_p)
tier_text = declare("dittune_tier_text", c_char_p, c_int32)


class Failed(Exception):
    """What a function of the library said."""


def call(function, *arguments):
    message = ctypes.create_string_buffer(ROOM)
    if function(*arguments, message, ROOM) != 0:
        raise Failed(message.value.decode(errors="replace"))


def made(function, *arguments):
    """Calls a function that hands out an object (or a text) through its last pointer."""
    handle = c_void_p()
    call(function, *arguments, byref(handle))
    return handle


def usual(path):
    return None if path == "-" else os.fsencode(path)


def look_up(store, machine_path, settings):
    """The answer as a dictionary, or Failed. Everything is freed: answers first, then queries, then what they looked into."""
    db = machine = query = answer = text = None
    try:
        db = made(db_open, usual(store))
        machine = made(machine_open, usual(machine_path))
        query = made(query_new, machine)
        for name, value in settings.items():
            call(query_set, query, name.encode(), value.encode())
        call(query_seal, query)
        answer = made(db_lookup, db, query)
        text = made(answer_json, answer, None)
        result = json.loads(ctypes.string_at(text.value))
        assert result["tier"] == tier_text(answer_tier(answer)).decode()
        return result
    finally:
        text_free(text)
        answer_free(answer)
        query_free(query)
        machine_free(machine)
        db_close(db)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    settings = dict(word.partition("=")[::2] for word in sys.argv[3:])
    try:
        answer = look_up(sys.argv[1], sys.argv[2], settings)
    except Failed as reason:  # no reason to stop: say it, and run as before
        print(f"lookup.py: {reason}", file=sys.stderr)
        print("the program's own plan")
        return 1
    if answer["plan"]:
        print(" ".join(f"{name}={value}" for name, value in answer["plan"].items()))
        print(f"{answer['tier']}: {answer['reason']}" + (" (stale: measure it again)" if answer["stale"] else ""))
    else:
        print("the program's own plan")
    return 0


if __name__ == "__main__":
    sys.exit(main())
