# SPDX-License-Identifier: Apache-2.0
"""What sbatch was given: its options, the script and its arguments."""
import json
import os
import re
import shlex

from . import AdmitError

# Options of sbatch and srun that have no value as a word of its own.
FLAGS_SHORT = set("HhkOQsvVWlEuXZK")
FLAGS_LONG = set("""contiguous disable-status exact exclusive get-user-env help
    hold ignore-pbs kill-on-bad-exit label nice no-allocate no-kill no-requeue
    overcommit overlap oversubscribe parsable preserve-env propagate pty quiet
    reboot requeue spread-job test-only unbuffered usage use-min-nodes verbose
    version wait whole""".split())
LONG = {"N": "nodes", "n": "ntasks", "G": "gpus", "a": "array",
        "J": "job-name", "o": "output", "e": "error", "D": "chdir",
        "c": "cpus-per-task"}
VARIABLES = {"array": "SBATCH_ARRAY_INX"}  # where the name is not the option's
SRUN = re.compile(r"(^|[\s;&|(`])srun\s", re.M)
HETEROGENEOUS = re.compile(r"^#SBATCH\s+(hetjob|packjob)\b", re.M)
SCRIPT_MAX = 16 << 20


def take_option(words, at):
    """(name, value, the place behind) of the option at WORDS[AT]; value None:
    a flag."""
    word = words[at]
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if equals or name in FLAGS_LONG:
            return name, value if equals else None, at + 1
    elif word[1] in FLAGS_SHORT:
        return LONG.get(word[1], word[1]), None, at + 1
    elif len(word) > 2:
        return LONG.get(word[1], word[1]), word[2:].removeprefix("="), at + 1
    else:
        name = LONG.get(word[1], word[1])
    return name, words[at + 1] if at + 1 < len(words) else "", at + 2


def split(words):
    """(options as {name: value}, their words, the others) of WORDS."""
    at, found = 0, {}
    while at < len(words) and len(words[at]) > 1 and words[at][0] == "-":
        if words[at] == "--":
            return found, words[:at], words[at + 1:]
        name, value, at = take_option(words, at)
        found[name] = value
    return found, words[:at], words[at:]


def script_options(text):
    """The options of TEXT's #SBATCH lines, which stand before its commands."""
    words = []
    for line in text.splitlines():
        if line.startswith("#SBATCH"):
            try:
                words += shlex.split(line[len("#SBATCH"):], comments=True)
            except ValueError as error:
                raise AdmitError(f"'{line}': {error}") from None
        elif line.strip() and not line.startswith("#"):
            break
    return split(words)[0]


def variable(name):
    """What the environment says of sbatch's option NAME, or None."""
    return os.environ.get(VARIABLES.get(
        name, "SBATCH_" + name.upper().replace("-", "_")))


def whole(text, otherwise):
    """The first number of TEXT, as in 4 or 2-4."""
    found = re.match(r"\s*(\d+)", text or "")
    return int(found[1]) if found and int(found[1]) else otherwise


def gpu_words(text):
    """(type or None, count) of "a100:2", "2" or "a100"."""
    name, _, count = text.rpartition(":")
    if count.isdecimal():
        return name or None, int(count)
    return text or None, 1


def gres_gpus(text):
    """The same of --gres: gpu:a100:2,shard:1."""
    for part in (text or "").split(","):
        part = re.sub(r"\(.*?\)", "", part).removeprefix("gres:") \
            .removeprefix("gres/")
        name, _, rest = part.replace("=", ":").partition(":")
        if name == "gpu":
            return gpu_words(rest or "1")
    return None, 0


def read_script(path, stdin):
    """The text of the script PATH; - is STDIN."""
    if path == "-":
        return stdin.read(SCRIPT_MAX)
    try:
        with open(path, "rb") as file:
            data = file.read(SCRIPT_MAX)
    except OSError as error:
        raise AdmitError(f"{path}: {error.strerror}") from None
    if b"\0" in data:
        raise AdmitError(f"{path}: not a script, which sbatch needs")
    return data.decode("utf-8", "surrogateescape")


class Request:
    """A job that is to be submitted."""

    def __init__(self, options, text, arguments, path):
        self.text, self.arguments, self.path = text, arguments, path
        self.given, self.in_script = options, script_options(text)
        self.nodes = whole(self.option("nodes"), 1)
        self.per_node = whole(self.option("ntasks-per-node"), 0)
        self.tasks = whole(self.option("ntasks"),
                           self.nodes * (self.per_node or 1))
        self.per_node = self.per_node or -(-self.tasks // self.nodes)
        self.gpu_type, self.gpus = self._gpus()
        self.directory = os.path.abspath(self.option("chdir") or ".")
        self.name = self.option("job-name") or os.path.basename(path)

    def option(self, name):
        """The value of sbatch's option NAME, as sbatch takes it; None."""
        if name in self.given:
            return self.given[name]
        value = variable(name)
        return self.in_script.get(name) if value is None else value

    def _gpus(self):
        """(type, number of a node)."""
        per_node = self.option("gpus-per-node")
        if per_node:
            return gpu_words(per_node)
        per_task = self.option("gpus-per-task")
        if per_task:
            name, count = gpu_words(per_task)
            return name, count * self.per_node
        total = self.option("gpus")
        if total:
            name, count = gpu_words(total)
            return name, -(-count // self.nodes)
        return gres_gpus(self.option("gres"))

    @property
    def uses_srun(self):
        return bool(SRUN.search(self.text))

    def refused(self):
        """Why memsim does not try to predict the job; None: it does."""
        if HETEROGENEOUS.search(self.text):
            return "a heterogeneous job is not predicted"
        return None

    def first_task(self):
        """The number of an array's first task, or None."""
        array = self.option("array")
        return whole(array, 0) if array else None

    def output_patterns(self):
        """Where the job's output goes, in sbatch's words."""
        usual = "slurm-%A_%a.out" if self.option("array") else "slurm-%j.out"
        out = self.option("output") or usual
        paths = [out, self.option("error") or out]
        return [os.path.join(self.directory, path)
                for path in dict.fromkeys(paths)]


def wrapped(command):
    """The script that sbatch makes of --wrap COMMAND."""
    return f"#!/bin/sh\n{command}\n"


def from_words(words, stdin):
    """The Request of sbatch's WORDS, and whether STDIN was its script."""
    options, _, rest = split(words)
    if ":" in rest:
        raise AdmitError("a heterogeneous job (:) is not predicted; submit it "
                         "with sbatch")
    if options.get("wrap"):
        return Request(options, wrapped(options["wrap"]), rest, "wrap"), False
    path = rest[0] if rest else "-"
    return Request(options, read_script(path, stdin), rest[1:],
                   "stdin" if path == "-" else path), path == "-"


def from_filter(path):
    """The Request of what the filter's options, as JSON in the file PATH, say;
    None: sbatch has read it from its standard input."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            told = json.load(file)
        argv = told.pop("argv")
    except (OSError, ValueError, KeyError, AttributeError,
            TypeError) as error:
        raise AdmitError(f"{path}: not what Slurm's filter writes: {error}") \
            from None
    if told.get("wrap"):
        return Request(told, wrapped(told["wrap"]), argv, "wrap")
    if not argv:
        return None
    return Request(told, read_script(argv[0], None), argv[1:], argv[0])
