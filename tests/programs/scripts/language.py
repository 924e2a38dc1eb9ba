# SPDX-License-Identifier: Apache-2.0
"""Libraries for text, as their READMEs use them: language.py NAME"""
import sys

import torch


def x_transformers():
    from vit_pytorch import ViT
    from x_transformers import AutoregressiveWrapper, Decoder, \
        TransformerWrapper
    model = AutoregressiveWrapper(TransformerWrapper(
        num_tokens=256, max_seq_len=256, attn_layers=Decoder(
            dim=256, depth=4, heads=4, attn_flash=True))).cuda()
    words = torch.randint(0, 256, (4, 256), device="cuda")
    model(words).backward()
    torch.optim.Adam(model.parameters()).step()
    print("generated", model.generate(words[:, :8], 16).shape)
    image = ViT(image_size=224, patch_size=16, num_classes=10, dim=256,
                depth=4, heads=4, mlp_dim=512).cuda()
    image(torch.randn(4, 3, 224, 224, device="cuda")).sum().backward()


def sentences():
    import transformers
    from sentence_transformers import SentenceTransformer, models, util
    transformers.BertModel(transformers.BertConfig(
        vocab_size=1000, hidden_size=256, num_hidden_layers=4,
        num_attention_heads=4, intermediate_size=512)).save_pretrained("bert")
    transformers.AutoTokenizer.from_pretrained("data/model").save_pretrained(
        "bert")
    words = models.Transformer("bert")
    model = SentenceTransformer(modules=[words, models.Pooling(
        words.get_word_embedding_dimension())], device="cuda")
    found = model.encode(["a first text", "another", "a third"] * 40,
                         convert_to_tensor=True)
    print("hits", len(util.semantic_search(found[:2], found, top_k=5)))


def xformers():
    from xformers.ops import LowerTriangularMask, memory_efficient_attention
    q, k, v = (torch.randn(2, 256, 8, 64, device="cuda", dtype=torch.float16,
                           requires_grad=True) for _ in range(3))
    out = memory_efficient_attention(q, k, v, LowerTriangularMask())
    out.sum().backward()
    print("attention", out.shape)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
