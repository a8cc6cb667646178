"""docs/ci.md: its commands, and the job that it shows for GitLab, run against the Hub of the tests."""

import os
import pathlib
import subprocess
import sys

import examples
import pytest
import yaml
from conftest import PROGRAM, ROOT, Machine, environment
from test_lockfiles import copy

sys.path.insert(0, str(ROOT / "tests"))

import pages  # noqa: E402

PAGE = "docs/ci.md"


@pytest.fixture
def project(hub, machine) -> tuple[pathlib.Path, dict[str, str]]:
    examples.publish(hub)
    folder = copy(machine, "activation")
    return folder, environment(**{**machine.env, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"})


def test_the_commands(project):
    assert pages.run_page(PAGE, *project) >= 6


def test_the_job_for_gitlab(project):
    folder, env = project
    (job,) = yaml.safe_load(next(text for _, name, text in pages.blocks(PAGE) if name == "gitlab")).values()
    for command in job["script"]:
        variables = {key: value.replace("$CI_PROJECT_DIR", str(folder)) for key, value in job["variables"].items()}
        done = subprocess.run(["bash", "-c", command], cwd=folder, env={**env, **variables}, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert all((folder / path).exists() for path in job["artifacts"]["paths"] + job["cache"]["paths"])
    assert (folder / job["cache"]["key"]["files"][0]).exists()


def test_the_statuses_are_those_of_the_commands(machine):
    def listed(page):
        return {line.split("|")[1].strip() for line in (ROOT / page).read_text().splitlines()
                if line.startswith("| ") and line.split("|")[1].strip().isdigit()}
    assert listed(PAGE) == listed("docs/commands.md") - {"130"}
