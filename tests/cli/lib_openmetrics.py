# SPDX-License-Identifier: MIT
"""A strict reader of OpenMetrics text 1.0 (https://openmetrics.io, ABNF and the rules of the families that are used
here). It shares nothing with what it reads."""
import json
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
VALUE = NUMBER + r"|[+-]?[Ii]nf(?:inity)?|[nN]a[nN]"
SAMPLE = re.compile(r"(%s)(?:\{((?:%s)(?:,%s)*|)\})? (%s)(?: (%s))?" % (NAME, LABEL, LABEL, VALUE, NUMBER))
SUFFIXES = {"gauge": [""], "stateset": [""], "info": ["_info"]}


class Broken(Exception):
    pass


def need(true, why):
    if not true:
        raise Broken(why)


def unescape(text):
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], text)


def descriptor(line, family, families):
    match = re.fullmatch(r"# (TYPE|UNIT|HELP) (%s) (.*)" % NAME, line)
    need(match, "not a descriptor: " + line)
    word, name, rest = match.groups()
    if family is None or family["name"] != name:
        need(name not in families, "family twice, or not together: " + name)
        family = {"name": name, "type": "unknown", "samples": 0}
        families[name] = family
    need(family["samples"] == 0, "descriptor after a sample: " + line)
    need(word not in family, "descriptor twice: " + line)
    family[word] = rest
    if word == "TYPE":
        need(rest in SUFFIXES, "unknown type: " + rest)
        family["type"] = rest
    if word == "UNIT":
        need(name.endswith("_" + rest), "the name does not end in its unit: " + name)
    if word == "HELP":
        need(re.fullmatch(r'(?:[^\\\n"]|\\["\\n])*', rest), "not escaped: " + line)
    return family


def sample(line, family, points):
    match = SAMPLE.fullmatch(line)
    need(match, "not a sample: " + line)
    name, labels, value, time = match[1], match[2] or "", match[match.re.groups - 1], match[match.re.groups]
    mine = family and name in [family["name"] + suffix for suffix in SUFFIXES[family["type"]]]
    need(mine, "sample outside its family: " + line)
    pairs = re.findall(LABEL, labels)
    need(len({k for k, _ in pairs}) == len(pairs), "label twice: " + line)
    have = {k: unescape(v) for k, v in pairs}
    identity = {k: v for k, v in have.items() if k != family["name"]}
    if family["type"] == "stateset":
        need(family["name"] in have and value in ("0", "1"), "no state: " + line)
    if family["type"] == "info":
        need(value == "1", "info is 1: " + line)
    metric = (name, json.dumps(identity, sort_keys=True))
    need(points.get("last") == metric or metric not in points, "a metric's samples are not together: " + line)
    points["last"] = metric
    before = points.setdefault(metric, [])
    state = have.get(family["name"]) if family["type"] == "stateset" else None
    now = float(time) if time is not None else None
    if before:
        need(now is not None, "more than one point without a time: " + line)
        need(now > before[-1][0] or (state is not None and now == before[-1][0]), "time goes back: " + line)
    need((now, state) not in before, "point twice: " + line)
    before.append((now, state))
    family["samples"] += 1
    return {"name": name, "labels": have, "value": float(value), "time": now}


def parse(text):
    """The samples; Broken, with a sentence, at the first violation. Bytes that were no UTF-8 are U+FFFD in the text."""
    need("\ufffd" not in text, "not UTF-8")
    need("\r" not in text, "carriage return")
    need(text.endswith("# EOF\n"), "does not end in # EOF")
    lines, family, families, points, found = text[:-1].split("\n"), None, {}, {}, []
    for line in lines[:-1]:
        need(line != "# EOF", "something after # EOF")
        if line.startswith("#"):
            family = descriptor(line, family, families)
        else:
            found.append(sample(line, family, points))
    return found
