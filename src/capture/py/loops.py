# SPDX-License-Identifier: Apache-2.0
"""Notes what a recording does not contain although the program is prepared for it:
a data loader that nobody iterated over, evaluations and checkpoints of
transformers' Trainer, Lightning's and torchtune's recipes.

Loaders count by their data set: frameworks make a loader of a loader.
"""
import atexit
import ctypes
import functools
import sys

after_import = None  # sitecustomize.py's

_unused = {}  # the number of batches by id() of the data set
_used = set()
_missing = {}  # what to say, by the episode and the library that did not do it
_episodes = sys.modules[__name__.replace("loops", "episodes")]


def _batches(loader):
    try:
        return len(loader)
    except Exception:  # an IterableDataset without a length
        return 0


def _follow_loaders(module, name):
    kind = getattr(sys.modules[module], name)
    init, iterate = kind.__init__, kind.__iter__

    @functools.wraps(init)
    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        data = id(self.dataset)
        if data not in _used:
            _unused[data] = _batches(self)

    @functools.wraps(iterate)
    def iterated(self):
        _used.add(id(self.dataset))
        _unused.pop(id(self.dataset), None)
        return iterate(self)

    kind.__init__, kind.__iter__ = made, iterated


def _before(owner, name, note):
    """Has OWNER's method NAME call NOTE with its object first."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def noted(self, *args, **kwargs):
        note(self)
        return original(self, *args, **kwargs)

    setattr(owner, name, noted)


def _prepared(library, name, evaluates, saves):
    """NAME of LIBRARY begins a training that EVALUATES and SAVES checkpoints."""
    if evaluates:
        _missing.setdefault(
            (_episodes.EVALUATION, library),
            f"{name} has data for an evaluation, but none was recorded: it can "
            "need more memory than a step")
    if saves:
        _missing.setdefault(
            (_episodes.SAVING, library),
            f"{name} saves checkpoints, but none was recorded: that can need "
            "more memory than a step")


def _follow_trainer():
    from transformers import trainer

    def train(self):
        strategy = getattr(self.args, "save_strategy", "no")
        _prepared("transformers", "transformers.Trainer",
                  getattr(self, "eval_dataset", None) is not None,
                  getattr(strategy, "value", strategy) != "no")
    _before(trainer.Trainer, "train", train)


def _follow_lightning(library):
    def fit(self):
        _prepared(library.split(".")[0], "Lightning's Trainer",
                  self.trainer.enable_validation,
                  self.trainer.checkpoint_callbacks)
    _before(sys.modules[f"{library}.loops.fit_loop"]._FitLoop, "run", fit)


def _change_recipe(cls):
    """CLS is a recipe of torchtune."""
    def train(self):
        _prepared("torchtune", "the torchtune recipe",
                  getattr(self, "_val_dataloader", None) is not None, True)
    if "train" in vars(cls):
        _before(cls, "train", train)


def _at_exit():
    note = ctypes.PyDLL("libmemsim.so").memsim_note
    for done, text in _missing.items():
        if done not in _episodes.SEEN:
            note(b"%s", text.encode())
    if _used and _unused and not _missing:
        batches = max(_unused.values())
        note(b"%s", b"a data loader%s was built and not used: an evaluation "
             b"with it can need more memory than a step"
             % (b" of %d batches" % batches if batches else b""))


def start():
    after_import("torch.utils.data.dataloader", functools.partial(
        _follow_loaders, "torch.utils.data.dataloader", "DataLoader"))
    after_import("torchdata.stateful_dataloader.stateful_dataloader",
                 functools.partial(
                     _follow_loaders,
                     "torchdata.stateful_dataloader.stateful_dataloader",
                     "StatefulDataLoader"))
    after_import("transformers.trainer", _follow_trainer)
    for library in "lightning.pytorch", "pytorch_lightning":
        after_import(f"{library}.loops.fit_loop",
                     functools.partial(_follow_lightning, library))
    after_import("torchtune.recipe_interfaces",
                 functools.partial(_episodes.follow_recipes, _change_recipe))
    atexit.register(_at_exit)
