# SPDX-License-Identifier: GPL-3.0-or-later
"""The deep equilibrium layer, its equilibrium by plain iteration from zero, through which PyTorch differentiates, so that nothing of it
knows of the implicit function theorem; checked against Newton's method on the equations of all steps at once, written for NumPy.

Bai, Kolter and Koltun 2019, with one layer of tanh units.
"""
import numpy as np
import torch

from antisymmetric import case
from harness import under

ROUNDS = 150  # of a map whose factor is at most 0.7


def equilibrium(record, settings, parameters, x):
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        h, outputs = torch.zeros(settings["width"]), []
        for u in x:
            def step(h):
                drive = p["U"] @ u + p["b"] + (p["V"] @ h if "V" in p else 0.0 * h)
                z = torch.zeros(settings["width"])
                for _ in range(ROUNDS):
                    z = torch.tanh(p["W"] @ z + drive)
                return (z,)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_equilibrium(settings, values, x):
    """All steps are one vector of unknowns, and F(z) = z - tanh(B z + d) = 0 with W in the blocks of B's diagonal and V below them."""
    T, H = len(x), settings["width"]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        B = np.kron(np.eye(T), p["W"])
        if "V" in p:
            B = B + np.kron(np.eye(T, k=-1), p["V"])
        d = (x @ p["U"].T + p["b"]).ravel()
        z = np.zeros(T * H)
        for _ in range(30):
            f = np.tanh(B @ z + d)
            z = z - np.linalg.solve(np.eye(T * H) - (1.0 - f * f)[:, None] * B, z - f)
        x = z.reshape(T, H)
    return x


def equilibrium_case(name, settings, T, d_in, loss, seed):
    H = settings["width"]

    def shapes(inputs):
        made = {"U": ((H, inputs), 0.8), "W": ((H, H), 0.22)}
        if settings.get("recurrent", True):
            made["V"] = ((H, H), 0.4)
        return made | {"b": ((H,), 0.3)}

    case(name, "deep-equilibrium", settings, T, d_in, loss, seed, shapes, equilibrium, numpy_equilibrium)


def main():
    equilibrium_case("deep-equilibrium", {"width": 5, "layers": 1}, 20, 3, "last", 641)
    equilibrium_case("deep-equilibrium-stack", {"width": 4, "layers": 2, "iterations": 12}, 16, 2, "mean", 642)
    equilibrium_case("deep-equilibrium-anderson", {"width": 5, "layers": 1, "solver": "anderson", "iterations": 60, "memory": 3}, 16, 3, "mean", 643)
    equilibrium_case("deep-equilibrium-plain", {"width": 4, "layers": 2, "recurrent": False}, 14, 2, "mean", 644)


if __name__ == "__main__":
    main()
