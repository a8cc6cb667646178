"""inspect --choices writes what serves the sites of a tuned model, and kernelize --choices makes it again of the original,
without a measurement."""

import json

import pytest
from kernels_for_tests import needs_runtime
from precision_projects import KERNEL, manifest
from test_tune_sizes import LAYER, MODELS, PACKAGES, SIZES, model_and_packages, parts  # noqa: F401

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

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


def test_sites_that_the_user_leaves_out_are_no_failures(project):
    project.kernelized(["small", "large"])
    choices_of(project)
    for options in (["--exclude", "second"], ["--only", "first"]):
        report = chosen_again(project, *options, "--strict")
        first, second = report["sites"]
        assert parts(first) == [(32, "small"), (None, "large")]
        assert second["status"] == "kept" and second["because"] in ("excluded", "not among the sites asked for (only)")
        assert not any("not as it was chosen" in warning for warning in report["warnings"])
    report = chosen_again(project, "--exclude", "*")
    assert all(site["because"] == "excluded" for site in report["sites"])
    assert not any("not as it was chosen" in warning for warning in report["warnings"])


def test_a_site_that_was_something_else_is_not_as_it_was_chosen(project):
    project.kernelized(["small", "large"])
    written = choices_of(project)
    written["sites"][1]["of"] = "Tripling"
    (project.folder / "choices.json").write_text(json.dumps(written))
    report = chosen_again(project)
    first, second = report["sites"]
    assert parts(first) == [(32, "small"), (None, "large")]
    assert second["status"] == "kept" and second["because"].startswith("it was Tripling, and is ")
    assert [warning for warning in report["warnings"] if "not as it was chosen" in warning] == [
        f"second is not as it was chosen: {second['because']}"]
    assert "it was Tripling" in chosen_again(project, "--strict", code=6).err
    assert chosen_again(project, "--strict", "--exclude", "second")["sites"][1]["because"] == "excluded"


@pytest.mark.parametrize("more, words", [
    ({}, "twinkle-pack: Linear"), ({"way": 2, "grain": 0}, "twinkle-pack: Linear (grain=0, way=2)"),
    ({"way": 2}, "twinkle-pack: Linear (way=2)"), ({"way": 2, "grian": 5}, "in its tuning.toml"),
    ({"way": 7}, "in its tuning.toml"), ({"way": 2.0}, "in its tuning.toml"), ({"way": True}, "in its tuning.toml"),
    ({"way": "2"}, "in its tuning.toml"), ({"attribute bias": "1"}, "in its tuning.toml"),
    ({"grain": 0, "reading": 0}, "none of its operators is configured")])  # of other operators: it would be half applied
def test_a_configuration_is_one_that_the_build_declares(twinkle, more, words):
    model = nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256)).eval()
    torch.jit.trace(model, torch.randn(4, 256)).save(twinkle.folder / "model.pt")
    assert twinkle("kernelize", "model.pt", "-o", "tuned.pt").code == 0
    written = choices_of(twinkle)
    next(label for label in written["sites"] if label["site"] == "0")["serves"][0]["cfg"].update(more)
    (twinkle.folder / "choices.json").write_text(json.dumps(written))
    report = chosen_again(twinkle)
    linear = next(site for site in report["sites"] if site["site"] == "0")
    if words.startswith("twinkle-pack"):
        assert linear["status"] == "replaced" and linear["kernel"] == words
    else:
        assert linear["status"] == "kept" and words in linear["because"]
        chosen_again(twinkle, "--strict", code=6)


@pytest.mark.parametrize("site, cfg, words", [
    ("0", {"way": 2, "grain": 16384}, "grain must be 0 where way is at least 1"),
    ("1", {"grain": 0, "reading": 2}, "reading must be 0 where device is cpu")])
def test_a_choice_that_breaks_a_constraint_says_which(twinkle, site, cfg, words):
    model = nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256)).eval()
    torch.jit.trace(model, torch.randn(4, 256)).save(twinkle.folder / "model.pt")
    assert twinkle("kernelize", "model.pt", "-o", "tuned.pt").code == 0
    written = choices_of(twinkle)
    next(label for label in written["sites"] if label["site"] == site)["serves"][0]["cfg"].update(cfg)
    (twinkle.folder / "choices.json").write_text(json.dumps(written))
    report = chosen_again(twinkle)
    kept = next(one for one in report["sites"] if one["site"] == site)
    assert kept["status"] == "kept" and "by its tuning.toml, " + words in kept["because"]
    assert [warning for warning in report["warnings"] if words in warning and json.dumps(cfg, separators=(",", ":"), sort_keys=True) in warning]
    assert words in chosen_again(twinkle, "--strict", code=6).err


def test_what_precision_chose_is_not_chosen_again(twinkle):
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh()).eval()
    torch.jit.trace(model, torch.randn(2, 64)).save(twinkle.folder / "model.pt")
    for layers in (["LinearInt8"], ["LinearInt8", "LinearExact"]):
        (twinkle.folder / "twinkle.toml").write_text("presets = []\n" + manifest(*layers)(KERNEL))
        done = twinkle("kernelize", "model.pt", "--inputs", "float32[2,64]", "--precision", "int8", "--max-error", "1",
                       "-o", "tuned.pt")
        assert done.code == 0, done.err
        assert choices_of(twinkle)["sites"][0]["serves"][0]["kernel"].endswith(": LinearInt8")
        report = chosen_again(twinkle)
        assert report["sites"][0]["status"] == "kept" and "it computes in int8" in report["sites"][0]["because"]
        assert any("0 is not as it was chosen" in warning and "--precision" in warning for warning in report["warnings"])
        assert "--precision" in chosen_again(twinkle, "--strict", code=6).err


def test_another_build_is_another_candidate(project):
    project.kernelized(["small", "large"])
    choices_of(project)
    (project.folder / "small/layers.py").write_text(LAYER.format(**PACKAGES["best"]))
    report = chosen_again(project, *INPUTS)
    assert all(site["status"] == "kept" and "small: Layer of the build" in site["because"] for site in report["sites"])
    assert any("2 sites are not as they were chosen: small: Layer" in warning for warning in report["warnings"])
    assert "is no candidate of it here" in chosen_again(project, "--strict", code=6).err


@pytest.mark.parametrize("damage, words", [
    (lambda text: "no JSON", "cannot be read as JSON"), (lambda text: "[" * 100_000, "cannot be read as JSON"), (lambda text: "[]", "schema"),
    (lambda text: text.replace("labels/1", "labels/99"), "schema"), (lambda text: '{"schema": "twinkle.labels/1"}', "no list of sites"),
    (lambda text: text.replace('"first"', '"third"').replace('"second"', '"fourth"'), "of another model"),
    (lambda text: text.replace("Doubling", "Tripling"), "of another model"),
    (lambda text: text.replace('"second"', '"first"'), "names a site that another one has named: first"),
    (lambda text: text.replace('"site": "first"', '"site": 5'), ".site is missing, or of another type"),
    (lambda text: text.replace('"of":', '"off":'), "sites[0].of is missing, or of another type"),
    (lambda text: text.replace('"serves":', '"served":'), "sites[0].serves is no list"),
    (lambda text: text.replace('"build":', '"built":'), "sites[0].serves[0].build is missing, or of another type"),
    (lambda text: text.replace('"input": 0', '"input": "0"'), "sites[0].input is missing, or of another type")])
def test_what_are_no_choices_of_the_model_is_refused(project, damage, words):
    project.kernelized(["small", "large"])
    choices_of(project)
    path = project.folder / "choices.json"
    path.write_text(damage(path.read_text()))
    assert words in chosen_again(project, code=2).err and not (project.folder / "again.pt").exists()


@pytest.mark.parametrize("change", [{"input": 7}, {"input": -1}, {"input": None}, {"input": 1 << 62}, {"serves": []},
                                    {"elements": [None, None]}, {"elements": [5, 5]}, {"elements": [-1, None]},
                                    {"from": [1, 33]}, {"from": [0, 30]}, {"up_to": [None, None]}, {"up_to": [32, 99]}])
def test_labels_from_outside_are_judged(project, change):
    project.kernelized(["small", "large"])
    written = choices_of(project)
    for label in written["sites"]:
        for key in {"elements", "from", "up_to"} & change.keys():
            for served, value in zip(label["serves"], change[key]):
                served[key] = value
        label.update({key: value for key, value in change.items() if key in ("input", "serves")})
    (project.folder / "choices.json").write_text(json.dumps(written))
    report = chosen_again(project)
    assert all(site["status"] == "kept" and site["because"] for site in report["sites"])
    assert [warning for warning in report["warnings"] if "not as they were chosen" in warning], report["warnings"]


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
    done = project("inspect", "tuned.pt", "--choices", "none.json", "--graph", "first")
    assert done.code == 2 and "--graph" in done.err and not (project.folder / "none.json").exists()
    done = project("inspect", ".", "--choices", "none.json")
    assert done.code == 2 and "only a kernelized model" in done.err


def test_one_reason_of_several_sites_is_told_once(project):
    project.kernelized(["small", "large"])
    written = choices_of(project)
    for label in written["sites"]:
        for served in label["serves"]:
            served["build"] = "0" * 64
    (project.folder / "choices.json").write_text(json.dumps(written))
    report = chosen_again(project)
    told = [warning for warning in report["warnings"] if "chosen" in warning]
    assert len(told) == 1 and "2 sites are not as they were chosen" in told[0] and "(first, …, second)" in told[0], told


@pytest.mark.parametrize("text, why", [("no JSON", "cannot be read as JSON"), ('{"schema": "twinkle.labels/99"}', "schema")])
def test_a_file_of_no_choices_is_named_before_the_model_is_read(project, text, why):
    (project.folder / "choices.json").write_text(text)
    (project.folder / "none.pt").write_text("no model")
    done = project("kernelize", "none.pt", "--choices", "choices.json")
    assert done.code == 2 and why in done.err and "choices.json" in done.err and "none.pt" not in done.err, done.err
