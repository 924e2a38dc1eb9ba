# SPDX-License-Identifier: Apache-2.0
"""Parts of PyTorch as its documentation uses them: pytorch.py NAME"""
import sys

import torch


def net():
    return torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(),
                               torch.nn.Linear(2048, 512)).cuda()


def graphs():
    model, batch = net(), torch.randn(64, 512, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            model(batch).sum().backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        model(batch).sum().backward()
        optimizer.step()
    for _ in range(3):
        batch.copy_(torch.randn(64, 512))
        graph.replay()
    scaler = torch.amp.GradScaler()
    with torch.autocast("cuda", torch.float16):
        loss = model(batch).sum()
    scaler.scale(loss).backward()
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    print("replayed, scale", scaler.get_scale())


def compiled():
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, vocab_size=512)).cuda()
    fast = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.AdamW(model.parameters())
    words = torch.randint(0, 512, (4, 128), device="cuda")
    for _ in range(5):
        fast(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("5 steps")


def profiler():
    import subprocess
    import pynvml
    model = net()
    with torch.profiler.profile(activities=[
            torch.profiler.ProfilerActivity.CPU,
            torch.profiler.ProfilerActivity.CUDA]) as found:
        model(torch.randn(64, 512, device="cuda")).sum().backward()
        torch.cuda.synchronize()
    print(found.key_averages().table(row_limit=5))
    found.export_chrome_trace("trace.json")
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    print("used", pynvml.nvmlDeviceGetMemoryInfo(card).used >> 20)
    print(subprocess.check_output(["nvidia-smi"], text=True))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
