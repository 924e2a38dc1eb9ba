# SPDX-License-Identifier: Apache-2.0
"""Dynamic symbol tables of shared objects, read with readelf.

Shared objects are found in directories, in wheels (unpacked one at a time to
a temporary file: some are 500 MB) or named one by one.
"""
import pathlib
import re
import subprocess
import tempfile
import zipfile

IS_SHARED = re.compile(r"\.so(\.[0-9]+)*$")
ROW = re.compile(r"\s*\d+: [0-9a-f]+ +(?P<size>\w+) (?P<type>\w+) +"
                 r"(?P<bind>\w+) +\w+ +(?:\[.*\] +)?(?P<place>\w+) "
                 r"(?P<name>[^@\s]+)(?:@@?(?P<node>\S+))?")
NEED_FILE = re.compile(r"Version: 1  File: (\S+) ")
NEED_NODE = re.compile(r"Name: (\S+) +Flags: ")


class Symbol:
    def __init__(self, row):
        self.name, self.node = row["name"], row["node"]  # None: no version
        self.is_data = row["type"] in ("OBJECT", "TLS")
        self.is_weak = row["bind"] == "WEAK"
        self.size_bytes = int(row["size"], 0)


class Shared:
    """One shared object: its name, what it exports and what it wants."""

    def __init__(self, path, label):
        self.label = label
        dynamic = _readelf("-d", path)
        found = re.search(r"\(SONAME\).*\[(.+)\]", dynamic)
        self.soname = found[1] if found else pathlib.Path(label).name
        self.needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        self.exported, self.undefined = [], []
        for line in _readelf("--dyn-syms", path).splitlines():
            row = ROW.match(line)
            if row and row["bind"] != "LOCAL":
                self._add(row)
        self.node_files = _node_files(_readelf("-V", path))

    def _add(self, row):
        symbol = Symbol(row)
        if row["place"] == "UND":
            self.undefined.append(symbol)
        elif row["place"] != "ABS":  # ABS: the version node's own name
            self.exported.append(symbol)


def _node_files(versions):
    """{node: the library that a symbol of this node is wanted from}"""
    files, current = {}, None
    for line in versions.splitlines():
        if found := NEED_FILE.search(line):
            current = found[1]
        elif current and (found := NEED_NODE.search(line)):
            files[found[1]] = current
    return files


def _readelf(option, path):
    return subprocess.run(["readelf", "-W", option, str(path)], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env={"LC_ALL": "C",
                                          "PATH": "/usr/bin:/bin"}).stdout


def _in_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if IS_SHARED.search(name):
                with tempfile.TemporaryDirectory() as scratch:
                    yield Shared(wheel.extract(name, scratch), name)


def read(paths):
    """Yields every shared object in PATHS (wheels, directories, files)."""
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            for child in sorted(path.rglob("*.so*")):
                if IS_SHARED.search(child.name) and not child.is_symlink():
                    yield Shared(child, str(child))
        elif path.suffix == ".whl":
            yield from _in_wheel(path)
        else:
            yield Shared(path, str(path))
