"""resolve and versions as scripts use them, on a kernel that is a plain Python package."""

import json
import shutil

import pytest
from kernels_for_tests import EXAMPLES, RMS_NORM, python_kernel

LAYERS = """import torch


class Norm(torch.nn.Module):
    weight: torch.Tensor
    has_backward = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight
"""
MANIFEST = """presets = []

[kernels]
my_kernels = { path = "my_kernels" }

[layers.Norm]
repo_path = "."
package_name = "my_kernels"
classes = ["my.Norm"]
"""
TARGET = "torch=2.13,backend=cpu,cpu=x86_64,os=linux"


@pytest.fixture
def project(twinkle, tmp_path):
    (tmp_path / "my_kernels").mkdir()
    (tmp_path / "my_kernels/__init__.py").write_text("from . import layers\n")
    (tmp_path / "my_kernels/layers.py").write_text(LAYERS)
    (tmp_path / "twinkle.toml").write_text(MANIFEST)
    return twinkle


def test_resolve_writes_a_mapping_and_says_why(project, tmp_path):
    done = project("resolve", "--target", TARGET, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["schema"] == "twinkle.resolve/1"
    assert done.json["decisions"]
    for decision in done.json["decisions"]:
        assert set(decision) >= {"what", "chosen", "because", "rejected"}
    mapping = json.loads((tmp_path / "twinkle.map.json").read_text())
    assert mapping["schema"] == "twinkle.map/1"
    assert mapping["layers"][0]["classes"] == ["my.Norm"]


def test_resolve_to_stdout_is_the_same_file(project, tmp_path):
    shown = project("resolve", "--target", TARGET, "-o", "-")
    assert shown.code == 0 and not (tmp_path / "twinkle.map.json").exists()
    assert project("resolve", "--target", TARGET, "-o", "x.json").code == 0
    assert (tmp_path / "x.json").read_text() == shown.out
    assert project("resolve", "--target", TARGET, "-o", "x.json").code == 0
    assert (tmp_path / "x.json").read_text() == shown.out


def test_resolve_for_a_person(project):
    done = project("resolve", "--target", TARGET, env={"COLUMNS": "100"})
    assert done.code == 0 and "wrote twinkle.map.json" in done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["what", "chosen", "because"]
    assert max(map(len, lines)) <= 100
    assert "layer Norm" in done.out
    assert project("resolve", "--target", TARGET, "-q").err == ""


def test_the_project_is_found_from_below_and_named_from_anywhere(project, tmp_path):
    below, beside = tmp_path / "some/where", tmp_path.parent / f"{tmp_path.name}-beside"
    below.mkdir(parents=True)
    beside.mkdir()
    project.folder = below
    assert "my.Norm" in project("resolve", "--target", TARGET, "-o", "-").out
    project.folder = beside
    assert "my.Norm" in project("resolve", "--target", TARGET, "-o", "-", "--project", tmp_path).out


def test_env_of_a_machine_is_a_target(project, tmp_path):
    (tmp_path / "here.json").write_text(project("env", "--json").out)
    here = project("resolve", "-o", "-")
    there = project("resolve", "-o", "-", "--target", "here.json")
    assert here.code == there.code == 0
    assert json.loads(here.out)["target"] == json.loads(there.out)["target"]


@pytest.mark.parametrize("text, code", [
    ("trust = 3\n", 2), ("[layers\n", 2), ("[layers.X]\nclases = ['a']\n", 2),
    (MANIFEST.replace('path = "my_kernels"', 'path = "none"'), 3)])
def test_a_manifest_that_is_wrong(project, tmp_path, text, code):
    (tmp_path / "twinkle.toml").write_text(text)
    done = project("resolve", "--target", TARGET, "--json")
    assert (done.code, done.out) == (code, "")
    assert "twinkle.toml" in done.error["where"] or code == 3
    assert not (tmp_path / "twinkle.map.json").exists()


def test_an_output_that_cannot_be_written(project, tmp_path):
    done = project("resolve", "--target", TARGET, "-o", "no/folder/x.json", "--json")
    assert done.code in (1, 3) and done.error["what"]
    done = project("resolve", "--target", TARGET, "-o", "/dev/full", "--json")
    assert done.code == 1 and "disk is full" in done.error["why"]


@pytest.mark.parametrize("output", ["twinkle.toml", "twinkle.lock", "my_kernels/layers.py", "link.json"])
def test_an_output_that_is_a_source(project, tmp_path, output):
    assert project("lock").code == 0
    (tmp_path / "link.json").symlink_to("twinkle.toml")
    before = (tmp_path / output).read_bytes()
    model = EXAMPLES / "traced.pt"
    for words in (["resolve", "--target", TARGET, "-o", output], ["kernelize", model, "-o", output],
                  ["kernelize", model, "-o", "new.pt", "--report", output],
                  ["bench", model, "--inputs", "float32[2,8]", "--svg", output], ["check", "my_kernels", "--sarif", output]):
        done = project(*words, "--json")
        assert done.code == 2 and "overwrite" in done.error["what"], (words, done)
        assert (tmp_path / output).read_bytes() == before
    assert not (tmp_path / "new.pt").exists()


def test_an_output_that_is_another_kind_of_file(project, tmp_path):
    model = tmp_path / "model.pt"
    shutil.copy(EXAMPLES / "traced.pt", model)
    assert project("env", "--json").code == 0
    (tmp_path / "env.json").write_text(project("env", "--json").out)
    assert project("resolve", "-o", "map.json").code == 0
    (tmp_path / "link").symlink_to("model.pt")
    (tmp_path / "metadata.json").write_text("{}")
    before = {file: (tmp_path / file).read_bytes() for file in ("model.pt", "env.json", "map.json", "metadata.json")}
    kernelize = ("kernelize", model, "--map", "map.json", "--target", "env.json")
    for words in (["resolve", "-o", "model.pt"], ["resolve", "-o", "metadata.json"], ["resolve", "-o", "kernels.lock"],
                  ["resolve", "--target", "env.json", "-o", "env.json"], [*kernelize, "-o", "map.json"],
                  [*kernelize, "-o", "env.json"], [*kernelize, "-o", "new.pt", "--report", "env.json"],
                  [*kernelize, "-o", "new.pt", "--report", "metadata.json"],
                  ["check", "my_kernels", "--model", model, "--sarif", "model.pt"],
                  ["check", "my_kernels", "--model", model, "--sarif", "link"]):
        done = project(*words, "--json")
        assert done.code == 2 and "overwrite" in done.error["what"], (words, done)
    assert before == {file: (tmp_path / file).read_bytes() for file in before}
    assert not (tmp_path / "new.pt").exists() and not (tmp_path / "kernels.lock").exists()
    for words in (["resolve", "-o", ""], ["resolve", "--bundle", ""], [*kernelize, "-o", ""],
                  ["check", "my_kernels", "--sarif", ""]):
        done = project(*words, "--json")
        assert done.code == 2 and "needs a value" in done.error["what"], (words, done)
    assert project("check", "my_kernels", "--sarif", "-", "--json").code == 2
    done = project(*kernelize, "-o", "new.pt", "--report", "./new.pt", "--json")
    assert done.code == 2 and "one file" in done.error["what"]


def test_a_gpu_and_no_backend_for_it(project):
    done = project("resolve", "--target", "torch=2.13,backend=cpu,arch=9.0", "--json")
    assert done.code == 2 and "backend=cu130" in done.error["hint"]


def test_what_changes_in_a_lock_is_said(project, tmp_path):
    manifest = tmp_path / "twinkle.toml"

    def changes():
        return [(change["change"], change["kernel"]) for change in project("lock", "--json").json["changes"]]

    (kind, kernel), = changes()
    assert kind == "added" and not changes()
    (tmp_path / "my_kernels/layers.py").write_text(LAYERS + "\n")
    assert changes() == [("changed", kernel)]
    manifest.write_text("presets = []\n")
    assert "\n- my_kernels" in "\n" + project("lock").err
    manifest.write_text(MANIFEST)
    assert changes() == [("added", kernel)]


def test_versions(project, tmp_path):
    for name in ("torch-cuda", "torch-universal", "torch29-cxx11-cu130-x86_64-linux"):
        folder = tmp_path / "kernel/build" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "metadata.json").write_text(json.dumps({"name": "kernel", "id": "_kernel_cuda_1", "version": 1,
                                                          "license": "MIT", "backend": {"type": "cuda"}}))
    done = project("versions", "kernel", "--target", "torch=2.9,backend=cu130,cpu=x86_64,os=linux,arch=9.0", "--json")
    assert done.json["schema"] == "twinkle.versions/1"
    version, = done.json["versions"]
    assert version["version"] is None
    for variant in version["variants"]:
        assert set(variant) >= {"name", "accepted", "preferred", "reason"} and variant["reason"]
    assert {variant["name"] for variant in version["variants"]} == {
        "torch-cuda", "torch-universal", "torch29-cxx11-cu130-x86_64-linux"}
    table = project("versions", "kernel", "--target", "torch=2.9,backend=cu130,cpu=x86_64,os=linux,arch=9.0")
    assert "torch29-cxx11-cu130-x86_64-linux" in table.out


def test_a_build_for_the_cpu_is_none_for_a_gpu_and_called_so(project, tmp_path):
    """As kernels.has_kernel() and `kernels versions` have it; models on the CPU of that machine may well use it."""
    name = "torch29-cxx11-cpu-x86_64-linux"
    folder = tmp_path / "kernel/build" / name
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"name": "kernel", "id": "_kernel_cpu_1", "version": 1,
                                                      "license": "MIT", "backend": {"type": "cpu"}}))
    gpu = "torch=2.9,backend=cu130,cpu=x86_64,os=linux,arch=9.0,cxx11=1"
    done = project("versions", "kernel", "--target", gpu, "--json")
    variant, = done.json["versions"][0]["variants"]
    assert (variant["accepted"], variant["preferred"], variant["for_cpu"]) == (False, False, True)
    assert "for models on the CPU, not on cuda" in variant["reason"]
    assert done.code == 3 and "only its CPU has a build" in done.error["why"]
    assert "on its CPU" in project("versions", "kernel", "--target", gpu).out
    # What is asked for the CPU gets it, and a GPU with a build of its own takes that.
    here = project("versions", "kernel", "--target", gpu.replace("cu130", "cpu").replace(",arch=9.0", ""), "--json")
    variant, = here.json["versions"][0]["variants"]
    assert here.code == 0 and (variant["accepted"], variant["preferred"], variant["for_cpu"]) == (True, True, False)
    own = tmp_path / "kernel/build/torch29-cxx11-cu130-x86_64-linux"
    own.mkdir()
    (own / "metadata.json").write_text(json.dumps({"name": "kernel", "id": "_kernel_cuda_1", "version": 1,
                                                   "license": "MIT", "python-depends": [],
                                                   "backend": {"type": "cuda", "archs": ["9.0"]}}))
    both = project("versions", "kernel", "--target", gpu, "--json")
    assert both.code == 0
    assert [(one["name"], one["accepted"], one["for_cpu"]) for one in both.json["versions"][0]["variants"]] == [
        (own.name, True, False), (name, False, True)]


def test_no_version_fits(project, tmp_path):
    (tmp_path / "kernel/build/torch29-cxx11-cu130-x86_64-linux").mkdir(parents=True)
    done = project("versions", "kernel", "--target", TARGET, "--json")
    assert done.code == 3 and done.error["code"] == "not-found"
    assert not done.json["versions"][0]["variants"][0]["accepted"]
    assert project("versions", "./none").code == 3


def test_a_lock_holds_local_kernels_to_what_they_were(project, tmp_path):
    target = ("--target", TARGET)
    unlocked = project("resolve", *target, "--locked", "--json")
    assert unlocked.code == 7 and unlocked.error["hint"] == "run twinkle lock"
    assert project("lock").code == 0
    assert project("resolve", *target, "--locked").code == 0
    assert project("lock", "--check").code == 0
    layers = tmp_path / "my_kernels/layers.py"
    layers.write_text(LAYERS.replace("return x", "return 2 * x"))
    changed = project("resolve", *target, "--json")
    assert changed.code == 4
    assert "layers.py has" in changed.error["why"] or "layers.py differs" in changed.error["why"]
    assert project("lock", "--check").code == 7
    assert project("lock").code == 0
    assert project("resolve", *target, "--locked", "--lockfile", "twinkle.lock").code == 0
    assert project("resolve", *target, "--lockfile", "nowhere.lock").code == 3
    (tmp_path / "twinkle.lock").write_text("<<<<<<< HEAD\nversion = 1\n")
    conflict = project("resolve", *target, "--json")
    assert conflict.code == 2 and conflict.error["where"] == "twinkle.lock:1:1"


def test_one_lock_check_for_every_command(project, tmp_path):
    """A kernels.lock that says something else than twinkle.lock is as stale as a lock that lacks a kernel."""
    (tmp_path / "kernels.lock").write_text("[]")
    assert project("lock").code == 0
    (tmp_path / "kernels.lock").write_text("[ ]")
    words = set()
    for command in (("resolve", "--locked", "--target", TARGET), ("fetch", "--locked"), ("lock", "--check")):
        done = project(*command, "--json")
        assert done.code == 7 and "kernels.lock does not say the same" in done.error["why"], (command, done.err)
        words.add((done.error["what"], done.error["why"], done.error["hint"]))
    assert len(words) == 1
    warned = project("resolve", "--target", TARGET)
    assert warned.code == 0 and warned.err.count("the lock does not fit the manifest: kernels.lock") == 1, warned.err
    assert "the lock does not fit the manifest: kernels.lock" in project("fetch", "--offline").err


def test_a_manifest_that_is_no_toml_or_not_there(twinkle, tmp_path):
    (tmp_path / "twinkle.toml").write_text("[kernels\n")
    done = twinkle("resolve", "--json")
    assert done.code == 2 and done.error["where"].startswith("twinkle.toml:1") and "key = value" in done.error["hint"]
    (tmp_path / "twinkle.toml").unlink()
    (tmp_path / "empty").mkdir()
    for options in ((), ("--project", "empty")):
        done = twinkle("add", "./my_kernels", *options, "--json")
        assert done.code == 3 and "twinkle init" in done.error["hint"], done.err


def test_a_bundle_works_where_nothing_else_is(project, tmp_path):
    done = project("resolve", "--target", TARGET, "--bundle", "out/bundle", "--json")
    assert done.code == 0, done.err
    assert done.json["output"] == "out/bundle"
    mapping = json.loads((tmp_path / "out/bundle/twinkle.map.json").read_text())
    assert [kernel["path"] for kernel in mapping["kernels"]] == ["kernels/my_kernels"]
    assert (tmp_path / "out/bundle/kernels/my_kernels/layers.py").read_text() == LAYERS
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["bundle"]
    assert project("resolve", "--target", TARGET, "--bundle", "out/bundle").code == 0
    refused = project("resolve", "--target", TARGET, "--bundle", "my_kernels", "--json")
    assert refused.code == 6 and (tmp_path / "my_kernels/layers.py").exists()
    assert project("resolve", "--target", TARGET, "--bundle", "b", "-o", "m.json").code == 2


def test_a_layer_that_needs_python_is_named_with_the_reason(twinkle, tmp_path):
    python_kernel(tmp_path, RMS_NORM.replace("        return self.weight", "        with torch.autocast(\"cpu\"):\n"
                                             "            x = x + 0\n        return self.weight"))
    done = twinkle("resolve", "--json")
    assert done.code == 0, done.err
    (decision,) = [one for one in done.json["decisions"] if one["what"] == "layer RMSNorm"]
    assert "RMSNorm needs Python: layers.py:13: With has no counterpart in TorchScript" in decision["because"]
    strict = twinkle("resolve", "--strict", "--json")
    assert strict.code == 6
    assert "layers.py:13" in strict.error["why"]


def test_a_preset_has_bindings_for_devices_that_are_not_there(twinkle, tmp_path):
    """Those for GPUs of a preset are no error where the target has none, or the bundled kernels no build for them."""
    (tmp_path / "twinkle.toml").write_text('presets = ["linear"]\n')
    for target in (TARGET, "torch=2.13,backend=cu130,arch=8.0,cpu=x86_64,os=linux", "torch=2.13,backend=cu130,arch=9.0,cpu=x86_64,os=linux"):
        for strict in ([], ["--strict"]):
            done = twinkle("resolve", "--target", target, *strict, "--json")
            assert done.code == 0, done.err
            mapping = json.loads((tmp_path / "twinkle.map.json").read_text())
            (linear,) = [layer for layer in mapping["layers"] if layer["classes"] == ["torch.nn.modules.linear.Linear"]]
            fewer_bits = {(one["device"], one["layer"]) for one in linear["candidates"]}
            assert {("cpu", "Linear"), ("cpu", "LinearInt8"), ("cpu", "LinearInt4")} <= fewer_bits
            assert ("cuda", "LinearInt8") not in fewer_bits or "arch=9.0" in target
