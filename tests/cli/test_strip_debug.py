"""What a kernelized model says about the machines that made it: where it was traced, on request nothing."""

import re
import zipfile

import pytest
from kernels_for_tests import EXAMPLES, MLP, PREFIX, RMS_NORM, models, needs_runtime, python_kernel

pytestmark = needs_runtime
# An absolute path of two parts or more; a URL or "shape/strides" is none.
PATH = re.compile(rb"(?<![\w./])/[\w.+-]+/[\w.+/-]+")


def paths_in(file):
    found = set()
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if not re.search(r"/data/\d+$", name):  # weights
                found |= set(PATH.findall(archive.read(name)))
    return found


def kernelize(twinkle, model, *more):
    done = twinkle("kernelize", model, "-o", "fast.pt", "--json", *more)
    assert done.code == 0 and done.json["replaced"] > 0, done.err
    return paths_in(twinkle.folder / "fast.pt")


def outputs(twinkle, inputs):
    assert twinkle("run", "fast.pt", "--inputs", inputs, "-o", "out.pt").code == 0
    return (twinkle.folder / "out.pt").read_bytes()


@pytest.mark.parametrize("name", ["traced.pt", "scripted.pt", "traced_in_scripted.pt"])
def test_no_path_is_left(twinkle, models, name):
    model = EXAMPLES / name if name[0] != "t" or name == "traced.pt" else models / name
    inputs = EXAMPLES / "inputs.pt" if model.parent == EXAMPLES else models.parent / "inputs/hidden.pt"
    assert paths_in(model)  # of whoever made it
    assert kernelize(twinkle, model, "--project", EXAMPLES)
    with_debug = outputs(twinkle, inputs)
    assert "traced" in (kind := twinkle("inspect", "fast.pt", "--json").json["kind"]) or kind == "scripted"
    assert kernelize(twinkle, model, "--project", EXAMPLES, "--strip-debug") == set()
    assert outputs(twinkle, inputs) == with_debug
    found = twinkle("inspect", "fast.pt", "--json").json
    assert found["kind"] == "stripped" and found["loaded"] and found["traced_functions"] == []
    # What is made of it is as silent.
    with zipfile.ZipFile(twinkle.folder / "fast.pt") as archive:
        ranges = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".debug_pkl"))
    assert b"def " not in ranges and b".py" not in ranges


def test_stacks_stay_where_nobody_asks(twinkle):
    kernelize(twinkle, EXAMPLES / "traced.pt")
    found = twinkle("inspect", "fast.pt", "--json").json
    assert found["kind"].startswith("traced") and found["traced_functions"]


def test_nothing_of_this_machine_is_added(twinkle, models):
    """Kernels lie in folders of the user, and so may the model: neither is named."""
    python_kernel(twinkle.folder, RMS_NORM, more=f'[layers.SwiGLUMLP]\nclasses = ["{MLP}"]\n')
    model = models / "two_of_a_kind.pt"
    before = paths_in(model)
    assert kernelize(twinkle, model) <= before
    content = (twinkle.folder / "fast.pt").read_bytes()
    for folder in (twinkle.folder, PREFIX):
        assert str(folder).encode() not in content.replace(str(PREFIX / "tests").encode(), b"")


def test_a_layer_that_was_not_taken_leaves_nothing_to_stumble_over(twinkle):
    python_kernel(twinkle.folder, RMS_NORM.replace("torch.rsqrt(", "torch.no_such_function("))
    done = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt", "--strip-debug", "--json")
    assert done.code == 0 and done.json["kept"] > 0, done.err
    assert paths_in(twinkle.folder / "fast.pt") == set()
