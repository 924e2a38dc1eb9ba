# SPDX-License-Identifier: Apache-2.0
"""Marks what a program writes of the simulated GPU, so that nobody takes it for
measured or trained: traces of torch.profiler and memory snapshots have a member
more, checkpoints of torch.save a record more, safetensors an entry of their
metadata. common/base/simulated.h has the name; memsim looks for it."""
import functools
import json

import torch

NAME, TEXT = "memsim", "simulated, not measured"


def metadata(given):
    """GIVEN, of safetensors, with the mark. Readers want to know the format of
    what has metadata."""
    if not torch.cuda.is_initialized():
        return given
    return {**(given or {"format": "pt"}), NAME: TEXT}


def _mark_traces():
    profile = torch.autograd.profiler.profile
    start = profile._start_trace

    @functools.wraps(start)
    def start_trace(self):
        start(self)
        torch.autograd._add_metadata_json(NAME, json.dumps(TEXT))

    profile._start_trace = start_trace


def _mark_snapshots():
    snapshot = torch._C._cuda_memorySnapshot

    @functools.wraps(snapshot)
    def marked(*args):
        return {**snapshot(*args), NAME: TEXT}

    torch._C._cuda_memorySnapshot = marked


def _mark_checkpoints():
    save = torch.serialization._save

    @functools.wraps(save)
    def marked(obj, zip_file, *args, **named):
        save(obj, zip_file, *args, **named)
        if torch.cuda.is_initialized():
            zip_file.write_record(NAME, TEXT, len(TEXT))

    torch.serialization._save = marked


def start():
    _mark_traces()
    _mark_snapshots()
    _mark_checkpoints()
