"""twinkle check: every rule with its id, place and remedy, and SARIF for CI."""

import base64
import hashlib
import json
import os
import subprocess

import pytest
from kernels_for_tests import RMS_NORM, RUNTIME, RUNTIMES, made_models, needs_runtime

VARIANT = f"torch213-cxx11-cpu-{os.uname().machine}-linux"


def seal(build, **changes):
    """metadata.json with a digest over what is there."""
    files = {str(path.relative_to(build)): base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
             for path in sorted(build.rglob("*")) if path.is_file() and path.name != "metadata.json"}
    document = {"id": "_norm_1f", "name": "norm", "version": 1, "license": "Apache-2.0", "python-depends": [],
                "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": files}}
    document.update(changes)
    (build / "metadata.json").write_text(json.dumps(document, indent=2))


def kernel(folder, variant=VARIANT, layers=RMS_NORM, init="from . import layers\n", library=None, flags=(), **changes):
    build = folder / "build" / variant
    build.mkdir(parents=True)
    (build / "__init__.py").write_text(init)
    (build / "layers.py").write_text(layers)
    if library is not None:
        source = folder / "library.c"
        source.write_text(library)
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", build / "_norm_1f.so", *flags], check=True)
        (build / "_ops.py").write_text("import torch\nops = torch.ops._norm_1f\n")
    seal(build, **changes)
    return build


def findings(twinkle, path, *options):
    done = twinkle("check", path, "--json", *options)
    found = done.json["findings"]
    assert done.code == (4 if any(one["severity"] == "error" for one in found) else 0), done.err
    assert all(one["remedy"] for one in found)
    return {one["rule"]: one for one in found}


def test_a_kernel_without_violations(twinkle, tmp_path):
    kernel(tmp_path)
    assert findings(twinkle, tmp_path) == {}
    assert findings(twinkle, tmp_path / "build" / VARIANT) == {}
    assert twinkle("check", tmp_path).code == 0


@pytest.mark.parametrize("changes, rule, text", [
    ({"backend": {"type": "cuda"}}, "metadata/backend", "the backend is cuda"),
    ({"version": "one"}, "metadata/invalid", "version"),
    ({"name": "Norm"}, "metadata/invalid", "name"),
    ({"kernels-minver": "1"}, "metadata/invalid", "three numbers"),
    ({"python-depends": ["requests"]}, "dependency/unknown", "requests"),
    ({"python-depends": ["nvidia-cutlass-dsl"]}, "dependency/unknown", "cuda only"),
    ({"provenance": {"kernel-builder": {"version": "1"}, "kernel": {"commit": "0" * 40, "dirty": True}}},
     "metadata/dirty", "uncommitted"),
])
def test_metadata(twinkle, tmp_path, changes, rule, text):
    kernel(tmp_path, **changes)
    found = findings(twinkle, tmp_path)
    assert text in found[rule]["text"]
    assert found[rule]["file"] == f"build/{VARIANT}/metadata.json"


def test_files_beside_the_digest(twinkle, tmp_path):
    build = kernel(tmp_path)
    (build / "layers.py").write_text(RMS_NORM + "\n")
    (build / "more.py").write_text("")
    done = twinkle("check", tmp_path, "--json")
    texts = [one["text"] for one in done.json["findings"] if one["rule"] == "digest/mismatch"]
    assert done.code == 4 and len(texts) == 2
    assert texts[0].startswith("layers.py differs") and texts[1] == "more.py is not in the digest"


def test_a_folder_that_is_no_variant_and_a_missing_package(twinkle, tmp_path):
    build = kernel(tmp_path)
    build.rename(tmp_path / "build" / "cpu")
    found = findings(twinkle, tmp_path / "build" / "cpu")
    assert found["variant/name"]["text"] == "cpu is no variant"
    (tmp_path / "build" / "cpu" / "__init__.py").unlink()
    assert "package/missing" in findings(twinkle, tmp_path / "build" / "cpu")


def test_layers_and_imports_with_file_and_line(twinkle, tmp_path):
    layers = RMS_NORM + "\n\nclass Wrong(nn.Module):\n    def __init__(self):\n        pass\n\n" \
                        "    def forward(self, x):\n        with torch.autocast('cpu'):\n            return x\n"
    init = "import os\nimport requests\nfrom norm import layers\ntry:\n    import numpy\nexcept ImportError:\n    pass\n" \
           "from kernels import get_kernel_dep\nfrom typing import TYPE_CHECKING\n"
    kernel(tmp_path, layers=layers, init=init)
    found = findings(twinkle, tmp_path)
    place = f"build/{VARIANT}/"
    assert (found["layer/rules"]["file"], found["layer/rules"]["line"]) == (place + "layers.py", 17)
    assert found["layer/python"]["severity"] == "note" and found["layer/python"]["line"] == 21
    assert (found["package/relative-import"]["file"], found["package/relative-import"]["line"]) == (
        place + "__init__.py", 3)
    done = twinkle("check", tmp_path, "--json").json["findings"]
    undeclared = {(one["text"].split(",")[0], one["severity"]) for one in done if one["rule"] == "dependency/undeclared"}
    assert undeclared == {("imports requests", "error"), ("imports numpy", "warning")}


def test_a_source_that_is_no_python(twinkle, tmp_path):
    kernel(tmp_path, init="def broken(:\n")
    found = findings(twinkle, tmp_path)
    assert found["package/syntax"]["line"] == 1


LIBRARY = "extern void* PyModule_Create2(void*, int);\nvoid* PyInit_n(void) { return PyModule_Create2(0, 1013); }\n"


def test_symbols_of_python_beyond_the_limited_api(twinkle, tmp_path):
    kernel(tmp_path / "fine", library=LIBRARY)
    assert "abi/python" not in findings(twinkle, tmp_path / "fine")
    kernel(tmp_path / "beyond", library=LIBRARY + "extern const char* PyUnicode_AsUTF8(void*);\n"
                                                  "const char* f(void) { return PyUnicode_AsUTF8(0); }\n")
    assert "PyUnicode_AsUTF8" in findings(twinkle, tmp_path / "beyond")["abi/python"]["text"]


def test_symbols_of_torch_beyond_the_stable_abi(twinkle, tmp_path):
    library = "extern int _ZN3c104impl5thingEv(void);\nextern int _ZN5torch6stable4fineEv(void);\n" \
              "int f(void) { return _ZN3c104impl5thingEv() + _ZN5torch6stable4fineEv(); }\n"
    kernel(tmp_path / "torch", library=library)
    assert "abi/torch" not in findings(twinkle, tmp_path / "torch")
    variant = f"torch-stable-abi210-cpu-{os.uname().machine}-linux"
    kernel(tmp_path / "stable", variant=variant, library=library)
    text = findings(twinkle, tmp_path / "stable")["abi/torch"]["text"]
    assert "c10::impl::thing()" in text and "stable" not in text


def test_needed_libraries_and_paths(twinkle, tmp_path):
    kernel(tmp_path, library="int f(void) { return 1; }\n",
           flags=["-Wl,--no-as-needed", "-lcrypto", "-lm", "-Wl,-rpath,/home/builder/lib"])
    found = findings(twinkle, tmp_path)
    assert "libcrypto" in found["abi/needed"]["text"]
    assert "/home/builder/lib" in found["abi/rpath"]["text"] and found["abi/rpath"]["severity"] == "warning"



def test_versions_of_symbols_for_the_hub_and_for_this_machine(twinkle, tmp_path):
    # A C library of our own that has the version.
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "c.c").write_text("int newer(void) { return 1; }\nint pthread(void) { return 1; }\n")

    def library(version):
        (stub / "map").write_text(f"GLIBC_{version} {{ newer; }};\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", stub / "c.c", "-o", stub / "libc10.so",
                        f"-Wl,--version-script={stub}/map"], check=True)
        return ["-L" + str(stub), "-lc10"]

    flags = library("9.99")
    source = "extern int newer(void);\nint f(void) { return newer(); }\n"
    kernel(tmp_path / "far", library=source, flags=flags)
    assert "GLIBC_9.99 (newer)" in findings(twinkle, tmp_path / "far")["abi/manylinux"]["text"]
    flags = library("2.29")
    kernel(tmp_path / "near", library=source, flags=flags)
    assert findings(twinkle, tmp_path / "near")["abi/manylinux"]["severity"] == "note"
    assert findings(twinkle, tmp_path / "near", "--for", "hub")["abi/manylinux"]["severity"] == "error"
    provenance = {"kernel-builder": {"version": "1"}, "kernel": {"commit": "0" * 40, "dirty": False}}
    kernel(tmp_path / "built", library=source, flags=flags, provenance=provenance)
    assert findings(twinkle, tmp_path / "built")["abi/manylinux"]["severity"] == "error"
    assert findings(twinkle, tmp_path / "built", "--for", "here")["abi/manylinux"]["severity"] == "note"


def test_architectures_declared_and_built(twinkle, tmp_path):
    variant = f"torch213-cxx11-cu130-{os.uname().machine}-linux"
    entry = "2, 0x101, 64, 24"
    library = f"""
#include <stdint.h>
struct entry {{ uint16_t kind, version; uint32_t header; uint64_t size; uint32_t a, b; uint16_t c, d; uint32_t arch;
                uint32_t e, f; uint64_t flags, g, h; char code[24]; }};
struct fatbin {{ uint32_t magic; uint16_t version, header; uint64_t size; struct entry one; }};
const struct fatbin code __attribute__((section(".nv_fatbin"))) =
    {{0xba55ed50, 1, 16, sizeof(struct entry), {{{entry}, 0, 0, 8, 1, 90, 0, 0, 0x100011, 0, 0, {{0}}}}}};
"""
    kernel(tmp_path, variant=variant, library=library, backend={"type": "cuda", "archs": ["8.0", "9.0a"]})
    done = twinkle("check", tmp_path, "--json")
    texts = [one["text"] for one in done.json["findings"] if one["rule"] == "archs/declared"]
    assert texts == ["declares 8.0, but has no code for it; it has 9.0a"]
    assert twinkle("inspect", tmp_path / "build" / variant, "--json").json["archs"] == ["9.0a"]


def test_operators_in_another_namespace(twinkle, tmp_path):
    kernel(tmp_path, library='const char* volatile schema = "other::norm(Tensor x) -> Tensor";\n')
    assert "registers operators in other" in findings(twinkle, tmp_path)["namespace/id"]["text"]


BUILD_TOML = """[general]
name = "norm"
version = 2
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["torch-ext/torch_binding.cpp"]

[kernel.norm]
backend = "cpu"
depends = ["torch"]
src = ["norm_cpu/norm.cpp"]
"""


def test_a_source_project_and_its_build(twinkle, tmp_path):
    (tmp_path / "build.toml").write_text(BUILD_TOML)
    package = tmp_path / "torch-ext/norm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from ._ops import ops\nfrom . import layers\n")
    (package / "layers.py").write_text(RMS_NORM)
    found = findings(twinkle, tmp_path)
    assert set(found) == {"project/files"}
    assert found["project/files"]["text"] == "there is no norm_cpu/norm.cpp"
    assert (found["project/files"]["file"], found["project/files"]["line"]) == ("build.toml", 11)
    (tmp_path / "norm_cpu").mkdir()
    (tmp_path / "norm_cpu/norm.cpp").write_text("")
    (tmp_path / "torch-ext/torch_binding.cpp").write_text("")
    assert findings(twinkle, tmp_path) == {}
    (tmp_path / "model.pt").write_bytes(b"PK")  # not read
    no_build = twinkle("check", tmp_path, "--model", tmp_path / "model.pt", "--json")
    assert no_build.code == 3 and "check the build" in no_build.error["hint"]
    kernel(tmp_path)
    assert findings(twinkle, tmp_path)["project/differs"]["text"] == "the version is 1; build.toml has 2"
    assert twinkle("inspect", tmp_path, "--json").json["layers"][0]["name"] == "RMSNorm"


def test_a_broken_build_toml(twinkle, tmp_path):
    (tmp_path / "build.toml").write_text("[general]\nname = 3\n")
    found = findings(twinkle, tmp_path)["project/build-toml"]
    assert found["file"] == "build.toml" and found["line"] == 2


def test_sarif(twinkle, tmp_path):
    kernel(tmp_path, init="import requests\n", version="one")
    done = twinkle("check", tmp_path, "--sarif", tmp_path / "out.sarif", "--json")
    assert done.code == 4
    document = json.loads((tmp_path / "out.sarif").read_text())
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "twinkle"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"])
    assert len(run["results"]) == len(done.json["findings"]) > 0
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        assert not uri.startswith("/") and (tmp_path / uri).exists()
        assert place.get("region", {"startLine": 1})["startLine"] > 0


def test_sarif_names_files_from_where_it_is_run(twinkle, tmp_path):
    kernel(tmp_path / "kernels/norm", init="import requests\n")
    assert twinkle("check", "kernels/norm", "--sarif", "out.sarif").code == 4
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert all(place["artifactLocation"]["uri"].startswith("kernels/norm/build/") for place in places)
    assert all((tmp_path / place["artifactLocation"]["uri"]).exists() for place in places)


def test_what_is_no_kernel(twinkle, tmp_path):
    assert twinkle("check", tmp_path, "--json").code == 2
    assert twinkle("check", tmp_path / "none", "--json").code == 3
    assert twinkle("check", tmp_path, "--for", "me").code == 2


TUNING = """version = 1
[operators.norm.properties]
columns = "power-of-two"
[operators.norm.forward.arguments]
threads = [128, 256]
[[operators.norm.forward.defaults]]
cfg = { threads = 128 }
"""
SCHEMA = 'const char* volatile schema = "norm(Tensor x, float eps=1e-06) -> Tensor";\n'


def tuned(folder, text):
    build = kernel(folder, library=SCHEMA)
    (build / "tuning.toml").write_text(text)
    seal(build)
    return build


@pytest.mark.parametrize("change, rule, text, line", [
    (("", ""), None, "", 0),
    (("version = 1", "version = 2"), "tuning/toml", "the version must be 1", 1),
    (("threads = [128, 256]", "threads = [128, 1.5]"), "tuning/toml", "values are truth values", 5),
    (("threads = 128 }", "threads = 64 }"), "tuning/toml", "none of the values", 7),
    (("version = 1", "version = 1\nmore = 2"), "tuning/toml", "more", 2),
    (("version = 1", "version = "), "tuning/toml", "", 1),
    (("operators.norm.", "operators.nrom."), "tuning/operator", "there is no operator nrom", 2)])
def test_tuning_of_a_build(twinkle, tmp_path, change, rule, text, line):
    tuned(tmp_path, TUNING.replace(*change) if change[0] else TUNING)
    found = {name: one for name, one in findings(twinkle, tmp_path).items() if name.startswith("tuning/")}
    assert list(found) == ([rule] if rule else [])
    if rule:
        assert text in found[rule]["text"] and found[rule]["line"] == line
        assert found[rule]["file"] == f"build/{VARIANT}/tuning.toml"


def test_an_operator_whose_schema_a_linker_has_merged_into_others(twinkle, tmp_path):
    """It is found by the package's calls, and is the one that takes what they pass."""
    schemas = ("add_norm(Tensor x, Tensor other, Tensor bias) -> Tensor", "fused_norm(Tensor x, float eps=1e-06) -> Tensor")
    build = kernel(tmp_path, library="".join(f'const char* volatile schema{i} = "{one}";\n' for i, one in enumerate(schemas)),
                   init="from ._ops import ops\n\n\ndef norm(x):\n    return ops.norm(x)\n")
    (build / "tuning.toml").write_text(TUNING)
    seal(build)
    assert "tuning/operator" not in findings(twinkle, tmp_path)
    operators = {one["name"]: one for one in twinkle("inspect", build, "--json").json["operators"]}
    assert operators["norm"]["schema"] == "norm(Tensor x, float eps=1e-06) -> Tensor"


def test_inspect_shows_the_tuning(twinkle, tmp_path):
    build = tuned(tmp_path, TUNING)
    assert twinkle("inspect", build, "--json").json["tuning"] == [
        {"operator": "norm", "properties": {"columns": "power-of-two"}, "backward": None,
         "forward": {"arguments": {"threads": [128, 256]}, "constraints": 0, "defaults": [{"threads": 128}]}}]
    assert "threads 128 256" in twinkle("inspect", build).out
    (build / "tuning.toml").write_text("version = 3\n")
    seal(build)
    problems = twinkle("inspect", build, "--json").json["problems"]
    assert [one for one in problems if "tuning.toml" in json.dumps(one)]


@needs_runtime
def test_a_function_that_no_candidate_serves():
    """A mapping may hold one. `twinkle check` makes none such: the worker is asked by itself."""
    mapping = {"schema": "twinkle.map/1", "target": {}, "kernels": [], "layers": [], "patterns": [], "decisions": [],
               "functions": [{"target_module": "pkg", "func_name": "norm", "candidates": []}]}
    request = {"schema": "twinkle.request/1", "command": "check", "model": str(made_models() / "models/called_twice.pt"),
               "map": json.dumps(mapping)}
    done = subprocess.run(["sh", "-c", 'exec "$0" 3>&1 1>&2', RUNTIMES[0].parent / RUNTIME["worker"]],
                          input=json.dumps(request).encode(), capture_output=True, timeout=60,
                          env={**os.environ, "LD_LIBRARY_PATH": RUNTIME["torch_lib"]})
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, said
    assert said[-1]["result"] == {"layers": [], "functions": []}
