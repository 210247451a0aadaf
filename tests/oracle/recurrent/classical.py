# SPDX-License-Identifier: GPL-3.0-or-later
"""Elman, LSTM and GRU: hand-written cells, checked against torch.nn.RNN, torch.nn.LSTM and torch.nn.GRU with the same weights.

The PyTorch layers show outputs only; the loops below also show the states, and let each of them be perturbed.
"""
import numpy as np
import torch

from harness import draw, loss_of, make, settle, under


def affine(p, x, h):
    """Input and recurrent part of the pre-activations, apart because the GRU treats them differently."""
    inner, recurrent = p["weight_ih"] @ x, p["weight_hh"] @ h
    if "bias_ih" in p:
        inner, recurrent = inner + p["bias_ih"], recurrent + p["bias_hh"]
    return inner, recurrent


ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "logistic": torch.sigmoid, "identity": lambda a: a}


def elman_cell(settings, p, x, h):
    inner, recurrent = affine(p, x, h)
    return (ACTIVATIONS[settings["activation"]](inner + recurrent),)


def lstm_cell(settings, p, x, h, c):
    inner, recurrent = affine(p, x, h)
    i, f, g, o = torch.chunk(inner + recurrent, 4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    if "weight_hr" in p:
        h = p["weight_hr"] @ h
    return h, c


def gru_cell(settings, p, x, h):
    inner, recurrent = affine(p, x, h)
    inner_r, inner_z, inner_n = torch.chunk(inner, 3)
    recurrent_r, recurrent_z, recurrent_n = torch.chunk(recurrent, 3)
    r, z = torch.sigmoid(inner_r + recurrent_r), torch.sigmoid(inner_z + recurrent_z)
    if settings.get("reset", "after") == "after":
        n = torch.tanh(inner_n + r * recurrent_n)
    else:  # Cho et al. 2014: the reset gate meets the state before the matrix does
        weight = torch.chunk(p["weight_hh"], 3)[2]
        bias = torch.chunk(p["bias_hh"], 3)[2] if "bias_hh" in p else 0.0
        n = torch.tanh(inner_n + weight @ (r * h) + bias)
    return ((1 - z) * n + z * h,)


CELLS = {"elman": (elman_cell, ["h"], 1), "lstm": (lstm_cell, ["h", "c"], 4), "gru": (gru_cell, ["h"], 3)}


def forward(architecture, settings):
    cell, names, _ = CELLS[architecture]

    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            first = p["weight_hh"].shape[1]  # h, narrower than c behind a projection
            states = [torch.zeros(first), torch.zeros(settings["width"])][: len(names)]
            outputs = []
            for u in x:
                states = record.step(layer, lambda *s, u=u: cell(settings, p, u, *s), *states)
                states = [record.state(layer, name, value) for name, value in zip(names, states)]
                outputs.append(states[0])
            x = read_out(settings, ACTIVATIONS, p, torch.stack(outputs), x)
        return x

    return run


def read_out(settings, activations, p, h, u):
    """An Elman network's g(C h + d + D u), of rows; without outputs of its own C is the identity."""
    if "weight_hy" in p:
        h = h @ p["weight_hy"].T
    if "bias_y" in p:
        h = h + p["bias_y"]
    if "weight_xy" in p:
        h = h + u @ p["weight_xy"].T
    return activations[settings.get("output_activation", "identity")](h)


def pytorch_layer(architecture, settings):
    """PyTorch's own layer with the same weights, and autograd through it."""

    def run(values, x, loss):
        keywords = {"num_layers": settings["layers"], "bias": settings.get("bias", True)}
        if architecture == "elman":
            layer = torch.nn.RNN(x.shape[1], settings["width"], nonlinearity=settings["activation"], **keywords)
        elif architecture == "lstm":
            layer = torch.nn.LSTM(x.shape[1], settings["width"], proj_size=settings.get("projection", 0), **keywords)
        else:
            layer = torch.nn.GRU(x.shape[1], settings["width"], **keywords)
        theirs = {"{1}_l{0}".format(*key.split("/")): torch.tensor(value) for key, value in values.items()}
        layer.load_state_dict(theirs, strict=True)
        inputs = torch.tensor(x, requires_grad=True)
        output, _ = layer(inputs)
        loss_of(output, loss).backward()
        gradients = {"{1}/{0}".format(*key.split("_l")): value.grad.numpy() for key, value in layer.named_parameters()}
        return output.detach().numpy(), {"input": inputs.grad.numpy(), **gradients}

    return run


def logistic(a):
    return 1.0 / (1.0 + np.exp(-a))


def numpy_elman_identity(settings):
    """A linear recurrence written out: h_t = sum_k W^(t-k) (U u_k + b)."""

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            drive = x @ p["weight_ih"].T + p.get("bias_ih", 0.0) + p.get("bias_hh", 0.0)
            powers = [np.linalg.matrix_power(p["weight_hh"], k) for k in range(len(x))]
            x = np.array([sum(powers[t - k] @ drive[k] for k in range(t + 1)) for t in range(len(x))])
        return x

    return run


def numpy_elman_read(settings):
    """All steps at once from guesses of the states before them, and what is read out of them."""
    own = {"tanh": np.tanh, "logistic": logistic, "identity": lambda a: a}

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            drive = x @ p["weight_ih"].T + p.get("bias_ih", 0.0) + p.get("bias_hh", 0.0)
            (h,) = settle(lambda before: (own[settings["activation"]](drive + before @ p["weight_hh"].T),), len(x), (settings["width"],))
            x = read_out(settings, own, p, h, x)
        return x

    return run


def numpy_gru_before(settings):
    """Row by row, with the three blocks of the weights taken apart first."""

    def run(values, x):
        H = settings["width"]
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            (Ur, Uz, Un), (Wr, Wz, Wn) = p["weight_ih"].reshape(3, H, -1), p["weight_hh"].reshape(3, H, H)
            br, bz, bn = (p["bias_ih"] + p["bias_hh"]).reshape(3, H)  # with the reset first the two biases only add
            h, rows = np.zeros(H), []
            for u in x:
                r, z = logistic(Ur @ u + Wr @ h + br), logistic(Uz @ u + Wz @ h + bz)
                candidate = np.tanh(Un @ u + Wn @ (r * h) + bn)
                h = candidate + z * (h - candidate)
                rows.append(h)
            x = np.array(rows)
        return x

    return run


def case(name, architecture, settings, T, d_in, loss, seed, bias_centre=0.0, recurrent=1.0, second=None):
    H, P, gates = settings["width"], settings.get("projection", 0), CELLS[architecture][2]
    shapes = {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else (P or settings.get("outputs", 0) or H)
        shapes[f"{layer}/weight_ih"] = ((gates * H, inner), 0.8 / np.sqrt(inner))
        shapes[f"{layer}/weight_hh"] = ((gates * H, P or H), recurrent / np.sqrt(P or H))
        if settings.get("bias", True):
            shapes[f"{layer}/bias_ih"] = ((gates * H,), 0.3, bias_centre)
            shapes[f"{layer}/bias_hh"] = ((gates * H,), 0.3)
        if P:
            shapes[f"{layer}/weight_hr"] = ((P, H), 1.0 / np.sqrt(H))
        if M := settings.get("outputs", 0):
            shapes[f"{layer}/weight_hy"] = ((M, H), 1.2 / np.sqrt(H))
            if settings.get("bias", True):
                shapes[f"{layer}/bias_y"] = ((M,), 0.3)
        if settings.get("feedthrough", False):
            shapes[f"{layer}/weight_xy"] = ((M or H, inner), 0.8 / np.sqrt(inner))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    version = torch.__version__.split("+")[0]
    kind = {"elman": "RNN", "lstm": "LSTM", "gru": "GRU"}[architecture]
    source = f"own NumPy form beside a torch {version} loop" if second else f"torch.nn.{kind} {version}"
    make(name, architecture, settings, loss, source, draw(seed, shapes), x, forward(architecture, settings), second=second,
         builtin=None if second else pytorch_layer(architecture, settings), seed=seed)


def main():
    case("elman-tanh", "elman", {"width": 6, "layers": 1, "activation": "tanh"}, 20, 3, "last", 11, recurrent=1.2)
    case("elman-relu", "elman", {"width": 8, "layers": 1, "activation": "relu"}, 14, 8, "mean", 12, bias_centre=0.8, recurrent=0.7)
    case("elman-layers", "elman", {"width": 5, "layers": 2, "activation": "tanh"}, 16, 5, "mean", 13)
    case("elman-no-bias", "elman", {"width": 6, "layers": 1, "activation": "tanh", "bias": False}, 16, 2, "last", 14, recurrent=1.2)
    identity = {"width": 6, "layers": 1, "activation": "identity"}
    case("elman-identity", "elman", identity, 18, 4, "last", 15, recurrent=0.8, second=numpy_elman_identity(identity))
    read = {"width": 6, "layers": 2, "activation": "tanh", "outputs": 3, "feedthrough": True, "output_activation": "logistic"}
    case("elman-read-out", "elman", read, 14, 4, "mean", 16, second=numpy_elman_read(read))
    through = {"width": 5, "layers": 1, "activation": "identity", "feedthrough": True, "output_activation": "tanh"}
    case("elman-feedthrough", "elman", through, 16, 3, "last", 17, recurrent=0.8, second=numpy_elman_read(through))
    case("lstm", "lstm", {"width": 5, "layers": 1}, 20, 3, "last", 21)
    case("lstm-layers", "lstm", {"width": 5, "layers": 2}, 14, 5, "mean", 22, recurrent=1.5)
    case("lstm-projection", "lstm", {"width": 6, "layers": 2, "projection": 4}, 12, 3, "mean", 23, recurrent=1.5)
    case("lstm-no-bias", "lstm", {"width": 4, "layers": 1, "bias": False}, 16, 4, "last", 24)
    case("gru", "gru", {"width": 6, "layers": 1}, 20, 3, "last", 31)
    case("gru-layers", "gru", {"width": 5, "layers": 2}, 14, 5, "mean", 32, recurrent=1.5)
    case("gru-no-bias", "gru", {"width": 4, "layers": 1, "bias": False}, 16, 4, "mean", 34, recurrent=1.5)
    before = {"width": 5, "layers": 2, "reset": "before"}
    case("gru-reset-before", "gru", before, 16, 4, "mean", 33, recurrent=1.5, second=numpy_gru_before(before))


if __name__ == "__main__":
    main()
