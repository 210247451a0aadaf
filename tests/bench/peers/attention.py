# SPDX-License-Identifier: GPL-3.0-or-later
"""Gated linear attention: C7, G4."""
import numpy as np

from peers import common, ggml_graph
from peers.common import on_torch, peer, torch


def gated(data):
    if torch is None:
        return
    full = [data[k][:, 0] for k in ("q", "k", "v", "log_decay")]  # [T, heads, d]
    lengths = [256, 512, 1024, 2048, 4096, 8192] if not common.cuda else [len(full[0])]
    q, k, v, decay = full
    S, rows = np.zeros(k.shape[1:] + v.shape[2:]), []
    for t in range(min(len(q), 512)):
        S = np.exp(decay[t].astype(float))[..., None] * S + k[t][..., None] * v[t][:, None, :]
        rows.append((q[t][..., None] * S).sum(1))
    reference = np.stack(rows)
    for T in reversed(lengths):
        part, exact = f"chunkwise T{T}", [reference[:T]]
        arrays = [on_torch(np.swapaxes(a[:T], 0, 1)) for a in full]  # [heads, T, d]
        peer(part, "torch, plain chunks of 64", torch.__version__, lambda arrays=arrays: chunkwise(*arrays), exact, lambda y: y.transpose(0, 1))
        if common.cuda:
            kernels(part, *(a[:T] for a in full), exact)
            continue
        with_ggml(part, *(a[:T] for a in full), exact)
        compiled = common.compiled(chunkwise, mode="max-autotune")
        peer(part, "torch.compile max-autotune, chunks of 64", torch.__version__, lambda run=compiled, arrays=arrays: run(*arrays), exact, lambda y: y.transpose(0, 1))


def with_ggml(part, q, k, v, decay, exact):
    arrays = [k, v, q, np.exp(decay), np.zeros((1, k.shape[1] * k.shape[2] ** 2), np.float32)]
    ggml_graph.peer(part, "ggml_gated_linear_attn, of factors e^decay", lambda *given: ggml_graph.ggml.ggml_gated_linear_attn(*given, 1.0), arrays, exact, v.shape)


def chunkwise(q, k, v, decay, size=64):
    heads, steps, d = q.shape
    Q, K, V, G = (x.reshape(heads, steps // size, size, d) for x in (q, k, v, decay))
    G = G.cumsum(2)
    last = G[:, :, -1:]
    inner = torch.tril((Q * G.exp()) @ (K * (-G).exp()).transpose(-1, -2)) @ V
    written = (K * (last - G).exp()).transpose(-1, -2) @ V
    S, read = torch.zeros(heads, d, d, device=q.device), []
    for i in range(steps // size):
        read.append((Q[:, i] * G[:, i].exp()) @ S)
        S = last[:, i].exp().transpose(-1, -2) * S + written[:, i]
    return (inner + torch.stack(read, 1)).reshape(heads, steps, d)


def kernels(part, q, k, v, decay, exact):
    try:
        import fla
        from fla.ops.gla import chunk_gla, fused_recurrent_gla
    except ImportError as error:
        common.say(f"no fla: {error}")
        return
    for words, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        given = [on_torch(x[None]).to(kind) for x in (q, k, v, decay)]
        for name, kernel in (("chunk_gla", chunk_gla), ("fused_recurrent_gla", fused_recurrent_gla)):

            def run(kernel=kernel, given=given):
                with torch.no_grad():
                    return kernel(*given[:3], given[3].float(), scale=1.0)[0]

            peer(part, f"fla {name}, {words}", fla.__version__, run, exact, lambda y: y[0].float(), allowed=3e-2)
