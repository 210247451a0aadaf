#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference values of tests/engine/analysis/test_analysis.cpp, with mpmath in as many digits as the products span.

Prints C++ initialisers. The matrices come from the same generator as in the test, so that every entry is the same double.
"""
import mpmath as mp


class Generator:
    def __init__(self, seed):
        self.state = seed

    def uniform(self):  # [0, 1), 53 bits
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) * 2.0**-53

    def symmetric(self):
        return 2 * self.uniform() - 1


def random(generator, n, scale):
    return [[scale * generator.symmetric() for _ in range(n)] for _ in range(n)]


def graded(generator, n):
    """Rows between 1 and 2^-60, as saturated units have them."""
    rows = []
    for _ in range(n):
        size = 2.0 ** -int(60 * generator.uniform())
        rows.append([size * generator.symmetric() for _ in range(n)])
    return rows


def jordan(n, value, coupling):
    return [[value if j == i else coupling if j == i + 1 else 0.0 for j in range(n)] for i in range(n)]


def log10_singular_values(name, matrices, digits):
    mp.mp.dps = digits
    n = len(matrices[0])
    product = mp.eye(n)
    for matrix in matrices:
        product = product * mp.matrix([[mp.mpf(x) for x in row] for row in matrix])
    values = sorted((mp.log10(x) for x in mp.svd_r(product, compute_uv=False)), reverse=True)
    print(f"// {name}\n{{{', '.join(mp.nstr(x, 17) for x in values)}}}")


def grcar(n):
    mp.mp.dps = 60
    matrix = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            matrix[i, j] = -1 if j == i - 1 else 1 if 0 <= j - i <= 3 else 0
    values, _ = mp.eig(matrix)
    values = sorted(values, key=lambda z: (-round(float(abs(z)), 12), float(mp.arg(z))))
    print(f"// Grcar {n}\n{{{', '.join('{' + mp.nstr(mp.re(z), 17) + ', ' + mp.nstr(mp.im(z), 17) + '}' for z in values)}}}")


generator = Generator(1)
log10_singular_values("random 6, 50 factors", [random(generator, 6, 1.0) for _ in range(50)], 200)
generator = Generator(2)
log10_singular_values("random 5, 400 factors, 2^-10", [random(generator, 5, 2.0**-10) for _ in range(400)], 1200)
generator = Generator(3)
log10_singular_values("graded 6, 40 factors", [graded(generator, 6) for _ in range(40)], 1600)
log10_singular_values("Jordan 4, 60 factors", [jordan(4, 0.875, 4.0)] * 60, 200)
grcar(12)
