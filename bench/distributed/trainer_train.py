# SPDX-License-Identifier: Apache-2.0
"""Three steps of transformers' Trainer, under DDP."""
import tempfile

import torch
from transformers import (GPT2Config, GPT2LMHeadModel, Trainer,
                          TrainingArguments)

model = GPT2LMHeadModel(GPT2Config(
    n_layer=3, n_embd=256, n_head=4, vocab_size=5000, n_positions=256,
    bos_token_id=0, eos_token_id=0))
rows = [{k: torch.randint(5000, (256,)) for k in ("input_ids", "labels")}
        for _ in range(256)]
Trainer(model, TrainingArguments(
    tempfile.mkdtemp(), max_steps=3, per_device_train_batch_size=4,
    report_to=[], save_strategy="no", bf16=True, disable_tqdm=True),
    train_dataset=rows).train()
