"""Exported models that hold objects of torch.classes, and whose operators have effects that tokens keep in order."""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT
from kernels_for_tests import RUNTIMES, TORCH_LIB, compiled_kernel, needs_runtime, outcome

pytestmark = needs_runtime
torch = pytest.importorskip("torch")
torch.set_num_threads(1)

HERE = ROOT / "tests/cli"
NAMES = ["methods", "methods_decomposed", "operators", "operators_decomposed", "states", "states_decomposed", "several"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The library of the classes, and the archives."""
    folder = tmp_path_factory.mktemp("objects")
    include = TORCH_LIB.parent / "include"
    subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", f"-I{include}",
                    f"-I{include}/torch/csrc/api/include", HERE / "objects.cpp", "-o", folder / "objects.so",
                    f"-L{TORCH_LIB}", "-ltorch_cpu", "-ltorch", "-lc10"], check=True)
    subprocess.run([sys.executable, HERE / "export_objects.py", folder / "objects.so", folder], check=True, timeout=300)
    return folder


@pytest.fixture
def kernel(twinkle, made):
    compiled_kernel(twinkle.folder, made / "objects.so", "objects")
    (twinkle.folder / "twinkle.toml").unlink()
    return twinkle.folder / "kernel"


LOADED = """
import sys, torch
torch.set_num_threads(1)
torch.ops.load_library(sys.argv[1])
model = torch.jit.load(sys.argv[2])
if len(sys.argv) > 4:
    model.save(sys.argv[4])
    model = torch.jit.load(sys.argv[4])
with torch.no_grad():
    results = [model(x) for x, _ in torch.load(sys.argv[3])]
torch.save([list(one) if isinstance(one, tuple) else [one] for one in results], "results.pt")
"""


def results_of(folder, model, calls, *again):
    """Of all calls in a row, in a process that has twinkle's library alone: the model names its kernel."""
    subprocess.run([sys.executable, "-c", LOADED, RUNTIMES[0].parent / "libtwinkle.so", model, calls, *again], check=True,
                   cwd=folder, timeout=120, env={**os.environ, "TWINKLE_KERNELS": str(folder / "kernel")})
    return torch.load(folder / "results.pt")


def convert(twinkle, archive, *more):
    done = twinkle("convert", archive, "-o", "model.pt", *more)
    assert done.code == 0, done.err
    return twinkle.folder / "model.pt"


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_what_the_exported_program_does(twinkle, made, kernel, name):
    """Objects remember what was done to them: every call gives other values than the one before."""
    model = convert(twinkle, made / f"{name}.pt2", "--kernels", kernel)
    calls = torch.load(made / f"{name}.io.pt")
    for again in ([], ["again.pt"]):
        for found, (_, expected) in zip(results_of(twinkle.folder, model, made / f"{name}.io.pt", *again), calls, strict=True):
            assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_an_effect_that_only_a_token_tells(twinkle, made, kernel):
    """The calls are equal, and the result of one is not used: LibTorch would make one of three."""
    model = convert(twinkle, made / "noted_decomposed.pt2", "--kernels", kernel)
    for first, last in results_of(twinkle.folder, model, made / "noted_decomposed.io.pt"):
        torch.testing.assert_close(last - first, torch.full_like(first, 2.0))


GIVEN = """
import sys, torch
torch.set_num_threads(1)
torch.ops.load_library(sys.argv[1])
model = torch.jit.load(sys.argv[2])
scale = torch.classes.objects.Scale(torch.linspace(1, 2, 4), 2)
with torch.no_grad():
    for x, (expected,) in torch.load(sys.argv[3]):
        assert torch.equal(model(x, scale), expected)
try:
    model(x, x)
except RuntimeError as error:
    assert "Scale" in str(error)
else:
    sys.exit("took a tensor for an object")
"""


@pytest.mark.parametrize("name", ["given", "given_decomposed"])
def test_an_object_that_is_an_input(twinkle, made, kernel, name):
    """The program that calls the model makes it: its class is there once the model's kernel is loaded."""
    model = convert(twinkle, made / f"{name}.pt2", "--kernels", kernel)
    subprocess.run([sys.executable, "-c", GIVEN, RUNTIMES[0].parent / "libtwinkle.so", model, made / "given.io.pt"], check=True,
                   timeout=120, env={**os.environ, "TWINKLE_KERNELS": str(kernel)})
    done = twinkle("run", model, "--kernels", kernel, "--inputs", "float32[3,4]", "--json")
    assert done.code == 2 and "scale" in json.dumps(done.error), done.err
    done = twinkle("convert", made / f"{name}.pt2", "-o", "other.pt", "--json")
    assert done.code == 3 and "gets an object of the class torch.classes.objects.Scale" in done.error["what"], done.err
    assert not (twinkle.folder / "other.pt").exists()


@pytest.mark.parametrize("name", ["methods", "operators_decomposed"])
def test_run(twinkle, made, kernel, name):
    (x, expected), *_ = torch.load(made / f"{name}.io.pt")
    torch.save(x, twinkle.folder / "x.pt")
    for model in (made / f"{name}.pt2", convert(twinkle, made / f"{name}.pt2", "--kernels", kernel)):
        done = twinkle("run", model, "--kernels", kernel, "--inputs", "x.pt", "-o", "out.pt")
        assert done.code == 0, done.err
        found = torch.load(twinkle.folder / "out.pt")
        found = list(found) if isinstance(found, tuple) else [found]
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_a_class_that_nobody_has(twinkle, made):
    for command in (["convert", "-o", "model.pt"], ["run", "--inputs", "float32[3,4]"]):
        done = twinkle(command[0], made / "methods.pt2", *command[1:], "--json")
        assert done.code == 3 and "torch.classes.objects.Scale" in done.error["what"], done.err
        assert "methods.pt2: inner.scale" in done.error["where"] and "--kernels" in done.error["hint"]
    assert not (twinkle.folder / "model.pt").exists()


def test_commands_that_need_more_than_a_run_say_so(twinkle, made, kernel):
    """Objects of a kernel's class are made by its code: in a child that runs the model, and nowhere else."""
    converted = convert(twinkle, made / "methods.pt2", "--kernels", kernel)
    for command in (["kernelize", converted, "-o", "fast.pt"], ["bench", converted, "--inputs", "float32[3,4]"]):
        done = twinkle(*command, "--json", env={"TWINKLE_KERNELS": str(kernel)})
        assert done.code == 3 and "torch.classes.objects.Scale" in done.error["what"], done.err
        assert "twinkle run" in done.error["hint"]
    assert not (twinkle.folder / "fast.pt").exists()


def test_inspect_names_the_class(twinkle, made, kernel):
    for more, why in (([], "not in LibTorch"), (["--kernels", kernel], "of the kernel")):
        done = twinkle("inspect", made / "methods.pt2", *more, "--json")
        assert done.code == 0 and done.json["loaded"] is False, done.err
        assert "torch.classes.objects.Scale" in done.json["because"] and why in done.json["because"]


# Records that are not as they should be ----------------------------------------------------------------------------


def rewritten(source, target, change):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


def in_object(edit):
    """Changes the pickle in the record of the first object."""
    def change(name, data):
        if not name.endswith("/custom_obj_0"):
            return data
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
            for inner in old.namelist():
                new.writestr(inner, edit(old.read(inner)) if inner.endswith("data.pkl") else old.read(inner))
        return made.getvalue()

    return change


class Runs:
    def __reduce__(self):
        import os
        return os.system, ("touch ran",)


SCALE = b"c__torch__.torch.classes.objects\nScale\n"
HOSTILE = {
    "a function": (in_object(lambda data: pickle.dumps(Runs(), 2)), "plain"),
    "a function in the state": (in_object(lambda data: data.replace(
        b"ctorch._utils\n_rebuild_tensor_v2\n", b"cposix\nsystem\n")), "posix.system"),
    "another class": (in_object(lambda data: data.replace(SCALE, b"c__torch__.torch.classes.quantized\n"
                                                                  b"LinearPackedParamsBase\n")), "another class"),
    "no object": (in_object(lambda data: pickle.dumps((1, 2), 2)), "something else than one object"),
    "an object in the state": (in_object(lambda data: data[:-3].replace(b"K\x02\x86", SCALE + b")\x81K\x02\x86") + b"b."),
                               "object"),
    "a number as a function": (in_object(lambda data: data.replace(b"K\x02\x86", b"K\x00)R\x86")), "function"),
    "other types": (in_object(lambda data: data.replace(b"K\x02\x86", b"N\x86")), "does not fit"),
    "a tensor beyond its record": (in_object(lambda data: data.replace(b"(K\x04t(K\x01t", b"(K\x40t(K\x01t")), "reaches out"),
    "a wild memo": (in_object(lambda data: data.replace(b"K\x02\x86", b"h\x63\x86")), "refers"),
    "half of it": (in_object(lambda data: data[:len(data) // 2]), "ends too early"),
    "no record": (lambda name, data: b"" if name.endswith("/custom_obj_0") else data, "damaged"),
    "a class of twinkle's": (lambda name, data: data.replace(b"classes.objects.Scale", b"classes.twinkle.NeededKernel")
                             if name.endswith("model.json") else data, "no class of a model"),
    "a class that loads code": (lambda name, data: data.replace(b"classes.objects.Scale", b"classes.aoti.AOTIModelContainer")
                                if name.endswith("model.json") else data, "loads a library"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_objects_are_refused(twinkle, made, kernel, what):
    change, why = HOSTILE[what]
    broken = rewritten(made / "methods.pt2", twinkle.folder / "broken.pt2", change)
    assert broken.read_bytes() != (made / "methods.pt2").read_bytes()
    before = outcome(twinkle.folder)
    for command in (["convert", broken, "-o", "model.pt"], ["run", broken, "--inputs", "float32[3,4]"]):
        done = twinkle(*command, "--kernels", kernel, "--json")
        assert done.code in (2, 3, 6), (command, done.err)
        assert why in json.dumps(done.error), done.err
    assert outcome(twinkle.folder) == before


def test_objects_of_libtorch(twinkle, made):
    """No kernel is needed for the packed weights of a quantized layer."""
    weight = torch.quantize_per_channel(torch.randn(4, 4), torch.tensor([0.1, 0.2, 0.3, 0.4]),
                                         torch.zeros(4, dtype=torch.long), 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, torch.randn(4))

    def change(name, data):
        if name.endswith("/custom_obj_0"):
            return torch._C._pickle_save(packed)
        if not name.endswith("models/model.json"):
            return data
        document = json.loads(data.replace(b"classes.objects.Scale", b"classes.quantized.LinearPackedParamsBase"))
        graph = document["graph_module"]["graph"]
        for node in graph["nodes"]:
            node["target"] = "torch.ops.quantized.linear_dynamic.default"
            scale, x = node["inputs"]
            scale["name"], x["name"] = "W_prepack", "X"
            node["inputs"] = [x, scale]
        return json.dumps(document).encode()

    archive = rewritten(made / "operators.pt2", twinkle.folder / "quantized.pt2", change)
    model = torch.jit.load(convert(twinkle, archive))
    assert "has_effect" not in str(model.inlined_graph)
    x = torch.randn(3, 4)
    for found in model(x):
        assert torch.equal(found, torch.ops.quantized.linear_dynamic(x, packed))
    done = twinkle("inspect", archive, "--json")
    assert done.code == 0 and done.json["loaded"] is True, done.err
