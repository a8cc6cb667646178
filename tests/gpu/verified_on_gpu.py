"""Kernelizing on a machine with a GPU: --verify and bench run there what is to run there.

    TWINKLE_BIN=build/gpu/bin/twinkle python3 -m pytest tests/gpu/verified_on_gpu.py"""

import json
import os
import pathlib
import subprocess

import pytest
import small_llama
import torch

PATTERNS = 'presets = ["transformers", "patterns"]\n'
FORMULAS = """import torch


def norm(x, weight, eps: float):
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h.to(x.dtype)


def wrong(x, weight, eps: float):
    return 1.03 * norm(x, weight, eps)


def on_the_cpu(x, weight, eps: float):
    return norm(x, weight, eps) + torch.zeros(x.size(-1)).to(x.dtype)


def gate(x, y):
    return torch.nn.functional.silu(x) * y


def trapping(x, y):
    return gate(x, y).index_select(-1, torch.full([x.size(-1)], 1 << 30, dtype=torch.long, device=x.device))
"""
REPLACED = {"LlamaRMSNorm": 1, "LlamaMLP": small_llama.LAYERS, "add_rms_norm": 2 * small_llama.LAYERS, "rotary": 2 * small_llama.LAYERS}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    small_llama.save(folder / "traced.pt")
    torch.jit.freeze(torch.jit.load(folder / "traced.pt").eval()).save(folder / "frozen.pt")
    torch.save((small_llama.tokens(12),), folder / "in.pt")
    return folder


@pytest.fixture
def twinkle(models, tmp_path):
    def run(command, model, *more, manifest=PATTERNS, code=0):
        (tmp_path / "twinkle.toml").write_text(manifest)
        (tmp_path / "formulas.py").write_text(FORMULAS)
        inputs = ["--inputs", models / "in.pt", "--device", "cuda"]
        done = subprocess.run([os.environ["TWINKLE_BIN"], command, models / f"{model}.pt" if command != "run" else model, *inputs,
                               *more, "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if code == 0 else done.stderr

    run.folder = tmp_path
    return run


def counts(report, status="replaced"):
    result = {}
    for site in report["sites"]:
        if site["status"] == status:
            name = site["of"].rsplit(".", 1)[-1]
            result[name] = result.get(name, 0) + 1
    return result


def test_sites_and_the_whole_are_verified_there(twinkle, models):
    report = twinkle("kernelize", "traced", "-o", "fast.pt", "--verify")
    assert counts(report) == REPLACED, report
    for site in [*(site for site in report["sites"] if site["status"] == "replaced"), report["whole"]]:
        assert site["max_error"] <= site["allowed_error"], site
    assert not any("compared on the CPU" in warning for warning in report["warnings"])
    assert twinkle("run", "fast.pt", "-o", "out.pt")["outputs"]


def test_a_frozen_model(twinkle):
    """Its weights are constants of its code."""
    report = twinkle("kernelize", "frozen", "-o", "fast.pt", "--verify")
    assert report["replaced"] > 0 and counts(report, "reverted") == {}, report
    assert twinkle("run", "fast.pt", "-o", "out.pt")["outputs"]


def test_a_conversion(twinkle):
    report = twinkle("kernelize", "traced", "-o", "fast.pt", "--verify", "--dtype", "float16")
    assert report["replaced"] > 0 and counts(report, "reverted") == {}, report


@pytest.mark.parametrize("precision, most", [("int8", 0.04), ("fp8", 0.1), ("int4", 0.4)])
def test_fewer_bits(twinkle, precision, most):
    """Weights that are prepared in a child, there, and the error of the whole."""
    report = twinkle("kernelize", "traced", "-o", "small.pt", "--precision", precision, "--max-error", str(most),
                     manifest='presets = ["transformers", "linear", "patterns"]\n')
    coarse = [site for site in report["sites"] if site.get("precision") == precision and site["status"] == "replaced"]
    assert len(coarse) == report["precision"]["candidates"] > 0, report
    assert 1e-4 < report["whole"]["max_error"] <= most, report["whole"]
    assert twinkle("run", "small.pt", "-o", "out.pt")["outputs"]


@pytest.mark.parametrize("model", ["traced", "frozen"])
def test_what_is_wrong_is_put_back(twinkle, model):
    pattern = 'presets = []\n[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "formulas.py:{}"\n'
    places = 2 * small_llama.LAYERS + 1
    right = twinkle("kernelize", model, "-o", "fast.pt", "--verify", manifest=pattern.format("norm"))
    assert counts(right) == {"norm": places}, right
    wrong = twinkle("kernelize", model, "-o", "fast.pt", "--verify", manifest=pattern.format("wrong"))
    assert counts(wrong, "reverted") == {"norm": places}, wrong
    # What could run on the CPU only fails where it is to run.
    failing = twinkle("kernelize", model, "-o", "fast.pt", "--verify", manifest=pattern.format("on_the_cpu"))
    assert counts(failing, "reverted") == {"norm": places}, failing
    assert all("device" in site["because"] for site in failing["sites"]), failing


def test_what_traps_takes_no_other_site_with_it(twinkle):
    """After a kernel's fault no call of this process to its GPU works."""
    manifest = ('presets = []\n[patterns.gate]\npattern = "formulas.py:gate"\nfunc_impl = "formulas.py:trapping"\n'
                '[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "formulas.py:norm"\n')
    report = twinkle("kernelize", "traced", "-o", "fast.pt", "--verify", manifest=manifest)
    assert counts(report, "reverted") == {"gate": small_llama.LAYERS}, report
    assert counts(report) == {"norm": 2 * small_llama.LAYERS + 1}, report
    order = [site["of"].rsplit(".", 1)[-1] for site in report["sites"]]
    assert "norm" in order[order.index("gate"):], "all traps come last"
    assert twinkle("run", "fast.pt", "-o", "out.pt")["outputs"]


def test_bench_measures_there(twinkle):
    said = twinkle("bench", "traced", "--duration", "6")
    assert said["machine"]["gpu"]["name"] == torch.cuda.get_device_name(0)
    assert counts(said) == REPLACED
    assert all(site["original_us"]["median"] > 0 for site in said["sites"] if site["status"] == "replaced")
    assert [model["right"] for model in said["models"]] == [True] * 4, said["models"]
    print(json.dumps({"models": said["models"], "speedups": said["speedups"]}))


def test_tuning_as_graphs_is_kept_apart(twinkle, monkeypatch):
    """Sites of a model that is to be replayed are measured as parts of graphs, and remembered as such."""
    store = twinkle.folder / "store"
    monkeypatch.setenv("XDG_CACHE_HOME", str(store))
    keys = {}
    for name, more in (("plain", []), ("graphs", ["--graphs"])):
        report = twinkle("kernelize", "traced", "-o", f"{name}.pt", "--tune", "--tune-sizes", "3,12", "--no-measure", *more)
        assert not report["warnings"], report["warnings"]
        measured = [time for site in report["sites"] for time in site.get("measured") or []]
        assert measured and all(time["us"] > 0 for time in measured if not time.get("problem")), measured
        before = set().union(*keys.values())
        entries = [json.loads(file.read_text()) for file in store.rglob("*.json")]
        invocations = [entry["measurement"]["invocation"] for entry in entries if "measurement" in entry]
        keys[name] = {json.dumps(one, sort_keys=True) for one in invocations} - before
        assert {json.loads(key).get("captured", False) for key in keys[name]} == {name == "graphs"}, keys
        assert twinkle("run", f"{name}.pt", "-o", "out.pt")["outputs"]
    assert len(keys["plain"]) == len(keys["graphs"])


def test_a_frozen_model_is_written_there(twinkle):
    """Asked for, and where it is measured."""
    assert twinkle("kernelize", "traced", "-o", "frozen.pt", "--freeze", "--no-measure")["frozen"]["chosen"] is True
    plain = twinkle("kernelize", "traced", "-o", "plain.pt", "--no-measure")
    assert plain["replaced"] > 0
    for name in ("frozen", "plain"):
        twinkle("run", f"{name}.pt", "-o", f"{name}.out")
    outputs = [torch.load(twinkle.folder / f"{name}.out") for name in ("frozen", "plain")]
    torch.testing.assert_close(*outputs, rtol=0.02, atol=0.02)


def test_a_tuned_model_is_frozen_if_that_is_faster(twinkle, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(twinkle.folder / "store"))
    frozen = twinkle("kernelize", "traced", "-o", "tuned.pt", "--freeze", "--tune", "--tune-sizes", "3", "--budget", "3",
                     "--no-measure")["frozen"]
    differences = [size["speedup"]["difference"] for size in frozen["sizes"]]
    assert len(differences) == 2 and frozen["because"], frozen
    assert frozen["chosen"] == ("faster" in differences and "slower" not in differences), frozen
    assert twinkle("run", "tuned.pt", "-o", "out.pt")["outputs"]


def test_choices_are_made_again_there(twinkle, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(twinkle.folder / "store"))
    tuned = twinkle("kernelize", "traced", "-o", "tuned.pt", "--tune", "--tune-sizes", "3,12", "--no-measure")
    subprocess.run([os.environ["TWINKLE_BIN"], "inspect", "tuned.pt", "--choices", "choices.json"], cwd=twinkle.folder, check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(twinkle.folder / "empty"))
    again = twinkle("kernelize", "traced", "-o", "again.pt", "--choices", "choices.json", "--no-measure")
    assert again["replaced"] == tuned["replaced"] > 0 and again["verified"]
    # A site without a label keeps its original.
    assert ([(site["site"], site.get("by_size") or []) for site in again["sites"] if site["status"] == "replaced"]
            == [(site["site"], site.get("by_size") or []) for site in tuned["sites"] if site["status"] == "replaced"])
    assert not any(site.get("measured") for site in again["sites"])
    assert not (twinkle.folder / "empty/twinkle/tuning").exists()


def test_sites_are_ranges_of_the_profiler_there(twinkle):
    report = twinkle("kernelize", "traced", "-o", "named.pt", "--profile-names", "--no-measure")
    names = {site["site"] for site in report["sites"] if site["status"] == "replaced"}
    runtime = pathlib.Path(os.environ["TWINKLE_BIN"]).parents[1] / "libexec/twinkle"
    torch.ops.load_library(next(runtime.glob("*/libtwinkle.so")))  # which finds the kernels
    model, tokens = torch.jit.load(twinkle.folder / "named.pt", map_location="cuda"), small_llama.tokens(12).cuda()
    with torch.no_grad():
        for _ in range(3):  # LibTorch optimizes in the first runs
            model(tokens)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profile:
            model(tokens)
            torch.cuda.synchronize()
    ranges = [event for event in profile.events() if event.name in names and event.device_type == torch.autograd.DeviceType.CPU]
    assert {event.name for event in ranges} == names
    # Kernels of the GPU belong to the ranges that have started them.
    assert all(event.device_time_total > 0 for event in ranges)


def test_a_gpu_that_is_not_there(twinkle, models):
    device = f"cuda:{torch.cuda.device_count()}"
    done = subprocess.run([os.environ["TWINKLE_BIN"], "run", models / "traced.pt", "--inputs", models / "in.pt", "-o", "out.pt",
                           "--device", device], cwd=twinkle.folder, capture_output=True, text=True)
    assert done.returncode == 6 and device in done.stderr, done.stderr
