# SPDX-License-Identifier: Apache-2.0
"""Attribution of scripts that do odd things with their modules, of very many
modules, of long runs. MEMSIM_BUILD says where the memsim is that runs them."""
import json
import os
import resource
import subprocess
import sys
import tempfile

from harness import equal, main, test
from jobs import (BUILD, ROOT, check_phase_ends, check_sums, device, owners,
                  run)


@test
def modules_change_while_they_run():
    report = device("""
class Restless(Net):
    turn = 0
    def forward(self, x):
        self.turn += 1
        x = self.blocks[0](x)
        self.blocks[1] = Block().cuda()         # replaced: the old one is gone
        if self.turn % 2:
            self.blocks.append(Block().cuda())
        else:
            del self.blocks[-1]
        self.extra = nn.Linear(256, 256).cuda()
        return super().forward(self.extra(x))
class Suicidal(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = [parent]
    def forward(self, x):
        del self.parent[0].last
        return x * 2
model = Restless().cuda()
for _ in range(6):
    model.last = Suicidal(model)
    model.last(model(torch.randn(64, 256, device="cuda"))).sum().backward()
    adam(model).step()
""")
    check_sums(report)
    names = {m["name"] for m in report["modules"]}
    # "extra" is named when it is called, as part of its parent.
    assert {"extra", "blocks.1.up", "blocks.3.up"} <= names, sorted(names)
    assert len(names) < 60, sorted(names)


@test
def a_failure_of_ours_is_a_note_and_the_script_goes_on():
    report, said = run("""
class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("no questions")
odd = {"weight": torch.ones(256, 256, device="cuda").as_subclass(Odd)}
model = nn.Linear(256, 256).cuda()
model(torch.randn(8, 256, device="cuda")).sum().backward()
adam(model).step()
torch.cuda.max_memory_allocated = lambda: "went on"
""")
    equal(said, "went on")
    assert any("no questions" in note and "_after_step" in note
               for note in report["notes"]), report["notes"]


@test
def a_second_ctrl_c_at_the_end_shows_nothing_of_ours():
    script = """
import gc, os, signal, torch
model = torch.nn.Linear(8, 8).cuda()
gc.get_objects = lambda: os.kill(os.getpid(), signal.SIGINT) or []
"""
    done = subprocess.run([f"{BUILD}/bin/memsim", "run", "-q", "--",
                           sys.executable, "-c", script],
                          capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""))


@test
def exceptions_from_anywhere_leave_nothing_open():
    report = device("""
class Deep(nn.Module):
    def __init__(self, depth, where):
        super().__init__()
        self.inner = Deep(depth - 1, where) if depth else nn.Linear(256, 256)
        self.where = where
    def forward(self, x):
        x = self.inner(x)
        if self.where.pop("forward", None):
            raise MemoryError
        return x
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        raise ValueError("in backward")
where = {}
model = Deep(40, where).cuda()
for place in ("forward", "backward", "hook", "backward", "none"):
    where[place] = True
    handle = (model.inner.inner.register_forward_hook(
        lambda *_: (_ for _ in ()).throw(StopIteration("in a hook")))
        if place == "hook" else None)
    try:
        y = model(torch.randn(64, 256, device="cuda"))
        (Bad.apply(y) if place == "backward" else y).sum().backward()
    except (MemoryError, ValueError, RuntimeError, StopIteration):
        pass
    if handle:
        handle.remove()
    where.clear()
after = torch.empty(1 << 28, device="cuda")
""")
    check_sums(report)
    equal(report["peak"]["phase"], "other")
    assert sum(owners(report)[""].values()) >= 4 << 28, owners(report)[""]


@test
def a_keyboard_interrupt_leaves_nothing_open():
    """PyTorch calls hooks for an Exception, not for a BaseException."""
    report = device("""
class Fragile(nn.Module):
    raises = None
    def forward(self, x):
        if Fragile.raises:
            raise Fragile.raises
        return x * 2
class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.fragile, self.wide = Fragile(), Fragile()
    def forward(self, x):
        try:
            return self.fragile(x)
        except GeneratorExit:
            Fragile.raises = None
            return self.wide(x)
model = nn.Sequential(Net(), Careful()).cuda(); o = adam(model)
x = torch.randn(64, 256, device="cuda")
model(x).sum().backward()
for Fragile.raises in KeyboardInterrupt, SystemExit, KeyboardInterrupt:
    try:
        model(x)
    except (KeyboardInterrupt, SystemExit):
        pass
o.step()
before = torch.empty(1 << 28, device="cuda")
Fragile.raises = GeneratorExit
y = model(torch.randn(1 << 18, 256, device="cuda"))
after = torch.empty(1 << 28, device="cuda")
""")
    check_sums(report)
    own = owners(report)
    assert sum(own[""].values()) >= 8 << 28, own[""]
    assert sum(own["1.wide"].values()) >= 256 << 20, own["1.wide"]
    assert "1.fragile" not in own, own["1.fragile"]


@test
def threads_share_a_model():
    report = device("""
import threading
model = Net().cuda()
def job():
    for _ in range(10):
        model(torch.randn(64, 256, device="cuda")).sum().backward()
threads = [threading.Thread(target=job) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
""")
    check_sums(report)
    calls = {m["name"]: m["calls"] for m in report["modules"]}
    equal(calls["blocks.2.up"], 60)


@test
def names_reach_neither_the_terminal_nor_a_trace_as_they_are():
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/trace.json"
        report, said = run(r'''
names = ["\x1b[31mred", "new\nline", "\u202eright to left", '"', "\\", "</script>",
         "\udc80", "\0", "\x9b31m", "x" * 500]
model = nn.Sequential()
for name in names:
    model._modules[name] = nn.Linear(256, 256)
model.cuda(); train(model, adam(model))
''', "--depth", "9", "--top", "99", "--timeline", "--perfetto", trace,
                           quiet=False)
        events = subprocess.run([sys.executable,
                                 f"{ROOT}/tests/trace_events.py", trace],
                                capture_output=True, text=True)
    check_sums(report["ranks"][0]["devices"][0])
    equal(events.returncode, 0)
    assert "modules, thread 0: Sequential/\x1b[31mred" in \
        json.loads(events.stdout)["slices"]
    assert "\\x1b[31mred" in said and "new\\x0aline" in said, said
    odd = {c for c in said if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160}
    equal(odd, set())
    page = said[said.index("memsim: fits"):said.index("memsim: ui.perfetto")]
    equal([line for line in page.splitlines() if len(line) > 80], [])


@test
def twenty_thousand_modules():
    report, said = run("""
class Tiny(nn.Module):
    def forward(self, x):
        return x.add_(1)
model = nn.ModuleList(nn.ModuleList(Tiny() for _ in range(200))
                      for _ in range(100))
class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.groups = model
        self.last = nn.Linear(256, 256)
    def forward(self, x):
        for group in self.groups:
            for tiny in group:
                x = tiny(x)
        return self.last(x)
many = Many().cuda()
for _ in range(2):
    many(torch.zeros(8, 256, device="cuda"))
""", quiet=False)
    told = report["ranks"][0]["devices"][0]
    check_sums(told)
    equal(len(told["modules"]), 10000)
    assert told["modules_dropped"] > 10000, told["modules_dropped"]
    assert said.count("\n") < 70, said


LONG = """
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(STEPS):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
last = torch.empty(1 << 28, device="cuda")
"""


@test
def a_long_run_keeps_a_bounded_report():
    with tempfile.TemporaryDirectory() as folder:
        report, _ = run("STEPS = 1500" + LONG, "-o", folder)
        told = report["ranks"][0]["devices"][0]
        check_sums(told)
        assert len(told["phases"]) <= 1000 < told["phases_dropped"], \
            told["phases_dropped"]
        equal(told["phases"][-1]["step"], 1499)
        equal(len(told["module_phases"]), 41)
        check_phase_ends(told)
        assert len(told["timeline"]) <= 2000
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        subprocess.run([f"{BUILD}/bin/memsim", "report", folder, "-q", "--json",
                        f"{folder}/again.json"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert after == before or after < 64 << 10, after  # KiB


@test
def a_trace_ends_at_its_limit():
    limit = 2 << 20
    with tempfile.TemporaryDirectory() as folder:
        report, said = run("STEPS = 1500" + LONG, "-o", folder,
                           "--trace-limit", "2MiB", quiet=False)
        assert os.path.getsize(f"{folder}/process-0000.trace") <= limit
    told = report["ranks"][0]["devices"][0]
    assert told["peak_allocated_bytes"] >= 4 << 28, told  # of the session
    before = sum(told["categories_at_peak"].values())
    assert 0 < before < 1 << 28, before  # of the trace
    assert "--trace-limit was reached: the trace is cut short" in said, said


MANY = LONG.replace("    optimizer.step()", """
    for _ in range(8000):
        model.weight + 1
    optimizer.step()""")


@test
def a_recording_that_was_cut_before_six_steps_does_not_fit():
    with tempfile.TemporaryDirectory() as folder:
        for options, verdict in (((), "fits"),
                                 (("--trace-limit", "2MiB"), "unknown")):
            report, said = run("STEPS = 8" + MANY, "-o", folder, "--force",
                               *options, quiet=False)
            equal((report["verdict"], report["exit_status"]), (verdict, 0))
    assert "its recording is cut short" in said, said


if __name__ == "__main__":
    main()
