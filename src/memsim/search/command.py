# SPDX-License-Identifier: Apache-2.0
"""A point as a command of `memsim run'."""
import hashlib
import json
import os

from . import SearchError
from .space import ALLOC_CONF, ARGS
from .values import as_text

ALLOC_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
CONTENT_MAX = 1 << 24  # of a file; a larger one is known by size and time


def given_words(name, value):
    """NAME as an option of a program: --name value; true is a flag."""
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}", as_text(value)]


def file_mark(path):
    """What a trial depends on of the file PATH."""
    about = os.stat(path)
    if about.st_size > CONTENT_MAX:
        return [about.st_size, about.st_mtime_ns]
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Job:
    """What is run: COMMAND with its {name}, under MEMSIM run with OPTIONS."""

    def __init__(self, space, memsim, options, command, version=""):
        self.space, self.memsim, self.version = space, memsim, version
        self.build = version  # which one of that version
        self.options, self.command = list(options), list(command)
        self._marks = {}
        self._check()

    def _check(self):
        if ARGS in self._braces():
            return
        for name in self.space.names:
            if name.kind == "names" and name.name not in self._braces():
                raise SearchError(
                    f"{self.space.file.place(name.kind, name.name)}: "
                    f"'{name.name}': no {{{name.name}}} in the command; write "
                    f"it where the value goes, as in `--{name.name} "
                    f"{{{name.name}}}', or {{args}} for all names")

    def _braces(self):
        """The names that the command has a place for."""
        found = {ARGS} if f"{{{ARGS}}}" in self.command else set()
        return found | {name.name for name in self.space.names
                        for word in self.command if f"{{{name.name}}}" in word}

    def of_kind(self, point, kind):
        return [(name.name, point[name.name]) for name in self.space.names
                if name.kind == kind]

    def command_words(self, point):
        """The command of POINT."""
        named = self.of_kind(point, "names")
        rest = [words for key, value in named
                if not any(f"{{{key}}}" in word for word in self.command)
                for words in given_words(key, value)]
        shown = dict(named)
        shown.update(self.space.constants)
        made = []
        for word in self.command:
            if word == f"{{{ARGS}}}":
                made += rest
                continue
            for key, value in shown.items():
                word = word.replace(f"{{{key}}}", as_text(value))
            made.append(word)
        return made

    def run_words(self, point, report):
        """The command line of POINT's trial, whose JSON goes to REPORT."""
        words = [self.memsim, "run", "-q", "--kill-with-memsim",
                 f"--json={report}", *self.options]
        for key, value in self.of_kind(point, "memsim"):
            if key == ALLOC_CONF or value is False:
                continue
            words.append(f"--{key}" if value is True
                         else f"--{key}={as_text(value)}")
        return words + ["--", *self.command_words(point)]

    def environment(self, point):
        """The variables that POINT sets."""
        found = {key: as_text(value)
                 for key, value in self.of_kind(point, "environment")}
        if ALLOC_CONF in point and point[ALLOC_CONF]:
            found[ALLOC_VARIABLE] = as_text(point[ALLOC_CONF])
        return found

    def _mark(self, word):
        """What a trial depends on where WORD, or OPTION=WORD, is a file."""
        if word not in self._marks:
            path = word if os.path.isfile(word) else word.partition("=")[2]
            try:
                self._marks[word] = path and os.path.isfile(path) and \
                    file_mark(path)
            except OSError:
                self._marks[word] = None
        return self._marks[word]

    def key(self, point):
        """What POINT's result depends on, as a name of a file."""
        words = self.run_words(point, "")[1:]
        depends = [self.version, words, sorted(self.environment(point).items()),
                   [self._mark(word) for word in words]]
        text = json.dumps(depends)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")) \
            .hexdigest()[:24]
