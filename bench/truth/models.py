# SPDX-License-Identifier: Apache-2.0
"""The models of the published measurements, with random weights.

Every configuration is the model card's own, written out, so that nothing is
downloaded. The cards are named beside them.
"""
import torch
import transformers as hf

LANGUAGE = {
    # openai-community/gpt2-large
    "gpt2-large": ("gpt2", dict(
        n_embd=1280, n_layer=36, n_head=20, n_positions=1024)),
    # sitar-lab/NeuSight's own: gpt3_xl.json, gpt3_27.json
    "gpt3-xl": ("gpt2", dict(
        n_embd=3072, n_layer=24, n_head=24, n_positions=2048)),
    "gpt3-2.7b": ("gpt2", dict(
        n_embd=2560, n_layer=32, n_head=32, n_positions=2048)),
    # meta-llama/Llama-3.2-1B-Instruct
    "llama-3.2-1b": ("llama", dict(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192,
        num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
        head_dim=64, max_position_embeddings=131072, rms_norm_eps=1e-5,
        rope_theta=500000.0, tie_word_embeddings=True, bos_token_id=128000,
        rope_scaling=dict(rope_type="llama3", factor=32.0,
                          low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=8192))),
    # meta-llama/Llama-3.2-3B
    "llama-3.2-3b": ("llama", dict(
        vocab_size=128256, hidden_size=3072, intermediate_size=8192,
        num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8,
        head_dim=128, max_position_embeddings=131072, rms_norm_eps=1e-5,
        rope_theta=500000.0, tie_word_embeddings=True)),
    # meta-llama/Llama-3.1-8B
    "llama-3.1-8b": ("llama", dict(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336,
        num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        max_position_embeddings=131072, rms_norm_eps=1e-5,
        rope_theta=500000.0)),
    # Qwen/Qwen2.5-1.5B
    "qwen2.5-1.5b": ("qwen2", dict(
        vocab_size=151936, hidden_size=1536, intermediate_size=8960,
        num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
        max_position_embeddings=131072, rope_theta=1000000.0,
        tie_word_embeddings=True)),
    # facebook/opt-350m
    "opt-350m": ("opt", dict(
        hidden_size=1024, ffn_dim=4096, num_hidden_layers=24,
        num_attention_heads=16, word_embed_proj_dim=512,
        do_layer_norm_before=False, max_position_embeddings=2048)),
    # facebook/opt-1.3b
    "opt-1.3b": ("opt", dict(
        hidden_size=2048, ffn_dim=8192, num_hidden_layers=24,
        num_attention_heads=32, word_embed_proj_dim=2048,
        max_position_embeddings=2048)),
    # EleutherAI/pythia-410m-deduped
    "pythia-410m": ("gpt_neox", dict(
        vocab_size=50304, hidden_size=1024, intermediate_size=4096,
        num_hidden_layers=24, num_attention_heads=16,
        max_position_embeddings=2048)),
    # google-bert/bert-base-uncased, albert/albert-base-v2,
    # distilbert/distilbert-base-uncased
    "bert-base": ("bert", dict()),
    # google-bert/bert-large-uncased
    "bert-large": ("bert", dict(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=24,
        num_attention_heads=16)),
    "albert-base": ("albert", dict(
        hidden_size=768, intermediate_size=3072, num_attention_heads=12,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
    "distilbert": ("distilbert", dict()),
    # google/gemma-2b
    "gemma-2b": ("gemma", dict(
        vocab_size=256000, hidden_size=2048, intermediate_size=16384,
        num_hidden_layers=18, num_attention_heads=8, num_key_value_heads=1,
        head_dim=256, max_position_embeddings=8192, hidden_act="gelu",
        hidden_activation="gelu_pytorch_tanh")),
    # google-t5/t5-large
    "t5-large": ("t5", dict(
        d_model=1024, d_ff=4096, d_kv=64, num_layers=24, num_heads=16,
        vocab_size=32128, n_positions=512, decoder_start_token_id=0)),
}

# timm's names
VISION = {
    "vit-huge-14": "vit_huge_patch14_clip_224.laion2b_ft_in12k_in1k",
    "convnextv2-huge": "convnextv2_huge.fcmae_ft_in22k_in1k_512",
}

# openai/clip-vit-large-patch14-336
CLIP = dict(
    projection_dim=768,
    text_config=dict(hidden_size=768, intermediate_size=3072,
                     num_attention_heads=12, num_hidden_layers=12,
                     projection_dim=768),
    vision_config=dict(hidden_size=1024, intermediate_size=4096,
                       num_attention_heads=16, num_hidden_layers=24,
                       image_size=336, patch_size=14, projection_dim=768),
)

NAMES = sorted([*LANGUAGE, *VISION, "clip-large-336"])


HEADS = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM",
         "classes": "AutoModelForSequenceClassification",
         "pretraining": "AutoModelForPreTraining",
         "translation": "AutoModelForSeq2SeqLM"}
USUAL = {"albert": "masked", "bert": "masked", "distilbert": "masked",
         "t5": "translation"}


def make_language(name, head=None, **options):
    """OPTIONS are from_config()'s; HEAD is one of HEADS, if not the usual."""
    kind, values = LANGUAGE[name]
    config = hf.AutoConfig.for_model(kind, **values)
    auto = getattr(hf, HEADS[head or USUAL.get(kind, "causal")])
    return auto.from_config(config, **options)


def make_vision(name):
    import timm

    return timm.create_model(VISION[name], pretrained=False)


class ClipWithLoss(torch.nn.Module):
    """CLIP and the symmetric contrastive loss of its paper, figure 3, whose
    temperature is learnt, lives where the model does and is clamped in place.
    """

    def __init__(self):
        super().__init__()
        self.clip = hf.CLIPModel._from_config(hf.CLIPConfig(**CLIP))
        self.scale = torch.nn.Parameter(torch.ones([]) * 2.6593)

    def forward(self, **inputs):
        both = self.clip(**inputs)
        self.scale.data.clamp_(0, 4.6052)
        factor = torch.exp(self.scale)
        image, text = both.image_embeds, both.text_embeds
        labels = torch.arange(image.size(0), device=image.device)
        by_image = torch.matmul(image, text.transpose(0, 1)) * factor
        by_text = torch.matmul(text, image.transpose(0, 1)) * factor
        loss = torch.nn.functional.cross_entropy
        return (loss(by_image, labels) + loss(by_text, labels)) / 2


def make(name):
    """A freshly initialised model, on the default device."""
    if name in LANGUAGE:
        return make_language(name)
    if name in VISION:
        return make_vision(name)
    return ClipWithLoss()
