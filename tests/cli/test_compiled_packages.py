"""Packages that AOTInductor compiled: described and judged without being loaded, and run with the kernels that they
call, by programs of both kinds."""

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, environment
from kernels_for_tests import PREFIX, RUNTIMES, TORCH_LIB, models, needs_runtime  # noqa: F401 (a fixture)
from test_preload import PRELOAD, compile_server

pytestmark = needs_runtime
torch = pytest.importorskip("torch")

PACK = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").glob("*/metadata.json"), None)

# The operator is one of the bundled pack, of which this process has the name alone.
COMPILE = """
import sys, warnings
import torch, torch._inductor
warnings.filterwarnings("ignore")
name, package = sys.argv[1:]
torch.library.define(name, "(Tensor x, Tensor? weight, float eps=1e-06, float offset=0., bool round_last=False) -> Tensor")
torch.library.impl(name, "CompositeExplicitAutograd", lambda x, *more: x.clone())
torch.library.register_fake(name, lambda x, *more: torch.empty_like(x))
space, op = name.split("::")
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 8))
    def forward(self, x):
        return getattr(getattr(torch.ops, space), op)(x, self.weight, 1e-5) * 2
rows = torch.export.Dim("rows", min=1, max=64)
exported = torch.export.export(Norm(), (torch.ones(3, 8),), dynamic_shapes=({0: rows},))
torch._inductor.aoti_compile_and_package(exported, package_path=package)
"""

SERVER = r"""
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>

#include <iostream>
%(include)s

int main(int, char** argv) try {
    %(load)s
    torch::NoGradGuard no_grad;
    const auto x = torch::arange(40, torch::kFloat).reshape({5, 8}) / 10 - 2;
    std::cout << loader%(get)srun({x}).at(0).to(torch::kDouble).abs().sum().item<double>() << "\n";
    return 0;
} catch (const std::exception& error) {
    std::cerr << "the server fails: " << error.what() << "\n";
    return 7;
}
"""
PLAIN = SERVER % {"include": "", "load": "torch::inductor::AOTIModelPackageLoader loader(argv[1]);", "get": "."}
OURS = SERVER % {"include": "#include <twinkle/package.h>", "load": "auto loader = twinkle::load_package(argv[1]);",
                 "get": "->"}


def namespace():
    return json.loads(PACK.read_text())["id"]


@pytest.fixture(scope="module")
def package():
    """Compiled once for this machine: it takes half a minute, and test processes run side by side."""
    cpu = next(line for line in open("/proc/cpuinfo") if line.startswith(("flags", "Features")))
    of = hashlib.sha256(" ".join((COMPILE, namespace(), torch.__version__, cpu)).encode()).hexdigest()[:16]
    folder = PREFIX / "tests/compiled"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / f"{of}.pt2").exists():
            made = folder / "norm.pt2"
            subprocess.run([sys.executable, "-c", COMPILE, f"{namespace()}::rms_norm", made], check=True, timeout=1200)
            made.rename(folder / f"{of}.pt2")
    return folder / f"{of}.pt2"


def expected():
    x = torch.arange(40.0).reshape(5, 8) / 10 - 2
    return float((torch.nn.functional.rms_norm(x, (8,), torch.linspace(0.5, 1.5, 8), 1e-5) * 2).double().abs().sum())


def run(server, package, **variables):
    done = subprocess.run([server, package], env=environment(**variables), capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def test_inspect(twinkle, package):
    done = twinkle("inspect", package, "--json")
    assert done.code == 0, done.err
    [model] = done.json["models"]
    assert done.json["kind"] == "compiled" and model["name"] == "model" and model["device"] == "cpu"
    assert model["os"] == "linux" and model["library_bytes"] > 10000
    [operator] = model["operators"]
    assert operator["name"] == f"{namespace()}::rms_norm" and operator["from"] == "twinkle-pack"
    shown = twinkle("inspect", package)
    assert shown.code == 0 and "rms_norm" in shown.out and "twinkle-pack" in shown.out


def changed(package, target, old, new):
    """The package with another text in its JSON."""
    with zipfile.ZipFile(package) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name in source.namelist():
            data = source.read(name)
            copy.writestr(name, data.replace(old.encode(), new.encode()) if name.endswith(".json") else data)
    return target


def test_check(twinkle, package):
    assert twinkle("check", package).code == 0
    done = twinkle("check", package, "--target", "cpu=aarch64,backend=cpu", "--json")
    assert done.code == 4 and "aarch64" in json.dumps(done.json["models"])
    other = changed(package, twinkle.folder / "gpu.pt2", '"AOTI_DEVICE_KEY": "cpu"', '"AOTI_DEVICE_KEY": "cuda"')
    done = twinkle("check", other)
    assert done.code == 4 and "compiled for cuda" in done.out
    new = changed(package, twinkle.folder / "new.pt2", '"AOTI_CPU_ISA": "', '"AOTI_CPU_ISA": "AMX_FUTURE ')
    assert "does not know" in twinkle("check", new).out
    missing = changed(package, twinkle.folder / "missing.pt2", namespace(), "nobody")
    done = twinkle("check", missing)
    assert done.code == 4 and "nobody::rms_norm" in done.out
    assert twinkle("check", package, "--for", "hub").code == 2
    assert twinkle("check", PACK.parent, "--target", "here").code == 2


def test_a_hostile_package_is_refused_by_what_it_is(twinkle, package):
    hostile = twinkle.folder / "hostile.pt2"
    shutil.copy(package, hostile)
    with zipfile.ZipFile(hostile, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("norm/data/aotinductor/model/../../../../escaped.so", b"x")
    for command in ("inspect", "check"):
        done = twinkle(command, hostile, "--json")
        assert done.code == 2 and "outside" in done.error["why"], done.err
    (twinkle.folder / "cut.pt2").write_bytes(package.read_bytes()[:-100])
    assert twinkle("check", "cut.pt2").code == 2


def test_a_model_is_not_checked_by_itself(twinkle, models):  # noqa: F811
    done = twinkle("check", models / "tiny_llama.pt", "--json")
    assert done.code == 2 and "--model" in done.error["hint"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return compile_server(PLAIN, tmp_path_factory.mktemp("plain") / "server")


def test_a_program_that_knows_nothing_of_kernels(package, plain):
    code, out, err = run(plain, package)
    assert code == 7 and "rms_norm" in err  # LibTorch alone cannot load it
    code, out, err = run(plain, package, LD_PRELOAD=PRELOAD)
    assert code == 0, err
    assert float(out) == pytest.approx(expected(), rel=1e-5)


def test_what_nobody_has_is_named(tmp_path, package, plain):
    missing = changed(package, tmp_path / "missing.pt2", namespace(), "nobody")
    code, out, err = run(plain, missing, LD_PRELOAD=PRELOAD)
    assert code == 7 and "needs the operator nobody::rms_norm" in err and "TWINKLE_KERNELS" in err


def test_load_package(tmp_path, package):
    folder = RUNTIMES[0].parent
    server = compile_server(OURS, tmp_path / "server", f"-I{ROOT / 'include'}", "-Wl,--no-as-needed", f"-L{folder}", "-ltwinkle",
                            f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{TORCH_LIB}")
    code, out, err = run(server, package)
    assert code == 0, err
    assert float(out) == pytest.approx(expected(), rel=1e-5)
    for old, new, why in (('"AOTI_CPU_ISA": "', '"AOTI_CPU_ISA": "AMX_FUTURE ', "does not know"),
                          (namespace(), "nobody", "needs the operator nobody::rms_norm")):
        code, out, err = run(server, changed(package, tmp_path / "other.pt2", old, new))
        assert code == 7 and why in err, err
