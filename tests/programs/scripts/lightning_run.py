# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer: lightning_run.py ddp|stop"""
import sys

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder


class Net(lightning.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(256, 1024),
                                       torch.nn.ReLU(),
                                       torch.nn.Linear(1024, 256))

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[0])

    def validation_step(self, batch, _):
        self.log("val_loss", self.training_step(batch, 0), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def loader():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
        torch.randn(512, 256)), batch_size=16, num_workers=1)


if __name__ == "__main__":
    epochs, stop = 4, sys.argv[1] == "stop"
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="gpu", devices=1 if stop else 2,
        strategy="auto" if stop else "ddp", precision="16-mixed",
        callbacks=[EarlyStopping("val_loss", patience=1),
                   LearningRateFinder(num_training_steps=20)] if stop else [],
        enable_progress_bar=False, default_root_dir="logs")
    trainer.fit(Net(), loader(), loader())
    assert trainer.current_epoch == epochs, trainer.current_epoch
    if trainer.is_global_zero:
        print("epochs", trainer.current_epoch)
