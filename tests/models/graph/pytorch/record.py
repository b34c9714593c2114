"""Records what PyTorch computes: /usr/bin/python3 tests/models/graph/pytorch/record.py

Needs python3-torch, python3-onnx and protoc. Of each model below, exported to ONNX as users' models
are, NAME.onnx is the file, NAME.graph the NetworkGraph, and NAME.numbers the inputs, parameters, output
and gradients of the sum of 0.3 + 0.1 ((7 i) mod 13) times output i, a line each.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
import torch
from torch import nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../../.."))
ROWS, IDS, VALUES = 5, 6, 9


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.ModuleList([nn.Embedding(VALUES, 3) for _ in range(IDS)])
        width = 4 + 3 * IDS
        self.cross = nn.Linear(width, width)
        self.deep = nn.Sequential(nn.Linear(width, 7), nn.GELU(), nn.Linear(7, 5), nn.ReLU())
        self.out = nn.Linear(width + 5, 1)

    def forward(self, dense, ids):
        x = torch.cat([dense] + [e(ids[:, i]) for i, e in enumerate(self.embed)], 1)
        return self.out(torch.cat([x * self.cross(x) + x, self.deep(x)], 1)).squeeze(1)


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VALUES, 4)
        self.one = nn.Linear(4, 1)

    def forward(self, dense, ids):
        v = self.embed(ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        a = F.normalize(v[:, :3].flatten(1), dim=1)
        b = F.normalize(v[:, 3:].flatten(1), dim=1)
        return pairs + self.one(dense).squeeze(1) + (a * b).sum(1) * 5


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VALUES, 8)
        self.number = nn.Parameter(torch.randn(4, 8) * 0.3)
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8 * (4 + IDS), 2)

    def forward(self, dense, ids):
        x = torch.cat([dense.unsqueeze(2) * self.number, self.embed(ids)], 1)
        heads = lambda t: t.reshape(-1, 4 + IDS, 2, 4).transpose(1, 2)
        scores = heads(self.q(x)) @ heads(self.k(x)).transpose(2, 3) / 2.0
        y = (torch.softmax(scores, -1) @ heads(self.v(x))).transpose(1, 2)
        return self.out(self.norm(F.relu(y.reshape(-1, 4 + IDS, 8)) + x).flatten(1))


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VALUES, 6)
        self.three = nn.Conv1d(6, 4, 3, padding=1)
        self.grouped = nn.Conv1d(6, 4, 2, stride=2, groups=2)
        self.out = nn.Linear(4 + 4 * 2 + 4 * 2, 3)

    def forward(self, dense, ids):
        x = self.embed(ids).transpose(1, 2)
        a = torch.relu(self.three(x))
        b = F.avg_pool1d(self.grouped(x), 2, 1)
        c = F.max_pool1d(a, 3, 2, 1)[:, :, :2]
        return torch.log_softmax(
            self.out(torch.cat([a.max(2)[0], b.flatten(1), c.flatten(1)], 1)), 1)


class Sequence(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.embed = nn.Embedding(VALUES, 4)
        self.layer = kind(4, 3, batch_first=True, bidirectional=True, **more)
        self.out = nn.Linear(6 + 6, 1)

    def forward(self, dense, ids):
        all_steps, last = self.layer(self.embed(ids))
        last = last[0] if isinstance(last, tuple) else last
        return self.out(torch.cat([all_steps.mean(1), last[0], last[1]], 1)).squeeze(1)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ELU(), nn.Linear(6, 1))

    def forward(self, dense, ids):
        return self.net(dense).squeeze(1)


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList([nn.Parameter(torch.randn(4) * 0.7) for _ in range(16)])

    def forward(self, dense, ids):
        x = [dense * w for w in self.w]
        y = [F.softplus(x[0]), F.softsign(x[1]), F.selu(x[2]), F.hardsigmoid(x[3]),
             F.leaky_relu(x[4], 0.2), torch.tanh(x[5]), torch.sigmoid(x[6]), torch.erf(x[7]),
             x[8].clamp(-0.5, 0.6), x[9].abs().sqrt(), x[10].exp(), (x[11].abs() + 0.1).log(),
             torch.max(x[12], x[13]), (x[14].abs() + 0.1) ** 1.7,
             torch.where(x[15] > 0, x[15] * 2, 1 / (x[15] - 1))]
        few = torch.where(ids[:, :4] == 3, y[0], -y[1])
        return torch.stack(y + [few], 2).mean(1)


MODELS = {
    "cross": Cross, "factors": Factors, "attention": Attention, "text": Text,
    "gru": lambda: Sequence(nn.GRU), "lstm": lambda: Sequence(nn.LSTM),
    "rnn": lambda: Sequence(nn.RNN, nonlinearity="relu"), "normed": Normed, "functions": Functions,
}


def tensor(value, to, pb):
    array = numpy_helper.to_array(value)
    to.shape.extend(array.shape)
    if array.dtype.kind == "f":
        to.numbers.extend(float(v) for v in array.reshape(-1))
    else:
        to.type = pb.GraphTensor.BOOLEAN if array.dtype == bool else pb.GraphTensor.INTEGER
        to.integers.extend(int(v) for v in array.reshape(-1))


def network_graph(model, parameters, pb):
    graph = pb.NetworkGraph()
    graph.inputs.add(name="dense", width=4)
    graph.inputs.add(name="ids", kind=pb.GraphInput.IDS, features=["ids"], length=IDS)
    for value in model.graph.initializer:
        if numpy_helper.to_array(value).dtype.kind == "f":
            learns = value.name in parameters
            graph.parameters.add(name=value.name, shape=value.dims, group=pb.GraphParameter.DEEP
                                 if learns else pb.GraphParameter.FROZEN)
        else:
            node = graph.nodes.add(name=value.name, op_type="Constant", outputs=[value.name])
            tensor(value, node.constant, pb)
    for node in model.graph.node:
        own = graph.nodes.add(name=node.name, op_type=node.op_type, inputs=node.input,
                              outputs=node.output)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                tensor(attribute.t, own.constant, pb)
                continue
            to = own.attributes.add(name=attribute.name)
            value = onnx.helper.get_attribute_value(attribute)
            for one in value if isinstance(value, (list, tuple)) or hasattr(
                    value, "extend") else [value]:
                if isinstance(one, bytes):
                    to.texts.append(one.decode())
                elif isinstance(one, float):
                    to.numbers.append(one)
                else:
                    to.integers.append(one)
    graph.outputs.append(model.graph.output[0].name)
    return graph


def main():
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["protoc", "-I", ROOT, "--python_out", scratch, "models/model.proto"],
                       cwd=ROOT, check=True)
        sys.path.insert(0, os.path.join(scratch, "models"))
        import model_pb2 as pb
        for name, make in MODELS.items():
            torch.manual_seed(7)
            model = make().train()
            dense, ids = torch.randn(ROWS, 4), torch.randint(0, VALUES, (ROWS, IDS))
            path = os.path.join(scratch, name + ".onnx")
            rows = {key: {0: "rows"} for key in ("dense", "ids", "output")}
            keep = {key: value.clone() for key, value in model.state_dict().items()}
            torch.onnx.export(
                model, (dense, ids), path, input_names=["dense", "ids"], output_names=["output"],
                dynamic_axes=rows, training=torch.onnx.TrainingMode.TRAINING,
                do_constant_folding=False, opset_version=13)
            model.load_state_dict(keep)
            exported = onnx.load(path)
            for node in exported.graph.node:
                node.doc_string = ""  # the lines of this script, with its path
            onnx.save(exported, os.path.join(HERE, name + ".onnx"))
            parameters = dict(model.named_parameters())
            with open(os.path.join(HERE, name + ".graph"), "wb") as out:
                out.write(network_graph(exported, parameters, pb).SerializeToString())
            output = model(dense, ids)
            weights = torch.tensor([0.3 + 0.1 * ((7 * i) % 13) for i in range(output.numel())])
            used = {key: value for key, value in parameters.items()}
            gradients = torch.autograd.grad((output.reshape(-1) * weights).sum(),
                                            list(used.values()), allow_unused=True)
            lines = [("dense", dense), ("ids", ids)]
            for value in exported.graph.initializer:
                array = numpy_helper.to_array(value)
                if array.dtype.kind == "f":
                    lines.append((value.name, torch.from_numpy(np.array(array))))
            lines.append(("output", output))
            for key, gradient in zip(used, gradients):
                if gradient is not None:
                    lines.append(("d " + key, gradient))
            with open(os.path.join(HERE, name + ".numbers"), "w") as out:
                for key, values in lines:
                    numbers = " ".join("%.9g" % v for v in values.detach().reshape(-1).tolist())
                    out.write(f"{key}: {numbers}\n")
            missing = [key for key in used if key not in [i.name for i in exported.graph.initializer]]
            print(name, sorted({node.op_type for node in exported.graph.node}), missing)


if __name__ == "__main__":
    main()
