# SPDX-License-Identifier: MIT
"""A page of `report`, read for its tests: tables by caption, tags, references, tooltips."""
import html.parser
import re

VOID = {"meta", "path", "use", "circle", "rect", "br", "link", "img", "input", "feflood", "fecomposite"}
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Page(html.parser.HTMLParser):
    """Tables by their caption, as lists of rows of texts; tags, and the references of attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.references, self.handlers, self.tables, self.text = [], [], [], [], {}, ""
        self.balanced, self.caption, self.row, self.titles = True, None, None, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append("data" if ("type", "application/json") in attrs else tag)
        self.references += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID or tag == "use":
            self.open.append(tag)
        if tag == "tr":
            self.row = []
        if tag in ("td", "th", "caption", "title"):
            self.text = ""

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag and tag not in VOID - {"use"}:
            self.open.pop()

    def handle_data(self, data):
        self.text += data

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in VOID and tag != self.open[-1]:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.balanced = False
        if tag in ("td", "th"):
            self.row.append(self.text)
        if tag == "title":
            self.titles.append(self.text)
        if tag == "caption":
            self.caption = self.text
            self.tables.setdefault(self.caption, [])
        if tag == "tr":
            self.tables[self.caption].append(self.row)

    def table(self, begin):
        return next((rows for caption, rows in self.tables.items() if caption.startswith(begin)), [])

    @property
    def facts(self):
        return dict(row for row in self.table("In short")[1:])

