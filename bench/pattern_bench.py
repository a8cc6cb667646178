#!/usr/bin/env python3
"""What looking for patterns, and for functions that a trace has inlined, costs by the size of a model.

    pattern_bench.py BUILD_FOLDER [-o bench/results/patterns.md] [--json FILE] [--layers N]… [--model NAME]…

Models like Llama and BERT from transformers' configurations, narrow since only their graphs count, each with the attention
operator and with attention written out; traced, frozen, and Llama's decoder layer scripted as well, with instances that
share their code. Everything that the preset "patterns" has is looked for, and four functions of transformers. All in one
thread: processor time leaves other work of the machine out. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import machine

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent / "build/venv/bin/python"
MODELS = ["llama", "llama-eager", "bert", "bert-eager", "scripted"]
LAYERS = [2, 8, 32]
FUNCTIONS = ["apply_rotary_pos_emb", "rotate_half", "repeat_kv", "eager_attention_forward"]
MANIFEST = 'presets = ["patterns"]\n' + "".join(
    f'[functions.{name}]\ntarget_module = "transformers.models.llama.modeling_llama"\nfunc_impl = "op:aten::relu"\n'
    for name in FUNCTIONS)


def make(name: str, layers: int, folder: pathlib.Path) -> list[pathlib.Path]:
    """In a process of its own, for its memory."""
    subprocess.run([PYTHON, HERE / "models.py", "small", name, str(layers), folder], check=True)
    return sorted(folder.glob(f"{name},{layers},*.pt"))


def measure(build: pathlib.Path, folder: pathlib.Path, models: list[pathlib.Path]) -> list[dict]:
    (folder / "twinkle.toml").write_text(MANIFEST)
    subprocess.run([build / "bin/twinkle", "resolve", "-o", "map.json"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    done = subprocess.run([build / "bench/pattern_search", folder / "map.json", *models], check=True,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in done.stdout.splitlines()]


def cells(row: dict) -> list[str]:
    name, layers, form = pathlib.Path(row["model"]).stem.split(",")

    def middle(stage: str) -> float:
        return 1000 * row[stage]["processor"][1]

    def per_thousand(milliseconds: float, of: str) -> str:
        return f"{milliseconds / (row[of] / 1000):.2f}"

    search = middle("search")
    places = search - middle("flatten") - middle("match")
    return [f"{name}, {form}", layers, str(row["nodes"]), str(row["operations"]), str(row["found"]),
            f"{middle('flatten'):.2f}", f"{middle('match'):.2f}", f"{max(places, 0):.2f}",
            f"{1000 * row['search']['clock'][1]:.2f}", per_thousand(search, "nodes"), per_thousand(search, "operations"),
            str(row["calls"]), f"{middle('traced'):.2f}", per_thousand(middle("traced"), "nodes")]


def report(result: dict) -> str:
    rows = result["rows"]
    head = ["model", "layers", "nodes", "flat operations", "places found", "flatten", "match", "places",
            "search, by the clock", "search / 1,000 nodes", "search / 1,000 operations", "inlined calls", "find them",
            "find them / 1,000 nodes"]
    lines = ["# Looking for patterns", "",
             f"Made by `bench/pattern_bench.py` on {result['processor']}, {os.cpu_count()} cores, {result['load']}; "
             f"{result['versions']}. Milliseconds of processor time, medians of 15 rounds, where nothing else is said.", "",
             "Nodes are those of every graph that the model's methods reach, each graph once, with constants and the like. Flat "
             "operations are what is left when calls are followed, for every instance that shares the graph again, and what "
             "computes nothing is gone. `search` is all of it: flatten (the model as one graph), match (every formula of the "
             "preset in it), places (which method holds a match, what the place is called).", "",
             "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    per_node = [1e6 * row["search"]["processor"][1] / row["nodes"] for row in rows]
    per_operation = [1e6 * row["search"]["processor"][1] / row["operations"] for row in rows]
    first = [1e6 * row["flatten"]["first"] / row["nodes"] for row in rows]
    lines += ["", f"All of the search: {min(per_node):.2f} to {max(per_node):.2f} ms per 1,000 nodes, "
              f"{min(per_operation):.2f} to {max(per_operation):.2f} ms per 1,000 flat operations. The first flattening of a "
              f"model that was just loaded: {min(first):.2f} to {max(first):.2f} ms per 1,000 nodes. To compile the "
              f"formulas, once for a mapping: {1000 * min(row['compile']['processor'][0] for row in rows):.1f} ms."]
    return "\n".join(lines) + "\n"


def versions() -> str:
    code = "import torch, transformers; print(f'LibTorch {torch.__version__}, transformers {transformers.__version__}')"
    return subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--layers", action="append", type=int)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the models, or takes those that are there")
    options = parser.parse_args()
    result = {"processor": machine.processor(), "load": machine.load(), "versions": versions(), "rows": []}
    with tempfile.TemporaryDirectory(prefix="pattern-bench-") as name:
        folder = options.folder or pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        for model in options.model or MODELS:
            for layers in options.layers or LAYERS:
                models = sorted(folder.glob(f"{model},{layers},*.pt")) or make(model, layers, folder)
                result["rows"] += measure(options.build.resolve(), folder, models)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = report(result)
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
