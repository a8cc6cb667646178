"""kernels.lock against the reader and writer of the installed `kernels`."""

import json
import random

from kernels._rust import KernelDependency, KernelLock, KernelLocks, KernelVersion

NAMES = ["acme/norm", "acme/norm-2", "acme/norm.x", "Acme/norm", "acme/a_b", "z/z", "0/1"]
REVISIONS = ["main", "v1", "v10", "v2", "refs/pr/1", "0.1", "é", "a" * 40, "x'y\"z"]


def dependency(entry):
    version = (KernelVersion.Version(entry["version"]) if "version" in entry
               else KernelVersion.Revision(entry["revision"]))
    return KernelDependency(repo_id=entry["repo_id"], version=version)


def random_locks(rng):
    locks = {}
    for _ in range(rng.randrange(12)):
        entry = {"repo_id": rng.choice(NAMES)}
        if rng.random() < 0.6:
            entry["version"] = rng.choice([0, 1, 2, 9, 10, 11, 100])
        else:
            entry["revision"] = rng.choice(REVISIONS)
        key = (entry["repo_id"], entry.get("version"), entry.get("revision"))
        locks[key] = {**entry, "commit": "".join(rng.choices("0123456789abcdef", k=rng.choice([40, 40, 64])))}
    return list(locks.values())


def test_written_byte_for_byte(ask):
    rng = random.Random(5)
    cases = [random_locks(rng) for _ in range(300)]
    answers = ask([{"do": "write_kernels_lock", "locks": locks} for locks in cases])
    for locks, answer in zip(cases, answers):
        shuffled = rng.sample(locks, len(locks))
        python = KernelLocks({dependency(entry): KernelLock(entry["commit"]) for entry in shuffled})
        assert answer["text"] == python.to_json()
        assert len(KernelLocks.from_json(answer["text"])) == len(locks)


def test_read_as_the_reference_reads(ask):
    commit = "0123456789" * 4
    good = {"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": commit}}
    texts = [json.dumps(value) for value in [
        [], [good], [good, good], {}, good, [1], [None], [{}], [{**good, "extra": 1}],
        [{"dependency": {"repo-id": "a/b"}, "lock": {"commit": commit}}],
        [{"dependency": {"repo-id": "a/b", "version": 1, "revision": "x"}, "lock": {"commit": commit}}],
        [{"dependency": {"repo-id": "a/b", "version": -1}, "lock": {"commit": commit}}],
        [{"dependency": {"repo-id": "a/b", "version": 1.5}, "lock": {"commit": commit}}],
        [{"dependency": {"repo-id": "a/b", "version": "1"}, "lock": {"commit": commit}}],
        [{"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": commit[:39]}}],
        [{"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": "g" * 40}}],
        [{"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": "A" * 40}}],
        [{"dependency": {"repo-id": "a/b", "revision": "main"}, "lock": {"commit": "b" * 64}}],
        [{"dependency": {"repo-id": "a/b", "version": 1}, "lock": {"commit": commit, "hash": "x"}}],
    ]] + ["", "[", "[]]", json.dumps([good])[:-1] + ",]"]
    answers = ask([{"do": "read_kernels_lock", "kernels_lock": text} for text in texts])
    for text, answer in zip(texts, answers):
        try:
            python = KernelLocks.from_json(text)
        except ValueError:
            assert "error" in answer, text
            continue
        assert [lock[2] for lock in answer["locks"]] == [lock.commit for lock in python.values()], text
