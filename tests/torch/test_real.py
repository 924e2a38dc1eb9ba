# SPDX-License-Identifier: Apache-2.0
"""memsim run --real inside of memsim run, whose GPU is the real one then: the
same blocks, peaks and modules as a plain run, and the times of that GPU."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, memsim, test

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(),
                            torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x = torch.randn(256, 512, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""

GRAPH = """
import torch
x = torch.ones(1 << 20, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x.mul_(2)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 3
    y.add_(1)
for _ in range(5):
    graph.replay()
torch.cuda.synchronize()
print(y.shape[0])
"""

PROFILE = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(1 << 20, device="cuda")
with profile(activities=[ProfilerActivity.CUDA]) as p:
    x.mul_(2)
    torch.cuda.synchronize()
print(sum(e.device_type.name == "CUDA" for e in p.events()) > 0)
"""


CONVOLUTIONS = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(),
    torch.nn.Conv2d(64, 128, 3, 1, 1), torch.nn.ReLU(),
    torch.nn.Conv2d(128, 128, 3, 2, 1), torch.nn.ReLU(),
    torch.nn.Conv2d(128, 64, 1, groups=2)).cuda()
q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16,
                requires_grad=True)
for _ in range(3):
    x = torch.randn(16, 3, 128, 128, device="cuda")
    model(x).square().mean().backward()
    model.zero_grad()
    with torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(
            q, q, q, is_causal=True).sum().backward()
torch.cuda.synchronize()
print(torch.cuda.max_memory_reserved())
"""

# Norms in both layouts, recurrent networks with sequences of one length and of
# several, and quantized pooling, which PyTorch does by cuDNN.
CALLS = """
import torch
torch.manual_seed(0)
lstm = torch.nn.LSTM(64, 64, 2, batch_first=True).cuda()
gru = torch.nn.GRU(32, 48, bidirectional=True).cuda()
norm = torch.nn.BatchNorm2d(32).cuda()
x = torch.randn(8, 16, 64, device="cuda", requires_grad=True)
y = torch.randn(4, 32, 16, 16, device="cuda", requires_grad=True)
z = y.detach().half().to(memory_format=torch.channels_last)
packed = torch.nn.utils.rnn.pack_padded_sequence(
    torch.randn(9, 3, 32, device="cuda"), [9, 5, 2])
q = torch.quantize_per_tensor(torch.randn(1, 4, 8, 8), 0.1, 0, torch.qint8).cuda()
for _ in range(2):
    lstm(x)[0].sum().backward()
    gru(packed)[0].data.sum().backward()
    norm(y).sum().backward()
    norm(z).float().sum().backward()
    torch.nn.functional.max_pool2d(q, 2)
norm.eval()
gru.eval()
with torch.no_grad():
    norm(y)
    gru(packed)
torch.cuda.synchronize()
"""


class Run:
    """SCRIPT, recorded in a folder; REAL: as on a real GPU, the card, which
    memsim plays with CARD's options and where ENVIRONMENT holds. Both import
    PyTorch themselves: their last records are what is freed at the end."""

    def __init__(self, folder, script, real, *options, name=None, card=(),
                 environment=()):
        name = pathlib.Path(folder) / (name or ("real" if real else "plain"))
        command = [MEMSIM, "run", "--quiet", "-o", name, *options,
                   "--json", f"{name}.json"]
        if real:
            command = [MEMSIM, "run", "--quiet", "-o", f"{name}.card", *card,
                       "--", *command, "--real"]
        done = subprocess.run(["env", *environment, *command, "--",
                               sys.executable, "-c", script],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, MEMSIM_WARM=""))
        assert done.returncode == 0, done.stderr
        self.output = done.stdout
        self.json = json.loads(pathlib.Path(f"{name}.json").read_text())
        text = subprocess.run(
            [MEMSIM, "trace", name / "process-0000.trace"],
            stdout=subprocess.PIPE, text=True).stdout
        self.lines = [line.split(" ", 1)[1] for line in text.splitlines()]

    def records(self, *kinds):
        """Those records, with names in place of their numbers."""
        names = {"0": ""}
        found = []
        for line in self.lines:
            if match := re.match(r't\d+ name name=(\d+) "(.*)"', line):
                names[match[1]] = match[2]
            kind = line.split(" ")[1]
            if kind in kinds:
                line = re.sub(r"\b(operator|range)=(\d+)",
                              lambda m: f"{m[1]}={names.get(m[2])}", line)
                found.append(re.sub(r" (stack|shape|used_bytes)=.*", "", line))
        return found

    def kinds(self, *kinds):
        return [line.split(" ")[1] for line in self.lines
                if line.split(" ")[1] in kinds]


def both(script):
    with tempfile.TemporaryDirectory() as folder:
        return (Run(folder, script, real=False), Run(folder, script, real=True))


@test
def a_real_run_has_the_records_of_a_plain_one():
    plain, real = both(TRAIN)
    equal(real.output, plain.output)
    for kinds in (("block_alloc", "block_free"), ("device_malloc",),
                  ("module_enter", "module_leave", "phase"), ("storage",)):
        equal(real.records(*kinds), plain.records(*kinds))
    works = "launch", "gemm", "set", "copy"
    equal(len(real.kinds(*works)), len(plain.kinds(*works)))


@test
def its_peaks_are_equal_and_its_works_have_times():
    plain, real = both(TRAIN)
    for name in "peak_allocated_bytes", "peak_reserved_bytes", \
            "peak_used_bytes":
        equal(gpu(real)[name], gpu(plain)[name])
    works = real.kinds("launch", "gemm", "set", "copy")
    times = [line for line in real.lines if " measured " in line
             and "duration_ns=0 " not in line]
    equal(len(times), len(works))


def gpu(run):
    return run.json["ranks"][0]["devices"][0]


@test
def what_libraries_take_behind_the_last_allocation_counts():
    plain, real = both("""
import torch
x = torch.randn(256, 256, device="cuda")
y = torch.empty_like(x)
side = torch.cuda.Stream()
for _ in range(3):
    torch.mul(x, 2, out=y)
with torch.cuda.stream(side):
    torch.mul(x, 2, out=y)
torch.cuda.synchronize()
""")
    equal(gpu(real)["peak_used_bytes"], gpu(plain)["peak_used_bytes"])


@test
def the_estimate_beside_it_has_the_same_blocks():
    with tempfile.TemporaryDirectory() as folder:
        Run(folder, TRAIN, real=False)
        Run(folder, TRAIN, real=True)
        text = memsim("diff", "--truth", f"{folder}/plain", f"{folder}/real")
    assert "the allocator has the same 198 events in both" in text, text
    for name in "peak allocated", "peak reserved", "peak used":
        assert re.search(name + r" .* \+0\.00%", text), text


@test
def products_have_their_shapes_and_are_fitted():
    with tempfile.TemporaryDirectory() as folder:
        plain = Run(folder, TRAIN, real=False)
        real = Run(folder, TRAIN, real=True)
        text = memsim("fit", "-o", f"{folder}/fit.json", f"{folder}/real")

    def products(run):
        return [re.sub(r"workspace_bytes=\d+ ", "", line)
                for line in run.records("gemm")]
    assert products(plain)
    equal(products(real), products(plain))
    shapes = {re.search(r" m=\d+ n=\d+ k=\d+ .* accumulates=\d", line)[0]
              for line in products(plain)}
    assert f"{len(shapes)} products by shape; 0 more vary" in text, text


@test
def convolutions_and_attention_have_their_shapes_and_are_fitted():
    """By both of cuDNN's APIs."""
    for before in (), ("TORCH_CUDNN_V8_API_DISABLED=1",):
        with tempfile.TemporaryDirectory() as folder:
            plain = Run(folder, CONVOLUTIONS, real=False, environment=before)
            real = Run(folder, CONVOLUTIONS, real=True, environment=before)
            memsim("fit", "-o", f"{folder}/fit.json", f"{folder}/real")
            rows = json.loads(pathlib.Path(f"{folder}/fit.json").read_text())

        def calls(run):
            return [re.sub(r"workspace_(most|gpu)=\d+ ", "", line)
                    for line in run.records("convolution", "attention")]
        equal(len([c for c in calls(plain) if " convolution " in c]), 33)
        equal(len([c for c in calls(plain) if " attention " in c]), 6)
        equal(calls(real), calls(plain))
        families = [row[0] for row in rows["table"]]
        for family, count in (("convolution_forward", 4),
                              ("convolution_dgrad", 3),
                              ("convolution_wgrad", 4),
                              ("attention_forward", 1),
                              ("attention_backward", 1)):
            equal((family, families.count(family)), (family, count))
        at = next(i for i, line in enumerate(real.lines)
                  if " convolution " in line)
        assert " duration_ns=" in real.lines[at - 1], real.lines[at - 1]


@test
def norms_pooling_and_recurrent_networks_have_their_shapes_and_times():
    plain, real = both(CALLS)
    calls = plain.records("library_call")
    equal(real.records("library_call"), calls)
    names = [re.search('name="([a-z ]*)"', call)[1] for call in calls]
    equal({name: names.count(name) for name in names},
          {"rnn forward training": 4, "rnn backward data": 4,
           "rnn backward weights": 4, "batch norm training": 4,
           "batch norm backward": 4, "pooling forward": 2,
           "batch norm inference": 1, "rnn forward inference": 1})
    for i, line in enumerate(real.lines):
        if " library_call " in line:
            assert re.search(" measured .*duration_ns=[1-9]",
                             real.lines[i - 1]), line


@test
def the_next_estimate_has_what_a_run_taught():
    learn(lambda size: 2 * size + 512, "blocks have another size in the run")


@test
def a_run_may_teach_that_no_workspace_is_needed():
    learn(lambda size: 0, "blocks are in one of both alone\n"
                          "  the allocator has the same other events in both")


@test
def what_was_learnt_of_a_shape_holds_where_sizes_do_not():
    """Two convolutions that ask for as much in the estimate and for different
    sizes on the card."""
    pair = """
import torch
torch.manual_seed(0)
a = torch.nn.Conv2d(64, 64, 3, 1, 1, bias=False).cuda()
b = torch.nn.Conv2d(64, 64, 3, 1, 1, bias=False).cuda()
x = torch.randn(8, 64, 64, 32, device="cuda")
y = torch.randn(8, 64, 32, 64, device="cuda")
with torch.no_grad():
    for _ in range(3):
        (a(x), b(y))
torch.cuda.synchronize()
"""
    with tempfile.TemporaryDirectory() as folder:
        plain = Run(folder, pair, real=False)
        found = [re.search(r"workspace_bytes=(\d+) .*\"(.*) math=", line)
                 for line in plain.records("convolution")]
        sizes = {m[2]: int(m[1]) for m in found}
        equal(len(sizes), 2)
        equal(len(set(sizes.values())), 1)
        card = dict(zip(sizes, (5 << 20, 9 << 20)))
        Run(folder, pair, True, environment=[
            "MEMSIM_WORKSPACES=" + ",".join(
                f"#{shape_key(shape):x}={size}"
                for shape, size in card.items())])
        learnt = f"{folder}/learnt.json"
        text = memsim("diff", "--truth", "--save-corrections", learnt,
                      f"{folder}/plain", f"{folder}/real")
        assert "  2 of 2 convolutions of the run ask for another workspace" \
            in text, text
        assert re.search(r"workspace: .*, 5\.0+ MiB in the run \(forward x=8,64,"
                         r"64,32 w=64,64,3,3 .*stride=1,1\)", text), text
        again = Run(folder, pair, False, "--corrections", learnt, name="again")
        text = memsim("diff", "--truth", f"{folder}/again", f"{folder}/real")
    equal({m[2]: int(m[1]) for m in (
        re.search(r"workspace_bytes=(\d+) .*\"(.*) math=", line)
        for line in again.records("convolution"))}, card)
    assert "  0 of 2 convolutions of the run ask for another" in text, text


def shape_key(text):
    """convolution_key.h's, of a forward convolution."""
    key = 0xcbf29ce484222325
    for byte in text.encode():
        key = (key ^ byte) * 0x100000001b3 % (1 << 64)
    return key | 1


def learn(real_size, said):
    """The card's cuDNN asks for other workspaces than the catalogue has, and its
    memory is slower."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Run(folder, CONVOLUTIONS, real=False)
        sizes = {m[1] for line in plain.lines
                 if (m := re.search(r" convolution .* workspace_bytes=(\d+)",
                                    line)) and m[1] != "0"}
        assert sizes
        other = pathlib.Path(folder) / "other.json"
        other.write_text('{"base": "h100-sxm-80gb", "memory_gbps": 1000}')
        Run(folder, CONVOLUTIONS, True, card=("--gpu", other), environment=[
            "MEMSIM_WORKSPACES=" + ",".join(f"{s}={real_size(int(s))}"
                                            for s in sizes)])
        learnt = f"{folder}/learnt.json"
        text = memsim("diff", "--truth", "--save-corrections", learnt,
                      f"{folder}/plain", f"{folder}/real")
        assert said in text, text
        assert not re.search(r"peak reserved .* [-+]0\.00%", text), text
        Run(folder, CONVOLUTIONS, False, "--corrections", learnt, name="again")
        text = memsim("diff", "--truth", f"{folder}/again", f"{folder}/real")
    for name in "peak allocated", "peak reserved", "peak used":
        assert re.search(name + r" .* [-+]0\.00%", text), text
    assert re.search(r"the same \d+ events in both", text), text
    assert "another size" not in text, text


@test
def graphs_are_recorded_and_have_times():
    plain, real = both(GRAPH)
    kinds = "capture_join", "capture_end", "graph_instantiate", "graph_launch"
    equal(real.kinds(*kinds), plain.kinds(*kinds))
    equal(real.output, plain.output)
    inside = real.lines.index(next(line for line in real.lines
                                   if "capture_join" in line))
    launch = next(i for i, line in enumerate(real.lines)
                  if i > inside and " launch " in line)
    assert " measured " in real.lines[launch - 1], real.lines[launch - 1]
    assert "duration_ns=0 " not in real.lines[launch - 1]


@test
def a_job_may_profile_itself():
    with tempfile.TemporaryDirectory() as folder:
        real = Run(folder, PROFILE, real=True)
        equal(real.output, "True\n")


if __name__ == "__main__":
    main()
