# SPDX-License-Identifier: Apache-2.0
"""Programs that a process runs which has imported PyTorch already
(MEMSIM_WARM): their output, status and figures are those of a process of their
own. Each test is a program, run both ways."""
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from harness import MEMSIM, equal, main, test

TRAIN = """
import sys, torch
print(__name__, sys.argv, sys.orig_argv[1:], "server" in sys.path[0])
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(),
                            torch.nn.Linear(512, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(3):
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.max_memory_allocated())
"""
OOM = """
import torch
kept = [torch.empty(1 << 30, device="cuda") for i in range(100)]
"""
ENDS = """
import atexit, sys, threading, time, torch
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("out"); print("err", file=sys.stderr)
sys.exit(7)
"""
GOES = """
import gc, sys, threading, torch
class Kept:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name, gc.isenabled(), flush=True)
alone = Kept("alone")
one, two = Kept("one"), Kept("two")
one.other, two.other = two, one
_first = Kept("first")
held = torch.ones(8, device="cuda")
function = lambda: alone
print(len(gc.get_objects()) > 0)
sys.exit("the end" if len(sys.argv) < 2 else int(sys.argv[1]))
"""
DAEMON = """
import threading, time, torch
def forever():
    while True:
        time.sleep(0.01)
threading.Thread(target=forever, daemon=True).start()
torch.ones(8, device="cuda").sum().item()
print("done")
"""
FAILS = """
import torch
def inner():
    raise ValueError("mine")
inner()
"""
KILLED = """
import os, signal, torch
torch.ones(8, device="cuda")
os.kill(os.getpid(), signal.SIGKILL)
"""
INTERRUPTED = """
import os, signal, torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
late = Late()
torch.ones(8, device="cuda")
"""
SETS = """
import os
print("begins")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch
kept = [torch.empty(11 << 18, device="cuda") for i in range(3)]
print(torch.cuda.memory_reserved())
"""
RESTARTS = """
import os
os.environ["OMP_NUM_THREADS"] = "1"
import torch
print(torch.get_num_threads())
torch.ones(8, device="cuda")
"""
SPAWNS = """
import sys, torch, torch.multiprocessing as mp
class Kept:
    pass
def work(rank, queue):
    queue.put((rank, float(torch.ones(2).sum()), __name__))
if __name__ == "__main__":
    for method in "spawn", "fork":
        context = mp.get_context(method)
        queue = context.Queue()
        child = context.Process(target=work, args=(3, queue))
        child.start(); print(queue.get(), child.join(), child.exitcode)
    import pickle
    print(type(pickle.loads(pickle.dumps(Kept()))).__module__)
    torch.ones(8, device="cuda")
"""
READS = """
import os, random, sys, tempfile, torch
print(sys.stdin.read(), os.getcwd(), os.umask(0), len(os.sched_getaffinity(0)))
print(tempfile.gettempdir(), sorted(os.listdir("/proc/self/fd"))[:3])
torch.ones(8, device="cuda")
"""
RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
x = torch.ones(1 << 20, device="cuda")
dist.all_reduce(x)
dist.destroy_process_group()
"""


FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_used_bytes",
           "ooms", "categories_at_peak", "modules_at_peak", "things_at_peak")


class Folder:
    """Where servers wait, and programs are."""

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.scratch.name)
        (self.path / "warm").mkdir()
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def start(self, command, warm, options=(), **more):
        env = dict(os.environ, MEMSIM_WARM=str(self.path / "warm") if warm
                   else "")
        return subprocess.Popen(
            [MEMSIM, "run", "--force", "-o", self.path / "run", "--json",
             self.path / "json", *options, "--", sys.executable, *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE, env=env, cwd=self.path, **more)

    def run(self, text, warm, *words, options=(), name="-c"):
        command = ["-c", text, *words]
        if name != "-c":
            (self.path / name).write_text(text)
            command = [name, *words]
        process = self.start(command, warm, options)
        out, err = process.communicate("some input")
        return process.returncode, out, self.errors(err), self.figures()

    def errors(self, text):
        """What the program wrote: memsim's report has times."""
        return re.sub(r"0x[0-9a-f]+|^memsim:? .*\n(^ .*\n|^\n)*", "", text,
                      flags=re.M).split("== memsim")[0]

    def figures(self):
        """The report, but for times and what the host had."""
        report = json.loads((self.path / "json").read_text())
        return {name: report[name] for name in ("verdict", "exit_status",
                                                "command")} | {
            "devices": [[{name: device.get(name) for name in FIGURES}
                         for device in rank["devices"]]
                        for rank in report["ranks"]]}

    def both(self, text, *words, **how):
        """Asserts that TEXT does the same both ways. Returns what it wrote."""
        cold = self.run(text, False, *words, **how)
        used = self.forks()
        warm = self.run(text, True, *words, **how)
        if self.forks() == used:  # of a kind's first, none is kept
            warm = self.run(text, True, *words, **how)
        assert self.forks() > used, "no server ran it"
        for ours, theirs in zip(warm, cold):
            equal(ours, theirs)
        return cold

    def kill_servers(self):
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode().split("\0")
            except OSError:
                continue  # it has ended
            if any(w.endswith("warm_server.py") for w in words) and \
                    any(w.startswith(str(self.path / "warm")) for w in words):
                os.kill(int(path.parent.name), signal.SIGTERM)

    def forks(self):
        """How many programs servers have run: they count their own."""
        return sum(int(p.read_text()) for p in
                   (self.path / "warm").glob("*.count"))


@functools.cache
def shared():
    """A folder whose servers serve several tests."""
    return folders.enter_context(Folder())


@test
def the_same_whether_pytorch_was_imported_before():
    folder = shared()
    status, out, _, figures = folder.both(TRAIN, "--lr", "0.1")
    equal(status, 0)
    assert "__main__ ['-c', '--lr', '0.1']" in out, out
    peak = figures["devices"][0][0]["peak_allocated_bytes"]
    equal(int(out.split()[-1]), peak)
    equal(folder.both(OOM, options=("--gpu", "t4"))[0], 120)
    equal(folder.both(KILLED)[0], 128 + signal.SIGKILL)
    folder.both(TRAIN, "2", name="train.py")
    status, _, err, _ = folder.both(FAILS, name="fails.py")
    equal(status, 1)
    assert "line 4, in inner" in err and "warm" not in err, err
    status, out, err, _ = folder.both(ENDS)
    equal((status, out, err), (7, "out\nthread\nat exit\n", "err\n"))


@test
def programs_end_as_python_does():
    folder = shared()
    status, out, err, _ = folder.both(GOES)
    equal((status, err), (1, "the end\n"))
    equal(sorted(out.splitlines()), ["True"] + sorted(
        f"gone {name} True" for name in ("alone", "first", "one", "two")))
    equal(folder.both(GOES, "-1")[0], 255)
    equal(folder.both(DAEMON)[:2], (0, "done\n"))
    equal(folder.both(INTERRUPTED)[:3], (128 + signal.SIGINT, "", ""))


@test
def what_a_program_sets_counts():
    folder = shared()
    out = folder.both(SETS)[1]
    equal(out, f"begins\n{40 << 20}\n")
    equal(folder.both(RESTARTS)[1], "1\n")


@test
def processes_and_files_are_the_programs_own():
    folder = shared()
    out = folder.both(SPAWNS, name="spawns.py")[1]
    assert "(3, 2.0, '__mp_main__') None 0" in out, out
    out = folder.both(READS)[1]
    assert out.startswith(f"some input {os.path.realpath(folder.path)} "), \
        out


@test
def a_server_that_was_killed_is_forgotten():
    with Folder() as folder:
        (folder.path / "warm/eager").touch()
        folder.run(TRAIN, True)
        equal(folder.forks(), 1)
        folder.kill_servers()
        for count in (folder.path / "warm").glob("*.count"):
            count.unlink()
        begun = time.monotonic()
        for _ in range(2):  # here, and by the next server
            equal(folder.run(TRAIN, True)[0], 0)
        assert time.monotonic() - begun < 200, "it waited for the dead server"
        equal(folder.forks(), 1)


@test
def without_the_folder_nothing_is_waited_for():
    with Folder() as folder:
        (folder.path / "warm").rmdir()
        begun = time.monotonic()
        equal(folder.run(TRAIN, True)[0], 0)
        assert time.monotonic() - begun < 200, "it waited for a server"


@test
def ranks_of_a_launcher():
    folder = shared()
    (folder.path / "ranks.py").write_text(RANKS)
    found = []
    for warm in False, True, True:
        process = folder.start(
            ["-m", "torch.distributed.run", "--standalone",
             "--nproc-per-node", "2", "ranks.py"], warm, ("--gpus", "2"))
        process.communicate()
        found.append((process.returncode, folder.figures()))
    assert folder.forks() >= 3, "a launcher and two ranks"
    equal(found[0][0], 0)
    equal(len(found[0][1]["devices"]), 2)
    for each in found[1:]:
        equal(each, found[0])


@test
def signals_reach_the_program():
    wait = ("import signal, sys, time, torch\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
            "torch.ones(8, device='cuda')\nprint('ready', flush=True)\n"
            "time.sleep(60)")
    folder = shared()
    folder.run(TRAIN, True)
    folder.run(TRAIN, True)
    process = folder.start(["-c", wait], True)
    equal(process.stdout.readline(), "ready\n")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    equal(process.returncode, 9)
    # Where the run ends, so does the program.
    process = folder.start(
        ["-c", wait.replace("'ready'", "__import__('os').getpid()")], True)
    program = int(process.stdout.readline())
    subprocess.run(["pkill", "-KILL", "-P", str(process.pid), "python"],
                   check=True)
    process.communicate()
    equal(process.returncode, 128 + signal.SIGKILL)
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{program}") and \
            time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{program}")


IMPORTS = """
import sys, torch
there = "package" in sys.modules
import package
model = torch.nn.Linear(64, 64).cuda()
model(torch.ones(8, 64, device="cuda")).sum().backward()
print(package.there, torch.cuda.memory_allocated())
print(there, file=open("there", "w"))
"""


def shares_a_package(body):
    """Whether a server imports an installed package of BODY, which the programs
    before did. Asserts that programs do the same both ways."""
    with Folder() as folder:
        site = folder.path / "site"
        (site / "package-1.dist-info").mkdir(parents=True)
        (site / "package.py").write_text(body)
        (folder.path / "warm/eager").touch()
        os.environ["PYTHONPATH"] = str(site)
        try:
            cold = folder.run(IMPORTS, False)
            deadline = time.monotonic() + 60
            shared = False
            for _ in range(4):
                warm = folder.run(IMPORTS, True, options=("--write-through",))
                for ours, theirs in zip(warm, cold):
                    equal(ours, theirs)
                shared = (folder.path / "there").read_text() == "True\n"
                if shared or time.monotonic() > deadline:
                    break
                time.sleep(3)
            assert folder.forks() >= 2
            return shared
        finally:
            del os.environ["PYTHONPATH"]


@test
def servers_import_what_programs_did():
    told = "import sys, torch, torch.cuda\nprint('imported')\n"
    assert shares_a_package(told + "there = torch.cuda.is_available()")


@test
def what_a_fork_cannot_have_is_not_shared():
    for body in ("import torch\nthere = torch.zeros(1, device='cuda').item()",
                 "import os\nthere = os.environ.get('RANK')",
                 "import threading, time\nthere = 1\n"
                 "threading.Thread(target=time.sleep, args=(9,),\n"
                 "                 daemon=True).start()"):
        assert not shares_a_package(body), body


@test
def a_sweep_shares_the_import():
    with Folder() as folder:
        (folder.path / "train.py").write_text(
            TRAIN.replace("512, 8)", "512, int(sys.argv[1]))"))
        tables = []
        for warm in {}, {"MEMSIM_WARM": ""}:
            env = {k: v for k, v in os.environ.items() if k != "MEMSIM_WARM"}
            done = subprocess.run(
                [MEMSIM, "sweep", "-q", "--no-cache", "--json", "-", "n=8,512",
                 "--", sys.executable, "train.py", "{n}"], text=True,
                stdin=subprocess.DEVNULL, capture_output=True, cwd=folder.path,
                env={**env, **warm, "TMPDIR": str(folder.path)})
            equal(done.returncode, 0)
            tables.append([(r["values"], r["verdict"],
                            r["peak_allocated_bytes"], r["peak_used_bytes"])
                           for r in json.loads(done.stdout)["runs"]])
            left = [p.name for p in folder.path.glob("memsim-warm-*")]
            equal(left, [])
        equal(*tables)
        equal(len(tables[0]), 2)


if __name__ == "__main__":
    with contextlib.ExitStack() as folders:
        main()
