# SPDX-License-Identifier: GPL-3.0-or-later
"""Mamba's selective recurrence: C3, G3."""
import math

import numpy as np

from peers import common, ggml_graph
from peers.common import jax, on_torch, peer, threads, torch
from peers.scans import combine


def mamba(data):
    x, delta, A, B, C = (data[k] for k in ("x", "delta", "A", "B", "C"))
    steps = min(len(x), 512)  # of the check
    exact, state = np.empty((steps,) + x.shape[1:]), np.zeros(x.shape[1:] + (A.shape[1],))
    for t in range(steps):
        d = delta[t][..., None].astype(float)
        state = np.exp(d * A) * state + d * x[t][..., None] * B[t][:, None, :]
        exact[t] = (state * C[t][:, None, :]).sum(-1)
    exact = [exact]
    if jax is not None:
        jnp = jax.numpy
        arrays = [jnp.asarray(v) for v in (x, delta, A, B, C)]

        def loop(unroll):
            def make(x, d, A, B, C):
                def step(state, u):
                    x, d, b, c = u
                    d = d[..., None]
                    state = jnp.exp(d * A) * state + d * x[..., None] * b[:, None, :]
                    return state, (state * c[:, None, :]).sum(-1)

                return jax.lax.scan(step, jnp.zeros(x.shape[1:] + (A.shape[1],), x.dtype), (x, d, B, C), unroll=unroll)[1]

            run = jax.jit(make)
            return lambda: run(*arrays)

        peer("forward", "jax lax.scan", jax.__version__, loop(1), exact)
        if not common.cuda:
            peer("forward", "jax lax.scan, unrolled by 8", jax.__version__, loop(8), exact)

        def tree(x, d, A, B, C):
            d = d[..., None]
            s = jax.lax.associative_scan(combine, (jnp.exp(d * A), d * x[..., None] * B[:, :, None, :]))[1]
            return (s * C[:, :, None, :]).sum(-1)

        tree = jax.jit(tree)
        peer("forward", "jax associative_scan", jax.__version__, lambda: tree(*arrays), exact)
    if torch is not None:
        with_torch(x, delta, A, B, C, exact)
    if not common.cuda:
        with_numba(x, delta, A, B, C, exact)
    if x.shape[1] == 1:
        with_ggml(x, delta, A, B, C, exact)


def with_ggml(x, delta, A, B, C, exact):
    """ggml_ssm_scan, which takes delta before its softplus: a head is a channel."""
    T, _, D = x.shape
    before = np.where(delta > 20, delta, np.log(np.expm1(delta))).astype(np.float32)
    arrays = [np.zeros((1, D, 1, A.shape[1]), np.float32), x.reshape(1, T, D, 1), before.reshape(1, T, D), A,
              B.reshape(1, T, 1, -1), C.reshape(1, T, 1, -1), np.zeros(1, np.int32)]
    ggml_graph.peer("forward", "ggml_ssm_scan, softplus of delta included", lambda *given: ggml_graph.ggml.ggml_ssm_scan(*given), arrays, exact, x.shape)


def with_torch(x, delta, A, B, C, exact):
    tx, td, tA, tB, tC = (on_torch(v) for v in (x, delta, A, B, C))

    def run():
        decay = torch.exp(td[..., None] * tA)
        drive = td[..., None] * tx[..., None] * tB[:, :, None, :]
        state, out = torch.zeros_like(drive[0]), []
        for t in range(len(tx)):
            state = torch.addcmul(drive[t], decay[t], state)
            out.append((state @ tC[t][:, :, None])[..., 0])
        return torch.stack(out)

    peer("forward", "torch loop", torch.__version__, run, exact)
    if common.cuda:
        return
    some = 4  # more are compiled to loops that compute earlier steps again

    def chunk(state, x, d, A, B, C):
        decay, drive, out = torch.exp(d[..., None] * A), (d * x)[..., None] * B[:, :, None, :], []
        for t in range(some):
            state = decay[t] * state + drive[t]
            out.append((state * C[t][:, None, :]).sum(-1))
        return state, torch.stack(out)

    compiled = common.compiled(chunk, mode="max-autotune")

    def by_chunks():
        with torch.no_grad():
            state, out = torch.zeros(tx.shape[1:] + (tA.shape[1],)), []
            for t in range(0, len(tx), some):
                at = slice(t, t + some)
                state, y = compiled(state, tx[at], td[at], tA, tB[at], tC[at])
                out.append(y)
            return torch.cat(out)

    peer("forward", f"torch.compile max-autotune, {some} steps a graph", torch.__version__, by_chunks, exact)


def with_numba(x, delta, A, B, C, exact):
    numba = common.package("numba")
    if numba is None:
        return

    @numba.njit(fastmath=True, parallel=True)
    def plain(x, delta, A, B, C, y, parts):
        T, batch, D = x.shape
        N = A.shape[1]
        for part in numba.prange(parts):
            low, high = D * part // parts, D * (part + 1) // parts
            state = np.zeros((batch, high - low, N), np.float32)
            for t in range(T):
                for k in range(batch):
                    for i in range(low, high):
                        d = delta[t, k, i]
                        drive, sum = d * x[t, k, i], np.float32(0)
                        for n in range(N):
                            state[k, i - low, n] = math.exp(d * A[i, n]) * state[k, i - low, n] + drive * B[t, k, n]
                            sum += state[k, i - low, n] * C[t, k, n]
                        y[t, k, i] = sum

    one, top, magic = np.float32(1), np.int32(127), np.int32(23)
    # 2^f on [-1/2, 1/2] to about 1e-7, Taylor's series to the sixth power.
    c1, c2, c3, c4, c5, c6 = (np.float32(math.log(2) ** k / math.factorial(k)) for k in range(1, 7))
    per_e, least = np.float32(1 / math.log(2)), np.float32(-126)

    @numba.njit(fastmath=True, parallel=True)
    def by_powers(x, delta, A, B, C, y, parts):
        T, batch, D = x.shape
        N = A.shape[1]
        for part in numba.prange(parts):
            low, high = D * part // parts, D * (part + 1) // parts
            state = np.zeros((batch, high - low, N), np.float32)
            A2, bits = A[low:high] * per_e, np.zeros(N, np.int32)
            power = bits.view(np.float32)
            fraction = np.zeros(N, np.float32)
            for t in range(T):
                for k in range(batch):
                    for i in range(high - low):
                        d = delta[t, k, low + i]
                        drive, sum = d * x[t, k, low + i], np.float32(0)
                        for n in range(N):
                            e = max(d * A2[i, n], least)
                            whole = np.rint(e)
                            bits[n] = (np.int32(whole) + top) << magic
                            f = e - whole
                            fraction[n] = one + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))))
                        for n in range(N):
                            state[k, i, n] = power[n] * fraction[n] * state[k, i, n] + drive * B[t, k, n]
                            sum += state[k, i, n] * C[t, k, n]
                        y[t, k, low + i] = sum

    for name, kernel in (("numba, halves of the channels", plain), ("numba, halves of the channels, exp as a polynomial", by_powers)):

        def run(kernel=kernel, y=np.empty_like(x)):
            kernel(x, delta, A, B, C, y, threads)
            return y

        peer("forward", name, numba.__version__, run, exact)
