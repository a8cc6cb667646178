"""Looking at a model runs nothing of it: what a model would do to files is named before, and needs the user's word."""

import functools
import struct
import zipfile
import zlib

import pytest
from kernels_for_tests import PATIENCE, made_models, needs_runtime, outcome, sha256
from test_hostile import refused

pytestmark = needs_runtime
PRECIOUS = "the only copy\n"


@pytest.fixture(scope="session")
def stateful():
    return made_models() / "stateful"


@pytest.fixture(scope="session")
def hidden():
    return made_models() / "inputs/hidden.pt"


@pytest.fixture
def precious(twinkle):
    """A file of the user; nothing may change it."""
    file = twinkle.folder / "precious.txt"
    file.write_text(PRECIOUS)
    return file


def rewrite(source, target, change, added=(), renamed=lambda name: name):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(renamed(name), change(data) if "/code/" in name and not name.endswith("debug_pkl") else data)
        for name, data in added:
            new.writestr(name, data)


def with_state(stateful, folder, statement, methods="", functions="", header="", **more):
    """A model whose __setstate__ begins with this statement."""
    def change(code):
        text = code.decode()
        assert 'print("@STATE@")' in text
        text = text.replace('print("@STATE@")', statement).replace("  def __getstate__", methods + "  def __getstate__")
        return (header + text + functions).encode()

    model = folder / "model.pt"
    rewrite(stateful / "has_state.pt", model, change, **more)
    return model


COMMANDS = {
    "kernelize": lambda model, inputs: ["kernelize", model, "-o", "fast.pt"],
    "verify": lambda model, inputs: ["kernelize", model, "--inputs", inputs, "--verify", "-o", "fast.pt"],
    "target": lambda model, inputs: ["kernelize", model, "--target", "torch=2.13,backend=cpu", "-o", "fast.pt"],
    "bench": lambda model, inputs: ["bench", model, "--inputs", inputs, "--runs", "2"],
    "run": lambda model, inputs: ["run", model, "--inputs", inputs, "-o", "out.pt"],
}

CLASS = "__torch__.stateful.HasState"
METHOD = "  def {name}(self: " + CLASS + ", x: Tensor) -> NoneType:\n    {body}\n    return None\n"
# By what LibTorch runs while it reads the model. @PATH@ is the user's file.
REACHING = {
    "save": ('torch.save((state)[0], "@PATH@")', {}),
    "from_file": ('_1 = torch.from_file("@PATH@", True, 100)', {}),
    "ops": ('ops.aten.save((state)[0], "@PATH@")', {}),
    "method of a value": ('((state)[0]).save("@PATH@")', {}),
    "another name": ('t = torch\n    t.save((state)[0], "@PATH@")', {}),
    "another name of ops": ('o = ops.aten\n    o.save((state)[0], "@PATH@")', {}),
    "getattr": ('getattr(torch, "save")((state)[0], "@PATH@")', {}),
    "getattr of a value": ('getattr((state)[0], "save")("@PATH@")', {}),
    "another getattr": ('g = getattr\n    g((state)[0], "save")("@PATH@")', {}),
    "getattr by position": ('_1 = getattr((state)[0], "save")\n    _1("@PATH@")', {}),
    "in a branch": ('if (state)[1]:\n      torch.save((state)[0], "@PATH@")\n    else:\n      torch.save(1, "@PATH@")', {}),
    "a method": ("_1 = (self).step((state)[0])",
                 {"methods": METHOD.format(name="step", body='torch.save(x, "@PATH@")')}),
    "a method of a method": ("_1 = (self).step((state)[0])", {"methods":
                             METHOD.format(name="step", body="_2 = (self).deeper(x)") +
                             METHOD.format(name="deeper", body='torch.save(x, "@PATH@")')}),
    "a function": ("_1 = __torch__.stateful.helper((state)[0])", {"functions":
                   '\ndef helper(x: Tensor) -> NoneType:\n  torch.save(x, "@PATH@")\n  return None\n'}),
    "a function of another file": ("_1 = __torch__.elsewhere.helper((state)[0])", {"added": [
        ("has_state/code/__torch__/elsewhere.py",
         'def helper(x: Tensor) -> NoneType:\n  torch.save(x, "@PATH@")\n  return None\n')]}),
    "a function as a value": ("f = __torch__.stateful.helper\n    _1 = f((state)[0])", {"functions":
                              '\ndef helper(x: Tensor) -> NoneType:\n  torch.save(x, "@PATH@")\n  return None\n'}),
    "fork": ("_1 = fork(__torch__.stateful.helper, (state)[0])", {"functions":
             '\ndef helper(x: Tensor) -> Tensor:\n  torch.save(x, "@PATH@")\n  return x\n'}),
    "an object": ("_1 = __torch__.stateful.Thing.__new__(__torch__.stateful.Thing)\n    _2 = (_1).__init__((state)[0])",
                  {"functions": "\nclass Thing:\n  x : Tensor\n  def __init__(self: __torch__.stateful.Thing, x: Tensor)"
                                ' -> NoneType:\n    torch.save(x, "@PATH@")\n    self.x = x\n    return None\n'}),
    "an operator of an object": (
        "_1 = __torch__.stateful.Thing.__new__(__torch__.stateful.Thing)\n    _2 = (_1).__init__((state)[0])\n    _3 = _1 + 1",
        {"functions": "\nclass Thing:\n  x : Tensor\n  def __init__(self: __torch__.stateful.Thing, x: Tensor)"
                      " -> NoneType:\n    self.x = x\n    return None\n  def __add__(self: __torch__.stateful.Thing, y: int)"
                      ' -> int:\n    torch.save(self.x, "@PATH@")\n    return y\n'}),
    "a default": ("pass", {"methods": "  def other(self: " + CLASS + ', y: NoneType=torch.save(1, "@PATH@")) -> int:\n'
                                      "    return 1\n"}),
    "a default that calls": ("pass", {
        "methods": "  def other(self: " + CLASS + ", y: int=__torch__.stateful.helper(1)) -> int:\n    return 1\n",
        "functions": '\ndef helper(x: int) -> int:\n  torch.save(x, "@PATH@")\n  return x\n'}),
    "an operator of nobody": ("_1 = ops.evil.run((state)[0])", {}),
    "a process": ("_1 = ops.c10d.barrier((state)[0])", {}),
}


def reaching(stateful, folder, name, precious):
    statement, more = REACHING[name]
    if statement == "pass":
        statement = "_0 = 1"
    fill = lambda value: (value.replace("@PATH@", str(precious)) if isinstance(value, str) else
                          [(record, text.replace("@PATH@", str(precious))) for record, text in value])
    return with_state(stateful, folder, fill(statement), **{key: fill(value) for key, value in more.items()})


@pytest.mark.parametrize("name", REACHING)
def test_code_that_runs_when_a_model_is_read(twinkle, stateful, hidden, precious, name):
    model = reaching(stateful, twinkle.folder, name, precious)
    before = outcome(twinkle.folder)
    found = twinkle("inspect", model, "--json")
    assert found.code == 0, found.err
    assert found.json["loaded"] is False and found.json["because"]
    refused(twinkle("kernelize", model, "-o", "fast.pt", "--json"), 6, "model.pt")
    refused(twinkle("run", model, "--inputs", hidden, "-o", "out.pt", "--json"), 6, "model.pt")
    assert outcome(twinkle.folder) == before and precious.read_text() == PRECIOUS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_it(twinkle, stateful, hidden, precious, command):
    model = reaching(stateful, twinkle.folder, "save", precious)
    before = outcome(twinkle.folder)
    error = refused(twinkle(*COMMANDS[command](model, hidden), "--json"), 6, "aten::save", "writes a file",
                    "__setstate__ of stateful.HasState")
    assert "--allow-io" in error["hint"]
    assert outcome(twinkle.folder) == before


def test_check_names_it(twinkle, stateful, precious, tmp_path):
    model = reaching(stateful, twinkle.folder, "save", precious)
    kernel = twinkle.folder / "kernel"
    kernel.mkdir()
    (kernel / "__init__.py").write_text("from . import layers\n")
    (kernel / "layers.py").write_text("from torch import nn\n\n\nclass HasState(nn.Module):\n    def forward(self, x):\n"
                                      "        return x\n")
    refused(twinkle("check", "kernel", "--model", model, "--json"), 6, "aten::save")
    assert precious.read_text() == PRECIOUS


def test_it_runs_where_it_is_allowed(twinkle, stateful, hidden, precious):
    model = reaching(stateful, twinkle.folder, "save", precious)
    done = twinkle("run", model, "--inputs", hidden, "-o", "out.pt", "--allow-io")
    assert done.code == 0, done.err
    assert precious.read_bytes().startswith(b"PK")  # a tensor, as aten::save writes it


HARMLESS = {
    "nothing": "_0 = 1",
    "arithmetic": "_0 = torch.add((state)[0], 1, alpha=2)",
    "text": '_0 = torch.format("{} {}", 1, torch.upper("a"))',
    "warning": 'torch.warn("loaded")',
    "loop": "for _1 in range(3):\n      _2 = torch.zeros([2])",
    "method": "_0 = (self).forward((state)[0])",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_state_that_only_computes(twinkle, stateful, hidden, name):
    statement = HARMLESS[name]
    model = with_state(stateful, twinkle.folder, "self.weight = (state)[0]\n    " + statement)
    done = twinkle("run", model, "--inputs", hidden, "-o", "out.pt")
    assert done.code == 0, done.err
    assert twinkle("inspect", model, "--json").json["loaded"]
    assert twinkle("kernelize", model, "--inputs", hidden, "--verify", "-o", "fast.pt").code == 0
    assert twinkle("run", "fast.pt", "--inputs", hidden).code == 0


@pytest.mark.parametrize("name", ["quantized", "quantized_traced", "dynamically_quantized", "saves_nothing", "has_state"])
def test_real_models_with_state(twinkle, stateful, hidden, name):
    """What PyTorch quantizes packs its weights when it is loaded."""
    model = stateful / f"{name}.pt"
    found = twinkle("inspect", model, "--json")
    assert found.code == 0 and found.json["loaded"] and found.json["io"] == [], found.err
    done = twinkle("run", model, "--inputs", hidden, "--json")
    assert done.code == 0, done.err
    (twinkle.folder / "twinkle.toml").write_text("presets = []\n")  # kernels take no quantized tensors
    done = twinkle("kernelize", model, "--inputs", hidden, "--device", "cpu", "-o", "fast.pt")
    assert done.code == 0, done.err
    again = twinkle("run", "fast.pt", "--inputs", hidden, "--json")
    assert again.code == 0, again.err


@pytest.mark.parametrize("statement", ["while True:\n      _0 = 1", "y = 0\n    for _0 in range(9223372036854775807):\n      y = y * 3 + 1\n    self.training = y == 7"])
@pytest.mark.parametrize("command", ["inspect", "kernelize"])
def test_state_that_does_not_end(twinkle, stateful, statement, command):
    model = with_state(stateful, twinkle.folder, statement)
    done = twinkle(command, model, "--json", env=PATIENCE)
    if command == "inspect":
        assert done.code == 0 and "hung" in done.json["because"], done.err
    else:
        refused(done, 6, "hung", "__setstate__")


# What forward does -----------------------------------------------------------------------------------------------


FORWARDS = {"writes_a_file": ("aten::save", "writes a file"), "reads_a_file": ("aten::from_file", "opens a file")}


def placed(stateful, folder, name, path):
    rewrite(stateful / f"{name}.pt", folder / "model.pt", lambda code: code.replace(b"@PATH@", str(path).encode()))
    return folder / "model.pt"


@pytest.mark.parametrize("name", FORWARDS)
def test_inspect_names_what_forward_does(twinkle, stateful, precious, name):
    model = placed(stateful, twinkle.folder, name, precious)
    found = twinkle("inspect", model, "--json").json
    assert found["loaded"] and [entry["name"] for entry in found["io"]] == [FORWARDS[name][0]]
    shown = twinkle("inspect", model)
    assert shown.code == 0 and FORWARDS[name][0] in shown.out and FORWARDS[name][1] in shown.out
    assert precious.read_text() == PRECIOUS


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FORWARDS)
def test_forward_is_refused_before_anything_runs(twinkle, stateful, hidden, precious, name, command):
    model = placed(stateful, twinkle.folder, name, precious)
    before = outcome(twinkle.folder)
    error = refused(twinkle(*COMMANDS[command](model, hidden), "--json"), 6, *FORWARDS[name])
    assert "--allow-io" in error["hint"]
    assert outcome(twinkle.folder) == before


def test_forward_runs_where_it_is_allowed(twinkle, stateful, hidden, precious):
    model = placed(stateful, twinkle.folder, "writes_a_file", precious)
    assert twinkle("kernelize", model, "--device", "cpu", "-o", "fast.pt", "--allow-io").code == 0
    assert precious.read_text() == PRECIOUS  # nothing of it has run
    refused(twinkle("run", "fast.pt", "--inputs", hidden, "--json"), 6, "aten::save")
    assert twinkle("run", "fast.pt", "--inputs", hidden, "--allow-io").code == 0
    assert precious.read_bytes().startswith(b"PK")


# Where code is looked for ----------------------------------------------------------------------------------------


def test_code_under_another_case(twinkle, stateful, hidden, precious):
    """LibTorch's reader of archives ignores case."""
    statement = f'torch.save((state)[0], "{precious}")'
    model = with_state(stateful, twinkle.folder, statement, renamed=lambda name: name.replace("/code/", "/CODE/"))
    done = twinkle("run", model, "--inputs", hidden, "--json")
    assert done.code in (2, 6), done.err
    assert precious.read_text() == PRECIOUS


def test_the_format_of_old(twinkle, stateful, hidden, precious):
    """A record that makes LibTorch look for code elsewhere."""
    model = with_state(stateful, twinkle.folder, "_0 = 1", added=[("has_state/model.json", "{}")])
    refused(twinkle("run", model, "--inputs", hidden, "--json"), 2, "before 1.3")
    refused(twinkle("inspect", model, "--json"), 2, "before 1.3")


def test_a_name_longer_than_lists_have(twinkle, stateful, hidden):
    model = with_state(stateful, twinkle.folder, "_0 = 1", added=[("has_state/code/" + "a" * 600 + ".py", "")])
    refused(twinkle("run", model, "--inputs", hidden, "--json"), 2, "name")


@pytest.mark.parametrize("text", ["import __torch__", "def f(:\n", "x = 1\n", "class A\n", "\0", "def f() -> int:\n"])
def test_code_that_is_none(twinkle, stateful, hidden, text):
    model = with_state(stateful, twinkle.folder, "_0 = 1", added=[("has_state/code/__torch__/more.py", text)])
    refused(twinkle("run", model, "--inputs", hidden, "--json", env=PATIENCE), 2, "model.pt")


# Archives that are larger inside ---------------------------------------------------------------------------------


@functools.cache
def zeros(size):
    """So many, compressed a piece at a time, and their checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece, packed, crc = bytes(1 << 20), bytearray(), 0
    for _ in range(size >> 20):
        packed += packer.compress(piece)
        crc = zlib.crc32(piece, crc)
    return bytes(packed + packer.flush()), crc


def deflated(source, target, name, size):
    """A copy of the archive in which the record `name` is that many zeros."""
    packed, crc = zeros(size)
    with zipfile.ZipFile(source) as old:
        records = [(entry, old.read(entry)) for entry in old.namelist() if not entry.endswith("/" + name)]
        folder = old.namelist()[0].split("/")[0]
    out, directory = bytearray(), bytearray()
    entries = [(entry, zipfile.ZIP_STORED, zlib.crc32(data), data, len(data)) for entry, data in records]
    entries.append((f"{folder}/{name}", zipfile.ZIP_DEFLATED, crc, packed, size))
    for entry, method, check, data, length in entries:
        place = len(out)
        fields = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, check, len(data), length, len(entry), 0)
        out += b"PK\x03\x04" + fields + entry.encode() + data
        directory += (b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, place) +
                      entry.encode())
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(out), 0)
    target.write_bytes(bytes(out) + bytes(directory) + b"PK\x05\x06" + end)


@pytest.mark.parametrize("name", ["data/0", "data.pkl", "constants.pkl", "version", ".data/serialization_id",
                                  "code/__torch__/more.py", "code/__torch__/more.py.debug_pkl", "extra/any"])
def test_a_record_that_is_gigabytes_when_unpacked(twinkle, stateful, hidden, name):
    model = twinkle.folder / "model.pt"
    deflated(stateful / "writes_a_file.pt", model, name, 1 << 30)
    assert model.stat().st_size < 3 << 20
    for command in (["inspect"], ["kernelize", "-o", "fast.pt"], ["run", "--inputs", hidden]):
        refused(twinkle(command[0], model, *command[1:], "--json"), 2, "model.pt")


def test_inputs_that_are_gigabytes_when_unpacked(twinkle, stateful, hidden):
    inputs = twinkle.folder / "inputs.pt"
    deflated(hidden, inputs, "data/0", 1 << 30)
    refused(twinkle("run", stateful / "saves_nothing.pt", "--inputs", "inputs.pt", "--json"), 2, "inputs.pt")


def test_a_small_archive_that_somebody_compressed(twinkle, stateful, hidden):
    """Not as PyTorch writes it, but as it reads it."""
    with zipfile.ZipFile(stateful / "saves_nothing.pt") as old:
        with zipfile.ZipFile(twinkle.folder / "model.pt", "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
    assert twinkle("run", "model.pt", "--inputs", hidden).code == 0


def test_the_models_are_not_changed(stateful):
    """The tests above write copies."""
    assert all(zipfile.is_zipfile(file) and sha256(file) for file in stateful.iterdir())
