#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memsim mcp: a client that speaks the protocol by hand, with the package of
`tools/setup mcp'; jobs with a real torch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/tests/torch"]
BUILD = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build")
VENV = os.environ.get("MEMSIM_VENV", f"{ROOT}/.venv")
PYTHON = f"{ROOT}/.mcp-venv/bin/python"
MEMSIM = f"{BUILD}/bin/memsim"
MOST = 12000

from harness import Skip, equal, main, test  # noqa: E402

# Does not fit an L4 by its activations.
JOB = """
import sys, torch, torch.utils.checkpoint
batch = int(sys.argv[1])
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Sequential(
            torch.nn.Linear(1024, 4096), torch.nn.GELU(),
            torch.nn.Linear(4096, 1024)) for _ in range(30)])
    def forward(self, x):
        for block in self.layers:
            x = block(x)
        return x
net = Net().cuda()
adam = torch.optim.AdamW(net.parameters())
for step in range(2):
    net(torch.randn(batch, 1024, 1024, device="cuda")).sum().backward()
    adam.step()
    adam.zero_grad()
"""


class Client:
    """Requests one after the other, each a line of JSON."""

    def __init__(self):
        self.server = subprocess.Popen(
            [MEMSIM, "mcp", "--python", PYTHON], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.count = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                 clientInfo={"name": "test", "version": "1"})
        self.send(method="notifications/initialized")

    def send(self, **message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) +
                                "\n")
        self.server.stdin.flush()

    def ask(self, method, **params):
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        for line in self.server.stdout:
            told = json.loads(line)
            if told.get("id") == self.count:
                assert "error" not in told, told
                return told["result"]
        raise AssertionError("the server ended")

    def call(self, tool, **arguments):
        told = self.ask("tools/call", name=tool, arguments=arguments)
        assert not told.get("isError"), told
        text = told["content"][0]["text"]
        assert len(text) <= MOST, len(text)
        return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        equal(self.server.wait(30), 0)
        self.server.stdout.close()


def client():
    for path in (PYTHON, f"{VENV}/bin/python"):
        if not os.path.exists(path):
            raise Skip(f"there is no {path}")
    return Client()


@test
def it_has_five_tools():
    with client() as c:
        tools = c.ask("tools/list")["tools"]
        equal(sorted(t["name"] for t in tools),
              ["advise", "diff", "report", "run", "search"])
        assert all(t["description"] for t in tools)


@test
def an_agent_makes_a_job_fit():
    """Runs, is told that it does not fit, reads the advice, follows it."""
    with tempfile.TemporaryDirectory() as scratch, client() as c:
        script = pathlib.Path(scratch) / "job.py"
        script.write_text(JOB)
        command = [f"{VENV}/bin/python", str(script), "64"]
        before, after = f"{scratch}/before", f"{scratch}/after"
        told = c.call("run", command=command, keep=before,
                      options=["--gpu", "l4", "--advice"], cwd=scratch)
        equal((told["verdict"], told["exit_status"]), ("oom", 120))
        assert "OutOfMemoryError" in told["printed"]["stderr"]
        advice = min((a for a in c.call("advise", directory=before)["advice"]
                      if a["fits"] and a["change"]["edits"]),
                     key=lambda a: len(a["change"]["edits"]))
        edits = [e for e in advice["change"]["edits"] if e["old"]]
        equal([e["kind"] for e in edits], ["call"])
        script.write_text(JOB.replace(edits[0]["old"], edits[0]["new"]))
        told = c.call("run", command=command, keep=after,
                      options=["--gpu", "l4"], cwd=scratch)
        equal(told["verdict"], "fits")
        used = told["fullest_gpu"]["peak_used_bytes"]
        assert abs(used / advice["peak_used_bytes"] - 1) < 0.05, (used, advice)
        changed = c.call("diff", before=before, after=after)
        assert "peak" in changed["printed"], changed


@test
def parts_of_a_report_are_bounded():
    with tempfile.TemporaryDirectory() as scratch, client() as c:
        script = pathlib.Path(scratch) / "job.py"
        script.write_text(JOB)
        kept = f"{scratch}/kept"
        told = c.call("run", command=[f"{VENV}/bin/python", str(script),
                                      "2"], keep=kept)
        equal(told["verdict"], "fits")
        told = c.call("report", directory=kept)
        assert told["time"]["step_ns"] > 0
        name = "ranks.0.devices.0.modules_at_peak"
        first = c.call("report", directory=kept, member=name)
        assert first["count"] > 30
        more = c.call("report", directory=kept, member=name, offset=3)
        equal(more[name][0], first[name][3])
        c.call("report", directory=kept, member="ranks.0.devices.0.timeline")
        wrong = c.call("report", directory=kept, member="ranks.0.nothing")
        assert "devices" in wrong["error"], wrong


@test
def a_search_finds_the_largest_batch():
    with tempfile.TemporaryDirectory() as scratch, client() as c:
        pathlib.Path(scratch, "job.py").write_text(JOB)
        pathlib.Path(scratch, "space.toml").write_text(
            "[names]\nbatch = [1, 2, 64]\n[objective]\ngoal = \"batch\"\n"
            "batch = \"batch\"\n")
        told = c.call("search", space="space.toml", cwd=scratch,
                      options=["--gpu", "l4"],
                      command=[f"{VENV}/bin/python", "job.py", "{batch}"])
        equal(told["best"]["point"], {"batch": "2"})
        equal(told["verdicts"], {"fits": 2, "oom": 1})


@test
def an_edit_is_never_cut():
    sys.path.append(f"{ROOT}/src/memsim/mcp")
    import mcp_server
    edits = [{"new": "x" * 1000}] * 20
    told = mcp_server.cut({"text": "y" * 1000, "edits": edits}, 2)
    equal(told["edits"], edits)
    equal(len(told["text"]), mcp_server.TEXT + 3)


@test
def what_fails_is_an_answer():
    with client() as c:
        assert "no-such-gpu" in c.call(
            "run", command=["true"], options=["--gpu", "no-such-gpu"])["error"]
        told = c.call("run", command=["sh", "-c", "echo so; exit 3"])
        equal((told["verdict"], told["command_status"]), ("failed", 3))
        equal(told["printed"]["stdout"], "so\n")
        assert "killed" in c.call("run", command=["sleep", "60"],
                                  timeout_s=2)["error"]
        assert c.call("report", directory="/no/such")["error"]


@test
def without_the_package_it_says_so():
    done = subprocess.run([MEMSIM, "mcp", "--python", "/usr/bin/python3"],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if not done.returncode:
        raise Skip("Debian's Python has the package mcp")
    assert "pip install mcp" in done.stderr, done.stderr


if __name__ == "__main__":
    main()
