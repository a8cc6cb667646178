"""Every set of registered modes, every pair of flags, every mode that is asked for: which layer is used, by twinkle
and by the Python package `kernels`. Prints what differs, and how many cases there were, as JSON.

One difference is meant: the package refuses a layer that is registered for training and has no backward (or for
torch.compile, and cannot be compiled) even where neither is asked for; twinkle serves it there.

    modes_script.py LIBTWINKLE FOLDER
"""

import base64
import hashlib
import itertools
import json
import os
import pathlib
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import torch  # noqa: E402
from c_library import Library, TwinkleError  # noqa: E402
from kernels import LocalLayerRepository, Mode, kernelize, replace_kernel_forward_from_hub, use_kernel_mapping  # noqa: E402

REGISTERED = {
    "inference": Mode.INFERENCE, "training": Mode.TRAINING, "fallback": Mode.FALLBACK,
    "inference+compile": Mode.INFERENCE | Mode.TORCH_COMPILE, "training+compile": Mode.TRAINING | Mode.TORCH_COMPILE,
}
ASKED = [mode for mode in REGISTERED if mode != "fallback"]
FLAGS = list(itertools.product((False, True), (False, True)))  # has_backward, can_torch_compile


class Plus(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def layer_name(mode, flags):
    return f"Layer{list(REGISTERED).index(mode)}{int(flags[0])}{int(flags[1])}"


def make_kernel(folder):
    """One layer for each registered mode and pair of flags; each adds a number of its own."""
    source = "import torch\nimport torch.nn as nn\n"
    for number, (mode, flags) in enumerate(itertools.product(REGISTERED, FLAGS), start=1):
        source += (f"\n\nclass {layer_name(mode, flags)}(nn.Module):\n    has_backward = {flags[0]}\n"
                   f"    can_torch_compile = {flags[1]}\n\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n"
                   f"        return x + {number}\n")
    build = folder / "kernel/build/torch-universal"
    build.mkdir(parents=True)
    files = {"__init__.py": "from . import layers\n", "layers.py": source}
    for name, text in files.items():
        (build / name).write_text(text)
    digests = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in files.items()}
    (build / "metadata.json").write_text(json.dumps({
        "id": "_modes_1", "name": "modes", "version": 1, "license": "Apache-2.0", "python-depends": [],
        "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": digests}}))
    return folder / "kernel"


def with_python(kernel, modes, flags, asked, fallback):
    mapping = {"Plus": {"cpu": {REGISTERED[mode]: LocalLayerRepository(kernel, layer_name=layer_name(mode, flags))
                                for mode in modes}}} if modes else {}
    model = torch.nn.Sequential(Plus())
    try:
        with use_kernel_mapping(mapping, inherit_mapping=False):
            kernelize(model, mode=REGISTERED[asked], device="cpu", use_fallback=fallback)
    except (ValueError, TypeError):
        return "error"
    return model(torch.zeros(1)).item()


def with_python_as_asked(kernel, modes, flags, asked, fallback):
    """What the package would use if it looked at those flags only that the mode asks for."""
    asks = (asked.startswith("training"), asked.endswith("+compile"))
    lenient = tuple(flag or not wanted for flag, wanted in zip(flags, asks))
    value = with_python(kernel, modes, lenient, asked, fallback)
    return value if value in ("error", 0.0) else value - FLAGS.index(lenient) + FLAGS.index(flags)


def with_twinkle(library, folder, kernel, modes, flags, asked, fallback):
    library.clear()
    config = folder / "config.json"
    layers = [{"repo_path": str(kernel), "layer_name": layer_name(mode, flags), "device": "cpu", "mode": mode,
               "classes": ["*Plus"]} for mode in modes]
    if not modes:
        return 0.0 if fallback else "error"  # nothing is registered: no document says that
    config.write_text(json.dumps({"layers": {"Plus": layers}}))
    library.register(config)
    try:
        library.kernelize(folder / "model.pt", folder / "out.pt", mode=asked, device="cpu", use_fallback=fallback)
    except TwinkleError as error:
        assert error.code in (2, 6), error
        return "error"
    return torch.jit.load(folder / "out.pt")(torch.zeros(1)).item()


def main():
    library, folder = Library(sys.argv[1]), pathlib.Path(sys.argv[2])
    replace_kernel_forward_from_hub(Plus, "Plus")
    kernel = make_kernel(folder)
    torch.jit.script(torch.nn.Sequential(Plus())).eval().save(folder / "model.pt")
    different, cases, more, used = [], 0, 0, set()
    for size in range(len(REGISTERED) + 1):
        for modes, flags, asked, fallback in itertools.product(
                itertools.combinations(REGISTERED, size), FLAGS, ASKED, (True, False)):
            expected = with_python(kernel, modes, flags, asked, fallback)
            found = with_twinkle(library, folder, kernel, modes, flags, asked, fallback)
            cases += 1
            if expected == "error":
                expected = with_python_as_asked(kernel, modes, flags, asked, fallback)
                more += expected != "error"
            used.add(expected)
            if found != expected:
                different.append([modes, flags, asked, fallback, expected, found])
    print(json.dumps({"cases": cases, "more": more, "outcomes": len(used), "different": different}))


if __name__ == "__main__":
    main()
