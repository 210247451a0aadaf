# SPDX-License-Identifier: GPL-3.0-or-later
"""xLSTM: mLSTM and sLSTM blocks in one stack, from the step loops of matrix_memory.py and stabilised.py, checked against the forms without steps
that those are checked against.

xLSTM  Beck et al. 2024; NX-AI/xlstm, xlstm_block_stack.py: slstm_at has the numbers of the sLSTM blocks.
"""
import numpy as np

from harness import draw, make
from matrix_memory import mlstm, mlstm_layer, mlstm_pairs, mlstm_shapes, xlstm_finish
from parts import Numpy, Torch, encoder_shapes, prefixed, stack
from stabilised import slstm, slstm_layer, slstm_shapes, slstm_unstabilised


def numbers_of(s):
    """Which blocks are sLSTM blocks."""
    if s.get("slstm_at", 0):
        return [b for b in range(s["layers"]) if f"{s['slstm_at']:048b}"[-1 - b] == "1"]
    every = s.get("slstm_every", 2)
    return list(range(s.get("slstm_first", 1), s["layers"], every)) if every else []


def case(name, s, T, d_in, loss, seed):
    at = numbers_of(s)
    shared = {"width": s["width"], "layers": s["layers"], "block": "residual", "post_norm": s.get("post_norm", True)}
    own = {kind: shared | {key[6:]: value for key, value in s.items() if key.startswith(f"{kind}_")} for kind in ("slstm", "mlstm")}
    of = [("slstm", slstm_shapes, slstm_layer, slstm, slstm_unstabilised) if b in at else ("mlstm", mlstm_shapes, mlstm_layer, mlstm, mlstm_pairs) for b in range(s["layers"])]
    shapes = encoder_shapes(s["width"], d_in)
    for b, (kind, shapes_of, *_) in enumerate(of):
        shapes |= prefixed(f"{b}/", shapes_of(own[kind], b))
    shapes |= prefixed("final/", xlstm_finish(None, shared, None, None))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        def block(b, p, v):
            kind, _, layer_of, steps, _ = of[b]
            return layer_of(Torch, lambda p, v: steps(record, b, own[kind], p, v), own[kind], p, v)
        return stack(block, lambda p, v: xlstm_finish(Torch, shared, p, v), shared)(parameters, inputs)

    def second(parameters, inputs):
        def block(b, p, v):
            kind, _, layer_of, _, at_once = of[b]
            return layer_of(Numpy, lambda p, v: at_once(own[kind], p, v), own[kind], p, v)
        return stack(block, lambda p, v: xlstm_finish(Numpy, shared, p, v), shared)(parameters, inputs)

    make(name, "xlstm", s, loss, "step loops of both layers in one stack, checked against their forms without steps", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    small = {"width": 4, "layers": 2, "slstm_heads": 1, "slstm_conv": 2, "slstm_feed_forward": 3, "mlstm_heads": 1, "mlstm_inner": 4, "mlstm_qkv_block": 2, "mlstm_conv": 2}
    case("xlstm", small | {"width": 6, "slstm_heads": 2, "mlstm_heads": 2, "mlstm_inner": 8, "mlstm_qkv_block": 4}, 10, 3, "mean", 281)
    case("xlstm-ratio", small | {"layers": 3, "slstm_every": 2, "slstm_first": 0, "post_norm": False, "slstm_norm_weight": False, "mlstm_bias": True}, 8, 4, "mean", 282)
    case("xlstm-at", small | {"layers": 3, "slstm_at": 3, "slstm_ffn": False, "mlstm_norm": False}, 8, 4, "mean", 283)
    case("xlstm-matrices", small | {"width": 6, "mlstm_heads": 2, "mlstm_inner": 8, "slstm_every": 0, "mlstm_eps": 0.1}, 8, 3, "mean", 314)
    case("xlstm-parallel", small | {"width": 6, "mlstm_heads": 2, "mlstm_inner": 8, "slstm_every": 0, "mlstm_eps": 0.1, "mlstm_stabiliser_start": "none"}, 8, 3, "mean", 316)
    case("xlstm-exponential", small | {"slstm_forget": "exp", "mlstm_forget": "exp", "mlstm_norm": False}, 8, 3, "mean", 317)
    case("xlstm-plain", small | {"mlstm_cell": "plain"}, 8, 3, "mean", 318)
    for seed, name in enumerate(("relu", "swish", "sigmoid", "selu", "relu^2"), 285):
        case(f"xlstm-{name.replace('^2', '-squared')}", small | {"slstm_every": 1, "slstm_first": 0, "layers": 1, "slstm_conv": 0, "slstm_norm": name != "relu", "slstm_activation": name, "slstm_ffn_bias": name == "swish"}, 6, 4, "mean", seed)


if __name__ == "__main__":
    main()
