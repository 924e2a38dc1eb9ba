# SPDX-License-Identifier: Apache-2.0
"""A marker for tests that must fit on a GPU:

    @pytest.mark.memsim(gpu="l4", max_used="90%")
    def test_training_step():
        train(steps=2)

pytest runs a marked test in a process of its own, under `memsim run`. It fails
if the test fails, if memory runs out, or if a limit is exceeded. Limits:
max_used, max_reserved, max_allocated, each a percentage of the GPU ("90%"), a
size ("20GiB") or a number of bytes. Other keywords are options of memsim run.
Under memsim the test runs as any other."""
import math
import os
import re
import sys
import tempfile
import time
import xml.etree.ElementTree

import pytest

from memsim import api

LIMITS = ("max_used", "max_reserved", "max_allocated")
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10,
         "MiB": 2**20, "GiB": 2**30}


def pytest_addoption(parser):
    group = parser.getgroup("memsim")
    group.addoption("--no-memsim", action="store_true",
                    help="run tests marked memsim as ordinary tests")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "memsim(gpu, max_used, max_reserved, max_allocated, "
        "**options): run this test on simulated GPUs and check its memory")


def limit_bytes(limit, capacity):
    """The bytes of "90%", "20GiB" or 123."""
    number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
    if number and math.isfinite(limit):
        return int(limit)
    text = str(limit).strip()
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(%|[A-Za-z]*)", text)
    if match and match[2] == "%":
        return int(float(match[1]) / 100 * capacity)
    if match and match[2] in UNITS:
        return int(float(match[1]) * UNITS[match[2]])
    raise ValueError(f"{limit!r}: a limit is a percentage ('90%'), a size "
                     "('20GiB') or a number of bytes")


def over_limits(result, marks):
    """What exceeds a limit, one line each."""
    lines = []
    for name in LIMITS:
        if marks.get(name) is None:
            continue
        kind = name[len("max_"):]
        got = getattr(result, f"peak_{kind}_bytes")
        limit = limit_bytes(marks[name], result.capacity_bytes)
        if got > limit:
            lines.append(f"peak {kind} is {got / 2**30:.2f} GiB "
                         f"({100 * got / result.capacity_bytes:.1f}%), past "
                         f"{name}={marks[name]!r} ({limit / 2**30:.2f} GiB)")
    return lines


def _plugin_name(config):
    """What this module is loaded by: the entry point of an installed wheel, or
    `-p`. pytest refuses to load it by both."""
    return config.pluginmanager.get_name(sys.modules[__name__])


def _inner_command(item, xml_path):
    """pytest again, for this test only. It writes the outcome to XML_PATH."""
    config = item.config
    node = f"{item.path}::{item.nodeid.split('::', 1)[1]}"
    words = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short",
             "-p", "no:cacheprovider", "-p", _plugin_name(config),
             f"--junitxml={xml_path}",
             "--rootdir", str(config.rootpath), "-o", "addopts="]
    if config.inipath:
        words += ["-c", str(config.inipath)]
    return words + [node]


def _inner_outcome(xml_path):
    """(outcome, reason) of the one test in XML_PATH: "passed", "failed",
    "skipped" or "xfailed"; (None, None) where pytest did not come to its end."""
    try:
        cases = list(xml.etree.ElementTree.parse(xml_path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return None, None
    if len(cases) != 1:
        return None, None
    for each in cases[0]:
        if each.tag in ("failure", "error"):
            return "failed", each.get("message")
        if each.tag == "skipped":
            kind = "xfailed" if each.get("type") == "pytest.xfail" else "skipped"
            return kind, each.get("message") or "under memsim"
    return "passed", None


def _run(item, options):
    """The memsim.Result of the marked test ITEM, its outcome and the reason."""
    with tempfile.TemporaryDirectory(prefix="memsim-") as scratch:
        path = os.path.join(scratch, "outcome.xml")
        result = api.run(_inner_command(item, path),
                         cwd=str(item.config.rootpath), **options)
        return result, *_inner_outcome(path)


def _check(item, mark):
    """(outcome, text) of the test ITEM with this MARK."""
    marks = dict(mark.kwargs)
    if mark.args:
        raise ValueError(f"memsim({mark.args[0]!r}): the marker takes keywords "
                         f"only; write memsim(gpu={mark.args[0]!r})")
    for name in LIMITS:  # an unreadable limit is an error before the run
        if marks.get(name) is not None:
            limit_bytes(marks[name], 1)
    options = {k: v for k, v in marks.items() if k not in LIMITS}
    if "steps" not in options: # a test is the whole job
        options.setdefault("whole_job", True)
    result, outcome, reason = _run(item, options)
    for kind in ("used", "reserved", "allocated"):
        item.user_properties.append((f"memsim_peak_{kind}_bytes",
                                     getattr(result, f"peak_{kind}_bytes")))
    told = f"{result.stdout}\n{result.stderr}".strip()
    if result.status == api.OUT_OF_MEMORY:
        return "failed", f"out of memory on {result.gpu['device_name']}\n{told}"
    if outcome is None:
        return "failed", f"the test ended its process\n{told}"
    if outcome != "failed" and (result.command_status or result.status):
        return "failed", told
    if outcome != "passed":
        return outcome, told if outcome == "failed" else reason
    if not result.devices:
        return "failed", f"the test used no GPU\n{told}"
    over = over_limits(result, marks)
    return ("failed", "\n".join(over + ["", told])) if over else ("passed", told)


def _report(item, when, outcome, text, start):
    longrepr = None
    xfailed = outcome == "xfailed"
    outcome = "skipped" if xfailed else outcome
    if outcome == "failed":
        longrepr = text
    elif outcome == "skipped":
        longrepr = (str(item.path), item.location[1], text)
    end = time.time()
    report = pytest.TestReport(
        nodeid=item.nodeid, location=item.location,
        keywords={k: 1 for k in item.keywords}, outcome=outcome,
        longrepr=longrepr, when=when, duration=end - start, start=start,
        stop=end, user_properties=item.user_properties,
        sections=[("memsim", text)] if outcome == "passed" and when == "call"
        else [])
    if xfailed:
        report.wasxfail = text
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    mark = item.get_closest_marker("memsim")
    if not mark or os.environ.get("MEMSIM") or item.config.option.no_memsim:
        return None
    if item.get_closest_marker("skip"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid,
                                       location=item.location)
    start = time.time()
    try:
        outcome, text = _check(item, mark)
    except (api.MemsimError, ValueError, TypeError) as error:
        outcome, text = "failed", str(error)
    except pytest.fail.Exception as error:  # a time-out, by pytest-timeout
        outcome, text = "failed", str(error)
    except pytest.skip.Exception as error:
        outcome, text = "skipped", str(error)
    for when, each in (("setup", "passed"), ("call", outcome),
                       ("teardown", "passed")):
        item.ihook.pytest_runtest_logreport(
            report=_report(item, when, each, text, start))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid,
                                        location=item.location)
    return True
