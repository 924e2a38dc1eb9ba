#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents: every relative link leads to a file and to a heading of it, and
a page for users has at most 250 lines. Evidence stands in doc/evidence."""
import pathlib
import re
import tempfile
import unittest

from suite import TOP, main

LINES = 250
# Pages that may be longer, and why.
LONGER = {
    "doc/INTERNALS.md": "for developers: read by section",
}
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
# A page in a comment, a message or a manual; not "there", in another project.
NAMED = re.compile(r"(?<![\w/.-])doc/[\w/-]+\.md(?! there)")
HEADING = re.compile(r"#+ +(.*)")


def unfenced(text):
    """The lines of TEXT outside of blocks of code."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield line


def anchors(text):
    """The anchors of TEXT's headings, as GitHub and MkDocs name them."""
    names = set()
    for line in unfenced(text):
        heading = HEADING.match(line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].strip().lower())
            names.add(words.replace(" ", "-"))
    return names


def broken(page):
    """What is wrong with each link of PAGE that leads nowhere."""
    for line in unfenced(page.read_text(encoding="utf-8")):
        for link in LINK.findall(line):
            path, _, anchor = link.partition("#")
            to = (page.parent / path).resolve() if path else page
            if not to.exists():
                yield f"{link}: no such file"
            elif anchor and anchor not in anchors(
                    to.read_text(encoding="utf-8")):
                yield f"{link}: no such heading"


def pages():
    yield from TOP.glob("*.md")
    for folder in ("bench", "data", "doc", "examples", "src", "tests"):
        yield from (TOP / folder).rglob("*.md")


class Links(unittest.TestCase):
    def test_each_leads_somewhere(self):
        found = [f"{page.relative_to(TOP)}: {why}"
                 for page in pages() for why in broken(page)]
        self.assertEqual(found, [])

    def test_a_wrong_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# One `page`\n[a](#one-page) [b](#two) [c](d.md)\n"
                            "```\n# not a heading [e](f.md)\n```\n")
            self.assertEqual(list(broken(page)), [
                "#two: no such heading", "d.md: no such file"])


class Names(unittest.TestCase):
    def test_pages_that_programs_name_exist(self):
        for folder in ("bench", "examples", "man", "src", "tools"):
            for path in (TOP / folder).rglob("*"):
                if path.is_file() and path.suffix not in (".csv", ".json"):
                    text = path.read_bytes().decode(errors="replace")
                    for name in NAMED.findall(text):
                        self.assertTrue((TOP / name).exists(),
                                        f"{path.relative_to(TOP)}: {name}")


class Length(unittest.TestCase):
    def test_user_pages_are_short(self):
        for page in [TOP / "README.md", *sorted((TOP / "doc").glob("*.md"))]:
            name = str(page.relative_to(TOP))
            lines = len(page.read_text(encoding="utf-8").splitlines())
            if name in LONGER:
                self.assertGreater(lines, LINES, f"{name}: drop it from LONGER")
            else:
                self.assertLessEqual(lines, LINES, name)


if __name__ == "__main__":
    main()
