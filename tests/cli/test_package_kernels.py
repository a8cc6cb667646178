"""Packages of AOTInductor as kernels: of a layer, a function, a formula; alone and as builds; chosen, confined, hashed.

Most of them are libraries in C with the functions that AOTInductor writes, which compile in no time; one is real, and
made by script/compile_kernel.py."""

import base64
import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, environment
from kernels_for_tests import PATIENCE, PREFIX, VARIANT, needs_runtime
from test_preload import PRELOAD, compile_server

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CODE = r"""
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void* Tensor;
int32_t aoti_torch_clone(Tensor self, Tensor* result);
int32_t aoti_torch_get_data_ptr(Tensor tensor, void** data);
int32_t aoti_torch_get_numel(Tensor tensor, int64_t* count);
int32_t aoti_torch_delete_tensor_object(Tensor tensor);

int AOTInductorModelContainerCreateWithDevice(void** made, size_t models, const char* device, const char* cubins) {
    *made = calloc(1, 1);
    return 0;
}
int AOTInductorModelContainerGetNumInputs(void* container, size_t* count) { return *count = 2, 0; }
int AOTInductorModelContainerGetNumOutputs(void* container, size_t* count) { return *count = 1, 0; }

int AOTInductorModelContainerRun(void* container, Tensor* inputs, size_t n, Tensor* outputs, size_t m, void* stream,
                                 void* proxy) {
    float *x, *weight;
    int64_t count, width;
    aoti_torch_clone(inputs[0], &outputs[0]);
    aoti_torch_get_data_ptr(outputs[0], (void**)&x);
    aoti_torch_get_data_ptr(inputs[1], (void**)&weight);
    aoti_torch_get_numel(outputs[0], &count);
    aoti_torch_get_numel(inputs[1], &width);
    for (int64_t at = 0; at < count; at += width) {
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += (double)x[at + i] * x[at + i];
        const double scale = FACTOR / sqrt(sum / width + EPS);
        for (int64_t i = 0; i < width; ++i) x[at + i] = (float)(x[at + i] * scale) * weight[i];
    }
    aoti_torch_delete_tensor_object(inputs[0]);
    aoti_torch_delete_tensor_object(inputs[1]);
    CALLED;
    return 0;
}
__attribute__((constructor)) static void loaded(void) { LOADED; }
"""

SAID = {"operator": "norm(Tensor x, Tensor weight, float eps) -> Tensor", "attributes": ["weight", "eps"],
        "constants": {"eps": 0.001}, "sizes": {"rows": [1, 100]},
        "inputs": [{"dtype": "float32", "sizes": ["rows", 32]}, {"dtype": "float32", "sizes": [32]}]}
MADE_FOR = {"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_CPU_ISA": "", "AOTI_COMPUTE_CAPABILITY": ""}
HERE = {"AOTI_CPU_ISA": "AVX2"} if "x86" in VARIANT else {"AOTI_CPU_ISA": "ASIMD"}


def library(folder, factor="1.0", eps=0.001, loaded="", called=""):
    source = folder / "code.c"
    source.write_text(CODE)
    subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", f"-DFACTOR={factor}", f"-DEPS={eps}", f"-DLOADED={loaded}",
                    f"-DCALLED={called}", "-o", folder / "code.so", source, "-lm"], check=True)
    return (folder / "code.so").read_bytes()


def package(file, code, said=SAID, **made_for):
    metadata = json.dumps({**MADE_FOR, **made_for, "twinkle": json.dumps(said)})
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("norm/data/aotinductor/model/abc.wrapper.so", code)
        archive.writestr("norm/data/aotinductor/model/abc.wrapper_metadata.json", metadata)
    return file


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 32))
        self.eps = 1e-3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.first, self.middle, self.second = nn.Linear(32, 32), Norm(), nn.Linear(32, 32), Norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.start(x)
        return self.second(self.middle(self.first(x)) + x)


LAYER = f'presets = []\n\n[layers.Norm]\nfunc_impl = "package:norm.pt2"\nclasses = ["{Norm.__module__}.Norm"]\n'
INPUTS = ("--inputs", "float32[7,32]")


@pytest.fixture
def project(twinkle):
    """A model, and a package for it."""
    torch.manual_seed(3)
    model = Model().eval()
    torch.jit.trace(model, torch.randn(7, 32)).save(twinkle.folder / "model.pt")
    torch.jit.script(model).save(twinkle.folder / "scripted.pt")
    twinkle.x = torch.randn(9, 32)
    torch.save((twinkle.x,), twinkle.folder / "in.pt")
    twinkle.expected = model(twinkle.x).detach()
    (twinkle.folder / "twinkle.toml").write_text(LAYER)
    package(twinkle.folder / "norm.pt2", library(twinkle.folder))
    return twinkle


def kernelized(project, model="model.pt", *more, code=0):
    done = project("kernelize", model, "-o", "fast.pt", "--json", *INPUTS, *more)
    assert done.code == code, done.err
    return done.json if code == 0 else done


def statuses(report):
    return [site["status"] for site in report["sites"]]


def runs(project, where="."):
    done = project("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", env={"TWINKLE_KERNELS": project.folder / where})
    assert done.code == 0, done.err
    torch.testing.assert_close(torch.load(project.folder / "out.pt", weights_only=True), project.expected)


@pytest.mark.parametrize("model", ["model.pt", "scripted.pt"])
def test_a_layer(project, model):
    report = kernelized(project, model)
    assert statuses(report) == ["replaced", "replaced"]
    for site in report["sites"]:
        assert site["kernel"] == "norm.pt2: norm" and site["max_error"] < 1e-6
    runs(project)
    runs(project, "norm.pt2")


def test_the_saved_model_names_it_by_hash(project):
    kernelized(project)
    done = project("run", "fast.pt", "--inputs", "in.pt", "--json")
    assert done.code == 3 and "norm.pt2" in done.err and "TWINKLE_KERNELS" in done.err
    (project.folder / "moved").mkdir()
    (project.folder / "norm.pt2").rename(project.folder / "moved/other_name.pt2")
    done = project("run", "fast.pt", "--inputs", "in.pt", "--json", env={"TWINKLE_KERNELS": project.folder / "moved"})
    assert done.code in (3, 4), done.err  # the build's identity has the name of its file
    (project.folder / "moved/other_name.pt2").rename(project.folder / "moved/norm.pt2")
    runs(project, "moved")
    runs(project, ".")  # a folder of folders
    package(project.folder / "moved/norm.pt2", library(project.folder, factor="1.0001"))
    done = project("run", "fast.pt", "--inputs", "in.pt", "--json", env={"TWINKLE_KERNELS": project.folder / "moved"})
    assert done.code == 3


def test_a_mapping_keeps_its_hash(project):
    assert project("resolve", "-o", "twinkle.map.json").code == 0
    [kernel] = json.loads((project.folder / "twinkle.map.json").read_text())["kernels"]
    [file] = kernel["files"]
    assert file["sha256"] == hashlib.sha256((project.folder / "norm.pt2").read_bytes()).hexdigest()
    assert kernel["op_namespace"] == "pt2_" + file["sha256"][:16] and kernel["operators"][0]["name"] == "norm"
    package(project.folder / "norm.pt2", library(project.folder, factor="1.0001"))
    done = project("kernelize", "model.pt", "--map", "twinkle.map.json", "-o", "fast.pt", "--json", *INPUTS)
    assert done.code == 4 and "norm.pt2" in done.err


def normalize(x: torch.Tensor, weight: torch.Tensor, eps: float = 0.001) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


normalize.__module__ = "my_pkg.norms"


class Calling(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(32, 32)
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.start(x)
        return normalize(x, self.weight) + normalize(x + 1, weight=self.weight, eps=0.001)


def test_a_function(project):
    model = Calling().eval()
    torch.jit.script(model).save(project.folder / "calling.pt")
    project.expected = model(project.x).detach()
    (project.folder / "twinkle.toml").write_text(
        'presets = []\n\n[functions.normalize]\ntarget_module = "my_pkg.norms"\nfunc_impl = "package:norm.pt2"\n')
    report = kernelized(project, "calling.pt")
    assert statuses(report) == ["replaced", "replaced"] and report["sites"][0]["kernel"].startswith("norm.pt2: pt2_")
    runs(project)


def test_a_pattern(project):
    (project.folder / "formulas.py").write_text(
        "import torch\n\n\ndef norm(x, weight, eps: float):\n"
        "    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight\n")
    (project.folder / "twinkle.toml").write_text(
        'presets = []\n\n[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "package:norm.pt2"\n')
    report = kernelized(project)
    assert statuses(report) == ["replaced", "replaced"] and "norm.pt2" in report["sites"][0]["kernel"]
    runs(project)


def test_other_constants_and_sizes_keep_the_original(project):
    said = {**SAID, "constants": {"eps": 0.002}}
    package(project.folder / "norm.pt2", library(project.folder), said)
    report = kernelized(project)
    assert statuses(report) == ["reverted", "reverted"]
    assert "eps = 0.002" in json.dumps(report["sites"]) and "0.001" in json.dumps(report["sites"])
    package(project.folder / "norm.pt2", library(project.folder), {**SAID, "sizes": {"rows": [1, 6]}})
    report = kernelized(project)
    assert statuses(report) == ["reverted", "reverted"] and "rows: 1 to 6" in json.dumps(report["sites"])


def test_wrong_values_are_put_back(project):
    package(project.folder / "norm.pt2", library(project.folder, factor="1.01"))
    report = kernelized(project)
    assert statuses(report) == ["reverted", "reverted"] and "error" in report["sites"][0]["because"]


@pytest.mark.parametrize("loaded", ["abort()", "while (1) sleep(1)", "_exit(0)"])
def test_one_that_misbehaves_when_it_is_loaded(project, loaded):
    package(project.folder / "norm.pt2", library(project.folder, loaded=loaded))
    project.env.update(PATIENCE)
    done = kernelized(project, code=6)
    assert "norm.pt2" in done.err and not (project.folder / "fast.pt").exists()


@pytest.mark.parametrize("when", ["loaded", "called"])
def test_its_code_runs_confined_alone(project, when):
    """Nothing that it does reaches a file, be it loaded or called: no process with the user's rights loads it."""
    mark = project.folder / "it_ran"
    code = f'do {{ FILE* f = fopen("{mark}", "w"); if (f) fclose(f); }} while (0)'
    package(project.folder / "norm.pt2", library(project.folder, **{when: code}))
    assert statuses(kernelized(project)) == ["replaced", "replaced"]
    runs(project)
    for command in (["inspect", "norm.pt2"], ["check", "norm.pt2"], ["resolve", "-o", "m.json"]):
        assert project(*command).code == 0
    assert not mark.exists()


def test_a_package_for_another_machine_is_not_opened(project):
    for made_for, why in (({"AOTI_DEVICE_KEY": "cuda"}, "cuda"), ({"AOTI_CPU_ISA": "AVX9000"}, "AVX9000"),
                          ({"AOTI_MACHINE": "riscv64"}, "riscv64")):
        package(project.folder / "norm.pt2", library(project.folder, loaded="abort()"), **made_for)
        report = kernelized(project)
        assert report["replaced"] == 0
        done = project("resolve", "--strict", "-o", "m.json", "--json")
        assert done.code == 3 and why in done.err
        assert project("resolve", "-o", "m.json").code == 0
        assert why in (project.folder / "m.json").read_text()


@pytest.mark.parametrize("change,why", [({"operator": "norm(Tensor! x, Tensor weight, float eps) -> Tensor"}, "schema"),
                                        ({"constants": {}}, "eps"), ({"inputs": []}, "fewer")])
def test_metadata_that_contradict_themselves(project, change, why):
    package(project.folder / "norm.pt2", library(project.folder), {**SAID, **change})
    done = kernelized(project, code=2)
    assert why in done.err and "norm.pt2" in done.err


def test_manifests_that_name_none(project):
    (project.folder / "norm.pt2").unlink()
    assert "there is no package" in kernelized(project, code=3).err
    with zipfile.ZipFile(project.folder / "norm.pt2", "w") as archive:
        archive.writestr("norm/data/aotinductor/model/abc.wrapper.so", "x")
    assert "does not say which operator" in kernelized(project, code=2).err
    for text in ("package:norm.so", "norm.py:norm", "op:a::b"):
        (project.folder / "twinkle.toml").write_text(LAYER.replace("package:norm.pt2", text))
        assert "package:file.pt2" in kernelized(project, code=2).err
    (project.folder / "twinkle.toml").write_text(LAYER + 'repo_path = "norm"\n')
    assert "both given" in kernelized(project, code=2).err


def test_candidates(project):
    """The first that is right, in the order of the manifest; --tune measures them."""
    code = library(project.folder)
    package(project.folder / "other.pt2", code, {**SAID, "constants": {"eps": 0.5}})
    table = LAYER.partition("\n\n")[2]
    (project.folder / "twinkle.toml").write_text("presets = []\n" + "\n".join(
        table.replace("[layers.Norm]", "[[layers.Norm]]").replace("norm.pt2", one) for one in ("other.pt2", "norm.pt2")))
    report = kernelized(project)
    assert {site["kernel"] for site in report["sites"]} == {"norm.pt2: norm"} and report["replaced"] == 2
    tuned = kernelized(project, "model.pt", "--tune", "--budget", "2")
    assert {one["kernel"] for one in tuned["sites"][0]["candidates"]} == {"other.pt2: norm", "norm.pt2: norm"}


def test_without_gradients(project):
    report = kernelized(project, "model.pt", "--mode", "training")
    assert report["replaced"] == 0


def test_a_bundle(project):
    assert project("resolve", "--bundle", "moved").code == 0
    done = project("kernelize", "model.pt", "--map", "moved/twinkle.map.json", "-o", "fast.pt", *INPUTS)
    assert done.code == 0, done.err
    (project.folder / "norm.pt2").unlink()
    runs(project, "moved")


def test_another_target(project):
    """Kernelized for a machine that is described: the package is a schema, nothing of it is opened."""
    package(project.folder / "norm.pt2", library(project.folder, loaded="abort()"), AOTI_CPU_ISA="")
    target = project("env", "--json").json["target"]
    named = ",".join(f"{key}={target[key]}" for key in ("torch", "backend", "arch", "cpu", "os") if key in target)
    done = project("kernelize", "model.pt", "-o", "fast.pt", "--target", named, "--json")
    assert done.code == 0, done.err
    assert done.json["replaced"] == 2


def build(project, packages):
    """A build in the Hub's layout, and the manifest that binds it."""
    folder = project.folder / "norms/build" / VARIANT
    folder.mkdir(parents=True)
    for name, (code, said, made_for) in packages.items():
        package(folder / name, code, said, **made_for)
    (folder / "__init__.py").write_text("from . import layers\n")
    (folder / "_ops.py").write_text("import torch\n\nops = torch.ops._norms_1234\n")
    (folder / "layers.py").write_text(
        "import torch\nfrom torch import nn\n\nfrom ._ops import ops\n\n\nclass Norm(nn.Module):\n"
        "    has_backward = False\n    weight: torch.Tensor\n    eps: float\n\n"
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n"
        "        return ops.norm(x.reshape(-1, x.size(-1)), self.weight, self.eps).reshape(x.shape)\n")
    files = {file.name: base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
             for file in sorted(folder.iterdir())}
    (folder / "metadata.json").write_text(json.dumps(
        {"id": "_norms_1234", "name": "norms", "version": 1, "license": "Apache-2.0", "python-depends": [],
         "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": files}}))
    (project.folder / "twinkle.toml").write_text(
        f'presets = []\n\n[layers.Norm]\nrepo_path = "norms"\nclasses = ["{Norm.__module__}.Norm"]\n')
    return folder


def test_a_build_of_packages(project):
    """By operator, constants and machine: what is not for this one is not opened."""
    build(project, {"a.pt2": (library(project.folder, eps=0.5), {**SAID, "constants": {"eps": 0.5}}, {}),
                    "b.pt2": (library(project.folder), SAID, HERE),
                    "c.pt2": (library(project.folder, loaded="abort()"), SAID, {"AOTI_CPU_ISA": "AVX9000"}),
                    "d.pt2": (library(project.folder, factor="2.0"), SAID, {})})
    report = kernelized(project)
    assert statuses(report) == ["replaced", "replaced"] and report["sites"][0]["kernel"] == "norms: Norm"
    runs(project, "norms")
    inspected = project("inspect", "norms", "--json")
    assert inspected.code == 0 and "norm(Tensor x, Tensor weight, float eps) -> Tensor" in inspected.out


def test_a_build_for_other_machines(project):
    build(project, {"c.pt2": (library(project.folder, loaded="abort()"), SAID, {"AOTI_CPU_ISA": "AVX9000"})})
    done = kernelized(project, code=3)
    assert "AVX9000" in done.err


def test_packages_that_disagree(project):
    other = {**SAID, "operator": "norm(Tensor x, Tensor w, float eps) -> Tensor", "attributes": []}
    build(project, {"a.pt2": (library(project.folder), SAID, {}), "b.pt2": (library(project.folder), other, {})})
    assert "disagree" in kernelized(project, code=2).err


# The real thing ---------------------------------------------------------------------------------------------------

FUNCTIONS = '''
import torch


def rms_norm(hidden_states, weight, eps):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight).to(hidden_states.dtype)
'''
COMPILE = ("functions.py:rms_norm", "--input", "hidden_states: float32[rows, 32]", "--input", "weight: float32[32]",
           "--constant", "eps=1e-3", "--attribute", "weight", "--attribute", "eps", "--range", "rows=1:4096")

SERVER = r"""
#include <torch/script.h>
#include <iostream>

int main(int, char** argv) try {
    torch::NoGradGuard no_grad;
    auto model = torch::jit::load(argv[1]);
    const auto x = torch::arange(160, torch::kFloat).reshape({5, 32}) / 40 - 2;
    std::cout << model.forward({x}).toTensor().to(torch::kDouble).abs().sum().item<double>() << "\n";
    return 0;
} catch (const std::exception& error) {
    std::cerr << "the server fails: " << error.what() << "\n";
    return 7;
}
"""


@pytest.fixture(scope="module")
def compiled():
    """Compiled once for this machine: it takes half a minute, and test processes run side by side."""
    cpu = next(line for line in open("/proc/cpuinfo") if line.startswith(("flags", "Features")))
    script = ROOT / "script/compile_kernel.py"
    of = hashlib.sha256(" ".join((FUNCTIONS, *COMPILE, script.read_text(), torch.__version__, cpu)).encode())
    folder = PREFIX / "tests/compiled" / of.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "norms/build").exists():
            (folder / "functions.py").write_text(FUNCTIONS)
            subprocess.run([sys.executable, "-W", "ignore", script, *COMPILE, "-o", folder / "making"], cwd=folder,
                           check=True, timeout=1200)
            (folder / "making").rename(folder / "norms")
    return folder / "norms"


def test_compiled_by_the_script(project, compiled, tmp_path):
    """A build, and its one package by itself: in a model, verified, run by an unmodified server without Python."""
    shutil.copytree(compiled, project.folder / "norms")
    [made] = (project.folder / "norms").glob("build/*/*.pt2")
    shutil.copy(made, project.folder / "norm.pt2")
    assert project("check", "norms").code == 0
    by_build = f'presets = []\n\n[layers.rms_norm]\nrepo_path = "norms"\nclasses = ["{Norm.__module__}.Norm"]\n'
    server = compile_server(SERVER, tmp_path / "server")
    expected = float(torch.jit.load(project.folder / "model.pt")(
        torch.arange(160.0).reshape(5, 32) / 40 - 2).double().abs().sum())
    for manifest, where in ((LAYER, "."), (by_build, "norms")):
        (project.folder / "twinkle.toml").write_text(manifest)
        report = kernelized(project)
        assert statuses(report) == ["replaced", "replaced"], report
        assert max(site["max_error"] for site in report["sites"]) < 1e-6
        runs(project, where)
        served = subprocess.run([server, project.folder / "fast.pt"], capture_output=True, text=True, timeout=300,
                                env=environment(LD_PRELOAD=PRELOAD, TWINKLE_KERNELS=project.folder / where))
        assert served.returncode == 0, served.stderr
        assert abs(float(served.stdout) - expected) < 1e-3 * expected


@pytest.mark.parametrize("change,why", [(("--input", "hidden_states: [rows, 32]"), "no dtype"),
                                        (("--input", "hidden_states float32"), "NAME: DTYPE"),
                                        (("--input", "hidden_states: float32[columns, 32]"), "no --range")])
def test_the_script_says_what_is_missing(tmp_path, change, why):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    done = subprocess.run([sys.executable, ROOT / "script/compile_kernel.py", "functions.py:rms_norm", *change, "-o",
                           tmp_path / "x.pt2"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and why in done.stderr
