"""What `run -o` writes, torch.load(weights_only=True) reads, whatever a model returns."""

from enum import Enum
from typing import Any, NamedTuple, Optional

import pytest
from kernels_for_tests import needs_runtime
from test_hostile import refused

torch = pytest.importorskip("torch")
pytestmark = needs_runtime


class Color(Enum):
    RED = 7


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


class Lists(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x, x + 1]


class Empty(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        kept: list[torch.Tensor] = []
        return kept


class Numbers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[list[int], list[float], list[bool], list[str]]:
        return [1, 2], [1.5, -2.0], [True, False], ["a", "b"]


class Scalars(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[int, float, bool, str, Optional[int], complex, torch.device]:
        return 3, 0.5, True, "text", None, complex(1.0, 2.0), torch.device("cpu")


class Nested(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, list[tuple[torch.Tensor, dict[int, torch.Tensor]]]]:
        none: list[tuple[torch.Tensor, dict[int, torch.Tensor]]] = []
        return {"all": [(x, {1: x + 1, 2: x + 2})], "none": none}


class Maybe(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> list[Optional[torch.Tensor]]:
        return [x, None]


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Pair:
        return Pair(x, 5)


class Enums(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, Color]:
        return x, Color.RED


class Anything(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return (x, [x], {"x": x})


class Alone(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> int:
        return x.dim()


class Shared(torch.nn.Module):
    """Two views of one storage, and one tensor twice."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = x + 1
        return [y[0], y[0], y.t()]


X = torch.arange(6.0).reshape(2, 3)
RESULTS = {
    Lists: [X, X + 1], Empty: [], Numbers: ([1, 2], [1.5, -2.0], [True, False], ["a", "b"]),
    Scalars: (3, 0.5, True, "text", None, 1 + 2j, torch.device("cpu")),
    Nested: {"all": [(X, {1: X + 1, 2: X + 2})], "none": []}, Maybe: [X, None], Named: (X, 5), Enums: (X, 7),
    Anything: (X, [X], {"x": X}), Alone: 2, Shared: [(X + 1)[0], (X + 1)[0], (X + 1).t()]}


def same(a, b):
    if isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, dict):
        return type(a) is dict and list(a) == list(b) and all(same(a[key], b[key]) for key in b)
    return type(a) is type(b) and a == b


def run(twinkle, module):
    torch.jit.script(module()).save(str(twinkle.folder / "model.pt"))
    torch.save(X, twinkle.folder / "x.pt")
    return twinkle("run", "model.pt", "--inputs", "x.pt", "-o", "out.pt", "--json")


@pytest.mark.parametrize("module", RESULTS)
def test_what_a_model_returns(twinkle, module):
    done = run(twinkle, module)
    assert done.code == 0, done.err
    assert same(torch.load(twinkle.folder / "out.pt", weights_only=True), RESULTS[module])


def test_what_a_model_returned_can_go_into_the_next(twinkle):
    assert run(twinkle, Shared).code == 0
    torch.jit.script(Three()).save(str(twinkle.folder / "three.pt"))
    assert twinkle("run", "three.pt", "--inputs", "out.pt").code == 0


class Three(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + y + z.sum()


@torch.jit.script
class Box:
    def __init__(self, x: torch.Tensor):
        self.x = x


class Boxed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Box:
        return Box(x)


def test_what_no_file_can_hold(twinkle):
    refused(run(twinkle, Boxed), 2, "Box", "--output")
    assert not (twinkle.folder / "out.pt").exists()
