# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast weights that follow a differential equation, as a plain step loop over the authors' matrices (rows are values), checked against rounds of
all steps at once on their transposes.

Irie, Faccio and Schmidhuber 2022; IDSIA/neuraldiffeq-fwp, speech_and_physionet, FastWeightODE with {Hebb,Oja,Delta}UpdateVectorField; the input is
held over each step.
"""
import numpy as np
import torch

from harness import draw, make, settle, under
from ode_inspired import numpy_solved, solved, spans
from state_space import logistic

RK4 = ("rk4", 1)


def fast_weights(record, settings, parameters, x, elapsed):
    D, heads, rule, post = settings["width"], settings["heads"], settings.get("rule", "delta"), settings.get("post_tanh", False)
    d = D // heads
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        linear = lambda name, v: p[f"{name}.weight"] @ v + p[f"{name}.bias"]
        norm = lambda name, v: torch.nn.functional.layer_norm(v, v.shape, p[f"{name}.weight"], p[f"{name}.bias"])
        S, outputs = torch.zeros(heads, d, d), []
        for t, (u, dt) in enumerate(zip(x, elapsed)):
            hidden = norm("update_net.input_layer_norm", linear("update_net.input_proj", u))
            k, v, rate = torch.split(linear("update_net.kvb_net", hidden).reshape(heads, 2 * d + 1), [d, d, 1], dim=1)
            rate = torch.sigmoid(rate)
            q = torch.softmax(linear("query_net", hidden).reshape(heads, d), dim=1)

            def slope(flat):
                W = flat.reshape(heads, d, d)  # [value, key]
                if rule == "oja":
                    values = torch.tanh(v)
                    keys = torch.softmax(k - torch.einsum("hij,hi->hj", W, values), dim=1) * rate
                else:
                    keys = torch.softmax(k, dim=1)
                    values = v if post else torch.tanh(v)
                    if rule == "delta":
                        values = values - torch.einsum("hij,hj->hi", W, keys)
                        values = torch.tanh(values) if post else values
                    else:
                        values = torch.tanh(v)
                    values = rate * values
                return torch.einsum("hi,hj->hij", values, keys).reshape(-1)

            def step(S):
                W = S.transpose(1, 2).reshape(-1)
                if t == 0 and settings.get("initial", True):
                    W = W + slope(W)
                else:
                    W = solved(settings, RK4, slope, W, settings.get("span", 1.0) * dt)
                return (W.reshape(heads, d, d).transpose(1, 2),)

            if rule == "oja" or (rule == "delta" and post) or settings.get("solver") == "dopri5":
                record.step(layer, lambda flat: (step(flat.reshape(heads, d, d))[0].reshape(-1),), S.reshape(-1))
            else:  # every value is moved alike: a block a head
                whole = torch.autograd.functional.jacobian(lambda s: step(s)[0], S.detach())
                record.linear(layer, [whole[h, :, 0, h, :, 0] for h in range(heads) for _ in range(d)], False)
            S = record.state(layer, "W", step(S)[0])
            z = linear("out_proj", torch.einsum("hji,hj->hi", S, q).reshape(-1))
            outputs.append(z + linear("ff_block.ff_layers.3", torch.relu(linear("ff_block.ff_layers.0", norm("ff_block.layer_norm", z)))))
        x = torch.stack(outputs)
    return x


def numpy_fast_weights(settings, values, x, elapsed):
    D, heads, rule, post, T = settings["width"], settings["heads"], settings.get("rule", "delta"), settings.get("post_tanh", False), len(x)
    d = D // heads
    softmax = lambda v: np.exp(v) / np.exp(v).sum(-1, keepdims=True)
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        linear = lambda name, v: v @ p[f"{name}.weight"].T + p[f"{name}.bias"]
        norm = lambda name, v: (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]
        hidden = norm("update_net.input_layer_norm", linear("update_net.input_proj", x))
        kvb = linear("update_net.kvb_net", hidden).reshape(T, heads, 2 * d + 1)
        k, v, rate = kvb[..., :d], kvb[..., d:2 * d], logistic(kvb[..., 2 * d:])
        q = softmax(linear("query_net", hidden).reshape(T, heads, d))

        def slope(flat):
            S = flat.reshape(T, heads, d, d)  # [key, value]
            if rule == "oja":
                values = np.tanh(v)
                keys = rate * softmax(k - (S @ values[..., None])[..., 0])
                return (keys[..., None] * values[..., None, :]).reshape(T, -1)
            keys = softmax(k)
            recalled = (S.transpose(0, 1, 3, 2) @ keys[..., None])[..., 0] if rule == "delta" else 0.0
            missing = np.tanh(v - recalled) if rule == "delta" and post else np.tanh(v) - recalled
            return (rate[..., None] * keys[..., None] * missing[..., None, :]).reshape(T, -1)

        def update(S):
            new = numpy_solved(settings, RK4, slope, S.reshape(T, -1), settings.get("span", 1.0) * elapsed[:, None])
            if settings.get("initial", True):
                new[0] = slope(np.zeros_like(new))[0]
            return (new.reshape(S.shape),)

        S = settle(update, T, (heads, d, d))[0]
        z = linear("out_proj", (q[..., None] * S).sum(2).reshape(T, D))
        x = z + linear("ff_block.ff_layers.3", np.maximum(linear("ff_block.ff_layers.0", norm("ff_block.layer_norm", z)), 0.0))
    return x


def case(name, settings, T, d_in, loss, seed, time=None):
    D, heads, wide, inputs, shapes = settings["width"], settings["heads"], settings.get("feed_forward", 0) or 4 * settings["width"], d_in, {}
    for layer in range(settings["layers"]):
        def linear(key, out, width):
            shapes.update({f"{layer}/{key}.weight": ((out, width), 0.6), f"{layer}/{key}.bias": ((out,), 0.3)})

        linear("update_net.input_proj", D, inputs)
        linear("update_net.kvb_net", heads * (2 * (D // heads) + 1), D)
        linear("query_net", D, D)
        linear("out_proj", D, D)
        linear("ff_block.ff_layers.0", wide, D)
        linear("ff_block.ff_layers.3", D, wide)
        for key in ("update_net.input_layer_norm", "ff_block.layer_norm"):
            shapes |= {f"{layer}/{key}.weight": ((D,), 0.3, 1.0), f"{layer}/{key}.bias": ((D,), 0.3)}
        inputs = D
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    elapsed = spans(settings, time, T)
    make(name, "continuous-fast-weights", settings, loss, "step loop from the equations of the learning rules, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: fast_weights(record, settings, p, v, elapsed), second=lambda p, v: numpy_fast_weights(settings, p, v, elapsed), seed=seed, time=time)


def main():
    times = lambda seed, T: np.cumsum(0.3 + np.random.default_rng(seed).exponential(1.0, T))
    case("continuous-fast-weights", {"width": 4, "heads": 2, "layers": 1, "feed_forward": 5}, 14, 2, "mean", 361)
    case("continuous-fast-weights-times", {"width": 4, "heads": 2, "layers": 2, "feed_forward": 4, "solver": "midpoint", "unfolds": 2, "initial": False, "span": 0.8, "time_unit": 1.1}, 10, 3, "mean", 362, times(362, 10))
    case("continuous-fast-weights-hebb", {"width": 4, "heads": 1, "layers": 1, "feed_forward": 4, "rule": "hebb", "solver": "euler", "time_unit": 1.0}, 10, 2, "mean", 363, times(363, 10))
    case("continuous-fast-weights-oja", {"width": 4, "heads": 2, "layers": 1, "feed_forward": 4, "rule": "oja", "solver": "rk4_38", "unfolds": 2, "time_unit": 1.0}, 10, 2, "mean", 364, times(364, 10))
    case("continuous-fast-weights-post-tanh", {"width": 4, "heads": 2, "layers": 1, "post_tanh": True, "time_unit": 1.0}, 10, 2, "mean", 365, times(365, 10))
    case("continuous-fast-weights-dopri5", {"width": 4, "heads": 2, "layers": 1, "feed_forward": 4, "solver": "dopri5", "rtol": 1e-11, "atol": 1e-13, "max_steps": 100, "time_unit": 1.0}, 7, 2, "mean", 366, times(366, 7))


if __name__ == "__main__":
    main()
