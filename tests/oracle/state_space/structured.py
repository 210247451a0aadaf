# SPDX-License-Identifier: GPL-3.0-or-later
"""S5, LMU, HiPPO-LegS and S4 as plain step loops, each checked against a second form.

S5          Smith et al. 2023; lindermanlab/S5, s5/ssm.py and s5/layers.py: checked against its matrix kernel.
LMU         Voelker et al. 2019; abr/neurips2019, lmu/lmu.py, and the switches of nengo/keras-lmu: checked against its kernel where it is
            linear, against rounds of all steps at once (harness.settle) where it is not.
HiPPO-LegS  Gu et al. 2020; state-spaces/s4, rnns/cells/memory.py and hippo.py: likewise, the plain projection against products of matrices.
S4          Gu et al. 2022; state-spaces/s4, kernels/ssm.py (SSMKernelDPLR): checked against the Cauchy kernel and an FFT.
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under
import state_space
from state_space import encoder_shapes, erf, logistic, numpy_stack, stack


# ----------------------------------------------------------------------------------------------------------------- S5

def s5_readers(settings, p):
    """C of each direction: of one, or of both in one array or in two."""
    C = [p["C"]] if "C" in p else [p["C1"], p["C2"]]
    return [C[0][:, :len(p["log_step"])], C[0][:, len(p["log_step"]):]] if settings.get("bidirectional", False) and len(C) == 1 else C


def s5_mixer(record, number, settings, p, x):
    real = torch.clamp(p["Lambda_re"], max=-1e-4) if settings.get("clip_eigs", False) else p["Lambda_re"]
    A, B = torch.complex(real, p["Lambda_im"]), torch.complex(p["B"][..., 0], p["B"][..., 1])
    step = settings.get("step_rescale", 1.0) * torch.exp(p["log_step"][:, 0])
    if settings.get("discretisation", "zoh") == "zoh":
        transition = torch.exp(A * step)
        drive = (transition - 1.0) / A
    else:
        transition = (1.0 + step / 2.0 * A) / (1.0 - step / 2.0 * A)
        drive = step / (1.0 - step / 2.0 * A)
    y, readers = p["D"] * x, s5_readers(settings, p)
    for way, C in enumerate(readers):  # two directions are two layers of the engine's
        layer, order, outputs = number * len(readers) + way, slice(None, None, -1 if way else 1), []
        if way:
            record.turned.add(layer)
        h = torch.zeros_like(A)
        for u in x.flip(0) if way else x:
            record.transition(layer, transition, constant=True)
            h = record.state(layer, "h", transition * h + drive * (B @ u.to(B.dtype)))
            outputs.append((2.0 if settings.get("conj_sym", True) else 1.0) * (torch.complex(C[..., 0], C[..., 1]) @ h).real)
        y = y + torch.stack(outputs[order])
    if settings["block"] == "none":
        return y
    activation = settings.get("activation", "half_glu1")
    g = torch.nn.functional.gelu(y, approximate="tanh")
    if activation == "gelu":
        return g
    gate = torch.sigmoid(g @ p["out2.weight"].T + p["out2.bias"])
    return {"full_glu": g @ p["out1.weight"].T + p["out1.bias"] if activation == "full_glu" else None, "half_glu1": g, "half_glu2": y}[activation] * gate


def numpy_s5_mixer(settings, p, x):
    """y_t = D u_t + sum_k K_k u_(t-k), K_k = Re(C exp(k log Abar) Bbar) with the whole set of conjugates written out."""
    T = len(x)
    real = np.minimum(p["Lambda_re"], -1e-4) if settings.get("clip_eigs", False) else p["Lambda_re"]
    A, B, readers = real + 1j * p["Lambda_im"], p["B"] @ [1, 1j], [C @ [1, 1j] for C in s5_readers(settings, p)]
    step = np.exp(p["log_step"].squeeze(1) + math.log(settings.get("step_rescale", 1.0)))
    if settings.get("conj_sym", True):
        A, B, step = np.append(A, A.conj()), np.concatenate([B, B.conj()]), np.append(step, step)
        readers = [np.concatenate([C, C.conj()], axis=1) for C in readers]
    z = A * step
    if settings.get("discretisation", "zoh") == "zoh":
        log_transition, drive = z, np.expm1(z) / z * step
    else:
        log_transition, drive = np.log1p(z / 2) - np.log1p(-z / 2), step / (1 - z / 2)
    y = x * p["D"]
    for way, C in enumerate(readers):
        kernel = np.einsum("hp,kp,pj->khj", C, np.exp(np.arange(T)[:, None] * log_transition), drive[:, None] * B).real
        for k in range(T):
            if way:
                y[: T - k] += x[k:] @ kernel[k].T
            else:
                y[k:] += x[: T - k] @ kernel[k].T
    if settings["block"] == "none":
        return y
    activation = settings.get("activation", "half_glu1")
    g = y * logistic(2.0 * math.sqrt(2.0 / math.pi) * (y + 0.044715 * y**3))
    if activation == "gelu":
        return g
    gate = logistic(g @ p["out2.weight"].T + p["out2.bias"])
    return gate * (g @ p["out1.weight"].T + p["out1.bias"] if activation == "full_glu" else g if activation == "half_glu1" else y)


# ---------------------------------------------------------------------------------------------------------------- LMU

def legendre_delay(order, theta):
    i, j = np.arange(order)[:, None], np.arange(order)[None]
    scale = (2.0 * i + 1.0) / theta
    return scale * np.where(i < j, -1.0, (-1.0) ** (i - j + 1)), (scale * (-1.0) ** i)[:, 0]


def lmu_matrices(settings, p):
    """By the exponential of the matrix in which A and B stand together."""
    q = settings["order"]
    if "theta_inv" in p:
        A, B = (torch.tensor(value) * p["theta_inv"] for value in legendre_delay(q, 1.0))
    else:
        A, B = (torch.tensor(value) for value in legendre_delay(q, settings["theta"]))
    if settings.get("discretisation", "zoh") == "euler":
        return torch.eye(q) + A, B
    both = torch.linalg.matrix_exp(torch.cat([torch.cat([A, B[:, None]], dim=1), torch.zeros(1, q + 1)]))
    return both[:q, :q], both[:q, q]


def numpy_lmu_matrices(settings, p):
    """By the eigenvectors of A."""
    A, B = legendre_delay(settings["order"], 1.0 / p["theta_inv"][0] if "theta_inv" in p else settings["theta"])
    if settings.get("discretisation", "zoh") == "euler":
        return np.eye(len(A)) + A, B
    w, V = np.linalg.eig(A)
    return ((V * np.exp(w)) @ np.linalg.inv(V)).real, ((V * (np.expm1(w) / w)) @ np.linalg.solve(V, B)).real


ACTIVATIONS = {"tanh": (torch.tanh, np.tanh), "relu": (torch.relu, lambda a: np.maximum(a, 0.0)), "identity": (lambda a: a, lambda a: a)}


def lmu(record, settings, parameters, x):
    q, M, H = settings["order"], settings.get("memory", 1), settings["width"]
    act = ACTIVATIONS[settings.get("activation", "tanh")][0]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        A, B = lmu_matrices(settings, p)
        hidden = settings.get("hidden", "rnn") == "rnn"

        def memory(u, m, h):
            e = u @ p["input_encoders"] + p.get("memory_bias", 0.0)
            e = e + h @ p["hidden_encoders"] if "hidden_encoders" in p else e
            e = e + m @ p["memory_encoders"] if "memory_encoders" in p else e
            return (m.reshape(M, q) @ A.T + e[:, None] * B).reshape(-1)

        m, h = torch.zeros(M * q), torch.zeros(H)
        outputs = []
        for u in x:
            if hidden:
                def step(m, h):
                    m = memory(u, m, h)
                    a = h @ p["hidden_kernel"] + m @ p["memory_kernel"]
                    a = a + u @ p["input_kernel"] if "input_kernel" in p else a
                    return m, act(a + p["bias"][0] if "bias" in p else a)

                m, h = record.step(layer, step, m, h)
                m, h = record.state(layer, "m", m.reshape(M, q)).reshape(-1), record.state(layer, "h", h)
                outputs.append(h)
            else:
                record.linear(layer, [torch.autograd.functional.jacobian(lambda s: memory(u, s, h), m)], constant=True)
                m = record.state(layer, "m", memory(u, m, h).reshape(M, q)).reshape(-1)
                outputs.append(torch.cat([m, u]) if settings.get("input_to_hidden", True) else m)
        x = torch.stack(outputs)
    return x


def numpy_lmu(settings, values, x):
    q, M, H, T = settings["order"], settings.get("memory", 1), settings["width"], len(x)
    act = ACTIVATIONS[settings.get("activation", "tanh")][1]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        A, B = numpy_lmu_matrices(settings, p)
        A, B = np.kron(np.eye(M), A), np.kron(np.eye(M), B[:, None])  # all memories as one
        feedback = p.get("memory_encoders", np.zeros((M * q, M)))
        drive = x @ p["input_encoders"] + p.get("memory_bias", 0.0)
        if settings.get("hidden", "rnn") == "none":
            power, m = B, np.zeros((T, M * q))
            for k in range(T):
                m[k:] += drive[: T - k] @ power.T
                power = (A + B @ feedback.T) @ power
            x = np.concatenate([m, x], axis=1) if settings.get("input_to_hidden", True) else m
            continue
        constant = x @ p.get("input_kernel", np.zeros((x.shape[1], H))) + p.get("bias", 0.0)

        def update(m, h):
            m = m @ A.T + (drive + h @ p.get("hidden_encoders", np.zeros((H, M))) + m @ feedback) @ B.T
            return m, act(constant + h @ p["hidden_kernel"] + m @ p["memory_kernel"])

        x = settle(update, T, (M * q,), (H,))[1]
    return x


# --------------------------------------------------------------------------------------------------------- HiPPO-LegS

def legs(N):
    n = np.arange(N)
    A = -np.tril(np.sqrt(np.outer(2 * n + 1, 2 * n + 1)), -1) - np.diag(n + 1.0)
    return A, np.sqrt(2.0 * n + 1.0)


def legs_step(settings, tau, N):
    """Abar and Bbar of the step at time tau; at time 0 the state is replaced by the input alone."""
    A, B = (torch.tensor(value) for value in legs(N))
    one = torch.eye(N)
    if tau == 0:
        return torch.zeros(N, N), one[0]
    tau = min(tau, settings.get("l_max", 1024))
    rule = settings.get("discretisation", "bilinear")
    if rule == "forward":
        return one + A / tau, B / tau
    if rule == "zoh":
        transition = torch.linalg.matrix_exp(A * math.log((tau + 1) / tau))
        return transition, torch.linalg.solve(A, (transition - one) @ B)
    share = 0.5 if rule == "bilinear" else 1.0
    left = one - share * A / tau
    return torch.linalg.solve(left, one + (1.0 - share) * A / tau), torch.linalg.solve(left, B / tau)


def numpy_legs_steps(settings, T, N):
    """The same for all steps by the eigenvectors of A, which are those of every Abar."""
    A, B = legs(N)
    w, V = np.linalg.eig(A)
    tau = np.minimum(np.arange(T) + settings.get("init_t", 0), settings.get("l_max", 1024))[:, None].astype(float)
    rule = settings.get("discretisation", "bilinear")
    with np.errstate(divide="ignore", invalid="ignore"):
        r = w / tau
        a, b = {"forward": (1 + r, 1 / tau + 0 * w), "backward": (1 / (1 - r), 1 / (tau - w)), "bilinear": ((1 + r / 2) / (1 - r / 2), 1 / (tau - w / 2)),
                "zoh": ((1 + 1 / tau) ** w, ((1 + 1 / tau) ** w - 1) / w)}[rule]
    matrices, inputs = np.einsum("nk,tk,km->tnm", V, a, np.linalg.inv(V)), np.einsum("nk,tk,k->tn", V, b, np.linalg.solve(V, B))
    if tau[0] == 0:
        matrices[0], inputs[0] = 0.0, np.eye(N)[0]
    return matrices, inputs


def hippo(record, settings, parameters, x):
    H, N = settings["width"], settings.get("order", 0) or settings["width"]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        direct = settings.get("input", "learned") == "direct"
        M = x.shape[1] if direct else settings.get("memory", 1)
        c, h = torch.zeros(M * N), torch.zeros(H)
        outputs = []
        for t, u in enumerate(x):
            A, B = legs_step(settings, t + settings.get("init_t", 0), N)
            if direct:
                record.linear(layer, [A] * M, constant=False)
                c = record.state(layer, "c", c.reshape(M, N) @ A.T + u[:, None] * B).reshape(-1)
                outputs.append(c)
                continue

            def affine(name, *parts):
                return p[f"{name}.weight"] @ torch.cat([part for part in parts if part is not None]) + p.get(f"{name}.bias", 0.0)

            def step(h, c):
                f = affine("W_uxh.0", u if settings.get("ux", True) else None, h)
                c = (c.reshape(M, N) @ A.T + f[:, None] * B).reshape(-1)
                entering = u if settings.get("hx", True) else None
                pre = affine("W_hxm", entering, c)
                pre = pre + affine("W_hh", h) if settings.get("hh", False) else pre
                if settings.get("gate", "sigmoid") == "none":
                    return torch.tanh(pre), c
                g = torch.sigmoid(affine("W_gxm.W_g", entering, c, h if settings.get("hh", False) else None))
                return (1.0 - g) * h + g * torch.tanh(pre), c

            h, c = record.step(layer, step, h, c)
            h, c = record.state(layer, "h", h), record.state(layer, "c", c.reshape(M, N)).reshape(-1)
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_hippo(settings, values, x):
    T, H, N = len(x), settings["width"], settings.get("order", 0) or settings["width"]
    A, B = numpy_legs_steps(settings, T, N)
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        if settings.get("input", "learned") == "direct":  # c_t = sum over s of (product of the Abar after s) Bbar_s u_s
            reach, c = np.zeros((T, N)), []
            for t in range(T):
                reach = reach @ A[t].T
                reach[t] = B[t]
                c.append((x.T @ reach).reshape(-1))
            x = np.stack(c)
            continue
        M = settings.get("memory", 1)
        nothing = np.zeros((T, 0))

        def affine(name, *parts):
            return np.concatenate(parts, axis=1) @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

        def update(h, c):
            f = affine("W_uxh.0", x if settings.get("ux", True) else nothing, h)
            c = np.einsum("tnk,tmk->tmn", A, c.reshape(T, M, N)) + np.einsum("tm,tn->tmn", f, B)
            c = c.reshape(T, M * N)
            entering = x if settings.get("hx", True) else nothing
            new = np.tanh(affine("W_hxm", entering, c) + (affine("W_hh", h) if settings.get("hh", False) else 0.0))
            if settings.get("gate", "sigmoid") == "none":
                return new, c
            return h + logistic(affine("W_gxm.W_g", entering, c, h if settings.get("hh", False) else nothing)) * (new - h), c

        x = settle(update, T, (H,), (M * N,))[0]
    return x


# ----------------------------------------------------------------------------------------------------------------- S4

def s4_parameters(settings, p):
    """Of every channel: the diagonal, P, B, C and the step."""
    def pair(name):
        return torch.complex(p[name][0, ..., 0], p[name][0, ..., 1])

    H = settings["width"]
    copies = [h % len(p["A_real"]) for h in range(H)]
    diagonal = torch.complex(-torch.exp(p["A_real"]), -p["A_imag"])[copies]
    step = torch.exp(p["inv_dt"]) if settings.get("dt_transform", "exp") == "exp" else torch.log1p(torch.exp(p["inv_dt"]))
    return diagonal, pair("P")[copies], pair("B")[copies], pair("C"), step


def s4_readout(A, P, tilde, step, L):
    """C of which (1 - Abar^L)^T C is what is stored: dense matrices of all conjugates, and a solve."""
    whole = lambda z: torch.cat([z, z.conj()], dim=1)
    one = torch.eye(2 * A.shape[1], dtype=A.dtype)
    dense = torch.diag_embed(whole(A)) - whole(P)[:, :, None] * whole(P).conj()[:, None, :]
    half = step[:, :, None] / 2.0 * dense
    discrete = torch.linalg.matrix_power(torch.linalg.solve(one - half, one + half), L)
    return torch.linalg.solve((one - discrete).transpose(1, 2), whole(tilde)[:, :, None])[:, : A.shape[1], 0]


def s4_mixer(record, layer, settings, p, x):
    A, P, B, C, step = s4_parameters(settings, p)
    if settings.get("l_kernel", 0):
        C = s4_readout(A, P, C, step, settings["l_kernel"])
    inverse, forward = 1.0 / (2.0 / step - A), 2.0 / step + A
    weight = 1.0 + 2.0 * (P.abs() ** 2 * inverse).sum(1, keepdim=True).real

    def update(h, u):
        """(2/dt - A)^-1 ((2/dt + A) h + 2 B u) on one half of the conjugate pairs; the inverse by Sherman and Morrison."""
        v = forward * h - P * 2.0 * (P.conj() * h).sum(1, keepdim=True).real + 2.0 * B * u[:, None]
        return inverse * (v - P * 2.0 * (P.conj() * inverse * v).sum(1, keepdim=True).real / weight)

    def transition():
        """For each channel the real matrix that takes (Re h, Im h) to the next: the half alone is not complex-linear."""
        n = A.shape[1]
        with torch.no_grad():
            columns = [update(torch.eye(n)[j].expand_as(A) * unit, torch.zeros(len(A))) for unit in (1.0, 1j) for j in range(n)]
        return list(torch.stack([torch.cat([column.real, column.imag], dim=1) for column in columns], dim=2))

    h = torch.zeros_like(A)
    outputs = []
    for u in x:
        record.linear(layer, transition(), constant=True)
        h = record.state(layer, "h", update(h, u))
        outputs.append(2.0 * (C * h).sum(1).real + p["D"][0] * u)
    y = torch.stack(outputs)
    if settings.get("output", "glu") == "none":
        return y
    out, gate = torch.chunk(torch.nn.functional.gelu(y) @ p["output_linear.weight"].T + p["output_linear.bias"], 2, dim=1)
    return out * torch.sigmoid(gate)


def numpy_s4_mixer(settings, p, x):
    """The published kernel: a Cauchy sum at roots of unity, Woodbury's correction, an inverse FFT; then the convolution by FFT. The
    kernel's length is odd, since at an even one a node has no finite image. A stored C~ of an odd length from T on is what the kernel takes;
    of another one the eigenvectors of the transition give C first."""
    T, H, stored = len(x), settings["width"], settings.get("l_kernel", 0)
    ready = stored >= T and stored % 2
    L = stored if ready else T + 1 - T % 2
    copies = np.arange(H) % len(p["A_real"])
    both = lambda z: np.concatenate([z, z.conj()], axis=-1)
    A = both(-np.exp(p["A_real"]) - 1j * p["A_imag"])[copies]
    P, B, C = both(p["P"][0] @ [1, 1j])[copies], both(p["B"][0] @ [1, 1j])[copies], both(p["C"][0] @ [1, 1j])
    step = np.exp(p["inv_dt"]) if settings.get("dt_transform", "exp") == "exp" else np.logaddexp(0.0, p["inv_dt"])
    node = np.exp(-2j * np.pi * np.arange(L // 2 + 1) / L)
    kernel = np.zeros((H, L))
    for h in range(H):
        dense = np.diag(A[h]) - np.outer(P[h], P[h].conj())
        half = step[h, 0] / 2.0 * dense
        discrete = np.linalg.solve(np.eye(len(dense)) - half, np.eye(len(dense)) + half)
        if stored and not ready:
            w, V = np.linalg.eig(discrete)
            C[h] = np.linalg.solve(V.T, (V.T @ C[h]) / (1.0 - w**stored))
        truncated = C[h] if ready else C[h] - np.linalg.matrix_power(discrete, L).T @ C[h]
        zeta = 2.0 / step[h, 0] * (1.0 - node) / (1.0 + node)

        def cauchy(left, right):
            return (left * right / (zeta[:, None] - A[h])).sum(1)

        response = cauchy(truncated, B[h]) - cauchy(truncated, P[h]) * cauchy(P[h].conj(), B[h]) / (1.0 + cauchy(P[h].conj(), P[h]))
        kernel[h] = np.fft.irfft(2.0 / (1.0 + node) * response, n=L)
    spectrum = np.fft.rfft(kernel[:, :T], n=2 * T, axis=1) * np.fft.rfft(x.T, n=2 * T, axis=1)
    y = np.fft.irfft(spectrum, n=2 * T, axis=1)[:, :T].T + x * p["D"][0]
    if settings.get("output", "glu") == "none":
        return y
    y = y * (1.0 - 0.5 * (1.0 - erf(y / math.sqrt(2.0))))
    projected = y @ p["output_linear.weight"].T + p["output_linear.bias"]
    return projected[:, :H] * logistic(projected[:, H:])


# -------------------------------------------------------------------------------------------------------------- cases

def norm_shapes(layer, settings):
    around = settings["block"] != "none" and settings.get("norm", "layer") != "none"
    return state_space.norm_shapes(f"{layer}/norm.", settings) if around else {}


def s5_case(name, settings, T, d_in, loss, seed):
    H, P = settings["width"], settings["state"] // (2 if settings.get("conj_sym", True) else 1)
    activation = settings.get("activation", "half_glu1") if settings["block"] != "none" else "gelu"
    both = settings.get("bidirectional", False)
    readers = {"C": P * (2 if both else 1)} if not both or settings.get("C_init") == "complex_normal" else {"C1": P, "C2": P}
    shapes = encoder_shapes(settings, d_in)
    for layer in range(0, settings["layers"] * (2 if both else 1), 2 if both else 1):
        shapes |= {f"{layer}/Lambda_re": ((P,), 0.3, 0.1 if settings.get("clip_eigs", False) else -0.7), f"{layer}/Lambda_im": ((P,), 2.0, -3.0),
                   f"{layer}/B": ((P, H, 2), 0.5)}
        shapes |= {f"{layer}/{C}": ((H, columns, 2), 0.5) for C, columns in readers.items()}
        shapes |= {f"{layer}/D": ((H,), 0.8), f"{layer}/log_step": ((P, 1), 0.5, -1.6)}
        for out in ("out1", "out2")[{"full_glu": 0, "gelu": 2}.get(activation, 1):]:
            shapes |= {f"{layer}/{out}.weight": ((H, H), 0.5), f"{layer}/{out}.bias": ((H,), 0.3)}
        shapes |= norm_shapes(layer, settings)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "s5", settings, loss, "step loop from the equations of S5, checked against its matrix kernel", draw(seed, shapes), x,
         stack(s5_mixer, settings, 1e-6, 1 + both), second=numpy_stack(numpy_s5_mixer, settings, 1e-6, 1 + both), seed=seed)


def lmu_case(name, settings, T, d_in, loss, seed):
    q, M, H, inputs, shapes = settings["order"], settings.get("memory", 1), settings["width"], d_in, {}
    hidden = settings.get("hidden", "rnn") == "rnn"
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/input_encoders": ((inputs, M), 0.7)}
        if settings.get("hidden_to_memory", True):
            shapes |= {f"{layer}/hidden_encoders": ((H, M), 0.5)}
        if settings.get("memory_to_memory", True):
            shapes |= {f"{layer}/memory_encoders": ((M * q, M), 0.2)}
        if settings.get("memory_bias", False):
            shapes |= {f"{layer}/memory_bias": ((M,), 0.3)}
        if settings.get("trainable_theta", False):
            shapes |= {f"{layer}/theta_inv": ((1,), 0.02, 0.15)}
        if hidden:
            shapes |= {f"{layer}/input_kernel": ((inputs, H), 0.5)} if settings.get("input_to_hidden", True) else {}
            shapes |= {f"{layer}/hidden_kernel": ((H, H), 0.5), f"{layer}/memory_kernel": ((M * q, H), 0.5)}
            shapes |= {f"{layer}/bias": ((1, H), 0.3)} if settings.get("bias", False) else {}
        inputs = H if hidden else M * q + (inputs if settings.get("input_to_hidden", True) else 0)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "lmu", settings, loss, "step loop from the equations of the LMU, checked against a form without a loop over time", draw(seed, shapes), x,
         lambda record, p, v: lmu(record, settings, p, v), second=lambda p, v: numpy_lmu(settings, p, v), seed=seed)


def hippo_case(name, settings, T, d_in, loss, seed):
    H, M, inputs, shapes = settings["width"], settings.get("memory", 1), d_in, {}
    N = settings.get("order", 0) or H
    for layer in range(settings["layers"] if settings.get("input", "learned") == "learned" else 0):
        entering = (inputs if settings.get("hx", True) else 0) + M * N
        sizes = {"W_uxh.0": (M, (inputs if settings.get("ux", True) else 0) + H), "W_hxm": (H, entering)}
        if settings.get("hh", False):
            sizes["W_hh"] = (H, H)
        if settings.get("gate", "sigmoid") == "sigmoid":
            sizes["W_gxm.W_g"] = (H, entering + (H if settings.get("hh", False) else 0))
        for key, shape in sizes.items():
            shapes |= {f"{layer}/{key}.weight": (shape, 0.6)}
            shapes |= {f"{layer}/{key}.bias": (shape[:1], 0.3)} if settings.get("bias", True) else {}
        inputs = H
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "hippo-legs", settings, loss, "step loop from the equations of HiPPO-LegS, checked against a form without a loop over time",
         draw(seed, shapes), x, lambda record, p, v: hippo(record, settings, p, v), second=lambda p, v: numpy_hippo(settings, p, v), seed=seed)


def s4_case(name, settings, T, d_in, loss, seed):
    H, N, S = settings["width"], settings["state"] // 2, settings.get("n_ssm", 0) or settings["width"]
    shapes = encoder_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/inv_dt": ((H, 1), 0.5, -1.6), f"{layer}/A_real": ((S, N), 0.4, -0.7), f"{layer}/A_imag": ((S, N), 1.5, 3.0),
                   f"{layer}/B": ((1, S, N, 2), 0.7), f"{layer}/P": ((1, S, N, 2), 0.6), f"{layer}/C": ((1, H, N, 2), 0.7), f"{layer}/D": ((1, H), 0.8)}
        if settings.get("output", "glu") == "glu":
            shapes |= {f"{layer}/output_linear.weight": ((2 * H, H), 0.6), f"{layer}/output_linear.bias": ((2 * H,), 0.3)}
        shapes |= norm_shapes(layer, settings)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "s4", settings, loss, "step loop from the equations of S4, checked against its Cauchy kernel", draw(seed, shapes), x,
         stack(s4_mixer, settings, 1e-5), second=numpy_stack(numpy_s4_mixer, settings, 1e-5), seed=seed)


def main():
    s5_case("s5-bare", {"width": 5, "state": 12, "layers": 1, "block": "none"}, 24, 5, "last", 241)
    real = {"width": 4, "state": 5, "layers": 2, "block": "none", "discretisation": "bilinear", "conj_sym": False, "clip_eigs": True, "step_rescale": 0.7}
    s5_case("s5-no-conjugates", real, 18, 3, "mean", 242)
    s5_case("s5", {"width": 4, "state": 8, "layers": 2, "block": "residual", "prenorm": True}, 18, 3, "mean", 243)
    full = {"width": 4, "state": 6, "layers": 1, "block": "residual", "prenorm": False, "activation": "full_glu"}
    s5_case("s5-full-glu", full, 16, 4, "last", 244)
    half = {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": True, "activation": "half_glu2", "norm": "none", "discretisation": "bilinear"}
    s5_case("s5-half-glu2", half, 14, 2, "mean", 245)
    both = {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": True, "norm": "batch", "bidirectional": True, "C_init": "lecun_normal"}
    s5_case("s5-both", both, 14, 3, "mean", 247)
    one_array = {"width": 3, "state": 8, "layers": 1, "block": "residual", "prenorm": False, "norm": "batch", "bidirectional": True, "C_init": "complex_normal"}
    s5_case("s5-both-one-array", one_array, 14, 3, "mean", 248)
    s5_case("s5-pooled", {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": True, "mode": "pool"}, 15, 3, "last", 249)
    s5_case("s5-pooled-both", both | {"mode": "pool", "activation": "full_glu"}, 13, 3, "mean", 250)
    s5_case("s5-gelu", {"width": 4, "state": 6, "layers": 1, "block": "residual", "prenorm": True, "activation": "gelu"}, 12, 4, "mean", 246)

    lmu_case("lmu", {"width": 5, "order": 6, "theta": 7.5, "layers": 1}, 30, 2, "last", 251)
    keras = {"width": 4, "order": 3, "theta": 5.0, "memory": 2, "layers": 2, "hidden_to_memory": False, "memory_to_memory": False,
             "input_to_hidden": False, "bias": True, "memory_bias": True, "activation": "relu"}
    lmu_case("lmu-keras", keras, 20, 3, "mean", 252)
    recurrent = {"width": 4, "order": 4, "theta": 12.0, "memory": 2, "layers": 1, "hidden_to_memory": True, "memory_to_memory": True,
                 "input_to_hidden": False, "bias": True, "discretisation": "euler"}
    lmu_case("lmu-euler", recurrent, 20, 3, "mean", 253)
    bare = {"width": 4, "order": 5, "theta": 6.0, "memory": 2, "layers": 1, "hidden": "none", "hidden_to_memory": False, "memory_to_memory": False,
            "input_to_hidden": False}
    lmu_case("lmu-memory", bare, 24, 3, "last", 254)
    feedback = bare | {"order": 4, "memory_to_memory": True, "input_to_hidden": True, "memory_bias": True, "layers": 2}
    lmu_case("lmu-memory-feedback", feedback, 16, 2, "mean", 255)
    lmu_case("lmu-identity", {"width": 4, "order": 4, "theta": 6.0, "layers": 1, "activation": "identity"}, 20, 2, "last", 260)
    # theta says where 1/theta starts, which loaded weights are not: one longer, one much shorter than they are.
    lmu_case("lmu-theta", {"width": 4, "order": 6, "theta": 900.0, "layers": 2, "trainable_theta": True}, 24, 2, "mean", 256)
    lmu_case("lmu-theta-euler", recurrent | {"order": 3, "trainable_theta": True, "theta": 0.5}, 18, 3, "last", 257)
    lmu_case("lmu-theta-memory", bare | {"trainable_theta": True}, 20, 3, "mean", 258)
    lmu_case("lmu-theta-feedback", feedback | {"trainable_theta": True, "layers": 1}, 16, 2, "last", 259)

    hippo_case("hippo-legs", {"width": 5, "order": 6, "layers": 1}, 24, 2, "last", 261)
    wide = {"width": 4, "layers": 2, "memory": 2, "order": 3, "hh": True, "init_t": 1, "l_max": 9}
    hippo_case("hippo-legs-layers", wide, 18, 3, "mean", 262)
    plain = {"width": 5, "layers": 1, "memory": 2, "order": 3, "gate": "none", "hh": True, "bias": False, "ux": False, "discretisation": "zoh"}
    hippo_case("hippo-legs-zoh", plain, 16, 3, "mean", 263)
    backward = {"width": 4, "layers": 1, "discretisation": "backward", "hx": False, "init_t": 1}
    hippo_case("hippo-legs-backward", backward, 16, 2, "last", 264)
    forward = {"width": 4, "order": 2, "layers": 1, "discretisation": "forward"}
    hippo_case("hippo-legs-forward", forward, 16, 2, "mean", 265)
    hippo_case("hippo-legs-direct", {"width": 4, "order": 6, "layers": 1, "input": "direct", "l_max": 20}, 24, 2, "last", 266)
    hippo_case("hippo-legs-direct-init", {"width": 4, "order": 4, "layers": 1, "input": "direct", "init_t": 1}, 20, 3, "mean", 267)

    s4_case("s4-bare", {"width": 4, "state": 8, "layers": 1, "block": "none", "output": "none"}, 24, 4, "last", 271)
    tied = {"width": 4, "state": 6, "layers": 2, "block": "none", "n_ssm": 2, "dt_transform": "softplus"}
    s4_case("s4-tied", tied, 18, 3, "mean", 272)
    s4_case("s4", {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": True}, 18, 3, "mean", 273)
    s4_case("s4-postnorm", {"width": 3, "state": 4, "layers": 1, "block": "residual", "prenorm": False}, 16, 3, "last", 274)
    s4_case("s4-kernel-length", {"width": 4, "state": 8, "layers": 1, "block": "none", "output": "none", "l_kernel": 25}, 24, 4, "last", 275)
    short = {"width": 4, "state": 6, "layers": 2, "block": "residual", "prenorm": True, "n_ssm": 2, "l_kernel": 10}
    s4_case("s4-kernel-length-short", short, 16, 3, "mean", 276)


if __name__ == "__main__":
    main()
