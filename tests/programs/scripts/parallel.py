# SPDX-License-Identifier: Apache-2.0
"""Libraries that train on several GPUs: parallel.py fairscale|megatron"""
import os
import sys

import torch
import torch.distributed as dist


def fairscale():
    from fairscale.nn.data_parallel import FullyShardedDataParallel, \
        ShardedDataParallel
    from fairscale.optim.oss import OSS
    net = [torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(),
                               torch.nn.Linear(4096, 1024)).cuda()
           for _ in range(2)]
    whole = FullyShardedDataParallel(net[0])
    steps = [(whole, torch.optim.AdamW(whole.parameters()))]
    oss = OSS(net[1].parameters(), torch.optim.AdamW)
    steps.append((ShardedDataParallel(net[1], oss), oss))
    for model, optimizer in steps:
        model(torch.randn(8, 1024, device="cuda")).sum().backward()
        optimizer.step()


def megatron():
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt.gpt_layer_specs import \
        get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer import TransformerConfig
    parallel_state.initialize_model_parallel(2, 1)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    model = GPTModel(
        TransformerConfig(num_layers=2, hidden_size=128, num_attention_heads=4,
                          use_cpu_initialization=True,
                          pipeline_dtype=torch.float32),
        get_gpt_layer_local_spec(), vocab_size=512, max_sequence_length=64
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        words = torch.randint(0, 512, (2, 64), device="cuda")
        places = torch.arange(64, device="cuda").expand(2, 64)
        mask = torch.ones(2, 1, 64, 64, device="cuda").triu(1).bool()
        model(words, places, mask, labels=words).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    globals()[sys.argv[1]]()
    print("trained", dist.get_rank())
    dist.destroy_process_group()
