"""What inputs mean for kernelize: its result is compared with the original, on the inputs and in other sizes. Kernels that
are right as long as nobody asks for another batch or length."""

import json

import pytest
from kernels_for_tests import (EXAMPLES, NORM, RMS_NORM, calling, compiled_kernel, libraries, models, needs_runtime,
                               outcome, python_kernel)

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ONE_ROW = "float32[1,7,64]"

# Right for the shapes that are given, and for few others.
SIZES = {
    "one row for all": ("hidden_states.to(torch.float32)", "hidden_states[:1].expand_as(hidden_states).to(torch.float32)",
                        ONE_ROW, "batch 2"),
    "seven places": ("hidden_states.to(torch.float32)",
                     "(hidden_states if hidden_states.size(1) % 7 == 0 else hidden_states * 2 + 1).to(torch.float32)",
                     ONE_ROW, "length 1"),
    "raises": ("self.weight * x.to(input_dtype)", "self.weight * x.to(input_dtype).view(1, -1, 64)", ONE_ROW, "batch 2"),
    "no number": ("self.weight * x.to(input_dtype)",
                  "self.weight * x.to(input_dtype) / (0.0 if hidden_states.size(0) > 1 else 1.0)", ONE_ROW, "batch 2"),
}


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt"


def kernelized(twinkle, model, *more):
    done = twinkle("kernelize", model, "-o", "fast.pt", "--json", *more)
    assert done.code == 0, done.err
    return done.json


def sizes(report):
    return [one["size"] for one in report["shapes"]]


@pytest.mark.parametrize("name", SIZES)
def test_a_kernel_that_is_right_in_one_size(twinkle, small, name):
    right, wrong, inputs, size = SIZES[name]
    assert right in RMS_NORM
    python_kernel(twinkle.folder, RMS_NORM.replace(right, wrong), more='modules = ["first.*"]\n')
    given = kernelized(twinkle, small, "--inputs", inputs, "--verify=given")
    assert given["replaced"] == 1 and sizes(given) == ["given"]
    report = kernelized(twinkle, small, "--inputs", inputs)
    site = next(site for site in report["sites"] if site["site"] == "first.norm")
    assert site["status"] == "reverted" and site["because"].startswith(f"at {size} (float32[")
    assert report["verified"] and "batch 2, length 3" in sizes(report)
    # What was written is the original's work.
    x = torch.randn(2, 3, 64)
    torch.save((x,), twinkle.folder / "in.pt")
    assert twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt").code == 0
    with torch.no_grad():
        expected = torch.jit.load(small)(x)
    torch.testing.assert_close(torch.load(twinkle.folder / "out.pt", weights_only=True), expected)


def test_with_strict_it_is_an_error(twinkle, small):
    right, wrong, inputs, size = SIZES["one row for all"]
    python_kernel(twinkle.folder, RMS_NORM.replace(right, wrong), more='modules = ["first.*"]\n')
    before = outcome(twinkle.folder)
    done = twinkle("kernelize", small, "--inputs", inputs, "--only", "first.norm", "--strict", "--json", "-o", "fast.pt")
    assert done.code == 4 and done.error["where"] == "first.norm", done.err
    assert done.error["why"].startswith(f"at {size} (float32[2,7,64]): its error is")
    assert outcome(twinkle.folder) == before


def test_a_kernel_that_crashes_in_another_size(twinkle, small, libraries):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("crash_on_more"))
    with (twinkle.folder / "twinkle.toml").open("a") as file:
        file.write('modules = ["first.*"]\n')
    report = kernelized(twinkle, small, "--inputs", ONE_ROW)
    site = next(site for site in report["sites"] if site["site"] == "first.norm")
    assert site["status"] == "reverted"
    assert site["because"].startswith("at batch 2 (float32[2,7,64]): it crashed (segmentation fault)")


def test_a_site_that_is_right_in_every_size(twinkle):
    report = kernelized(twinkle, EXAMPLES / "traced.pt", "--project", EXAMPLES, "--inputs", "int64[1,8]:0..256")
    assert report["replaced"] == 7 and report["verified"] and report["tolerance"] == 1
    assert report["shapes"] == [
        {"size": "given", "inputs": "int64[1,8]"}, {"size": "length 1", "inputs": "int64[1,1]"},
        {"size": "length 2", "inputs": "int64[1,2]"}, {"size": "length 3", "inputs": "int64[1,3]"},
        {"size": "length 7", "inputs": "int64[1,7]"}, {"size": "batch 2", "inputs": "int64[2,8]"},
        {"size": "batch 3", "inputs": "int64[3,8]"}, {"size": "batch 2, length 3", "inputs": "int64[2,3]"}]
    done = twinkle("kernelize", EXAMPLES / "traced.pt", "--project", EXAMPLES, "--inputs", "int64[1,8]:0..256",
                   "--report", "report.json", "-o", "fast.pt")
    assert done.out.splitlines()[-1] == ("verified on the given inputs (int64[1,8]), and with length 1, 2, 3, 7; "
                                         "batch 2, 3; batch 2 with length 3")
    assert json.loads((twinkle.folder / "report.json").read_text())["shapes"] == report["shapes"]


class Fixed(torch.nn.Module):
    """Accepts one shape only."""

    def __init__(self):
        super().__init__()
        self.act = torch.nn.SiLU()
        self.scale = torch.nn.Parameter(torch.rand(8))

    def forward(self, x):
        return self.act(x.view(2, 4, 8) * self.scale).reshape(2, 32)


class Positions(torch.nn.Module):
    """Has five positions, and says nothing of what is beyond."""

    def __init__(self):
        super().__init__()
        self.act = torch.nn.SiLU()
        self.table = torch.nn.Embedding(5, 16)

    def forward(self, x):
        return self.act(x + self.table(torch.arange(x.shape[1])))


def seeded(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.SiLU())


@pytest.mark.parametrize("model, inputs, accepted", [
    (Fixed(), "float32[2,4,8]", []),
    (Positions(), "float32[1,1,16]", ["length 2", "length 3", "length 5", "batch 2", "batch 3", "batch 2, length 3"]),
    (Positions(), "float32[2,3,16]", ["length 1", "length 2", "length 5", "batch 1", "batch 3", "batch 3, length 2"]),
    (seeded(1), "float32[5,6]", ["batch 1", "batch 2", "batch 3"])])
def test_what_the_original_refuses_is_not_tried(twinkle, model, inputs, accepted):
    torch.jit.script(model.eval()).save(twinkle.folder / "model.pt")
    report = kernelized(twinkle, "model.pt", "--inputs", inputs)
    assert report["replaced"] == 1 and sizes(report) == ["given", *accepted]
    if not accepted:
        shown = twinkle("kernelize", "model.pt", "--inputs", inputs, "-o", "fast.pt").out
        assert "in no other size: the original accepts none" in shown.replace("\n", " ")


class Sinusoids(torch.nn.Module):
    """A trace keeps the numbers as tensors: what they are multiplied with is float32 only where LibTorch optimizes it."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

    def forward(self, x):
        angles = (torch.arange(x.size(1)) * 0.5)[:, None] * torch.exp(torch.arange(4) * -0.3)
        return self.norm(self.linear(x) + torch.cat([angles.sin(), angles.cos()], -1))


def test_numbers_of_a_trace_are_what_they_are_when_served(twinkle):
    torch.jit.trace(Sinusoids().eval(), torch.randn(2, 6, 8)).save(twinkle.folder / "model.pt")
    report = kernelized(twinkle, "model.pt", "--inputs", "float32[2,6,8]")
    assert report["replaced"] == 2 and report["reverted"] == 0, report["sites"]
    assert sizes(report) == ["given", "length 1", "length 2", "length 3", "length 5", "batch 1", "batch 3", "batch 3, length 3"]


# Correct results of a few values, with AVX2 1.5 to 1.9 times as far off as the bound that the original's own error on the
# same inputs gives.
@pytest.mark.parametrize("seed", [1430, 3306, 11138, 16647])
def test_the_original_s_luck_is_not_held_against_a_kernel(twinkle, seed):
    torch.jit.script(seeded(seed).eval()).save(twinkle.folder / "model.pt")
    report = kernelized(twinkle, "model.pt", "--inputs", "float32[5,6]")
    assert report["replaced"] == 1 and report["reverted"] == 0, report["sites"]


def test_whether_it_was_verified_is_said_last(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM)

    def last(*more):
        done = twinkle("kernelize", small, "-o", "fast.pt", *more)
        assert done.code == 0, done.err
        return done.out.splitlines()[-1]

    assert last().startswith("not verified: nothing was compared with the original, nor measured; give --inputs FILE")
    assert "leave out --no-verify" in last("--inputs", ONE_ROW, "--no-verify")
    assert "on the machine that the model is for" in last("--inputs", ONE_ROW, "--target", "here")
    assert last("--inputs", ONE_ROW).startswith("verified on the given inputs (float32[1,7,64]), and with length 1, ")
    assert last("--inputs", ONE_ROW, "--verify").startswith("verified on the given inputs (float32[1,7,64]), and with ")
    assert "in no other size (--verify=given)" in last("--inputs", ONE_ROW, "--verify=given")
    assert last("--inputs", ONE_ROW, "--tolerance", "2.5").endswith("; 2.5 times the error allowed")


def test_inputs_without_verification(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM.replace("self.weight *", "1.5 * self.weight *"))
    report = kernelized(twinkle, small, "--inputs", ONE_ROW, "--no-verify")
    assert report["replaced"] == 2 and not report["verified"] and report["shapes"] == []
    report = kernelized(twinkle, small, "--inputs", ONE_ROW)
    assert report["replaced"] == 0 and report["reverted"] == 2 and report["verified"]


def test_a_tolerance_of_one_s_own(twinkle, small):
    python_kernel(twinkle.folder, RMS_NORM.replace("self.weight *", "1.00001 * self.weight *"))
    assert kernelized(twinkle, small, "--inputs", ONE_ROW)["reverted"] == 2
    report = kernelized(twinkle, small, "--inputs", ONE_ROW, "--tolerance", "1000")
    assert report["replaced"] == 2 and report["tolerance"] == 1000
    # What is off by all there is stays wrong.
    python_kernel(twinkle.folder, RMS_NORM.replace("self.weight *", "1.5 * self.weight *"))
    assert kernelized(twinkle, small, "--inputs", ONE_ROW, "--tolerance", "1000")["reverted"] == 2


@pytest.mark.parametrize("arguments, words", [
    (["--verify"], "--verify needs inputs"), (["--verify=given"], "--verify needs inputs"),
    (["--inputs", ONE_ROW, "--verify", "--no-verify"], "exclude each other"),
    (["--inputs", ONE_ROW, "--verify=gvien"], "--verify cannot be 'gvien'"),
    (["--inputs", ONE_ROW, "--verify", "--verify"], "--verify is given twice"),
    (["--inputs", ONE_ROW, "--verify", "given"], "one argument too many"),
    (["--inputs", ONE_ROW, "--no-verify=given"], "no-verify was given a disallowed flag"),
    (["--inputs", ONE_ROW, "--verify", "--target", "here"], "--target loads none"),
    (["--tolerance", "2"], "--tolerance is of no use"),
    (["--inputs", ONE_ROW, "--no-verify", "--tolerance", "2"], "--tolerance is of no use"),
    *((["--inputs", ONE_ROW, "--tolerance", value], f"--tolerance cannot be '{value}'")
      for value in ("0", "-1", "nan", "inf", "1e300", "2x", "two"))])
def test_wrong_usage(twinkle, small, arguments, words):
    done = twinkle("kernelize", small, "-o", "fast.pt", *arguments)
    assert done.code == 2 and words in done.err, done.err
    assert not (twinkle.folder / "fast.pt").exists()
