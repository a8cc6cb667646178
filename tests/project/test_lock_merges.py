"""What git makes of two changes of one twinkle.lock: the lock that both changes mean, or one that is refused."""

import copy
import random
import subprocess

NAMES = ["acme/a", "acme/b", "acme/c", "acme/d", "org/kernel", "org/other"]
FILES = ["__init__.py", "_ops.abi3.so", "layers.py", "metadata.json", "sub/x.py", "sub/y.py"]
BUILDS = ["torch-cuda", "torch-universal", "torch210-cu130-x86_64-linux"]


def kernel(rng, name, version):
    """Few seeds, so that both sides often change the same line in the same way, or have lines in common."""
    builds = rng.sample(BUILDS, rng.randrange(1, 4))
    return {"name": name, "version": version, "commit": str(rng.randrange(4)),
            "variants": {build: {path: str(rng.randrange(3)) for path in rng.sample(FILES, rng.randrange(2, 7))}
                         for build in builds}}


def change(rng, state):
    """Upgrades, additions and removals, as `twinkle lock` would write them: whole states of kernels."""
    state = copy.deepcopy(state)
    for _ in range(rng.randrange(1, 3)):
        key = (rng.choice(NAMES), rng.choice([1, 1, 2, 10]))
        if key in state and rng.random() < 0.3:
            del state[key]
        elif key in state and rng.random() < 0.5:
            build = rng.choice(list(state[key]["variants"].values()))
            build[rng.choice(FILES)] = str(rng.randrange(3))
            state[key]["commit"] = str(rng.randrange(4, 8))
        else:
            state[key] = kernel(rng, *key)
    return state


def meant(base, ours, theirs):
    """Kernel by kernel: who has changed it decides. None: both have, in different ways."""
    result = {}
    for key in {*base, *ours, *theirs}:
        before, a, b = base.get(key), ours.get(key), theirs.get(key)
        if a != before and b != before and a != b:
            return None
        chosen = a if a != before else b
        if chosen is not None:
            result[key] = chosen
    return result


def merge(folder, base, ours, theirs):
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_text(text)
    done = subprocess.run(["git", "merge-file", "-p", "ours", "base", "theirs"], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=30)
    assert 0 <= done.returncode < 128, done.stderr
    return done.stdout, done.returncode > 0


def question(state):
    return {"do": "write_lock", "kernels": list(state.values())}


def test_merges_are_right_or_refused(ask, tmp_path):
    rng = random.Random(9)
    cases = []
    for _ in range(400):
        base = {key: kernel(rng, *key) for key in [(name, 1) for name in rng.sample(NAMES, rng.randrange(1, 6))]}
        cases.append((base, change(rng, base), change(rng, base)))
    texts = [answer["text"] for answer in ask([question(state) for case in cases for state in case])]
    merged = [merge(tmp_path, *texts[3 * i:3 * i + 3]) for i in range(len(cases))]
    answers = ask([{"do": "read_lock", "lock": text} for text, _ in merged])
    expected = [meant(*case) for case in cases]
    wanted = iter(ask([question(state) for state in expected if state is not None]))
    right = refused = 0
    for (text, conflict), answer, state in zip(merged, answers, expected):
        want = None if state is None else next(wanted)["text"]
        if "error" in answer:
            assert answer["exit"] in (2, 7), answer
            assert not conflict or "conflict that git could not merge" in answer["error"]
            refused += 1
        else:
            assert not conflict
            assert answer["text"] == want
            right += 1
    assert right > 50 and refused > 50


def test_changes_of_different_kernels_merge(ask, tmp_path):
    """The common case needs nobody: neighbours in the file too, as long as they do not touch."""
    rng = random.Random(3)
    base = {(name, 1): kernel(rng, name, 1) for name in NAMES}
    ours, theirs = copy.deepcopy(base), copy.deepcopy(base)
    ours["acme/a", 1] = {**kernel(rng, "acme/a", 1), "commit": "8"}
    theirs["acme/b", 1] = {**kernel(rng, "acme/b", 1), "commit": "9"}
    theirs["org/zz", 3] = kernel(rng, "org/zz", 3)
    texts = [answer["text"] for answer in ask([question(state) for state in (base, ours, theirs)])]
    text, conflict = merge(tmp_path, *texts)
    assert not conflict
    [answer, want] = ask([{"do": "read_lock", "lock": text}, question(meant(base, ours, theirs))])
    assert answer == want
