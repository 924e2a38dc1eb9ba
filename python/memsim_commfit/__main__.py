# SPDX-License-Identifier: Apache-2.0
"""`python -m memsim_commfit`, and the launcher that pip puts into bin."""
import os
import sys


def commfit():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prefix",
                        "bin", "commfit")
    os.execv(path, ["commfit"] + sys.argv[1:])


if __name__ == "__main__":
    commfit()
