"""inspect --choices writes what serves the sites of a tuned model, and kernelize --choices makes it again of the original,
without a measurement."""

import json

import pytest
from kernels_for_tests import needs_runtime
from test_tune_sizes import LAYER, MODELS, PACKAGES, SIZES, model_and_packages, parts  # noqa: F401

torch = pytest.importorskip("torch")

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
INPUTS = ["--inputs", "float32[128,64]"]


def choices_of(project, model="tuned.pt"):
    done = project("inspect", model, "--choices", "choices.json")
    assert done.code == 0 and "wrote choices.json: what serves" in done.err, done.err
    return json.loads((project.folder / "choices.json").read_text())


def chosen_again(project, *more, model="model.pt", code=0):
    """On a machine that has measured nothing."""
    done = project("kernelize", model, "--choices", "choices.json", "-o", "again.pt", "--json", *more,
                   env={"XDG_CACHE_HOME": project.folder / "empty"})
    assert done.code == code, done.err
    assert not (project.folder / "empty/twinkle/tuning").exists()
    return done.json if code == 0 else done


@pytest.mark.parametrize("model", MODELS)
def test_the_model_is_made_again(project, model):
    tuned = project.kernelized(["small", "large"], model=model)
    written = choices_of(project)
    assert written["schema"] == "twinkle.labels/1" and len(written["sites"]) == 2
    report = chosen_again(project, *INPUTS, model=model)
    assert report["verified"] and report["warnings"] == tuned["warnings"]
    for one, other in zip(tuned["sites"], report["sites"]):
        assert parts(one) == parts(other) == [(32, "small"), (None, "large")]
        assert one["by_size"] == other["by_size"] and other["measured"] == []
    first, again = (torch.jit.load(project.folder / name) for name in ("tuned.pt", "again.pt"))
    assert str(first.inlined_graph) == str(again.inlined_graph)
    assert [one | {"because": ""} for one in choices_of(project, "again.pt")["sites"]] == [
        one | {"because": ""} for one in written["sites"]]
    if model != "inlined.pt":  # whose calls only a run finds
        assert [site["by_size"] for site in chosen_again(project, model=model)["sites"]] == [
            site["by_size"] for site in tuned["sites"]]


def test_what_kept_its_original_keeps_it(project):
    project.kernelized(["large"])  # the original, up to 32 rows
    assert [one["kernel"] for one in choices_of(project)["sites"][0]["serves"]] == [None, "large: Layer"]
    assert all(parts(site) == [(32, None), (None, "large")] for site in chosen_again(project, *INPUTS)["sites"])
    project.kernelized(["small", "large"], *SIZES, "--exclude", "second")
    assert [one["site"] for one in choices_of(project)["sites"]] == ["first"]
    first, second = chosen_again(project, "--strict")["sites"]
    assert parts(first) == [(32, "small"), (None, "large")]
    assert second["status"] == "kept" and second["because"] == "it kept its original when it was chosen"


def test_another_build_is_another_candidate(project):
    project.kernelized(["small", "large"])
    choices_of(project)
    (project.folder / "small/layers.py").write_text(LAYER.format(**PACKAGES["best"]))
    report = chosen_again(project, *INPUTS)
    assert all(site["status"] == "kept" and "small: Layer of the build" in site["because"] for site in report["sites"])
    assert any("first is not as it was chosen: small: Layer" in warning for warning in report["warnings"])
    assert "is no candidate of it here" in chosen_again(project, "--strict", code=6).err


@pytest.mark.parametrize("damage, words", [
    (lambda text: "no JSON", "cannot be read"), (lambda text: "[" * 100_000, "cannot be read"), (lambda text: "{}", "have no labels"),
    (lambda text: text.replace('"first"', '"third"').replace('"second"', '"fourth"'), "of another model"),
    (lambda text: text.replace("Doubling", "Tripling"), "of another model")])
def test_what_are_no_choices_of_the_model_is_refused(project, damage, words):
    project.kernelized(["small", "large"])
    choices_of(project)
    path = project.folder / "choices.json"
    path.write_text(damage(path.read_text()))
    assert words in chosen_again(project, code=2).err and not (project.folder / "again.pt").exists()


@pytest.mark.parametrize("change", [{"input": 7}, {"input": -1}, {"input": None}, {"input": 1 << 62}, {"serves": []},
                                    {"elements": [None, None]}, {"elements": [5, 5]}, {"elements": [-1, None]}])
def test_labels_from_outside_are_judged(project, change):
    project.kernelized(["small", "large"])
    written = choices_of(project)
    for label in written["sites"]:
        for served, elements in zip(label["serves"], change.get("elements", [])):
            served["elements"] = elements
        label.update({key: value for key, value in change.items() if key != "elements"})
    (project.folder / "choices.json").write_text(json.dumps(written))
    assert all(site["status"] == "kept" and site["because"] for site in chosen_again(project)["sites"])


def test_usage(project):
    project.kernelized(["small", "large"])
    choices_of(project)
    before = (project.folder / "choices.json").read_bytes()
    for arguments, words in [(["--tune", *INPUTS], "find it out"), (["--report", "choices.json"], "choices.json")]:
        done = project("kernelize", "model.pt", "--choices", "choices.json", *arguments)
        assert done.code in (2, 3) and words in done.err, done.err
    assert (project.folder / "choices.json").read_bytes() == before
    done = project("kernelize", "model.pt", "--choices", "none.json")
    assert done.code == 3 and "none.json" in done.err
    done = project("inspect", "tuned.pt", "--choices", "more.json", "--json")
    assert done.json["sites"] == 2 and done.json["file"].endswith("more.json")
    assert project("inspect", "tuned.pt", "--choices", "tuned.pt").code == 2
    done = project("inspect", "model.pt", "--choices", "none.json")
    assert done.code == 3 and "preserved_attrs" in done.err and not (project.folder / "none.json").exists()
    done = project("inspect", ".", "--choices", "none.json")
    assert done.code == 2 and "only a kernelized model" in done.err
