#!/usr/bin/env python3
"""Archives of torch.export that another version of PyTorch has written, converted here.

    OTHER/bin/python bench/export_versions.py make FOLDER       # in the environment of the other version
    build/venv/bin/python bench/export_versions.py compare FOLDER [FOLDER…]
    build/venv/bin/python bench/export_versions.py gradients FOLDER [FOLDER…]

`make` exports the models of tests/models/exported.py and, where torchvision is there, some of its models with random
weights. `compare` converts each with twinkle, and compares every call bit by bit with the exported program, loaded by the
torch that runs this: numerics differ between versions, which the last column shows. It prints a table. `gradients` compares those of every parameter and input, each archive's
own, in the same two ways; a folder of tests/models/exported.py will do, too."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from models_of_tests import TWINKLE

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
    """The largest, relative to the largest value; 0 for equal values of the same type and shape."""
    worst = 0.0
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other, (one, other)
            continue
        assert (one.dtype, one.shape) == (other.dtype, other.shape), (one.dtype, one.shape, other.dtype, other.shape)
        if not torch.equal(one, other):
            scale = max(float(other.double().abs().max()), 1e-30)
            apart = float((one.double() - other.double()).abs().max()) / scale
            worst = max(worst, apart if apart == apart else float("inf"))  # max() would leave a NaN out
    return worst


def both(archive, folder):
    """The converted model and the exported program; the first is None where it is refused, and the second then why."""
    import transformers.modeling_outputs  # noqa: F401 (torch.export.load must know the classes of outputs)
    made = pathlib.Path(folder) / "model.pt"
    done = subprocess.run([TWINKLE, "convert", archive, "-o", made, "--json"], capture_output=True, text=True)
    if done.returncode:
        return None, {"refused": json.loads(done.stderr)["error"]}
    return torch.jit.load(made), torch.export.load(archive).module()


def calls_of(archive):
    return torch.load(archive.with_suffix("").with_suffix(".io.pt"))


def outcome(archive, folder):
    from exported import plain
    calls = calls_of(archive)
    model, program = both(archive, folder)
    if model is None:
        return program
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


def gradients_of(model, call):
    """Of the parameters by name, and of the inputs that can have one."""
    call = copy.deepcopy(call)
    inputs = [one.requires_grad_() for one in leaves([call["args"], call["kwargs"]])
              if isinstance(one, torch.Tensor) and one.is_floating_point()]
    inputs_used = [one.clone() for one in inputs]  # some models change their inputs
    replaced = iter(inputs_used)
    given = torch.utils._pytree.tree_map(
        lambda one: next(replaced) if isinstance(one, torch.Tensor) and one.is_floating_point() else one,
        (call["args"], call["kwargs"]))
    results = [one for one in leaves(model(*given[0], **given[1]))
               if isinstance(one, torch.Tensor) and one.requires_grad]
    if not results:
        return None
    sum(one.float().square().mean() for one in results).backward()
    return {name: weight.grad for name, weight in model.named_parameters()}, [one.grad for one in inputs]


def gradient_difference(archive, folder):
    """(parameters with a gradient, inputs with one, the largest difference); None: nothing of it has one."""
    model, program = both(archive, folder)
    if model is None:
        return program
    call = calls_of(archive)[0]
    names = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(weight.data_ptr(), []).append(name)
    with torch.jit.optimized_execution(False):
        found, expected = gradients_of(model, call), gradients_of(program, call)
    if expected is None or found is None:
        assert found is expected, "only one of the two has gradients"
        return None
    for tied in names.values():  # two of them in torch.export.load, whose gradients add up
        parts = [expected[0].pop(name) for name in tied if name in expected[0]]
        parts = [part for part in parts if part is not None]
        expected[0][tied[0]] = sum(parts) if parts else None
    worst, counts = 0.0, []
    assert set(found[0]) == set(expected[0]), set(found[0]) ^ set(expected[0])
    pairs = [[(found[0][name], expected[0][name], name) for name in expected[0]],
             [(one, other, "an input") for one, other in zip(found[1], expected[1], strict=True)]]
    for part in pairs:
        counts.append(sum(other is not None for _, other, _ in part))
        for one, other, name in part:
            assert (one is None) == (other is None), f"{name} has a gradient in one of the two alone"
            worst = worst if one is None else max(worst, difference(one, other))
    return {"parameters": counts[0], "inputs": counts[1], "worst": worst}


def gradients(folder):
    made = folder / "made.json"
    version = json.loads(made.read_text())["torch"] if made.exists() else torch.__version__
    rows, parameters, inputs, equal, compared, none = [], 0, 0, 0, 0, []
    for archive in sorted(folder.glob("*.pt2")):
        with tempfile.TemporaryDirectory() as temporary:
            try:
                found = gradient_difference(archive, temporary)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}
        print(archive.stem, found, file=sys.stderr, flush=True)
        if found is None:
            none.append(archive.stem)
        elif "worst" not in found:
            rows.append(f"| {archive.stem} | {found} |")
        else:
            compared, equal = compared + 1, equal + (found["worst"] == 0)
            parameters, inputs = parameters + found["parameters"], inputs + found["inputs"]
            if found["worst"]:
                rows.append(f"| {archive.stem} | {found['worst']:.1e} |")
    print(f"\n## gradients, torch {version}, run by {torch.__version__}\n\n{compared} archives, {parameters} parameters "
          f"and {inputs} inputs with a gradient, {equal} archives bit-equal; without any: {', '.join(none) or 'none'}\n")
    print("\n".join(["| archive | largest difference |", "| --- | --- |", *rows]))


def main():
    torch.set_num_threads(1)
    command, *folders = sys.argv[1:]
    if command == "make":
        make(pathlib.Path(folders[0]))
    else:
        for folder in folders:
            {"compare": compare, "gradients": gradients}[command](pathlib.Path(folder))


if __name__ == "__main__":
    main()
