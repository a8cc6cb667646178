"""inspect of models: what they are, what kernels could take, what they need, also where that is not here."""

import json
import os
import shutil
import subprocess
import zipfile

import pytest
from kernels_for_tests import (EXAMPLES, MLP, NORM, OPERATORS, PATIENCE, PREFIX, RMS_NORM, calling, compiled_kernel, libraries, made_models,
                               metadata, models, needs_runtime, outcome, python_kernel, sha256)

pytestmark = needs_runtime
LINEAR = "torch.nn.modules.linear.Linear"
LLAMA = "transformers.models.llama.modeling_llama."


def inspected(twinkle, model, *more, **options):
    done = twinkle("inspect", model, "--json", *more, **options)
    assert done.code == 0, done.err
    assert done.json["schema"] == "twinkle.inspect/1"
    return done.json


def by_name(entries, key="name"):
    found = {entry[key]: entry for entry in entries}
    assert len(found) == len(entries)
    return found


def rewrite(source, target, change):
    """The same archive with other code."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name.endswith(".py") else old.read(name))


def without_markers(code):
    return b"\n".join(line for line in code.split(b"\n") if b"needs_kernel" not in line and b"twinkle.kernel" not in line)


@pytest.fixture(scope="module")
def small(models):
    return models / "two_of_a_kind.pt"


@pytest.fixture
def copying(twinkle, small, libraries):
    """A model that calls misbehaving::copy, its kernel in the folder `kernel`, and no manifest any more."""
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("copy"))
    assert twinkle("kernelize", small, "-o", "fast.pt").code == 0
    (twinkle.folder / "twinkle.toml").unlink()
    return twinkle.folder / "fast.pt"


@pytest.mark.parametrize("name, kind", [("tiny_llama", "scripted"), ("frozen", "frozen"), ("qwen2", "traced"),
                                        ("two_of_a_kind", "scripted"), ("two_of_a_kind_traced", "traced")])
def test_kinds(twinkle, models, name, kind):
    found = inspected(twinkle, models / f"{name}.pt")
    assert found["kind"] == kind and found["loaded"] and found["because"] is None
    assert found["operators"] == [] and found["kernels"] == [] and found["unreadable"] == []


def test_a_model_in_training(twinkle, models):
    assert inspected(twinkle, models / "in_training.pt")["training"]


def test_classes_of_a_trace(twinkle):
    found = inspected(twinkle, EXAMPLES / "traced.pt")
    classes = by_name(found["classes"])
    assert not any("mangle" in name or "__torch__" in name for name in classes)
    norm = classes[LLAMA + "LlamaRMSNorm"]
    assert norm["instances"] == 5 and norm["types"] == 5 and norm["origin"] == "traced"
    assert norm["example"] == "model.model.layers.0.input_layernorm"
    attributes = by_name(norm["attributes"])
    assert attributes["weight"]["value"] == "float32[128]" and attributes["weight"]["from"] == "parameter"
    # Tracing has dropped epsilon; its value is in the graph.
    assert attributes["variance_epsilon"]["from"] == "graph" and float(attributes["variance_epsilon"]["value"]) > 0
    assert norm["methods"] == [{"name": "forward", "signature": norm["methods"][0]["signature"]}]
    assert norm["methods"][0]["signature"].startswith("forward(self, ")
    assert "aten::rsqrt" in norm["graph"]["text"] and not norm["graph"]["cut"]
    assert classes[LLAMA + "LlamaMLP"]["submodules"]["down_proj"] == "torch.nn.modules.linear.Linear"


def test_what_the_bundled_kernels_take(twinkle):
    bindings = by_name(inspected(twinkle, EXAMPLES / "traced.pt")["bindings"], "class")
    norm = bindings[LLAMA + "LlamaRMSNorm"]
    # The other four are computed by the formula of an addition and a norm.
    assert (norm["by"], norm["kernel"], norm["sites"], norm["fits"]) == ("binding", "twinkle-pack: RMSNorm", 1, 1)
    assert {one["name"]: one["from"] for one in norm["attributes"]} == {"weight": "saved", "variance_epsilon": "graph"}
    assert norm["kept"] == [] and bindings[LLAMA + "LlamaMLP"]["fits"] == 2
    assert set(bindings) == {LLAMA + "LlamaRMSNorm", LLAMA + "LlamaMLP", "add_rms_norm", "rotary", "linear3", LINEAR,
                             "scaled_dot_product_attention"}


def test_a_class_that_only_has_the_name_of_a_layer(twinkle):
    """Nothing is guessed from a name; but it is said, and how to bind it."""
    found = inspected(twinkle, EXAMPLES / "scripted.pt")
    norm = by_name(found["bindings"], "class")[NORM]
    assert (norm["by"], norm["sites"], norm["fits"]) == ("name", 1, 1)  # the others: by the formula of additions and norms
    shown = twinkle("inspect", EXAMPLES / "scripted.pt").out
    assert f'classes = ["{NORM}"]' in shown and "--verify" in shown


def test_the_bindings_of_the_manifest(twinkle):
    found = inspected(twinkle, EXAMPLES / "scripted.pt", "--project", EXAMPLES)
    bindings = by_name(found["bindings"], "class")
    assert {name: one["by"] for name, one in bindings.items()} == {NORM: "binding", MLP: "binding", LINEAR: "preset"}
    assert found["manifest"].endswith("twinkle.toml")


def test_why_a_layer_does_not_fit(twinkle, models, small):
    python_kernel(twinkle.folder, RMS_NORM.replace("self.variance_epsilon)", "self.no_such_attribute)"))
    norm = by_name(inspected(twinkle, small)["bindings"], "class")[NORM]
    assert (norm["sites"], norm["fits"]) == (2, 0)
    kept, = norm["kept"]
    line = 1 + RMS_NORM[: RMS_NORM.index("self.variance_epsilon)")].count("\n")
    assert kept["where"] == f"layers.py:{line}" and "no_such_attribute" in kept["because"]
    assert {one["name"]: one["from"] for one in norm["attributes"]}["no_such_attribute"] == "lost"
    assert "does not fit" in twinkle("inspect", small).out and "has lost no_such_attribute" in twinkle("inspect", small).out


def test_what_no_manifest_can_supply_is_not_asked_for(twinkle, models, small):
    """The manifest has numbers, flags and texts; this is a tensor."""
    python_kernel(twinkle.folder, RMS_NORM.replace("weight", "scales"))
    norm = by_name(inspected(twinkle, small)["bindings"], "class")[NORM]
    assert {one["name"]: one["from"] for one in norm["attributes"]}["scales"] == "nowhere"
    kept, = norm["kept"]
    assert "has no attribute scales" in kept["because"]
    assert "attributes = {" not in kept["because"]
    shown = twinkle("inspect", small).out
    assert "has no scales" in shown and "attributes = {" not in shown


def test_a_manifest_whose_kernels_are_not_here(twinkle, small):
    (twinkle.folder / "twinkle.toml").write_text('[layers.RMSNorm]\nrepo_id = "nobody/nothing"\nversion = 1\n')
    done = twinkle("inspect", small, "--json", env={"HF_HOME": twinkle.folder / "none"})
    assert done.code == 0 and len(done.json["classes"]) > 3
    assert any("kernels could take" in warning for warning in done.json["warnings"])


def test_functions(twinkle, models):
    functions = by_name(inspected(twinkle, models / "tiny_llama.pt")["functions"])
    silu = functions["torch.nn.functional.silu"]
    assert silu["calls"] >= 1 and silu["signature"] == "silu(input: Tensor, inplace: bool = False) -> Tensor"
    traced = by_name([one for one in inspected(twinkle, models / "qwen2.pt")["traced_functions"]
                      if one["file"].endswith("modeling_qwen2.py")])
    rotary = traced["apply_rotary_pos_emb"]
    assert rotary["calls"] == 2 and rotary["file"].endswith("models/qwen2/modeling_qwen2.py")
    assert traced["rotate_half"]["calls"] == 4
    assert rotary["classes"] == ["transformers.models.qwen2.modeling_qwen2.Qwen2Attention"]


def test_one_graph(twinkle):
    for name in ("LlamaRMSNorm", LLAMA + "LlamaRMSNorm", "model.model.norm"):
        shown = twinkle("inspect", EXAMPLES / "traced.pt", "--graph", name)
        assert shown.code == 0 and shown.out.startswith("forward:\ngraph(") and "aten::rsqrt" in shown.out
        assert "mangle" not in shown.out
    function = inspected(twinkle, EXAMPLES / "scripted.pt", "--graph", "torch.nn.functional.silu")["graph"]
    assert function["of"] == "torch.nn.functional.silu" and "aten::silu" in function["methods"][0]["text"]
    wrong = twinkle("inspect", EXAMPLES / "traced.pt", "--graph", "LlamaRMSNor", "--json")
    assert wrong.code == 3 and "LlamaRMSNorm" in wrong.error["hint"]


def test_a_person_sees_it(twinkle, models):
    shown = twinkle("inspect", models / "qwen2.pt", "-v")
    assert shown.code == 0
    for words in ("traced TorchScript model", "parameters", "Qwen2RMSNorm", "twinkle-pack: RMSNorm", "rotate_half",
                  "variance_epsilon"):
        assert words in shown.out
    assert "mangle" not in shown.out


def test_a_person_sees_what_formulas_find(twinkle):
    """Convolutions, for one, have no class that a kernel takes."""
    model = EXAMPLES / "traced.pt"
    found = {one["class"]: one["sites"] for one in inspected(twinkle, model)["bindings"] if one["kind"] == "pattern"}
    assert found
    shown = twinkle("inspect", model).out
    rows = [line.split() for line in shown.split("\nformulas\n")[1].split("\n\n")[0].splitlines()[1:]]
    assert {row[0]: int(row[1]) for row in rows} == found
    assert all("twinkle-pack:" in row for row in rows)


def test_typing_errors_in_conditions(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM, more='modules = ["first.nrm"]\nwhen = { variance_epsilo = 1e-6 }\n')
    notes = "\n".join(inspected(twinkle, small)["binding_notes"])
    assert 'modules = ["first.nrm"]' in notes and "did you mean first.norm?" in notes
    assert "variance_epsilo," in notes and "did you mean variance_epsilon?" in notes
    warnings = twinkle("kernelize", small, "--dry-run").err
    assert "did you mean first.norm?" in warnings and "did you mean variance_epsilon?" in warnings


# What a model needs ----------------------------------------------------------------------------------------------


def test_the_kernels_that_a_model_names(twinkle, copying):
    found = inspected(twinkle, copying, "--kernels", ".")
    assert found["loaded"]
    kernel, = found["kernels"]
    operator, = found["operators"]
    assert kernel["op_namespace"] == "misbehaving" and "kernel/build" in kernel["path"]
    assert operator["name"] == "misbehaving::copy" and operator["from"] == "kernel"
    assert operator["schema"] == "copy(Tensor x) -> Tensor" and operator["mutates"] == [] and operator["calls"] == 1
    assert "names this build" in operator["because"]
    # A folder in the environment does as well.
    assert inspected(twinkle, copying, env={"TWINKLE_KERNELS": twinkle.folder})["loaded"]


def test_an_operator_of_no_kernel(twinkle, copying):
    """As far as possible without loading it."""
    shutil.rmtree(twinkle.folder / "kernel")
    found = inspected(twinkle, copying)
    assert not found["loaded"] and "misbehaving::copy" in found["because"]
    kernel, = found["kernels"]
    operator, = found["operators"]
    assert kernel["path"] is None and "misbehaving" in kernel["because"]
    assert operator["from"] is None and "not in LibTorch" in operator["because"]
    assert found["kind"] == "scripted"
    norm = by_name(found["classes"])[NORM]
    assert norm["types"] == 1 and norm["base"] == "Module"
    methods = by_name(norm["methods"])
    assert methods["forward"]["signature"] == "forward(self, hidden_states: Tensor) -> Tensor"
    assert by_name(norm["attributes"])["weight"]["type"] == "Tensor"
    assert "torch.nn.functional.silu" in by_name(found["functions"])
    shown = twinkle("inspect", copying)
    assert shown.code == 0 and "without loading it" in shown.out and "nowhere" in shown.out
    wrong = twinkle("inspect", copying, "--graph", "RMSNorm", "--json")
    assert wrong.code == 3 and "misbehaving::copy" in wrong.error["why"]


def test_an_unmarked_operator_is_found_in_a_folder(twinkle, copying):
    rewrite(copying, twinkle.folder / "unmarked.pt", without_markers)
    found = inspected(twinkle, "unmarked.pt", "--kernels", ".")
    assert found["kernels"] == [] and found["loaded"]
    operator, = found["operators"]
    assert operator["from"] == "kernel" and "found in" in operator["because"]
    assert not inspected(twinkle, "unmarked.pt")["loaded"]


@pytest.mark.parametrize("name", ["crashes", "hangs", "exits", "throws"])
def test_no_kernel_is_loaded(twinkle, copying, libraries, name):
    """A library that would take the process down does not, because nothing of it runs."""
    rewrite(copying, twinkle.folder / "unmarked.pt", without_markers)
    build = next((twinkle.folder / "kernel/build").iterdir())
    next(build.glob("*.so")).write_bytes(libraries.get(name).read_bytes())
    metadata(build, "misbehaving")
    found = inspected(twinkle, "unmarked.pt", "--kernels", ".")
    assert found["loaded"] and found["operators"][0]["from"] == "kernel"


def test_an_operator_of_a_newer_libtorch(twinkle, small):
    rewrite(small, twinkle.folder / "newer.pt", lambda code: code.replace(b"torch.silu(", b"torch.silu_of_the_future("))
    found = inspected(twinkle, "newer.pt")
    operator, = found["operators"]
    assert operator["name"] == "aten::silu_of_the_future" and "newer" in operator["because"] and not found["loaded"]


def test_a_class_of_no_library(twinkle, small):
    rewrite(small, twinkle.folder / "packed.pt",
            lambda code: code.replace(b"  weight : Tensor\n", b"  weight : Tensor\n  state : __torch__.torch.classes.ours.State\n"))
    found = inspected(twinkle, "packed.pt")
    assert not found["loaded"] and "torch.classes.ours.State" in found["because"]


def test_every_attempt_to_find_a_kernel_is_explained(twinkle, copying):
    kernel = twinkle.folder / "kernel"
    shutil.copytree(kernel, twinkle.folder / "others/damaged")
    next((twinkle.folder / "others/damaged/build").glob("*/layers.py")).write_text("")
    said = twinkle("inspect", copying, "--kernels", "others", "--kernels", ".", "-vv").err
    assert "looking for kernel in others: 1 build" in said and "it is damaged" in said
    assert "is the build that the model names" in said
    assert "looking for" not in twinkle("inspect", copying, "--kernels", ".", "-v").err


# A library, loaded -----------------------------------------------------------------------------------------------


def loaded(twinkle, library):
    done = twinkle("inspect", library, "--load", "--json", env=PATIENCE)
    assert done.code == 0, done.err
    return done.json["loaded"]


def test_what_a_library_registers(twinkle, libraries):
    found = loaded(twinkle, libraries.get("operators"))
    assert found["ok"] and found["problems"] == []
    operators = by_name(found["operators"])
    assert len(operators) == OPERATORS.count("_library_def(library") and set(operators) >= {"misbehaving::copy", "misbehaving::crash"}
    copy = operators["misbehaving::copy"]
    assert copy["schema"] == "misbehaving::copy(Tensor x) -> Tensor" and copy["keys"] == ["CPU"]
    assert copy["mutates"] == [] and copy["aliases"] == [] and copy["found_statically"]


LOADING = {"undefined": "no_library_defines_this", "crashes": "segmentation fault", "aborts": "aborted",
           "throws": "not today", "hangs": "hung", "exits": "exit code 0", "leaves": "exit code 0"}


@pytest.mark.parametrize("name", LOADING)
def test_what_an_initializer_does_wrong(twinkle, libraries, name):
    found = loaded(twinkle, libraries.get(name))
    assert not found["ok"] and LOADING[name] in found["why"] and found["operators"] == []


def test_a_library_that_changes_the_process(twinkle, tmp_path):
    """No LibTorch in it at all: what it does is done by its initializer."""
    (tmp_path / "rude.cpp").write_text("""
#include <csignal>
#include <cstdio>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif
static const int rude = [] {
    std::puts("hello from the initializer");
    std::signal(SIGINT, SIG_IGN);
#if defined(__SSE__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    return chdir("/");
}();
""")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "rude.so", tmp_path / "rude.cpp"], check=True)
    found = loaded(twinkle, tmp_path / "rude.so")
    problems = "\n".join(found["problems"])
    assert found["ok"] and "hello from the initializer" in found["output"]
    for words in ("signal 2", "current folder", "registers no operator"):
        assert words in problems
    if os.uname().machine == "x86_64":
        assert "floating point" in problems


# A kernel against a model ----------------------------------------------------------------------------------------


def test_layers_against_the_classes_that_they_are_bound_to(twinkle, small):
    package = python_kernel(twinkle.folder, RMS_NORM + RMS_NORM.replace("RMSNorm", "Unused").replace("import torch\nfrom torch import nn\n", ""))
    fits = {one["layer"]: one for one in twinkle("check", package, "--model", small, "--json").json["model"]}
    norm = fits["RMSNorm"]
    assert (norm["class"], norm["sites"], norm["fits"], norm["by_name"]) == (NORM, 2, 2, False)
    assert fits["Unused"]["class"] is None
    (twinkle.folder / "twinkle.toml").unlink()
    norm = twinkle("check", package, "--model", small, "--json").json["model"][0]
    assert norm["by_name"] and norm["fits"] == 2
    assert "fits 2 of 2 places in the model" in twinkle("check", package, "--model", small).err
    package = python_kernel(twinkle.folder, RMS_NORM.replace("RMSNorm", "Unused"))
    assert "no class or call of the model" in twinkle("check", package, "--model", small).err


def test_a_class_that_a_binding_leaves_out_is_no_violation(twinkle):
    """The presets bind ReLU where it is not in place: the other one is meant to stay."""
    torch = pytest.importorskip("torch")
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.ReLU(inplace=True))
    torch.jit.script(layers.eval()).save(twinkle.folder / "model.pt")
    done = twinkle("check", PREFIX / "lib/twinkle/kernels/twinkle-pack", "--model", "model.pt", "--json")
    assert done.code == 0, done.err
    relu = next(one for one in done.json["model"] if one.get("layer") == "ReLU" and one["class"])
    assert (relu["sites"], relu["fits"], relu["because"]) == (2, 1, "its inplace is not false")
    assert {one["severity"] for one in done.json["findings"] if one["rule"] == "layer/model"} == {"note"}


def test_a_layer_that_does_not_fit_its_class(twinkle, small):
    package = python_kernel(twinkle.folder, RMS_NORM.replace("self.variance_epsilon)", "self.no_such_attribute)"))
    done = twinkle("check", package, "--model", small, "--json")
    assert done.code == 4
    line = 1 + RMS_NORM[: RMS_NORM.index("self.variance_epsilon)")].count("\n")
    finding, = (one for one in done.json["findings"] if one["rule"] == "layer/model")
    assert (finding["file"], finding["line"]) == ("layers.py", line) and "no_such_attribute" in finding["text"]


# Hostile files ---------------------------------------------------------------------------------------------------

OTHERS = {"state_dict.pt": "a state_dict", "checkpoint.pt": "a state_dict", "whole_module.pt": "torchscript.NormAndMLP",
          "compiled.pt2": "AOTInductor", "weights.safetensors": "safetensors", "plain.pkl": "pickle", "model.onnx": "ONNX",
          "model.gguf": "GGUF", "other_zip.pt": "readme.txt", "truncated.pt": "damaged"}


@pytest.mark.parametrize("name", OTHERS)
def test_files_that_are_no_models(twinkle, name):
    file = made_models() / "not_models" / name
    before = sha256(file)
    done = twinkle("run" if name == "compiled.pt2" else "inspect", file, "--json")  # a package has facts of its own
    assert done.code == 2 and OTHERS[name] in done.error["why"], done.err
    assert sha256(file) == before and outcome(twinkle.folder) == {}


HOSTILE_CODE = {
    "operators_in_strings": b'  x = "ops.evil.call(1)"  # ops.evil.call(2)\n',
    "not_utf8": b"  \xff\xfe\x00 = ops.evil.call(\n",
    "unclosed": b'  x = "ops.evil.call(1)\n  y = (((((((\n',
    "deep": b"  x = " + b"(" * 100000 + b"\n",
    "a_long_name": b"  x = ops." + b"a" * 100000 + b"." + b"b" * 100000 + b"()\n",
    "many": b"".join(b"  x = ops.n%d.o(1)\n" % i for i in range(2000)),
}


@pytest.mark.parametrize("name", HOSTILE_CODE)
def test_hostile_code(twinkle, small, name):
    """Code that LibTorch would refuse: an answer or an error, and never a crash."""
    rewrite(small, twinkle.folder / "hostile.pt", lambda code: code + b"\ndef f(x):\n" + HOSTILE_CODE[name])
    done = twinkle("inspect", "hostile.pt", "--json")
    assert done.code in (0, 2), (done.code, done.err)
    if done.code == 0:
        called = {operator["name"] for operator in done.json["operators"]}
        assert name != "operators_in_strings" or called == set()
        assert name != "many" or len(called) == 2000
    else:
        assert json.loads(done.err)["error"]["code"] == "malformed"
