"""kernelize --graphs: a mark that programs on a GPU replay by, and that changes nothing on a CPU."""

import pytest
from kernels_for_tests import EXAMPLES, needs_runtime

pytestmark = needs_runtime
TRACED, INPUTS = EXAMPLES / "traced.pt", EXAMPLES / "inputs.pt"


def outputs(twinkle, model):
    assert twinkle("run", model, "--inputs", INPUTS, "-o", "out.pt").code == 0
    return (twinkle.folder / "out.pt").read_bytes()


def kernelize(twinkle, model, output, *more):
    done = twinkle("kernelize", model, "-o", output, "--no-measure", "--json", *more)
    assert done.code == 0, done.err
    return done.json


@pytest.fixture(autouse=True)
def no_kernels(twinkle):
    """The mark needs none."""
    (twinkle.folder / "twinkle.toml").write_text("")


def test_a_marked_model_computes_the_same(twinkle):
    assert kernelize(twinkle, TRACED, "plain.pt")["graphs"] is False
    assert kernelize(twinkle, TRACED, "marked.pt", "--graphs")["graphs"] is True
    assert outputs(twinkle, "marked.pt") == outputs(twinkle, "plain.pt")


def test_inspect_shows_the_mark(twinkle):
    kernelize(twinkle, TRACED, "plain.pt")
    kernelize(twinkle, TRACED, "marked.pt", "--graphs")
    assert twinkle("inspect", "plain.pt", "--json").json["graphs"] is False
    assert twinkle("inspect", "marked.pt", "--json").json["graphs"] is True
    assert "marked: " in twinkle("inspect", "marked.pt").out
    assert "marked: " not in twinkle("inspect", "plain.pt").out


def test_a_marked_model_is_kernelized_as_any_other_and_stays_marked(twinkle):
    kernelize(twinkle, TRACED, "marked.pt", "--graphs")
    assert kernelize(twinkle, "marked.pt", "again.pt")["graphs"] is True
    assert kernelize(twinkle, "marked.pt", "twice.pt", "--graphs")["graphs"] is True
    assert twinkle("inspect", "again.pt", "--json").json["graphs"] is True
    assert outputs(twinkle, "again.pt") == outputs(twinkle, "marked.pt") == outputs(twinkle, "twice.pt")
