# SPDX-License-Identifier: Apache-2.0
"""What the libraries of the zoo share."""
import torch
import torch.nn.functional as F


def device(config):
    return torch.device(config["device"])


class Result(dict):
    """A model's output with a loss."""
    @property
    def loss(self):
        return self.get("loss")


class Classifier(torch.nn.Module):
    """A classifier, and the loss where it gets labels."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        out = self.model(x)
        scores = out[0] if isinstance(out, (list, tuple)) else out
        if self.training and isinstance(scores, torch.Tensor) and \
                scores.dim() == 2:
            return Result(logits=out, loss=F.cross_entropy(scores, labels))
        return Result(logits=out)

    def set_grad_checkpointing(self, enable=True):
        self.model.set_grad_checkpointing(enable)


def images(config, shape, classes, batch):
    """A function that makes a batch of images with labels."""
    where = device(config)
    batch = int(config.get("batch") or batch)
    form = torch.channels_last if "channels_last" in config["options"] \
        else torch.contiguous_format

    def inputs():
        x = torch.randn(batch, *shape, device=where)
        if x.dim() == 4:
            x = x.to(memory_format=form)
        return [x, torch.randint(0, max(classes, 1), (batch,),
                                 device=where)], {}
    return inputs
