"""Kernel repositories, described in Python: commits with files, branches, tags, and ids as git computes them.

    norm = Repository("acme/norm")
    norm.commit(kernel("norm", variants=["torch-universal"]), branch="v1", tag="v0.1.0")
"""

import base64
import fnmatch
import functools
import hashlib
import json
import pathlib
from dataclasses import dataclass, field

from wire import Part

LFS_PATTERNS = ("*.so", "*.abi3.so", "*.bin", "*.safetensors")
LARGE = 10 << 20  # larger files are always LFS, as on the Hub


def git_id(kind: str, content: bytes) -> str:
    return hashlib.sha1(b"%b %d\0" % (kind.encode(), len(content)) + content).hexdigest()


@dataclass
class File:
    """The content is bytes, or a file on disk that is not read into memory."""
    content: bytes | pathlib.Path
    lfs: bool = False
    xet: bool = False
    known_sha256: str | None = None  # where it is expensive to compute

    @functools.cached_property
    def size(self) -> int:
        return self.content.stat().st_size if isinstance(self.content, pathlib.Path) else len(self.content)

    @functools.cached_property
    def sha256(self) -> str:
        if self.known_sha256:
            return self.known_sha256
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        with open(self.content, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @functools.cached_property
    def pointer(self) -> bytes:
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @functools.cached_property
    def blob_id(self) -> str:
        """What git stores: the file, or the pointer to it."""
        if self.lfs:
            return git_id("blob", self.pointer)
        return git_id("blob", self.content if isinstance(self.content, bytes) else self.content.read_bytes())

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.blob_id

    @property
    def xet_hash(self) -> str | None:
        return hashlib.sha256(b"xet" + self.sha256.encode()).hexdigest() if self.xet else None

    def part(self, start: int, end: int) -> bytes | Part:
        if isinstance(self.content, bytes):
            return self.content[start:end]
        return Part(self.content, start, end - start)

    def entry(self, path: str) -> dict:
        """As the Hub's tree lists it."""
        result = {"type": "file", "oid": self.blob_id, "size": self.size, "path": path}
        if self.lfs:
            result["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
        if self.xet:
            result["xetHash"] = self.xet_hash
        return result


@dataclass
class Commit:
    id: str
    files: dict[str, File]
    folders: dict[str, str]  # path → git tree id

    @functools.cached_property
    def entries(self) -> list[dict]:
        """The whole tree, sorted by path."""
        listed = [file.entry(path) for path, file in self.files.items()]
        listed += [{"type": "directory", "oid": oid, "size": 0, "path": path} for path, oid in self.folders.items()]
        return sorted(listed, key=lambda entry: entry["path"])

    @functools.cached_property
    def children(self) -> dict[str, list[dict]]:
        """What is directly in each folder."""
        result: dict[str, list[dict]] = {path: [] for path in ("", *self.folders)}
        for entry in self.entries:
            result[entry["path"].rpartition("/")[0]].append(entry)
        return result


def as_file(path: str, content: "bytes | str | pathlib.Path | File") -> File:
    if isinstance(content, File):
        return content
    file = File(content.encode() if isinstance(content, str) else content)
    file.lfs = file.size > LARGE or any(fnmatch.fnmatch(path, pattern) for pattern in LFS_PATTERNS)
    return file


def tree_ids(files: dict[str, File]) -> tuple[str, dict[str, str]]:
    """The git id of the root, and of every folder."""
    listing: dict[str, dict[str, tuple[str, str]]] = {"": {}}
    for path, file in files.items():
        parent, _, name = path.rpartition("/")
        listing.setdefault(parent, {})[name] = ("100644", file.blob_id)
        while parent:
            parent = parent.rpartition("/")[0]
            listing.setdefault(parent, {})
    folders = {}
    for folder in sorted(listing, key=lambda path: path.count("/") + bool(path), reverse=True):
        names = listing[folder]
        content = b"".join(
            b"%b %b\0%b" % (mode.encode(), name.encode(), bytes.fromhex(oid))
            for name, (mode, oid) in sorted(names.items(), key=lambda item: item[0] + "/" * (item[1][0] == "40000")))
        folders[folder] = git_id("tree", content)
        if folder:
            parent, _, name = folder.rpartition("/")
            listing[parent][name] = ("40000", folders[folder])
    return folders.pop(""), folders


@dataclass
class Repository:
    id: str
    private: bool = False  # without the right token it is as if it were not there
    gated: bool = False  # listed for everybody; files only with the right token
    moved_to: str | None = None  # everything is redirected to this repository
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)

    def commit(self, files: dict, branch: str | None = None, tag: str | None = None) -> Commit:
        """A commit that holds exactly these files: path → bytes, text, a path on disk, or File."""
        made = {path: as_file(path, content) for path, content in files.items()}
        root, folders = tree_ids(made)
        parent = self.branches.get(branch or "")
        text = (f"tree {root}\n" + (f"parent {parent}\n" if parent else "") +
                f"author {self.id} <hub@localhost> 1700000000 +0000\ncommitter {self.id} <hub@localhost> "
                f"1700000000 +0000\n\n{branch or tag or 'commit'}\n")
        commit = Commit(git_id("commit", text.encode()), made, folders)
        self.commits[commit.id] = commit
        if branch:
            self.branches[branch] = commit.id
        if tag:
            self.tags[tag] = commit.id
        return commit

    def find(self, revision: str) -> Commit | None:
        name = revision
        if revision.startswith("refs/heads/"):
            return self.commits.get(self.branches.get(revision[11:], ""))
        if revision.startswith("refs/tags/"):
            return self.commits.get(self.tags.get(revision[10:], ""))
        return self.commits.get(self.branches.get(name) or self.tags.get(name) or name)

    def refs(self) -> dict:
        def listed(names: dict[str, str], folder: str) -> list[dict]:
            return [{"name": name, "ref": f"refs/{folder}/{name}", "targetCommit": commit}
                    for name, commit in names.items()]
        return {"branches": listed(self.branches, "heads"), "converts": [], "tags": listed(self.tags, "tags")}


def backend_of(variant: str) -> str:
    for word, backend in (("-cpu-", "cpu"), ("-cu", "cuda"), ("-rocm", "rocm"), ("-xpu", "xpu"), ("-cann", "cann"),
                          ("-metal-", "metal"), ("-neuron-", "neuron"), ("-tpu-", "tpu")):
        if word in variant:
            return backend
    noarch = variant.removeprefix("torch-")
    return {"universal": "cpu", "npu": "cann"}.get(noarch, noarch)


def metadata(name: str, files: dict[str, bytes], *, backend: str, version: int = 1, depends=(), digest: bool = True,
             archs: list[str] | None = None, namespace: str | None = None, algorithm: str = "sha256", **more) -> bytes:
    """A metadata.json. `depends`: pairs of repository and version (a number) or revision (text)."""
    value: dict = {"id": namespace or f"_{name.replace('-', '_')}_{backend}_{version}", "name": name,
                   "version": version, "license": "Apache-2.0", "python-depends": [], "backend": {"type": backend}}
    if archs is not None:
        value["backend"]["archs"] = archs
    if digest:
        value["digest"] = {"algorithm": algorithm, "files": {
            path: base64.b64encode(hashlib.new(algorithm, content).digest()).decode()
            for path, content in sorted(files.items())}}
    if depends:
        value["kernel-depends"] = [
            {"repo-id": repo, "version" if isinstance(wanted, int) else "revision": wanted} for repo, wanted in depends]
    value.update(more)
    return json.dumps(value, indent=2).encode() + b"\n"


def kernel(name: str, variants=("torch-universal",), *, version: int = 1, depends=(), files: dict | None = None,
           digest: bool = True, outside: bool = True, **more) -> dict[str, bytes]:
    """All files of a release: a loadable Python package in every variant, a card and more outside of build/."""
    result: dict[str, bytes] = {}
    for variant in variants:
        imports = "".join(f"from kernels import get_kernel_dep\ndependency_{i} = get_kernel_dep({repo!r})\n"
                          for i, (repo, _) in enumerate(depends))
        package = {"__init__.py": f"{imports}NAME = {name!r}\nVERSION = {version}\nVARIANT = {variant!r}\n".encode(),
                   "layers.py": b"# No layers.\n"}
        if not variant.endswith("universal"):
            package[f"_{name.replace('-', '_')}_{version}.abi3.so"] = f"\x7fELF {name} {version} {variant}\n".encode() * 64
        for path, content in (files or {}).items():
            package[path] = content.encode() if isinstance(content, str) else content
        package["metadata.json"] = metadata(name, package, backend=backend_of(variant), version=version,
                                            depends=depends, digest=digest, **more)
        result.update({f"build/{variant}/{path}": content for path, content in package.items()})
    if outside:
        result["README.md"] = f"---\nlibrary_name: kernels\n---\n# {name} {version}\n".encode()
        result[".gitattributes"] = b"*.so filter=lfs diff=lfs merge=lfs -text\n"
        result["benchmarks/benchmark.py"] = f"# benchmark of {name} {version}\n".encode()
    return result


def read_folder(root: pathlib.Path) -> list[Repository]:
    """ROOT/<organization>/<name>/{branches,tags}/<name of the branch or tag>/…"""
    found = []
    for folder in sorted(path for path in root.glob("*/*") if path.is_dir()):
        repository = Repository(f"{folder.parent.name}/{folder.name}")
        for kind in ("branches", "tags"):
            for ref in sorted(path for path in folder.glob(f"{kind}/*") if path.is_dir()):
                files = {str(path.relative_to(ref)): path for path in sorted(ref.rglob("*")) if path.is_file()}
                repository.commit(files, **{"branch" if kind == "branches" else "tag": ref.name})
        found.append(repository)
    return found
