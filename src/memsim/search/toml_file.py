# SPDX-License-Identifier: Apache-2.0
"""A TOML file that knows the lines of its keys, for messages."""
import re

from . import SearchError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10 and older
    try:
        import tomli as tomllib
    except ModuleNotFoundError:
        tomllib = None

TABLE = re.compile(r"^\s*\[\[?\s*([^\]#]+?)\s*\]")
KEY = re.compile(r"""^\s*["']?([A-Za-z0-9_.-]+)["']?\s*=""")


class TomlFile:
    """`data' is the file's, as Python's values."""

    def __init__(self, path):
        if tomllib is None:
            raise SearchError(
                f"{path}: this Python is older than 3.11 and has no package "
                "tomli; `pip install tomli', or name a newer one (--python)")
        self.path = path
        try:
            with open(path, "rb") as file:
                self.bytes = file.read()
            self.text = self.bytes.decode("utf-8")
        except OSError as error:
            raise SearchError(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            line = self.bytes[:error.start].count(b"\n") + 1
            raise SearchError(f"{path}:{line}: not UTF-8; write the file "
                              "as UTF-8") from None
        try:
            self.data = tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            place = f"{path}:{found[1]}" if found else path
            told = re.sub(r" \(at .*\)", "", str(error))
            raise SearchError(f"{place}: not TOML: {told}") from None
        self.lines = self._find_lines()

    def _find_lines(self):
        """{(table, key): line}, as far as a glance at each line shows."""
        table, lines = "", {}
        for number, line in enumerate(self.text.splitlines(), 1):
            found = TABLE.match(line)
            if found:
                table = found[1].strip("\"'")
                lines.setdefault((table, ""), number)
            found = KEY.match(line)
            if found:
                lines.setdefault((table, found[1]), number)
        return lines

    def line_with(self, text):
        """The line that has TEXT in it, or None."""
        for number, line in enumerate(self.text.splitlines(), 1):
            if text in line:
                return number
        return None

    def place(self, table, key="", text=None):
        """FILE:LINE of KEY in TABLE, or of TEXT."""
        line = self.line_with(text) if text else None
        line = line or self.lines.get((table, key)) or \
            self.lines.get((table, ""))
        return f"{self.path}:{line}" if line else self.path

    def fail(self, what, table, key="", text=None):
        raise SearchError(f"{self.place(table, key, text)}: {what}")
