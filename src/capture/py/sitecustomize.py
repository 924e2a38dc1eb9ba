# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Python that runs under memsim, before the user's script.

It looks, when the interpreter ends, whether it ends because of an
OutOfMemoryError that nobody caught, and tells libmemsim.so so. When the script
imports torch, it has marks.py, limits.py, inductor.py, reaches.py, stores.py,
groups.py, flash.py, checks.py, host.py, objects.py, world.py, launcher.py, places.py,
sizes.py, modules.py, episodes.py, loops.py and compiled.py follow; when it imports
safetensors, files.py. offline.py is always there, steps.py with --step-mark, scan.py
with --scan-data. If JAX fell back to the CPU, it leaves a note. Then it makes way for
the sitecustomize that the user may have.
"""
import atexit
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# A copy of this folder serves libmemsim-real.so (capture/real), and starts only
# what says whose memory it is; in `memsim emulate` also what answers for ranks that
# are not run, which the one of a simulated GPU below leaves to it then.
_REAL = os.path.basename(os.path.dirname(_HERE)) == "real"
_LIBRARY = "libmemsim-real.so" if _REAL else "libmemsim.so"
_PREFIX = "_memsim_real_" if _REAL else "_memsim_"
_SESSION = "MEMSIM_REAL_SESSION" if _REAL else "MEMSIM_SESSION"
_EMULATES = os.environ.get("MEMSIM_EMULATE") == "1"


def _died_of_oom(error):
    """Whether ERROR is torch's OutOfMemoryError, or was raised for one."""
    for _ in range(32):
        if error is None:
            return False
        kind = type(error)
        if (kind.__name__ == "OutOfMemoryError"
                and kind.__module__.split(".")[0] == "torch"):
            return True
        error = error.__cause__ or error.__context__
    return False


# The modules that say what trains, the outermost first.
_FRAMEWORKS = (("lightning.pytorch", "lightning"),
               ("pytorch_lightning", "lightning"),
               ("transformers.trainer", "transformers.Trainer"),
               ("deepspeed", "deepspeed"), ("accelerate", "accelerate"),
               ("transformers", "transformers"))


def _tell_framework():
    for module, name in _FRAMEWORKS:
        if module in sys.modules:
            import ctypes
            ctypes.CDLL(_LIBRARY).memsim_process_setting(
                f"framework={name}".encode())
            return


def _at_exit():
    if "torch" in sys.modules:
        _tell_framework()
    error = getattr(sys, "last_value", None)  # set once it was printed
    if _died_of_oom(error):
        import ctypes
        ctypes.CDLL(_LIBRARY).memsim_process_died_of_oom()


def _follow_jax():
    """JAX goes on without its CUDA plugin, and computes on the CPU."""
    atexit.register(_tell_jax)


def _tell_jax():
    bridge = sys.modules.get("jax._src.xla_bridge")
    backends = getattr(bridge, "_backends", None)
    asked = os.environ.get("JAX_PLATFORMS", "").split(",")
    if backends and set(backends) == {"cpu"} and "cpu" not in asked:
        import ctypes
        ctypes.CDLL("libmemsim.so").memsim_note(
            b"JAX computed on the CPU, because memsim does not serve its CUDA "
            b"plugin: nothing that JAX did is in these figures")


class _Finder:
    """First on sys.meta_path as long as an import is waited for. To be asked
    where a module is does not mean that it is imported: transformers looks for
    torch before it does."""

    wanted = {}  # functions to be called, by the name of the module
    asked = set()  # the modules that it looks for itself

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted or name in self.asked:
            return None
        self.asked.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asked.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _call_after(spec.loader, name)
        return spec

    def done(self, name):
        """The functions that wait for NAME, which is there."""
        functions = self.wanted.pop(name, ())
        if not self.wanted and self in sys.meta_path:
            sys.meta_path.remove(self)
        return functions


_finder = _Finder()


def _call_after(loader, name):
    """Has LOADER, which loads NAME once, call after it what waits for it."""
    original = loader.exec_module

    def exec_module(module):
        loader.__dict__.pop("exec_module", None)  # another one's may be here
        original(module)
        for function in _finder.done(name):
            function()

    loader.exec_module = exec_module


def _after_import(name, function):
    """Has FUNCTION called once the module NAME is there."""
    if name in sys.modules:
        function()
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.wanted.setdefault(name, []).append(function)


def _start(name, what):
    """Starts NAME.py, which serves WHAT."""
    try:
        spec = importlib.util.spec_from_file_location(
            _PREFIX + name, os.path.join(_HERE, f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        module.LIBRARY = _LIBRARY
        sys.modules[spec.name] = module  # where torch.compile looks for it
        spec.loader.exec_module(module)
        module.after_import = _after_import
        module.start()
    except Exception as error:  # a torch that we do not know
        print(f"memsim: note: {what}: {error}", file=sys.stderr)


def _count():
    """What imports torch has memory on the host, if only that of torch."""
    import ctypes
    ctypes.CDLL(_LIBRARY).memsim_host_state(0, 0, 0)


def _answer():
    """For ranks that are not run."""
    if "torch.distributed.distributed_c10d" in sys.modules:
        _start("objects", "objects beyond 1 MiB are lost")
    if os.environ.get("MEMSIM_RANKS"):
        _start("world", "ranks that are not run are waited for")
    if os.environ.get("MEMSIM_LAUNCHER"):
        _start("launcher", "the launcher starts no script")


def _tell_whose():
    """Which limits, groups and modules there are."""
    _count()
    _start("limits", "memory limits are not recorded")
    if _REAL == _EMULATES:
        _answer()
    if _REAL or not _EMULATES:
        _start("groups", "members of process groups are not known")
    if os.environ.get("MEMSIM_MODULES") != "0":
        _start("places", "where advice changes the script is not known")
        _start("sizes", "sizes of batches are not known")
        _start("modules", "modules are not told apart")
        if not _REAL:
            _start("episodes", "evaluations and checkpoints are not told apart")
            if os.environ.get("MEMSIM_SCAN_DATA"):
                _start("scan", "data loaders are not read (--scan-data)")
            _start("loops", "what was not evaluated or saved is not noted")
        _start("compiled", "modules under torch.compile are not told apart")


def _follow():
    _start("marks", "what the program writes has no mark of memsim")
    _start("inductor", "max-autotune compares what has no price")
    _start("reaches", "how far Triton's kernels reach is not known")
    _start("stores", "what Triton's kernels store to is not known")
    _start("flash", "flash_attn needs its own extension")
    _start("checks", "checks of values that are not computed may fail")
    if os.environ.get("MEMSIM_REAL_INIT") != "1":
        _start("host", "large host tensors are initialized")
    _tell_whose()


def _follow_safetensors():
    _start("files", "files that safetensors writes are not kept")


# What sends a run's values to other machines.
_SERVICES = ("wandb", "mlflow", "neptune", "swanlab", "clearml",
             "huggingface_hub.hf_api")


def _keeper(name):
    def keep():
        if "_memsim_offline" not in sys.modules:
            _start("offline", "values that are not computed may be sent")
        sys.modules["_memsim_offline"].keep(name)
    return keep


def _hand_over():
    """Imports the next sitecustomize on the path, as if we were not there."""
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


def _offer():
    """A Python that has imported torch already may run this program, but not
    where a second library records it."""
    if os.environ.get("MEMSIM_WARM") and "torch" not in sys.modules \
            and not os.environ.get("MEMSIM_REAL_SESSION"):
        sys.path.insert(0, _HERE)
        import warm
        del sys.path[0]
        warm.offer()


if os.environ.get(_SESSION) and _REAL:
    atexit.register(_at_exit)
    _after_import("torch", _tell_whose)
elif os.environ.get(_SESSION):
    _offer()
    atexit.register(_at_exit)
    if os.environ.get("MEMSIM_WRITE_THROUGH") != "1":
        for _name in _SERVICES:
            _after_import(_name, _keeper(_name))
    _after_import("torch", _follow)
    _after_import("safetensors", _follow_safetensors)
    _after_import("jax", _follow_jax)
if os.environ.get(_SESSION) and os.environ.get("MEMSIM_STEP_MARK"):
    _start("steps", "calls of --step-mark's function are not marked")
_hand_over()
