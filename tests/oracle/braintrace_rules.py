# SPDX-License-Identifier: GPL-3.0-or-later
"""Gradients of learning rules as braintrace computes them (PyPI, 0.2.6), in float64: SnAp-1 and SnAp-2 of a tanh network below a linear head, for the
sum of squared errors over the steps. It needs JAX, so it is run by itself:

    python3 -m venv /tmp/braintrace
    /tmp/braintrace/bin/pip install braintrace
    /tmp/braintrace/bin/python tests/oracle/braintrace_rules.py
"""
import pathlib

import jax

jax.config.update("jax_enable_x64", True)
import brainstate
import braintrace
import jax.numpy as jnp
import numpy as np

brainstate.environ.set(precision=64)
STEPS, INPUT, WIDTH, OUTPUT = 7, 2, 4, 2


class Network(brainstate.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = braintrace.nn.ValinaRNNCell(INPUT, WIDTH, activation="tanh")
        self.out = braintrace.nn.Linear(WIDTH, OUTPUT)

    def update(self, x):
        return x >> self.cell >> self.out


def by(order, weights, inputs, targets):
    network = Network()
    brainstate.nn.init_all_states(network)
    learner = braintrace.compile(network, braintrace.SnAp, inputs[0], n=order)
    states = network.states(brainstate.ParamState)
    cell, out = ("cell", "W", "weight"), ("out", "weight")
    states[cell].value = {"weight": jnp.concatenate([weights["0/weight_ih"].T, weights["0/weight_hh"].T]), "bias": jnp.asarray(weights["0/bias_ih"])}
    states[out].value = {"weight": jnp.asarray(weights["head/weight"].T), "bias": jnp.asarray(weights["head/bias"])}
    gradients, losses = learner.etrace_grad(inputs, targets, step_fn=lambda x, y: jnp.sum((learner(x) - y) ** 2), return_value=True)
    h, expected = np.zeros(WIDTH), []  # that its network is the one that is meant
    for x, y in zip(inputs, targets):
        h = np.tanh(weights["0/weight_ih"] @ x + weights["0/bias_ih"] + weights["0/weight_hh"] @ h)
        expected.append(np.sum((weights["head/weight"] @ h + weights["head/bias"] - y) ** 2))
    assert np.allclose(losses, expected, rtol=1e-13, atol=0), (losses, expected)
    recurrent, head = ({name: STEPS * values for name, values in gradients[key].items()} for key in (cell, out))  # it has their mean over the steps
    return {
        "0/weight_ih": recurrent["weight"][:INPUT].T,
        "0/weight_hh": recurrent["weight"][INPUT:].T,
        "0/bias_ih": recurrent["bias"],
        "head/weight": head["weight"].T,
        "head/bias": head["bias"],
    }


rng = np.random.default_rng(31)
shapes = {"0/weight_ih": (WIDTH, INPUT), "0/weight_hh": (WIDTH, WIDTH), "0/bias_ih": (WIDTH,), "head/weight": (OUTPUT, WIDTH), "head/bias": (OUTPUT,)}
weights = {name: 0.6 * rng.standard_normal(shape) for name, shape in shapes.items()}
inputs, targets = rng.standard_normal((STEPS, INPUT)), rng.standard_normal((STEPS, OUTPUT))
arrays = {"input": inputs, "target": targets} | {"param/" + name: values for name, values in weights.items()}
for order in (1, 2):
    arrays |= {f"snap-{order}/{name}": np.ascontiguousarray(values) for name, values in by(order, weights, inputs, targets).items()}
apart = np.linalg.norm(arrays["snap-1/0/weight_hh"] - arrays["snap-2/0/weight_hh"]) / np.linalg.norm(arrays["snap-2/0/weight_hh"])
assert apart > 1e-3, apart
np.savez(pathlib.Path(__file__).parent / "training" / "braintrace.npz", **arrays)
print(f"SnAp-1 of the recurrent weights is {apart:.3f} of the norm from SnAp-2")
