"""docs/privacy.md: which commands ask the Hub, and what goes to which host."""

import re
import shutil

import examples
import pytest
from conftest import ROOT, TOKEN

PAGE = (ROOT / "docs/privacy.md").read_text()
TRACED = ROOT / "examples/tiny-llama/traced.pt"
INPUTS = ["--inputs", ROOT / "examples/tiny-llama/inputs.pt"]
NAME = "kernels-community/activation"


@pytest.fixture
def asked(hub, machine):
    """Runs a command in a project with a kernel of the Hub; the requests that it made."""
    examples.publish(hub)
    shutil.copy(ROOT / "lockfiles/activation/twinkle.toml", machine.project)
    machine.write("own/__init__.py", "")
    machine.write("own/layers.py", examples.SILU)
    machine.env["HF_TOKEN"] = TOKEN

    def ask(*command, code=0):
        hub.forget()
        done = machine.twinkle(*command)
        assert done.code == code, f"{command}: {done}"
        hub.settle()
        return [entry for entry in hub.log if entry.path != "/nothing"]

    return ask


def headers(entry) -> dict[str, str]:
    return {name.lower(): value for name, value in entry.headers.items()}


def test_who_asks_and_who_never_does(asked, machine):
    assert asked("lock") and not asked("lock") and not asked("lock", "--check") and asked("lock", "--upgrade")
    assert asked("fetch") and not asked("fetch", "--locked") and asked("fetch", "--locked", "--target", "gpu")
    for command in (["versions", NAME], ["info", NAME], ["inspect", NAME], ["outdated"]):
        assert asked(*command), command
    for command in (["tree"], ["verify"], ["verify", NAME], ["resolve"], ["resolve", "--target", "cpu", "--bundle", "b"],
                    ["versions", "own"], ["info", "own"], ["inspect", "own"], ["inspect", TRACED], ["check", "own"],
                    ["cache", "dir"], ["cache", "list"], ["cache", "verify"], ["cache", "prune"], ["cache", "clean"],
                    ["env"], ["completions", "bash"], ["tune", "show"], ["init", TRACED, "--force"]):
        assert not asked(*command), command
    assert asked("add", "kernels-community/layer-norm") and not asked("remove", "kernels-community/layer-norm")
    damaged = max((path for path in machine.store(NAME).rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    damaged.chmod(0o644)
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    assert not asked("cache", "verify", "--dry-run", code=4) and asked("cache", "verify")


def test_models_are_nobodys_business(asked, machine):
    """With a kernel in plain Python, as none of the test Hub's can be loaded."""
    machine.write("twinkle.toml", '[layers.SiLU]\nrepo_path = "own"\nlayer_name = "Silu"\n'
                                  'classes = ["transformers.activations.SiLUActivation"]\n')
    assert not asked("kernelize", TRACED, *INPUTS, "--no-measure", "-o", "fast.pt")
    assert not asked("run", "fast.pt", *INPUTS)
    assert not asked("bench", TRACED, *INPUTS, "--runs", "6")


def test_what_a_request_carries(asked, hub):
    asked("lock")
    requests = asked("fetch")
    at_hub = [headers(entry) for entry in requests if entry.host == "hub"]
    at_storage = [headers(entry) for entry in requests if entry.host == "files"]
    assert at_hub and at_storage
    assert all(TOKEN in one["authorization"] for one in at_hub)
    assert not any("authorization" in one or "x-hf-download-counter" in one for one in at_storage)
    assert all(one["user-agent"].startswith("twinkle/") for one in at_hub + at_storage)


def test_every_command_is_in_the_table():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.partition("## By which command")[2], re.M)
    words = set(re.findall(r"[a-z-]+", " ".join(rows)))
    commands = (ROOT / "src/cli/command.cpp").read_text()
    named = {name.replace("_", "-") for name in re.findall(r"(\w+)_command\(\)", commands)} - {"man"}
    assert len(named) > 15 and not named - words
