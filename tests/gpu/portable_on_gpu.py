"""Models and kernels that were made for this machine on one without a GPU (make_portable.py) run here unchanged, from C++.

    TWINKLE_BIN=build/gpu/bin/twinkle TWINKLE_PORTABLE=FOLDER python3 -m pytest tests/gpu/portable_on_gpu.py"""

import json
import os
import pathlib
import subprocess

import pytest
import torch

FOLDER = pathlib.Path(os.environ["TWINKLE_PORTABLE"]).absolute()
OTHER = FOLDER / "other"  # its pack has no code for the GPU of this machine
MODELS = sorted(path.name.removesuffix(".io.pt") for path in FOLDER.glob("*.io.pt"))
ROUNDOFF = {"bfloat16": 2.0 ** -8, "float16": 2.0 ** -11, "float32": 2.0 ** -20}  # GPUs sum in another order


def twinkle(*arguments):
    return subprocess.run([os.environ["TWINKLE_BIN"], *map(str, arguments)], capture_output=True, text=True,
                          env={key: value for key, value in os.environ.items() if key != "TWINKLE_KERNELS"})


def run(path, inputs, folder, kernels):
    torch.save(tuple(inputs), folder / "in.pt")
    return twinkle("run", path, "--inputs", folder / "in.pt", "-o", folder / "out.pt", "--device", "cuda", "--kernels",
                   kernels, "--json")


def error(result, expected):
    return (torch.linalg.vector_norm(result.double().cpu() - expected) / torch.linalg.vector_norm(expected)).item()


def test_there_are_models():
    assert len(MODELS) >= 6


@pytest.mark.parametrize("name", MODELS)
def test_a_model_made_elsewhere_is_right_here(name, tmp_path):
    data = torch.load(FOLDER / f"{name}.io.pt", weights_only=True)
    assert data["replaced"] > 0
    for inputs, expected, own in zip(data["inputs"], data["expected"], data["errors"], strict=True):
        done = run(FOLDER / f"{name}.pt", inputs, tmp_path, FOLDER / "kernels")
        assert done.returncode == 0, done.stderr
        result = torch.load(tmp_path / "out.pt", weights_only=True)
        result = result[0] if isinstance(result, (tuple, list)) else result
        assert error(result, expected) <= max(1.5 * own, ROUNDOFF[name.split(".")[1]])


def test_the_kernels_run_on_the_gpu(tmp_path):
    """What the model calls are the pack's kernels, not something that PyTorch has instead."""
    name = next(name for name in MODELS if name.startswith("llama.bfloat16"))
    library = next((FOLDER / "kernels").rglob("*-cu*/*.so"))
    torch.ops.load_library(os.environ["TWINKLE_LIBRARY"])
    os.environ["TWINKLE_KERNELS"] = str(FOLDER / "kernels")
    model = torch.jit.load(FOLDER / f"{name}.pt", map_location="cuda")
    inputs = [x.cuda() for x in torch.load(FOLDER / f"{name}.io.pt", weights_only=True)["inputs"][0]]
    model(*inputs)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile, torch.no_grad():
        model(*inputs)
        torch.cuda.synchronize()
    assert any("twinkle_pack" in event.key for event in profile.key_averages()), library


def test_a_bundle_for_another_gpu_is_refused(tmp_path):
    name = next(name for name in MODELS if name.startswith("llama.bfloat16"))
    data = torch.load(OTHER / f"{name}.io.pt", weights_only=True)
    done = run(OTHER / f"{name}.pt", data["inputs"][0], tmp_path, OTHER / "kernels")
    assert done.returncode == 6, done.stderr
    refused = json.loads(done.stderr)["error"]
    have = "{}.{}".format(*torch.cuda.get_device_capability())
    assert "no code for the GPU" in refused["what"] and have in refused["why"], refused
    assert not (tmp_path / "out.pt").exists()
