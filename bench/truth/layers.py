# SPDX-License-Identifier: Apache-2.0
"""Layers in plain operations, of which Liger-Kernel has kernels; what each
holds by name while it runs is held here, too."""
import torch
import torch.nn.functional as F
from torch import nn


def sparsemax(x):
    """Martins and Astudillo 2016, algorithm 1."""
    ordered, _ = torch.sort(x, dim=-1, descending=True)
    sums = torch.cumsum(ordered, dim=-1)
    places = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    support = 1 + places.view(1, -1) * ordered > sums
    count = support.sum(dim=-1, keepdim=True).clamp(min=1)
    total = (ordered * support).sum(dim=-1, keepdim=True)
    return torch.clamp(x - (total - 1) / count, min=0)


def sparsemax_by_sums(x):
    """The same, the sum being read where the support ends."""
    ordered, _ = torch.sort(x, dim=-1, descending=True)
    sums = torch.cumsum(ordered, dim=-1)
    places = torch.arange(1, x.shape[-1] + 1, device=x.device,
                          dtype=x.dtype).view(1, 1, 1, -1)
    real = ordered > -1e8
    support = (1 + places * ordered > sums) & real
    count = torch.sum(support, dim=-1, keepdim=True)
    some = torch.max(count, torch.ones_like(count))
    last = torch.gather(sums, dim=-1, index=some.long() - 1)
    tau = (last - 1) / some.to(x.dtype)
    tau = torch.where(count == 0, torch.full_like(tau, float("inf")), tau)
    return torch.clamp(x - tau, min=0)


class MultiToken(nn.Module):
    """Attention's scores, causal, mixed by a convolution: Golovneva et al."""

    def __init__(self, channels, size, sparse, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, channels, size, size,
                                               dtype=dtype))
        self.bias = nn.Parameter(torch.empty(channels, dtype=dtype))
        self.sparse = sparse

    def probabilities(self, scores):
        if not self.sparse:
            return F.softmax(scores, dim=-1)
        return sparsemax_by_sums(scores)

    def forward(self, scores):
        length, kind = scores.shape[-1], scores.dtype
        if self.sparse:
            kind = torch.float32
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool,
                                     device=scores.device))[None, None]
        low = torch.tensor(-1e9, device=scores.device, dtype=kind)
        zero = torch.tensor(0.0, device=scores.device, dtype=kind)
        masked = scores.to(kind).masked_fill(~mask, low)
        weights = self.probabilities(masked)
        mixed = F.conv2d(weights, self.weight.to(kind), self.bias.to(kind),
                         padding=self.weight.shape[-1] // 2)
        return mixed.masked_fill(~mask, zero).to(scores.dtype)


class Neighbourhood(nn.Module):
    """Attention of each token to those near it, by a mask of all pairs."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (y.view(batch, length, self.heads, -1).transpose(1, 2)
                   for y in (q, k, v))
        scores = torch.matmul(q, k.transpose(-2, -1)) * 0.125
        mask = torch.zeros(length, length, device=x.device, dtype=torch.bool)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        y = torch.matmul(weights, v)
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return self.out(y)


def jensen_shannon(q, p):
    """The divergence of two tables of logarithms."""
    p, q = p.to(torch.float), q.to(torch.float)
    middle = torch.lerp(torch.exp(q), torch.exp(p), 0.5)
    loss = (0.5 * F.kl_div(torch.log(middle), p, reduction="none",
                           log_target=True).sum(dim=-1)
            + 0.5 * F.kl_div(torch.log(middle), q, reduction="none",
                             log_target=True).sum(dim=-1))
    return (loss / q.shape[0]).sum()


class PolicyLoss(nn.Module):
    """GRPO (Shao et al. 2024) of a last projection and its reference."""

    def __init__(self, width, classes, dtype):
        super().__init__()
        self.head, self.reference = (
            nn.Linear(width, classes, bias=False, dtype=dtype)
            for _ in range(2))

    @staticmethod
    def chosen(x, head, labels):
        logits = x @ head.weight.t()
        logs = F.log_softmax(logits.float(), dim=-1)
        each = logs.gather(dim=-1, index=labels.unsqueeze(-1)).squeeze(-1)
        return (logits, logs), each

    def forward(self, x, x_reference, labels, mask, advantages):
        _held, logs = self.chosen(x, self.head, labels)
        with torch.no_grad():
            _held_too, before = self.chosen(x_reference, self.reference,
                                            labels)
        ratio = torch.exp(logs - logs.detach())
        clipped = torch.clamp(ratio, 0.8, 1.2)
        loss = -torch.min(ratio * advantages.unsqueeze(1),
                          clipped * advantages.unsqueeze(1))
        loss = loss + 0.1 * (torch.exp(before - logs) - (before - logs) - 1.0)
        return (loss * mask).sum() / torch.clamp(mask.sum(), min=1.0)
