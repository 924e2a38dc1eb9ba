# SPDX-License-Identifier: Apache-2.0
"""FlashAttention 2's extension, which memsim stands in for, against PyTorch's
operator, which is built of the same source: what both allocate, which kernels
they launch, how these are priced. Starts its own runs: MEMSIM_BUILD."""
import itertools
import json
import os
import subprocess
import sys
import tempfile

from harness import equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
# batch, queries, keys, heads, heads of keys, head size
SHAPES = [(4, 2048, 2048, 16, 16, 64), (2, 1000, 1000, 16, 4, 128),
          (1, 4096, 4096, 8, 8, 256), (2, 300, 300, 12, 12, 96),
          (1, 1, 4096, 8, 2, 128), (1, 64, 8192, 4, 4, 32),
          (1, 128, 128, 2, 2, 192), (2, 17, 1000, 4, 4, 40)]


def requested():
    import torch
    return torch.cuda.memory_stats()["requested_bytes.all.peak"]


def taken(call):
    """What CALL returns, and what it takes at most: as asked for, since
    what the cache gives more depends on what was there before."""
    import torch
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    result = call()
    return result, requested() - before


def kernels(call):
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiled.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    return [(e["name"].replace("pytorch_flash::", "flash::"),
             e["args"]["grid"], e["args"]["block"], round(e["dur"], 3))
            for e in sorted(events, key=lambda e: e.get("ts", 0))
            if e.get("cat") == "kernel" and "flash" in e["name"]]


def compare(shape, causal, dropout, dtype):
    """The extension's call beside PyTorch's own. Under memsim."""
    import torch
    import flash_attn_2_cuda
    batch, queries, keys, heads, kv_heads, size = shape
    q = torch.empty(batch, queries, heads, size, device="cuda",
                    dtype=dtype)
    k = torch.empty(batch, keys, kv_heads, size, device="cuda",
                    dtype=dtype)
    v, grad = torch.empty_like(k), torch.empty_like(q)

    def forward():
        return flash_attn_2_cuda.fwd(
            q, k, v, None, None, dropout, 1.0, causal, -1, -1, 0.0, False,
            None)

    def torchs_forward():
        return torch.ops.aten._flash_attention_forward(
            q, k, v, None, None, queries, keys, dropout, causal, False,
            scale=1.0)

    (out, lse, _, _), bytes_ = taken(forward)
    (*torchs, seed, offset, _), torchs_bytes = taken(torchs_forward)
    # PyTorch makes a second tensor of the generator's state, which stays
    # empty, and with dropout one more of 16 bytes for the time of the call
    equal(bytes_ + offset.nbytes + 16 * bool(dropout), torchs_bytes)
    equal((out.shape, out.stride(), lse.shape),
          (torchs[0].shape, torchs[0].stride(), torchs[1].shape))

    def backward():
        return flash_attn_2_cuda.bwd(
            grad, q, k, v, out, lse, None, None, None, None, dropout, 1.0,
            causal, -1, -1, 0.0, False, None, None)

    def torchs_backward():
        return torch.ops.aten._flash_attention_backward(
            grad, q, k, v, *torchs, None, None, queries, keys, dropout,
            causal, seed, offset, scale=1.0)

    equal(taken(backward)[1], taken(torchs_backward)[1])
    for ours, theirs in ((forward, torchs_forward),
                         (backward, torchs_backward)):
        equal(kernels(ours), kernels(theirs))


def script():
    """Run under memsim, with a flash_attn that has no extension."""
    import torch

    for shape, causal, dropout in itertools.product(SHAPES, (True, False),
                                                    (0.0, 0.1)):
        dtype = torch.bfloat16 if causal else torch.float16
        try:
            compare(shape, causal, dropout, dtype)
        except AssertionError as error:
            raise AssertionError(f"{shape} {causal} {dropout}: {error}")


def run(gpu, *command):
    """The output of COMMAND under memsim, beside an empty flash_attn."""
    with tempfile.TemporaryDirectory() as scratch:
        os.mkdir(os.path.join(scratch, "flash_attn"))
        open(os.path.join(scratch, "flash_attn", "__init__.py"), "w").close()
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "--gpu", gpu, "--",
             sys.executable, *command],
            env={**os.environ, "PYTHONPATH": scratch}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    equal((done.returncode, done.stdout[-3000:] * bool(done.returncode)),
          (0, ""))
    return done.stdout


@test
def all_is_as_in_pytorch_on_an_a100():
    run("a100-sxm-80gb", __file__, "script")


@test
def all_is_as_in_pytorch_on_an_rtx_4090():
    run("rtx-4090", __file__, "script")


CACHE = """
import torch, flash_attn_2_cuda
x = dict(device="cuda", dtype=torch.bfloat16)
q, new = torch.empty(2, 1, 8, 64, **x), torch.empty(2, 1, 2, 64, **x)
cache = torch.empty(2, 8192, 2, 64, **x)
lengths = torch.tensor([5, 9], device="cuda", dtype=torch.int32)
out, lse = flash_attn_2_cuda.fwd_kvcache(
    q, cache, cache, new, new, lengths, None, None, None, None, None, None,
    None, 1.0, True, -1, -1, 0.0, True, 0)
assert out.shape == q.shape and lse.shape == (2, 8, 1), (out.shape, lse.shape)
rows = torch.empty(300, 8, 64, **x)
starts = torch.tensor([0, 100, 300], device="cuda", dtype=torch.int32)
shared = torch.empty(300, 2, 64, **x)
out, lse, _, state = flash_attn_2_cuda.varlen_fwd(
    rows, shared, shared, None, starts, starts, None, None, None, None, 200,
    200, 0.0, 1.0, False, True, -1, -1, 0.0, False, None)
assert out.shape == rows.shape and lse.shape == (8, 300)
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_stats()["requested_bytes.all.current"]
grads = flash_attn_2_cuda.varlen_bwd(
    out, rows, shared, shared, out, lse, None, None, None, starts, starts,
    None, 200, 200, 0.0, 1.0, False, True, -1, -1, 0.0, False, None, state)
assert [g.shape for g in grads[:3]] == [rows.shape, shared.shape, shared.shape]
peak = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before
padded = 300 + 128 * 2
assert peak == (2 * (rows.numel() + 2 * shared.numel() + 2 * rows.numel())
                + 4 * 8 * padded * (1 + 64)), peak
try:
    flash_attn_2_cuda.fwd(q.float(), cache, cache, None, None, 0.0, 1.0, True,
                          -1, -1, 0.0, False, None)
    raise SystemExit("fp32 was taken")
except RuntimeError as error:
    assert "fp16 and bf16" in str(error), error
"""


@test
def caches_and_ragged_batches_have_their_shapes():
    text = run("h100-sxm-80gb", "-c", CACHE)
    assert "memsim stands in for it" in text, text


@test
def without_flash_attn_there_is_no_extension():
    done = subprocess.run(
        [f"{BUILD}/bin/memsim", "run", "-q", "--", sys.executable, "-c",
         "import torch, flash_attn_2_cuda"], text=True, capture_output=True)
    assert done.returncode == 1, done.returncode
    assert "No module named 'flash_attn_2_cuda'" in done.stderr, done.stderr


if sys.argv[1:] == ["script"]:
    script()
else:
    main()
