"""kernelize and the files that it reads and writes: what it says when one fails, and that nothing is left of it."""

import os
import resource
import select
import signal
import time

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
