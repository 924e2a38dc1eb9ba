#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory and blocks over time in a real browser: axes, zoom, blocks, files,
links."""
import subprocess
import sys
import time
import xml.etree.ElementTree

import sample
import sample_memory
import test_page
from test_page import BUILD, TIP, VENV, Skip, choose, equal, has, text_of
from test_steps import press

TESTS = []
SIGHT = "[axis.from, axis.to]"
TICKS = "timeline.chart.scales.x.ticks.map(t => t.label)"
TEXT = "blocks-text"
EVENTS = sample_memory.EVENTS


def test(function):
    TESTS.append(function)
    return function


def focus(browser, name):
    browser.run(f"document.getElementById({name!r}).focus()")


def point(browser, canvas, value, y):
    """A point on a canvas, at VALUE of the axis and the share Y of its height."""
    return browser.run(
        f"(() => {{ const c = document.getElementById('{canvas}');"
        "c.scrollIntoView({block: 'center'});"
        "const b = c.getBoundingClientRect();"
        f"return [b.left + blockX({value}), b.top + b.height * {y}];}})()")


def drag(browser, start, end):
    browser.mouse("mousePressed", start, button="left", clickCount=1)
    for share in (0.3, 0.7, 1):
        browser.mouse("mouseMoved", (start[0] + share * (end[0] - start[0]),
                                     start[1]), button="left", buttons=1)
    browser.mouse("mouseReleased", end, button="left", clickCount=1)
    browser.settle()


def click(browser, where, count=1):
    for n in range(1, count + 1):
        for kind in ("mousePressed", "mouseReleased"):
            browser.mouse(kind, where, button="left", clickCount=n)
    browser.settle()


def near(got, want, slack):
    if any(abs(a - b) > slack for a, b in zip(got, want, strict=True)):
        raise AssertionError(f"{got}, not {want}")


@test
def the_axis_is_of_events_steps_or_time(pages):
    browser = pages.open("blocks_of_a_run")
    equal(browser.run("find('axis').value"), "events")
    equal(browser.run(SIGHT), [0, 4 * EVENTS])
    has(text_of(browser, "axis-hint"), "allocation or a free")
    choose(browser, "axis", "steps")
    equal(browser.run(SIGHT), [0, 4])
    equal(browser.run(TICKS), ["start", "step 0", "steps 1–8", "step 9"])
    choose(browser, "axis", "clock")
    equal(browser.run("axis.to"), (4 * EVENTS - 1) * 1e6)
    has(text_of(browser, "resolution"), "are not drawn")
    browser.hover("#timeline-canvas", 0.6, 0.5)
    has(browser.run(TIP), "allocated", "activation")


@test
def equal_steps_are_one(pages):
    browser = pages.open("blocks_of_a_run")
    equal(text_of(browser, "span").split("\n"),
          ["Whole run", "Before the first step", "Step 0",
           "Steps 1 to 8, alike", "Step 9"])
    choose(browser, "span", 3)
    equal(browser.run(SIGHT), [2 * EVENTS, 3 * EVENTS])
    has(text_of(browser, "blocks-alike"), "Of steps 1–8", "first is drawn")
    choose(browser, "axis", "clock")
    choose(browser, "span", 3)
    has(text_of(browser, "axis-hint"), "since the step's begin")
    equal(browser.run(TICKS)[0], "0 ms")
    choose(browser, "span", 0)
    equal(text_of(browser, "axis-hint"), "The time is the host's")


@test
def no_two_ticks_are_equal(pages):
    browser = pages.open("blocks_of_a_run")
    for name in ("events", "steps", "clock"):
        choose(browser, "axis", name)
        for _ in range(12):
            ticks = browser.run(TICKS)
            equal(len(set(ticks)), len(ticks))
            browser.click("#timeline-in")
        browser.click("#timeline-all")


@test
def it_zooms_by_drag_wheel_buttons_and_keys(pages):
    browser = pages.open("blocks_of_a_run")
    whole = browser.run(SIGHT)
    for canvas in ("timeline-canvas", "blocks-canvas"):
        drag(browser, point(browser, canvas, 50, 0.5),
             point(browser, canvas, 90, 0.5))
        near(browser.run(SIGHT), [50, 90], 1)
        equal(browser.run("getComputedStyle(document.querySelector('.brush'))"
                          ".display"), "none")
        click(browser, point(browser, canvas, 70, 0.02), 2)
        equal(browser.run(SIGHT), whole)
    browser.click("#timeline-in")
    near(browser.run(SIGHT), [EVENTS, 3 * EVENTS], 1e-6)
    browser.click("#timeline-out")
    equal(browser.run(SIGHT), whole)
    focus(browser, "timeline-canvas")
    press(browser, "+")
    press(browser, "d")
    near(browser.run(SIGHT), [1.4 * EVENTS, 3.4 * EVENTS], 1e-6)
    press(browser, "a")
    press(browser, "-")
    equal(browser.run(SIGHT), whole)
    for canvas in ("timeline-canvas", "blocks-canvas"):
        focus(browser, canvas)
        where = point(browser, canvas, 60, 0.5)
        browser.mouse("mouseWheel", where, deltaX=0, deltaY=-300)
        browser.settle()
        time.sleep(0.2)
        sight = browser.run(SIGHT)
        if not whole[0] < sight[0] < 60 < sight[1] < whole[1]:
            raise AssertionError(f"{sight} on {canvas}")
        press(browser, "0")
        equal(browser.run(SIGHT), whole)


@test
def the_wheel_scrolls_the_page_where_nothing_is_chosen(pages):
    browser = pages.open("blocks_of_a_run")
    browser.mouse("mouseWheel", point(browser, "timeline-canvas", 60, 0.5),
                  deltaX=0, deltaY=-300)
    browser.settle()
    equal(browser.run(SIGHT), [0, 4 * EVENTS])


@test
def a_block_shows_what_it_is(pages):
    browser = pages.open("blocks_of_a_run")
    where = point(browser, "blocks-canvas", 60, 0.98)
    browser.mouse("mouseMoved", (where[0] - 2, where[1]))
    browser.mouse("mouseMoved", where)
    browser.settle()
    has(browser.run(TIP), "model.head" + sample.NASTY[0], "64.00 MiB",
        "aten::addmm", "forward model.py:3", "to the end")
    click(browser, where)
    has(text_of(browser, TEXT), "size 64.00 MiB", "category parameter",
        "module model.head" + sample.NASTY[0], "operator aten::addmm",
        "allocated before the first step, event 1", "not before the end",
        "address 0x10000000000", "/job/train.py:10 <module>")
    focus(browser, "blocks-canvas")
    press(browser, "Escape")
    equal(browser.run("find('blocks-chosen').hidden"), True)


@test
def keys_go_from_block_to_block(pages):
    browser = pages.open("blocks_of_a_run")
    focus(browser, "blocks-canvas")
    press(browser, "ArrowRight")
    has(text_of(browser, TEXT), "64.00 MiB")
    press(browser, "ArrowRight")
    has(text_of(browser, TEXT), "size 8.00 MiB", "step 0, forward, event 41",
        "lived 39.0 ms")
    press(browser, "ArrowUp")
    has(text_of(browser, TEXT), "size 9.00 MiB")
    press(browser, "ArrowDown")
    press(browser, "ArrowLeft")
    has(text_of(browser, TEXT), "64.00 MiB")


@test
def blocks_lie_on_each_other_or_at_their_addresses(pages):
    browser = pages.open("blocks_of_a_run")
    boxes = "blocks.rects.filter(r => r.x0 < blockX(60.5) && r.x1 > blockX(60.5))" \
        ".map(r => [r.y0, r.y1]).sort((a, b) => b[1] - a[1])"
    stacked = browser.run(boxes)
    equal(len(stacked), 21)
    for below, above in zip(stacked, stacked[1:]):
        near(below[:1], above[1:], 1e-6)
    choose(browser, "layout", "address")
    equal(browser.run("blocks.packed"), sum(
        {b[3]: b[2] for b in sample_memory.blocks()}.values()))
    equal(len(browser.run(boxes)), 21)
    equal(browser.run("blocks.lives.length"), 61)


@test
def blocks_are_found(pages):
    browser = pages.open("blocks_of_a_run")
    browser.click("#blocks-search")
    browser.type("gelu_<img")
    has(text_of(browser, "blocks-found"), "18 blocks, the largest 25.00 MiB")
    browser.run("find('blocks-search').value = ''")
    browser.type("/^model.head/")
    has(text_of(browser, "blocks-found"), "1 block,")
    has(text_of(browser, "blocks-more"), "1,234 blocks of less than 4 KiB")


@test
def a_link_restores_the_view(pages):
    browser = pages.open("blocks_of_a_run")
    choose(browser, "axis", "steps")
    choose(browser, "span", 2)
    choose(browser, "layout", "address")
    browser.click("#blocks-search")
    browser.type("model.blocks")
    click(browser, point(browser, "blocks-canvas", 1.5, 0.965))
    chosen = text_of(browser, TEXT)
    browser.click("#treemap-canvas", 0.02, 0.1)
    crumbs = text_of(browser, "crumbs")
    time.sleep(0.3)
    link = browser.run("location.href")
    has(link, "axis=steps", "layout=address", "from=1&to=2", "block=")
    browser.open("about:blank")
    browser.requests.clear()
    browser.open(link)
    browser.settle()
    equal(browser.run("[axis.name, axis.from, axis.to, blocks.layout]"),
          ["steps", 1, 2, "address"])
    equal(browser.run("find('span').value"), "2")
    equal(text_of(browser, TEXT), chosen)
    equal(text_of(browser, "crumbs"), crumbs)
    has(text_of(browser, "blocks-found"), "42 blocks")
    browser.run("location.hash = '#axis=clock&block=-7&from=x&gpu=99'")
    browser.settle()
    equal(browser.run("[axis.name, blocks.layout, blocks.chosen]"),
          ["clock", "stacked", -1])
    browser.requests[:] = [pages.url]


def is_saved(folder):
    """Is a chart in FOLDER, whole? The browser writes it to a .crdownload."""
    kinds = {path.suffix for path in folder.iterdir()}
    return kinds & {".png", ".svg"} and ".crdownload" not in kinds


def downloads(pages, browser, *buttons):
    """What clicks on BUTTONS save: {name: bytes}."""
    folder = pages.folder / "saved"
    folder.mkdir(exist_ok=True)
    browser.send("Page.setDownloadBehavior", behavior="allow",
                 downloadPath=str(folder))
    for button in buttons:
        browser.click(button)
        end = time.monotonic() + 20
        while not is_saved(folder) and time.monotonic() < end:
            browser.settle()
            time.sleep(0.05)
        found = {p.name: p.read_bytes() for p in folder.iterdir()}
        for path in folder.iterdir():
            path.unlink()
        yield found


@test
def charts_can_be_saved(pages):
    browser = pages.open("blocks_of_a_run")
    names = ("timeline", "blocks", "treemap", "segments")
    wanted = [f"#{name} .title .zoom:last-child button:nth-child({n})"
              for name in names for n in (1, 2)]
    saved = {}
    for found in downloads(pages, browser, *wanted):
        saved.update(found)
    equal(sorted(saved), sorted(f"memsim-{name}.{kind}" for name in names
                                for kind in ("png", "svg")))
    for name, data in saved.items():
        if name.endswith(".png"):
            equal(data[:8], b"\x89PNG\r\n\x1a\n")
            continue
        root = xml.etree.ElementTree.fromstring(data)
        texts = " ".join(root.itertext())
        has(texts, *{"memsim-timeline.svg": ("activation", "reserved", "120"),
                     "memsim-blocks.svg": ("120", "MiB"),
                     "memsim-treemap.svg": ("model",),
                     "memsim-segments.svg": ("pool",)}[name])
        if len(list(root.iter())) < 20:
            raise AssertionError(f"{name}: {data[:500]}")
    browser.requests[:] = [u for u in browser.requests
                           if not u.startswith(("blob:", "data:"))]


@test
def texts_can_be_copied(pages):
    browser = pages.open("blocks_of_a_run")
    browser.run("navigator.clipboard && Object.defineProperty(navigator, "
                "'clipboard', {value: {writeText: (t) => { window.copied = t;"
                " }}, configurable: true})")
    browser.click(".verdict .quiet")
    has(browser.run("copied"), "python train.py '</script>")
    equal(browser.run("document.querySelector('.verdict .quiet').innerText"),
          "Copied")
    click(browser, point(browser, "blocks-canvas", 60, 0.98))
    browser.click("#blocks-chosen button")
    has(browser.run("copied"), "size 64.00 MiB", "/job/model.py:3 forward")
    choose(browser, "axis", "steps")
    browser.click("#link")
    has(browser.run("copied"), "file://", ".html#axis=steps&block=")
    # Without a clipboard a field is selected and copied.
    browser.run("Object.defineProperty(navigator, 'clipboard', {value: {}})")
    browser.run("document.addEventListener('copy', () => {"
                "window.copied = document.activeElement.value; })")
    browser.click("#blocks-chosen button")
    has(browser.run("copied"), "size 64.00 MiB")
    equal(browser.run("document.querySelectorAll('textarea').length"), 0)


@test
def every_control_has_a_name(pages):
    browser = pages.open("blocks_of_a_run")
    equal(browser.run(
        "[...document.querySelectorAll('button, select, input, canvas')]"
        ".filter(e => !(e.ariaLabel || e.innerText || e.title)).length"), 0)


@test
def nothing_sticks_out_on_a_small_screen(pages):
    browser = pages.open("blocks_of_a_run")
    browser.resize(390, 844)
    browser.settle()
    browser.settle()
    click(browser, point(browser, "blocks-canvas", 60, 0.98))
    has(text_of(browser, TEXT), "64.00 MiB")
    equal(browser.run("document.documentElement.scrollWidth"), 390)
    near(browser.run("[blocks.left, blocks.right]"), browser.run(
        "[timeline.chart.chartArea.left, timeline.chart.chartArea.right]"), 0)


JOB = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(),
                          torch.nn.Linear(2048, 512)).cuda()
adam = torch.optim.AdamW(net.parameters())
for step in range(12):
    x = torch.randn(64, 512, device="cuda")
    net(x).square().mean().backward()
    adam.step()
    adam.zero_grad()
"""
HELD = """page.entries[0].device.history.points.map(p => {
  const {born, died, bytes} = blocks.data;
  let sum = 0;
  born.forEach((event, i) => {
    if (event <= p.event && (died[i] < 0 || died[i] > p.event))
      sum += bytes[i];
  });
  return sum - p.allocated;
}).filter(Boolean).length"""


@test
def a_real_run_folds_its_steps(pages):
    python = VENV / "bin" / "python"
    if not python.exists():
        raise Skip(f"there is no {python}")
    path, script = pages.folder / "job.html", pages.folder / "steps.py"
    script.write_text(JOB)
    subprocess.run([BUILD / "bin" / "memsim", "run", "-q", "--stacks", "all",
                    "--html", path, "--", python, script], check=True)
    browser = pages.show(path)
    names = browser.run("axis.runs.map(runName)")
    equal(names[0], "before the first step")
    if not any(name.endswith(", alike") for name in names) or len(names) > 6:
        raise AssertionError(names)
    equal(sum(browser.run("axis.runs.map(r => r.count)")), 13)
    equal(browser.run("Math.max(...axis.points.map(p => p.allocated))"),
          browser.run("page.entries[0].device.peak_allocated_bytes"))
    # The blocks are all that was allocated, at each point.
    equal(browser.run(HELD), 0)
    browser.click("#blocks-search")
    browser.type("steps.py:8")
    found = browser.run("blocks.marks.size")
    if not found:
        raise AssertionError("no block has a stack with the script's line")
    # The flame graph is saved as it is shown.
    shown = browser.run("document.querySelectorAll('#stacks-graph button')"
                        ".length")
    saved = {}
    for files in downloads(pages, browser, *(
            f"#stacks .title .zoom:last-child button:nth-child({n})"
            for n in (1, 2))):
        saved.update(files)
    equal(saved["memsim-stacks.png"][:8], b"\x89PNG\r\n\x1a\n")
    root = xml.etree.ElementTree.fromstring(saved["memsim-stacks.svg"])
    equal(sum(e.tag.endswith("}text") for e in root.iter()), shown)
    has(" ".join(root.itertext()), "all", "steps.py:8")
    browser.requests[:] = [u for u in browser.requests
                           if not u.startswith(("blob:", "data:"))]


def test_all():
    sample.blocks_of_a_run = sample_memory.blocks_of_a_run
    test_page.TESTS[:] = TESTS
    return test_page.main()


if __name__ == "__main__":
    sys.exit(test_all())
