"""What only a loaded library shows: operators that its strings do not, and devices that it has no kernel for."""

import subprocess

import pytest
from kernels_for_tests import OPERATORS, RMS_NORM, TORCH_LIB, calling, compiled_kernel, models, needs_runtime

pytestmark = needs_runtime

# Nothing computes the one; the schema of the other is no string of the library.
MORE = r"""
    CHECKED(aoti_torch_library_def(library, "elsewhere(Tensor x) -> Tensor"));
    std::string schema = "split(Tensor";
    schema += " x) -> Tensor";
    CHECKED(aoti_torch_library_def(library, schema.c_str()));
    CHECKED(aoti_torch_library_impl(kernels, "split", copy));
    return 0;
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operator-facts")
    (folder / "operators.cpp").write_text("#include <string>\n" + OPERATORS.replace("    return 0;\n", MORE, 1))
    subprocess.run(["g++", "-std=c++17", "-O0", "-shared", "-fPIC", "-DINITIALIZER=", '-DNAMESPACE="misbehaving"', "-o",
                    folder / "operators.so", folder / "operators.cpp", "-Wl,--no-as-needed", f"-L{TORCH_LIB}",
                    "-ltorch_cpu", "-lc10"], check=True, timeout=120)
    return folder / "operators.so"


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt", models.parent / "inputs/hidden.pt"


@pytest.mark.parametrize("more", [[], ["--verify"]])
def test_an_operator_without_a_kernel_for_the_device(twinkle, small, library, more):
    compiled_kernel(twinkle.folder, library, source=calling("elsewhere"))
    done = twinkle("kernelize", small[0], "--inputs", small[1], *more, "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    assert (done.json["replaced"], done.json["kept"]) == (0, 2)
    assert all("misbehaving::elsewhere has no kernel for cpu" in site["because"] for site in done.json["sites"])
    assert twinkle("run", "fast.pt", "--inputs", small[1]).code == 0
    done = twinkle("kernelize", small[0], "--fallback", "no-layer", "-o", "fast.pt", "--json")
    assert done.code == 6 and "no kernel for cpu" in done.err


def test_an_operator_that_is_only_called_in_a_branch(twinkle, small, library):
    """What is called on another device need not be there on this one."""
    source = (RMS_NORM.replace("from torch import nn\n", "from torch import nn\n\nfrom ._ops import ops\n")
              .replace("        input_dtype", "        if hidden_states.size(0) > 1000:\n"
                       "            hidden_states = ops.elsewhere(hidden_states)\n        input_dtype"))
    compiled_kernel(twinkle.folder, library, source=source)
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 2, done.err


def test_an_operator_that_no_string_shows(twinkle, small, library):
    build = compiled_kernel(twinkle.folder, library, source=calling("split"))
    assert "split" not in [op["name"] for op in twinkle("inspect", build, "--json").json["operators"]]
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 2, done.err
    assert done.json["verified"]
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".")
    assert done.code == 0, done.err
