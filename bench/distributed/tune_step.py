# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning steps as fms-acceleration's benchmark runs them: transformers'
Trainer, FSDP as accelerate's launcher sets it up, random weights and tokens.

  tune_step.py MODEL --batch N [--length N] [--lora] [--bits 4] [--bf16]
      [--kernels PROJECT [--fused-loss]] [--old-loss]

PROJECT is a checkout of fms-acceleration; its Triton kernels replace RMS norm,
rotary embedding and loss, as its plug-in does. It needs transformers and
accelerate, with --lora peft, with --bits bitsandbytes. --old-loss is that of
transformers before 4.46.
"""
import argparse
import functools
import os
import pathlib
import sys
import tempfile
import types

import torch
import transformers
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.initialization import no_init_weights

CONFIGS = {
    "mistralai/Mistral-7B-v0.1": transformers.MistralConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, vocab_size=32000,
        sliding_window=None),  # 4096, the length of the rows
    "meta-llama/Meta-Llama-3-8B": transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, vocab_size=128256,
        max_position_embeddings=8192),
    "NousResearch/Llama-2-70b-hf": transformers.LlamaConfig(
        hidden_size=8192, intermediate_size=28672, num_hidden_layers=80,
        num_attention_heads=64, num_key_value_heads=8, vocab_size=32000,
        max_position_embeddings=4096),
    "ibm/PowerLM-3b": transformers.GraniteConfig(
        hidden_size=2304, intermediate_size=9216, num_hidden_layers=40,
        num_attention_heads=36, num_key_value_heads=36, vocab_size=49152,
        max_position_embeddings=4096, attention_dropout=0.1,
        tie_word_embeddings=True),
    "bigcode/gpt_bigcode-santacoder": transformers.GPTBigCodeConfig(
        n_embd=2048, n_inner=8192, n_layer=24, n_head=16, vocab_size=49280,
        n_positions=2048, multi_query=True),
}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
# What accelerate's launcher makes of the benchmark's accelerate.yaml.
FSDP = {
    "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_BACKWARD_PREFETCH": "BACKWARD_PRE",
    "FSDP_FORWARD_PREFETCH": "false", "FSDP_OFFLOAD_PARAMS": "false",
    "FSDP_SHARDING_STRATEGY": "FULL_SHARD",
    "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
    "FSDP_SYNC_MODULE_STATES": "true", "FSDP_USE_ORIG_PARAMS": "true"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=CONFIGS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--bits", type=int, choices=[4])
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--kernels", type=pathlib.Path, metavar="PROJECT")
    parser.add_argument("--fused-loss", action="store_true")
    parser.add_argument("--old-loss", action="store_true")
    return parser.parse_args()


def quantize(model, sharded):
    """Replaces MODEL's matrices but the head by bitsandbytes' of 4 bits."""
    import bitsandbytes
    storage = {"quant_storage": torch.bfloat16} if sharded else {}
    for name, child in list(model.named_modules()):
        if not isinstance(child, torch.nn.Linear) or name == "lm_head":
            continue
        other = bitsandbytes.nn.Linear4bit(
            child.in_features, child.out_features, child.bias is not None,
            compute_dtype=torch.bfloat16, compress_statistics=True,
            quant_type="nf4", device="meta", **storage)
        other.weight = bitsandbytes.nn.Params4bit(
            child.weight.data, requires_grad=False, compress_statistics=True,
            quant_type="nf4", module=other, **storage)
        other.bias = child.bias
        model.set_submodule(name, other.cuda())
    return model.cuda()


def add_adapters(model):
    import peft
    names = ["c_attn"] if hasattr(model, "transformer") else ATTENTION
    model = peft.get_peft_model(model, peft.LoraConfig(
        r=16, lora_alpha=16, lora_dropout=0.1, target_modules=names,
        task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    return model


def import_kernels(project):
    """The modules of PROJECT's kernels, without its plug-ins."""
    top = "fms_acceleration_foak"
    path = project / f"plugins/fused-ops-and-kernels/src/{top}"
    for name in (top, f"{top}.fused_ops", f"{top}.kernels",
                 f"{top}.fused_ops.unsloth_lora",
                 f"{top}.fused_ops.unsloth_lora.bnb"):
        package = types.ModuleType(name)
        package.__path__ = [str(path / "/".join(name.split(".")[1:]))]
        sys.modules[name] = package
    from fms_acceleration_foak.fused_ops.liger_ce import \
        fused_linear_cross_entropy_loss as linear_loss
    from fms_acceleration_foak.kernels.unsloth import (
        cross_entropy_loss, rms_layernorm, rope_embedding)
    return linear_loss, cross_entropy_loss, rms_layernorm, rope_embedding


def use_loss(model, loss):
    """MODEL's forward gives its hidden states to LOSS."""
    def forward(input_ids, labels, **_):
        states = model.model(input_ids=input_ids, use_cache=False)[0]
        return {"loss": loss(states, labels[..., 1:].reshape(-1))}
    model.forward = forward


def use_fused_loss(model, linear_loss):
    def loss(states, labels):
        states = states[..., :-1, :].reshape(-1, states.shape[-1])
        return linear_loss(model.lm_head.weight, states, labels)
    use_loss(model, loss)


def use_old_loss(model, cross_entropy):
    """As in transformers before 4.46: the 16-bit logits go at once."""
    scale = getattr(model.config, "logits_scaling", None)

    def loss(states, labels):
        logits = model.lm_head(states)
        logits = (logits / scale if scale else logits).float()
        shifted = logits[..., :-1, :].contiguous()
        return cross_entropy(shifted.view(-1, shifted.shape[-1]), labels)
    use_loss(model, loss)


def use_kernels(model, args):
    linear_loss, loss, norm, rope = import_kernels(args.kernels)
    code = sys.modules[type(model).__module__]
    for module in model.modules():
        if "RMSNorm" in type(module).__name__:
            module.forward = types.MethodType(norm.fast_rms_layernorm, module)
    if hasattr(code, "apply_rotary_pos_emb"):
        code.apply_rotary_pos_emb = rope.fast_rope_embedding
    if args.fused_loss:
        use_fused_loss(model, linear_loss.LigerFusedLinearCrossEntropyLoss())
    elif args.old_loss:
        use_old_loss(model, loss.FastCrossEntropyLoss())
    else:
        model.loss_function = loss.FastForCausalLMLoss


def share_outputs(attention, names, fused):
    """The first of the layers NAMES to be called computes all their outputs."""
    outputs = {}

    def forward(states, name):
        if name not in outputs:
            outputs.update(zip(names, fused(attention, states)))
        return outputs.pop(name)
    for name in names:
        getattr(attention, name).forward = functools.partial(
            forward, name=name)


def fuse_adapters(model):
    """The project's products with adapters on 4-bit matrices. They read these
    by functions that bitsandbytes has changed, so by its own function here."""
    from bitsandbytes.functional import dequantize_4bit
    from fms_acceleration_foak.fused_ops.unsloth_lora import utils
    from fms_acceleration_foak.fused_ops.unsloth_lora.bnb import fast_lora
    utils.fast_dequantize = fast_lora.fast_dequantize = dequantize_4bit
    for module in model.modules():
        if hasattr(getattr(module, "o_proj", None), "lora_A"):
            share_outputs(module, ATTENTION[:3], fast_lora.apply_lora_qkv)
            module.o_proj.forward = types.MethodType(
                fast_lora.apply_lora_o_v2, module.o_proj)


def replicate_adapters(model, plugin):
    """FSDP leaves the adapters alone; each gradient is reduced by itself."""
    def reduce(gradient):
        gradient = gradient.contiguous()
        torch.distributed.all_reduce(
            gradient, op=torch.distributed.ReduceOp.AVG)
        return gradient
    plugin.ignored_modules = [
        part for module in model.modules() if hasattr(module, "lora_A")
        for part in (module.lora_A.cuda(), module.lora_B.cuda())]
    for part in plugin.ignored_modules:
        for weight in part.parameters():
            weight.register_hook(reduce)


def build(args, sharded):
    config = CONFIGS[args.model]
    config.use_cache = False
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16, attn_implementation="sdpa")
    if args.kernels:
        use_kernels(model, args)
    elif args.old_loss:
        use_old_loss(model, torch.nn.CrossEntropyLoss())
    if args.bits:
        model = quantize(model, sharded)
    if args.lora:
        model = add_adapters(model)
    if args.bits and args.kernels and ATTENTION[0] in str(model):
        fuse_adapters(model)
    return model


class Marks(transformers.TrainerCallback):
    """Marks the steps, for a recording without modules."""

    def on_step_begin(self, *_, **__):
        torch.cuda.nvtx.range_push("step")

    def on_step_end(self, *_, **__):
        torch.cuda.nvtx.range_pop()


def main():
    args = parse()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        os.environ.update(FSDP)
    model = build(args, world > 1)
    words = [{k: torch.randint(1000, (args.length,))
              for k in ("input_ids", "labels")} for _ in range(args.batch)]
    rows = words * (world * args.steps)
    trainer = Trainer(model, TrainingArguments(
        tempfile.mkdtemp(), max_steps=args.steps, report_to=[],
        per_device_train_batch_size=args.batch, save_strategy="no",
        gradient_checkpointing=True, bf16=args.bf16, disable_tqdm=True,
        gradient_checkpointing_kwargs={"use_reentrant": True},
        optim="adamw_torch", weight_decay=0.01, adam_epsilon=1e-4,
        logging_steps=10), train_dataset=rows, callbacks=[Marks()])
    if world > 1 and args.bits and args.kernels:
        replicate_adapters(model, trainer.accelerator.state.fsdp_plugin)
    trainer.train()


if __name__ == "__main__":
    main()
