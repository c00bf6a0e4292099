"""The network of `slot_attention`: features of every place in an image, and slots that compete for them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

STRIDES = (1, 2, 2, 1)  # of the encoder: a feature stands for 4 × 4 pixels
KERNEL = 5
VECTORS = 32  # numbers that a processor's loop takes at a time: two vectors of 512 bits
TINY = 1e-8  # keeps the share of a slot that looks at nothing from being 0 / 0


class SlotNetwork(nn.Module):
    """Images [B, 3, side, side], 0 … 1, and noise for slots to start from → an entry 0 … 1 for each of `entries`.

    width: of features and slots; hidden: of the perceptron inside the attention. scattered: see `Positions`.
    """

    def __init__(
        self, entries: int, side: int, width: int = 64, hidden: int = 128, iterations: int = 3, scattered: bool = False
    ) -> None:
        super().__init__()
        self.encoder = encoder(width)
        self.positions = Positions(width, -(-side // 4), scattered)
        self.norm = nn.LayerNorm(width)
        self.mlp = perceptron(width, width, width)
        self.attention = Attention(width, hidden, iterations)
        self.classifier = perceptron(width, width, entries)

    def forward(self, images: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """images [B, 3, side, side]; noise [B, S, width], or [S, width] for all of them → [B, S, entries]."""
        features = self.encoder(2 * images - 1) + self.positions()
        seen = self.mlp(self.norm(features.flatten(2).transpose(1, 2)))
        said: torch.Tensor = self.classifier(self.attention(seen, noise))
        return _sigmoid(said)


def _sigmoid(values: torch.Tensor) -> torch.Tensor:
    """Of [..., n], in whole vectors: what is left over at the end of an array is rounded otherwise, so that the last
    digit of an image would depend on where in its batch it stands."""
    n = values.shape[-1]
    return functional.pad(values, (0, -n % VECTORS)).sigmoid()[..., :n]


def encoder(width: int) -> nn.Sequential:
    """Convolutions [B, 3, H, W] → [B, width, H / 4, W / 4], rounded up."""
    layers: list[nn.Module] = []
    for place, stride in enumerate(STRIDES):
        layers += [nn.Conv2d(width if place else 3, width, KERNEL, stride, KERNEL // 2), nn.ReLU()]
    return nn.Sequential(*layers)


def perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Positions(nn.Module):
    """What is added to features for where they are, [width, cells, cells]: learnt from the way to each of four edges.

    scattered: the published weights were trained with this table [cells, cells, width] taken for [width, cells, cells]
    as it lies in memory. That mixes places and features, always in the same way, and they have learnt to read it.
    """

    def __init__(self, width: int, cells: int, scattered: bool) -> None:
        super().__init__()
        self.dense = nn.Linear(4, width)
        self.scattered = scattered
        along = torch.linspace(0, 1, cells)
        ways = torch.stack(torch.meshgrid(along, along, indexing="ij"), -1)  # down, right
        self.register_buffer("ways", torch.cat([ways, 1 - ways], -1), persistent=False)

    def forward(self) -> torch.Tensor:
        table: torch.Tensor = self.dense(self.ways)
        if self.scattered:
            return table.reshape(table.shape[2], *table.shape[:2])
        return table.permute(2, 0, 1)


class Attention(nn.Module):
    """Slots that share out features among themselves, and take in what they got, a few times over.

    mu, sigma: slots start as mu + sigma · noise. sigma may be negative: noise has no side.
    """

    def __init__(self, width: int, hidden: int, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations
        self.mu = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, 1, width)))
        self.sigma = nn.Parameter(torch.ones(1, 1, width))
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.gru = nn.GRUCell(width, width)
        self.mlp = perceptron(width, hidden, width)
        self.norm_inputs, self.norm_slots, self.norm_mlp = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, features: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """features [B, N, width]; noise [B, S, width] or [S, width] → slots [B, S, width]."""
        features = self.norm_inputs(features)
        keys, values = self.key(features).transpose(1, 2), self.value(features)
        slots = (self.mu + self.sigma * noise).expand(len(features), -1, -1)
        for _ in range(self.iterations):
            fit = self.query(self.norm_slots(slots)) @ keys * slots.shape[-1] ** -0.5
            shares = fit.softmax(1) + TINY  # a feature is shared out among slots
            taken = shares / shares.sum(-1, keepdim=True) @ values  # a slot takes the mean of its shares
            slots = self.gru(taken.flatten(0, 1), slots.flatten(0, 1)).view_as(taken)
            slots = slots + self.mlp(self.norm_mlp(slots))
        return slots
