"""twinkle/c.h: from C, and from Python with ctypes; and the choice of layers against the Python package `kernels`."""

import json
import pathlib
import subprocess
import sys

import pytest
from conftest import PROGRAM, ROOT, Twinkle
from kernels_for_tests import EXAMPLES, RUNTIMES, needs_runtime

pytestmark = needs_runtime
HERE = pathlib.Path(__file__).parent
LIBRARY = RUNTIMES[0].parent / "libtwinkle.so" if RUNTIMES else None
MODEL = EXAMPLES / "traced.pt"
C_PROGRAM = PROGRAM.parents[1] / "tests/example_kernelize_c"


def run(*command, code=0):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def mapping(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mapping")
    done = Twinkle(folder)("resolve", "--project", EXAMPLES, "-o", "twinkle.map.json")
    assert done.code == 0, done.err
    return folder / "twinkle.map.json"


def in_python(tmp_path, body):
    """Runs code with `library` in a Python process that has torch, as a server would."""
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(f"import json, sys, torch\nsys.path.insert(0, {str(HERE)!r})\n"
                      f"from c_library import Library, TwinkleError\nlibrary = Library({str(LIBRARY)!r})\n{body}\n")
    return json.loads(run(sys.executable, "-W", "ignore", script).stdout)


def test_a_c_program_kernelizes_a_file(tmp_path, mapping):
    output = tmp_path / "fast.pt"
    report = json.loads(run(C_PROGRAM, MODEL, mapping, output).stdout)
    assert report["schema"] == "twinkle.kernelize/1"
    assert {site["status"] for site in report["sites"]} == {"replaced"} and output.exists()


def test_a_c_program_gets_the_error_and_its_code(tmp_path, mapping):
    done = run(C_PROGRAM, tmp_path / "none.pt", mapping, tmp_path / "fast.pt", code=3)
    assert "none.pt" in done.stderr and not (tmp_path / "fast.pt").exists()
    assert "usage" in run(C_PROGRAM, code=2).stderr
    broken = tmp_path / "broken.map.json"
    broken.write_text("{")
    assert "broken.map.json" in run(C_PROGRAM, MODEL, broken, tmp_path / "fast.pt", code=2).stderr
    assert not (tmp_path / "fast.pt").exists()


def test_kernels_of_a_model_are_loaded_for_a_server_that_loads_it_itself(tmp_path, mapping):
    fast = tmp_path / "fast.pt"
    run(C_PROGRAM, MODEL, mapping, fast)
    result = in_python(tmp_path, f"""
library.load_kernels({str(fast)!r})
tokens = torch.arange(8).reshape(2, 4)
same = torch.allclose(torch.jit.load({str(fast)!r})(tokens), torch.jit.load({str(MODEL)!r})(tokens),
                      rtol=1e-4, atol=1e-5)
try:
    library.load_kernels({str(fast)!r}, "/nonexistent")  # they are there already
    again = True
except TwinkleError as error:
    again = error.error
print(json.dumps([same, again]))""")
    assert result == [True, True]


def test_errors_belong_to_the_last_failing_call(tmp_path):
    result = in_python(tmp_path, """
found = [library.c.twinkle_last_error().decode(), library.c.twinkle_last_error_json().decode()]
for call in (lambda: library.register("none.toml"), lambda: library.kernelize("a.pt", ""),
             lambda: library.kernelize("a.pt", "b.pt", mode=3), lambda: library.kernelize("a.pt", "b.pt", speed="fast"),
             lambda: library.load_kernels("")):
    try:
        call()
    except TwinkleError as error:
        found.append([error.code, error.error["code"]])
library.c.twinkle_free(None)
print(json.dumps(found))""")
    assert result == ["", "{}", [3, "not-found"], [2, "malformed"], [2, "malformed"], [2, "malformed"], [2, "malformed"]]


def test_the_layer_of_every_mode_and_flag_is_that_of_the_python_package(tmp_path):
    pytest.importorskip("kernels")
    done = run(sys.executable, HERE / "modes_script.py", LIBRARY, tmp_path)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["different"] == []
    assert (result["cases"], result["more"], result["outcomes"]) == (1024, 92, 22)
