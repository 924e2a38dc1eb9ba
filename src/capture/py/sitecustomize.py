# SPDX-License-Identifier: Apache-2.0
"""Loaded by every Python that runs under memsim, before the user's script.

All it does is to look, when the interpreter ends, whether it ends because of
an OutOfMemoryError that nobody caught, and to tell libmemsim.so so. Then it
makes way for the sitecustomize that the user may have.
"""
import atexit
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


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


def _at_exit():
    error = getattr(sys, "last_value", None)  # set once it was printed
    if _died_of_oom(error):
        import ctypes
        ctypes.CDLL("libmemsim.so").memsim_process_died_of_oom()


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


if os.environ.get("MEMSIM_SESSION"):
    atexit.register(_at_exit)
_hand_over()
