"""Triton kernels as compiled packages, in a traced model on a GPU, run without Python.

    TWINKLE_BIN=build/gpu/bin/twinkle [TWINKLE_SOURCES=CLONE_OF_KERNELS_COMMUNITY] python3 -m pytest tests/gpu/packages_on_gpu.py

Where the machine has no Triton, or no compiler that AOTInductor needs, they fail: that is what they are about."""

import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time

import pytest
import small_llama
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "script/compile_kernel.py"
FUNCTIONS = ROOT / "tests/gpu/triton_kernels.py"
SOURCES = os.environ.get("TWINKLE_SOURCES")
NORMS = 2 * small_llama.LAYERS + 1
CLASS = "transformers.models.llama.modeling_llama.LlamaRMSNorm"
BY_BUILD = f'presets = []\n[layers.rms_norm]\nrepo_path = "triton-norm"\nclasses = ["{CLASS}"]\n'
BY_PACK = f'presets = []\n[layers.RMSNorm]\nclasses = ["{CLASS}"]\n'
FORMULA = "import torch\n\n\ndef gate(gate, up):\n    return torch.nn.functional.silu(gate) * up\n"
BY_PATTERN = 'presets = []\n[patterns.gate]\npattern = "formulas.py:gate"\nfunc_impl = "package:swiglu.pt2"\n'


def twinkle(folder, *arguments, env=None):
    done = subprocess.run([os.environ["TWINKLE_BIN"], *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compile_kernel(folder, function, *arguments, env=None):
    started = time.time()
    done = subprocess.run([sys.executable, "-W", "ignore", SCRIPT, f"{FUNCTIONS}:{function}", "--device", "cuda",
                           *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"compiled {function} in {time.time() - started:.0f} s: {done.stdout.strip()}")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    small_llama.save(folder / "model.pt")
    (folder / "formulas.py").write_text(FORMULA)
    torch.save((small_llama.tokens(12),), folder / "in.pt")
    return folder


@pytest.fixture(scope="module")
def norm(project):
    """Built once: the dtypes of two models, any batch and length."""
    compile_kernel(project, "rms_norm", "--input", "hidden_states: [batch, rows, 1024]", "--input", "weight: [1024]",
                   "--dtype", "bfloat16", "float32", "--constant", "variance_epsilon=1e-6", "--attribute", "weight",
                   "--attribute", "variance_epsilon", "--range", "batch=1:64", "--range", "rows=1:8192",
                   "-o", "triton-norm")
    return project / "triton-norm"


def kernelized(project, manifest, *more):
    (project / "twinkle.toml").write_text(manifest)
    return json.loads(twinkle(project, "kernelize", "model.pt", "-o", "fast.pt", "--device", "cuda", "--inputs", "in.pt",
                              "--verify", "--json", *more))


def test_the_build_says_for_what_it_is(norm):
    [build] = (norm / "build").iterdir()
    metadata = json.loads((build / "metadata.json").read_text())
    major, minor = torch.cuda.get_device_capability()
    assert metadata["backend"] == {"type": "cuda", "archs": [f"{major}.{minor}"]}
    assert len(list(build.glob("*.pt2"))) == 2
    twinkle(norm.parent, "check", norm)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_every_norm_is_replaced_and_right(project, norm, dtype):
    report = kernelized(project, BY_BUILD, *([] if dtype == "bfloat16" else ["--dtype", dtype]))
    assert [site["status"] for site in report["sites"]] == ["replaced"] * NORMS, report["sites"]
    assert all(site["max_error"] <= site["allowed_error"] for site in report["sites"]), report["sites"]
    assert not any("compared on the CPU" in warning for warning in report["warnings"])
    print(dtype, "errors:", [(site["max_error"], site["allowed_error"]) for site in report["sites"]])


@pytest.mark.parametrize("count", [1, 12, 33])
def test_it_runs_in_a_process_without_python(project, norm, count):
    """Of Python there is nothing to be found: neither in PATH nor by its variables; the process is not linked to it."""
    kernelized(project, BY_BUILD)
    inputs = small_llama.tokens(count)
    torch.save((inputs,), project / "in.pt")
    without = {"PATH": "/nonexistent", "PYTHONHOME": "/nonexistent", "PYTHONPATH": "/nonexistent"}
    twinkle(project, "run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", "--device", "cuda", "--kernels", norm, env=without)
    result = torch.load(project / "out.pt", weights_only=True, map_location="cpu").double()
    torch.save((small_llama.tokens(12),), project / "in.pt")
    with torch.no_grad():
        exact = small_llama.model().double()(inputs)
        own = (small_llama.model().cuda()(inputs.cuda()).cpu().double() - exact).norm() / exact.norm()
    assert (result - exact).norm() / exact.norm() <= max(1.5 * own, 2.0 ** -8)


def test_nothing_of_it_is_linked_to_python(norm, tmp_path):
    import zipfile
    for package in norm.glob("build/*/*.pt2"):
        with zipfile.ZipFile(package) as archive:
            [library] = [name for name in archive.namelist() if name.endswith(".so")]
            (tmp_path / "code.so").write_bytes(archive.read(library))
            assert not [name for name in archive.namelist() if name.endswith(".cubin")], archive.namelist()
        needed = subprocess.run(["readelf", "-d", tmp_path / "code.so"], capture_output=True, text=True, check=True).stdout
        assert "python" not in needed.lower(), needed


def test_against_the_pack_and_the_original(project, norm):
    """Figures, not asserted: a loaded machine says nothing. The same model, one contestant after the other."""
    for name, manifest in (("triton package", BY_BUILD), ("pack", BY_PACK), ("triton package", BY_BUILD)):
        (project / "twinkle.toml").write_text(manifest)
        said = json.loads(twinkle(project, "bench", "model.pt", "--inputs", "in.pt", "--device", "cuda", "--duration", "6",
                                  "--json"))
        assert all(model["right"] for model in said["models"]), said["models"]
        medians = [(round(site["original_us"]["median"], 1), round(site["kernelized_us"]["median"], 1))
                   for site in said["sites"] if site["status"] == "replaced"]
        print(f"{name}: sites, original and kernelized in us: {medians}")
        print(f"{name}: models: {json.dumps(said['models'])}; {json.dumps(said['speedups'])}")


def test_many_calls_do_not_wait_for_the_gpu(project, norm):
    """Graphs capture it, too: nothing of a call waits or allocates by itself."""
    report = kernelized(project, BY_BUILD, "--graphs")
    assert report["replaced"] == NORMS
    print("graphs:", json.dumps(report.get("graphs")))


@pytest.mark.skipif(not SOURCES, reason="TWINKLE_SOURCES names no clone of kernels-community")
def test_a_triton_kernel_of_the_hub(project):
    shown = subprocess.run(["git", "-C", SOURCES, "archive", "HEAD", "liger-kernels/torch-ext"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(shown.stdout)) as archive:
        archive.extractall(project / "community", filter="data")
    compile_kernel(project, "swiglu", "--input", "gate: bfloat16[batch, rows, 2048]", "--input",
                   "up: bfloat16[batch, rows, 2048]", "--range", "batch=1:64", "--range", "rows=1:8192", "-o", "swiglu.pt2",
                   env={"TWINKLE_COMMUNITY": str(project / "community/liger-kernels/torch-ext")})
    report = kernelized(project, BY_PATTERN)
    assert [site["status"] for site in report["sites"]] == ["replaced"] * small_llama.LAYERS, report["sites"]
    print("swiglu errors:", [(site["max_error"], site["allowed_error"]) for site in report["sites"]])
    twinkle(project, "run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", "--device", "cuda", "--kernels", ".")
