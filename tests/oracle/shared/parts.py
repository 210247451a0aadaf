# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenwise parts that many layers share, twice: with PyTorch's own functions for the step loops, and by hand in NumPy for the second forms.

Blocks (norms, residuals, feed-forward parts) are written once for both, with one of these two classes as `ops`.
"""
import math

import numpy as np
import torch

from harness import under

erf = np.vectorize(math.erf)


class Torch:
    concatenate, repeat, exp, maximum, sqrt = torch.cat, torch.repeat_interleave, torch.exp, torch.maximum, torch.sqrt
    sigmoid, log_sigmoid, softmax = torch.sigmoid, torch.nn.functional.logsigmoid, torch.softmax

    @staticmethod
    def split(x, sizes):
        return torch.split(x, sizes, dim=-1)

    @staticmethod
    def layer_norm(x, weight, bias=None, eps=1e-5):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)

    @staticmethod
    def rms_norm(x, weight, eps):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)

    @staticmethod
    def group_norm(x, weight, groups):
        return torch.nn.functional.group_norm(x, groups, weight, None, 1e-5)

    @staticmethod
    def activation(name, x):
        functional = torch.nn.functional
        if name in ("gelu", "gelu_tanh"):
            return functional.gelu(x, approximate="none" if name == "gelu" else "tanh")
        return {"relu": torch.relu, "swish": functional.silu, "silu": functional.silu, "sigmoid": torch.sigmoid, "selu": functional.selu}[name](x)

    @staticmethod
    def convolve(x, weight, bias):
        """Causal and depthwise, the last tap on the current step."""
        taps = weight.shape[2]
        return torch.nn.functional.conv1d(x.T[None], weight, bias, padding=taps - 1, groups=len(weight))[0, :, : len(x)].T


class Numpy:
    exp, maximum, sqrt = np.exp, np.maximum, np.sqrt
    repeat = staticmethod(lambda x, count, dim: np.repeat(x, count, axis=dim))
    concatenate = staticmethod(lambda arrays, axis: np.concatenate(arrays, axis=axis))
    sigmoid = staticmethod(lambda x: 1.0 / (1.0 + np.exp(-x)))
    log_sigmoid = staticmethod(lambda x: -np.logaddexp(0.0, -x))

    @staticmethod
    def softmax(x, axis):
        weights = np.exp(x - x.max(axis, keepdims=True))
        return weights / weights.sum(axis, keepdims=True)

    @staticmethod
    def split(x, sizes):
        return np.split(x, np.cumsum(sizes)[:-1], axis=-1)

    @staticmethod
    def layer_norm(x, weight, bias=None, eps=1e-5):
        centred = x - x.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps) * weight
        return y if bias is None else y + bias

    @staticmethod
    def rms_norm(x, weight, eps):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return y if weight is None else y * weight

    @staticmethod
    def group_norm(x, weight, groups):
        y = Numpy.layer_norm(x.reshape(len(x), groups, -1), 1.0).reshape(x.shape)
        return y if weight is None else y * weight

    @staticmethod
    def activation(name, x):
        if name == "relu":
            return np.maximum(x, 0.0)
        if name == "gelu":
            return x * (1.0 - 0.5 * (1.0 - erf(x / math.sqrt(2.0))))
        if name == "gelu_tanh":
            return x * Numpy.sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))
        if name == "sigmoid":
            return Numpy.sigmoid(x)
        if name == "selu":  # Klambauer et al. 2017: the two numbers that keep mean 0 and variance 1
            return 1.0507009873554805 * np.where(x > 0.0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0.0)))
        return x * Numpy.sigmoid(x)

    @staticmethod
    def convolve(x, weight, bias):
        taps = weight.shape[2]
        padded = np.concatenate([np.zeros((taps - 1, x.shape[1])), x])
        y = sum(padded[j: j + len(x)] * weight[:, 0, j] for j in range(taps))
        return y if bias is None else y + bias


def affine(p, name, x):
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def stack(layer_of, finish, settings):
    """run(parameters, x): the linear encoder where there is one, the layers, and what follows the last of them."""
    def run(parameters, x):
        if "encoder/weight" in parameters:
            x = x @ parameters["encoder/weight"].T + parameters["encoder/bias"]
        for layer in range(settings.get("layers", 1)):
            x = layer_of(layer, under(parameters, f"{layer}/"), x)
        return finish(under(parameters, "final/"), x)
    return run


def encoder_shapes(width, d_in):
    return {"encoder/weight": ((width, d_in), 0.7), "encoder/bias": ((width,), 0.3)} if d_in != width else {}


def norm_shapes(name, width, bias=True):
    """A layer norm (with bias) or a root-mean-square norm."""
    return {f"{name}.weight": ((width,), 0.3, 1.0)} | ({f"{name}.bias": ((width,), 0.3)} if bias else {})


def linear_shapes(name, out, width, bias=False):
    return {f"{name}.weight": ((out, width), 1.0 / math.sqrt(width))} | ({f"{name}.bias": ((out,), 0.3)} if bias else {})


def prefixed(prefix, shapes):
    return {prefix + key: value for key, value in shapes.items()}
