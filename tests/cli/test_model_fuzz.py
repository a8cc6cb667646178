"""A short run of the fuzzer of models (tests/fuzz/models; 10,000: `fuzz_models MODELS 10000`), and some of what it makes
through the program itself."""

import json
import subprocess

import pytest
from kernels_for_tests import PREFIX, RMS_NORM, models, needs_runtime, outcome, python_kernel

pytestmark = needs_runtime
FUZZER = PREFIX / "tests/fuzz/fuzz_models"
EXPORTS = PREFIX / "tests/fuzz/fuzz_exports"


def test_changed_models(models):
    done = subprocess.run([FUZZER, models, "90", "0"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "findings 0" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["branches", "loop", "lstm", "nested", "llama"])
def test_changed_exports(models, name):
    """Each is converted or refused with an Error; a crash ends the program."""
    archive = models.parent / f"exported/{name}.pt2"
    done = subprocess.run([EXPORTS, archive, "150", "7"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "malformed" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def changed(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("changed")
    subprocess.run([FUZZER, models, "12", "1", "--write", folder], check=True, timeout=60)
    return folder


@pytest.mark.parametrize("number", range(12))
def test_the_program(twinkle, changed, number):
    model = changed / f"{number}.pt"
    python_kernel(twinkle.folder, RMS_NORM, classes=["*Norm"])
    before = outcome(twinkle.folder)
    done = twinkle("inspect", model, "--json")
    assert done.code in (0, 2), done.err
    done = twinkle("kernelize", model, "-o", "fast.pt", "--json")
    assert done.code in (0, 2, 3), done.err
    if done.code == 0:
        assert twinkle("inspect", "fast.pt", "--json").code == 0
    else:
        assert json.loads(done.err)["error"]["what"] and "frame #" not in done.err
        assert outcome(twinkle.folder) == before
