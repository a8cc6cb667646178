"""Models that run code of their own when they are loaded, as quantized ones must, and models that touch files.

The texts @PATH@ and @STATE@ in their code are for tests to replace.
"""

import pathlib
import warnings

import torch
from inputs import HIDDEN
from torch import nn


class HasState(nn.Module):
    """__setstate__ in TorchScript; in @STATE@'s place a test puts what it wants to run."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight

    @torch.jit.export
    def __getstate__(self) -> tuple[torch.Tensor, bool]:
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]) -> None:
        print("@STATE@")
        self.weight = state[0]
        self.training = state[1]


class WritesAFile(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.save(x, "@PATH@")
        return x + 1


class ReadsAFile(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.from_file("@PATH@", shared=True, size=64)


class Store(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(1)

    @torch.jit.export
    def save(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = x.sum().reshape(1)
        return self.kept


class SavesNothing(nn.Module):
    """A method that is called save is nothing to fear."""

    def __init__(self):
        super().__init__()
        self.store = Store()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.store.save(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 32)
        self.out = nn.Linear(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(x)[0])


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.conv = nn.Conv1d(64, 32, 3, padding=1)
        self.relu = nn.ReLU()
        self.linear = nn.Linear(32, 64)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.conv(self.quant(x).transpose(1, 2)))
        return self.dequant(self.linear(y.transpose(1, 2)))


def statically_quantized() -> nn.Module:
    model = Convolved().eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    prepared = torch.ao.quantization.prepare(model)
    prepared(HIDDEN)
    return torch.ao.quantization.convert(prepared)


def make(folder: pathlib.Path) -> None:
    warnings.filterwarnings("ignore")
    torch.manual_seed(40)
    models = {
        "has_state": HasState(), "writes_a_file": WritesAFile(), "reads_a_file": ReadsAFile(),
        "saves_nothing": SavesNothing(), "quantized": statically_quantized(),
        "dynamically_quantized": torch.ao.quantization.quantize_dynamic(Recurrent().eval(), {nn.Linear, nn.LSTM}),
    }
    for name, model in models.items():
        torch.jit.script(model).save(str(folder / f"{name}.pt"))
    torch.jit.trace(models["quantized"], (HIDDEN,)).save(str(folder / "quantized_traced.pt"))
