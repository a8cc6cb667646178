"""An installed tree, moved to another place: the program in it, and C and C++ programs built against it."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import PROGRAM, ROOT
from kernels_for_tests import EXAMPLES, RUNTIME, TORCH_LIB, needs_runtime

BUILD = PROGRAM.parents[1]
pytestmark = [needs_runtime, pytest.mark.skipif(not (BUILD / "cmake_install.cmake").exists(), reason="no build tree")]
# What a user has who never saw the build.
BARE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HF_HUB_OFFLINE": "1"}


def run(*command, env=None, code=0):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env={**BARE, **(env or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """As from a package: without the place of LibTorch; installed, then moved."""
    folder = tmp_path_factory.mktemp("install")
    for component in ("tool", "runtime", "dev"):
        run("cmake", "--install", BUILD, "--prefix", folder / "first", "--component", component,
            env={"HOME": os.environ.get("HOME", "/")})
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


def test_a_moved_tree_works_with_a_libtorch_that_is_named(prefix, tmp_path):
    twinkle = prefix / "bin/twinkle"
    model = EXAMPLES / "traced.pt"
    missing = run(twinkle, "run", model, "--inputs", "int64[1,8]:0..64", code=3)
    assert f"LibTorch {'.'.join(RUNTIME['torch'].split('.')[:2])}" in missing.stderr and "TWINKLE_TORCH" in missing.stderr
    torch = {"TWINKLE_TORCH": str(TORCH_LIB.parent)}
    fast = tmp_path / "fast.pt"
    report = json.loads(run(twinkle, "kernelize", model, "-o", fast, "--json", env=torch).stdout)
    assert report["replaced"] > 0 and report["kept"] == 0
    done = json.loads(run(twinkle, "run", fast, "--inputs", "int64[1,8]:0..64", "--json", env=torch).stdout)
    assert done["outputs"][0]["shape"][:2] == [1, 8]


def test_what_needs_no_libtorch_works_without_one(prefix):
    assert run(prefix / "bin/twinkle", "--version").stdout.startswith("twinkle ")
    facts = json.loads(run(prefix / "bin/twinkle", "env", "--json").stdout)
    assert facts["runtimes"][0]["torch"] == RUNTIME["torch"]
    assert (prefix / "share/man/man1/twinkle-kernelize.1").exists()


def test_another_libtorch_under_the_name_is_refused(prefix, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libtorch.so").touch()
    (tmp_path / "build-version").write_text("1.0.0\n")
    done = run(prefix / "bin/twinkle", "run", EXAMPLES / "traced.pt", "--inputs", "int64[1,8]:0..64",
               env={"TWINKLE_TORCH": str(tmp_path)}, code=6)
    assert "1.0.0" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def programs(prefix, tmp_path_factory):
    """The examples, built with find_package(twinkle) as their README says."""
    build = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples/cpp", build / "source/cpp")
    shutil.copytree(ROOT / "examples/c", build / "source/c")
    shutil.copy(ROOT / "examples/CMakeLists.txt", build / "source")
    # LibTorch's headers take long: one program with them is enough, the others are built in tests/.
    run("cmake", "-S", build / "source", "-B", build / "made", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DTWINKLE_TORCH={TORCH_LIB.parent}", "-DCMAKE_CXX_FLAGS=-O0")
    run("cmake", "--build", build / "made", "--target", "in_memory", "fetch_kernel", "kernelize_c")
    return build / "made"


def test_programs_built_against_the_tree(prefix, programs, tmp_path):
    mapping = tmp_path / "twinkle.map.json"
    run(prefix / "bin/twinkle", "resolve", "--project", EXAMPLES, "-o", mapping)
    shown = run(programs / "in_memory", EXAMPLES / "traced.pt", mapping).stdout
    assert "replaced" in shown
    fast = tmp_path / "fast.pt"
    report = json.loads(run(programs / "kernelize_c", EXAMPLES / "traced.pt", mapping, fast).stdout)
    assert report["replaced"] > 0 and fast.exists()
    assert run(programs / "fetch_kernel", code=2).stderr.startswith("usage")


def test_find_package_says_what_is_missing(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
                                             "find_package(twinkle REQUIRED)\n")
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}", code=1)
    assert "TWINKLE_TORCH" in done.stderr
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
                                             "find_package(twinkle REQUIRED COMPONENTS hub)\n")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "c", f"-DCMAKE_PREFIX_PATH={prefix}")
