"""Models for machines that are not this one: no kernel is loaded, and what does not fit is refused before anything is.
GPUs are those of a driver made here."""

import json
import os
import re
import shutil
import subprocess
import zipfile

import pytest
from conftest import PROGRAM, ROOT, environment
from kernels_for_tests import (EXAMPLES, MAJOR, MINOR, OPERATORS, RMS_NORM, VARIANT, calling, compiled_kernel, needs_runtime,
                              python_kernel)

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
OTHER_CPU = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
PACK_GPUS = "NVIDIA H200,9.0,150000000000;Tesla T4,7.5,16000000000"


def code_of(path):
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if "/code/" in name and name.endswith(".py"))
        return "\n".join(archive.read(name).decode() for name in names)


def markers_of(path):
    return sorted(set(re.findall(r'"(twinkle\.kernel/1 [^"]*)"', code_of(path))))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "operators.cpp").write_text(OPERATORS)
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-O0", "-w", "-DINITIALIZER=", '-DNAMESPACE="misbehaving"',
                    folder / "operators.cpp", "-o", folder / "operators.so"], check=True)
    return folder / "operators.so"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", ROOT / "tests/target/fake_libcuda.c", "-o",
                    folder / "libcuda.so.1"], check=True)
    return {"TWINKLE_LIBCUDA": folder / "libcuda.so.1"}


def rename(build, variant, **backend):
    """The build as one for another machine."""
    target = build.parent / variant
    build.rename(target)
    metadata = json.loads((target / "metadata.json").read_text())
    metadata["backend"].update(backend)
    (target / "metadata.json").write_text(json.dumps(metadata))
    return target


def test_a_model_for_this_machine_is_the_same_without_loading(twinkle):
    model, inputs = EXAMPLES / "traced.pt", EXAMPLES / "inputs.pt"
    assert twinkle("kernelize", model, "-o", "loaded.pt").code == 0
    done = twinkle("kernelize", model, "-o", "declared.pt", "--target", "here", "--json")
    assert done.code == 0, done.err
    assert done.json["replaced"] == 20 and not done.json["warnings"] and not done.json["verified"]
    folder = twinkle.folder
    assert markers_of(folder / "loaded.pt") == markers_of(folder / "declared.pt") != []
    assert code_of(folder / "loaded.pt") == code_of(folder / "declared.pt")
    results = []
    for name in ("loaded", "declared"):
        assert twinkle("run", f"{name}.pt", "--inputs", inputs, "-o", f"{name}.out").code == 0
        results.append(torch.load(folder / f"{name}.out", weights_only=True))
    assert torch.equal(*results)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here (script/setup installs it)")
def test_no_library_of_a_kernel_is_opened(twinkle):
    assert twinkle("resolve", "-o", "map.json").code == 0
    for more, opened in ((("--target", "here"), False), ((), True)):
        done = subprocess.run(["strace", "-f", "-e", "trace=open,openat,openat2,execve", "-o", "trace", PROGRAM,
                               "kernelize", EXAMPLES / "traced.pt", "-o", "fast.pt", "--map", "map.json", *more],
                              cwd=twinkle.folder, capture_output=True, env=environment(), timeout=60)
        assert done.returncode == 0, done.stderr
        trace = (twinkle.folder / "trace").read_text()
        assert trace.count("execve(") == 2 and "libtorch_cpu.so" in trace
        assert bool(re.search(r'twinkle-pack[^"]*\.so"', trace)) == opened
        assert bool(re.search(r'twinkle-pack[^"]*layers\.py"', trace))


def test_the_folder_of_a_bundle_is_one_of_kernels(twinkle, library):
    build = compiled_kernel(twinkle.folder, library, source=calling("copy"))
    assert twinkle("resolve", "--bundle", "bundle").code == 0
    made = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt", "--map", "bundle/twinkle.map.json", "--json")
    assert made.code == 0 and made.json["replaced"] == 5, made.err
    shutil.rmtree(build)
    run = ("run", "fast.pt", "--inputs", EXAMPLES / "inputs.pt", "-o", "out.pt")
    assert twinkle(*run).code == 3
    assert twinkle(*run, "--kernels", "bundle").code == 0
    assert twinkle(*run, env={"TWINKLE_KERNELS": "bundle"}).code == 0


def test_operators_that_write_are_declared_as_a_library_has_them(twinkle, library):
    """As most of the Hub do: "Tensor! out"."""
    source = calling("copy_into").replace("ops.copy_into(hidden_states)", "copied(hidden_states)")
    source = source.replace("class ", "def copied(x: torch.Tensor) -> torch.Tensor:\n    out = torch.empty_like(x)\n"
                            "    ops.copy_into(out, x)\n    return out\n\n\nclass ", 1)
    compiled_kernel(twinkle.folder, library, source=source)
    model, inputs = EXAMPLES / "scripted.pt", EXAMPLES / "inputs.pt"
    for name, target in {"loaded": (), "declared": ("--target", "here")}.items():
        done = twinkle("kernelize", model, "-o", f"{name}.pt", *target, "--json")
        assert done.code == 0 and done.json["replaced"] == 5, done.out + done.err
    assert code_of(twinkle.folder / "loaded.pt") == code_of(twinkle.folder / "declared.pt")
    assert twinkle("run", "declared.pt", "--inputs", inputs, "-o", "out.pt", "--kernels", ".").code == 0


def test_for_another_processor(twinkle, library):
    """A library that this machine cannot load: whatever is in it behind its schemas."""
    build = compiled_kernel(twinkle.folder, library, source=calling("copy"))
    there = rename(build, VARIANT.replace(os.uname().machine, OTHER_CPU))
    for file in there.glob("*.so"):  # of another processor, as far as the loader can tell
        data = bytearray(file.read_bytes())
        data[18:20] = (183 if OTHER_CPU == "aarch64" else 62).to_bytes(2, "little")
        file.write_bytes(data)
    metadata = json.loads((there / "metadata.json").read_text())
    del metadata["digest"]
    (there / "metadata.json").write_text(json.dumps(metadata))
    target = f"torch={MAJOR}.{MINOR},backend=cpu,cpu={OTHER_CPU}"
    assert twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt").code == 3
    done = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt", "--target", target, "--json")
    assert done.code == 0, done.err
    assert done.json["replaced"] == 5
    (marker,) = markers_of(twinkle.folder / "fast.pt")
    assert f"variant={there.name}" in marker and "namespace=misbehaving" in marker
    assert "ops.misbehaving.copy(" in code_of(twinkle.folder / "fast.pt")
    # The same from a mapping that was made somewhere else; another machine's is refused.
    assert twinkle("resolve", "--target", target, "--bundle", "bundle").code == 0
    again = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "again.pt", "--target", target,
                    "--map", "bundle/twinkle.map.json")
    assert again.code == 0, again.err
    assert code_of(twinkle.folder / "again.pt") == code_of(twinkle.folder / "fast.pt")
    other = twinkle("kernelize", EXAMPLES / "scripted.pt", "--target", "here", "--map", "bundle/twinkle.map.json",
                    "--json", "-o", "x.pt")
    assert other.code == 2 and "cpu is " + OTHER_CPU in other.error["why"]


def test_for_a_gpu(twinkle, library):
    build = compiled_kernel(twinkle.folder, library, source=calling("copy"))
    rename(build, VARIANT.replace("-cpu-", "-cu130-"), type="cuda", archs=["8.0", "9.0"])
    target = f"torch={MAJOR}.{MINOR},backend=cu130,arch="
    model = EXAMPLES / "scripted.pt"
    done = twinkle("kernelize", model, "-o", "fast.pt", "--target", target + "9.0", "--dtype", "bfloat16", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert report["device"] == "cuda" and report["replaced"] == 5 and report["dtype"] == "bfloat16"
    assert "torch.device(" not in code_of(twinkle.folder / "fast.pt")
    assert "-cu130-" in markers_of(twinkle.folder / "fast.pt")[0]
    refused = twinkle("kernelize", model, "-o", "x.pt", "--target", target + "7.5", "--json")
    assert refused.code == 3 and "it is built for 8.0, 9.0, the GPU of the target is 7.5" in refused.error["why"]
    assert twinkle("resolve", "--target", target + "9.0", "--bundle", "bundle").code == 0
    refused = twinkle("kernelize", model, "-o", "x.pt", "--target", target + "7.5", "--map",
                      "bundle/twinkle.map.json", "--json")
    assert refused.code == 6 and "built for 8.0, 9.0, the target is 7.5" in refused.error["why"]
    assert not (twinkle.folder / "x.pt").exists()


def test_a_target_by_name_beside_a_mapping(twinkle):
    (twinkle.folder / "twinkle.toml").write_text(
        'presets = ["transformers"]\n'
        f'[targets.prod]\ntorch = "{MAJOR}.{MINOR}"\nbackend = "cpu"\n'
        f'[targets.other]\ntorch = "{MAJOR}.{MINOR}"\nbackend = "cu130"\narch = "9.0"\n')
    assert twinkle("resolve", "--target", "prod", "-o", "map.json").code == 0
    given = ("kernelize", EXAMPLES / "traced.pt", "--map", "map.json", "--json", "--target")
    done = twinkle(*given, "prod")
    assert done.code == 0 and done.json["replaced"] == 7, done.err
    for _ in range(2):  # a name is no file, not even where one is called so
        assert twinkle(*given, "prod", "-o", "prod").code == 0
    (twinkle.folder / "prod").unlink()
    (twinkle.folder / "here.json").write_text(twinkle("env", "--json").out)
    read = twinkle(*given, "here.json", "--dry-run", "--report", "here.json")
    assert read.code == 2 and "overwrite what is read" in read.error["what"]
    refused = twinkle(*given, "other")
    assert refused.code == 2 and "backend is cpu, not cu130" in refused.error["why"]
    unknown = twinkle(*given, "prd")
    assert unknown.code == 3 and "prod" in unknown.error["hint"]
    # What is no name needs no manifest.
    (twinkle.folder / "env.json").write_text(twinkle("env", "--json").out)
    (twinkle.folder / "twinkle.toml").write_text('[targets]\nprod = "torch=2.13"\n')
    assert twinkle(*given, "env.json").code == 0
    broken = twinkle(*given, "prod")
    assert broken.code == 2 and "write it as a table" in broken.error["hint"]


def test_a_gpu_that_no_kernel_is_built_for(twinkle, library):
    """The kernel has a build for the CPU alone."""
    compiled_kernel(twinkle.folder, library, source=calling("copy"))
    target = ("--target", f"torch={MAJOR}.{MINOR},backend=cu130,arch=9.0")
    resolved = twinkle("resolve", *target)
    assert resolved.code == 0 and "for cuda runs on the target" in resolved.err
    strict = twinkle("resolve", *target, "--strict", "--json")
    assert strict.code == 3 and "for cuda runs on the target" in strict.error["what"]
    manifest = twinkle.folder / "twinkle.toml"
    bound = manifest.read_text()
    manifest.write_text(bound.replace("repo_path", 'device = "cpu"\nrepo_path') + '\n[kernels]\nk = { path = "kernel" }\n')
    meant = twinkle("resolve", *target, "--strict")
    assert meant.code == 0 and "warning" not in meant.err, meant.err
    manifest.write_text(bound)
    made = twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "fast.pt", *target, "--json")
    assert made.code == 0 and made.json["replaced"] == 0 and made.json["device"] == "cuda"
    assert [text for text in made.json["warnings"] if text.startswith("nothing was replaced: only the model's device")]
    for device, why in ("rocm", "cpu and cuda"), ("cuda:1", None), ("cpu", None):
        done = twinkle("kernelize", EXAMPLES / "traced.pt", "-o", f"{device[:3]}.pt", *target, "--device", device, "--json")
        assert done.code == (2 if why else 0), done.err
        assert not why or why in done.error["why"]
    assert not (twinkle.folder / "roc.pt").exists()


def test_a_gpu_that_the_build_has_no_code_for(twinkle, library, driver):
    """Where the kernels are to be loaded, the driver says what is there."""
    build = compiled_kernel(twinkle.folder, library, source=calling("copy"))
    rename(build, VARIANT.replace("-cpu-", "-cu130-"), type="cuda", archs=["8.0", "9.0"])
    target = f"torch={MAJOR}.{MINOR},backend=cu130,arch=9.0"
    assert twinkle("resolve", "--target", target, "-o", "map.json").code == 0
    assert twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt", "--target", target).code == 0
    here = {**driver, "FAKE_CUDA": "Tesla T4,7.5,16000000000"}
    for command in (("kernelize", EXAMPLES / "scripted.pt", "-o", "x.pt", "--map", "map.json", "--device", "cuda"),
                    ("run", "fast.pt", "--inputs", EXAMPLES / "inputs.pt", "--kernels", ".")):
        refused = twinkle(*command, "--json", env=here)
        assert refused.code == 6, (command, refused.out)
        assert "no code for the GPU" in refused.error["what"]
        assert refused.error["why"] == "it is built for 8.0, 9.0; here is Tesla T4 (7.5)"
    # One of several is enough.
    done = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "x.pt", "--map", "map.json", "--device", "cuda",
                   env={**driver, "FAKE_CUDA": PACK_GPUS})
    assert done.code == 0, done.err


def test_gpus_of_different_kinds_in_one_machine(twinkle, driver):
    """A number names one of them, and its own capability decides."""
    python_kernel(twinkle.folder, RMS_NORM, more='device = "cuda"\ncapability = "70-80"\n')
    here = {**driver, "FAKE_CUDA": PACK_GPUS}
    assert twinkle("resolve", "--target", f"torch={MAJOR}.{MINOR},backend=cu130", "-o", "map.json").code == 0
    for device, replaced in (("cuda", 0), ("cuda:0", 0), ("cuda:1", 5)):
        done = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "x.pt", "--map", "map.json", "--device", device,
                       "--json", env=here)
        assert done.code == 0, done.err
        assert done.json["replaced"] == replaced, device
        assert replaced or all("no capability range" in site["because"] for site in done.json["sites"])


def test_verify_runs_what_target_does_not_load(twinkle):
    done = twinkle("kernelize", EXAMPLES / "traced.pt", "--target", "here", "--verify", "--inputs",
                   EXAMPLES / "inputs.pt", "--json")
    assert done.code == 2 and "--target loads none" in done.error["what"]


def test_what_is_kernelized_already(twinkle):
    assert twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "once.pt").code == 0
    again = twinkle("kernelize", "once.pt", "-o", "twice.pt", "--target", "here", "--json")
    assert again.code == 0 and "it is kernelized already" in again.out
    (twinkle.folder / "twinkle.toml").write_text("presets = []\n")
    other = twinkle("kernelize", "once.pt", "-o", "twice.pt", "--target", "here", "--json")
    assert other.code == 6 and "twinkle-pack" in other.error["what"]


def test_env_shows_what_the_driver_says(twinkle, driver):
    facts = twinkle("env", "--json", env={**driver, "FAKE_CUDA": PACK_GPUS}).json
    assert facts["cuda_driver"] == "13.1"
    assert facts["gpus"] == [{"name": "NVIDIA H200", "arch": "9.0", "memory_bytes": 150000000000},
                             {"name": "Tesla T4", "arch": "7.5", "memory_bytes": 16000000000}]
    shown = twinkle("env", env={**driver, "FAKE_CUDA": PACK_GPUS}).out
    assert "NVIDIA H200" in shown and "7.5" in shown
    assert twinkle("env", "--json", env={**driver, "FAKE_CUDA_FAILS": "cuInit"}).json["gpus"] == []
    # A target for the GPU of this machine, of a LibTorch that another has.
    done = twinkle("resolve", "--target", "backend=cu130", "-o", "-", env={**driver, "FAKE_CUDA": PACK_GPUS})
    assert done.code in (0, 3) and ("arch" not in done.out or json.loads(done.out)["target"]["arch"] == "9.0")
