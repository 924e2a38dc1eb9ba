# SPDX-License-Identifier: Apache-2.0
"""Keeps checkpoints that safetensors would replace (core/run/scratch.h).

Its Rust code writes beside the file and renames by a system call of its own,
which libmemsim.so does not see. So the file's name is replaced here.
"""
import ctypes
import errno
import os
import sys

_PATH_MAX = 4096


def _path_to_write(core, filename):
    out = ctypes.create_string_buffer(_PATH_MAX)
    error = core.memsim_scratch_path(os.fsencode(filename), out)
    if error:
        raise OSError(error, errno.errorcode.get(error, ""), filename)
    return os.fsdecode(out.value)


def start():
    import safetensors

    core = ctypes.CDLL("libmemsim.so")
    original = safetensors.serialize_file

    def serialize_file(tensor_dict, filename, metadata=None):
        marks = sys.modules.get("_memsim_marks")  # of torch, if it is there
        if marks:
            metadata = marks.metadata(metadata)
        return original(tensor_dict, _path_to_write(core, filename), metadata)

    safetensors.serialize_file = serialize_file
