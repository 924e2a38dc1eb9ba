# SPDX-License-Identifier: Apache-2.0
"""Every model type of transformers that its configuration alone can build,
made small by names of settings that the configurations share."""
import copy
import inspect

import torch

import transformers
from transformers.backbone_utils import BackboneConfigMixin
from transformers.models.auto import modeling_auto as auto
from . import common

PRELOAD = ["transformers.modeling_utils", "transformers.generation.utils",
           "transformers.models.llama.modeling_llama",
           "transformers.models.vit.modeling_vit"]
WIDTH, LAYERS, HEADS, WORDS = 64, 2, 4, 512

# Settings, and what is set where a configuration has them.
SMALL = {
    **dict.fromkeys((
        "hidden_size", "d_model", "n_embd", "dim", "embed_dim",
        "embedding_size", "text_embed_dim", "emb_dim", "word_embed_proj_dim",
        "output_hidden_size", "classifier_proj_size", "encoder_hidden_dim",
        "d_embed", "encoder_hidden_size"), WIDTH),
    **dict.fromkeys((
        "num_hidden_layers", "n_layer", "n_layers", "num_layers",
        "encoder_layers", "decoder_layers", "num_encoder_layers",
        "num_decoder_layers", "num_hidden_layers_decoder", "depth",
        "num_key_value_layers"), LAYERS),
    **dict.fromkeys((
        "num_attention_heads", "n_head", "n_heads", "num_heads",
        "encoder_attention_heads", "decoder_attention_heads",
        "num_key_value_heads", "n_kv_heads"), HEADS),
    **dict.fromkeys((
        "intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
        "d_ff", "d_inner", "n_inner", "hidden_dim", "ffn_hidden_size"), 128),
    "vocab_size": WORDS, "head_dim": 16, "d_kv": 16, "d_head": 16,
    "global_head_dim": 16,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
    "moe_num_experts": 4, "num_experts_per_tok": 2, "moe_k": 2,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16, "v_head_dim": 16, "max_position_embeddings": 512,
    "image_size": 64, "num_frames": 4, "rotary_dim": 16,
    "num_kv_shared_layers": 0, "attn_layer_period": 2, "attn_layer_offset": 1,
}
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts",
           "moe_num_experts")
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id",
          "cls_token_id", "decoder_start_token_id", "unk_token_id",
          "mask_token_id")
# Base models that take no text without an image.
WITH_IMAGES = {"groupvit", "kosmos-2", "idefics", "clipseg", "vilt",
               "vision-text-dual-encoder", "owlvit", "owlv2", "bridgetower",
               "vision-encoder-decoder", "aimv2", "pp_formulanet"}
# What takes a wave with its channels.
CODECS = {"mimi", "mimi_encoder", "encodec", "dac", "xcodec", "xcodec2",
          "neucodec", "higgs_audio_v2_tokenizer", "pe_audio",
          "pe_audio_encoder", "vibevoice_acoustic_tokenizer",
          "pocket_tts_audio_tokenizer", "pocket_tts_audio_tokenizer_encoder"}
# What takes the features of half a minute, whose length comes last.
LONG = ("Whisper", "Voxtral", "Qwen2Audio", "MossTranscribe",
        "GlmAsr",
        "AudioFlamingo3")
# Further arguments of forward() that a model needs.
FURTHER = {
    **dict.fromkeys(("parakeet_ctc", "lasr_ctc"), {"attention_mask"}),
    "audioflamingo3_encoder": {"input_features_mask"},
    "pix2struct": {"flattened_patches"},
    "vision-encoder-decoder": {"decoder_input_ids"},
    **dict.fromkeys(("bros", "udop"), {"bbox"}),
    **dict.fromkeys(("speech-encoder-decoder", "clap"), {"input_values"}),
}
# Settings without a default, or whose default does not go with small ones.
OWN = {
    "bamba": {"attn_layer_indices": [1]},
    "chameleon": {"vocabulary_map": {"<image>": 5}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "speech-encoder-decoder": {"pad_token_id": 0},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "vision-encoder-decoder": {"pad_token_id": 0},
    "reformer": {"is_decoder": True, "axial_pos_embds": False},
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text",
                     "ministral"), {"head_dim": 16}),
    "timm_backbone": {"backbone": "resnet18"},
    "wav2vec2-bert": {"vocab_size": WORDS},
    "wav2vec2-conformer": {"vocab_size": WORDS},
    "xmod": {"default_language": "en_XX"},
}
# What a model type is run as: the first of these that has it.
HEADS_OF = [
    ("causal", auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    ("seq2seq", auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
    ("masked", auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
    ("image", auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES),
    ("video", auto.MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES),
    ("audio", auto.MODEL_FOR_CTC_MAPPING_NAMES),
    ("audio", auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES),
    ("speech", auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES),
    ("pixels", auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES),
    ("pixels", auto.MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES),
    ("pixels", auto.MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES),
    ("pixels", auto.MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING_NAMES),
    ("text", auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES),
    ("both", auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES),
    ("any", auto.MODEL_MAPPING_NAMES),
]


def number(config, name):
    """CONFIG's setting if it is a number that can be set, or None."""
    computed = getattr(type(config), name, None)
    if isinstance(computed, property) and computed.fset is None:
        return None
    try:
        value = getattr(config, name)
        if isinstance(computed, property):
            computed.fset(copy.copy(config), value)
    except Exception:  # differs between the layers, or cannot be set
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) \
        else None


def small_tokens(config):
    """Special tokens that a small vocabulary lacks, and what replaces them."""
    for i, name in enumerate(n for n in vars(config)
                             if n.endswith(("token_id", "padding_idx"))):
        if (number(config, name) or 0) >= WORDS:
            yield name, TOKENS.index(name) if name in TOKENS else 100 + i


def small_layers(config, layers):
    """The kinds of LAYERS layers, or None: each kind that CONFIG has, if there
    is room for it, the last one last."""
    kinds = vars(config).get("layer_types")
    if not layers or not isinstance(kinds, list) or len(kinds) <= layers:
        return None
    every = list(dict.fromkeys(reversed(kinds)))
    return [every[i % len(every)] for i in reversed(range(layers))]


def head_width(get):
    """The width of a head by a function that gives a setting."""
    return get("head_dim") or get("hidden_size") // get("num_attention_heads")


def small_rope(config, values):
    """The parameters of a rotation with sections, in the width that a head has
    with VALUES."""
    rope = getattr(config, "rope_parameters", None)
    section = rope.get("mrope_section") if isinstance(rope, dict) else None
    if not section:
        return {}
    old = head_width(lambda name: number(config, name))
    new = head_width(lambda name: values.get(name) or number(config, name))
    whole = sum(section) * new // old
    third = whole // 3
    return {"rope_parameters": {
        **rope, "mrope_section": [whole - 2 * third, third, third]}}


def small_values(config, sizes):
    """Arguments of CONFIG's class that make it small."""
    values = {name: new for name, new in sizes.items()
              if (number(config, name) or 0) > new}
    if isinstance(getattr(config, "num_heads", None), (list, tuple)):
        values.pop("embed_dim", None)  # its stages have their heads
    if "num_key_value_heads" in values and "num_attention_heads" in values \
            and config.num_key_value_heads < config.num_attention_heads:
        values["num_key_value_heads"] = \
            1 if config.num_key_value_heads == 1 else 2
    if "vocab_size" in values:
        values.update(small_tokens(config))
    kinds = small_layers(config, values.get("num_hidden_layers"))
    if kinds:
        values["layer_types"] = kinds
    return {**values, **small_rope(config, values)}


def shrink(kind, sizes):
    """A configuration of class KIND, small where SIZES has a setting. A backbone
    stays as KIND wants it, for the layers that KIND takes are its own."""
    config = kind()
    values = small_values(config, sizes)
    for name, part in list(vars(config).items()):
        if isinstance(part, transformers.PretrainedConfig) and \
                not isinstance(part, BackboneConfigMixin):
            values[name] = shrink(type(part), sizes)
    return kind(**{**values, **OWN.get(kind.model_type, {})})


SIZES = {
    "tiny": SMALL,
    "short": {name: SMALL[name] for name in SMALL
              if SMALL[name] == LAYERS and name != "moe_k" and
              name != "num_experts_per_tok" or name == "vocab_size" or
              name in EXPERTS or name == "num_kv_shared_layers"},
    "default": {},
}


def head_of(kind):
    for task, names in HEADS_OF:
        if kind in names:
            name = names[kind]
            return task, name[0] if isinstance(name, (list, tuple)) else name
    raise ValueError(f"{kind} has no model")


def setting(config, *names, default):
    """The first of NAMES that CONFIG or a part of it has."""
    parts = [config] + [p for p in vars(config).values()
                        if isinstance(p, transformers.PretrainedConfig)]
    for name in names:
        for part in parts:
            value = getattr(part, name, None)
            if isinstance(value, (list, tuple)) and value and \
                    isinstance(value[0], int):
                return value[0]
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return default


class Inputs:
    """Makes what MODEL's forward() takes."""

    def __init__(self, model, task, config):
        self.model, self.task = model, task
        self.where = common.device(config)
        self.batch = int(config.get("batch") or 2)
        self.length = int(config.get("length") or 32)
        if model.config.model_type in ("owlvit", "owlv2"):
            self.length = 16  # of the names of things
        self.accepts = inspect.signature(model.forward).parameters
        self.main = getattr(model, "main_input_name", "input_ids")

    def words(self, *shape):
        shape = shape or (self.batch, self.length)
        count = setting(self.model.config, "vocab_size", default=WORDS)
        return torch.randint(4, max(count, 5), shape, device=self.where)

    def pixels(self):
        config = self.model.config
        side = setting(config, "image_size", "img_size", default=224)
        channels = setting(config, "num_channels", "in_channels",
                           "in_chans", default=3)
        frames = (setting(config, "num_frames", default=4),) \
            if self.task == "video" else ()
        return torch.randn(self.batch, *frames, channels, side, side,
                           device=self.where)

    def grid(self):
        """Frames, rows and columns of patches of each image."""
        return torch.tensor([[1, 4, 4]] * self.batch, device=self.where)

    def patches(self):
        config = self.model.config
        side = setting(config, "patch_size", default=14)
        depth = setting(config, "temporal_patch_size", default=1)
        channels = setting(config, "in_channels", "num_channels",
                           "in_chans", default=3)
        return torch.randn(16 * self.batch, channels * depth * side * side,
                           device=self.where)

    def features(self):
        config = self.model.config
        width = setting(config, "num_mel_bins", "input_feat_per_channel",
                        "feature_projection_input_dim", "input_dim",
                        default=80)
        length = 2 * setting(config, "max_source_positions", default=100)
        shape = (width, length) if type(self.model).__name__.startswith(LONG) \
            else (min(length, 200), width)
        return torch.randn(self.batch, *shape, device=self.where)

    def wave(self):
        kind = self.model.config.model_type
        if kind == "audio-spectrogram-transformer":
            config = self.model.config
            return torch.randn(self.batch, config.max_length,
                               config.num_mel_bins, device=self.where)
        channels = (1,) if kind in CODECS else ()
        return torch.randn(self.batch, *channels, 8000, device=self.where)

    def series(self):
        config = self.model.config
        channels = getattr(config, "num_input_channels", None)
        return torch.randn(self.batch, config.context_length,
                           *([channels] if channels else []),
                           device=self.where)

    def flattened(self):
        """Patches that begin with their row and column."""
        width = self.model.config.vision_config.patch_embed_hidden_size
        return torch.cat([
            torch.ones(self.batch, 16, 2, device=self.where),
            torch.randn(self.batch, 16, width, device=self.where)], 2)

    def boxes(self):
        return torch.zeros(self.batch, self.length, 4, device=self.where)

    def mask(self):
        """All of what features() makes."""
        return torch.ones(self.features().shape[:2], device=self.where,
                          dtype=torch.long)

    def labels(self):
        if self.task in ("causal", "seq2seq", "masked", "text", "speech"):
            return self.words(self.batch, self.length)
        if self.task in ("image", "video"):
            return torch.randint(0, 2, (self.batch,), device=self.where)
        if self.task == "audio" and "CTC" in type(self.model).__name__:
            return self.words(self.batch, 5) % 16 + 4
        if self.task == "audio":
            return torch.randint(0, 2, (self.batch,), device=self.where)
        return None

    def __call__(self):
        makers = {"input_ids": self.words, "pixel_values": self.pixels,
                  "pixel_values_videos": self.pixels,
                  "input_features": self.features,
                  "input_values": self.wave, "past_values": self.series,
                  "flattened_patches": self.flattened, "bbox": self.boxes,
                  "attention_mask": self.mask,
                  "input_features_mask": self.mask,
                  "decoder_input_ids": self.words,
                  "qformer_input_ids": self.words, "grid_thw": self.grid,
                  "image_grid_thw": self.grid}
        if self.accepts.keys() & {"grid_thw", "image_grid_thw"} and \
                "input_ids" not in self.accepts:
            makers |= {"pixel_values": self.patches,
                       "hidden_states": self.patches}
        wanted = {self.main} if self.main in makers else {"input_ids"}
        if self.task == "both":
            wanted |= {"input_ids", "pixel_values"}
        if self.task == "text":
            wanted = {"input_ids"}
        wanted |= FURTHER.get(self.model.config.model_type, set())
        if self.model.config.model_type in WITH_IMAGES:
            wanted |= {"pixel_values"}
        if self.task == "any" and getattr(self.model.config,
                                          "is_encoder_decoder", False) or \
                self.model.config.model_type == "pix2struct":
            wanted |= {"decoder_input_ids"}
        wanted |= {name for name, p in self.accepts.items()
                   if name in makers and p.default is p.empty}
        named = {name: makers[name]() for name in makers
                 if name in wanted and name in self.accepts}
        labels = self.labels() if self.model.training else None
        if labels is not None and "labels" in self.accepts:
            named["labels"] = labels
        elif self.task in ("seq2seq", "speech"):
            named["decoder_input_ids"] = self.words()
        return [], named


def build(config):
    kind = config["model"]
    task, name = head_of(kind)
    settings = shrink(transformers.CONFIG_MAPPING[kind],
                      SIZES[config["size"]])
    if getattr(settings, "is_encoder_decoder", False) and \
            getattr(settings, "decoder_start_token_id", None) is None:
        settings.decoder_start_token_id = 0
    made = getattr(transformers, name)
    if made.config_class is getattr(settings, "sub_configs",
                                    {}).get("text_config"):
        settings = settings.get_text_config()  # as the auto classes do
    with common.device(config):
        model = made(settings)
    # torch.Tensor(n), which some parameters are made of, is on the CPU.
    model = model.to(common.device(config))
    return model, Inputs(model, task, config)


def families():
    for kind in transformers.CONFIG_MAPPING:
        if any(kind in names for _, names in HEADS_OF):
            yield kind
