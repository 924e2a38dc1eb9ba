# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT with Megatron-core (PyPI: megatron-core) on random tokens.

    memsim run --nnodes 2 --nproc-per-node 8 --ranks 0,8 -- \
        python examples/megatron_gpt.py --tp 2 --pp 2 --ep 2 --experts 4
"""
import argparse
import os

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import (
    DistributedDataParallel, DistributedDataParallelConfig,
    finalize_model_grads)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_layer_local_spec, get_gpt_layer_with_transformer_engine_spec)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import Float16Module

VOCABULARY = 51200


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tp", type=int, default=1, help="tensor parallel")
    parser.add_argument("--pp", type=int, default=1, help="pipeline stages")
    parser.add_argument("--virtual", type=int, help="model chunks of a stage")
    parser.add_argument("--ep", type=int, default=1, help="expert parallel")
    parser.add_argument("--experts", type=int)
    parser.add_argument("--impl", default="local",
                        choices=("local", "transformer_engine"))
    parser.add_argument("--fp8", choices=("e4m3", "hybrid"))
    parser.add_argument("--ddp", action="store_true",
                        help="no distributed optimizer")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--micro-size", type=int, default=1,
                        help="sequences of a micro-batch")
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def configure(options):
    return TransformerConfig(
        num_layers=options.layers, hidden_size=options.width,
        num_attention_heads=options.width // 64, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
        tensor_model_parallel_size=options.tp,
        pipeline_model_parallel_size=options.pp,
        virtual_pipeline_model_parallel_size=options.virtual,
        expert_model_parallel_size=options.ep,
        sequence_parallel=options.tp > 1 and options.impl != "local",
        num_moe_experts=options.experts,
        moe_token_dispatcher_type="alltoall", fp8=options.fp8,
        add_bias_linear=options.experts is None,
        finalize_model_grads_func=finalize_model_grads)


def layer_spec(options):
    if options.impl == "local":
        return get_gpt_layer_local_spec(options.experts)
    return get_gpt_layer_with_transformer_engine_spec(options.experts)


def build(options, config):
    """The model's chunks that this rank has, each under Megatron's DDP."""
    chunks = []
    for index in range(options.virtual or 1):
        place = {"ignore_virtual": False, "vp_stage": index}
        model = GPTModel(
            config, layer_spec(options), VOCABULARY, options.length,
            pre_process=parallel_state.is_pipeline_first_stage(**place),
            post_process=parallel_state.is_pipeline_last_stage(**place),
            share_embeddings_and_output_weights=True, vp_stage=index)
        chunks.append(DistributedDataParallel(
            config, DistributedDataParallelConfig(
                use_distributed_optimizer=not options.ddp,
                overlap_grad_reduce=True),
            Float16Module(config, model.cuda()),
            disable_bucketing=index > 0))
    return chunks


def forward_step(batches, model):
    tokens = next(batches)
    places = torch.arange(tokens.shape[1], device="cuda").expand_as(tokens)
    losses = model(tokens, places, None, labels=tokens)

    def reduce(losses):
        loss = losses.float().mean()
        return loss, {"loss": loss.detach()}
    return losses, reduce


def batches(size, length):
    while True:
        yield torch.randint(VOCABULARY, (size, length), device="cuda")


def train(options, config, chunks):
    optimizer = get_megatron_optimizer(
        OptimizerConfig(lr=1e-4, bf16=True, params_dtype=torch.bfloat16,
                        use_distributed_optimizer=not options.ddp), chunks)
    run = get_forward_backward_func()
    data = [batches(options.micro_size, options.length) for _ in chunks]
    for step in range(options.steps):
        for chunk in chunks:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()
        losses = run(
            forward_step_func=forward_step,
            data_iterator=data if options.virtual else data[0],
            model=chunks if options.virtual else chunks[0],
            num_microbatches=options.micro_batches,
            seq_length=options.length, micro_batch_size=options.micro_size)
        optimizer.step()
        if losses:
            print(f"step {step}: loss {losses[-1]['loss'].item():.3f}",
                  flush=True)


def main():
    options = parse()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel(
        options.tp, options.pp, options.virtual,
        expert_model_parallel_size=options.ep)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = configure(options)
    train(options, config, build(options, config))
    print(f"rank {dist.get_rank()}: peak "
          f"{torch.cuda.max_memory_allocated()} B", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
