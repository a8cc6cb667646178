#!/usr/bin/env python3
"""Whether a budget for the error holds on inputs that nobody calibrated with.

    build/venv/bin/python bench/budget_bench.py [--inputs 200] [--model NAME]… [--precision int8]… [-o FILE.md]

Each model is kernelized with `--precision … --max-error …` and one calibration input, then run on others: other seeds,
batches and lengths, and three kinds of text (uniform, a few frequent words, one word repeated). The error is that of
`--max-error`: the norm of the difference to a run of the original in double precision, over the norm of that. Weights
are random, some channels of the activations ten times as large as the others, as trained transformers have them."""

import argparse
import copy
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers as hf  # noqa: E402
from models import FirstOutput  # noqa: E402
from torch import nn  # noqa: E402

TWINKLE = os.environ.get("TWINKLE_BIN", str(ROOT / "build/release/bin/twinkle"))
LIBRARY = next((pathlib.Path(TWINKLE).resolve().parents[1] / "libexec/twinkle").glob("*/libtwinkle.so"))
MANIFEST = 'presets = ["transformers", "linear", "patterns"]\n'
WORDS, WIDTH, LAYERS, LONGEST = 1000, 256, 4, 128
COMMON = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
PRECISIONS = {"int8": 0.02, "int4": 0.15, "int8,int4": 0.05}


MODELS = {
    "BERT-like": lambda: hf.BertModel(hf.BertConfig(**COMMON, intermediate_size=4 * WIDTH)),
    "Llama-like": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        **COMMON, num_key_value_heads=2, intermediate_size=3 * WIDTH, tie_word_embeddings=False, use_cache=False)),
    "GPT-2-like": lambda: hf.GPT2Model(hf.GPT2Config(vocab_size=WORDS, n_embd=WIDTH, n_layer=LAYERS, n_head=4,
                                                     use_cache=False)),
    "ViT-like": lambda: hf.ViTModel(hf.ViTConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=4,
                                                 intermediate_size=4 * WIDTH, image_size=64, patch_size=8)),
}


def with_outliers(model: nn.Module) -> nn.Module:
    """One channel in 64 of what a norm gives is ten times as large."""
    for name, module in model.named_modules():
        if "norm" in type(module).__name__.lower() and getattr(module, "weight", None) is not None:
            module.weight.data[::64] *= 10
    return model


def text(kind: int, batch: int, length: int) -> torch.Tensor:
    if kind == 0:
        return torch.randint(1, WORDS, (batch, length))
    if kind == 1:  # the k-th word is as frequent as 1/k
        return torch.multinomial(1.0 / torch.arange(1, WORDS), batch * length, replacement=True).view(batch, length) + 1
    return torch.randint(1, WORDS, (batch, 1)).expand(batch, length).contiguous()


def picture(kind: int, batch: int) -> torch.Tensor:
    if kind == 0:
        return torch.randn(batch, 3, 64, 64)
    if kind == 1:  # smooth
        return nn.functional.interpolate(torch.randn(batch, 3, 8, 8), size=64, mode="bilinear")
    return torch.randn(batch, 3, 1, 1).expand(batch, 3, 64, 64).contiguous()


def sample(name: str, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    batch, length = int(torch.randint(1, 5, ())), int(torch.randint(1, LONGEST + 1, ()))
    return picture(seed % 3, batch) if name.startswith("ViT") else text(seed % 3, batch, length)


def measure(name: str, precision: str, count: int) -> list[str]:
    limit = PRECISIONS[precision]
    torch.manual_seed(1)
    model = FirstOutput(with_outliers(MODELS[name]())).eval()
    exact = copy.deepcopy(model).double()
    torch.manual_seed(0)
    shown = picture(0, 2) if name.startswith("ViT") else text(0, 2, 32)
    with tempfile.TemporaryDirectory() as made, torch.no_grad():
        folder = pathlib.Path(made)
        torch.jit.trace(model, shown, check_trace=False).save(folder / "model.pt")
        torch.save([shown], folder / "inputs.pt")
        (folder / "twinkle.toml").write_text(MANIFEST)
        done = subprocess.run([TWINKLE, "kernelize", "model.pt", "--inputs", "inputs.pt", "--precision", precision,
                               "--max-error", str(limit), "-o", "small.pt", "--no-measure", "--json"], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode != 0:
            return [name, precision, str(limit), f"not written: {done.stderr.strip().splitlines()[-1][:120]}", "", "", ""]
        small = torch.jit.load(folder / "small.pt")
        errors = []
        for seed in range(100, 100 + count):
            x = sample(name, seed)
            wanted = exact(x.double() if x.is_floating_point() else x)
            errors.append(((small(x).double() - wanted).norm() / wanted.norm()).item())
    kernels = done.stdout.count('"precision": "int8"'), done.stdout.count('"precision": "int4"')
    over = [error for error in errors if error > limit]
    return [name, precision, str(limit), f"{kernels[0]} + {kernels[1]}", f"{len(over)} of {len(errors)}",
            f"{statistics.median(errors) / limit:.2f}", f"{max(errors) / limit:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--precision", action="append", choices=PRECISIONS)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    torch.ops.load_library(str(LIBRARY))
    hf.logging.set_verbosity_error()
    lines = ["| model | precision | budget | layers in int8 + int4 | over the budget | median, of the budget | worst |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name in options.model or MODELS:
        for precision in options.precision or PRECISIONS:
            lines.append("| " + " | ".join(measure(name, precision, options.inputs)) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    machine.publish(options, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
