# SPDX-License-Identifier: Apache-2.0
"""Real models from transformers and timm, built from their config classes with
random weights, train two steps each in fp32 and under bf16 autocast. Peaks
must be those of models.csv to the byte: the allocations come from the
framework's own code, so that whatever moves them is news. With --record as
the argument, models.csv is written anew.

Each case runs in a fork of a process that has imported everything and touched
no GPU: nothing of one case is left for the next."""
import csv
import os
import sys
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.csv")
GPU = torch.device("cuda")


def classifier(name, batch):
    import timm
    model = timm.create_model(name).to(GPU)
    return model, lambda: F.cross_entropy(
        model(torch.randn(batch, 3, 224, 224, device=GPU)),
        torch.randint(0, 1000, (batch,), device=GPU))


class Recurrent(nn.Module):
    def __init__(self, vocabulary=10000, width=512):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))[0])


def lstm():
    model = Recurrent().to(GPU)

    def loss():
        x = torch.randint(0, 10000, (8, 64), device=GPU)
        return F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    return model, loss


def language(kind, config, **values):
    import transformers
    with GPU:
        model = getattr(transformers, kind)(
            getattr(transformers, config)(**values))
    vocabulary = model.config.vocab_size

    def loss():
        x = torch.randint(0, vocabulary, (2, 256), device=GPU)
        return model(input_ids=x, labels=x).loss
    return model, loss


def whisper():
    model, _ = language("WhisperForConditionalGeneration", "WhisperConfig",
                        d_model=768, encoder_layers=12, decoder_layers=12,
                        encoder_attention_heads=12, decoder_attention_heads=12,
                        encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    labels = model.config.vocab_size
    return model, lambda: model(
        input_features=torch.randn(2, 80, 3000, device=GPU),
        labels=torch.randint(0, labels, (2, 64), device=GPU)).loss


MODELS = {
    "resnet50": lambda: classifier("resnet50", 8),
    "vit_large": lambda: classifier("vit_large_patch16_224", 4),
    "lstm": lstm,
    "gpt2": lambda: language("GPT2LMHeadModel", "GPT2Config"),
    "bert_large": lambda: language(
        "BertForMaskedLM", "BertConfig", hidden_size=1024,
        num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
    "t5_large": lambda: language(
        "T5ForConditionalGeneration", "T5Config", d_model=1024, d_kv=64,
        d_ff=4096, num_layers=24, num_heads=16, decoder_start_token_id=0),
    "llama_1b": lambda: language(
        "LlamaForCausalLM", "LlamaConfig", vocab_size=128256,
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8,
        tie_word_embeddings=True),
    "whisper_small": whisper,
}


def train(name, precision):
    """Two steps; (peak allocated, peak reserved) in bytes."""
    torch.manual_seed(0)
    model, loss = MODELS[name]()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        with torch.autocast("cuda", torch.bfloat16,
                            enabled=precision == "bf16"):
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert torch.isfinite(value.detach().cpu())
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def in_child(name, precision):
    """train() in a fork; None where it failed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, "{} {}".format(*train(name, precision)).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as file:
        words = file.read().split()
    return tuple(map(int, words)) if os.waitpid(pid, 0)[1] == 0 else None


def main():
    import timm
    import transformers
    versions = (f"torch {torch.__version__.split('+')[0]}, transformers "
                f"{transformers.__version__}, timm {timm.__version__}")
    with open(TABLE, newline="") as file:
        recorded = file.readline().lstrip("# ").split(";")[0]
        known = {(row["model"], row["precision"]):
                 (int(row["allocated_bytes"]), int(row["reserved_bytes"]))
                 for row in csv.DictReader(file)}
    passed = failed = skipped = 0
    found = []
    for name in MODELS:
        for precision in ("fp32", "bf16"):
            peaks = in_child(name, precision)
            found.append((name, precision) + (peaks or (0, 0)))
            if peaks is None:
                failed += 1
                print(f"FAIL {name} {precision}: did not train")
            elif recorded != versions:
                skipped += 1
                print(f"SKIP {name} {precision}: trains, but models.csv is of "
                      f"{recorded}, this is {versions}")
            elif peaks != known.get((name, precision)):
                failed += 1
                print(f"FAIL {name} {precision}: peaks {peaks}, not "
                      f"{known.get((name, precision))}")
            else:
                passed += 1
    if "--record" in sys.argv:
        with open(TABLE, "w", newline="") as file:
            file.write(f"# {versions}; by memsim run -- python "
                       "tests/torch/test_models.py --record\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("model", "precision", "allocated_bytes",
                             "reserved_bytes"))
            writer.writerows(found)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
