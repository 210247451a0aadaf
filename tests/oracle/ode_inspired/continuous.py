# SPDX-License-Identifier: GPL-3.0-or-later
"""coRNN and LTC as plain step loops, checked against rounds of all steps at once (harness.settle).

coRNN  Rusch and Mishra 2021; tk-rusch/coRNN, network.py: the concatenation is (x, z, y), the damping explicit, y moves with the new z; and the implicit damping that the paper allows.
LTC    Hasani et al. 2021; raminmh/liquid_time_constant_networks, ltc_model.py: a row of a synapse matrix is where it comes from. The output
       map is that of mlech26l/ncps, torch/ltc_cell.py.
"""
import numpy as np
import torch

from harness import draw, make, settle, under
from state_space import logistic


# -------------------------------------------------------------------------------------------------------------- coRNN

def cornn(record, settings, parameters, x):
    dt, gamma, epsilon = settings["dt"], settings["gamma"], settings["epsilon"]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        y, z = torch.zeros(settings["width"]), torch.zeros(settings["width"])
        outputs = []
        for u in x:
            def step(y, z):
                force = torch.tanh(p["i2h.weight"] @ torch.cat([u, z, y]) + p["i2h.bias"])
                if settings.get("damping", "explicit") == "implicit":  # ε z of the new z, for which the equation is solved
                    z = (z + dt * (force - gamma * y)) / (1.0 + dt * epsilon)
                else:
                    z = z + dt * (force - gamma * y - epsilon * z)
                return y + dt * z, z

            y, z = record.step(layer, step, y, z)
            y, z = record.state(layer, "hy", y), record.state(layer, "hz", z)
            outputs.append(y)
        x = torch.stack(outputs)
    return x


def numpy_cornn(settings, values, x):
    dt, gamma, epsilon, H = settings["dt"], settings["gamma"], settings["epsilon"], settings["width"]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        W_x, W_z, W_y = np.split(p["i2h.weight"], [x.shape[1], x.shape[1] + H], axis=1)
        drive = x @ W_x.T + p["i2h.bias"]

        def update(y, z):
            kick = dt * np.tanh(drive + z @ W_z.T + y @ W_y.T) - dt * gamma * y
            if settings.get("damping") == "implicit":  # the fixed point of z = before + kick - Δt ε z, by iteration
                before, z = z, z + kick
                for _ in range(200):
                    z = before + kick - dt * epsilon * z
            else:
                z = (1.0 - dt * epsilon) * z + kick
            return y + dt * z, z

        x = settle(update, len(x), (H,), (H,))[0]
    return x


# ---------------------------------------------------------------------------------------------------------------- LTC

def ltc(record, settings, parameters, x, elapsed=None):
    solver, unfolds, mapping = settings.get("solver", "semi_implicit"), settings.get("ode_unfolds", 6), settings.get("mapping", "affine")
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        v = torch.zeros(settings["width"])
        outputs = []
        for u, dt in zip(x, np.ones(len(x)) if elapsed is None else elapsed):
            cm, h = p["cm_t"] / dt, 0.1 * dt  # the time step is part of cm_t
            u = u if mapping == "identity" else u * p["input_w"]
            u = u + p["input_b"] if mapping == "affine" else u
            sensory = p["sensory_W"] * torch.sigmoid(p["sensory_sigma"] * (u[:, None] - p["sensory_mu"]))

            def synapses(v):
                """The current at v = 0 and the conductance that all synapses together have."""
                active = p["W"] * torch.sigmoid(p["sigma"] * (v[:, None] - p["mu"]))
                current = (active * p["erev"]).sum(0) + (sensory * p["sensory_erev"]).sum(0)
                return current, active.sum(0) + sensory.sum(0)

            def slope(v):
                current, conductance = synapses(v)
                return (p["gleak"] * (p["vleak"] - v) + current - v * conductance) / p["cm_t"]

            def step(v):
                for _ in range(unfolds):
                    if solver == "semi_implicit":
                        current, conductance = synapses(v)
                        v = (cm * v + p["gleak"] * p["vleak"] + current) / (cm + p["gleak"] + conductance)
                    elif solver == "explicit":
                        v = v + h * slope(v)
                    else:
                        k1 = h * slope(v)
                        k2 = h * slope(v + k1 / 2)
                        k3 = h * slope(v + k2 / 2)
                        v = v + (k1 + 2 * k2 + 2 * k3 + h * slope(v + k3)) / 6
                return (v,)

            v = record.state(layer, "v", record.step(layer, step, v)[0])
            y = v[: settings["motor"]] if settings.get("motor", 0) else v
            y = y * p["output_w"] if settings.get("output_mapping", "identity") != "identity" else y
            outputs.append(y + p["output_b"] if settings.get("output_mapping", "identity") == "affine" else y)
        x = torch.stack(outputs)
    return x


def numpy_ltc(settings, values, x, elapsed=None):
    """The right-hand side in the form a - b v, with sums over synapses as einsums of all steps."""
    dt = 1.0 if elapsed is None else elapsed[:, None]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        u = x * p.get("input_w", 1.0) + p.get("input_b", 0.0)

        def opening(v, kind):
            return logistic(np.einsum("jk,tjk->tjk", p[f"{kind}sigma"], v[:, :, None] - p[f"{kind}mu"][None]))

        outside = opening(u, "sensory_")
        a0 = p["gleak"] * p["vleak"] + np.einsum("tjk,jk,jk->tk", outside, p["sensory_W"], p["sensory_erev"])
        b0 = p["gleak"] + np.einsum("tjk,jk->tk", outside, p["sensory_W"])

        def terms(v):
            inside = opening(v, "")
            return a0 + np.einsum("tjk,jk,jk->tk", inside, p["W"], p["erev"]), b0 + np.einsum("tjk,jk->tk", inside, p["W"])

        def slope(v):
            a, b = terms(v)
            return (a - b * v) / p["cm_t"]

        def update(v):
            for _ in range(settings.get("ode_unfolds", 6)):
                if settings.get("solver", "semi_implicit") == "semi_implicit":  # backward Euler with a and b of the old v
                    a, b = terms(v)
                    v = (v + dt * a / p["cm_t"]) / (1.0 + dt * b / p["cm_t"])
                elif settings["solver"] == "explicit":
                    v = v + 0.1 * dt * slope(v)
                else:
                    first = slope(v)
                    second = slope(v + 0.05 * dt * first)
                    third = slope(v + 0.05 * dt * second)
                    v = v + 0.1 * dt * (first / 6 + second / 3 + third / 3 + slope(v + 0.1 * dt * third) / 6)
            return (v,)

        v = settle(update, len(x), (settings["width"],))[0]
        x = v[:, : settings.get("motor", 0) or None] * p.get("output_w", 1.0) + p.get("output_b", 0.0)
    return x


# -------------------------------------------------------------------------------------------------------------- cases

def cornn_case(name, settings, T, d_in, loss, seed):
    H, inputs, shapes = settings["width"], d_in, {}
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/i2h.weight": ((H, inputs + 2 * H), 0.8), f"{layer}/i2h.bias": ((H,), 0.4)}
        inputs = H
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "cornn", settings, loss, "step loop from the equations of coRNN, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: cornn(record, settings, p, v), second=lambda p, v: numpy_cornn(settings, p, v), seed=seed)


def ltc_case(name, settings, T, d_in, loss, seed):
    H, inputs, shapes = settings["width"], d_in, {}
    mapping = settings.get("mapping", "affine")
    for layer in range(settings["layers"]):
        if mapping != "identity":
            shapes |= {f"{layer}/input_w": ((inputs,), 0.3, 1.0)}
        if mapping == "affine":
            shapes |= {f"{layer}/input_b": ((inputs,), 0.3)}
        for kind, rows in (("sensory_", inputs), ("", H)):
            shapes |= {f"{layer}/{kind}mu": ((rows, H), 0.3, 0.5), f"{layer}/{kind}sigma": ((rows, H), 0.8, 3.0),
                       f"{layer}/{kind}W": ((rows, H), 0.1, 0.6), f"{layer}/{kind}erev": ((rows, H), 1.0)}
        shapes |= {f"{layer}/vleak": ((H,), 0.3), f"{layer}/gleak": ((H,), 0.1, 0.7), f"{layer}/cm_t": ((H,), 0.15, 2.0)}
        inputs = settings.get("motor", 0) or H
        if settings.get("output_mapping", "identity") != "identity":
            shapes |= {f"{layer}/output_w": ((inputs,), 0.3, 1.0)}
        if settings.get("output_mapping", "identity") == "affine":
            shapes |= {f"{layer}/output_b": ((inputs,), 0.3)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "ltc", settings, loss, "step loop from the equations of LTC, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: ltc(record, settings, p, v), second=lambda p, v: numpy_ltc(settings, p, v), seed=seed)


def main():
    cornn_case("cornn", {"width": 5, "layers": 1, "dt": 0.3, "gamma": 1.7, "epsilon": 0.9}, 30, 2, "last", 221)
    cornn_case("cornn-layers", {"width": 4, "layers": 2, "dt": 0.15, "gamma": 2.7, "epsilon": 4.7}, 20, 3, "mean", 222)
    cornn_case("cornn-implicit", {"width": 5, "layers": 2, "dt": 0.3, "gamma": 1.7, "epsilon": 2.1, "damping": "implicit"}, 18, 2, "last", 223)
    ltc_case("ltc", {"width": 6, "layers": 1}, 24, 3, "last", 231)
    ltc_case("ltc-explicit", {"width": 4, "layers": 2, "solver": "explicit", "mapping": "linear", "ode_unfolds": 4}, 16, 2, "mean", 232)
    ltc_case("ltc-motor", {"width": 5, "layers": 2, "motor": 2, "output_mapping": "affine", "ode_unfolds": 3}, 16, 3, "mean", 234)
    ltc_case("ltc-output-linear", {"width": 4, "layers": 1, "output_mapping": "linear"}, 14, 2, "last", 235)
    ltc_case("ltc-runge-kutta", {"width": 5, "layers": 1, "solver": "runge_kutta", "mapping": "identity", "ode_unfolds": 2}, 18, 4, "mean", 233)


if __name__ == "__main__":
    main()
