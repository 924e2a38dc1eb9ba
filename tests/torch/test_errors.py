# SPDX-License-Identifier: Apache-2.0
"""Bugs that a GPU answers with an error which ends the process's CUDA, and
what PyTorch says then. Each in a child that is forked before CUDA starts."""
import ctypes
import os
import subprocess
import tempfile
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
from harness import equal, main, test

GPU = "cuda"
ASSERT = "CUDA error: device-side assert triggered"


# What nvcc's host code does, by hand.
FOREIGN = """
#include <stddef.h>
struct dim3 { unsigned x, y, z; };
void __cudaRegisterFunction(void **, const char *, char *, const char *, int,
                            void *, void *, void *, void *, int *);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t,
                     void *);
static char stub;
int launch(void)
{
    struct dim3 one = {1, 1, 1};
    __cudaRegisterFunction(0, &stub, 0, "_Z6changev", -1, 0, 0, 0, 0, 0);
    return cudaLaunchKernel(&stub, one, one, 0, 0, 0);
}
"""


# A kernel of an extension's: it writes its first argument, if any of the two.
SCALE = """
#include <stddef.h>
struct dim3 { unsigned x, y, z; };
void __cudaRegisterFunction(void **, const char *, char *, const char *, int,
                            void *, void *, void *, void *, int *);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t,
                     void *);
static char plain, template;
int scale(int is_template, void *to, const void *from)
{
    struct dim3 one = {1, 1, 1};
    void *arguments[] = {&to, &from};
    char *stub = is_template ? &template : &plain;
    __cudaRegisterFunction(0, stub, 0,
                           is_template ? "_Z5scaleIfEvPT_PKS0_"
                                       : "_Z5scalePfPKf",
                           -1, 0, 0, 0, 0, 0);
    return cudaLaunchKernel(stub, one, one, arguments, 0, 0);
}
"""


def extension(source):
    """The library that SOURCE makes, loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "extension.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", path, "-"],
                       input=source, text=True, check=True)
        return ctypes.CDLL(path)


def in_child(function):
    """What FUNCTION returns (a str), run in a process of its own."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(there, function().encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(there)
    with os.fdopen(here) as pipe:
        text = pipe.read()
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    return text


def error_of(function):
    """The first line of the error that FUNCTION ends in, by the next
    synchronisation at last; or an empty text."""
    def run():
        try:
            function()
            torch.cuda.synchronize()
            return ""
        except RuntimeError as error:
            return str(error).splitlines()[0]
    return in_child(run)


def is_noted(text):
    """Whether the report will have TEXT in a note."""
    with open(os.environ["MEMSIM_SESSION"], "rb") as file:
        return text.encode() in file.read()


def on_gpu(values):
    return torch.tensor(values).to(GPU)


def cross_entropy(targets, **kwargs):
    logits = torch.randn(4, 10, device=GPU, dtype=kwargs.pop("dtype", None))
    return F.cross_entropy(logits, targets, **kwargs)


@test
def targets_that_are_no_classes():
    for case in (lambda: cross_entropy(on_gpu([1, 2, 10, 3])),
                 lambda: cross_entropy(on_gpu([1, -1, 0, 3])),
                 lambda: cross_entropy(on_gpu([1, 2, 11, 3]),
                                       reduction="none"),
                 lambda: cross_entropy(on_gpu([1, 2, 12, 3]),
                                       dtype=torch.bfloat16),
                 lambda: F.nll_loss(torch.randn(10, device=GPU), on_gpu(13)),
                 lambda: F.cross_entropy(
                     torch.randn(2, 5, 3, 3, device=GPU),
                     torch.full((2, 3, 3), 14).to(GPU))):
        equal(error_of(case), ASSERT)
    for target in (10, -1, 11, 12, 13, 14):
        assert is_noted(f"a target of nll_loss is {target}, of "), target


@test
def targets_that_are_ignored():
    equal(error_of(lambda: cross_entropy(on_gpu([1, -100, 9, 0]))), "")
    equal(error_of(lambda: cross_entropy(on_gpu([1, 255, 9, 0]),
                                         ignore_index=255)), "")
    equal(error_of(lambda: F.cross_entropy(
        torch.randn(2, 5, 3, 3, device=GPU),
        torch.full((2, 3, 3), 4).to(GPU))), "")


@test
def tokens_beyond_the_vocabulary():
    def embed():
        tokens = torch.randint(0, 1000, (8, 512))
        tokens[3, 100] = 1000
        nn.Embedding(1000, 768, device=GPU)(tokens.to(GPU))
    equal(error_of(embed), ASSERT)
    assert is_noted("an index of embedding or index_select is 1000, of 1000 ")
    equal(error_of(lambda: nn.Embedding(10, 3, device=GPU)(
        on_gpu([0, 9, 10]))), ASSERT)
    equal(error_of(lambda: nn.Embedding(10, 3, device=GPU)(
        on_gpu([0, 9, 1]))), "")


@test
def indices_out_of_range():
    x = [[1.0, 2.0, 3.0]]
    for case in (lambda: on_gpu(x)[:, on_gpu([0, 3])],
                 lambda: on_gpu(x)[on_gpu([-2])],
                 lambda: on_gpu(x).gather(1, on_gpu([[3]])),
                 lambda: on_gpu(x).scatter_(1, on_gpu([[-1]]), 0.5),
                 lambda: on_gpu(x).index_select(1, on_gpu([3]))):
        equal(error_of(case), ASSERT)
    equal(error_of(lambda: on_gpu(x)[:, on_gpu([-3, 2])]), "")


# What was computed may have been changed by a kernel that is not followed.
@test
def computed_indices_are_noted_only():
    equal(error_of(lambda: cross_entropy(on_gpu([1, 2, 6, 3]) * 7)), "")
    assert is_noted("a target of nll_loss is 14, of 10 classes")


# A kernel of somebody else's may have changed even what the host copied.
@test
def beside_foreign_kernels_all_are_notes():
    def run():
        logits = torch.randn(4, 10, device=GPU)
        equal(extension(FOREIGN).launch(), 0)
        F.cross_entropy(logits, on_gpu([1, 2, 77, 3]))
    equal(error_of(run), "")
    assert is_noted("a target of nll_loss is 77, of 10 classes")


@test
def what_an_extension_may_write_is_not_known():
    """And only that: not what its arguments say is constant."""
    def run():
        library = extension(SCALE)
        for is_template in 0, 1:
            to = torch.full((100,), 7.0, device=GPU)
            source = torch.full((100,), 7, device=GPU)
            equal(library.scale(is_template, ctypes.c_void_p(to.data_ptr()),
                                ctypes.c_void_p(source.data_ptr())), 0)
            assert 0 < to[0].item() <= 1, to
            equal(source.tolist(), [7] * 100)
    equal(error_of(run), "")


@test
def an_assert_is_for_ever():
    def run():
        cross_entropy(on_gpu([1, 2, 10, 3]))
        texts = []
        for _ in range(2):
            for call in (torch.cuda.synchronize, torch.cuda.empty_cache,
                         torch.cuda.mem_get_info,
                         lambda: torch.zeros(1, device=GPU)):
                try:
                    call()
                    texts.append("fine")
                except RuntimeError as error:
                    texts.append(str(error).splitlines()[0])
        return "|".join(sorted(set(texts)))
    equal(in_child(run), ASSERT)


@test
def a_blocking_launch_fails_in_place():
    def run():
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        try:
            cross_entropy(on_gpu([1, 2, 10, 3]))
            return "fine"
        except RuntimeError as error:
            return traceback.extract_tb(error.__traceback__)[-1].name + \
                ": " + str(error).splitlines()[0]
    equal(in_child(run), "cross_entropy: " + ASSERT)


if __name__ == "__main__":
    main()
