# SPDX-License-Identifier: MIT
"""Files that are no best.json, each in a store of its own, and what dittune says to them.

    malformed.py DITTUNE FOLDER

refused   db show and db verify end with 7 or 74 (74: what cannot be read at all); db import never ends with 0 for what is
          no JSON. Standard error holds exactly one line, `dittune: ...`, of printable ASCII or UTF-8, below 1,100 bytes.
damaged   right checksums, but an entry is not what its seals say: db verify ends with 7.
accepted  strange but right: db show ends with 0 and prints no control byte.
Never: a signal, a sanitizer's report, more than 20 s, a file made outside the store.
"""
import json
import os
import re
import socket
import subprocess
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def raw(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


HEADER = '{"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":['
BODY = '"key":{"model":"m"},"fingerprint":{"hard":{"d":"x"},"soft":{},"info":{}},"plan":{"ranks":1}'
ID = "8c4f0a4c2b6d1e77"  # a hash of nothing here: a right form is all a reader of files asks of it


def line(body=BODY, name=ID, crc=None):
    start = raw('{"id":"' + name + '",') + raw(body)
    return start + raw(',"crc":"%s"}' % (crc or "%08x" % crc32c(start)))


def store(*lines, header=HEADER, footer="]", join=b",\n"):
    body = raw(header) + b"\n" + join.join(lines) + (b"\n" if lines else b"") + raw(footer)
    return body + raw(',"checksum":"%08x"}\n' % crc32c(body))


WRONG = ["null", "true", "7", "1.5", '"x"', "[]", "{}", "[1]", '{"a":1}']
CASES = {"refused": [], "damaged": [], "accepted": []}


def refused(name, data):
    CASES["refused"].append((name, data))


def header_cases():
    parts = {"format": '"dittune-best"', "version": '{"major":2,"minor":0}', "incompat": "[]", "compat": "[]"}

    def header(fields):
        return "{" + "".join('"%s":%s,' % item for item in fields) + '"entries":['

    def right(field, value):  # of the type asked for
        return value == '"x"' if field == "format" else value.startswith("{" if field == "version" else "[")

    for field in parts:
        rest = [item for item in parts.items() if item[0] != field]
        refused("header without " + field, store(line(), header=header(rest)))
        refused("header with two of " + field, store(line(), header=header(list(parts.items()) + [(field, parts[field])])))
        for value in WRONG:
            if not right(field, value) or field == "version":
                refused("header %s=%s" % (field, value), store(line(), header=header([(k, value if k == field else v) for k, v in parts.items()])))
    for number in ["3", "0", "-1", "2.0", "1e400", "9223372036854775808", "-9223372036854775809", '"2"', "NaN", "02", "null"]:
        for field in ("major", "minor"):
            if (field, number) in (("minor", "3"), ("minor", "0")):
                continue
            version = '{"major":%s,"minor":%s}' % ((number, "0") if field == "major" else ("2", number))
            refused("version " + version, store(line(), header=HEADER.replace('{"major":2,"minor":0}', version)))
    for word in ['"zip"', "1", "null", '"a","b"']:
        refused("incompat " + word, store(line(), header=HEADER.replace('"incompat":[', '"incompat":[' + word)))
    refused("another format", store(line(), header=HEADER.replace("dittune-best", "recipes")))
    for footer in ["]]", "}", "", "],", '],"format":"dittune-best"', '],"x":NaN', '],"x":' + "[" * 40 + "]" * 40]:
        refused("footer " + footer[:20], store(line(), footer=footer))


def entry_cases():
    for field in ('"key":{"model":"m"}', '"fingerprint":{"hard":{"d":"x"},"soft":{},"info":{}}', '"plan":{"ranks":1}'):
        name = field.split('"')[1]
        refused("entry without " + name, store(line(BODY.replace(field, '"other":1'))))
        for value in WRONG:
            if value[0] != "{" or name == "fingerprint":
                refused("entry %s=%s" % (name, value), store(line(BODY.replace(field, '"%s":%s' % (name, value)))))
    for value in WRONG:
        if value[0] != "{":
            refused("hard=" + value, store(line(BODY.replace('{"d":"x"}', value))))
    numbers = ["NaN", "-NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9223372036854775808", "-9223372036854775809", "1" * 400, "0x10", "01",
               "+1", ".5", "1.", "1e", "--1", "1_000", "TRUE", "nil", "undefined", "'x'", "", ",", "1,", "1 2", "/*c*/1", "//c", "\u00bd"]
    for number in numbers:
        refused("value " + number[:20], store(line(BODY + ',"x":' + number)))
    for depth in (17, 31, 33, 64, 2047, 2048, 2049, 100000):
        for pair in ("[]", "{}"):
            inner = "[" * depth + "]" * depth if pair == "[]" else '{"a":' * depth + "1" + "}" * depth
            refused("depth %d of %s" % (depth, pair), store(line(BODY + ',"x":' + inner)))
    refused("open brackets", store(line(BODY + ',"x":' + "[" * 1000000)))
    strings = {"NUL": "\\u0000", "raw NUL": "\0", "lone high surrogate": "\\ud800", "lone low surrogate": "\\udc00", "two high surrogates": "\\ud800\\ud800",
               "raw surrogate": "\ud800", "bad escape": "\\x41", "cut escape": "\\u12", "raw tab": "\t", "raw escape byte": "\x1b", "open": "\\",
               "overlong": b"\xc0\xaf", "continuation": b"\x80", "cut UTF-8": b"\xe2\x82", "above U+10FFFF": b"\xf4\x90\x80\x80", "byte ff": b"\xff",
               "UTF-16": "x".encode("utf-16")}
    for name, text in strings.items():
        refused("string with " + name, store(line(raw(BODY + ',"x":"') + raw(text) + b'"')))
        refused("name with " + name, store(line(raw(BODY + ',"') + raw(text) + b'":1')))
        refused("key with " + name, store(line(raw('"key":{"model":"') + raw(text) + raw('"},' + BODY.split(",", 1)[1]))))
    for place in ('{"model":"%s"}', '{"%s":1}'):
        refused("4,097 bytes in " + place, store(line(BODY.replace('{"model":"m"}', place % ("y" * 4097)))))
        refused("a megabyte in " + place, store(line(BODY.replace('{"d":"x"}', place % ("y" * 1000000)))))
    for twice in (BODY + ',"plan":{"ranks":2}', BODY.replace('"model":"m"', '"model":"m","model":"n"'), BODY + ',"id":"0000000000000000"',
                  BODY + ',"crc":"00000000"', BODY + ',"x":1,"x":1', BODY + ',"x":{"a":1,"a":1}'):
        refused("a key twice: " + twice[-30:], store(line(twice)))


def layout_cases():
    good, one, two = store(line(), line(name="0" * 16)), line(), line(name="0" * 16)
    for name in ("8C4F0A4C2B6D1E77", "8c4f0a4c2b6d1e7", "8c4f0a4c2b6d1e777", "", "g" * 16, "../../../etc/pas", " " * 16, "\\u0030" + "0" * 10):
        refused("id " + name, store(line(name=name)))
    for crc in ("0000000", "000000000", "ABCDEF01", "gggggggg", " " * 8):
        refused("crc " + crc, store(line(crc=crc)))
    refused("no crc", store(one[:-18] + b"}"))
    refused("no id", store(b"{" + one[25:]))
    refused("space before id", store(b" " + one))
    refused("space in id", store(one.replace(b'{"id":"', b'{"id": "')))
    for name, text in {"nothing": b"", "a line feed": b"\n", "an object": b"{}", "an array": b"[]", "null": b"null", "a number": b"1", "a string": b'"x"',
                       "words": b"hello there\n", "a NUL": b"\0", "NULs": b"\0" * 5000, "bytes": bytes(range(256)) * 8, "gzip": b"\x1f\x8b\x08" + b"x" * 99,
                       "an ELF": b"\x7fELF" + b"\0" * 60, "a header": raw(HEADER), "a header line": raw(HEADER) + b"\n", "a footer": good[-26:],
                       "BOM": b"\xef\xbb\xbf" + good, "UTF-16": good.decode().encode("utf-16"), "UTF-32": good.decode().encode("utf-32"),
                       "CRLF": good.replace(b"\n", b"\r\n"), "CR": good.replace(b"\n", b"\r"), "no last line feed": good[:-1], "a line feed more": good + b"\n",
                       "a byte more": good + b" ", "a NUL more": good + b"\0", "twice": good + good, "a line feed first": b"\n" + good,
                       "one byte less": good[1:], "one line": good.replace(b"\n", b""), "no commas": store(one, two, join=b"\n"),
                       "comma at the end": store(one, two + b","), "comma at the start": store(b"," + one, two), "two commas": store(one, two, join=b",,\n"),
                       "a blank line": store(one, two, join=b",\n\n"), "a space": store(one, two, join=b", \n"), "lines in one": store(one + b"," + two),
                       "a line in two": store(one[:60] + b"\n" + one[60:], two), "no entry": store(b"{}"), "a number for an entry": store(b"1"),
                       "no footer": good[:-27] + b"\n", "upper checksum": good[:-11] + good[-11:-3].upper().replace(b"0", b"A") + good[-3:],
                       "checksum 0": good[:-11] + b"0" * 8 + good[-3:], "no checksum": raw(HEADER) + b"\n" + one + b"\n]}\n",
                       "indented": json.dumps(json.loads(good), indent=2).encode(), "sorted": json.dumps(json.loads(good), sort_keys=True).encode(),
                       "::error::": b"::error file=x::y\n", "an escape": b"\x1b[2J\x1b]0;x\x07", "HTML": b"<script>alert(1)</script>"}.items():
        refused("file: " + name, text)
    for cut in range(0, len(good), 23):
        refused("cut at %d" % cut, good[:cut])
    refused("65,537 entries", store(*[b'{"id":"0000000000000000","crc":"00000000"}'] * 65537))
    refused("a line of 17 MiB", store(line(BODY + ',"x":"' + "y" * (17 << 20) + '"')) if os.environ.get("DITTUNE_DOSE") == "full" else b"{" * (17 << 20))
    refused("64 MiB and one", ("sparse", (64 << 20) + 1))
    refused("a terabyte", ("sparse", 1 << 40))


def old_cases():
    old = json.load(open(os.path.join(os.path.dirname(__file__), "stores", "version-1.json")))
    for field in ("checksum", "entries"):
        for value in WRONG:
            if field == "checksum" or value[0] != "[":
                refused("version 1, %s=%s" % (field, value), json.dumps({**old, field: json.loads(value)}).encode())
        refused("version 1 without " + field, json.dumps({k: v for k, v in old.items() if k != field}).encode())
    refused("version 1, an entry less", json.dumps({**old, "entries": old["entries"][:1]}).encode())
    refused("version 1, depth", json.dumps(old).encode()[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}")
    refused("version 1 with lines of version 2", store(line(), header=HEADER.replace('"major":2', '"major":1')))


def kind_cases():
    for kind in ("directory", "fifo", "socket", "link to a good file", "link to itself", "dangling link", "link to /dev/zero"):
        refused(kind, ("kind", kind))


def other_cases():
    CASES["damaged"] += [("an id that is another's", store(line())), ("a crc of other bytes", store(line(crc="00000000"))),
                         ("two of one identity", store(line(), line())), ("plan of lists", store(line(BODY.replace('"ranks":1', '"ranks":[1]')))),
                         ("journal as a path", store(line(BODY + ',"journal":"../../x"'))), ("gain of words", store(line(BODY + ',"gain":"much"')))]
    for name, text in {"escape sequences": "\\u001b[2J\\u001b]0;x\\u0007", "C1": "\\u009b31m", "a path": "../../../tmp/dittune-was-here",
                       "an absolute path": "/tmp/dittune-was-here", "a command": "$(touch /tmp/dittune-was-here)", "GitHub": "::error::x",
                       "line ends": "\\r\\n", "right to left": "\\u202e", "DEL": "\\u007f", "4,096 bytes": "y" * 4096, "empty": ""}.items():
        CASES["accepted"].append((name, store(line(BODY.replace('"model":"m"', '"model":"%s"' % text)))))
    CASES["accepted"] += [("no entries", store()), ("depth 16", store(line(BODY + ',"x":' + "[" * 15 + "]" * 15))), ("unknown fields", store(line(BODY + ',"x":{"y":[null]}'), footer='], "z" : 1')),
                          ("the least and the most", store(line(BODY + ',"x":[9223372036854775807,-9223372036854775808]')))]


def make(path, data):
    if isinstance(data, bytes):
        open(path, "wb").write(data)
    elif data[0] == "sparse":
        with open(path, "wb") as file:
            file.truncate(data[1])
    elif data[1] == "directory":
        os.mkdir(path)
    elif data[1] == "fifo":
        os.mkfifo(path)
    elif data[1] == "socket":
        where = os.getcwd()
        os.chdir(os.path.dirname(path))  # a socket's name is short
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
        os.chdir(where)
    else:
        target = {"link to a good file": "good.json", "link to itself": "best.json", "dangling link": "nowhere", "link to /dev/zero": "/dev/zero"}[data[1]]
        open(os.path.join(os.path.dirname(path), "good.json"), "wb").write(store(line()))
        os.symlink(target, path)


def run(program, *words):
    done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def one_sentence(text):
    """One that says why it ended; a warning for each entry that was left out may come before."""
    words = re.sub(r"^(dittune: warning: [^\n]{,1100}\n)+(?=.)", "", text.decode("utf-8", "replace"))
    text = words.encode("utf-8", "replace")
    return (words.startswith("dittune: ") and words.count("\n") == 1 and words.endswith("\n") and len(text) < 1100
            and all(c == "\n" or c >= " " and c != "\x7f" and not "\x80" <= c < "\xa0" for c in words))


def printable(text):
    return all(byte == 10 or 32 <= byte < 127 or byte >= 128 for byte in text) and b"\xc2\x9b" not in text


def judge(program, kind, db, data):
    """What is wrong with what was said, or nothing."""
    shown, checked = run(program, "db", "show", "--db", db), run(program, "db", "verify", "--db", db)
    imported = run(program, "db", "import", db + "/best.json", "--db", db + ".import")
    for name, (code, out, err) in {"show": shown, "verify": checked, "import": imported}.items():
        if code not in (0, 2, 7, 74) or b"Sanitizer" in err or b"runtime error" in err:
            return "%s ended with %d: %s" % (name, code, err[-300:])
        if not printable(out) or (code != 0 and not one_sentence(err)):
            return "%s said %r %r" % (name, out[-200:], err[-200:])
    if kind == "refused" and (shown[0] not in (7, 74) or shown[1] != b"" or checked[0] not in (7, 74)):
        return "show ended with %d, verify with %d" % (shown[0], checked[0])
    if kind == "damaged" and checked[0] != 7:
        return "verify ended with %d" % checked[0]
    if kind == "accepted" and (shown[0] != 0 or shown[2] != b""):
        return "show ended with %d: %s" % (shown[0], shown[2])
    if not isinstance(data, bytes) and imported[0] == 0 and data != ("kind", "link to a good file"):
        return "import took it"
    return None


def main():
    program, folder = sys.argv[1:]
    for fill in (header_cases, entry_cases, layout_cases, old_cases, kind_cases, other_cases):
        fill()
    failed = count = 0
    for kind, cases in CASES.items():
        for number, (name, data) in enumerate(cases):
            db = "%s/%s-%d" % (folder, kind, number)
            os.mkdir(db)
            make(db + "/best.json", data)
            fault = judge(program, kind, db, data)
            count += 1
            if fault:
                failed += 1
                print("FAIL %s: %s: %s" % (kind, name, fault))
            if isinstance(data, bytes) and len(data) > 1 << 20:
                os.unlink(db + "/best.json")
    if os.path.exists("/tmp/dittune-was-here"):
        failed += 1
        print("FAIL a name in a store was followed")
    print("%d files (%d refused, %d damaged, %d accepted), %d failed" % (count, *[len(c) for c in CASES.values()], failed))
    sys.exit(1 if failed or len(CASES["refused"]) < 250 else 0)


main()
