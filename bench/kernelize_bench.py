#!/usr/bin/env python3
"""What kernelize costs on top of loading and saving a large model, in time and memory.

    kernelize_bench.py BUILD_FOLDER [-o bench/results/kernelize.md] [--layers 100] [--width 1600] [--rounds 7]
                       [--folder /dev/shm]

Makes a traced model of LAYERS x (LlamaRMSNorm, Linear) in float32 (100 layers of 1600: 1 GB), and a kernel in plain
Python for the Linear. The contestants take turns; the shortest time of each step counts, since the machine may do other
work. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

LINEAR = """import torch
import torch.nn.functional as F
from torch import nn


class Linear(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight, self.bias)
"""
MANIFEST = """presets = ["transformers"]
[layers.Linear]
repo_path = "kernel"
classes = ["torch.nn.modules.linear.Linear"]
"""


def make_model(path: pathlib.Path, layers: int, width: int) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    import torch
    from torch import nn
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.proj = LlamaRMSNorm(width), nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.proj(self.norm(x))

    model = nn.Sequential(*(Block() for _ in range(layers))).eval()
    with torch.no_grad():
        torch.jit.trace(model, torch.randn(2, 4, width), check_trace=False).save(str(path))


def run(command: list, folder: pathlib.Path) -> dict:
    """The command's times, with those of the whole process."""
    start = time.monotonic()
    process = subprocess.Popen([*map(str, command)], cwd=folder, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    whole = time.monotonic() - start
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return {**json.loads(output), "whole": whole, "processor": usage.ru_utime + usage.ru_stime,
            "kib": usage.ru_maxrss}


def best(runs: list[dict]) -> dict:
    return {key: min(run[key] for run in runs) for key in runs[0] if isinstance(runs[0][key], (int, float))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="for the models; one in memory (/dev/shm) leaves the disk out")
    options = parser.parse_args()
    build = options.build.resolve()
    steps = build / "bench/kernelize_steps"

    with tempfile.TemporaryDirectory(prefix="kernelize-bench-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        if os.fork() == 0:  # PyTorch's memory is not to be this process's
            make_model(folder / "model.pt", options.layers, options.width)
            os._exit(0)
        if os.wait()[1] != 0:
            raise SystemExit("the model could not be made")
        (folder / "kernel").mkdir()
        (folder / "kernel/__init__.py").write_text("from . import layers\n")
        (folder / "kernel/layers.py").write_text(LINEAR)
        (folder / "twinkle.toml").write_text(MANIFEST)
        subprocess.run([build / "bin/twinkle", "resolve", "-o", "map.json"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        contestants = {
            "LibTorch alone: load, save": [steps, "model.pt", "out.pt"],
            "libtwinkle: load, kernelize, save": [steps, "model.pt", "out.pt", "map.json"],
            "twinkle kernelize": [build / "bin/twinkle", "kernelize", "model.pt", "-o", "out.pt", "--map", "map.json",
                                  "--json"],
        }
        runs: dict[str, list[dict]] = {name: [] for name in contestants}
        for _ in range(options.rounds):
            for name, command in contestants.items():
                (folder / "out.pt").unlink(missing_ok=True)
                os.sync()
                runs[name].append(run(command, folder))
        size = (folder / "model.pt").stat().st_size
    report(options, size, {name: best(all_runs) for name, all_runs in runs.items()})


def report(options: argparse.Namespace, size: int, results: dict[str, dict]) -> None:
    lines = [f"{options.layers} layers of LlamaRMSNorm and Linear, width {options.width}, traced in float32: "
             f"{size / 1e9:.2f} GB. Shortest of {options.rounds} runs each, in ms.", "",
             "| | load | kernelize | save | whole process | processor time | peak memory, MiB | sites replaced |",
             "|---|---|---|---|---|---|---|---|"]
    for name, one in results.items():
        cells = [f"{one[key] * 1000:.0f}" if key in one else "" for key in
                 ("load", "kernelize", "save", "whole", "processor")]
        lines.append(f"| {name} | {' | '.join(cells)} | {one['kib'] / 1024:.0f} | {one['replaced']:.0f} |")
    plain, ours = list(results.values())[:2]
    share = (ours["load"] + ours["kernelize"] - plain["load"]) / (plain["load"] + plain["save"])
    lines += ["", f"Kernelize, with what twinkle::load adds to torch::jit::load: {100 * share:.1f} % of load and save. "
              f"Memory on top: {(ours['kib'] - plain['kib']) / 1024:.0f} MiB."]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.output:
        options.output.write_text("# The cost of kernelize\n\n" + text)


if __name__ == "__main__":
    main()
