"""A folder of src/ includes only those below it; CMake and ARCHITECTURE.md say the same."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest
from folders import (ROOT, cmake_dependencies, cycles, documented_folders, folder_of, includes, is_file_of_this_project,
                     named_files)

SRC = ROOT / "src"
# What included each other, directly or not, until the runtime was cut into libraries.
FORMER_CYCLE = {"convert/portability": "selection/context", "selection/fallback": "rewrite/host_attributes",
                "rewrite/sites": "source/layer_compiler", "source/substitutes": "rewrite/class_name",
                "rewrite/past_runs": "model/moved_model", "model/inputs": "verify/sandbox",
                "verify/originals": "convert/portability"}


def test_no_folders_include_each_other():
    assert cycles(includes(SRC)) == []


def plant(folder: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    for name, header in files.items():
        for path, text in [(name + ".cpp", f'#include "{header}.h"\n'), (header + ".h", "#pragma once\n")]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


def test_a_planted_cycle_is_found(tmp_path):
    planted = plant(tmp_path, {"hub/retry": "cache/layout", "cache/layout": "kernel/digest", "kernel/digest": "hub/retry",
                               "cli/fetch": "hub/retry"})
    assert cycles(includes(planted)) == [["cache", "hub", "kernel"]]


def test_the_former_cycle_would_be_found(tmp_path):
    planted = plant(tmp_path / "src", {f"runtime/{a}": f"runtime/{b}" for a, b in FORMER_CYCLE.items()})
    assert cycles(includes(planted)) == [[f"runtime/{name}" for name in
                                          ("convert", "model", "rewrite", "selection", "source", "verify")]]


def test_cmake_names_what_folders_include_and_no_more():
    used, named = includes(SRC), cmake_dependencies()
    assert named, "nothing was read of CMakeLists.txt"
    for folder, dependencies in named.items():
        undeclared = {include for other, found in used[folder].items() if other not in dependencies for include in found}
        assert not undeclared, f"{folder} includes what CMakeLists.txt does not name as its dependency"
        unused = dependencies - set(used[folder]) - {"base"}  # whose precompiled header all use
        assert not unused, f"CMakeLists.txt names dependencies of {folder} that no file includes"
    # programs (cli, worker) and shared libraries (client, cuda) stand above all that is linked into them
    assert {folder for folder in used if folder.startswith("runtime/")} - set(named) == {"runtime/python_stub"}


def test_architecture_lists_folders_from_the_top_down():
    used, rows = includes(SRC), documented_folders()
    assert sorted(rows) == sorted(used), "ARCHITECTURE.md's table and the folders of src/ differ"
    for place, folder in enumerate(rows):
        above = [other for other in used[folder] if rows.index(other) < place]
        assert not above, f"{folder} stands below what it includes in ARCHITECTURE.md: {above}"


PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_files_that_are_there(page):
    assert [name for name in sorted(named_files(page)) if not is_file_of_this_project(name)] == []


def test_a_file_that_is_gone_would_be_found():
    assert is_file_of_this_project("plan/site.h") and not is_file_of_this_project("plan/kernelizer.h")


def test_the_walk_of_one_norm_is_short():
    walk = (ROOT / "ARCHITECTURE.md").read_text().split("### One traced RMSNorm")[1].split("\n## ")[0].split("\n### ")[0]
    files = re.findall(r"^\| `([\w/]+\.cpp)` \|", walk, re.M)
    assert 10 < len(files) <= 20 and all((SRC / name).exists() for name in files)


def compile_command(build: pathlib.Path, folder: str) -> list[str] | None:
    """How a file of that folder is compiled, without the file and its outputs."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        sources = re.findall('#include "(.*)"', file.read_text()) if file.parent.name == "unity" else []
        if file.is_relative_to(SRC):
            sources.append(str(file.relative_to(SRC)))
        # those of tests/fuzz compile the worker's files too, with what they see themselves
        if "/tests/" in entry.get("output", entry["command"]) or not any(folder_of(path) == folder for path in sources):
            continue
        words = shlex.split(entry["command"])
        compiler = next(at for at, word in enumerate(words) if re.search(r"(\+\+|clang|gcc)[\d.-]*$", word))
        seen = [word for at, word in enumerate(words) if word.startswith(("-I", "-std")) or
                word == "-isystem" or words[at - 1] == "-isystem"]
        return [words[compiler], *seen]
    return None


@pytest.mark.parametrize("folder, header, allowed", [
    ("base", "base/file.h", True), ("base", "hub/url.h", False), ("kernel", "base/file.h", True),
    ("kernel", "cache/layout.h", False), ("cache", "hub/url.h", False), ("runtime/graph", "base/text.h", True),
    ("runtime/graph", "runtime/plan/run.h", False), ("runtime/source", "runtime/layers/replacement.h", False),
    ("runtime/model", "runtime/trial/sandbox.h", False), ("runtime/trace", "runtime/patterns/matcher.h", False),
    ("runtime/plan", "runtime/trace/region.h", True), ("runtime/plan", "worker/channel.h", False)])
def test_an_include_upward_does_not_compile(tmp_path, folder, header, allowed):
    build = pathlib.Path(os.environ["TWINKLE_BUILD_DIR"])
    command = compile_command(build, folder)
    if command is None and folder.startswith("runtime/"):
        pytest.skip("built without the runtime")
    # found, or not: what the header itself includes does not matter here, and LibTorch's takes seconds
    source = tmp_path / "planted.cpp"
    source.write_text(f'#if !__has_include("{header}")\n#error "not seen"\n#endif\n')
    assert (SRC / header).exists()
    answer = subprocess.run([*command, "-fsyntax-only", str(source)], cwd=build, capture_output=True, text=True)
    assert (answer.returncode == 0) == allowed, answer.stderr
    assert allowed or "not seen" in answer.stderr
