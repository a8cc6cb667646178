"""twinkle inspect for kernels and libraries, against what the tools of binutils and CUDA say."""

import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest
from conftest import ROOT
from kernels_for_tests import RMS_NORM, metadata, python_kernel

NVCC = shutil.which("nvcc")
CUOBJDUMP = shutil.which("cuobjdump") or next(
    iter(pathlib.Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cu*/bin/cuobjdump")), None)
SITE = pathlib.Path(sysconfig.get_paths()["purelib"])


def real_libraries():
    """Of the bundled pack, PyTorch and NumPy, as far as they are there, and of the system."""
    found = sorted(ROOT.glob("build/*/lib/twinkle/kernels/twinkle-pack/build/*/*.so"))[:1]
    found += [path for path in (SITE / "torch/lib/libc10.so", SITE / "torch/lib/libshm.so",
                                SITE / "torch/lib/libtorch_global_deps.so") if path.exists()]
    found += sorted(SITE.glob("numpy/_core/_multiarray_umath*.so"))
    found += sorted(SITE.glob("numpy.libs/*.so*"))[:1]
    return found or [pathlib.Path("/bin/true")]


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def nm_symbols(path):
    """(name, version, defined) of every dynamic symbol."""
    symbols = set()
    for line in tool("nm", "-D", path).splitlines():
        match = re.fullmatch(r"(?:[0-9a-f]+)?\s+(\S) (\S+)", line)
        name, _, version = match[2].partition("@")
        symbols.add((name, version.lstrip("@"), match[1] not in "UwvV" or line[0] != " "))
    return symbols


def our_symbols(facts):
    # nm gives a version's own symbol no version.
    return {(one["name"], "" if one["name"] == one["version"] else one["version"] or "", one["defined"])
            for one in facts["symbols"]}


@pytest.mark.parametrize("path", real_libraries(), ids=lambda path: path.name)
def test_symbols_and_needs_of_real_libraries(twinkle, path):
    facts = twinkle("inspect", path, "--symbols", "--json").json
    assert facts["kind"] == "library" and facts["symbols_complete"]
    expected = {(name, "" if name == version else version, defined) for name, version, defined in nm_symbols(path)}
    assert our_symbols(facts) == expected
    dynamic = tool("readelf", "-dW", path)
    assert facts["needs"] == re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert facts["bind_now"] == ("BIND_NOW" in dynamic or bool(re.search(r"FLAGS_1.*NOW", dynamic)))
    assert ":".join(facts["rpath"] + facts["runpath"]) == ":".join(re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic))
    versions = sorted(re.findall(r"Name: (\S+)  Flags", tool("readelf", "-VW", path)))
    assert sorted(version for need in facts["version_needs"] for version in need["versions"]) == versions


def compiled(folder, *flags, name="library.so", source="int answer(void) { return 42; }\n"):
    (folder / "library.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", folder / "library.c", "-o", folder / name, *flags], check=True)
    return folder / name


def test_stripped_and_linked_libraries_are_judged_the_same(twinkle, tmp_path):
    path = compiled(tmp_path)
    whole = twinkle("inspect", path, "--symbols", "--json").json
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", path, "-o", stripped], check=True)
    link = tmp_path / "link.so"
    link.symlink_to(stripped)
    for other in (stripped, link):
        facts = twinkle("inspect", other, "--symbols", "--json").json
        assert facts["symbols"] == whole["symbols"] and facts["needs"] == whole["needs"]


needs_cuda = pytest.mark.skipif(not (NVCC and CUOBJDUMP), reason="nvcc and cuobjdump are not here")

GENCODE = {
    "one": ["-gencode", "arch=compute_75,code=sm_75"],
    "ptx only": ["-gencode", "arch=compute_90,code=compute_90"],
    "suffixes": ["-gencode", "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_100f,code=sm_100f"],
    "newest with ptx": ["-gencode", "arch=compute_120,code=[sm_120,compute_120]"],
    "compressed": ["--compress-mode=size", "-gencode", "arch=compute_80,code=[sm_80,compute_80]"],
    "not compressed": ["--no-compress", "-gencode", "arch=compute_86,code=[sm_86,compute_86]"],
    "for the device linker": ["-dc", "-gencode", "arch=compute_80,code=sm_80"],
}


@needs_cuda
@pytest.mark.parametrize("flags", GENCODE.values(), ids=GENCODE.keys())
def test_gpu_code_is_what_cuobjdump_prints(twinkle, tmp_path, flags):
    source = tmp_path / "kernel.cu"
    source.write_text("__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"
                      "void run(float* x) { scale<<<1, 32>>>(x); }\n")
    out = tmp_path / "kernel.o"
    subprocess.run([NVCC, "-c", "-Xcompiler", "-fPIC", *flags, source, "-o", out], check=True)
    shown = tool(CUOBJDUMP, out)
    expected = re.findall(r"Fatbin (elf|ptx) code:\n=+\narch = (\S+)", shown)
    facts = twinkle("inspect", out, "--json").json
    kinds = {"cubin": "elf", "ptx": "ptx"}
    assert sorted((kinds[code["kind"]], code["arch"]) for code in facts["device_code"]) == sorted(expected)
    assert facts["archs_complete"]


def test_layers_and_functions_of_a_package(twinkle, tmp_path):
    package = python_kernel(tmp_path, RMS_NORM + """

class Tried(nn.Module):
    def forward(self, x):
        try:
            return x
        finally:
            pass
""")
    (package / "__init__.py").write_text("from . import layers\nimport triton\n\n\n"
                                         "def twice(x, by: int = 2, *, out=None):\n    return x * by\n\n\n"
                                         "@triton.jit\ndef _kernel(x):\n    pass\n\n\n"
                                         "def launched(x):\n    _kernel[(1,)](x)\n    return x\n")
    facts = twinkle("inspect", package, "--json").json
    assert facts["kind"] == "kernel" and facts["operators"] == [] and facts["needs"] == []
    norm, tried = facts["layers"]
    assert norm["usable"] and norm["needs"] == ["variance_epsilon", "weight"]
    assert norm["compiled_for"].startswith("(")
    assert norm["bases"] == ["torch.nn.Module"]
    assert not tried["usable"]
    assert re.fullmatch(r"needs Python: layers.py:\d+: Try has no counterpart in TorchScript", tried["because"])
    launched, twice = facts["functions"]
    assert twice["usable"]
    assert [(one["name"], one["kind"], one["default"]) for one in twice["parameters"]] == [
        ("x", "positional-or-keyword", None), ("by", "positional-or-keyword", "2"), ("out", "keyword-only", "None")]
    assert launched["reasons"][0]["kind"] == "triton"
    alone = twinkle("inspect", package, "--json", env={"TWINKLE_LIBEXEC": str(tmp_path / "none")}).json
    assert [one["usable"] for one in alone["layers"]] == [None, False]
    assert alone["layers"][0]["because"] == "not compiled: there is no LibTorch here"
    shown = twinkle("inspect", package).out
    assert "twice(x, by: int = 2, *, out=None)" in shown and "needs-python" in shown


def test_usable_is_what_compiles(twinkle, tmp_path):
    package = python_kernel(tmp_path, RMS_NORM)
    (package / "__init__.py").write_text(
        "import torch\nfrom . import layers\nfrom ._ops import ops\n\n\n"
        "def scaled(x, eps):\n    return x * (1.0 + eps)\n\n\n"
        "def misspelt(x):\n    return torch.no_such_function(x)\n\n\n"
        "def typed(x: torch.Generator):\n    return x\n\n\n"
        "def asked(x):\n    return ops.unknown(x)\n")
    found = {one["name"]: one for one in twinkle("inspect", package, "--json").json["functions"]}
    assert found["scaled"]["verdict"] == "without-python" and found["scaled"]["compiled_for"] == "(x: Tensor, eps: float)"
    assert found["misspelt"]["verdict"] == "needs-python" and found["misspelt"]["usable"] is False
    assert "torch.no_such_function has no meaning in TorchScript" in found["misspelt"]["because"]
    assert found["typed"]["verdict"] == "not-compiled" and found["typed"]["usable"] is None
    assert found["asked"]["because"] == "not compiled: the schema of the operator unknown is not known"
    assert found["asked"]["reasons"][0]["kind"] == "compiling"


def build_with_library(folder, source, flags=()):
    build = folder / "build/torch213-cxx11-cpu-x86_64-linux"
    build.mkdir(parents=True)
    (build / "__init__.py").write_text("from . import layers\n")
    (build / "layers.py").write_text(RMS_NORM)
    compiled(build, *flags, source=source)
    (build / "library.c").unlink()
    metadata(build, "norm_1f")
    return build


def test_a_library_decides_whether_its_layers_need_python(twinkle, tmp_path):
    stub = "extern void* PyModule_Create2(void*, int);\nvoid* PyInit_m(void) { return PyModule_Create2(0, 1013); }\n"
    build = build_with_library(tmp_path / "stub", stub)
    assert twinkle("inspect", build, "--json").json["layers"][0]["verdict"] == "with-stub"
    more = stub + "extern int PyErr_Occurred(void);\nint f(void) { return PyErr_Occurred(); }\n"
    build = build_with_library(tmp_path / "more", more)
    layer = twinkle("inspect", build, "--json").json["layers"][0]
    assert layer["verdict"] == "needs-python"
    assert layer["because"] == "needs Python: library.so: its library calls CPython: PyErr_Occurred"


def test_operators_with_schemas_and_what_they_write(twinkle, tmp_path):
    source = ('const char* volatile schemas[] = {"norm(Tensor x, float eps=1e-06) -> Tensor", '
              '"norm_1f::norm_out(Tensor! out, Tensor x) -> ()"};\n')
    build = build_with_library(tmp_path, source)
    operators = {one["name"]: one for one in twinkle("inspect", tmp_path, "--json").json["operators"]}
    assert operators["norm"]["schema"] == "norm(Tensor x, float eps=1e-06) -> Tensor"
    assert operators["norm_out"]["mutates"] == ["out"]
    assert operators["norm"]["schema_certain"] and not operators["norm"]["keys_certain"]
    assert twinkle("inspect", tmp_path, "--variant", "torch99-cpu-x86_64-linux", "--json").code == 3
    assert twinkle("inspect", tmp_path, "--variant", build.name, "--json").json["variant"] == build.name


def test_what_is_not_there(twinkle, tmp_path):
    assert twinkle("inspect", tmp_path / "none.so", "--json").code == 3
    (tmp_path / "empty").mkdir()
    error = twinkle("inspect", tmp_path / "empty", "--json")
    assert error.code == 2 and error.error["what"] == "not a kernel"
    (tmp_path / "cut.so").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9))
    assert twinkle("inspect", tmp_path / "cut.so", "--json").code in (2, 3)
