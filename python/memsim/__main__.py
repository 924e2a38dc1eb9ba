# SPDX-License-Identifier: Apache-2.0
"""`python -m memsim`, and the launchers that pip puts into bin."""
import os
import sys

from memsim.api import MemsimError, program


def launch(name):
    try:
        path = program(name)
    except MemsimError as error:
        sys.exit(str(error))
    os.execv(path, [name] + sys.argv[1:])


def memsim():
    launch("memsim")


def commfit():
    launch("commfit")


if __name__ == "__main__":
    memsim()
