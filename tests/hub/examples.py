"""The repositories that the projects in lockfiles/ name, as the test Hub has them. Their locks are made from these:
the names are those of the public Hub, the contents and commits are not."""

from repository import Repository, kernel
from server import Hub

LINUX = [f"torch{torch}-cxx11-{backend}-{cpu}-linux" for torch in ("211", "213") for backend in ("cpu", "cu130")
         for cpu in ("x86_64", "aarch64")]

SILU = """import torch
from torch import nn


class Silu(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(input)
"""

RMS_NORM = """import torch
from torch import nn


class RMSNorm(nn.Module):
    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(hidden_states.dtype)
"""


def publish(hub: Hub) -> dict[str, Repository]:
    made = {name: hub.add(f"kernels-community/{name}")
            for name in ("activation", "rmsnorm", "quantization", "layer-norm", "flash-attention")}
    made["activation"].commit(kernel("activation", LINUX, files={"layers.py": SILU}), branch="v1")
    made["activation"].commit(kernel("activation", LINUX, version=2, files={"layers.py": SILU}), branch="v2")
    made["rmsnorm"].commit(kernel("rmsnorm", [*LINUX, "torch-universal"], files={"layers.py": RMS_NORM}),
                           branch="main")
    made["quantization"].commit(kernel("quantization", LINUX), branch="v1", tag="v0.2.0")
    made["layer-norm"].commit(
        kernel("layer-norm", LINUX, depends=[("kernels-community/quantization", 1)]), branch="v1")
    made["flash-attention"].commit(
        kernel("flash-attention", LINUX, version=3, depends=[
            ("kernels-community/layer-norm", 1),
            ("kernels-community/activation", made["activation"].branches["v1"])]), branch="v3")
    return made
