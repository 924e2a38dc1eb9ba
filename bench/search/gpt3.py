# SPDX-License-Identifier: Apache-2.0
"""Trains GPT-3 2.7B with Megatron-core by one point of gpt3.toml; a rank."""
import argparse
import dataclasses
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "examples")]
import megatron_gpt as example  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state, tensor_parallel  # noqa: E402

BATCH, LENGTH, LAYERS, WIDTH = 384, 2048, 32, 2560


def parse():
    parser = argparse.ArgumentParser()
    for name in ("tp", "pp", "multiplier", "virtual", "recompute", "sp",
                 "distributed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--steps", type=int, default=1)
    return parser.parse_args()


def example_options(args):
    """ARGS as the example has them."""
    return argparse.Namespace(
        tp=args.tp, pp=args.pp, virtual=args.virtual if args.virtual > 1
        else None, ep=1, experts=None, fp8=None, layers=LAYERS, width=WIDTH,
        impl="transformer_engine" if args.sp else "local", length=LENGTH,
        ddp=not args.distributed, steps=args.steps,
        micro_batches=args.multiplier * args.pp)


def configure(args, options):
    config = example.configure(options)
    changes = {"num_attention_heads": 32, "kv_channels": 80,
               "num_query_groups": 32}
    if args.recompute:
        changes.update(recompute_granularity="full",
                       recompute_method="uniform", recompute_num_layers=1)
    return dataclasses.replace(config, **changes)


def main():
    args = parse()
    options = example_options(args)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel(args.tp, args.pp, options.virtual)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    replicas = dist.get_world_size() // (args.tp * args.pp)
    options.micro_size = BATCH // (replicas * options.micro_batches)
    config = configure(args, options)
    chunks = example.build(options, config)
    first = dict(vars(options), micro_batches=args.pp, steps=1)
    example.train(argparse.Namespace(**first), config, chunks)
    example.train(options, config, chunks)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
