# SPDX-License-Identifier: GPL-3.0-or-later
"""AntisymmetricRNN, LipschitzRNN, NoisyRNN and the incremental RNN as plain step loops, checked against rounds of all steps at once
(harness.settle), which build the matrices entry by entry.

AntisymmetricRNN  Chang et al. 2019; torchrecurrent, cells/antisymmetricrnn_cell.py: the gate comes first, bias_hh is the candidate's alone.
LipschitzRNN      Erichson et al. 2021; erichson/LipschitzRNN, models.py: rows times matrices; midpoint and rk4 (the 3/8 rule) are torchdiffeq's.
NoisyRNN          Lim et al. 2021; erichson/NoisyRNN, models.py, solvers base and noisy in the mode train. The noise is that of the engine's
                  generator (engine/array/rng.h), written here once more.
incremental RNN   Kag, Zhang and Saligrama 2020; no code of the authors' is public.
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under
from state_space import logistic

WORD = 2**64 - 1


class Rng:
    """xoshiro256**, seeded by splitmix64, with named streams."""

    def __init__(self, seed):
        self.seed, self.state, self.spare = seed & WORD, [], None
        for _ in range(4):
            seed, word = self.splitmix(seed)
            self.state.append(word)

    @staticmethod
    def splitmix(state):
        state = z = (state + 0x9E3779B97F4A7C15) & WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return state, z ^ (z >> 31)

    def bits(self):
        def turn(x, k):
            return ((x << k) | (x >> (64 - k))) & WORD

        s = self.state
        result, shifted = (turn(s[1] * 5 & WORD, 7) * 9) & WORD, (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = turn(s[3], 45)
        return result

    def uniform(self):
        return (self.bits() >> 11) * 2.0**-53

    def normal(self):
        if self.spare is not None:
            value, self.spare = self.spare, None
            return value
        while True:
            u, v = 2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0
            s = u * u + v * v
            if 0.0 < s < 1.0:
                factor = math.sqrt(-2.0 * math.log(s) / s)
                self.spare = v * factor
                return u * factor

    def split(self, name):
        mixed = 0xCBF29CE484222325
        for byte in name.encode():
            mixed = ((mixed ^ byte) * 0x100000001B3) & WORD
        mixed ^= self.splitmix(self.seed)[1]
        return Rng(self.splitmix(mixed)[1])


def noise(seed, layer, stream, T, n, kind):
    rows = []
    for t in range(T):
        rng = Rng(seed).split(f"{layer}/{stream}").split(str(t))
        rows.append([rng.normal() if kind == "normal" else rng.uniform() for _ in range(n)])
    return np.array(rows)


# --------------------------------------------------------------------------------------------------- AntisymmetricRNN

def antisymmetric(record, settings, parameters, x):
    epsilon, gamma, H = settings["epsilon"], settings["gamma"], settings["width"]
    f = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda z: z}[settings.get("activation", "tanh")]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        h, outputs = torch.zeros(H), []
        for u in x:
            drive = p["weight_ih"] @ u + p.get("bias_ih", 0.0)

            def step(h):
                turned = (p["weight_hh"] - p["weight_hh"].T - gamma * torch.eye(H)) @ h
                if not settings.get("gated", False):
                    return (h + epsilon * f(drive + turned + p.get("bias_hh", 0.0)),)
                gate = torch.sigmoid(drive[:H] + turned)
                return (h + epsilon * gate * f(drive[H:] + turned + p.get("bias_hh", 0.0)),)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_antisymmetric(settings, values, x):
    epsilon, gamma, H = settings["epsilon"], settings["gamma"], settings["width"]
    f = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0.0), "identity": lambda z: z}[settings.get("activation", "tanh")]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        drive = x @ p["weight_ih"].T + p.get("bias_ih", np.zeros(1))

        def update(h):
            turned = np.einsum("tj,ij->ti", h, p["weight_hh"]) - np.einsum("tj,ji->ti", h, p["weight_hh"]) - gamma * h
            change = f(drive[:, -H:] + turned + p.get("bias_hh", np.zeros(H)))
            if settings.get("gated", False):
                change = change * logistic(drive[:, :H] + turned)
            return (h + epsilon * change,)

        x = settle(update, len(x), (H,))[0]
    return x


# ----------------------------------------------------------------------------------------------- LipschitzRNN, NoisyRNN

def mixture(B, beta, gamma):
    return beta * (B - B.T) + (1 - beta) * (B + B.T) - gamma * torch.eye(len(B))


def lipschitz(record, settings, parameters, x):
    s = {"alpha": 1.0, "beta": 0.8, "gamma": 0.01, "beta_w": 0.8, "gamma_w": 0.01, "solver": "euler", "gated": False} | settings
    dt = s["epsilon"]
    for layer in range(s["layers"]):
        p = under(parameters, f"{layer}/")
        A, W = mixture(p["B"], s["beta"], s["gamma"]), mixture(p["C"], s["beta_w"], s["gamma_w"])
        h, outputs = torch.zeros(s["width"]), []
        for u in x:
            z = p["E.weight"] @ u + p["E.bias"]

            def slope(h):
                d = s["alpha"] * (h @ A) + torch.tanh(h @ W + z)
                return d * torch.sigmoid(h @ W + p["E_gate.weight"] @ u + p["E_gate.bias"]) if s["gated"] else d

            def step(h):
                k1 = slope(h)
                if s["solver"] == "euler":
                    return (h + dt * k1,)
                if s["solver"] == "midpoint":
                    return (h + dt * slope(h + k1 * dt / 2),)
                k2 = slope(h + dt * k1 / 3)
                k3 = slope(h + dt * (k2 - k1 / 3))
                k4 = slope(h + dt * (k1 - k2 + k3))
                return (h + (k1 + 3 * (k2 + k3) + k4) * dt / 8,)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def columns(B, beta, gamma):
    """The transpose of the mixture, entry by entry: of rows it is what acts on columns."""
    n = len(B)
    made = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            made[j, i] = B[i, j] + (1 - 2 * beta) * B[j, i] - gamma * (i == j)
    return made


def numpy_lipschitz(settings, values, x):
    """Runge-Kutta by its tableau."""
    s = {"alpha": 1.0, "beta": 0.8, "gamma": 0.01, "beta_w": 0.8, "gamma_w": 0.01, "solver": "euler", "gated": False} | settings
    tableau = {"euler": ([[]], [1.0]), "midpoint": ([[], [0.5]], [0.0, 1.0]),
               "rk4": ([[], [1 / 3], [-1 / 3, 1.0], [1.0, -1.0, 1.0]], [1 / 8, 3 / 8, 3 / 8, 1 / 8])}[s["solver"]]
    for layer in range(s["layers"]):
        p = under(values, f"{layer}/")
        A, W = columns(p["B"], s["beta"], s["gamma"]), columns(p["C"], s["beta_w"], s["gamma_w"])
        z = x @ p["E.weight"].T + p["E.bias"]
        g = x @ p["E_gate.weight"].T + p["E_gate.bias"] if s["gated"] else None

        def slope(h):
            Wh = np.einsum("ij,tj->ti", W, h)
            d = s["alpha"] * np.einsum("ij,tj->ti", A, h) + np.tanh(Wh + z)
            return d * logistic(Wh + g) if s["gated"] else d

        def update(h):
            stages = []
            for row in tableau[0]:
                stages.append(slope(h + s["epsilon"] * sum((c * k for c, k in zip(row, stages)), np.zeros_like(h))))
            return (h + s["epsilon"] * sum(c * k for c, k in zip(tableau[1], stages)),)

        x = settle(update, len(x), (s["width"],))[0]
    return x


NOISY = {"solver": "noisy", "add_noise": 0.02, "mult_noise": 0.02, "noise_seed": 1, "alpha": 1.0, "beta": 0.8, "gamma_a": 0.01, "gamma_w": 0.01}


def noisy(record, settings, parameters, x):
    s = NOISY | settings
    for layer in range(s["layers"]):
        p = under(parameters, f"{layer}/")
        A, W = mixture(p["B"], s["beta"], s["gamma_a"]), mixture(p["C"], s["beta"], s["gamma_w"])
        add = torch.tensor(s["add_noise"] * noise(s["noise_seed"], layer, "add", len(x), s["width"], "normal"))
        mult = torch.tensor(s["mult_noise"] * noise(s["noise_seed"], layer, "mult", len(x), s["width"], "uniform") + (1 - s["mult_noise"]))
        h, outputs = torch.zeros(s["width"]), []
        for t, u in enumerate(x):
            z = p["E.weight"] @ u + p["E.bias"]

            def step(h):
                change = s["alpha"] * (h @ A) + torch.tanh(h @ W + z)
                if s["solver"] == "base":
                    return (h + s["epsilon"] * change,)
                return (h + p["d"] * mult[t] * change + add[t],)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_noisy(settings, values, x):
    s = NOISY | settings
    for layer in range(s["layers"]):
        p = under(values, f"{layer}/")
        A, W = columns(p["B"], s["beta"], s["gamma_a"]), columns(p["C"], s["beta"], s["gamma_w"])
        z = x @ p["E.weight"].T + p["E.bias"]
        if s["solver"] == "base":
            lengths, add = s["epsilon"], 0.0
        else:
            add = s["add_noise"] * noise(s["noise_seed"], layer, "add", len(x), s["width"], "normal")
            lengths = p["d"] * (1.0 - s["mult_noise"] * (1.0 - noise(s["noise_seed"], layer, "mult", len(x), s["width"], "uniform")))

        def update(h):
            return (h + lengths * (s["alpha"] * np.einsum("ij,tj->ti", A, h) + np.tanh(np.einsum("ij,tj->ti", W, h) + z)) + add,)

        x = settle(update, len(x), (s["width"],))[0]
    return x


# ---------------------------------------------------------------------------------------------------- incremental RNN

def incremental(record, settings, parameters, x):
    f = {"relu": torch.relu, "tanh": torch.tanh}[settings.get("activation", "relu")]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        h, outputs = torch.zeros(settings["width"]), []
        for u in x:
            def step(h):
                g = torch.zeros_like(h)
                for k in range(settings["inner_steps"]):
                    g = g + p["eta"][k] * (f(p["U"] @ (g + h) + p["W"] @ u + p.get("b", 0.0)) - p["alpha"] * (g + h))
                return (g,)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_incremental(settings, values, x):
    """In the coordinate q = g + h, which begins at h."""
    f = {"relu": lambda z: np.maximum(z, 0.0), "tanh": np.tanh}[settings.get("activation", "relu")]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        drive = x @ p["W"].T + p.get("b", np.zeros(1))

        def update(h):
            q = h
            for eta in p["eta"]:
                q = (1.0 - eta * p["alpha"]) * q + eta * f(q @ p["U"].T + drive)
            return (q - h,)

        x = settle(update, len(x), (settings["width"],))[0]
    return x


# -------------------------------------------------------------------------------------------------------------- cases

def case(name, architecture, settings, T, d_in, loss, seed, shapes_of, first, second):
    shapes, inputs = {}, d_in
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/{key}": shape for key, shape in shapes_of(inputs).items()}
        inputs = settings["width"]
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, architecture, settings, loss, f"step loop from the equations of {architecture}, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: first(record, settings, p, v), second=lambda p, v: second(settings, p, v), seed=seed)


def antisymmetric_case(name, settings, T, d_in, loss, seed):
    H = settings["width"]
    rows = 2 * H if settings.get("gated", False) else H

    def shapes(inputs):
        made = {"weight_ih": ((rows, inputs), 0.7), "weight_hh": ((H, H), 0.6)}
        if settings.get("bias", True):
            made["bias_ih"] = ((rows,), 0.4)
        if settings.get("recurrent_bias", True):
            made["bias_hh"] = ((H,), 0.4)
        return made

    case(name, "antisymmetric-rnn", settings, T, d_in, loss, seed, shapes, antisymmetric, numpy_antisymmetric)


def lipschitz_case(name, settings, T, d_in, loss, seed):
    N = settings["width"]

    def shapes(inputs):
        made = {"E.weight": ((N, inputs), 0.7), "E.bias": ((N,), 0.4)}
        if settings.get("gated", False):
            made |= {"E_gate.weight": ((N, inputs), 0.7), "E_gate.bias": ((N,), 0.4)}
        return made | {"B": ((N, N), 0.4), "C": ((N, N), 0.5)}

    case(name, "lipschitz-rnn", settings, T, d_in, loss, seed, shapes, lipschitz, numpy_lipschitz)


def noisy_case(name, settings, T, d_in, loss, seed):
    N = settings["width"]
    case(name, "noisy-rnn", settings, T, d_in, loss, seed,
         lambda inputs: {"E.weight": ((N, inputs), 0.7), "E.bias": ((N,), 0.4), "C": ((N, N), 0.5), "B": ((N, N), 0.4), "d": ((N,), 0.05, 0.2)}, noisy, numpy_noisy)


def incremental_case(name, settings, T, d_in, loss, seed):
    H, K = settings["width"], settings["inner_steps"]

    def shapes(inputs):
        made = {"W": ((H, inputs), 0.7), "U": ((H, H), 0.4)}
        if settings.get("bias", True):
            made["b"] = ((H,), 0.4)
        return made | {"eta": ((K,), 0.1, 0.4), "alpha": ((1,), 0.1, 1.2)}

    case(name, "incremental-rnn", settings, T, d_in, loss, seed, shapes, incremental, numpy_incremental)


def main():
    antisymmetric_case("antisymmetric-rnn", {"width": 5, "layers": 1, "epsilon": 0.3, "gamma": 0.2}, 24, 3, "last", 601)
    antisymmetric_case("antisymmetric-rnn-gated", {"width": 4, "layers": 2, "epsilon": 0.4, "gamma": 0.1, "gated": True}, 18, 3, "mean", 602)
    antisymmetric_case("antisymmetric-rnn-relu", {"width": 5, "layers": 1, "epsilon": 0.2, "gamma": 0.0, "activation": "relu", "bias": False}, 18, 2, "mean", 603)
    antisymmetric_case("antisymmetric-rnn-identity", {"width": 4, "layers": 1, "epsilon": 0.25, "gamma": 0.3, "activation": "identity", "recurrent_bias": False}, 18, 2, "last", 604)
    antisymmetric_case("antisymmetric-rnn-gated-plain", {"width": 4, "layers": 1, "epsilon": 0.3, "gamma": 0.1, "gated": True, "bias": False, "recurrent_bias": False}, 14, 2, "last", 605)
    lipschitz_case("lipschitz-rnn", {"width": 5, "layers": 1, "epsilon": 0.2}, 24, 3, "last", 611)
    lipschitz_case("lipschitz-rnn-midpoint", {"width": 4, "layers": 2, "epsilon": 0.3, "solver": "midpoint", "alpha": 0.7, "beta": 0.6, "gamma": 0.2, "beta_w": 0.9, "gamma_w": 0.1}, 18, 2, "mean", 612)
    lipschitz_case("lipschitz-rnn-rk4", {"width": 5, "layers": 1, "epsilon": 0.4, "solver": "rk4", "beta": 1.0, "gamma": 0.3}, 16, 3, "mean", 613)
    lipschitz_case("lipschitz-rnn-gated", {"width": 4, "layers": 2, "epsilon": 0.25, "gated": True, "alpha": 1.3}, 18, 2, "last", 614)
    lipschitz_case("lipschitz-rnn-gated-rk4", {"width": 4, "layers": 1, "epsilon": 0.3, "gated": True, "solver": "rk4"}, 12, 2, "last", 615)
    noisy_case("noisy-rnn", {"width": 5, "layers": 1, "epsilon": 0.1, "add_noise": 0.3, "mult_noise": 0.4, "noise_seed": 7}, 24, 3, "last", 621)
    noisy_case("noisy-rnn-layers", {"width": 4, "layers": 2, "epsilon": 0.1, "add_noise": 0.2, "mult_noise": 0.0, "alpha": 0.8, "beta": 0.7, "gamma_a": 0.2, "gamma_w": 0.1}, 16, 2, "mean", 622)
    noisy_case("noisy-rnn-multiplicative", {"width": 4, "layers": 1, "epsilon": 0.1, "add_noise": 0.0, "mult_noise": 0.9, "noise_seed": 0}, 16, 2, "mean", 623)
    noisy_case("noisy-rnn-base", {"width": 4, "layers": 1, "epsilon": 0.15, "solver": "base"}, 16, 2, "last", 624)
    incremental_case("incremental-rnn", {"width": 5, "layers": 1, "inner_steps": 4}, 20, 3, "last", 631)
    incremental_case("incremental-rnn-tanh", {"width": 4, "layers": 2, "inner_steps": 2, "activation": "tanh", "bias": False}, 18, 2, "mean", 632)


if __name__ == "__main__":
    main()
