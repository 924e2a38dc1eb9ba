# SPDX-License-Identifier: Apache-2.0
"""Stands in for the extension of FlashAttention 2 of that name, as memsim's
libraries do for NVIDIA's: for a flash_attn that was installed without it.

Each function allocates what the extension's does, in its order, and launches
the same kernels; nothing is computed. What is allocated follows
csrc/flash_attn/flash_api.cpp of FlashAttention 2.8.3.
"""
import torch

from _memsim_flash_rules import Call


def _swaps(queries, heads, kv_heads, left, right, dropout, alibi):
    """Whether the heads of one query that share keys count as queries."""
    return (queries == 1 and heads > kv_heads and left < 0 and right < 0 and
            dropout == 0 and alibi is None)


def _probabilities(call, wanted):
    if not wanted:
        return torch.empty(0, dtype=call.type, device=call.device)
    if not call.dropout:
        raise RuntimeError(
            "return_softmax is only supported when p_dropout > 0.0")
    return torch.empty(call.batch, call.heads, call.queries_up, call.keys_up,
                       dtype=call.type, device=call.device)


def fwd(q, k, v, out, alibi_slopes, p_dropout, softmax_scale, is_causal,
        window_size_left, window_size_right, softcap, return_softmax, gen):
    with torch.cuda.device(q.device):
        batch, queries, heads, head_size = q.shape
        kv_heads = k.size(2)
        is_causal = is_causal and (queries > 1 or alibi_slopes is not None)
        left = -1 if window_size_left >= k.size(1) else window_size_left
        right = -1 if window_size_right >= k.size(1) else window_size_right
        swaps = _swaps(queries, heads, kv_heads, left,
                       0 if is_causal else right, p_dropout, alibi_slopes)
        shape = batch, kv_heads, heads // kv_heads, head_size
        if swaps:
            q = q.reshape(shape).transpose(1, 2)
            queries, heads = heads // kv_heads, kv_heads
            out = out if out is None else out.reshape(shape).transpose(1, 2)
        call = Call(q, k, heads, kv_heads, head_size, softcap, p_dropout,
                    alibi_slopes)
        call.sizes(batch, queries, k.size(1))
        call.mask(is_causal, left, right)
        if out is None:
            out = torch.empty_like(q)
        lse = call.floats(batch, heads, queries)
        p = _probabilities(call, return_softmax)
        held = call.split(0)
        rng_state = torch.empty(2, dtype=torch.int64, device=q.device)
        if call.keys:
            call.forward(return_softmax)
        else:
            out.zero_()
            lse.fill_(float("inf"))
        del held
        if swaps:
            out = out.transpose(1, 2).reshape(batch, 1, -1, head_size)
            lse = lse.reshape(batch, -1, 1)
        return [out, lse, p, rng_state]


def varlen_fwd(q, k, v, out, cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k,
               block_table, alibi_slopes, max_seqlen_q, max_seqlen_k,
               p_dropout, softmax_scale, zero_tensors, is_causal,
               window_size_left, window_size_right, softcap, return_softmax,
               gen):
    with torch.cuda.device(q.device):
        batch, paged = cu_seqlens_q.numel() - 1, block_table is not None
        _, heads, head_size = q.shape
        kv_heads = k.size(-2)
        is_causal = is_causal and (max_seqlen_q > 1 or
                                   alibi_slopes is not None)
        groups = heads // kv_heads
        swaps = _swaps(max_seqlen_q, heads, kv_heads, window_size_left,
                       0 if is_causal else window_size_right, p_dropout,
                       alibi_slopes)
        if swaps:
            shape = batch, kv_heads, groups, head_size
            rows = batch * groups, kv_heads, head_size
            q = q.reshape(shape).transpose(1, 2).reshape(rows)
            if out is not None:
                out = out.reshape(shape).transpose(1, 2).reshape(rows)
            max_seqlen_q, heads = groups, kv_heads
        call = Call(q, k, heads, kv_heads, head_size, softcap, p_dropout,
                    alibi_slopes)
        call.sizes(batch, max_seqlen_q, max_seqlen_k)
        call.mask(is_causal, window_size_left, window_size_right)
        call.ragged, call.total = True, q.size(0)
        if out is None:
            out = torch.empty_like(q)
        lse = call.floats(heads, call.total)
        p = _probabilities(call, return_softmax)
        if zero_tensors:
            out.zero_()
            lse.fill_(-float("inf"))
            p.zero_()
        held = call.split(0) if swaps else None
        rng_state = torch.empty(2, dtype=torch.int64, device=q.device)
        if max_seqlen_k:
            call.forward(return_softmax, forced=paged)
        else:
            out.zero_()
            lse.fill_(float("inf"))
        del held
        if swaps:
            out = out.reshape(batch, groups, kv_heads, head_size).transpose(
                1, 2).reshape(batch, -1, head_size)
            lse = lse.reshape(-1, batch)
        return [out, lse, p, rng_state]


def _backward(call, dq, dk, dv, sums, rows, deterministic, zeroes=False):
    """The gradients' kernels; ROWS: the sizes of what dQ is summed up in, in
    front of heads and head size; SUMS: those of the second product."""
    softmax_d = call.floats(*sums)
    held = (call.parts(),) if deterministic else ()
    dq_sum = call.floats(*held, *rows, call.heads, call.head_size_up,
                         make=torch.zeros if deterministic else torch.empty)
    shared = call.heads != call.kv_heads
    many = (*dk.shape[:-2], call.heads, call.head_size)
    dk_all = torch.empty(many, dtype=call.type, device=call.device) \
        if shared else dk
    dv_all = torch.empty(many, dtype=call.type, device=call.device) \
        if shared else dv
    if zeroes:
        for each in (dq, dk_all, dv_all, softmax_d):
            each.zero_()
    if call.queries:
        call.backward(deterministic)
    else:
        for each in (dk_all, dv_all, softmax_d):
            each.zero_()
    if shared:
        groups = (*dk.shape[:-1], call.heads // call.kv_heads, call.head_size)
        torch.sum(dk_all.reshape(groups), -2, out=dk)
        torch.sum(dv_all.reshape(groups), -2, out=dv)
    del dq_sum
    return [dq, dk, dv, softmax_d]


def _gradients(*pairs):
    return [torch.empty_like(of) if given is None else given
            for given, of in pairs]


def bwd(grad, q, k, v, out, softmax_lse, dq, dk, dv, alibi_slopes, p_dropout,
        softmax_scale, is_causal, window_size_left, window_size_right, softcap,
        deterministic, gen, rng_state):
    with torch.cuda.device(q.device):
        batch, queries, heads, head_size = q.shape
        call = Call(q, k, heads, k.size(2), head_size, softcap, p_dropout,
                    alibi_slopes)
        call.sizes(batch, queries, k.size(1))
        call.mask(is_causal, window_size_left, window_size_right)
        dq, dk, dv = _gradients((dq, q), (dk, k), (dv, v))
        return _backward(call, dq, dk, dv, (batch, heads, call.queries_up),
                         (batch, call.queries_up), deterministic)


def varlen_bwd(grad, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q,
               cu_seqlens_k, alibi_slopes, max_seqlen_q, max_seqlen_k,
               p_dropout, softmax_scale, zero_tensors, is_causal,
               window_size_left, window_size_right, softcap, deterministic,
               gen, rng_state):
    with torch.cuda.device(q.device):
        batch = cu_seqlens_q.numel() - 1
        total, heads, head_size = q.shape
        call = Call(q, k, heads, k.size(1), head_size, softcap, p_dropout,
                    alibi_slopes)
        call.sizes(batch, max_seqlen_q, max_seqlen_k)
        call.mask(is_causal, window_size_left, window_size_right)
        call.ragged, call.total = True, total
        dq, dk, dv = _gradients((dq, q), (dk, k), (dv, v))
        rows = total + 128 * batch
        return _backward(call, dq, dk, dv, (heads, rows), (rows,),
                         deterministic, zero_tensors)


def _padded(*tensors):
    """To a head size that is a multiple of 8."""
    more = -tensors[0].size(-1) % 8
    if not more:
        return tensors
    return [x if x is None else torch.nn.functional.pad(x, (0, more))
            for x in tensors]


def fwd_kvcache(q, kcache, vcache, k, v, seqlens_k, rotary_cos, rotary_sin,
                cache_batch_idx, leftpad_k, block_table, alibi_slopes, out,
                softmax_scale, is_causal, window_size_left, window_size_right,
                softcap, is_rotary_interleaved, num_splits):
    with torch.cuda.device(q.device):
        batch, queries, heads, head_size = q.shape
        paged, given = block_table is not None, out
        keys = block_table.size(1) * kcache.size(1) if paged \
            else kcache.size(1)
        kv_heads = kcache.size(2)
        is_causal = is_causal and (queries > 1 or alibi_slopes is not None)
        swaps = not head_size % 8 and _swaps(
            queries, heads, kv_heads, window_size_left,
            0 if is_causal else window_size_right, 0, alibi_slopes)
        if swaps:
            q = q.reshape(batch, kv_heads, heads // kv_heads,
                          head_size).transpose(1, 2)
            queries, heads = heads // kv_heads, kv_heads
        q, kcache_up, vcache_up = _padded(q, kcache, vcache)
        call = Call(q, kcache, heads, kv_heads, q.size(-1), softcap, 0.0,
                    alibi_slopes)
        call.sizes(batch, queries, keys)
        call.mask(is_causal, window_size_left, window_size_right)
        call.ragged = seqlens_k is not None
        if out is None or head_size % 8:
            out = torch.empty_like(q)
        lse = call.floats(batch, heads, queries)
        held = _padded(k, v) if k is not None else None, call.split(num_splits)
        call.forward(forced=k is not None or cache_batch_idx is not None or
                     paged, appends=k is not None)
        del held
        if head_size % 8:
            out = out[..., :head_size]
            if given is not None:
                given.copy_(out)
            if k is not None:
                kcache.copy_(kcache_up[..., :head_size])
                vcache.copy_(vcache_up[..., :head_size])
        if swaps:
            out = out.transpose(1, 2).reshape(batch, 1, -1, head_size)
            lse = lse.reshape(batch, -1, 1)
        return [out, lse]
