# SPDX-License-Identifier: Apache-2.0
"""One pass of a denoiser of images or videos without gradients, as diffusers'
own benchmark takes its memory: the named scenarios one after another in a
process, each with a new model in bfloat16 and random weights; the last one's
peaks. plain; layerwise: weights stored in 8 bits; offload: weights on the host,
each leaf's brought by another stream."""
import argparse
import gc

import diffusers
import torch

from peaks import print_peaks


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def sdxl_inputs():
    return {"sample": randn(1, 4, 128, 128),
            "encoder_hidden_states": randn(1, 77, 2048),
            "timestep": randn(1),
            "added_cond_kwargs": {"text_embeds": randn(1, 1280),
                                  "time_ids": randn(1, 6)}}


def flux_inputs():
    return {"hidden_states": randn(1, 4096, 64),
            "encoder_hidden_states": randn(1, 512, 4096),
            "img_ids": randn(4096, 3), "txt_ids": randn(512, 3),
            "pooled_projections": randn(1, 768),
            "timestep": randn(1), "guidance": randn(1)}


def ltx_inputs():
    return {"hidden_states": randn(1, 7392, 128),
            "encoder_hidden_states": randn(1, 256, 4096),
            "encoder_attention_mask": randn(1, 256),
            "timestep": randn(1), "video_coords": randn(1, 3, 7392)}


# Class, configuration of the model's card, inputs.
MODELS = {
    "sdxl": ("UNet2DConditionModel", dict(
        sample_size=128, cross_attention_dim=2048,
        block_out_channels=(320, 640, 1280), attention_head_dim=(5, 10, 20),
        transformer_layers_per_block=(1, 2, 10), use_linear_projection=True,
        down_block_types=("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2,
        up_block_types=("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",),
        addition_embed_type="text_time", addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816), sdxl_inputs),
    "flux": ("FluxTransformer2DModel", dict(guidance_embeds=True),
             flux_inputs),
    "ltx": ("LTXVideoTransformer3DModel", dict(
        num_layers=48, attention_head_dim=128, cross_attention_dim=4096),
        ltx_inputs),
}
OFFLOAD = dict(onload_device=torch.device("cuda"),
               offload_device=torch.device("cpu"), offload_type="leaf_level",
               use_stream=True, non_blocking=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("scenarios", nargs="+",
                        choices=["plain", "layerwise", "offload"])
    parser.add_argument("--steps", type=int, default=7)
    return parser.parse_args()


def make(name, config, scenario):
    with torch.device("meta"):
        model = getattr(diffusers, name)(**config).bfloat16()
    model = model.to_empty(device="cpu").eval()
    if scenario == "offload":
        model.enable_group_offload(**OFFLOAD)
        return model
    model.to("cuda")
    if scenario == "layerwise":
        model.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn,
                                       compute_dtype=torch.bfloat16)
    return model


@torch.no_grad()
def run(args, scenario):
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    name, config, inputs = MODELS[args.model]
    model = make(name, config, scenario)
    given = inputs()
    for _ in range(args.steps):
        output = model(**given)
    torch.cuda.synchronize()
    del output


def main():
    args = parse()
    for scenario in args.scenarios:
        run(args, scenario)
    print_peaks()


if __name__ == "__main__":
    main()
