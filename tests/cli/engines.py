# SPDX-License-Identifier: MIT
# ctest:
"""A plan in an engine's words, from the command line: what sh makes of it, what is said beside it, exit codes."""
import json
import pathlib
import shlex
import subprocess
import sys

try:
    import yaml
except ImportError:
    yaml = None

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune
import lib_store

t = Dittune()
SMALL = SOURCE / "tests/cli/small.json"
ENGINES = {"xdit", "xdit-runner", "sglang", "vllm-omni", "diffusers", "cache-dit", "trtllm-visualgen", "wan2.1",
           "wan2.2", "hunyuanvideo"}
XDIT_COMMAND = ("torchrun --nproc_per_node=4 PROGRAM.py --model=MODEL --use_cfg_parallel --ulysses_degree 2 "
                "--ring_degree 1 --height 256 --width 256\n")
WORDS = ("a b", "it's", '"', "$(touch never)", "`id`", "line\nfeed", "--flag", "A=b", "\x1b[2J", "é€", "\\", "*", "\t",
         "x\n", "\u009b")


def lookup(*words, **how):
    return t.tool("lookup", *words, **how)


def dit(plan, engine, *words):
    """A plan of dit-xl/2 in the words of this engine."""
    return lookup("--model", "dit-xl/2", "--plan", plan, "--engine", engine, *words)


# ---- one plan, several engines

def the_list():
    done = lookup("--engines", "--json")
    t.check("--engines lists the engines", done.code == 0 and ENGINES <= {e["engine"] for e in done.json["engines"]}, done)


def one_command():
    done = dit("ranks=4 ulysses=2 cfg=2 threads=3 chunks=1", "xdit:0.4.5", "--format", "argv")
    t.check("argv gives a command", done.code == 0 and done.out == XDIT_COMMAND, done)
    t.check("parameters that it cannot express",
            "not expressible for the engine: threads=3\n" in done.err and "chunks" not in done.err, done)
    t.check("a remark says who measured the plan", "not measured on xdit 0.4.5\n" in done.err, done)
    done = dit("ranks=4 ulysses=2 cfg=2", "xdit-runner", "--format", "argv")
    t.check("xdit counts processes by the underscore",
            done.code == 0 and "--use_cfg_parallel" in done.out and "torchrun" not in done.out, done)


def replicas():
    """An engine's own flag, or a line each, with devices and a port of its own, which sh runs as they are."""
    plan = "ranks=2 ulysses=2 replicas=3 batch=2"
    for engine, flag, processes in (("sglang", "--num-gpus 6 --dp-size 3 ", 6), ("xdit", "--data_parallel_degree 3 ", 6), ("xdit-runner", "--data_parallel_degree 3 ", 6)):
        done = dit(plan, engine, "--format", "json")
        t.check(f"{engine} has a flag for replicas", done.code == 0 and (done.json["processes"], done.json["replicas"], len(done.json["lines"])) == (processes, 1, 1)
                and flag in " ".join(done.json["argv"]) + " " and done.json["lines"][0] == {"argv": done.json["argv"], "environment": {}}, done)
    for engine, port in (("vllm-omni", "--port {}"), ("diffusers", "--master_port={}"), ("cache-dit", "--master_port={}"), ("wan2.1", "--master_port={}"),
                         ("wan2.2", "--master_port={}"), ("hunyuanvideo", "--master_port={}"), ("trtllm-visualgen", "--port {}")):
        first = {"vllm-omni": 8091, "trtllm-visualgen": 8000}.get(engine, 29500)
        want = [f"CUDA_VISIBLE_DEVICES={2 * i},{2 * i + 1} " for i in range(3)]
        argv, env, table, made = (dit(plan, engine, "--format", form) for form in ("argv", "env", "table", "json"))
        lines = argv.out.splitlines()
        t.check(f"a line for each replica of {engine}", [line.startswith(devices) and f" {port.format(first + i)} " in line + " "
                                                        for i, (line, devices) in enumerate(zip(lines, want, strict=True))] == [True] * 3, argv)
        t.check(f"the same in env and table of {engine}", words_of_sh(env.out + "printf '%s\\0' \"$DITTUNE_COMMAND\"") == ["\n".join(lines)]
                and [line in table.out for line in lines] == [True] * 3 and "run the 3 lines at the same time" in table.out, env)
        t.check(f"a list in json of {engine}", made.json["replicas"] == 3 and made.json["processes"] == 2 and made.json["lines"][0]["argv"] == made.json["argv"]
                and [line["environment"]["CUDA_VISIBLE_DEVICES"] for line in made.json["lines"]] == ["0,1", "2,3", "4,5"], made)
    one = dit("ranks=2 ulysses=2", "vllm-omni", "--format", "argv").out
    t.check("one replica has neither", "CUDA_VISIBLE_DEVICES" not in one and "--port" not in one and one.count("\n") == 1, one)
    done = dit("ranks=4 ulysses=4 replicas=4", "diffusers", "--hosts", "a:8,b:8", "--format", "json")
    t.check("devices are those of a host", [line["environment"]["CUDA_VISIBLE_DEVICES"] for line in done.json["lines"]] == ["0,1,2,3", "4,5,6,7"] * 2
            and any("2 lines on each host" in note for note in done.json["notes"]), done)
    t.exits("replicas that are none", dit("ranks=2 ulysses=2 replicas=0", "vllm-omni"), 3, err="replicas=0 is no plan: there are 1 to 1024 of them")
    same = dit(plan, "vllm-omni", "--json")
    t.check("--json is --format json", same.code == 0 and same.out == dit(plan, "vllm-omni", "--format", "json").out, same)


def commands_without_the_plan():
    done = dit("ranks=4 cfg=2 ulysses=2", "trtllm-visualgen", "--format", "argv")
    t.check("a command without the plan says so, and what it is", done.code == 0 and "ulysses" not in done.out
            and "not in the command: the keywords {" in done.err and '"ulysses_size":2' in done.err.replace(" ", "")
            and "--format json" in done.err, done)
    for engine in ("sglang", "vllm-omni"):  # the second has keywords, too
        done = dit("ranks=4 cfg=2 ulysses=2", engine, "--format", "argv")
        t.check(f"one of {engine} that holds the plan does not", done.code == 0 and "--ulysses-degree 2" in done.out
                and "not in the command" not in done.err, done)


def flags():
    """The plan's own words, which sh splits as they are; whatever it could not give back is refused with what to use."""
    plan = "ranks=4 ulysses=2 cfg=2"
    for engine, says in (
            ("sglang", "--num-gpus 4 --cfg-parallel-size 2 --tp-size 1 --sp-degree 2 --ulysses-degree 2 --ring-degree 1\n"),
            ("vllm-omni", "--num-gpus 4 --ulysses-degree 2 --ring-degree 1 --cfg-parallel-size 2\n"),
            ("xdit-runner", "--use_cfg_parallel --ulysses_degree 2 --ring_degree 1 --height 256 --width 256\n")):
        done = dit(plan, engine, "--format", "flags", "--checkpoint", "not among them")
        whole = dit(plan, engine, "--format", "json").json["argv"]
        t.check(f"flags of {engine}", done.code == 0 and done.out == says and whole[-len(says.split()):] == says.split(), done)
        t.check(f"notes of {engine} are beside them", f"not measured on {engine}" in done.err and "capitals" not in done.err, done)
    words = words_of_sh(f"printf '%s\\0' serve $({shlex.quote(str(t.program()))} lookup --model dit-xl/2 --plan '{plan}' --engine sglang --format flags 2>/dev/null) --port 1")
    t.check("in a command line", words == ["serve", "--num-gpus", "4", "--cfg-parallel-size", "2", "--tp-size", "1", "--sp-degree", "2",
                                           "--ulysses-degree", "2", "--ring-degree", "1", "--port", "1"], words)
    for name, engine, more, says in (
            ("an engine of keywords", "diffusers", [], "configured by keywords, not by flags: use --format env (DITTUNE_KWARGS), or --format json"),
            ("an engine with a file", "trtllm-visualgen", [], "configured by a file, not by flags: use --format yaml"),
            ("a launcher", "xdit:0.4.5", [], "use --format argv, which prints the whole command"),
            ("replicas with lines of their own", "vllm-omni", ["replicas=2"], "the plan is of 2 replicas, each with a line of its own"),
            ("several hosts", "sglang", ["--hosts", "a:2,b:2"], "the plan is of 2 hosts, each with a line of its own")):
        words = [word for word in more if word.startswith("replicas")]
        done = dit(" ".join([plan, *words]), engine, "--format", "flags", *more[len(words):])
        t.check(f"flags for {name}: refused", done.code == 2 and done.out == "" and says in done.err and done.err.count("\n") == 1, done)
    t.check("replicas with a flag", "--dp-size 2" in dit(f"{plan} replicas=2", "sglang", "--format", "flags").out)
    for form in ("flags", "yaml"):
        t.exits(f"{form} without an engine", lookup("--model", SMALL, "--format", form), 2, out="", err=f"--format {form} is in an engine's own words: --engine must name")
        t.exits(f"{form} without a plan", lookup("--model", SMALL, "--engine", "sglang", "--format", form), 10, out="")


def strict_yaml(text):
    """The values of block style with two blanks a level and JSON for each value, which is all that is printed."""
    def block(lines, indent):
        found = {}
        while lines and len(lines[0]) - len(lines[0].lstrip(" ")) == indent:
            name, _, rest = lines.pop(0)[indent:].partition(":")
            if rest:
                found[name] = json.loads(rest)
            elif lines[0].startswith(" " * (indent + 2) + "- "):
                lines[0] = lines[0].replace("- ", "  ", 1)
                found[name] = [block(lines, indent + 4)]
            else:
                found[name] = block(lines, indent + 2)
        return found
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = block(lines, 0)
    assert not lines, lines
    return found


def deploy_files():
    """Text of a deploy file: what a YAML parser makes of it, where there is one, is what the keywords are."""
    for engine, plan, first, wanted in (
            ("vllm-omni", "ranks=4 ulysses=2 cfg=2 attention=FLASH_ATTN compile=off", "vllm serve MODEL --omni --deploy-config FILE.yaml",
             lambda kwargs: {"async_chunk": False, "stages": [{"stage_id": 0, "devices": "0,1,2,3", "diffusion_attention_backend": "FLASH_ATTN",
                                                               "enforce_eager": True, "parallel_config": kwargs}]}),
            ("vllm-omni", "ranks=1 compile=full", "vllm serve",
             lambda kwargs: {"async_chunk": False, "stages": [{"stage_id": 0, "devices": "0", "diffusion_compile_granularity": "full",
                                                               "parallel_config": kwargs}]}),
            ("vllm-omni", "ranks=1 offload=layers", "vllm serve",
             lambda kwargs: {"async_chunk": False, "stages": [{"stage_id": 0, "devices": "0", "enable_layerwise_offload": True,
                                                               "parallel_config": kwargs}]}),
            ("trtllm-visualgen", "ranks=4 ulysses=2 cfg=2 attention=FA4", "trtllm-serve MODEL --visual_gen_args FILE.yaml", lambda kwargs: kwargs)):
        done = dit(plan, engine, "--format", "yaml")
        kwargs = dit(plan, engine, "--format", "json").json["kwargs"]
        t.check(f"a deploy file of {engine}", done.code == 0 and done.out.startswith(f"# {first}") and strict_yaml(done.out) == wanted(kwargs), done)
        t.check(f"as YAML reads it", yaml is None or yaml.safe_load(done.out) == wanted(kwargs), done)
        t.check(f"notes are beside it", f"not measured on {engine}" in done.err, done)
    done = dit("ranks=2 ulysses=2", "sglang", "--format", "yaml")
    t.check("an engine without one names those with", done.code == 2 and done.out == "" and done.err.endswith(
        "sglang 0.5.23 reads no YAML: engines with such a file are trtllm-visualgen, vllm-omni\n"), done)


def refusals():
    t.exits("nothing of an engine, without a model", lookup("--engine", "xdit"), 10, out="",
            err="no plan that was tuned on xdit for this machine is stored in")
    done = lookup("--plan", "ranks=4 ulysses=4", "--engine", "sglang")
    t.check("a rule of the engine refuses the plan", done.code == 3 and done.out == "" and "would do" in done.err
            and "tensor x ulysses must divide the number of heads" in done.err, done)
    for name, words, code, says in (
            ("an incomplete product", "--plan|ranks=4 ulysses=2|--engine|xdit", 3, "product of all degrees"),
            ("an unknown engine", "--plan|ranks=2|--engine|xdot", 2, ("did you mean", "sglang:")),
            ("an unknown version", "--plan|ranks=2|--engine|xdit:1", 2, "the nearest version with a file is xdit:0.7.0"),
            ("an unknown form", "--engine|xdit|--format|toml", 2, "argv, env, json, table, flags, yaml"),
            ("--json beside another form", "--plan|ranks=2|--engine|xdit|--json|--format|argv", 2, "--json is --format json: it does not go with --format argv"),
            ("a size that is none", "--plan|ranks=2|--size|100|--engine|xdit", 2, "multiple of 16"),
            ("a value that is no number", "--plan|ranks=two|--engine|xdit", 2, "ranks")):
        t.exits(name, lookup(*words.split("|")), code, err=says)


# ---- a stored plan, measured by the built-in network and by xDiT itself

def is_right_json(done, by):
    """The answer tells whether xDiT measured the plan, and a note names who did when it did not."""
    noted = any("not measured on xdit" in note and "on dittune, mode eager" in note for note in done.json["notes"])
    measured = by == "xdit"
    return (done.json["measured"] == measured and done.json["answer"]["tier"] == ("exact" if measured else "proxy")
            and noted != measured)


def stored_plans():
    described = t.tool("machine", "--json").json
    for by in ("dittune", "xdit"):
        lib_store.write(t.environment["DITTUNE_STORE"], described, [{"fingerprint.hard.engine": by}])
        asked = ("--require", "heuristic") if by == "dittune" else ()
        for engine in ("xdit:0.4.5", "xdit-runner"):
            if by == "dittune":
                t.exits(f"a plan of cores is not exported to {engine}", lookup("--model", SMALL, "--engine", engine, "--format", "argv"),
                        10, out="", err=f"was measured on cores by dittune, not by {engine}, and may lose on GPUs; --require heuristic takes it")
            done = lookup("--model", SMALL, "--engine", engine, "--format", "json", *asked)
            t.check(f"a plan of {by} for {engine}", done.code == 0 and is_right_json(done, by), done)
            done = lookup("--model", SMALL, "--engine", engine, "--format", "argv", *asked)
            t.check(f"the table says who measured a plan of {by} for {engine}", done.code == 0
                    and ("not measured on xdit" in done.err) == (by != "xdit") and done.out.count("\n") == 1, done)


# ---- words of the user's own: sh gives them back as they were

def words_of_sh(script):
    """The arguments that sh makes of the script's last command, with the folder of the test as the current one."""
    out = subprocess.run(["sh", "-c", script], capture_output=True, check=True, cwd=t.path).stdout
    return out.decode().split("\0")[:-1]


def is_shown_safely(text):
    return all(c == "\n" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in text)


def words_of_the_user():
    for word in WORDS:
        forms = {form: lookup("--plan", "ranks=2 ulysses=2", "--engine", "xdit:0.4.5", "--program=" + word,
                              "--checkpoint=" + word, "--format", form) for form in ("argv", "env", "table")}
        argv = words_of_sh("printf '%s\\0' " + forms["argv"].out)
        env = words_of_sh(forms["env"].out + "eval \"set -- $DITTUNE_COMMAND\"; printf '%s\\0' \"$@\"")
        t.check(f"the word {word!r} is the user's own in argv", argv[2:4] == [word, "--model=" + word], argv)
        t.check(f"the word {word!r} is the user's own in env", env == argv, env)
        for form, done in forms.items():
            t.check(f"the word {word!r} is escaped in {form}",
                    done.code == 0 and is_shown_safely(done.out + done.err), done)
    t.check("no word was run", not (t.path / "never").exists())


the_list()
one_command()
replicas()
commands_without_the_plan()
flags()
deploy_files()
refusals()
stored_plans()
words_of_the_user()
t.finish()
