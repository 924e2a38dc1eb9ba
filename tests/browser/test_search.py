#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `memsim search --html' in a real browser."""
import pathlib
import sys
import tempfile

import devtools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "src/memsim")]
from search import page  # noqa: E402

EVIL = "</script><script>document.title = 'evil'</script>"


def trial(batch, name, **more):
    told = {"point": {"batch": str(batch), "name": name}, "verdict": "fits",
            "known_before": False, "on_front": False, "gpus": 1,
            "step_ns": batch * 10**7, "tokens_per_second": 1000.0 * batch,
            "peak_used_bytes": batch << 30, "headroom_bytes": 8 << 30,
            "capacity_bytes": 80 << 30}
    return {**told, **more}


def document():
    trials = [trial(1, "a", on_front=True), trial(2, EVIL), trial(4, "b"),
              {"point": {"batch": "8", "name": "b"}, "verdict": "oom",
               "known_before": False, "on_front": False, "gpus": 1,
               "objection": "out of memory"}]
    return {"search_schema": 1, "version": "1", "goal": "time",
            "cost_of": "1e+06 tokens", "strategy": "exhaustive", "points": 9,
            "names": ["batch", "name"], "best": trials[0], "trials": trials,
            "left_out": [], "ignored_names": []}


def check(browser):
    """Yields (what, whether it is so)."""
    def ask(script):
        return browser.run(script)
    yield "title of the best", "batch=1 name=a" in ask(
        "document.getElementById('best').textContent")
    yield "rows", ask("document.querySelectorAll('#rows tr').length") == 4
    yield "dots", ask("document.querySelectorAll('#scatter circle').length") \
        == 3
    yield "the front", ask(
        "document.querySelectorAll('#scatter .front').length") == 1
    yield "ways", ask("document.querySelectorAll('#ways .way').length") == 4
    yield "a text is a text", ask("document.title") == "memsim search"
    ask("document.querySelectorAll('#rows tr')[1].focus()")
    yield "a row shows its marks", ask(
        "document.querySelectorAll('.shown').length") == 2
    ask("(s => { s.value = 1; s.dispatchEvent(new Event('change')) })("
        "document.getElementById('across'))")
    yield "another axis", "tokens/s" in ask(
        "document.getElementById('scatter').textContent")
    yield "no fault, no request", not browser.problems and all(
        url.startswith(("file:", "data:")) for url in browser.requests)


def main():
    if not devtools.browser_path():
        print("SKIP: there is no Chromium; `tools/setup browser' installs it\n"
              "0 passed, 0 failed, 9 skipped")
        return 0
    passed = failed = 0
    browser = devtools.Browser()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "page.html")
        path.write_text(page.text(document()), encoding="utf-8")
        try:
            browser.open(path.as_uri())
            for what, holds in check(browser):
                passed, failed = passed + holds, failed + (not holds)
                if not holds:
                    print(f"FAIL: {what}: {browser.problems}")
        finally:
            browser.close()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
