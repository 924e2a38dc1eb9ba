# SPDX-License-Identifier: Apache-2.0
"""The operators that memsim calibrate measures. For each table: a draw of a
shape, as the columns of its rows, and what is run for it. Each runs one kernel,
unless the comment beside it says otherwise."""
import math

import torch
import torch.nn.functional as F

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TYPES = {**DTYPES, "tf32": torch.float32}
SIZES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
ATEN = torch.ops.aten


def between(draw, low, high, step):
    """A multiple of STEP, uniform in the logarithm."""
    value = math.exp(draw.uniform(math.log(low), math.log(high)))
    return max(step, round(value / step) * step)


def tensor(dtype, *shape):
    """Random: with ones a GPU draws less power, and has a higher clock."""
    return torch.empty(shape, device="cuda", dtype=TYPES[dtype]).normal_()


def in_type(dtype, call):
    """CALL, with TF32 if DTYPE asks for it."""
    def with_tf32():
        torch.backends.cuda.matmul.allow_tf32 = True
        call()
        torch.backends.cuda.matmul.allow_tf32 = False
    return with_tf32 if dtype == "tf32" else call


# --- products --------------------------------------------------------------

PRODUCTS = ["bf16", "bf16", "bf16", "fp16", "fp32", "tf32"]


def draw_gemm(draw):
    dtype = draw.choice(PRODUCTS)
    if draw.random() < 0.2:
        step = draw.choice([16, 64])
        return {"op": "bmm", "dtype": dtype, "b": draw.choice([8, 32, 96]),
                "m": between(draw, 64, 1024, step),
                "n": between(draw, 64, 1024, step), "k": draw.choice([64, 128])}
    step = draw.choice([64, 64, 128, 8])
    return {"op": "linear", "dtype": dtype, "b": 1,
            "m": between(draw, 32, 16384, draw.choice([8, 128])),
            "n": between(draw, 128, 16384, step),
            "k": between(draw, 128, 16384, step)}


def make_gemm(s):
    if s["op"] == "bmm":
        a = tensor(s["dtype"], s["b"], s["m"], s["k"])
        b = tensor(s["dtype"], s["b"], s["k"], s["n"])
        return in_type(s["dtype"], lambda: torch.bmm(a, b))
    x, w = tensor(s["dtype"], s["m"], s["k"]), tensor(s["dtype"], s["n"], s["k"])
    return in_type(s["dtype"], lambda: F.linear(x, w))


def draw_gemm_backward(draw):
    """Gradients of a linear layer's input (NN) and weight (NT)."""
    step = draw.choice([64, 64, 128, 8])
    return {"op": "mm", "dtype": draw.choice(PRODUCTS),
            "b": 1, "m": between(draw, 128, 16384, step),
            "n": between(draw, 128, 16384, step),
            "k": between(draw, 128, 16384, step),
            "layout": draw.choice(["NN", "NT"])}


def make_gemm_backward(s):
    b = tensor(s["dtype"], s["k"], s["n"])
    if s["layout"] == "NN":
        a = tensor(s["dtype"], s["m"], s["k"])
        return in_type(s["dtype"], lambda: torch.mm(a, b))
    a = tensor(s["dtype"], s["k"], s["m"])
    return in_type(s["dtype"], lambda: torch.mm(a.t(), b))


# --- elements ----------------------------------------------------------------

PLAIN = {  # reads and writes an element, each of the dtype's size
    "add": (2, 1, lambda x, y: x + y), "mul": (2, 1, lambda x, y: x * y),
    "gelu": (1, 1, lambda x, y: F.gelu(x)), "relu": (1, 1, lambda x, y: x.relu()),
    "tanh": (1, 1, lambda x, y: x.tanh()),
}


def draw_plain(draw):
    op = draw.choice(sorted(PLAIN))
    dtype = draw.choice(sorted(DTYPES))
    numel = between(draw, 1 << 10, 1 << 28, 1024)
    reads, writes, _call = PLAIN[op]
    return {"op": op, "dtype": dtype, "numel": numel,
            "bytes": (reads + writes) * numel * SIZES[dtype],
            "read_bytes": reads * numel * SIZES[dtype]}


def make_plain(s):
    x, y = tensor(s["dtype"], s["numel"]), tensor(s["dtype"], s["numel"])
    call = PLAIN[s["op"]][2]
    return lambda: call(x, y)


STRIDED = ["broadcast", "cat", "transpose"]


def draw_strided(draw):
    kind, dtype = draw.choice(STRIDED), draw.choice(sorted(DTYPES))
    rows, cols = between(draw, 64, 16384, 8), between(draw, 64, 16384, 8)
    read = rows * cols + (cols if kind == "broadcast" else 0)
    return {"op": "strided", "dtype": dtype, "kind": kind, "rows": rows,
            "cols": cols, "numel": rows * cols,
            "bytes": (read + rows * cols) * SIZES[dtype],
            "read_bytes": read * SIZES[dtype]}


def make_strided(s):
    if s["kind"] == "cat":  # rows is a multiple of 8
        half = tensor(s["dtype"], s["rows"] // 2, s["cols"])
        return lambda: torch.cat([half, half])
    x = tensor(s["dtype"], s["rows"], s["cols"])
    if s["kind"] == "transpose":
        return lambda: x.t().contiguous()
    w = tensor(s["dtype"], s["cols"])
    return lambda: x + w


INDEX = ["embedding", "gather", "scatter"]


def draw_index(draw):
    kind, dtype = draw.choice(INDEX), draw.choice(sorted(DTYPES))
    rows, cols = between(draw, 64, 1 << 15, 8), between(draw, 64, 4096, 64)
    indices = rows if kind == "embedding" else rows * cols
    read = 8 * indices + rows * cols * SIZES[dtype]
    return {"op": "index", "dtype": dtype, "kind": kind, "rows": rows,
            "cols": cols, "numel": rows * cols,
            "bytes": read + rows * cols * SIZES[dtype], "read_bytes": read}


def make_index(s):
    x = tensor(s["dtype"], s["rows"], s["cols"])
    if s["kind"] == "embedding":
        rows = torch.randint(s["rows"], (s["rows"],), device="cuda")
        return lambda: F.embedding(rows, x)
    places = torch.randint(s["cols"], (s["rows"], s["cols"]), device="cuda")
    if s["kind"] == "gather":
        return lambda: x.gather(1, places)
    out = tensor(s["dtype"], s["rows"], s["cols"])
    return lambda: out.scatter_(1, places, x)


OPTIMIZER = {  # tensors read and written; PyTorch's foreach kernels, and AdamW
    "add": (2, 1, lambda p: torch._foreach_add_(p[0], p[1], alpha=0.5)),
    "mul": (1, 1, lambda p: torch._foreach_mul_(p[0], 0.5)),
    "addcdiv": (3, 1, lambda p: torch._foreach_addcdiv_(*p[:3], value=0.5)),
    "lerp": (2, 1, lambda p: torch._foreach_lerp_(p[0], p[1], 0.5)),
    "adamw": (4, 3, lambda p: torch._fused_adamw_(
        *p[:4], [], p[4], lr=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1,
        eps=1e-8, amsgrad=False, maximize=False)),
}
ONE_LAUNCH = 300 << 16  # elements; more are several kernels


def draw_optimizer(draw):
    kind, dtype = draw.choice(sorted(OPTIMIZER)), draw.choice(["bf16", "fp32"])
    tensors = draw.choice([1, 2, 4, 8, 16])
    numel = tensors * between(draw, 1 << 10, ONE_LAUNCH // tensors, 1024)
    reads, writes, _call = OPTIMIZER[kind]
    return {"op": "optimizer", "dtype": dtype, "kind": kind,
            "tensors": tensors, "numel": numel,
            "bytes": (reads + writes) * numel * SIZES[dtype],
            "read_bytes": reads * numel * SIZES[dtype]}


def make_optimizer(s):
    lists = [[tensor(s["dtype"], s["numel"] // s["tensors"])
              for _ in range(s["tensors"])] for _ in range(4)]
    lists.append([tensor("fp32") for _ in range(s["tensors"])])
    return lambda: OPTIMIZER[s["kind"]][2](lists)


# --- rows --------------------------------------------------------------------

def draw_rows(draw):
    op = draw.choice(["softmax", "layer_norm", "reduce"])
    dtype = draw.choice(sorted(DTYPES))
    rows = between(draw, 64, 1 << 16, 8)
    cols = between(draw, 64, 16384, 64)
    writes = rows if op == "reduce" else rows * cols
    return {"op": op, "dtype": dtype, "rows": rows, "cols": cols,
            "bytes": (rows * cols + writes) * SIZES[dtype]}


def make_rows(s):
    x = tensor(s["dtype"], s["rows"], s["cols"])
    if s["op"] == "softmax":
        return lambda: x.softmax(-1)
    if s["op"] == "reduce":
        return lambda: x.sum(-1)
    w = tensor(s["dtype"], s["cols"])
    return lambda: F.layer_norm(x, (s["cols"],), w, w)


def draw_rows_backward(draw):
    op, dtype = (draw.choice(["softmax_bwd", "layer_norm_bwd"]),
                 draw.choice(sorted(DTYPES)))
    rows, cols = between(draw, 64, 1 << 16, 8), between(draw, 64, 16384, 64)
    size = SIZES[dtype]
    further = 8 * rows + cols * size if op == "layer_norm_bwd" else 0
    return {"op": op, "dtype": dtype, "rows": rows, "cols": cols,
            "bytes": 3 * rows * cols * size + further}


def make_rows_backward(s):
    x, dy = (tensor(s["dtype"], s["rows"], s["cols"]) for _ in range(2))
    if s["op"] == "softmax_bwd":
        return lambda: ATEN._log_softmax_backward_data(dy, x, -1, x.dtype)
    w = tensor(s["dtype"], s["cols"])
    moment = tensor("fp32", s["rows"], 1)
    return lambda: ATEN.native_layer_norm_backward(  # of the input alone
        dy, x, [s["cols"]], moment, moment, w, w, [True, False, False])


# --- attention and convolution -----------------------------------------------

def draw_attention(draw):
    heads = draw.choice([8, 12, 16, 32])
    length = between(draw, 128, 8192, 128)
    backend = draw.choice(["cudnn", "fa2", "efficient"])
    return {"op": "sdpa_fwd",
            "dtype": draw.choice(["fp32", "bf16"] if backend == "efficient"
                                 else ["bf16", "fp16"]),
            "b": max(1, min(32, between(draw, 2048, 32768, 1) // length)),
            "hq": heads, "hkv": heads, "sq": length, "skv": length,
            "d": draw.choice([64, 128]), "causal": draw.randrange(2),
            "backend": backend}


BACKENDS = {"fa2": torch.nn.attention.SDPBackend.FLASH_ATTENTION,
            "cudnn": torch.nn.attention.SDPBackend.CUDNN_ATTENTION,
            "efficient": torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION}


def make_attention(s):
    q, k, v = (tensor(s["dtype"], s["b"], s["hq"], s["sq"], s["d"])
               for _ in range(3))
    backend = BACKENDS[s["backend"]]

    def call():
        with torch.nn.attention.sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, k, v, is_causal=bool(s["causal"]))
    return call


def draw_attention_backward(draw):
    return {**draw_attention(draw), "op": "sdpa_bwd"}


def make_attention_backward(s):
    """Up to three kernels: small ones are around the one that counts."""
    q, k, v, gradient = (tensor(s["dtype"], s["b"], s["sq"], s["hq"], s["d"])
                         .transpose(1, 2) for _ in range(4))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    with torch.enable_grad(), \
            torch.nn.attention.sdpa_kernel(BACKENDS[s["backend"]]):
        out = F.scaled_dot_product_attention(q, k, v,
                                             is_causal=bool(s["causal"]))
    return lambda: torch.autograd.grad(out, inputs, gradient,
                                       retain_graph=True)


def draw_convolution(draw):
    side = draw.choice([7, 14, 28, 56, 112])
    channels = draw.choice([32, 64, 128, 256, 512])
    width = draw.choice([1, 3, 3])
    stride = draw.choice([1, 1, 2])
    return {"op": "conv2d_fwd",
            "dtype": draw.choice(["fp16", "bf16", "bf16", "tf32"]),
            "n": draw.choice([8, 16, 32, 64]), "c": channels, "h": side,
            "w": side, "k": draw.choice([64, 128, 256, 512]), "r": width,
            "s": width, "stride_h": stride, "stride_w": stride,
            "pad_h": width // 2, "pad_w": width // 2, "groups": 1,
            "layout": draw.choice(["NCHW", "NHWC"])}


def convolution(s):
    """Input, weight and output."""
    layout = (torch.channels_last if s["layout"] == "NHWC"
              else torch.contiguous_format)
    height, width = ((s[side] + 2 * s["pad_h"] - s["r"]) // s["stride_h"] + 1
                     for side in "hw")
    shapes = ((s["n"], s["c"], s["h"], s["w"]), (s["k"], s["c"], s["r"], s["s"]),
              (s["n"], s["k"], height, width))
    return [tensor(s["dtype"], *shape).to(memory_format=layout)
            for shape in shapes]


def make_convolution(s):
    x, w, _y = convolution(s)
    return lambda: F.conv2d(x, w, stride=s["stride_h"], padding=s["pad_h"])


def draw_convolution_backward(draw):
    return {**draw_convolution(draw),
            "op": draw.choice(["conv2d_bwd_input", "conv2d_bwd_weight"])}


def make_convolution_backward(s):
    x, w, y = convolution(s)
    pad, stride = [s["pad_h"]] * 2, [s["stride_h"]] * 2
    of_input = s["op"] == "conv2d_bwd_input"
    return lambda: ATEN.convolution_backward(
        y, x, w, None, stride, pad, [1, 1], False, [0, 0], 1,
        [of_input, not of_input, False])


# A table for each: its rows have the same columns. How often each is drawn.
FAMILIES = {
    "gemm": (draw_gemm, make_gemm, 30),
    "gemm_backward": (draw_gemm_backward, make_gemm_backward, 10),
    "plain": (draw_plain, make_plain, 14),
    "strided": (draw_strided, make_strided, 8),
    "index": (draw_index, make_index, 6),
    "optimizer": (draw_optimizer, make_optimizer, 6),
    "rows": (draw_rows, make_rows, 15),
    "rows_backward": (draw_rows_backward, make_rows_backward, 8),
    "attention": (draw_attention, make_attention, 8),
    "attention_backward": (draw_attention_backward, make_attention_backward, 4),
    "convolution": (draw_convolution, make_convolution, 8),
    "convolution_backward": (draw_convolution_backward,
                             make_convolution_backward, 4),
}
