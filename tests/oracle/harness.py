# SPDX-License-Identifier: GPL-3.0-or-later
"""What every oracle shares: the recording of states and Jacobians, the gradients, and the golden file.

An oracle is a plain loop over time in float64. It calls Record.state(...) for each state right after the cell has computed it, which adds
a zero variable delta_t to it; dL/d(delta_t) is then dL/ds_t with all states of step t taken as independent coordinates.
"""
import json
import pathlib

import mpmath
import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(2)  # the order of sums, and with it the last bit, depends on it
HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
FAMILIES = {path.stem: path.parent.name for path in (HERE.parent.parent / "engine" / "models").glob("*/*.cpp")}  # by architecture
SINGULAR_VALUES = 4
wanted = set()  # names of the only golden files to make; empty: all
known = set()  # the names that make() was called with


class Record:
    """States, their perturbations and the transitions ds_t/ds_{t-1} of one run."""

    def __init__(self):
        self.states = {}  # (layer, name) -> a value a step
        self.deltas = {}  # (layer, name) -> a zero leaf a step
        self.dense = {}  # layer -> a square matrix a step
        self.diagonal = {}  # layer -> a vector a step
        self.blocks = {}  # layer -> a list of square matrices a step
        self.constant = set()  # layers whose spectrum is one row
        self.shown = {}  # of such a layer that stands still at first: the step whose spectrum that row is
        self.still = set()  # parameters that change nothing: their gradients are 0 exactly, what is computed is rounding, and left out
        self.defective = set()  # layers with an eigenvalue that has too few eigenvectors: what is computed is off by the root of rounding, and left out
        self.turned = set()  # layers that run from the end to the start: what is kept of them, in the order of their steps, is saved in that of time
        self.singular = set()  # layers whose product has lost rank exactly: the smallest singular value computed is rounding, and left out

    def state(self, layer, name, value):
        delta = torch.zeros_like(value, requires_grad=True)
        value = value + delta
        self.states.setdefault((layer, name), []).append(value)
        self.deltas.setdefault((layer, name), []).append(delta)
        return value

    def hold(self, layer, name):
        """One more step at which the state has not changed: the same array with the same perturbation."""
        self.states[layer, name].append(self.states[layer, name][-1])
        self.deltas[layer, name].append(self.deltas[layer, name][-1])

    def step(self, layer, function, *previous):
        """Calls function(*previous) -> states of this step, and keeps its Jacobian with respect to the previous states."""
        blocks = torch.autograd.functional.jacobian(function, tuple(value.detach() for value in previous))
        rows = [torch.cat([block.reshape(block.shape[0], -1) for block in row], dim=1) for row in blocks]
        self.dense.setdefault(layer, []).append(torch.cat(rows, dim=0).numpy())
        return function(*previous)

    def units(self, layer, function, *previous):
        """The same for a cell whose units do not see one another: a block a unit, of one entry of each state. That nothing stands beside the
        blocks is asserted."""
        blocks = torch.autograd.functional.jacobian(function, tuple(value.detach() for value in previous))
        whole = torch.stack([torch.stack(row) for row in blocks])  # [to, from, unit, unit]
        assert torch.equal(whole, torch.diag_embed(torch.diagonal(whole, dim1=2, dim2=3)))
        self.blocks.setdefault(layer, []).append([whole[:, :, unit, unit].numpy() for unit in range(whole.shape[2])])
        return function(*previous)

    def transition(self, layer, values, constant):
        """The diagonal of a transition that is linear in the state."""
        self.diagonal.setdefault(layer, []).append(values.detach().reshape(-1).numpy())
        if constant:
            self.constant.add(layer)

    def linear(self, layer, matrices, constant):
        """The square blocks of a transition that is linear in the state and block-diagonal."""
        self.blocks.setdefault(layer, []).append([matrix.detach().numpy() for matrix in matrices])
        if constant:
            self.constant.add(layer)


def log10(values):
    with np.errstate(divide="ignore"):
        return np.log10(np.asarray(values, dtype=np.float64))


def dense_singular_values(steps):
    """log10 of the singular values of ds_T/ds_t for every t, at 100 digits: the small ones are far below the rounding of float64."""
    mpmath.mp.dps = 100
    n = steps[0].shape[0]
    product = mpmath.eye(n)
    rows = []
    for jacobian in reversed(steps):
        values = [mpmath.mpf(value) for value in mpmath.svd_r(product, compute_uv=False)]
        zero = max(values) * mpmath.mpf(10) ** -80
        rows.append([float(mpmath.log10(value)) if value > zero else -np.inf for value in sorted(values, reverse=True)])
        product = product * mpmath.matrix(jacobian.tolist())
    return np.array(rows[::-1])


def diagonal_singular_values(steps):
    """The same for diagonal transitions: sums of logarithms of moduli. A complex state is one coordinate."""
    logs = log10(np.abs(np.array(steps)))
    total = np.zeros(logs.shape[1])
    rows = []
    for row in logs[::-1]:
        rows.append(np.sort(total)[::-1])
        total = total + row
    return np.array(rows[::-1])


def eigenvalues(matrix):
    """Of a triangular matrix its diagonal, exactly."""
    return np.diag(matrix) if not np.any(np.triu(matrix, 1)) else np.linalg.eigvals(matrix)


def settle(update, steps, *shapes):
    """The trajectories of a recurrence without a loop over time: all steps at once from guesses of the states before them, again and
    again. After k rounds the first k steps are exact. update takes the states before each step, [steps, ...], and returns those after."""
    states = tuple(np.zeros((steps, *shape)) for shape in shapes)
    for _ in range(steps):
        states = update(*(np.concatenate([np.zeros_like(state[:1]), state[:-1]]) for state in states))
    return states


def loss_of(output, kind):
    if kind == "last":
        return 0.5 * (output[-1] ** 2).sum()
    assert kind in ("mean", "task")  # task: to a target of zeros, which the network has a head for
    return 0.5 * (output**2).sum() / output.shape[0]


def close(actual, expected, tolerance, what):
    """Largest difference relative to the array's largest magnitude."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    error = np.max(np.abs(actual - expected)) / max(np.max(np.abs(expected)), 1e-300)
    assert error <= tolerance, f"{what}: relative error {error:.3g} is over {tolerance:.0e}"
    return error


def check_second_form(name, forward, kind, values, x, output, gradients, seed, still=()):
    """An independent NumPy forward pass gives the same output, and its central difference along a random direction the same slope."""
    numbers = np.random.default_rng(seed + 1000)
    errors = [close(forward(values, x), output, 1e-10, f"{name}: second form's output")]
    keys = ["input", *(key for key in values if key not in still)]
    for key in keys:  # one direction a parameter, so that none can hide behind a larger one
        direction = numbers.standard_normal((x if key == "input" else values[key]).shape)
        slope = float(np.sum(direction * gradients[key]))

        def loss(h):
            if key == "input":
                return float(loss_of(forward(values, x + h * direction), kind))
            return float(loss_of(forward({**values, key: values[key] + h * direction}, x), kind))

        h = 1e-4  # Richardson: the error of the two central differences cancels to h^4
        central = (4.0 * (loss(h / 2) - loss(-h / 2)) / h - (loss(h) - loss(-h)) / (2 * h)) / 3.0
        scale = float(np.linalg.norm(gradients[key])) * np.linalg.norm(direction) + 1e-6
        assert abs(slope - central) <= 1e-7 * scale, f"{name}: gradient of {key}: {slope} against {central}"
        errors.append(abs(slope - central) / scale)
    return errors[0], max(errors[1:])


def make(name, architecture, settings, loss, source, values, x, forward, second=None, builtin=None, seed=0, time=None):
    """Runs an oracle and writes golden/<family>/<name>.npz.

    forward(record, parameters, input) -> output is the step loop in torch; second(values, x) -> output an independent form in NumPy;
    builtin(values, x, loss) -> (output, gradients) PyTorch's own layer with the same weights; time: the sequence's time column, [T].
    """
    known.add(name)
    if wanted and name not in wanted:
        return
    parameters = {key: torch.tensor(value, requires_grad=True) for key, value in values.items()}
    inputs = torch.tensor(x, requires_grad=True)
    record = Record()
    output = forward(record, parameters, inputs)
    leaves = [inputs, *parameters.values(), *(delta for deltas in record.deltas.values() for delta in deltas)]
    found = torch.autograd.grad(loss_of(output, loss), leaves, allow_unused=True)
    found = [torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, found)]
    gradients = dict(zip(["input", *parameters], (gradient.numpy() for gradient in found)))
    of_states = iter(found[1 + len(parameters):])

    for key in record.still:
        assert np.max(np.abs(gradients[key])) <= 1e-14 * max(np.max(np.abs(gradient)) for gradient in gradients.values()), f"{name}: {key} does change something"
    said = []
    if second is not None:
        errors = check_second_form(name, second, loss, values, x, output.detach().numpy(), gradients, seed, record.still)
        said.append("second form: output %.1e, gradients %.1e" % errors)
    if builtin is not None:
        their_output, their_gradients = builtin(values, x, loss)
        worst = close(output.detach().numpy(), their_output, 1e-12, f"{name}: output of PyTorch's layer")
        for key, gradient in ((key, gradient) for key, gradient in their_gradients.items() if key not in record.still):
            worst = max(worst, close(gradients[key], gradient, 1e-11, f"{name}: PyTorch's gradient of {key}"))
        said.append("PyTorch's layer: %.1e" % worst)
    assert said, f"{name} is checked against nothing"

    meta = {"architecture": architecture, "set": settings, "loss": loss, "source": source}
    undefined = [f"jacobian_min/{layer}" for layer in sorted(record.singular)] + [f"gradient/param/{key}" for key in sorted(record.still)] + [f"spectrum/{layer}" for layer in sorted(record.defective)]
    if undefined:  # exactly 0, or several that are one, and what is computed is noise
        meta["undefined"] = undefined
    arrays = {"meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), "input": x, "output": output.detach().numpy()}
    if time is not None:
        arrays["time"] = time
    for key, value in values.items():
        arrays[f"param/{key}"] = value
        if key not in record.still:
            arrays[f"gradient/param/{key}"] = gradients[key]
    arrays["gradient/input"] = gradients["input"]
    for (layer, state), steps in record.states.items():
        order = slice(None, None, -1 if layer in record.turned else 1)
        arrays[f"state/{layer}/{state}"] = torch.stack(steps).detach().numpy()[order].copy()
        arrays[f"gradient/state/{layer}/{state}"] = log10([float(torch.linalg.vector_norm(next(of_states))) for _ in steps])[order].copy()
    for layer, steps in record.dense.items():
        logs = dense_singular_values(steps)
        if layer not in record.defective:
            arrays[f"spectrum/{layer}"] = np.array([np.linalg.eigvals(jacobian) for jacobian in steps]).astype(np.complex128)
        arrays[f"jacobian/{layer}"] = logs[:, :SINGULAR_VALUES]
        if layer not in record.singular:
            arrays[f"jacobian_min/{layer}"] = logs[:, -1]
    for layer, steps in record.diagonal.items():
        logs = diagonal_singular_values(steps)
        at = record.shown.get(layer, 0)
        rows = steps[at:at + 1] if layer in record.constant else steps
        arrays[f"spectrum/{layer}"] = np.array(rows).astype(np.complex128)
        arrays[f"jacobian/{layer}"], arrays[f"jacobian_min/{layer}"] = logs[:, :SINGULAR_VALUES], logs[:, -1]
    for layer, steps in record.blocks.items():
        logs = np.concatenate([dense_singular_values(block) for block in zip(*steps)], axis=1)
        logs = np.sort(logs, axis=1)[:, ::-1]
        at = record.shown.get(layer, 0)
        rows = steps[at:at + 1] if layer in record.constant else steps
        if layer not in record.defective:
            arrays[f"spectrum/{layer}"] = np.array([np.concatenate([eigenvalues(block) for block in row]) for row in rows]).astype(np.complex128)
        arrays[f"jacobian/{layer}"] = logs[:, :SINGULAR_VALUES]
        if layer not in record.singular:
            arrays[f"jacobian_min/{layer}"] = logs[:, -1]
    for layer in record.turned:
        for key in {f"spectrum/{layer}", f"jacobian/{layer}", f"jacobian_min/{layer}"} & arrays.keys():
            arrays[key] = arrays[key][::-1].copy()
    for key, value in arrays.items():
        assert not np.any(np.isnan(value)), f"{name}: {key} has a NaN"
    path = GOLDEN / FAMILIES[architecture] / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"{path.name}: {len(arrays)} arrays, {path.stat().st_size / 1024:.0f} KiB; {'; '.join(said)}", flush=True)


def draw(seed, shapes):
    """Generic values, not an initialisation: each entry of shapes is (shape, scale) or (shape, scale, centre)."""
    numbers = np.random.default_rng(seed)
    values = {}
    for key, (shape, scale, *centre) in shapes.items():
        values[key] = (centre[0] if centre else 0.0) + scale * numbers.standard_normal(shape)
    return values


def under(values, prefix):
    """The entries below a prefix, without it."""
    return {key[len(prefix):]: value for key, value in values.items() if key.startswith(prefix)}
