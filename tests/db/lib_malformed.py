# SPDX-License-Identifier: MIT
"""Files that are no best.json: pairs of a name and what the file holds, bytes or ("sparse", size) or ("kind", word).
cases() has them by what must become of them (malformed.py)."""
import json
import os
import pathlib

FULL = os.environ.get("DITTUNE_DOSE", "short") == "full"
TABLE = []
for entry in range(256):
    for _ in range(8):
        entry = (entry >> 1) ^ (0x82F63B78 if entry & 1 else 0)
    TABLE.append(entry)


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
WRONG = ["null", "true", "7", "1.5", '"x"', "[]", "{}", "[1]", '{"a":1}']


def line(body=BODY, name=ID, crc=None):
    start = raw('{"id":"' + name + '",') + raw(body)
    return start + raw(',"crc":"%s"}' % (crc or "%08x" % crc32c(start)))


def store(*lines, header=HEADER, footer="]", join=b",\n"):
    body = raw(header) + b"\n" + join.join(lines) + (b"\n" if lines else b"") + raw(footer)
    return body + raw(',"checksum":"%08x"}\n' % crc32c(body))


def with_field(text):
    """A store whose entry has a field more."""
    return store(line(BODY + "," + text))


# ---- the header and the footer

PARTS = {"format": '"dittune-best"', "version": '{"major":2,"minor":0}', "incompat": "[]", "compat": "[]"}
NO_VERSIONS = ["3", "0", "-1", "2.0", "1e400", "9223372036854775808", "-9223372036854775809", '"2"', "NaN", "02",
               "null"]
FOOTERS = ["]]", "}", "", "],", '],"format":"dittune-best"', '],"x":NaN', '],"x":' + "[" * 40 + "]" * 40]


def header_of(items):
    return store(line(), header="{" + "".join('"%s":%s,' % item for item in items) + '"entries":[')


def may_be(field, value):
    """A value of the type that the header's field has (a version has fields of its own)."""
    return {"format": value == '"x"', "version": False}.get(field, value.startswith("["))


def header_fields():
    for field in PARTS:
        yield "header without " + field, header_of(item for item in PARTS.items() if item[0] != field)
        yield "header with two of " + field, header_of([*PARTS.items(), (field, PARTS[field])])
        for value in WRONG:
            if not may_be(field, value):
                yield "header %s=%s" % (field, value), header_of({**PARTS, field: value}.items())


def headers():
    yield from header_fields()
    for number in NO_VERSIONS:
        versions = ['{"major":%s,"minor":0}' % number]
        if number not in ("3", "0"):
            versions.append('{"major":2,"minor":%s}' % number)
        for version in versions:
            yield "version " + version, header_of({**PARTS, "version": version}.items())
    for word in ['"zip"', "1", "null", '"a","b"']:
        yield "incompat " + word, header_of({**PARTS, "incompat": "[" + word + "]"}.items())
    yield "another format", header_of({**PARTS, "format": '"recipes"'}.items())
    for footer in FOOTERS:
        yield "footer " + footer[:20], store(line(), footer=footer)


# ---- an entry

FIELDS = ('"key":{"model":"m"}', '"fingerprint":{"hard":{"d":"x"},"soft":{},"info":{}}', '"plan":{"ranks":1}')
NO_VALUES = [
    "NaN", "-NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9223372036854775808", "-9223372036854775809", "1" * 400,
    "0x10", "01", "+1", ".5", "1.", "1e", "--1", "1_000", "TRUE", "nil", "undefined", "'x'", "", ",", "1,", "1 2",
    "/*c*/1", "//c", "\u00bd"]
DEPTHS = (17, 31, 33, 64, 2047, 2048, 2049, 100000)
NO_STRINGS = {
    "NUL": "\\u0000", "raw NUL": "\0", "lone high surrogate": "\\ud800", "lone low surrogate": "\\udc00",
    "two high surrogates": "\\ud800\\ud800", "raw surrogate": "\ud800", "bad escape": "\\x41", "cut escape": "\\u12",
    "raw tab": "\t", "raw escape byte": "\x1b", "open": "\\", "overlong": b"\xc0\xaf", "continuation": b"\x80",
    "cut UTF-8": b"\xe2\x82", "above U+10FFFF": b"\xf4\x90\x80\x80", "byte ff": b"\xff", "UTF-16": "x".encode("utf-16")}
TWICE = (BODY + ',"plan":{"ranks":2}', BODY.replace('"model":"m"', '"model":"m","model":"n"'),
         BODY + ',"id":"0000000000000000"', BODY + ',"crc":"00000000"',
         BODY + ',"x":1,"x":1', BODY + ',"x":{"a":1,"a":1}')


def entry_fields():
    for field in FIELDS:
        name = field.split('"')[1]
        yield "entry without " + name, store(line(BODY.replace(field, '"other":1')))
        for value in WRONG:
            if value[0] != "{" or name == "fingerprint":
                yield "entry %s=%s" % (name, value), store(line(BODY.replace(field, '"%s":%s' % (name, value))))
    for value in WRONG:
        if value[0] != "{":
            yield "hard=" + value, store(line(BODY.replace('{"d":"x"}', value)))


def entry_strings():
    for name, text in NO_STRINGS.items():
        yield "string with " + name, store(line(raw(BODY + ',"x":"') + raw(text) + b'"'))
        yield "name with " + name, store(line(raw(BODY + ',"') + raw(text) + b'":1'))
        yield "key with " + name, store(line(b'"key":{"model":"' + raw(text) + raw('"},' + BODY.split(",", 1)[1])))
    for place in ('{"model":"%s"}', '{"%s":1}'):
        yield "4,097 bytes in " + place, store(line(BODY.replace('{"model":"m"}', place % ("y" * 4097))))
        yield "a megabyte in " + place, store(line(BODY.replace('{"d":"x"}', place % ("y" * 1000000))))


def entries():
    yield from entry_fields()
    for value in NO_VALUES:
        yield "value " + value[:20], with_field('"x":' + value)
    for depth in DEPTHS:
        yield "depth %d of []" % depth, with_field('"x":' + "[" * depth + "]" * depth)
        yield "depth %d of {}" % depth, with_field('"x":' + '{"a":' * depth + "1" + "}" * depth)
    yield "open brackets", with_field('"x":' + "[" * 1000000)
    yield from entry_strings()
    for twice in TWICE:
        yield "a key twice: " + twice[-30:], store(line(twice))


# ---- the lines of the file

NO_IDS = ("8C4F0A4C2B6D1E77", "8c4f0a4c2b6d1e7", "8c4f0a4c2b6d1e777", "", "g" * 16, "../../../etc/pas", " " * 16,
          "\\u0030" + "0" * 10)
NO_CRCS = ("0000000", "000000000", "ABCDEF01", "gggggggg", " " * 8)
NO_STORES = {
    "nothing": b"", "a line feed": b"\n", "an object": b"{}", "an array": b"[]", "null": b"null", "a number": b"1",
    "a string": b'"x"', "words": b"hello there\n", "a NUL": b"\0", "NULs": b"\0" * 5000, "bytes": bytes(range(256)) * 8,
    "gzip": b"\x1f\x8b\x08" + b"x" * 99, "an ELF": b"\x7fELF" + b"\0" * 60, "a header": raw(HEADER),
    "a header line": raw(HEADER) + b"\n", "no entry": store(b"{}"), "a number for an entry": store(b"1"),
    "::error::": b"::error file=x::y\n", "an escape": b"\x1b[2J\x1b]0;x\x07", "HTML": b"<script>alert(1)</script>"}


def changed(good):
    """A good file with one thing changed; the seal of the whole is not made anew."""
    return {
        "a footer": good[-26:], "BOM": b"\xef\xbb\xbf" + good, "UTF-16": good.decode().encode("utf-16"),
        "UTF-32": good.decode().encode("utf-32"), "CRLF": good.replace(b"\n", b"\r\n"),
        "CR": good.replace(b"\n", b"\r"), "no last line feed": good[:-1], "a line feed more": good + b"\n",
        "a byte more": good + b" ",
        "a NUL more": good + b"\0", "twice": good + good, "a line feed first": b"\n" + good, "one byte less": good[1:],
        "one line": good.replace(b"\n", b""), "no footer": good[:-27] + b"\n",
        "upper checksum": good[:-11] + good[-11:-3].upper().replace(b"0", b"A") + good[-3:],
        "checksum 0": good[:-11] + b"0" * 8 + good[-3:],
        "indented": json.dumps(json.loads(good), indent=2).encode(),
        "sorted": json.dumps(json.loads(good), sort_keys=True).encode()}


def cut_up(one, two):
    """The seal is right and the lines are not."""
    return {
        "no commas": store(one, two, join=b"\n"), "comma at the end": store(one, two + b","),
        "comma at the start": store(b"," + one, two), "two commas": store(one, two, join=b",,\n"),
        "a blank line": store(one, two, join=b",\n\n"), "a space": store(one, two, join=b", \n"),
        "lines in one": store(one + b"," + two), "a line in two": store(one[:60] + b"\n" + one[60:], two),
        "no checksum": raw(HEADER) + b"\n" + one + b"\n]}\n"}


def layouts():
    one, two = line(), line(name="0" * 16)
    good = store(one, two)
    for name in NO_IDS:
        yield "id " + name, store(line(name=name))
    for crc in NO_CRCS:
        yield "crc " + crc, store(line(crc=crc))
    yield "no crc", store(one[:-18] + b"}")
    yield "no id", store(b"{" + one[25:])
    yield "space before id", store(b" " + one)
    yield "space in id", store(one.replace(b'{"id":"', b'{"id": "'))
    for name, data in {**NO_STORES, **changed(good), **cut_up(one, two)}.items():
        yield "file: " + name, data
    for cut in range(0, len(good), 23):
        yield "cut at %d" % cut, good[:cut]


def large():
    yield "65,537 entries", store(*[b'{"id":"0000000000000000","crc":"00000000"}'] * 65537)
    yield "a line of 17 MiB", with_field('"x":"' + "y" * (17 << 20) + '"') if FULL else b"{" * (17 << 20)
    yield "64 MiB and one", ("sparse", (64 << 20) + 1)
    yield "a terabyte", ("sparse", 1 << 40)


# ---- what is no file

KINDS = ("directory", "fifo", "socket", "link to a good file", "link to itself", "dangling link", "link to /dev/zero")


def kinds():
    for kind in KINDS:
        yield kind, ("kind", kind)


# ---- files of a right form

def damaged():
    yield "an id that is another's", store(line())
    yield "a crc of other bytes", store(line(crc="00000000"))
    yield "two of one identity", store(line(), line())
    yield "plan of lists", store(line(BODY.replace('"ranks":1', '"ranks":[1]')))
    yield "journal as a path", with_field('"journal":"../../x"')
    yield "gain of words", with_field('"gain":"much"')


def accepted(path):
    """path: where a name is as good as a command to make a file."""
    texts = {"escape sequences": "\\u001b[2J\\u001b]0;x\\u0007", "C1": "\\u009b31m", "a path": "../../.." + path,
             "an absolute path": path, "a command": f"$(touch {path})", "GitHub": "::error::x", "line ends": "\\r\\n",
             "right to left": "\\u202e", "DEL": "\\u007f", "4,096 bytes": "y" * 4096, "empty": ""}
    for name, text in texts.items():
        yield name, store(line(BODY.replace('"model":"m"', '"model":"%s"' % text)))
    yield "no entries", store()
    yield "depth 16", with_field('"x":' + "[" * 15 + "]" * 15)
    yield "unknown fields", store(line(BODY + ',"x":{"y":[null]}'), footer='], "z" : 1')
    yield "the least and the most", with_field('"x":[9223372036854775807,-9223372036854775808]')


def cases(path):
    refused = (headers(), entries(), layouts(), large(), kinds())
    return {"refused": [case for group in refused for case in group], "damaged": list(damaged()),
            "accepted": list(accepted(path))}
