"""What figures were taken on, in a line, and where they go."""

import contextlib
import json
import os
import pathlib
import platform
import subprocess
import sys


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def load() -> str:
    """Other work spoils times: this says how much of it there was."""
    return f"load {os.getloadavg()[0]:.1f} at the start"


def gpu() -> str:
    """The first one, with its clocks now."""
    asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu"
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        done = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], check=True,
                              capture_output=True, text=True)
        return done.stdout.strip().splitlines()[0]
    return "nvidia-smi does not say"


def versions(python: pathlib.Path | str) -> str:
    code = "import torch, transformers; print(f'LibTorch {torch.__version__}, transformers {transformers.__version__}')"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def keep(options, raw: dict) -> None:
    """To --json."""
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1) + "\n")


def publish(options, text: str, raw: dict | None = None) -> None:
    """To stdout and to --output; what it was made of to --json."""
    if raw is not None:
        keep(options, raw)
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text)
