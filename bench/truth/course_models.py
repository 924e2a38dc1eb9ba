# SPDX-License-Identifier: Apache-2.0
"""The language models of Stanford's course CS336, in plain operations: what its
template has (Basics), and a student's (Own). Which operations there are, and in
which order, is what decides the peak; both follow their sources in that."""
import math

import torch
from torch import nn

SIZES = {  # width, inner width, layers, heads: the course's own names
    "small": (768, 3072, 12, 12),
    "medium": (1024, 4096, 24, 16),
    "large": (1280, 5120, 36, 20),
    "xl": (2560, 10240, 32, 32),
}


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Embedding(nn.Module):
    def __init__(self, kind, vocabulary, width):
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.empty(vocabulary, width))

    def forward(self, ids):
        return self.kind.embed(self.weight, ids)


class GatedMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = Linear(width, inner)
        self.w2 = Linear(inner, width)
        self.w3 = Linear(width, inner)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))


def silu(x):
    return x * torch.sigmoid(x)


def softmax(x):
    shifted = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(shifted)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def log_softmax(x):
    highest = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - highest
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


class Attention(nn.Module):
    def __init__(self, kind, width, heads, length):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (
            Linear(width, width) for _ in range(4))
        self.kind = kind
        if kind.own_tables:
            self.tables = kind.tables(length, width // heads)
            self.register_buffer("mask", torch.ones(
                length, length, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x, tables, places):
        batch, length, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (y.view(batch, length, self.heads, -1).transpose(1, 2)
                   for y in (q, k, v))
        if self.kind.own_tables:
            tables = self.tables
        q = tables(q, places)
        k = tables(k, places)
        _held, mask = self.kind.mask(self, x)
        y = self.kind.attend(q, k, v, mask)
        y = y.transpose(1, 2).reshape(batch, length, -1)
        return self.out(y)


class Block(nn.Module):
    def __init__(self, kind, width, inner, heads, length):
        super().__init__()
        self.attention = Attention(kind, width, heads, length)
        self.mlp = GatedMlp(width, inner)
        self.norm1, self.norm2 = kind.norm(width), kind.norm(width)

    def forward(self, x, tables, places):
        # What has a name is held until the block returns.
        attended = self.attention(self.norm1(x), tables, places)
        middle = x + attended
        projected = self.mlp(self.norm2(middle))
        return middle + projected


class Model(nn.Module):
    def __init__(self, kind, size, length, vocabulary=10000):
        super().__init__()
        width, inner, layers, heads = SIZES[size]
        self.kind = kind
        self.embedding = Embedding(kind, vocabulary, width)
        self.tables = None if kind.own_tables else \
            kind.tables(length, width // heads)
        self.layers = nn.ModuleList(
            Block(kind, width, inner, heads, length) for _ in range(layers))
        self.norm = kind.norm(width)
        self.head = Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        # Basics has a name for what the layers start from.
        _held = None if self.kind.own_tables else x
        places = self.kind.places(ids)
        for layer in self.layers:
            x = layer(x, self.tables, places)
        return self.head(self.norm(x))


class BasicsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        given = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (self.weight * x).to(given)


class BasicsTables(nn.Module):
    """Rotary positions, one table for all layers."""

    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("both", torch.empty(2, length, width // 2),
                             persistent=False)

    def forward(self, x, _):
        a, b = x.unflatten(-1, (-1, 2)).movedim(-1, 0).unbind(0)
        cos, sin = self.both[:, :x.size(-2)].unbind(0)
        left = cos * a - sin * b
        right = sin * a + cos * b
        return torch.concat((left, right), dim=-1)


class Basics:
    norm, tables, own_tables = BasicsNorm, BasicsTables, False

    @staticmethod
    def embed(weight, ids):
        return weight[ids, :]

    @staticmethod
    def places(_):
        return None

    @staticmethod
    def mask(_, x):
        steps = torch.arange(x.size(1), device=x.device)
        return steps, (steps[:, None] >= steps[None, :])[None]

    @staticmethod
    def attend(q, k, v, mask):
        scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(
            k.shape[-1])
        scores = torch.where(mask, scores, float("-inf"))
        weights = softmax(scores)
        return torch.einsum("...qk,...kd->...qd", weights, v)

    @staticmethod
    def loss(logits, labels):
        losses = -log_softmax(logits)
        return torch.mean(torch.gather(losses, -1, labels.unsqueeze(-1)))


class OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        given = x.dtype
        x = x.to(torch.float32)
        size = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-5)
        normed = x / size
        return (normed * self.gain).to(given)


class OwnTables(nn.Module):
    """Rotary positions, two tables for each layer, read by position."""

    def __init__(self, length, width):
        super().__init__()
        for name in ("cos", "sin"):
            self.register_buffer(name, torch.empty(length, width),
                                 persistent=False)

    def forward(self, x, places):
        cos = self.cos[places].unsqueeze(1)
        sin = self.sin[places].unsqueeze(1)
        a, b = x[..., 0::2], x[..., 1::2]
        left = a * cos[..., 0::2] - b * sin[..., 0::2]
        right = a * sin[..., 1::2] + b * cos[..., 1::2]
        both = torch.stack([left, right], dim=-1)
        return both.flatten(start_dim=-2)


class Own:
    norm, tables, own_tables = OwnNorm, OwnTables, True

    @staticmethod
    def embed(weight, ids):
        classes = weight.shape[0]
        safe = ids.clamp(0, classes - 1)
        one_hot = nn.functional.one_hot(
            safe, num_classes=classes).to(weight.dtype)
        return one_hot @ weight

    @staticmethod
    def places(ids):
        steps = torch.arange(ids.shape[1], device=ids.device)
        return steps.unsqueeze(0).expand(ids.shape[0], -1)

    @staticmethod
    def mask(layer, x):
        length = x.size(1)
        return None, layer.mask[:length, :length]

    @staticmethod
    def attend(q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.size(-1) ** 0.5
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = nn.functional.softmax(scores, dim=-1)
        return torch.matmul(weights, v)

    @staticmethod
    def loss(logits, labels):
        logits, labels = logits.view(-1, logits.size(-1)), labels.view(-1)
        shifted = logits - logits.max(dim=-1, keepdim=True).values
        sums = shifted.exp().sum(dim=-1).log()
        chosen = shifted.gather(dim=-1, index=labels.unsqueeze(-1)).squeeze(-1)
        return (-(chosen - sums)).mean()


KINDS = {"basics": Basics, "own": Own}


def make(kind, size, length):
    """On the card, each tensor there in the order of Module.to()."""
    with torch.device("meta"):
        model = Model(KINDS[kind], size, length)
    return model.to_empty(device="cuda")
