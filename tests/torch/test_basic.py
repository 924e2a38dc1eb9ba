# SPDX-License-Identifier: Apache-2.0
"""What every PyTorch version must do on the fake device. Needs torch alone."""
import gc
import io
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from harness import Skip, equal, main, test

MIB = 2**20
GPU = "cuda"


def allocated():
    gc.collect()
    return torch.cuda.memory_allocated()


class fresh:
    """Statistics from zero, and nothing left behind."""

    def __enter__(self):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.before = allocated()
        return self

    def __exit__(self, *_):
        gc.collect()
        torch.cuda.empty_cache()


@test
def the_device_is_the_catalogue_s():
    equal(torch.cuda.is_available(), True)
    p = torch.cuda.get_device_properties(0)
    equal(p.name, "NVIDIA H100 80GB HBM3")
    equal((p.major, p.minor, p.multi_processor_count), (9, 0, 132))
    free, total = torch.cuda.mem_get_info()
    equal(total, p.total_memory)
    assert 0 < free < total


@test
def sizes_are_rounded_as_the_allocator_rounds():
    with fresh() as state:
        a = torch.empty(1, device=GPU)
        equal(allocated() - state.before, 512)
        b = torch.empty(MIB + 1, dtype=torch.uint8, device=GPU)
        equal(allocated() - state.before, 512 + MIB + 512)
        equal(torch.cuda.memory_reserved() % (2 * MIB), 0)
        del a, b
        equal(allocated(), state.before)


@test
def small_values_are_true():
    x = torch.tensor([1.5, -2.0, 3.25])
    y = x.to(GPU)
    equal(y.tolist(), [1.5, -2.0, 3.25])
    equal(y.clone()[1].item(), -2.0)
    equal(torch.zeros(5, device=GPU).tolist(), [0.0] * 5)
    equal(torch.ones(3, device=GPU).tolist(), [1.0] * 3)
    equal(torch.full((2,), 7, device=GPU).tolist(), [7, 7])
    equal(torch.tensor(True, device=GPU).item(), True)
    equal(torch.full((), 0.5, dtype=torch.bfloat16, device=GPU).item(), 0.5)


@test
def tensors_print():
    text = repr(torch.zeros(3, 4, device=GPU))
    assert "cuda:0" in text and "0." in text, text
    repr(torch.randn(100, 100, device=GPU))


@test
def nan_checks_find_nothing():
    x = torch.randn(1000, device=GPU)
    equal(torch.isnan(x).any().item(), False)
    equal(bool(torch.isfinite(x.sum().cpu())), True)
    norm = nn.utils.clip_grad_norm_([nn.Parameter(x)], 1.0)
    assert float(norm) == float(norm)


@test
def grad_scaler_keeps_its_scale():
    model = nn.Linear(16, 16).to(GPU)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(8, 16, device=GPU)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    equal(scaler.get_scale(), 1024.0)


@test
def rng_state_round_trips():
    torch.cuda.manual_seed(17)
    state = torch.cuda.get_rng_state()
    torch.randn(10, device=GPU)
    assert not torch.equal(state, torch.cuda.get_rng_state())
    torch.cuda.set_rng_state(state)
    assert torch.equal(state, torch.cuda.get_rng_state())


@test
def training_repeats_to_the_byte():
    def peak():
        with fresh():
            model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(),
                                  nn.Linear(1024, 256)).to(GPU)
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(3):
                loss = model(torch.randn(512, 256, device=GPU)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return torch.cuda.max_memory_allocated()
    first = peak()
    equal(peak(), first)
    assert first > 0


@test
def attention_and_layers_train():
    layer = nn.TransformerEncoderLayer(128, 4, batch_first=True).to(GPU)
    x = torch.randn(4, 64, 128, device=GPU, requires_grad=True)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            layer(x).sum().backward()
    q = torch.randn(2, 4, 64, 32, device=GPU, dtype=torch.bfloat16,
                    requires_grad=True)
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    equal(q.grad.shape, q.shape)


@test
def an_oom_is_torch_s_own_and_can_be_survived():
    held = torch.empty(70 << 30, dtype=torch.uint8, device=GPU)
    try:
        torch.empty(20 << 30, dtype=torch.uint8, device=GPU)
        raise AssertionError("20 GiB more fitted")
    except torch.cuda.OutOfMemoryError as error:
        text = str(error)
    for part in ("CUDA out of memory. Tried to allocate 20.00 GiB",
                 "has a total capacity of 79.18 GiB", "reserved by PyTorch"):
        assert part in text, text
    del held
    torch.cuda.empty_cache()
    torch.empty(20 << 30, dtype=torch.uint8, device=GPU)
    equal(torch.cuda.memory_stats()["num_ooms"], 1)
    torch.cuda.empty_cache()


@test
def streams_and_events_work():
    side = torch.cuda.Stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(side):
        start.record()
        x = torch.randn(1000, device=GPU)
        end.record()
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((4,), float(i))


@test
def data_loader_workers_fork():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8,
                                         num_workers=2, pin_memory=True)
    seen = [batch.to(GPU, non_blocking=True).cpu()[:, 0].tolist()
            for batch in loader]
    equal(sorted(sum(seen, [])), [float(i) for i in range(64)])


@test
def a_forked_child_is_refused_as_by_cuda():
    torch.zeros(1, device=GPU)
    pid = os.fork()
    if pid == 0:
        try:
            torch.zeros(1, device=GPU)
        except RuntimeError as error:
            os._exit(7 if "forked subprocess" in str(error) else 8)
        os._exit(9)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)


@test
def checkpoints_save_and_load():
    model = nn.Linear(32, 32).to(GPU)
    nn.init.constant_(model.weight, 0.25)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file, map_location=GPU, weights_only=True)
    equal(state["weight"].shape, (32, 32))
    equal(state["weight"][3, 4].item(), 0.25)


@test
def linear_algebra_and_fft_run():
    x = torch.randn(64, 64, device=GPU)
    equal(torch.fft.fft(x).shape, (64, 64))
    equal((x @ x).shape, (64, 64))
    equal(torch.bmm(x[None], x[None]).shape, (1, 64, 64))
    equal(torch.einsum("ij,kj->ik", x, x).shape, (64, 64))


@test
def sorting_and_indexing_have_shapes():
    x = torch.randn(100, 50, device=GPU)
    equal(x.sort().values.shape, (100, 50))
    equal(x.topk(5).indices.shape, (100, 5))
    equal(x.cumsum(0).shape, (100, 50))
    equal(x.gather(1, torch.zeros(100, 3, dtype=torch.int64,
                                  device=GPU)).shape, (100, 3))
    equal(torch.where(x > 0, x, -x).shape, (100, 50))


@test
def a_device_that_is_not_there_is_an_error():
    if torch.cuda.device_count() > 1:
        raise Skip("more than one device")
    try:
        torch.zeros(1, device="cuda:1")
    except RuntimeError as error:
        assert "invalid device ordinal" in str(error), error
    else:
        raise AssertionError("cuda:1 exists")


if __name__ == "__main__":
    main()
