# SPDX-License-Identifier: Apache-2.0
"""The blocks at the peak have the types and shapes of the tensors that lie in
them, and the names of parameters and states. Starts runs of its own with the
programs of MEMSIM_BUILD."""
import json
import os
import subprocess
import sys
import tempfile

from harness import equal, main, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MEMSIM = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build") + "/bin/memsim"

# What lies where at the end, which is the peak, in its own words.
TOLD = """
def tell(named):
    print(json.dumps({t.untyped_storage().data_ptr(): [
        str(t.dtype).rpartition(".")[2], list(t.shape), name]
        for name, t in named}))
"""
TENSORS = """import json, torch
cuda = dict(device="cuda")
kept = [
    torch.empty(3, 5, 7, **cuda), torch.zeros((), **cuda),
    torch.ones(9, dtype=torch.int64, **cuda),
    torch.empty(2, 3, 4, 5, dtype=torch.bfloat16,
                memory_format=torch.channels_last, **cuda),
    torch.empty_strided((4, 6), (1, 4), dtype=torch.float16, **cuda),
    torch.empty(33, dtype=torch.complex64, **cuda),
    torch.empty(17, dtype=torch.float8_e4m3fn, **cuda),
    torch.empty(17, dtype=torch.bool, **cuda),
    torch.randn(64, 50).cuda(), torch.randn(64, 50).to("cuda", torch.float64),
    torch.randn(16, 32, **cuda) @ torch.randn(32, 8, **cuda),
    torch.cat([torch.ones(2, 3, **cuda), torch.ones(4, 3, **cuda)]),
    torch.randn(6, 10, **cuda).softmax(-1), torch.ones(8, **cuda)[:3].clone(),
    torch.nn.functional.conv2d(torch.randn(2, 3, 8, 8, **cuda),
                               torch.randn(4, 3, 3, 3, **cuda)),
    torch.ones(5, 6, **cuda).sum(0), torch.empty(1 << 26, **cuda),
]
try:
    torch.empty(1 << 50, **cuda)
except torch.OutOfMemoryError:
    pass
raw = torch.cuda.caching_allocator_alloc(4096)
""" + TOLD + """
tell([("", t) for t in kept])
print(raw)
"""
TRAINING = """import json, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [torch.nn.Linear(64, 64) for _ in range(2)])
        self.norm = torch.nn.BatchNorm1d(64)
        self.mix = torch.nn.Parameter(torch.ones(64, 64))
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return self.norm(x) @ self.mix
net = Net().cuda()
adam = torch.optim.AdamW(net.parameters(), foreach=False, amsgrad=True)
for step in range(2):
    adam.zero_grad()
    net(torch.randn(32, 64, device="cuda")).sum().backward()
    adam.step()
large = torch.empty(1 << 26, device="cuda")  # the peak is here
""" + TOLD + """
named = [("", large)]
for name, p in net.named_parameters():
    named += [(f"parameter {name}", p), (f"gradient of {name}", p.grad)]
    named += [(f"{key} of {name}", t) for key, t in adam.state[p].items()
              if t.is_cuda]
tell(named + [(f"buffer {name}", b) for name, b in net.named_buffers()])
"""


def run(text, folder):
    """(blocks at the peak by address, things, what the script printed)"""
    script = f"{folder}/job.py"
    with open(script, "w") as file:
        file.write(text)
    done = subprocess.run([MEMSIM, "run", "-q", "--json", f"{folder}/out.json",
                           "--", sys.executable, script], check=True,
                          timeout=300, stdout=subprocess.PIPE, text=True)
    with open(f"{folder}/out.json") as file:
        device = json.load(file)["ranks"][0]["devices"][0]
    blocks = {int(s["address"], 16) + b["offset"]: b
              for s in device["segments_at_peak"] for b in s["blocks"]
              if b["state"] == "allocated"}
    return blocks, device["things_at_peak"], done.stdout.splitlines()


@test
def every_tensor_has_its_type_and_shape():
    with tempfile.TemporaryDirectory() as folder:
        blocks, _, (told, raw) = run(TENSORS, folder)
        for address, (dtype, shape, _) in json.loads(told).items():
            block = blocks[int(address)]
            equal((block.get("dtype"), block.get("shape")), (dtype, shape))
        # The request before this one failed; this one is no tensor's.
        assert "dtype" not in blocks[int(raw)], blocks[int(raw)]


@test
def parameters_gradients_and_states_have_names():
    with tempfile.TemporaryDirectory() as folder:
        blocks, things, (told,) = run(TRAINING, folder)
        for address, (dtype, shape, name) in json.loads(told).items():
            block = blocks[int(address)]
            if name.endswith("bias"):  # may be a view of what was allocated
                block["shape"] = block["shape"][-1:]
            equal((block["dtype"], block["shape"]), (dtype, shape))
            of, _, path = name.rpartition(" ")
            module, _, last = path.rpartition(".")
            if not name:
                continue
            equal(block["module"], module or "Net")
            equal(block["name"], last if of in ("parameter", "buffer",
                                                "gradient of")
                  else f"{of} {last}")
        labels = {t["label"]: (t.get("count"), t.get("dtype"), t.get("shape"))
                  for t in things}
        for label in ("parameter layers.*.weight", "gradient of layers.*.weight",
                      "exp_avg of layers.*.weight",
                      "max_exp_avg_sq of layers.*.weight"):
            equal(labels[label], (2, "float32", [64, 64]))
        equal(labels["buffer norm.running_mean"], (1, "float32", [64]))


if __name__ == "__main__":
    main()
