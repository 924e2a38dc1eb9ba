#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page for keyboards and screen readers: what axe-core finds, where
`tools/setup axe' has fetched it, and the same by hand for what it missed or
where it is not there."""
import pathlib
import sys

import sample
import sample_memory
import sample_ranks
import sample_time
import test_page
from test_page import ROOT, Skip, equal

TESTS = []
SAMPLES = ("oom", "blocks_of_a_run", "timed", "ranks", "advised")
SIZES = ((1440, "light"), (1024, "dark"), (400, "dark"))


def test(function):
    TESTS.append(function)
    return function


def views(pages):
    """Each sample in each size and theme."""
    for name in SAMPLES:
        browser = pages.open(name)
        for width, scheme in SIZES:
            browser.resize(width, 900, scheme)
            browser.settle()
            yield f"{name}, {width}, {scheme}", browser


VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map((v) => [v.id, v.nodes.map((n) =>
    n.html.slice(0, 120))]))"""


@test
def axe_finds_nothing(pages):
    found = list(pathlib.Path(ROOT).glob(
        ".axe-venv/lib/python*/site-packages/*/axe.min.js"))
    if not found:
        raise Skip("there is no axe-core; `tools/setup axe' fetches it")
    script = found[0].read_text(encoding="utf-8")
    pages.browser.send("Page.setBypassCSP", enabled=True)
    try:
        for view, browser in views(pages):
            browser.run("typeof axe === 'undefined' ? null : 0")
            if browser.run("typeof axe") == "undefined":
                browser.run(script + "; 0")
            equal((view, browser.run(VIOLATIONS)), (view, []))
    finally:
        pages.browser.send("Page.setBypassCSP", enabled=False)


# What scrolls and neither takes the focus nor has something that does.
UNREACHABLE = """[...document.querySelectorAll("body *")].filter((e) =>
  e.offsetParent && /auto|scroll/.test(getComputedStyle(e).overflow) &&
  (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) &&
  e.tabIndex < 0 && !e.querySelector("a, button, input, select, [tabindex]"))
  .map((e) => e.id || e.className)"""


@test
def what_scrolls_can_be_reached_by_keys(pages):
    for view, browser in views(pages):
        equal((view, browser.run(UNREACHABLE)), (view, []))


HEADINGS = """[...document.querySelectorAll("h1, h2, h3")].filter((e) =>
  e.offsetParent).map((e) => Number(e.tagName[1]))"""


@test
def headings_are_in_order(pages):
    for view, browser in views(pages):
        levels = browser.run(HEADINGS)
        equal((view, levels[0], levels.count(1)), (view, 1, 1))
        equal([(a, b) for a, b in zip(levels, levels[1:]) if b > a + 1], [])


@test
def tables_and_drawings_have_names(pages):
    for _, browser in views(pages):
        equal(browser.run(
            "[...document.querySelectorAll('canvas, [role], .scroll[tabindex],"
            "section .rows')].filter(e => e.offsetParent && !(e.ariaLabel || "
            "e.role === 'status' || e.textContent.trim())).map(e => e.id)"), [])
        equal(browser.run("[...document.querySelectorAll('th')].filter(e => "
                          "e.scope !== 'col').length"), 0)
        equal(browser.run("[...document.querySelectorAll('#links a')].filter("
                          "a => !find(a.hash.slice(1))).length"), 0)
        equal(browser.run("document.documentElement.lang"), "en")


@test
def every_control_has_a_name(pages):
    for _, browser in views(pages):
        equal(browser.run(
            "[...document.querySelectorAll('button, select, input, canvas')]"
            ".filter(e => !(e.ariaLabel || e.innerText || e.title)).length"), 0)


@test
def nothing_is_wider_than_the_screen(pages):
    for view, browser in views(pages):
        width = browser.run("innerWidth")
        equal((view, browser.run("document.documentElement.scrollWidth")),
              (view, width))


def main():
    sample.blocks_of_a_run = sample_memory.blocks_of_a_run
    sample.timed = sample_time.timed
    sample.ranks, sample.advised = sample_ranks.ranks, sample_ranks.advised
    test_page.TESTS[:] = TESTS
    return test_page.main()


if __name__ == "__main__":
    sys.exit(main())
