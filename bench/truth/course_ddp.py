# SPDX-License-Identifier: Apache-2.0
"""The first step of a language model on two cards, a student's own data
parallelism of CS336: each gradient is averaged as soon as it is there. What
rank 0 has allocated after each phase, and each phase's peak."""
import argparse
import json
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import course_models

LENGTH = 512


def averaged(model):
    """Starts an all-reduce of each gradient; returns what is under way."""
    under_way = []

    def start(parameter):
        under_way.append(dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG,
                                         async_op=True))

    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), src=0)
        parameter.register_post_accumulate_grad_hook(start)
    return under_way


def phase(name, found):
    torch.cuda.synchronize()
    found[f"{name}_bytes"] = torch.cuda.memory_allocated()
    found[f"{name}_peak_bytes"] = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()


def first_step(args):
    found = {"torch": torch.__version__}
    model = course_models.make("basics", args.size, LENGTH)
    under_way = averaged(model)
    phase("init", found)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    shape = 10000, (args.batch, LENGTH)
    ids = torch.randint(*shape, device="cuda")
    labels = torch.randint(*shape, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model.kind.loss(model(ids), labels)
    loss.backward()
    for handle in under_way:
        handle.wait()
    under_way.clear()
    phase("backward", found)
    optimizer.step()
    phase("step", found)
    return found


def worker(rank, args):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(args.port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    found = first_step(args)
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=sorted(course_models.SIZES))
    parser.add_argument("--batch", type=int, default=2, help="of each card")
    parser.add_argument("--port", type=int, default=29533)
    mp.spawn(worker, args=(parser.parse_args(),), nprocs=2)


if __name__ == "__main__":
    main()
