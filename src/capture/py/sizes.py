# SPDX-License-Identifier: Apache-2.0
"""How large a batch is, by the tensors in it: those that a model is called with
(modules.py), and those that a data loader gives (scan.py)."""
import collections.abc
import math

import torch

called = None  # scan.py's: gets the Batch that a model which learns is called with

# SAMPLES: how many; TOKENS: of all samples, with their padding; VALUES: the most
# numbers that a tensor has for each sample. 0: it is not clear.
Batch = collections.namedtuple("Batch", "samples tokens values")
UNCLEAR = Batch(0, 0, 0)

_INTEGERS = (torch.int64, torch.int32)
_NO_IDS = ("mask", "position")  # in names of integers of the ids' shape
_IMAGE = 4  # at least so many dimensions: of a batch, channels, rows, columns


def tensors(values, depth=4):
    """The tensors in arguments: in lists, tuples, dicts and their like."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from tensors(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from tensors(list(value.values()), depth - 1)


def _shapes(values):
    """(Shape, type) of each tensor; of one that has rows of several lengths
    (torch.nested), that of the numbers in it: it is packed."""
    for tensor in tensors(values):
        if tensor.is_nested:
            tensor = tensor.values()
        if tensor.dim():
            yield tuple(tensor.shape), tensor.dtype


def _row_size(shape, dtype):
    """How many tokens a tensor of packed sequences has: of (1, N), or numbers of
    (N, FEATURES); 0: it is none."""
    if shape[0] == 1 and len(shape) > 1:
        return shape[1]
    return shape[0] if dtype.is_floating_point and len(shape) < _IMAGE else 0


def _packed(shapes):
    """Sequences one after the other in one row, with their offsets or lengths
    beside them: a single sample."""
    rows = [shape[0] for shape, dtype in shapes
            if len(shape) == 1 and dtype in _INTEGERS]
    sizes = {_row_size(shape, dtype) for shape, dtype in shapes
             if len(shape) > 1 or dtype not in _INTEGERS} or {max(rows, default=0)}
    longest = sizes.pop()
    offsets = [size for size in rows if size != longest]
    if sizes or not offsets or not 1 < max(offsets) <= longest + 1:
        return UNCLEAR
    return Batch(1, longest, max(math.prod(shape) for shape, _ in shapes))


def _named(args, keywords):
    """(Name, shape, type) of each tensor; "" where it has no name."""
    for name, value in [*(("", arg) for arg in args), *keywords.items()]:
        for shape, dtype in _shapes([value]):
            yield name, shape, dtype


def _is_ids(name, shape, dtype):
    """Masks and positions are none. A row of one is text that is generated, if
    its name says ids."""
    return (dtype in _INTEGERS and len(shape) == 2
            and not any(word in name for word in _NO_IDS)
            and (shape[1] > 1 or name.endswith("input_ids")))


def _rows(args, keywords, samples):
    """Tokens: the elements of integers of two dimensions, a row for each sample,
    where all of them have one shape."""
    ids = {shape for name, shape, dtype in _named(args, keywords)
           if shape[0] == samples and _is_ids(name, shape, dtype)}
    return samples * ids.pop()[1] if len(ids) == 1 else 0


def _batch(args, keywords):
    """Samples are the first size of all tensors; those of size 1 count for any
    number."""
    values = [*args, *keywords.values()]
    if any(isinstance(v, (list, tuple)) and any(tensors([v])) for v in values):
        return UNCLEAR
    shapes = list(_shapes(values))
    sizes = {shape[0] for shape, _ in shapes}
    if len(sizes) > 1:
        packed = _packed(shapes)
        if packed.samples:
            return packed
        sizes.discard(1)
    if len(sizes) != 1:
        return UNCLEAR
    samples = sizes.pop()
    numbers = max(math.prod(shape) for shape, _ in shapes) // max(samples, 1)
    return Batch(samples, _rows(args, keywords, samples), numbers)


def batch(args, keywords=None):
    """Of the arguments ARGS and KEYWORDS."""
    try:
        return _batch(args, keywords or {})
    except Exception:  # tensors without a shape: lazy ones, functorch's
        return UNCLEAR


def _listed(values):
    """Images of several sizes in a list, of which a batch is made: the largest
    of each dimension counts."""
    for value in values if isinstance(values, (list, tuple)) else ():
        if isinstance(value, (list, tuple)) and value and all(
                isinstance(t, torch.Tensor) and t.dim() == _IMAGE - 1
                and t.is_floating_point() for t in value):
            return Batch(len(value), 0,
                         math.prod(map(max, *(t.shape for t in value)))
                         if len(value) > 1 else value[0].numel())
    return UNCLEAR


def loaded(values):
    """Of a batch that a data loader gives."""
    if isinstance(values, collections.abc.Mapping):
        values = list(values.values())
    found = batch(values if isinstance(values, (list, tuple)) else [values])
    return found if found.samples else _listed(values)


def images(values):
    """The same of a batch of images, if that is the first of VALUES."""
    first = values[0] if values else None
    if isinstance(first, torch.Tensor) and first.dim() >= _IMAGE \
            and first.is_floating_point():
        return batch([first])
    return UNCLEAR


def start():
    """modules.py and scan.py ask."""
