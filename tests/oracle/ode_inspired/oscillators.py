# SPDX-License-Identifier: GPL-3.0-or-later
"""LEM, UnICORNN and the neural wave machine as plain step loops, checked against rounds of all steps at once (harness.settle).

LEM       Rusch, Mishra, Erichson and Mahoney 2022; tk-rusch/LEM, sMNIST/network.py (LEMCell): i_z of the input goes into y, i_y into z.
Neural wave machine  Keller and Welling 2023; akandykeller/NeuralWaveMachines, Sequence_Modeling/sMNIST: multiconv1d_model.py, conv2d_model.py and
          uncoupled_model.py.
UnICORNN  Rusch and Mishra 2021; tk-rusch/unicornn, health_care/network.py: the CUDA source of the step, and the layers round it.
"""
import numpy as np
import torch

from harness import draw, make, settle, under
from state_space import logistic


# ---------------------------------------------------------------------------------------------------------------- LEM

def lem(record, settings, parameters, x):
    dt, H = settings.get("dt", 1.0), settings["width"]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        y, z = torch.zeros(H), torch.zeros(H)
        outputs = []
        for u in x:
            i_dt1, i_dt2, i_z, i_y = (p["inp2hid.weight"] @ u + p["inp2hid.bias"]).reshape(4, H)

            def step(y, z):
                h_dt1, h_dt2, h_y = (p["hid2hid.weight"] @ y + p["hid2hid.bias"]).reshape(3, H)
                of_y, of_z = dt * torch.sigmoid(i_dt1 + h_dt1), dt * torch.sigmoid(i_dt2 + h_dt2)
                z = (1.0 - of_z) * z + of_z * torch.tanh(i_y + h_y)
                return (1.0 - of_y) * y + of_y * torch.tanh(p["transform_z.weight"] @ z + p["transform_z.bias"] + i_z), z

            y, z = record.step(layer, step, y, z)
            y, z = record.state(layer, "y", y), record.state(layer, "z", z)
            outputs.append(y)
        x = torch.stack(outputs)
    return x


def numpy_lem(settings, values, x):
    """The equations of the paper, each with a matrix of its own, and moves instead of mixtures: z + Δ (tanh - z)."""
    dt, H = settings.get("dt", 1.0), settings["width"]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        V1, V2, Vy, Vz = np.split(p["inp2hid.weight"], 4)
        W1, W2, Wz = np.split(p["hid2hid.weight"], 3)
        b1, b2, by, bz = np.split(p["inp2hid.bias"], 4)
        c1, c2, cz = np.split(p["hid2hid.bias"], 3)

        def update(y, z):
            slow = dt * logistic(y @ W2.T + x @ V2.T + b2 + c2)
            fast = dt * logistic(y @ W1.T + x @ V1.T + b1 + c1)
            z = z + slow * (np.tanh(y @ Wz.T + x @ Vz.T + bz + cz) - z)
            return y + fast * (np.tanh(z @ p["transform_z.weight"].T + x @ Vy.T + by + p["transform_z.bias"]) - y), z

        x = settle(update, len(x), (H,), (H,))[0]
    return x


# ----------------------------------------------------------------------------------------------------------- UnICORNN

def time_steps(settings):
    """Of each layer: dt at the first and dt_top at the last, between them in equal ratios."""
    first, last, L = settings.get("dt", 0.19), settings.get("dt_top", 0.0), settings["layers"]
    if last == 0.0:
        return [first] * L
    return list(np.geomspace(first, last, L)) if L > 1 else [first]


def unicornn(record, settings, parameters, x):
    alpha, H = settings.get("alpha", 30.65), settings["width"]
    for layer, dt in enumerate(time_steps(settings)):
        p = under(parameters, f"{layer}/")
        hy, hz, dt = torch.zeros(H), torch.zeros(H), p.get("dt", dt)
        outputs = []
        for u in x:
            driven = p["fc.weight"] @ u + p["fc.bias"]

            def step(hy, hz):
                hz = hz - dt * torch.sigmoid(p["c_"]) * (torch.tanh(hy * p["weight_hh"] + driven) + alpha * hy)
                return hy + dt * torch.sigmoid(p["c_"]) * hz, hz

            hy, hz = record.units(layer, step, hy, hz)
            hy, hz = record.state(layer, "hy", hy), record.state(layer, "hz", hz)
            outputs.append(hy)
        x = torch.stack(outputs)
    return x


def numpy_unicornn(settings, values, x):
    """The equation of second order in y alone: y_{t+1} = 2 y_t - y_{t-1} - s^2 (tanh + α y_t), with y_0 = y_{-1} = 0."""
    alpha, H = settings.get("alpha", 30.65), settings["width"]
    for layer, dt in enumerate(time_steps(settings)):
        p = under(values, f"{layer}/")
        s = p.get("dt", dt) / (1.0 + np.exp(-p["c_"]))
        driven = x @ p["fc.weight"].T + p["fc.bias"]
        before, now, ys = np.zeros(H), np.zeros(H), []
        for u in driven:
            before, now = now, 2.0 * now - before - s * s * (np.tanh(p["weight_hh"] * now + u) + alpha * now)
            ys.append(now)
        x = np.stack(ys)
    return x


# ------------------------------------------------------------------------------------------------ neural wave machine

def wave_machine(record, settings, parameters, x):
    """With PyTorch's convolution, padded circularly."""
    dt, gamma, epsilon, R, n = settings["dt"], settings["gamma"], settings["epsilon"], settings["rings"], settings["width"]
    kind = settings.get("coupling", "1d")

    def coupled(p, name, state):
        if kind == "none":
            return p[name] * state
        half = settings.get("kernel", 3) // 2
        pad = (half, half, half, half) if kind == "2d" else (half, half, 0, 0)
        around = torch.nn.functional.pad(state[None, None], pad, mode=settings.get("padding", "circular"))
        return torch.nn.functional.conv2d(around, p[f"{name}.weight"], p[f"{name}.bias"])[0, 0]

    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        x = encoded(settings, p, x)
        hy, hz = torch.zeros(R, n), torch.zeros(R, n)
        outputs = []
        for u in x:
            driven = (p["Wx.weight"] @ u + p["Wx.bias"]).reshape(R, n)

            def step(hy, hz):
                hy, hz = hy.reshape(R, n), hz.reshape(R, n)
                hz = hz + dt * (torch.tanh(driven + coupled(p, "Wz", hz) + coupled(p, "Wy", hy)) - gamma * hy - epsilon * hz)
                return (hy + dt * hz).reshape(-1), hz.reshape(-1)

            hy, hz = (record.units if kind == "none" else record.step)(layer, step, hy.reshape(-1), hz.reshape(-1))
            hy, hz = record.state(layer, "hy", hy.reshape(R, n)), record.state(layer, "hz", hz.reshape(R, n))
            outputs.append(hy.reshape(-1))
        x = torch.stack(outputs)
    return decoded(settings, parameters, x)


def numpy_wave_machine(settings, values, x):
    """The convolution as a matrix on all units, made of permutations."""
    dt, gamma, epsilon, R, n = settings["dt"], settings["gamma"], settings["epsilon"], settings["rings"], settings["width"]
    H, kind = R * n, settings.get("coupling", "1d")

    def matrix(p, name):
        if kind == "none":
            return p[name][0] * np.eye(H), 0.0
        kernel, M = p[f"{name}.weight"][0, 0], np.zeros((H, H))
        half = settings.get("kernel", 3) // 2
        for (a, b), w in np.ndenumerate(kernel):
            down = a - half if kind == "2d" else 0
            for i in range(R):
                for j in range(n):
                    at = beyond(settings, i + down, R), beyond(settings, j + b - half, n)
                    if None not in at:
                        M[i * n + j, at[0] * n + at[1]] += w
        return M, p[f"{name}.bias"]

    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        x = encoded(settings, p, x)
        (M_z, b_z), (M_y, b_y) = matrix(p, "Wz"), matrix(p, "Wy")
        drive = x @ p["Wx.weight"].T + p["Wx.bias"] + b_z + b_y

        def update(y, z):
            z = (1.0 - dt * epsilon) * z - dt * gamma * y + dt * np.tanh(drive + z @ M_z.T + y @ M_y.T)
            return y + dt * z, z

        x = settle(update, len(x), (H,), (H,))[0]
    return decoded(settings, values, x)


def beyond(settings, i, n):
    """The place that entry i of n stands for, by PyTorch's paddings; None: zero."""
    return {"circular": i % n, "constant": i if 0 <= i < n else None, "replicate": min(max(i, 0), n - 1), "reflect": n - 1 - abs(n - 1 - abs(i))}[settings.get("padding", "circular")]


def mapped(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def encoded(settings, p, x):
    """Gaussian_Encoder at its mean round LinearFC_Encoder or LinearLayer_MLP_Encoder, and the grouper's layer norm of the first half."""
    kind = settings.get("encoder", "none") if any(key.startswith("encoder.") for key in p) else "none"
    if kind == "none":
        return x
    relu, units = lambda v: v * (v > 0), settings["rings"] * settings["width"]
    for name in ("1", "3") if kind == "mlp" else ():
        x = relu(mapped(p, f"encoder.model.{name}", x))
    mean = mapped(p, "encoder.model." + ("5" if kind == "mlp" else "1"), x)[:, :units]
    if isinstance(x, torch.Tensor):
        return torch.nn.functional.layer_norm(mean, (units,))
    centred = mean - mean.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)


def decoded(settings, parameters, x):
    p, kind = under(parameters, "final/"), settings.get("decoder", "none")
    if kind == "none":
        return x
    for name in ("0", "2") if kind == "mlp" else ():
        x = mapped(p, f"decoder.model.{name}", x)
        x = x * (x > 0)
    x = mapped(p, "decoder.model." + ("4" if kind == "mlp" else "0"), x)
    return torch.sigmoid(x) if isinstance(x, torch.Tensor) else logistic(x)


def picture_shapes(settings, d_in):
    units, pixels = settings["rings"] * settings["width"], settings.get("pixels", 64)
    sizes = {"none": [], "fc": [d_in, 4 * units], "mlp": [d_in, 6 * units, 4 * units, 4 * units]}[settings.get("encoder", "none")]
    shapes = {f"0/encoder.model.{2 * i + 1}": pair for i, pair in enumerate(zip(sizes[1:], sizes))}
    sizes = {"none": [], "fc": [units, pixels], "mlp": [units, 2 * units, 3 * units, pixels]}[settings.get("decoder", "none")]
    shapes |= {f"final/decoder.model.{2 * i}": pair for i, pair in enumerate(zip(sizes[1:], sizes))}
    return {key: value for name, (out, inner) in shapes.items() for key, value in {f"{name}.weight": ((out, inner), 1.0 / inner**0.5), f"{name}.bias": ((out,), 0.3)}.items()}


def generative_machine(record, settings, parameters, x):
    """Det_CoRNN_Caps with Conv_Cap2Cap, kernels by PyTorch's convolution."""
    R, n, torus = settings["rings"], settings["width"], settings.get("coupling", "1d") == "2d"
    groups = 1 if torus or settings.get("shared", True) else R

    K, mode = settings.get("kernel", 3), settings.get("padding", "circular")
    half = K // 2

    def coupled(p, name, state):
        weight = p[f"{name}.conv.weight"]
        if torus:
            around = torch.nn.functional.pad(state[None, None], (half,) * 4, mode=mode)
            if settings.get("locally_connected"):
                return (around.unfold(2, K, 1).unfold(3, K, 1).reshape(1, 1, R, n, K * K) * weight[:, 0]).sum(-1)[0, 0]
            return torch.nn.functional.conv2d(around, weight)[0, 0]
        around = torch.nn.functional.pad(state[None], (half, half), mode=mode)
        if settings.get("locally_connected"):
            return (around.unfold(2, K, 1)[0] * weight[0, :, 0]).sum(-1)
        made = torch.nn.functional.conv1d(around.reshape(-1, groups, n + 2 * half), weight, groups=groups)
        return (p.get(f"{name}.mult", torch.ones(1, 1)) * made).reshape(R, n)

    if "encoder/weight" in parameters:
        x = x @ parameters["encoder/weight"].T + parameters["encoder/bias"]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        x = encoded(settings, p, x)
        hy, hz, outputs = torch.zeros(R, n), torch.zeros(R, n), []
        for t, u in enumerate(x):
            start = u.reshape(R, n) if t == 0 and settings.get("start_from_input") else torch.zeros(R, n)
            driven = coupled(p, "driving", u.reshape(R, n))

            def step(h, v):
                h, v = h.reshape(R, n) + start, v.reshape(R, n)
                for _ in range(settings.get("internal_steps", 1)):
                    v = v + torch.sigmoid(p["dt"]) * (torch.tanh(coupled(p, "coupling", h) + coupled(p, "damping", v) + driven + p["b_bar"].reshape(-1, n)) - torch.relu(p["gamma"]) * h - torch.relu(p["alpha"]) * v)
                    h = h + torch.sigmoid(p["dt"]) * v
                    if settings.get("layer_norm", True):
                        h = torch.nn.functional.layer_norm(h, (R, n), p["ln_h.weight"].reshape(R, n), p["ln_h.bias"].reshape(R, n))
                return h.reshape(-1), v.reshape(-1)

            if settings.get("layer_norm", True):
                record.singular.add(layer)  # positions after the norm have one mean
            hy, hz = record.step(layer, step, hy.reshape(-1), hz.reshape(-1))
            hy, hz = record.state(layer, "hy", hy.reshape(R, n)), record.state(layer, "hz", hz.reshape(R, n))
            outputs.append(hy.reshape(-1))
        x = torch.stack(outputs)
    return decoded(settings, parameters, x)


def numpy_generative_machine(settings, values, x):
    """The convolutions as sums of turned arrays."""
    R, n, torus = settings["rings"], settings["width"], settings.get("coupling", "1d") == "2d"

    K = settings.get("kernel", 3)
    half = K // 2

    def moved(state, by, axis):
        """Entry i is that of place i + by."""
        places = [beyond(settings, i + by, state.shape[axis]) for i in range(state.shape[axis])]
        taken = np.take(state, [place or 0 for place in places], axis=axis)
        shape = [1] * state.ndim
        shape[axis] = -1
        return taken * np.array([place is not None for place in places]).reshape(shape)

    def coupled(p, name, state):
        weight = p[f"{name}.conv.weight"]
        if torus:
            of = (lambda a, b: weight[0, 0, 0, :, :, a * K + b]) if settings.get("locally_connected") else lambda a, b: weight[0, 0, a, b]
            return sum(of(a, b) * moved(moved(state, a - half, -2), b - half, -1) for a in range(K) for b in range(K))
        if settings.get("locally_connected"):
            return sum(weight[0, :, 0, :, i] * moved(state, i - half, -1) for i in range(K))
        kernel = weight * p.get(f"{name}.mult", np.ones((1, 1)))[:, :, None]
        return sum(kernel[:, 0, i:i + 1] * moved(state, i - half, -1) for i in range(K))

    if "encoder/weight" in values:
        x = x @ values["encoder/weight"].T + values["encoder/bias"]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        s, x = 1.0 / (1.0 + np.exp(-p["dt"])), encoded(settings, p, x)
        start = np.zeros((len(x), R, n))
        if settings.get("start_from_input"):
            start[0] = x[0].reshape(R, n)
        drive = coupled(p, "driving", x.reshape(-1, R, n)) + p["b_bar"].reshape(-1, n)

        def update(h, v):
            h = h + start
            for _ in range(settings.get("internal_steps", 1)):
                v = (1.0 - s * np.maximum(p["alpha"], 0.0)) * v + s * (np.tanh(drive + coupled(p, "damping", v) + coupled(p, "coupling", h)) - np.maximum(p["gamma"], 0.0) * h)
                h = h + s * v
                if settings.get("layer_norm", True):
                    centred = h - h.mean((-2, -1), keepdims=True)
                    h = centred / np.sqrt((centred**2).mean((-2, -1), keepdims=True) + 1e-5) * p["ln_h.weight"].reshape(R, n) + p["ln_h.bias"].reshape(R, n)
            return h, v

        x = settle(update, len(x), (R, n), (R, n))[0].reshape(len(x), -1)
    return decoded(settings, values, x)


# -------------------------------------------------------------------------------------------------------------- cases

def case(name, architecture, settings, T, d_in, loss, seed, shapes_of, forward, second, source):
    inputs, shapes = d_in, {}
    if architecture == "neural-wave-machine":
        shapes = picture_shapes(settings, d_in)
        inputs = d_in if settings.get("encoder", "none") == "none" else settings["width"] * settings["rings"]
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/{key}": value for key, value in shapes_of(settings, inputs).items()}
        inputs = settings["width"] * settings.get("rings", 1)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, architecture, settings, loss, source, draw(seed, shapes), x, lambda record, p, v: forward(record, settings, p, v),
         second=lambda p, v: second(settings, p, v), seed=seed)


def lem_shapes(settings, inputs):
    H = settings["width"]
    return {"inp2hid.weight": ((4 * H, inputs), 0.8), "inp2hid.bias": ((4 * H,), 0.4), "hid2hid.weight": ((3 * H, H), 0.7),
            "hid2hid.bias": ((3 * H,), 0.4), "transform_z.weight": ((H, H), 0.7), "transform_z.bias": ((H,), 0.4)}


def lem_case(name, settings, T, d_in, loss, seed):
    case(name, "lem", settings, T, d_in, loss, seed, lem_shapes, lem, numpy_lem,
         "step loop from the equations of LEMCell, checked against rounds of all steps at once")


def unicornn_shapes(settings, inputs):
    H = settings["width"]
    return {"fc.weight": ((H, inputs), 0.8), "fc.bias": ((H,), 0.4), "weight_hh": ((H,), 0.5, 0.6), "c_": ((H,), 0.8)} | ({"dt": ((1,), 0.1, 0.3)} if settings.get("dt_per_layer") else {})


def unicornn_case(name, settings, T, d_in, loss, seed):
    case(name, "unicornn", settings, T, d_in, loss, seed, unicornn_shapes, unicornn, numpy_unicornn,
         "step loop from the CUDA source of UnICORNN, checked against its equation of second order in y")


def wave_shapes(settings, inputs):
    H, kind = settings["rings"] * settings["width"], settings.get("coupling", "1d")
    shapes = {"Wx.weight": ((H, inputs), 0.8), "Wx.bias": ((H,), 0.3)}
    for name in ("Wz", "Wy"):
        if kind == "none":
            shapes[name] = ((1,), 0.5, 0.7)
        else:
            shapes |= {f"{name}.weight": ((1, 1, settings.get("kernel", 3) if kind == "2d" else 1, settings.get("kernel", 3)), 0.6), f"{name}.bias": ((1,), 0.3)}
    return shapes


def wave_case(name, settings, T, d_in, loss, seed):
    case(name, "neural-wave-machine", settings, T, d_in, loss, seed, wave_shapes, wave_machine, numpy_wave_machine,
         "step loop with PyTorch's circular convolution, checked against rounds of all steps at once with matrices of permutations")


def generative_case(name, settings, T, d_in, loss, seed):
    R, n, torus = settings["rings"], settings["width"], settings.get("coupling", "1d") == "2d"
    kernels = 1 if torus or settings.get("shared", True) else R
    K, local = settings.get("kernel", 3), settings.get("locally_connected")
    shapes = {"encoder/weight": ((R * n, d_in), 0.7), "encoder/bias": ((R * n,), 0.3)} if d_in != R * n and settings.get("encoder", "none") == "none" else picture_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        own = {"dt": ((1,), 0.2, -1.0), "gamma": ((1,), 0.2, 1.1), "alpha": ((1,), 0.1, 0.6), "b_bar": ((1, R, n) if torus else (1, n), 0.3)}
        for name_ in ("coupling", "damping", "driving"):
            shape = (1, 1, 1, R, n, K * K) if local and torus else (1, kernels, 1, n, K) if local else (1, 1, K, K) if torus else (kernels, 1, K)
            own[f"{name_}.conv.weight"] = (shape, 0.6 if K == 3 else 0.3)
            if settings.get("forward_only"):
                own[f"{name_}.mult"] = ((kernels, 1), 0.3, 1.0)
        if settings.get("layer_norm", True):
            of_norm = (1, R, n) if torus else (R, n)
            own |= {"ln_h.weight": (of_norm, 0.3, 1.0), "ln_h.bias": (of_norm, 0.3)}
        shapes |= {f"{layer}/{key}": value for key, value in own.items()}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "neural-wave-machine", settings | {"cell": "generative"}, loss, "step loop from Det_CoRNN_Caps, checked against rounds of all steps at once with turned arrays", draw(seed, shapes), x,
         lambda record, p, v: generative_machine(record, settings, p, v), second=lambda p, v: numpy_generative_machine(settings, p, v), seed=seed)


def main():
    generative_case("neural-wave-machine-generative", {"width": 4, "rings": 2, "layers": 2, "internal_steps": 2}, 10, 3, "mean", 661)
    generative_case("neural-wave-machine-generative-ahead", {"width": 4, "rings": 2, "layers": 1, "shared": False, "forward_only": True, "layer_norm": False}, 12, 8, "last", 662)
    generative_case("neural-wave-machine-generative-2d", {"width": 4, "rings": 3, "layers": 1, "coupling": "2d"}, 8, 2, "mean", 663)
    pictures = {"width": 5, "rings": 1, "layers": 1, "encoder": "mlp", "decoder": "mlp", "pixels": 3, "start_from_input": True}
    generative_case("neural-wave-machine-pictures", pictures | {"layers": 2}, 8, 3, "mean", 1664)
    generative_case("neural-wave-machine-local-2d", {"width": 4, "rings": 3, "layers": 1, "coupling": "2d", "locally_connected": True, "padding": "reflect", "encoder": "fc", "layer_norm": False}, 8, 4, "mean", 665)
    generative_case("neural-wave-machine-local", {"width": 5, "rings": 2, "layers": 1, "shared": False, "locally_connected": True, "padding": "replicate", "kernel": 5, "start_from_input": True, "layer_norm": False}, 9, 10, "mean", 666)
    generative_case("neural-wave-machine-wide-2d", {"width": 5, "rings": 4, "layers": 1, "coupling": "2d", "kernel": 5, "padding": "constant", "layer_norm": False}, 6, 20, "last", 667)
    ring = {"width": 4, "rings": 2, "layers": 1, "dt": 0.3, "gamma": 1.7, "epsilon": 0.9}
    wave_case("neural-wave-machine", ring, 16, 2, "last", 245)
    wave_case("neural-wave-machine-layers", ring | {"width": 3, "layers": 2}, 12, 3, "mean", 246)
    wave_case("neural-wave-machine-2d", ring | {"rings": 3, "width": 4, "coupling": "2d"}, 12, 2, "mean", 247)
    wave_case("neural-wave-machine-none", ring | {"coupling": "none"}, 16, 2, "mean", 248)
    wave_case("neural-wave-machine-wide", ring | {"width": 6, "kernel": 5, "padding": "reflect", "decoder": "fc", "pixels": 3}, 12, 2, "mean", 668)
    wave_case("neural-wave-machine-wide-round", ring | {"rings": 3, "width": 4, "coupling": "2d", "padding": "replicate", "encoder": "fc"}, 10, 3, "mean", 669)
    lem_case("lem", {"width": 5, "layers": 1}, 24, 2, "last", 241)
    lem_case("lem-layers", {"width": 4, "layers": 2, "dt": 0.3}, 18, 3, "mean", 242)
    unicornn_case("unicornn", {"width": 5, "layers": 1}, 30, 2, "last", 243)
    unicornn_case("unicornn-layers", {"width": 4, "layers": 3, "dt": 0.3, "dt_top": 1.2, "alpha": 1.4}, 20, 3, "mean", 244)
    unicornn_case("unicornn-dt-per-layer", {"width": 4, "layers": 3, "alpha": 1.4, "dt_per_layer": True}, 20, 3, "mean", 249)


if __name__ == "__main__":
    main()
