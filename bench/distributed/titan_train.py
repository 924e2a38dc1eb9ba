# SPDX-License-Identifier: Apache-2.0
"""torchtitan's train.py on random tokens, without its tokenizer and data set:

    memsim run ... -- python titan_train.py TORCHTITAN --job.config_file ...

TORCHTITAN is its source of December 2024 (commit 9dec370). PyTorch of that time takes
FlashAttention on an H100, which newer versions do without cuDNN's attention.
"""
import runpy
import sys

import torch
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY = 128256  # of Llama 3's tokenizer


class Tokenizer:
    n_words = VOCABULARY


class Tokens(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        while True:
            tokens = torch.randint(VOCABULARY, (self.length + 1,))
            yield tokens[:-1], tokens[1:]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Loader(DataLoader):
    """With the state that torchtitan's checkpoints keep."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def build_loader(_name, _path, _tokenizer, batch, length, *_rank):
    return Loader(Tokens(length), batch)


def main():
    sys.path.insert(0, sys.argv[1])
    from torchtitan import datasets
    datasets.build_tokenizer = lambda *_: Tokenizer()
    datasets.build_hf_data_loader = build_loader
    torch.backends.cuda.enable_cudnn_sdp(False)
    script, sys.argv[1:] = f"{sys.argv[1]}/train.py", sys.argv[2:]
    runpy.run_path(script, run_name="__main__")


main()
