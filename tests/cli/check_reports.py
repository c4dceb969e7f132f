# SPDX-License-Identifier: MIT
# ctest:
"""The reports of `check` for pipelines and for people, with hostile names."""
import xml.etree.ElementTree

from lib_check import WINS, CheckTest

NAMES = {"name": "</testcase>&amp;<![CDATA[\x1b[31m\n::error::x,y:z%0A", "workload": "a\"b'c\uffff\U0001f600]]>"}
LOSES = [1000000, 1300000, 1200000, 1300000]
t = CheckTest()


def in_xml(text):
    """XML 1.0 has no place for some characters, whatever their escape."""
    return "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def junit(entry, path):
    suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
    case = suite.find("testcase")
    t.check("junit: one test failed", suite.get("failures") == "1" and suite.get("tests") == "1", suite.attrib)
    t.check("junit: names come back", case.get("name") == in_xml(entry["title"]), case.attrib)
    failure = case.find("failure").get("message")
    t.check("junit: the failure says why", failure.startswith("loses: " + in_xml(entry["reason"])[:40]), failure)


def undecided():
    """A reader takes a skipped test for no failure, and a report without tests for none, too."""
    t.plant(WINS, start_ns=0, **NAMES)
    t.stored("hostile")
    path = t.path / "undecided.xml"
    for name, words, said in (("not judged", ("--budget", "1ms"), "not checked: the budget ended"),
                              ("nothing to check", ("--filter", "nosuch"), "nothing to check")):
        done = t.again(*words, "--junit", path) if "--budget" not in words else t.again("--junit", path, budget="1ms")
        suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
        t.check(f"junit: {name}: an error", done.code == 5 and suite.get("errors") == "1" and suite.find("testcase/skipped") is None
                and suite.find("testcase/error").get("message").startswith(said), (done, t.read(path)))


def github(entry, err):
    lines = [line for line in err.split("\n") if line.startswith("::")]
    t.check("github: one line, an error", len(lines) == 1 and lines[0].startswith("::error title="), err)
    message = lines[0][2:].split("::", 1)[1]
    for escape, character in (("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        message = message.replace(escape, character)
    t.check("github: the message comes back",
            message.split("\n")[0] == "loses: " + entry["title"] + ": " + entry["reason"], message)


def hostile_names():
    t.plant(WINS, **NAMES)
    t.tuned("hostile")
    t.stored("hostile")
    t.plant(LOSES, **NAMES)
    done = t.again("--junit", t.path / "junit.xml", "--github")
    entry = t.entry(done)
    junit(entry, t.path / "junit.xml")
    github(entry, done.err)


def cannot_be_written():
    before = len(t.records("check"))
    done = t.tool("check", "--worker", t.worker, "--github", "--junit", t.path / "no/such/folder.xml")
    t.check("a report that cannot be written is an error before any measurement",
            done.code == 74 and done.out == "" and "cannot write" in done.err, done)
    t.check("nothing was measured", len(t.records("check")) == before)
    done = t.tool("check", "--worker", t.worker, "--github", "--junit", "/dev/full")
    t.exits("the report is printed", done, 74, out=["tune again  dittune --worker", "::error title="], err="cannot write")
    t.check("the verdict comes first", done.out.startswith("LOSES"), done)


hostile_names()
cannot_be_written()
undecided()
t.none_left()
t.finish()
