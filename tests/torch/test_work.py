# SPDX-License-Identifier: Apache-2.0
"""Bytes, arithmetic and shapes of single operations, of which the tensors tell
what they must be: one program on the fake device, read by `memsim trace --work
--each`. Bytes are those of distinct elements, each read or written once.
Starts its own run, so it is not itself to be started under one."""
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

from harness import Skip, equal, main, test

CASES_ONLY = sys.argv[1:] == ["--cases"]
if CASES_ONLY:  # under memsim run
    import torch
    import torch.nn.functional as F

    HALF, BF16 = torch.half, torch.bfloat16
else:
    HALF = BF16 = None

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(ROOT, "build"))
MEMSIM = os.path.join(BUILD, "bin", "memsim")

CASES = {}


def case(function):
    """FUNCTION sets up, and returns what is to be looked at."""
    CASES[function.__name__] = function
    return function


def make(*shape, dtype=None, grad=False):
    return torch.empty(*shape, device="cuda", dtype=dtype).requires_grad_(grad)



@case
def add():
    a, b = make(1000, 777, dtype=HALF), make(1000, 777, dtype=HALF)
    return lambda: a.add(b)


@case
def add_scalar():
    a = make(1000, 777)
    return lambda: a + 1


@case
def cast():
    a = make(1000, 777)
    return lambda: a.to(BF16)


@case
def cast_back():
    a = make(1000, 777, dtype=BF16)
    return lambda: a.float()


@case
def mixed_add():
    a, b = make(1000, 777), make(1000, 777, dtype=BF16)
    return lambda: a + b


@case
def compare():
    a = make(1000, 777)
    return lambda: a > 0


@case
def where():
    c = make(1000, 777, dtype=torch.bool)
    a, b = make(1000, 777, dtype=HALF), make(1000, 777, dtype=HALF)
    return lambda: torch.where(c, a, b)


@case
def fill():
    a = make(1000, 777, dtype=HALF)
    return lambda: a.fill_(3)


@case
def transpose_copy():
    a = make(1000, 777)
    return lambda: a.t().contiguous()


@case
def transpose_copy_cast():
    a = make(1000, 777)
    return lambda: torch.empty(777, 1000, device="cuda", dtype=HALF).copy_(
        a.t())


@case
def broadcast_add():
    a, b = make(1000, 777), make(777)
    return lambda: a + b


@case
def broadcast_columns():
    a, b = make(1000, 777), make(1000, 1)
    return lambda: a * b


@case
def slice_copy():
    a = make(1000, 800)
    return lambda: a[:, :400].contiguous()


@case
def gelu_backward():
    a, b = make(1000, 777), make(1000, 777)
    return lambda: torch.ops.aten.gelu_backward(a, b)


@case
def sum_all():
    a = make(1 << 20)
    return lambda: a.sum()


@case
def sum_rows():
    a = make(1000, 777, dtype=BF16)
    return lambda: a.sum(1)


@case
def sum_columns():
    a = make(1000, 777, dtype=BF16)
    return lambda: a.sum(0)


@case
def mean_rows():
    a = make(1000, 777)
    return lambda: a.mean(-1)


@case
def argmax():
    a = make(1000, 777)
    return lambda: a.argmax(-1)


@case
def variance():
    a = make(1000, 777)
    return lambda: a.var(-1)


@case
def softmax_short():
    a = make(5000, 777, dtype=BF16)
    return lambda: torch.softmax(a, -1)


@case
def softmax_long():
    a = make(512, 50257)
    return lambda: torch.softmax(a, -1)


@case
def softmax_middle():
    a = make(64, 333, 128)
    return lambda: torch.softmax(a, 1)


@case
def softmax_backward_short():
    a, b = make(5000, 777), make(5000, 777)
    return lambda: torch.ops.aten._softmax_backward_data(a, b, -1, torch.float)


@case
def softmax_backward_long():
    a, b = make(512, 50257), make(512, 50257)
    return lambda: torch.ops.aten._log_softmax_backward_data(
        a, b, -1, torch.float)


@case
def layer_norm():
    a, w, b = make(4096, 768, dtype=BF16), make(768, dtype=BF16), make(
        768, dtype=BF16)
    return lambda: F.layer_norm(a, (768,), w, b)


@case
def layer_norm_backward():
    a = make(4096, 768, grad=True)
    w, b = make(768, grad=True), make(768, grad=True)
    y = F.layer_norm(a, (768,), w, b)
    g = torch.empty_like(y)
    return lambda: torch.autograd.grad(y, (a, w, b), g)


@case
def group_norm():
    a, w, b = make(8, 64, 56, 56), make(64), make(64)
    return lambda: F.group_norm(a, 32, w, b)


@case
def batch_norm():
    a, w = make(8, 64, 56, 56, dtype=BF16), make(64)
    m, v = make(64), make(64)
    return lambda: torch.ops.aten.native_batch_norm(a, w, w, m, v, True, .1,
                                                    1e-5)


@case
def batch_norm_channels_last():
    a = make(8, 64, 56, 56, dtype=BF16).to(memory_format=torch.channels_last)
    w, m, v = make(64), make(64), make(64)
    return lambda: torch.ops.aten.native_batch_norm(a, w, w, m, v, True, .1,
                                                    1e-5)


@case
def cat():
    a, b = make(1000, 300, dtype=HALF), make(1000, 477, dtype=HALF)
    return lambda: torch.cat([a, b], 1)


@case
def cat_first():
    a, b = make(300, 768), make(477, 768)
    return lambda: torch.cat([a, b], 0)


@case
def stack():
    a = [make(1000, 64) for _ in range(3)]
    return lambda: torch.stack(a, -1)


@case
def embedding():
    w, i = make(50257, 768), make(8, 1024, dtype=torch.long)
    return lambda: F.embedding(i, w)


@case
def gather():
    a, i = make(1000, 777), make(1000, 100, dtype=torch.long)
    return lambda: a.gather(1, i)


@case
def index():
    a, i = make(5000, 77), make(900, dtype=torch.long)
    return lambda: a[:, i % 77]


@case
def index_put():
    a, v, i = make(5000, 77), make(900, 77), make(900, dtype=torch.long)
    return lambda: a.index_put_((i,), v)


@case
def dropout():
    a = make(1000, 776, dtype=BF16)
    return lambda: F.dropout(a, 0.1)


@case
def dropout_backward():
    a, m = make(1000, 776, dtype=BF16), make(1000, 776, dtype=torch.bool)
    return lambda: torch.ops.aten.native_dropout_backward(a, m, 1.1)


@case
def random_normal():
    a = make(1000, 777, dtype=BF16)
    return lambda: a.normal_()


@case
def max_pool():
    a = make(8, 64, 112, 112)
    return lambda: F.max_pool2d(a, 3, 2, 1)


@case
def max_pool_channels_last():
    a = make(8, 64, 112, 112).to(memory_format=torch.channels_last)
    return lambda: F.max_pool2d(a, 3, 2, 1)


def parameters(dtype=None):
    return [make(1000, 777, dtype=dtype), make(200000, dtype=dtype),
            make(33, dtype=dtype)]


def adam(**options):
    values = parameters()
    for p in values:
        p.requires_grad_()
        p.grad = torch.zeros_like(p)
    optimizer = torch.optim.AdamW(values, **options)
    optimizer.step()
    return optimizer.step


@case
def adam_fused():
    return adam(fused=True)


@case
def adam_foreach():
    return adam(foreach=True)


@case
def clip():
    values = parameters()
    for p in values:
        p.requires_grad_()
        p.grad = torch.zeros_like(p)
    return lambda: torch.nn.utils.clip_grad_norm_(values, 1.0)


@case
def linear():
    x, w = make(4096, 768, dtype=BF16), make(3072, 768, dtype=BF16)
    return lambda: F.linear(x, w)


@case
def linear_bias():
    x, w = make(4096, 768, dtype=BF16), make(3072, 768, dtype=BF16)
    b = make(3072, dtype=BF16)
    return lambda: F.linear(x, w, b)


@case
def linear_backward():
    g, x, w = (make(4096, 3072, dtype=BF16), make(4096, 768, dtype=BF16),
               make(3072, 768, dtype=BF16))
    return lambda: (g @ w, g.t() @ x)


@case
def matmul_fp32():
    a, b = make(512, 256), make(256, 1000)
    return lambda: a @ b


@case
def matmul_tf32():
    a, b = make(512, 256), make(256, 1000)

    def run():
        torch.backends.cuda.matmul.allow_tf32 = True
        a @ b
        torch.backends.cuda.matmul.allow_tf32 = False
    return run


@case
def addmm():
    c, a, b = make(512, 1000), make(512, 256), make(256, 1000)
    return lambda: torch.addmm(c, a, b)


@case
def bmm():
    a, b = make(96, 128, 64, dtype=HALF), make(96, 64, 200, dtype=HALF)
    return lambda: torch.bmm(a, b)


def attention(kernel, causal, grad=False, dtype=BF16, shape=(4, 16, 1000, 64),
              kv_heads=None):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = getattr(SDPBackend, kernel)
    batch, heads, length, size = shape
    q = make(*shape, dtype=dtype, grad=grad)
    k = make(batch, kv_heads or heads, length, size, dtype=dtype, grad=grad)
    v = make(batch, kv_heads or heads, length, size, dtype=dtype, grad=grad)

    def forward():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                  enable_gqa=bool(kv_heads))
    if not grad:
        return forward
    y = forward()
    g = torch.empty_like(y)
    return lambda: torch.autograd.grad(y, (q, k, v), g)


@case
def attention_cudnn():
    return attention("CUDNN_ATTENTION", True)


@case
def attention_flash():
    return attention("FLASH_ATTENTION", True)


@case
def attention_flash_full():
    return attention("FLASH_ATTENTION", False, shape=(2, 12, 257, 80))


@case
def attention_flash_grouped():
    return attention("FLASH_ATTENTION", True, kv_heads=4)


@case
def attention_flash_backward():
    return attention("FLASH_ATTENTION", True, grad=True)


@case
def attention_efficient():
    return attention("EFFICIENT_ATTENTION", True, dtype=torch.float)


@case
def attention_efficient_full():
    return attention("EFFICIENT_ATTENTION", False, dtype=torch.float,
                     shape=(2, 12, 257, 80))


@case
def attention_efficient_backward():
    return attention("EFFICIENT_ATTENTION", True, grad=True,
                     dtype=torch.float)


def convolution(index, dtype=BF16, groups=1, channels_last=False, size=3,
                stride=1):
    x = make(8, 64, 56, 56, dtype=dtype, grad=True)
    w = make(128 if groups == 1 else 64, 64 // groups, size, size, dtype=dtype,
             grad=True)
    if channels_last:
        x = x.detach().to(memory_format=torch.channels_last).requires_grad_()
        w = w.detach().to(memory_format=torch.channels_last).requires_grad_()

    def forward():
        return F.conv2d(x, w, stride=stride, padding=size // 2, groups=groups)
    if index is None:
        return forward
    y = forward()
    g = torch.empty_like(y)
    return lambda: torch.autograd.grad(y, (x, w)[index], g)


@case
def conv():
    return convolution(None)


@case
def conv_fp32():
    return convolution(None, dtype=torch.float)


@case
def conv_data():
    return convolution(0, channels_last=True, stride=2)


@case
def conv_filter():
    return convolution(1)


@case
def conv_depthwise():
    return convolution(None, groups=64, size=7, channels_last=True)


@case
def conv_depthwise_fp32():
    return convolution(None, groups=64, size=7, dtype=torch.float)


@case
def cross_entropy():
    x, y = make(4096, 1000, grad=True), make(4096, dtype=torch.long)
    loss = F.cross_entropy(x, y)
    return lambda: loss.backward()


@case
def pageable():
    a = torch.empty(1000, 777)
    return lambda: a.cuda()


@case
def pinned():
    a = torch.empty(1000, 777).pin_memory()
    return lambda: a.to("cuda", non_blocking=True)


@case
def to_host():
    a = make(1000, 777)
    return lambda: a.cpu()


@case
def to_pinned():
    a, b = make(1000, 777), torch.empty(1000, 777).pin_memory()
    return lambda: b.copy_(a)


@case
def device_copy():
    a, b = make(1000, 777), make(1000, 777)
    return lambda: b.copy_(a)


@case
def zero():
    a = make(1000, 777)
    return lambda: a.zero_()


@case
def fft():
    a = make(1000, 777, dtype=torch.complex64 if CASES_ONLY else None)
    return lambda: torch.fft.fft(a)


@case
def fft_real():
    a = make(1000, 777)
    return lambda: torch.fft.rfft(a)


@case
def sparse_product():
    rows = torch.arange(1001, device="cuda") * 20
    columns = torch.arange(20, device="cuda").repeat(1000)
    a = torch.sparse_csr_tensor(rows, columns, make(20000), (1000, 777),
                                check_invariants=False)
    b = make(777, 500)
    return lambda: a @ b


def run_cases():
    torch.empty(1, device="cuda").add_(1)
    for name, function in CASES.items():
        work = function()
        torch.cuda.nvtx.mark(name)
        work()
        torch.cuda.nvtx.mark("-")


# What is expected: (family, bytes read, bytes written[, values of other keys]).
# Operations that move less than SMALL bytes are not looked at.
SMALL = 10000
N = 1000 * 777
ROWS = 4096 * 768
CONV_X, CONV_Y = 8 * 64 * 56 * 56, 8 * 128 * 56 * 56
CONV_FLOPS = 2 * CONV_Y * 64 * 9
P = N + 200000 + 33  # parameters' elements


def products(m, n, k, batch=1, element=2, **keys):
    return ("gemm", element * batch * (m * k + k * n), element * batch * m * n,
            dict(m=m, n=n, k=k, batch=batch, flops=2 * m * n * k * batch,
                 **keys))


def attends(element, b, h, q, d, kv=None, causal=True, backward=False, **keys):
    o, lse = b * h * q * d, 4 * b * h * q
    kv = kv or h
    pairs = b * h * (q * (q + 1) // 2 if causal else q * q)
    inputs = element * b * q * d * (h + 2 * kv)
    keys = dict(batch=b, heads=h, kv_heads=kv, queries=q, head_size=d,
                causal=int(causal), **keys)
    if backward:
        return ("attention_backward", inputs + 2 * element * o + lse,
                element * 3 * o, dict(flops=10 * pairs * d, **keys))
    return ("attention_forward", inputs, element * o + lse,
            dict(flops=4 * pairs * d, **keys))


FLASH = dict(kernel="flash2", source="rule")
EFFICIENT = dict(kernel="efficient", source="rule")

TORCH = tuple(int(n) for n in version("torch").split("+")[0].split(".")[:2])
# Casts of whole tensors load element by element, but where PyTorch has a kernel
# for two types: to 16 bits after 2.5, back after 2.11 (in 2.15).
CAST = "elementwise" if TORCH > (2, 5) else "strided"
CAST_BACK = "elementwise" if TORCH > (2, 11) else "strided"

EXPECTED = {
    "add": [("elementwise", 4 * N, 2 * N)],
    "add_scalar": [("elementwise", 4 * N, 4 * N)],
    "cast": [(CAST, 4 * N, 2 * N)],
    "cast_back": [(CAST_BACK, 2 * N, 4 * N)],
    "mixed_add": [("strided", 6 * N, 4 * N)],
    "compare": [("elementwise", 4 * N, N)],
    "where": [("elementwise", 5 * N, 2 * N)],
    "fill": [("elementwise", 0, 2 * N)],
    "transpose_copy": [("strided", 4 * N, 4 * N)],
    "transpose_copy_cast": [("strided", 4 * N, 2 * N)],
    "broadcast_add": [("strided", 4 * N + 4 * 777, 4 * N)],
    "broadcast_columns": [("strided", 4 * N + 4 * 1000, 4 * N)],
    "slice_copy": [("strided", 4 * 400000, 4 * 400000)],
    "gelu_backward": [("elementwise", 8 * N, 4 * N)],
    "sum_all": [("reduce", 4 << 20, 4, dict(rows=1, columns=1 << 20))],
    "sum_rows": [("reduce", 2 * N, 2000, dict(rows=1000, columns=777,
                                              stride=1))],
    "sum_columns": [("reduce", 2 * N, 1554, dict(rows=777, columns=1000,
                                                 stride=777))],
    "mean_rows": [("reduce", 4 * N, 4000, dict(rows=1000, columns=777))],
    "argmax": [("reduce", 4 * N, 8000, dict(rows=1000, columns=777))],
    "variance": [("reduce", 4 * N, 4000, dict(rows=1000, columns=777))],
    "softmax_short": [("softmax_forward", 10 * N, 10 * N,
                       dict(rows=5000, columns=777))],
    "softmax_long": [("softmax_forward", 2048 * 50257, 2048 * 50257,
                      dict(rows=512, columns=50257))],
    "softmax_middle": [("softmax_forward", 4 * 64 * 333 * 128,
                        4 * 64 * 333 * 128, dict(rows=8192, columns=333))],
    "softmax_backward_short": [
        ("elementwise", 40 * N, 20 * N),
        ("softmax_backward", 40 * N, 20 * N, dict(rows=5000, columns=777))],
    "softmax_backward_long": [
        ("softmax_backward", 4096 * 50257, 2048 * 50257,
         dict(rows=512, columns=50257))],
    "layer_norm": [("norm_forward", 2 * ROWS + 4 * 768, 2 * ROWS + 8 * 4096,
                    dict(rows=4096, columns=768))],
    "layer_norm_backward": [
        ("norm_backward", 8 * ROWS + 4 * 768 + 8 * 4096, 4 * ROWS,
         dict(rows=4096, columns=768)),
        ("norm_backward", 8 * ROWS + 8 * 4096, 0,
         dict(rows=4096, columns=768))],
    "group_norm": [
        ("norm_forward", 4 * CONV_X, 8 * 256, dict(rows=256, columns=6272)),
        ("strided", 4 * CONV_X + 8 * 8 * 64, 4 * CONV_X)],
    "batch_norm": [("norm_forward", 2 * CONV_X, 0),
                   ("norm_forward", 2 * CONV_X, 2 * CONV_X)],
    "batch_norm_channels_last": [("norm_forward", 2 * CONV_X, 0),
                                 ("norm_forward", 2 * CONV_X, 2 * CONV_X)],
    "cat": [("strided", 2 * N, 2 * N)],
    "cat_first": [("strided", 4 * N * 768 // 1000, 4 * N * 768 // 1000)],
    "stack": [("strided", 12 * 64000, 12 * 64000)],
    "embedding": [("index", 4 * 8192 * 768 + 8 * 8192, 4 * 8192 * 768)],
    "gather": [("index", 12 * 100000, 4 * 100000)],
    "index": [("elementwise", 8 * 900, 8 * 900),
              ("index", 12 * 4500000, 4 * 4500000)],
    "index_put": [("index", 12 * 900 * 77, 4 * 900 * 77)],
    "dropout": [("elementwise", 2 * 776000, 3 * 776000)],
    "dropout_backward": [("elementwise", 3 * 776000, 2 * 776000)],
    "random_normal": [("elementwise", 0, 2 * N)],
    "max_pool": [("pool", 4 * 4 * CONV_X, 12 * CONV_X)],
    "max_pool_channels_last": [("pool", 4 * 4 * CONV_X, 12 * CONV_X)],
    "adam_fused": [("optimizer", 16 * P, 12 * P)],
    # weight decay, lerp, two of the second moment (which squares the gradient:
    # read once), sqrt, two of the denominator, the step
    "adam_foreach": [("optimizer", 4 * reads * P, 4 * P)
                     for reads in (1, 2, 1, 2, 1, 1, 1, 3)],
    "clip": [("reduce", 4 * P, 0, dict(rows=3, columns=P // 3)),
             ("optimizer", 4 * P, 4 * P)],
    "linear": [products(4096, 3072, 768, lda=768, ldb=768, ldc=3072,
                        transpose="0,1", type="bf16")],
    "linear_bias": [("gemm", 2 * (4096 * 768 + 768 * 3072 + 3072),
                     2 * 4096 * 3072, dict(epilogue=4))],
    "linear_backward": [
        products(4096, 768, 3072, transpose="0,0", lda=3072, ldb=768),
        products(3072, 768, 4096, transpose="1,0", lda=3072, ldb=768)],
    "matmul_fp32": [products(512, 1000, 256, element=4, type="fp32")],
    "matmul_tf32": [products(512, 1000, 256, element=4, type="tf32")],
    "addmm": [("copy", 4 * 512 * 1000, 4 * 512 * 1000),
              ("gemm", 4 * (512 * 256 + 256 * 1000 + 512 * 1000),
               4 * 512 * 1000)],
    "bmm": [products(128, 200, 64, batch=96, type="fp16")],
    "attention_cudnn": [attends(2, 4, 16, 1000, 64, kernel="cudnn")],
    "attention_flash": [attends(2, 4, 16, 1000, 64, padded=64, **FLASH)],
    "attention_flash_full": [
        attends(2, 2, 12, 257, 80, causal=False, padded=96, **FLASH),
        ("elementwise", 4 * 493440, 2 * 493440)],  # two halves of the keys
    "attention_flash_grouped": [attends(2, 4, 16, 1000, 64, kv=4, **FLASH)],
    "attention_flash_backward": [
        ("reduce", 4 * 4096000, 4 * 64000),
        attends(2, 4, 16, 1000, 64, backward=True, **FLASH),
        ("elementwise", 4 * 4096000, 2 * 4096000)],
    "attention_efficient": [
        attends(4, 4, 16, 1000, 64, tile="64,64", **EFFICIENT)],
    "attention_efficient_full": [
        attends(4, 2, 12, 257, 80, causal=False, **EFFICIENT)],
    "attention_efficient_backward": [
        attends(4, 4, 16, 1000, 64, backward=True, **EFFICIENT)],
    "conv": [("convolution_forward", 2 * (CONV_X + 128 * 64 * 9), 2 * CONV_Y,
              dict(flops=CONV_FLOPS, type="bf16", layout="nchw"))],
    "conv_fp32": [("convolution_forward", 4 * (CONV_X + 128 * 64 * 9),
                   4 * CONV_Y, dict(flops=CONV_FLOPS, type="tf32"))],
    "conv_data": [("convolution_dgrad", 2 * (CONV_Y // 4 + 128 * 64 * 9),
                   2 * CONV_X, dict(flops=CONV_FLOPS // 4, layout="nhwc",
                                    stride="2,2", out="28,28"))],
    "conv_filter": [("convolution_wgrad", 2 * (CONV_X + CONV_Y),
                     2 * 128 * 64 * 9, dict(flops=CONV_FLOPS))],
    "conv_depthwise": [("convolution_forward", 2 * (CONV_X + 64 * 49),
                        2 * CONV_X, dict(flops=2 * CONV_X * 49, groups=64,
                                         c=64, k=64, r=7, s=7))],
    "conv_depthwise_fp32": [
        ("convolution_forward", 4 * (CONV_X + 64 * 49), 4 * CONV_X,
         dict(flops=2 * CONV_X * 49, groups=64, r=7, s=7, layout="nchw"))],
    "cross_entropy": [
        ("elementwise", 0, 4 * 4096000),
        ("index", 8 * 4096, 4 * 4096),
        ("softmax_backward", 8 * 4096000, 4 * 4096000,
         dict(rows=4096, columns=1000))],
    "pageable": [("copy", 4 * N, 4 * N, dict(pinned=0))],
    "pinned": [("copy", 4 * N, 4 * N, dict(pinned=1))],
    "to_host": [("copy", 4 * N, 4 * N, dict(pinned=0))],
    "to_pinned": [("copy", 4 * N, 4 * N, dict(pinned=1))],
    "device_copy": [("copy", 4 * N, 4 * N)],
    "zero": [("elementwise", 0, 4 * N)],
    "fft": [("other", 8 * N, 8 * N)],
    "fft_real": [("other", 4 * N, 8 * 1000 * 389)],
    "sparse_product": [("elementwise", 0, 4 * 1000 * 500),
                       ("other", 20000 * (4 + 8) + 8 * 1000 + 4 * 777 * 500,
                        4 * 1000 * 500, dict(flops=2 * 20000 * 500))],
}

def line_read(line):
    family, *rest = line.split()
    keys = dict(part.split("=", 1) for part in rest
                if "=" in part and part[0].isalpha())
    return family, int(keys["read"]), int(keys["written"]), keys


def lines_read(text):
    """The operations of each case."""
    found, name = {}, "-"
    for line in text.splitlines():
        if line.startswith("mark "):
            name = line[5:]
            found.setdefault(name, [])
        elif name != "-":
            found[name].append(line_read(line))
    return found


def record():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([MEMSIM, "run", "-q", "-o", folder + "/run", "--",
                        sys.executable, os.path.abspath(__file__), "--cases"],
                       check=True)
        return lines_read(subprocess.run(
            [MEMSIM, "trace", "--work", "--each", folder + "/run"], check=True,
            stdout=subprocess.PIPE, text=True).stdout)


def check(name, operations):
    wanted = EXPECTED[name]
    families = {w[0] for w in wanted}
    if name == "attention_flash_backward":  # q, k, v are made contiguous
        operations = operations[-3:]
    elif name == "attention_efficient_backward":  # dO times O comes first
        operations = [o for o in operations if o[0] in families]
    got = [o for o in operations if o[1] + o[2] >= SMALL]
    # zeros: a memset since 2.12, before a kernel
    got = [("elementwise", *o[1:]) if o[0] == "set" else o for o in got]
    equal([o[:3] for o in got], [w[:3] for w in wanted])
    for operation, want in zip(got, wanted):
        assert operation[3]["source"] in ("exact", "rule"), operation
        for key, value in (want[3] if len(want) > 3 else {}).items():
            equal((key, operation[3].get(key)), (key, str(value)))


@test
def operations_are_what_their_tensors_say():
    operations = record()
    wrong = []
    for name in EXPECTED:
        try:
            check(name, operations[name])
        except AssertionError as why:
            wrong.append(f"{name}: {why}")
    assert not wrong, "\n" + "\n".join(wrong)


TRITON = """
import sys
import torch
try:
    import triton
    import triton.language as tl
except ImportError:
    sys.exit(3)

@triton.jit
def scale(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)

@triton.jit
def biased(out, x, bias, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(bias + at % 1000))

x = torch.empty(1 << 20, device="cuda")
out = torch.empty_like(x)
part = x[5000:]
freed = torch.empty(1 << 20, device="cuda")
del freed
for first, second in (out, x), (out, part), (x, part):
    scale[(4096,)](first, second, 1000, BLOCK=256)
scale[(1,)](out, x, 1000, BLOCK=256)
flat = torch.empty(1 << 24, device="cuda")
for bias in flat, flat[5000:], flat[-100:]:
    biased[(4096,)](out, x, bias, BLOCK=256)
biased[(1024,)](flat, flat[1 << 20:], flat, BLOCK=256)

@torch.compile(dynamic=False)
def compiled(x, bias):
    return torch.relu(x + bias)

compiled(x.view(1024, 1024), flat[1 << 20:][:1024])
"""


@test
def triton_kernels_count_what_their_arguments_reach():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "job.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(TRITON)
        done = subprocess.run([MEMSIM, "run", "-q", "-o", folder + "/run", "--",
                               sys.executable, script], check=False)
        if done.returncode == 3:
            raise Skip("triton is not installed")
        equal(done.returncode, 0)
        text = subprocess.run(
            [MEMSIM, "trace", "--work", "--each", folder + "/run"], check=True,
            stdout=subprocess.PIPE, text=True).stdout
    found = {name: [line_read(line) for line in text.splitlines()
                    if line.split()[-1].startswith(name)]
             for name in ("scale", "biased", "triton_poi_")}
    keys = [keys for lines in found.values() for *_, keys in lines]
    equal({k["source"] for k in keys}, {"guessed"})
    equal({k["basis"] for k in keys}, {"fallback"})
    # Two blocks; the second from its 5000th element on; one block. One program
    # reaches 256 elements.
    block, read = 4 << 20, {name: [line[1] for line in lines]
                            for name, lines in found.items()}
    equal(read["scale"],
          [2 * block, 2 * block - 20000, block, 2 * 1024])
    # 1000 elements of the large block, but not beyond its end. Parts of one
    # block count once where they are the same.
    equal(read["biased"], [2 * block + 4000] * 2 + [2 * block + 400, block // 2])
    # It is tried with several numbers of elements and warps.
    equal(set(read["triton_poi_"]), {2 * block + 4096})


if __name__ == "__main__":
    if CASES_ONLY:
        run_cases()
    else:
        main()
