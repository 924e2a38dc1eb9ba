# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of fuzz_alloc.py: a child process under `memsim run`."""
import json
import os
import sys
import warnings

from alloc_programs import NO_SPLIT, STREAMS, USE_ON_OOM, WIDE, version_of


class Torch:
    """Plays programs in PyTorch."""

    def __init__(self):
        import ctypes
        import torch
        self.torch = torch
        self.cuda = ctypes.CDLL(None)
        torch.cuda.init()
        torch.cuda.synchronize()
        streams = {torch.cuda.Stream().cuda_stream: None for _ in range(64)}
        # Numbered as the allocator orders them: by handle. The last is of no
        # program.
        handles = sorted(streams)[:STREAMS - 1] + [max(streams)]
        self.streams = [torch.cuda.default_stream()] + [
            torch.cuda.ExternalStream(h) for h in handles]
        self.numbers = {0: 0}
        self.numbers.update({h: i + 1 for i, h in enumerate(handles)})
        self.version = version_of(torch.__version__)
        self.held = self.hold()
        self.widen()
        self.reserved = torch.cuda.memory_reserved()

    def hold(self):
        """The first graph takes two numbers for the random generators, which
        stay as long as there is one: keeps one, and says what that took."""
        self.record()
        self.keeper = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.stream(self.streams[-1]):
            self.keeper.capture_begin(capture_error_mode="relaxed")
            self.keeper.capture_end()
        return self.events()

    def widen(self):
        """The order of PyTorch's hash tables of pools depends on the most that
        they ever held: makes that more than a program needs."""
        torch = self.torch
        graphs = [torch.cuda.CUDAGraph() for _ in range(WIDE)]
        for graph in graphs:
            with torch.cuda.stream(self.streams[-1]):
                graph.capture_begin(capture_error_mode="relaxed")
                graph.capture_end()
        for graph in graphs:
            graph.reset()
        if self.version >= (2, 8):
            pools = [torch.cuda.MemPool(use_on_oom=True) for _ in range(WIDE)]
            del pools
        del graph, graphs
        torch.cuda.empty_cache()

    def record(self):
        memory = self.torch.cuda.memory
        memory._record_memory_history(enabled=None)
        memory._record_memory_history(context=None, max_entries=1000000)

    def events(self):
        trace = self.torch.cuda.memory._snapshot()["device_traces"][0]
        return [[e["action"], e.get("addr", e.get("device_free")), e["size"],
                 self.numbers.get(e["stream"], -1)] for e in trace
                if e["action"] != "snapshot"]

    def malloc(self, block, size, stream):
        torch = self.torch
        try:
            with torch.cuda.stream(self.streams[stream]):
                self.blocks[block] = torch.empty(size, dtype=torch.uint8,
                                                 device="cuda")
        except torch.OutOfMemoryError:
            self.failed.append(block)

    def free(self, block):
        self.blocks.pop(block, None)

    def use(self, block, stream):
        if block in self.blocks:
            self.blocks[block].record_stream(self.streams[stream])

    def empty(self):
        self.torch.cuda.empty_cache()

    def fraction(self, value):
        self.torch.cuda.set_per_process_memory_fraction(value)

    def settings(self, conf):
        self.torch.cuda.memory._set_allocator_settings(conf)

    def ballast(self, block, size):
        import ctypes
        pointer = ctypes.c_void_p()
        if self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)):
            self.cuda.cudaGetLastError()
        else:
            self.ballasts[block] = pointer

    def drop(self, block):
        if block in self.ballasts:
            self.cuda.cudaFree(self.ballasts.pop(block))

    def pool(self, number, flags):
        options = {}
        if flags & USE_ON_OOM:
            options["use_on_oom"] = True
        if flags & NO_SPLIT:
            options["no_split"] = True
        self.pools[number] = self.torch.cuda.MemPool(**options)
        self.handles[number] = self.pools[number].id

    def begin(self, number):
        self.inside.append(self.torch.cuda.use_mem_pool(self.pools[number]))
        self.inside[-1].__enter__()

    def end(self, number):
        self.inside.pop().__exit__(None, None, None)

    def release(self, number):
        del self.pools[number]

    def handle(self, number):
        self.handles[number] = self.torch.cuda.graph_pool_handle()

    def graph(self, number, pool, stream):
        graph = self.torch.cuda.CUDAGraph()
        self.graphs[number] = graph, [stream]
        with self.torch.cuda.stream(self.streams[stream]):
            graph.capture_begin(pool=self.handles[pool] if pool else (0, 0),
                                capture_error_mode="relaxed")
        self.set_current()

    def set_current(self):
        """The stream of the newest capture."""
        capturing = [streams[0] for _, streams in self.graphs.values()
                     if streams]
        self.torch.cuda.set_stream(self.streams[(capturing or [0])[-1]])

    def fork(self, number, stream):
        streams = self.graphs[number][1]
        self.streams[stream].wait_stream(self.streams[streams[0]])
        streams.append(stream)

    def ended(self, number):
        graph, (first, *others) = self.graphs[number]
        for stream in others:
            self.streams[first].wait_stream(self.streams[stream])
        with self.torch.cuda.stream(self.streams[first]):
            graph.capture_end()
        self.handles[number] = graph.pool()
        self.graphs[number] = graph, []
        self.set_current()

    def forget(self, number):
        self.graphs.pop(number)[0].reset()

    def stats(self):
        self.counted.append(dict(self.torch.cuda.memory_stats()))

    def reset(self):
        """After a program, which ends what it begins."""
        torch = self.torch
        for number in list(self.__dict__.get("graphs", {})):
            self.forget(number)
        for block in list(self.__dict__.get("ballasts", {})):
            self.drop(block)
        self.blocks, self.ballasts, self.pools = {}, {}, {}
        self.graphs, self.handles, self.inside = {}, {}, []
        self.failed, self.counted = [], []
        torch.cuda.synchronize()
        self.settings("expandable_segments:False" + (
            ",large_segment_size_mb:20" if self.version >= (2, 11) else ""))
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        assert torch.cuda.memory_reserved() == self.reserved, \
            "memory is left over"

    def play(self, program):
        self.reset()
        free, total = self.torch.cuda.mem_get_info()
        before = {key: value for key, value
                  in self.torch.cuda.memory_stats().items()
                  if value and key.endswith("current")}
        self.record()
        for word, *arguments in program:
            getattr(self, word)(*arguments)
        return {"version": self.torch.__version__, "total": total,
                "other": total - free - self.reserved, "held": self.held,
                "before": before, "failed": self.failed,
                "pools": self.handles, "events": self.events(),
                "stats": self.counted}


def child():
    warnings.simplefilter("ignore")
    torch = Torch()
    for line in sys.stdin:
        try:
            result = torch.play(json.loads(line))
        except RuntimeError as error:
            # Some calls in a row are beyond PyTorch itself: it frees a part of
            # a segment when max_split_size_mb is lowered below it, say.
            result = {"died": str(error).split("\n")[0]}
        print(json.dumps(result), flush=True)
        if "died" in result:
            os._exit(1)
    torch.reset()
