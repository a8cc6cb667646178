"""kernelize --freeze: the model as torch::jit::freeze makes it."""

import pytest
import torch
from kernels_for_tests import EXAMPLES, needs_runtime

pytestmark = needs_runtime
TRACED, INPUTS = EXAMPLES / "traced.pt", EXAMPLES / "inputs.pt"


def kernelize(twinkle, *more, model=TRACED, output="frozen.pt", code=0):
    done = twinkle("kernelize", model, "-o", output, "--no-measure", "--json", *more)
    assert done.code == code, done.err
    return done.json


def outputs(twinkle, model):
    assert twinkle("run", model, "--inputs", INPUTS, "-o", "out.pt").code == 0
    return (twinkle.folder / "out.pt").read_bytes()


def test_asked_for(twinkle):
    report = kernelize(twinkle, "--inputs", INPUTS, "--freeze")
    assert report["frozen"] == {"chosen": True, "because": "asked for", "sizes": []}
    assert report["replaced"] > 0
    said = twinkle("inspect", "frozen.pt", "--json").json
    assert said["kind"] == "frozen"
    assert {label["site"] for label in said["labels"]} == {site["site"] for site in report["sites"] if site["status"] == "replaced"}
    assert [kernel["name"] for kernel in said["kernels"]], "what it needs is known"
    kernelize(twinkle, "--inputs", INPUTS, output="plain.pt")
    assert outputs(twinkle, "frozen.pt") == outputs(twinkle, "plain.pt")
    assert "frozen: asked for" in twinkle("kernelize", TRACED, "-o", "f.pt", "--no-measure", "--inputs", INPUTS, "--freeze").out


def test_without_inputs(twinkle):
    assert kernelize(twinkle, "--freeze")["frozen"]["chosen"] is True
    assert twinkle("inspect", "frozen.pt", "--json").json["kind"] == "frozen"


def test_devices_that_freezing_names(twinkle):
    """Frozen, code that asks a weight for its device names the one that it was frozen on, and the model is for another."""
    kernelize(twinkle, "--freeze", "--device", "cuda", "--only", "nothing")
    graph = torch.jit.load(twinkle.folder / "frozen.pt").graph
    named = {node.output().debugName() for node in graph.nodes()
             if node.kind() == "prim::Constant" and str(node.output().type()) == "Device"}
    assert not [node for node in graph.nodes() if named & {value.debugName() for value in node.inputs()}]
    assert "prim::device" in str(graph)


def test_where_it_was_not_asked_for(twinkle):
    assert "frozen" not in kernelize(twinkle, "--inputs", INPUTS)
    assert twinkle("inspect", "frozen.pt", "--json").json["kind"] != "frozen"


@pytest.mark.parametrize("command", ["kernelize", "tune"])
def test_measured(twinkle, command):
    """What is written is what the report says of the times."""
    done = twinkle(command, TRACED, "--inputs", INPUTS, "-o", "tuned.pt", *(["--tune", "--no-measure"] if command == "kernelize" else []),
                   "--tune-sizes", "3", "--budget", "2", "--freeze", "--json")
    assert done.code == 0, done.err
    frozen = done.json["frozen"]
    assert [size["size"] for size in frozen["sizes"]] == ["given", "length 3"]
    differences = [size["speedup"]["difference"] for size in frozen["sizes"]]
    assert frozen["chosen"] == ("faster" in differences and "slower" not in differences), frozen
    assert frozen["because"]
    assert (twinkle("inspect", "tuned.pt", "--json").json["kind"] == "frozen") == frozen["chosen"]


def test_a_model_in_training(twinkle):
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1)))
    model.save(str(twinkle.folder / "training.pt"))
    done = twinkle("kernelize", "training.pt", "-o", "out.pt", "--freeze")
    assert done.code == 6 and "cannot be frozen" in done.err and "training" in done.err, done.err
    assert not (twinkle.folder / "out.pt").exists()
    done = twinkle("kernelize", "training.pt", "-o", "out.pt", "--freeze", "--tune", "--inputs", "float32[2,4]", "--budget", "1", "--json")
    assert done.code == 0, done.err
    assert done.json["frozen"]["chosen"] is False and "training" in done.json["frozen"]["because"]


def test_what_was_there_stays(twinkle):
    """A model that cannot be frozen: nothing is written."""
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2)).train())
    model.save(str(twinkle.folder / "training.pt"))
    kernelize(twinkle, output="out.pt")
    before = (twinkle.folder / "out.pt").read_bytes()
    done = twinkle("kernelize", "training.pt", "-o", "out.pt", "--freeze", "--json")
    assert done.code == 6, done.err
    assert (twinkle.folder / "out.pt").read_bytes() == before
    assert sorted(file.name for file in twinkle.folder.glob("*.pt*")) == ["out.pt", "training.pt"]


def test_not_with_graphs(twinkle):
    done = twinkle("kernelize", TRACED, "-o", "out.pt", "--freeze", "--graphs")
    assert done.code == 2 and "contradict" in done.err
    (twinkle.folder / "twinkle.toml").write_text("")
    kernelize(twinkle, "--graphs", output="marked.pt")
    done = twinkle("kernelize", "marked.pt", "-o", "out.pt", "--freeze")
    assert done.code == 6 and "marked for CUDA graphs" in done.err, done.err


def test_what_is_too_large_to_compute_stays_in_the_code(twinkle):
    """Freezing computes what a model's code does with constants."""

    class Large(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x + self.weight + torch.ones(3 << 32).sum()

    torch.jit.script(Large().eval()).save(str(twinkle.folder / "large.pt"))
    done = twinkle("kernelize", "large.pt", "-o", "out.pt", "--freeze")
    assert done.code == 0, done.err
    assert (twinkle.folder / "out.pt").stat().st_size < 1 << 20, "twelve billion ones are in no file"


def test_other_methods_stay(twinkle):
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x)

        @torch.jit.export
        def twice(self, x):
            return self.layer(self.layer(x))

    model = torch.jit.script(Two().eval())
    model.save(str(twinkle.folder / "two.pt"))
    (twinkle.folder / "twinkle.toml").write_text("")  # no kernel: Python loads what is written
    kernelize(twinkle, "--inputs", "float32[2,4]", "--freeze", model="two.pt")
    frozen = torch.jit.load(twinkle.folder / "frozen.pt")
    x = torch.randn(2, 4)
    torch.testing.assert_close(frozen.twice(x), model.twice(x))
    assert "weight" not in dict(frozen.named_parameters())


def test_nothing_is_written_by_a_dry_run(twinkle):
    report = kernelize(twinkle, "--freeze", "--dry-run")
    assert report["frozen"]["chosen"] is True and not (twinkle.folder / "frozen.pt").exists()
    done = twinkle("tune", TRACED, "--inputs", INPUTS, "--freeze", "--shard", "1/2")
    assert done.code == 2 and "contradict" in done.err
