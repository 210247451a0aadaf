# SPDX-License-Identifier: GPL-3.0-or-later
"""HiPPO-RNN and HiPPO-LegS as plain step loops, each checked against a form without one.

Gu et al. 2020; state-spaces/s4, rnns/cells/memory.py and hippo.py, models/hippo/hippo.py, nn/gate.py; um, hm, memory_output and trained
transitions from HazyResearch/hippo-code. The second form makes all transitions by quadrature of what the measure's functions are (their
kernels, not the matrices) where the rule is exact, and by eigenvectors or products of matrices where it is not, and all steps at once
(harness.settle), or as products of matrices.
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under

ACTIVATIONS = {
    "id": lambda x, b: x,
    "tanh": lambda x, b: torch.tanh(x),
    "relu": lambda x, b: torch.relu(x),
    "sigmoid": lambda x, b: torch.sigmoid(x),
    "modrelu": lambda x, b: torch.sign(x) * torch.relu(torch.abs(x) + b),
    "gelu": lambda x, b: torch.nn.functional.gelu(x),
    "silu": lambda x, b: torch.nn.functional.silu(x),
}
NUMPY_ACTIVATIONS = {
    "id": lambda x, b: x,
    "tanh": lambda x, b: 1.0 - 2.0 / (np.exp(2.0 * x) + 1.0),
    "relu": lambda x, b: np.where(x > 0.0, x, 0.0),
    "sigmoid": lambda x, b: 1.0 / (1.0 + np.exp(-x)),
    "modrelu": lambda x, b: np.where(np.abs(x) + b > 0.0, x + b * np.sign(x), 0.0),
    "gelu": lambda x, b: x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0))),
    "silu": lambda x, b: x / (1.0 + np.exp(-x)),
}


def system(settings, N):
    """A and B of the measure in continuous time."""
    measure, n = settings.get("measure", "legs"), np.arange(N)
    alpha, beta = settings.get("alpha", 0.0), settings.get("beta", 1.0)
    row, column = n[:, None], n[None, :]
    roots = np.sqrt(2.0 * n + 1.0)
    if measure == "legt":
        return -0.5 * np.outer(roots, roots) * np.where(row < column, (-1.0) ** (row - column), 1.0), 0.5 * roots
    if measure == "lmu":
        return (2.0 * row + 1.0) * np.where(row < column, -1.0, (-1.0) ** (row - column + 1)), (2.0 * n + 1.0) * (-1.0) ** n
    if measure == "lagt":
        return np.eye(N) / 2.0 - np.tril(np.ones((N, N))), beta * np.ones(N)
    if measure == "glagt":
        A = -np.eye(N) * (1.0 + beta) / 2.0 - np.tril(np.ones((N, N)), -1)
        binomial = np.array([math.gamma(alpha + k + 1.0) / (math.gamma(k + 1.0) * math.gamma(alpha + 1.0)) for k in n])
        L = np.array([math.sqrt(math.gamma(k + alpha + 1.0) / math.gamma(k + 1.0)) for k in n])
        return A / L[:, None] * L[None, :], binomial / L * math.gamma(1.0 - alpha) ** -0.5 * beta ** ((1.0 - alpha) / 2.0)
    return -np.tril(np.outer(roots, roots), -1) - np.diag(n + 1.0), roots


def share(settings):
    return {"forward": 0.0, "backward": 1.0, "bilinear": 0.5, "generalised": settings.get("gbt_alpha", 0.5)}[settings.get("discretisation", "bilinear")]


def share_is(settings, value):
    return settings.get("discretisation", "bilinear") != "zoh" and share(settings) == value


def one_step(settings, N, t):
    """Abar and Bbar of step t."""
    A, B = (torch.tensor(value) for value in system(settings, N))
    one, rule, dt = torch.eye(N), settings.get("discretisation", "bilinear"), settings.get("dt", 0.01)
    if settings.get("measure", "legs") == "legs":
        tau = t + settings.get("init_t", 0)
        if tau == 0:
            return torch.zeros(N, N), one[0]
        tau = min(tau, settings.get("l_max", 1024))
        dt = math.log((tau + 1) / tau) if rule == "zoh" else 1.0 / tau
    if rule == "zoh":
        transition = torch.linalg.matrix_exp(A * dt)
        return transition, torch.linalg.solve(A, (transition - one) @ B)
    left = one - share(settings) * dt * A
    return torch.linalg.solve(left, one + (1.0 - share(settings)) * dt * A), torch.linalg.solve(left, dt * B)


def kernel_step(settings, N):
    """Abar and Bbar of a held input from the functions that the measure's state is on: the kernel k_n(s), what is left of an impulse s ago."""
    measure, dt = settings["measure"], settings["dt"]
    alpha, beta = settings.get("alpha", 0.0), settings.get("beta", 1.0)

    def basis(s):
        """[N, s]: the polynomials, and the kernels."""
        n = np.arange(N)
        if measure in ("lagt", "glagt"):
            a = 0.0 if measure == "lagt" else alpha
            rate = 0.5 if measure == "lagt" else 0.5 * (1.0 + beta)
            values = [np.ones_like(s), 1.0 + a - s]
            for k in range(2, N):
                values.append(((2 * k - 1 + a - s) * values[-1] - (k - 1 + a) * values[-2]) / k)
            scale = beta * np.ones(N)
            if measure == "glagt":
                scale = np.array([math.exp(-0.5 * (math.lgamma(k + a + 1) - math.lgamma(k + 1) + math.lgamma(1 - a))) for k in n]) * beta ** (0.5 * (1 - a))
            return scale[:, None] * np.array(values[:N]) * np.exp(-rate * s)
        x = 2.0 * np.exp(-s) - 1.0  # legst
        values = [np.polynomial.legendre.Legendre.basis(k)(x) * math.sqrt(2 * k + 1) for k in range(N)]
        return np.array(values) * np.exp(-s)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    B = basis(0.5 * dt * (nodes + 1.0)) @ weights * 0.5 * dt
    # Kernels N times further, from any N that are independent: k(s + dt) = Abar k(s).
    s = 3.0 * (1.0 - np.cos(np.pi * (np.arange(6 * N) + 0.5) / (6 * N)))
    return np.linalg.lstsq(basis(s).T, basis(s + dt).T, rcond=None)[0].T, B


def numpy_steps(settings, T, N):
    """The same for all steps in another way: eigenvectors where there are as many, else the measure's functions, or a series."""
    A, B = system(settings, N)
    measure, rule = settings.get("measure", "legs"), settings.get("discretisation", "bilinear")
    if measure == "legs":
        w, V = np.linalg.eig(A)
        tau = np.minimum(np.arange(T) + settings.get("init_t", 0), settings.get("l_max", 1024))[:, None].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            if rule == "zoh":
                a, b = (1 + 1 / tau) ** w, ((1 + 1 / tau) ** w - 1) / w
            else:
                a, b = (1 + (1 - share(settings)) * w / tau) / (1 - share(settings) * w / tau), 1 / (tau - share(settings) * w)
        matrices, inputs = np.einsum("nk,tk,km->tnm", V, a, np.linalg.inv(V)), np.einsum("nk,tk,k->tn", V, b, np.linalg.solve(V, B))
        if tau[0] == 0:
            matrices[0], inputs[0] = 0.0, np.eye(N)[0]
        return matrices, inputs
    dt = settings["dt"]
    if rule == "zoh" and measure in ("lagt", "glagt", "legst"):
        a, b = kernel_step(settings, N)
    elif rule == "zoh":
        both = np.zeros((N + 1, N + 1))
        both[:N, :N], both[:N, N] = dt * A / 64, dt * B / 64
        term = total = np.eye(N + 1)
        for k in range(1, 40):
            term = term @ both / k
            total = total + term
        for _ in range(6):
            total = total @ total
        a, b = total[:N, :N], total[:N, N]
    else:  # all slopes at once: (c - before)/dt = A ((1 - s) before + s c) + B f
        s = share(settings)
        inverse = np.linalg.inv(np.eye(N) / dt - s * A)
        a, b = inverse @ (np.eye(N) / dt + (1 - s) * A), inverse @ B
    return np.repeat(a[None], T, 0), np.repeat(b[None], T, 0)


def gate(mechanism, z, b_g, r, library):
    sigmoid = lambda x: 1.0 / (1.0 + library.exp(-x))
    g = sigmoid(z + b_g) if mechanism[0] == "U" else sigmoid(z)
    if mechanism in ("R", "UR", "GT", "UT"):
        r = sigmoid(r) if mechanism in ("R", "UR") else g
        return (1.0 - 2.0 * r) * g**2 + 2.0 * r * g
    if mechanism in ("G", "U"):
        return g
    u = {"S": (2.0 if mechanism == "TS" else 1.0) * g, "E": library.exp(z), "R": z * (z > 0)}[mechanism[1]]
    return {"F": u, "B": u / (1.0 + u), "T": u / (1.0 + u / 2.0), "Z": 1.0 - library.exp(-u)}[mechanism[0]]


def trained(settings, p):
    scale = math.sqrt(settings.get("trainable_scale", 0.0))
    return (np.eye(len(p["A"])) if isinstance(p["A"], np.ndarray) else torch.eye(len(p["A"]))) + scale * p["A"], scale * p["B"][:, 0]


def hippo(record, settings, parameters, x):
    H, N = settings["width"], settings.get("order", 0) or settings["width"]
    direct, mechanism = settings.get("input", "learned") == "direct", settings.get("gate", "G")
    constant = settings.get("measure", "legs") != "legs"
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        M = x.shape[1] if direct else settings.get("memory", 1)
        # The bilinear step at time 1 wipes out coefficient 1; without a gate or hh, h is a function of c and of one signal alone.
        if not direct and (mechanism == "N" and not settings.get("hh", False) or not constant and N > 1 and share_is(settings, 0.5) and settings.get("init_t", 0) < 2):
            record.singular.add(layer)
        c, h = torch.zeros(M * N), torch.zeros(H)
        outputs = []
        for t, u in enumerate(x):
            A, B = trained(settings, p) if "A" in p else one_step(settings, N, t)
            if direct:
                record.linear(layer, [A] * M, constant=constant)
                c = record.state(layer, "c", c.reshape(M, N) @ A.T + u[:, None] * B).reshape(-1)
                outputs.append(c)
                continue

            def affine(name, *parts):
                return p[f"{name}.weight"] @ torch.cat([part for part in parts if part is not None]) + p.get(f"{name}.bias", 0.0)

            def step(h, c):
                f = affine("W_uxh.0", u if settings.get("ux", True) else None, h)
                if settings.get("um", False):
                    f = f + (c.reshape(M, N) * p["W_um"]).sum(-1)
                f = ACTIVATIONS[settings.get("memory_activation", "id")](f, p.get("W_uxh.1.b"))
                c = (c.reshape(M, N) @ A.T + f[:, None] * B).reshape(-1)
                seen = [u if settings.get("hx", True) else None, c if settings.get("hm", True) else None]
                pre = affine("W_hxm", *seen)
                pre = pre + affine("W_hh", h) if settings.get("hh", False) else pre
                new = ACTIVATIONS[settings.get("hidden_activation", "tanh")](pre, p.get("activate.b"))
                if mechanism == "N":
                    return new, c
                seen.append(h if settings.get("hh", False) else None)
                r = affine("W_gxm.W_r", *seen) if mechanism in ("R", "UR") else None
                g = gate(mechanism, affine("W_gxm.W_g", *seen), p.get("W_gxm.b_g"), r, torch)
                return (1.0 - g) * h + g * new, c

            h, c = record.step(layer, step, h, c)
            h, c = record.state(layer, "h", h), record.state(layer, "c", c.reshape(M, N)).reshape(-1)
            outputs.append(torch.cat([h, c]) if settings.get("memory_output", False) else h)
        x = torch.stack(outputs)
    return x


def numpy_hippo(settings, values, x):
    T, H, N = len(x), settings["width"], settings.get("order", 0) or settings["width"]
    mechanism = settings.get("gate", "G")
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        if "A" in p:
            A, B = (np.repeat(value[None], T, 0) for value in trained(settings, p))
        else:
            A, B = numpy_steps(settings, T, N)
        if settings.get("input", "learned") == "direct":  # c_t = sum over s of (product of the Abar after s) Bbar_s u_s
            reach, c = np.zeros((T, N)), []
            for t in range(T):
                reach = reach @ A[t].T
                reach[t] = B[t]
                c.append((x.T @ reach).reshape(-1))
            x = np.stack(c)
            continue
        M = settings.get("memory", 1)

        def affine(name, *parts):
            return np.concatenate([part for part in parts if part is not None], axis=1) @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

        def update(h, c):
            f = affine("W_uxh.0", x if settings.get("ux", True) else None, h)
            if settings.get("um", False):
                f = f + np.einsum("tmn,mn->tm", c.reshape(T, M, N), p["W_um"])
            f = NUMPY_ACTIVATIONS[settings.get("memory_activation", "id")](f, p.get("W_uxh.1.b"))
            c = np.einsum("tnk,tmk->tmn", A, c.reshape(T, M, N)) + np.einsum("tm,tn->tmn", f, B)
            c = c.reshape(T, M * N)
            seen = [x if settings.get("hx", True) else None, c if settings.get("hm", True) else None]
            new = affine("W_hxm", *seen) + (affine("W_hh", h) if settings.get("hh", False) else 0.0)
            new = NUMPY_ACTIVATIONS[settings.get("hidden_activation", "tanh")](new, p.get("activate.b"))
            if mechanism == "N":
                return new, c
            seen.append(h if settings.get("hh", False) else None)
            r = affine("W_gxm.W_r", *seen) if mechanism in ("R", "UR") else None
            return h + gate(mechanism, affine("W_gxm.W_g", *seen), p.get("W_gxm.b_g"), r, np) * (new - h), c

        h, c = settle(update, T, (H,), (M * N,))
        x = np.concatenate([h, c], axis=1) if settings.get("memory_output", False) else h
    return x


def case(name, settings, T, d_in, loss, seed, architecture="hippo-rnn"):
    settings = {"width": 4, "order": 3, "layers": 1} | settings
    H, M, inputs, shapes = settings["width"], settings.get("memory", 1), d_in, {}
    N, mechanism = settings.get("order", 0) or H, settings.get("gate", "G")
    for layer in range(settings["layers"] if settings.get("input", "learned") == "learned" else 0):
        entering = (inputs if settings.get("hx", True) else 0) + (M * N if settings.get("hm", True) else 0)
        to_gate = entering + (H if settings.get("hh", False) else 0)
        sizes = {"W_uxh.0": (M, (inputs if settings.get("ux", True) else 0) + H), "W_hxm": (H, entering)}
        if settings.get("hh", False):
            sizes["W_hh"] = (H, H)
        if mechanism != "N":
            sizes["W_gxm.W_g"] = (H, to_gate)
        if mechanism in ("R", "UR"):
            sizes["W_gxm.W_r"] = (H, to_gate)
        for key, shape in sizes.items():
            shapes |= {f"{layer}/{key}.weight": (shape, 0.6)}
            shapes |= {f"{layer}/{key}.bias": (shape[:1], 0.3)} if settings.get("bias", True) else {}
        if mechanism[0] == "U":
            shapes[f"{layer}/W_gxm.b_g"] = ((H,), 0.8)
        if settings.get("um", False):
            shapes[f"{layer}/W_um"] = ((M, N), 0.4)
        if settings.get("memory_activation", "id") == "modrelu":
            shapes[f"{layer}/W_uxh.1.b"] = ((M,), 0.2)
        if settings.get("hidden_activation", "tanh") == "modrelu":
            shapes[f"{layer}/activate.b"] = ((H,), 0.2)
        inputs = H + (M * N if settings.get("memory_output", False) else 0)
    for layer in range(settings["layers"]) if settings.get("trainable_scale", 0.0) else []:
        shapes |= {f"{layer}/A": ((N, N), 0.3, -0.1), f"{layer}/B": ((N, 1), 0.6)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, architecture, settings, loss, "step loop from the equations of the HiPPO-RNN, checked against a form without a loop over time",
         draw(seed, shapes), x, lambda record, p, v: hippo(record, settings, p, v), second=lambda p, v: numpy_hippo(settings, p, v), seed=seed)


def main():
    generalised = {"discretisation": "generalised", "gbt_alpha": 0.7}
    case("hippo-legs-generalised", {"layers": 1, "init_t": 1} | generalised, 14, 2, "mean", 701, "hippo-legs")
    case("hippo-rnn", {"layers": 2, "memory": 2, "gate": "UR", "l_max": 9}, 14, 2, "mean", 702)
    case("hippo-rnn-legs-direct", {"input": "direct", "init_t": 1} | generalised, 16, 2, "last", 703)
    case("hippo-rnn-legs-forward", {"discretisation": "forward", "gate": "FS", "hh": True}, 12, 2, "mean", 704)
    case("hippo-rnn-legs-zoh", {"discretisation": "zoh", "gate": "BE", "memory_output": True, "layers": 2, "order": 2}, 10, 2, "mean", 705)
    case("hippo-rnn-legt", {"measure": "legt", "input": "direct", "order": 6, "dt": 0.2}, 24, 2, "last", 706)
    case("hippo-rnn-legt-zoh", {"measure": "legt", "dt": 0.3, "discretisation": "zoh", "gate": "N", "order": 0, "um": True}, 12, 2, "mean", 707)
    case("hippo-rnn-legt-backward", {"measure": "legt", "dt": 0.5, "discretisation": "backward", "gate": "R", "bias": False}, 12, 2, "mean", 708)
    case("hippo-rnn-legt-forward", {"measure": "legt", "dt": 0.1, "discretisation": "forward", "gate": "U", "ux": False}, 12, 2, "last", 709)
    case("hippo-rnn-lagt", {"measure": "lagt", "input": "direct", "order": 6, "dt": 0.4, "beta": 1.5, "discretisation": "zoh"}, 24, 2, "mean", 710)
    case("hippo-rnn-lagt-gates", {"measure": "lagt", "dt": 0.8, "gate": "UT", "hm": False}, 12, 2, "mean", 711)
    case("hippo-rnn-lagt-trained", {"measure": "lagt", "dt": 0.8, "trainable_scale": 0.25, "gate": "GT"}, 12, 2, "mean", 712)
    case("hippo-rnn-direct-trained", {"measure": "lagt", "dt": 0.8, "trainable_scale": 0.25, "input": "direct"}, 12, 2, "last", 713)
    case("hippo-rnn-glagt", {"measure": "glagt", "dt": 0.3, "alpha": 0.3, "beta": 0.4, "discretisation": "zoh", "gate": "BR"}, 12, 2, "mean", 714)
    case("hippo-rnn-glagt-direct", {"measure": "glagt", "input": "direct", "dt": 0.6, "alpha": -0.4, "beta": 0.1, "order": 5} | generalised, 20, 2, "last", 715)
    case("hippo-rnn-lmu", {"measure": "lmu", "dt": 0.1, "gate": "N", "hh": True, "um": True, "bias": False, "discretisation": "zoh"}, 12, 2, "last", 716)
    case("hippo-rnn-lmu-direct", {"measure": "lmu", "input": "direct", "dt": 0.1, "order": 5}, 20, 2, "mean", 717)
    case("hippo-rnn-legst", {"measure": "legst", "dt": 0.2, "gate": "TE", "discretisation": "zoh", "hx": False}, 12, 2, "mean", 718)
    case("hippo-rnn-legst-direct", {"measure": "legst", "input": "direct", "dt": 0.2, "order": 5, "discretisation": "backward"}, 20, 2, "mean", 719)
    for number, (mechanism, memory, hidden) in enumerate([("TS", "tanh", "relu"), ("TR", "relu", "sigmoid"), ("ZS", "sigmoid", "modrelu"),
                                                          ("ZE", "modrelu", "gelu"), ("ZR", "gelu", "silu"), ("G", "silu", "id")]):
        case(f"hippo-rnn-gate-{mechanism.lower()}", {"measure": "legt", "dt": 0.2, "gate": mechanism, "memory_activation": memory, "hidden_activation": hidden, "memory": 2},
             10, 2, "mean", 720 + number)


if __name__ == "__main__":
    main()
