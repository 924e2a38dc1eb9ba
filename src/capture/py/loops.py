# SPDX-License-Identifier: Apache-2.0
"""Notes what a recording does not contain although the program is prepared for it:
a data loader that nobody iterated over, evaluations and checkpoints of
transformers' Trainer.

Loaders count by their data set: frameworks make a loader of a loader.
"""
import atexit
import ctypes
import functools

after_import = None  # sitecustomize.py's

_unused = {}  # the number of batches by id() of the data set
_used = set()
_missing = {}  # by what a Trainer does: what to say if it was not done


def _batches(loader):
    try:
        return len(loader)
    except Exception:  # an IterableDataset without a length
        return 0


def _follow_loaders():
    from torch.utils.data import dataloader
    kind = dataloader.DataLoader
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


def _trains(trainer):
    if getattr(trainer, "eval_dataset", None) is not None:
        _missing.setdefault("evaluation", "transformers.Trainer has an "
                            "eval_dataset, but no evaluation was recorded: it "
                            "can need more memory than a step")
    strategy = getattr(trainer.args, "save_strategy", "no")
    if getattr(strategy, "value", strategy) != "no":
        _missing.setdefault("checkpoint", "transformers.Trainer saves "
                            "checkpoints, but none was recorded: that can need "
                            "more memory than a step")


def _done(what):
    def note(_trainer):
        _missing[what] = None
    return note


def _follow_trainer():
    from transformers import trainer
    kind = trainer.Trainer
    _before(kind, "train", _trains)
    for name in ("evaluation_loop", "prediction_loop"):
        _before(kind, name, _done("evaluation"))
    _before(kind, "_save_checkpoint", _done("checkpoint"))


def _at_exit():
    note = ctypes.PyDLL("libmemsim.so").memsim_note
    for text in filter(None, _missing.values()):
        note(b"%s", text.encode())
    if _used and _unused and not _missing:
        batches = max(_unused.values())
        note(b"%s", b"a data loader%s was built and not used: an evaluation "
             b"with it can need more memory than a step"
             % (b" of %d batches" % batches if batches else b""))


def start():
    after_import("torch.utils.data.dataloader", _follow_loaders)
    after_import("transformers.trainer", _follow_trainer)
    atexit.register(_at_exit)
