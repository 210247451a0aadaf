# SPDX-License-Identifier: GPL-3.0-or-later
"""LSTM layers, C5, C6 and G5, and the evaluation of one over many sequences, C11."""
import numpy as np

from peers import common
from peers.common import jax, on_torch, peer, torch
from peers.onnx_model import lstm_model, on_runtimes

names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layers(data):
    """A layer of its own for each size: the arrays "H64/x", ... belong to the part "forward H64", and those of no size to "forward"."""
    for key in data:
        if key == "x" or key.endswith("/x"):
            size = key[:-2]
            layer({name: data[f"{size}/{name}" if size else name] for name in ("x", *names)}, f" {size}" if size else "", "backward" in data)


def layer(data, of_part, backward):
    x = data["x"]
    W, R, bias = data["weight_ih"], data["weight_hh"], data["bias_ih"] + data["bias_hh"]
    H = R.shape[1]
    steps = min(len(x), 50)  # of the check
    h, c, exact = np.zeros((x.shape[1], H)), np.zeros((x.shape[1], H)), []
    for t in range(steps):
        i, f, g, o = np.split(x[t].astype(float) @ W.T + h @ R.T + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        exact.append(h)
    exact = [np.stack(exact)]
    if not common.cuda:
        for name, version, run in on_runtimes(lstm_model(len(x), x.shape[1], *(data[k] for k in names))):
            peer("forward" + of_part, name, version, lambda run=run: run(x), exact)
    if torch is not None:
        module = torch_layer(data, x.shape[2])
        tx = on_torch(x)

        def forward():
            with torch.no_grad():
                return module(tx)[0]

        peer("forward" + of_part, "torch nn.LSTM", torch.__version__, forward, exact)

        def both():
            module.zero_grad()
            y = module(tx)[0]
            y.backward(y.detach())
            return y

        if backward:
            peer("with backward" + of_part, "torch nn.LSTM", torch.__version__, both, exact)
    if jax is not None:
        with_jax(x, W, R, bias, of_part, backward, exact)


def torch_layer(data, width):
    module = torch.nn.LSTM(width, data["weight_hh"].shape[1]).to("cuda" if common.cuda else "cpu")
    with torch.no_grad():
        for name in names:
            getattr(module, name + "_l0").copy_(torch.from_numpy(data[name]))
    return module


def with_jax(x, W, R, bias, of_part, backward, exact):
    jnp = jax.numpy
    arrays = [jnp.asarray(v) for v in (x, W, R, bias)]

    def loop(unroll):
        def make(x, W, R, bias):
            H = R.shape[1]

            def step(carry, u):
                h, c = carry
                i, f, g, o = jnp.split(u + h @ R.T, 4, axis=1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((x.shape[1], H), x.dtype)
            return jax.lax.scan(step, (zero, zero), x @ W.T + bias, unroll=unroll)[1]

        return make

    for unroll in (1,) if common.cuda else (1, 8, 16):
        words = "jax lax.scan" + (f", unrolled by {unroll}" if unroll > 1 else "")
        make = loop(unroll)
        forward = jax.jit(make)
        peer("forward" + of_part, words, jax.__version__, lambda run=forward: run(*arrays), exact)
        if not backward:
            continue

        def both_ways(*v, make=make):
            y, back = jax.vjp(make, *v)
            return y, back(y)

        both = jax.jit(both_ways)
        peer("with backward" + of_part, words, jax.__version__, lambda run=both: run(*arrays), exact, lambda v: v[0])


def evaluation(data):
    """Outputs and the mean loss, half the squared error over the steps that count, of all sequences."""
    x, target, mask = (np.ascontiguousarray(data[k], np.float32) for k in ("x", "target", "mask"))  # [sequences, steps, ...]
    weights = {k: data[k].astype(np.float32) for k in (*names, "head", "head_bias")}
    count, steps, width = x.shape
    exact, part = [data["loss"]], "evaluation"
    share = mask / mask.sum(1, keepdims=True)

    def in_batches(batch, outputs, loss, transfer):
        """Batches [steps, batch, width], that are there beforehand, as ours are."""
        cut = [[transfer(np.ascontiguousarray(np.swapaxes(v[i:i + batch], 0, 1))) for v in (x, target, share[..., None])] for i in range(0, count, batch)]

        def run():
            return np.array([sum(loss(outputs(u), y, w) for u, y, w in cut) / count])

        return run

    def numpy_loss(y, target, share):
        return float((share * 0.5 * (y - target) ** 2).sum())

    if torch is not None:
        module, head = torch_layer(weights, width), torch.nn.Linear(weights["head"].shape[1], len(weights["head"]))
        with torch.no_grad():
            head.weight.copy_(torch.from_numpy(weights["head"]))
            head.bias.copy_(torch.from_numpy(weights["head_bias"]))
    for batch in (1000, 100):
        if torch is not None:
            plain = in_batches(batch, lambda u: head(module(u)[0]), lambda y, t, s: float((s * 0.5 * (y - t) ** 2).sum()), torch.from_numpy)

            def run(plain=plain):
                with torch.no_grad():
                    return plain()

            peer(part, f"torch nn.LSTM and head, batches of {batch}", torch.__version__, run, exact)
        model = lstm_model(steps, batch, *(weights[k] for k in names), (weights["head"], weights["head_bias"]))
        for name, version, outputs in on_runtimes(model):
            peer(part, f"{name}, batches of {batch}", version, in_batches(batch, outputs, numpy_loss, lambda v: v), exact)
