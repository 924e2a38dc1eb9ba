#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a job of many ranks, its warnings, tables and advice in a real
browser; and the page of a snapshot."""
import os
import subprocess
import sys

import sample
import sample_ranks
import test_page
from test_page import BUILD, TIP, VENV, Skip, choose, equal, has, text_of
from test_steps import table

TESTS = []
FIRST_PAINT_MS = 2000
SETTLED_MS = 20000  # of a machine that others use, too


def test(function):
    TESTS.append(function)
    return function


def texts(browser, selector):
    return browser.run(f"[...document.querySelectorAll({selector!r})].map("
                       "e => e.innerText)")


@test
def a_class_names_the_ranks_that_it_stands_for(pages):
    browser = pages.open("ranks")
    equal(texts(browser, "#card-list button span:first-child"),
          ["Rank 0, GPU 0", "Ranks 1\N{EN DASH}14, as rank 1",
           "Rank 15, GPU 7"])
    equal(text_of(browser, "device").split("\n"),
          texts(browser, "#card-list button span:first-child"))
    has(text_of(browser, "ranks-hint"), "16 ranks, of which 3")
    has(text_of(browser, "sentence"), "on the fullest GPU")


@test
def it_opens_at_the_slowest_rank(pages):
    browser = pages.open("ranks")
    equal(browser.run("page.entries[page.shown].rank"), 15)
    equal(text_of(browser, "steptime-title"), "A step of rank 15")
    has(text_of(browser, "steptime-figures"), "250.0 ms",
        "80% band: 125.0 ms to 500.0 ms")
    equal(text_of(browser, "steptime-whose"), "")
    browser.click("#card-list button:first-child")
    equal(text_of(browser, "steptime-title"), "A step of rank 0")
    has(text_of(browser, "steptime-figures"), "200.0 ms")
    has(text_of(browser, "steptime-whose"),
        "slowest rank, 15: 250.0 ms")
    has(text_of(browser, "path-title"), "rank 15, the slowest")


@test
def each_rank_has_its_own_share_of_the_sms(pages):
    browser = pages.open("ranks")
    browser.click("#card-list button:nth-child(2)")
    equal(browser.run("steps.fills.windows"), [0.25, 0.75])
    browser.click("#card-list button:first-child")
    equal(browser.run("steps.fills"), None)


@test
def out_of_memory_comes_before_the_slowest(pages):
    browser = pages.open("oom_of_ranks")
    equal(browser.run("page.entries[page.shown].rank"), 1)


@test
def the_table_of_ranks_is_the_summarys(pages):
    browser = pages.open("ranks")
    equal(table(browser, "ranks"), [
        ["0", "200.0 ms", "80.0 ms", "20.0 ms", "20.0 ms", "40.0 ms",
         "\N{EN DASH}", "60.0 ms"],
        ["1\N{EN DASH}14", "210.0 ms", "84.0 ms", "21.0 ms", "21.0 ms",
         "42.0 ms", "\N{EN DASH}", "63.0 ms"],
        ["15 (slowest)", "250.0 ms", "100.0 ms", "25.0 ms", "25.0 ms",
         "50.0 ms", "\N{EN DASH}", "75.0 ms"]])
    browser.click("#ranks-table tbody tr:nth-child(2) button")
    equal(browser.run("page.entries[page.shown].rank"), 1)
    equal(text_of(browser, "steptime-title"),
          "A step of ranks 1\N{EN DASH}14, as rank 1")
    has(text_of(browser, "steptime-legend"), "Waits for other ranks")


@test
def nothing_of_a_rank_is_left_out_without_a_word(pages):
    browser = pages.open("ranks")
    has(text_of(browser, "left-out"), "this rank's timeline of a step",
        "--kineto")
    equal(browser.run("find('steps').hidden"), True)
    choose(browser, "device", 1)
    equal(browser.run("find('left-out').hidden"), True)
    equal(browser.run("find('steps').hidden"), False)


@test
def throughput_is_of_a_gpu_and_of_the_job(pages):
    browser = pages.open("ranks")
    has(text_of(browser, "steptime-figures"), "Throughput of a GPU",
        "10,880 tokens/s", "174,100 tokens/s by 16 ranks, if each has its own "
        "batch")


@test
def what_is_not_sure_is_said(pages):
    browser = pages.open("ranks")
    has(text_of(browser, "steptime-warning"),
        "waits for the CPU in 20.0% of the step", "187.5 ms",
        "--host-speed 0")
    has(text_of(browser, "steptime-basis"), "10% a few microseconds each",
        "6% of the operations have no cost model")
    has(table(browser, "collectives")[0], "±31.0%")
    has(text_of(browser, "collectives-warnings"),
        "20 of 25 calls: from the link levels" + sample.NASTY[0])
    has(text_of(browser, "note-list"), "a note",
        "guess: train.py:3 (aten::nonzero): a mask", "2 times")
    equal(browser.run("(a => !a.hidden)(document.querySelector("
                      "'#links [href=\"#notes\"]'))"), True)


OUTSIDE = """(() => {
  const box = find("%s-scroll").getBoundingClientRect();
  return [...find("%s-table").querySelectorAll("th, tbody tr:nth-child(2) td")]
    .filter((cell) => cell.getBoundingClientRect().right > box.right + 1)
    .map((cell) => cell.textContent);
})()"""


@test
def tables_fit_a_usual_screen(pages):
    browser = pages.open("ranks")
    browser.resize(1440, 900)
    browser.settle()
    for name in ("things", "modules", "ranks", "collectives", "holders"):
        equal(browser.run(OUTSIDE % (name, name)), [])
    row = table(browser, "things")[1]
    equal(row[:3], ["5.00 MiB", "3", "bfloat16 16×1024×32000"])
    equal(row[5:], ["activation", "/job/train.py:31"])
    equal(table(browser, "things")[0][5], "CUDA context")
    equal(browser.run("(n => n.scrollWidth <= n.clientWidth)("
                      "document.getElementById('links'))"), True)


@test
def lists_of_modules_are_one_row_that_opens(pages):
    browser = pages.open("ranks")
    rows = browser.run(test_page.ROWS)
    equal(rows[0][0], "▸ model.blocks.* (3)")
    has(text_of(browser, "found"), "rows of")
    whole = browser.run("tables.modules.shown[0].peak")
    equal(whole, browser.run("sum(tables.modules.shown[0].inside.map("
                             "r => r.peak))"))
    browser.click("#modules-table tbody tr:first-child button")
    rows = browser.run(test_page.ROWS)
    equal(rows[0][0], "▾ model.blocks.* (3)")
    equal([row[0] for row in rows[1:4]],
          [f"model.blocks.{i}" for i in (2, 0, 1)])
    browser.click("#fold")
    names = {row[0] for row in browser.run(test_page.ROWS)}
    equal("model.blocks.2" in names, True)
    equal(any("*" in name for name in names), False)


@test
def the_map_has_a_list_once(pages):
    browser = pages.open("tree")
    labels = "treemap.nodes.filter(isModule).map(n => n.data.label).sort()"
    crumbs = "[...find('crumbs').querySelectorAll('button')].map(" \
        "b => b.textContent)"
    equal(browser.run(labels),
          ["(no module)", "Net", "all", "head", "layers.*", "mlp"])
    browser.click("#treemap-canvas", 0.02, 0.5)
    equal(browser.run(crumbs), ["all", "Net", "layers.*"])
    browser.click("#crumbs button")
    browser.click("#treemap-canvas", 0.02, 0.02)
    equal(browser.run(crumbs), ["all", "Net"])
    browser.click("#fold")
    equal(browser.run(crumbs), ["all"])
    has(browser.run(labels), "0", "11", "layers")
    choose_module(browser, "layers.7")
    equal(browser.run(crumbs), ["all", "Net", "layers", "7"])


def choose_module(browser, name):
    """By the search, as a user does who knows its name."""
    browser.run("setFold(true)")
    browser.click("#search")
    browser.type(name)
    browser.run("findInMap(tables.modules.shown[0].key)")
    browser.settle()


@test
def advice_shows_what_is_saved(pages):
    browser = pages.open("advised")
    wide = browser.run("[...document.querySelectorAll('#advice .meter i')].map("
                       "i => i.style.width)")
    equal(wide, ["100%", "25%"])
    text = text_of(browser, "advice-list")
    has(text, "Checkpointing of layers saves", "Costs about 14.0 ms a step",
        "In the script: checkpoint(block, x)", "Its forward runs again.",
        "costs in time is not known: it has other kernels")
    has(text_of(browser, "advice-hint"),
        "Basis: the recorded allocations, replayed.")
    equal("replayed" in text, False)


@test
def the_whole_command_line_is_there(pages):
    browser = pages.open("ranks")
    want = ("memsim run --gpu h100 --nnodes 2 --nproc-per-node 8 -- python "
            "'train it.py' '--name=it'\\''s' ")
    equal(text_of(browser, "command")[:len(want)], want)
    read = subprocess.run(["sh", "-c", "printf '%s\\n' " + browser.run(
        "commandOf(page.result)")], capture_output=True, text=True, check=True)
    equal(read.stdout.split("\n"),
          [*"\n".join(sample_ranks.COMMAND).split("\n"), ""])


@test
def many_classes_are_quick(pages):
    browser = pages.open("classes")
    timing = browser.run("(t => [t.responseEnd, t.loadEventEnd])(performance."
                         "getEntriesByType('navigation')[0])")
    paint = browser.run("performance.getEntriesByName("
                        "'first-contentful-paint')[0].startTime")
    print(f"{os.path.getsize(pages.folder / 'classes.html') >> 20} MiB: "
          f"painted after {paint:.0f} ms, loaded after {timing[1]:.0f} ms")
    if paint > FIRST_PAINT_MS or timing[1] > SETTLED_MS:
        raise AssertionError(f"{paint:.0f} ms, {timing[1]:.0f} ms")
    equal(len(texts(browser, "#card-list button")), 64)
    has(text_of(browser, "ranks-hint"), "1,024 ranks, of which 64")
    equal(browser.run("tables.ranks.rows.length"), 64)


SNAPSHOT_JOB = """import torch
def make(count):
    return [torch.empty(8 << 20, device="cuda") for _ in range(count)]
torch.cuda.memory._record_memory_history()
kept = make(3)
gone = make(5)
del gone
more = make(1)
"""


@test
def a_snapshot_has_memory_over_time_and_stacks(pages):
    python = VENV / "bin" / "python"
    if not python.exists():
        raise Skip(f"there is no {python}")
    folder = pages.folder
    (folder / "snap.py").write_text(SNAPSHOT_JOB)
    memsim = BUILD / "bin" / "memsim"
    subprocess.run([memsim, "run", "-q", "--stacks", "all", "--snapshot",
                    folder / "snap.pickle", "-o", folder / "snap-run", "--gpu",
                    "l4", "--html", folder / "run.html", "--", python,
                    folder / "snap.py"], check=True)
    subprocess.run([memsim, "replay", "-q", folder / "snap.pickle", "--html",
                    folder / "snap.html"], check=True)
    browser = pages.show(folder / "snap.html")
    equal(browser.run("[timeline.most, axis.points.length > 9]"),
          [8 * 32 << 20, True])
    equal(browser.run("Math.max(...timeline.all.map(p => p.allocated))"),
          browser.run("page.entries[0].device.peak_allocated_bytes"))
    equal(browser.run("find('axis').querySelector('[value=steps]').hidden"),
          True)
    browser.hover("#timeline-canvas", 0.5, 0.5)
    has(browser.run(TIP), "in use", "allocated")
    has(browser.run("blocks.lives.map(blockStack).join('\\n')"),
        "snap.py:3 <listcomp>" if sys.version_info < (3, 12) else "snap.py:3",
        "snap.py:5 <module>", "snap.py:8 <module>")
    equal(browser.run("new Set(blocks.lives.map(l => l.color)).size > 1"),
          True)
    has("\n".join(browser.run("[...find('stacks-graph').children].map("
                              "b => b.ariaLabel)")),
        "make snap.py:3", "<module> snap.py:6, 160.0 MiB")
    browser = pages.show(folder / "run.html")
    has(text_of(browser, "command"), "memsim run -q --stacks all --snapshot",
        "--gpu l4")
    subprocess.run([memsim, "report", "-q", folder / "snap-run", "--html",
                    folder / "report.html"], check=True)
    browser = pages.show(folder / "report.html")
    has(text_of(browser, "command"), "memsim run -q --stacks all --snapshot",
        "--gpu l4")


def main():
    for name in ("ranks", "classes", "advised", "tree"):
        setattr(sample, name, getattr(sample_ranks, name))
    sample.oom_of_ranks = lambda: {**sample_ranks.ranks(), **{
        key: sample.oom()[key] for key in ("verdict", "ranks")}}
    test_page.TESTS[:] = TESTS
    return test_page.main()


if __name__ == "__main__":
    sys.exit(main())
