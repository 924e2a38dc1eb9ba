# SPDX-License-Identifier: Apache-2.0
"""`python -m memsim`, and the launcher that pip puts into bin."""
import os
import sys

from memsim.api import MemsimError, program


def memsim():
    try:
        path = program()
    except MemsimError as error:
        sys.exit(str(error))
    os.execv(path, ["memsim"] + sys.argv[1:])


if __name__ == "__main__":
    memsim()
