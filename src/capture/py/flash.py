# SPDX-License-Identifier: Apache-2.0
"""Finds flash_attn_2_cuda.py where flash_attn is installed without its
extension, which takes hours to build."""
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _spec(name, file):
    return importlib.util.spec_from_file_location(
        name, os.path.join(_HERE, file))


class _Finder:
    """Behind all others: an extension that is there is used."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "_memsim_flash_rules":
            return _spec(name, "flash_rules.py")
        if name == "flash_attn_2_cuda" and \
                importlib.util.find_spec("flash_attn") is not None:
            return _spec(name, "flash_attn_2_cuda.py")
        return None


def start():
    sys.meta_path.append(_Finder)
