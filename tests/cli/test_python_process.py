"""A kernelized model in a Python process that knows nothing of twinkle but one torch.ops.load_library."""

import json
import subprocess
import sys

import pytest
from conftest import Twinkle, environment
from kernels_for_tests import (EXAMPLES, PREFIX, RUNTIMES, calling, compiled_kernel, libraries, models, needs_runtime)

pytest.importorskip("torch")
pytestmark = needs_runtime

PROGRAM = """
import copy, io, json, sys, threading, warnings
import torch
warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.ops.load_library(sys.argv[1])
original, fast = torch.jit.load(sys.argv[2]).eval(), torch.jit.load("fast.pt").eval()
x, = torch.load(sys.argv[3], weights_only=True)
results = {}

def difference(model, reference=None):
    reference = original if reference is None else reference
    with torch.no_grad():
        for _ in range(3):  # profiled, optimized, as it stays
            result, expected = model(x).double(), reference(x).double()
    return ((result - expected).norm() / expected.norm()).item()

def saved(model):
    file = io.BytesIO()
    torch.jit.save(model, file)
    file.seek(0)
    return torch.jit.load(file)

results["run"] = difference(fast)
results["saved"] = difference(saved(saved(fast)))
results["frozen"] = difference(torch.jit.freeze(fast))
results["frozen and saved"] = difference(saved(torch.jit.freeze(fast)))
results["optimized"] = difference(torch.jit.optimize_for_inference(torch.jit.freeze(saved(fast))))
results["copied"] = difference(copy.deepcopy(fast))
results["moved"] = difference(saved(fast).to("cpu"))
if "scripted" in sys.argv[2]:  # a trace keeps its dtype
    results["half"] = difference(saved(fast).half(), saved(original).half())
    results["bfloat16"] = difference(saved(fast).to(torch.bfloat16), saved(original).to(torch.bfloat16))
together = [None] * 8
def work(i):
    together[i] = difference(fast)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
results["threads"] = max(together)
print(json.dumps(results))
"""


def python(folder, program, *arguments, **variables):
    return subprocess.run([sys.executable, "-c", program, RUNTIMES[0].parent / "libtwinkle.so", *arguments], cwd=folder,
                          env=environment(**variables), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ["traced.pt", "scripted.pt"])
def test_one_library_is_all_it_takes(twinkle, name):
    done = twinkle("kernelize", EXAMPLES / name, "--project", EXAMPLES, "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 7, done.err
    done = python(twinkle.folder, PROGRAM, EXAMPLES / name, EXAMPLES / "inputs.pt")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    for how in ("half", "bfloat16"):
        assert results.pop(how, 0) < 0.02, how  # of the model itself in half precision
    assert len(results) == 8 and max(results.values()) < 1e-5, results


LOAD = "import sys, torch; torch.ops.load_library(sys.argv[1]); torch.jit.load('fast.pt'); print('loaded')"


@pytest.fixture
def own(twinkle, libraries, models):
    """A model that needs a kernel of the project, not a bundled one."""
    build = compiled_kernel(twinkle.folder, libraries.get("linked"), source=calling("copy"))
    assert twinkle("kernelize", models / "two_of_a_kind.pt", "-o", "fast.pt").code == 0
    return build


def test_a_kernel_of_the_user(twinkle, own):
    done = python(twinkle.folder, LOAD, TWINKLE_KERNELS=twinkle.folder)
    assert done.stdout == "loaded\n", done.stderr


def test_a_missing_kernel_is_named(twinkle, own):
    done = python(twinkle.folder, LOAD)
    assert done.returncode == 1 and "RuntimeError: the model needs the kernel kernel" in done.stderr
    assert "TWINKLE_KERNELS" in done.stderr and "misbehaving" in done.stderr


def test_a_changed_kernel_is_refused(twinkle, own):
    (own / "layers.py").write_text((own / "layers.py").read_text() + "\n")
    done = python(twinkle.folder, LOAD, TWINKLE_KERNELS=twinkle.folder)
    assert done.returncode == 1 and "the kernel kernel is not the build that the model was made with" in done.stderr


def test_the_same_kernel_from_somebody_else(twinkle):
    """As Python's own tools load it; another one under its namespace is refused."""
    assert twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "fast.pt").code == 0
    pack = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").glob("*/*.so"))
    program = LOAD.replace("torch.jit.load(", "torch.ops.load_library(sys.argv[2]); torch.jit.load(")
    done = python(twinkle.folder, program, pack)
    assert done.stdout == "loaded\n", done.stderr
    other = twinkle.folder / pack.name
    other.write_bytes(pack.read_bytes() + b"\0")
    done = python(twinkle.folder, program, other)
    assert done.returncode == 1 and "is taken already" in done.stderr


def test_without_the_library_the_model_is_refused(twinkle, own):
    done = python(twinkle.folder, LOAD.replace("torch.ops.load_library(sys.argv[1]); ", ""))
    assert done.returncode == 1 and "torch.classes.twinkle.NeededKernel" in done.stderr


def test_inspect_loads_no_kernel(twinkle, libraries, models):
    """A library that crashes when it is loaded: the model names it, and inspect only reads."""
    build = compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("copy"))
    assert twinkle("kernelize", models / "two_of_a_kind.pt", "-o", "fast.pt").code == 0
    library = next(build.glob("*.so"))
    (build / library.name).write_bytes(libraries.get("crashes").read_bytes())
    done = twinkle("inspect", "fast.pt", "--json", env={"TWINKLE_KERNELS": twinkle.folder})
    assert done.code == 0, done.err
    assert [kernel["name"] for kernel in done.json["kernels"]] == ["kernel"]
