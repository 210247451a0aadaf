# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the weights of this lesson: a chain of 16 units, each of which keeps one half of itself and hands on 1.5 times itself to the unit
# before it. A pulse enters at the last unit. closed.npz has one entry more, of a millionth, from the first unit back to the last; in
# gentle.npz a unit hands on 0.6, so that one scale of colours shows all units.
import numpy

width = 16
chain = 0.5 * numpy.eye(width) + 1.5 * numpy.diag(numpy.ones(width - 1), 1)
enters = numpy.zeros((width, 1))
enters[-1] = 1
numpy.savez("chain.npz", **{"0/weight_ih": enters, "0/weight_hh": chain})
closed = chain.copy()
closed[-1, 0] = 1e-6
numpy.savez("closed.npz", **{"0/weight_ih": enters, "0/weight_hh": closed})
gentle = 0.5 * numpy.eye(width) + 0.6 * numpy.diag(numpy.ones(width - 1), 1)
numpy.savez("gentle.npz", **{"0/weight_ih": enters, "0/weight_hh": gentle})
