# SPDX-License-Identifier: MIT
# ctest:
"""Every row is one mistake a user makes: the arguments, the exit code, the exact sentence.

To add one: a row in the table of its subject. {T} is the folder that the case runs in, which is empty but for `files`;
* stands for what differs between machines. Standard output must be empty, unless the case `prints`."""
import dataclasses
import json
import pathlib
import re
import shlex
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

MPI = " mpi (" in (BUILD / "back-ends.txt").read_text(encoding="utf-8")  # no_mpi.py: without it ranks start by themselves

t = Dittune()


@dataclasses.dataclass
class Case:
    name: str
    args: str  # as sh splits them
    code: int
    says: str  # the last message, without "dittune: "
    files: dict = dataclasses.field(default_factory=dict)  # name: text or bytes; None is a folder
    env: dict = dataclasses.field(default_factory=dict)
    prints: bool = False  # standard output is not empty


# ---- what files hold

def tensors(zeros, **header):
    """A safetensors file: name=(dtype, shape, begin, end), and so many zeros."""
    entries = {name: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
               for name, (dtype, shape, begin, end) in header.items()}
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(zeros)


def network_input(x=("F32", [1, 4, 32, 32], 0, 16384), t=("I64", [1], 16384, 16392), y=("I64", [1], 16392, 16400),
                  zeros=16400):
    return {"x.safetensors": tensors(zeros, x=x, t=t, y=y)}


def space_file(**fields):
    return {"space.json": json.dumps(fields)}


def scenario(**fields):
    """The scenario worker's answers in this case."""
    return {"scenario.json": json.dumps({"ns": [1000000], **fields})}


SMALL = (SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")
A_AND_B = {"a": [1, 2], "b": [1, 2]}
NO_FILE = "No such file or directory"

# ---- the cases

WORDS = [
    Case("batch-word", "--batch two", 2, "--batch 'two' is not a list of whole numbers from 1 on, such as 1,2,4"),
    Case("budget-missing", "--budget", 2, "--budget needs a value: --budget TIME"),
    Case("budget-negative", "--budget -5s", 2, "--budget '-5s' is not a time such as 500ms, 90s, 2m or 1.5h"),
    Case("budget-zero", "--budget 0s", 2, "--budget '0s' must be above 0: write a time such as 500ms, 90s, 2m or 1.5h"),
    Case("seed-negative", "--seed -1", 2, "--seed '-1' is not a whole number of 0 or more"),
    Case("budget-no-unit", "--budget 120", 2,
         "--budget '120' has no unit: write a time such as 500ms, 90s, 2m or 1.5h"),
    Case("budget-unknown-unit", "--budget 2weeks", 2,
         "--budget '2weeks' has the unknown unit 'weeks': write a time such as 500ms, 90s, 2m or 1.5h"),
    Case("devices-zero", "space --devices 0", 2, "--devices '0' is not a count of 1 to 1024, such as 4 or 1..4"),
    Case("explain-needs-plan", "explain", 2, "'dittune explain' needs 'PLAN'"),
    Case("latency-two-batches", "--batch 1,2", 2,
         "--objective latency compares plans of one batch, but --batch names 2; give one, "
         "or use --objective throughput"),
    Case("max-bytes-unit", "run --max-bytes 3GG", 2,
         "--max-bytes '3GG' has the unknown unit 'GG': write a size such as 800MiB or 16GB"),
    Case("option-of-other-command", "lookup --budget 2m", 2,
         "--budget is not an option of 'dittune lookup' (it belongs to: tune noise check)"),
    Case("output-without-input", "run --output y.safetensors", 2,
         "--output needs --input: the output of one forward pass of that file is written"),
    Case("search-setting", "--search tpe:candidates=none", 2,
         "search 'tpe': candidates=none must be a number from*"),
    Case("size-not-multiple", "space --size 250", 2,
         "--size 250 is not a multiple of 16 (8 x the patch of dit-s/2) up to 16384; near it: 256"),
    Case("unknown-command", "tunee", 2, "unknown command 'tunee', did you mean 'tune'?"),
    Case("unknown-dtype", "run --dtype float16", 2, "--dtype 'float16' is unknown, expected float32, bfloat16 or tf32"),
    Case("unknown-model", "run --model dit-s/3", 2, "unknown model 'dit-s/3', did you mean 'dit-s/2'? known: dit-b/2, "
         "dit-l/2, dit-s/2, dit-xl/2, or a .json file"),
    Case("unknown-objective", "--objective speed", 2, "unknown objective 'speed': latency, throughput, cost or max:METRIC"),
    Case("unknown-option", "--budgett 2m", 2, "unknown option --budgett, did you mean --budget?"),
    Case("misspelt-search", "--search bayse", 2, "unknown search 'bayse', did you mean 'bayes'? choose one of auto, *"),
    Case("option-of-others", "--trials 20", 2,
         "unknown option --trials: a session has a time, not a number of trials: --budget 2m"),
    Case("nearest-option-is-one-of-the-command", "--eval 20", 2, "unknown option --eval: see dittune tune --help"),
    Case("batch-and-sweep", "run --batch 2 --sweep batch=1,2", 2,
         "--batch has no effect beside --sweep batch=..: the sweep names the batches"),
    Case("racing-and-search", "simulate --landscape x --racing --search bayes", 2,
         "--search has no effect beside --racing: a race has no search"),
    Case("space-and-size", "space --space x.json --size 256", 2, "--size has no effect beside --space: the space is the file's"),
    Case("unknown-search", "--search nosuch", 2, "unknown search 'nosuch': choose one of auto, exhaustive, random*"),
]

PLANS = [
    Case("heads-not-divisible", "run --plan 'ranks=4 ulysses=4'", 3,
         "ulysses must divide the number of heads (heads=6 % (ulysses=4) == 0); ulysses=3 would do"),
    Case("impossible-plan", "run --plan 'ranks=2 ulysses=3'", 3,
         "cfg x ulysses x ring must be the number of ranks "
         "(cfg=1 * (ulysses=3) * (ring=1) == (ranks=2)); ranks=3 or ulysses=2 would do"),
    *([Case("no-mpirun", "run --plan 'ranks=2 ulysses=2'", 2, "mpirun not found: install openmpi-bin, or ask for plans of one rank",
            env={"PATH": "/nowhere"})] if MPI else []),
    Case("more-ranks-than-cores", "--against 'ranks=100' --devices 2", 3,
         "more ranks than cores only with --oversubscribe (*ranks=100*", prints=True),
    Case("tensor-parallel", "run --plan 'ranks=2 tp=2'", 2, "unknown parameter 'tp', expected one of ranks, cfg, ulysses, ring, *"),
    Case("sequence-parallel", "run --plan 'ranks=2 sp=2'", 2, "unknown parameter 'sp', expected one of ranks, cfg, ulysses, ring, *"),
    Case("parameter-not-number", "run --plan 'ring=two'", 2, "ring=two is not an integer"),
    Case("parameter-twice", "run --plan 'ring=1 ring=1'", 2, "parameter 'ring' is named twice"),
    Case("unknown-parameter", "run --plan 'ulises=2'", 2, "unknown parameter 'ulises', did you mean 'ulysses'?"),
]

TOO_BIG = ("no feasible plan among *; the default plan: a rank would need more memory than it is allowed "
           "(max_bytes={0} == 0 || (rank_bytes=*) <= (max_bytes={0}))")
SPACES = [
    Case("empty-space", "space --max-bytes 1MiB", 3, TOO_BIG.format(1 << 20), prints=True),
    Case("too-little-memory", "run --model dit-xl/2 --max-bytes 1GiB", 3, TOO_BIG.format(1 << 30)),
    Case("tune-empty-space", "--budget 5s --max-bytes 1MiB --quiet", 3, TOO_BIG.format(1 << 20)),
    Case("space-missing", "space --space nowhere.json", 74, f"cannot read the space nowhere.json: {NO_FILE}"),
    Case("command-space-missing", "--command 'true {a}' --time wall --budget 5s --space nowhere.json", 2,
         f"cannot read the space nowhere.json: {NO_FILE}"),
    Case("server-request-missing", "--server 'true {a} {b} {port}' --budget 5s --space space.json --request nowhere", 2,
         f"cannot read the request's file nowhere: {NO_FILE}", files=space_file(parameters=A_AND_B)),
    Case("space-nothing", "space --space space.json --json", 3, "no feasible plan among 4: the rule 'a > b + 4' removes every plan",
         files=space_file(parameters=A_AND_B, rules=["a > b + 4"]), prints=True),
    Case("space-contradiction", "space --space space.json", 3,
         "no feasible plan among 4: together these rules remove every plan: 'a < b', 'b < a' (b is less)", prints=True,
         files=space_file(parameters=A_AND_B, rules=["a <= 9", "a < b", {"if": "b < a", "say": "b is less"}, "b != 5"])),
    Case("tune-contradiction", "--command 'true {a} {b}' --time wall --budget 5s --quiet --space space.json", 3,
         "no feasible plan among 4: together these rules remove every plan: 'a < b', 'b < a'",
         files=space_file(parameters=A_AND_B, rules=["a < b", "a + b < 9", "b < a"])),
    Case("plan-without-parameter", "explain --command 'true {a} {b}' --time wall --space space.json a=1 b=1", 2,
         "b does not exist in this plan: it exists only when a > 1",
         files=space_file(parameters={"a": [1, 2], "b": {"values": [1, 2], "when": "a > 1"}})),
    Case("plan-unknown-parameter", "explain --engine diffusers:0.42.1 --model flux.1-dev ulysess=2", 2,
         "no plan of diffusers:0.42.1 has a parameter 'ulysess', did you mean 'ulysses'?"),
    Case("space-rule", "space --space space.json", 2,
         "the space space.json: rule 'a <= c', column 6: unknown name 'c'",
         files=space_file(parameters=A_AND_B, rules=["a <= c"])),
    Case("space-typo", "space --space space.json", 2, "the space space.json: unknown field 'rule', did you mean 'rules'?",
         files=space_file(parameters=A_AND_B, rule=["a > 1"])),
    Case("max-without-command", "--objective max:foo --dry-run", 2, "--objective max:foo has no effect: a metric belongs to --command"),
    Case("space-valid", "space --space space.json --json", 2,
         "the space space.json: 'valid' is 2, but the rules allow 1 plan",
         files=space_file(parameters=A_AND_B, rules=["a < b"], valid=2)),
]

MODELS = [
    Case("model-file-directory", "run --model ./m.json", 74,
         "cannot read the model file ./m.json: it is not a regular file",
         files={"m.json": None}),
    Case("model-file-field", "run --model m.json", 2,
         "the model file m.json: unknown field 'headz', did you mean 'heads'?",
         files={"m.json": '{"name": "x", "family": "dit", "headz": 3}'}),
    Case("model-file-missing", "run --model nowhere.json", 74, f"cannot read the model file nowhere.json: {NO_FILE}"),
    Case("model-file-truncated", "run --model m.json", 2,
         "the model file m.json is not valid JSON: line 1, column 23: unexpected token near end of file",
         files={"m.json": '{"name": "x", "heads": '}),
    Case("model-file-type", "run --model m.json", 2, "the model file m.json: 'hidden' is not an integer",
         files={"m.json": '{"name": "x", "family": "dit", "hidden": "wide"}'}),
    Case("model-file-value", "run --model m.json", 2,
         "the model file m.json: 'heads' is 5, which does not divide 'hidden', 96",
         files={"m.json": SMALL.replace('"heads": 3', '"heads": 5')}),
]

TENSORS = [
    Case("input-dtype", "run --input x.safetensors", 2, "x.safetensors: tensor 'x' has dtype F64, expected F32",
         files=network_input(x=("F64", [1, 4, 32, 16], 0, 16384))),
    Case("input-missing", "run --input nowhere.safetensors", 74, f"cannot read nowhere.safetensors: {NO_FILE}"),
    Case("input-not-json", "run --input x.safetensors", 2,
         "the header of x.safetensors is not valid JSON: line 1, column 1: '[' or '{' expected near 'x'",
         files={"x.safetensors": struct.pack("<Q", 13) + b"x is a tensor" + bytes(4)}),
    Case("input-offsets", "run --input x.safetensors", 2,
         "x.safetensors: tensor 'x': data_offsets are [0, 99999], but the file holds 16400 data bytes",
         files=network_input(x=("F32", [1, 4, 32, 32], 0, 99999))),
    Case("input-shape", "run --input x.safetensors", 2,
         "x.safetensors: tensor 'x' has shape [1, 3, 32, 32], expected [any, 4, any, any]",
         files=network_input(x=("F32", [1, 3, 32, 32], 0, 12288), t=("I64", [1], 12288, 12296),
                             y=("I64", [1], 12296, 12304), zeros=12304)),
    Case("input-times", "run --input x.safetensors", 2, "x.safetensors: tensor 't' has dtype I32, expected I64",
         files=network_input(t=("I32", [1], 16384, 16388), y=("I64", [1], 16388, 16396), zeros=16396)),
    Case("output-folder-missing", "run --input x.safetensors --output nowhere/y", 74,
         f"cannot write nowhere/y: {NO_FILE}", files=network_input()),
    Case("weights-lying-header", "run --weights w.safetensors", 2, "w.safetensors: its header length is "
         "9223372036854775807 bytes, but the file has only 2 after the length",
         files={"w.safetensors": struct.pack("<Q", 2**63 - 1) + b"{}"}),
    Case("weights-missing", "run --weights nowhere.safetensors", 74, f"cannot read nowhere.safetensors: {NO_FILE}"),
    Case("weights-tensor", "run --weights w.safetensors", 2,
         "w.safetensors: tensor 'x_embedder.proj.bias' is missing, expected F32 [384]",
         files={"w.safetensors": tensors(24576, **{"x_embedder.proj.weight": ("F32", [384, 4, 2, 2], 0, 24576)})}),
    Case("weights-truncated", "run --weights w.safetensors", 2,
         "w.safetensors: 3 bytes are too few for a safetensors file, expected 8 or more",
         files={"w.safetensors": "abc"}),
]

STORES = [
    Case("database-corrupt", "lookup", 7, "the store {T}/db/best.json is cut short: it has 2 bytes, and there is no "
         "good best.json.1 beside it: 'dittune db rebuild' makes it anew from the journals",
         files={"db": None, "db/best.json": "{\n"}),
    Case("database-not-writable", "--budget 5s --quiet --db file/db", 74,
         "cannot make the directory file: Not a directory; --db DIR or DITTUNE_STORE names another folder",
         files={"file": ""}),
    Case("tmpdir-too-long", "--budget 5s --quiet", 2, "the path of the folder for temporary files has 240 letters, at most 200 will "
         "do: set TMPDIR to a shorter one, as /tmp", env={"TMPDIR": "/" + 239 * "x"}, prints=True),
    Case("tmpdir-relative", "--budget 5s --quiet", 2, "TMPDIR is 'scratch', which is not an absolute path: set it to one, as /tmp",
         env={"TMPDIR": "scratch"}, prints=True),
    Case("tmpdir-missing", "--budget 5s --quiet", 74, f"cannot make a folder for temporary files in {{T}}/none: {NO_FILE}; set TMPDIR to a folder that can be written", env={"TMPDIR": "{T}/none"},
         prints=True),
    Case("lookup-mode-not-utf8", "lookup --mode 'a\udcffb'", 2, "mode is 'a?b', which is not UTF-8"),
    Case("lookup-nothing", "lookup", 10, "no plan is stored in {T}/db for dit-s/2, 256 x 256 px (256 tokens), guided, "
         "float32 (objective latency, * device*) on this machine: run dittune first, or take the default rule's plan "
         "with --require heuristic"),
    Case("lookup-engine-typo", "lookup --engine difusers --model flux.1-dev", 10,
         "no plan is stored in {T}/db for difusers: black-forest-labs/FLUX.1-dev (objective latency, * device*) on this machine: "
         "did you mean --engine diffusers?"),
    Case("store-typo-show", "db show --db {T}/nowhere", 74, f"--db {{T}}/nowhere: {NO_FILE}"),
    Case("store-typo-history", "history --db {T}/nowhere", 74, f"--db {{T}}/nowhere: {NO_FILE}"),
    Case("store-typo-report", "report --db {T}/nowhere", 74, f"--db {{T}}/nowhere: {NO_FILE}"),
    Case("store-typo-why", "why --db {T}/nowhere", 74, f"--db {{T}}/nowhere: {NO_FILE}"),
    Case("prior-missing", "--prior {T}/none.jsonl", 74, f"cannot read {{T}}/none.jsonl: {NO_FILE}", prints=True),
]

WORKERS = [
    Case("worker-missing", "run --worker ./nowhere", 2, "the worker ./nowhere is not a program that can be run"),
    Case("worker-command-line", "run --worker 'python3 w.py'", 2,
         "the worker 'python3 w.py' is not a program that can be run: its arguments follow --, as in --worker python3 -- w.py"),
    Case("command-alone", "--command 'x {{a}}'", 2, "--command needs --space FILE: its parameters and their values"),
    Case("command-without-time", "--command 'x {{a}}' --space {T}/s.json", 2,
         "--command needs --time: regex:EXPRESSION, json:PATH or wall; or --objective max:METRIC"),
    Case("command-is-missing", "--time wall", 2, "--time belongs to --command, which is not given"),
    Case("command-and-model", "--command 'x {{a}}' --space {T}/s.json --time wall --model dit-s/2", 2,
         "--model has no effect beside --command: the worker decides by itself what it runs"),
    Case("command-and-worker", "--command 'x {{a}}' --space {T}/s.json --time wall --worker ./w", 2,
         "--command has no effect beside --worker: the worker is a program of its own"),
    Case("command-not-utf8", "--command 'x {{a}} \udcff' --space {T}/s.json --time wall", 2, "--command 'x {{a}} ?' is not UTF-8"),
    Case("worker-model-not-utf8", f"run --worker {shlex.quote(t.worker)} --model 'a\udcff'", 2, "--model 'a?' is not UTF-8"),
    Case("worker-revision-not-utf8", f"run --worker {shlex.quote(t.worker)} --revision 'a\udcff'", 2, "--revision 'a?' is not UTF-8"),
    Case("worker-not-executable", "run --worker ./w.py", 2,
         "the worker ./w.py is not a program that can be run: chmod +x makes it one, and its first line must name its "
         "interpreter (#!)", files={"w.py": ""}),
    Case("worker-no-parameters", f"run --worker {shlex.quote(t.worker)}", 2,
         f"the worker {t.worker} announces no parameters in its hello: there is nothing to tune",
         files=scenario(parameters=None)),
    Case("worker-empty-parameters", f"run --worker {shlex.quote(t.worker)}", 2,
         "the worker's hello: 'parameters' is empty, there is nothing to tune", files=scenario(parameters=[])),
    Case("worker-sets-preload", f"run --worker {shlex.quote(t.worker)}", 2,
         "the worker's hello: parameter 'a' may not set LD_PRELOAD, which decides what code runs or where files lie; a parameter "
         "sets variables of libraries, such as NCCL_ALGO",
         files=scenario(parameters=[{"name": "a", "role": "environment", "variable": "LD_PRELOAD", "values": ["x.so"]}])),
    Case("worker-test-missing", "worker-test ./nowhere", 2, "the worker ./nowhere is not a program that can be run"),
]


# ---- how one is run

def lay_out(case):
    folder = t.path / case.name
    folder.mkdir()
    for name, content in case.files.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def pattern(case, folder):
    """The last message as a regular expression: * is any text."""
    sentence = "dittune: " + case.says.replace("{T}", str(folder))
    return ".*".join(map(re.escape, sentence.split("*")))


def run(case):
    folder = lay_out(case)
    done = t.tool(*shlex.split(case.args.replace("{T}", str(folder))), cwd=folder,
                  env={"DITTUNE_STORE": folder / "db", "SCENARIO": folder / "scenario.json",
                       **{name: value.replace("{T}", str(folder)) for name, value in case.env.items()}})
    said = [line for line in done.err.splitlines() if re.match("dittune: (?!warning)", line)]
    matches = bool(said) and re.fullmatch(pattern(case, folder), said[-1]) is not None
    t.check(case.name, matches and done.code == case.code and bool(done.out) == case.prints,
            f"expected {case.code}: {case.says}\n{done}")


for case in WORDS + PLANS + SPACES + MODELS + TENSORS + STORES + WORKERS:
    run(case)
explained = t.tool("explain", "ranks=1 overlap=1", "--json").json
t.check("what is near breaks no other rule", explained["violations"][0]["nearest"] == {"overlap": [0]}, explained)
t.none_left()
t.finish()
