"""Nine networks as people write them, each the source of a model type and a class for PyTorch itself.

`forward` gets a dict of tensors by feature: numbers [rows, 1], ids [rows].
"""

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F


def split(features):
    return ([f.name for f in features if f.kind == "numeric"],
            {f.name: f.buckets for f in features if f.kind == "category"})


class Tables(nn.Module):
    def __init__(self, sizes, width):
        super().__init__()
        self.own = nn.ModuleDict({name: nn.Embedding(buckets, width) for name, buckets in sizes.items()})

    def forward(self, x):
        return torch.stack([table(x[name]) for name, table in self.own.items()], 1)


def beside(x, names):
    return torch.cat([x[name] for name in names], 1)


def tokens(x, sizes):
    return torch.stack([x[name] for name in sizes], 1)
"""

MODELS = {
    "MLP": """
class MLP(nn.Module):
    def __init__(self, features, hidden=(64, 32), width: int = 8):
        super().__init__()
        self.numbers, sizes = split(features)
        self.tables = Tables(sizes, width)
        layers, inputs = [], len(self.numbers) + width * len(sizes)
        for units in hidden:
            layers += [nn.Linear(inputs, units), nn.ReLU()]
            inputs = units
        self.net = nn.Sequential(*layers, nn.Linear(inputs, 1))

    def forward(self, x):
        return self.net(torch.cat([beside(x, self.numbers), self.tables(x).flatten(1)], 1)).squeeze(1)
""",
    "DeepFM": """
class DeepFM(nn.Module):
    def __init__(self, features, width: int = 8):
        super().__init__()
        self.numbers, sizes = split(features)
        self.tables, self.single = Tables(sizes, width), Tables(sizes, 1)
        self.line = nn.Linear(len(self.numbers), 1)
        self.deep = nn.Sequential(nn.Linear(len(self.numbers) + width * len(sizes), 64), nn.ReLU(),
                                  nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        dense, v = beside(x, self.numbers), self.tables(x)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        alone = self.single(x).sum(1).squeeze(1) + self.line(dense).squeeze(1)
        return pairs + alone + self.deep(torch.cat([dense, v.flatten(1)], 1)).squeeze(1)
""",
    "DCNv2": """
class DCNv2(nn.Module):
    def __init__(self, features, width: int = 8, layers: int = 3):
        super().__init__()
        self.numbers, sizes = split(features)
        self.tables = Tables(sizes, width)
        inputs = len(self.numbers) + width * len(sizes)
        self.cross = nn.ModuleList([nn.Linear(inputs, inputs) for _ in range(layers)])
        self.deep = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.out = nn.Linear(inputs + 32, 1)

    def forward(self, x):
        first = torch.cat([beside(x, self.numbers), self.tables(x).flatten(1)], 1)
        crossed = first
        for layer in self.cross:
            crossed = first * layer(crossed) + crossed
        return self.out(torch.cat([crossed, self.deep(first)], 1)).squeeze(1)
""",
    "AutoInt": """
class AutoInt(nn.Module):
    def __init__(self, features, width: int = 16, heads: int = 2):
        super().__init__()
        self.numbers, sizes = split(features)
        self.tables = Tables(sizes, width)
        self.vectors = nn.Parameter(torch.randn(len(self.numbers), width) * 0.1)
        self.q, self.k, self.v, self.r = (nn.Linear(width, width) for _ in range(4))
        self.count, self.heads, self.part = len(self.numbers) + len(sizes), heads, width // heads
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(self.count * width, 1)

    def cut(self, t):
        return t.reshape(-1, self.count, self.heads, self.part).transpose(1, 2)

    def forward(self, x):
        all = torch.cat([beside(x, self.numbers).unsqueeze(2) * self.vectors, self.tables(x)], 1)
        scores = self.cut(self.q(all)) @ self.cut(self.k(all)).transpose(2, 3) / self.part ** 0.5
        heard = torch.softmax(scores, -1) @ self.cut(self.v(all))
        joined = heard.transpose(1, 2).reshape(-1, self.count, self.heads * self.part)
        return self.out(self.norm(F.relu(joined + self.r(all))).flatten(1)).squeeze(1)
""",
    "Towers": """
class Towers(nn.Module):
    def __init__(self, features, width: int = 8):
        super().__init__()
        self.numbers, sizes = split(features)
        names = list(sizes)
        self.one = Tables({n: sizes[n] for n in names[:4]}, width)
        self.two = Tables({n: sizes[n] for n in names[4:]}, width)
        self.a = nn.Sequential(nn.Linear(4 * width + len(self.numbers), 32), nn.GELU(), nn.Linear(32, 16))
        self.b = nn.Sequential(nn.Linear((len(names) - 4) * width, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        a = F.normalize(self.a(torch.cat([beside(x, self.numbers), self.one(x).flatten(1)], 1)), dim=1)
        b = F.normalize(self.b(self.two(x).flatten(1)), dim=1)
        return (a * b).sum(1) * 5
""",
    "TextCNN": """
class TextCNN(nn.Module):
    def __init__(self, features, width: int = 16):
        super().__init__()
        self.numbers, self.sizes = split(features)
        self.words = nn.Embedding(64, width)
        self.windows = nn.ModuleList([nn.Conv1d(width, 16, k, padding=k // 2) for k in (3, 5)])
        self.out = nn.Linear(32 + len(self.numbers), 1)

    def forward(self, x):
        text = self.words(tokens(x, self.sizes)).transpose(1, 2)
        found = [F.relu(window(text)).max(2)[0] for window in self.windows]
        return self.out(torch.cat(found + [beside(x, self.numbers)], 1)).squeeze(1)
""",
    "SeqGRU": """
class SeqGRU(nn.Module):
    def __init__(self, features, width: int = 16):
        super().__init__()
        self.numbers, self.sizes = split(features)
        self.words = nn.Embedding(64, width)
        self.gru = nn.GRU(width, 24, batch_first=True)
        self.out = nn.Linear(24 + len(self.numbers), 1)

    def forward(self, x):
        states, _ = self.gru(self.words(tokens(x, self.sizes)))
        return self.out(torch.cat([states[:, -1], beside(x, self.numbers)], 1)).squeeze(1)
""",
    "SeqLSTM": """
class SeqLSTM(nn.Module):
    def __init__(self, features, width: int = 16):
        super().__init__()
        self.numbers, self.sizes = split(features)
        self.words = nn.Embedding(64, width)
        self.lstm = nn.LSTM(width, 24, batch_first=True)
        self.out = nn.Linear(24 + len(self.numbers), 1)

    def forward(self, x):
        states, _ = self.lstm(self.words(tokens(x, self.sizes)))
        return self.out(torch.cat([states.mean(1), beside(x, self.numbers)], 1)).squeeze(1)
""",
    "Normed": """
class Normed(nn.Module):
    def __init__(self, features, width: int = 8):
        super().__init__()
        self.numbers, sizes = split(features)
        self.tables = Tables(sizes, width)
        self.net = nn.Sequential(nn.Linear(len(self.numbers) + width * len(sizes), 64), nn.BatchNorm1d(64),
                                 nn.ELU(), nn.Dropout(0.1), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(torch.cat([beside(x, self.numbers), self.tables(x).flatten(1)], 1)).squeeze(1)
""",
}


def source_of(name):
    return HEAD + MODELS[name]
