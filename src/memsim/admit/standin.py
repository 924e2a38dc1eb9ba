# SPDX-License-Identifier: Apache-2.0
"""What a script's `srun' is while memsim predicts it: a run of memsim's. Its
`sbatch' and the like do nothing."""
import json
import os
import tempfile

from .request import split

PLAN = "MEMSIM_ADMIT_PLAN"  # the variable that names the file
SILENT = ("salloc", "scancel", "sbcast")
SHELL = """#!/bin/sh
exec '{python}' -B '{program}' --standin {name} "$@"
"""


def quoted(text):
    return text.replace("'", "'\\''")


def install(directory, python, program):
    """Puts them into DIRECTORY."""
    os.mkdir(directory)
    for name in ("srun", "sbatch", *SILENT):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(SHELL.format(python=quoted(python),
                                    program=quoted(program), name=name))
        os.chmod(path, 0o755)


def shape_words(plan, options):
    """The job's nodes and tasks, where srun's OPTIONS do not name them."""
    words = []
    if "nodes" not in options:
        words += ["-N", str(plan["nodes"])]
    if "ntasks" not in options and "ntasks-per-node" not in options:
        words += ["-n", str(plan["tasks"])]
    return words


def run_words(plan, words, report):
    """The command line that srun WORDS becomes."""
    options, given, command = split(words)
    return [*plan["run"], f"--json={report}", "--", "srun",
            *shape_words(plan, options), *given, *command]


def main(words):
    name, *rest = words
    if name == "sbatch":
        print("Submitted batch job 0")
        return 0
    if name != "srun":
        return 0
    with open(os.environ[PLAN], encoding="utf-8",
              errors="surrogateescape") as file:
        plan = json.load(file)
    number, report = tempfile.mkstemp(prefix="report-", suffix=".json",
                                      dir=plan["reports"])
    os.close(number)
    made = run_words(plan, rest, report)
    os.execvp(made[0], made)
    return 125
