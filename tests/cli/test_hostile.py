"""Hostile and broken input: the exit code and message of cli.md, nothing half-written, the original untouched."""

import errno
import json
import os
import pickle
import re
import shutil
import subprocess
import time
import zipfile

import pytest
from conftest import PROGRAM, Finished, Twinkle, environment
from kernels_for_tests import (EXAMPLES, MLP, PATIENCE, PREFIX, RMS_NORM, RUNTIMES, VARIANT, calling, compiled_kernel,
                               libraries, made_models, manifest, models, needs_runtime, outcome, python_kernel, sha256)

pytestmark = needs_runtime
CODES = {1: "failed", 2: "malformed", 3: "not-found", 4: "verification", 6: "refused"}


def refused(done, code, *words):
    """The one error object, with the words in it."""
    assert done.code == code, (done.code, done.out, done.err)
    assert done.out == ""
    error = done.error
    assert error["code"] == CODES[code] and error["what"]
    text = json.dumps(error)
    for word in words:
        assert word in text
    # Never LibTorch's own text: its stack of C++ frames, its advice.
    assert "frame #" not in text and "unexpectedly" not in text
    return error


@pytest.fixture(scope="session")
def made():
    return made_models()


@pytest.fixture(scope="session")
def mapping(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mapping")
    assert Twinkle(folder)("resolve", "--project", EXAMPLES, "-o", "twinkle.map.json").code == 0
    return folder / "twinkle.map.json"


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt", models.parent / "inputs/hidden.pt"


# Models ----------------------------------------------------------------------------------------------------------

NOT_MODELS = {
    "state_dict.pt": "state_dict", "checkpoint.pt": "state_dict", "whole_module.pt": "without code",
    "legacy_state_dict.pt": "pickle", "compiled.pt2": "AOTInductor", "weights.safetensors": "safetensors",
    "plain.pkl": "pickle", "hostile.pkl": "pickle", "model.onnx": "no zip", "model.gguf": "no zip",
    "empty.pt": "empty", "zeros.pt": "no zip", "text.pt": "no zip", "other_zip.pt": "not PyTorch's",
    "truncated_header.pt": "damaged", "truncated.pt": "damaged", "truncated_end.pt": "damaged", "broken_code.pt": "",
    "broken_data.pt": "", "missing_weight.pt": ""}


@pytest.mark.parametrize("name", NOT_MODELS)
def test_files_that_are_no_models(twinkle, made, mapping, name):
    model = made / "not_models" / name
    before = sha256(model)
    refused(twinkle("kernelize", model, "--map", mapping, "-o", "fast.pt", "--json"), 2, NOT_MODELS[name], name)
    refused(twinkle("run", model, "--inputs", "float32[1,2,64]", "-o", "out.pt", "--json"), 2, name)
    assert outcome(twinkle.folder) == {} and sha256(model) == before
    assert not (made / "not_models/this-file-ran-code").exists()


def test_every_not_model_is_tested(made):
    assert set(NOT_MODELS) == {path.name for path in (made / "not_models").iterdir()}


@pytest.mark.parametrize("size", [1, 3, 4, 29, 64, 1000, 30000, -1, -21, -22, -100])
def test_truncated(twinkle, small, mapping, size):
    whole = small[0].read_bytes()
    (twinkle.folder / "model.pt").write_bytes(whole[:size])
    before = outcome(twinkle.folder)
    refused(twinkle("kernelize", "model.pt", "--map", mapping, "-o", "fast.pt", "--json"), 2, "model.pt")
    assert outcome(twinkle.folder) == before


def test_a_program_as_a_model(twinkle):
    refused(twinkle("kernelize", PROGRAM, "-o", "fast.pt", "--json"), 2, "shared library or a program")


def test_a_record_outside_of_the_model(twinkle, models, mapping):
    refused(twinkle("kernelize", models / "stray_record.pt", "--map", mapping, "-o", "fast.pt", "--json"), 2, "record")
    assert not list(twinkle.folder.parent.glob("escaped.py")) and outcome(twinkle.folder) == {}


def test_a_folder_a_pipe_and_nothing(twinkle):
    (twinkle.folder / "folder").mkdir()
    os.mkfifo(twinkle.folder / "pipe")
    refused(twinkle("kernelize", "folder", "-o", "fast.pt", "--json"), 2, "folder")
    refused(twinkle("kernelize", "none.pt", "-o", "fast.pt", "--json"), 3, "none.pt")
    assert twinkle("kernelize", "pipe", "-o", "fast.pt", "--json").code in (2, 3)
    assert twinkle("run", "pipe", "--json").code in (2, 3)
    refused(twinkle("kernelize", "/dev/zero", "-o", "fast.pt", "--json"), 3, "regular file")
    assert sorted(outcome(twinkle.folder)) == ["folder", "pipe"]


def test_a_model_that_needs_an_operator_of_no_kernel(twinkle, small, libraries):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("copy"))
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    strip_markers(twinkle.folder / "fast.pt", twinkle.folder / "unmarked.pt")
    error = refused(twinkle("run", "unmarked.pt", "--inputs", small[1], "--json"), 3, "misbehaving::copy")
    assert "--kernels" in error["hint"]


def rewrite(source, target, change):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name.endswith(".py") else old.read(name))


def strip_markers(source, target):
    def without(code):
        return b"\n".join(line for line in code.split(b"\n") if b"needs_kernel" not in line and b"twinkle.kernel" not in line)

    rewrite(source, target, without)


TAMPERED = {
    "another_build": (lambda code: code.replace(b" build=", b" build=0000"), 4),
    "another_namespace": (lambda code: code.replace(b"namespace=misbehaving", b"namespace=nobody"), 3),
    "a_path": (lambda code: code.replace(b"name=kernel", b"name=../../../tmp/evil"), 0),
    "no_build": (lambda code: code.replace(b" build=", b" built="), 2),
    "not_plain": (lambda code: code.replace(b"namespace=misbehaving", b"namespace=mis;behaving"), 2),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_marker(twinkle, small, libraries, name):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("copy"))
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    change, code = TAMPERED[name]
    rewrite(twinkle.folder / "fast.pt", twinkle.folder / "tampered.pt", change)
    assert sha256(twinkle.folder / "fast.pt") != sha256(twinkle.folder / "tampered.pt")
    command = ["run", "tampered.pt", "--inputs", small[1], "--kernels", ".", "--json"]
    done = twinkle(*command)
    if code == 0:  # a name is for messages; nothing is looked for by it
        assert done.code == 0, done.err
    else:
        refused(done, code)


# Kernels ---------------------------------------------------------------------------------------------------------


def pack_copy(folder):
    """The bundled pack as a local kernel, so that it can be damaged."""
    build = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").iterdir())
    shutil.copytree(build, folder / "kernel/build" / build.name)
    manifest(folder)
    return folder / "kernel/build" / build.name


PACK_FILES = ["library", "layers.py", "__init__.py", "metadata.json", "_ops.py"]


def change_a_byte(build, name):
    file = next(build.glob("*.so")) if name == "library" else build / name
    content = bytearray(file.read_bytes())
    place = len(content) // 2
    content[place] ^= 1
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("name", PACK_FILES)
def test_one_changed_byte(twinkle, small, name):
    build = pack_copy(twinkle.folder)
    assert twinkle("resolve", "-o", "twinkle.map.json").code == 0
    assert twinkle("kernelize", small[0], "--map", "twinkle.map.json", "-o", "fast.pt").code == 0
    file = change_a_byte(build, name)
    command = ["kernelize", small[0], "--map", "twinkle.map.json", "-o", "again.pt", "--json"]
    error = refused(twinkle(*command), 4, file.name)
    assert "SHA-256" in error["why"]
    refused(twinkle(*command, "--fallback", "all"), 4)
    assert not (twinkle.folder / "again.pt").exists()
    # The model names its build: one with other bytes is another build, and not loaded.
    done = run_elsewhere(twinkle, small)
    # Damaged metadata may no longer name the operators, so that no such build is there at all.
    refused(done, done.code if name == "metadata.json" and done.code == 3 else 4)


def run_elsewhere(twinkle, small):
    """`twinkle run` where the only kernels are those of the folder: a copy of the program without the pack."""
    place = twinkle.folder / "installed"
    (place / "bin").mkdir(parents=True)
    shutil.copy(PROGRAM, place / "bin/twinkle")
    shutil.copytree(RUNTIMES[0].parent, place / "libexec/twinkle" / RUNTIMES[0].parent.name)
    done = subprocess.run([place / "bin/twinkle", "run", "fast.pt", "--inputs", small[1], "--kernels", ".", "--json"],
                          cwd=twinkle.folder, capture_output=True, timeout=60, env=environment(HF_HOME="/none"))
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


BUSY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
int fcntl64(int fd, int command, ...) {
    static int refused;
    va_list list;
    va_start(list, command);
    void* argument = va_arg(list, void*);
    va_end(list);
    if (command == F_ADD_SEALS && refused++ < 2) return errno = atoi(getenv("SEAL_ERROR")), -1;
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64"))(fd, command, argument);
}
int fcntl(int fd, int command, ...) __attribute__((alias("fcntl64")));
"""


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EPERM])
def test_memory_that_is_not_sealed_at_once(twinkle, small, error):
    """Linux says EBUSY while it moves a page. A copy without its seal was not a library to confined children."""
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    (twinkle.folder / "busy.c").write_text(BUSY)
    shim = twinkle.folder / "busy.so"
    subprocess.run(["cc", "-shared", "-fPIC", twinkle.folder / "busy.c", "-o", shim, "-ldl"], check=True)
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--json", env={"LD_PRELOAD": shim, "SEAL_ERROR": str(error)})
    if error == errno.EBUSY:
        assert done.code == 0, done.err
    else:
        assert "private copy" in refused(done, 1, ".so")["what"]


def test_a_changed_byte_before_resolve(twinkle):
    build = pack_copy(twinkle.folder)
    change_a_byte(build, "layers.py")
    assert twinkle("resolve", "-o", "twinkle.map.json", "--json").code in (4, 6)
    assert not (twinkle.folder / "twinkle.map.json").exists()


@pytest.mark.parametrize("change, code", [("missing", 3), ("longer", 4), ("pipe", 4), ("folder", 4), ("link", 4)])
def test_a_file_of_the_kernel_that_is_something_else(twinkle, small, change, code):
    build = pack_copy(twinkle.folder)
    assert twinkle("resolve", "-o", "twinkle.map.json").code == 0
    file = build / "layers.py"
    content = file.read_bytes()
    file.unlink()
    if change == "longer":
        file.write_bytes(content + b"\n")
    elif change == "pipe":
        os.mkfifo(file)
    elif change == "folder":
        file.mkdir()
    elif change == "link":
        file.symlink_to("/dev/zero")
    before = sorted(twinkle.folder.rglob("*"))
    refused(twinkle("kernelize", small[0], "--map", "twinkle.map.json", "-o", "fast.pt", "--json"), code, "layers.py")
    assert sorted(twinkle.folder.rglob("*")) == before


LOADING = {
    "undefined": "undefined symbol: no_library_defines_this", "crashes": "segmentation fault", "aborts": "aborted",
    "throws": "not today", "hangs": "hung", "exits": "exit code 0", "leaves": "exit code 0", "kills": "while it was loaded"}


@pytest.mark.parametrize("name", LOADING)
def test_a_library_that_cannot_be_loaded(twinkle, small, libraries, name):
    compiled_kernel(twinkle.folder, libraries.get(name), source=calling("copy"))
    before = outcome(twinkle.folder)
    start = time.monotonic()
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--json", env=PATIENCE)
    error = refused(done, 6, LOADING[name])
    assert "kernel" in error["what"] and error["where"].endswith(VARIANT)
    assert time.monotonic() - start < 20 and outcome(twinkle.folder) == before


@pytest.mark.parametrize("name", ["undefined", "crashes"])
def test_a_library_that_cannot_be_loaded_is_a_fallback_if_allowed(twinkle, small, libraries, name):
    compiled_kernel(twinkle.folder, libraries.get(name), source=calling("copy"))
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--fallback", "all", "--json", env=PATIENCE)
    assert done.code == 0, done.err
    assert (done.json["replaced"], done.json["kept"]) == (0, 2)
    assert all("cannot be loaded" in site["because"] for site in done.json["sites"])


def test_a_library_that_is_none(twinkle, small):
    (twinkle.folder / "text.so").write_text("not a library\n")
    compiled_kernel(twinkle.folder, twinkle.folder / "text.so", source=calling("copy"))
    assert twinkle("kernelize", small[0], "-o", "fast.pt", "--json").code in (2, 6)
    assert not (twinkle.folder / "fast.pt").exists()


@pytest.mark.parametrize("taken", ["aten", "prim", "quantized", "twinkle"])
def test_a_namespace_of_libtorch(twinkle, small, libraries, taken):
    """Two that define one namespace end the process: it must be seen before."""
    compiled_kernel(twinkle.folder, libraries.get("operators", taken), op_namespace=taken, source=calling("copy"))
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--json")
    refused(done, 6, taken)
    assert not (twinkle.folder / "fast.pt").exists()


def pack_namespace():
    build = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").iterdir())
    return json.loads((build / "metadata.json").read_text())["id"]


def test_the_namespace_of_another_kernel(twinkle, small, libraries):
    taken = pack_namespace()
    compiled_kernel(twinkle.folder, libraries.get("operators", taken), op_namespace=taken, source=calling("copy"))
    with (twinkle.folder / "twinkle.toml").open("a") as file:
        file.write(f'\n[layers.SwiGLUMLP]\nclasses = ["{MLP}"]\n')
    refused(twinkle("kernelize", small[0], "-o", "fast.pt", "--json"), 6, "taken", taken)
    assert not (twinkle.folder / "fast.pt").exists()


def test_a_library_that_defines_another_namespace_than_it_says(twinkle, small, libraries):
    """Its metadata promise one namespace, its initializer defines that of LibTorch."""
    compiled_kernel(twinkle.folder, libraries.get("operators", "aten"), source=calling("copy"))
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--json", env=PATIENCE)
    assert done.code == 6 and done.error["code"] == "refused", done.err
    assert not (twinkle.folder / "fast.pt").exists()


OPERATORS = {
    "crash": ("segmentation fault", 6), "end": ("aborted", 6), "leave": ("exit code 0", 6), "hang": ("hung", 6),
    "refuse": ("the operator refuses", 6), "overrun": ("crashed", 6), "devour": ("", 6), "scribble": ("writes into", 4)}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_that_misbehaves(twinkle, small, libraries, name):
    words, code = OPERATORS[name]
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling(name))
    with (twinkle.folder / "twinkle.toml").open("a") as file:
        file.write('modules = ["first.*"]\n')
    before, model = outcome(twinkle.folder), sha256(small[0])
    command = ["kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json"]
    refused(twinkle(*command, "--strict", "--fallback", "false", env=PATIENCE), code, "first.norm", words)
    assert outcome(twinkle.folder) == before and sha256(small[0]) == model
    done = twinkle(*command, env=PATIENCE)
    assert done.code == 0, done.err
    site = next(site for site in done.json["sites"] if site["site"] == "first.norm")
    assert site["status"] == "reverted" and words in site["because"]
    # What was written needs no kernel any more.
    assert twinkle("inspect", "fast.pt", "--json").json["kernels"] == []


def test_an_operator_that_crashes_in_run(twinkle, small, libraries):
    compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("crash"))
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    refused(twinkle("run", "fast.pt", "--inputs", small[1], "-o", "out.pt", "--kernels", ".", "--json"), 1,
            "segmentation fault")
    assert not (twinkle.folder / "out.pt").exists()


# Layers that cannot be compiled ----------------------------------------------------------------------------------

CONSTRUCTS = {
    "try": ("        x = hidden", "        try:\n            pass\n        except Exception:\n            pass\n        x = hidden", "try"),
    "lambda": ("        x = hidden", "        f = lambda y: y\n        x = hidden", "lambda"),
    "yield": ("        x = hidden", "        yield 1\n        x = hidden", "yield"),
    "import": ("        x = hidden", "        import os\n        os.remove('ran')\n        x = hidden", "os"),
    "attribute": ("self.variance_epsilon)", "self.no_such_attribute)", "no_such_attribute"),
    "function": ("torch.rsqrt(", "torch.no_such_function(", "no_such_function"),
    "python": ("        x = hidden", "        open('ran', 'w')\n        x = hidden", "open"),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_layer_that_cannot_be_compiled(twinkle, small, name):
    right, wrong, word = CONSTRUCTS[name]
    assert right in RMS_NORM
    python_kernel(twinkle.folder, RMS_NORM.replace(right, wrong))
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    assert (done.json["replaced"], done.json["kept"]) == (0, 2)
    for site in done.json["sites"]:
        assert site["status"] == "kept" and word in site["because"].lower()
        if name != "attribute":
            assert "layers.py:" in site["because"]
    for more in (["--strict"], ["--fallback", "no-layer"]):
        refused(twinkle("kernelize", small[0], "-o", "strict.pt", "--json", *more), 6, "cannot-compile")
    assert not (twinkle.folder / "strict.pt").exists() and not (twinkle.folder / "ran").exists()


@pytest.mark.parametrize("source", ["def f(:\n", "class RMSNorm\n", "\0\0\0", "x = " + "(" * 20000, "class RMSNorm: pass\n" * 3,
                                    "\xff\xfe".encode("latin-1"), "", "if " + "not " * 50000 + "x: pass"],
                         ids=range(8))
def test_layers_that_are_no_python(twinkle, small, source):
    package = python_kernel(twinkle.folder, "")
    (package / "layers.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    done = twinkle("kernelize", small[0], "-o", "fast.pt", "--strict", "--json")
    assert done.code in (2, 3, 6), (done.code, done.err)
    assert "layers.py" in done.err or "RMSNorm" in done.err
    assert not (twinkle.folder / "fast.pt").exists()


# Outputs ---------------------------------------------------------------------------------------------------------


def mounted(options, folder, script):
    """Runs a script in a mount namespace of its own, with a file system mounted at `folder`."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", folder],
                                           capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    done = subprocess.run(["unshare", "-m", "sh", "-c", f'mount -t tmpfs {options} none "$0" && {script}', folder],
                          capture_output=True, timeout=60, env=environment())
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def kernelize_to(folder, model, mapping, end):
    return (f'"{PROGRAM}" kernelize "{model}" --map "{mapping}" -o "{folder}/fast.pt" --json; code=$?; '
            f'ls -A "{folder}" >&2; {end}exit $code')


def test_a_full_disk(twinkle, mapping):
    disk = twinkle.folder / "disk"
    disk.mkdir()
    done = mounted("-o size=512k", disk, kernelize_to(disk, EXAMPLES / "traced.pt", mapping, ""))
    assert done.code == 1
    assert json.loads(done.err)["error"]["code"] == "failed"  # and nothing listed after it
    assert "the disk is full" in done.err


def test_a_full_disk_keeps_what_was_there(twinkle, mapping):
    disk = twinkle.folder / "disk"
    disk.mkdir()
    # As a model begins: another kind of file would not be overwritten anyhow.
    script = f"printf 'PK\\003\\004precious\\n' > '{disk}/fast.pt'; " + kernelize_to(
        disk, EXAMPLES / "traced.pt", mapping, f'cat "{disk}/fast.pt" >&2; ')
    done = mounted("-o size=512k", disk, script)
    assert done.code == 1 and done.err.endswith("}\nfast.pt\nPK\3\4precious\n"), done.err


def test_a_full_disk_for_outputs(twinkle, mapping):
    disk = twinkle.folder / "disk"
    disk.mkdir()
    done = mounted("-o size=64k", disk, f'"{PROGRAM}" run "{EXAMPLES}/traced.pt" --inputs "int64[4,128]:0..256" '
                   f'-o "{disk}/out.pt" --json; code=$?; ls -A "{disk}" >&2; exit $code')
    assert done.code == 1 and json.loads(done.err)["error"]["code"] == "failed"


def test_a_read_only_folder(twinkle, mapping):
    disk = twinkle.folder / "disk"
    disk.mkdir()
    done = mounted("-o ro", disk, kernelize_to(disk, EXAMPLES / "traced.pt", mapping, ""))
    assert done.code == 1 and json.loads(done.err)["error"]["code"] == "failed"
    assert "Read-only" in done.err


@pytest.mark.parametrize("output, code", [("none/fast.pt", 1), ("/proc/fast.pt", 1), (".", 2), ("-", 2)])
def test_places_where_nothing_can_be_written(twinkle, mapping, output, code):
    refused(twinkle("kernelize", EXAMPLES / "traced.pt", "--map", mapping, "-o", output, "--json"), code)
    assert outcome(twinkle.folder) == {}


def test_the_original_is_never_the_output(twinkle, small):
    shutil.copy(small[0], twinkle.folder / "model.pt")
    os.link(twinkle.folder / "model.pt", twinkle.folder / "hard.pt")
    (twinkle.folder / "soft.pt").symlink_to("model.pt")
    before = outcome(twinkle.folder)
    for output in ("model.pt", "./model.pt", "hard.pt", "soft.pt"):
        refused(twinkle("kernelize", "model.pt", "-o", output, "--json"), 2, "overwrite")
    assert outcome(twinkle.folder) == before


# Mappings --------------------------------------------------------------------------------------------------------


def changed(text, change):
    document = json.loads(text)
    change(document)
    return json.dumps(document)


def set_path(document, path):
    document["kernels"][0]["files"][0]["path"] = path


MAPPINGS = {
    "empty": lambda text: "", "no JSON": lambda text: text[:-20], "a list": lambda text: "[]", "null": lambda text: "null",
    "a number": lambda text: "1e999", "twice": lambda text: text.replace('"kernels"', '"schema"', 1),
    "deep": lambda text: '{"schema": "twinkle.map/1", "target": ' + "[" * 100000 + "]" * 100000 + "}",
    "deep and open": lambda text: "[" * 1000000,
    "another schema": lambda text: text.replace("twinkle.map/1", "twinkle.map/2"),
    "no schema": lambda text: "{}",
    "up": lambda text: changed(text, lambda d: set_path(d, "../layers.py")),
    "up inside": lambda text: changed(text, lambda d: set_path(d, "a/../../layers.py")),
    "absolute": lambda text: changed(text, lambda d: set_path(d, "/etc/passwd")),
    "no path": lambda text: changed(text, lambda d: set_path(d, "")),
    "NUL": lambda text: changed(text, lambda d: set_path(d, "layers.py\0")),
    "wrong type": lambda text: changed(text, lambda d: d.update(layers={"a": 1})),
    "negative size": lambda text: changed(text, lambda d: d["kernels"][0]["files"][0].update(size=-1)),
    "no hash": lambda text: changed(text, lambda d: d["kernels"][0]["files"][0].pop("sha256")),
    "short hash": lambda text: changed(text, lambda d: d["kernels"][0]["files"][0].update(sha256="00")),
    "file twice": lambda text: changed(text, lambda d: d["kernels"][0]["files"].append(d["kernels"][0]["files"][0])),
    "huge": lambda text: " " * (80 << 20) + text,
    "not UTF-8": lambda text: text.encode() + b"\xff",
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_malformed_mappings(twinkle, small, mapping, name):
    text = MAPPINGS[name](mapping.read_text())
    assert text != mapping.read_text()
    (twinkle.folder / "bad.map.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = outcome(twinkle.folder)
    refused(twinkle("kernelize", small[0], "--map", "bad.map.json", "-o", "fast.pt", "--json"), 2, "bad.map.json")
    assert outcome(twinkle.folder) == before


def test_a_mapping_that_is_a_pipe_or_not_there(twinkle, small):
    os.mkfifo(twinkle.folder / "pipe")
    assert twinkle("kernelize", small[0], "--map", "pipe", "-o", "fast.pt", "--json").code in (2, 3)
    refused(twinkle("kernelize", small[0], "--map", "none", "-o", "fast.pt", "--json"), 3)


# Inputs ----------------------------------------------------------------------------------------------------------

SPECIFICATIONS = ["float33[1]", "int64[1", "int64]1[", "[1,2]", "int64[-1]", "int64[a]", "int64[1.5]", "int64[1,,2]",
                  "float32[1000000000,1000000000]", "int64[4611686018427387904,4]", "int64[18446744073709551617]",
                  "int64[3]:5..5", "int64[3]:9..1", "int64[3]:a..b", "int64[3]:1", "int64[3]::", "int64[1];", ";",
                  "float32[1]trailing"]


@pytest.mark.parametrize("text", SPECIFICATIONS)
def test_malformed_specifications(twinkle, small, text):
    done = twinkle("run", small[0], "--inputs", text, "-o", "out.pt", "--json")
    assert done.code in (2, 3), (done.code, done.err)
    assert done.error["what"] and "frame #" not in done.err and "unexpectedly" not in done.err
    assert outcome(twinkle.folder) == {}


@pytest.mark.parametrize("name", ["hostile.pt", "hostile.pkl", "truncated.pt", "text.pt", "empty.pt"])
def test_files_that_are_no_inputs(twinkle, made, models, name):
    inputs = made / "inputs" / name
    refused(twinkle("run", models / "tiny_llama.pt", "--inputs", inputs, "-o", "out.pt", "--json"), 2, name)
    refused(twinkle("kernelize", models / "tiny_llama.pt", "--inputs", inputs, "--verify", "-o", "fast.pt", "--json"), 2)
    assert not (made / "inputs/this-file-ran-code").exists() and outcome(twinkle.folder) == {}


def test_a_pickle_that_calls_system(twinkle, models):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {twinkle.folder}/ran",)

    with zipfile.ZipFile(twinkle.folder / "evil.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps((Evil(),), protocol=2))
        archive.writestr("archive/version", "3\n")
    (twinkle.folder / "plain.pt").write_bytes(pickle.dumps((Evil(),), protocol=2))
    for name in ("evil.pt", "plain.pt"):
        refused(twinkle("run", models / "tiny_llama.pt", "--inputs", name, "--json"), 2, name)
    assert not (twinkle.folder / "ran").exists()


@pytest.mark.parametrize("name", ["wrong_dtype.pt", "wrong_name.pt", "too_many.pt", "hidden_bfloat16.pt"])
def test_inputs_that_do_not_fit(twinkle, made, models, name):
    inputs = made / "inputs" / name
    refused(twinkle("run", models / "tiny_llama.pt", "--inputs", inputs, "-o", "out.pt", "--json"), 2, "tiny_llama.pt")
    command = ["kernelize", models / "tiny_llama.pt", "--project", EXAMPLES, "--inputs", inputs, "--verify", "-o",
               "fast.pt", "--json"]
    refused(twinkle(*command), 2, "tiny_llama.pt")
    assert outcome(twinkle.folder) == {}


def test_no_inputs(twinkle, small):
    refused(twinkle("run", small[0], "--json"), 2)
    refused(twinkle("kernelize", small[0], "--verify", "-o", "fast.pt", "--json"), 2, "--inputs")


# What is no file -------------------------------------------------------------------------------------------------


def a_folder(path):
    path.mkdir()


@pytest.mark.parametrize("kind, make", [("pipe", os.mkfifo), ("folder", a_folder)])
@pytest.mark.parametrize("name", ["layers.py", "__init__.py"])
@pytest.mark.parametrize("command", [["resolve"], ["inspect", "kernel"], ["check", "kernel"], ["lock"]])
def test_what_stands_for_a_file_of_a_package(twinkle, name, command, kind, make):
    """It was passed over without a word, and the kernel taken for one without layers."""
    package = python_kernel(twinkle.folder, "from torch import nn\n\n\nclass RMSNorm(nn.Module):\n"
                                            "    def forward(self, x):\n        return x\n")
    (package / name).unlink()
    make(package / name)
    refused(twinkle(*command, "--json"), 2, name, kind)


@pytest.mark.parametrize("name", ["kernel/deeper/helpers.py", "kernel/notes.txt"])
def test_a_pipe_anywhere_in_a_package(twinkle, name):
    python_kernel(twinkle.folder, "from torch import nn\n")
    (twinkle.folder / name).parent.mkdir(exist_ok=True)
    os.mkfifo(twinkle.folder / name)
    refused(twinkle("inspect", "kernel", "--json"), 2, "pipe")


@pytest.mark.parametrize("kind, make", [("pipe", os.mkfifo), ("folder", a_folder)])
@pytest.mark.parametrize("name", ["twinkle.toml", "pyproject.toml"])
def test_a_manifest_that_is_no_file(twinkle, name, kind, make):
    make(twinkle.folder / name)
    refused(twinkle("resolve", "--project", ".", "--json"), 2, name, kind)
    if name == "twinkle.toml":
        refused(twinkle("resolve", "--json"), 2, name, kind)


@pytest.mark.parametrize("command", [["inspect"], ["kernelize"], ["run"], ["bench", "--inputs", "float32[1]"]])
def test_a_pipe_as_a_model(twinkle, command):
    os.mkfifo(twinkle.folder / "pipe")
    done = twinkle(command[0], "pipe", *command[1:], "--json")
    assert done.code in (2, 3) and "pipe" in done.error["where"], done.err
    assert "regular file" in json.dumps(done.error) or "no file" in json.dumps(done.error)


def test_libraries_of_the_current_folder_are_not_loaded(twinkle):
    """An empty entry in a program's RUNPATH would be the current folder."""
    programs = [one for one in [PROGRAM, *RUNTIMES[0].parent.iterdir()] if one.read_bytes()[:4] == b"\x7fELF"]
    needed = {name for one in programs for name in re.findall(
        r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-dW", one], check=True, capture_output=True, text=True).stdout)}
    assert "libstdc++.so.6" in needed
    for name in needed:
        (twinkle.folder / name).write_text("no library")
    done = twinkle("inspect", EXAMPLES / "scripted.pt", "--json")
    assert done.code == 0 and done.json["loaded"] is True, done.err
