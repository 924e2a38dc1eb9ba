#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memsim for coding agents, over stdin and stdout (Model Context Protocol).

`memsim mcp' starts it with the program memsim as its argument. Each answer is
JSON of at most TOTAL characters; what is left out is counted in it."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

TEXT = 300       # characters of one text
ROWS = 12        # of one list
TOTAL = 12000    # characters of one answer
TAIL = 2000      # of what a command printed
TIMEOUT_S = 900
GRACE_S = 5
INSTRUCTIONS = """memsim runs a CUDA training command without a GPU, and tells \
whether it fits, where memory goes and how long a step takes. Run two or three \
steps for memory, ten for times. Values that a GPU would compute are not known: \
losses are no results. Verdicts: fits, oom, grows, over-limit, failed, none, \
unknown. Keep a run (keep=DIR) to ask report, advise and diff about it."""


class Failure(Exception):
    """memsim made no report; the message says why."""


def end_job(job):
    """Ends JOB and what it started: memsim passes the signal on."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(job.pid, number)
            job.communicate(timeout=GRACE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        return


class Memsim:
    """The program, and the directory that its commands run in."""

    def __init__(self, program):
        self.program = program

    def start(self, words, cwd=None, timeout=TIMEOUT_S):
        """(status, stdout, stderr); nothing is left running."""
        job = subprocess.Popen([self.program, *words],
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", cwd=cwd,
                               start_new_session=True)
        try:
            out, err = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end_job(job)
            raise Failure(f"no end after {timeout} s: it was killed; run fewer "
                          "steps, or give a larger timeout_s") from None
        except BaseException:
            end_job(job)
            raise
        return job.returncode, out, err

    def report(self, directory, *options):
        """The whole report of a kept run."""
        status, out, err = self.start(
            ["report", "-q", "--json", "-", *options, directory])
        if not out.strip():
            raise Failure(tail(err) or f"memsim report: status {status}")
        return json.loads(out)


# --- cutting down ------------------------------------------------------------

def tail(text):
    return text if len(text) <= TAIL else "..." + text[-TAIL:]


def cut(value, rows, room=TEXT):
    """VALUE with ROWS rows of each list and the begin of each text."""
    if isinstance(value, str):
        return value if len(value) <= room else value[:room] + "..."
    if isinstance(value, dict):
        return {name: one if name == "edits" else  # a part would be wrong
                cut(one, rows, TAIL + 3 if name == "printed" else room)
                for name, one in value.items()}
    if isinstance(value, list):
        shown = [cut(one, rows, room) for one in value[:rows]]
        left = len(value) - len(shown)
        return shown + [f"... {left} more"] if left else shown
    return value


def answer(value):
    """VALUE as JSON, cut until it has at most TOTAL characters."""
    rows = ROWS
    text = json.dumps(cut(value, rows), ensure_ascii=False)
    while len(text) > TOTAL and rows > 1:
        rows //= 2
        text = json.dumps(cut(value, rows), ensure_ascii=False)
    if len(text) <= TOTAL:
        return text
    return json.dumps({"too_large": len(text), "begin": text[:TOTAL // 2],
                       "hint": "ask for a member of it"}, ensure_ascii=False)


def pick(value, *names):
    return {name: value[name] for name in names if name in value}


def advice_of(device):
    return [pick(a, "text", "fits", "saves_bytes", "of", "peak_used_bytes",
                 "change", "costs_ns", "time_unknown", "command")
            for a in device.get("advice", [])]


def device_of(rank, device):
    told = pick(device, "index", "capacity_bytes", "peak_used_bytes",
                "peak_reserved_bytes", "peak_allocated_bytes",
                "headroom_bytes", "ooms", "categories_at_peak", "peak")
    told["rank"], told["members"] = rank["rank"], rank.get("members")
    told["modules_at_peak"] = [
        pick(m, "name", "bytes") for m in device.get("modules_at_peak", [])]
    told["things_at_peak"] = [
        pick(t, "label", "bytes", "count", "dtype", "shape", "where")
        for t in device.get("things_at_peak", [])]
    if "advice" in device:
        told["advice"] = advice_of(device)
    return told


def worst(report):
    """The GPU that ran out of memory, or the fullest; with its rank."""
    devices = [(rank, device) for rank in report.get("ranks", [])
               for device in rank["devices"]]
    return max(devices, default=None, key=lambda each: (
        bool(each[1]["ooms"]),
        each[1]["peak_used_bytes"] / each[1]["capacity_bytes"]))


def summary(report):
    told = pick(report, "verdict", "exit_status", "command_status", "why",
                "needs_bytes", "gpu", "torch", "trace", "failed_allocations",
                "notes")
    time = report.get("time", {})
    if time:
        told["time"] = pick(time, "step_ns", "low_ns", "high_ns",
                            "keeps_up_ns", "slowest_rank", "mfu",
                            "throughput", "unknown")
        told["time"]["by_module"] = time.get("by_module", [])
    found = worst(report)
    if found:
        told["fullest_gpu"] = device_of(*found)
        told["ranks"] = len(report["ranks"])
    if report.get("guesses"):
        told["guesses"] = [pick(g, "where", "operator", "what", "times")
                           for g in report["guesses"]]
    return told


def member_of(value, path):
    """What PATH, "ranks.0.devices.0.modules_at_peak", names in VALUE."""
    for name in filter(None, path.replace("[", ".").replace("]", "")
                       .split(".")):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, IndexError, ValueError, TypeError):
            known = sorted(value) if isinstance(value, dict) else (
                f"0 to {len(value) - 1}" if isinstance(value, list) else "none")
            raise Failure(f"no member {name!r}; there are: {known}") from None
    return value


# --- tools -------------------------------------------------------------------

def guarded(tool):
    """What memsim cannot answer is an answer, too: {"error": why}."""
    def call(*args, **options):
        try:
            return answer(tool(*args, **options))
        except (Failure, OSError, ValueError) as error:
            return answer({"error": str(error)})
    return call


def run(memsim, command, cwd, keep, timeout_s, options):
    with tempfile.TemporaryDirectory(prefix="memsim-") as scratch:
        path = os.path.join(scratch, "report.json")
        words = ["run", "-q", "--kill-with-memsim", "--json", path]
        if keep:
            words += ["-o", keep, "--force"]
        status, out, err = memsim.start([*words, *options, "--", *command],
                                        cwd, timeout_s)
        if not os.path.exists(path):
            raise Failure(tail(err) or f"memsim run: status {status}")
        with open(path, encoding="utf-8") as file:
            told = summary(json.load(file))
    if told["verdict"] in ("failed", "none", "oom"):
        told["printed"] = {"stdout": tail(out), "stderr": tail(err)}
    return told


def search(memsim, space, command, cwd, keep, timeout_s, options):
    with tempfile.TemporaryDirectory(prefix="memsim-") as scratch:
        path = os.path.join(scratch, "search.json")
        words = ["search", "-q", "--json", path, "-o", keep or scratch + "/kept"]
        status, out, err = memsim.start(
            [*words, *options, space, "--", *command], cwd, timeout_s)
        if not os.path.exists(path):
            raise Failure(tail(err) or f"memsim search: status {status}")
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
    counts = {}
    for trial in told["trials"]:
        counts[trial["verdict"]] = counts.get(trial["verdict"], 0) + 1
    answered = pick(told, "goal", "cost_of", "strategy", "points", "ended",
                    "best", "trials", "ignored_names")
    return {"exit_status": status, **answered, "verdicts": counts,
            "left_out": len(told["left_out"])}


def make_server(kind, memsim):
    """The server with its tools."""
    server = kind("memsim", instructions=INSTRUCTIONS)
    add_start_tools(server, memsim)
    add_report_tools(server, memsim)
    return server


def add_start_tools(server, memsim):
    """The tools that run commands."""
    @server.tool(name="run", description=(
        "Run a training command on simulated GPUs: verdict, peaks, what fills "
        "the memory, step time. options are memsim run's, as "
        "['--gpu', 'l4', '--gpus', '2', '--advice']; keep is a directory "
        "for later questions (an earlier run in it is replaced)."))
    def run_tool(command: list[str], options: list[str] | None = None,
                 cwd: str | None = None, keep: str | None = None,
                 timeout_s: int = TIMEOUT_S) -> str:
        return guarded(run)(memsim, command, cwd, keep, timeout_s,
                            options or [])

    @server.tool(name="search", description=(
        "The best configuration of a job. space is a file in TOML with the "
        "values of each name, the goal and the limits (doc/search.md); the "
        "command has {NAME} or {args} in it. options are memsim search's, as "
        "['--gpu', 'h100', '--goal', 'cost', '--price', '2.99', '--trials', "
        "'40']; with keep, a directory, the same call goes on after its "
        "timeout_s."))
    def search_tool(space: str, command: list[str],
                    options: list[str] | None = None, cwd: str | None = None,
                    keep: str | None = None,
                    timeout_s: int = TIMEOUT_S) -> str:
        return guarded(search)(memsim, space, command, cwd, keep, timeout_s,
                               options or [])


def add_report_tools(server, memsim):
    """The tools that ask about kept runs."""
    @server.tool(name="report", description=(
        "A part of the report of a kept run. member is a path in its JSON, as "
        "'ranks.0.devices.0.modules_at_peak' or 'time.by_operator' "
        "(memsim-json(5)); without it a summary. A list is shown from offset "
        "on."))
    def report_tool(directory: str, member: str = "", offset: int = 0) -> str:
        def ask():
            whole = memsim.report(directory)
            if not member:
                return summary(whole)
            value = member_of(whole, member)
            if not isinstance(value, list):
                return {member: value}
            return {member: value[max(0, offset):], "count": len(value)}
        return guarded(ask)()

    @server.tool(name="advise", description=(
        "What would take less memory, of a kept run: how much each change "
        "saves, what to change in the script (change), what it costs a step "
        "(costs_ns), the command that shows it. A run that did not fit needs "
        "--advice among its options."))
    def advise_tool(directory: str) -> str:
        def ask():
            found = worst(memsim.report(directory, "--advice"))
            if not found:
                raise Failure("no GPU was used")
            return {"advice": advice_of(found[1])}
        return guarded(ask)()

    @server.tool(name="diff", description=(
        "What changed between two kept runs, or --json files: peaks, modules, "
        "step time."))
    def diff_tool(before: str, after: str) -> str:
        def ask():
            status, out, err = memsim.start(["diff", before, after])
            if not out.strip():
                raise Failure(tail(err) or f"memsim diff: status {status}")
            return {"printed": tail(out), "exit_status": status}
        return guarded(ask)()



def server_kind():
    """The class of the package mcp, of its second or its first version."""
    try:
        from mcp.server.mcpserver import MCPServer
        return MCPServer
    except ModuleNotFoundError:
        pass
    try:
        from mcp.server.fastmcp import FastMCP
        return FastMCP
    except ModuleNotFoundError:
        sys.exit(f"memsim: mcp: {sys.executable} has no package mcp; `pip "
                 "install mcp', or name a Python that has it (--python)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("memsim", help="the program")
    make_server(server_kind(), Memsim(parser.parse_args().memsim)).run("stdio")


if __name__ == "__main__":
    main()
