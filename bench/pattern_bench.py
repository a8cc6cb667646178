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

    def shortest(stage: str) -> float:
        return 1000 * row[stage]["processor"][0]

    def per_thousand(milliseconds: float, of: str) -> str:
        return f"{milliseconds / (row[of] / 1000):.2f}"

    search, median = shortest("search"), 1000 * row["search"]["processor"][1]
    places = search - shortest("flatten") - shortest("match")
    return [f"{name}, {form}", layers, str(row["nodes"]), str(row["operations"]), str(row["found"]),
            f"{shortest('flatten'):.2f}", f"{shortest('match'):.2f}", f"{max(places, 0):.2f}",
            f"{search:.2f}", f"{median:.2f}", f"{1000 * row['search']['clock'][1]:.2f}",
            per_thousand(search, "nodes"), per_thousand(search, "operations"),
            str(row["calls"]), f"{shortest('traced'):.2f}", per_thousand(shortest("traced"), "nodes")]


def report(result: dict) -> str:
    rows = result["rows"]
    head = ["model", "layers", "nodes", "flat operations", "places found", "flatten", "match", "places", "search",
            "median", "median, by the clock", "search / 1,000 nodes", "search / 1,000 operations", "inlined calls",
            "find them", "find them / 1,000 nodes"]
    lines = ["# Looking for patterns", "",
             f"Made by `bench/pattern_bench.py` on {result['processor']}, {os.cpu_count()} cores, {result['load']}; "
             f"{result['versions']}. Milliseconds of processor time, the shortest of 15 rounds, where nothing else is said.", "",
             "Nodes are those of every graph that the model's methods reach, each graph once, with constants and the like. Flat "
             "operations are what is left when calls are followed, for every instance that shares the graph again, and what "
             "computes nothing is gone. `search` is all of it: flatten (the model as one graph), match (every formula of the "
             "preset in it), places (which method holds a match, what the place is called).", "",
             "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]

    def spread(stage: str, which: int, of: str, some: list[dict]) -> str:
        each = [1e6 * row[stage]["processor"][which] / row[of] for row in some]
        return f"{min(each):.2f} to {max(each):.2f}"

    traced = [row for row in rows if not row["model"].endswith("scripted.pt")]
    first = [1e6 * row["flatten"]["first"] / row["nodes"] for row in traced]
    lines += ["", f"The whole search in traced and frozen models: {spread('search', 0, 'nodes', traced)} ms per 1,000 nodes "
              f"(medians {spread('search', 1, 'nodes', traced)}). In all models {spread('search', 0, 'operations', rows)} ms "
              f"per 1,000 flat operations: a scripted model has few nodes, as its layers share them, and a traced one many "
              f"that compute nothing. The first flattening of a model that was just loaded: {min(first):.2f} to "
              f"{max(first):.2f} ms per 1,000 nodes. To compile the formulas, once in a process: "
              f"{1000 * max(row['compile']['first'] for row in rows):.1f} ms."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--layers", action="append", type=int)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the models, or takes those that are there")
    options = parser.parse_args()
    result = {"processor": machine.processor(), "load": machine.load(), "versions": machine.versions(PYTHON), "rows": []}
    with tempfile.TemporaryDirectory(prefix="pattern-bench-") as name:
        folder = options.folder or pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        for model in options.model or MODELS:
            for layers in options.layers or LAYERS:
                models = sorted(folder.glob(f"{model},{layers},*.pt")) or make(model, layers, folder)
                result["rows"] += measure(options.build.resolve(), folder, models)
    machine.publish(options, report(result), result)


if __name__ == "__main__":
    main()
