"""Exported models that call operators of kernels: bundled, local and locked ones are found, and what is converted
names their builds."""

import json
import shutil
import subprocess
import sys

import pytest
from kernels_for_tests import PREFIX, compiled_kernel, libraries, needs_runtime  # noqa: F401 (a fixture)

pytestmark = needs_runtime
torch = pytest.importorskip("torch")

# The operator needs to be nowhere but in this process, and only as Python.
EXPORT = """
import sys, warnings
import torch
warnings.filterwarnings("ignore")
name, schema, call, out = sys.argv[1:]
torch.library.define(name, schema)
torch.library.impl(name, "CompositeExplicitAutograd", lambda x, *more, **named: x.clone())
torch.library.register_fake(name, lambda x, *more, **named: torch.empty_like(x))
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 8))
    def forward(self, x):
        return eval(call)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), Norm())
with torch.no_grad():
    model[0].weight.copy_(torch.eye(8)), model[0].bias.zero_()
rows = torch.export.Dim("rows", min=1, max=64)
torch.export.save(torch.export.export(model, (torch.ones(3, 8),), dynamic_shapes=({0: rows},)), out)
"""

PACK = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").glob("*/metadata.json"), None)


def export(folder, name, schema, call, file="model.pt2"):
    subprocess.run([sys.executable, "-c", EXPORT, name, schema, call, folder / file], check=True, timeout=300)
    return folder / file


@pytest.fixture(scope="module")
def with_pack(tmp_path_factory):
    name = json.loads(PACK.read_text())["id"] + "::rms_norm"
    return export(tmp_path_factory.mktemp("pack"), name,
                  "(Tensor x, Tensor? weight, float eps=1e-06, float offset=0., bool round_last=False) -> Tensor",
                  f"torch.ops.{name.replace('::', '.')}(x, self.weight, 1e-5)")


@pytest.fixture(scope="module")
def with_copy(tmp_path_factory):
    return export(tmp_path_factory.mktemp("copy"), "misbehaving::copy", "(Tensor x) -> Tensor",
                  "torch.ops.misbehaving.copy(x) * self.weight")


INPUTS = torch.linspace(-1, 1, 40).reshape(5, 8)


@pytest.fixture
def inputs(twinkle):
    torch.save(INPUTS, twinkle.folder / "inputs.pt")
    return twinkle.folder / "inputs.pt"


def result(twinkle, model, inputs, *more):
    done = twinkle("run", model, "--inputs", inputs, "-o", "out.pt", *more)
    assert done.code == 0, done.err
    return torch.load(twinkle.folder / "out.pt", weights_only=True)


WEIGHT = torch.linspace(0.5, 1.5, 8)


def test_operators_of_the_bundled_kernels(twinkle, with_pack, inputs):
    expected = torch.nn.functional.rms_norm(INPUTS, (8,), WEIGHT, 1e-5)
    torch.testing.assert_close(result(twinkle, with_pack, inputs), expected)
    done = twinkle("convert", with_pack, "-o", "model.pt")
    assert done.code == 0, done.err
    shown = twinkle("inspect", "model.pt", "--json")
    assert shown.code == 0, shown.err
    [kernel] = shown.json["kernels"]
    assert kernel["op_namespace"] == json.loads(PACK.read_text())["id"] and kernel["path"]
    torch.testing.assert_close(result(twinkle, "model.pt", inputs), expected)


def test_inspect_says_who_has_the_operators(twinkle, with_pack):
    done = twinkle("inspect", with_pack, "--json")
    assert done.code == 0 and done.json["loaded"] is True, done.err
    [operator] = done.json["operators"]
    assert operator["name"].endswith("::rms_norm") and operator["from"] == "twinkle-pack"


def test_kernelize(twinkle, with_pack, inputs):
    (twinkle.folder / "twinkle.toml").write_text('presets = ["transformers", "patterns"]\n')
    done = twinkle("kernelize", with_pack, "--inputs", inputs, "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["verified"], done.err
    expected = torch.nn.functional.rms_norm(INPUTS, (8,), WEIGHT, 1e-5)
    torch.testing.assert_close(result(twinkle, "fast.pt", inputs), expected)


@pytest.mark.parametrize("command", ["convert", "run"])
def test_a_local_kernel_by_its_folder(twinkle, with_copy, libraries, inputs, command):  # noqa: F811
    compiled_kernel(twinkle.folder, libraries.get("operators"))
    (twinkle.folder / "twinkle.toml").unlink()
    refused = twinkle(command, with_copy, *(["--inputs", inputs] if command == "run" else []), "--json")
    assert refused.code == 3 and "misbehaving::copy" in refused.error["what"], refused.err
    assert "--kernels" in refused.error["hint"]
    if command == "run":
        torch.testing.assert_close(result(twinkle, with_copy, inputs, "--kernels", "kernel"), INPUTS * WEIGHT)
        twinkle.env["TWINKLE_KERNELS"] = str(twinkle.folder / "kernel")
        torch.testing.assert_close(result(twinkle, with_copy, inputs), INPUTS * WEIGHT)
        return
    assert twinkle("convert", with_copy, "--kernels", "kernel", "-o", "model.pt").code == 0
    assert twinkle("run", "model.pt", "--inputs", inputs).code == 3  # it names the build, and not where it is
    torch.testing.assert_close(result(twinkle, "model.pt", inputs, "--kernels", "kernel"), INPUTS * WEIGHT)
    shutil.move(twinkle.folder / "kernel", twinkle.folder / "elsewhere")
    with open(next(twinkle.folder.glob("elsewhere/build/*/layers.py")), "a") as source:
        source.write("# another build\n")
    other = twinkle("run", "model.pt", "--inputs", inputs, "--kernels", "elsewhere")
    assert other.code == 4, other.err


def test_a_kernel_of_the_manifest(twinkle, with_copy, libraries, inputs):  # noqa: F811
    compiled_kernel(twinkle.folder, libraries.get("operators"))  # with its manifest
    torch.testing.assert_close(result(twinkle, with_copy, inputs), INPUTS * WEIGHT)
    assert twinkle("convert", with_copy, "-o", "model.pt").code == 0
    done = twinkle("kernelize", with_copy, "--inputs", inputs, "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    torch.testing.assert_close(result(twinkle, "fast.pt", inputs, "--kernels", "kernel"), INPUTS * WEIGHT)


def test_a_build_for_another_machine(twinkle, with_copy, libraries, inputs):  # noqa: F811
    build = compiled_kernel(twinkle.folder, libraries.get("operators"))
    (twinkle.folder / "twinkle.toml").unlink()
    build.rename(build.parent / "torch25-cxx11-cpu-x86_64-linux")
    done = twinkle("convert", with_copy, "--kernels", "kernel", "--json")
    assert done.code == 6 and "torch25" in done.error["why"], done.err


def test_the_hub_cache_is_not_searched_for_what_an_archive_names(twinkle, with_copy, libraries):  # noqa: F811
    build = compiled_kernel(twinkle.folder, libraries.get("operators"))
    (twinkle.folder / "twinkle.toml").unlink()
    snapshot = twinkle.folder / "cache/kernels--some--kernel/snapshots" / ("0" * 40) / "build"
    snapshot.mkdir(parents=True)
    shutil.move(build, snapshot)
    twinkle.env["KERNELS_CACHE"] = str(twinkle.folder / "cache")
    done = twinkle("convert", with_copy, "--json")
    assert done.code == 3 and "twinkle add" in done.error["hint"], done.err
    assert twinkle("convert", with_copy, "--kernels", twinkle.folder / "cache").code == 0


def test_a_library_that_crashes_takes_nobody_down(twinkle, with_copy, libraries, inputs):  # noqa: F811
    compiled_kernel(twinkle.folder, libraries.get("crashes"))
    for command in (["convert", with_copy], ["run", with_copy, "--inputs", inputs]):
        done = twinkle(*command, "--kernels", "kernel", "--json")
        assert done.code == 6 and "cannot be loaded" in done.error["what"], done.err


def test_experts_that_python_computes(twinkle, inputs):
    """As transformers exports them in float32: no kernel has the operator, so none is to be looked for."""
    model = export(twinkle.folder, "transformers::grouped_mm_fallback", "(Tensor x, Tensor weight) -> Tensor",
                   "torch.ops.transformers.grouped_mm_fallback(x, self.weight)")
    done = twinkle("kernelize", model, "--inputs", inputs, "-o", "fast.pt")
    assert done.code != 0
    assert "the model needs the operator transformers::grouped_mm_fallback" in done.err
    assert 'set_experts_implementation("batched_mm")' in done.err and "bfloat16" in done.err
    assert "--kernels" not in done.err and "twinkle add" not in done.err
