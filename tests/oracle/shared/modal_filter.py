# SPDX-License-Identifier: GPL-3.0-or-later
"""A sum of exponentials a channel in the place of a layer's long filter (filter_modes), step by step and as a convolution by FFT with its taps."""
import numpy as np
import torch


def shapes(channels, modes, name="modes."):
    return {f"{name}poles": ((channels, modes, 2), 0.6), f"{name}residues": ((channels, modes, 2), 0.5), f"{name}direct": ((channels,), 0.4)}


def poles_and_residues(p, name="modes."):
    """A pole beyond the unit circle counts as on it."""
    p, r = (torch.complex(z[..., 0], z[..., 1]) for z in (p[f"{name}poles"], p[f"{name}residues"]))
    return torch.where(p.abs() > 1.0, p / p.abs(), p), r


def steps(record, layer, p, u, name="modes."):
    pole, residue = poles_and_residues(p, name)
    h, reads = torch.zeros_like(pole), []
    for row in u:
        record.transition(layer, pole, constant=True)
        h = record.state(layer, "h", pole * h + row[:, None])
        reads.append((residue * h).real.sum(1) + p[f"{name}direct"] * row)
    return torch.stack(reads)


def convolved(p, u, name="modes."):
    T, pole, residue = len(u), p[f"{name}poles"] @ [1.0, 1j], p[f"{name}residues"] @ [1.0, 1j]
    size, angle = np.minimum(np.abs(pole), 1.0), np.angle(pole)
    k = np.arange(T)
    waves = residue.real[..., None] * np.cos(angle[..., None] * k) - residue.imag[..., None] * np.sin(angle[..., None] * k)
    kernel = (size[..., None] ** k * waves).sum(1)
    kernel[:, 0] += p[f"{name}direct"]
    return np.fft.irfft(np.fft.rfft(kernel, 2 * T) * np.fft.rfft(u.T, 2 * T), 2 * T)[:, :T].T
