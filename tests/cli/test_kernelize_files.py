"""kernelize and the files that it reads and writes: what it says when one fails, and that nothing is left of it."""

import json
import os
import resource
import select
import signal
import time
from typing import Dict, List

import pytest
from kernels_for_tests import EXAMPLES, needs_runtime, outcome

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_a_model_that_cannot_be_read(twinkle):
    done = twinkle("kernelize", "/proc/self/mem", "-o", "new.pt", "--json")
    assert done.code == 1 and "cannot be read" in done.error["what"] and done.error["why"], done.err
    assert list(outcome(twinkle.folder)) == []


class Large(torch.nn.Module):
    """4 MiB."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1 << 20))

    def forward(self, x: torch.Tensor):
        return x + self.weight


def test_an_output_that_may_not_grow(twinkle, tmp_path):
    torch.jit.script(Large()).save(tmp_path / "large.pt")
    done = twinkle("kernelize", "large.pt", "-o", "new.pt", "--json",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert done.code == 1 and "larger than allowed" in done.error["why"], done.err
    assert [path.name for path in tmp_path.iterdir()] == ["large.pt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_by_an_interrupt(twinkle, tmp_path, number):
    # As the output is a pipe, all is written to a temporary file first, and then waits here for a reader.
    torch.jit.script(Large()).save(tmp_path / "large.pt")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "temporary").mkdir()
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    twinkle.env["TMPDIR"] = tmp_path / "temporary"
    process = twinkle.start("kernelize", "large.pt", "-o", "pipe")
    try:
        end = time.monotonic() + 60
        while not (select.select([reader], [], [], 0.1)[0] and os.read(reader, 1)):
            assert process.poll() is None and time.monotonic() < end, process.communicate()
        assert list((tmp_path / "temporary").iterdir())
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(reader)
    assert process.returncode == 130
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_output_has_a_name_of_its_own(twinkle):
    assert twinkle("kernelize", EXAMPLES / "traced.pt").code == 0
    assert list(outcome(twinkle.folder)) == ["traced.kernelized.pt"]


TABLES = 'presets = ["transformers"]\n'


def test_the_report_file_has_what_resolving_warned_of(twinkle, tmp_path):
    (tmp_path / "twinkle.toml").write_text(TABLES)
    (tmp_path / "pyproject.toml").write_text("[tool.twinkle]\n")
    said = "both twinkle.toml and pyproject.toml ask for kernels; twinkle.toml is used"
    done = twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "fast.pt", "--report", "report.json")
    assert done.code == 0 and done.err.count(said) == 1, done.err
    assert json.loads((tmp_path / "report.json").read_text())["warnings"].count(said) == 1
    shown = twinkle("kernelize", EXAMPLES / "traced.pt", "--dry-run", "--report", "report.json", "--json")
    assert shown.json["warnings"].count(said) == 1


def test_a_stale_lock_stops_kernelize_and_bench(twinkle, tmp_path):
    kernel = tmp_path / "my_norm"
    kernel.mkdir()
    (kernel / "__init__.py").write_text("")
    (kernel / "layers.py").write_text("from torch import nn\n\n\nclass Same(nn.Module):\n"
                                      "    def forward(self, x):\n        return x\n")
    manifest = tmp_path / "twinkle.toml"
    manifest.write_text(TABLES)
    assert twinkle("lock").code == 0
    arguments = (EXAMPLES / "traced.pt", "--json")
    assert twinkle("kernelize", *arguments, "--dry-run").code == 0
    manifest.write_text(TABLES + '[kernels]\nmy_norm = { path = "my_norm" }\n')
    for command in (("kernelize", "-o", "fast.pt"), ("bench", "--inputs", EXAMPLES / "inputs.pt")):
        stale = twinkle(*command, *arguments)
        assert stale.code == 7 and stale.error["code"] == "out-of-date", stale.err
        assert "my_norm is not locked" in stale.error["why"] and "run twinkle lock" in stale.error["hint"]
    assert not (tmp_path / "fast.pt").exists()
    # To go on all the same is to say so: resolve warns, and its mapping is taken.
    assert "the lock does not fit the manifest" in twinkle("resolve").err
    assert twinkle("kernelize", *arguments, "--map", "twinkle.map.json", "-o", "fast.pt").code == 0
    assert twinkle("lock").code == 0 and twinkle("kernelize", *arguments, "--dry-run").code == 0


@pytest.mark.parametrize("name, content", [("README", b"Read me.\n"), ("server", b"\x7fELF..."), ("a.map", b"\0\0\0\0")])
def test_a_file_of_another_kind_is_told_by_what_is_in_it(twinkle, tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    for option in (("-o", name), ("-o", "fast.pt", "--report", name)):
        done = twinkle("kernelize", EXAMPLES / "traced.pt", *option, "--json")
        assert done.code == 2 and "another kind of file" in done.error["what"], done.err
    done = twinkle("resolve", "-o", name, "--json")
    assert done.code == 2 and "another kind of file" in done.error["what"], done.err
    assert file.read_bytes() == content


def test_what_was_written_before_is_written_again(twinkle, tmp_path):
    (tmp_path / "report").touch()
    for _ in range(2):
        done = twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "fast", "--report", "report")
        assert done.code == 0, done.err
        assert twinkle("resolve", "-o", "map").code == 0
    assert twinkle("kernelize", EXAMPLES / "traced.pt", "-o", "map").code == 2
    assert twinkle("resolve", "-o", "fast").code == 2


@pytest.mark.parametrize("missing, hint", [("traced.p", "did you mean traced.pt?"), ("other.bin", "torch.jit.save"),
                                           ("none/traced.pt", "there is no folder none")])
def test_a_model_that_is_not_there(twinkle, tmp_path, missing, hint):
    (tmp_path / "traced.pt").touch()
    done = twinkle("kernelize", missing, "--json")
    assert done.code == 3 and hint in done.error["hint"], done.err


def test_strict_where_the_options_leave_no_site(twinkle):
    done = twinkle("kernelize", EXAMPLES / "traced.pt", "--strict", "--exclude", "*", "-o", "fast.pt", "--json")
    assert done.code == 6 and "--exclude leave no site" in done.error["hint"], done.err


def test_a_token_out_of_range(twinkle):
    for command in ("run",), ("kernelize", "--verify"):
        done = twinkle(*command, EXAMPLES / "traced.pt", "--inputs", "int64[1,8]:100000..100001", "-o", "out.pt", "--json")
        assert done.code == 2 and "a token id of the inputs" in done.error["why"], done.err


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 64), torch.nn.Linear(64, 10)

    def forward(self, x: Dict[str, torch.Tensor], more: List[torch.Tensor]) -> torch.Tensor:
        return self.second(torch.relu(self.first(x["x"]))) + more[0]


def test_arguments_that_are_dicts_and_lists_of_tensors(twinkle):
    model = torch.jit.script(Named().eval())
    model.save(twinkle.folder / "model.pt")
    x, more = torch.randn(4, 32), torch.randn(4, 10)
    for inputs in (({"x": x}, [more]), [{"x": x}, [more]], {"more": [more], "x": {"x": x}}):
        torch.save(inputs, twinkle.folder / "inputs.pt")
        done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "fast.pt", "--json")
        assert done.code == 0, done.err
        assert done.json["replaced"] == 2 and done.json["verified"]
        assert all(site["max_error"] is not None for site in done.json["sites"])
        done = twinkle("run", "fast.pt", "--inputs", "inputs.pt", "-o", "out.pt")
        assert done.code == 0, done.err
        torch.testing.assert_close(torch.load(twinkle.folder / "out.pt"), model({"x": x}, [more]))
