# SPDX-License-Identifier: MIT
# ctest:
"""`why` and `report` speak of the plan that is stored: also after a session that decided nothing, after `check --update`, and without
the journal. A word that matches several entries lists them; ids of entries are words, too."""
import collections
import json
import shutil

import lib_store
from lib_check import DAY, TODAY, WINS, CheckTest

SLOW_START = dict(start_ns=2_000_000_000, cost_ns=200_000_000)  # six seconds a set
BETTER = [1000000, 700000, 1100000, 1300000]
t = CheckTest()


def why(*words):
    return t.tool("why", *words, "--json")


def told(*words):
    """Its object; texts are empty where it failed."""
    o = collections.defaultdict(str, why(*words).json or {})
    o["answers"] = collections.defaultdict(str, o["answers"] or {})
    return o


def text_of(*words):
    """As text, in one line."""
    return " ".join(t.tool("why", *words).out.split())


def journals():
    return {path.stem for path in (t.db / "runs").glob("*.jsonl")}


def entries():
    return json.loads(t.read("db/best.json"))["entries"]


def is_stored_result(o, journal):
    return (o["from"], o["session"], o["verdict"], o["entry"]) == ("session", journal, "faster", entries()[0]["id"]) \
        and o["sentence"].startswith("Use plan=2: 1.2")


def later_session(name, budget, day, clause, page):
    """A session that decides nothing, some days later, and what its own page says; its journal."""
    before, stored = journals(), entries()
    (t.path / "clock").unlink(missing_ok=True)
    t.environment["DITTUNE_CLOCK_WALL"] = str(TODAY + day * DAY)
    t.plant(WINS, **SLOW_START)
    t.exits(name, t.tool("--worker", t.worker, "--devices", 1, "--budget", budget, "--search", "exhaustive"), 6)
    t.check("it replaces nothing", entries() == stored)
    later, = journals() - before
    told_of(later, stored[0]["journal"], name, f"A later session of 2026-09-0{1 + day} 00:0", clause)
    t.check("the later session is there by its own id", page in text_of(later) and told(later)["later"] is None, text_of(later))
    return later


def told_of(later, own, name, *parts):
    for words in ((), (entries()[0]["id"],), ("planted",)):
        o = told(*words)
        t.check(f"{name}: the stored plan's evidence, by {words}", is_stored_result(o, own), o)
        t.check("and that there is a later session", all(part in (o["later"] or "") for part in (*parts, f": dittune report {later}")), o)
    t.check("in the text, too", all(part in text_of() for part in ("Use plan=2: 1.2", *parts)), text_of())
    page = t.tool("report", "--format", "md")
    t.check("and on the page", "\nUse plan=2: 1.2" in page.out and all(part in page.out for part in parts), page)


def after_a_session_that_decided_nothing():
    t.stored("won")
    own = entries()[0]["journal"]
    t.exits("exported", t.tool("db", "export", t.path / "won.json"), 0)
    t.check("of one session: nothing came later", is_stored_result(told(), own) and told()["later"] is None, why())
    later_session("too short for one trial", "3s", 1, "measured no plan, so this result stays", "none was measured")
    later = later_session("too short to decide", "26s", 2, "ended before its final comparison was decided, so this result stays", "Not decided yet")
    t.check("of another store the command names it", told("--db", t.db)["later"].endswith(f": dittune report {later} --db {t.db}"))
    journal = t.db / "runs" / f"{later}.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    trials = [i for i, line in enumerate(lines) if '"kind":"trial"' in line]
    end = next(line for line in lines if '"kind":"end"' in line)
    journal.write_text("".join(lines[:trials[1] + 1]) + end)
    told_of(later, own, "interrupted amid its search", "ended before its final comparison, so this result stays")
    journal.write_text("".join(lines[:trials[1] + 1]))
    told_of(later, own, "killed amid its search", "ended before its final comparison (or still runs)")


def after_one_that_decided():
    t.plant(BETTER)
    t.environment["DITTUNE_CLOCK_WALL"] = str(TODAY + 5 * DAY)
    t.exits("a session that decides", t.tool("--worker", t.worker, "--devices", 1, "--budget", "6s"), 0)
    o = told()
    t.check("it is the stored one", o["sentence"].startswith("Use plan=1: 1.4") and o["later"] is None
            and o["session"] == entries()[0]["journal"], o)
    later = o["session"]
    t.exits("removed", t.tool("db", "rm", o["entry"], "--yes"), 0)
    t.exits("what was stored before is imported", t.tool("db", "import", t.path / "won.json"), 0)
    o = told()
    t.check("a later result that is not the stored one", is_stored_result(o, entries()[0]["journal"])
            and "had a result (faster) that is not the one stored" in (o["later"] or "") and later in o["later"], o)


def after_an_update():
    t.environment["DITTUNE_CLOCK_WALL"] = str(TODAY)
    t.stored("won")
    own = entries()[0]["journal"]
    t.plant(WINS)
    done = t.again("--update")
    t.check("a check that confirms: still the session", t.entry(done)["updated"] == "stamped" and is_stored_result(told(), own), done)
    t.plant(BETTER)
    done = t.again("--update", "--against", "plan=1")
    t.check("a check replaces the plan", t.entry(done)["replaced_by"] == {"plan": 1}, done)
    o = told()
    t.check("the plan of the update", (o["from"], o["session"]) == ("update", None) and o["sentence"].startswith("Use plan=1: 1.4"), o)
    t.check("with its gain", o["gain"] == entries()[0]["gain"] and o["stored"]["plan"] == {"plan": 1}, o)
    t.check("which check it was, and the session before", done.json["journal"] in o["answers"]["Trials"]
            and o["answers"]["Trials"].endswith(f"The session before that: dittune report {own}"), o["answers"])
    t.check("whose noise it is", "by the session before the check" in o["answers"]["Noise floor"], o["answers"])
    t.exits("no page of it", t.tool("report"), 2, err=["check --update", f"dittune why {o['entry']}", f"dittune report {own}"])
    t.check("the session before is still a page", "\nUse plan=2: " in t.tool("report", own, "--format", "md").out)


def without_its_journal():
    t.stored("won")
    entry = entries()[0]
    t.exits("exported", t.tool("db", "export", t.path / "file.json"), 0)
    shutil.rmtree(t.db)
    t.exits("imported", t.tool("db", "import", t.path / "file.json"), 0)
    o, ratio, (low, high) = told(), entry["gain"]["ratio"], entry["gain"]["interval"]
    t.check("an entry without its journal answers itself", (o["from"], o["session"], o["entry"]) == ("entry", entry["journal"], entry["id"])
            and o["sentence"] == f"Use plan=2: {ratio:.3f} times as fast as the default plan (interval {low:.3f} to {high:.3f}).", o)
    answers = o["answers"]
    t.check("how sure", f"{entry['gain']['pairs']} pairs from {entry['gain']['sets']} fresh starts" in answers["How sure"], answers)
    t.check("noise and memory", answers["Noise floor"].startswith(f"{100 * entry['noise']['margin']:.2g} %") and "1 MiB" in answers["Memory"], answers)
    t.check("the others", all(f"plan={plan['plan']['plan']}, " in answers["Others"] for plan in entry["top"][1:])
            and "plan=2" not in answers["Others"], answers)
    t.check("when", answers["When"].startswith("2026-09-01 00:00 UTC, less than a day ago"), answers)
    t.check("why there are no trials", f"the journal of its session, {entry['journal']}, is not in " in answers["Trials"], answers)
    lines = t.tool("why", entry["id"]).out.splitlines()
    t.check("as text, 80 columns wide", lines[1].startswith("Use plan=2") and max(map(len, lines)) <= 80, lines)
    for how in ((), ("planted", "--json"), (entry["id"], "--format", "csv")):
        t.exits(f"no page of it {how}", t.tool("report", *how), 2, err=[entry["journal"], f"`dittune why {entry['id']}`"])


def several(count):
    """A store of entries that another program wrote, of which no two are alike."""
    shutil.rmtree(t.db, ignore_errors=True)
    lib_store.write(t.db, t.tool("machine", "--json").json, [
        {"key.model": f"org/net-{chr(97 + i)}", "key.max_bytes": (i + 1) << 40, "fingerprint.info.t_wall_ns": TODAY - (i + 1) * DAY} for i in range(count)])
    return {entry["key"]["model"]: entry["id"] for entry in entries()}


def one_of_several():
    ids = several(3)
    t.check("without words the newest", told()["entry"] == ids["org/net-a"])
    t.check("a word of one title", told("net-b")["entry"] == ids["org/net-b"])
    t.check("a title with a slash", told("org/net-c")["entry"] == ids["org/net-c"])
    t.exits("a file that is not there", why("org/net-x.jsonl"), 74, err="org/net-x.jsonl")
    for command in ("why", "report"):
        done = t.tool(command, "net-")
        t.exits(f"{command}: a word of three titles", done, 2, err=["'net-' matches 3 entries", "by its id"])
        t.check("each by id and title", all(f"{id} ({model}, 128 x 128 px" in done.err for model, id in ids.items()), done)
    ids = several(20)
    done = why("net-")
    t.check("of many, eight are listed", done.code == 2 and sum(id in done.err for id in ids.values()) == 8
            and "and 12 more" in done.err and done.err.count("\n") == 1, done)
    title = told(ids["org/net-b"])["title"]
    t.check("a whole title", told(title.upper())["entry"] == ids["org/net-b"], title)


def by_id():
    ids = several(20)
    for model, id in ids.items():
        t.check(f"{model} by its id", told(id)["entry"] == told(id[:8])["entry"] == told(id[:8].upper())["entry"] == id)
    first = [id[0] for id in ids.values()]
    shared = next(digit for digit in first if first.count(digit) > 1)
    t.exits("a beginning that several have", why(shared), 2, err=[f"'{shared}' matches ", "by its id"])
    t.stored("won")
    listed = t.tool("check", "--worker", t.worker, "--dry-run", "--json").json["entries"][0]
    t.check("the id that check --dry-run prints", told(listed["id"])["entry"] == listed["id"], listed)
    (t.path / "planted").mkdir()
    t.check("a folder of that name is no journal", t.tool("why", "planted", cwd=t.path).code == 0)
    t.check("a page by that id", "\nUse plan=2: " in t.tool("report", listed["id"][:6], "--format", "md").out)
    t.exits("an id of no entry", why("0123456789abcdef"), 2, err="is no journal, and no entry of ")


def a_removed_entry():
    t.stored("won")
    own = entries()[0]["journal"]
    t.exits("removed", t.tool("db", "rm", entries()[0]["id"], "--yes"), 0)
    o = told("planted")
    t.check("its last session is still found", (o["session"], o["entry"]) == (own, None) and o["sentence"].startswith("Use plan=2"), o)


t.plant(WINS)
t.tuned("won")
for part in (after_a_session_that_decided_nothing, after_one_that_decided, after_an_update, without_its_journal, one_of_several, by_id,
             a_removed_entry):
    part()
t.none_left()
t.finish()
