#!/usr/bin/env python3
"""Draws the figure of the README, docs/pictures/speed.svg, from bench/results/readme_figure.json.

    readme_figure.py                                            draws what was measured before
    readme_figure.py --cpu models.json --model bert --dtype float32 --date 2026-11-24
    readme_figure.py --gpu gpu_models.json --date 2026-11-24    takes new figures (of model_bench.py --json and
                                                                gpu_model_bench.py --json), and draws them

Each contestant is the same in every row, the slower one too: "twinkle" is the kernelized model on a CPU and the one
with CUDA graphs on a GPU, "torch.compile" has mode "reduce-overhead" on a GPU.
"""

import argparse
import html
import json
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "results/readme_figure.json"
PICTURE = HERE.parent / "docs/pictures/speed.svg"
NAMES = ["TorchScript", "the same, frozen", "torch.compile", "twinkle"]
OF_CPU = dict(zip(NAMES, ["TorchScript", "frozen", "torch.compile", "twinkle"], strict=True))
OF_GPU = dict(zip(NAMES, ["torchscript", "frozen", "compile,reduce-overhead", "kernelized,graphs"], strict=True))
WIDTH, LEFT, BAR, GAP, GROUP = 820, 130, 13, 3, 14
STYLE = """text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600; font-size: 15px }
.small { font-size: 11.5px; fill: #59636e } .end { text-anchor: end } .twinkle { fill: #0969da } .others { fill: #afb8c1 }
.own { font-weight: 600 } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .small { fill: #9198a1 } .paper { fill: #0d1117 }
.twinkle { fill: #4493f8 } .others { fill: #59636e } }"""


def rows_of(rows: list[dict], keys: dict[str, str], median) -> list[dict]:
    return [{"tokens": row["tokens"], "ms": [round(1000 * median(row["contestants"][key]), 3) for key in keys.values()]}
            for row in rows]


def take_cpu(options: argparse.Namespace, panel: dict) -> None:
    raw = json.loads(options.cpu.read_text())
    rows = [row for row in raw["rows"] if (row["model"], row["dtype"]) == (options.model, options.dtype)]
    panel["rows"] = rows_of(rows, OF_CPU, lambda one: statistics.fmean(one["medians"]))
    names = {"bert": ("BERT-base-like", "hidden 768, 12 layers"), "llama": ("Llama-like", "hidden 1024, 8 layers")}
    name, size = names[options.model.split("-")[0]]
    threads = "1 thread" if raw["threads"] == "1" else f"{raw['threads']} threads"
    panel |= {"title": f"{name}, {options.dtype}, on a CPU", "what": f"{size}; {threads}", "date": options.date,
              "machine": f"{raw['processor']}, {raw['versions'].partition(',')[0]}", "source": options.source}


def take_gpu(options: argparse.Namespace, panel: dict) -> None:
    raw = json.loads(options.gpu.read_text())
    panel["rows"] = rows_of(raw["rows"], OF_GPU, lambda one: statistics.median(one["wait"]))
    panel |= {"date": options.date, "machine": f"{raw['before'].split(',')[0]}, {raw['versions']}"}


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"' + (f' class="{kind}"' if kind else "") + f">{html.escape(words)}</text>"


def draw_panel(panel: dict, y: float) -> tuple[list[str], float]:
    parts = [text(16, y, panel["title"], "title"),
             text(16, y + 18, f"{panel['what']}; {panel['machine']}; measured {panel['date']}", "small")]
    y += 34
    for row in panel["rows"]:
        longest = max(row["ms"])
        parts.append(text(16, y + BAR - 2, f"{row['tokens']:,} token" + ("s" if row["tokens"] != 1 else "")))
        for name, ms in zip(panel["contestants"], row["ms"], strict=True):
            own = name == "twinkle"
            length = (WIDTH - LEFT - 250) * ms / longest
            times = row["ms"][0] / ms
            says = (f"{ms:,.0f}" if ms >= 100 else f"{ms:#.3g}") + " ms" + ("" if name == NAMES[0] else f", {times:.2f} ×")
            parts += [text(LEFT + 90, y + BAR - 2, name, "end own" if own else "end small"),
                      f'<rect x="{LEFT + 98}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2" '
                      f'class="{"twinkle" if own else "others"}"/>',
                      text(LEFT + 104 + length, y + BAR - 2, says, "own" if own else "small")]
            y += BAR + GAP
        y += GROUP
    return parts, y + 14


def draw(panels: list[dict]) -> str:
    parts, y = [], 26.0
    for panel in panels:
        more, y = draw_panel(panel, y)
        parts += more
    parts.append(text(16, y - 8, "Milliseconds a call, medians: shorter is better. × is against TorchScript. "
                      "The bars of a row have its own scale.", "small"))
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6:g}" role="img">',
                      "<title>Milliseconds a call: TorchScript, frozen, torch.compile and twinkle</title>",
                      f"<style>{STYLE}</style>", f'<rect width="{WIDTH}" height="{y + 6:g}" rx="8" class="paper"/>', *parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", type=pathlib.Path)
    parser.add_argument("--cpu", type=pathlib.Path)
    parser.add_argument("--model", default="bert", help="of the CPU's figures")
    parser.add_argument("--dtype", default="float32", help="of the CPU's figures")
    parser.add_argument("--source", default="models.md", help="the file of bench/results that has the CPU's figures")
    parser.add_argument("--date", help="when the new figures were measured")
    options = parser.parse_args()
    if (options.gpu or options.cpu) and not options.date:
        parser.error("new figures need their --date")
    data = json.loads(DATA.read_text())
    gpu, cpu = data["panels"]
    if options.gpu:
        take_gpu(options, gpu)
    if options.cpu:
        take_cpu(options, cpu)
    if options.gpu or options.cpu:
        DATA.write_text(json.dumps(data, indent=1) + "\n")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(data["panels"]))


if __name__ == "__main__":
    main()
