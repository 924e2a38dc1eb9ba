#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page's timeline of a step in a real browser."""
import sys
import time

import sample
import sample_time
import test_page
from test_page import TIP, equal, has, text_of

TESTS = []
SIGHT = "[steps.from, steps.to]"


def test(function):
    TESTS.append(function)
    return function


def press(browser, key):
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key=key,
                     **({"text": key} if len(key) == 1 else {}))
    browser.settle()


def spot(browser, text):
    """A point in the first operation of that name in sight."""
    return browser.run(
        "(() => { const lane = steps.lanes.findIndex(l => l.items.some(i => "
        f"itemName(i).includes({text!r}) && i.kind === 'operation'));"
        "const item = steps.lanes[lane].items.find(i => "
        f"itemName(i).includes({text!r}));"
        "const c = document.getElementById('steps-canvas');"
        "c.scrollIntoView({block: 'center'});"
        "const b = c.getBoundingClientRect();"
        "return [b.left + xOf((item.start + item.end) / 2),"
        "b.top + laneTop(lane) + 8];})()")


def table(browser, name):
    return browser.run(f"[...document.querySelectorAll('#{name}-table tbody "
                       "tr')].map(row => [...row.cells].map(cell => "
                       "cell.textContent))")


def click(browser, point):
    for kind in ("mousePressed", "mouseReleased"):
        browser.mouse(kind, point, button="left", clickCount=1)
    browser.settle()


@test
def a_step_is_told_in_figures(pages):
    browser = pages.open("timed")
    has(text_of(browser, "steptime-figures"), "770 µs", "37.0%", "50.0%",
        "10,640,000 tokens/s", "10,390 samples/s; 8192 ids given to " +
        sample.NASTY[0])
    has(text_of(browser, "steptime-legend"), "Compute", "Waits for the host",
        "Communication, exposed")
    has(text_of(browser, "path-list"), sample.NASTY[0])
    has(text_of(browser, "steptime-basis"), "80% fits of measurements on this GPU")
    has(text_of(browser, "steps-title"), "Timeline of step 1")
    has(text_of(browser, "steps-more"), "3 further")


@test
def tracks_are_streams_threads_and_modules(pages):
    browser = pages.open("timed")
    equal(browser.run("steps.lanes.map(l => l.title)"),
          ["modules", "", "", "", "GPU 0, stream 7", "GPU 0, stream 8",
           "host, thread 0"])
    equal(browser.run("steps.lanes.slice(4).map(l => l.items.length)"),
          [50, 10, 51])
    # The model's slice spans its operations, up to the next one without it.
    equal(browser.run("steps.lanes[0].items.map(i => i.name)"), ["model"])


@test
def the_pointer_shows_what_an_operation_is(pages):
    browser = pages.open("timed")
    point = spot(browser, "add_kernel")
    browser.mouse("mouseMoved", (point[0] - 1, point[1]))
    browser.mouse("mouseMoved", point)
    browser.settle()
    has(browser.run(TIP), "add_kernel", "10.00 µs", "model.blocks.0.attn",
        "aten::addmm", "its stream", "fitted")


@test
def a_click_lists_what_it_waited_for_and_leads_there(pages):
    browser = pages.open("timed")
    click(browser, spot(browser, "AllReduce"))
    equal(text_of(browser, "steps-name"), "ncclDevKernel_AllReduce")
    has(text_of(browser, "steps-needs"), "waited for another stream: gemm_",
        "another stream let go on: add_kernel")
    browser.click("#steps-needs button")
    has(text_of(browser, "steps-name"), "gemm_" + sample.NASTY[0])
    has(text_of(browser, "steps-needs"), "launched by: cudaLaunchKernel",
        "waited for its stream: add_kernel")
    browser.run("document.getElementById('steps-canvas').focus()")
    press(browser, "Escape")
    equal(browser.run("document.getElementById('steps-chosen').hidden"), True)


@test
def it_zooms_and_moves(pages):
    browser = pages.open("timed")
    whole = browser.run(SIGHT)
    browser.click("#steps-in")
    half = browser.run(SIGHT)
    equal(round((half[1] - half[0]) * 2), round(whole[1] - whole[0]))
    browser.run("document.getElementById('steps-canvas').focus()")
    press(browser, "ArrowRight")
    moved = browser.run(SIGHT)
    if not moved[0] > half[0]:
        raise AssertionError(f"{moved} after {half}")
    point = browser.middle("#steps-canvas", 0.5, 0.5)
    browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=point[0],
                 y=point[1], deltaX=0, deltaY=-200)
    browser.settle()
    time.sleep(0.2)
    closer = browser.run(SIGHT)
    if not closer[1] - closer[0] < moved[1] - moved[0]:
        raise AssertionError(f"{closer} after {moved}")
    browser.mouse("mousePressed", point, button="left", clickCount=1)
    browser.mouse("mouseMoved", (point[0] + 50, point[1]), button="left")
    browser.mouse("mouseReleased", (point[0] + 50, point[1]), button="left")
    browser.settle()
    if not browser.run(SIGHT)[0] < closer[0]:
        raise AssertionError("dragging moves nothing")
    press(browser, "0")
    equal(browser.run(SIGHT), whole)


@test
def operations_are_found(pages):
    browser = pages.open("timed")
    browser.click("#steps-search")
    browser.type("allreduce")
    has(text_of(browser, "steps-found"), "10 operations, 200 µs")
    press(browser, "Enter")
    press(browser, "Enter")
    equal(browser.run("steps.at"), 1)
    equal(text_of(browser, "steps-name"), "ncclDevKernel_AllReduce")
    sight = browser.run(SIGHT)
    found = browser.run("steps.chosen.start")
    if not sight[0] <= found <= sight[1]:
        raise AssertionError(f"{found} is not in {sight}")
    browser.run("document.getElementById('steps-search').value = ''")
    browser.type("/^add.*el$/")
    has(text_of(browser, "steps-found"), "25 operations")
    browser.run("document.getElementById('steps-search').value = ''")
    browser.type("/(/")
    has(text_of(browser, "steps-found"), "0 operations")


@test
def time_is_beside_memory(pages):
    browser = pages.open("timed")
    browser.click("#fold")
    rows = browser.run(test_page.ROWS)
    row = next(r for r in rows if r[0] == "model.blocks.0")
    has(row, "12.3 ms")
    equal(len(table(browser, "operators")[0]), 4)
    has(table(browser, "operators")[0], "13.0 ms", "2.5")
    equal(len(table(browser, "holders")[0]), 4)
    has(table(browser, "holders")[0], "5.00 MiB", "3")
    shown = [cell for name in ("operators", "holders")
             for row in table(browser, name) for cell in row]
    equal(shown.count("\N{EN DASH}"), 0)


@test
def an_imported_profile_has_a_page(pages):
    browser = pages.open("profile")
    has(text_of(browser, "sentence"), "A step takes 770 µs",
        "a profile has no memory calls")
    has(text_of(browser, "steptime-figures"), "In the profile")
    has(text_of(browser, "steptime-legend"), "in the profile")
    equal(browser.run("document.getElementById('overview').hidden"), True)
    equal(browser.run("document.getElementById('steps').hidden"), False)


@test
def a_run_without_steps_has_no_timeline(pages):
    browser = pages.open("bare")
    equal(browser.run("['steptime', 'steps', 'operators'].map(id => "
                      "document.getElementById(id).hidden)"),
          [True, True, True])


@test
def sixty_thousand_operations_are_quick(pages):
    browser = pages.open("many")
    drawn = browser.run("(() => { const t = performance.now(); drawSteps();"
                        "return performance.now() - t; })()")
    browser.click("#steps-search")
    browser.type("add_kernel")
    has(text_of(browser, "steps-found"), "25,000 operations")
    print(f"60,000 operations are drawn in {drawn:.0f} ms")
    if drawn > 500:
        raise AssertionError(f"{drawn} ms")


@test
def nothing_sticks_out_on_a_small_screen(pages):
    browser = pages.open("timed")
    browser.resize(390, 844)
    browser.settle()
    equal(browser.run("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    for name in ("timed", "profile", "many"):
        setattr(sample, name, getattr(sample_time, name))
    test_page.TESTS[:] = TESTS
    sys.exit(test_page.main())
