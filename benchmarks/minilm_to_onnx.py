"""Write a BERT sentence model that is kept as safetensors as ONNX, for engine ``dense``.

``python benchmarks/minilm_to_onnx.py FROM TO`` reads ``config.json``, ``model.safetensors`` and ``tokenizer.json`` of
the folder FROM and writes ``model.onnx`` and ``tokenizer.json`` to the folder TO. It needs the packages onnx, numpy and
safetensors. The graph is that of Devlin et al. 2018 with GELU by the error function, without pooling: its one output
is a vector a token. It takes one text at a time, unpadded, so it has no attention mask.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Graph:
    """Nodes and constants, each value named by the number of its node."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, value: np.ndarray, name: str) -> str:
        """Name a constant."""
        self.constants[name] = value
        return name

    def weight(self, name: str, transposed: bool = False) -> str:
        """Name a weight of the model."""
        value = self.weights[name]
        return self.constant(np.ascontiguousarray(value.T) if transposed else value, name)

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add a node; return its output."""
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def linear(self, value: str, name: str) -> str:
        """Multiply with a matrix and add a bias."""
        return self.add(
            "Add", self.add("MatMul", value, self.weight(f"{name}.weight", True)), self.weight(f"{name}.bias")
        )

    def norm(self, value: str, name: str, epsilon: float) -> str:
        """Normalize over the last axis."""
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", value, scale, bias, axis=-1, epsilon=epsilon)


def build(weights: dict[str, np.ndarray], config: dict[str, float]) -> onnx.ModelProto:
    """Build the model; the input is ``input_ids`` of shape [1, tokens]."""
    graph = Graph(weights)
    size, heads, epsilon = int(config["hidden_size"]), int(config["num_attention_heads"]), config["layer_norm_eps"]
    split = graph.constant(np.array([0, 0, heads, size // heads], np.int64), "split")
    joined = graph.constant(np.array([0, 0, size], np.int64), "joined")
    root = graph.constant(np.float32(np.sqrt(size // heads)), "root")
    half, one, two = (graph.constant(np.float32(n), name) for n, name in ((0.5, "half"), (1, "one"), (2**0.5, "two")))
    first = graph.constant(np.array([0], np.int64), "first")
    second = graph.constant(np.array([1], np.int64), "second")

    tokens = graph.add("Slice", graph.add("Shape", "input_ids"), second, graph.constant(np.array([2]), "third"))
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    places = graph.add("Slice", graph.weight("embeddings.position_embeddings.weight"), first, tokens)
    kind = graph.constant(weights["embeddings.token_type_embeddings.weight"][0], "kind")
    value = graph.add("Add", graph.add("Add", words, places), kind)
    value = graph.norm(value, "embeddings.LayerNorm", epsilon)
    for number in range(int(config["num_hidden_layers"])):
        layer = f"encoder.layer.{number}"

        def of_heads(part: str, order: list[int], value: str = value, layer: str = layer) -> str:
            cut = graph.add("Reshape", graph.linear(value, f"{layer}.attention.self.{part}"), split)
            return graph.add("Transpose", cut, perm=order)

        scores = graph.add("MatMul", of_heads("query", [0, 2, 1, 3]), of_heads("key", [0, 2, 3, 1]))
        attention = graph.add("Softmax", graph.add("Div", scores, root), axis=-1)
        seen = graph.add("MatMul", attention, of_heads("value", [0, 2, 1, 3]))
        seen = graph.add("Reshape", graph.add("Transpose", seen, perm=[0, 2, 1, 3]), joined)
        seen = graph.linear(seen, f"{layer}.attention.output.dense")
        value = graph.norm(graph.add("Add", value, seen), f"{layer}.attention.output.LayerNorm", epsilon)
        wide = graph.linear(value, f"{layer}.intermediate.dense")
        bent = graph.add("Add", graph.add("Erf", graph.add("Div", wide, two)), one)
        wide = graph.add("Mul", graph.add("Mul", wide, bent), half)
        wide = graph.linear(wide, f"{layer}.output.dense")
        value = graph.norm(graph.add("Add", value, wide), f"{layer}.output.LayerNorm", epsilon)
    graph.nodes[-1].output[0] = "last_hidden_state"
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "tokens", size])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def main(source: Path, target: Path) -> None:
    """Convert the model in one folder into another."""
    target.mkdir(parents=True, exist_ok=True)
    model = build(load_file(source / "model.safetensors"), json.loads((source / "config.json").read_text()))
    onnx.checker.check_model(model)
    onnx.save(model, str(target / "model.onnx"))
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
