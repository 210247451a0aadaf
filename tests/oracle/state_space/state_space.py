# SPDX-License-Identifier: GPL-3.0-or-later
"""LRU, S4D and Mamba as plain step loops, each checked against a form that computes no state step by step.

LRU  Orvieto et al. 2023; names, GELU (tanh approximation) and norm (eps 1e-6) of NicolasZucchet/minimal-LRU, lru/model.py.
S4D  Gu et al. 2022; models/s4/s4d.py and the block of example.py in state-spaces/s4 (GELU with erf, eps 1e-5), the bilinear rule of its
     SSM kernels.
Mamba  Gu and Dao 2023; state-spaces/mamba, modules/mamba_simple.py, RMS norm (eps 1e-5) before each mixer and after the stack.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
import mixer_attention

erf = np.vectorize(math.erf)


def logistic(a):
    return 1.0 / (1.0 + np.exp(-a))


def layer_norm(p, x, eps):
    """Or a batch norm as it is after the training, where there are its statistics."""
    if "norm.running_mean" in p:
        return (x - p["norm.running_mean"]) / torch.sqrt(p["norm.running_var"] + 1e-5) * p["norm.weight"] + p["norm.bias"]
    return torch.nn.functional.layer_norm(x, x.shape[1:], p["norm.weight"], p["norm.bias"], eps)


def numpy_layer_norm(p, x, eps):
    if "norm.running_mean" in p:
        return (x - p["norm.running_mean"]) * (p["norm.running_var"] + 1e-5) ** -0.5 * p["norm.weight"] + p["norm.bias"]
    mean = x.mean(1)[:, None]
    variance = (x**2).mean(1)[:, None] - mean**2
    return (x - mean) * (variance + eps) ** -0.5 * p["norm.weight"] + p["norm.bias"]


def residual_block(mixer, norm, settings, x):
    """Prenorm: x + mixer(norm(x)); postnorm: norm(x + mixer(x)); block none: mixer(x)."""
    if settings["block"] == "none":
        return mixer(x)
    if settings.get("norm", "layer") == "none":
        return x + mixer(x)
    return x + mixer(norm(x)) if settings["prenorm"] else norm(x + mixer(x))


def encode(parameters, x):
    """The linear encoder in front, where the input is not as wide as the model."""
    if "encoder/weight" not in parameters:
        return x
    return x @ parameters["encoder/weight"].T + parameters.get("encoder/bias", 0.0)


def tokens(seed, T, vocabulary):
    """What a language model reads: one-hot columns."""
    return np.eye(vocabulary)[np.random.default_rng(seed + 500).integers(vocabulary, size=T)]


def read_out(settings, parameters, y, tanh):
    """The head of a language model: its embedding again where it is tied, no larger than a soft cap."""
    if settings["read_out"] == "tied":
        y = y @ parameters["encoder/weight"]
    else:
        y = y @ parameters["head/weight"].T
    cap = settings.get("soft_cap", 0.0)
    return cap * tanh(y / cap) if cap else y


def language_shapes(settings, vocabulary):
    """Of the encoder without a bias, and of a head of its own where there is one."""
    shape = (vocabulary, settings["width"])
    return {"encoder/weight": (shape[::-1], 0.7)} | ({"head/weight": (shape, 0.7)} if settings["read_out"] == "no-bias" else {})


# ---------------------------------------------------------------------------------------------------------------- LRU

def lru_mixer(record, layer, settings, p, x):
    eigenvalues = torch.exp(torch.complex(-torch.exp(p["nu_log"]), torch.exp(p["theta_log"])))
    B = torch.complex(p["B_re"], p["B_im"]) * torch.exp(p["gamma_log"])[:, None]
    C = torch.complex(p["C_re"], p["C_im"])
    h = torch.zeros(settings["state"], dtype=torch.complex128)
    outputs = []
    for u in x:
        record.transition(layer, eigenvalues, constant=True)
        h = record.state(layer, "h", eigenvalues * h + B @ u.to(torch.complex128))
        outputs.append((C @ h).real + p["D"] * u)
    y = torch.stack(outputs)
    if settings["block"] == "none":
        return y
    g = torch.nn.functional.gelu(y, approximate="tanh")
    return (g @ p["out1.weight"].T + p["out1.bias"]) * torch.sigmoid(g @ p["out2.weight"].T + p["out2.bias"])


def numpy_lru_mixer(settings, p, x):
    """y_t = D u_t + sum_k K_k u_(t-k) with the matrix kernel K_k = Re(C diag(lambda^k gamma) B), in polar form."""
    modulus, phase = np.exp(-np.exp(p["nu_log"])), np.exp(p["theta_log"])
    gain = np.exp(p["gamma_log"])
    y = np.zeros_like(x)
    for k in range(len(x)):
        a, b = modulus**k * gain * np.cos(phase * k), modulus**k * gain * np.sin(phase * k)
        real = p["C_re"] @ (a[:, None] * p["B_re"] - b[:, None] * p["B_im"])
        imaginary = p["C_im"] @ (a[:, None] * p["B_im"] + b[:, None] * p["B_re"])
        y[k:] += x[: len(x) - k] @ (real - imaginary).T
    y = y + x * p["D"]
    if settings["block"] == "none":
        return y
    g = y * logistic(2.0 * math.sqrt(2.0 / math.pi) * (y + 0.044715 * y * y * y))
    return (g @ p["out1.weight"].T + p["out1.bias"]) * logistic(g @ p["out2.weight"].T + p["out2.bias"])


# ---------------------------------------------------------------------------------------------------------------- S4D

def s4d_mixer(record, layer, settings, p, x):
    A = torch.complex(-torch.exp(p["log_A_real"]), p["A_imag"])
    C = torch.complex(p["C"][..., 0], p["C"][..., 1])
    step = torch.exp(p["log_dt"])[:, None]
    if settings["discretisation"] == "zoh":
        transition = torch.exp(step * A)
        drive = (transition - 1.0) / A
    else:
        transition = (1.0 + step * A / 2.0) / (1.0 - step * A / 2.0)
        drive = step / (1.0 - step * A / 2.0)
    if "B" in p:
        drive = drive * torch.complex(p["B"][..., 0], p["B"][..., 1])
    h = torch.zeros_like(A)
    outputs = []
    for u in x:
        record.transition(layer, transition, constant=True)
        h = record.state(layer, "h", transition * h + drive * u[:, None])
        outputs.append(2.0 * (C * h).sum(1).real + p["D"] * u)
    if settings.get("output", "glu") == "none":
        return torch.stack(outputs)
    y = torch.nn.functional.gelu(torch.stack(outputs))
    out, gate = torch.chunk(y @ p["output_linear.weight"][:, :, 0].T + p["output_linear.bias"], 2, dim=1)
    return out * torch.sigmoid(gate)


def numpy_s4d_mixer(settings, p, x):
    """Convolution by FFT with the kernel of the published layer, which knows no state."""
    T = len(x)
    A = -np.exp(p["log_A_real"]) + 1j * p["A_imag"]
    step_A = A * np.exp(p["log_dt"])[:, None]
    C = p["C"][..., 0] + 1j * p["C"][..., 1]
    C = C * (p["B"] @ [1, 1j]) if "B" in p else C  # a kernel sees their product alone
    if settings["discretisation"] == "zoh":
        log_transition, weight = step_A, C * np.expm1(step_A) / A
    else:
        log_transition = np.log1p(step_A / 2) - np.log1p(-step_A / 2)
        weight = C * step_A / A / (1 - step_A / 2)
    kernel = 2.0 * np.einsum("hn,hnt->ht", weight, np.exp(log_transition[:, :, None] * np.arange(T))).real
    spectrum = np.fft.rfft(kernel, n=2 * T, axis=1) * np.fft.rfft(x.T, n=2 * T, axis=1)
    y = np.fft.irfft(spectrum, n=2 * T, axis=1)[:, :T].T + x * p["D"]
    if settings.get("output", "glu") == "none":
        return y
    y = y * (1.0 - 0.5 * (1.0 - erf(y / math.sqrt(2.0))))
    projected = np.einsum("oi,ti->to", p["output_linear.weight"].squeeze(2), y) + p["output_linear.bias"]
    H = settings["width"]
    return projected[:, :H] * logistic(projected[:, H:])


def pools(settings):
    """Whether the classifier reads the mean over time: S5's word for it, and minimal-LRU's."""
    return settings.get("mode") == "pool" or settings.get("pooling") == "mean"


def means_so_far(record, layer, x):
    mean, rows = torch.zeros(x.shape[1]), []
    for t, row in enumerate(x):
        mean = record.state(layer, "mean", mean * (t / (t + 1)) + row / (t + 1))
        rows.append(mean)
    return torch.stack(rows)


def stack(mixer, settings, eps, ways=1):
    """Encoder, then the layers: LRU and S4D share the block's shape. `ways`: directions of a layer, which are layers of the engine's that share parameters."""
    def run(record, parameters, x):
        x = encode(parameters, x)
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer * ways}/")
            x = residual_block(lambda v: mixer(record, layer, settings, p, v), lambda v: layer_norm(p, v, eps), settings, x)
        return means_so_far(record, (settings["layers"] - 1) * ways, x) if pools(settings) else x
    return run


def numpy_stack(mixer, settings, eps, ways=1):
    def run(values, x):
        x = encode(values, x)
        for layer in range(settings["layers"]):
            p = under(values, f"{layer * ways}/")
            x = residual_block(lambda v: mixer(settings, p, v), lambda v: numpy_layer_norm(p, v, eps), settings, x)
        return np.array([x[:t + 1].mean(0) for t in range(len(x))]) if pools(settings) else x
    return run


# -------------------------------------------------------------------------------------------------------------- Mamba

def mamba_mixer(record, layer, settings, p, x):
    E, N = p["A_log"].shape
    K = p["conv1d.weight"].shape[2]
    rank = p["dt_proj.weight"].shape[1]
    A = -torch.exp(p["A_log"])
    window = [torch.zeros(E) for _ in range(K)]  # the last K inputs of the convolution, the newest last
    h = torch.zeros(E, N)
    outputs = []
    for u in x:
        inner, z = torch.chunk(p["in_proj.weight"] @ u + p.get("in_proj.bias", 0.0), 2)
        window = window[1:] + [inner]
        a = p.get("conv1d.bias", 0.0) + sum(p["conv1d.weight"][:, 0, j] * window[j] for j in range(K))
        a = a * torch.sigmoid(a)
        r, B, C = torch.split(p["x_proj.weight"] @ a, [rank, N, N])
        step = torch.log1p(torch.exp(p["dt_proj.weight"] @ r + p["dt_proj.bias"])).expand(E)
        transition = torch.exp(step[:, None] * A)
        record.transition(layer, transition, constant=False)
        h = record.state(layer, "h", transition * h + ((transition - 1) / A if settings.get("write") == "exact" else step[:, None]) * a[:, None] * B[None, :])
        y = h @ C + p["D"] * a
        outputs.append(p["out_proj.weight"] @ (y * z * torch.sigmoid(z)) + p.get("out_proj.bias", 0.0))
    return torch.stack(outputs)


def numpy_mamba_mixer(settings, p, x):
    """All steps at once: y_t = sum over s <= t of C_t exp(A (c_t - c_s)) B_s dt_s a_s, with c the running sum of dt."""
    T, (E, N) = len(x), p["A_log"].shape
    rank = p["dt_proj.weight"].shape[1]
    both = x @ p["in_proj.weight"].T + p.get("in_proj.bias", np.zeros(2 * E))
    inner, z = both[:, :E], both[:, E:]
    a = np.stack([np.convolve(inner[:, e], p["conv1d.weight"][e, 0, ::-1])[:T] for e in range(E)], axis=1)
    a = a + p.get("conv1d.bias", np.zeros(E))
    a = a * logistic(a)
    projected = a @ p["x_proj.weight"].T
    r, B, C = projected[:, :rank], projected[:, rank:rank + N], projected[:, rank + N:]
    step = np.logaddexp(0.0, r @ p["dt_proj.weight"].T + p["dt_proj.bias"]) * np.ones(E)
    elapsed = np.cumsum(step, axis=0)
    decay = np.exp((elapsed[:, None, :, None] - elapsed[None, :, :, None]) * -np.exp(p["A_log"]))
    decay = np.where(np.tril(np.ones((T, T)))[:, :, None, None] > 0, decay, 0.0)
    written = step[:, :, None] * np.ones(N)
    if settings.get("write") == "exact":  # the integral of e^(-|A| s) over the step, by Gauss and Legendre
        nodes, weights = np.polynomial.legendre.leggauss(24)
        at = 0.5 * step[:, :, None, None] * (nodes + 1.0)
        written = 0.5 * step[:, :, None] * (np.exp(-np.exp(p["A_log"])[None, :, :, None] * at) * weights).sum(3)
    y = np.einsum("tn,tsen,sn,sen,se->te", C, decay, B, written, a) + p["D"] * a
    return (y * z * logistic(z)) @ p["out_proj.weight"].T + p.get("out_proj.bias", np.zeros(x.shape[1]))


def mixer_norm(settings, p, name, x):
    """Of the blocks of mamba_ssm: an rms norm, or a layer norm."""
    eps, weight = settings.get("norm_eps", 1e-5), p[f"{name}.weight"]
    if settings.get("block_norm", "rms") == "layer":
        return torch.nn.functional.layer_norm(x, x.shape[1:], weight, p[f"{name}.bias"], eps)
    return torch.nn.functional.rms_norm(x, x.shape[1:], weight, eps)


def numpy_mixer_norm(settings, p, name, x):
    layer = settings.get("block_norm", "rms") == "layer"
    centred = x - x.mean(1)[:, None] if layer else x
    return centred / np.sqrt((centred * centred).mean(1)[:, None] + settings.get("norm_eps", 1e-5)) * p[f"{name}.weight"] + (p[f"{name}.bias"] if layer else 0.0)


def gated_mlp(sigmoid, p, x):
    both = x @ p["mlp.fc1.weight"].T
    half = both.shape[1] // 2
    return (both[:, :half] * both[:, half:] * sigmoid(both[:, half:])) @ p["mlp.fc2.weight"].T


def mixer_model(mixer_of, norm, sigmoid, tanh, settings):
    """mamba_ssm's MixerModel around mixer_of(layer, parameters of the layer, input), and the head of its language model."""
    def run(parameters, x):
        x = encode(parameters, x)
        for layer in range(settings.get("layers", 1)):
            p = under(parameters, f"{layer}/")
            if settings.get("block", "residual") == "none":
                x = mixer_of(layer, p, x)
                continue
            x = x + mixer_of(layer, p, norm(settings, p, "norm", x))
            if settings.get("mlp", 0):
                x = x + gated_mlp(sigmoid, p, norm(settings, p, "norm2", x))
        if settings.get("block", "residual") != "none":
            x = norm(settings, parameters, "final/norm_f", x)
        return read_out(settings, parameters, x, tanh) if "read_out" in settings else x
    return run


def with_attention(settings, layer, shapes):
    """Where this layer has attention, what that has in place of what the layer's own mixer has."""
    if not mixer_attention.attends(settings, layer):
        return shapes
    around = ("norm.", "norm2.", "mlp.")
    kept = {key: value for key, value in shapes.items() if not key.startswith(f"{layer}/") or key[len(f"{layer}/"):].startswith(around)}
    return kept | {f"{layer}/{key}": value for key, value in mixer_attention.shapes(settings).items()}


def attention_or(settings, steps, second):
    """The mixers of both forms, which are attention in some layers."""
    def step_loop(record, layer, p, x):
        return mixer_attention.step_loop(record, layer, settings, p, x) if mixer_attention.attends(settings, layer) else steps(record, layer, p, x)

    def at_once(layer, p, x):
        return mixer_attention.matrices(settings, p, x) if mixer_attention.attends(settings, layer) else second(layer, p, x)
    return step_loop, at_once


def mixer_model_shapes(settings, d_in):
    """Of all that is not a mixer's."""
    D, M = settings["width"], settings.get("mlp", 0)
    shapes = language_shapes(settings, d_in) if "read_out" in settings else encoder_shapes(settings, d_in)
    if settings.get("block", "residual") == "none":
        return shapes
    norms = [f"{layer}/norm" for layer in range(settings.get("layers", 1))] + ["final/norm_f"]
    if M:
        norms += [f"{layer}/norm2" for layer in range(settings.get("layers", 1))]
        for layer in range(settings.get("layers", 1)):
            shapes |= {f"{layer}/mlp.fc1.weight": ((2 * M, D), 0.6), f"{layer}/mlp.fc2.weight": ((D, M), 0.5)}
    for name in norms:
        shapes |= {f"{name}.weight": ((D,), 0.3, 1.0)}
        if settings.get("block_norm", "rms") == "layer":
            shapes |= {f"{name}.bias": ((D,), 0.3)}
    return shapes


def mixer_model_inputs(settings, T, d_in, seed):
    return tokens(seed, T, d_in) if "read_out" in settings else np.random.default_rng(seed + 500).standard_normal((T, d_in))


# -------------------------------------------------------------------------------------------------------------- cases

def encoder_shapes(settings, d_in):
    H = settings["width"]
    return {"encoder/weight": ((H, d_in), 0.7), "encoder/bias": ((H,), 0.3)} if d_in != H else {}


def norm_shapes(prefix, settings):
    H = settings["width"]
    shapes = {f"{prefix}weight": ((H,), 0.3, 1.0), f"{prefix}bias": ((H,), 0.3)}
    return shapes | ({f"{prefix}running_mean": ((H,), 0.3), f"{prefix}running_var": ((H,), 0.15, 1.2)} if settings.get("norm", "layer") == "batch" else {})


def lru_case(name, settings, T, d_in, loss, seed):
    H, N = settings["width"], settings["state"]
    shapes = encoder_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/theta_log": ((N,), 0.6, -0.5), f"{layer}/nu_log": ((N,), 0.7, -1.8), f"{layer}/gamma_log": ((N,), 0.4, -0.7),
                   f"{layer}/B_re": ((N, H), 0.3), f"{layer}/B_im": ((N, H), 0.3),
                   f"{layer}/C_re": ((H, N), 0.35), f"{layer}/C_im": ((H, N), 0.35), f"{layer}/D": ((H,), 0.8)}
        if settings["block"] != "none" and settings.get("norm", "layer") != "none":
            shapes |= norm_shapes(f"{layer}/norm.", settings)
        if settings["block"] != "none":
            shapes |= {f"{layer}/out1.weight": ((H, H), 0.5), f"{layer}/out1.bias": ((H,), 0.3),
                       f"{layer}/out2.weight": ((H, H), 0.5), f"{layer}/out2.bias": ((H,), 0.3)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "lru", settings, loss, "step loop from the equations of minimal-LRU, checked against its kernel form", draw(seed, shapes), x,
         stack(lru_mixer, settings, 1e-6), second=numpy_stack(numpy_lru_mixer, settings, 1e-6), seed=seed)


def s4d_case(name, settings, T, d_in, loss, seed):
    H, N = settings["width"], settings["state"] // 2
    shapes = encoder_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/log_dt": ((H,), 0.5, -1.8), f"{layer}/log_A_real": ((H, N), 0.4, -0.7), f"{layer}/A_imag": ((H, N), 2.0, 3.0),
                   f"{layer}/C": ((H, N, 2), 0.9), f"{layer}/D": ((H,), 0.8)}
        if settings.get("output", "glu") == "glu":
            shapes |= {f"{layer}/output_linear.weight": ((2 * H, H, 1), 0.6), f"{layer}/output_linear.bias": ((2 * H,), 0.3)}
        if settings.get("input_matrix", "ones") == "trained":
            shapes |= {f"{layer}/B": ((H, N, 2), 0.8)}
        if settings["block"] != "none":
            shapes |= {f"{layer}/norm.weight": ((H,), 0.3, 1.0), f"{layer}/norm.bias": ((H,), 0.3)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "s4d", settings, loss, "step loop from the equations of S4D, checked against its convolution by FFT", draw(seed, shapes), x,
         stack(s4d_mixer, settings, 1e-5), second=numpy_stack(numpy_s4d_mixer, settings, 1e-5), seed=seed)


def mamba_case(name, settings, T, d_in, loss, seed):
    D, N, E = settings["width"], settings["state"], settings.get("expand", 2) * settings["width"]
    rank, K = settings.get("rank", 0) or math.ceil(D / 16), settings.get("conv", 4)
    shapes = mixer_model_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/in_proj.weight": ((2 * E, D), 0.6), f"{layer}/conv1d.weight": ((E, 1, K), 0.5),
                   f"{layer}/conv1d.bias": ((E,), 0.3), f"{layer}/x_proj.weight": ((rank + 2 * N, E), 0.5),
                   f"{layer}/dt_proj.weight": ((E if settings.get("step") != "shared" else 1, rank), 0.5), f"{layer}/dt_proj.bias": ((E if settings.get("step") != "shared" else 1,), 0.5, -1.5),
                   f"{layer}/A_log": ((E, N), 0.5, 0.3), f"{layer}/D": ((E,), 0.4, 1.0), f"{layer}/out_proj.weight": ((D, E), 0.5)}
        if not settings.get("conv_bias", True):
            del shapes[f"{layer}/conv1d.bias"]
        if settings.get("bias", False):
            shapes |= {f"{layer}/in_proj.bias": ((2 * E,), 0.3), f"{layer}/out_proj.bias": ((D,), 0.3)}
        shapes = with_attention(settings, layer, shapes)
    x = mixer_model_inputs(settings, T, d_in, seed)
    of_layer, numpy_of_layer = attention_or(settings, lambda record, layer, p, v: mamba_mixer(record, layer, settings, p, v), lambda layer, p, v: numpy_mamba_mixer(settings, p, v))

    def forward(record, parameters, inputs):
        return mixer_model(lambda layer, p, v: of_layer(record, layer, p, v), mixer_norm, torch.sigmoid, torch.tanh, settings)(parameters, inputs)

    second = mixer_model(numpy_of_layer, numpy_mixer_norm, logistic, np.tanh, settings)
    make(name, "mamba", settings, loss, "step loop from the equations of Mamba, checked against its attention-like sum",
         draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    lru_case("lru-mixer", {"width": 5, "state": 8, "layers": 1, "block": "none"}, 20, 5, "last", 41)
    lru_case("lru-mixer-layers", {"width": 6, "state": 4, "layers": 2, "block": "none"}, 16, 3, "mean", 42)
    lru_case("lru-block", {"width": 6, "state": 7, "layers": 2, "block": "residual", "prenorm": True}, 18, 3, "mean", 43)
    lru_case("lru-block-postnorm", {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": False}, 14, 4, "last", 44)
    lru_case("lru-block-no-norm", {"width": 4, "state": 5, "layers": 2, "block": "residual", "norm": "none"}, 14, 2, "mean", 45)
    lru_case("lru-pooled", {"width": 4, "state": 5, "layers": 2, "block": "residual", "prenorm": False, "norm": "batch", "pooling": "mean"}, 15, 3, "last", 47)
    lru_case("lru-pooled-bare", {"width": 3, "state": 4, "layers": 2, "block": "none", "pooling": "mean"}, 14, 3, "mean", 48)
    lru_case("lru-batch-norm", {"width": 5, "state": 6, "layers": 2, "block": "residual", "prenorm": False, "norm": "batch"}, 16, 3, "mean", 46)
    s4d_case("s4d-zoh", {"width": 4, "state": 8, "layers": 1, "discretisation": "zoh", "block": "none"}, 20, 4, "last", 51)
    s4d_case("s4d-bilinear", {"width": 4, "state": 6, "layers": 1, "discretisation": "bilinear", "block": "none"}, 18, 2, "mean", 52)
    block = {"width": 4, "state": 6, "layers": 2, "discretisation": "zoh", "block": "residual", "prenorm": False}
    s4d_case("s4d-block", block, 16, 4, "mean", 53)
    block = {"width": 5, "state": 4, "layers": 2, "discretisation": "bilinear", "block": "residual", "prenorm": True}
    s4d_case("s4d-block-prenorm", block, 14, 3, "last", 54)
    bare = {"width": 4, "state": 6, "layers": 1, "discretisation": "zoh", "input_matrix": "trained", "output": "none", "block": "none"}
    s4d_case("s4d-bare", bare, 20, 4, "last", 55)
    trained = {"width": 4, "state": 4, "layers": 2, "discretisation": "bilinear", "input_matrix": "trained", "block": "residual", "prenorm": True}
    s4d_case("s4d-input-matrix", trained, 14, 3, "mean", 56)
    mamba_case("mamba-mixer", {"width": 4, "state": 3, "layers": 1, "block": "none"}, 18, 4, "last", 61)
    mamba_case("mamba-mixer-rank", {"width": 4, "state": 4, "layers": 1, "block": "none", "rank": 3, "conv": 3}, 14, 2, "mean", 62)
    biases = {"width": 4, "state": 3, "layers": 1, "block": "none", "expand": 3, "bias": True, "conv_bias": False}
    mamba_case("mamba-mixer-biases", biases, 14, 4, "mean", 64)
    mamba_case("mamba-exact", {"width": 4, "state": 3, "layers": 2, "block": "none", "write": "exact", "step": "shared"}, 14, 4, "mean", 70)
    mamba_case("mamba-block", {"width": 4, "state": 4, "layers": 2, "block": "residual"}, 16, 3, "mean", 63)
    feed_forward = {"width": 4, "state": 3, "layers": 2, "block": "residual", "block_norm": "layer", "norm_eps": 1e-3, "mlp": 5}
    mamba_case("mamba-feed-forward", feed_forward, 14, 3, "last", 65)
    language = {"width": 4, "state": 3, "layers": 2, "block": "residual", "read_out": "tied", "encoder_bias": False}
    mamba_case("mamba-language", language, 16, 6, "task", 66)
    mamba_case("mamba-language-untied", language | {"layers": 1, "mlp": 6, "read_out": "no-bias"}, 14, 5, "task", 67)
    plain = {"width": 6, "state": 3, "layers": 3, "mlp": 4, "attn": True, "attn_layers": 2, "attn_heads": 4, "attn_kv_heads": 2, "attn_head": 4, "attn_conv": 3, "attn_rotary": 2, "attn_rotary_base": 20.0, "attn_qkv_bias": False, "attn_out_bias": False}
    mamba_case("mamba-attention", plain, 13, 3, "mean", 67)
    mamba_case("mamba-attention-mlp", {"width": 4, "state": 2, "layers": 2, "attn": True, "attn_layers": 1, "attn_mlp": 6, "attn_head": 5, "attn_rotary": 4, "attn_rotary_base": 20.0, "attn_rotary_interleaved": True, "attn_scale": 0.7}, 13, 2, "last", 68)
    mamba_case("mamba-attention-alone", {"width": 4, "state": 2, "layers": 2, "block": "none", "attn": True, "attn_layers": 2, "attn_head": 0, "attn_rotary": 0, "attn_conv": 1}, 13, 4, "last", 69)


if __name__ == "__main__":
    main()
