"""What figures were taken on, in a line."""

import os
import pathlib
import platform


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def load() -> str:
    """Other work spoils times: this says how much of it there was."""
    return f"load {os.getloadavg()[0]:.1f} at the start"
