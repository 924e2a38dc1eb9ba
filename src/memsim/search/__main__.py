# SPDX-License-Identifier: Apache-2.0
"""python3 .../memsim/search: the folder itself is the program."""
import os
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from search.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
