# SPDX-License-Identifier: GPL-3.0-or-later
"""Causal convolution by FFT: C4, G6."""
import numpy as np

from peers import common
from peers.common import jax, on_torch, peer, threads, torch


def convolution(data):
    kernel, u = data["kernel"], data["u"]
    T = len(u)
    spectrum = np.fft.rfft(kernel.astype(float), 2 * T).T[:, None]
    exact = [np.fft.irfft(spectrum * np.fft.rfft(u.astype(float), 2 * T, axis=0), axis=0)[:T]]

    def back(v):
        return as_steps(common.as_numpy(v))

    def as_steps(v):
        return v.transpose(2, 0, 1)

    if torch is not None:
        tk, tu = on_torch(kernel), on_torch(u)
        cached = torch.fft.rfft(tk, 2 * T)

        def whole():
            return torch.fft.irfft(torch.fft.rfft(tk, 2 * T).T[:, None] * torch.fft.rfft(tu, 2 * T, dim=0), 2 * T, dim=0)[:T]

        peer("forward", "torch.fft", torch.__version__, whole, exact)
        rows = tu.permute(1, 2, 0).contiguous()

        def channels_first(rows, cached):
            return torch.fft.irfft(cached * torch.fft.rfft(rows, 2 * T), 2 * T)[..., :T]

        peer("forward", "torch.fft, spectrum cached, channels first", torch.__version__, lambda: channels_first(rows, cached), exact, back)
        if not common.cuda:
            compiled = common.compiled(channels_first, mode="max-autotune")
            peer("forward", "torch.compile max-autotune, spectrum cached, channels first", torch.__version__, lambda: compiled(rows, cached), exact, back)
    if jax is not None:
        jnp = jax.numpy
        jk, ju = jnp.asarray(kernel), jnp.asarray(u)
        run = jax.jit(lambda k, u: jnp.fft.irfft(jnp.fft.rfft(k, 2 * T).T[:, None] * jnp.fft.rfft(u, 2 * T, axis=0), 2 * T, axis=0)[:T])
        peer("forward", "jax.numpy.fft", jax.__version__, lambda: run(jk, ju), exact)
    if common.cuda:
        return
    series = np.ascontiguousarray(u.transpose(1, 2, 0))  # [B, D, T]
    words = "spectrum cached, channels first"
    # The fast length next to 2T is 2T itself here; where it is not, each package may take more.
    if (fft := common.package("scipy.fft")) is not None:
        length = fft.next_fast_len(2 * T, real=True)
        of_scipy = fft.rfft(kernel, length)
        peer("forward", f"scipy.fft, {threads} workers, {words}", common.version("scipy"),
             lambda: fft.irfft(of_scipy * fft.rfft(series, length, workers=threads), length, workers=threads)[..., :T], exact, back)
    if (ducc0 := common.package("ducc0")) is not None:
        length = ducc0.fft.good_size(2 * T, True)
        padded = np.zeros(series.shape[:2] + (length,), np.float32)
        padded[..., :T] = series
        long_kernel = np.zeros(kernel.shape[:1] + (length,), np.float32)
        long_kernel[:, :T] = kernel
        of_ducc = ducc0.fft.r2c(long_kernel, axes=(1,), nthreads=threads)

        def run_ducc(space=padded, product=np.empty(series.shape[:2] + of_ducc.shape[1:], np.complex64), out=np.empty_like(padded)):
            space[..., :T] = series
            ducc0.fft.r2c(space, axes=(2,), nthreads=threads, out=product)
            np.multiply(product, of_ducc, out=product)
            return ducc0.fft.c2r(product, axes=(2,), lastsize=length, forward=False, inorm=2, nthreads=threads, out=out, allow_overwriting_input=True)[..., :T]

        peer("forward", f"ducc0.fft, {threads} threads, {words}", ducc0.__version__, run_ducc, exact, back)
    if (mkl_fft := common.package("mkl_fft")) is not None:
        of_mkl = mkl_fft.rfft(kernel, 2 * T)
        peer("forward", f"mkl_fft, {words}", mkl_fft.__version__, lambda: mkl_fft.irfft(of_mkl * mkl_fft.rfft(series, 2 * T), 2 * T)[..., :T], exact, back)
