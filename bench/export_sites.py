#!/usr/bin/env python3
"""The same model traced and exported: which sites are found, which kernels, which errors, how fast.

    build/venv/bin/python bench/export_sites.py [--seconds 2] [FAMILY…]

Both are made of one model of transformers (tests/models/transformers_traced.py, tiny, random weights), kernelized with the
three presets on the same inputs, and run in turns in one process. It prints a table, in Markdown."""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import transformers as hf
from models_of_tests import TWINKLE

from exported import SHAPES  # isort: skip (behind models_of_tests)
from transformers_traced import EAGER, EAGER_ONLY, FAMILIES, give_strong_weights, inputs_of

LIBRARY = next((pathlib.Path(TWINKLE).resolve().parents[1] / "libexec/twinkle").glob("*/libtwinkle.so"))


def contestants():
    for name in FAMILIES:
        yield name, False
    for name in [*EAGER, *EAGER_ONLY]:
        yield name, True


def kernelize(folder, kind):
    done = subprocess.run([TWINKLE, "kernelize", folder / f"{kind}.pt{2 if kind == 'exported' else ''}", "--inputs",
                           folder / "in.pt", "-o", folder / f"{kind}_fast.pt", "--no-measure", "--json"],
                          capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1][:300])
    return json.loads(done.stdout)


# What an exporter writes otherwise has a formula of its own, which calls the same operator.
SAME_OPERATOR = {"fused_exported_rotary": "fused_rotary", "fused_partial_rotary": "fused_rotary",
                 "fused_exported_grouped_attention": "fused_grouped_attention",
                 "fused_biased_attention": "fused_written_attention"}


def kernels(report):
    names = [site["kernel"].split(": ")[1] for site in report["sites"] if site["status"] == "replaced"]
    return collections.Counter(SAME_OPERATOR.get(name, name) for name in names)


def worst(report):
    return max((site["max_error"] or 0 for site in report["sites"] if site["status"] == "replaced"), default=0)


def times(folder, inputs, seconds):
    """Milliseconds a call, the median; in turns."""
    models = {kind: torch.jit.load(folder / f"{kind}_fast.pt") for kind in ("traced", "exported")}
    samples = {kind: [] for kind in models}
    with torch.no_grad():
        for model in models.values():
            for _ in range(5):
                model(*inputs)
        end = time.time() + seconds
        while time.time() < end:
            for kind, model in models.items():
                started = time.perf_counter()
                model(*inputs)
                samples[kind].append(1e3 * (time.perf_counter() - started))
    return {kind: statistics.median(one) for kind, one in samples.items()}


def measure(name, eager, seconds):
    build, kind = {**FAMILIES, **EAGER_ONLY}[name]
    torch.manual_seed(7)
    model = build().eval()
    if eager:
        model.model.set_attn_implementation("eager")
    give_strong_weights(model, 3)
    inputs = inputs_of(kind, 2, 12, 1)
    with tempfile.TemporaryDirectory() as temporary, torch.no_grad():
        folder = pathlib.Path(temporary)
        torch.save(inputs, folder / "in.pt")
        torch.jit.trace(model, inputs, check_trace=False).save(folder / "traced.pt")
        torch.export.save(torch.export.export(model, inputs, dynamic_shapes=SHAPES[kind], strict=False),
                          folder / "exported.pt2")
        reports = {one: kernelize(folder, one) for one in ("traced", "exported")}
        ms = times(folder, inputs, seconds)
    found = {one: kernels(report) for one, report in reports.items()}
    same = found["traced"] == found["exported"]
    text = ", ".join(f"{count} {kernel}" for kernel, count in sorted(found["traced"].items()))
    if not same:
        text += "; exported: " + ", ".join(f"{count} {kernel}" for kernel, count in sorted(found["exported"].items()))
    return (f"| {name}{', eager' if eager else ''} | {sum(found['traced'].values())} | {sum(found['exported'].values())} | "
            f"{'yes' if same else '**no**'} | {worst(reports['traced']):.1e} | {worst(reports['exported']):.1e} | "
            f"{ms['exported'] / ms['traced']:.2f} | {text} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    torch.ops.load_library(str(LIBRARY))
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    print("| model | sites, traced | exported | same kernels | error, traced | exported | time, exported / traced | kernels |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, eager in contestants():
        if options.families and name not in options.families:
            continue
        try:
            print(measure(name, eager, options.seconds), flush=True)
        except Exception as error:
            print(f"| {name}{', eager' if eager else ''} | {type(error).__name__}: {str(error).splitlines()[0][:200]} |",
                  flush=True)
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
