"""bench: what it reports and draws of real models, and what becomes of kernels that misbehave while they are measured.
No time is asserted, only that there is one."""

import json
import signal
import threading
import time
import xml.etree.ElementTree as ElementTree

import pytest
from kernels_for_tests import (EXAMPLES, NORM, PATIENCE, RMS_NORM, calling, compiled_kernel, libraries, models,
                               needs_runtime, outcome, python_kernel, sha256)
from test_hostile import refused

SVG = "{http://www.w3.org/2000/svg}"
MODELS = ["original", "frozen original", "kernelized", "frozen kernelized"]
FEW = ["--runs", "6", "--warmup", "1", "--threads", "1"]


def drawing(path):
    """The parsed drawing, which shows no more than shapes and text."""
    root = ElementTree.fromstring(path.read_bytes())
    assert {element.tag for element in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "desc", "style", "rect", "line", "circle", "text", "g")}
    for element in root.iter():
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    style = root.find(SVG + "style").text
    assert "prefers-color-scheme:dark" in style and "url(" not in style and "@import" not in style
    return root


def texts(root):
    return [element.text for element in root.iter(SVG + "text")]


def assert_spread(times):
    assert 0 < times["lower_quartile"] <= times["median"] <= times["upper_quartile"]


def bench(twinkle, model, *more, inputs=EXAMPLES / "inputs.pt", env=None):
    done = twinkle("bench", model, "--inputs", inputs, "--json", *more, env=env)
    assert done.code == 0, done.err
    return done.json


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt", models.parent / "inputs/hidden.pt"


# Real models -----------------------------------------------------------------------------------------------------


@needs_runtime
@pytest.mark.parametrize("name", ["traced", "scripted_bfloat16"])
def test_the_examples(twinkle, name):
    model = EXAMPLES / f"{name}.pt"
    before = sha256(model)
    report = bench(twinkle, model, "--project", EXAMPLES, "--svg", "bench.svg", "--threads", "1", "--duration", "0.5")
    assert list(outcome(twinkle.folder)) == ["bench.svg"] and sha256(model) == before
    assert report["schema"] == "twinkle.bench/1" and report["mode"] == "inference" and report["step"] == "forward"
    assert (report["replaced"], report["kept"], report["reverted"]) == (7, 0, 0)
    for site in report["sites"]:
        assert {"site", "kind", "of", "status", "kernel", "variant", "because", "max_error"} <= set(site)
        assert site["status"] == "replaced" and 0 <= site["max_error"] <= site["allowed_error"]
        assert site["calls"] == 1 and site["runs"] >= 6
        for times in ("original_us", "kernelized_us", "speedup"):
            assert_spread(site[times])
        assert site["speedup"]["difference"] in ("faster", "slower", "none")
    assert [one["name"] for one in report["models"]] == MODELS
    for one in report["models"]:
        assert one["right"] and one["max_error"] <= one["allowed_error"] and one["runs"] >= 6
        assert_spread(one["time_us"])
    assert {(one["of"], one["over"]) for one in report["speedups"]} >= {
        ("kernelized", "original"), ("frozen kernelized", "frozen original")}
    assert report["whole"]["max_error"] <= report["whole"]["allowed_error"]
    machine = report["machine"]
    assert machine["threads"] == 1 and machine["cores"] >= 1 and machine["torch"] and "cpu" in machine

    shown = texts(drawing(twinkle.folder / "bench.svg"))
    assert shown[0] == f"twinkle bench {name}.pt"
    for text in [*MODELS, *(site["site"] for site in report["sites"])]:
        assert text in shown
    assert any("µs" in text for text in shown)


@needs_runtime
def test_for_a_person(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM, more='modules = ["first.*"]\n')
    done = twinkle("bench", small[0], "--inputs", small[1], *FEW, "--svg", "bench.svg")
    assert done.code == 0, done.err
    assert "wrote bench.svg" in done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["sites", "where", "status", "kernel", "error", "allowed", "original", "kernelized",
                                "speedup", "because"]
    assert "first.norm " in lines[1] and "±" in lines[1] and "kernel: RMSNorm" in lines[1]
    assert "second.norm" in lines[2] and "kept" in lines[2]
    assert "1 replaced, 1 kept, 0 put back; mode inference" in done.out
    for name in MODELS:
        assert f"\n{name} " in done.out
    assert "LibTorch" in done.out and "a run is forward" in done.out


@needs_runtime
def test_few_runs_tell_nothing(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    report = bench(twinkle, small[0], "--runs", "2", "--warmup", "0", "--threads", "1", inputs=small[1])
    assert all(one["difference"] == "unknown" for one in report["speedups"])
    assert [one["runs"] for one in report["models"]] == [2, 2, 2, 2]


@needs_runtime
def test_only_and_nothing_at_all(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    report = bench(twinkle, small[0], *FEW, "--only", "second.*", inputs=small[1])
    statuses = {site["site"]: site["status"] for site in report["sites"]}
    assert statuses == {"first.norm": "kept", "second.norm": "replaced"}
    kept = report["sites"][0]
    assert kept["speedup"] is None and kept["original_us"] is None and kept["runs"] == 0
    report = bench(twinkle, small[0], *FEW, "--exclude", "*", "--svg", "none.svg", inputs=small[1])
    assert report["replaced"] == 0 and len(report["models"]) == 4
    assert "Sites" not in texts(drawing(twinkle.folder / "none.svg"))


@needs_runtime
def test_a_model_that_counts_its_calls(twinkle):
    """Each contestant begins where the file begins."""
    torch = pytest.importorskip("torch")

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.line = torch.nn.Linear(32, 32)
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("mean", torch.zeros(1))

        def forward(self, x: torch.Tensor):
            self.count += 1
            self.mean = 0.5 * self.mean + 0.5 * x.mean()
            return self.line(x) * self.count, self.count, self.mean

    torch.jit.script(Counting().eval()).save(twinkle.folder / "model.pt")
    report = bench(twinkle, "model.pt", *FEW, inputs="float32[4,32]")
    assert report["replaced"] == 1
    for one in report["models"]:
        assert one["right"] and one["max_error"] <= one["allowed_error"], one


@needs_runtime
def test_a_site_that_is_called_more_than_once(twinkle, models):
    inputs = models.parent / "inputs/hidden.pt"
    python_kernel(twinkle.folder, RMS_NORM)
    site, = bench(twinkle, models / "called_twice.pt", *FEW, inputs=inputs)["sites"]
    assert site["calls"] == 2 and site["status"] == "replaced"


@needs_runtime
def test_training(twinkle, models):
    from test_training import NORM_FUNCTION
    python_kernel(twinkle.folder, NORM_FUNCTION)
    report = bench(twinkle, models / "two_of_a_kind.pt", "--mode", "training", *FEW, "--svg", "bench.svg",
                   inputs=models.parent / "inputs/hidden.pt")
    assert report["mode"] == "training" and report["step"] == "forward and backward" and report["replaced"] == 2
    assert [bool(one["runs"]) for one in report["models"]] == [True, False, True, False]
    assert all("frozen" in one["because"] for one in report["models"] if not one["runs"])
    assert "not measured" in texts(drawing(twinkle.folder / "bench.svg"))


# Kernels that are not right, or no kernels -------------------------------------------------------------------------


@needs_runtime
def test_a_kernel_that_is_wrong_is_put_back(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM.replace("self.weight *", "1.001 * self.weight *"))
    report = bench(twinkle, small[0], *FEW, inputs=small[1])
    assert report["reverted"] == 2
    for site in report["sites"]:
        assert "its error is" in site["because"] and site["speedup"] is None
    assert all(one["right"] for one in report["models"])


@needs_runtime
@pytest.mark.parametrize("operator, words", [("crash_later", "segmentation fault"), ("hang_later", "hung"),
                                             ("refuse", "the operator refuses")])
def test_a_kernel_that_misbehaves_while_it_is_measured(twinkle, small, libraries, operator, words):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling(operator))
    with (twinkle.folder / "twinkle.toml").open("a") as file:
        file.write('modules = ["first.*"]\n')
    # More runs than the 16 calls that these operators survive: a run may be one call, if the machine is busy.
    report = bench(twinkle, small[0], "--runs", "20", *FEW[2:], inputs=small[1], env=PATIENCE)
    site = next(site for site in report["sites"] if site["site"] == "first.norm")
    assert site["status"] == "reverted" and words in site["because"] and site["speedup"] is None
    assert report["models"][2]["runs"] == 20


@needs_runtime
@pytest.mark.parametrize("operator, whose", [("crash_measured", "the kernelized model cannot be measured"),
                                             ("crash_in_turns", "the frozen kernelized model cannot be measured")])
def test_a_model_that_crashes_while_it_is_measured(twinkle, small, libraries, operator, whose):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling(operator))
    done = twinkle("bench", small[0], "--inputs", small[1], *FEW, "--json", "--svg", "bench.svg", env=PATIENCE)
    error = refused(done, 6, whose, "segmentation fault")
    assert "--only" in error["hint"] and not (twinkle.folder / "bench.svg").exists()


@needs_runtime
def test_a_library_that_cannot_be_loaded(twinkle, small, libraries):
    compiled_kernel(twinkle.folder, libraries.get("crashes"), source=calling("copy"))
    refused(twinkle("bench", small[0], "--inputs", small[1], "--json", env=PATIENCE), 6, "segmentation fault")


@needs_runtime
def test_an_interrupt(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    before = outcome(twinkle.folder)
    process = twinkle.start("bench", small[0], "--inputs", small[1], "--duration", "1000", "--svg", "bench.svg", "-v")
    timer = threading.Timer(50, process.kill)  # rather than wait for a line that does not come
    timer.start()
    line = b"-"
    while line and b"verifying" not in line:
        line = process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    timer.cancel()
    assert process.returncode == 130 and out == b"" and b"interrupted" in err
    assert outcome(twinkle.folder) == before


# What the user gives -----------------------------------------------------------------------------------------------


@needs_runtime
def test_inputs_that_do_not_fit(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)
    (twinkle.folder / "text.pt").write_text("no inputs")
    for inputs in ("int64[1,8]:0..32", "float32[2,3]", "text.pt"):
        refused(twinkle("bench", small[0], "--inputs", inputs, "--json", "--svg", "bench.svg"), 2)
    assert not (twinkle.folder / "bench.svg").exists()
    refused(twinkle("bench", "text.pt", "--inputs", "float32[2]", "--json"), 2, "text.pt")
    refused(twinkle("bench", small[0], "--inputs", small[1], "--device", "cuda", "--json"), 6, "sees no such device here")


@pytest.mark.parametrize("arguments, code, words", [
    (["model.pt"], 2, "bench needs inputs"),
    (["model.pt", "--inputs", "inputs.pt", "--runs", "0"], 2, "--runs cannot be '0'"),
    (["model.pt", "--inputs", "inputs.pt", "--runs", "3.5"], 2, "--runs cannot be '3.5'"),
    (["model.pt", "--inputs", "inputs.pt", "--runs", "99999999999999999999"], 2, "--runs cannot be"),
    (["model.pt", "--inputs", "inputs.pt", "--warmup", "-1"], 2, "--warmup cannot be '-1'"),
    (["model.pt", "--inputs", "inputs.pt", "--duration", "nan"], 2, "--duration cannot be 'nan'"),
    (["model.pt", "--inputs", "inputs.pt", "--duration", "0"], 2, "--duration cannot be '0'"),
    (["model.pt", "--inputs", "inputs.pt", "--duration", "1e9"], 2, "up to a day"),
    (["model.pt", "--inputs", "inputs.pt", "--duration", "10s"], 2, "--duration cannot be '10s'"),
    (["model.pt", "--inputs", "inputs.pt", "--threads", "0"], 2, "--threads cannot be '0'"),
    (["model.pt", "--inputs", "inputs.pt", "--mode", "fast"], 2, "--mode cannot be 'fast'"),
    (["model.pt", "--inputs", "inputs.pt", "--svg", "model.pt"], 2, "overwrite"),
    (["model.pt", "--inputs", "inputs.pt", "--svg", "inputs.pt"], 2, "overwrite"),
    (["model.pt", "--inputs", "inputs.pt", "--svg", "libexec"], 2, "folder"),
    (["model.pt", "--inputs", "inputs.pt", "--svg", "no/bench.svg"], 1, "cannot be written"),
    (["none.pt", "--inputs", "inputs.pt"], 3, "none.pt"),
    (["model.pt", "--inputs", "none.pt"], 3, "none.pt"),
    (["model.pt", "--inputs", "inputs.pt", "--map", "none.json"], 3, "none.json"),
])
def test_wrong_usage(fake_worker, arguments, code, words):
    twinkle = fake_worker("open('started', 'w')\n")
    done = twinkle("bench", *arguments)
    assert (done.code, done.out) == (code, "") and words in done.err
    assert not (twinkle.folder / "started").exists()


def test_the_request(fake_worker):
    twinkle = fake_worker("event({'result': {'request': request}})")
    base = ["bench", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--json"]
    request = twinkle(*base, "--threads", "3", "--runs", "20", "--warmup", "0", "--duration", "2.5", "--mode", "train",
                      "--only", "a", "--exclude", "b").json["request"]
    expected = {"command": "bench", "threads": 3, "runs": 20, "warm_up": 0, "duration": 2.5, "mode": "training",
                "only": ["a"], "exclude": ["b"], "fallback": ["true"], "strict": False, "output": None}
    assert {key: request[key] for key in expected} == expected
    request = twinkle(*base).json["request"]
    assert request["threads"] is None and request["runs"] is None and request["duration"] is None


# Reports that no worker should write -------------------------------------------------------------------------------


def spread(median):
    return {"median": median, "lower_quartile": median * 0.9, "upper_quartile": median * 1.1}


def site(name, original=100.0, kernelized=50.0, difference="faster"):
    return {"site": name, "status": "replaced", "kernel": "k: L", "calls": 1, "runs": 20, "max_error": 1e-7,
            "original_us": spread(original), "kernelized_us": spread(kernelized),
            "speedup": {**spread(min(original / kernelized, 1e300)), "difference": difference}}


def drawn(fake_worker, sites, models=(), code=0, **more):
    report = {"sites": sites, "models": list(models), "speedups": [], "machine": {"cpu": "A & B <C>"}, **more}
    twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
    done = twinkle("bench", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--svg", "bench.svg")
    assert done.code == code, done.err
    return done, drawing(twinkle.folder / "bench.svg")


HOSTILE = ["</text><script>alert(1)</script>", "a & b < c > d \" e ' f", "]]>", "<!--", "&amp;&#x3c;", "\x1b[31mred\x07",
           "zero\x00byte", "\u202eturned", "\ufffe\uffff", "x" * 5000, "\u00e4\u00f6 \U0001f600", "&undefined;", ""]


def test_hostile_names_of_sites(fake_worker):
    done, root = drawn(fake_worker, [site(name) for name in HOSTILE])
    shown = texts(root)
    assert HOSTILE[0] in shown and HOSTILE[1] in shown and "&amp;&#x3c;" in shown and "(the model)" in shown
    assert "A & B <C>" in shown and "\\x1B[31mred\\x07" in shown
    assert "\x1b" not in done.out and all(len(text) < 200 for text in shown)


def test_times_out_of_all_reason(fake_worker):
    numbers = [0.0, 1e-300, 1e300, 3.0]
    sites = [site(f"site {one} {other}", one or 1e-9, other or 1e-9) for one in numbers for other in numbers]
    _, root = drawn(fake_worker, sites, [{"name": "original", "runs": 5, "time_us": spread(1e300)}])
    for element in root.iter():
        for name, value in element.attrib.items():
            assert "nan" not in value and "inf" not in value, (name, value)
            if name in ("x", "cx", "x1", "x2"):
                assert 0 <= float(value) <= 960


@pytest.mark.parametrize("report", [
    {"sites": 3, "models": "x"}, {"sites": [3, None, {}], "models": [None, {"name": 7}]}, {},
    {"sites": [{"site": 1, "original_us": [], "kernelized_us": {"median": "1"}, "speedup": 5}]}])
def test_a_report_of_another_shape(fake_worker, report):
    twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
    done = twinkle("bench", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--svg", "bench.svg")
    assert done.code == 0, done.err
    drawing(twinkle.folder / "bench.svg")


def test_many_sites(fake_worker):
    _, root = drawn(fake_worker, [site(f"layers.{i}.norm", 10.0 + i) for i in range(200)])
    shown = texts(root)
    assert "140 faster sites are not drawn" in shown and "layers.199.norm" in shown and "layers.0.norm" not in shown


def test_at_100_columns(fake_worker):
    kept = {"site": "model.embed", "status": "kept", "because": "no kernel fits, for a reason of more than a few words"}
    sites = [site(f"model.layers.{i}.post_attention_layernorm") for i in range(3)]
    report = {"sites": [*sites, kept], "models": [{"name": name, "runs": 20, "time_us": spread(1e4)} for name in MODELS]}
    twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
    done = twinkle("bench", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", env={"COLUMNS": "100"})
    assert max(map(len, done.out.splitlines())) <= 100
    assert "[1] no kernel fits" in done.out and "every kernel is from k" in done.out


def test_differences_in_words(fake_worker):
    sites = [site("a"), site("b", 100, 98, "none"), site("c", 50, 100, "slower"), site("d", 100, 50, "unknown")]
    done, root = drawn(fake_worker, [{**one, "of": "class " + one["site"]} for one in sites])
    for words in ("2.00x", "no difference", "0.50x", "too few runs to tell"):
        assert words in done.out and words in texts(root)


def test_a_drawing_that_cannot_be_written(fake_worker):
    """What took so long to measure is not lost."""
    report = {"sites": [site("a")]}
    twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
    done = twinkle("bench", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--svg", "/dev/full")
    assert done.code == 1 and "the disk is full" in done.err and "wrote" not in done.err and "2.00x" in done.out
