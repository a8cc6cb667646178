"""Whoever uses `kernels` and `huggingface_hub` today can switch to twinkle, and back: one cache, one kernels.lock."""

import importlib.util
import json
import os

import pytest
from conftest import Machine, all_files
from repository import Repository, kernel

if importlib.util.find_spec("torch"):
    import torch
    TORCH = ".".join(torch.__version__.split(".")[:2])
    TARGET = f"torch={TORCH},backend=cpu,cxx11={int(torch.compiled_with_cxx11_abi())}"
    CPU = f"torch{TORCH.replace('.', '')}-cxx11-cpu-{os.uname().machine}-linux"
else:  # what needs no version of it is left
    TARGET, CPU = "torch=none,backend=cpu", "torch-cpu"
VARIANTS = [*dict.fromkeys((CPU, "torch-cpu")), "torch-universal", "torch29-cxx11-cu130-x86_64-linux", "torch-rocm"]


@pytest.fixture
def repositories(hub) -> dict[str, Repository]:
    """Three releases of norm, which needs base, which needs tables at a tag; gelu, which needs nothing."""
    made = {name: hub.add(f"acme/{name}") for name in ("norm", "base", "tables", "gelu", "Upper")}
    tables = made["tables"].commit(kernel("tables", VARIANTS), tag="v0.3.0", branch="main")
    made["base"].commit(kernel("base", VARIANTS, depends=[("acme/tables", tables.id)]), branch="v1")
    made["base"].commit(kernel("base", VARIANTS, version=2, depends=[("acme/tables", tables.id)]), branch="v2")
    made["norm"].commit(kernel("norm", VARIANTS), branch="v1", tag="v0.1.0")
    made["norm"].commit(kernel("norm", VARIANTS, version=2, depends=[("acme/base", 1)]), branch="v2")
    made["norm"].commit(kernel("norm", VARIANTS, version=10, depends=[("acme/base", 2), ("acme/gelu", 1)]),
                        branch="v10")
    made["gelu"].commit(kernel("gelu", VARIANTS), branch="v1")
    made["Upper"].commit(kernel("upper", VARIANTS, depends=[("acme/base", 1)]), branch="v3")
    return made


PROJECT = {"acme/norm": 2, "acme/gelu": 1}


def pyproject(kernels: dict[str, int]) -> str:
    return ('[project]\nname = "example"\nversion = "1"\n\n[tool.kernels.dependencies]\n' +
            "".join(f'"{name}" = {version}\n' for name, version in kernels.items()))


def twinkle_toml(kernels: dict) -> str:
    return "[kernels]\n" + "".join(f"{json.dumps(name)} = {json.dumps(pin)}\n" for name, pin in kernels.items())


def ok(done):
    assert done.code == 0, done
    return done


LOCK_MANY = """
import pathlib, sys, types
from kernels.cli.lock import lock_kernels
for folder in sys.argv[1:]:
    lock_kernels(types.SimpleNamespace(project_dir=pathlib.Path(folder)))
"""

PROJECTS = [
    {"acme/gelu": 1},
    {"acme/norm": 1},
    {"acme/norm": 2, "acme/gelu": 1},
    {"acme/gelu": 1, "acme/norm": 10, "acme/base": 1},
    {"acme/norm": 10, "acme/Upper": 3, "acme/base": 2, "acme/tables-2": 4},
]


def test_kernels_lock_in_bytes(hub, repositories, machine, other_machine):
    """Several kernels, dependencies of dependencies, two versions of one repository, names in another order."""
    hub.add("acme/tables-2").commit(kernel("tables-2", VARIANTS, depends=[("acme/norm", 1)]), branch="v4")
    folders = [other_machine.project / str(i) for i in range(len(PROJECTS))]
    for folder, kernels in zip(folders, PROJECTS):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(pyproject(kernels))
    ok(other_machine.python(LOCK_MANY.replace("sys.argv[1:]", repr([str(folder) for folder in folders]))))
    for folder, kernels in zip(folders, PROJECTS):
        project = machine.project / folder.name
        project.mkdir()
        (project / "pyproject.toml").write_text(pyproject(kernels))
        ok(machine.twinkle("lock", cwd=project))
        assert (project / "kernels.lock").read_bytes() == (folder / "kernels.lock").read_bytes()
        assert (project / "twinkle.lock").exists()


def lock_and_fetch(machine: Machine, manifest: str, *options: str) -> None:
    if manifest == "pyproject.toml":
        machine.write(manifest, pyproject(PROJECT))
    else:
        machine.write(manifest, twinkle_toml(PROJECT))
        machine.write("kernels.lock", "[]")  # it is used here, so it is kept up to date
    ok(machine.twinkle("lock"))
    ok(machine.twinkle("fetch", "--locked", "--target", TARGET, *options))


ONLINE = """
from pathlib import Path
from kernels import get_kernel, get_locked_kernel
print(get_locked_kernel("acme/norm", lockfile=Path("kernels.lock")).VARIANT)
print(get_kernel("acme/norm", version=2).dependency_0.NAME)
"""

OFFLINE = """
from pathlib import Path
from kernels import get_kernel, get_locked_kernel, load_kernel
from huggingface_hub import snapshot_download
lock = Path("kernels.lock")
print(load_kernel("acme/norm", lockfile=lock).VARIANT)
print(get_locked_kernel("acme/norm", lockfile=lock).VARIANT)
print(get_kernel("acme/norm", version=2).dependency_0.NAME)
print(Path(snapshot_download("acme/gelu", repo_type="kernel", revision="v1")).name)
"""


def offline_output(repositories):
    return f"{CPU}\n{CPU}\nbase\n{repositories['gelu'].branches['v1']}\n"


@pytest.mark.parametrize("manifest", ["pyproject.toml", "twinkle.toml"])
def test_kernels_uses_what_twinkle_fetched(hub, repositories, machine, manifest):
    lock_and_fetch(machine, manifest)
    hub.forget()
    offline = ok(machine.python(OFFLINE, env={"HF_HUB_OFFLINE": "1"}))
    assert offline.out == offline_output(repositories)
    assert not hub.log
    if manifest == "pyproject.toml":
        assert ok(machine.kernels("download", ".", then=ONLINE)).out == f"{CPU}\nbase\n"
        assert hub.served() == {}


def test_kernels_uses_all_variants_that_twinkle_fetched(hub, repositories, machine):
    lock_and_fetch(machine, "pyproject.toml", "--all-variants")
    hub.forget()
    ok(machine.kernels("download", ".", "--all-variants", then=(
        "from huggingface_hub import snapshot_download\nsnapshot_download('acme/norm', repo_type='kernel', "
        f"revision='{repositories['norm'].branches['v2']}', allow_patterns='build/*')")))
    assert hub.served() == {}


def test_twinkle_uses_what_kernels_fetched(hub, repositories, machine):
    machine.write("pyproject.toml", pyproject(PROJECT))
    ok(machine.kernels("lock", ".", "+", "download", "."))
    theirs = (machine.project / "kernels.lock").read_bytes()
    ok(machine.twinkle("lock"))
    assert (machine.project / "kernels.lock").read_bytes() == theirs
    hub.forget()
    ok(machine.twinkle("fetch", "--locked", "--target", TARGET))
    assert hub.log == []  # the lock decides, and the cache has it: nothing is asked
    ok(machine.twinkle("--offline", "fetch", "--locked", "--target", TARGET))
    ok(machine.twinkle("verify", "--offline"))
    assert hub.log == []


def test_twinkle_uses_a_kernels_lock_alone(hub, repositories, machine):
    """No twinkle.lock: the commits of kernels.lock hold, although the branch has moved on."""
    machine.write("pyproject.toml", pyproject(PROJECT))
    ok(machine.kernels("lock", "."))
    locked = repositories["norm"].branches["v2"]
    repositories["norm"].commit(kernel("norm", VARIANTS, version=2, files={"new.py": "NEW = 1\n"}), branch="v2")
    ok(machine.twinkle("fetch", "--target", TARGET))
    assert (machine.snapshot("acme/norm", locked) / "build" / CPU / "metadata.json").exists()
    assert not machine.snapshot("acme/norm", repositories["norm"].branches["v2"]).exists()


def test_twinkle_uses_a_snapshot(hub, repositories, machine):
    """What snapshot_download got, whole or in part, is not downloaded again."""
    ok(machine.python("from huggingface_hub import snapshot_download\n"
                      "snapshot_download('acme/gelu', repo_type='kernel', revision='v1')\n"
                      "snapshot_download('acme/base', repo_type='kernel', revision='v1', "
                      "allow_patterns='*/metadata.json')\n"))
    hub.forget()
    ok(machine.twinkle("fetch", "acme/gelu@1", "acme/base@1", "--all-variants"))
    base = repositories["base"].find("v1")
    assert not hub.requests("/kernels/acme/gelu/*/build/*")
    assert not hub.requests("/kernels/acme/base/*/metadata.json")
    for path, content in all_files(machine.snapshot("acme/base", base.id)).items():
        assert content == base.files[path].content
    assert {path for path in base.files if path.startswith("build/")} <= set(
        all_files(machine.snapshot("acme/base", base.id)))


def test_both_at_once(hub, repositories, machine):
    """Both tools fill one cache at the same time: everything is there, and large files came once."""
    files = {"weights.bin": os.urandom(6 << 20)}
    commit = hub.add("acme/shared").commit(kernel("shared", ["torch-universal"], files=files), branch="v1")
    program = ("from huggingface_hub import snapshot_download\n"
               "snapshot_download('acme/shared', repo_type='kernel', revision='v1')\n")
    ours = machine.start("fetch", "acme/shared@1", "--all-variants")
    theirs = machine.python(program)
    out, err = ours.communicate(timeout=60)
    assert ours.returncode == 0, err.decode()
    ok(theirs)
    large = commit.files["build/torch-universal/weights.bin"]
    assert hub.served()[large.etag] == large.size
    assert all_files(machine.snapshot("acme/shared", commit.id)) == {
        path: file.content for path, file in commit.files.items()}


def test_versions_side_by_side(hub, repositories, machine):
    machine.write("twinkle.toml", '[kernels]\n"acme/norm" = [1, 2]\n')
    ok(machine.twinkle("lock"))
    ok(machine.twinkle("fetch", "--locked", "--target", TARGET))
    hub.forget()
    offline = ok(machine.python(
        "from kernels import get_kernel\nprint(get_kernel('acme/norm', version=1).VERSION, "
        "get_kernel('acme/norm', version=2).VERSION)", env={"HF_HUB_OFFLINE": "1"}))
    assert offline.out == "1 2\n"
    assert not hub.log


def test_refs_are_written_for_both(hub, repositories, machine):
    """An online fetch by version leaves refs/vN, so that everybody works offline afterwards."""
    ok(machine.twinkle("fetch", "acme/gelu@1", "--target", TARGET))
    ref = machine.store("acme/gelu") / "refs/v1"
    assert ref.read_text() == repositories["gelu"].branches["v1"]
    hub.forget()
    ok(machine.twinkle("--offline", "fetch", "acme/gelu@1", "--target", TARGET))
    ok(machine.twinkle("--offline", "versions", "acme/gelu", "--target", TARGET))
    assert not hub.log
