# SPDX-License-Identifier: Apache-2.0
"""What device memory holds: small tensors whose values follow from known ones
are what the CPU computes; where nothing is known, sizes are possible ones and
numbers are finite (doc/values.md). Needs torch; transformers for one test."""
import ctypes
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from harness import Skip, equal, main, test

GPU = "cuda"


def tensors(device):
    a = torch.arange(12).reshape(3, 4)
    f = torch.linspace(-1, 1, 12).reshape(3, 4)
    v = torch.tensor([3, 1, 3, 0, 2, 1])
    cpu = {"a": a, "b": a % 5, "m": a % 3 == 0, "f": f, "d": f.double(),
           "h": f.half(), "bf": f.bfloat16(), "v": v, "w": v.int(),
           "u": v.to(torch.uint8), "i": torch.tensor([2, 0, 1]),
           "big": torch.arange(5000) * 7919 % 113,
           "many": torch.arange(400) * 2.25,
           "pairs": torch.arange(60).reshape(2, 30) * 37 % 53 % 9}
    return {name: x.to(device) for name, x in cpu.items()}


def plain(x):
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    if not torch.is_tensor(x):
        return x
    if x.layout == torch.sparse_coo:
        return plain([x._indices(), x._values()])
    if x.layout == torch.sparse_csr:
        return plain([x.crow_indices(), x.col_indices(), x.values()])
    if x.layout == torch.sparse_csc:
        return plain([x.ccol_indices(), x.row_indices(), x.values()])
    return x.tolist()


def coo(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape,
                                   check_invariants=False).coalesce()


def close(x, y):
    if isinstance(x, list):
        return (isinstance(y, list) and len(x) == len(y)
                and all(map(close, x, y)))
    if isinstance(x, float):
        if math.isnan(x) or math.isnan(y):
            return math.isnan(x) and math.isnan(y)
        return abs(x - y) <= 1e-5 * max(1, abs(x)) if x != y else True
    return x == y


def evaluate(line, given, device):
    return eval(line, {**given, "torch": torch, "F": F, "dev": device,
                       "coo": coo})


graphs = {"asked": 0, "captured": 0}


def in_a_graph(line, side):
    """LINE captured over other numbers, and launched twice over the right ones:
    what comes of it; None where it cannot be captured, as it waits."""
    graphs["asked"] += 1
    right = tensors(GPU)
    given = {name: torch.zeros_like(x) for name, x in right.items()}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        graph.capture_begin()
        try:
            got = evaluate(line, given, GPU)
            graph.capture_end()
        except Exception:
            try:
                graph.capture_end()
            except RuntimeError:
                pass
            return None
    for name, x in right.items():
        given[name].copy_(x)
    graph.replay()
    graph.replay()
    graphs["captured"] += 1
    return plain(got)


def as_on_the_cpu(expressions, captured=True):
    """Each line's value on the GPU must be the CPU's, at once and, if it can be
    CAPTURED, in a graph."""
    wrong = []
    side = torch.cuda.Stream()
    for line in expressions.strip().splitlines():
        want, got = (plain(evaluate(line, tensors(device), device))
                     for device in ("cpu", GPU))
        graphed = in_a_graph(line, side) if captured else None
        for where, x in ("", got), (" in a graph", graphed):
            if x is not None and not close(want, x):
                wrong.append(f"{line}{where}: {str(x)[:200]}, not "
                             f"{str(want)[:200]}")
    if wrong:
        raise AssertionError("\n".join(wrong))


@test
def comparisons_and_logic_are_true():
    as_on_the_cpu("""
a == 3
a == b
a != 3
f > 0.5
h > 0
a > b
a < 5
a >= b
a <= 4
bf == bf
m & m
m | ~m
m ^ m
~m
~a
a & 6
torch.logical_and(m, m)
torch.logical_or(a, b)
torch.logical_xor(m, a)
torch.logical_not(a)
i[:, None] == v[None]
torch.isin(v, i)
torch.isnan(f)
torch.isfinite(f)
torch.isinf(f)
torch.isfinite(h)
torch.isnan(bf)
torch.where(m, a, b)
torch.where(m, f, 0.0)
a.masked_fill(m, -1)
f.masked_fill(m, float("-inf"))
""")


@test
def arithmetic_is_true():
    as_on_the_cpu("""
a + 1
a + b
1 - a
a - b
a * 2
a * b
a // 2
a // -3
a % 2
a % -3
a / 2
-a
a << 1
a >> 1
f + 1
f * f
f / (f + 3)
h + 1
bf * 2
w + 1
u + 1
a.abs()
a.clamp(1, 3)
a.clamp(min=1)
f.clamp(-.5, .5)
h.clamp(min=1)
bf.clamp(1, 3)
bf.clamp_min(.5).long()
bf.clamp(bf - 1, bf)
torch.where(bf > 1, bf, -bf)
bf.masked_fill(bf > 1, 7)
h % 2
h % -3
bf % 2
bf.fmod(2)
torch.maximum(a, b)
torch.minimum(a, b)
a.t() + b.t()
a[:, 1] * 2
i[:, None] + v[None]
v.clone().add_(1).mul_(2)
""")


FUNCTIONS = """
many.exp()
(-many).exp()
many.expm1()
(many / 9000).expm1()
(many + 1).log()
many.log()
many.log1p()
(many + 1).log2()
(many + 1).log10()
many.sqrt()
(many + 1).rsqrt()
(many + 1).reciprocal()
many.sin()
many.cos()
(many / 8).tan()
(many / 900).asin()
(many / 900).acos()
many.atan()
(many / 90).sinh()
(many / 90).cosh()
(many / 90 - 3).tanh()
(many / 90 - 3).sigmoid()
(many / 90 - 3).erf()
(many / 8).frac()
(many / 8).round()
(many / 8).floor()
(many / 8).ceil()
(many / 8).trunc()
many ** 2
many ** 3
(many + 1) ** -2
many ** 0.5
many ** 1.7
(many + 1) ** -1.3
1.01 ** many
10000 ** (many / 512)
1.0 / 10000 ** (torch.arange(0, 256, 2, device=dev).float() / 256)
torch.pow(torch.tensor(1.5), many / 9)
torch.pow(many, many / 300)
torch.pow(-many, 3.0)
torch.pow(-many, many)
torch.tensor([-2., 0., 0., -1., 3.], device=dev) ** torch.tensor([0.5, -1., 2., 3., 0.], device=dev)
many.double() ** 1.7
(many / 90).double().exp()
(many / 90).half().exp()
(many / 90).bfloat16().sigmoid()
h.exp()
d.exp()
bf.sin()
big.float().add(1).log()
a.float().exp()
a.exp()
v.sqrt()
many.clamp(3, 70)
many.minimum(many.flip(0))
many.cumsum(0)
(many / 900).cumprod(0)
torch.atan2(many, many.flip(0))
torch.hypot(many, many.flip(0))
torch.copysign(many, f[0, 0])
(many[:80, None] * (many[None] + 1)).sum(0)
torch.einsum("i,j->ij", many[:40], many[:30])
(many[:, None] ** (many[None, :9] / 9)).log1p().t().contiguous()
torch.logspace(0, 3, 100, device=dev)
torch.full((300,), 2.0, device=dev).log()
"""


@test
def functions_are_true():
    """Of more numbers than a vector has, and of each type."""
    as_on_the_cpu(FUNCTIONS)


@test
def widths_computed_on_the_gpu_are_true():
    """As torchvision's RegNet computes them: where the default device is the
    GPU, too, a model has its real widths."""
    def widths(device):
        with torch.device(device):
            continuous = torch.arange(17) * 76.82 + 192.0
            capacity = torch.round(torch.log(continuous / 192.0)
                                   / math.log(2.19))
            blocks = (torch.round(torch.divide(
                192.0 * torch.pow(2.19, capacity), 8)) * 8).int().tolist()
            return blocks, len(set(blocks))
    equal(widths(GPU), widths("cpu"))


@test
def products_and_sums_of_integers_wrap():
    """Modulo 2^64, in every operator that multiplies or adds."""
    big = torch.tensor([2**62 - 1, 3, -5])
    at = torch.tensor([0, 0, 1])
    for f in (
            lambda x: torch.addcmul(x, x, x, value=3),
            lambda x: torch.addcmul(x.int(), x.int(), x.int(), value=3),
            lambda x: torch.add(x, x, alpha=7), lambda x: x + (2**63 - 1),
            lambda x: torch.sub(x, x, alpha=7),
            lambda x: torch.rsub(x, 5, alpha=7), lambda x: x * x,
            lambda x: x * (2**40 + 1), lambda x: x.square(), lambda x: x**3,
            lambda x: x**5, lambda x: x.cumprod(0), lambda x: (x * 2).cumsum(0),
            lambda x: x.prod(), lambda x: torch.outer(x, x),
            lambda x: torch.linalg.cross(x, x * 7 + 1),
            lambda x: x.clone().scatter_reduce(0, at.to(x.device), x, "prod"),
            lambda x: x.clone().index_add(0, at.to(x.device), x, alpha=7),
            lambda x: torch._foreach_mul([x], [x])[0],
            lambda x: torch._foreach_add([x], [x], alpha=6)[0]):
        equal(f(big.to(GPU)).tolist(), f(big).tolist())


@test
def lists_of_tensors_are_true():
    as_on_the_cpu("""
torch._foreach_add([a, w], 3)
torch._foreach_sub([f, d], 0.25)
torch._foreach_mul([a, b, f, h], 2)
torch._foreach_div([f, bf], 2)
torch._foreach_add([a, f], [b, d.float()], alpha=2)
torch._foreach_mul([a, v], [b, v])
torch._foreach_mul([f, d.float()], f[0, 0])
torch._foreach_add([f, d], [1.0, 2.0])
torch._foreach_mul([v, w], [3, 4])
""")
    got = [torch.zeros_like(x) for x in tensors(GPU).values()]
    torch._foreach_copy_(got, list(tensors(GPU).values()))
    for x, y in zip(got, tensors("cpu").values()):
        equal(x.tolist(), y.tolist())
    torch._foreach_zero_(got)
    assert not any(x.any() for x in got)


@test
def what_optimizers_write_is_not_known():
    """A known parameter is not what it was: its numbers read as a series."""
    for fused in False, True:
        x = torch.full((8,), 3.0, device=GPU, requires_grad=True)
        count = torch.zeros((), device=GPU)
        optimizer = torch.optim.AdamW([x], fused=fused, foreach=not fused)
        x.grad = torch.full_like(x, 0.5)
        optimizer.step()
        torch._foreach_add_([count], 1)
        read = x.tolist()
        assert len(set(read)) == 1 and 0 < read[0] <= 1, read
        equal(count.item(), 1.0)
        equal(x.grad.tolist() if not fused else None,
              [0.5] * 8 if not fused else None)


@test
def types_are_converted():
    as_on_the_cpu("""
a.float()
(f * 3).long()
m.long()
a.bool()
a.int()
w.long()
f.half()
f.bfloat16()
f.double()
h.float()
bf.float()
a[:, ::2].float()
torch.arange(7, device=dev)
torch.arange(3, 17, 2, device=dev)
torch.arange(0, 1, 0.25, device=dev)
torch.arange(5, device=dev, dtype=torch.int32)
torch.linspace(0, 0, 32, device=dev)
torch.linspace(0, 0.3, 12, device=dev)
torch.linspace(-1, 1, 7, device=dev, dtype=torch.float64)
torch.linspace(0, 2, 5, device=dev, dtype=torch.half)
torch.linspace(0, 2, 5, device=dev, dtype=torch.bfloat16)
torch.full_like(a, 3)
torch.ones(4, 4, dtype=torch.bool, device=dev).triu()
torch.ones(4, 4, device=dev).tril(1)
""")


@test
def reductions_are_true():
    as_on_the_cpu("""
a.sum()
a.sum(0)
a.sum(1)
m.sum()
m.sum(0)
w.sum()
big.sum()
a.prod()
a.prod(1)
w.prod(0)
m.prod(1)
f.prod(1)
f.sum()
f.mean(0)
h.sum()
bf.mean()
m.any()
m.all()
m.any(1)
(a == a).all()
a.max()
a.min()
a.max(1)
a.min(0)
f.max(1)
a.amax(1)
a.aminmax()
a.argmax(1)
f.argmin(0)
torch.count_nonzero(v)
v.cumsum(0)
w.cumsum(0)
m.cumsum(1)
a.cumsum(0)
f.cumsum(1)
big.cumsum(0)
""")


@test
def indexing_is_true():
    as_on_the_cpu("""
a[i]
a[i, i]
f[i]
a[:, i]
a[1:, 2]
a[-1]
a.index_select(1, i)
a.gather(1, b[:, :2] % 4)
torch.zeros(3, 5, dtype=torch.int64, device=dev).scatter_(1, b[:, :1], 1)
torch.zeros(3, 5, dtype=torch.int64, device=dev).scatter_(1, b[:, :1], a)
torch.zeros(3, 5, dtype=torch.bool, device=dev).scatter_(1, b[:, :1], True)
torch.zeros(8, dtype=torch.int64, device=dev).scatter_add_(0, v, v)
torch.zeros(8, device=dev).scatter_add_(0, v, v.float())
torch.zeros(8, dtype=torch.int64, device=dev).index_add_(0, v, v)
torch.zeros(8, dtype=torch.int64, device=dev).index_add_(0, v, v, alpha=7)
f.clone().index_add_(0, i, f.index_select(0, i), alpha=-0.5)
big.clone().index_add_(0, v.repeat(99), big[:99 * len(v)], alpha=3)
a.clone().index_put_((i,), torch.tensor(5, device=dev))
a.clone().index_put_((i,), torch.tensor(5, device=dev), accumulate=True)
a.clone().index_fill_(0, i, 5)
a.clone().index_copy_(0, i, b)
F.embedding(i, f)
torch.cat([v, v])
torch.cat([a, b], 1)
torch.cat([v, w])
torch.stack([v, v], 1)
torch.cat([v.expand(2, -1), v.expand(2, -1)], -1)
torch.cat([v.expand(2, -1)[:, :1] - 1, v.expand(2, -1)], -1)
torch.diff(v.expand(2, -1), prepend=v.expand(2, -1)[:, :1] - 1)
torch.cat([a.t(), b.t()])
torch.cat([a.t(), b.t()], 1)
torch.cat([a[:, ::2], b[:, 1:3], a[:, :1]], 1)
torch.cat([m[1:], m[:1].expand(3, -1)])
torch.cat([f.t(), f[:2].t()], 1)
torch.cat([h.t(), h.t()])
torch.cat([a.expand(2, 3, 4).transpose(0, 1), b[:, None]], 1)
torch.cat([big[::3], big[::7]])
torch.stack([v.expand(3, -1), v.expand(3, -1)])
torch.stack([a[:, 1], b[:, 2]])
torch.stack([a.t(), b.t()], 1)
torch.stack([a[:, 0], b[0, :3]], -1)
torch.hstack([a.t(), b.t()])
torch.roll(v, 1)
v.flip(0)
F.pad(v, (1, 1), value=9)
""")


@test
def sizes_that_follow_from_known_values_are_true():
    as_on_the_cpu("""
m.nonzero()
a.nonzero()
w.nonzero()
f.nonzero()
a.t()[1].nonzero()
big.nonzero()
torch.where(m)
f.masked_select(m)
a[m]
f[m]
a[a > 3]
v.unique()
w.unique()
u.unique()
m.unique()
f.unique()
big.unique()
torch.unique(v, return_inverse=True, return_counts=True)
torch.unique(big, return_inverse=True, return_counts=True)
torch.unique(m, return_inverse=True, return_counts=True)
torch.unique_consecutive(v, return_inverse=True, return_counts=True)
torch.bincount(v)
torch.bincount(w, minlength=9)
torch.histc(v.float(), bins=4, min=0, max=3)
F.one_hot(v)
F.one_hot(v, 5)
torch.repeat_interleave(v, v)
torch.repeat_interleave(v, 2)
torch.searchsorted(v.sort().values, v)
""")


@test
def sorts_are_true():
    as_on_the_cpu("""
v.sort(stable=True)
w.sort(descending=True, stable=True)
a.argsort(-1)
f.argsort(-1, descending=True)
big.sort(stable=True)
big.sort(stable=True, descending=True)
(torch.arange(5.0, -5, -1, device=f.device) * 0).argsort(stable=True)
torch.isin(f.flatten()[:2] * 0, torch.arange(-300.0, 0, device=f.device) * 0)
f.topk(2)
f.topk(2, 0)
f.topk(3, largest=False)
""")


@test
def indices_are_true():
    """What thrust and other kernels make of indices: nothing is a guess."""
    as_on_the_cpu("""
torch.triu_indices(4, 6, 1, device=dev)
torch.tril_indices(6, 4, -1, device=dev, dtype=torch.int32)
torch.linspace(0, 100, 11, device=dev, dtype=torch.int64)
torch.linspace(0, 511, 512, device=dev).long()
torch.searchsorted(v.sort().values, big, right=True)
torch.bucketize(f, torch.tensor([-0.5, 0, 0.5], device=dev))
v.cummax(0)
a.cummin(1)
v.cumprod(0)
v.cummax(0).values.topk(2).values
a.pow(2)
a ** 3
2 ** v
torch.pow(a, b)
torch.fmod(a - 5, 3)
a.clamp(b, b + 3)
torch.floor(f * 3)
torch.ceil(f * 3).long()
torch.round(f * 5.5)
torch.trunc(f * 3)
torch.div(550 + f * 0, f * 0 + 0.1, rounding_mode="trunc")
torch.div(550 + f.double() * 0, f.double() * 0 + 0.1, rounding_mode="trunc")
torch.sign(a - 5)
torch.zeros(8, dtype=torch.int64, device=dev).scatter_reduce(0, v, w.long(), "amax")
torch.zeros(113, dtype=torch.int64, device=dev).index_add_(0, big, big)
(w * 3).nonzero().index_add_(0, v % 2, (w * 3).nonzero()[v % 2])
(torch.arange(49, device=dev).view(7, 7, 1) % 3).nonzero().index_add_(0, \
    torch.arange(22, device=dev), torch.ones(22, 3, device=dev).long())
torch.arange(2000, device=dev).view(50, 40).index_select(1, big[:30] % 40)
torch.arange(120, device=dev).view(3, 40).index_select(1, big[:30] % 40)
torch.tensor(400, device=dev) >= torch.arange(9, dtype=torch.int8, device=dev)
torch.maximum(v.to(torch.uint8), torch.tensor(-1, dtype=torch.int8, device=dev))
torch.full((9,), 3, dtype=torch.int8, device=dev) > torch.tensor(400, device=dev)
torch.full((3, 9), 2 ** 62, device=dev).sum(1)
torch.full((3, 9), 2 ** 62, device=dev).cumsum(1)
torch.full((3, 9), 2 ** 62, device=dev) * 3 - v[0]
torch.full((3, 99999), 2 ** 60, device=dev).sum(1)
torch.zeros(113, device=dev).index_put_((big,), big.float(), accumulate=True)
""")
    as_on_the_cpu("""
coo(pairs, pairs[0], (9, 9))
coo(pairs, f.flatten()[pairs[0]], (9, 9))
coo(pairs, pairs[0], (9, 9)).t().coalesce()
(coo(pairs, pairs[0], (9, 9)) + coo(pairs, pairs[1], (9, 9))).coalesce()
a.to_sparse()
a.to_sparse_csr()
a.to_sparse_csc()
coo(pairs, pairs[0], (9, 9)).to_sparse_csr()
torch.eye(64, device=dev).to_sparse_csr()
a.to_sparse_csr().to_sparse_coo()
torch.unique(pairs, dim=1)
torch.unique(pairs.t(), dim=0, return_inverse=True, return_counts=True)
torch.unique(b.float(), dim=0, return_counts=True)
torch.unique_consecutive(b, dim=0, return_inverse=True)
(big.float() > 50).nonzero()
""", captured=False)


@test
def ranks_are_true():
    """Of equal elements, any place is right."""
    as_on_the_cpu("""
v.kthvalue(2).values
b.kthvalue(2, dim=1)
b.kthvalue(3, dim=0).values
f.kthvalue(2, dim=1)
h.kthvalue(1, dim=0)
big.kthvalue(700).values
b.median(dim=1)
v.median()
f.median(dim=1)
f.t().median(dim=1)
f.masked_fill(m, float("nan")).nanmedian(dim=1)
f.masked_fill(m, float("nan")).median(dim=1).values.isnan()
v.mode().values
b.mode(dim=1).values
w.mode().values
(b % 3).t().mode(dim=1).values
""")
    equal([len(x.kthvalue(9).values.shape) for x in (unknown(20),)], [0])


@test
def elements_are_taken_put_and_weighed():
    as_on_the_cpu("""
a.take(v)
f.take(v - 2)
a.t().take(v)
a.put(v[1:5], -v[1:5])
a.clone().put_(v, v, accumulate=True)
f.t().clone().put_(i, i.float(), accumulate=True)
""")
    as_on_the_cpu("""
torch.bincount(v, weights=v.float())
torch.bincount(v, weights=v.double() / 4, minlength=8)
torch.bincount(v, weights=torch.arange(12, device=dev).double()[::2])
""", captured=False)  # it waits


@test
def products_of_sparse_matrices_are_not_known():
    """They were known zeros."""
    eye = torch.eye(4, device=GPU)
    for x in (torch.sparse.mm(eye.to_sparse(), torch.ones(4, 2, device=GPU)),
              eye.to_sparse_csr() @ torch.ones(4, 2, device=GPU),
              eye.to_sparse_csr() @ torch.ones(4, device=GPU)):
        assert 0 < x.flatten()[0].item() <= 1, x


@test
def nonzero_of_a_fixed_size_is_true():
    if torch.__version__ < "2.6":
        raise Skip("no nonzero_static on a GPU")
    as_on_the_cpu("torch.nonzero_static(m, size=6, fill_value=-1)")


@test
def what_is_added_in_place_is_not_known():
    """A sparse tensor, or weights: memory that held zeros does not keep them.
    """
    t = tensors(GPU)
    for x in (coo(t["pairs"], t["pairs"][0].float(), (9, 9)).to_dense(),
              torch.bincount(t["v"], weights=unknown(6).double())[3]):
        assert 0 < x.max().item() <= 1, x


@test
def host_checks_are_true():
    t = tensors(GPU)
    equal(torch.equal(t["a"], t["a"].clone()), True)
    equal(torch.equal(t["a"], t["b"]), False)
    equal(torch.allclose(t["f"], t["f"] + 1e-9), True)
    equal(torch.allclose(t["f"], t["f"] + 1), False)
    equal(t["v"].tolist(), [3, 1, 3, 0, 2, 1])
    sizes = torch.bincount(t["v"]).tolist()
    equal([len(x) for x in torch.zeros(6, 2, device=GPU).split(sizes)],
          [1, 2, 1, 2])


@test
def a_batch_s_column_is_read_on_the_gpu():
    data = [(torch.tensor([n, 10 * n]), n % 2) for n in range(8)]
    for batch, label in torch.utils.data.DataLoader(data, batch_size=4,
                                                    pin_memory=True):
        moved, label = batch.to(GPU, non_blocking=True), label.to(GPU)
        equal(moved[:, 0].tolist(), batch[:, 0].tolist())
        equal((moved[:, 1] > 20).tolist(), (batch[:, 1] > 20).tolist())
        equal(moved[label == 1].shape[0], int(label.cpu().sum()))


@test
def padding_is_counted():
    tokens = torch.tensor([[5, 6, 7, 0, 0], [8, 9, 0, 0, 0]], device=GPU)
    mask = tokens != 0
    lengths = mask.sum(1)
    equal(lengths.tolist(), [3, 2])
    equal(int(lengths.max()), 3)
    equal(F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)).tolist(),
          [0, 3, 5])
    equal(mask.flatten().nonzero().flatten().tolist(), [0, 1, 2, 5, 6])
    hidden = torch.randn(2, 5, 16, device=GPU)
    equal(hidden[mask].shape, (5, 16))
    labels = torch.tensor([3, -100, 2], device=GPU)
    equal(int((labels != -100).sum()), 2)


def unknown(*shape):
    x = torch.randn(*shape, 16, device=GPU)
    return (x @ torch.randn(16, 16, device=GPU))[..., 0].contiguous()


@test
def what_is_known_of_a_mask_counts():
    some = torch.tensor([0, 1, 0, 0, 1], device=GPU) > 0
    mask = torch.cat([some, unknown(5) > 0])
    equal(mask.nonzero().flatten().tolist()[:2], [1, 4])
    assert all(place > 4 for place in mask.nonzero().flatten().tolist()[2:])
    mask = torch.cat([some, unknown(5) > 0])
    equal(mask.int()[:5].tolist(), [0, 1, 0, 0, 1])
    equal([mask.any().item(), (mask & False).any().item(),
           torch.cat([some, unknown(5) > 0]).all().item()],
          [True, False, False])
    equal(torch.where(some, 7, unknown(5).long()).tolist()[1], 7)


@test
def one_flag_is_asked_as_many_are():
    for n in 1, 2:
        x = unknown(n)
        equal([(x > 0).all().item(), (x < 0).all().item(), x.all().item(),
               (x < 0).any().item(), (x > 0).any().item()],
              [True, True, True, False, True])
        torch.distributions.Normal(x, x.exp())
        assert torch.equal(x, x.clone())


@test
def what_is_not_known_equals_no_constant():
    """So that a generation goes on: the end's token, 0 here, never comes."""
    for n in 1, 2, 300:
        token = unknown(n, 50).argmax(-1)
        equal([(token == 0).any().item(), (token != 0).all().item(),
               (0 == token).any().item()], [False, True, False])
        for end in [0], [2, 0]:
            end = torch.tensor(end, device=GPU)
            equal(torch.isin(token, end).any().item(), False)
        going = torch.ones(n, dtype=torch.long, device=GPU)
        going = going & ~(token == 0)
        equal(going.max().item(), 1)
    big = unknown(5000)
    equal([(big == 0).sum().item(), (big != 0).sum().item()], [0, 5000])
    known = torch.tensor([3, 0], device=GPU)
    equal((torch.cat([known, unknown(2).long()]) == 0).tolist(),
          [False, True, False, False])


@test
def a_large_vocabulary_has_first_places_too():
    """Of such rows several blocks search (TensorTopK.cu, mbtopk)."""
    for rows, words in (1, 51865), (5, 51865), (3, 155595):
        places = unknown(rows, words).topk(6, dim=-1).indices.tolist()
        assert all(len(set(x)) == 6 and min(x) > 1024 for x in places), places
    numbers = torch.arange(30000, device=GPU) * 7919 % 30011
    want = numbers.cpu().topk(6)
    equal([x.tolist() for x in numbers.topk(6)], [x.tolist() for x in want])


@test
def completions_are_as_long_as_they_can_be():
    """As TRL's GRPO cuts them at the first end of a text."""
    for end in 0, 3:
        tokens = torch.cat([unknown(4, 1, 2000).argmax(-1) for _ in range(16)],
                           dim=1)
        ends = tokens == end
        length = torch.full((4,), 16, dtype=torch.long, device=GPU)
        length[ends.any(dim=1)] = ends.int().argmax(dim=1)[ends.any(dim=1)]
        mask = torch.arange(16, device=GPU).expand(4, -1) <= length[:, None]
        equal([length.tolist(), mask.sum().item()], [[16] * 4, 64])


@test
def a_result_that_is_not_known_is_better_than_the_last():
    """As an early stopping asks, with lt or gt, on the GPU; and so fall the
    numbers that it reads."""
    for better, worst in (torch.lt, math.inf), (torch.gt, -math.inf):
        best = torch.tensor(worst)
        for _ in range(5):
            result = unknown(8).mean()
            assert better(result - 0.01, best.to(result.device)).item()
            best = result
    x = unknown(8)
    equal((x < x.flip(0)).sum().item(), 4)  # a mask, like any other


@test
def what_is_not_known_stays_so_through_the_host():
    for x in (unknown(1000) > 0, (unknown(1000) > 0).int(),
              (unknown(1000) > 0).to(torch.uint8)):
        for host in x.cpu(), x.to("cpu", copy=True):
            back = host.cuda()
            equal(back.bool().sum().item(), 500)
    mask = torch.cat([torch.arange(9, device=GPU) % 2 > 0, unknown(20) > 0])
    back = mask.cpu().cuda()
    equal(back.nonzero().flatten().tolist()[:4], [1, 3, 5, 7])
    equal(back.sum().item(), 4 + 10)
    back = unknown(1000).cpu().cuda()
    equal((back > 0.7).sum().item(), 500)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        x = unknown(1000).requires_grad_()
        y = (x * x).sum()
    y.backward()
    equal((x.grad > 0.7).sum().item(), 500)


@test
def a_mask_in_pinned_memory_stays_unknown():
    """Also one of zeros, which may as well be what the host wrote there."""
    kept = []
    for _ in range(100):
        kept.append(torch.empty(1000, dtype=torch.bool, pin_memory=True))
        kept[-1].copy_(unknown(1000) < 0)
    for host in kept:
        equal(host.to(GPU, non_blocking=True).sum().item(), 500)
    x = unknown(1000).requires_grad_()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        taken = x[x < 0]
    taken.sum().backward()
    equal(taken.shape, (500,))


@test
def what_the_host_writes_to_pinned_memory_is_known():
    for _ in range(5):
        host = torch.empty(1000, dtype=torch.bool, pin_memory=True)
        host.copy_(unknown(1000) < 0)
        place = host.data_ptr()
        del host
        again = torch.empty(1000, dtype=torch.bool, pin_memory=True)
        equal(again.data_ptr(), place)
        equal(again.numpy().sum(), 0)
        equal(again.to(GPU).sum().item(), 0)
        again.copy_(unknown(1000) < 0)
        again.copy_(torch.zeros(1000, dtype=torch.bool))
        equal(again.to(GPU).sum().item(), 0)
        again.copy_(unknown(1000) < 0)
        del again
        pinned = torch.zeros(1000, dtype=torch.bool).pin_memory()
        equal(pinned.data_ptr(), place)
        equal(pinned.to(GPU).sum().item(), 0)
        del pinned


@test
def what_the_host_writes_is_known():
    """Also where a number that is not known has been."""
    for _ in range(20):
        host = (unknown(1000) < 0).cpu()
        del host
        zeros = torch.zeros(1000, dtype=torch.bool)
        equal(zeros.cuda().sum().item(), 0)
        host = (unknown(1000) < 0).cpu()
        host[7] = True
        equal(host.cuda().nonzero().tolist(), [[7]])
        host.numpy()[:9] = True
        equal(host.cuda().sum().item(), 9)


class Managed:
    """Eight numbers of cudaMallocManaged's, as torch.as_tensor takes them."""

    def __init__(self):
        self.runtime = ctypes.CDLL(
            f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        place = ctypes.c_void_p()
        equal(self.runtime.cudaMallocManaged(ctypes.byref(place),
                                             ctypes.c_size_t(64), 1), 0)
        self.address = place.value
        self.host = (ctypes.c_int64 * 8).from_address(place.value)
        self.__cuda_array_interface__ = {
            "shape": (8,), "typestr": "<i8", "data": (place.value, False),
            "version": 3}


@test
def managed_memory_has_what_kernels_write():
    torch.zeros(1, device=GPU)
    memory = Managed()
    x = torch.as_tensor(memory, device=GPU)
    equal(x.data_ptr(), memory.address)
    x.fill_(7).add_(torch.arange(8, device=GPU))
    equal(list(memory.host), list(range(7, 15)))
    memory.host[3] = 100
    equal((x > 50).nonzero().tolist(), [[3]])
    equal(x.sort().values.tolist(), [7, 8, 9, 11, 12, 13, 14, 100])
    del x
    equal(memory.runtime.cudaFree(ctypes.c_void_p(memory.address)), 0)


@test
def rarer_index_arithmetic_is_true():
    as_on_the_cpu("""
        torch.cross(v.reshape(2, 3), v.flip(0).reshape(2, 3), dim=1)
        torch.cross(pairs[:, :3].t(), pairs[:, 3:6].t(), dim=0)
        torch.linalg.cross(d.flatten()[:6].reshape(2, 3), d.flatten()[6:9][None])
        torch.logspace(0, 3, 4, device=dev, dtype=torch.int64)
        torch.logspace(0, 10, 11, base=2, device=dev, dtype=torch.int32)
        torch.logspace(-2, 1, 7, device=dev)
        torch.logspace(0, 1, 5, base=2, device=dev, dtype=torch.float64)
        torch.addcmul(a, a, b, value=3)
        torch.addcmul(v, w, w)
        torch.addcdiv(f, f, f + 9)
        torch.signbit(v - 2)
        torch.heaviside(v - 2, v)
        torch.fmax(f, f.flip(0))
        torch.fmin(d, d.flip(0))
        a.masked_scatter(m, b)
        pairs.masked_scatter(pairs > 4, pairs + 100)
        d.masked_scatter(m[:d.numel()], d.flip(0))
        v.clone().index_reduce_(0, i, i * 10, "amax")
        v.clone().index_reduce_(0, i, i + 2, "prod")
        v.clone().index_reduce_(0, i, i, "amin", include_self=False)
    """)


@test
def what_is_done_in_place_is_not_known():
    """By kernels that are not carried out, where the memory held known
    numbers."""
    def seven(*shape):
        return torch.full(shape, 7.0, device=GPU)

    x, out = torch.randn(40, device=GPU), seven(40)
    torch.softmax(x, 0, out=out)
    scan = seven(40)
    torch.logcumsumexp(x, 0, out=scan)
    table = seven(6, 5)
    torch.embedding_renorm_(table, torch.arange(6, device=GPU), 0.5, 2.0)
    pool, places = F.max_pool1d(torch.randn(1, 6, device=GPU), 2,
                                return_indices=True)
    for y in (seven(40).lgamma_(), seven(40).igamma_(x), scan, table, out,
              seven(40).bernoulli_(seven(40) / 9), seven(40).exp2_(),
              seven(40).nextafter_(x),
              F.max_unpool1d(pool, places, 2)):
        first, *others = y.flatten().tolist()
        equal([z for z in others if z != first], [])
        equal(0 < first <= 1, True)


@test
def rows_of_a_sparse_tensor_are_counted():
    def chosen(device):
        dense = tensors(device)["pairs"][:, :6].t() % 3
        rows = torch.tensor([4, 0, 4, 2], device=device)
        return dense.to_sparse().index_select(0, rows)._nnz()
    equal(chosen(GPU), chosen("cpu"))


@test
def divisors_are_true():
    """PyTorch compiles their kernels, which all have one name, for each type
    and layout."""
    as_on_the_cpu("\n".join(f"torch.{op}({operands})" for op in ("gcd", "lcm")
                            for operands in (
        "a - 4, b", "b.to(torch.int8), a.to(torch.int8)", "v, w", "u, u // 2",
        "a.t(), b.view(4, 3)", "a.t(), b.view(4, 3).int()", "a, v[:4]",
        "big, big.flip(0)", "big.int(), big[0]", "a.short() - 4, b.short()",
        "a[:, ::2], b[:, :2]")) + """
b.clone().gcd_(a)
a.t().clone().lcm_(b.view(4, 3))
""")


@test
def the_mode_of_many_is_true():
    as_on_the_cpu("""
big.mode().values
(big // 3).mode().values
torch.cat([big, big[7:30]]).int().mode().values
torch.cat([big, big[7:30]]).float().mode().values
(torch.arange(90000, device=dev) * 7919 % 30011).mode().values
torch.stack([big, big.flip(0) // 5]).mode(dim=1).values
torch.stack([big, big.flip(0) // 5]).t().to(torch.uint8).mode(dim=0).values
big[:2050].short().mode().values
""", captured=False)  # it waits
    t = tensors(GPU)
    values, places = (t["big"] // 3).mode()
    equal((t["big"] // 3)[places.item()].item(), values.item())


@test
def mode_of_unknown_numbers_is_a_guess():
    values, places = unknown(5000).mode()
    equal(0 <= places.item() < 5000, True)
    equal(0 <= values.item() <= 1, True)


@test
def the_scale_of_half_precision_is_known():
    scaler = torch.amp.GradScaler("cuda", growth_interval=3)
    model = torch.nn.Linear(3, 1, device=GPU)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scales = []
    for _ in range(7):
        scaler.scale(model(torch.randn(2, 3, device=GPU)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    equal(scales, [2.0 ** n for n in (16, 16, 17, 17, 17, 18, 18)])


@test
def a_detector_s_assigner_takes_what_its_topk_took():
    """10 of the anchors for each of 160 boxes, as those of YOLO do; few anchors
    are taken for two boxes."""
    shape = 16, 10, 8400
    mask = torch.zeros(shape, dtype=torch.int8, device=GPU)
    places = torch.randn(shape, device=GPU).topk(10, dim=-1).indices
    mask.scatter_add_(-1, places, torch.ones_like(places, dtype=torch.int8))
    mask.masked_fill_(mask > 1, 0)
    mask.mul_(torch.randn(shape, device=GPU) > 0)
    taken = mask.sum(-2)
    several = (taken.unsqueeze(1) > 1).expand(-1, 10, -1)
    best = torch.zeros_like(mask)
    best.scatter_(1, torch.randn(shape, device=GPU).max(1).indices[:, None], 1)
    taken = torch.where(several, best, mask).max(-2).values.bool()
    for _ in range(2):
        equal(taken.nonzero().shape, (1600, 2))
        equal(torch.randn(16, 8400, 4, device=GPU)[taken].shape, (1600, 4))
        equal(taken.sum().item(), 1600)


@test
def what_libraries_write_is_not_known():
    """Where the memory held known numbers, too. An output that stays as it was
    reads 7; a number of the series is at most 1."""
    def seven(*shape):
        return torch.full(shape, 7.0, device=GPU)

    a, out = torch.randn(2, 2, device=GPU), seven(2, 2)
    torch.mm(a, a, out=out)
    linear = torch.nn.Linear(2, 1, device=GPU)
    linear.bias.data.fill_(7)
    norm = torch.nn.BatchNorm2d(3, device=GPU)
    norm.running_mean.fill_(7)
    norm(torch.randn(4, 3, 8, 8, device=GPU))
    flat = torch.nn.BatchNorm1d(3, device=GPU)
    flat.running_var.fill_(7)
    flat(torch.randn(4, 3, device=GPU))
    for x in (out, linear(a).detach(), torch.addmm(seven(1), a, a),
              torch.addmv(seven(2), a, a[0]), seven(4).normal_(),
              torch.baddbmm(seven(3, 2, 2), torch.randn(3, 2, 2, device=GPU),
                            torch.randn(3, 2, 2, device=GPU)),
              norm.running_mean, flat.running_var):
        read = x.flatten().tolist()
        assert 0 < max(read) <= 1, read
    whole = torch.full((4, 2), 7.0, device=GPU)  # every other column
    torch.mm(torch.randn(4, 2, device=GPU), a[:, :1], out=whole[:, :1])
    equal(whole[:, 1].tolist(), [7.0] * 4)


@test
def unknown_sizes_are_possible_ones():
    for n in (1, 7, 1000, 100000):
        x = unknown(n)
        mask = x > 0
        rows = mask.sum().item()
        assert 0 <= rows <= n, rows
        equal(x[mask].shape, (rows,))
        equal(mask.nonzero().shape, (rows, 1))
        equal(x.masked_select(mask).shape, (rows,))
        assert 1 <= x.unique().numel() <= n
        places = mask.nonzero()
        if rows:
            assert 0 <= int(places.min()) <= int(places.max()) < n


@test
def a_random_mask_selects_by_its_probability():
    """As a dropout of edges: unless the numbers were changed in between."""
    for n, p in (1000, 0.2), (100000, 0.9):
        equal((torch.rand(n, device=GPU) < p).sum().item(), int(n * p))
        x = torch.rand(n, device=GPU)
        equal(x[x >= p].shape, (n - int(n * p),))
        x.mul_(2)
        equal(x[x < p].shape, (n // 2,))
        x = torch.rand(n, device=GPU) * 2
        equal(x[x < p].shape, (n // 2,))


def candidates(metrics, k):
    """As a detector's assigner chooses (ultralytics/utils/tal.py)."""
    places = metrics.topk(k, dim=-1).indices
    count = torch.zeros(metrics.shape, dtype=torch.int8, device=GPU)
    count.scatter_add_(-1, places, torch.ones_like(places, dtype=torch.int8))
    return count.masked_fill_(count > 1, 0)


@test
def a_mask_made_of_the_first_k_selects_as_many():
    """Also where there are more elements than memsim keeps."""
    for batch, boxes, anchors in (2, 3, 1000), (2, 5, 8400), (8, 20, 8400):
        inside = unknown(batch, boxes, anchors) > 0
        valid = torch.ones(batch, boxes, 1, device=GPU)
        chosen = candidates(unknown(batch, boxes, anchors), 10)
        positive = chosen.to(valid.dtype) * inside * valid
        mask = positive.sum(-2) > 0
        most = batch * boxes * 10
        equal([mask.sum().item(), unknown(batch, anchors, 4)[mask].shape,
               (~mask & mask).any().item()], [most, (most, 4), False])
        in_place = candidates(unknown(batch, boxes, anchors), 10)
        in_place.mul_(inside).mul_(valid.bool())
        mask = in_place.max(-2).values.bool()
        equal(mask.nonzero().shape, (most, 2))
    again = candidates(unknown(8, 20, 8400), 10)
    again.fill_(1)  # nothing is known of it any more
    assert again.to(torch.float32).sum().item() != 1600
    other = candidates(unknown(8, 20, 8400), 10) == 0
    assert other.nonzero().shape[0] > 10000


@test
def a_place_in_a_vocabulary_is_no_special_token():
    for n in 1, 5:
        for vocabulary in 1500, 3000:
            token = unknown(n, vocabulary).argmax(-1)
            assert 2 < token[0].item() < vocabulary - 10, token
            later = token >= vocabulary - 500  # times, in Whisper's
            equal(torch.where(later)[0].shape, (0,))


@test
def a_loop_that_waits_for_an_unknown_value_ends():
    token, steps = unknown(1, 50).argmax(-1), 0
    while not (token == 5).any().item():
        steps += 1
    equal(steps, 9999)
    flag = torch.zeros(1, dtype=torch.bool, device=GPU)
    for _ in range(10002):  # it is known: nothing else is
        assert not flag.item()


@test
def half_of_an_unknown_mask_is_selected():
    x = unknown(1000)
    mask = x > 0
    equal(x[mask].shape, (500,))
    equal(x[~mask].shape, (500,))
    equal((unknown(1000) > 0).sum().item(), 500)
    equal((unknown(10) > 0).float().mean().item(), 0.5)


@test
def unknown_places_are_each_in_turn():
    """What is written to places that are not known: as many in each."""
    tokens, experts = 64, 8
    chosen = unknown(tokens, experts).argmax(-1)
    mask = F.one_hot(chosen, experts)
    equal(mask.sum(-1).tolist(), [1] * tokens)
    equal(mask.sum(0).tolist(), [tokens // experts] * experts)
    for e in range(experts):
        equal(mask[:, e].nonzero().shape, (tokens // experts, 1))
        equal(torch.where(mask.t()[e])[0].shape, (tokens // experts,))
    used = mask.sum(0).nonzero()
    equal(used.shape, (experts, 1))
    ones = torch.ones(tokens, dtype=torch.int64, device=GPU)
    zeros = torch.zeros(experts, dtype=torch.int64, device=GPU)
    even = [tokens // experts] * experts
    equal(zeros.scatter_add(0, chosen, ones).tolist(), even)
    equal(zeros.index_add(0, chosen, ones).tolist(), even)
    rows = torch.arange(tokens, device=GPU)
    flags = torch.zeros(tokens, experts, dtype=torch.bool, device=GPU)
    flags[rows, chosen] = True
    equal(flags.sum(0).tolist(), even)
    equal(flags.sum(-1).tolist(), [1] * tokens)
    equal(zeros.index_fill(0, chosen[:experts], 3).tolist(), [3] * experts)
    # where it is known, it is what it is
    equal(F.one_hot(rows % 3, 5).sum(0).tolist(), F.one_hot(
        torch.arange(tokens) % 3, 5).sum(0).tolist())


@test
def routing_is_even():
    tokens, experts, k = 64, 8, 2
    scores = F.softmax(torch.randn(tokens, 32, device=GPU)
                       @ torch.randn(32, experts, device=GPU), dim=-1)
    weights, chosen = torch.topk(scores, k, dim=-1)
    equal(weights.shape, (tokens, k))
    equal(torch.bincount(chosen.flatten(), minlength=experts).tolist(),
          [tokens * k // experts] * experts)
    for row in chosen.tolist():
        equal(len(set(row)), k)
    mask = F.one_hot(chosen, experts).permute(2, 1, 0)
    out = torch.zeros(tokens, 16, device=GPU)
    x = torch.randn(tokens, 16, device=GPU)
    for expert in range(experts):
        _, rows = torch.where(mask[expert])
        equal(rows.shape, (tokens * k // experts,))
        out.index_add_(0, rows, x[rows])
    counts = torch.histc(scores.argmax(-1).float() + 0 * scores[:, 0],
                         bins=experts, min=0, max=experts)
    equal(counts.sum().item(), tokens)
    order = chosen.flatten().argsort(stable=True)
    equal(sorted(order.tolist()), list(range(tokens * k)))


@test
def samples_are_in_range():
    p = torch.rand(4, 10, device=GPU)
    for replacement in (False, True):
        chosen = torch.multinomial(p, 3, replacement=replacement)
        equal(chosen.shape, (4, 3))
        for row in chosen.tolist():
            assert all(0 <= place < 10 for place in row), row
    next_token = torch.multinomial(F.softmax(unknown(2, 50), -1), 1)
    assert all(0 <= t < 50 for t in next_token.flatten().tolist())
    for n in (10, 100000):
        order = torch.randperm(n, device=GPU)
        equal(sorted(order[:10].tolist())[0] >= 0, True)
        assert int(order.max()) < n
    assert all(0 <= t < 9 for t in
               torch.randint(0, 9, (50,), device=GPU).tolist())


@test
def random_numbers_are_the_gpu_s():
    """What GPUs were seen to draw: pytorch's issue 47347, issue 759 of
    mrdbourke/pytorch-deep-learning; and the first block of Philox4x32-10 for
    counter and key 0, of Random123's known answers."""
    torch.manual_seed(0)
    drawn = torch.rand(5, device=GPU).tolist()
    equal([round(x, 4) for x in drawn], [.399, .5167, .0249, .9401, .9459])
    torch.manual_seed(42)
    linear = nn.Linear(1, 1, device=GPU)
    equal([round(x.item(), 4) for x in linear.parameters()], [.2259, .9754])
    block = 0x6627e8d5, 0xe169c58d
    for low, high, first in ((0, 9, block[0]), (3, 7, block[0]),
                             (0, 2 ** 40, block[0] << 32 | block[1])):
        torch.manual_seed(0)
        drawn = torch.randint(low, high, (50,), device=GPU).tolist()
        equal(drawn[0], low + first % (high - low))
        assert all(low <= x < high for x in drawn) and len(set(drawn)) > 3
    torch.manual_seed(0)
    equal(torch.empty(1, dtype=torch.int64, device=GPU).random_().item(),
          (block[0] << 32 | block[1]) % 2 ** 63)
    torch.manual_seed(0)
    flags = torch.empty(1000, dtype=torch.bool, device=GPU).bernoulli_(.3)
    equal(flags[:5].tolist(), [False, False, True, False, False])
    assert 250 < flags.nonzero().shape[0] < 350


@test
def sizes_follow_from_random_integers():
    for dtype in (torch.int64, torch.int32, torch.uint8):
        labels = torch.randint(0, 9, (500,), device=GPU, dtype=dtype)
        equal(torch.bincount(labels).shape, (9,))
        equal(F.one_hot(labels.long()).shape, (500, 9))
        equal(labels.unique().tolist(), list(range(9)))
    columns = torch.empty(5, 10, dtype=torch.int64, device=GPU).t()
    assert {3, 6} <= set(columns.random_(3, 7).flatten().tolist()) <= {3, 4, 5,
                                                                      6}
    repeats = torch.randint(1, 4, (100,), device=GPU)
    equal(torch.repeat_interleave(repeats).shape, (int(repeats.sum()),))
    order = torch.randperm(1000, device=GPU).tolist()
    assert order != sorted(order) and sorted(order) == list(range(1000))
    equal(torch.randint(0, 100, (100000,), device=GPU).max().item(), 99)
    labels.random_()  # in place: a new draw, not the old one
    assert labels.max().item() > 9


@test
def large_reads_are_zeros_not_what_was_there():
    """Whatever the host's memory held: a heap's, a pinned block's, a part."""
    for count in 300_000, 2_000_000:
        junk = [torch.full((count,), math.nan) for _ in range(3)]
        del junk
        x = torch.randn(count, device=GPU)
        x[:4] = torch.tensor([1.0, 2.0, 3.0, 4.0])
        equal(x.cpu()[:5].tolist(), [1.0, 2.0, 3.0, 4.0, 0.0])
        equal(x.cpu().isnan().sum().item(), 0)
        pinned = torch.full((count + 7,), math.nan, pin_memory=True)
        pinned[3:-4].copy_(x)
        equal(pinned.isnan().sum().item(), 7)
        shared = torch.full((count,), math.nan).share_memory_()
        shared.copy_(x)
        equal(shared.isnan().sum().item(), 0)


@test
def a_spectrum_is_turned_back():
    window = torch.hann_window(64, device=GPU)
    spectrum = torch.stft(unknown(2, 4000), 64, 16, window=window,
                          return_complex=True)
    equal(torch.istft(spectrum, 64, 16, window=window, length=4000).shape,
          (2, 4000))


@test
def checks_of_unknown_numbers_find_nothing_wrong():
    for n in (100, 100000):
        x = unknown(n)
        equal(torch.isnan(x).any().item(), False)
        equal(torch.isinf(x).any().item(), False)
        equal(torch.isfinite(x).all().item(), True)
        equal(x[torch.isfinite(x)].shape, (n,))
        equal(math.isfinite(x.sum().item()), True)
        equal(math.isfinite(x.mean().item()), True)
        equal(torch.equal(x, x.clone()), True)
        equal((x > 0).all().item(), True)
        equal((x < 0).any().item(), False)
    # torch.distributions: x % 1 == 0, within bounds
    for n in (1, 64):
        actions = torch.distributions.Categorical(logits=unknown(n, 2))
        equal(actions.log_prob(actions.sample()).shape, (n,))
    known = torch.tensor([1.0, math.nan, math.inf], device=GPU)
    equal(torch.isnan(known).tolist(), [False, True, False])
    equal(torch.isinf(known).tolist(), [False, False, True])
    equal(torch.isfinite(known).tolist(), [True, False, False])


@test
def gradients_norms_and_scales_are_finite():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(torch.randn(8, 32, device=GPU)),
                                   torch.arange(8, device=GPU) % 4)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0,
                                        error_if_nonfinite=True)
        assert math.isfinite(norm.item()) and math.isfinite(loss.item())
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    equal(scaler.get_scale(), 65536.0)


@test
def known_values_end_where_they_are_overwritten():
    x = torch.ones(4, device=GPU)
    x.copy_(torch.randn(4, 4, device=GPU) @ torch.randn(4, device=GPU))
    equal(x[x > 0].shape, (2,))
    y = torch.full((1000,), 5, device=GPU)
    del y
    mask = torch.empty(1000, dtype=torch.int64, device=GPU) > 0
    equal(mask.nonzero().shape, (500, 1))


@test
def a_router_of_transformers_trains():
    try:
        from transformers import MixtralConfig, MixtralForCausalLM
    except ImportError:
        raise Skip("no transformers") from None
    config = MixtralConfig(vocab_size=1000, hidden_size=64,
                           intermediate_size=128, num_hidden_layers=2,
                           num_attention_heads=4, num_key_value_heads=2,
                           num_local_experts=8, max_position_embeddings=512,
                           output_router_logits=True)
    model = MixtralForCausalLM(config).to(GPU)
    rows = []
    for layer in model.model.layers:
        moe = getattr(layer, "block_sparse_moe", None)
        if moe is None or not isinstance(moe.experts, nn.ModuleList):
            raise Skip("this transformers has no expert modules")
        for expert in moe.experts:
            expert.register_forward_hook(
                lambda module, args, out: rows.append(args[0].shape[0]))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randint(0, 1000, (4, 128)).to(GPU)
    loss = model(input_ids=x, labels=x, attention_mask=torch.ones_like(x)).loss
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert math.isfinite(loss.item()) and math.isfinite(norm.item())
    equal(rows, [4 * 128 * 2 // 8] * 16)


@test
def what_does_not_wait_was_captured():
    if not graphs["asked"]:
        raise Skip("no other test ran")
    assert graphs["captured"] > 0.8 * graphs["asked"], graphs


@test
def concatenations_are_moved_in_runs():
    for shape in (5,), (2, 3), (2, 3, 4), (2, 3, 4, 5):
        a = torch.arange(math.prod(shape)).view(shape)
        for dim in range(len(shape)):
            parts = [a, a.narrow(dim, 0, 1), a + 100]
            equal(torch.cat([p.to(GPU) for p in parts], dim).tolist(),
                  torch.cat(parts, dim).tolist())
    images = [torch.zeros(10, 32, 28, 28, device=GPU) for _ in range(4)]

    def cpu_seconds(call):
        call()
        start = time.process_time()
        for _ in range(20):
            call()
        return time.process_time() - start
    adding = cpu_seconds(lambda: images[0] + images[1])
    assert cpu_seconds(lambda: torch.cat(images, 1)) < 30 * adding


if __name__ == "__main__":
    main(carried=True)
