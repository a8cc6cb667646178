"""What a kernelize proposes: commands that a shell takes as they are."""

import json
import shlex

import pytest
from test_report_groups import report_of, site

NAMES = ["model.pt", "my model.pt", "it's.pt", "$(touch pwned).pt", "-v.pt", "ü.pt", "a\nb\x1b[31m.pt", "a;b&c.pt", "`x`.pt"]


@pytest.fixture(autouse=True)
def measuring(twinkle):
    twinkle.measures = True


@pytest.fixture
def proposed(fake_worker):
    def propose(*arguments, model="model.pt", **more):
        report = report_of([site("norm")], **more)
        twinkle = fake_worker(f"event({{'result': json.loads({json.dumps(json.dumps(report))})}})\n")
        (twinkle.folder / model).write_bytes(b"a model")
        done = twinkle("kernelize", "--map", "empty.map.json", *arguments, "--", model)
        assert done.code == 0, done.err
        return [line.strip() for line in done.err.splitlines() if line.startswith("  twinkle ")]
    return propose


def test_without_inputs(proposed):
    first, page = proposed("-o", "fast.pt")
    assert first == "twinkle kernelize model.pt -o fast.pt --map empty.map.json --inputs inputs.pt"
    assert page.endswith("--report model.html")


def test_inputs_that_nobody_has(proposed, twinkle):
    (twinkle.folder / "inputs.pt").unlink()
    assert proposed()[0].endswith("--inputs 'int64[1,128]:0..32000'")


def test_with_inputs(proposed):
    steps = proposed("--inputs", "inputs.pt", "--only", "a *", "--only", "b", "--verify=given", "--no-measure")
    tune = next(step for step in steps if step.endswith("--tune"))
    assert "--only 'a *' --only b" in tune and "--verify=given" in tune and "--no-measure" not in tune
    assert any(step.startswith("twinkle bench model.pt --inputs inputs.pt --map empty.map.json --only 'a *'")
               for step in steps)
    assert len(steps) <= 3


def test_bench_takes_the_first_of_several_inputs(proposed):
    steps = proposed("--inputs", "inputs.pt", "--inputs", "float32[4,8]", "--inputs", "float32[2,8]")
    assert any(step.startswith("twinkle bench model.pt --inputs inputs.pt ") for step in steps)
    assert any("--inputs inputs.pt --inputs 'float32[4,8]' --inputs 'float32[2,8]'" in step for step in steps)


def test_only_what_makes_sense(proposed):
    tuned = proposed("--inputs", "inputs.pt", "--tune", "--dtype", "bfloat16", "--report", "r.json")
    assert tuned == []
    assert not any("--dtype" in step for step in proposed("--inputs", "inputs.pt", weights_dtype="bfloat16"))
    target = proposed("--target", "torch=2.13,backend=cpu")
    assert not any("--inputs" in step or "bench" in step or "--device" in step for step in target)


def test_no_step_undoes_this_call(proposed, twinkle):
    """Another precision is another file, and --choices says what --tune would find out."""
    steps = proposed("--inputs", "inputs.pt", "-o", "fast.pt", "--report", "r.json", "--no-measure", device="cuda:0", weights_dtype="float32")
    half = next(step for step in steps if "--dtype bfloat16" in step)
    assert "-o model.bfloat16.pt" in half and "fast.pt" not in half and "r.json" not in half
    (twinkle.folder / "choices.json").write_text(
        '{"schema": "twinkle.labels/1", "sites": [{"site": "norm", "of": "Norm", "serves": []}]}')
    assert not any("--tune" in step for step in proposed("--inputs", "inputs.pt", "--choices", "choices.json"))


def test_nothing_for_machines(proposed):
    assert proposed("--inputs", "inputs.pt", "-q") == [] and proposed("--inputs", "inputs.pt", "--json") == []


@pytest.mark.parametrize("model", NAMES)
def test_a_shell_gives_the_same_words(proposed, model):
    import subprocess
    command = proposed("-o", "out put.pt", model=model)[0]
    assert "\x1b" not in command and "\n" not in command
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout
    expected = "./" + model if model.startswith("-") else model
    assert words.decode().split("\0")[:5] == ["twinkle", "kernelize", expected, "-o", "out put.pt"]
    if model.isprintable():
        assert shlex.split(command)[2] == expected
