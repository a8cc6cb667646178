"""Sites that are alike are one line, whatever a worker reports of them; -v has every one."""

import json

import pytest

NORM, MLP = "transformers.models.llama.modeling_llama.LlamaRMSNorm", "transformers.models.llama.modeling_llama.LlamaMLP"


def spread(median):
    return {"median": median, "lower_quartile": median * 0.98, "upper_quartile": median * 1.02}


def site(name, of=NORM, status="replaced", kernel="twinkle-pack: RMSNorm", because="bound by the preset", error=1e-7,
         times=None, difference="faster"):
    measured = {"original_us": spread(times[0]), "kernelized_us": spread(times[1]), "calls": 1,
                "speedup": {**spread(times[0] / times[1]), "difference": difference}} if times else {}
    return {"site": name, "kind": "layer", "of": of, "status": status, "kernel": kernel, "variant": None,
            "because": because, "candidates": [], "max_error": error, "original_error": 1e-7, "allowed_error": 2e-7,
            **measured}


def report_of(sites, **more):
    return {"schema": "twinkle.kernelize/1", "mode": "inference", "device": "cpu", "sites": sites, "verified": True,
            "shapes": [{"size": "given", "inputs": "int64[1,8]"}], "warnings": [],
            "whole": {"max_error": 1e-7, "allowed_error": 2e-7, "because": ""}, **more}


@pytest.fixture(autouse=True)
def measuring(twinkle):
    twinkle.measures = True


@pytest.fixture
def shown(fake_worker):
    def show(sites, *arguments, command="kernelize", columns=0, **more):
        report = report_of(sites, **more)
        twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
        arguments = ["-o", "fast.pt", *arguments] if command == "kernelize" else arguments
        done = twinkle(command, "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", *arguments,
                       env={"COLUMNS": str(columns)} if columns else {})
        assert done.code == 0, done.err
        return done
    return show


def large(layers=32):
    sites = []
    for i in range(layers):
        block = f"model.layers.{i}"
        sites += [site(f"{block}.mlp", MLP, kernel="twinkle-pack: SwiGLUMLP", error=i * 1e-9),
                  site(f"{block}.input_layernorm"), site(f"{block}.post_attention_layernorm"),
                  site(f"{block}.forward:rotary", "rotary"), site(f"{block}.forward:rotary#2", "rotary")]
    return [*sites, site("model.norm")]


def test_a_model_of_32_layers_fits_a_screen(shown):
    done = shown(large())
    lines = done.out.splitlines()
    assert len(lines) + len(done.err.splitlines()) <= 40
    assert [line.split("  ")[0].strip() for line in lines[1:4]] == ["32 × LlamaMLP", "65 × LlamaRMSNorm", "64 × rotary"]
    assert "model.layers.*.mlp" in lines[1] and "model.*norm" in lines[2] and "model.layers.*.forward:rotary*" in lines[3]
    assert "3.1e-8   2.0e-7" in lines[1]  # the worst
    assert "161 sites: 161 replaced, 0 kept, 0 put back" in done.out
    assert len(shown(large(), "-v").out.splitlines()) > 161


@pytest.mark.parametrize("columns", [60, 72, 80, 100, 120, 200])
def test_it_fits_narrow_terminals(shown, columns):
    times = [site(f"model.layers.{i}.a_rather_long_name_of_a_norm", times=(100, 50)) for i in range(12)]
    odd = site("model.layers.12.mlp", MLP, "kept", "", "no kernel fits, for a reason of more than a few words")
    out = shown([*large(2), *times, odd], columns=columns).out
    widest = max(map(len, out.splitlines()))
    assert widest <= max(columns, 75), out
    assert "14 × LlamaRMSNorm" not in out and "17 × LlamaRMSNorm" in out


def test_what_differs_is_apart(shown):
    sites = [site(f"layers.{i}.norm") for i in range(8)]
    sites[3] = site("layers.3.norm", status="reverted", because="its error is 3.0e-3 where 2.0e-7 may be", error=3e-3)
    sites[5] = site("layers.5.norm", kernel="acme: Norm")
    lines = shown(sites).out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == ["6 × LlamaRMSNorm", "1 × LlamaRMSNorm", "1 × LlamaRMSNorm"]
    assert "layers.3.norm" in lines[2] and "its error is" in lines[2] and "acme: Norm" in lines[3]
    assert "  put back  " in lines[2]  # the word of the pages


def test_reasons_that_differ_in_numbers_are_alike(shown):
    """The worst of them is shown."""
    sites = [site(f"layers.{i}.norm", status="reverted", because=f"its error is {i + 1}e-3", error=(i + 1) * 1e-3)
             for i in range(32)]
    lines = shown(sites).out.splitlines()
    assert lines[1].startswith("32 × LlamaRMSNorm") and "3.2e-2" in lines[1] and "e.g. its error is 32e-3" in lines[1]
    assert lines[2] == ""


def test_times_are_those_of_all_together(shown):
    sites = [site(f"layers.{i}.norm", times=(100 + i, 50)) for i in range(4)]
    lines = shown(sites, command="bench").out.splitlines()
    assert "406 us ±2%" in lines[1] and "200 us ±2%" in lines[1] and "2.03x" in lines[1]
    sites[0] = site("layers.0.norm", times=(100, 50), difference="unknown")
    assert "too few runs to tell" in shown(sites, command="bench").out
    equal = [site(f"layers.{i}.norm", times=(100, 99), difference="none") for i in range(4)]
    assert "no difference" in shown(equal, command="bench").out


def test_json_has_every_site(shown):
    assert shown(large(), "--json").json["sites"] == large()


SPEED = {"runs": 57, "threads": 2, "original_us": spread(317000.0), "kernelized_us": spread(242000.0),
         "speedup": {**spread(1.31), "difference": "faster"}, "not_measured": None}


@pytest.mark.parametrize("change, words", [
    ({}, "speed: 1.31x the original: 242 ms a run, before 317 ms (medians of 57 runs in turns, 2 threads)"),
    ({"speedup": {**spread(1.0), "difference": "none"}}, "speed: no difference: 242 ms a run, before 317 ms"),
    ({"speedup": {**spread(1.31), "difference": "none"}}, "speed: no sure difference: 242 ms a run, before 317 ms"),
    ({"speedup": {**spread(0.5), "difference": "slower"}}, "speed: 0.50x the original: "),
    ({"busy": True}, "speed: perhaps 1.31x the original: 242 ms a run, before 317 ms (medians of 57 runs in turns, 2 threads); "
     "other programs keep this machine busy"),
    ({"original_us": None, "not_measured": "nothing was replaced"}, "speed: not measured: nothing was replaced")])
def test_how_much_faster(shown, change, words):
    whole = {"max_error": 1e-7, "allowed_error": 2e-7, "because": "", **SPEED, **change}
    assert words in shown(large(2), whole=whole).out


@pytest.mark.parametrize("sites", [3, [3, None, {}], [{"site": 1, "of": [], "max_error": "x", "original_us": []}] * 3])
def test_reports_of_another_shape(shown, sites):
    shown(sites, "--report", "page.html")


def test_names_that_are_hostile(shown):
    names = ["", ".", "..", "a..b", "\x1b[31m", "x" * 5000, "ü.ä", "ü.ö", "*", "a.0.b", "a.1.b"]
    out = shown([site(name, of="\x1b[31m." + "y" * 3000) for name in names], columns=100).out
    assert "\x1b" not in out and max(map(len, out.splitlines())) <= 100


def test_times_say_whose_they_are(shown):
    """Rows of one name are told apart by where their sites are; one alone needs no place."""
    def timed(name, us, **more):
        return site(name, **more) | {"by_size": [], "measured": [
            {"rows": 8, "kernel": "", "us": us, "problem": "", "from_store": False}]}
    sites = [timed("layers.0.up", 5.0), timed("layers.1.up", 5.0), timed("layers.0.down", 7.0), timed("head", 3.0, of=MLP)]
    rows = [line for line in shown(sites, "--tune").out.splitlines() if " this run" in line]
    assert [line.split("  ")[0] for line in rows] == ["LlamaRMSNorm layers.*.up (2 sites)", "LlamaRMSNorm layers.0.down", "LlamaMLP"]
