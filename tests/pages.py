"""Runs what the pages of docs/ show: files are written, commands run, and what they are said to print is printed.

A block ```LANGUAGE FILE is a file. In a block ```console, `$ ` begins a command (`\\` at the end of a line goes on), `[exit N]`
says its status, and the rest is lines of its output, in any order: numbers and units may differ, `…` stands for anything, and
runs of spaces are one. Other blocks are for machines that a test is not."""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+) ?(.*?)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
UNIT = re.compile(r"(?<=\d) (?:us|ms|s)\b")


@dataclasses.dataclass
class Command:
    text: str
    code: int = 0
    output: list[str] = dataclasses.field(default_factory=list)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Language, name and content of every fenced block."""
    return BLOCK.findall((ROOT / page).read_text())


def commands(console: str) -> list[Command]:
    found: list[Command] = []
    lines = iter(console.splitlines())
    for line in lines:
        if line.startswith("$ "):
            text = line[2:]
            while text.endswith("\\"):
                text += "\n" + next(lines)
            found.append(Command(text))
        elif status := re.fullmatch(r"\[exit (\d+)\]", line):
            found[-1].code = int(status[1])
        elif line.strip(" …"):
            found[-1].output.append(line)
    return found


def alike(line: str) -> str:
    line = UNIT.sub(" s", NUMBER.sub("0", line))
    return re.sub(r"\s+", " ", re.sub(r"-{2,}", "-", line)).strip()


def is_printed(line: str, output: str) -> bool:
    pattern = re.compile(".*".join(re.escape(alike(part)) for part in line.split("…")))
    return any(pattern.search(alike(printed)) for printed in output.splitlines())


def run(command: Command, folder: pathlib.Path, environment: dict[str, str]) -> None:
    done = subprocess.run(["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell says it
    assert code == command.code, f"exit {code}: {command.text}\n{done.stdout}"
    for line in command.output:
        assert is_printed(line, done.stdout), f"not printed by {command.text}:\n{line}\nbut\n{done.stdout}"


def run_page(page: str, folder: pathlib.Path, environment: dict[str, str]) -> int:
    """Everything on the page, in its order; how many commands that were."""
    ran = 0
    for language, name, content in blocks(page):
        if language == "console":
            for command in commands(content):
                run(command, folder, environment)
                ran += 1
        elif "/" in name or "." in name:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    return ran
