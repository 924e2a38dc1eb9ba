# SPDX-License-Identifier: Apache-2.0
"""python3 .../memsim/admit MEMSIM admit|outcomes ...: the folder itself is the
program."""
import os
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    if sys.argv[1:2] == ["--standin"]:
        from admit.standin import main
        sys.exit(main(sys.argv[2:]))
    if sys.argv[2] == "outcomes":
        from admit.outcomes import main
    else:
        from admit.main import main
    sys.exit(main(sys.argv[1], sys.argv[3:]))
