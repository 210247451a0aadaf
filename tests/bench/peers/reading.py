# SPDX-License-Identifier: GPL-3.0-or-later
"""A long table of a time and a value, as text: C13."""
import os

from peers import common
from peers.common import peer, threads


def table(data):
    path = os.path.join(data["folder"], "steps.csv")
    exact = [data["time"], data["value"]]
    part = "opening"
    if (pandas := common.package("pandas")) is not None:

        def with_pandas():
            frame = pandas.read_csv(path, engine="c")
            return frame["t"].to_numpy(), frame["value"].to_numpy()

        peer(part, "pandas.read_csv, engine c", pandas.__version__, with_pandas, exact)
    if (pyarrow := common.package("pyarrow")) is not None:
        from pyarrow import csv
        pyarrow.set_cpu_count(threads)

        def with_arrow():
            found = csv.read_csv(path)
            return found["t"].to_numpy(), found["value"].to_numpy()

        peer(part, "pyarrow.csv.read_csv", pyarrow.__version__, with_arrow, exact)
    if (polars := common.package("polars")) is not None:

        def with_polars():
            frame = polars.read_csv(path)
            return frame["t"].to_numpy(), frame["value"].to_numpy()

        peer(part, "polars.read_csv", polars.__version__, with_polars, exact)
