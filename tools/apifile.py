# SPDX-License-Identifier: Apache-2.0
"""Reads and writes src/capture/api/*.api, the lists of CUDA functions.

A file is a head of directives, then one line per symbol, sorted by name:

    # full-line comments stand in the head only
    prefix cuda __cuda        symbols the library may export start with these
    soname NAME major N node NODE|-   a library to build: which CUDA's headers
                              its hand-written code is compiled against, and
                              the version node of its symbols (- has none)
    returns TYPE...           the type in which a call reports its failure
    names HEADER...           headers that name functions no wheel exports
    code N                    what `fail` returns
    POLICY SYMBOL [CODE]      fail, warn, ok, work, null or text, which
                              capture/stub.h explains; CODE is then returned
    hand SYMBOL               written by hand in src/capture/LIBRARY
    data SYMBOL BYTES         a variable, zero-filled

Everything after a # is a comment; the tools keep it.
"""
import pathlib
import re

POLICIES = ("hand", "fail", "warn", "ok", "work", "null", "text", "data")
C_NAME = re.compile(r"[A-Za-z_]\w*$")


class Bad(Exception):
    """The file breaks the format; the message says where."""


class Soname:
    def __init__(self, name, major, node):
        self.name, self.major, self.node = name, major, node


class Symbol:
    def __init__(self, policy, name, number=None, comment=""):
        self.policy, self.name = policy, name
        self.number = number  # the code to return, or data's size in bytes
        self.comment = comment

    def line(self):
        words = [self.policy, self.name]
        if self.number is not None:
            words.append(str(self.number))
        return " ".join(words) + (f"  # {self.comment}" if self.comment else "")


class Api:
    """One .api file. `head` holds the lines before the first symbol."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.library = self.path.stem
        self.head, self.symbols = [], {}
        self.prefixes, self.sonames = [], []
        self.returns, self.names, self.code = [], [], 0
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            try:
                self._read_line(line)
            except (ValueError, IndexError) as cause:
                raise Bad(f"{path}:{number}: {cause or 'a word is missing'}")
        if not self.prefixes or not self.sonames:
            raise Bad(f"{path}: needs a `prefix` and a `soname` line")

    def _read_line(self, line):
        text, _, comment = line.partition("#")
        words = text.split()
        if words and words[0] in POLICIES:
            self._read_symbol(words, comment.strip())
            return
        if words and self.symbols:
            raise ValueError(f"`{words[0]}` stands after the first symbol")
        self.head.append(line)
        if words:
            self._read_directive(words[0], words[1:])

    def _read_symbol(self, words, comment):
        number = int(words[2], 0) if len(words) > 2 else None
        if len(words) > 3 or not C_NAME.match(words[1]):
            raise ValueError(f"`{' '.join(words)}` is no symbol line")
        if words[1] in self.symbols:
            raise ValueError(f"{words[1]} is listed twice")
        if words[0] == "data" and not number:
            raise ValueError(f"data {words[1]} needs its size in bytes")
        self.symbols[words[1]] = Symbol(words[0], words[1], number, comment)

    def _read_directive(self, name, words):
        if name == "soname":
            if words[1] != "major" or words[3] != "node":
                raise ValueError("expected: soname NAME major N node NODE")
            self.sonames.append(Soname(words[0], int(words[2]), words[4]))
        elif name == "prefix":
            self.prefixes += words
        elif name == "returns":
            self.returns += words
        elif name == "names":
            self.names += words
        elif name == "code":
            self.code = int(words[0], 0)
        else:
            raise ValueError(f"`{name}` is no directive")

    def prefix_of(self, symbol):
        """The longest prefix that SYMBOL has, or "".

        A prefix ends where a word ends: cu is not the prefix of cungqr_.
        """
        fits = [prefix for prefix in self.prefixes if symbol.startswith(prefix)
                and not symbol[len(prefix):len(prefix) + 1].islower()]
        return max(fits, key=len, default="")

    def owns(self, symbol):
        return bool(self.prefix_of(symbol))

    def serves(self, soname):
        """Is SONAME this library's, in any version?"""
        stems = {known.name.split(".so")[0] for known in self.sonames}
        return soname.split(".so")[0] in stems

    def add(self, symbol):
        """Adds SYMBOL unless it is listed; says whether it was new."""
        if symbol.name in self.symbols:
            return False
        self.symbols[symbol.name] = symbol
        return True

    def add_soname(self, soname):
        last = max(i for i, line in enumerate(self.head)
                   if line.startswith("soname"))
        self.head.insert(last + 1, f"soname {soname.name} major "
                         f"{soname.major} node {soname.node}")
        self.sonames.append(soname)

    def text(self):
        lines = [self.symbols[name].line() for name in sorted(self.symbols)]
        return "\n".join(self.head + lines) + "\n"

    def write(self):
        new = self.path.with_suffix(".api-t")
        new.write_text(self.text())
        new.replace(self.path)


def read_all(directory):
    """Every .api file of DIRECTORY, by name."""
    return [Api(path) for path in sorted(pathlib.Path(directory).glob("*.api"))]
