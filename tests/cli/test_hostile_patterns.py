"""Patterns, formulas and models that are made to break looking for patterns: a clear error or a right model, always soon."""

import hashlib
import os
import time

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PATTERN = '[patterns.odd]\npattern = "formulas.py:odd"\nfunc_impl = "op:aten::relu"\n'
# What a raw text of LibTorch or C++ has.
RAW = ("frame #", "INTERNAL ASSERT", "c10::", "std::", "Exception raised from", "terminate called")


class Simple(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x + 1.0) * x


@pytest.fixture
def project(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"
    (twinkle.folder / "twinkle.toml").write_text("presets = []\n" + PATTERN)

    def kernelized(formula, model=None, code=0, *more):
        if formula is not None:
            data = formula if isinstance(formula, bytes) else ("import torch\nfrom torch import Tensor\n" + formula).encode()
            (twinkle.folder / "formulas.py").write_bytes(data)
        scripted = torch.jit.script((model or Simple()).eval())
        scripted.save(twinkle.folder / "model.pt")
        start = time.monotonic()
        done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--device", "cpu", "--json", *more)
        assert time.monotonic() - start < 60  # seconds on a busy machine; it must not hang
        assert done.code == code, (done.code, done.err)
        assert not any(raw in done.err for raw in RAW), done.err
        assert (twinkle.folder / "fast.pt").exists() == (code == 0)
        return done.json if code == 0 else done

    twinkle.kernelized = kernelized
    return twinkle


def same(project, model, *inputs):
    fast = torch.jit.load(project.folder / "fast.pt")
    with torch.no_grad():
        expected, given = model(*inputs), fast(*inputs)
    torch.testing.assert_close(given, expected)


# --- formulas that are none -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("formula,why", [
    ("def odd(x):\n    for i in range(3):\n        x = x + 1\n    return x\n", "straight-line"),
    ("def odd(x):\n    while True:\n        x = x + 1\n    return x\n", "straight-line"),
    ("def odd(x):\n    print(x)\n    return x + 1\n", "prim::Print"),
    ("def odd(x):\n    assert x.dim() > 1\n    return x + 1\n", "straight-line"),
    ("def odd(x):\n    raise ValueError('no')\n", "odd"),
    ("def odd(x):\n    x += 1\n    return x * 2\n", "writes into nothing"),
    ("def odd(x):\n    y = x * 2\n    y[0] = 1.0\n    return y\n", "writes into nothing"),
    ("STATE = []\n\n\ndef odd(x):\n    STATE.append(x)\n    return x + 1\n", "odd"),
    ("def odd(x):\n    global STATE\n    STATE = x\n    return x + 1\n", "Global"),
    ("def odd(x):\n    return odd(x) + 1\n", "odd"),
    ("def odd(x):\n    return other(x) + 1\n\n\ndef other(x):\n    return odd(x) * 2\n", "recursi"),
    ("def odd(x):\n    x + 1\n", "does not use x"),
    ("def odd(x):\n    return\n", "does not use x"),
    ("def odd(x):\n    return 1.0\n", "does not use x"),
    ("def odd(x, y):\n    return x.to(torch.float32), y + 1\n", "not computed by any operator"),
    ("def odd(x):\n    return x.type_as(x)\n", "no operator but casts"),
    ("def odd(x):\n    return x\n", "odd"),
    ("def odd(x):\n    return x.size(0) * 2\n", "no tensor"),
    ("def odd(x):\n    return x + 1, (x * 2, x * 3)\n", "not computed by any operator"),
    ("def odd():\n    return torch.zeros(3)\n", "1 to 16 parameters"),
    ("def odd(*x):\n    return x[0] + 1\n", "plain parameters"),
    ("def odd(x, *, y):\n    return x + y\n", "plain parameters"),
    ("def odd(" + ", ".join(f"x{i}" for i in range(40)) + "):\n    return x0 + 1\n", "1 to 16 parameters"),
    ("def odd(x: Nothing):\n    return x + 1\n", "x"),
    ("async def odd(x):\n    return x + 1\n", "odd"),
    ("class odd:\n    pass\n", "no function odd"),
    ("odd = torch.relu\n", "no function odd"),
    ("odd = odd\n", "odd"),
    ("from .formulas import odd\n", "odd"),
    ("from os import system as odd\n", "odd"),
    pytest.param("def odd(x):\n    return " + "(" * 5000 + "x" + ")" * 5000 + "\n", "odd", id="brackets"),
    pytest.param("def odd(x):\n    return " + " + ".join(["x"] * 5000) + "\n", "", id="a long sum"),
    ("def odd(x):\n    return x + 1\n" * 2 + "    " * 200 + "\n\tx\n", ""),
    ("def odd(x):\n    return torch.ops.nowhere.nothing(x)\n", "nowhere"),
    ("def odd(x):\n    return __import__('os').system('true')\n", ""),
    ("def odd(x):\n    return x + 10 ** 10 ** 10\n", ""),
])
def test_what_is_no_formula(project, formula, why):
    done = project.kernelized(formula, code=2)
    assert why in done.err and "formulas.py" in done.err


@pytest.mark.parametrize("data,why", [
    (b"", ""), (b"\xff\xfe\x00", ""), (b"def odd(x):\n    return x + \xff\n", ""), (b"\x00", ""),
    (b"def odd(x):\n    return x + 1\x00\n", ""), pytest.param(b"(" * 200000, "", id="open brackets")])
def test_files_that_are_no_text(project, data, why):
    project.kernelized(data, code=2)


def test_places_that_are_no_files(project):
    file = project.folder / "formulas.py"
    file.mkdir()
    assert "formulas.py" in project.kernelized(None, code=2).err
    file.rmdir()
    assert "formulas.py" in project.kernelized(None, code=3).err
    file.symlink_to("formulas.py")
    assert "symbolic links" in project.kernelized(None, code=1).err
    file.unlink()
    os.mkfifo(file)
    project.kernelized(None, code=2)
    file.unlink()
    with open(file, "wb") as huge:
        huge.truncate(100 << 20)
    project.kernelized(None, code=2)


@pytest.mark.parametrize("table,code", [
    ('pattern = "../../../../../../etc/passwd:odd"', 2), ('pattern = "/etc/shadow.py:odd"', 3),
    ('pattern = "../nowhere/formulas.py:odd"', 3), ('pattern = "formulas.py:../odd"', 2),
    ('pattern = "formulas.py:odd.py:odd"', 3), ('pattern = "formulas.py:"', 2), ('pattern = ":odd"', 2),
    pytest.param('pattern = "formulas.py:' + "o" * 100000 + '"', 2, id="a long name"), ('pattern = "formulas.py\\u0000:odd"', 2),
    ('pattern = "formulas.py:odd\\n"', 2), ("pattern = 7", 2), ("pattern = [[]]", 2), ("pattern = {}", 2)])
def test_names_that_lead_elsewhere(project, table, code):
    (project.folder / "twinkle.toml").write_text('presets = []\n[patterns.odd]\nfunc_impl = "op:aten::relu"\n' + table + "\n")
    project.kernelized("def odd(x):\n    return x + 1\n", code=code)


@pytest.mark.parametrize("name", ['"../odd"', '"a.b"', '"a:b"', '"#2"', '""', '"_2"', '"2"', '"ä"', '"a b"',
                                  pytest.param('"' + "a" * 100000 + '"', id="long")])
def test_names_of_patterns(project, name):
    (project.folder / "twinkle.toml").write_text(
        f'presets = []\n[patterns.{name}]\nfunc_impl = "op:aten::relu"\npattern = "formulas.py:odd"\n')
    done = project("kernelize", "model.pt", "-o", "fast.pt")
    assert done.code in (2, 3) and not any(raw in done.err for raw in RAW), done.err


# --- formulas that match much, or in many ways ------------------------------------------------------------------------

class Chain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sigmoid(x)
        a = x + x
        b = a + a
        c = ((b + y) + y) + y
        return (((c + y) + y) + x) + x


def test_a_formula_that_matches_everywhere_and_overlaps(project):
    (project.folder / "twinkle.toml").write_text(
        'presets = []\n[patterns.odd]\npattern = "formulas.py:odd"\nfunc_impl = "formulas.py:odd"\n')
    done = project.kernelized("def odd(x, y):\n    return (x + y) + y\n", Chain())
    assert done["replaced"] >= 2, done
    same(project, Chain(), torch.randn(3, 4))


def test_two_patterns_of_one_name(project):
    one = '[[patterns.odd]]\npattern = "formulas.py:{}"\nfunc_impl = "formulas.py:{}"\n'
    (project.folder / "twinkle.toml").write_text("presets = []\n" + one.format("plus", "plus") + one.format("times", "times"))

    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x + 1.0) * torch.tanh(x)

    report = project.kernelized("def plus(x):\n    return torch.sigmoid(x + 1.0)\n\n\n"
                                "def times(x, y):\n    return x * torch.tanh(y)\n", Both())
    names = [site["site"] for site in report["sites"]]
    assert len(set(names)) == 2 and report["replaced"] + report["kept"] == 2, report
    same(project, Both(), torch.randn(3, 4))


class Written(torch.jit.ScriptModule):
    """A model by its TorchScript; with a constant of its own, as equal classes would be one."""

    __constants__ = ["text"]

    def __init__(self, code):
        super().__init__()
        self.text = hashlib.sha256(code.encode()).hexdigest()
        for method in code.split("\ndef "):
            self.define("def " + method.removeprefix("def ") + "\n")


def saved_code(project, code):
    Written(code).save(project.folder / "model.pt")


def looked_for(project, formula, *more, code=0):
    (project.folder / "formulas.py").write_text("import torch\n" + formula)
    start = time.monotonic()
    done = project("kernelize", "model.pt", "-o", "fast.pt", "--device", "cpu", "--json", *more)
    assert time.monotonic() - start < 120
    assert done.code == code and not any(raw in done.err for raw in RAW), (done.code, done.err)
    return done.json if code == 0 else done


def test_exchanged_operands(project):
    """Sums whose operands can be exchanged in more ways than anybody can try."""
    saved_code(project, "def forward(self, x):\n    y = x\n" + "    y = (y + x) + (x + y)\n" * 500 + "    return y * 2.0\n")
    letters = "abcdefghijklmnop"
    pairs = " + ".join(f"({a} + {b})" for a, b in zip(letters[::2], letters[1::2]))
    report = looked_for(project, f"def odd({', '.join(letters)}):\n    return ({pairs}) * 3.0\n")
    assert report["sites"] == []


def test_a_hundred_thousand_nodes(project):
    """Not written: LibTorch takes minutes for that."""
    body = "".join(f"    y{i % 7} = torch.sigmoid(y{(i + 3) % 7}) + x\n" for i in range(50_000))
    saved_code(project, "def forward(self, x):\n" + "".join(f"    y{i} = x\n" for i in range(7)) + body + "    return y0\n")
    report = looked_for(project, "def odd(x, y):\n    return torch.sigmoid(torch.sigmoid(x) + y)\n", "--dry-run")
    assert len(report["sites"]) > 5_000 and report["replaced"] == 0


def test_nested_blocks(project):
    lines = ["def forward(self, x):"]
    for depth in range(60):
        lines.append("    " * (depth + 1) + "if bool(x.sum() > 0):")
        lines.append("    " * (depth + 2) + "x = torch.sigmoid(x) + 1.0")
    saved_code(project, "\n".join([*lines, "    return x"]) + "\n")
    report = looked_for(project, "def odd(x):\n    return torch.sigmoid(x) + 1.0\n")
    assert len(report["sites"]) == 60


def test_nested_tuples(project):
    """Whatever takes a tuple may use what lies deep inside of it."""
    saved_code(project, "def forward(self, x):\n    h = torch.sigmoid(x)\n    t = (h, h)\n"
               + "".join(f"    t{i} = ({'t' if i == 0 else f't{i - 1}'}, x)\n" for i in range(30))
               + "    return h + 1.0, t29\n")
    report = looked_for(project, "def odd(x):\n    return torch.sigmoid(x) + 1.0\n")
    assert [site["status"] for site in report["sites"]] == ["kept"]
    assert "used elsewhere" in report["sites"][0]["because"]


def test_tuples_that_double(project):
    saved_code(project, "def forward(self, x):\n    t = (x, x)\n"
               + "".join(f"    t{i} = ({'t' if i == 0 else f't{i - 1}'}, {'t' if i == 0 else f't{i - 1}'})\n" for i in range(12))
               + "    return torch.sigmoid(x) + 1.0, len((t11, t11))\n")
    looked_for(project, "def odd(x):\n    return torch.sigmoid(x) + 1.0\n")


def test_lists_that_change(project):
    """What a list held when it was made is not what it holds."""
    for change in ("parts[0] = x * 3.0", "parts.append(x)", "parts.reverse()", "for i in range(2):\n        parts[i] = x * 5.0"):
        saved_code(project, "def forward(self, x):\n    parts = [x, x + 1.0]\n    " + change + "\n"
                   "    return torch.cat(parts, -1) * 2.0\n")
        report = looked_for(project, "def odd(x, y):\n    return torch.cat([x, y], -1) * 2.0\n")
        assert report["sites"] == [], change
    saved_code(project, "def forward(self, x):\n    parts = [x, x + 1.0]\n    y = x\n    for i in range(3):\n"
               "        y = y + torch.cat(parts, -1) * 2.0\n        parts[0] = parts[0] * 2.0\n    return y\n")
    assert looked_for(project, "def odd(x, y):\n    return torch.cat([x, y], -1) * 2.0\n")["sites"] == []


def test_attributes_that_change(project):
    """A buffer that the model sets may have another dtype then: a cast of it is one."""
    class Sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sigmoid(self.kept.to(torch.float32) + x)
            self.kept = x.to(torch.float64)
            return y

    (project.folder / "twinkle.toml").write_text(
        'presets = []\n[patterns.odd]\npattern = "formulas.py:odd"\nfunc_impl = "formulas.py:odd"\n')
    report = project.kernelized("def odd(x, y):\n    return torch.sigmoid(x + y)\n", Sets())
    assert report["replaced"] == 1
    report = project.kernelized("def odd(x: Tensor, y: Tensor):\n    return torch.sigmoid(x.to(torch.float32) + y)\n", Sets())
    assert report["replaced"] == 1


@pytest.mark.parametrize("last", ["torch.sigmoid(x)", "x"])
def test_calls_that_double(project, last):
    code = f"def f0(self, x):\n    return {last}\n"
    for i in range(1, 41):
        code += f"def f{i}(self, x):\n    return self.f{i - 1}(self.f{i - 1}(x))\n"
    saved_code(project, code + "def forward(self, x):\n    return self.f40(x)\n")
    report = looked_for(project, "def odd(x):\n    return torch.sigmoid(x) + 1.0\n")
    assert any("more than" in warning for warning in report["warnings"])
