"""The parser of src/python against CPython's own: the same tree for every file, or refused by both.

Run by ctest with the built python_dump. Sources: those of this repository, and of the packages or
folders named in TWINKLE_PYTHON_CORPUS (default: torch,transformers; what is not installed is
skipped).
"""

import ast
import concurrent.futures
import functools
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import warnings
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DUMP = os.environ.get("TWINKLE_PYTHON_DUMP", "")
BATCH = 200
# Fields that 3.8 to 3.13 do not all have, or that are not compared.
SKIPPED = {"type_comment", "type_ignores"}
ADDED = {
    "FunctionDef": ["type_params"],
    "AsyncFunctionDef": ["type_params"],
    "ClassDef": ["type_params"],
}

warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)


def hex_of(value):
    return struct.pack(">d", value).hex()


class Dumper:
    """The Python side of dump.h."""

    def __init__(self, source):
        self.source = source
        self.lines = self.line_starts(source)
        self.in_fstring = 0
        self.out = []

    @staticmethod
    def line_starts(source):
        """Where lines begin: after LF, CR LF and CR; a byte order mark is no column."""
        starts = [3 if source.startswith(b"\xef\xbb\xbf") else 0]
        if b"\r" not in source:
            at = source.find(b"\n")
            while at >= 0:
                starts.append(at + 1)
                at = source.find(b"\n", at + 1)
            return starts
        i = 0
        while i < len(source):
            if source[i] == 13 and source[i + 1 : i + 2] == b"\n":
                i += 1
            if source[i] in (10, 13):
                starts.append(i + 1)
            i += 1
        return starts

    def constant(self, node, value):
        if value is None or isinstance(value, (bool, str)):
            return json.dumps(value)
        if isinstance(value, int):
            if value < 2**63:
                return str(value)
            begin = self.lines[node.lineno - 1] + node.col_offset
            end = self.lines[node.end_lineno - 1] + node.end_col_offset
            text = self.source[begin:end].decode().replace("_", "").lower()
            return f'{{"big":"{text}"}}'
        if isinstance(value, float):
            return f'{{"float":"{hex_of(value)}"}}'
        if isinstance(value, complex):
            return f'{{"imag":"{hex_of(value.imag)}"}}'
        if isinstance(value, bytes):
            return f'{{"bytes":"{value.hex()}"}}'
        return '{"ellipsis":1}'

    def node(self, node):
        cls = node.__class__
        name = cls.__name__
        out = self.out
        lineno = None if self.in_fstring else getattr(node, "lineno", None)
        if lineno is None:
            out.append(f'["{name}"')
        else:
            lines = self.lines
            begin = lines[lineno - 1] + node.col_offset
            out.append(f'["{name}",{begin},{lines[node.end_lineno - 1] + node.end_col_offset}')
        if name == "JoinedStr":
            self.in_fstring += 1
        for field in fields_of(cls):
            out.append(",")
            value = getattr(node, field, None)
            kind = value.__class__
            if kind is str and field != "value":
                out.append(json.dumps(value) if value else "null")
            elif kind is list:
                if name == "JoinedStr" and sys.version_info[:2] == (3, 12):
                    # Its first releases end a nested format specification with an empty constant.
                    value = [v for v in value if getattr(v, "value", None) != ""]
                self.sequence(value)
            elif isinstance(value, ast.AST):
                if value._fields or isinstance(value, (ast.Pass, ast.Break, ast.Continue)):
                    self.node(value)
                elif isinstance(value, ast.arguments):
                    self.node(value)
                else:
                    out.append(f'"{kind.__name__}"')
            elif field == "value" and name in ("Constant", "MatchSingleton"):
                out.append(self.constant(node, value))
            elif value is None:
                out.append("[]" if field == "type_params" else "null")
            else:
                out.append(str(value))
        if name == "JoinedStr":
            self.in_fstring -= 1
        out.append("]")

    def sequence(self, values):
        out = self.out
        out.append("[")
        first = True
        for value in values:
            if not first:
                out.append(",")
            first = False
            if isinstance(value, str):
                out.append(json.dumps(value))
            elif value is None:
                out.append("null")
            elif value._fields or isinstance(value, ast.stmt):
                self.node(value)
            else:
                out.append(f'"{value.__class__.__name__}"')
        out.append("]")


@functools.lru_cache(maxsize=None)
def fields_of(cls):
    fields = [f for f in cls._fields if f not in SKIPPED]
    for added in ADDED.get(cls.__name__, []):
        if added not in fields:
            fields.append(added)
    return fields


def python_dump(source):
    dumper = Dumper(source)
    dumper.node(ast.parse(source))
    return "".join(dumper.out)


def first_difference(path):
    """For the message of a failure."""
    ours = subprocess.run([DUMP, "--dump", path], capture_output=True, text=True).stdout.strip()
    theirs = python_dump(pathlib.Path(path).read_bytes())
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), 0)
    ours, theirs = (text[max(0, at - 80) : at + 80] for text in (ours, theirs))
    return f"{path}:\n  ours   …{ours}\n  python …{theirs}"


def uses_newer_syntax(path):
    """Type parameters (PEP 695), which the Python of this test may not know."""
    ours = subprocess.run([DUMP, "--dump", path], capture_output=True, text=True).stdout
    newer = ('["TypeAlias"', '["TypeVar"', '["ParamSpec"', '["TypeVarTuple"')
    return sys.version_info < (3, 12) and any(name in ours for name in newer)


def is_known_deviation(source, error):
    """What src/python leaves out on purpose: see Constant::has_named_escape and parser.h."""
    if error is None:
        return b"\\N{" in source
    return "only utf-8 is read" in error or "normalization form NFKC" in error


def compare(paths):
    """(equal, refused by both, known deviations, problems) for a batch."""
    done = subprocess.run([DUMP], input="\n".join(paths) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, f"python_dump exits {done.returncode}: {done.stderr[-500:]}"
    equal, refused, deviations, problems = 0, 0, 0, []
    for path, line in zip(paths, done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        source = pathlib.Path(path).read_bytes()
        try:
            text = python_dump(source)
        except (SyntaxError, ValueError) as error:
            if "error" in ours:
                refused += 1
            elif uses_newer_syntax(path):
                continue
            else:
                problems.append(f"{path}: refused only by Python: {error}")
            continue
        if (ours.get("size"), ours.get("crc32")) == (len(text), zlib.crc32(text.encode())):
            equal += 1
        elif is_known_deviation(source, ours.get("error")):
            deviations += 1
        elif "error" in ours:
            problems.append(f"{path}:{ours['line']}:{ours['column']}: {ours['error']}")
        else:
            problems.append(first_difference(path))
    return equal, refused, deviations, problems


def check(paths):
    assert DUMP, "TWINKLE_PYTHON_DUMP names no program"
    paths = sorted(map(str, paths), key=os.path.getsize, reverse=True)
    count = max(1, len(paths) // BATCH)
    batches = [paths[i::count] for i in range(count)]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = list(pool.map(compare, batches))
    equal, refused, deviations = (sum(r[i] for r in results) for i in range(3))
    problems = [p for r in results for p in r[3]]
    print(
        f"{len(paths)} files: {equal} equal, {refused} refused by both, "
        f"{deviations} known deviations, {len(problems)} different"
    )
    assert not problems, "\n".join(problems[:20])


def test_repository():
    folders = [ROOT / name for name in ("kernels", "tests", "examples", "script", "src")]
    check(path for folder in folders for path in folder.rglob("*.py"))


@pytest.mark.parametrize(
    "corpus", os.environ.get("TWINKLE_PYTHON_CORPUS", "torch,transformers").split(",")
)
def test_corpus(corpus):
    if "/" in corpus:
        folders = [corpus]
    else:
        spec = importlib.util.find_spec(corpus)
        if spec is None:
            pytest.skip(f"{corpus} is not installed")
        folders = spec.submodule_search_locations
    check(path for folder in folders for path in pathlib.Path(folder).rglob("*.py"))
