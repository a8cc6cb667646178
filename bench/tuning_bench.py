#!/usr/bin/env python3
"""Must tuning be trusted? What it chooses for the bundled operators, beside the original and an exhaustive search.

    tuning_bench.py BUILD_FOLDER [-o OUT.md] [--json RAW.json] [--from RAW.json] [--seconds 300] [--threads 1] [--op NAME]
                    [--device cuda [--gpus 2]]

tuning_bench tunes every operator for every size in its first call, as a program may (10 turns, what has surely lost drops
out), and then measures all its configurations 100 times each, in turns. On a CPU times are CPU time, so that other work on the
machine costs less; BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON. Exits with 1 if something chosen is slower than
the original beyond the quartiles and 5 %, or two GPUs give another result than one.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import machine


def measure(options) -> list[dict]:
    command = [options.build / "bench/tuning_bench", "--device", options.device, "--seconds", str(options.seconds),
               "--threads", str(options.threads), "--gpus", str(options.gpus)]
    command += ["--op", options.op] if options.op else []
    with tempfile.TemporaryDirectory() as store:  # nothing is known before
        done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True,
                              env=os.environ | {"XDG_CACHE_HOME": store, "OMP_NUM_THREADS": str(options.threads)})
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def is_original(candidate: dict) -> bool:
    return candidate["cfg"]["implementation"] == "libtorch"


def facts(case: dict) -> dict:
    """How what was chosen does in the search, where all candidates took turns."""
    candidates = case["candidates"]
    chosen = candidates[case["chosen"]]["us"]
    original = next(one["us"] for one in candidates if is_original(one))
    best = min(one["us"][1] for one in candidates)
    return {"original / chosen": original[1] / chosen[1], "chosen / best": chosen[1] / best,
            "slower": chosen[0] > original[2] and chosen[1] > 1.05 * original[1],
            "share": case["tuning_s"] / case["search_s"], "candidates": len(candidates)}


def row(cells) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(cases: list[dict]) -> list[str]:
    lines = [row(["tokens", "cases", "original / chosen: least", "median", "most", "chosen / best: median", "most",
                  "at most 3 % from the best", "slower than the original", "time of the search"]), row(["---"] * 10)]
    for tokens in sorted({case["tokens"] for case in cases}):
        some = [facts(case) for case in cases if case["tokens"] == tokens]
        gain = [one["original / chosen"] for one in some]
        loss = [one["chosen / best"] for one in some]
        lines.append(row([tokens, len(some), f"{min(gain):.2f}", f"{statistics.median(gain):.2f}", f"{max(gain):.2f}",
                          f"{statistics.median(loss):.3f}", f"{max(loss):.3f}",
                          f"{sum(one <= 1.03 for one in loss)} of {len(some)}", sum(one["slower"] for one in some),
                          f"{statistics.median(one['share'] for one in some):.1%}"]))
    return lines


def worst(cases: list[dict]) -> list[str]:
    lines = [row(["operator", "tokens", "width", "dtype", "chosen", "us", "best", "us", "original, us"]), row(["---"] * 9)]
    far = sorted((case for case in cases if facts(case)["chosen / best"] > 1.03), key=lambda case: -facts(case)["chosen / best"])
    for case in far[:15]:
        chosen = case["candidates"][case["chosen"]]
        best = min(case["candidates"], key=lambda one: one["us"][1])
        original = next(one for one in case["candidates"] if is_original(one))
        lines.append(row([case["op"], case["tokens"], case["width"], case["dtype"], name(chosen), f"{chosen['us'][1]:.1f}",
                          name(best), f"{best['us'][1]:.1f}", f"{original['us'][1]:.1f}"]))
    return lines if far else ["Everything chosen is within 3 %."]


def name(candidate: dict) -> str:
    cfg = candidate["cfg"]
    more = [f"{key} {value}" for key, value in cfg.items() if key != "implementation" and value]
    return " ".join([cfg["implementation"], *more])


def page(cases: list[dict], options) -> str:
    where = machine.gpu() if options.device == "cuda" else f"{machine.processor()}, {options.threads} thread(s), CPU time"
    all_facts = [facts(case) for case in cases]
    near = sum(one["chosen / best"] <= 1.03 for one in all_facts)
    return "\n".join([
        "# What tuning chooses, beside an exhaustive search", "",
        f"{where}; {machine.load()}. {len(cases)} cases of {len({case['op'] for case in cases})} operators; made by",
        "`bench/tuning_bench.py`, which says how.", "",
        f"- Slower than the original, beyond the quartiles and 5 %: {sum(one['slower'] for one in all_facts)} of {len(cases)}.",
        f"- At most 3 % from the best of the search: {near} of {len(cases)} ({near / len(cases):.1%}).",
        f"- Time of tuning, of the search's: {sum(c['tuning_s'] for c in cases) / sum(c['search_s'] for c in cases):.1%} in all.", "",
        *table(cases), "", "Chosen, and more than 3 % from the best:", "", *worst(cases), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="known", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--op")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    lines = json.loads(options.known.read_text())["lines"] if options.known else measure(options)
    cases = [one for one in lines if "op" in one]
    machine.publish(options, page(cases, options), {"lines": lines})
    unequal = any(one.get("equal") is False for one in lines)
    return 1 if unequal or any(facts(case)["slower"] for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
