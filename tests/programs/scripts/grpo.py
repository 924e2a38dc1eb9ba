# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPO after its README: grpo.py DATA; completions are not cut."""
import sys

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

lengths = []


def reward(completion_ids, **_):
    lengths.extend(map(len, completion_ids))
    return [float(len(set(c))) for c in completion_ids]


data = load_dataset(f"{sys.argv[1]}/prompts", split="train")
GRPOTrainer(
    model=f"{sys.argv[1]}/model", reward_funcs=reward, train_dataset=data,
    args=GRPOConfig("out", max_steps=2, num_generations=4, bf16=True,
                    per_device_train_batch_size=4, max_completion_length=32,
                    report_to=[], save_strategy="no")).train()
print("lengths", sorted(set(lengths)))
assert set(lengths) == {32}, lengths
