#!/usr/bin/env python3
"""Saves a model of linear layers, GELU and LayerNorm, with random weights: what most of a transformer's time is spent on.

    make.py model.pt        19 million weights, 76 MB; its input is float32[ROWS, 768]
"""

import sys
import warnings

import torch
from torch import nn

WIDTH, INNER, LAYERS = 768, 3072, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, INNER)
        self.down = nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main() -> None:
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    torch.manual_seed(1)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)]).eval()
    torch.jit.trace(model, torch.randn(16, WIDTH)).save(sys.argv[1])


if __name__ == "__main__":
    main()
