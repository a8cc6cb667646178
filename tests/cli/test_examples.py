"""The C++ examples, built against the public headers and libtwinkle alone."""

import subprocess

import pytest
from conftest import PROGRAM, ROOT


def program(name):
    path = PROGRAM.parents[1] / "tests" / name
    if not path.exists():
        pytest.skip(f"{path} is not built (the runtime is off)")
    return path


def test_kernelize_in_memory(tmp_path):
    mapping = tmp_path / "map.json"
    subprocess.run(
        [PROGRAM, "-q", "resolve", "--project", ROOT / "examples/tiny-llama", "-o", mapping],
        check=True,
        capture_output=True,
    )
    for model in ["traced", "scripted_bfloat16"]:
        done = subprocess.run(
            [
                program("example_in_memory"),
                ROOT / f"examples/tiny-llama/{model}.pt",
                mapping,
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert sum(line.startswith("replaced") for line in lines) == 7
        assert lines[-1] == "[2, 64, 256]"


def test_errors_reach_the_program(tmp_path):
    missing = tmp_path / "no.json"
    done = subprocess.run(
        [program("example_in_memory"), "model.pt", missing],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert str(missing) in done.stderr or "no.json" in done.stderr
