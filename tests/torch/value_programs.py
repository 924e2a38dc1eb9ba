# SPDX-License-Identifier: Apache-2.0
"""Random programs of operators that decide sizes, shapes and branches: what
fuzz_values.py runs on the CPU and on the simulated GPU.

An operator is a function of a Maker, which draws the tensors and numbers that
it takes, and returns a function of a device's tensors. It is drawn once and
called twice. The words before it say what it is not drawn for.
"""
import math

import torch
import torch.nn.functional as F

INTEGERS = (torch.int64, torch.int64, torch.int64, torch.int32, torch.uint8,
            torch.int16, torch.int8)
FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64,
          torch.float16, torch.bfloat16)
SIZES = (1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 33)


class Maker:
    """What one operator takes: tensors of the pool by their places in it."""

    def __init__(self, random, pool, forbidden=()):
        self.random = random
        self.pool = pool  # of tensors on the CPU
        self.forbidden = forbidden  # places of those that are not known

    def place(self, accept=lambda t: True):
        found = [i for i, t in enumerate(self.pool)
                 if accept(t) and i not in self.forbidden]
        if not found:
            raise LookupError
        return self.random.choice(found)

    def like(self, place):
        """A tensor that can be broadcast with that at PLACE, of its kind."""
        t = self.pool[place]

        def fits(u):
            try:
                torch.broadcast_shapes(t.shape, u.shape)
            except RuntimeError:
                return False
            return max(t.numel(), 1) * max(u.numel(), 1) < 1 << 22
        return self.place(fits)

    def dim(self, place):
        rank = self.pool[place].dim()
        if not rank:
            raise LookupError
        return self.random.randrange(-rank, rank)

    def number(self, t):
        if t.dtype == torch.bool:
            return self.random.random() < 0.5
        if not t.is_floating_point():
            return self.random.choice((0, 1, 2, 3, 5, 7, 100) if
                                      t.dtype == torch.uint8 else
                                      (0, 1, 2, 3, 5, 7, -1, -4, 100))
        return self.random.choice((0.0, 1.0, 0.5, 2.0, -1.0, 3.25, 0.1))

    def index(self, size, count):
        return torch.tensor([self.random.randrange(size)
                             for _ in range(count)], dtype=torch.int64)

    def permutation(self, size):
        order = list(range(size))
        self.random.shuffle(order)
        return torch.tensor(order, dtype=torch.int64)


def is_float(t):
    return t.is_floating_point()


def is_integer(t):
    return not t.is_floating_point() and t.dtype != torch.bool


def is_number(t):
    return t.dtype != torch.bool


def is_bool(t):
    return t.dtype == torch.bool


def has_rank(t):
    return t.dim() > 0


def is_small(t):
    return t.numel() < 5000


def is_vector(t):
    return t.dim() == 1 and 0 < t.numel() < 5000


def is_dense(t):
    """No view whose elements share memory."""
    return not any(stride == 0 and size > 1
                   for stride, size in zip(t.stride(), t.shape))


def is_count(t):
    """Small numbers, none of them negative."""
    return (is_vector(t) and is_integer(t) and t.dtype != torch.uint8
            and int(t.min()) >= 0 and int(t.max()) < 40)


# ---- a tensor of the program's beginning

def strided(random, t):
    """T as a view that is not contiguous, or as it is."""
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        kind = random.randrange(6)
        dim = random.randrange(t.dim()) if t.dim() else None
        if dim is None:
            break
        if kind == 0 and t.dim() > 1:
            t = t.transpose(dim, random.randrange(t.dim()))
        elif kind == 1 and t.shape[dim] > 2:
            t = t[(slice(None),) * dim + (slice(1, None),)]
        elif kind == 2 and t.shape[dim] > 3:
            t = t[(slice(None),) * dim + (slice(None, None, 2),)]
        elif kind == 3 and t.dim() < 4:
            t = t.unsqueeze(dim).expand(*t.shape[:dim], random.choice((2, 3)),
                                        *t.shape[dim:])
        elif kind == 4 and t.shape[dim] > 1:
            t = t.select(dim, random.randrange(t.shape[dim]))
    return t


def values(random, count, kind):
    """COUNT numbers of a KIND; no two floats are equal."""
    if kind == torch.bool:
        share = random.choice((0.1, 0.5, 0.9))
        return [random.random() < share for _ in range(count)]
    if kind in INTEGERS:
        low, high = random.choice(((0, 5), (0, 100), (-9, 9), (1, 4)))
        low = max(low, 0) if kind == torch.uint8 else low
        return [random.randrange(low, high + 1) for _ in range(count)]
    numbers = [x / 16 + 0.03125 for x in range(-count // 2 - 8, count + 8)]
    random.shuffle(numbers)
    return numbers[:count]


def begin(random):
    """A function of a device that makes a tensor there."""
    kind = random.choice(INTEGERS + FLOATS + (torch.bool,) * 3)
    shape = [random.choice(SIZES)
             for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4)))]
    while math.prod(shape) > 4000:
        shape.pop()
    way = random.randrange(12)
    number = random.choice((0, 1, 1, 3))
    if way < 2:  # what one fill covers
        if way == 0 and random.random() < 0.3:
            shape = random.choice(([8, 80000], [700, 500], [300000], [3, 2,
                                                                      99991]))
        return lambda d: torch.full(shape, number, dtype=kind, device=d)
    if way == 2 and kind not in (torch.bool, torch.uint8, torch.int8):
        n, step = random.choice((7, 40, 300)), random.choice((1, 2, 3))
        return lambda d: torch.arange(number, number + n * step, step,
                                      dtype=kind, device=d)
    if way == 3 and kind in FLOATS:
        n = random.choice((5, 64, 100, 257))
        return lambda d: torch.linspace(0, 4, n, dtype=kind, device=d)
    data = torch.tensor(values(random, math.prod(shape), kind)).to(
        kind).reshape(shape)
    state = random.getstate()

    def make(device):
        random.setstate(state)
        return strided(random, data.to(device))
    return make


# ---- operators

def unary(accept, *functions):
    def draw(m):
        i, f = m.place(accept), m.random.choice(functions)
        return lambda d, p: f(p[i])
    return draw


def scalar(accept, *functions):
    def draw(m):
        i, f = m.place(accept), m.random.choice(functions)
        n = m.number(m.pool[i])
        return lambda d, p: f(p[i], n)
    return draw


def binary(accept, *functions):
    def draw(m):
        i = m.place(accept)
        j, f = m.like(i), m.random.choice(functions)
        if not accept(m.pool[j]):
            raise LookupError
        return lambda d, p: f(p[i], p[j])
    return draw


def along(accept, *functions):
    def draw(m):
        i, f = m.place(accept), m.random.choice(functions)
        dim = m.dim(i)
        return lambda d, p: f(p[i], dim)
    return draw


def whole(accept, *functions):
    return unary(accept, *functions)


def where(m):
    i = m.place(is_bool)
    j, k = m.like(i), m.like(i)
    torch.broadcast_shapes(*(m.pool[x].shape for x in (i, j, k)))
    return lambda d, p: torch.where(p[i], p[j], p[k])


def masked_fill(m):
    i = m.place()
    j, n = m.like(i), m.number(m.pool[i])
    return lambda d, p: p[i].masked_fill(p[j] != 0, n)


def clamp(m):
    i = m.place(is_number)
    low, high = sorted((m.number(m.pool[i]), m.number(m.pool[i])))
    low, high = m.random.choice(((low, high), (low, None), (None, high)))
    return lambda d, p: p[i].clamp(low, high)


def concatenate(m):
    i = m.place(has_rank)
    dim, join = m.dim(i), m.random.choice((torch.cat, torch.stack))
    t = m.pool[i]
    same = [j for j, u in enumerate(m.pool) if u.dim() == t.dim() and all(
        u.shape[k] == t.shape[k] for k in range(t.dim())
        if k != dim % t.dim() or join is torch.stack)]
    which = [i] + [m.random.choice(same)
                   for _ in range(m.random.choice((1, 1, 2)))]
    if m.random.random() < 0.3 and join is torch.cat:
        return lambda d, p: join([p[i], p[i].narrow(dim, 0, 1), p[i]], dim)
    return lambda d, p: join([p[j] for j in which], dim)


def difference(m):
    i = m.place(lambda t: has_rank(t) and is_number(t))
    dim, n = m.dim(i), m.random.choice((0, 1))

    def run(d, p):
        first = p[i].narrow(dim, 0, 1)
        return torch.diff(p[i], dim=dim, prepend=first - 1 if n else first)
    return run


def view(m):
    i = m.place()
    t, state = m.pool[i], m.random.getstate()
    flat = m.random.random() < 0.3

    def run(d, p):
        m.random.setstate(state)
        return p[i].reshape(-1) if flat else strided(m.random, p[i])
    if t.numel() > 10000 and not flat:
        raise LookupError
    return run


def change(m):
    """In place, of all of a tensor or a part."""
    i = m.place(lambda t: is_number(t) and t.numel() and
                not any(s == 0 for s in t.stride()))
    n, part = m.number(m.pool[i]), m.random.random() < 0.4
    name = m.random.choice(("add_", "mul_", "fill_", "clamp_"))

    def run(d, p):
        t = p[i].clone()
        getattr(t[..., :1] if part and t.dim() else t, name)(n)
        return t
    return run


def take(m):
    i = m.place(has_rank)
    dim = m.dim(i)
    size = m.pool[i].shape[dim]
    if not size or not is_small(m.pool[i]):
        raise LookupError
    index = m.index(size, m.random.choice((1, 3, 5)))
    name = m.random.choice(("index_select", "indexing", "take", "first"))

    def run(d, p):
        t, at = p[i], index.to(d)
        if name == "index_select":
            return t.index_select(dim, at)
        if name == "take":
            return torch.take(t, at)
        if name == "first":
            return t[at % t.shape[0]]
        return t[(slice(None),) * (dim % t.dim()) + (at,)]
    return run


def put(m):
    i = m.place(lambda t: has_rank(t) and is_small(t) and is_number(t))
    t, dim = m.pool[i], m.dim(i)
    size = t.shape[dim]
    if not size:
        raise LookupError
    order = m.permutation(size)[:max(1, size // 2)]
    n, alpha = m.number(t), m.random.choice((1, 1, 3))
    name = m.random.choice(("index_fill", "index_copy", "index_add", "scatter",
                            "scatter_add", "index_put", "gather"))

    def run(d, p):
        t, at = p[i].clone(), order.to(d)
        part = t.index_select(dim, at)
        shape = [1] * t.dim()
        shape[dim] = len(order)
        wide = at.view(shape).expand(part.shape)
        if name == "index_fill":
            return t.index_fill_(dim, at, n)
        if name == "index_copy":
            return t.index_copy_(dim, at, part + part)
        if name == "index_add":
            return t.index_add_(dim, at, part, alpha=alpha)
        if name == "scatter":
            return t.scatter_(dim, wide, n)
        if name == "scatter_add":
            return t.scatter_add_(dim, wide, part)
        if name == "index_put":
            t[(slice(None),) * (dim % t.dim()) + (at,)] = part + part
            return t
        return t.gather(dim, wide)
    return run


def move(m):
    i = m.place(lambda t: has_rank(t) and is_small(t))
    dim, n = m.dim(i), m.random.choice((1, 2, -1))
    two = m.pool[i].dim() > 1
    name = m.random.choice(("roll", "flip", "pad", "repeat", "tril", "triu",
                            "interleave", "chunk", "unfold", "movedim"))

    def run(d, p):
        t = p[i]
        if name == "roll":
            return t.roll(n, dim)
        if name == "flip":
            return t.flip(dim)
        if name == "pad":
            return F.pad(t, (abs(n), 1), value=1)
        if name == "repeat":
            return t.repeat(*[2] * t.dim())
        if name in ("tril", "triu"):
            return getattr(torch, name)(t if two else t[None], n)
        if name == "interleave":
            return t.repeat_interleave(2, dim)
        if name == "chunk":
            return t.chunk(2, dim)[-1]
        if name == "unfold":
            return t.unfold(dim, 1, 1)
        return t.movedim(dim, 0).contiguous()
    return run


def convert(m):
    i = m.place()
    t = m.pool[i]
    kinds = FLOATS + INTEGERS[:4] + (torch.bool,)
    kind = m.random.choice(kinds)
    if kind == torch.uint8 and (t.is_floating_point() or (
            t.numel() and t.dtype != torch.bool and int(t.min()) < 0)):
        raise LookupError
    if is_float(t) and kind in INTEGERS and t.numel() and \
            float(t.abs().max()) > 30000:
        raise LookupError
    return lambda d, p: p[i].to(kind)


def outer(m):
    i, j = m.place(is_vector), m.place(is_vector)
    if m.pool[i].numel() * m.pool[j].numel() > 30000 or \
            m.pool[i].dtype != m.pool[j].dtype or is_bool(m.pool[i]):
        raise LookupError
    name = m.random.choice(("outer", "compare", "mesh"))

    def run(d, p):
        if name == "outer":
            return torch.outer(p[i], p[j])
        if name == "mesh":
            return torch.stack(torch.meshgrid(p[i], p[j], indexing="ij"))
        return p[i][:, None] >= p[j][None]
    return run


def search(m):
    i, j = m.place(is_vector), m.place(is_vector)
    if m.pool[i].dtype != m.pool[j].dtype or is_bool(m.pool[i]):
        raise LookupError
    right = m.random.random() < 0.5
    name = m.random.choice(("searchsorted", "bucketize"))

    def run(d, p):
        ordered = p[i].sort().values
        if name == "bucketize":
            return torch.bucketize(p[j], ordered, right=right)
        return torch.searchsorted(ordered, p[j].contiguous(), right=right)
    return run


def isin(m):
    i, j = m.place(is_vector), m.place(is_vector)
    if m.pool[i].dtype != m.pool[j].dtype or is_bool(m.pool[i]):
        raise LookupError
    return lambda d, p: torch.isin(p[i], p[j])


def read(m):
    """A number that the script reads becomes a new tensor's."""
    i = m.place(lambda t: t.numel() and is_integer(t))
    at = m.random.randrange(m.pool[i].numel())

    def run(d, p):
        n = int(p[i].reshape(-1)[at])
        return torch.arange(n % 97, device=d) + n
    return run


def unknown(m):
    """What memsim does not compute."""
    i = m.place(lambda t: has_rank(t) and is_small(t))

    def run(d, p):
        t = p[i].float().reshape(-1, 1)
        return (t @ t.new_ones(1, 1)).reshape(p[i].shape).to(p[i].dtype)
    return run


def is_positive(t):
    return is_float(t) and t.numel() > 0 and float(t.min()) > 0


def is_modest(t):
    return is_float(t) and t.numel() > 0 and float(t.abs().max()) < 20


def is_divisor(t):
    return is_number(t) and t.numel() > 0 and not bool((t == 0).any())


def divide(*functions):
    def draw(m):
        j = m.place(is_divisor)
        i = m.like(j)
        if is_bool(m.pool[i]):
            raise LookupError
        f = m.random.choice(functions)
        return lambda d, p: f(p[i], p[j])
    return draw


def divide_scalar(*functions):
    def draw(m):
        i, f = m.place(is_number), m.random.choice(functions)
        n = m.random.choice((2, 4, 8, -2))
        return lambda d, p: f(p[i], n)
    return draw


def product_added(m):
    i = m.place(is_number)
    j, k, n = m.like(i), m.like(i), m.random.choice((1, 3, -2))
    if not all(is_number(m.pool[x]) for x in (j, k)):
        raise LookupError
    torch.broadcast_shapes(*(m.pool[x].shape for x in (i, j, k)))
    return lambda d, p: torch.addcmul(p[i], p[j], p[k], value=n)


KEEPING = [  # sizes do not depend on values
    product_added,
    unary(is_number, torch.neg, torch.abs, torch.sign, torch.square),
    unary(is_float, torch.floor, torch.ceil, torch.round, torch.trunc,
          torch.frac, torch.relu),
    unary(is_modest, torch.exp, torch.sin, torch.cos, torch.tanh, torch.sinh,
          torch.sigmoid, torch.erf, torch.atan, torch.expm1),
    unary(is_positive, torch.log, torch.sqrt, torch.rsqrt, torch.log2,
          torch.log1p, torch.log10, torch.reciprocal, lambda t: t ** 0.5,
          lambda t: t ** 1.5, lambda t: t ** -1, lambda t: t ** -2),
    unary(is_modest, lambda t: 2.0 ** t, lambda t: torch.pow(1.5, t),
          lambda t: t ** 3),
    unary(lambda t: not is_float(t), torch.bitwise_not, torch.logical_not),
    unary(is_number, torch.isnan, torch.isfinite, torch.logical_not),
    scalar(is_number, torch.add, torch.sub, torch.mul, lambda t, n: n - t,
           lambda t, n: torch.add(t, n, alpha=2)),
    scalar(lambda t: True, torch.eq, torch.ne, torch.lt, torch.le, torch.gt,
           torch.ge),
    binary(is_number, torch.add, torch.sub, torch.mul, torch.maximum,
           torch.minimum),
    binary(lambda t: True, torch.eq, torch.ne, torch.lt, torch.le, torch.gt,
           torch.ge, torch.logical_and, torch.logical_or, torch.logical_xor),
    binary(is_bool, torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor),
    binary(is_integer, torch.bitwise_and, torch.bitwise_or),
    divide(torch.div, lambda a, b: torch.div(a, b, rounding_mode="trunc"),
           torch.floor_divide, torch.remainder, torch.fmod),
    divide_scalar(torch.div, torch.floor_divide, torch.remainder, torch.fmod,
                  lambda t, n: torch.div(t, n, rounding_mode="trunc")),
    where, where, masked_fill, clamp, convert, convert, convert, view, view,
    view, concatenate, concatenate, concatenate, difference, change, take,
    take, put, put, move, move, outer, search,
    whole(is_number, torch.sum, torch.max, torch.min, torch.argmax,
          torch.argmin, lambda t: t.float().mean(), torch.count_nonzero),
    whole(lambda t: True, torch.any, torch.all, lambda t: t.sum(),
          lambda t: (t != 0).sum()),
    along(is_number, torch.sum, torch.amax, torch.amin, torch.argmax,
          lambda t, d: t.max(d)[0], lambda t, d: t.min(d)[0],
          lambda t, d: t.float().mean(d), torch.cumsum, torch.cumsum,
          lambda t, d: t.aminmax(dim=d)[1]),
    along(lambda t: True, torch.any, torch.all, lambda t, d: t.sum(d),
          lambda t, d: t.to(torch.int64).cumsum(d)),
    along(is_integer, lambda t, d: t.cummax(d)[0], lambda t, d: t.cummin(d)[0],
          lambda t, d: t.prod(d)),
    along(lambda t: is_number(t) and is_small(t) and t.numel() > 0,
          lambda t, d: t.sort(d, stable=True)[0],
          lambda t, d: t.sort(d, stable=True)[1],
          lambda t, d: t.sort(d, descending=True, stable=True)[1],
          lambda t, d: t.argsort(d, stable=True),
          lambda t, d: t.topk(1, d)[0], lambda t, d: t.kthvalue(1, d)[0]),
    # The CPU's median is wrong for what is expanded: of 5 6 7 8, expanded to
    # three rows, torch.median(0) is not 5 6 7 8 there.
    along(lambda t: is_number(t) and is_small(t) and t.numel() > 0 and
          is_dense(t), lambda t, d: t.median(d)[0]),
]

DECIDING = [  # sizes, or what the script does, depend on values
    whole(lambda t: is_small(t), torch.nonzero, lambda t: t[t != 0],
          lambda t: torch.masked_select(t, t != 0),
          lambda t: torch.where(t != 0)[0] if t.dim() else t),
    whole(lambda t: is_small(t) and t.numel() > 0, torch.unique,
          torch.unique_consecutive,
          lambda t: torch.unique(t, return_inverse=True)[1],
          lambda t: torch.unique(t, return_counts=True)[1]),
    whole(is_count, torch.bincount, F.one_hot,
          lambda t: torch.repeat_interleave(t, t),
          lambda t: torch.repeat_interleave(t),
          lambda t: torch.split(t, t.tolist())[-1]
          if int(t.sum()) == t.numel() else t),
    read, read,
    isin,  # of what is not known: that equals no number (doc/values.md)
]


def draw(random, pool, tainted):
    """An operator, and what it takes, for a POOL of tensors on the CPU, of
    which those at TAINTED are not all known."""
    while True:
        if not tainted and random.random() < 0.04:
            make, forbidden = unknown, ()
        elif random.random() < 0.2:
            make, forbidden = random.choice(DECIDING), tainted
        else:
            make, forbidden = random.choice(KEEPING), ()
        try:
            return make(Maker(random, pool, forbidden))
        except (LookupError, RuntimeError):
            continue
