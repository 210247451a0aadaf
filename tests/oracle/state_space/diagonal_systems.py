# SPDX-License-Identifier: GPL-3.0-or-later
"""DSS and DLR with the layer that both have round their kernels, compared with sums over the kernels' values, which know no state."""
import math

import numpy as np
import torch

from harness import draw, loss_of, make
from parts import Numpy, Torch, encoder_shapes, prefixed, stack


def activation(ops, name, x):
    if name == "none":
        return x
    if name == "tanh":
        return torch.tanh(x) if ops is Torch else np.tanh(x)
    return ops.activation(name, x)


# ------------------------------------------------------------------------------------------------------------ kernels

def dss_modes(settings, p):
    """exponent [H, N], input matrix [H, N] and W [outputs, H, N], in the words of the published code."""
    version, L = settings["version"], settings.get("length", 1024)
    if version.startswith("exp"):
        re = -torch.exp(p["Lambda_log_neg_re"])
        im = 0.0 * re if version.endswith("real") else torch.exp(p["Lambda_log_im"]) if version == "exp-re-im" else p["Lambda_im"]
    else:
        re, im = p["Lambda"][:, 0], p["Lambda"][:, 1]
        if version.startswith("clip"):
            re = torch.clamp(re, max=settings.get("max_real_Lambda", 1e-4))
    Lambda = torch.complex(re, im)
    dt = torch.exp(p["log_dt"])
    dt = dt if dt.ndim == 2 else torch.stack([dt, dt], 1)
    z = torch.complex(re * dt[:, :1], im * dt[:, 1:])
    W = torch.complex(p["W"][..., 0], p["W"][..., 1])
    if version.startswith("softmax"):
        grows = re > 0
        falling = z * torch.where(grows, -1.0, 1.0)
        x = (torch.exp(falling * L) - 1) * Lambda
        f = (torch.exp(falling) - 1) * x.conj() / (x * x.conj() + settings.get("epsilon", 1e-7))
        return z, f * torch.exp(-(z.detach() if settings.get("version") == "softmax-detached" else z) * grows * (L - 1)), W
    if "no-scale" in version:
        return z, torch.ones_like(z), W
    return z, (torch.exp(z) - 1) * Lambda.conj() / (Lambda * Lambda.conj()).real.clamp(1e-7), W


def numpy_dss_kernel(settings, p, steps):
    """sum_n W_n f_n exp(z_n k) [outputs, H, steps]; the softmax's divisor as the sum that it is."""
    version, L = settings["version"], settings.get("length", 1024)
    if version.startswith("exp"):
        re = -np.exp(p["Lambda_log_neg_re"])
        im = np.zeros_like(re) if version.endswith("real") else np.exp(p["Lambda_log_im"]) if version == "exp-re-im" else p["Lambda_im"]
    else:
        re, im = p["Lambda"].T
        if version.startswith("clip"):
            re = np.minimum(re, settings.get("max_real_Lambda", 1e-4))
    dt = np.exp(p["log_dt"]).reshape(len(p["log_dt"]), -1)
    z = dt[:, :1] * re + 1j * dt[:, -1:] * im
    W = p["W"] @ [1.0, 1j]
    if version.startswith("softmax"):
        down = np.where(re > 0, -z, z)
        divisor = np.exp(down[:, :, None] * np.arange(L)).sum(2)
        size = np.abs(np.expm1(down * L) * (re + 1j * im)) ** 2
        f = 1.0 / divisor / (re + 1j * im) * size / (size + settings.get("epsilon", 1e-7))
        powers = np.exp(z[:, :, None] * (np.arange(steps) - np.where(re > 0, L - 1, 0)[:, None]))
    else:
        f = 1.0 if "no-scale" in version else np.expm1(z) / (re + 1j * im)
        powers = np.exp(z[:, :, None] * np.arange(steps))
    return np.einsum("chn,hnk->chk", W * f, powers)


def dlr_modes(settings, p):
    version = settings.get("version", "full")
    im = p["Lambda_im"] if "Lambda_im" in p else torch.zeros_like(p["Lambda_log_neg_re"])
    re = -p["Lambda_log_neg_re"] ** 2 if "Lambda_log_neg_re" in p else torch.zeros_like(im)
    z = torch.complex(re, im).repeat(settings["width"], 1)
    W = p["W"] + 0j if version.endswith("W_real") else torch.complex(p["W"][..., 0], p["W"][..., 1])
    return z, torch.ones_like(z), W


def numpy_dlr_kernel(settings, p, steps):
    modulus, angle = np.exp(-p.get("Lambda_log_neg_re", np.zeros(1)) ** 2), p.get("Lambda_im", np.zeros(1))
    k = np.arange(steps)[:, None]
    W = p["W"] if settings.get("version", "full").endswith("W_real") else p["W"] @ [1.0, 1j]
    return np.einsum("chn,kn->chk", W, modulus**k * (np.cos(angle * k) + 1j * np.sin(angle * k)))


# -------------------------------------------------------------------------------------------------------------- layer

def products(v):
    """All products of two entries of the last axis, each pair once, and how often it counts."""
    n, m = np.triu_indices(v.shape[-1])
    return v[..., n] * v[..., m], torch.tensor(np.where(n == m, 1.0, 2.0))


def cast(kappa, kind):
    return kappa.imag if kind == "imag" else kappa.real + kappa.imag if kind == "sum" else kappa.real * kappa.imag if kind == "prod" else kappa.real


def steps_of(record, layer, settings, z, b, W, x):
    """One direction, in its own order of steps: [T, outputs, H]."""
    kind, taps = settings.get("kernel_to_real", "real"), settings.get("max_kernel_length", 0)
    H = z.shape[0]
    halves = [("h", "real", slice(0, H // 2)), ("product", "prod", slice(H // 2, H))] if kind == "real-prod" else [("h", kind, slice(0, H))]
    results = [[] for _ in halves]
    if taps:
        inputs = [[record.state(layer, "u" if name == "h" else "u_product", u[part]) for u in x] for name, _, part in halves]
        for which, (_, how, part) in enumerate(halves):
            for t in range(len(x)):
                total = 0.0
                for k in range(min(taps, t + 1)):
                    total = total + cast((W[:, part] * b[part] * torch.exp(z[part] * k)).sum(2), how) * inputs[which][t - k]
                results[which].append(total)
    else:
        transitions, states = [], []
        for _, how, part in halves:
            transition = torch.exp(z[part])
            transitions.append(products(transition)[0] if how == "prod" else transition)
            states.append(torch.zeros_like(transitions[-1]))
        for u in x:
            record.transition(layer, torch.cat([a.reshape(-1) for a in transitions]), constant=True)
            for which, (name, how, part) in enumerate(halves):
                if how == "prod":  # the state is undriven by b, which its read-out has
                    states[which] = record.state(layer, name, transitions[which] * states[which] + u[part, None])
                    w, often = products(W[:, part] * b[part])
                    results[which].append(0.5 * (w * often * states[which]).sum(2).imag)
                else:
                    states[which] = record.state(layer, name, transitions[which] * states[which] + b[part] * u[part, None])
                    results[which].append(cast((W[:, part] * states[which]).sum(2), how))
    return torch.cat([torch.stack(result) for result in results], 2)


def numpy_steps(settings, kernel, x):
    kind, taps, (_, H, T) = settings.get("kernel_to_real", "real"), settings.get("max_kernel_length", 0), kernel.shape
    half = H // 2
    K = np.concatenate([cast(kernel[:, :half], "real"), cast(kernel[:, half:], "prod")], 1) if kind == "real-prod" else cast(kernel, kind)
    if taps:
        K = K * (np.arange(T) < taps)
    y = np.zeros((T, *K.shape[:2]))
    for k in range(T):
        y[k:] += K[None, :, :, k] * x[: T - k, None, :]
    return y


def norm(ops, settings, p, x):
    kind = settings.get("norm", "layer")
    if kind == "layer":
        return ops.layer_norm(x, p["norm.weight"], p["norm.bias"])
    if kind == "none":
        return x
    mean = x.mean(-1)[:, None]
    return p["norm.s"] * (x - mean + p["norm.m"]) / ops.sqrt(((x - mean) ** 2).mean(-1)[:, None])


def layer(ops, filtered, settings, p, x):
    """filtered(u) -> both directions' outputs [T, outputs, H], that of the future shifted by the step that it does not see."""
    residual, prenorm = settings.get("block", "residual") == "residual", settings.get("prenorm", False)
    u = norm(ops, settings, p, x) if residual and prenorm else x
    y = filtered(u) + u[:, None, :] * p["D"]
    C = settings.get("channels", 1)
    if settings.get("hyper_act", "none") != "none":
        y = y[:, :C] * activation(ops, settings["hyper_act"], y[:, C:])
    y = y.reshape(len(x), -1)
    if settings.get("output", "linear") == "linear":
        W = p["output_linear.weight"] if "output_linear.weight" in p else p["output_linear.weight_g"] * p["output_linear.weight_v"] / ops.sqrt((p["output_linear.weight_v"] ** 2).sum(1))[:, None]
        y = activation(ops, settings.get("activation", "gelu"), y) @ W.T + p["output_linear.bias"].reshape(-1)
        after = settings.get("postact", "none")
        if after in ("glu", "geglu"):
            value, gate = ops.split(y, [settings["width"]] * 2)
            y = value * (ops.sigmoid(gate) if after == "glu" else activation(ops, "gelu", gate))
        else:
            y = activation(ops, after, y)
    if not residual:
        return y
    return x + y if prenorm else norm(ops, settings, p, x + y)


def case(name, model, modes, kernel, settings, T, d_in, loss, seed):
    H, N, C = settings["width"], settings["state"], settings.get("channels", 1)
    outputs = C * (2 if settings.get("hyper_act", "none") != "none" else 1)
    both = settings.get("bidirectional", False)
    residual, prenorm = settings.get("block", "residual") == "residual", settings.get("prenorm", False)
    rows = H * (2 if settings.get("postact", "none") in ("glu", "geglu") else 1)
    norms = {"layer": {"norm.weight": ((H,), 0.3, 1.0), "norm.bias": ((H,), 0.3)}, "scalars": {"norm.m": ((1,), 0.2, 0.3), "norm.s": ((1,), 0.2, 1.0)}, "none": {}}
    norms = norms[settings.get("norm", "layer")] if residual else {}
    shapes = {"D": ((outputs, H), 0.8)} | norms
    version = settings.get("version", "full")
    real_W = model == "dlr" and version.endswith("W_real")
    shapes["W"] = ((outputs * (2 if both else 1), H, N, *([] if real_W else [2])), 0.8 if model == "dss" else 0.5)
    if model == "dss":
        shapes["log_dt"] = ((H, 2) if settings.get("sep_dt_re_im", False) else (H,), 0.5, -1.8)
        if version.startswith("exp"):
            shapes["Lambda_log_neg_re"] = ((N,), 0.4, -0.7)
            if not version.endswith("real"):
                shapes["Lambda_log_im" if version == "exp-re-im" else "Lambda_im"] = ((N,), 0.6, 1.0) if version == "exp-re-im" else ((N,), 2.0, 3.0)
        else:
            shapes["Lambda"] = ((N, 2), 1.2)
    else:
        if not version.startswith("Lambda_imag"):
            shapes["Lambda_log_neg_re"] = ((N,), 0.2, 0.35)
        if version != "Lambda_real_W_real":
            shapes["Lambda_im"] = ((N,), 1.5, 1.0)
    if settings.get("output", "linear") == "linear":
        scale = 1.0 / math.sqrt(C * H)
        shapes |= {"output_linear.bias": ((rows, 1) if settings.get("transposed", True) else (rows,), 0.3)}
        if settings.get("weight_norm", False):
            shapes |= {"output_linear.weight_v": ((rows, C * H), scale), "output_linear.weight_g": ((rows, 1), 0.3, 1.0)}
        else:
            shapes |= {"output_linear.weight": ((rows, C * H), scale)}
    ways = 2 if both else 1
    every = encoder_shapes(H, d_in)
    for level in range(settings.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes)
    if residual and prenorm:
        every |= prefixed("final/", norms)

    def run(ops, filter_of):
        def one(level, p, x):
            return layer(ops, lambda u: filter_of(level, p, u), settings, p, x)
        return stack(lambda level, p, x: one(level, p, x), lambda p, x: norm(ops, settings, p, x) if residual and prenorm else x, settings)

    def forward(record, parameters, x):
        def filter_of(level, p, u):
            z, b, W = modes(settings, p)
            y = steps_of(record, level * ways, settings, z, b, W[:outputs], u)
            if both:
                record.turned.add(level * ways + 1)
                back = steps_of(record, level * ways + 1, settings, z, b, W[outputs:], torch.flip(u, [0]))
                y = y + torch.cat([torch.flip(back, [0])[1:], torch.zeros_like(back[:1])])
            return y
        return both_keys(run(Torch, filter_of), ways)(parameters, x)

    def second(values, x):
        def filter_of(level, p, u):
            K = kernel(settings, p, len(u))
            y = numpy_steps(settings, K[:outputs], u)
            if both:
                y[:-1] += numpy_steps(settings, K[outputs:], u[::-1])[::-1][1:]
            return y
        return both_keys(run(Numpy, filter_of), ways)(values, x)

    def builtin(values, x, kind):
        """The same kernel in PyTorch, whose gradients are not the slopes of its values where a part is detached."""
        parameters = {key: torch.tensor(value, requires_grad=True) for key, value in {"input": x, **values}.items()}

        def filter_of(level, p, u):
            z, b, W = modes(settings, p)
            K = cast(torch.einsum("chn,hnk->chk", W * b, torch.exp(z[:, :, None] * torch.arange(len(u)))), settings.get("kernel_to_real", "real"))
            return torch.stack([sum(K[:, :, k] * u[t - k] for k in range(t + 1)) for t in range(len(u))])
        output = run(Torch, filter_of)({key: value for key, value in parameters.items() if key != "input"}, parameters["input"])
        return output.detach().numpy(), {key: value.numpy() for key, value in zip(parameters, torch.autograd.grad(loss_of(output, kind), parameters.values()))}

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    detached = settings.get("version") == "softmax-detached"
    make(name, model, settings, loss, f"step loop from the equations of {model.upper()}, checked against sums over the kernel's values", draw(seed, every), x, forward,
         second=None if detached else second, builtin=builtin if detached else None, seed=seed)


def both_keys(run, ways):
    """Layers that run both ways count twice: the second one's parameters stand under 2."""
    def renamed(parameters, x):
        keys = {}
        for key, value in parameters.items():
            first, slash, rest = key.partition("/")
            keys[f"{int(first) // ways}{slash}{rest}" if first.isdigit() else key] = value
        return run(keys, x)
    return renamed


def main():
    def dss(name, settings, T, d_in, loss, seed):
        case(name, "dss", dss_modes, numpy_dss_kernel, settings, T, d_in, loss, seed)

    def dlr(name, settings, T, d_in, loss, seed):
        case(name, "dlr", dlr_modes, numpy_dlr_kernel, settings, T, d_in, loss, seed)

    bare = {"output": "none", "block": "none"}
    dss("dss-bare", {"width": 3, "state": 4, "version": "exp", **bare}, 18, 3, "last", 901)
    dss("dss-softmax", {"width": 3, "state": 5, "layers": 1, "version": "softmax", "length": 14, "epsilon": 1e-3, "sep_dt_re_im": True, "postact": "glu", "block": "none"}, 14, 2, "mean", 902)
    dss("dss-softmax-detached", {"width": 3, "state": 4, "version": "softmax-detached", "length": 12, "block": "none"}, 12, 2, "mean", 910)
    dss("dss-re-im-both", {"width": 3, "state": 3, "layers": 2, "version": "exp-re-im", "bidirectional": True, "kernel_to_real": "imag", "activation": "silu", "postact": "gelu",
                           "transposed": False}, 12, 3, "mean", 903)
    dss("dss-no-scale", {"width": 3, "state": 3, "version": "exp-no-scale", "channels": 2, "kernel_to_real": "sum", "activation": "tanh", "postact": "geglu", "prenorm": True,
                         "norm": "scalars", "hyper_act": "relu"}, 14, 2, "last", 904)
    dss("dss-no-scale-real", {"width": 3, "state": 4, "version": "exp-no-scale-real", "activation": "relu", "postact": "tanh", "hyper_act": "gelu", "norm": "none", "weight_norm": True}, 14, 3, "mean", 905)
    dss("dss-clip", {"width": 3, "state": 4, "version": "clip", "max_real_Lambda": 0.2, "activation": "sigmoid", "postact": "relu", "hyper_act": "tanh", "bidirectional": True, "prenorm": True}, 12, 2, "mean", 906)
    dss("dss-product", {"width": 3, "state": 3, "version": "clip-no-scale", "max_real_Lambda": -0.1, "kernel_to_real": "prod", "hyper_act": "silu", "activation": "none", "postact": "silu"}, 14, 3, "mean", 907)
    dss("dss-truncated", {"width": 3, "state": 3, "version": "exp", "max_kernel_length": 5, "hyper_act": "sigmoid", "postact": "sigmoid", "channels": 2, "bidirectional": True}, 13, 3, "mean", 908)
    dss("dss-softmax-truncated", {"width": 2, "state": 3, "version": "softmax", "length": 4, "max_kernel_length": 4, "kernel_to_real": "prod", "block": "none"}, 12, 2, "mean", 909)

    dlr("dlr-bare", {"width": 3, "state": 4, **bare}, 18, 3, "last", 921)
    dlr("dlr-product", {"width": 3, "state": 3, "layers": 2, "kernel_to_real": "prod", "activation": "none", "postact": "glu", "prenorm": True, "hyper_act": "tanh"}, 14, 2, "mean", 922)
    dlr("dlr-imag-both", {"width": 3, "state": 3, "layers": 2, "version": "Lambda_imag", "bidirectional": True, "kernel_to_real": "imag", "activation": "silu", "postact": "gelu",
                          "transposed": False}, 12, 3, "mean", 923)
    dlr("dlr-imag-W-real", {"width": 3, "state": 4, "version": "Lambda_imag_W_real", "channels": 2, "kernel_to_real": "sum", "activation": "tanh", "postact": "geglu", "norm": "scalars",
                            "hyper_act": "relu"}, 14, 2, "last", 924)
    dlr("dlr-real", {"width": 3, "state": 4, "version": "Lambda_real_W_real", "activation": "relu", "postact": "tanh", "hyper_act": "gelu", "norm": "none", "weight_norm": True}, 14, 3, "mean", 925)
    dlr("dlr-real-prod", {"width": 4, "state": 3, "kernel_to_real": "real-prod", "activation": "sigmoid", "postact": "relu", "hyper_act": "silu", "channels": 2, "bidirectional": True}, 12, 4, "mean", 926)
    dlr("dlr-truncated", {"width": 3, "state": 3, "kernel_to_real": "real-prod", "max_kernel_length": 5, "hyper_act": "sigmoid", "postact": "silu"}, 13, 3, "mean", 927)
    dlr("dlr-sigmoid", {"width": 2, "state": 3, "version": "full", "kernel_to_real": "prod", "postact": "sigmoid", "block": "none"}, 12, 2, "mean", 928)


if __name__ == "__main__":
    main()
