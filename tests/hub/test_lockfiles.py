"""The example projects of lockfiles/: their locks are what twinkle and the reference write from the test Hub, and the CI
recipe runs as it stands.

TWINKLE_WRITE_LOCKFILES=1 writes the locks anew."""

import os
import pathlib
import shutil
import subprocess

import examples
import pytest
import yaml
from conftest import PROGRAM, ROOT, Machine, environment
from repository import File, kernel

LOCKFILES = ROOT / "lockfiles"
PROJECTS = sorted(path.name for path in LOCKFILES.iterdir() if path.is_dir())
LOCKS = ("twinkle.lock", "kernels.lock")


@pytest.fixture
def published(hub):
    return examples.publish(hub)


def copy(machine: Machine, name: str) -> pathlib.Path:
    project = machine.project / name
    shutil.copytree(LOCKFILES / name, project)
    return project


def locks(folder: pathlib.Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in LOCKS}


@pytest.mark.parametrize("name", PROJECTS)
def test_locks_are_right(published, machine, name):
    project = copy(machine, name)
    if os.environ.get("TWINKLE_WRITE_LOCKFILES"):
        (project / "twinkle.lock").unlink(missing_ok=True)
        (project / "kernels.lock").write_text("[]")
        assert (done := machine.twinkle("lock", cwd=project)).code == 0, done
        for lock in LOCKS:
            shutil.copy(project / lock, LOCKFILES / name / lock)
    assert (done := machine.twinkle("lock", "--check", cwd=project)).code == 0, done
    (project / "twinkle.lock").unlink()
    (project / "kernels.lock").write_text("[]")
    assert (done := machine.twinkle("lock", cwd=project)).code == 0, done
    assert locks(project) == locks(LOCKFILES / name)


@pytest.mark.parametrize("name", [name for name in PROJECTS if (LOCKFILES / name / "pyproject.toml").exists()])
def test_reference_writes_the_same(published, machine, name):
    project = copy(machine, name)
    (project / "kernels.lock").unlink()
    assert (done := machine.kernels("lock", str(project))).code == 0, done
    assert (project / "kernels.lock").read_bytes() == (LOCKFILES / name / "kernels.lock").read_bytes()


@pytest.mark.parametrize("name", PROJECTS)
def test_recipe_runs(hub, published, machine, name):
    """Every command of lockfiles/ci.yml, twice: the second time with the cache that the first left."""
    project = copy(machine, name)
    machine.env["PATH"] = f"{PROGRAM.parent}:{os.environ['PATH']}"
    for _ in range(2):
        hub.forget()
        run_recipe(machine, project)
    # The cache has everything but what `versions` asks about other builds.
    read = {file.etag for repository in published.values() for commit in repository.commits.values()
            for path, file in commit.files.items() if path.endswith("metadata.json")}
    assert set(hub.served()) <= read


def run_recipe(machine: Machine, project: pathlib.Path) -> None:
    workflow = yaml.safe_load((LOCKFILES / "ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    workspace = str(project)
    variables = {key: value.replace("${{ github.workspace }}", workspace) for key, value in job["env"].items()}
    commands = [step["run"] for step in job["steps"] if "run" in step and "twinkle" in step["run"]]
    assert len(commands) >= 3
    for command in commands:
        assert "${{" not in command
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=project, capture_output=True, text=True,
                              timeout=60, env=environment(**{**machine.env, **variables}))
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert pathlib.Path(variables["KERNELS_CACHE"], "kernels--kernels-community--activation").is_dir()


def test_recipe_finds_a_stale_lock(published, machine):
    project = copy(machine, "activation")
    manifest = project / "twinkle.toml"
    manifest.write_text(manifest.read_text().replace('activation" = 1', 'activation" = 2'))
    assert machine.twinkle("lock", "--check", cwd=project).code == 7
    assert machine.twinkle("fetch", "--locked", cwd=project).code == 7


def test_an_edited_hash_is_refused(published, machine):
    project = copy(machine, "activation")
    lock = project / "twinkle.lock"
    file = published["activation"].find("v1").files[f"build/{examples.LINUX[0]}/layers.py"]
    assert file.blob_id in lock.read_text()
    lock.write_text(lock.read_text().replace(file.blob_id, "0" * 40))
    for command in (("lock", "--check"), ("fetch", "--locked")):
        assert (done := machine.twinkle(*command, cwd=project)).code == 7, done
    assert not machine.store("kernels-community/activation").exists()


def test_a_changed_file_is_refused(hub, published, machine):
    """A Hub, or somebody in its place, that serves other files under the same commit."""
    project = copy(machine, "activation")
    commit = published["activation"].find("v1")
    for variant in examples.LINUX:  # all of them: equal files are downloaded once, from any
        path = f"build/{variant}/layers.py"
        commit.files[path] = File(commit.files[path].content.replace(b"silu", b"gelu"))
    for name in ("entries", "children"):
        commit.__dict__.pop(name, None)  # listed anew
    done = machine.twinkle("--json", "fetch", "--locked", "--all-variants", cwd=project)
    assert done.code == 4, done
    assert "layers.py" in done.error["what"] + done.error["where"], done
    assert not list(machine.snapshot("kernels-community/activation", commit.id).rglob("layers.py"))


def merge(machine: Machine, name: str, base: str, ours: str, theirs: str) -> bool:
    """git's merge of three versions of a file, into the project. True: no conflict."""
    paths = [machine.write(f"{name}.{side}", text) for side, text in (("o", ours), ("b", base), ("t", theirs))]
    done = subprocess.run(["git", "merge-file", "-p", *paths], capture_output=True, text=True)
    for path in paths:
        path.unlink()
    machine.write(name, done.stdout)
    return done.returncode == 0


MERGES = {
    "far apart": ('"acme/a" = 1\n"acme/m" = 1\n"acme/z" = 1\n', ("acme/a", "acme/z")),
    "neighbours": ('"acme/m" = 1\n"acme/n" = 1\n"acme/z" = 1\n', ("acme/m", "acme/n")),
    "the same": ('"acme/a" = 1\n"acme/m" = 1\n', ("acme/m", "acme/m")),
}


@pytest.mark.parametrize("case", MERGES)
def test_merge_of_two_locks(hub, machine, case):
    """Two branches each move one kernel to its version 2: the merged lock is right, or --check refuses it."""
    for name in "amnz":
        repository = hub.add(f"acme/{name}")
        for version in (1, 2):
            repository.commit(kernel(f"kernel-{name}", version=version), branch=f"v{version}")
    kernels, moved = MERGES[case]
    base = "[kernels]\n" + kernels
    versions = []
    for manifest in (base, *(base.replace(f'"{name}" = 1', f'"{name}" = 2') for name in moved)):
        machine.write("twinkle.toml", manifest)
        machine.write("kernels.lock", "[]")
        (machine.project / "twinkle.lock").unlink(missing_ok=True)
        assert machine.twinkle("lock").code == 0
        versions.append({"twinkle.toml": manifest, **locks(machine.project)})
    clean = [merge(machine, name, *(version[name] for version in versions)) for name in versions[0]]
    checked = machine.twinkle("lock", "--check")
    if not all(clean):
        assert checked.code in (2, 7), checked
        return
    assert checked.code in (0, 7), checked
    merged = locks(machine.project)
    assert machine.twinkle("lock").code == 0
    if checked.code == 0:
        assert locks(machine.project) == merged
