# SPDX-License-Identifier: GPL-3.0-or-later
"""Scans of a diagonal recurrence: C1, C2, G1, G2."""
import numpy as np

from peers import common
from peers.common import jax, on_torch, peer, threads, torch

longest_loop = 100_000  # steps that are asked for one by one


def combine(earlier, later):
    a1, b1 = earlier
    a2, b2 = later
    return a1 * a2, a2 * b1 + b2


def real(data):
    a, b = data["a"], data["b"]
    exact = np.empty(b.shape)
    state = np.zeros(b.shape[1:])
    for t in range(len(b)):
        state = a[t].astype(float) * state + b[t]
        exact[t] = state
    if jax is not None:
        ja, jb = jax.numpy.asarray(a), jax.numpy.asarray(b)
        tree = jax.jit(lambda a, b: jax.lax.associative_scan(combine, (a, b))[1])
        peer("forward", "jax associative_scan", jax.__version__, lambda: tree(ja, jb), [exact])

        def step(state, u):
            state = u[0] * state + u[1]
            return state, state

        def loop(unroll):
            run = jax.jit(lambda a, b: jax.lax.scan(step, jax.numpy.zeros(b.shape[1:], b.dtype), (a, b), unroll=unroll)[1])
            return lambda: run(ja, jb)

        if len(b) <= longest_loop:
            peer("forward", "jax lax.scan", jax.__version__, loop(1), [exact])
            if not common.cuda:
                peer("forward", "jax lax.scan, unrolled by 8", jax.__version__, loop(8), [exact])
        if common.cuda and "g" in data:
            both = jax.jit(lambda a, b, g: (lambda value, back: (value, back(g)))(*jax.vjp(lambda a, b: jax.lax.associative_scan(combine, (a, b))[1], a, b)))
            jg = jax.numpy.asarray(data["g"])
            peer("with backward", "jax grad of associative_scan", jax.__version__, lambda: both(ja, jb, jg), [exact], lambda v: v[0])
    if torch is not None and common.cuda:
        kernels(data, exact)
    if torch is not None and len(b) <= longest_loop:
        ta, tb = on_torch(a), on_torch(b)

        def run():
            s = torch.empty_like(tb)
            s[0] = tb[0]
            for t in range(1, len(tb)):
                torch.addcmul(tb[t], ta[t], s[t - 1], out=s[t])
            return s

        peer("forward", "torch loop", torch.__version__, run, [exact])
    numba = None if common.cuda else common.package("numba")
    if numba is not None:

        @numba.njit(fastmath=True, parallel=True)
        def scan(a, b, s, parts):
            T, width = a.shape
            for part in numba.prange(parts):
                low, high = width * part // parts, width * (part + 1) // parts
                state = np.zeros(high - low, np.float32)
                for t in range(T):
                    for i in range(high - low):
                        state[i] = a[t, low + i] * state[i] + b[t, low + i]
                        s[t, low + i] = state[i]

        flat = [x.reshape(len(x), -1) for x in (a, b)]

        def run_numba(s=np.empty_like(flat[0])):
            scan(*flat, s, threads)
            return s

        peer("forward", "numba, halves of the channels", numba.__version__, run_numba, [exact], lambda s: s.reshape(exact.shape))


def kernels(data, exact):
    """Of packages that are there for nothing else, each in its own layout."""
    a, b = data["a"], data["b"]
    g = data["g"] if "g" in data else None

    def times(name, version, scan, decay, arrange, back):
        first, second = (on_torch(arrange(x)) for x in (decay, b))

        def forward():
            with torch.no_grad():
                return scan(first.detach(), second.detach())

        peer("forward", name, version, forward, [exact], back)
        if g is None:
            return
        weight = on_torch(arrange(g))
        for x in (first, second):
            x.requires_grad_()

        def both():
            first.grad = second.grad = None
            value = scan(first, second)
            value.backward(weight)
            return value.detach()

        peer("with backward", name, version, both, [exact], back)

    try:
        from accelerated_scan.scalar import scan
        times("accelerated-scan (Triton), channels first", common.version("accelerated-scan"), scan, a, lambda x: np.moveaxis(x, 0, -1), lambda v: v.permute(2, 0, 1))
    except ImportError as error:
        common.say(f"no accelerated_scan: {error}")
    try:
        import fla
        from fla.ops.hgrn import chunk_hgrn
        times("fla chunk_hgrn", fla.__version__, lambda decay, x: chunk_hgrn(x, decay)[0], np.log(a), lambda x: np.swapaxes(x, 0, 1), lambda v: v.transpose(0, 1))
    except ImportError as error:
        common.say(f"no fla: {error}")


def complex_both_ways(data):
    """The LRU's recurrence and dL/da and dL/db of it, as dL/dRe + i dL/dIm."""
    a, b, g = (data[k][..., 0] + 1j * data[k][..., 1] for k in ("a", "b", "g"))
    s, gb = np.empty(b.shape, complex), np.empty(b.shape, complex)
    state = np.zeros(b.shape[1:], complex)
    for t in range(len(b)):
        state = a * state + b[t]
        s[t] = state
    state = np.zeros(b.shape[1:], complex)
    for t in reversed(range(len(b))):
        state = np.conj(a) * state + g[t]
        gb[t] = state
    exact = [s, gb, (gb[1:] * np.conj(s[:-1])).sum((0, 1))]
    part = "forward and backward"
    if jax is not None:
        jnp = jax.numpy
        ja, jb, jg = (jnp.asarray(x, jnp.complex64) for x in (a, b, g))

        def through(make):
            # The vector-Jacobian product, conjugated.
            def run(a, b, g):
                value, back = jax.vjp(make, a, b)
                ga, gb = back(jnp.conj(g))
                return value, jnp.conj(gb), jnp.conj(ga)

            run = jax.jit(run)
            return lambda: run(ja, jb, jg)

        def tree(a, b):
            return jax.lax.associative_scan(combine, (jnp.broadcast_to(a, b.shape), b))[1]

        def loop(unroll):
            def make(a, b):
                def step(state, u):
                    state = a * state + u
                    return state, state

                return jax.lax.scan(step, jnp.zeros(b.shape[1:], b.dtype), b, unroll=unroll)[1]

            return make

        peer(part, "jax grad of associative_scan", jax.__version__, through(tree), exact)
        peer(part, "jax grad of lax.scan", jax.__version__, through(loop(1)), exact)
        peer(part, "jax grad of lax.scan, unrolled by 8", jax.__version__, through(loop(8)), exact)
    numba = common.package("numba")
    if numba is None:
        return
    single = [np.ascontiguousarray(x, np.complex64) for x in (a, b, g)]

    @numba.njit(fastmath=True, parallel=True)
    def forward(a, b, s, parts):
        T, B, D = b.shape
        for part in numba.prange(parts):
            low, high = D * part // parts, D * (part + 1) // parts
            state = np.zeros((B, high - low), np.complex64)
            for t in range(T):
                for k in range(B):
                    for i in range(high - low):
                        state[k, i] = a[low + i] * state[k, i] + b[t, k, low + i]
                        s[t, k, low + i] = state[k, i]

    @numba.njit(fastmath=True, parallel=True)
    def backward(a, s, g, gb, ga, parts):
        T, B, D = g.shape
        for part in numba.prange(parts):
            low, high = D * part // parts, D * (part + 1) // parts
            state = np.zeros((B, high - low), np.complex64)
            ga[low:high] = 0
            for t in range(T - 1, -1, -1):
                for k in range(B):
                    for i in range(high - low):
                        state[k, i] = a[low + i].conjugate() * state[k, i] + g[t, k, low + i]
                        gb[t, k, low + i] = state[k, i]
                        if t > 0:
                            ga[low + i] += state[k, i] * s[t - 1, k, low + i].conjugate()

    def run(s=np.empty_like(single[1]), gb=np.empty_like(single[1]), ga=np.empty_like(single[0])):
        forward(single[0], single[1], s, threads)
        backward(single[0], s, single[2], gb, ga, threads)
        return s, gb, ga

    peer(part, "numba, halves of the channels, hand-written adjoint", numba.__version__, run, exact)
