# SPDX-License-Identifier: MIT
# ctest:
"""The pipeline of examples/ci on a store whose worker is planted: a quiet night, and one after which a plan lost."""
import shutil

from lib_check import WINS, CheckTest
from dittune_test import SOURCE, Done

PIPELINE = SOURCE / "examples/ci"
OUT = "out-of-check"
t = CheckTest(RETUNE_BUDGET="8s")
t.environment.update(DITTUNE=str(t.program()), OUT=str(t.path / OUT))


def night(**env):
    """The pipeline's result, with the output of check that it kept."""
    shutil.rmtree(t.path / OUT, ignore_errors=True)
    done = t.run("sh", PIPELINE / "check.sh", "--worker", t.worker, "--budget", "40s", env=env)
    return Done(done.args, done.code, t.read(f"{OUT}/check.json"), done.err)


def a_quiet_night():
    t.plant(WINS, drift_sd=0.01)
    t.tuned("tuned")
    t.stored("tuned")
    done = night()
    t.check("an unchanged machine passes", done.code == 0 and [entry["verdict"] for entry in t.entries(done)] == ["wins"], done)
    t.check("an unchanged machine proposes nothing",
            t.read(f"{OUT}/proposed.diff") == "" and not (t.path / OUT / "proposed.json").exists())
    history = t.read(f"{OUT}/history.txt")
    t.check("with a history",
            t.read(f"{OUT}/history.openmetrics").endswith("# EOF\n") and "1 session, 1 check" in history, history)


def a_plan_that_lost():
    t.plant([1000000, 1300000, 1150000, 1300000], drift_sd=0.01)
    done = night()
    t.check("a plan that lost", done.code == 4 and [entry["verdict"] for entry in t.entries(done)] == ["loses"], done)
    t.check("is tuned again", "tune again: " in done.err and "no decided answer" not in done.err, done)
    diff = t.read(f"{OUT}/proposed.diff").split("\n")
    removed, added = ([line for line in diff if line.startswith(sign)] for sign in "-+")
    t.check("a better plan is proposed", diff[0].startswith("--- stored")
            and any('"plan": 2' in line for line in removed) and any('"plan": 0' in line for line in added), diff)
    t.check("as JUnit, too", "<failure" in t.read(f"{OUT}/check.xml"))
    t.unchanged("tuned")


def the_proposal():
    t.exits("the proposal is accepted", t.tool("db", "import", t.path / OUT / "proposed.json"), 0)
    done = night()
    t.check("the accepted plan passes", done.code == 0 and [entry["plan"] for entry in t.entries(done)] == [{"plan": 0}], done)


def a_worker_with_arguments():
    """What follows -- is the worker's: the options of the re-tune stand before it."""
    worker = t.write("worker", f'#!/bin/sh\n[ "$*" = "--cfg --scale 2" ] || {{ echo "usage: worker --cfg --scale 2, not $*" >&2; exit 2; }}\nexec "{t.worker}"\n')
    worker.chmod(0o755)
    t.plant(WINS, drift_sd=0.01)
    t.exits("tuned with arguments of the worker", t.tool("--worker", worker, "--devices", 1, "--budget", "6s", "--quiet", "--db", t.path / "words",
                                                         "--", "--cfg", "--scale", 2), 0)
    t.stored("words")
    t.plant([1000000, 1300000, 1150000, 1300000], drift_sd=0.01)
    shutil.rmtree(t.path / OUT, ignore_errors=True)
    done = t.run("sh", PIPELINE / "check.sh", "--worker", worker, "--budget", "40s", "--", "--cfg", "--scale", "2")
    done = Done(done.args, done.code, t.read(f"{OUT}/check.json"), done.err)
    t.check("a plan of such a worker that lost is tuned again", done.code == 4 and "tune again: " in done.err
            and " --budget 8s --quiet -- --cfg --scale 2" in done.err and "no decided answer" not in done.err, done)
    t.check("and a better one is proposed", '"plan": 0' in t.read(f"{OUT}/proposed.diff"), t.read(f"{OUT}/proposed.diff"))
    t.exits("options of dittune among the worker's are named", t.tool("--worker", worker, "--devices", 1, "--", "--cfg", "--scale", 2, "--budget", "6s"), 1,
            "its arguments were -- --cfg --scale 2 --budget 6s, and options of dittune stand before the --")


def no_worker():
    done = night(GITHUB_ACTIONS="true", SCENARIO="/nowhere")
    t.check("a worker that does not start is no success", done.code == 5 and "::" in done.err, done)


def the_pipelines():
    try:
        import yaml
    except ImportError:
        print("skip the pipelines as YAML (there is no python3-yaml here)")
        return
    def pipeline(name):
        return yaml.safe_load((PIPELINE / name).read_text(encoding="utf-8"))
    github = [step.get("run", "") for step in pipeline("github.yml")["jobs"]["check"]["steps"]]
    for name, steps in ("GitHub", github), ("GitLab", pipeline("gitlab-ci.yml")["dittune"]["script"]):
        calls = [step for step in steps if "examples/ci/check.sh" in step]
        t.check(f"the pipeline for {name} calls the script", calls, steps)


for part in (a_quiet_night, a_plan_that_lost, the_proposal, a_worker_with_arguments, no_worker, the_pipelines):
    part()
t.none_left()
t.finish()
