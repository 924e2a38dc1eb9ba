# SPDX-License-Identifier: Apache-2.0
"""Small programs whose memory grows from step to step, and as many that look
as if it did. Each is a generator that yields after each step. As a program:

    growth_programs.py STEPS FILE NAME...

runs each NAME in a process and on a GPU of its own, as a rank, for STEPS steps
or until memory runs out, and writes `NAME WHOLE-STEPS HOST-BYTES-PER-STEP` to
FILE."""
import collections
import copy
import ctypes
import functools
import gc
import itertools
import os
import random
import sys

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

LEAKS, INNOCENTS = {}, {}
WIDTH, BATCH = 512, 1024
HOST_WARM_UP = 200  # steps


def leak(function):
    LEAKS[function.__name__] = function
    return function


def innocent(function):
    INNOCENTS[function.__name__] = function
    return function


def net(width=WIDTH):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10)).cuda()


def batch(rows=BATCH, width=WIDTH):
    return (torch.randn(rows, width, device="cuda"),
            torch.randint(0, 10, (rows,), device="cuda"))


class Training:
    """A model, its optimizer, and a step."""

    def __init__(self, optimizer=torch.optim.Adam, model=None, **options):
        self.model = model or net()
        self.optimizer = optimizer(self.model.parameters(), lr=1e-3, **options)

    def step(self, rows=BATCH, **backward):
        x, y = batch(rows)
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward(**backward)
        self.optimizer.step()
        return loss


# --- memory grows ------------------------------------------------------------

@leak
def losses_with_graph():
    t, kept = Training(), []
    while True:
        kept.append(t.step(retain_graph=True))
        yield


@leak
def sum_of_losses():
    t, total = Training(), 0
    while True:
        total = total + t.step(retain_graph=True)
        yield


@leak
def running_mean_with_graph():
    t, mean = Training(), torch.zeros((), device="cuda")
    while True:
        mean = 0.9 * mean + 0.1 * t.step(retain_graph=True)
        yield


@leak
def losses_in_a_dict():
    t, kept = Training(torch.optim.SGD), {}
    for step in itertools.count():
        kept[step] = t.step(retain_graph=True)
        yield


@leak
def outputs_of_training():
    t, kept = Training(), []
    while True:
        x, y = batch()
        out = t.model(x)
        t.optimizer.zero_grad()
        F.cross_entropy(out, y).backward()
        t.optimizer.step()
        kept.append(F.pad(out.detach(), (0, 200)))
        yield


@leak
def outputs_with_graph_in_evaluation():
    model, kept = net(), []
    while True:
        kept.append(model(batch()[0]))
        yield


@leak
def outputs_in_evaluation():
    model, kept = nn.Linear(WIDTH, WIDTH).cuda(), []
    while True:
        with torch.no_grad():
            kept.append(model(batch()[0]))
        yield


@leak
def inputs_kept():
    t, kept = Training(), []
    while True:
        x, y = batch()
        kept.append(x)
        t.optimizer.zero_grad()
        F.cross_entropy(t.model(x), y).backward()
        t.optimizer.step()
        yield


@leak
def a_hook_keeps_activations():
    t, kept = Training(), []
    t.model[1].register_forward_hook(
        lambda module, args, out: kept.append(out.detach()))
    while True:
        t.step()
        yield


@leak
def a_tensor_hook_keeps_gradients():
    t, kept = Training(), []
    t.model[2].weight.register_hook(lambda grad: kept.append(grad.clone()))
    while True:
        t.step()
        yield


@leak
def gradients_kept():
    t, kept = Training(), []
    while True:
        t.step()
        kept.append([p.grad.clone() for p in t.model.parameters()])
        yield


@leak
def a_cache_by_concatenation():
    model, cache = nn.Linear(WIDTH, WIDTH).cuda(), None
    with torch.no_grad():
        while True:
            new = model(batch()[0])
            cache = new if cache is None else torch.cat([cache, new])
            yield


@leak
def a_replay_buffer():
    t, buffer = Training(), collections.deque()
    while True:
        buffer.append(torch.randn(256, WIDTH, device="cuda"))
        t.step()
        yield


@leak
def kept_every_third_step():
    t, kept = Training(), []
    for step in itertools.count():
        t.step()
        if step % 3 == 2:
            with torch.no_grad():
                kept.append(t.model[:2](batch()[0]))
        yield


@leak
def two_sizes_in_turn():
    t, kept = Training(), []
    for step in itertools.count():
        t.step()
        kept.append(torch.randn(2 + step % 2, 1 << 18, device="cuda"))
        yield


@leak
def weights_of_each_step():
    t, kept = Training(), []
    while True:
        t.step()
        kept.append([p.detach().clone() for p in t.model.parameters()])
        yield


@leak
def models_copied():
    t, kept = Training(), []
    while True:
        t.step()
        kept.append(copy.deepcopy(t.model))
        yield


@leak
def states_of_the_optimizer_copied():
    t, kept = Training(), []
    while True:
        t.step()
        kept.append(copy.deepcopy(t.optimizer.state_dict()))
        yield


@leak
def buffers_registered():
    t = Training()
    for step in itertools.count():
        t.step()
        t.model.register_buffer(f"seen{step}",
                                torch.zeros(1 << 20, device="cuda"))
        yield


@leak
def parameters_added():
    t = Training()
    while True:
        layer = nn.Linear(WIDTH, WIDTH).cuda()
        t.optimizer.add_param_group({"params": list(layer.parameters())})
        x, y = batch()
        t.optimizer.zero_grad()
        F.cross_entropy(t.model(layer(x)), y).backward()
        t.optimizer.step()
        yield


@leak
def unfrozen_one_by_one():
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(40)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model.requires_grad_(False)
    for layer in reversed(model):
        layer.requires_grad_(True)
        optimizer.zero_grad()
        model(batch(64)[0]).sum().backward()
        optimizer.step()
        yield


@leak
def hidden_state_with_graph():
    rnn = nn.RNNCell(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.SGD(rnn.parameters(), 0.1)
    hidden = torch.zeros(BATCH, WIDTH, device="cuda")
    while True:
        hidden = rnn(batch()[0], hidden)
        optimizer.zero_grad()
        # Without the backward through all earlier steps: that takes time only.
        hidden.detach().sum()
        rnn.weight_ih.grad = torch.zeros_like(rnn.weight_ih)
        optimizer.step()
        yield


@leak
def gradients_that_have_a_graph():
    t = Training(torch.optim.SGD)
    while True:
        x, y = batch()
        F.cross_entropy(t.model(x), y).backward(create_graph=True)
        with torch.no_grad():
            for p in t.model.parameters():
                p.data.sub_(p.grad, alpha=1e-3)
        t.optimizer.step()
        yield


@leak
def context_grows():
    model = nn.Sequential(nn.Embedding(100, 256),
                          nn.TransformerEncoderLayer(256, 4, batch_first=True))
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    ids = torch.zeros(8, 64, dtype=torch.long, device="cuda")
    while True:
        optimizer.zero_grad()
        model(ids).sum().backward()
        optimizer.step()
        ids = torch.cat([ids, torch.zeros(8, 32, dtype=torch.long,
                                          device="cuda")], 1)
        yield


@leak
def lengths_kept():
    t, kept, chance = Training(), [], random.Random(0)
    while True:
        rows = chance.randrange(128, 1024)
        kept.append(t.step(rows, retain_graph=True))
        yield


@leak
def predictions_of_a_metric():
    t, predictions = Training(), []
    while True:
        x, y = batch()
        out = t.model(x)
        t.optimizer.zero_grad()
        F.cross_entropy(out, y).backward()
        t.optimizer.step()
        predictions.append(out.detach().softmax(-1).repeat(1, 50))
        yield


@leak
def a_stream_of_its_own():
    t, kept, stream = Training(), [], torch.cuda.Stream()
    while True:
        t.step()
        with torch.cuda.stream(stream):
            kept.append(torch.empty(1 << 20, device="cuda"))
        yield


@leak
def losses_under_autocast():
    t, kept = Training(), []
    while True:
        x, y = batch()
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(t.model(x), y)
        t.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        t.optimizer.step()
        kept.append(loss)
        yield


@leak
def checkpointed_losses():
    t, kept = Training(), []
    while True:
        x, y = batch()
        x.requires_grad_()
        loss = F.cross_entropy(
            checkpoint(t.model, x, use_reentrant=False), y)
        t.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        t.optimizer.step()
        kept.append(loss)
        yield


@leak
def a_cached_function():
    t = Training()

    @functools.lru_cache(maxsize=None)
    def mask(step):
        return torch.ones(BATCH, WIDTH, device="cuda")

    for step in itertools.count():
        mask(step)
        t.step()
        yield


@leak
def a_row_keeps_its_tensor():
    t, kept = Training(), []
    while True:
        x, _ = batch()
        kept.append(x[0])
        t.step()
        yield


@leak
def history_stacked():
    t, kept = Training(), []
    while True:
        t.step()
        kept.append(torch.randn(256, WIDTH, device="cuda"))
        torch.stack(kept[-2:]).mean(0)
        yield


@leak
def a_table_that_is_resized():
    table = torch.zeros(1024, WIDTH, device="cuda")
    t = Training()
    while True:
        t.step()
        table = torch.cat([table, torch.zeros(512, WIDTH, device="cuda")])
        yield


@leak
def losses_of_accumulation():
    t, kept = Training(), []
    while True:
        t.optimizer.zero_grad()
        for _ in range(4):
            x, y = batch(256)
            loss = F.cross_entropy(t.model(x), y)
            loss.backward(retain_graph=True)
            kept.append(loss)
        t.optimizer.step()
        yield


@leak
def attention_maps_kept():
    layer = nn.MultiheadAttention(256, 4, batch_first=True).cuda()
    optimizer, kept = torch.optim.SGD(layer.parameters(), 0.1), []
    x = torch.randn(4, 256, 256, device="cuda")
    while True:
        out, weights = layer(x, x, x, average_attn_weights=False)
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        kept.append(weights.detach())
        yield


@leak
def feature_maps_of_a_convolution():
    model, kept = nn.Conv2d(3, 64, 3, padding=1).cuda(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    while True:
        x = torch.randn(4, 3, 64, 64, device="cuda")
        out = model(x)
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        kept.append(out.detach())
        yield


@leak
def noise_kept_by_a_sampler():
    model, kept = nn.Linear(WIDTH, WIDTH).cuda(), []
    with torch.no_grad():
        while True:
            noise = torch.randn(BATCH, WIDTH, device="cuda")
            kept.append(noise)
            model(noise)
            yield


@leak
def a_module_that_remembers():
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.seen = nn.Linear(WIDTH, WIDTH), []

        def forward(self, x):
            self.seen.append(x)
            return self.linear(x)

    t = Training(model=nn.Sequential(Memory(), nn.Linear(WIDTH, 10)).cuda())
    while True:
        t.step()
        yield


@leak
def profiles_of_gradients():
    t, kept = Training(torch.optim.SGD), []
    while True:
        t.step()
        kept.append(torch.cat([p.grad.flatten()
                               for p in t.model.parameters()]))
        yield


@leak
def a_cache_that_spreads():
    """Each entry moves once into a larger segment, which cannot be given back
    then; as much is allocated as before."""
    t, size = Training(), 10 << 20
    entries = collections.deque(
        torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(21))
    heads = collections.deque(
        torch.empty(512, dtype=torch.uint8, device="cuda") for _ in entries)
    while True:
        t.step(64)
        torch.empty(size + (8 << 20), dtype=torch.uint8, device="cuda")
        entries.append(torch.empty(size + 512, dtype=torch.uint8,
                                   device="cuda"))
        entries.popleft()
        if heads:
            heads.popleft()
        yield


@leak
def two_leaks():
    t, losses, inputs = Training(), [], []
    while True:
        inputs.append(torch.randn(128, WIDTH, device="cuda"))
        losses.append(t.step(retain_graph=True))
        yield


# --- it only looks so --------------------------------------------------------

@innocent
def plain():
    t = Training()
    while True:
        t.step()
        yield


@innocent
def momentum():
    t = Training(torch.optim.SGD, momentum=0.9)
    while True:
        t.step()
        yield


@innocent
def accumulation():
    t = Training()
    while True:
        t.optimizer.zero_grad()
        for _ in range(3):
            x, y = batch(256)
            F.cross_entropy(t.model(x), y).backward()
        t.optimizer.step()
        yield


@innocent
def moving_average_of_weights():
    t = Training()
    average = copy.deepcopy(t.model)
    while True:
        t.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), t.model.parameters()):
                a.lerp_(p, 0.1)
        yield


@innocent
def evaluation_every_third_step():
    t = Training()
    for step in itertools.count():
        t.step()
        if step % 3 == 2:
            with torch.no_grad():
                outputs = [t.model(batch()[0]) for _ in range(4)]
            torch.cat(outputs).mean()
            outputs.clear()
        yield


@innocent
def the_last_three_losses():
    t, kept = Training(), collections.deque(maxlen=3)
    while True:
        kept.append(t.step(retain_graph=True))
        yield


@innocent
def a_bounded_buffer():
    t, buffer = Training(), collections.deque(maxlen=4)
    while True:
        buffer.append(torch.randn(256, WIDTH, device="cuda"))
        t.step()
        yield


@innocent
def numbers_of_losses():
    t, kept = Training(), []
    while True:
        kept.append(t.step().item())
        yield


@innocent
def outputs_on_the_host():
    model, kept = net(), []
    while True:
        with torch.no_grad():
            kept.append(model(batch()[0]).cpu())
        yield


@innocent
def tuned_convolutions():
    torch.backends.cudnn.benchmark = True
    model = nn.Conv2d(3, 32, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    while True:
        optimizer.zero_grad()
        model(torch.randn(8, 3, 64, 64, device="cuda")).sum().backward()
        optimizer.step()
        yield


@innocent
def a_schedule():
    t = Training()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(t.optimizer, 100)
    while True:
        t.step()
        schedule.step()
        yield


@innocent
def scaled_gradients():
    t, scaler = Training(), torch.amp.GradScaler("cuda")
    while True:
        x, y = batch()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(t.model(x), y)
        t.optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(t.optimizer)
        scaler.update()
        yield


@innocent
def checkpointed():
    t = Training()
    while True:
        x, y = batch()
        t.optimizer.zero_grad()
        F.cross_entropy(checkpoint(t.model, x.requires_grad_(),
                                   use_reentrant=False), y).backward()
        t.optimizer.step()
        yield


@innocent
def gradients_set_to_zero():
    t = Training()
    while True:
        x, y = batch()
        t.optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(t.model(x), y).backward()
        t.optimizer.step()
        yield


@innocent
def random_lengths():
    t, chance = Training(), random.Random(1)
    while True:
        t.step(chance.randrange(64, 1024))
        yield


@innocent
def sorted_lengths():
    t = Training()
    for step in itertools.count():
        t.step(64 + 61 * step)
        yield


@innocent
def two_lengths():
    t = Training()
    for step in itertools.count():
        t.step(256 + 512 * (step % 2))
        yield


@innocent
def masks_by_length():
    t, masks = Training(), {}
    for step in itertools.count():
        length = 128 * (step % 2 + 1)
        if length not in masks:
            masks[length] = torch.ones(length, length, device="cuda")
        t.step()
        yield


@innocent
def a_ring():
    t, ring = Training(), torch.zeros(16, 256, WIDTH, device="cuda")
    for step in itertools.count():
        ring[step % 16] = torch.randn(256, WIDTH, device="cuda")
        t.step()
        yield


@innocent
def a_prefetcher():
    t, stream = Training(), torch.cuda.Stream()
    following = batch()
    while True:
        x, y = following
        with torch.cuda.stream(stream):
            following = batch()
        t.optimizer.zero_grad()
        F.cross_entropy(t.model(x), y).backward()
        t.optimizer.step()
        torch.cuda.current_stream().wait_stream(stream)
        yield


@innocent
def inference():
    model = net()
    while True:
        with torch.no_grad():
            model(batch()[0])
        yield


@innocent
def caches_of_generation():
    model = nn.Linear(WIDTH, WIDTH).cuda()
    with torch.no_grad():
        while True:
            cache = torch.zeros(0, WIDTH, device="cuda")
            for _ in range(4):
                cache = torch.cat([cache, model(batch(64)[0])])
                yield


@innocent
def the_best_weights():
    t, best = Training(), None
    for step in itertools.count():
        t.step()
        if step % 2 == 0:
            best = copy.deepcopy(t.model.state_dict())
        yield best is not None


@innocent
def two_optimizers():
    g, d = Training(), Training()
    while True:
        g.step(256)
        d.step(256)
        yield


@innocent
def hidden_state_detached():
    rnn = nn.RNNCell(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.SGD(rnn.parameters(), 0.1)
    hidden = torch.zeros(256, WIDTH, device="cuda")
    while True:
        hidden = rnn(batch(256)[0], hidden.detach())
        optimizer.zero_grad()
        hidden.sum().backward()
        optimizer.step()
        yield


@innocent
def a_hook_keeps_the_last():
    t, kept = Training(), {}
    t.model[1].register_forward_hook(
        lambda module, args, out: kept.update(last=out.detach()))
    while True:
        t.step()
        yield


@innocent
def a_sum_without_graph():
    t, total = Training(), torch.zeros((), device="cuda")
    while True:
        total += t.step().detach()
        yield


@innocent
def caches_emptied():
    t = Training()
    while True:
        t.step()
        torch.cuda.empty_cache()
        yield


@innocent
def a_graph_replayed():
    model = net()
    x = torch.randn(BATCH, WIDTH, device="cuda")
    with torch.no_grad():
        model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
    while True:
        graph.replay()
        model(x)
        yield


@innocent
def unfrozen_once():
    t = Training()
    t.model[0].requires_grad_(False)
    for step in itertools.count():
        if step == 3:
            t.model[0].requires_grad_(True)
        t.step()
        yield


@innocent
def few_curvature_pairs():
    model = net(128)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1,
                                  history_size=2)

    def closure():
        optimizer.zero_grad()
        loss = model(batch(64, 128)[0]).sum()
        loss.backward()
        return loss

    while True:
        optimizer.step(closure)
        yield


@innocent
def averaged_model():
    t = Training()
    average = torch.optim.swa_utils.AveragedModel(t.model)
    while True:
        t.step()
        average.update_parameters(t.model)
        yield


@innocent
def clipped_gradients():
    t = Training()
    while True:
        x, y = batch()
        t.optimizer.zero_grad()
        F.cross_entropy(t.model(x), y).backward()
        nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
        t.optimizer.step()
        yield


@innocent
def a_list_of_each_step():
    t = Training()
    while True:
        kept = [torch.randn(128, WIDTH, device="cuda") for _ in range(4)]
        t.step()
        del kept
        yield


@innocent
def a_list_cleared_every_fourth_step():
    t, kept = Training(), []
    for step in itertools.count():
        t.step()
        kept.append(torch.randn(128, WIDTH, device="cuda"))
        if step % 4 == 3:
            kept.clear()
        yield


@innocent
def graph_retained():
    t = Training()
    while True:
        t.step(retain_graph=True)
        yield


@innocent
def dropped_units():
    t = Training(model=nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(),
                                     nn.Linear(WIDTH, 10)).cuda())
    while True:
        t.step()
        yield


@innocent
def a_table_filled_at_first():
    t, table = Training(), []
    for step in itertools.count():
        if step < 4:
            table.append(torch.ones(128, WIDTH, device="cuda"))
        t.step()
        yield


@innocent
def channels_last():
    model = nn.Sequential(nn.Conv2d(8, 32, 3), nn.BatchNorm2d(32)).cuda()
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters())
    while True:
        optimizer.zero_grad()
        model(torch.randn(8, 8, 32, 32, device="cuda")).sum().backward()
        optimizer.step()
        yield


@innocent
def one_fused_optimizer():
    t = Training(torch.optim.AdamW, fused=True)
    while True:
        t.step()
        yield


@innocent
def penalty_of_gradients():
    t = Training(torch.optim.SGD)
    while True:
        x, y = batch(256)
        x.requires_grad_()
        loss = F.cross_entropy(t.model(x), y)
        grad, = torch.autograd.grad(loss, x, create_graph=True)
        t.optimizer.zero_grad()
        (loss + grad.square().sum()).backward()
        t.optimizer.step()
        yield


@innocent
def layers_from_the_host():
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    model = nn.Linear(WIDTH, WIDTH).cuda()
    with torch.no_grad():
        while True:
            x = model(batch()[0])
            for layer in layers:
                x = F.linear(x, layer.weight.cuda(), layer.bias.cuda())
            yield


# --- running them ------------------------------------------------------------

def one_step(program):
    """What --step-mark growth_programs.one_step counts."""
    next(program)


class Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc 2.33 and newer."""
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                 "fsmblks", "uordblks", "fordblks", "keepcost")]


def heap():
    """Bytes in use of the C library's heap, tensors on the host included. What
    is resident has memsim's own tables in it; the heap has nothing of them."""
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Mallinfo
    info = ask()
    return info.uordblks + info.hblkhd


def run(name, steps):
    """Whole steps of the program NAME, at most STEPS, and how many bytes more
    its heap had in use with each after the first HOST_WARM_UP."""
    program = (LEAKS.get(name) or INNOCENTS[name])()
    step, before = 0, heap()
    try:
        for step in range(steps):
            if step == HOST_WARM_UP:
                gc.collect()
                before = heap()
            one_step(program)
        step = steps
    except (torch.OutOfMemoryError, StopIteration):
        pass
    gc.collect()
    return step, (heap() - before) // max(step - HOST_WARM_UP, 1)


def fork(rank, name, steps, out):
    pid = os.fork()
    if pid:
        return pid
    os.environ.update(RANK=str(rank), CUDA_VISIBLE_DEVICES=str(rank))
    try:
        whole, more = run(name, steps)
        os.write(out, f"{name} {whole} {more}\n".encode())
    finally:
        sys.stderr.flush()
        os._exit(0)


def main():
    steps, names = int(sys.argv[1]), sys.argv[3:]
    out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.environ["WORLD_SIZE"] = str(len(names))
    torch.set_num_threads(1)
    running = set()
    for rank, name in enumerate(names):
        if len(running) == (os.cpu_count() or 1):
            running.discard(os.wait()[0])
        running.add(fork(rank, name, steps, out))
    while running:
        running.discard(os.wait()[0])


if __name__ == "__main__":
    main()
