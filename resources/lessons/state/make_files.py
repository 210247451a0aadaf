# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the two files of the step "What is lost": two leaky units side by side, each with an input of its own (pair.npz), and two pulses,
# one in each input (two_pulses.csv). The later pulse is 0.9^15, as much as the earlier one has left after the 15 steps between them.
import numpy

numpy.savez("pair.npz", **{"0/weight_ih": numpy.eye(2), "0/weight_hh": 0.9 * numpy.eye(2)})
with open("two_pulses.csv", "w") as file:
    file.write("first,second\n")
    for step in range(60):
        file.write(f"{1 if step == 10 else 0},{0.9**15 if step == 25 else 0}\n")
