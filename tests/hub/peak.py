"""What a program used, measured by peak.c."""

import pathlib
import subprocess
from dataclasses import dataclass


@dataclass
class Usage:
    peak: int  # bytes
    processor: float  # seconds of all cores
    seconds: float


def build(folder: pathlib.Path) -> pathlib.Path:
    launcher = folder / "peak"
    subprocess.run(["gcc", "-O1", "-o", launcher, pathlib.Path(__file__).with_name("peak.c")], check=True)
    return launcher


def read(path: pathlib.Path) -> Usage:
    kib, microseconds, seconds = path.read_text().split()
    return Usage(int(kib) << 10, int(microseconds) / 1e6, float(seconds))
