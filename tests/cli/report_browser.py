# SPDX-License-Identifier: MIT
# ctest: full
"""The page of `report` in headless Chromium: no error, nothing wider than a screen of 400 or 1280 pixels, sorting and filtering work, also without
scripts all is there; points have tooltips, by night it is dark, and it prints. The times until it is laid out and first painted are printed, not judged."""
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, skip

MS = 1_000_000
PROBE = """<script>setTimeout(() => {
  const table = [...document.querySelectorAll("table")].find(table => table.caption.textContent.match(/trials/));
  const fold = table.closest("details");
  fold.open = true;
  const values = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent);
  table.tHead.rows[0].cells[0].querySelector("button").click();
  const up = values();
  table.tHead.rows[0].cells[0].querySelector("button").click();
  const down = values();
  const filter = fold.querySelector("input");
  if (filter) { filter.value = "a=2 b=1"; filter.dispatchEvent(new Event("input")); }
  const left = [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[1].textContent);
  const mark = document.querySelector("svg [data-tip]");
  mark.dispatchEvent(new PointerEvent("pointerover", {bubbles: true, clientX: innerWidth - 5, clientY: innerHeight - 5}));
  const tip = document.querySelector(".tip"), box = tip.getBoundingClientRect();
  const tooltip = { text: tip.textContent, want: mark.dataset.tip, shown: !tip.hidden,
                    inside: box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight };
  document.body.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  tooltip.gone = tip.hidden;
  const paper = getComputedStyle(document.body).backgroundColor;
  const found = { tooltip, paper, width: document.documentElement.scrollWidth, window: window.innerWidth, up, down, left,
                  ready: performance.timing.domContentLoadedEventEnd - performance.timing.responseStart };
  window.top.document.body.append(Object.assign(document.createElement("pre"), {id: "probe", textContent: JSON.stringify(found)}));
}, 300)</script>"""

PAINT = """<script>new PerformanceObserver(list => list.getEntries().forEach(entry => console.log("painted " + entry.name + " " + entry.startTime)))
  .observe({type: "paint", buffered: true})</script>"""

chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if chromium is None:
    skip("there is no Chromium (package chromium)")
t = Dittune()


def browse(page, *more):
    done = t.run(chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={t.path / 'profile'}", "--enable-logging=stderr",
                 "--virtual-time-budget=4000", "--window-size=1400,1200", *more,
                 "--allow-file-access-from-files", "--dump-dom", page.as_uri(), timeout=120)
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.out, re.S)
    return done, json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&")) if found else None


def paint(name, text):
    t.write("painted.html", text.replace("</body>", PAINT + "</body>"))
    done = t.run(chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={t.path / 'profile'}", "--enable-logging=stderr",
                 f"--screenshot={t.path / 'painted.png'}", "--window-size=1280,1000", (t.path / "painted.html").as_uri(), timeout=120)
    found = re.search(r"painted first-contentful-paint ([\d.]+)", done.err)
    t.check(f"{name}: is painted", found is not None, done.err[-500:])
    print(f"# {name}: first painted after {float(found[1]):.0f} ms" if found else "")


def look(name, journal):
    t.exits(f"{name}: a page", t.tool("report", journal, "-o", t.path / "page.html"), 0)
    text = t.read("page.html")
    paint(name, text)
    t.write("probed.html", text.replace("</body>", PROBE + "</body>"))
    for width in (400, 1280):
        frame = t.write("frame.html", f'<iframe src="probed.html" width="{width}" height="2000"></iframe>')
        done, found = browse(frame)
        t.check(f"{name}, {width} px: no error on the console", "CONSOLE" not in done.err, done.err[-500:])
        t.check(f"{name}, {width} px: nothing sticks out", found is not None and found["window"] == width and found["width"] <= width, found)
        t.check(f"{name}, {width} px: columns sort", found["up"] == sorted(found["up"], key=int) and found["down"] == found["up"][::-1] and len(found["up"]) > 3,
                found["up"][:5])
        t.check(f"{name}, {width} px: rows filter", found["left"] and (len(found["up"]) < 12 or all("a=2 b=1" in plan for plan in found["left"])), found["left"][:4])
        tip = found["tooltip"]
        t.check(f"{name}, {width} px: a point says what it is, until the pointer leaves it", tip["shown"] and tip["gone"] and tip["inside"]
                and tip["text"] == tip["want"] != "", tip)
        t.check(f"{name}, {width} px: by day it is light", found["paper"] == "rgb(255, 255, 255)", found["paper"])
        print(f"# {name}, {width} px: read and laid out after {found['ready']} ms, {len(text)} bytes")

    _, found = browse(t.path / "frame.html", "--blink-settings=preferredColorScheme=0")
    t.check(f"{name}: by night it is dark", found["paper"] == "rgb(13, 17, 23)", found["paper"])
    printed = t.path / "printed.pdf"
    t.run(chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={t.path / 'profile'}", f"--print-to-pdf={printed}",
          (t.path / "page.html").as_uri(), timeout=120)
    pages = len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) if printed.exists() else 0
    t.check(f"{name}: on paper it has some pages, without the data below figures", 2 <= pages <= 12, pages)


t.scenario(axes={"a": [0, 1, 2, 3], "b": [0, 1, 2]}, weights={"a": 0.2, "b": 0.5}, best={"a": 2, "b": 1}, wrong={"a": 3}, cv=0.002, cost_ns=20 * MS)
t.exits("a session", t.tune("--budget", "60s", "--search", "exhaustive", "--db", t.path / "db"), 0)
look("12 trials", next((t.path / "db/runs").glob("*.jsonl")))
sizes = {name: 10 for name in "abcd"}
t.scenario(axes={name: list(range(n)) for name, n in sizes.items()}, weights={"a": 0.05, "b": 0.03, "c": 0.1, "d": 0.02},
           best={"a": 2, "b": 1, "c": 2, "d": 5}, cv=0.01, cost_ns=10 * MS)
t.exits("a session of 10,000 trials", t.tune("--budget", "30h", "--search", "exhaustive", "--db", t.path / "many"), 0)
look("10,000 trials", next((t.path / "many/runs").glob("*.jsonl")))
t.finish()
