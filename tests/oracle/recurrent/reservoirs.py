# SPDX-License-Identifier: GPL-3.0-or-later
"""Echo state networks, a step loop compared with rounds of all steps at once, noise included."""
import numpy as np
import torch

from antisymmetric import noise as drawn
from harness import draw, make, settle, under


def noise(settings, layer, name, T, n):
    """[T, n]: the numbers of a step are those of a generator of its own."""
    return settings[f"noise_{name}"] * drawn(settings["noise_seed"], layer, name, T, n, "normal").reshape(T, n)


TORCH = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda a: a}
NUMPY = {"tanh": np.tanh, "relu": lambda a: np.where(a > 0.0, a, 0.0), "identity": lambda a: a}


def echo_state(settings):
    f, g, leak = TORCH[settings["activation"]], TORCH[settings["feedback_activation"]], settings["leak"]
    N, M, external = settings["width"], settings["feedback"], settings["equation"] == "external"

    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            xi = {name: torch.tensor(noise(settings, layer, name, len(x), n)) for name, n in [("in", x.shape[1]), ("state", N), ("feedback", M)]}
            state, y, rows = torch.zeros(N), torch.zeros(M), []
            for t, u in enumerate(x):
                def update(state, y, t=t, u=u):
                    r = f(state) if external else state
                    a = p["W"] @ r + p["Win"] @ (u + xi["in"][t])
                    if settings["bias"]:
                        a = a + p["bias"][:, 0]
                    if M:
                        a = a + p["Wfb"] @ (g(y) + xi["feedback"][t])
                    state = (1 - leak) * state + leak * (a if external else f(a)) + xi["state"][t]
                    r = f(state) if external else state
                    z = torch.cat([r, u]) if settings["read_input"] else r
                    return (state, p["Wout"] @ z + p["Wout_bias"], z) if M else (state, y, z)

                before = (state, y)
                if M:
                    record.singular.add(layer)  # y follows from r, so the Jacobian of both has no more than the rank of r's
                    record.step(layer, lambda s, y: update(s, y)[:2], state, y)
                else:
                    record.step(layer, lambda s: update(s, torch.zeros(0))[:1], state)
                state, y, z = update(*before)
                # The output of this step comes from the state as it is recorded, a perturbation of it included, where nothing else is fed back.
                state = record.state(layer, "s" if external else "r", state)
                if M:
                    y = record.state(layer, "y", y)
                    rows.append(y)
                else:
                    r = f(state) if external else state
                    rows.append(torch.cat([r, u]) if settings["read_input"] else r)
            x = torch.stack(rows)
        return x

    return run


def numpy_echo_state(settings):
    """All steps at once from guesses of the states and outputs before them."""
    f, g, leak = NUMPY[settings["activation"]], NUMPY[settings["feedback_activation"]], settings["leak"]
    N, M, external = settings["width"], settings["feedback"], settings["equation"] == "external"

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            drive = (x + noise(settings, layer, "in", len(x), x.shape[1])) @ p["Win"].T
            if settings["bias"]:
                drive = drive + p["bias"].T
            if M:
                drive = drive + noise(settings, layer, "feedback", len(x), M) @ p["Wfb"].T
            shake = noise(settings, layer, "state", len(x), N)

            def features(state, x=x):
                r = f(state) if external else state
                return np.concatenate([r, x], axis=1) if settings["read_input"] else r

            def update(state, y, drive=drive, shake=shake, p=p):
                a = drive + (f(state) if external else state) @ p["W"].T
                if M:
                    a = a + g(y) @ p["Wfb"].T
                state = state + leak * ((a if external else f(a)) - state) + shake
                return state, features(state) @ p["Wout"].T + p["Wout_bias"] if M else y

            state, y = settle(update, len(x), (N,), (M,))
            x = y if M else features(state)
        return x

    return run


def case(name, settings, T, d_in, loss, seed):
    settings = {"width": 6, "layers": 1, "equation": "internal", "activation": "tanh", "leak": 1.0, "bias": True, "read_input": False, "feedback": 0, "feedback_activation": "identity",
                "noise_in": 0.0, "noise_state": 0.0, "noise_feedback": 0.0, "noise_seed": 1} | settings
    N, M, shapes = settings["width"], settings["feedback"], {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else N + (inner if settings["read_input"] else 0)
        shapes |= {f"{layer}/W": ((N, N), 0.9 / np.sqrt(N)), f"{layer}/Win": ((N, inner), 0.7)}
        if settings["bias"]:
            shapes[f"{layer}/bias"] = ((N, 1), 0.3)
        if M:
            shapes |= {f"{layer}/Wfb": ((N, M), 0.5), f"{layer}/Wout": ((M, N + (inner if settings["read_input"] else 0)), 0.4), f"{layer}/Wout_bias": ((M,), 0.3)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "echo-state", settings, loss, "equations of reservoirpy 0.3", draw(seed, shapes), x, echo_state(settings), second=numpy_echo_state(settings), seed=seed)


def main():
    case("echo-state", {}, 16, 2, "last", 71)
    case("echo-state-leak", {"leak": 0.3, "activation": "relu", "bias": False, "layers": 2, "width": 5, "read_input": True}, 14, 2, "mean", 72)
    case("echo-state-external", {"equation": "external", "leak": 0.4, "noise_state": 0.2, "noise_in": 0.1, "noise_seed": 1}, 14, 2, "mean", 73)
    case("echo-state-linear", {"activation": "identity", "leak": 0.4, "noise_state": 0.2, "layers": 2, "width": 5, "read_input": True}, 14, 2, "mean", 76)
    case("echo-state-linear-external", {"activation": "identity", "equation": "external", "width": 5}, 14, 2, "mean", 77)
    case("echo-state-feedback", {"feedback": 2, "leak": 0.6, "read_input": True, "noise_feedback": 0.1, "noise_state": 0.05, "noise_seed": 12345}, 14, 2, "mean", 74)
    case("echo-state-feedback-external", {"feedback": 1, "equation": "external", "feedback_activation": "tanh", "activation": "identity", "width": 5}, 14, 3, "last", 75)


if __name__ == "__main__":
    main()
