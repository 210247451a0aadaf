# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells that do not see each other: eLSTM, and columns of LSTM cells in stages, each compared with rounds of all steps at once.

eLSTM          Irie, Gopalakrishnan and Schmidhuber 2024; IDSIA/rtrl-elstm, diagnostic/rtrl_layers.py and model.py.
columnar-lstm  Javed, Shah, Sutton and White 2023; without the running means of the authors' program, and a stage reads the features of the same step.
"""
import numpy as np
import torch

from harness import draw, make, settle, under


def logistic(a):
    return 1.0 / (1.0 + np.exp(-a))


def elstm(settings):
    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            c, rows = torch.zeros(settings["width"]), []
            for u in x:
                def cell(c, u=u):
                    z = torch.tanh(p["wm_z"] @ u + p["wv_z"][0] * c + p["bias_z"][0])
                    f = torch.sigmoid(p["wm_f"] @ u + p["wv_f"][0] * c + p["bias_f"][0])
                    return (f * c + (1 - f) * z,)

                (c,) = record.units(layer, cell, c)
                c = record.state(layer, "c", c)
                rows.append(torch.sigmoid(p["output_gate.weight"] @ torch.cat([u, c]) + p["output_gate.bias"]) * c)
            x = torch.stack(rows)
        return x

    return run


def numpy_elstm(settings):
    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")

            def update(c, x=x, p=p):
                f = logistic(x @ p["wm_f"].T + p["wv_f"] * c + p["bias_f"])
                return (c + (1.0 - f) * (np.tanh(x @ p["wm_z"].T + p["wv_z"] * c + p["bias_z"]) - c),)

            (c,) = settle(update, len(x), (settings["width"],))
            x = c * logistic(np.concatenate([x, c], axis=1) @ p["output_gate.weight"].T + p["output_gate.bias"])
        return x

    return run


def elstm_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else H
        for gate in "zf":
            shapes |= {f"{layer}/wm_{gate}": ((H, inner), 1.0 / np.sqrt(inner)), f"{layer}/wv_{gate}": ((1, H), 0.8), f"{layer}/bias_{gate}": ((1, H), 0.5)}
        shapes |= {f"{layer}/output_gate.weight": ((H, inner + H), 1.0 / np.sqrt(inner + H)), f"{layer}/output_gate.bias": ((H,), 0.5)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "elstm", settings, loss, "equations of Irie et al. 2024", draw(seed, shapes), x, elstm(settings), second=numpy_elstm(settings), seed=seed)


def columns(settings):
    def run(record, parameters, x):
        seen = x
        for stage in range(settings["stages"]):
            p = under(parameters, f"{stage}/")
            h, c, rows = torch.zeros(settings["width"]), torch.zeros(settings["width"]), []
            for v in seen:
                def cell(h, c, v=v):
                    i, f, g, o = torch.chunk(p["weight_ih"] @ v + p["weight_hh"] * torch.cat([h, h, h, h]) + p["bias"], 4)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    return torch.sigmoid(o) * torch.tanh(c), c

                h, c = record.units(stage, cell, h, c)
                h, c = record.state(stage, "h", h), record.state(stage, "c", c)
                rows.append(h)
            seen = torch.cat([seen, torch.stack(rows)], dim=1)
        return seen[:, x.shape[1]:]

    return run


def numpy_columns(settings):
    def run(values, x):
        seen, H = x, settings["width"]
        for stage in range(settings["stages"]):
            p = under(values, f"{stage}/")

            def update(h, c, seen=seen, p=p):
                rows = seen @ p["weight_ih"].T + p["bias"] + np.tile(h, 4) * p["weight_hh"]
                kept, written, value, shown = (rows[:, gate * H:(gate + 1) * H] for gate in (1, 0, 2, 3))
                c = logistic(kept) * c + logistic(written) * np.tanh(value)
                return logistic(shown) * np.tanh(c), c

            h, _ = settle(update, len(x), (H,), (H,))
            seen = np.concatenate([seen, h], axis=1)
        return seen[:, x.shape[1]:]

    return run


def columns_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for stage in range(settings["stages"]):
        inner = d_in + stage * H
        shapes |= {f"{stage}/weight_ih": ((4 * H, inner), 1.0 / np.sqrt(inner)), f"{stage}/weight_hh": ((4 * H,), 0.8), f"{stage}/bias": ((4 * H,), 0.5)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "columnar-lstm", settings, loss, "equations of Javed et al. 2023", draw(seed, shapes), x, columns(settings), second=numpy_columns(settings), seed=seed)


def main():
    elstm_case("elstm", {"width": 5, "layers": 1}, 18, 3, "last", 941)
    elstm_case("elstm-two-layers", {"width": 4, "layers": 2}, 14, 3, "mean", 942)
    columns_case("columnar-lstm", {"width": 5, "stages": 1}, 18, 3, "last", 943)
    columns_case("columnar-lstm-stages", {"width": 2, "stages": 3}, 14, 3, "mean", 944)
