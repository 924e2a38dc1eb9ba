# SPDX-License-Identifier: Apache-2.0
"""Three steps of Lightning, under DDP."""
import os
import tempfile

import lightning
import torch
from torch import nn


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))

    def training_step(self, batch, _):
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


rows = torch.utils.data.TensorDataset(torch.randn(4096, 256))
local = int(os.environ["LOCAL_WORLD_SIZE"])
lightning.Trainer(
    max_steps=3, accelerator="gpu", devices=local,
    num_nodes=int(os.environ["WORLD_SIZE"]) // local, strategy="ddp",
    logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=tempfile.mkdtemp()).fit(
        Module(), torch.utils.data.DataLoader(rows, batch_size=8))
