"""What only a loaded library shows: operators that its strings do not, and devices that it has no kernel for."""

import json
import subprocess

import pytest
from kernels_for_tests import (MAJOR, MINOR, OPERATORS, RMS_NORM, TORCH_LIB, calling, compiled_kernel, models,
                               needs_runtime)

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


# What kernel-builder gives every library, so that Python can import it.
ENTRY = """
extern "C" void* PyModule_Create2(void*, int);
extern "C" void* PyInit__misbehaving(void) { return PyModule_Create2(nullptr, 1013); }
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operator-facts")
    (folder / "operators.cpp").write_text("#include <string>\n" + OPERATORS.replace("    return 0;\n", MORE, 1) + ENTRY)
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
    facts = twinkle("inspect", build, "--json").json
    assert "split" not in [op["name"] for op in facts["operators"]] and not facts["operators_complete"]
    assert facts["layers"][0]["because"] == "not compiled: the schema of the operator split is not known"
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 2, done.err
    assert done.json["verified"]
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".")
    assert done.code == 0, done.err


def test_inspect_compiles_with_the_operators_that_it_has_loaded(twinkle, library):
    build = compiled_kernel(twinkle.folder, library, source=calling("split"))
    facts = twinkle("inspect", build, "--load", "--json").json
    [split] = [op for op in facts["operators"] if op["name"] == "split"]
    assert split["schema"] == "split(Tensor x) -> Tensor" and split["keys"] == ["CPU"] and split["keys_certain"]
    assert facts["operators_complete"]
    assert facts["layers"][0]["usable"] and facts["layers"][0]["compiled_for"].startswith("(")
    shown = twinkle("inspect", build, "--load").out
    assert "perhaps more" not in shown and "misbehaving::split" in shown


def operators_of(twinkle):
    mapping = json.loads((twinkle.folder / "twinkle.map.json").read_text())
    decisions = [one for one in mapping["decisions"] if one["what"] == "operators of kernel for cpu"]
    return [op["name"] for op in mapping["kernels"][0]["operators"]], decisions


def test_resolve_asks_for_operators_that_no_string_shows(twinkle, small, library):
    compiled_kernel(twinkle.folder, library, source=calling("split"))
    assert twinkle("resolve").code == 0
    names, [decision] = operators_of(twinkle)
    assert "split" in names and "split" in decision["chosen"]
    done = twinkle("kernelize", small[0], "--map", "twinkle.map.json", "--inputs", small[1], "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 2, done.err

    alone = twinkle("resolve", "--target", f"torch={MAJOR}.{MINOR},backend=cpu",
                    env={"TWINKLE_LIBEXEC": str(twinkle.folder / "none")})
    assert alone.code == 0, alone.err
    names, [decision] = operators_of(twinkle)
    assert "split" not in names and decision["chosen"] is None
    assert decision["because"].endswith("which loading it tells: there is no LibTorch here")


def test_resolve_asks_nothing_where_strings_show_what_is_called(twinkle, library):
    compiled_kernel(twinkle.folder, library, source=calling("elsewhere"))
    assert twinkle("resolve").code == 0
    names, decisions = operators_of(twinkle)
    assert "elsewhere" in names and decisions == []


def test_resolve_asks_for_an_operator_that_is_bound(twinkle, library):
    """It is an operator of the kernel, whatever its strings show; what is none is refused by its name."""
    compiled_kernel(twinkle.folder, library, source=calling("elsewhere"))
    bound = ('presets = []\n[kernels]\nkernel = { path = "kernel" }\n[functions.one]\n'
             'target_module = "my_pkg.ops"\nfunc_impl = "op:kernel::split"\n')
    (twinkle.folder / "twinkle.toml").write_text(bound)
    done = twinkle("resolve", "--json")
    assert done.code == 0, done.err
    names, [decision] = operators_of(twinkle)
    assert "split" in names and "split" in decision["chosen"]
    (twinkle.folder / "twinkle.toml").write_text(bound.replace("::split", "::splot"))
    done = twinkle("resolve", "--json")
    assert done.code == 3 and done.error["what"] == 'no operator "splot" in kernel'
    assert "split" in done.error["why"]


def test_a_mapping_for_another_machine_has_the_operators(twinkle, small, library):
    """They cannot be asked for there; here a machine like this one is."""
    compiled_kernel(twinkle.folder, library, source=calling("split"))
    done = twinkle("kernelize", small[0], "--target", "here", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 2, done.err
