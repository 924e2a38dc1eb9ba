# SPDX-License-Identifier: Apache-2.0
"""Reads all batches of the data loaders that a job uses (--scan-data), without the
model: how long the longest sample is, and which batch is the largest.

A loader is read when it is iterated over for the first time, in a fork of this
process: what the data set, the sampler and the collate function do there changes
neither random numbers nor objects nor output of the job. The first epoch of the fork
has the order of the job's own. What each batch is like goes through a pipe; what is
kept of a loader is a line of the file that MEMSIM_SCAN_DATA names:

    PID LOADER STATE SHIFT BATCHES READ TOTAL (N BATCH SAMPLE) x 5 ERROR

STATE says how the model's inputs relate to the loader's batches, in enum scan_state's
order (memsim/report/text/scan_read.h); the five are the dimensions of enum
peak_law_dimension. The last line of a loader counts.
"""
import collections
import ctypes
import functools
import json
import math
import os
import random
import sys
import time

import torch
from torch.utils.data import dataloader

LIMIT_S = int(os.environ.get("MEMSIM_SCAN_SECONDS", "300"))
RECENT = 3  # batches that a loop may have got before it uses one

UNUSED, SAME, SHIFTED, OTHER = range(4)  # enum scan_state
_sizes = sys.modules[__name__.replace("scan", "sizes")]
_loaders = {}  # by id() of the data set: nobody else has that as long as it is here
_recent = collections.deque(maxlen=RECENT)  # of what was yielded: loader, batch


class Most:
    """The largest of one dimension: N, in batch BATCH, with sample SAMPLE."""

    def __init__(self):
        self.n, self.batch, self.sample = 0, -1, -1

    def raise_to(self, n, batch, sample):
        if n > self.n:
            self.n, self.batch, self.sample = n, batch, sample


# --- in the fork --------------------------------------------------------------

def _length(value, depth=3):
    """The longest row of integers in a sample, and the most numbers of a part."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], int):
            return len(value), len(value)
        parts = [_length(part, depth - 1) for part in value] if depth else []
        return tuple(max(part[i] for part in parts) for i in (0, 1)) \
            if parts else (0, 0)
    shape = getattr(value, "shape", None)
    if shape is None and hasattr(value, "getbands"):  # PIL's
        shape = (*value.size, len(value.getbands()))
    if not shape:
        return 0, 0
    integers = len(shape) == 1 and "int" in str(getattr(value, "dtype", ""))
    return (shape[0] if integers else 0), math.prod(shape)


def _largest(samples, which):
    """The place of the sample whose _length is the largest."""
    lengths = [_length(sample)[which] for sample in samples]
    return max(range(len(lengths)), key=lengths.__getitem__, default=-1)


class _Reader:
    """Reads LOADER's batches, in the fork."""

    def __init__(self, loader):
        loader.pin_memory = False
        self.loader, self.samples = loader, []
        self.iterator = dataloader._BaseDataLoaderIter(loader)
        make = dataloader._DatasetKind.create_fetcher
        self.fetcher = make(loader._dataset_kind, loader.dataset,
                            loader._auto_collation, self._collate,
                            loader.drop_last)
        self.until = time.monotonic() + LIMIT_S
        self.batches = self.read = 0
        self.seen = set()
        self.most = [Most() for _ in range(5)]

    def _collate(self, samples):
        self.samples = samples if self.loader._auto_collation else [samples]
        return self.loader.collate_fn(samples)

    def _note(self, values, indices, number):
        batch = _sizes.loaded(values)
        if not batch.samples:
            return
        tokens = batch.tokens // batch.samples
        named = indices if isinstance(indices, list) else [indices]
        for place, n in enumerate((tokens, batch.values, batch.samples,
                                   batch.tokens,
                                   batch.values * batch.samples)):
            if n <= self.most[place].n:
                continue
            at = _largest(self.samples, 0 if tokens else 1) \
                if place in (0, 1) else -1
            sample = named[at] if 0 <= at < len(named) else -1
            self.most[place].raise_to(n, number, sample
                                      if isinstance(sample, int) else -1)

    def epoch(self):
        """Whether there was time for all batches."""
        while time.monotonic() < self.until:
            try:
                indices = next(self.iterator._sampler_iter)
                values = self.fetcher.fetch(indices)
            except StopIteration:
                return True
            self._note(values, indices, self.batches)
            self.batches += 1
            self.read += len(self.samples)
            if isinstance(indices, list):
                self.seen.update(indices)
        return False

    def left(self):
        """Reads what this epoch leaves out and another one may have: the last
        samples, with drop_last, and those of other ranks."""
        loader, sampler = self.loader, self.loader.sampler
        others = getattr(sampler, "rank", 0) == 0 and \
            getattr(sampler, "num_replicas", 1) > 1
        if not loader._auto_collation or not (loader.drop_last or others):
            return True
        for index in range(len(loader.dataset)):
            if index in self.seen:
                continue
            if time.monotonic() >= self.until:
                return False
            self._note(self.fetcher.fetch([index]), [index], -1)
            self.read += 1
        return True


def _total(loader):
    try:
        return len(loader.dataset)
    except Exception:  # an IterableDataset without a length
        return 0


def _read(loader):
    torch.set_num_threads(1)
    reader = _Reader(loader)
    mapped = loader._dataset_kind == dataloader._DatasetKind.Map
    whole = reader.epoch() and (not mapped or reader.left())
    return (whole, reader.batches, reader.read, _total(loader),
            [(m.n, m.batch, m.sample) for m in reader.most])


def _work(loader, pipe, state):
    """The fork: never returns."""
    try:
        ctypes.CDLL("libmemsim.so").memsim_host_leave()
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        random.setstate(state)  # Python draws a new one in a fork
        answer = _read(loader)
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    finally:
        with os.fdopen(pipe, "w") as out:
            json.dump(answer, out)
        os._exit(0)


# --- in the job ---------------------------------------------------------------

class _Loader:
    def __init__(self, loader):
        self.data = loader.dataset
        self.number = len(_loaders)
        self.state, self.shift = UNUSED, 0
        self.believed = None  # what all calls of the model agree with
        self.answer = self.scan(loader)
        self.write()

    def scan(self, loader):
        own, pipe = os.pipe()
        state = random.getstate()
        child = os.fork()
        if not child:
            _work(loader, pipe, state)
        os.close(pipe)
        with os.fdopen(own) as answer:
            told = answer.read()
        os.waitpid(child, 0)
        return json.loads(told) if told else "the process that read it died"

    def relate(self, batch):
        """The model was called with BATCH, which may be one of those that were
        yielded last, or longer or shorter than the last one by as much as all."""
        given = [size for loader, size in _recent if loader is self]
        found = {(SAME, 0, len(given) - i) for i, size in enumerate(given)
                 if _alike(size, batch)}
        if batch.tokens and given[-1].tokens \
                and batch.samples == given[-1].samples:
            found.add((SHIFTED, (batch.tokens - given[-1].tokens)
                       // batch.samples, 1))
        self.believed = found if self.believed is None \
            else self.believed & found
        state, shift, _ = min(self.believed, default=(OTHER, 0, 0))
        if (self.state, self.shift) != (state, shift):
            self.state, self.shift = state, shift
            self.write()

    def write(self):
        words = [os.getpid(), self.number, self.state, self.shift]
        if isinstance(self.answer, str):
            words += [0] * 18 + [" ".join(self.answer.split())[:200]]
        else:
            whole, batches, read, total, most = self.answer
            words += [batches, read, total, *(n for m in most for n in m),
                      "" if whole else f"it was read for {LIMIT_S} s only"]
        with open(os.environ["MEMSIM_SCAN_DATA"], "a") as out:
            out.write(" ".join(map(str, words)) + "\n")


def _alike(given, batch):
    return given.samples == batch.samples and (
        given.tokens == batch.tokens if batch.tokens
        else given.values == batch.values)


def _see(batch):
    """A model that learns was called with BATCH."""
    if _recent:
        _recent[-1][0].relate(batch)


def _follow():
    iterate = dataloader.DataLoader.__iter__
    base = dataloader._BaseDataLoaderIter
    advance = base.__next__

    @functools.wraps(iterate)
    def iterated(self):
        key = id(self.dataset)
        if key not in _loaders:
            _loaders[key] = None  # a data set may have a loader of its own
            _loaders[key] = _Loader(self)
        iterator = iterate(self)
        if isinstance(iterator, base):
            iterator._memsim_loader = _loaders[key]
        return iterator

    @functools.wraps(advance)
    def advanced(self):
        values = advance(self)
        loader = getattr(self, "_memsim_loader", None)
        if loader is not None:
            _recent.append((loader, _sizes.loaded(values)))
        return values

    dataloader.DataLoader.__iter__ = iterated
    base.__next__ = advanced
    _sizes.called = _see


def start():
    _follow()
