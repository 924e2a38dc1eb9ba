# SPDX-License-Identifier: Apache-2.0
"""The same as test_advice_edits.py of scripts that use libraries; MEMSIM_BUILD
says where the memsim is. # Libraries: trainers"""
from edit_client import run_all
from edit_scripts import SCRIPTS

if __name__ == "__main__":
    run_all([script for script in SCRIPTS if script.libraries])
