"""The sweep over a collection of kernels, on a collection of two."""

import subprocess
import sys

from conftest import PROGRAM, ROOT

BINDING = """
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("twice(Tensor! out, Tensor input, "
          "float eps) -> ()");
}
"""
LAYERS = """
import torch
import torch.nn as nn
from ._ops import ops

class Twice(nn.Module):
    variance_epsilon: float
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        ops.twice(out, x, 0)
        return self.down_proj(out) * self.variance_epsilon

class Tried(nn.Module):
    def forward(self, x):
        try:
            return x
        except ValueError:
            return -x
"""


FUNCTIONS = """
import torch
from ._ops import ops
from . import layers


def twice(x: torch.Tensor, eps: float = 1e-6):
    out = torch.empty_like(x)
    ops.twice(out, x, eps)
    return out


def untyped(x):
    return ops.untyped(x)


def computed(x):
    return not_there(x)
"""


def test_every_layer_and_function_of_a_collection_is_counted_by_reason(tmp_path):
    for name, more in {"one": "", "two": "import triton\n"}.items():
        package = tmp_path / name / "torch-ext" / name
        package.mkdir(parents=True)
        (tmp_path / name / "build.toml").write_text(f'[general]\nname = "{name}"\n')
        (package / "__init__.py").write_text(FUNCTIONS)
        (package / "layers.py").write_text(more + LAYERS)
        (package.parent / "torch_binding.cpp").write_text(BINDING)
    done = subprocess.run([sys.executable, ROOT / "tests/kernels_community/sweep.py", tmp_path, "--verbose",
                           "--build", PROGRAM.parents[1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "one: layer Twice: usable (x: Tensor)" in done.stdout
    assert "one: layer Tried: needs Python: layers.py:15: Try has no counterpart in TorchScript" in done.stdout
    assert "one: function twice: usable (x: Tensor)" in done.stdout
    assert "one: function untyped: not compiled: the schema of the operator untyped is not known" in done.stdout
    assert "one: function computed: not compiled: __init__.py:18: undefined value not_there" in done.stdout
    assert "| usable | 2 | 2 |" in done.stdout
    assert "| syntax without a counterpart | 2 | 0 |" in done.stdout
    assert "| source alone says usable | 2 | 6 |" in done.stdout
    assert "kernels: 2, operators with a schema: 2" in done.stdout
