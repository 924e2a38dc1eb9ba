# SPDX-License-Identifier: Apache-2.0
"""Reports, replays and comparisons without a process: libmemsim-study.so, by
ctypes (src/memsim/library/memsim_study.h)."""
import ctypes
import json
import os

from memsim.api import MemsimError, Result, program

LIBRARY = "libmemsim-study.so"
VERSION = 1

_loaded = None


def _find():
    """The path of the library, which lies beside the program's folder."""
    own = os.environ.get("MEMSIM_LIBDIR")
    if own:
        return os.path.join(own, LIBRARY)
    binary = os.path.dirname(os.path.realpath(program()))
    return os.path.join(os.path.dirname(binary), "lib", "memsim", LIBRARY)


def _library():
    global _loaded
    if _loaded is None:
        path = _find()
        try:
            library = ctypes.CDLL(path)
        except OSError as e:
            raise MemsimError(f"{path}: {e}; install memsim whole, or set "
                              "MEMSIM_LIBDIR") from None
        if library.memsim_study_version() != VERSION:
            raise MemsimError(f"{path}: of another memsim than this package")
        for name in "report", "replay", "diff":
            getattr(library, f"memsim_study_{name}").restype = ctypes.c_int
        library.memsim_study_free.argtypes = [ctypes.c_void_p]
        library.memsim_study_free.restype = None
        _loaded = library
    return _loaded


def _words(options):
    """gpu="l4" as gpu=l4, advice=True as advice; a list is each of it."""
    words = []
    for name, value in options.items():
        name = name.replace("_", "-")
        if value is True:
            words.append(name)
        elif isinstance(value, (list, tuple)):
            words += [f"{name}={each}" for each in value]
        elif value is not None and value is not False:
            words.append(f"{name}={value}")
    return words


def _ask(question, operands, options):
    """The JSON that QUESTION answers; raises MemsimError."""
    library = _library()
    words = [os.fsencode(word) for word in _words(options)]
    listed = (ctypes.c_char_p * (len(words) + 1))(*words)
    text = ctypes.c_void_p()
    status = getattr(library, f"memsim_study_{question}")(
        *(ctypes.c_char_p(os.fsencode(each)) for each in operands), listed,
        ctypes.byref(text))
    try:
        answer = ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        library.memsim_study_free(text)
    if status:
        raise MemsimError(answer)
    return json.loads(answer)


def _result(data):
    return Result(data, data.get("exit_status", 0))


def report(directory, **options):
    """The Result of a directory of `memsim run -o`, by options of `memsim
    report`: report("run", cluster="h100-sxm-80gb:8")."""
    return _result(_ask("report", [directory], options))


def replay(recording, **options):
    """The Result of a trace, a directory or a snapshot, replayed by options of
    `memsim replay` on one GPU: replay("run", gpu="l4", memory="20GiB")."""
    return _result(_ask("replay", [recording], options))


def diff(before, after, **options):
    """What `memsim diff --json` says of two runs, as a dict."""
    return _ask("diff", [before, after], options)
