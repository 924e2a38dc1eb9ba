# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tutorial of distributed checkpoints: FSDP2 saves and loads."""
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, \
    set_state_dict
from torch.distributed.fsdp import fully_shard


class App:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer,
                       model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)])
for layer in model:
    fully_shard(layer.cuda())
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(8, 1024, device="cuda")).sum().backward()
optimizer.step()
dcp.save({"app": App(model, optimizer)}, checkpoint_id="saved")
dcp.load({"app": App(model, optimizer)}, checkpoint_id="saved")
files = sorted(os.listdir("saved"))
assert ".metadata" in files and len(files) == 3, files
print("loaded", len(files), "files")
dist.destroy_process_group()
