# SPDX-License-Identifier: Apache-2.0
"""timm's image models."""

import timm
from . import common


def build(config):
    with common.device(config):
        model = timm.create_model(config["model"])
    shape = model.default_cfg.get("input_size", (3, 224, 224))
    classes = getattr(model, "num_classes", 1000)
    return common.Classifier(model), common.images(config, shape, classes, 2)


# What a name of a small model contains, the smallest first.
SMALL = ("test_", "zepto", "atto", "xxxs", "femto", "pico", "xxs", "nano",
         "_s0", "_t0", "mini", "tiny", "_xs", "_m0", "b0", "small", "_t",
         "_s", "18", "b1", "_050", "20", "26", "32")


def families():
    """The smallest model of each file of timm's, by its name."""
    def order(name):
        found = [i for i, word in enumerate(SMALL) if word in name]
        return (min(found, default=len(SMALL)), len(name), name)
    for module in timm.list_modules():
        names = timm.list_models(module=module, pretrained=False)
        if names:
            yield min(names, key=order)
