# SPDX-License-Identifier: Apache-2.0
"""Tells which parts of a run are no training steps: evaluations, generations, and
checkpoints that are saved or loaded (common/trace/episode.h). Calls of PyTorch and
of libraries say so. A call inside a call does not count.
"""
import ctypes
import functools
import inspect
import sys
import threading

after_import = None  # sitecustomize.py's

EVALUATION, GENERATION, SAVING, LOADING = (b"evaluation", b"generation",
                                           b"saving", b"loading")
SEEN = set()  # (episode, library), of those that began

_LIGHTNING = tuple(
    (episode, f"{library}.{module}", names)
    for library in ("lightning.pytorch", "pytorch_lightning")
    for episode, module, names in (
        (EVALUATION, "loops.evaluation_loop", "_EvaluationLoop.run"),
        (EVALUATION, "loops.prediction_loop", "_PredictionLoop.run"),
        (SAVING, "trainer.trainer", "Trainer.save_checkpoint"),
        (LOADING, "trainer.connectors.checkpoint_connector",
         "_CheckpointConnector.restore _CheckpointConnector.resume_start")))

# The module that has the functions, and their names in it.
_CALLS = (
    (SAVING, "torch", "save"),
    (SAVING, "torch.serialization", "save"),
    (LOADING, "torch", "load"),
    (LOADING, "torch.serialization", "load"),
    (SAVING, "torch.distributed.checkpoint.state_dict_saver",
     "save async_save"),
    (LOADING, "torch.distributed.checkpoint.state_dict_loader", "load"),
    (SAVING, "torch.distributed.checkpoint.state_dict",
     "get_state_dict get_model_state_dict get_optimizer_state_dict"),
    (LOADING, "torch.distributed.checkpoint.state_dict",
     "set_state_dict set_model_state_dict set_optimizer_state_dict"),
    (SAVING, "torch.distributed.fsdp.fully_sharded_data_parallel",
     "FullyShardedDataParallel.state_dict "
     "FullyShardedDataParallel.optim_state_dict"),
    (LOADING, "torch.distributed.fsdp.fully_sharded_data_parallel",
     "FullyShardedDataParallel.load_state_dict"),
    (SAVING, "safetensors.torch", "save_file save_model"),
    (LOADING, "safetensors.torch", "load_file load_model"),
    (SAVING, "accelerate.accelerator", "Accelerator.save_state"),
    (LOADING, "accelerate.accelerator", "Accelerator.load_state"),
    (SAVING, "deepspeed.runtime.engine", "DeepSpeedEngine.save_checkpoint "
     "DeepSpeedEngine.save_16bit_model"),
    (LOADING, "deepspeed.runtime.engine", "DeepSpeedEngine.load_checkpoint"),
    (GENERATION, "transformers.generation.utils", "GenerationMixin.generate"),
    (SAVING, "transformers.modeling_utils", "PreTrainedModel.save_pretrained"),
    (LOADING, "transformers.modeling_utils",
     "PreTrainedModel.from_pretrained"),
    (EVALUATION, "transformers.trainer",
     "Trainer.evaluation_loop Trainer.prediction_loop"),
    (SAVING, "transformers.trainer", "Trainer._save_checkpoint"),
    (LOADING, "transformers.trainer", "Trainer._load_from_checkpoint "
     "Trainer._load_optimizer_and_scheduler Trainer._load_best_model"),
    (GENERATION, "torchtune.generation._generation", "generate"),
    (LOADING, "torchtune.training.checkpointing._checkpointer",
     "FullModelHFCheckpointer.load_checkpoint "
     "FullModelMetaCheckpointer.load_checkpoint "
     "FullModelTorchTuneCheckpointer.load_checkpoint"),
    *_LIGHTNING,
)

# Methods of torchtune's recipes.
_RECIPE = ((EVALUATION, "validate"), (SAVING, "save_checkpoint"),
           (LOADING, "load_checkpoint"))

_now = threading.local()  # .open: this thread is in an episode


@functools.lru_cache(maxsize=None)
def _core():
    core = ctypes.PyDLL("libmemsim.so")
    core.memsim_episode.restype = None
    return core


def _told(function, episode, library):
    """FUNCTION, whose calls are EPISODE."""
    @functools.wraps(function)
    def told(*args, **kwargs):
        SEEN.add((episode, library))
        if (getattr(_now, "open", False)
                or threading.current_thread() is not threading.main_thread()):
            return function(*args, **kwargs)
        _now.open = True
        _core().memsim_episode(episode)
        try:
            return function(*args, **kwargs)
        finally:
            _now.open = False
            _core().memsim_episode(None)
    told.memsim_episode = episode
    return told


def _replace(owner, name, episode, library):
    """Has OWNER's NAME, a function or a method of any kind, tell of EPISODE."""
    function = inspect.getattr_static(owner, name, None)
    kind = type(function)
    inner = getattr(function, "__func__", function)
    if callable(inner) and not hasattr(inner, "memsim_episode"):
        told = _told(inner, episode, library)
        setattr(owner, name, kind(told)
                if kind in (classmethod, staticmethod) else told)


def _follow(episode, module, names):
    for path in names.split():
        *classes, name = path.split(".")
        owner = sys.modules[module]
        for part in classes:
            owner = getattr(owner, part, None)
        if owner is not None:
            _replace(owner, name, episode, module.split(".")[0])


def follow_recipes(change):
    """Has CHANGE get each of torchtune's recipes, which are classes of the user's.
    Called when torchtune's are there."""
    from torchtune.recipe_interfaces import FTRecipeInterface as kind

    def subclass(cls, original=kind.__init_subclass__, **kwargs):
        original.__func__(cls, **kwargs)
        change(cls)
    kind.__init_subclass__ = classmethod(subclass)


def _change_recipe(cls):
    for episode, name in _RECIPE:
        if name in vars(cls):
            _replace(cls, name, episode, "torchtune")


def start():
    for episode, module, names in _CALLS:
        after_import(module, functools.partial(_follow, episode, module,
                                               names))
    after_import("torchtune.recipe_interfaces",
                 functools.partial(follow_recipes, _change_recipe))
