# SPDX-License-Identifier: MIT
# ctest: ranks
"""--verify-output: a command's file, as text, as an array of numpy or by a command, against that of the default plan. The arrays are
written here, byte by byte from the format's description."""
import math
import struct

from lib_command import Worker, program, t

SPACE = t.write("space.json", {"parameters": [{"name": "a", "values": [1, 2, 4, 8]},
                                              {"name": "flag", "role": "environment", "variable": "FLAG", "values": [0, 1], "default": 0}]})
USUAL = ("--space", SPACE, "--time", "regex:took ([0-9.]+) s")


def npy(values, form="f8", order="<", shape=None, version=1, fortran=False):
    kinds = {"f8": "d", "f4": "f", "f2": "e", "i4": "i", "i8": "q", "u1": "B", "b1": "?", "c8": "ff"}
    shape = (len(values),) if shape is None else shape
    header = f"{{'descr': '{'|' if form in ('u1', 'b1') else order}{form}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    body = b"".join(struct.pack(("<" if order == "|" else order) + kinds[form], *(v if isinstance(v, tuple) else (v,))) for v in values)
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header.encode() + body


def answers(files, *options, plans=(2,), command=None, name="out", **rest):
    """Answers to the plans, whose program writes files[a] to its output."""
    for a, data in files.items():
        (t.path / f"file{a}").write_bytes(data if isinstance(data, bytes) else data.encode())
    write = program("write", f"#!/bin/sh\n[ -e {t.path}/file$1 ] && cat {t.path}/file$1 >{t.path}/{name}\necho $1 >>{t.path}/ran\n"
                             "echo took 0.1 s\n")
    (t.path / "ran").unlink(missing_ok=True)
    worker = Worker(command or f"{write} {{a}}", *USUAL, "--verify-output", t.path / name, *options)
    if not worker.ready:
        worker.end()
        return [worker.hello]
    got = [worker.ask(op="prepare", plan={"a": a, "flag": rest.get("flag", 0)}, seed=1) for a in plans]
    worker.end()
    return got


def ran():
    return t.read("ran").split("\n")[:-1]


def text():
    got = answers({1: "one\ntwo\n", 2: "one\ntwo\n", 4: "one\nTWO\n", 8: "one\r\ntwo\r\n"}, plans=(2, 4, 8, 1))
    t.check("the same text", got[0]["op"] == "prepared" and got[0]["error"] == 0, got)
    t.check("another is wrong, and where", got[1] == {"op": "failed", "kind": "wrong", "say": "the output differs from the default plan's in line 2"}, got)
    t.check("line ends of another system", got[2]["op"] == "prepared", got)
    t.check("the default plan agrees with itself", got[3]["error"] == 0, got)
    t.check("the default plan ran once before the first, each plan once", ran() == ["1", "2", "4", "8", "1"], ran())
    got = answers({1: "x", 2: "x"}, plans=(1, 2))
    t.check("and not at all where it came first", ran() == ["1", "2"] and got[1]["error"] == 0, ran())
    got = answers({1: "x", 2: "xx"}, plans=(2,))
    t.check("a longer text", got[0]["kind"] == "wrong", got)
    (t.path / "file4").unlink()
    got = answers({1: "x", 2: "x"}, plans=(2, 4))
    t.check("a file that is still there from before is no output", got[1]["kind"] == "error" and "did not write" in got[1]["say"], got)
    got = answers({1: "x"}, plans=(1,), command="sh -c 'echo took 1 s # {a}'", name="absent")
    t.check("no file", got[0]["kind"] == "error" and "did not write" in got[0]["say"], got)
    for a in (1, 2):
        (t.path / f"out-{a}").unlink(missing_ok=True)
    got = answers({}, plans=(2,), command=f"sh -c 'echo $0 >{t.path}/out-$0; echo took 1 s' {{a}}", name="out-{a}")
    t.check("a placeholder in the name", got[0].get("kind") == "wrong" and "in line 1" in got[0]["say"], got)
    got = answers({1: "x", 2: "x"}, plans=(2,), command=f"sh -c 'echo x >{t.path}/out; echo $FLAG >>{t.path}/flags; echo took 1 s # {{a}}'", flag=1)
    t.environment["FLAG"] = "1"
    (t.path / "flags").unlink(missing_ok=True)
    got = answers({1: "x", 2: "x"}, plans=(2,), command=f"sh -c 'echo x >{t.path}/out; echo $FLAG >>{t.path}/flags; echo took 1 s # {{a}}'", flag=1)
    t.check("the default plan ran in its own environment", t.read("flags") == "0\n1\n" and got[0]["op"] == "prepared", t.read("flags"))
    del t.environment["FLAG"]
    parts = {"parameters": [{"name": "a", "values": [1, 2]}, {"name": "frac", "role": "environment", "variable": "FRAC", "values": [0.5, 0.9], "default": 0.5},
                            {"name": "on", "role": "environment", "variable": "ON", "values": [False, True], "default": False}]}
    t.environment.update(FRAC="0.9", ON="true")
    worker = Worker(f"sh -c 'echo x >{t.path}/out; echo $FRAC $ON >>{t.path}/parts; echo took 1 s # {{a}}'", "--space", t.write("parts.json", parts),
                    *USUAL[2:], "--verify-output", t.path / "out")
    answer = worker.ask(op="prepare", plan={"a": 1, "frac": 0.9, "on": True}, seed=1)
    worker.end()
    t.check("decimals and truths are written as in the plan", answer["op"] == "prepared" and t.read("parts").split("\n")[:-1] == ["0.5 false", "0.9 true"],
            (answer, t.read("parts")))
    del t.environment["FRAC"], t.environment["ON"]


def arrays():
    base = [1.0, -2.0, 3.0, 4.0]
    norm = math.sqrt(sum(x * x for x in base))
    near = [x + 1e-3 for x in base]
    for form, order in (("f8", "<"), ("f8", ">"), ("f4", "<"), ("f4", ">"), ("f2", "<")):
        got = answers({1: npy(base, form, order), 2: npy(near, form, order)}, "--compare", "npy", "--tolerance", "0.01")
        want = 2e-3 / norm
        t.check(f"the error of {order}{form}", got[0]["op"] == "prepared" and abs(got[0]["error"] / want - 1) < (0.5 if form == "f2" else 1e-2), (got, want))
    got = answers({1: npy(base), 2: npy(near)}, "--compare", "npy")
    t.check("beyond the tolerance", got[0]["kind"] == "wrong" and "by 0.00037, allowed 1e-05 (--tolerance)" in got[0]["say"], got)
    whole = [0, 1, 2, 250]
    for form in ("i4", "i8", "u1"):
        got = answers({1: npy(whole, form), 2: npy(whole, form), 4: npy([0, 1, 3, 250], form)}, "--compare", "npy", plans=(2, 4))
        t.check(f"{form}", got[0]["error"] == 0 and got[1]["kind"] == "wrong", got)
    got = answers({1: npy([(1, 2), (3, 4)], "c8"), 2: npy([(1, 2), (3, 4.1)], "c8")}, "--compare", "npy", "--tolerance", "0.1")
    t.check("complex numbers", abs(got[0]["error"] - 0.1 / math.sqrt(30)) < 1e-6, got)
    got = answers({1: npy(base), 2: npy(base, shape=(4,), version=2), 4: npy(base, shape=(2, 2)), 8: npy([math.nan] + base[1:])}, "--compare", "npy",
                  plans=(2, 4, 8))
    t.check("another version of the format", got[0]["error"] == 0, got)
    t.check("another shape", got[1]["kind"] == "wrong" and "shape (2,2), the default plan's of (4)" in got[1]["say"], got)
    t.check("NaN is wrong", got[2]["kind"] == "wrong" and "by inf" in got[2]["say"], got)
    for name, data, part in (("a text", b"hello", "no array of numpy"), ("cut off", npy(base)[:-3], "ends within its array"),
                             ("objects", npy(base).replace(b"<f8", b"|O8"), "cannot be compared"), ("nothing", b"", "no array of numpy"),
                             ("a header without end", npy(base)[:30], "header is not whole")):
        got = answers({1: npy(base), 2: data}, "--compare", "npy")
        t.check(f"refused: {name}", got[0]["op"] == "failed" and part in got[0]["say"], got)
        t.check(f"nothing of the file is kept of a private run: {name}", "O8" not in got[0].get("brief", got[0]["say"]), got)
    got = answers({1: npy([0.0, 0.0]), 2: npy([0.0, 0.0]), 4: npy([0.0, 1.0])}, "--compare", "npy", plans=(2, 4))
    t.check("zeros", got[0]["error"] == 0 and got[1]["kind"] == "wrong", got)


def commands():
    same = program("same", "#!/bin/sh\ncmp -s \"$1\" \"$2\" || { echo they differ >&2; exit 1; }\n")
    got = answers({1: "a", 2: "a", 4: "b"}, "--compare", same, plans=(2, 4))
    t.check("by a command: it agrees", got[0]["op"] == "prepared", got)
    t.check("it does not", got[1]["kind"] == "wrong" and "exited with 1; its output ends with: they differ" in got[1]["say"], got)
    got = answers({1: "a", 2: "a"}, "--compare", "./nowhere")
    t.check("it cannot be run", got[0]["kind"] == "infeasible" and "'./nowhere' of the command of --compare" in got[0]["say"], got)
    for options, part in ((("--compare", "text", "--tolerance", "1"), "--tolerance belongs to --compare npy"),
                          (("--compare", "npy", "--tolerance", "small"), "is not a relative error"),
                          (("--compare", ""), "the command is empty")):
        got = answers({1: "a"}, *options)
        t.check(f"refused: {part}", got[0]["op"] == "failed" and part in got[0]["say"], got)
    got = answers({1: "a"}, name="{b}")
    t.check("an unknown placeholder", "placeholder '{b}'" in got[0]["say"], got)


for part in (text, arrays, commands):
    part()
t.check("no copy is left", not list(t.path.glob("dittune-reference-*")))
t.none_left()
t.finish()
