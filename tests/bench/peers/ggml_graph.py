# SPDX-License-Identifier: GPL-3.0-or-later
"""An operation of ggml on given arrays."""
import ctypes

import numpy as np

from peers import common

ggml = common.package("ggml")


def peer(part, name, make, arrays, exact, shape):
    """Adds an operation of ggml as a peer, where ggml is there: its result begins with an array of this shape."""
    if ggml is None or common.cuda:
        return
    with common.trying(name):
        graph = Graph(make, *arrays)
        count = int(np.prod(shape))
        common.peer(part, name, common.version("ggml-python"), lambda: graph.run(count), exact, lambda y: y.reshape(shape))


class Graph:
    """A graph of one operation, make(context, *tensors). A tensor has the axes of its array in the other order."""

    def __init__(self, make, *arrays):
        size = sum(a.nbytes for a in arrays)
        # Inputs, a result that is not larger than all of them together, and what describes them.
        self.context = ggml.ggml_init(ggml.ggml_init_params(mem_size=2 * size + (64 << 20), mem_buffer=None, no_alloc=False))
        tensors = [self._tensor(a) for a in arrays]
        self.result = make(self.context, *tensors)
        self.graph = ggml.ggml_new_graph(self.context)
        ggml.ggml_build_forward_expand(self.graph, self.result)
        self.pool = ggml.ggml_threadpool_new(ctypes.byref(ggml.ggml_threadpool_params_default(common.threads)))
        self.plan = ggml.ggml_graph_plan(self.graph, common.threads, self.pool)
        self.work = np.empty(max(1, self.plan.work_size), np.uint8)
        self.plan.work_data = self.work.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))

    def _tensor(self, array):
        kind = {np.dtype(np.float32): ggml.GGML_TYPE_F32, np.dtype(np.int32): ggml.GGML_TYPE_I32}[array.dtype]
        axes = list(array.shape[::-1]) + [1] * (4 - array.ndim)
        tensor = ggml.ggml_new_tensor_4d(self.context, kind, *axes)
        array = np.ascontiguousarray(array)
        ctypes.memmove(ggml.ggml_get_data(tensor), array.ctypes.data, array.nbytes)
        return tensor

    def run(self, count):
        """The first `count` numbers of the result, where they lie."""
        if ggml.ggml_graph_compute(self.graph, ctypes.byref(self.plan)) != 0:
            raise RuntimeError("ggml does not compute")
        return np.ctypeslib.as_array(ctypes.cast(ggml.ggml_get_data(self.result), ctypes.POINTER(ctypes.c_float)), (count,))
