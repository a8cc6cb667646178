"""kernelize says how much faster the whole model is, or why not. No time is asserted, only that there is one."""

import json

import pytest
from kernels_for_tests import (EXAMPLES, PATIENCE, RMS_NORM, calling, compiled_kernel, libraries, models, needs_runtime,
                               outcome, python_kernel)
from test_hostile import refused
from test_report_page import Page

pytestmark = needs_runtime


@pytest.fixture(autouse=True)
def measuring(twinkle):
    twinkle.measures = True


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt", models.parent / "inputs/hidden.pt"


def kernelize(twinkle, small, *more, env=None):
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify=given", "-o", "fast.pt", "--json", *more, env=env)
    assert done.code == 0, done.err
    return done.json


def assert_measured_or_busy(whole):
    if whole["speedup"] is None:
        assert "keep this machine busy" in whole["not_measured"] and whole["runs"] == 0
        return
    assert whole["not_measured"] is None and 6 <= whole["runs"] <= 200 and whole["threads"] >= 1
    for key in ("original_us", "kernelized_us", "speedup"):
        assert 0 < whole[key]["lower_quartile"] <= whole[key]["median"] <= whole[key]["upper_quartile"]
    assert whole["speedup"]["difference"] in ("faster", "slower", "none")


def test_the_whole_model(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    report = kernelize(twinkle, small, "--report", "report.json")
    assert_measured_or_busy(report["whole"])
    written = json.loads((twinkle.folder / "report.json").read_text())
    assert written["whole"] == report["whole"] and written["sites"] == report["sites"]
    assert report["weights_dtype"] == "float32" and "modules" not in report


def test_where_it_makes_no_sense(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    assert "speedup" not in kernelize(twinkle, small, "--no-measure")["whole"]
    report = kernelize(twinkle, small, "--exclude", "*")
    assert report["whole"]["not_measured"] == "nothing was replaced"
    done = twinkle("kernelize", small[0], "-o", "fast.pt")
    assert done.code == 0 and "nor measured; give --inputs" in done.out and "speed" not in done.out


def test_a_model_that_crashes_while_it_is_measured(twinkle, small, libraries):
    """It was right, so it is written; --strict does not."""
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("crash_measured"))
    whole = kernelize(twinkle, small, env=PATIENCE)["whole"]
    if "keep this machine busy" in whole["not_measured"]:
        pytest.skip("nothing is measured on a busy machine")
    assert "the kernelized model cannot be measured" in whole["not_measured"]
    before = outcome(twinkle.folder)
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify=given", "--strict", "-o", "other.pt", "--json",
                   env=PATIENCE)
    refused(done, 6, "the kernelized model cannot be measured", "segmentation fault")
    assert outcome(twinkle.folder) == before


def test_a_page_of_a_real_model(twinkle):
    done = twinkle("kernelize", EXAMPLES / "traced.pt", "--inputs", EXAMPLES / "inputs.pt", "--verify=given",
                   "--no-measure", "--dry-run", "--report", "report.html")
    assert done.code == 0, done.err
    shown = Page((twinkle.folder / "report.html").read_text())
    for text in ("traced.pt, kernelized", "2 × LlamaMLP", "embed_tokens", "Embedding", "lm_head", "forward:rotary", "not measured"):
        assert text in shown.text, text
    assert list(outcome(twinkle.folder)) == ["report.html"]
