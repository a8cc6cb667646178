"""twinkle tune show, export, import, merge and clear: measurements that travel, and a store that nothing breaks."""

import hashlib
import itertools
import json
import os
import pwd
import random
import shutil
import subprocess
import threading

import pytest
from conftest import PROGRAM, ROOT, environment

CPU = {"device": "cpu", "model": "AMD EPYC", "threads": 4, "arch": "x86_64", "features": ["avx2"]}
GPU = {"device": "cuda", "cuda": "13.0", "driver": "13.0", "arch": "x86_64",
       "gpus": [{"name": "NVIDIA H200", "arch": "9.0", "memory": 1 << 37, "count": 2}]}


def measurement(median, threads=128, rows=128, role="other", build="a build", runs=10, problem=None):
    one = {"invocation": {"operation": "twinkle-pack::rms_norm", "device": "cpu", "mode": "inference",
                          "inputs": [{"dtype": "float32", "layout": "dense", "sizes": [rows, 256]}, {"dtype": "float"}]},
           "candidate": {"build": build, "cfg": {"threads": threads}, "role": role},
           "times": {"lower_ns": median - 5, "median_ns": median, "upper_ns": median + 5, "runs": runs}}
    return one | ({"problem": problem} if problem else {})


def export(*environments):
    """Of (facts, measurements)."""
    def name(facts):
        return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
    return {"schema": "twinkle.tuning/2", "environments": [{"id": name(facts), "facts": facts, "entries": entries}
                                                           for facts, entries in environments]}


@pytest.fixture
def tune(twinkle, tmp_path):
    twinkle.env["XDG_CACHE_HOME"] = tmp_path / "cache"
    twinkle.store = tmp_path / "cache/twinkle/tuning"

    def write(name, *environments):
        (tmp_path / name).write_text(json.dumps(export(*environments)))
        return name

    def run(*arguments, **options):
        return twinkle("tune", *arguments, **options)
    run.write, run.store, run.folder, run.twinkle = write, twinkle.store, tmp_path, twinkle
    return run


def files(folder):
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def test_an_empty_store(tune):
    assert tune("show").code == 0
    assert tune("show", "--json").json == {"schema": "twinkle.tune/1", "dir": str(tune.store), "measurements": []}
    assert tune("export", "all.json").code == 0
    assert json.loads((tune.folder / "all.json").read_text()) == export()
    assert tune("clear").code == 0
    assert not tune.store.exists()


def test_measurements_of_a_slow_day_are_chosen_from_beside_those_of_a_fast_one(tune):
    rule, one, other = measurement(1000, 128, role="rule"), measurement(800, 256), measurement(1500, 512)
    for entry, baseline in ((rule, 1000), (one, 1000), (other, 2000)):
        entry["times"]["baseline_ns"] = baseline
    tune.write("fast.json", (CPU, [rule, one]))
    tune.write("slow.json", (CPU, [other]))
    assert tune("merge", "fast.json", "slow.json", "-o", "all.json").code == 0
    assert tune("import", "all.json").code == 0
    assert "chosen" in next(line for line in tune("show").out.splitlines() if "threads=512" in line)


def test_exports_of_the_first_format_are_read(tune):
    tune.write("one.json", (CPU, [measurement(1000, 128)]))
    old = tune.folder / "one.json"
    old.write_text(old.read_text().replace("twinkle.tuning/2", "twinkle.tuning/1"))
    assert "imported 1 measurement" in tune("import", "one.json").err


def test_show_says_what_is_chosen(tune):
    tune.write("one.json", (CPU, [measurement(1000, 128, role="rule"), measurement(500, 256),
                                  measurement(100, 512, problem="wrong values")]),
               (GPU, [measurement(90, 64)]))
    done = tune("import", "one.json")
    assert done.code == 0 and "imported 4 measurements" in done.err
    shown = tune("show").out
    lines = {threads: next(line for line in shown.splitlines() if f"threads={threads}" in line)
             for threads in (64, 128, 256, 512)}
    assert "chosen" in lines[256] and "500" in lines[256].replace("0.5", "500") and "AMD EPYC, 4 threads" in lines[256]
    assert "chosen" not in lines[128] and "wrong values" in lines[512]
    assert "chosen" in lines[64] and "2 NVIDIA H200" in lines[64]
    found = tune("show", "--json").json["measurements"]
    assert {one["candidate"]["cfg"]["threads"]: one["chosen"] for one in found} == {64: True, 128: False, 256: True, 512: False}
    assert all(one["environment"] in (CPU, GPU) for one in found)


def test_an_export_is_what_was_imported(tune):
    tune.write("one.json", (CPU, [measurement(1000 + i, 128 + i) for i in range(20)]), (GPU, [measurement(90)]))
    assert tune("import", "one.json").code == 0
    assert tune("export", "first.json").code == 0
    assert tune("clear").code == 0 and files(tune.store) == []
    assert tune("import", "first.json").code == 0
    assert tune("export", "second.json").code == 0
    first = (tune.folder / "first.json").read_text()
    assert first == (tune.folder / "second.json").read_text() and first.endswith("}\n")
    document = json.loads(first)
    assert sum(len(environment["entries"]) for environment in document["environments"]) == 21
    assert [environment["id"] for environment in document["environments"]] == sorted(
        environment["id"] for environment in document["environments"])


def test_merge_commutes(tune):
    dice = random.Random(7)
    for name in ("a", "b", "c"):
        tune.write(f"{name}.json", (CPU, [measurement(dice.randrange(900, 1100), 128 << dice.randrange(3),
                                                      runs=dice.randrange(5, 8), build=dice.choice(["x", "y"]))
                                          for _ in range(30)]), (GPU, [measurement(dice.randrange(90, 95))]))
    merged = set()
    for order in itertools.permutations(["a.json", "b.json", "c.json"]):
        assert tune("merge", *order, *order[:1], "-o", "all.json").code == 0
        merged.add((tune.folder / "all.json").read_text())
    assert tune("merge", "b.json", "c.json", "-o", "bc.json").code == 0
    assert tune("merge", "a.json", "bc.json", "--output", "all.json").code == 0
    merged.add((tune.folder / "all.json").read_text())
    assert len(merged) == 1
    identities = [(environment["id"], json.dumps(entry["candidate"]["cfg"]), entry["candidate"]["build"])
                  for environment in json.loads(merged.pop())["environments"] for entry in environment["entries"]]
    assert len(identities) == len(set(identities)) and len({build for _, _, build in identities}) == 3


def test_importing_again_changes_nothing(tune):
    tune.write("one.json", (CPU, [measurement(1000)]))
    assert tune("import", "one.json").code == 0
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in files(tune.store)}
    assert tune("import", "one.json").code == 0
    assert before == {path: (path.read_bytes(), path.stat().st_ino) for path in files(tune.store)}
    tune.write("worse.json", (CPU, [measurement(500, runs=2)]))
    assert tune("import", "worse.json").code == 0
    assert before == {path: (path.read_bytes(), path.stat().st_ino) for path in files(tune.store)}


@pytest.mark.parametrize("arguments, says", [
    (("show", "a.json"), "show takes no file"), (("export",), "export takes one file"), (("import", "a", "b"), "import takes one"),
    (("merge", "-o", "x.json"), "merge takes the files"), (("merge", "a.json"), "merge needs -o"),
    (("clear", "-o", "x.json"), "only merge and a model take -o"), (("shwo",), "show")])
def test_wrong_usage(tune, arguments, says):
    done = tune(*arguments)
    assert done.code == 2 and says in done.err, done.err


def test_an_export_to_standard_output(tune):
    tune.write("one.json", (CPU, [measurement(1000)]))
    assert tune("import", "one.json").code == 0
    assert tune("export", "all.json").code == 0
    written = (tune.folder / "all.json").read_text()
    before = files(tune.folder)
    assert tune("export", "-").out == written
    assert tune("merge", "one.json", "-o", "-").out == written
    assert files(tune.folder) == before
    for arguments in (("export", "-"), ("merge", "one.json", "-o", "-")):
        done = tune(*arguments, "--json")
        assert done.code == 2 and "both want standard output" in done.error["what"]


@pytest.mark.parametrize("home", [None, "", "relative", "/", "/somewhere"])
def test_without_home_the_system_s_folder_of_the_user_counts(home):
    """As for services, where HOME is not set; one that is a path is taken as it is."""
    env = {key: value for key, value in environment().items() if key not in ("HOME", "XDG_CACHE_HOME")}
    done = subprocess.run([PROGRAM, "tune", "show", "--json"], capture_output=True, text=True,
                          env=env | ({} if home is None else {"HOME": home}))
    folder = home if home and home.startswith("/") else pwd.getpwuid(os.geteuid()).pw_dir
    assert json.loads(done.stdout)["dir"] == folder.rstrip("/") + "/.cache/twinkle/tuning"


def test_the_output_is_checked_before_anything_is_read(tune):
    for arguments in (("export", "twinkle.toml"), ("merge", "missing.json", "-o", "twinkle.toml")):
        done = tune(*arguments, "--json")
        assert done.code == 2 and "another kind of file" in done.error["what"], done.err


@pytest.mark.parametrize("damage", [
    lambda text: text[:-20], lambda text: "[]", lambda text: text.replace("twinkle.tuning/2", "twinkle.tuning/3"),
    lambda text: text.replace("AMD EPYC", "Intel"), lambda text: text.replace('"median_ns": 1000', '"median_ns": 7'),
    lambda text: text.replace('"role"', '"role2"'), lambda text: "[" * 100_000, lambda text: text.replace("128", "-128")])
def test_what_is_no_export_is_refused(tune, damage):
    tune.write("one.json", (CPU, [measurement(1000)]))
    path = tune.folder / "one.json"
    path.write_text(damage(path.read_text()))
    for arguments in (("import", "one.json"), ("merge", "one.json", "-o", "all.json")):
        done = tune(*arguments, "--json")
        assert done.code == 2 and done.error["where"].startswith("one.json"), done.err
    assert not tune.store.exists() and not (tune.folder / "all.json").exists()
    assert tune("import", "missing.json").code == 3


def test_output_does_not_replace_what_is_not_its_own(tune):
    tune.write("one.json", (CPU, [measurement(1000)]))
    shutil.copyfile(ROOT / "examples/tiny-llama/traced.pt", tune.folder / "model.pt")
    before = (tune.folder / "model.pt").read_bytes()
    assert tune("merge", "one.json", "-o", "model.pt").code == 2
    assert tune("export", "model.pt").code == 2
    assert (tune.folder / "model.pt").read_bytes() == before


def test_what_cannot_be_read_is_said_and_left_out(tune):
    tune.write("one.json", (CPU, [measurement(1000, 128 + i) for i in range(6)]))
    assert tune("import", "one.json").code == 0
    entries = files(tune.store)
    whole = entries[0].read_text()
    entries[0].write_text(whole[:100])
    entries[1].write_text("x" * 400_000)
    entries[2].write_text(whole)
    entries[3].write_text('{"schema": "twinkle.tuned/3"}')
    entries[4].unlink()
    entries[4].symlink_to(tune.folder / "one.json")
    done = tune("show", "--json")
    assert done.code == 0 and len(done.json["measurements"]) == 1
    warnings = "\n".join(done.json["warnings"])
    for path, reason in zip(entries, ["it", "larger than an entry", "of another device, invocation or candidate",
                                      "another version of twinkle", "symbolic link"]):
        assert any(path.name in line and reason in line for line in warnings.splitlines()), warnings
    assert tune("export", "rest.json").code == 0


def test_terminals_are_safe_from_what_is_in_a_store(tune):
    evil = measurement(1000)
    evil["invocation"]["operation"] = "norm\x1b[31m"
    tune.write("one.json", ({**CPU, "model": "\x1b]0;title\x07"}, [evil]))
    assert tune("import", "one.json").code == 0
    assert "\x1b" not in tune("show").out and "\\x1B[31m" in tune("show").out


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    built = tmp_path_factory.mktemp("disk") / "fail_call.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", built, ROOT / "tests/hub/fail_call.c", "-ldl"], check=True)
    return built


@pytest.mark.parametrize("mode, why", [("full", "the disk is full"), ("read-only", "the file system is read-only")])
def test_a_disk_that_fails_at_any_moment(tune, full_disk, mode, why):
    tune.write("one.json", (CPU, [measurement(1000, 128 + i) for i in range(3)]))
    env = {"LD_PRELOAD": full_disk, "FAIL_MODE": mode, "FAIL_BELOW": tune.folder / "cache", "FAIL_COUNT": tune.folder / "count"}
    assert tune("import", "one.json", env=env).code == 0
    changes = int((tune.folder / "count").read_text())
    assert changes >= 6
    failures = 0
    for moment in range(1, changes + 1):
        shutil.rmtree(tune.folder / "cache")
        done = tune("import", "one.json", "--json", env={**env, "FAIL_FROM": moment})
        if done.code != 0:
            failures += 1
            assert done.code == 1 and why in done.error["why"] and done.error["where"], done.err
        shown = tune("show", "--json")
        assert shown.code == 0 and "warnings" not in shown.json  # nothing is half
        assert tune("import", "one.json").code == 0
        assert len(tune("show", "--json").json["measurements"]) == 3
    assert failures >= 3


NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
int flock(int descriptor, int operation) { (void)descriptor; (void)operation; abort(); }
int lockf(int descriptor, int command, off_t size) { (void)descriptor; (void)command; (void)size; abort(); }
static int next(int descriptor, int command, void* argument) {
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) abort();
    int (*call)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64");
    return call(descriptor, command, argument);
}
#define FCNTL(name)                                      \
    int name(int descriptor, int command, ...) {         \
        va_list list;                                    \
        va_start(list, command);                         \
        void* argument = va_arg(list, void*);            \
        va_end(list);                                    \
        return next(descriptor, command, argument);      \
    }
FCNTL(fcntl)
FCNTL(fcntl64)
"""


def test_no_lock_of_the_file_system_is_asked_for(tune):
    (tune.folder / "no_locks.c").write_text(NO_LOCKS)
    library = tune.folder / "no_locks.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, tune.folder / "no_locks.c", "-ldl"], check=True)
    tune.write("one.json", (CPU, [measurement(1000, 128 + i) for i in range(5)]))
    env = {"LD_PRELOAD": library}
    for arguments in (("import", "one.json"), ("show",), ("export", "all.json"), ("clear",)):
        assert tune(*arguments, env=env).code == 0


def test_32_programs_import_at_once(tune):
    names = [tune.write(f"{i}.json", (CPU, [measurement(1000 + i, 1000 + i), measurement(1000, 128, runs=10 + i)]))
             for i in range(32)]
    ends = []
    threads = [threading.Thread(target=lambda name=name: ends.append(tune("import", name).code)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == [0] * 32
    found = tune("show", "--json").json
    assert len(found["measurements"]) == 33 and "warnings" not in found
