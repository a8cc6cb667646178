#!/usr/bin/env python3
"""What twinkle does with a large archive of torch.export costs, beside reading and copying it.

    build/venv/bin/python bench/large_export.py [--gigabytes 4] [--rounds 3] [--folder DIR] [-o FILE.md]

Blocks of RMSNorm and two linear layers, 4096 and 16384 wide, float32: half a GiB each. The commands take turns; the
file is in the page cache. The peak is the largest sum of anonymous and shared memory of all processes of a command."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
TWINKLE = os.environ.get("TWINKLE_BIN", str(ROOT / "build/release/bin/twinkle"))
COMMANDS = {
    "cat big.pt2": "cat big.pt2 > /dev/null",
    "sha256sum big.pt2": "sha256sum big.pt2",
    "cp big.pt2": "cp big.pt2 copy.pt2",
    "twinkle inspect big.pt2": f"{TWINKLE} inspect big.pt2",
    "twinkle run big.pt2": f"{TWINKLE} run big.pt2 --inputs inputs.pt",
    "twinkle convert big.pt2 -o big.pt": f"{TWINKLE} convert big.pt2 -o big.pt",
    "torch.jit.save, the converted model": f"{sys.executable} save.py",
}
SAVE = """import torch
model = torch.jit.load("big.pt")
model.save("saved.pt")
"""


def make(folder: pathlib.Path, blocks: int) -> None:
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.RMSNorm(4096, eps=1e-6)
            self.up, self.down = torch.nn.Linear(4096, 16384, bias=False), torch.nn.Linear(16384, 4096, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))

    inputs = (torch.randn(1, 2, 4096),)
    with torch.no_grad():
        model = torch.nn.Sequential(*(Block() for _ in range(blocks))).eval()
        torch.export.save(torch.export.export(model, inputs), folder / "big.pt2")
    torch.save(list(inputs), folder / "inputs.pt")
    (folder / "save.py").write_text(SAVE)


def own_memory(group: int) -> int:
    """Bytes of anonymous and shared memory of the processes of a group."""
    total = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            if os.getpgid(int(status.parent.name)) == group:
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
                total += sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem") if name in fields)
        except (OSError, KeyError, ValueError):
            continue  # it has ended
    return total


def measure(command: str, folder: pathlib.Path) -> tuple[float, float, int]:
    """Seconds of waiting, of the processor, and the peak in bytes."""
    before, started = os.times(), time.monotonic()
    process = subprocess.Popen(command, shell=True, cwd=folder, stdout=subprocess.DEVNULL, process_group=0)
    peak, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            peak = max(peak, own_memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait() != 0:
        sys.exit(f"{command}: exit {process.returncode}")
    wall = time.monotonic() - started
    ended.set()
    watcher.join()
    after = os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="for the files, three times as large as the archive")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    started = machine.load()
    with tempfile.TemporaryDirectory(prefix="large-export-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        make(folder, round(options.gigabytes * 2))
        taken = {title: [] for title in COMMANDS}
        for _ in range(options.rounds):
            for title, command in COMMANDS.items():
                taken[title].append(measure(command, folder))
            for left in ("copy.pt2", "big.pt", "saved.pt"):
                (folder / left).unlink()
        size = (folder / "big.pt2").stat().st_size
    lines = [f"{size / (1 << 30):.1f} GiB; {machine.processor()}, {os.cpu_count()} cores, {started}; medians of "
             f"{options.rounds}.", "", "| command | wall, s | processor, s | peak, GiB |", "| --- | --- | --- | --- |"]
    for title, runs in taken.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*runs, strict=True))
        lines.append(f"| `{title}` | {wall:.1f} | {cpu:.1f} | {peak / (1 << 30):.2f} |")
    machine.publish(options, "\n".join(lines) + "\n", {"runs": taken})


if __name__ == "__main__":
    main()
