# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs as PyTorch uses them: capture, replay, private pools."""
import gc
import tempfile

import torch
import torch.nn as nn
from harness import equal, main, test

MIB = 2**20
GPU = "cuda"


def warm(function):
    """Runs FUNCTION in a side stream first, as capturing asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(stream)


@test
def a_graph_replays():
    x, y = torch.zeros(4, device=GPU), torch.zeros(4, device=GPU)
    source = torch.tensor([1.0, 2.0, 3.0, 4.0], device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(source)
        y.copy_(x)
    equal(y.tolist(), [0.0] * 4)  # captured, not carried out
    graph.replay()
    torch.cuda.synchronize()
    equal(y.tolist(), [1.0, 2.0, 3.0, 4.0])


@test
def what_a_graph_s_kernels_write_is_not_known():
    x = torch.tensor([5, 6, 7, 8], device=GPU)
    count = torch.tensor([3], device=GPU)
    kept = torch.tensor([4, 4], device=GPU)
    strided = torch.zeros(4, 4, dtype=torch.int64, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul_(2)
        count.add_(1)
        strided[:, 1].add_(1)
        y = x + 1
    equal([x.tolist(), count.item(), kept.tolist()], [[5, 6, 7, 8], 3, [4, 4]])
    graph.replay()
    # Not what they were: unknown numbers read as 0.
    equal([x.tolist(), count.item(), kept.tolist()], [[0] * 4, 0, [4, 4]])
    equal(y.tolist(), [0] * 4)
    assert len((x > 4).nonzero()) == 2  # as --selected-fraction decides


@test
def indices_in_a_graph_are_those_of_its_replay():
    table = torch.nn.Embedding(10, 4, device=GPU)
    tokens = torch.full((4,), 99).to(GPU)  # to be filled before a replay
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = table(tokens)
    tokens.copy_(torch.tensor([1, 2, 3, 4]))
    graph.replay()
    torch.cuda.synchronize()
    equal(out.shape, (4, 4))


@test
def a_training_step_is_captured_whole():
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(),
                          nn.Linear(128, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x = torch.randn(16, 64, device=GPU)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    warm(step)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        graph.replay()
    equal(torch.cuda.memory_allocated(), before)
    assert all(p.grad is not None for p in model.parameters())


@test
def its_memory_is_private():
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        t = torch.empty(64 * MIB, dtype=torch.uint8, device=GPU)
    del t
    gc.collect()
    torch.cuda.empty_cache()
    # and the random number generator's seed, in a segment for small ones
    equal(torch.cuda.memory_reserved() - before, 66 * MIB)
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    equal(torch.cuda.memory_reserved(), before)


@test
def graphs_share_a_pool():
    pool = torch.cuda.graph_pool_handle()
    graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
    reserved = []
    for graph in graphs:
        with torch.cuda.graph(graph, pool=pool):
            t = torch.empty(64 * MIB, dtype=torch.uint8, device=GPU)
        del t
        reserved.append(torch.cuda.memory_reserved())
    equal(reserved[0], reserved[1])


@test
def side_streams_join():
    side = torch.cuda.Stream()
    x = torch.ones(8, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        z = x + y
    graph.replay()
    equal(z.shape, x.shape)


def error_of(body):
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            body()
    except RuntimeError as error:
        return str(error)
    return ""


@test
def what_a_capture_forbids_fails():
    x = torch.ones(8, device=GPU)
    text = error_of(lambda: (x * 2).sum().item())
    assert "captur" in text, text
    text = error_of(torch.cuda.synchronize)
    assert "captur" in text, text
    equal((x + 1).shape, x.shape)  # and all is well afterwards
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    equal(y.shape, x.shape)


@test
def an_unjoined_stream_is_told():
    side = torch.cuda.Stream()
    x = torch.ones(8, device=GPU)

    def fork():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.mul_(2)

    text = error_of(fork)
    assert "unjoined" in text, text


@test
def random_numbers_advance():
    x = torch.ones(1000, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.nn.functional.dropout(x, 0.5)
    before = torch.cuda.get_rng_state()[8:16].clone()
    graph.replay()
    after = torch.cuda.get_rng_state()[8:16]
    assert not torch.equal(before, after)
    equal(y.shape, x.shape)


@test
def callables_are_graphed():
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU()).cuda()
    sample = torch.randn(8, 32, device=GPU, requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    x = torch.randn(8, 32, device=GPU, requires_grad=True)
    graphed(x).sum().backward()
    equal(x.grad.shape, x.shape)


@test
def a_graph_can_be_drawn():
    x = torch.ones(8, device=GPU)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        x.add_(1)
        x.mul_(2)
    with tempfile.NamedTemporaryFile("r", suffix=".dot") as file:
        graph.debug_dump(file.name)
        text = file.read()
    equal(text.count("KERNEL"), 2)
    equal(text.count("->"), 1)


if __name__ == "__main__":
    main()
