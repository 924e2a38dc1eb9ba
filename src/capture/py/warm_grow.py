# SPDX-License-Identifier: Apache-2.0
"""What programs import beside PyTorch, for servers of warm_server.py.

Modules of installed packages alone: their files do not change between runs. An
import that did more than define things is refused, because a fork would not
have it: it used CUDA, started threads, opened files, changed the path, or read
what differs between the programs of one server.
"""
import importlib
import json
import os
import sys

import warm

# These say nothing that a module keeps, or the server forgets it.
_HARMLESS = {"PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "COLUMNS", "LINES"}


# --- in a program ---------------------------------------------------------------


def _folder_of(module):
    """The folder on the path that MODULE's package is in, or None."""
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.has_location or not spec.origin:
        return None
    depth = spec.name.count(".") + bool(spec.submodule_search_locations)
    folder = os.path.dirname(os.path.abspath(spec.origin))
    for _ in range(depth):
        folder = os.path.dirname(folder)
    return folder


def _is_installed(folder, known):
    """Whether an installer writes to FOLDER."""
    if folder not in known:
        try:
            known[folder] = any(name.endswith(".dist-info")
                                for name in os.listdir(folder))
        except OSError:
            known[folder] = False
    return known[folder]


def _imports(before):
    """The names of installed modules that are not among BEFORE, in the order of
    their imports."""
    known, found = {}, []
    for name, module in list(sys.modules.items()):
        folder = None if name in before else _folder_of(module)
        if folder and module.__spec__.name == name and \
                _is_installed(folder, known):
            found.append(name)
    return found


def tell(place, before):
    """At the end of a program of a server: writes to the file PLACE what it
    imported beside BEFORE."""
    with os.fdopen(place, "w", encoding="utf-8") as file:
        json.dump(_imports(before), file)


# --- in the server --------------------------------------------------------------


def ask():
    """A file for a program's tell(). No run takes it for the program's own."""
    return os.memfd_create("imports")


def told(place):
    """The names that a program told in the file PLACE, which is closed; None: it
    did not end so."""
    with os.fdopen(place, encoding="utf-8") as file:
        file.seek(0)
        try:
            return json.load(file)
        except ValueError:
            return None


class _Watched(dict):
    """Variables, and whether one was read that differs between programs."""

    was_read = False

    def __getitem__(self, key):
        name = os.fsdecode(key)
        if warm.is_free(name) and name not in _HARMLESS and \
                not name.startswith("MEMSIM"):
            self.was_read = True
        return dict.__getitem__(self, key)


class _Watch:
    """What imports do beside defining things."""

    def __init__(self):
        import torch
        self.torch = torch
        self.counted = False
        self.kept = torch.cuda.device_count, torch.cuda.is_available
        torch.cuda.device_count = self._device_count
        torch.cuda.is_available = self._is_available
        os.environ._data = self.variables = _Watched(os.environ._data)
        self.before = dict(self.variables)
        self.path, self.state = list(sys.path), self._state()

    def _device_count(self):
        self.counted = True
        return self.kept[0]()

    @staticmethod
    def _is_available():
        """It is in all programs of a server; PyTorch would note that CUDA may have
        been used."""
        return True

    @staticmethod
    def _state():
        """Threads and open files."""
        return {(what, name) for what in ("task", "fd")
                for name in os.listdir(f"/proc/self/{what}")}

    def _is_bad_fork(self):
        """Whether a fork could not use CUDA."""
        child = os.fork()
        if not child:
            os._exit(self.torch._C._cuda_isInBadFork())
        return os.waitpid(child, 0)[1] != 0

    def end(self):
        """The variables that imports set; None: they did what may not be."""
        os.environ._data = dict(self.variables)
        self.torch.cuda.device_count, self.torch.cuda.is_available = self.kept
        after = os.environ._data
        if self.variables.was_read or self.counted or \
                self._state() - self.state or sys.path != self.path or \
                self.before.keys() - after.keys() or self._is_bad_fork():
            return None
        return {os.fsdecode(n): os.fsdecode(v) for n, v in after.items()
                if self.before.get(n) != v}


def _divert():
    """Has descriptors 1 and 2 write to files. Returns what undoes that."""
    kept = [os.dup(number) for number in (1, 2)]
    for number in (1, 2):
        file = os.memfd_create("imports", 0)
        os.dup2(file, number)
        os.close(file)
    return kept


def _restore(kept):
    """Returns what was written meanwhile."""
    sys.stdout.flush()
    sys.stderr.flush()
    texts = []
    for number, old in zip((1, 2), kept):
        os.lseek(number, 0, os.SEEK_SET)
        with os.fdopen(os.dup(number), "rb") as file:
            texts.append(file.read().decode(errors="replace"))
        os.dup2(old, number)
        os.close(old)
    return texts


def grow(names):
    """Imports NAMES. Returns what a program has to be given of it; None: a fork
    cannot have them."""
    kept = _divert()
    watch = _Watch()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: S110 the program imports it, as it did
            pass
    variables = watch.end()
    texts = _restore(kept)
    if variables is None:
        return None
    return {"written": texts, "variables": variables}


def repeat(grown):
    """In a program of a server that has GROWN: what the imports wrote and set."""
    if not grown:
        return
    for name, value in grown["variables"].items():
        os.environ.setdefault(name, value)
    for stream, text in zip((sys.stdout, sys.stderr), grown["written"]):
        stream.write(text)
