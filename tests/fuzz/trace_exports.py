#!/usr/bin/env python3
"""trace_exports.py BUILD COUNT ARCHIVE…: what files, processes and sockets do changed archives of torch.export lead to?

Changes each ARCHIVE (NAME.pt2 with NAME.io.pt) COUNT times with fuzz_exports, and traces `twinkle convert`, and `twinkle
run` of what that converts. Prints what is outside of the system, BUILD, LibTorch, the cache, the inputs and the output,
and what the unchanged archive does not lead to: if there is any of that, exit 1."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

CACHE = re.escape(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) + "/twinkle/"
WRITES = rf"{CACHE}|/dev/null$|FOLDER/out/(\.pt\.pt\.\*\.tmp|pt\.pt)$"
READS = (rf"{WRITES}|/(usr|lib\w*|proc|sys|dev)(/|$)|/etc/(ld\.so\.\w+|localtime)$|FOLDER/in\.(pt2|pt)$|BUILD/|" +
         re.escape(torch.__path__[0]) + "/")
USUAL = {"read": READS, "executed": "BUILD/", "wrote": WRITES, "looked at": "", "left": "pt.pt$", "called": "(?!)"}


def events_of(line, folder, build):
    """("read", path) and the like of a line of strace, without what differs from run to run."""
    call, given = re.match(r"(\w+)\((.*)", line).groups()
    if re.match("clone|v?fork|wait|exit|getcwd", call):
        return
    paths = [os.path.join(*path) for path in re.findall(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"', given)]
    paths = paths or re.findall(r"^\d+<(/.*?)>", given)
    kind = ("called" if not paths or re.match("socket|connect|bind|send|recv|accept|[gs]etsock|open_by|io_ur", call)
            else "looked at" if re.match("f?access|l?stat|newfstat|readlink", call)
            else "executed" if call.startswith("exec")
            else "read" if call.startswith("open") and not re.search("O_(WRONLY|RDWR|CREAT|TRUNC)", given) else "wrote")
    for path in [line] if kind == "called" else paths[:1] if re.match("exec|readlink", call) else paths:
        path = os.path.normpath(path if kind == "called" else folder / "cwd" / path).replace(str(folder), "FOLDER")
        path = re.sub(r"\.[0-9a-f]{12}\.tmp$", ".*.tmp", re.sub(r"^/proc/\d+|.*(?<=pipe:)\[.*", "/proc/self", path))
        yield kind, path.replace(str(build), "BUILD")


def traced(build, folder, command, *more):
    for old in (*folder.glob("trace.*"), *folder.glob("out/*")):
        old.unlink()
    done = subprocess.run(["strace", "-ff", "-y", "-s65536", "-o", folder / "trace", "-e", "trace=%file,%process,%network,"
                           "ftruncate,open_by_handle_at,io_uring_setup", build / "bin/twinkle", command, folder / "in.pt2",
                           "-o", folder / "out/pt.pt", *more], cwd=folder / "cwd", capture_output=True)
    traces = list(folder.glob("trace.*"))
    own = rf"(kill\(-?({'|'.join(one.suffix[1:] for one in traces)})\b|[^a-z])"  # ends its children; signals and exits
    found = {event for one in traces for line in one.read_text(errors="replace").splitlines() if not re.match(own, line)
             for event in events_of(line, folder, build)}
    return done.returncode, found | {("left", path.name) for path in (*folder.glob("cwd/*"), *folder.glob("out/*"))}


def by_fuzz(build, archive, folder, seed):
    """fuzz_exports writes into broken.pt2, here another name of in.pt2, and removes that name."""
    (folder / "in.pt2").write_bytes(b"")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        os.link(folder / "in.pt2", pathlib.Path(made) / "broken.pt2")
        subprocess.run([build / "tests/fuzz/fuzz_exports", archive, "1", str(seed), made], stdout=subprocess.DEVNULL)


def main(build, count, *archives, change=by_fuzz):
    build, total, outside, new = pathlib.Path(build).resolve(), *(collections.Counter() for _ in range(3))
    for archive in map(pathlib.Path, archives):
        with tempfile.TemporaryDirectory() as temporary:
            folder, unchanged = pathlib.Path(temporary).resolve(), {}
            (folder / "cwd").mkdir(), (folder / "out").mkdir(), (folder / "in.pt2").write_bytes(archive.read_bytes())
            call = torch.load(archive.with_suffix(".io.pt"), weights_only=False)[0]
            torch.save(call["kwargs"] or call["args"], folder / "in.pt")
            for seed in range(int(count) + 1):  # 0: the archive itself
                change(build, archive, folder, seed) if seed else None
                for command, more in (("convert", ()), ("run", ("--inputs", folder / "in.pt"))):
                    code, found = traced(build, folder, command, *more)
                    total[f"{'changed' if seed else 'unchanged'}, {command}: exit {code}",] += 1
                    outside.update((command, *one) for one in found if not re.match(USUAL[one[0]], one[1]))
                    new.update((command, *one) for one in found - unchanged.setdefault(command, found))
                    if code:
                        break
        print(archive.stem, dict(total), file=sys.stderr, flush=True)
    for title, counted in (("commands", total), ("outside", outside), ("not of the unchanged archive", new)):
        print(f"\n{title}: {len(counted)}", *(f"{count:6} {' '.join(name)}" for name, count in sorted(counted.items())),
              sep="\n")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
