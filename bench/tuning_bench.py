#!/usr/bin/env python3
"""Must tuning be trusted? What it chooses for the bundled operators, beside the original and an exhaustive search.

    tuning_bench.py BUILD_FOLDER [-o OUT.md] [--json RAW.json] [--from RAW.json] [--seconds 300] [--threads 1] [--op NAME]
                    [--tokens 1,16] [--width 1024] [--dtype float32] [--pass training] [--device cuda [--gpus 2]]

tuning_bench tunes every operator for every size in its first call, as a program may (10 turns, what has surely lost drops
out), and then measures all its configurations 100 times each, in turns; where calls are slow as often as 3 s allow, and 9
times at least. A pass of training is forward and backward: each has a configuration of its own, and the search has all pairs.
The original is LibTorch's way in both, within the same operation: its gradients are computed from the inputs, as the
operation keeps nothing else. On a CPU times are CPU time, so that other work on the machine costs less. A case whose call
takes more than --call-seconds, or more memory than there is, is left out. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON.
Exits with 1 if something chosen is slower than the original beyond the quartiles of both, or two GPUs give another result
than one.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import machine

NARROWING = ["op", "tokens", "width", "dtype", "pass"]
TURNS = 100  # of a search that has time

def measure(options) -> list[dict]:
    command = [options.build / "bench/tuning_bench", "--device", options.device, "--seconds", str(options.seconds),
               "--call-seconds", str(options.call_seconds), "--threads", str(options.threads), "--gpus", str(options.gpus)]
    for option in NARROWING:
        command += [f"--{option}", getattr(options, option)] if getattr(options, option) else []
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True,
                          env=os.environ | {"OMP_NUM_THREADS": str(options.threads)})
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def is_original(candidate: dict) -> bool:
    return all(candidate[key]["implementation"] == "libtorch" for key in ("cfg", "backward") if key in candidate)


def facts(case: dict) -> dict:
    """How what was chosen does in the search, where all candidates took turns. A search that was cut short counts as a whole one."""
    candidates = case["candidates"]
    chosen = candidates[case["chosen"]]["us"]
    original = next(one["us"] for one in candidates if is_original(one))
    best = min(one["us"][1] for one in candidates)
    return {"original / chosen": original[1] / chosen[1], "chosen / best": chosen[1] / best,
            "slower": chosen[0] > original[2], "candidates": len(candidates),
            "share": case["tuning_s"] / (case["search_s"] * TURNS / case.get("turns", TURNS))}


def row(cells) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(cases: list[dict]) -> list[str]:
    lines = [row(["pass", "tokens", "cases", "original / chosen: least", "median", "most", "chosen / best: median", "most",
                  "at most 3 % from the best", "slower than the original", "time of the search"]), row(["---"] * 11)]
    for which, tokens in sorted({(pass_of(case), case["tokens"]) for case in cases}):
        some = [facts(case) for case in cases if (pass_of(case), case["tokens"]) == (which, tokens)]
        gain = [one["original / chosen"] for one in some]
        loss = [one["chosen / best"] for one in some]
        lines.append(row([which, tokens, len(some), f"{min(gain):.2f}", f"{statistics.median(gain):.2f}", f"{max(gain):.2f}",
                          f"{statistics.median(loss):.3f}", f"{max(loss):.3f}",
                          f"{sum(one <= 1.03 for one in loss)} of {len(some)}", sum(one["slower"] for one in some),
                          f"{statistics.median(one['share'] for one in some):.1%}"]))
    return lines


def listed(cases: list[dict], otherwise: str) -> list[str]:
    lines = [row(["operator", "pass", "tokens", "width", "dtype", "chosen", "us", "best", "us", "original, us"]), row(["---"] * 10)]
    for case in cases:
        chosen = case["candidates"][case["chosen"]]
        best = min(case["candidates"], key=lambda one: one["us"][1])
        original = next(one for one in case["candidates"] if is_original(one))
        lines.append(row([case["op"], pass_of(case), case["tokens"], case["width"], case["dtype"], name(chosen), quartiles(chosen),
                          name(best), quartiles(best), quartiles(original)]))
    return lines if cases else [otherwise]


def worst(cases: list[dict]) -> list[str]:
    far = sorted((case for case in cases if facts(case)["chosen / best"] > 1.03), key=lambda case: -facts(case)["chosen / best"])
    return listed(far[:15], "Everything chosen is within 3 %.")


def pass_of(case: dict) -> str:
    return case.get("pass", "forward")


def quartiles(candidate: dict) -> str:
    lower, median, upper = candidate["us"]
    return f"{median:.1f} ({lower:.1f}–{upper:.1f})"


def name(candidate: dict) -> str:
    return ", backward ".join(cfg_name(candidate[key]) for key in ("cfg", "backward") if key in candidate)


def cfg_name(cfg: dict) -> str:
    more = [f"{key} {value}" for key, value in cfg.items() if key != "implementation" and value]
    return " ".join([cfg["implementation"], *more])


def page(cases: list[dict], options) -> str:
    where = machine.gpu() if options.device == "cuda" else f"{machine.processor()}, {options.threads} thread(s), CPU time"
    all_facts = [facts(case) for case in cases]
    near = sum(one["chosen / best"] <= 1.03 for one in all_facts)
    share = sum(case["tuning_s"] for case in cases) / sum(case["tuning_s"] / one["share"] for case, one in zip(cases, all_facts))
    slower = [case for case, one in zip(cases, all_facts) if one["slower"]]
    return "\n".join([
        "# What tuning chooses, beside an exhaustive search", "",
        f"{where}; {machine.load()}. {len(cases)} cases of {len({case['op'] for case in cases})} operators; made by",
        "`bench/tuning_bench.py`, which says how.", "",
        f"- Slower than the original, beyond the quartiles of both: {len(slower)} of {len(cases)}.",
        f"- At most 3 % from the best of the search: {near} of {len(cases)} ({near / len(cases):.1%}).",
        f"- Time of tuning, of that of a search of {TURNS} turns: {share:.1%} in all.", "",
        *table(cases), "", "Chosen, and slower than the original:", "", *listed(slower, "None."), "",
        "Chosen, and more than 3 % from the best:", "", *worst(cases), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="known", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--call-seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=1)
    for option in NARROWING:
        parser.add_argument(f"--{option}")
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
