# SPDX-License-Identifier: Apache-2.0
"""Three steps with DeepSpeed's ZeRO."""
import argparse

import deepspeed
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--stage", type=int, default=1)
parser.add_argument("--offload", action="store_true")
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
zero = {"stage": args.stage}
if args.offload:
    zero["offload_optimizer"] = {"device": "cpu"}
    zero["offload_param"] = {"device": "cpu"}
model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4)))
engine, _, _, _ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters()), config={
        "train_micro_batch_size_per_gpu": 8, "zero_optimization": zero,
        "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False})
for _ in range(3):
    x = torch.randn(8, 512, device=engine.device, dtype=torch.bfloat16)
    engine.backward(engine(x).square().mean())
    engine.step()
