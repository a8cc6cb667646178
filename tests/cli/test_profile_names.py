"""kernelize --profile-names: replaced sites are ranges of LibTorch's profiler, by LibTorch's own operators, wherever the model
goes."""

import pytest
from kernels_for_tests import AMPLE, needs_runtime
from test_tune_sizes import MODELS, model_and_packages  # noqa: F401

torch = pytest.importorskip("torch")

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
INPUTS = ["--inputs", "float32[128,64]"]


def ranges(model, names):
    """The ranges with these names in the order of their begin, each with the products that were computed in it."""
    x = torch.randn(16, 64)
    with torch.no_grad():
        for _ in range(3):  # LibTorch optimizes in the first runs
            model(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            model(x)

    def inside(event):
        return sum(inside(child) + (child.name == "aten::mm") for child in event.cpu_children)
    return [(event.name, inside(event)) for event in sorted(profile.events(), key=lambda event: event.time_range.start)
            if event.name in names]


@pytest.mark.parametrize("model", MODELS)
def test_sites_are_ranges_by_their_names(project, model):
    report = project.kernelized(["large"], *INPUTS, "--profile-names", model=model)
    names = [site["site"] for site in report["sites"]]
    assert len(names) == report["replaced"] == 2
    expected = [(name, 24) for name in names]  # the kernel's own products
    saved = torch.jit.load(project.folder / "tuned.pt")
    assert "twinkle::" not in str(saved.inlined_graph)
    saved.save(project.folder / "again.pt")
    again = torch.jit.load(project.folder / "again.pt")
    x = torch.randn(16, 64)
    for one in (saved, again, torch.jit.freeze(again.eval()), torch.jit.optimize_for_inference(saved.eval())):
        torch.testing.assert_close(one(x), torch.jit.load(project.folder / model)(x))
        assert sorted(ranges(one, names)) == sorted(expected)
    assert project("run", "again.pt", "--inputs", "float32[7,64]").code == 0
    assert not ranges(torch.jit.load(project.folder / model), names)


def test_nothing_is_named_unless_it_is_asked_for(project):
    project.kernelized(["large"], *INPUTS)
    saved = torch.jit.load(project.folder / "tuned.pt")
    assert "profiler::" not in str(saved.inlined_graph) and not ranges(saved, ["first", "second"])


def test_a_choice_by_size_is_in_the_range(project):
    # Time enough where the machine halts for seconds, too: what is not measured is not chosen.
    report = project.kernelized(["small", "large"], "--tune", "--budget", AMPLE, "--tune-sizes", "1,16", *INPUTS, "--profile-names")
    assert all(site["by_size"] for site in report["sites"]), report["sites"]
    assert ranges(torch.jit.load(project.folder / "tuned.pt"), ["first", "second"]) == [("first", 0), ("second", 0)]


def test_sites_of_two_runs_are_named(project):
    project.kernelized(["large"], *INPUTS, "--profile-names", "--only", "first")
    project.kernelized(["large"], *INPUTS, "--profile-names", "--only", "second", model="tuned.pt", output="both.pt")
    assert ranges(torch.jit.load(project.folder / "both.pt"), ["first", "second"]) == [("first", 24), ("second", 24)]


def test_what_raises_ends_its_range(project):
    project.kernelized(["picky"], "--inputs", "float32[16,64]", "--verify=given", "--profile-names")
    saved = torch.jit.load(project.folder / "tuned.pt")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            saved(torch.randn(100, 64))
    assert [name for name, _ in ranges(saved, ["first", "second"])] == ["first", "second"]
