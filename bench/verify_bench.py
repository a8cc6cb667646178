#!/usr/bin/env python3
"""How long kernelize takes with its verification, by two builds of twinkle.

    verify_bench.py BEFORE AFTER [--before "--verify"] [--after "--verify=given"] [--rounds 15] [-o FILE.md]

BEFORE and AFTER are programs (build/release/bin/twinkle); the options say what each is asked for, so that both compare
the same: an older build may know the given sizes only. Makes two traced Llamas (128 wide with 2 layers, 1024 with 8) and
lets the programs take turns on them; what counts is the ratio of the two in each turn.
"""

import argparse
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

MANIFEST = 'presets = ["transformers"]\n'
MODELS = {"128 wide, 2 layers": (128, 2, 32), "1024 wide, 8 layers": (1024, 8, 64)}


def make_model(folder: pathlib.Path, width: int, layers: int, tokens: int) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.model = LlamaForCausalLM(LlamaConfig(
                hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers, num_attention_heads=width // 64,
                num_key_value_heads=width // 64, vocab_size=1000, max_position_embeddings=256))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.model(ids, use_cache=False).logits

    ids = torch.randint(0, 1000, (1, tokens))
    with torch.no_grad():
        torch.jit.trace(Logits().eval(), ids, check_trace=False).save(str(folder / "model.pt"))
    torch.save([ids], folder / "inputs.pt")
    (folder / "twinkle.toml").write_text(MANIFEST)


def seconds(program: str, options: str, folder: pathlib.Path) -> float:
    command = [program, "-q", "kernelize", "model.pt", *shlex.split(options), "--inputs", "inputs.pt", "-o", "fast.pt", "--json"]
    start = time.monotonic()
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if answer.returncode != 0 or '"verified": true' not in answer.stdout:
        sys.exit(f"{shlex.join(command)}: exit {answer.returncode}\n{answer.stdout[-2000:]}{answer.stderr}")
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--before", default="--verify")
    parser.add_argument("--after", default="--verify=given")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    programs = [str(pathlib.Path(one).resolve()) for one in arguments.programs]
    lines = ["| model | before, s | after, s | after : before (quartiles) |", "| --- | ---: | ---: | ---: |"]
    for name, (width, layers, tokens) in MODELS.items():
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            make_model(folder, width, layers, tokens)
            turns = []
            for turn in range(arguments.rounds + 1):
                order = [0, 1] if turn % 2 else [1, 0]
                options = [arguments.before, arguments.after]
                took = {which: seconds(programs[which], options[which], folder) for which in order}
                if turn:  # the first warms the file cache
                    turns.append((took[0], took[1]))
        ratios = [after / before for before, after in turns]
        low, middle, high = statistics.quantiles(ratios, n=4)
        lines.append(f"| {name} | {statistics.median(b for b, _ in turns):.2f} | {statistics.median(a for _, a in turns):.2f} "
                     f"| {middle:.3f} ({low:.3f} to {high:.3f}) |")
        print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
