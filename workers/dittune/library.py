# SPDX-License-Identifier: MIT
"""libdittune by ctypes: looks plans up in this process, and starts none."""
import contextlib
import ctypes
import functools
import json
import os
import subprocess
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_void_p

from dittune import Failed, place

ROOM = 1024
USAGE, INFEASIBLE, IO = -2, -3, -74
EXIT_CODES = {USAGE: 2, INFEASIBLE: 3, -7: 7, IO: 74}  # of the program, for codes of the library
# Without these, ctypes takes every pointer for an int and cuts it in half. A function that fails has a message behind its arguments.
PLAIN = {"db_close": (None, c_void_p), "machine_free": (None, c_void_p), "query_free": (None, c_void_p), "answer_free": (None, c_void_p),
         "export_free": (None, c_void_p), "text_free": (None, c_void_p), "db_is_fallback": (c_int32, c_void_p), "export_text": (c_char_p, c_void_p),
         "version": (ctypes.c_uint32,)}
FAILING = {"db_open": (c_char_p, POINTER(c_void_p)), "machine_open": (c_char_p, POINTER(c_void_p)), "query_new": (c_void_p, POINTER(c_void_p)),
           "query_set": (c_void_p, c_char_p, c_char_p), "query_seal": (c_void_p,), "lookup": (c_void_p, c_void_p, POINTER(c_void_p)),
           "jobs": (c_void_p, c_void_p, POINTER(c_void_p)), "answer_json": (c_void_p, c_char_p, POINTER(c_void_p)),
           "engines": (POINTER(c_void_p),), "export_new": (c_void_p, c_char_p, c_char_p, POINTER(c_void_p))}


@functools.cache
def functions():
    """{name without dittune_: function}"""
    try:
        library = ctypes.CDLL(place.library())
    except OSError as error:
        raise Failed(1, f"libdittune was not found ({error}): install dittune, or set LIBDITTUNE to its file") from None
    found = {}
    for name, (result, *arguments) in PLAIN.items():
        found[name] = getattr(library, f"dittune_{name}")
        found[name].restype, found[name].argtypes = result, arguments
    for name, arguments in FAILING.items():
        found[name] = getattr(library, f"dittune_{name}")
        found[name].restype, found[name].argtypes = c_int32, (*arguments, c_char_p, c_size_t)
    return found


def call(name, *arguments):
    """A function that can fail. Failed: its sentence, and the exit code that the program would end with."""
    message = ctypes.create_string_buffer(ROOM)
    code = functions()[name](*arguments, message, ROOM)
    if code:
        failed = Failed(EXIT_CODES.get(code, 1), message.value.decode(errors="replace"))
        failed.status = code
        raise failed


@contextlib.contextmanager
def held(free, name, *arguments):
    """The object, or the text, that a function gives through its last pointer."""
    handle = c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    try:
        yield handle
    finally:
        functions()[free](handle)


def text_of(name, *arguments):
    with held("text_free", name, *arguments) as text:
        return json.loads(ctypes.string_at(text.value))


@contextlib.contextmanager
def machine(file):
    """The description of this machine that `dittune machine` keeps. Where there is none yet, that command is run, once."""
    encoded = None if file is None else os.fsencode(file)
    try:
        with held("machine_free", "machine_open", encoded) as found:
            yield found
            return
    except Failed as failed:
        if failed.status != IO or file is not None:
            raise
    try:
        subprocess.run([place.program(), "machine"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    except OSError:
        pass  # opening it again says what is missing
    with held("machine_free", "machine_open", None) as found:
        yield found


@contextlib.contextmanager
def question(settings, store=None, machine_file=None):
    """(a store, a sealed question); settings: {name: value} as of dittune_query_set."""
    with machine(machine_file) as described, held("query_free", "query_new", described) as query:
        for name, value in settings.items():
            if value is not None:
                word = str(int(value)) if isinstance(value, bool) else str(value)
                call("query_set", query, name.encode(), word.encode())
        call("query_seal", query)
        with held("db_close", "db_open", None if store is None else os.fsencode(store)) as db:
            yield db, query


def jobs(db, query):
    """The jobs of plans that could answer, the first one preferred."""
    return text_of("jobs", db, query)


def answer(db, query, engine=None):
    """What `dittune lookup --json` prints: the answer, or, of an engine whose words are known, its call, with the answer in it."""
    with held("answer_free", "lookup", db, query) as found:
        told = text_of("answer_json", found, None)
        known = {each["engine"] for each in text_of("engines")}
        if engine is None or told["plan"] is None or engine.partition(":")[0] not in known:
            return told
        with held("export_free", "export_new", found, engine.encode(), b"json") as export:
            return {**json.loads(functions()["export_text"](export)), "answer": told}
