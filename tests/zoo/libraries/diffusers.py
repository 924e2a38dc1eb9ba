# SPDX-License-Identifier: Apache-2.0
"""diffusers' UNets, transformers and autoencoders, small ones built from
their settings, and real ones where the model has a real configuration."""
import torch

import diffusers
from . import common

PRELOAD = ["diffusers.models.unets.unet_2d_condition",
           "diffusers.models.transformers.transformer_flux"]
BLOCKS = {"block_out_channels": (32, 64), "layers_per_block": 1,
          "norm_num_groups": 8}


class Maker:
    """Makes inputs on one device."""

    def __init__(self, where):
        self.where = where

    def noise(self, *shape):
        return torch.randn(*shape, device=self.where)

    def steps(self, count):
        return torch.randint(0, 1000, (count,), device=self.where)

    def ones(self, *shape):
        return torch.ones(*shape, device=self.where)


def _unet(m):
    return [m.noise(2, 3, 32, 32), m.steps(2)], {}


def _conditional(m):
    return [m.noise(2, 4, 16, 16), m.steps(2), m.noise(2, 8, 32)], {}


def _sdxl(m):
    return [m.noise(2, 4, 16, 16), m.steps(2), m.noise(2, 8, 32)], {
        "added_cond_kwargs": {"text_embeds": m.noise(2, 32),
                              "time_ids": m.noise(2, 6)}}


def _frames(m):
    return [m.noise(1, 4, 4, 16, 16), m.steps(1), m.noise(1, 8, 32)], {}


def _dit(m):
    return [m.noise(2, 4, 8, 8), m.steps(2)], {
        "class_labels": torch.randint(0, 10, (2,), device=m.where)}


def _pixart(m):
    return [m.noise(2, 4, 8, 8)], {
        "encoder_hidden_states": m.noise(2, 8, 32), "timestep": m.steps(2),
        "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}


def _joint(m):
    return [m.noise(2, 4, 16, 16)], {
        "encoder_hidden_states": m.noise(2, 8, 32),
        "pooled_projections": m.noise(2, 64), "timestep": m.steps(2)}


def _flux(m):
    return [m.noise(2, 16, 4)], {
        "encoder_hidden_states": m.noise(2, 8, 32),
        "pooled_projections": m.noise(2, 32), "timestep": m.ones(2),
        "img_ids": m.noise(16, 3), "txt_ids": m.noise(8, 3)}


def _image(m):
    return [m.noise(2, 3, 32, 32)], {}


def _video(m):
    return [m.noise(1, 3, 9, 16, 16)], {}


def _text_to_video(m):
    return [m.noise(1, 4, 2, 16, 16)], {
        "timestep": m.steps(1), "encoder_hidden_states": m.noise(1, 8, 32)}


def _cogvideo(m):
    return [m.noise(1, 2, 4, 8, 8)], {
        "encoder_hidden_states": m.noise(1, 8, 32), "timestep": m.steps(1)}


def _sana(m):
    return [m.noise(2, 4, 16, 16)], {
        "encoder_hidden_states": m.noise(2, 8, 32), "timestep": m.steps(2)}


def _aura(m):
    return [m.noise(2, 4, 16, 16)], {
        "encoder_hidden_states": m.noise(2, 8, 32), "timestep": m.steps(2)}



def _transformer(m):
    return [m.noise(2, 4, 16, 16)], {"timestep": m.steps(2),
                                     "encoder_hidden_states":
                                     m.noise(2, 8, 32)}


def _mochi(m):
    return [m.noise(1, 4, 2, 8, 8)], {
        "encoder_hidden_states": m.noise(1, 8, 32), "timestep": m.steps(1),
        "encoder_attention_mask": m.ones(1, 8)}


CONDITION = {"sample_size": 16, "in_channels": 4, "out_channels": 4, **BLOCKS,
             "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
             "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
             "cross_attention_dim": 32, "attention_head_dim": 8}
# name: (class, settings, inputs)
MODELS = {
    "unet2d": ("UNet2DModel", {
        "sample_size": 32, **BLOCKS,
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}, _unet),
    "unet2d-condition": ("UNet2DConditionModel", CONDITION, _conditional),
    "unet2d-sdxl": ("UNet2DConditionModel", {
        **CONDITION, "addition_embed_type": "text_time",
        "addition_time_embed_dim": 8, "use_linear_projection": True,
        "transformer_layers_per_block": (1, 2),
        "projection_class_embeddings_input_dim": 80}, _sdxl),
    "unet3d-condition": ("UNet3DConditionModel", {
        **CONDITION, "down_block_types":
        ("CrossAttnDownBlock3D", "DownBlock3D"), "up_block_types":
        ("UpBlock3D", "CrossAttnUpBlock3D")}, _frames),
    "unet-motion": ("UNetMotionModel", {
        "sample_size": 16, "block_out_channels": (32, 64),
        "layers_per_block": 1, "norm_num_groups": 8,
        "cross_attention_dim": 32, "num_attention_heads": 4,
        "motion_num_attention_heads": 4, "down_block_types":
        ("CrossAttnDownBlockMotion", "DownBlockMotion"), "up_block_types":
        ("UpBlockMotion", "CrossAttnUpBlockMotion")}, _text_to_video),
    "unet-controlnet": ("ControlNetModel", {
        "block_out_channels": (32, 64), "layers_per_block": 1,
        "norm_num_groups": 8, "cross_attention_dim": 32,
        "attention_head_dim": 8, "in_channels": 4,
        "conditioning_embedding_out_channels": (16, 32),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D")},
        lambda m: ([m.noise(2, 4, 16, 16), m.steps(2), m.noise(2, 8, 32),
                    m.noise(2, 3, 32, 32)], {})),
    "transformer2d": ("Transformer2DModel", {
        "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4,
        "sample_size": 16, "patch_size": 2, "num_layers": 2,
        "cross_attention_dim": 32, "norm_num_groups": 4},
        lambda m: ([m.noise(2, 4, 16, 16)],
                   {"encoder_hidden_states": m.noise(2, 8, 32)})),
    "dit": ("DiTTransformer2DModel", {
        "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4,
        "out_channels": 8, "num_layers": 2, "sample_size": 8,
        "num_embeds_ada_norm": 1000}, _dit),
    "pixart": ("PixArtTransformer2DModel", {
        "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4,
        "num_layers": 2, "sample_size": 8, "cross_attention_dim": 32,
        "caption_channels": 32, "use_additional_conditions": False}, _pixart),
    "sd3": ("SD3Transformer2DModel", {
        "sample_size": 16, "patch_size": 2, "in_channels": 4, "num_layers": 2,
        "attention_head_dim": 16, "num_attention_heads": 4,
        "joint_attention_dim": 32, "caption_projection_dim": 64,
        "pooled_projection_dim": 64, "out_channels": 4}, _joint),
    "flux": ("FluxTransformer2DModel", {
        "patch_size": 1, "in_channels": 4, "num_layers": 1,
        "num_single_layers": 1, "attention_head_dim": 16,
        "num_attention_heads": 2, "joint_attention_dim": 32,
        "pooled_projection_dim": 32, "axes_dims_rope": (4, 4, 8)}, _flux),
    "sana": ("SanaTransformer2DModel", {
        "patch_size": 1, "in_channels": 4, "out_channels": 4, "num_layers": 2,
        "attention_head_dim": 16, "num_attention_heads": 2,
        "num_cross_attention_heads": 2, "cross_attention_head_dim": 16,
        "cross_attention_dim": 32, "caption_channels": 32,
        "sample_size": 16}, _sana),
    "auraflow": ("AuraFlowTransformer2DModel", {
        "sample_size": 16, "patch_size": 2, "in_channels": 4,
        "num_mmdit_layers": 1, "num_single_dit_layers": 1,
        "attention_head_dim": 16, "num_attention_heads": 2,
        "caption_projection_dim": 32, "joint_attention_dim": 32,
        "out_channels": 4, "pos_embed_max_size": 256}, _aura),
    "cogvideox": ("CogVideoXTransformer3DModel", {
        "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4,
        "out_channels": 4, "time_embed_dim": 16, "text_embed_dim": 32,
        "num_layers": 2, "sample_width": 8, "sample_height": 8,
        "sample_frames": 8, "max_text_seq_length": 8}, _cogvideo),
    "mochi": ("MochiTransformer3DModel", {
        "patch_size": 2, "num_attention_heads": 2, "attention_head_dim": 8,
        "num_layers": 2, "pooled_projection_dim": 16, "in_channels": 4,
        "text_embed_dim": 32, "time_embed_dim": 16, "out_channels": 4},
        _mochi),
    "wan": ("WanTransformer3DModel", {
        "patch_size": (1, 2, 2), "num_attention_heads": 2,
        "attention_head_dim": 12, "in_channels": 4, "out_channels": 4,
        "text_dim": 32, "freq_dim": 64, "ffn_dim": 32, "num_layers": 2,
        "rope_max_seq_len": 32}, _text_to_video),
    "autoencoder-kl": ("AutoencoderKL", {
        "block_out_channels": (32, 64), "norm_num_groups": 8,
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "latent_channels": 4}, _image),
    "autoencoder-tiny": ("AutoencoderTiny", {
        "encoder_block_out_channels": (16, 16),
        "decoder_block_out_channels": (16, 16), "num_encoder_blocks": (1, 1),
        "num_decoder_blocks": (1, 1)}, _image),
    "autoencoder-dc": ("AutoencoderDC", {
        "attention_head_dim": 8, "encoder_block_out_channels": (32, 64),
        "decoder_block_out_channels": (32, 64),
        "encoder_layers_per_block": (1, 1),
        "decoder_layers_per_block": (1, 1),
        "encoder_block_types": "ResBlock", "decoder_block_types": "ResBlock",
        "encoder_qkv_multiscales": ((), ()),
        "decoder_qkv_multiscales": ((), ())}, _image),
    "vq": ("VQModel", {"block_out_channels": (32, 64), "norm_num_groups": 8,
                       "down_block_types": ("DownEncoderBlock2D",) * 2,
                       "up_block_types": ("UpDecoderBlock2D",) * 2,
                       "num_vq_embeddings": 32}, _image),
    "autoencoder-cogvideox": ("AutoencoderKLCogVideoX", {
        "block_out_channels": (8, 8, 8, 8), "norm_num_groups": 2,
        "layers_per_block": 1, "temporal_compression_ratio": 4},
        _video),
    "autoencoder-wan": ("AutoencoderKLWan", {
        "base_dim": 4, "z_dim": 16, "dim_mult": [1, 1, 1, 1],
        "num_res_blocks": 1, "temperal_downsample": [False, True, True]},
        _video),
    # of real size
    "unet2d-sd15": ("UNet2DConditionModel", {"cross_attention_dim": 768},
                    lambda m: ([m.noise(1, 4, 64, 64), m.steps(1),
                                m.noise(1, 77, 768)], {})),
    "dit-xl-2": ("DiTTransformer2DModel", {}, lambda m: (
        [m.noise(1, 4, 32, 32), m.steps(1)],
        {"class_labels": torch.randint(0, 10, (1,), device=m.where)})),
    "autoencoder-sd": ("AutoencoderKL", {
        "block_out_channels": (128, 256, 512, 512), "layers_per_block": 2,
        "down_block_types": ("DownEncoderBlock2D",) * 4,
        "up_block_types": ("UpDecoderBlock2D",) * 4},
        lambda m: ([m.noise(1, 3, 256, 256)], {})),
    "ddpm-256": ("UNet2DModel", {
        "sample_size": 256, "block_out_channels":
        (128, 128, 256, 256, 512, 512), "layers_per_block": 2,
        "down_block_types": ("DownBlock2D",) * 4 +
        ("AttnDownBlock2D", "DownBlock2D"), "up_block_types":
        ("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4},
        lambda m: ([m.noise(1, 3, 256, 256), m.steps(1)], {})),
}


def build(config):
    name, settings, inputs = MODELS[config["model"]]
    with common.device(config):
        model = getattr(diffusers, name)(**settings)
    maker = Maker(common.device(config))
    return model, lambda: inputs(maker)


def families():
    yield from MODELS
