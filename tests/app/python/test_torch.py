# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of PyTorch modules in, outputs and gradients out, against the modules' own in float64; and back. Reference packages that are not
installed are skipped and named. Run by tests/app/python/run.sh torch, which installs them."""
import importlib
import os
import pathlib
import sys
import unittest

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "app/python"))
import reclab  # noqa: E402

torch.set_default_dtype(torch.float64)
LAB = reclab.Lab(os.environ["RECLAB"])
STEPS = 23
TOLERANCE = 1e-12


def tearDownModule():
    LAB.close()


def drawn(module, seed, scale=0.5):
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-scale, scale)
    return module


class Torch(unittest.TestCase):
    def agree(self, what, found, wanted):
        found, wanted = numpy.asarray(found), numpy.asarray(wanted)
        self.assertEqual(found.shape, wanted.shape, what)
        error = numpy.abs(found - wanted).max() / (numpy.abs(wanted).max() or 1.0)
        self.assertLessEqual(error, TOLERANCE, what)
        self.worst = max(self.worst, error)

    def check(self, preset, module, call, inputs, scale=0.5, part=None, **settings):
        """`call`: the outputs [T, ...] of the module for an input [T, inputs]. `part`: of the module, which has the model's weights."""
        self.worst = 0.0
        drawn(module, 1, scale) if scale else None
        weights = part or module
        x = torch.randn(STEPS, inputs, generator=torch.Generator().manual_seed(2)).requires_grad_()
        y = call(x)
        loss = 0.5 * (y ** 2).sum() / STEPS
        loss.backward()
        run = reclab.run(preset, x, weights=weights, loss="mean", record=["output", "gradient", "param"], lab=LAB, **settings)
        self.agree("output", run["output"], y.detach())
        self.agree("loss", run.loss, loss.detach())
        self.agree("gradient/input", run["gradient/input"], x.grad)
        gradients = run.named_as(weights, run.gradients)
        trained = {name: parameter for name, parameter in weights.named_parameters() if parameter.grad is not None}
        self.assertEqual(set(gradients) & set(trained), set(trained))
        for name, parameter in trained.items():
            self.agree(name, gradients[name], parameter.grad)
        print(f"{self.id().split('.')[-1]}: largest error {self.worst:.1e}")
        # Back: drawn by the lab, run by the module.
        drawn_here = reclab.run(preset, x, seed=5, set=run.manifest["hyper"], record=["output", "param"], lab=LAB,
                                **{name: value for name, value in settings.items() if name in ("loss", "form")})
        drawn_here.load_into(weights)
        self.agree("output of weights that the lab drew", call(x.detach()).detach(), drawn_here["output"])

    def needs(self, package):
        try:
            return importlib.import_module(package)
        except Exception as error:  # a package may fail in its own ways
            self.skipTest(f"{package}: {error}")

    def test_lstm(self):
        for layers, extra, settings in ((1, {}, {}), (3, {}, {}), (2, {"proj_size": 2}, {}), (2, {"bias": False}, {}),
                                        (1, {"bidirectional": True}, {"direction": "both"}),
                                        (2, {"bidirectional": True}, {"direction": "both_by_layer"})):
            module = torch.nn.LSTM(3, 5, num_layers=layers, **extra)
            with self.subTest(f"{layers} {extra}"):
                self.check("lstm", module, lambda x: module(x)[0], 3, **settings)

    def test_gru(self):
        for layers, extra, settings in ((1, {}, {}), (3, {}, {}), (1, {"bidirectional": True}, {"direction": "both"})):
            module = torch.nn.GRU(3, 5, num_layers=layers, **extra)
            with self.subTest(f"{layers} {extra}"):
                self.check("gru", module, lambda x: module(x)[0], 3, **settings)

    def test_rnn(self):
        for layers, nonlinearity in ((1, "tanh"), (2, "relu")):
            module = torch.nn.RNN(3, 5, num_layers=layers, nonlinearity=nonlinearity)
            with self.subTest(nonlinearity):
                self.check("elman", module, lambda x: module(x)[0], 3, activation=nonlinearity)

    def test_cells(self):
        for preset, cell in (("lstm", torch.nn.LSTMCell(3, 5)), ("gru", torch.nn.GRUCell(3, 5)), ("elman", torch.nn.RNNCell(3, 5))):
            def call(x):
                state, outputs = None, []
                for row in x:
                    state = cell(row[None], state)
                    outputs.append((state[0] if isinstance(state, tuple) else state)[0])
                return torch.stack(outputs)
            with self.subTest(preset):
                self.check(preset, cell, call, 3)

    def test_transformer(self):
        for first, layers in ((False, 1), (True, 2)):
            layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu" if first else "relu", batch_first=True, norm_first=first)
            module = torch.nn.TransformerEncoder(layer, layers, torch.nn.LayerNorm(8), enable_nested_tensor=False)
            mask = torch.nn.Transformer.generate_square_subsequent_mask(STEPS)
            with self.subTest(f"norm first {first}"):
                self.check("transformer", module, lambda x: module(x[None], mask, is_causal=True)[0], 8, heads=2, position="none",
                           activation="gelu" if first else "relu", prenorm=first)

    def test_ncps_cfc(self):
        ncps = self.needs("ncps.torch")
        for mode in ("default", "pure", "no_gate"):
            module = ncps.CfC(3, 6, mode=mode, backbone_units=7, backbone_layers=2, mixed_memory=mode == "pure").eval()
            with self.subTest(mode):
                self.check("cfc", module, lambda x: module(x)[0], 3, mode=mode, mixed_memory=mode == "pure")

    def test_ncps_ltc(self):
        ncps, wirings = self.needs("ncps.torch"), self.needs("ncps.wirings")
        for wiring in (wirings.FullyConnected(5), wirings.AutoNCP(12, 3)):
            module = ncps.LTC(3, wiring, implicit_param_constraints=True)
            masks = {name: value.clone() for name, value in module.state_dict().items() if name.endswith("mask")}

            def call(x):
                return module(x)[0]

            full = isinstance(wiring, wirings.FullyConnected)
            torch.manual_seed(3)
            with torch.no_grad():
                for name, value in module.named_parameters():
                    if name not in masks:
                        value.add_(0.1 * torch.randn_like(value))
            with self.subTest(type(wiring).__name__):
                self.check("ltc", module, call, 3, scale=None, wiring="full" if full else "auto_ncp", motor=wiring.output_dim, constraints="softplus",
                           capacitance="whole", epsilon=1e-8, ode_unfolds=6, mapping="affine", output_mapping="affine")

    def test_sru(self):
        sru = self.needs("sru")
        for layers, extra, settings in ((1, {}, {}), (2, {"layer_norm": True, "rescale": True}, {"norm": "before", "rescale": True})):
            module = sru.SRU(5, 5, num_layers=layers, amp_recurrence_fp16=False, **extra).double()  # it makes a buffer in single precision
            with self.subTest(f"{layers} {extra}"):
                self.check("sru", module, lambda x: module(x[:, None])[0][:, 0], 5, **{"rescale": False, **settings})

    def test_mamba(self):
        mamba = self.needs("mambapy.mamba")
        config = mamba.MambaConfig(d_model=8, n_layers=2, d_state=4, expand_factor=2, d_conv=3, pscan=False)
        module = mamba.Mamba(config).double()  # it makes A_log in single precision
        module.norm_f = mamba.RMSNorm(8, config.rms_norm_eps, False)  # of the whole model
        single, torch.Tensor.float = torch.Tensor.float, torch.Tensor.double  # the package computes exp(A_log) in single precision
        try:
            self.check("mamba", module, lambda x: module.norm_f(module(x[None]))[0], 8)
        finally:
            torch.Tensor.float = single

    def test_xlstm_mlstm(self):
        xlstm, blocks = self.needs("xlstm.xlstm_block_stack"), self.needs("xlstm.blocks.mlstm.block")
        layer = self.needs("xlstm.blocks.mlstm.layer")
        block = blocks.mLSTMBlockConfig(mlstm=layer.mLSTMLayerConfig(conv1d_kernel_size=4, qkv_proj_blocksize=4, num_heads=4))
        module = xlstm.xLSTMBlockStack(xlstm.xLSTMBlockStackConfig(mlstm_block=block, context_length=STEPS, num_blocks=2, embedding_dim=16))
        self.check("mlstm", module, lambda x: module(x[None])[0], 16, heads=4, stabiliser_start="none")

    def test_xlstm_slstm(self):
        xlstm, blocks = self.needs("xlstm.xlstm_block_stack"), self.needs("xlstm.blocks.slstm.block")
        layer = self.needs("xlstm.blocks.slstm.layer")
        block = blocks.sLSTMBlockConfig(slstm=layer.sLSTMLayerConfig(backend="vanilla", num_heads=4, conv1d_kernel_size=4), feedforward=None)
        module = xlstm.xLSTMBlockStack(xlstm.xLSTMBlockStackConfig(slstm_block=block, context_length=STEPS, num_blocks=1, embedding_dim=16))
        self.check("slstm", module, lambda x: module(x[None])[0], 16, heads=4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
