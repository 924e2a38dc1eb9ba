# SPDX-License-Identifier: Apache-2.0
"""Runs a job as if slices that take a whole dimension cost nothing.

  memsim run -- python without_slice_copies.py h100_step.py gemma-2b ...

PyTorch 2.5's backward pass copies the gradient once for every such slice
(`x[:, :, 1:]` has two); later versions pass it through (pytorch issue 63921).
With this, 2.5.1 reserves what 2.11 does: the evidence for doc/evidence/truth.md.
"""
import os
import runpy
import sys

import torch

_getitem = torch.Tensor.__getitem__


def spread(index, dimensions):
    """INDEX with its Ellipsis written out."""
    if Ellipsis not in index:
        return index
    at = index.index(Ellipsis)
    missing = dimensions - len(index) + 1
    return index[:at] + (slice(None),) * missing + index[at + 1:]


def simple(index):
    return all(isinstance(i, int) or i is Ellipsis or
               isinstance(i, slice) and i.step in (None, 1) for i in index)


def getitem(self, index):
    index = index if isinstance(index, tuple) else (index,)
    if not self.is_cuda or not simple(index):
        return _getitem(self, index)
    view, dimension = self, 0
    for i in spread(index, self.dim()):
        if isinstance(i, int):
            view = view.select(dimension, i)
            continue
        start, end, _ = i.indices(view.size(dimension))
        if start or end < view.size(dimension):
            view = view.narrow(dimension, start, max(end - start, 0))
        dimension += 1
    return view.view_as(view) if view is self else view


if __name__ == "__main__":
    torch.Tensor.__getitem__ = getitem
    del sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
