# SPDX-License-Identifier: Apache-2.0
"""torchvision's models: classification, segmentation, detection, video,
optical flow."""
import torch

from torchvision import models
from . import common


class Detector(torch.nn.Module):
    """The sum of a detector's losses, or its detections."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, targets):
        out = self.model(x, targets if self.training else None)
        if self.training:
            return common.Result(loss=sum(out.values()))
        return out


def boxes(where, size):
    low = torch.tensor([[10., 10.], [40., 60.]], device=where)
    target = {"boxes": torch.cat([low, low + size / 4], 1),
              "labels": torch.tensor([1, 2], device=where),
              "masks": torch.zeros(2, size, size, dtype=torch.uint8,
                                   device=where),
              "keypoints": torch.cat([low, torch.ones(2, 1, device=where)], 1)
              .view(2, 1, 3).repeat(1, 17, 1)}
    target["masks"][:, 20:60, 20:60] = 1
    return target


def detection(config):
    where = common.device(config)
    size = 256

    def inputs():
        return [[torch.rand(3, size, size, device=where) for _ in range(2)],
                [boxes(where, size) for _ in range(2)]], {}
    return inputs


def flow(config):
    where = common.device(config)

    def inputs():
        pair = [torch.randn(1, 3, 128, 160, device=where) for _ in range(2)]
        return pair, {"num_flow_updates": 3}
    return inputs


def build(config):
    name = config["model"]
    module = models.get_model_builder(name).__module__
    values = {}
    if "detection" in module or "segmentation" in module:
        values["weights_backbone"] = None
    if name in ("inception_v3", "googlenet"):
        values = {"init_weights": False}
    with common.device(config):
        model = models.get_model(name, weights=None, **values)
    if "detection" in module:
        return Detector(model), detection(config)
    if "optical_flow" in module:
        return model, flow(config)
    if "segmentation" in module:
        model, shape = Segmenter(model), (3, 128, 128)
    elif "video" in module:
        model, shape = common.Classifier(model), (3, 16, 112, 112)
        if "mvit" in name or "s3d" in name:
            shape = (3, 16, 224, 224)
    else:
        side = 299 if name == "inception_v3" else 224
        model, shape = common.Classifier(model), (3, side, side)
    return model, common.images(config, shape, 400 if "video" in module
                                else 1000, 2)


class Segmenter(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return self.model(x)


def families():
    for name in models.list_models():
        if "quantized" not in name:
            yield name
