"""What figures were taken on, in a line."""

import contextlib
import os
import pathlib
import platform
import subprocess


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
