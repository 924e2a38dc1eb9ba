# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does through cuSOLVER, cuBLAS' solvers, cuSPARSE, cuSPARSELt
and cuFFT, forward and backward. No info code may raise.

memsim run -- python tests/torch/test_linalg.py
"""
import os
import tempfile
import warnings

import torch
from torch import linalg as L
from harness import Skip, equal, main, test

GPU = "cuda"
SHAPES = ((16, 16), (5, 16, 16), (2, 128, 128), (0, 4, 4), (0, 0))
TALL = SHAPES + ((4, 16, 8), (2, 200, 20))
TYPES = (torch.float32, torch.float64, torch.complex64)


def total(x):
    """A real number of X that a loss can be."""
    return x.abs().sum()


def over(shapes, types=TYPES, backward=True):
    """Registers a test of a function of one matrix, for SHAPES and TYPES, with
    its gradient where the function returns something to differentiate."""
    def register(function):
        def run():
            for dtype in types:
                for shape in shapes:
                    a = torch.randn(*shape, dtype=dtype, device=GPU,
                                    requires_grad=backward)
                    result = function(a)
                    if backward:
                        result.backward()
                        equal(a.grad.shape, a.shape)
        run.__name__ = function.__name__
        return test(run)
    return register


@over(SHAPES)
def cholesky(a):
    return total(L.cholesky(a))


@over(SHAPES)
def cholesky_solves(a):
    factor = L.cholesky_ex(a)[0]
    return total(torch.cholesky_solve(a, factor)) + \
        total(torch.cholesky_inverse(factor))


@over(SHAPES)
def eigenvalues_of_symmetric_matrices(a):
    values, vectors = L.eigh(a)
    equal(values.shape, a.shape[:-1])
    equal(vectors.shape, a.shape)
    return values.sum() + L.eigvalsh(a).sum()


@over(SHAPES)
def eigenvalues(a):
    values, vectors = L.eig(a)
    equal(values.is_complex() and vectors.is_complex(), True)
    return total(values) + total(L.eigvals(a))


@over(SHAPES)
def solves(a):
    return total(L.solve(a, a)) + total(L.inv(a)) + \
        total(L.solve_triangular(a, a, upper=True))


@over(SHAPES)
def determinants(a):
    return total(L.det(a)) + total(L.slogdet(a)[1])


@over(TALL)
def lu(a):
    p, lower, upper = L.lu(a)
    equal(lower.shape[-2], a.shape[-2])
    equal(upper.shape[-1], a.shape[-1])
    return total(lower) + total(upper) + total(L.lu_factor(a)[0])


@over(SHAPES)
def lu_solve(a):
    return total(L.lu_solve(*L.lu_factor(a), a))


@over(SHAPES, backward=False)
def ldl(a):
    factor, pivots = L.ldl_factor(a)
    equal(L.ldl_solve(factor, pivots, a).shape, a.shape)


@over(TALL)
def qr(a):
    q, r = L.qr(a)
    equal(q.shape, a.shape)
    return total(q) + total(r)


@over(TALL, backward=False)
def qr_complete_and_householder(a):
    equal(L.qr(a, mode="complete")[0].shape[-1], a.shape[-2])
    reflectors, tau = torch.geqrf(a)
    equal(L.householder_product(reflectors, tau).shape, a.shape)
    equal(torch.ormqr(reflectors, tau, a).shape, a.shape)


@over(TALL)
def singular_values(a):
    return L.svd(a, full_matrices=False)[1].sum() + L.svdvals(a).sum()


@over([s for s in TALL if 0 not in s], backward=False)
def every_way_to_singular_values(a):
    for driver in ("gesvd", "gesvdj", "gesvda"):
        u, s, v = L.svd(a, full_matrices=False, driver=driver)
        equal(u.shape, a.shape)
        equal(s.shape[-1], a.shape[-1])
        equal(v.shape[-1], a.shape[-1])


@over(TALL)
def pseudoinverse(a):
    return total(L.pinv(a))


@over([s for s in TALL if 0 not in s])
def least_squares(a):
    return total(L.lstsq(a, a).solution)


@over([s for s in SHAPES if 0 not in s], backward=False)
def ranks_and_norms(a):
    equal(L.matrix_rank(a).shape, a.shape[:-2])
    equal(L.cond(a).shape, a.shape[:-2])
    equal(L.matrix_norm(a, "nuc").shape, a.shape[:-2])
    equal(L.matrix_power(a, -2).shape, a.shape)


@over(SHAPES)
def a_matrix_and_vectors(a):
    v = torch.randn(a.shape[-1], dtype=a.dtype, device=GPU)
    return total(a @ v) + total(L.multi_dot([v, v.new_ones(len(v), 3)]))


@test
def workspaces_show_in_the_peak():
    a = torch.randn(512, 512, device=GPU)
    L.eigh(a)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    L.eigh(a)
    peak = torch.cuda.max_memory_allocated() - before
    assert peak > 2 * 512 * 512 * 4, peak


def sparse(dtype):
    """A matrix whose pattern the host knows, in each layout."""
    dense = 2 * torch.eye(64)
    dense[0, 5] = 1
    return {name: make().to(dtype).to(GPU) for name, make in (
        ("csr", dense.to_sparse_csr), ("csc", dense.to_sparse_csc),
        ("coo", dense.to_sparse_coo),
        ("bsr", lambda: dense.to_sparse_bsr((16, 16))))}


@test
def sparse_products():
    warnings.filterwarnings("ignore", "Sparse")
    for dtype in TYPES:
        b = torch.randn(64, 32, device=GPU, dtype=dtype)
        for name, a in sparse(dtype).items():
            equal((a @ b).shape, (64, 32))
            equal((a @ b[:, 0]).shape, (64,))
            equal(torch.addmm(b, a, b).shape, (64, 32))
            if name != "bsr":
                equal((a @ a).shape, (64, 64))
                equal((a + a).shape, (64, 64))


@test
def a_sparse_product_has_non_zeros():
    a = sparse(torch.float32)["csr"]
    count = (a @ a)._nnz()
    assert 0 < count <= 64 * 64, count


@test
def sampled_products_and_triangular_solves():
    for dtype in TYPES:
        b = torch.randn(64, 32, device=GPU, dtype=dtype)
        layouts = sparse(dtype)
        equal(torch.sparse.sampled_addmm(layouts["csr"], b, b.t()).shape,
              (64, 64))
        for name in ("csr", "bsr"):
            for right in (b, b[:, :1]):
                solved = torch.triangular_solve(right, layouts[name])[0]
                equal(solved.shape, right.shape)


@test
def sparse_conversions_and_gradients():
    layouts = sparse(torch.float32)
    equal(layouts["coo"].coalesce().to_sparse_csr().shape, (64, 64))
    equal(layouts["csr"].to_sparse_csc().shape, (64, 64))
    for name in ("coo", "csr"):
        b = torch.randn(64, 32, device=GPU, requires_grad=True)
        torch.sparse.mm(layouts[name], b).sum().backward()
        equal(b.grad.shape, b.shape)


@test
def sparse_gradients_of_an_embedding():
    table = torch.nn.Embedding(1000, 16, sparse=True, device=GPU)
    optimizer = torch.optim.SparseAdam(table.parameters())
    for _ in range(2):
        table(torch.arange(32, device=GPU)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@test
def semi_structured_sparsity():
    if not hasattr(torch, "_cslt_compress"):
        raise Skip("this PyTorch has no cuSPARSELt")
    # 2.5 prefers CUTLASS, which is for compute capability 8.x only.
    torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False
    for dtype, part in ((torch.float16, 9), (torch.bfloat16, 9),
                        (torch.int8, 10)):
        a = torch.tensor([0, 0, 1, 1], dtype=dtype).tile(128, 64).to(GPU)
        b = torch.ones(256, 128, dtype=dtype, device=GPU)
        compressed = torch._cslt_compress(a)
        equal(compressed.numel(), a.numel() * part // 16)
        equal(torch._cslt_sparse_mm(compressed, b).shape, (128, 128))
        torch._cslt_sparse_mm_search(compressed, b)
        tensor = torch.sparse.to_sparse_semi_structured(a)
        equal(torch.mm(tensor, b).shape, (128, 128))


@test
def fourier_transforms():
    for shape in ((3, 64), (3, 67), (2, 8, 9), (2, 4, 6, 10)):
        for dtype in TYPES:
            x = torch.randn(*shape, dtype=dtype, device=GPU,
                            requires_grad=True)
            axes = tuple(range(1, x.dim()))
            torch.fft.fftn(x, dim=axes).abs().sum().backward()
            if not dtype.is_complex:
                half = torch.fft.rfftn(x, dim=axes)
                back = torch.fft.irfftn(half, s=shape[1:], dim=axes)
                equal(back.shape, x.shape)


@test
def storage_goes_to_a_file_and_back():
    gds = getattr(torch.cuda, "gds", None)
    if not hasattr(gds, "GdsFile"):
        raise Skip("this PyTorch has no cuFile")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "storage")
        x = torch.arange(1024, dtype=torch.float32).to(GPU)
        try:
            file = gds.GdsFile(path, os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise Skip(f"no O_DIRECT here: {error}") from error
        file.save_storage(x.untyped_storage(), offset=0)
        y = torch.zeros_like(x)
        file.load_storage(y.untyped_storage(), offset=0)
        equal(y[:5].tolist(), [0.0, 1.0, 2.0, 3.0, 4.0])


if __name__ == "__main__":
    main()
