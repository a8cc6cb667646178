"""The sweep over a collection of kernels, on a collection of two."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("TWINKLE_BIN") or ROOT / "build/main/bin/twinkle")

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


def test_every_layer_of_a_collection_is_counted_by_reason(tmp_path):
    for name, more in {"one": "", "two": "import triton\n"}.items():
        package = tmp_path / name / "torch-ext" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "layers.py").write_text(more + LAYERS)
        (package.parent / "torch_binding.cpp").write_text(BINDING)
    done = subprocess.run([sys.executable, ROOT / "tests/kernels_community/sweep.py", tmp_path, "--verbose",
                           "--build", PROGRAM.parents[1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "one.Twice: compiled" in done.stdout
    assert "one.Tried: layers.py:16: Try has no counterpart in TorchScript" in done.stdout
    assert "| compiled | 2 | 1 |" in done.stdout
    assert "| syntax without a counterpart | 2 | 1 |" in done.stdout
    assert "operators faked: 2" in done.stdout
