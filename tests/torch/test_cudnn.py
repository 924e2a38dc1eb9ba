# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does through cuDNN, forward and backward.

memsim run -- python tests/torch/test_cudnn.py
"""
import importlib.metadata
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness import Skip, equal, main, test

GPU = "cuda"


def cases(*arguments):
    """Registers a test for each of ARGUMENTS (tuples)."""
    def register(function):
        for case in arguments:
            def run(case=case):
                function(*case)
            run.__name__ = f"{function.__name__}{case}"
            test(run)
        return function
    return register


def train(model, x, steps=2):
    """STEPS of training; every parameter must have got a gradient."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).float().sum().backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            raise AssertionError(f"{name} has no gradient")
        equal(parameter.grad.shape, parameter.shape)


class Bottleneck(nn.Module):
    """ResNet-50's block (He et al. 2015), as torchvision has it."""

    def __init__(self, channels, width, stride):
        super().__init__()
        out = width * 4
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False),
            nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity()
        if stride != 1 or channels != out:
            self.short = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False),
                nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
              nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2),
                                  (512, 3, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, 1000)).to(GPU)


def within(extra, function):
    """FUNCTION's value where the allocator may get EXTRA bytes more."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    most = torch.cuda.memory_reserved() + extra
    torch.cuda.set_per_process_memory_fraction(most / total)
    try:
        return function()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@cases((torch.float32, False), (torch.float32, True), (torch.half, False))
def convolution_near_the_limit(dtype, benchmark):
    """No workspace: another engine. No output: the error that scripts which
    search a batch size wait for."""
    torch.cuda.empty_cache()
    layer = nn.Conv2d(64, 64, 3, padding=1, bias=False).to(GPU, dtype)
    x = torch.empty(32, 64, 128, 128, device=GPU, dtype=dtype)
    bytes_out = x.numel() * x.element_size()
    torch.backends.cudnn.benchmark = benchmark
    try:
        y = within(bytes_out + (4 << 20), lambda: layer(x).detach())
        equal(y.shape, x.shape)
        del y
        try:
            within(bytes_out // 2, lambda: layer(x))
        except torch.OutOfMemoryError:
            return
        raise AssertionError("it fits")
    finally:
        torch.backends.cudnn.benchmark = False


@test
def version():
    """That of the wheel which this torch requires, where it says so."""
    want = [r.split("==")[1].split(";")[0].strip().split(".")
            for r in importlib.metadata.requires("torch") or []
            if r.startswith("nvidia-cudnn-cu") and "==" in r]
    if not want:
        raise Skip("this torch names no cuDNN")
    major, minor, patch = map(int, want[0][:3])
    equal(torch.backends.cudnn.version(),
          10000 * major + 100 * minor + patch)


@cases((torch.float32, False), (torch.float32, True),
      (torch.bfloat16, False), (torch.bfloat16, True),
      (torch.float16, False), (torch.float16, True))
def resnet(dtype, channels_last):
    model = resnet50()
    x = torch.randn(4, 3, 224, 224, device=GPU)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.autocast(GPU, dtype, enabled=dtype != torch.float32):
        train(model, x)
    model.eval()
    with torch.no_grad():
        equal(model(x).shape, (4, 1000))


class ConvNeXtBlock(nn.Module):
    """Liu et al. 2022: depthwise 7x7, then two linear layers on channels."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3,
                                   groups=channels)
        self.rest = nn.Sequential(
            nn.LayerNorm(channels), nn.Linear(channels, 4 * channels),
            nn.GELU(), nn.Linear(4 * channels, channels))

    def forward(self, x):
        y = self.rest(self.depthwise(x).permute(0, 2, 3, 1))
        return x + y.permute(0, 3, 1, 2)


@cases((torch.float32,), (torch.bfloat16,))
def convnext(dtype):
    model = nn.Sequential(nn.Conv2d(3, 96, 4, 4), ConvNeXtBlock(96),
                          nn.Conv2d(96, 192, 2, 2), ConvNeXtBlock(192))
    model = model.to(GPU, memory_format=torch.channels_last)
    x = torch.randn(2, 3, 224, 224, device=GPU)
    with torch.autocast(GPU, dtype, enabled=dtype != torch.float32):
        train(model, x.contiguous(memory_format=torch.channels_last))


@cases((torch.float32,), (torch.bfloat16,), (torch.float16,))
def patches(dtype):
    """A vision transformer's first layer."""
    model = nn.Conv2d(3, 768, 16, 16, device=GPU, dtype=dtype)
    train(model, torch.randn(4, 3, 224, 224, device=GPU, dtype=dtype))


@test
def patches_workspace():
    """As measured on an H100: data/workspaces/cudnn.csv, KINETO."""
    if "TORCH_CUDNN_V8_API_DISABLED" in os.environ:
        raise Skip("bfloat16 needs the backend API")
    model = nn.Conv2d(3, 768, 16, 16, device=GPU, dtype=torch.bfloat16)
    x = torch.randn(4, 3, 224, 224, device=GPU, dtype=torch.bfloat16)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        y = F.conv2d(x, model.weight, stride=16)
    y_bytes = y.numel() * y.element_size()
    equal(torch.cuda.max_memory_allocated() - before - y_bytes, 7561728)


@cases(("convnext_tiny",), ("vit_tiny_patch16_224",), ("efficientnet_b0",))
def timm_model(name):
    try:
        import timm
    except ImportError as why:
        raise Skip(f"no timm: {why}")
    model = timm.create_model(name, num_classes=10).to(GPU)
    model = model.to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 224, 224, device=GPU)
    with torch.autocast(GPU, torch.bfloat16):
        train(model, x.contiguous(memory_format=torch.channels_last))


CONVOLUTIONS = [
    (nn.Conv1d, (8, 16, 100), dict(kernel_size=5, padding=2)),
    (nn.Conv1d, (8, 16, 100), dict(kernel_size=5, groups=16)),
    (nn.Conv2d, (8, 16, 32, 32), dict(kernel_size=3, padding=1)),
    (nn.Conv2d, (8, 16, 32, 32), dict(kernel_size=3, dilation=2)),
    (nn.Conv2d, (8, 16, 32, 32), dict(kernel_size=3, stride=2, groups=4)),
    (nn.Conv2d, (8, 16, 32, 32), dict(kernel_size=7, groups=16, padding=3)),
    (nn.Conv2d, (8, 16, 33, 31), dict(kernel_size=(3, 1), padding=(1, 0))),
    (nn.Conv2d, (8, 16, 33, 31), dict(kernel_size=3, padding="same")),
    (nn.Conv3d, (2, 16, 8, 16, 16), dict(kernel_size=3, padding=1)),
    (nn.ConvTranspose1d, (8, 16, 100), dict(kernel_size=4, stride=2)),
    (nn.ConvTranspose2d, (8, 16, 16, 16), dict(kernel_size=4, stride=2)),
    (nn.ConvTranspose2d, (8, 16, 16, 16),
     dict(kernel_size=4, stride=2, groups=4)),
    (nn.ConvTranspose3d, (2, 16, 4, 8, 8), dict(kernel_size=2, stride=2)),
]


@cases(*CONVOLUTIONS)
def convolution(kind, shape, options):
    """Shapes as on the CPU, in every type, both ways of choosing a plan."""
    channels = 16
    want = kind(channels, channels, **options)(torch.empty(shape)).shape
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for benchmark in (False, True):
            torch.backends.cudnn.benchmark = benchmark
            model = kind(channels, channels, **options, device=GPU,
                         dtype=dtype)
            x = torch.randn(shape, device=GPU, dtype=dtype, requires_grad=True)
            y = model(x)
            equal(y.shape, want)
            y.sum().backward()
            equal(x.grad.shape, x.shape)
            equal(model.weight.grad.shape, model.weight.shape)
    torch.backends.cudnn.benchmark = False


@cases(("deterministic",), ("allow_tf32",))
def convolution_flags(flag):
    """Plans are filtered by their engines' notes; some must remain."""
    before = getattr(torch.backends.cudnn, flag)
    try:
        setattr(torch.backends.cudnn, flag, not before)
        for dtype in (torch.float32, torch.float16):
            model = nn.Conv2d(16, 16, 3, device=GPU, dtype=dtype)
            train(model, torch.randn(2, 16, 8, 8, device=GPU, dtype=dtype))
    finally:
        setattr(torch.backends.cudnn, flag, before)


@test
def convolution_fused():
    x = torch.randn(2, 16, 8, 8, device=GPU)
    w = torch.randn(32, 16, 3, 3, device=GPU)
    b = torch.randn(32, device=GPU)
    z = torch.randn(2, 32, 6, 6, device=GPU)
    ones, zeros = [1, 1], [0, 0]
    with torch.no_grad():
        y = torch.cudnn_convolution_relu(x, w, b, ones, zeros, ones, 1)
        equal(y.shape, z.shape)
        y = torch.cudnn_convolution_add_relu(x, w, z, 1.0, b, ones, zeros,
                                             ones, 1)
        equal(y.shape, z.shape)


@test
def convolution_double_backward():
    conv = nn.Conv2d(16, 16, 3, device=GPU)
    x = torch.randn(2, 16, 8, 8, device=GPU, requires_grad=True)
    gradient, = torch.autograd.grad(conv(x).sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()
    equal(conv.weight.grad.shape, conv.weight.shape)


@cases((nn.BatchNorm1d, (8, 16)), (nn.BatchNorm1d, (8, 16, 10)),
      (nn.BatchNorm2d, (8, 16, 10, 10)), (nn.BatchNorm3d, (8, 16, 4, 4, 4)))
def batch_norm(kind, shape):
    for dtype in (torch.float32, torch.float16):
        model = kind(16, device=GPU)
        x = torch.randn(shape, device=GPU, dtype=dtype, requires_grad=True)
        model(x).sum().backward()
        equal(x.grad.shape, x.shape)
        model.eval()
        equal(model(x).shape, x.shape)
        model(x).sum().backward()


@cases(*((mode, bidirectional, bias, layers)
        for mode in (nn.RNN, nn.GRU, nn.LSTM)
        for bidirectional in (False, True)
        for bias in (False, True)
        for layers in (1, 3)))
def recurrent(mode, bidirectional, bias, layers):
    dropout = 0.1 if layers > 1 else 0
    model = mode(24, 32, layers, bias=bias, bidirectional=bidirectional,
                 dropout=dropout, batch_first=True).to(GPU)
    x = torch.randn(4, 7, 24, device=GPU, requires_grad=True)
    y, _ = model(x)
    equal(y.shape, (4, 7, 64 if bidirectional else 32))
    y.sum().backward()
    equal(x.grad.shape, x.shape)
    for parameter in model.parameters():
        equal(parameter.grad.shape, parameter.shape)
    model.eval()
    with torch.no_grad():
        equal(model(x)[0].shape, y.shape)


@test
def recurrent_weights():
    """The weights lie in one buffer of exactly their size, and their values
    survive the move there."""
    model = nn.LSTM(24, 32, 2, bidirectional=True)
    want = [p.detach().clone() for p in model.parameters()]
    model.to(GPU)
    starts = sorted((p.data_ptr(), p.numel()) for p in model.parameters())
    total = sum(n for _, n in starts)
    equal((starts[-1][0] - starts[0][0]) // 4 + starts[-1][1], total)
    for got, value in zip(model.parameters(), want):
        equal(torch.equal(got.cpu(), value), True)


@test
def recurrent_projection():
    model = nn.LSTM(24, 32, 2, proj_size=8).to(GPU)
    x = torch.randn(7, 4, 24, device=GPU)
    y, (h, c) = model(x)
    equal((y.shape, h.shape, c.shape), ((7, 4, 8), (2, 4, 8), (2, 4, 32)))
    y.sum().backward()


@cases((torch.float16,), (torch.bfloat16,))
def recurrent_autocast(dtype):
    model = nn.LSTM(24, 32, 2).to(GPU)
    with torch.autocast(GPU, dtype):
        y, _ = model(torch.randn(7, 4, 24, device=GPU))
    y.sum().backward()


@test
def recurrent_packed():
    model = nn.GRU(24, 32).to(GPU)
    x = torch.randn(7, 4, 24, device=GPU)
    packed = nn.utils.rnn.pack_padded_sequence(x, [7, 5, 4, 2])
    y, _ = model(packed)
    equal(y.data.shape, (18, 32))
    y.data.sum().backward()


@cases(*((dtype, causal, dropout, heads)
        for dtype in (torch.float16, torch.bfloat16)
        for causal in (False, True)
        for dropout in (0.0, 0.125)
        for heads in (8, 2)))
def attention(dtype, causal, dropout, heads):
    def tensor(n, length):
        return torch.randn(2, n, length, 64, device=GPU, dtype=dtype,
                           requires_grad=True)
    q, k, v = tensor(8, 128), tensor(heads, 128), tensor(heads, 128)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=causal, dropout_p=dropout,
            enable_gqa=heads != 8)
    equal(y.shape, q.shape)
    y.sum().backward()
    for x in (q, k, v):
        equal(x.grad.shape, x.shape)


@test
def attention_bias():
    q, k, v = (torch.randn(2, 8, 128, 64, device=GPU, dtype=torch.float16,
                           requires_grad=True) for _ in range(3))
    bias = torch.randn(2, 8, 128, 128, device=GPU, dtype=torch.float16)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    y.sum().backward()
    equal(v.grad.shape, v.shape)


@test
def attention_gradient_workspace():
    """As an H200 gave for Llama 1B at 4096 tokens: 4 bytes for each value of Q,
    4 for each row, 256, and dK and dV of all query heads."""
    if torch.__version__ < "2.6":
        raise Skip("this torch repeats the keys itself")
    q, k, v = (torch.randn(1, heads, 4096, 64, device=GPU, dtype=torch.bfloat16,
                           requires_grad=True) for heads in (32, 8, 8))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=True)
    out = torch.empty_like(y)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y.backward(out)
    tensors = 2 * (q.numel() + k.numel() + v.numel())
    equal(torch.cuda.max_memory_allocated() - before - tensors, 67633664)


@test
def attention_inference():
    q, k, v = (torch.randn(2, 8, length, 64, device=GPU, dtype=torch.float16)
               for length in (64, 256, 256))
    with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = F.scaled_dot_product_attention(q, k, v)
    equal(y.shape, q.shape)


@test
def attention_nested():
    parts = [torch.randn(n, 8, 64, device=GPU, dtype=torch.float16)
             for n in (10, 20, 30)]
    x = torch.nested.nested_tensor(parts, layout=torch.jagged,
                                   requires_grad=True).transpose(1, 2)
    try:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            y = F.scaled_dot_product_attention(x, x, x)
    except RuntimeError as why:
        if "No viable backend" in str(why):
            raise Skip("this torch has no cuDNN attention of nested tensors")
        raise
    equal(y.values().shape, x.values().shape)
    y.values().sum().backward()


@cases((GPU,), ("cpu",))
def ctc_loss(where):
    """cuDNN does it where the targets are 32-bit integers: with lengths on
    the GPU or as numbers."""
    logits = torch.randn(50, 4, 20, device=GPU, requires_grad=True)
    targets = torch.randint(1, 20, (4 * 10,), dtype=torch.int32, device=where)
    lengths = [(50,) * 4, (10,) * 4]
    if where == GPU:
        lengths = [torch.tensor(x, dtype=torch.int32, device=GPU)
                   for x in lengths]
    F.ctc_loss(logits.log_softmax(2), targets, *lengths).backward()
    equal(logits.grad.shape, logits.shape)


@test
def spatial_transformer():
    theta = torch.randn(2, 2, 3, device=GPU, requires_grad=True)
    x = torch.randn(2, 3, 16, 16, device=GPU, requires_grad=True)
    grid = F.affine_grid(theta, (2, 3, 16, 16), align_corners=True)
    y = F.grid_sample(x, grid, align_corners=True)
    equal(y.shape, x.shape)
    y.sum().backward()
    equal(theta.grad.shape, theta.shape)


main()
