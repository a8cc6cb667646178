"""Kernels of the Hub, built here from their sources (build_hub_kernels.py), in a traced model on a GPU.

    TWINKLE_BIN=build/gpu/bin/twinkle TWINKLE_HUB_KERNELS=FOLDER python3 -m pytest tests/gpu/hub_kernels_on_gpu.py"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import small_llama
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from community_build import manifest  # noqa: E402

FOLDER = pathlib.Path(os.environ["TWINKLE_HUB_KERNELS"]).absolute()
EXPECTED = {"LlamaRMSNorm": 2 * small_llama.LAYERS + 1, "SiLU": small_llama.LAYERS, "apply_rotary_pos_emb": small_llama.LAYERS}


def twinkle(*arguments, folder=None):
    return subprocess.run([os.environ["TWINKLE_BIN"], *map(str, arguments)], capture_output=True, text=True, cwd=folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "twinkle.toml").write_text(manifest(FOLDER))
    return folder


@pytest.fixture(scope="module")
def model(project):
    return small_llama.save(project / "model.pt")


@pytest.fixture(scope="module")
def report(project, model):
    torch.save((small_llama.tokens(12),), project / "in.pt")
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--device", "cuda", "--inputs", "in.pt", "--verify", "--json",
                   folder=project)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name,layers,operator", [
    ("activation", {"SiluAndMul", "Silu", "Gelu"}, "silu_and_mul"), ("layer-norm", {"LayerNorm", "LlamaRMSNorm"}, "dropout_add_ln_fwd"),
    ("rotary", {"apply_rotary_transformers"}, "apply_rotary")])
def test_they_are_inspected(name, layers, operator):
    done = twinkle("inspect", FOLDER / name, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert layers <= {one["name"] for one in said["layers"]}, said
    assert any(operator == one["name"] for one in said["operators"]), said
    have = "{}.{}".format(*torch.cuda.get_device_capability())
    assert have in {arch.removesuffix("+PTX") for arch in said["archs"]}, said["archs"]


def test_every_site_is_replaced_and_right_on_the_gpu(report):
    replaced = {}
    for site in report["sites"]:
        assert site["status"] == "replaced", site
        assert site["max_error"] <= site["allowed_error"], site
        name = site["of"].rsplit(".", 1)[-1].removesuffix("Activation")
        replaced[name] = replaced.get(name, 0) + 1
    assert replaced == EXPECTED
    assert not any("compared on the CPU" in warning for warning in report["warnings"])


@pytest.mark.parametrize("count", [1, 12, 33])
def test_the_model_is_right_in_a_process_of_its_own(project, model, report, count):
    inputs = small_llama.tokens(count)
    torch.save((inputs,), project / "in.pt")
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", "--device", "cuda", "--kernels", FOLDER,
                   folder=project)
    assert done.returncode == 0, done.stderr
    result = torch.load(project / "out.pt", weights_only=True, map_location="cpu").double()
    with torch.no_grad():
        exact = small_llama.model().double()(inputs)
        own = (small_llama.model().cuda()(inputs.cuda()).cpu().double() - exact).norm() / exact.norm()
    assert (result - exact).norm() / exact.norm() <= max(1.5 * own, 2.0 ** -8)


def test_a_wrong_function_is_caught_on_the_gpu(project, model):
    folder = project / "wrong"
    folder.mkdir()
    (folder / "wrong.py").write_text("def rotary(q, k, cos, sin, unsqueeze_dim: int = 1):\n"
                                     "    return q * cos.unsqueeze(1), k * cos.unsqueeze(1)\n")
    (folder / "twinkle.toml").write_text(
        'presets = []\n[functions.apply_rotary_pos_emb]\ntarget_module = "transformers.models.llama.modeling_llama"\n'
        'func_impl = "wrong.py:rotary"\n')
    torch.save((small_llama.tokens(12),), folder / "in.pt")
    done = twinkle("kernelize", "../model.pt", "-o", "fast.pt", "--device", "cuda", "--inputs", "in.pt", "--verify", "--json",
                   folder=folder)
    assert done.returncode == 0, done.stderr
    assert {site["status"] for site in json.loads(done.stdout)["sites"]} == {"kept"}, done.stdout
