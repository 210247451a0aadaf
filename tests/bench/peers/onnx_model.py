# SPDX-License-Identifier: GPL-3.0-or-later
"""An LSTM as an ONNX model, with a head or without, in onnxruntime and in OpenVINO."""
import io

import numpy as np

from peers import common
from peers.common import threads


def lstm_model(steps, batch, weight_ih, weight_hh, bias_ih, bias_hh, head=None):
    """x [steps, batch, input] -> y [steps, batch, hidden or outputs]; bytes, or None where there is no package onnx."""
    onnx = common.package("onnx")
    if onnx is None:
        return None
    from onnx import helper, numpy_helper

    hidden = weight_hh.shape[1]

    def arranged(w):  # from i f g o to ONNX's i o f c
        i, f, g, o = np.split(w, 4)
        return np.concatenate([i, o, f, g]).astype(np.float32)

    constants = {"W": arranged(weight_ih)[None], "R": arranged(weight_hh)[None], "B": np.concatenate([arranged(bias_ih), arranged(bias_hh)])[None],
                 "direction": np.array([1], np.int64)}
    nodes = [helper.make_node("LSTM", ["x", "W", "R", "B"], ["Y"], hidden_size=hidden),
             helper.make_node("Squeeze", ["Y", "direction"], ["y" if head is None else "h"])]
    outputs = hidden
    if head is not None:
        weight, bias = head
        outputs = len(weight)
        constants |= {"V": np.ascontiguousarray(weight.T, np.float32), "c": bias.astype(np.float32)}
        nodes += [helper.make_node("MatMul", ["h", "V"], ["hV"]), helper.make_node("Add", ["hV", "c"], ["y"])]

    def tensor(name, width):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [steps, batch, width])

    graph = helper.make_graph(nodes, "lstm", [tensor("x", weight_ih.shape[1])], [tensor("y", outputs)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def in_onnxruntime(runtime, model):
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return "onnxruntime", runtime.__version__, lambda x: session.run(None, {"x": x})[0]


def in_openvino(openvino, model):
    core = openvino.Core()
    request = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return "openvino", openvino.__version__.split("-")[0], lambda x: request.infer({0: x}, share_inputs=True, share_outputs=True)[0]


def on_runtimes(model):
    """(name, version, y of x) for each of the packages that is there and takes the model."""
    found = []
    for name, make in (("onnxruntime", in_onnxruntime), ("openvino", in_openvino)):
        package = common.package(name) if model is not None else None
        if package is not None:
            with common.trying(name):
                found.append(make(package, model))
    return found
