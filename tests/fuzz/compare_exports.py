#!/usr/bin/env python3
"""Whether what a changed archive of torch.export is converted to computes what the archive says.

    compare_exports.py FUZZ_EXPORTS COUNT ARCHIVE… [--seed N] [--keep FOLDER] [--jobs N]

changes each ARCHIVE (NAME.pt2 with NAME.io.pt, of tests/models/exported.py) COUNT times with fuzz_exports, and runs
each that is converted on the archive's calls: as TorchScript, and as PyTorch's own loader reads the changed archive.
That loader evaluates and unpickles what the archive says, so that each comparison has a process of its own, with
limits, that cannot write files. Prints the outcomes; exit 1 where values differ. What differs stays in FOLDER.
"""

import argparse
import collections
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import torch

SECONDS = 60
MEMORY = 8 << 30


def flat(value):
    if hasattr(value, "_fields"):
        value = tuple(value)
    if hasattr(value, "keys"):
        return [leaf for key in value.keys() for leaf in flat(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in flat(one)]
    return [value]


def same(one, other):
    """To the bit, but NaN is NaN: which one it is, no operator promises."""
    one, other = flat(one), flat(other)
    if len(one) != len(other):
        return False
    for a, b in zip(one, other):
        if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor):
            return False
        if not isinstance(a, torch.Tensor):
            if type(a) is not type(b) or (a != b and a == a):
                return False
        elif a.dtype != b.dtype or a.shape != b.shape or not torch.equal(torch.nan_to_num(a.detach(), nan=7.5)
                                                                         if a.is_floating_point() else a.detach(),
                                                                         torch.nan_to_num(b.detach(), nan=7.5)
                                                                         if b.is_floating_point() else b.detach()):
            return False
        elif a.is_floating_point() and not torch.equal(a.isnan(), b.isnan()):
            return False
    return True


def run(model, call):
    """("value", result and what is in the inputs afterwards) or ("error", text)."""
    call = copy.deepcopy(call)
    try:
        with torch.no_grad(), torch.jit.optimized_execution(False):
            result = model(*call["args"], **call["kwargs"])
        return "value", (copy.deepcopy(flat(result)), call["args"], call["kwargs"])
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def reason(text):
    """A text without what differs from one archive to the next."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    line = lines[-1] if lines and "Traceback" in lines[0] and len(lines) > 1 else (lines[0] if lines else "")
    return re.sub(r"\s+", " ", re.sub(r"'[^']*'|\"[^\"]*\"|\d+|\([^)]*\)", "…", line))[:110]


def compare(archive, converted, calls):
    """What became of one archive: (class, detail)."""
    try:
        reference = torch.export.load(archive).module()
    except Exception as error:
        while error.__cause__ or error.__context__:  # what it failed of, not that it failed
            error = error.__cause__ or error.__context__
        reference, refusal = None, f"{type(error).__name__}: {error}"
    try:
        model = torch.jit.load(converted)
    except Exception as error:
        return "cannot be loaded again", reason(str(error))
    found = []
    for call in calls:
        ours = run(model, call)
        if reference is None:
            original = ours[0] == "value" and same(ours[1][0], call["result"])
            found.append(("only Python refuses" if original else "only Python refuses, other values"
                          if ours[0] == "value" else "both refuse", reason(refusal)))
            continue
        theirs = run(reference, call)
        if ours[0] == theirs[0] == "error":
            found.append(("both refuse", reason(ours[1])))
        elif theirs[0] == "error":
            original = same(ours[1][0], call["result"])
            found.append(("only Python refuses" if original else "only Python refuses, other values", reason(theirs[1])))
        elif ours[0] == "error":
            found.append(("only twinkle refuses", reason(ours[1])))
        elif same(ours[1], theirs[1]):
            found.append(("equal", "as before" if same(ours[1][0], call["result"]) else "other values than before"))
        else:
            found.append(("different", ""))
    order = ["different", "only Python refuses, other values", "only twinkle refuses", "only Python refuses", "equal",
             "both refuse"]
    return min(found, key=lambda one: order.index(one[0]))


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1), os.dup2(quiet, 2)


def in_child(archive, converted, calls):
    """Forked, so that torch is not loaded anew."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            limited()
            os.write(writing, json.dumps(compare(archive, converted, calls)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    deadline, said = time.monotonic() + 2 * SECONDS, b""
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        said += part
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if said:
        return tuple(json.loads(said))
    return "a process ended", f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no answer"


def warm(archive):
    """What is imported here, the children need not import again."""
    try:
        import transformers.modeling_outputs  # outputs of its models are known once this is imported
        assert transformers
    except ImportError:
        pass
    torch.export.load(archive).module()


def archives(fuzz, count, archive, seed, keep):
    """Makes and compares the changed ones of an archive: their outcomes, and what fuzz_exports printed."""
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([fuzz, archive, str(count), str(seed), folder], capture_output=True, text=True)
        calls = torch.load(archive.with_suffix(".io.pt"), weights_only=False)
        warm(archive)
        for changed in sorted(pathlib.Path(folder).glob("*.pt2"), key=lambda path: path.stem.zfill(9)):
            outcome = in_child(changed, changed.with_suffix(".pt"), calls)
            outcomes[outcome] += 1
            if keep and outcome[0] in ("different", "cannot be loaded again", "a process ended",
                                       "only Python refuses, other values", "only twinkle refuses"):
                place = keep / re.sub(r"\W+", "_", outcome[0])
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(changed, place / f"{archive.stem}-{changed.name}")
                (place / f"{archive.stem}-{changed.stem}.txt").write_text(f"{outcome[1]}\n")
            changed.unlink(), changed.with_suffix(".pt").unlink()
    return archive.stem, outcomes, done


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("fuzz", type=pathlib.Path)
    options.add_argument("count", type=int)
    options.add_argument("archives", type=pathlib.Path, nargs="+")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", type=pathlib.Path)
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    total, failed, converted = collections.Counter(), False, collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        made = [pool.submit(archives, given.fuzz, given.count, archive, given.seed, given.keep)
                for archive in given.archives]
        for future in concurrent.futures.as_completed(made):
            name, outcomes, done = future.result()
            failed |= done.returncode != 0
            for line in done.stdout.splitlines():
                if match := re.fullmatch(r"([\w ]+): (\d+)", line):
                    converted[match[1]] += int(match[2])
                elif not line.startswith("longest"):
                    print(f"{name}: {line}")
            if done.returncode < 0:
                print(f"{name}: fuzz_exports ended by signal {-done.returncode}")
            counted = collections.Counter()
            for (outcome, _), number in outcomes.items():
                counted[outcome] += number
            print(f"{name}: " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(counted.items())),
                  flush=True)
            total += outcomes
    print("\nof the changed archives: " + ", ".join(f"{number} {name}" for name, number in sorted(converted.items())))
    classes = collections.Counter()
    for (outcome, _), number in total.items():
        classes[outcome] += number
    for outcome, number in classes.most_common():
        print(f"{number} {outcome}")
        for (of, detail), part in total.most_common():
            if of == outcome:
                print(f"    {part} {detail}")
    bad = [name for name in ("different", "cannot be loaded again", "a process ended") if name in classes]
    return 1 if bad or failed else 0


if __name__ == "__main__":
    sys.exit(main())
