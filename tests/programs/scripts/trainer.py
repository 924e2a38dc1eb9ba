# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer: trainer.py stop | deepspeed STAGE"""
import sys

import torch
import transformers
from transformers import Trainer, TrainingArguments


def rows(count):
    return [{"input_ids": torch.randint(0, 500, (64,)),
             "labels": torch.randint(0, 2, ())} for _ in range(count)]


def metrics(prediction):
    from sklearn.metrics import accuracy_score, f1_score
    guess = prediction.predictions.argmax(-1)
    return {"accuracy": accuracy_score(prediction.label_ids, guess),
            "f1": f1_score(prediction.label_ids, guess)}


def stop():
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(vocab_size=500, num_hidden_layers=4))
    trainer = Trainer(model, TrainingArguments(
        "out", num_train_epochs=6, eval_strategy="epoch",
        save_strategy="epoch", load_best_model_at_end=True, fp16=True,
        metric_for_best_model="eval_loss", report_to=[],
        per_device_train_batch_size=8, save_total_limit=1),
        train_dataset=rows(32), eval_dataset=rows(16),
        compute_metrics=metrics,
        callbacks=[transformers.EarlyStoppingCallback(2)])
    trainer.train()
    print("epochs", trainer.state.epoch)
    assert trainer.state.epoch == 6


def deepspeed(stage):
    settings = {
        "zero_optimization": {"stage": stage, **(
            {"offload_optimizer": {"device": "cpu"}} if stage == 2 else {})},
        "bf16": {"enabled": True}, "zero_force_ds_cpu_optimizer": False,
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto", "gradient_accumulation_steps": "auto"}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=500, n_layer=6))
    data = [{"input_ids": torch.randint(0, 500, (128,)),
             "labels": torch.randint(0, 500, (128,))} for _ in range(32)]
    trainer = Trainer(model, TrainingArguments(
        "out", max_steps=3, per_device_train_batch_size=2, bf16=True,
        deepspeed=settings, report_to=[], save_steps=3), train_dataset=data)
    trainer.train()
    print("steps", trainer.state.global_step)


if __name__ == "__main__":
    stop() if sys.argv[1] == "stop" else deepspeed(int(sys.argv[2]))
