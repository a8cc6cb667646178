#!/usr/bin/env python3
"""Archives of torch.export that another version of PyTorch has written, converted here.

    OTHER/bin/python bench/export_versions.py make FOLDER       # in the environment of the other version
    build/venv/bin/python bench/export_versions.py compare FOLDER [FOLDER…]

`make` exports the models of tests/models/exported.py and, where torchvision is there, some of its models with random
weights. `compare` converts each with twinkle, and compares every call bit by bit with the exported program, loaded by the
torch that runs this: numerics differ between versions, which the last column shows. It prints a table."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/models"))
os.environ["HF_HUB_OFFLINE"] = "1"
tiny_llama = types.ModuleType("tiny_llama")  # which the models of tests import
tiny_llama.__path__ = [str(ROOT / "examples/tiny-llama")]
sys.modules["tiny_llama"] = tiny_llama
VISION = ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "swin_t", "vit_b_16", "densenet121",
          "shufflenet_v2_x1_0", "regnet_y_400mf", "squeezenet1_1")


def vision_models():
    try:
        import torchvision
    except ImportError:
        return {}
    from exported import AUTO, Exported, randn
    models = {}
    for name in VISION:
        torch.manual_seed(5)
        size = 224 if name == "vit_b_16" else 64
        model = getattr(torchvision.models, name)(weights=None).eval()
        models[f"torchvision_{name}"] = Exported(model, [(randn(2, 3, size, size),), (randn(3, 3, size, size, seed=2),)],
                                                 ({0: AUTO},))
    return models


def make(folder):
    from exported import all_models, save
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"torch": torch.__version__, "failed": {}}
    for name, one in {**all_models(), **vision_models()}.items():
        try:
            save(folder, name, one)
        except Exception as error:  # what this version cannot export is a line of the table
            facts["failed"][name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
            (folder / f"{name}.pt2").unlink(missing_ok=True)
        print(name, facts["failed"].get(name, "exported"), flush=True)
    (folder / "made.json").write_text(json.dumps(facts, indent=1))


def leaves(value):
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


def difference(found, expected):
    """The largest, relative to the largest value; 0 for equal bits."""
    worst = 0.0
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other, (one, other)
        elif not (one.dtype == other.dtype and torch.equal(one, other)):
            scale = max(float(other.double().abs().max()), 1e-30)
            worst = max(worst, float((one.double() - other.double()).abs().max()) / scale)
    return worst


def outcome(archive, folder):
    import transformers.modeling_outputs  # noqa: F401 (torch.export.load must know the classes of outputs)
    from exported import plain
    calls = torch.load(archive.with_suffix("").with_suffix(".io.pt"))
    made = pathlib.Path(folder) / "model.pt"
    twinkle = os.environ.get("TWINKLE_BIN", ROOT / "build/release/bin/twinkle")
    done = subprocess.run([twinkle, "convert", archive, "-o", made, "--json"], capture_output=True, text=True)
    if done.returncode:
        return {"refused": json.loads(done.stderr)["error"]}
    model = torch.jit.load(made)
    program = torch.export.load(archive).module()
    result = {"calls": len(calls), "here": 0.0, "there": 0.0}
    for call in calls:
        given, other = copy.deepcopy((call["args"], call["kwargs"])), copy.deepcopy((call["args"], call["kwargs"]))
        with torch.no_grad(), torch.jit.optimized_execution(False):
            found = model(*given[0], **given[1])
            expected = plain(program(*other[0], **other[1]))
        result["here"] = max(result["here"], difference([found, given], [expected, other]))
        result["there"] = max(result["there"], difference(found, call["result"]))
    return result


def compare(folder):
    facts = json.loads((folder / "made.json").read_text())
    archives = sorted(folder.glob("*.pt2"))
    equal, rows = 0, []
    for archive in archives:
        name = archive.stem
        with tempfile.TemporaryDirectory() as temporary:
            try:
                found = outcome(archive, temporary)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"}
        if "refused" in found:
            rows.append(f"| {name} | refused: {found['refused']['what']}: {found['refused']['why']} |")
        elif "error" in found:
            rows.append(f"| {name} | {found['error']} |")
        else:
            equal += found["here"] == 0
            if found["here"] or found["there"]:
                rows.append(f"| {name} | here {found['here']:.1e}, there {found['there']:.1e} |")
        print(name, found, file=sys.stderr, flush=True)
    rows += [f"| {name} | not exported by this version: {why} |" for name, why in facts["failed"].items()]
    print(f"\n## torch {facts['torch']}, run by {torch.__version__}\n\n{len(archives)} archives, {equal} bit-equal\n")
    print("\n".join(["| archive | what differs |", "| --- | --- |", *rows]))


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    command, *folders = sys.argv[1:]
    if command == "make":
        make(pathlib.Path(folders[0]))
    else:
        for folder in folders:
            compare(pathlib.Path(folder))


if __name__ == "__main__":
    main()
