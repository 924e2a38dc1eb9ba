# SPDX-License-Identifier: Apache-2.0
"""python3 .../memsim/search: the folder itself is the program."""
import os
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    if sys.argv[1:2] == ["--trial"]:
        from search.worker import main
        sys.exit(main(sys.argv[2]))
    from search.main import main
    sys.exit(main(sys.argv[1:]))
