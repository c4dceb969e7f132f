# SPDX-License-Identifier: MIT
# ctest:
"""The time of a whole image: the steps of an engine's job, and text encoder and VAE as given or as measured by the worker."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
SMALL = SOURCE / "tests/cli/small.json"
t = Dittune()


def plant(**fields):
    t.scenario(**{**dict(ns=[4 * MS, 2 * MS], cv=0, protocol=2, engine="mine", obeys=["steps"], job={"steps": 25}), **fields})


def tune(*words):
    return t.tune("--budget", "60s", "--steps", "25", *words)


def image(done):
    """(milliseconds of the image, its words) of the report."""
    found = re.search(r"A whole image: ([\d.]+) ms, (.*?)\.\s", " ".join(done.out.split()))
    return (float(found[1]), found[2]) if found else (0, done.out)


def entry():
    return t.tool("db", "show", "--json").json["entries"][0]


def look():
    return t.tool("lookup", "--worker", t.worker, "--steps", "25", "--json"), t.tool("lookup", "--worker", t.worker, "--steps", "25")


def shown():
    plant()
    done = tune()
    ms, words = image(done)
    t.check("without text encoder and VAE it is the steps, and says so",
            ms == 50 and "25 steps of 2" in words and "text encoder and VAE are not in it, --text-and-vae TIME adds them" in words, done)
    t.check("the whole gains what a step gains: twice", "2.000 [2.000, 2.000] times as fast as with the default" in words, done)
    found, text = look()
    t.check("look-up has it", found.json["image_ns"] == 50 * MS and "image      50 ms: 25 steps without text encoder and VAE" in text.out, text)


def given():
    plant()
    done = tune("--text-and-vae", "50ms")
    ms, words = image(done)
    t.check("text encoder and VAE as given are added", ms == 100 and "and 50 ms of text encoder and VAE (given)" in words
            and "not in it" not in words, done)
    t.check("they make the gain of the whole smaller: (25 x 4 + 50) / (25 x 2 + 50)", "1.500 [1.500, 1.500] times" in words, done)
    found, text = look()
    t.check("look-up adds them", found.json["image_ns"] == 100 * MS
            and "image      100 ms: 25 steps and 50 ms of text encoder and VAE (given)" in text.out, text)
    t.check("the entry keeps what it was made of", found.json["entry"]["image"] == {"steps": 25, "text_and_vae_ns": 50 * MS, "source": "given"}, found)


def measured():
    plant(text_and_vae_ns=30 * MS)
    done = tune("--json")
    t.check("as the worker measured", done.json["image"] == {"steps": 25, "text_and_vae_ns": 30 * MS, "source": "measured"}, done)
    done = tune("--json", "--text-and-vae", "50ms")
    t.check("what is given has precedence", done.json["image"]["source"] == "given" and done.json["image"]["text_and_vae_ns"] == 50 * MS, done)
    for wrong in (0, -1, 1.5, "30ms", True):
        plant(text_and_vae_ns=wrong)
        t.exits(f"the worker said {json.dumps(wrong)}", tune(), 2, "the worker's ready: 'text_and_vae_ns' is not a time above 0, an integer of nanoseconds")


def requests():
    """A worker whose step is a whole request."""
    plant(unit="image")
    done = tune()
    t.check("and what is made small", "objective: time of a whole image" in done.out, done)
    t.check("the report says what a step is", "What is called a step here is a whole image of 25 denoising steps, with text encoder and VAE."
            in " ".join(done.out.split()) and "A whole image:" not in done.out, done)
    found, text = look()
    t.check("look-up, too", found.json["image_ns"] == found.json["median_ns"] == 2 * MS
            and "2 ms an image of 25 steps, with text encoder and VAE" in text.out and "image    " not in text.out, text)
    t.exits("nothing is added to it", tune("--text-and-vae", "50ms"), 2, "--text-and-vae has no effect: the worker")
    plant(unit="frame")
    t.exits("another unit", tune(), 2, "the worker's hello: 'unit' is none of step, image, run and request")


def step_kinds():
    """A request whose denoising steps are not all alike."""
    kinds = [{"count": 1, "say": "transformer, 2 calls of 256 tokens"}, {"count": 24, "say": "transformer_2, 2 calls\x07"}]
    says = "A request: 1 step of transformer, 2 calls of 256 tokens; 24 steps of transformer_2, 2 calls\\x07."
    plant(steps=kinds)
    done = tune("--json")
    t.check("--json has its kinds of steps", done.code == 0 and done.json["image"]["step_kinds"] == kinds, done)
    t.check("the entry, too", look()[0].json["entry"]["image"]["step_kinds"] == kinds)
    for words in (("report", "--format", "md", "-o", "-"), ("why",)):
        done = t.tool(*words)
        t.check(f"{words[0]} shows them, from the journal", done.code == 0 and says in " ".join(done.out.split()).replace("\\\\", "\\").replace("\\_", "_"), done)
    done = tune()
    t.check("and what tune prints", says in " ".join(done.out.split()), done)
    done = t.tool("run", "--worker", t.worker, "--steps", "25")
    t.check("and run", says in " ".join(done.out.split()), done)
    done = t.tool("worker-test", t.worker)
    t.check("worker-test: they are all steps of the job", done.code == 0, done)
    plant(steps=kinds[:1])
    done = t.tool("worker-test", t.worker)
    t.check("and when they are not", done.code == 1 and "the counts of hello's 'steps' add up to 1, and its job has 25 steps" in done.out, done)
    for wrong in ([], {}, "x", [1], [{"count": 0, "say": "x"}], [{"count": 1.5, "say": "x"}], [{"count": (1 << 20) + 1, "say": "x"}],
                  [{"count": 1}], [{"count": 1, "say": ""}], [{"count": 1, "say": "x" * 201}], kinds * 33):
        plant(steps=wrong)
        t.exits(f"kinds of steps that are none: {str(wrong)[:30]}", tune(), 2,
                "the worker's hello: its kinds of steps are not 1 to 64 objects with 'count', an integer from 1 to 1048576, and 'say', a text of 1 to 200")
    plant(steps=kinds, job={})
    t.exits("kinds of no steps", tune(), 2, "the worker's hello: 'steps' needs their number, 'steps' in its 'job'")


def refused():
    plant(obeys=[], job={})
    t.exits("a worker without steps", t.tune("--budget", "20s", "--text-and-vae", "50ms"), 2, "--text-and-vae has no effect: the worker")
    done = t.tune("--budget", "60s")
    t.check("has no whole image", done.code == 0 and "whole image" not in done.out and "image" not in look()[1].out, done)
    t.exits("a command that shows no image", t.tool("space", "--steps", "5"), 2, "--steps has no effect without --engine or --worker")
    t.exits("no time", t.tune("--text-and-vae", "x"), 2, "a time such as 500ms")


def network():
    """The built-in network: its verdict and look-up have the whole image when steps are given."""
    t.scenario(a=0.02, b=0.02, s=0.1)
    done = t.tool("tune", "--model", SMALL, "--devices", 2, "--budget", "60s", "--steps", "10", "--text-and-vae", "40ms", "--no-wait",
                  env={"DITTUNE_WORKER": t.worker})
    found = t.tool("lookup", "--model", SMALL, "--devices", 2, "--json").json
    t.check("the verdict and the look-up show it", done.code == 0 and "10 steps of" in done.out and "40 ms of text encoder and VAE (given)"
            in " ".join(done.out.split()) and found["image_ns"] == 10 * found["median_ns"] + 40 * MS, (found, done))


network()
shown()
given()
measured()
requests()
step_kinds()
refused()
t.none_left()
t.finish()
