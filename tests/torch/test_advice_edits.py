# SPDX-License-Identifier: Apache-2.0
"""Scripts of plain PyTorch that run out of memory are mended by what advice says
in JSON. Starts runs of its own with the memsim of MEMSIM_BUILD. As a script it
prints what it did: tests/torch/test_advice_edits.py table"""
from edit_client import run_all
from edit_scripts import SCRIPTS

if __name__ == "__main__":
    run_all([script for script in SCRIPTS if not script.libraries])
