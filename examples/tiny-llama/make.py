#!/usr/bin/env python3
"""Writes the models and inputs of this folder with PyTorch and transformers.

    python3 examples/tiny-llama/make.py [OUTPUT_FOLDER]     (needs torch and transformers)

A trace holds the path of every Python file it went through. So that the committed models do not tell
where they were made, this program starts itself again with everything it imports visible below one
neutral folder (NEUTRAL), and refuses to finish when another path is found in a model.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

NEUTRAL = pathlib.Path("/tmp/models")
HERE = pathlib.Path(__file__).resolve().parent


def main() -> None:
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE).resolve()
    in_neutral_folder([sys.executable, "-S", "-W", "ignore::DeprecationWarning", "-c",
                       "import sys; from tiny_llama.make import make; make(sys.argv[1])", str(output)],
                      {"tiny_llama": HERE})


def in_neutral_folder(command: list[str], packages: dict[str, pathlib.Path]) -> None:
    """Runs a command which imports only through links below NEUTRAL (and the standard library)."""
    import torch  # only to find where it is installed

    site_packages = pathlib.Path(torch.__file__).parents[1]
    NEUTRAL.mkdir(mode=0o700)  # fails when it exists: never trust what somebody else put there
    links = {"site-packages": site_packages, **packages}
    try:
        for name, target in links.items():
            (NEUTRAL / name).symlink_to(target)
        environment = {**os.environ, "PYTHONPATH": f"{NEUTRAL}:{NEUTRAL}/site-packages",
                       "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, env=environment, cwd=NEUTRAL)
    finally:
        for name in links:
            (NEUTRAL / name).unlink(missing_ok=True)
        NEUTRAL.rmdir()


def make(folder: str) -> None:
    import torch
    from tiny_llama.model import TinyLlama
    from tiny_llama.traceable import give_strong_weights, random_tokens

    output = pathlib.Path(folder)
    torch.set_num_threads(1)  # the same bits on every machine with the same instruction set
    inputs = (random_tokens(2, 128, 256, seed=1),)
    other = (random_tokens(5, 37, 256, seed=2),)
    torch.save(inputs, output / "inputs.pt")
    torch.save(other, output / "inputs_other.pt")

    for dtype, suffix, attention in [(torch.float32, "", "sdpa"), (torch.bfloat16, "_bfloat16", "eager")]:
        scripted = TinyLlama().eval()
        give_strong_weights(scripted, seed=10)
        save(torch.jit.script, scripted.to(dtype), output / f"scripted{suffix}.pt", inputs[0], other[0])
        traced = transformers_llama(attention)
        give_strong_weights(traced, seed=20)
        save(lambda m: torch.jit.trace(m, (inputs[0][:, :16],), check_trace=False), traced.to(dtype),
             output / f"traced{suffix}.pt", inputs[0], other[0])


def transformers_llama(attention: str):
    from tiny_llama.traceable import LogitsOnly
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=352, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096,
        rms_norm_eps=1e-3,  # large enough that a lost epsilon shows
        tie_word_embeddings=False, attn_implementation=attention)
    return LogitsOnly(LlamaForCausalLM(config)).eval()


def save(compile_model, model, path: pathlib.Path, *tokens) -> None:
    """Compiles and saves a model, and proves that what was saved is the model, and worth testing with."""
    import torch
    from tiny_llama.traceable import smallest_effect

    with torch.no_grad():
        compile_model(model).save(str(path))
        loaded = torch.jit.load(str(path))
        for ids in tokens:
            logits = model(ids)
            # Not the profiling executor's first runs only: fusion starts at the third.
            difference = max((loaded(ids) - logits).abs().max().item() for _ in range(3))
            largest = logits.abs().max().item()
            if difference > 1e-3 * largest:
                raise SystemExit(f"{path.name}: differs from the eager model by {difference}")
        if not 2 < largest < 100:
            raise SystemExit(f"{path.name}: the largest logit is {largest}")
        effect, site = smallest_effect(model, tokens[0])
        if effect < 0.01 * largest:
            raise SystemExit(f"{path.name}: {site} hardly matters ({effect} of {largest})")
    check_paths(path)
    print(f"{path.name}: {path.stat().st_size} bytes, largest logit {largest:.1f}, a 5 % error in {site} "
          f"moves one by {effect:.2f}", file=sys.stderr)


def check_paths(path: pathlib.Path) -> None:
    """Only paths below NEUTRAL and of the standard library may be in a model."""
    names = rb"/[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)+\.py"
    allowed = (str(NEUTRAL).encode() + b"/", b"/usr/lib/python3")
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            for found in re.findall(rb"(?<![A-Za-z0-9_.])" + names, archive.read(member)):
                if not found.startswith(allowed):
                    raise SystemExit(f"{path.name}: {member} names {found.decode()}")


if __name__ == "__main__":
    main()
