# SPDX-License-Identifier: GPL-3.0-or-later
"""GSS, compared with a convolution by FFT with the values of its kernel."""
import numpy as np
import torch

from diagonal_systems import both_keys
from harness import draw, make
import modal_filter
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def block(ops, settings, p, x, system):
    u = ops.layer_norm(x, p["norm.weight"], p["norm.bias"])
    v = ops.layer_norm(ops.activation("gelu", affine(p, "to_v.0", u)), p["dss.norm.weight"], p["dss.norm.bias"])
    out = affine(p, "to_out", affine(p, "to_gate", system(p, v)) * ops.activation("gelu", affine(p, "to_u.0", u)))
    return out if settings.get("block", "residual") == "none" else x + out


def modes(xp, settings, p):
    im = xp.exp(p["dss.Lambda_imag"]) if settings.get("lambda_imag_exp", True) else p["dss.Lambda_imag"]
    return -xp.exp(p["dss.Lambda_real"]) + 1j * im, p["dss.C_real"] + 1j * p["dss.C_imag"]


def case(name, settings, T, d_in, loss, seed):
    d, H, N, E, ways = settings["width"], settings["channels"], settings["state"], settings.get("hidden", 0) or 4 * settings["width"], 1 if settings.get("causal", True) else 2
    shapes = norm_shapes("norm", d) | linear_shapes("to_u.0", E, d) | linear_shapes("to_v.0", H, d) | norm_shapes("dss.norm", H) | linear_shapes("to_gate", E, H) | linear_shapes("to_out", d, E, bias=True)
    shapes |= {"dss.Lambda_real": ((N,), 0.6, -1.5), "dss.Lambda_imag": ((N,), 0.6, 0.2), "dss.C_real": ((H, N), 0.8), "dss.C_imag": ((H, N), 0.8), "dss.param_D": ((H,), 0.8)}
    if settings.get("filter_modes", 0):
        shapes = {key: value for key, value in shapes.items() if not key.startswith(("dss.Lambda", "dss.C"))} | modal_filter.shapes(H, settings["filter_modes"])
    every = encoder_shapes(d, d_in)
    for level in range(settings.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes)

    def forward(record, parameters, x):
        def one_way(layer, p, v):
            if settings.get("filter_modes", 0):
                return modal_filter.steps(record, layer, p, v) + p["dss.param_D"] * v
            Lambda, C = modes(torch, settings, p)
            transition = torch.exp(Lambda).repeat(H, 1)
            h, read = torch.zeros(H, N, dtype=torch.complex128), []
            for step in v:
                record.transition(layer, transition, constant=True)
                h = record.state(layer, "h", transition * h + (torch.exp(Lambda) - 1) / Lambda * step[:, None])
                read.append((C * h).sum(1).real + p["dss.param_D"] * step)
            return torch.stack(read)

        def layer(level, p, x):
            def system(p, v):
                y = one_way(level * ways, p, v)
                if ways == 2:
                    record.turned.add(2 * level + 1)
                    y = y + torch.flip(one_way(2 * level + 1, p, torch.flip(v, [0])), [0])
                return y
            return block(Torch, settings, p, x, system)
        return both_keys(stack(layer, lambda p, x: x, settings), ways)(parameters, x)

    def second(values, x):
        def system(p, v):
            T = len(v)
            if settings.get("filter_modes", 0):
                y = modal_filter.convolved(p, v) + (modal_filter.convolved(p, v[::-1])[::-1] if ways == 2 else 0.0)
                return y + ways * v * p["dss.param_D"]
            Lambda, C = modes(np, settings, p)
            kernel = ((C * (np.expm1(Lambda) / Lambda)) @ np.exp(Lambda[:, None] * np.arange(T))).real
            filtered = lambda z: np.fft.irfft(np.fft.rfft(z.T, 2 * T) * np.fft.rfft(kernel, 2 * T), 2 * T)[:, :T].T + z * p["dss.param_D"]
            return filtered(v) if ways == 1 else filtered(v) + filtered(v[::-1])[::-1]
        return both_keys(stack(lambda level, p, x: block(Numpy, settings, p, x, system), lambda p, x: x, settings), ways)(values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "gss", settings, loss, "step loop from the equations of GSS, checked against its convolution by FFT", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    case("gss", {"width": 4, "channels": 3, "state": 4, "hidden": 6, "layers": 2}, 14, 3, "mean", 961)
    case("gss-both", {"width": 4, "channels": 3, "state": 3, "causal": False, "lambda_imag_exp": False}, 12, 4, "last", 962)
    case("gss-bare", {"width": 3, "channels": 4, "state": 3, "block": "none"}, 14, 2, "mean", 963)
    case("gss-modes", {"width": 4, "channels": 3, "state": 3, "causal": False, "filter_modes": 3}, 12, 2, "mean", 964)


if __name__ == "__main__":
    main()
