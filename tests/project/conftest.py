"""Asks the built project_probe. TWINKLE_BUILD_DIR names the build folder (default: build/release)."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = (pathlib.Path(os.environ.get("TWINKLE_BUILD_DIR") or ROOT / "build/release") / "tests/project_probe").absolute()


@pytest.fixture
def ask():
    """Many questions at once; the answers in the same order."""

    def run(questions):
        done = subprocess.run([PROBE], input="\n".join(map(json.dumps, questions)) + "\n", text=True,
                              capture_output=True, check=True, timeout=60)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(questions)
        return answers

    return run
