#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of --html in a real browser: with results that are made up, and
with a real run's where there is a PyTorch in MEMSIM_VENV."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import devtools
import sample

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MEMSIM_BUILD", ROOT / "build"))
VENV = pathlib.Path(os.environ.get("MEMSIM_VENV", ROOT / ".venv"))
TEMPLATE = BUILD / "gen" / "report.html"
FIRST_PAINT_MS = 2000
TESTS = []

TIP = "document.getElementById('tip').hidden ? '' : " \
    "document.getElementById('tip').innerText"
ROWS = "[...document.querySelectorAll('#modules-table tbody tr')].map(" \
    "row => [...row.cells].map(cell => cell.textContent))"
BACK = "getComputedStyle(document.body.parentElement).backgroundColor"


class Skip(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def has(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {str(text)[:2000]!r}")


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


class Pages:
    """The browser, and the page of each sample as a file."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.template = TEMPLATE.read_text(encoding="utf-8")
        self.browser = devtools.Browser()

    def open(self, name):
        path = self.folder / f"{name}.html"
        if not path.exists():
            path.write_text(sample.page(self.template,
                                        getattr(sample, name)()),
                            encoding="utf-8")
        return self.show(path)

    def show(self, path):
        self.url = path.as_uri()
        self.browser.problems.clear()
        self.browser.requests.clear()
        self.browser.resize(1200, 900)
        self.browser.open(self.url)
        self.browser.settle()
        return self.browser

    def check(self):
        """Nothing was complained of, and nothing but the page was asked for."""
        equal(self.browser.problems, [])
        equal(self.browser.requests, [self.url])
        equal(self.browser.run("document.querySelectorAll('main script, "
                               "main img, main b b').length"), 0)
        equal(self.browser.run("document.getElementById('failure').hidden"),
              True)


def text_of(browser, name):
    return browser.run(f"document.getElementById({name!r}).innerText")


@test
def the_verdict_and_the_story_come_first(pages):
    browser = pages.open("oom")
    equal(text_of(browser, "verdict"), "Out of memory")
    equal(text_of(browser, "sentence"),
          "It does not fit: at least 200.0 MiB short")
    has(text_of(browser, "command"), "train.py", sample.NASTY[0])
    has(text_of(browser, "ooms"), "PyTorch asked for 500.0 MiB in model.head",
        "300.0 MiB of the GPU was free", "The program ended there")
    has(text_of(browser, "advice-list"), "saves 100.00 MiB", "fits",
        "1000.0 MiB → 900.0 MiB (−10.0%)", "memsim replay", "Replayed")
    has(browser.run("document.title"), "Out of memory", "A sample card")


@test
def the_card_can_be_chosen(pages):
    browser = pages.open("oom")
    equal(browser.run("document.getElementById('device').value"), "1")
    full = text_of(browser, "figures")
    browser.click("#card-list button:first-child")
    equal(browser.run("document.getElementById('device').value"), "0")
    equal(browser.run("document.getElementById('story').hidden"), True)
    if text_of(browser, "figures") == full:
        raise AssertionError("the figures are the other card's")
    choose(browser, "device", 1)
    equal(text_of(browser, "figures"), full)


@test
def hovering_tells_figures(pages):
    browser = pages.open("oom")
    browser.hover("#bar i")
    has(browser.run(TIP), "parameter", "MiB", "of the GPU")
    browser.hover("#timeline-canvas", 0.5, 0.5)
    has(browser.run(TIP), "step 1", "activation", "allocated", "reserved")
    browser.hover("#treemap-canvas", 0.05, 0.5)
    has(browser.run(TIP), "model.blocks.", "of what is shown")
    line = browser.run("([...map.lines.keys()].find(y => y > map.height / 2) "
                       "+ 5) / map.height")
    browser.hover("#segments-canvas", 0.01, line)
    has(browser.run(TIP), "segment", "stream")
    browser.hover("h1")
    equal(browser.run(TIP), "")


@test
def the_table_sorts_and_searches(pages):
    browser = pages.open("oom")
    browser.click("#fold")
    rows = browser.run(ROWS)
    equal(rows[0][:2], ["model.blocks.2", "50.50 MiB"])
    browser.click("#modules-table th:nth-child(2) button")
    equal(browser.run(ROWS)[0][1], "1.00 MiB")
    equal(browser.run("document.querySelector('#modules-table th:nth-child(2)'"
                      ").ariaSort"), "ascending")
    browser.click("#modules-table th:nth-child(1) button")
    names = [row[0] for row in browser.run(ROWS) if row[0]]
    equal(names, sorted(names))
    equal(browser.run("['l.10', 'l.2', 'l.2.b', 'k'].sort(compareNames)"),
          ["k", "l.2", "l.2.b", "l.10"])
    browser.click("#search")
    browser.type("ATTN blocks.3")
    equal(sorted(row[0] for row in browser.run(ROWS)),
          ["model.blocks.3.attn.out", "model.blocks.3.attn.qkv"])
    has(text_of(browser, "found"), "2 rows of")
    browser.click("#modules-table td button")
    has(text_of(browser, "crumbs"), "model.blocks.3")
    browser.click("#search")
    browser.type("no such")
    has(text_of(browser, "found"), "No module")


def choose(browser, name, value):
    browser.run("(e => { e.value = '%s'; e.dispatchEvent(new Event('change'));"
                "})(document.getElementById('%s'))" % (value, name))


@test
def modules_are_shown_at_the_end_of_a_phase(pages):
    browser = pages.open("oom")
    equal(text_of(browser, "moment").split("\n"),
          ["End of step 0, forward", "End of step 1, forward",
           "End of step 2, optimizer"])
    equal(browser.run("document.getElementById('moment').value"), "2")
    browser.click("#fold")
    rows = browser.run(ROWS)
    choose(browser, "moment", 1)
    equal([row[6] for row in browser.run(ROWS)[:5]],
          [row[1] for row in rows[:5]])
    browser.click("#modules-table th:nth-child(7) button")
    choose(browser, "moment", 2)
    equal(browser.run(ROWS)[0][6],
          browser.run("formatBytes(Math.max(...page.entries[1].device.modules"
                      ".map(m => m.phase_end_bytes[2])))"))


@test
def the_map_zooms(pages):
    browser = pages.open("oom")
    equal(text_of(browser, "crumbs"), "all")
    browser.click("#treemap-canvas", 0.02, 0.1)
    crumbs = text_of(browser, "crumbs")
    has(crumbs, "all", "model.blocks.")
    browser.hover("#treemap-canvas", 0.5, 0.5)
    has(browser.run(TIP), "model.blocks.")
    browser.click("#crumbs button")
    equal(text_of(browser, "crumbs"), "all")


def focus(browser, name):
    browser.run(f"document.getElementById({name!r}).focus()")
    browser.settle()


def press(browser, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key=key,
                         code=key)
    browser.settle()


@test
def the_keyboard_reaches_everything(pages):
    browser = pages.open("oom")
    reached = set()
    for _ in range(60):
        browser.send("Input.dispatchKeyEvent", type="keyDown", key="Tab",
                     code="Tab", windowsVirtualKeyCode=9)
        reached.add(browser.run("document.activeElement.id"))
    wanted = {"device", "theme", "span", "timeline-canvas", "treemap-canvas",
              "search", "modules-scroll", "segments-canvas", "phases-scroll"}
    equal(wanted - reached, set())
    focus(browser, "search")
    browser.type("blocks.3")
    press(browser, "Enter")
    has(text_of(browser, "crumbs"), "model.blocks.3")
    browser.run("enterModule(treemap.root)")
    focus(browser, "treemap-canvas")
    press(browser, "ArrowRight", "Enter")
    has(text_of(browser, "crumbs"), "model.blocks.")
    press(browser, "Escape")
    equal(text_of(browser, "crumbs"), "all")
    focus(browser, "timeline-canvas")
    press(browser, "ArrowRight")
    has(browser.run(TIP), "allocated")
    focus(browser, "segments-canvas")
    press(browser, "ArrowRight", "ArrowRight")
    has(browser.run(TIP), "segment")


@test
def light_and_dark(pages):
    browser = pages.open("oom")
    light = browser.run(BACK)
    browser.click("#theme")
    dark = browser.run(BACK)
    if dark == light:
        raise AssertionError(f"both are {light}")
    browser.open(pages.url)
    equal(browser.run(BACK), dark)  # it is remembered
    browser.click("#theme")
    equal(browser.run(BACK), light)
    browser.run("localStorage.clear()")
    browser.requests.clear()
    browser.resize(1200, 900, "dark")
    browser.open(pages.url)
    equal(browser.run(BACK), dark)  # as the system has it


CONTRASTS = """(() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) =>
    c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0.99)
        return color;
    }
  };
  const ratio = (e) => {
    const [a, b] = [light(parse(getComputedStyle(e).color)),
      light(behind(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  return [...document.querySelectorAll("body *")].filter((e) =>
    e.offsetParent && [...e.childNodes].some((n) =>
      n.nodeType === 3 && n.data.trim()))
    .map((e) => [ratio(e), e.tagName, e.id, e.textContent.slice(0, 30)])
    .filter(([r]) => r < 4.5);
})()"""


@test
def text_can_be_read(pages):
    """WCAG 2.1, 1.4.3: a contrast of 4.5 at least, in both themes."""
    browser = pages.open("oom")
    equal(browser.run("document.documentElement.dataset.theme"), "light")
    equal(browser.run(CONTRASTS), [])
    browser.resize(1200, 900, "dark")
    browser.settle()
    equal(browser.run("document.documentElement.dataset.theme"), "dark")
    equal(browser.run(CONTRASTS), [])


@test
def hostile_names_are_text(pages):
    browser = pages.open("oom")
    has(text_of(browser, "note-list"), sample.NASTY[1])
    for name in sample.NASTY:
        shown = "".join(f"\\u{ord(c):04x}" if c < " " or c in
                        "\u2028\u2029\u202e" else c for c in name)[:40]
        browser.run("(e => { e.value = ''; e.focus(); })("
                    "document.getElementById('search'))")
        browser.type(name[:40].split("\n")[0])
        names = [row[0] for row in browser.run(ROWS)]
        if not any(row.startswith(shown) for row in names):
            raise AssertionError(f"{name[:40]!r} is not in {names}")


@test
def figures_alone_make_a_page(pages):
    browser = pages.open("bare")
    equal(text_of(browser, "verdict"), "Fits")
    has(text_of(browser, "legend"), "allocated", "CUDA context")
    equal(browser.run("[...document.querySelectorAll('#links a')].filter("
                      "a => !a.hidden).map(a => a.hash)"), ["#overview", "#notes"])


@test
def the_largest_page_is_quick(pages):
    start = time.monotonic()
    browser = pages.open("large")
    took = time.monotonic() - start
    paint = browser.run("performance.getEntriesByName("
                        "'first-contentful-paint')[0].startTime")
    print(f"{os.path.getsize(pages.folder / 'large.html') >> 20} MiB: painted "
          f"after {paint:.0f} ms, made and settled after {took:.1f} s")
    if paint > FIRST_PAINT_MS:
        raise AssertionError(f"first paint after {paint:.0f} ms")
    has(text_of(browser, "modules-more"), "990,000 more are left out")
    has(text_of(browser, "treemap-more"), "990,000 smaller")
    has(text_of(browser, "left-out"), "things at peak", "--json")
    equal(browser.run("timeline.points.length <= 2000"), True)
    browser.click("#fold")
    browser.run("document.getElementById('modules-scroll').scrollTop = 1e5")
    browser.settle()
    count = len(browser.run(ROWS))
    if not 10 < count < 60:
        raise AssertionError(f"{count} rows are drawn")


@test
def nothing_sticks_out_on_a_small_screen(pages):
    browser = pages.open("oom")
    browser.resize(390, 844)
    browser.settle()
    equal(browser.run("document.documentElement.scrollWidth"), 390)
    equal(browser.run("[...document.querySelectorAll('main h1, main h2, "
                      "main p, main li')].filter(e => e.offsetParent && "
                      "e.scrollWidth > e.clientWidth + 1).map(e => "
                      "e.id || e.textContent.slice(0, 40))"), [])


SCRIPT = """
import torch
names = %r
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in names:
            self.add_module(name, torch.nn.Linear(256, 256))
    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x
net = Net().cuda()
adam = torch.optim.Adam(net.parameters())
for step in range(2):
    net(torch.ones(64, 256, device="cuda")).sum().backward()
    adam.step()
    adam.zero_grad()
torch.empty(200 << 30, device="cuda")
"""


STACKS_JOB = """import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1
big = torch.empty(64 << 20, device="cuda")
kept = Net()(big[:8 << 20])
"""


@test
def stacks_can_be_looked_into(pages):
    python = VENV / "bin" / "python"
    if not python.exists():
        raise Skip(f"there is no {python}")
    path, script = pages.folder / "stacks.html", pages.folder / "job.py"
    script.write_text(STACKS_JOB)
    subprocess.run([BUILD / "bin" / "memsim", "run", "-q", "--stacks", "all",
                    "--html", path, "--", python, script], check=True)
    browser = pages.show(path)
    frames = "[...document.querySelectorAll('#stacks-graph button')].map(" \
        "b => b.ariaLabel)"
    equal(browser.run(frames)[:4],
          ["all, 288.0 MiB", "<module> job.py:5, 256.0 MiB",
           "aten::empty, 256.0 MiB", "<module> job.py:6, 32.00 MiB"])
    has(browser.run(frames)[4], "forward job.py:4, 32.00 MiB")
    browser.click("#stacks-graph button:nth-child(4)")
    has(text_of(browser, "stacks-path"), "<module> job.py:6", "11.1%")
    equal(browser.run(frames)[2], "forward job.py:4, 32.00 MiB")
    browser.click("#stacks-graph button:nth-child(2)")
    equal(len(browser.run(frames)), 6)
    equal(text_of(browser, "stacks-path"), "")
    browser.hover("#stacks-graph button:nth-child(2)")
    has(browser.run(TIP), "job.py:5 <module>", "88.9% of the peak")
    # A click on a block of the map shows its stack.
    equal(browser.run("find('segments-stack').hidden"), True)
    browser.click("#segments-canvas", 0.02, 0.3)
    has(text_of(browser, "segments-stack"), "256.0 MiB", "job.py:5 <module>",
        "operator aten::empty")
    browser.resize(390, 800)
    equal(browser.run("document.documentElement.scrollWidth"), 390)
    browser.resize(1200, 900)


@test
def a_real_run_with_hostile_names(pages):
    """What PyTorch takes for a module's name: anything without a dot."""
    python = VENV / "bin" / "python"
    if not python.exists():
        raise Skip(f"there is no {python}")
    names = [name for name in sample.NASTY if "." not in name]
    path = pages.folder / "real.html"
    done = subprocess.run(
        [BUILD / "bin" / "memsim", "run", "--html", path, "--", python, "-c",
         SCRIPT % names], capture_output=True, text=True, check=False)
    equal(done.returncode, 120)
    browser = pages.show(path)
    has(text_of(browser, "ooms"), "asked for 800.0 GiB")
    for name in names:
        has(browser.run("page.entries[0].device.modules.map(m => m.name)"),
            name.replace("\0", "\\0"))
    browser.click("#search")
    browser.type("<img")
    equal(browser.run(ROWS)[0][0], sample.NASTY[1])
    browser.hover("#timeline-canvas")
    has(browser.run(TIP), "step ", "allocated")
    browser.hover("#treemap-canvas", 0.3, 0.5)
    has(browser.run(TIP), "of what is shown")


def run_all(pages):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for function in TESTS:
        try:
            function(pages)
            pages.check()
            counts["passed"] += 1
        except Skip as why:
            counts["skipped"] += 1
            print(f"SKIP {function.__name__}: {why}")
        except Exception:
            counts["failed"] += 1
            print(f"FAIL {function.__name__}\n{traceback.format_exc()}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return counts["failed"]


def main():
    why = None
    if not devtools.browser_path():
        why = "there is no Chromium; `tools/setup browser' installs it"
    elif not TEMPLATE.exists() or not TEMPLATE.stat().st_size:
        why = "memsim was built without the libraries of its page"
    if why:
        print(f"SKIP: {why}\n0 passed, 0 failed, {len(TESTS)} skipped")
        return 0
    folder = tempfile.mkdtemp(prefix="memsim-page.")
    pages = Pages(folder)
    try:
        return 1 if run_all(pages) else 0
    finally:
        pages.browser.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
