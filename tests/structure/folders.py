"""The folders of src/ and their order: what their files include, what CMake names, what ARCHITECTURE.md says."""

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".h", ".cpp", ".c"}


def folder_of(path: str) -> str:
    """The folder of a file below src/: "base", and "runtime/graph" of those of the runtime."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "runtime" and len(parts) > 2 else parts[0]


def includes(src: pathlib.Path) -> dict[str, dict[str, list[str]]]:
    """Per folder the folders that its files include, each with "file → header" of every include."""
    found: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for file in sorted(src.rglob("*")):
        if file.suffix not in SUFFIXES:
            continue
        own = str(file.relative_to(src))
        found[folder_of(own)]  # known, even if it includes nothing
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(), re.M):
            if (src / header).exists() and folder_of(header) != folder_of(own):
                found[folder_of(own)][folder_of(header)].append(f"{own} → {header}")
    return {name: dict(used) for name, used in found.items()}


def cycles(uses: dict[str, object]) -> list[list[str]]:
    """Sets of folders that include each other, directly or not (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in uses.get(name, ()):
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in uses:
        if name not in number:
            visit(name)
    return found


def cmake_dependencies() -> dict[str, set[str]]:
    """Per folder those that CMake names as its dependencies."""
    named: dict[str, set[str]] = {}
    for file, function, prefix in [("src/CMakeLists.txt", "twinkle_part", ""),
                                   ("src/runtime/CMakeLists.txt", "twinkle_runtime_part", "runtime/")]:
        text = (ROOT / file).read_text()
        for part, dependencies in re.findall(rf"^{function}\((\w+)(?:\s+DEPENDS\s+([^)]*))?\)", text, re.M):
            named[prefix + part] = {folder_of_target(word) for word in dependencies.split() if word.startswith("twinkle_")}
    return named


def folder_of_target(target: str) -> str:
    name = target.removeprefix("twinkle_")
    return "runtime/" + name.removeprefix("runtime_") if name.startswith("runtime_") else name


def documented_folders() -> list[str]:
    """The rows of ARCHITECTURE.md's table that are folders of src/, from the top down."""
    table = (ROOT / "ARCHITECTURE.md").read_text().split("\n## Folders\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `src/([\w/]+)/` \|", table, re.M)


def named_files(page: pathlib.Path) -> set[str]:
    """The source files that a page names between backquotes, as it writes them."""
    names = re.findall(r"`([\w./]+\.(?:h|cpp))`", page.read_text())
    return {name for name in names if "NAME" not in name}  # where the reader fills in one


def is_file_of_this_project(name: str) -> bool:
    """Whether a name, or the end of a path, is that of a file here."""
    return any(name == str(file.relative_to(ROOT)) or str(file).endswith("/" + name)
               for folder in ("src", "include", "tests", "kernels", "cmake") for file in (ROOT / folder).rglob(pathlib.Path(name).name))
