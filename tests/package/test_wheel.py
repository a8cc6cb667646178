"""The wheel of script/package, made of this build, in a new environment; script/test-package tries the real one."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TWINKLE_BUILD_DIR", ROOT / "build/release"))
LLAMA = ROOT / "examples/tiny-llama"
pytestmark = pytest.mark.skipif(not any(BUILD.glob("libexec/twinkle/*/libtwinkle.so")), reason="built without a runtime")


def run(*command, env=None, code=0):
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env={**bare, **(env or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    made = run(ROOT / "script/package", "--wheel", "--from", BUILD, tmp_path_factory.mktemp("wheel"),
               env={"HOME": os.environ.get("HOME", "/")})
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / "a name with blanks"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-deps", "--no-index",
        "--no-compile", wheel)
    return folder


@pytest.fixture(scope="module")
def with_torch(environment):
    """The same, with the torch of the tests, as if it had been installed there."""
    import torch
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "torch").symlink_to(pathlib.Path(torch.__file__).parent)
    (packages / "more.pth").write_text(str(pathlib.Path(torch.__file__).parents[1]))
    yield environment
    (packages / "torch").unlink()
    (packages / "more.pth").unlink()


def test_the_wheel_holds_what_its_record_says_and_no_place_of_libtorch(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith("/RECORD"))).decode().splitlines()
        assert [line.rsplit(",", 2)[0] for line in record] == names
        for wanted in ("/scripts/twinkle", "man1/twinkle-kernelize.1", "completions/twinkle", "_twinkle", "twinkle.fish",
                       "presets/patterns.toml", "libtwinkle_preload.so", "/twinkle-worker", "twinkleConfig.cmake", "/LICENSE"):
            assert any(name.endswith(wanted) for name in names), wanted
        for name in names:
            if name.endswith("/runtime.json"):
                assert "torch_lib" not in json.loads(archive.read(name))


def test_the_command_line_alone(environment):
    twinkle = environment / "bin/twinkle"
    assert run(twinkle, "--version").stdout.startswith("twinkle ")
    facts = json.loads(run(twinkle, "env", "--json").stdout)
    assert facts["runtimes"] and pathlib.Path(facts["kernels"], "twinkle-pack").is_dir()
    run(twinkle, "resolve", "--project", LLAMA, "-o", environment / "twinkle.map.json")
    found = run(environment / "bin/python", "-c", "import twinkle_kernels as t; print(t.runtime, t.prefix)").stdout
    assert found == f"None {environment}\n"


def test_a_model_is_kernelized_and_python_runs_it(with_torch, tmp_path):
    fast = tmp_path / "fast.pt"
    report = json.loads(run(with_torch / "bin/twinkle", "kernelize", LLAMA / "traced.pt", "-o", fast, "--inputs",
                            LLAMA / "inputs.pt", "--json").stdout)
    assert report["replaced"] > 0 and report["kept"] == 0
    script = ("import sys, torch, twinkle_kernels as t\n"
              "model, inputs = torch.jit.load(sys.argv[1]), torch.load(sys.argv[2])\n"
              "inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]\n"
              "print(t.runtime, tuple(model(*inputs).shape))")
    said = run(with_torch / "bin/python", "-c", script, fast, LLAMA / "inputs.pt").stdout
    assert said.startswith("torch") and said.endswith("(2, 128, 256)\n")


def test_a_torch_without_a_runtime_is_named(with_torch, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(
        "__version__ = '1.99.0'\nclass version: cuda = None\ndef compiled_with_cxx11_abi(): return True\n")
    said = run(with_torch / "bin/python", "-c", "import twinkle_kernels", env={"PYTHONPATH": str(tmp_path)}, code=1).stderr
    assert "no runtime for torch 1.99.0, only for torch 2." in said


def test_the_second_tree_gives_its_runtime_alone(wheel, tmp_path):
    """Two LibTorches: one program, one pack, two runtimes."""
    first, second = tmp_path / "first", tmp_path / "second"
    for prefix, runtime in ((first, "torch2.13-cpu"), (second, "torch2.11-cu130")):
        for name in (f"libexec/twinkle/{runtime}/runtime.json", "lib/twinkle/kernels/pack/build/stable/pack.so", "bin/twinkle",
                     "share/doc/page.md"):
            (prefix / name).parent.mkdir(parents=True, exist_ok=True)
            (prefix / name).write_text(prefix.name)
    shutil.rmtree(second / "share")
    made = run(sys.executable, ROOT / "script/make_wheel.py", "--version", "1.0", "--output", tmp_path, first, second).stdout
    with zipfile.ZipFile(made.strip()) as archive:
        content = {name.partition(".data/")[2]: archive.read(name).decode() for name in archive.namelist() if ".data/" in name}
    assert content == {"scripts/twinkle": "first", "data/lib/twinkle/kernels/pack/build/stable/pack.so": "first",
                       "data/libexec/twinkle/torch2.13-cpu/runtime.json": "first",
                       "data/libexec/twinkle/torch2.11-cu130/runtime.json": "second"}
