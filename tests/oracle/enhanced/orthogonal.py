# SPDX-License-Identifier: GPL-3.0-or-later
"""expRNN, nnRNN and the unitary RNN as plain step loops, checked against rounds of all steps at once (harness.settle) with the recurrent matrix
made in another way.

expRNN  Lezcano-Casado and Martinez-Rubio 2019; state-spaces/s4, src/models/nn/exprnn, a copy of the authors': rows times B = base e^A.
        e^A is made of the eigenvectors of the Hermitian matrix iA, and once more by mpmath: PyTorch's matrix_exp scales by the size of what
        its gradient comes from, and loses digits where that is large.
nnRNN   Kerg et al. 2019; KyleGoyette/nnRNN, RNN_Cell.py: rows times P (T*M + D) P^T, the mask M above the diagonal.
uRNN    Arjovsky, Shah and Bengio 2016; amarshah/complex_RNN, models.py: factor after factor by FFTs, once more as a product of matrices of
        complex numbers.
"""
import mpmath
import numpy as np
import torch

from harness import draw, make, settle, under


def modrelu(z, b):
    return torch.sign(z) * torch.relu(torch.abs(z) + b)


def acting(name, b):
    return {"modrelu": lambda z: modrelu(z, b), "tanh": torch.tanh, "relu": torch.relu, "identity": lambda z: z}[name]


def numpy_acting(name, b):
    return {"modrelu": lambda z: np.where(z >= 0.0, 1.0, -1.0) * np.maximum(np.abs(z) + b, 0.0), "tanh": np.tanh,
            "relu": lambda z: np.maximum(z, 0.0), "identity": lambda z: z}[name]


def exponential(P):
    A = torch.triu(P, 1)
    angles, vectors = torch.linalg.eigh(1j * (A - A.T))
    return torch.real(vectors * torch.exp(-1j * angles) @ vectors.conj().T)


def numpy_exponential(P):
    mpmath.mp.dps = 30
    A = np.triu(P, 1) - np.triu(P, 1).T
    return np.array(mpmath.expm(mpmath.matrix(A.tolist())).tolist(), dtype=np.float64)


def cayley(P):
    A = torch.triu(P, 1) - torch.triu(P, 1).T
    return torch.linalg.solve(torch.eye(len(P)) + A, torch.eye(len(P)) - A)


def numpy_cayley(P):
    """By the eigenvectors of the Hermitian matrix iA."""
    angles, vectors = np.linalg.eigh(1j * (np.triu(P, 1) - np.triu(P, 1).T))
    return np.real(vectors * ((1 + 1j * angles) / (1 - 1j * angles)) @ vectors.conj().T)


# ------------------------------------------------------------------------------------------------------- expRNN, nnRNN

def exp_matrix(settings, p):
    B = (cayley if settings.get("map") == "cayley" else exponential)(p["recurrent_kernel.A"])
    return p["recurrent_kernel.base"] @ B if settings.get("base", True) else B


def numpy_exp_matrix(settings, p):
    B = (numpy_cayley if settings.get("map") == "cayley" else numpy_exponential)(p["recurrent_kernel.A"])
    return p["recurrent_kernel.base"] @ B if settings.get("base", True) else B


def nn_matrix(settings, p):
    H, P = settings["width"], p["P"] if settings.get("basis") == "matrix" else exponential(p["log_P"])
    D = torch.zeros(H, H)
    for j in range(H // 2):
        c, s = p["alpha"][j] * torch.cos(p["theta"][j]), p["alpha"][j] * torch.sin(p["theta"][j])
        block = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])
        D = D + torch.nn.functional.pad(block, (2 * j, H - 2 * j - 2, 2 * j, H - 2 * j - 2))
    return P @ (p["UppT"] * torch.triu(torch.ones(H, H), 1) + D) @ P.T


def numpy_nn_matrix(settings, p):
    H, P = settings["width"], p["P"] if settings.get("basis") == "matrix" else numpy_exponential(p["log_P"])
    inner = np.zeros((H, H))
    for i in range(H):
        for j in range(i + 1, H):
            inner[i, j] = p["UppT"][i, j]
    turns = p["alpha"] * np.exp(1j * p["theta"])
    for j, turn in enumerate(turns):
        inner[2 * j:2 * j + 2, 2 * j:2 * j + 2] += [[turn.real, -turn.imag], [turn.imag, turn.real]]
    return P @ inner @ P.T


def rows_times(record, settings, parameters, x, weight, matrix_of):
    """h_t = f(V x_t + h_{t-1} R), rows."""
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        R, f = matrix_of(settings, p), acting(settings.get("activation", "modrelu"), p.get("nonlinearity.b"))
        h, outputs = torch.zeros(settings["width"]), []
        for u in x:
            drive = p[weight] @ u + p.get("U.bias", 0.0)

            def step(h):
                return (f(drive + h @ R),)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_rows_times(settings, values, x, weight, matrix_of):
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        R, f = matrix_of(settings, p), numpy_acting(settings.get("activation", "modrelu"), p.get("nonlinearity.b"))
        drive = x @ p[weight].T + p.get("U.bias", np.zeros(1))
        x = settle(lambda h, drive=drive, R=R, f=f: (f(drive + h @ R),), len(x), (settings["width"],))[0]
    return x


# ---------------------------------------------------------------------------------------------------------------- uRNN

def permutation(settings):
    return np.random.RandomState(settings.get("permutation_seed", 1234)).permutation(settings["width"])


def unitary(record, settings, parameters, x):
    H, order = settings["width"], torch.tensor(permutation(settings))

    def complex_of(v):
        return torch.complex(v[:H], v[H:])

    def reflected(z, v):
        return z - 2 * (z * v).sum() * v.conj() / (v.abs() ** 2).sum()

    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        turn = torch.exp(1j * p["theta"])
        v1, v2 = complex_of(p["reflection"][0]), complex_of(p["reflection"][1])
        h, outputs = torch.zeros(2 * H), []
        for t, u in enumerate(x):
            before = p["h_0"][0] if t == 0 else 0.0

            def step(h):
                z = torch.fft.fft(complex_of(h + before) * turn[0], norm="ortho")
                z = reflected(z, v1)[order]
                z = torch.fft.ifft(z * turn[1], norm="ortho")
                z = reflected(z, v2) * turn[2]
                z = torch.cat([z.real, z.imag]) + u @ p["V"]
                if settings.get("activation", "modrelu") == "identity":
                    return (z,)
                modulus = torch.sqrt(z[:H] ** 2 + z[H:] ** 2)
                scale = torch.relu(modulus + p["hidden_bias"]) / (modulus + 1e-5)
                return (z * torch.cat([scale, scale]),)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_unitary(settings, values, x):
    H = settings["width"]
    k = np.arange(H)
    F = np.exp(-2j * np.pi * np.outer(k, k) / H) / np.sqrt(H)
    shuffle = np.eye(H)[permutation(settings)]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        D = [np.diag(np.exp(1j * angle)) for angle in p["theta"]]
        v = [row[:H] + 1j * row[H:] for row in p["reflection"]]
        R = [np.eye(H) - 2 * np.outer(w.conj(), w) / np.vdot(w, w).real for w in v]
        W = D[2] @ R[1] @ F.conj().T @ D[1] @ shuffle @ R[0] @ F @ D[0]
        drive = x @ (p["V"][:, :H] + 1j * p["V"][:, H:])
        start = np.zeros((len(x), H), dtype=complex)
        start[0] = p["h_0"][0, :H] + 1j * p["h_0"][0, H:]

        def update(h):
            z = (h[:, :H] + 1j * h[:, H:] + start) @ W.T + drive
            if settings.get("activation", "modrelu") == "modrelu":
                z = z * np.maximum(np.abs(z) + p["hidden_bias"], 0.0) / (np.abs(z) + 1e-5)
            return (np.concatenate([z.real, z.imag], axis=1),)

        x = settle(update, len(x), (2 * H,))[0]
    return x


# -------------------------------------------------------------------------------------------------------------- cases

def case(name, architecture, settings, T, d_in, loss, seed, shapes_of, first, second, width):
    shapes, inputs = {}, d_in
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/{key}": shape for key, shape in shapes_of(inputs).items()}
        inputs = width
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, architecture, settings, loss, f"step loop from the equations of {architecture}, checked against rounds of all steps at once", draw(seed, shapes), x,
         first, second=second, seed=seed)


def exp_case(name, settings, T, d_in, loss, seed):
    H = settings["width"]

    def shapes(inputs):
        made = {"input_kernel.weight": ((H, inputs), 0.7), "recurrent_kernel.A": ((H, H), 0.9)}
        if settings.get("base", True):
            made["recurrent_kernel.base"] = ((H, H), 0.35)
        if settings.get("activation", "modrelu") == "modrelu":
            made["nonlinearity.b"] = ((H,), 0.2)
        return made

    case(name, "exp-rnn", settings, T, d_in, loss, seed, shapes, lambda record, p, v: rows_times(record, settings, p, v, "input_kernel.weight", exp_matrix),
         lambda p, v: numpy_rows_times(settings, p, v, "input_kernel.weight", numpy_exp_matrix), H)


def nn_case(name, settings, T, d_in, loss, seed):
    H = settings["width"]

    def shapes(inputs):
        made = {"U.weight": ((H, inputs), 0.7)}
        if settings.get("bias", False):
            made["U.bias"] = ((H,), 0.4)
        made |= {"P" if settings.get("basis") == "matrix" else "log_P": ((H, H), 0.5), "UppT": ((H, H), 0.3), "theta": ((H // 2,), 2.0), "alpha": ((H // 2,), 0.1, 0.9)}
        if settings.get("activation", "modrelu") == "modrelu":
            made["nonlinearity.b"] = ((H,), 0.2)
        return made

    case(name, "nnrnn", settings, T, d_in, loss, seed, shapes, lambda record, p, v: rows_times(record, settings, p, v, "U.weight", nn_matrix),
         lambda p, v: numpy_rows_times(settings, p, v, "U.weight", numpy_nn_matrix), H)


def unitary_case(name, settings, T, d_in, loss, seed):
    H = settings["width"]

    def shapes(inputs):
        made = {"V": ((inputs, 2 * H), 0.6)}
        if settings.get("activation", "modrelu") == "modrelu":
            made["hidden_bias"] = ((H,), 0.2)
        return made | {"reflection": ((2, 2 * H), 0.7), "theta": ((3, H), 2.0), "h_0": ((1, 2 * H), 0.5)}

    case(name, "unitary-rnn", settings, T, d_in, loss, seed, shapes, lambda record, p, v: unitary(record, settings, p, v), lambda p, v: numpy_unitary(settings, p, v), 2 * H)


def main():
    exp_case("exp-rnn", {"width": 6, "layers": 1}, 20, 3, "last", 641)
    exp_case("exp-rnn-linear", {"width": 5, "layers": 2, "activation": "identity", "base": False}, 16, 2, "mean", 642)
    exp_case("exp-rnn-tanh", {"width": 4, "layers": 1, "activation": "tanh", "base": False}, 14, 2, "last", 643)
    exp_case("exp-rnn-relu", {"width": 5, "layers": 1, "activation": "relu", "base": False}, 14, 2, "mean", 644)
    exp_case("exp-rnn-cayley", {"width": 5, "layers": 1, "map": "cayley"}, 16, 3, "last", 645)
    nn_case("nnrnn", {"width": 6, "layers": 1}, 20, 3, "last", 651)
    nn_case("nnrnn-linear", {"width": 4, "layers": 2, "activation": "identity", "bias": True}, 16, 2, "mean", 652)
    nn_case("nnrnn-tanh", {"width": 4, "layers": 1, "activation": "tanh", "bias": True, "basis": "matrix"}, 14, 2, "last", 653)
    nn_case("nnrnn-relu", {"width": 4, "layers": 1, "activation": "relu"}, 14, 2, "mean", 654)
    unitary_case("unitary-rnn", {"width": 5, "layers": 1}, 18, 3, "last", 661)
    unitary_case("unitary-rnn-layers", {"width": 4, "layers": 2, "permutation_seed": 3}, 14, 2, "mean", 662)
    unitary_case("unitary-rnn-linear", {"width": 6, "layers": 1, "activation": "identity"}, 14, 2, "mean", 663)


if __name__ == "__main__":
    main()
