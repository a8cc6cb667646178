#!/usr/bin/env python3
"""Makes the models of the tests which are not worth committing: make_models.py FOLDER

    FOLDER/models/      TorchScript that must work: other families, shared classes, tied weights, frozen …
    FOLDER/traced/      the models of transformers, traced in three dtypes, with inputs and what double precision gives
    FOLDER/not_models/  files that are something else, or broken
    FOLDER/exported/    archives of torch.export, with calls and what the exported program gives for them
    FOLDER/stateful/    models that run code when they are loaded, or touch files
    FOLDER/inputs/      what --inputs accepts, and what it must refuse

script/test calls it before the tests, which look in build/<preset>/tests/models. Nothing is made again
while the makers and the versions of torch and transformers are the same.
"""

import hashlib
import importlib.metadata
import os
import pathlib
import shutil
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
TINY_LLAMA = HERE.parents[1] / "examples" / "tiny-llama"


def stamp() -> str:
    sources = [*sorted(HERE.glob("*.py")), *sorted(TINY_LLAMA.glob("*.py"))]
    versions = [importlib.metadata.version(name) for name in ("torch", "transformers")]
    return hashlib.sha256(b"".join(s.read_bytes() for s in sources) + " ".join(versions).encode()).hexdigest()


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    written = folder / "stamp"
    if written.exists() and written.read_text() == stamp():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("models", "traced", "exported", "not_models", "stateful", "inputs"):
        (folder / part).mkdir(parents=True)

    os.environ["HF_HUB_OFFLINE"] = "1"
    package = types.ModuleType("tiny_llama")  # under the name that its classes have in saved models
    package.__path__ = [str(TINY_LLAMA)]
    sys.modules["tiny_llama"] = package
    sys.path.insert(0, str(HERE))

    import warnings

    warnings.filterwarnings("ignore")  # torch.jit is deprecated, tracers warn: both known
    import exported
    import inputs
    import not_torchscript
    import scripted
    import stateful
    import torchscript
    import transformers_traced

    inputs.make(folder / "inputs")
    torchscript.make(folder / "models")
    scripted.make(folder / "models", torchscript.save)
    transformers_traced.make(folder / "traced")
    exported.make(folder / "exported")
    stateful.make(folder / "stateful")
    not_torchscript.make(folder / "not_models", folder / "models")
    written.write_text(stamp())


if __name__ == "__main__":
    main()
