# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of training of several models: C8."""
import numpy as np

from peers import common
from peers.common import jax, peer, torch


def steps(data):
    """Forward, backward and Adam. What is compared is the loss of the first step, by which the weights have not changed yet."""
    x, y = data["x"].astype(np.float32), data["y"].astype(np.float32)

    def weights(part):
        return {key.split(":", 1)[1]: value.astype(np.float32) for key, value in data.items() if key.startswith(part + ":")}

    def exact(part):
        return [data["loss/" + part].reshape(1)]

    class Recurrent(torch.nn.Module):
        def __init__(self, kind, w):
            super().__init__()
            hidden = w["0/weight_hh"].shape[1]
            self.layer, self.head = kind(x.shape[2], hidden, batch_first=True), torch.nn.Linear(hidden, 1)
            names = {"layer.%s_l0" % key: "0/" + key for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
            self.load_state_dict({**{own: torch.from_numpy(w[theirs]) for own, theirs in names.items()},
                                  "head.weight": torch.from_numpy(w["head/weight"]), "head.bias": torch.from_numpy(w["head/bias"])})

        def forward(self, u):
            return self.head(self.layer(u)[0])

    class Attention(torch.nn.Module):
        def __init__(self, w):
            super().__init__()
            width, hidden = w["0/linear1.weight"].shape[1], w["0/linear1.weight"].shape[0]
            self.encoder, self.norm, self.head = torch.nn.Linear(x.shape[2], width), torch.nn.LayerNorm(width), torch.nn.Linear(width, 1)
            self.layer = torch.nn.TransformerEncoderLayer(width, 4, hidden, dropout=0.0, batch_first=True)
            own = {"encoder.weight": "encoder/weight", "encoder.bias": "encoder/bias", "norm.weight": "final/norm.weight", "norm.bias": "final/norm.bias",
                   "head.weight": "head/weight", "head.bias": "head/bias"} | {"layer." + key: "0/" + key for key, _ in self.layer.named_parameters()}
            self.load_state_dict({key: torch.from_numpy(w[theirs]) for key, theirs in own.items()})
            length = x.shape[1]
            angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
            self.positions = torch.from_numpy(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, width).astype(np.float32))
            self.mask = torch.full((length, length), -np.inf).triu(1)

        def forward(self, u):
            return self.head(self.norm(self.layer(self.encoder(u) + self.positions, src_mask=self.mask, is_causal=True)))

    class Selective(torch.nn.Module):
        """Mamba's block with its recurrence as a loop, as the reference's own slow path has it."""

        def __init__(self, w):
            super().__init__()
            self.w = torch.nn.ParameterDict({key.replace("/", "_").replace(".", "_"): torch.nn.Parameter(torch.from_numpy(value.copy())) for key, value in w.items()})

        def forward(self, u):
            w, F = self.w, torch.nn.functional
            u = u @ w["encoder_weight"].T + w["encoder_bias"]
            both = F.rms_norm(u, u.shape[-1:], w["0_norm_weight"], 1e-5) @ w["0_in_proj_weight"].T
            z, z_gate = both.chunk(2, -1)
            z = F.silu(F.conv1d(F.pad(z.transpose(1, 2), (3, 0)), w["0_conv1d_weight"], w["0_conv1d_bias"], groups=z.shape[-1]).transpose(1, 2))
            states = w["0_A_log"].shape[1]
            r, B, C = torch.split(z @ w["0_x_proj_weight"].T, [w["0_dt_proj_weight"].shape[1], states, states], -1)
            dt = F.softplus(r @ w["0_dt_proj_weight"].T + w["0_dt_proj_bias"])
            decay = torch.exp(dt[..., None] * -torch.exp(w["0_A_log"]))
            drive = (dt * z)[..., None] * B[:, :, None]
            state, out = torch.zeros_like(drive[:, 0]), []
            for t in range(u.shape[1]):
                state = decay[:, t] * state + drive[:, t]
                out.append(torch.einsum("bcn,bn->bc", state, C[:, t]))
            read = torch.stack(out, 1) + w["0_D"] * z
            u = u + (read * F.silu(z_gate)) @ w["0_out_proj_weight"].T
            return F.rms_norm(u, u.shape[-1:], w["final_norm_f_weight"], 1e-5) @ w["head_weight"].T + w["head_bias"]

    def with_torch(part, make):
        if torch is None:
            return
        tx, ty = torch.from_numpy(x), torch.from_numpy(y)

        def a_step(compile):
            model = make(weights(part))
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
            forward = compile(model)

            def run():
                optimiser.zero_grad(set_to_none=True)
                loss = 0.5 * ((forward(tx) - ty) ** 2).mean()
                loss.backward()
                optimiser.step()
                return loss.detach().reshape(1)

            return run

        for name, compile in (("torch", lambda model: model), ("torch.compile", common.compiled),
                               ("torch.compile max-autotune", lambda model: common.compiled(model, mode="max-autotune"))):
            peer(part, name, torch.__version__, a_step(compile), exact(part))

    def with_jax(part, cell, states):
        if jax is None:
            return
        jnp = jax.numpy
        start = {key: jnp.asarray(value) for key, value in weights(part).items()}
        jx, jy = jnp.asarray(x.swapaxes(0, 1)), jnp.asarray(y.swapaxes(0, 1))
        hidden = start["0/weight_hh"].shape[1]

        def loss(w, unroll):
            u = jx @ w["0/weight_ih"].T + w["0/bias_ih"]
            zero = tuple(jnp.zeros((x.shape[0], hidden), jnp.float32) for _ in range(states))
            h = jax.lax.scan(lambda s, v: cell(w, s, v), zero, u, unroll=unroll)[1]
            return 0.5 * jnp.mean((h @ w["head/weight"].T + w["head/bias"] - jy) ** 2)

        def step(w, m, v, t, unroll):
            value, g = jax.value_and_grad(loss)(w, unroll)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
            w = jax.tree.map(lambda p, a, b: p - 1e-4 / (1 - 0.9**t) * a / (jnp.sqrt(b) / jnp.sqrt(1 - 0.999**t) + 1e-8), w, m, v)
            return value.reshape(1), w, m, v

        step = jax.jit(step, static_argnames="unroll")
        for unroll in (4, 8, 16):
            kept = [start, jax.tree.map(jnp.zeros_like, start), jax.tree.map(jnp.zeros_like, start), 1.0]

            def run(kept=kept, unroll=unroll):
                value, kept[0], kept[1], kept[2] = step(*kept, unroll=unroll)
                kept[3] += 1.0
                return value

            peer(part, f"jax lax.scan, unrolled by {unroll}", jax.__version__, run, exact(part))

    def elman_cell(w, s, u):
        h = jax.numpy.tanh(u + s[0] @ w["0/weight_hh"].T + w["0/bias_hh"])
        return (h,), h

    def lstm_cell(w, s, u):
        i, f, g, o = jax.numpy.split(u + s[0] @ w["0/weight_hh"].T + w["0/bias_hh"], 4, axis=1)
        c = jax.nn.sigmoid(f) * s[1] + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
        h = jax.nn.sigmoid(o) * jax.numpy.tanh(c)
        return (h, c), h

    def gru_cell(w, s, u):
        ur, uz, un = jax.numpy.split(u, 3, axis=1)
        hr, hz, hn = jax.numpy.split(s[0] @ w["0/weight_hh"].T + w["0/bias_hh"], 3, axis=1)
        z, n = jax.nn.sigmoid(uz + hz), jax.numpy.tanh(un + jax.nn.sigmoid(ur + hr) * hn)
        h = (1 - z) * n + z * s[0]
        return (h,), h

    with_torch("lstm H64", lambda w: Recurrent(torch.nn.LSTM, w))
    with_jax("lstm H64", lstm_cell, 2)
    with_torch("gru H64", lambda w: Recurrent(torch.nn.GRU, w))
    with_jax("gru H64", gru_cell, 1)
    with_torch("elman H64", lambda w: Recurrent(torch.nn.RNN, w))
    with_jax("elman H64", elman_cell, 1)
    with_torch("mamba D32 N16", Selective)
    with_torch("transformer d64", Attention)
