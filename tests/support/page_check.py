#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks pages that `reckon page` wrote: page_check.py FILE.html...

Every tag is closed, in order; ids and links fit; each picture is well-formed XML; nothing is loaded from anywhere and
nothing can run. With --text prints what a reader sees of one page, a line a block.
"""

import html.parser
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "wbr"}
BLOCKS = {"p", "h1", "h2", "h3", "li", "tr", "pre", "title", "figcaption", "summary", "text"}
# What may stand in a page: no script, no frame, no form, nothing with a source.
TAGS = set("""html head meta title style body header h1 p div nav a main section h2 h3 footer table tr th td span pre details
summary code figure figcaption ul li b small br wbr svg text tspan path rect circle""".split())
ATTRIBUTES = set("""lang charset name content http-equiv class id href style title viewbox role x y cx cy r d width height fill
text-anchor font-weight""".split())


class Page(html.parser.HTMLParser):
    def __init__(self, name):
        super().__init__(convert_charrefs=True)
        self.name, self.open, self.ids, self.links, self.lines, self.line = name, [], [], [], [], ""
        self.columns, self.cells = None, 0  # of the last table, of the last row

    def fault(self, what):
        sys.exit(f"page_check: {self.name}: line {self.getpos()[0]}: {what}")

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.fault(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES or (name == "title" and tag == "svg"):
                self.fault(f"<{tag} {name}>")
            if name == "href" and not value.startswith("#"):
                self.fault(f"a link to {value}")
            if name == "style" and not re.fullmatch(
                r"background:#[0-9a-f]{6};color:#(fff|000)|width:[0-9.]+%|--size:[0-9.]+px|--columns:[0-9]+"
                r"|background:linear-gradient\(90deg(,#[0-9a-f]{6})+\)", value):  # fmt: skip
                self.fault(f"style {value}")
        attributes = dict(attrs)
        if tag == "table" and attributes.get("class") != "heat":
            self.columns = int(attributes["style"].removeprefix("--columns:"))
        elif tag == "table":
            self.columns = None
        elif tag == "tr":
            self.cells = 0
        elif tag in ("td", "th") and attributes.get("class") != "bars":
            self.cells += 1
            if self.columns and self.cells > self.columns:
                self.fault(f"more cells in a row than the table's {self.columns} columns")
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if "href" in attributes:
            self.links.append(attributes["href"][1:])
        if tag in BLOCKS:
            self.end_line()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.fault(f"</{tag}> closes nothing")
        if tag in ("td", "th"):
            self.line += " "
        if tag in BLOCKS:
            self.end_line()

    def handle_data(self, data):
        if "style" not in self.open:
            self.line += data

    def end_line(self):
        if self.line.strip():
            self.lines.append(" ".join(self.line.split()))
        self.line = ""


def check(name):
    with open(name, encoding="utf-8") as file:
        text = file.read()
    page = Page(name)
    page.feed(text)
    page.close()
    if page.open:
        page.fault(f"<{page.open[-1]}> is not closed")
    if len(set(page.ids)) != len(page.ids) or page.links != page.ids:
        page.fault(f"ids {page.ids}, links {page.links}")
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        xml.etree.ElementTree.fromstring(svg)
    style = text[text.index("<style>") : text.index("</style>")]
    for forbidden in ("@import", "url(", "http:", "//"):
        if forbidden in style:
            page.fault(f"the style has {forbidden}")
    if "default-src 'none'" not in text:
        page.fault("there is no policy")
    for number in ("nan", "inf"):
        if re.search(rf'="-?{number}', text):
            page.fault(f"an attribute is {number}")
    return page.lines


def main():
    if sys.argv[1] == "--text":
        print("\n".join(check(sys.argv[2])))
        return
    for name in sys.argv[1:]:
        check(name)


if __name__ == "__main__":
    main()
