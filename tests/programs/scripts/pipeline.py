# SPDX-License-Identifier: Apache-2.0
"""Pipelines as PyTorch's documentation has them: pipeline.py gpipe|1f1b"""
import sys

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, \
    ScheduleGPipe, SplitPoint, pipeline


class Net(torch.nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(256, 256) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


def loss(output, target):
    return torch.nn.functional.mse_loss(output, target)


dist.init_process_group("nccl")
rank, device = dist.get_rank(), torch.device("cuda", dist.get_rank())
torch.cuda.set_device(device)
x = torch.randn(32, 256, device=device)
if sys.argv[1] == "gpipe":
    whole = pipeline(Net(), (torch.randn(8, 256),),
                     split_spec={"layers.2": SplitPoint.BEGINNING})
    stage = whole.build_stage(rank, device)
    schedule = ScheduleGPipe(stage, 4, loss_fn=loss)
else:
    stage = PipelineStage(Net(2).to(device), rank, 2, device)
    schedule = Schedule1F1B(stage, 4, loss_fn=loss)
losses = []
if rank == 0:
    schedule.step(x)
else:
    out = schedule.step(target=x, losses=losses)
    assert out.shape == (32, 256) and len(losses) == 4, out.shape
    print("losses", len(losses))
dist.destroy_process_group()
