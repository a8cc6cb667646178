"""Tuning a model where the store cannot be written, or lies on a file system that can little: the model is right, and the
report says what was not remembered, and why."""

import concurrent.futures
import subprocess

import pytest
from kernels_for_tests import found_of, needs_runtime
from test_tune_sizes import SIZES, model_and_packages, parts  # noqa: F401
from test_tune_store import files, full_disk  # noqa: F401

torch = pytest.importorskip("torch")

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

# As NFS may be: no locks, no hard links, no files without a name, and renaming alone replaces.
PLAIN_FILE_SYSTEM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int fail(int reason) {
    errno = reason;
    return -1;
}
int flock(int fd, int operation) { return (void)fd, (void)operation, fail(ENOLCK); }
int lockf(int fd, int command, off_t size) { return (void)fd, (void)command, (void)size, fail(ENOLCK); }
int link(const char* from, const char* to) { return (void)from, (void)to, fail(EPERM); }
int linkat(int a, const char* from, int b, const char* to, int flags) {
    return (void)a, (void)from, (void)b, (void)to, (void)flags, fail(EPERM);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
    return flags != 0 ? fail(EINVAL) : NEXT(renameat)(a, from, b, to);
}
static int nameless(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }
static mode_t mode_of(int flags, va_list list) { return (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0; }

#define OPEN(name, parameters, arguments)                         \
    int name parameters {                                         \
        va_list list;                                             \
        va_start(list, flags);                                    \
        const mode_t mode = mode_of(flags, list);                 \
        va_end(list);                                             \
        return nameless(flags) ? fail(EOPNOTSUPP) : NEXT(name) arguments; \
    }
OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
    va_end(list);
    const struct open_how* how = (const struct open_how*)a[2];
    if (number == SYS_openat2 && how != NULL && nameless((int)how->flags)) return fail(EOPNOTSUPP);
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


@pytest.fixture(scope="module")
def plain_file_system(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.c").write_text(PLAIN_FILE_SYSTEM)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", folder / "plain.so", folder / "plain.c", "-ldl"], check=True)
    return folder / "plain.so"


def tuned(project, env=None, output="tuned.pt"):
    done = project("tune", "model.pt", *SIZES[1:], "-o", output, "--json", env=env)
    assert done.code == 0, done.err
    for site in done.json["sites"]:
        assert parts(site) == [(32, "small"), (None, "large")], site
    model, original = (torch.jit.load(project.folder / name) for name in (output, "model.pt"))
    for rows in (1, 128):
        x = torch.randn(rows, 64)
        torch.testing.assert_close(model(x), original(x))
    return done.json


def not_remembered(report):
    return [warning for warning in report["warnings"] if "not remembered" in warning]


@pytest.mark.parametrize("mode, why, moment", [("full", "the disk is full", 1), ("full", "the disk is full", 22),
                                               ("read-only", "the file system is read-only", 1)])
def test_what_cannot_be_written_is_not_remembered(project, full_disk, mode, why, moment):
    project.bind(["small", "large"])
    cache = project.folder / "cache"
    cache.mkdir()
    env = {"LD_PRELOAD": full_disk, "FAIL_MODE": mode, "FAIL_BELOW": cache, "FAIL_FROM": moment}
    report = tuned(project, env)
    (told,) = not_remembered(report)
    assert told.startswith("what was measured is not remembered in ") and told.endswith(f"cache/twinkle/tuning: {why}"), told
    assert report["tuning"]["known"] == 0 < report["tuning"]["measured"]
    known = len(files(cache))
    assert known == 0 if moment == 1 else 0 < known < report["tuning"]["measured"], files(cache)
    shown = project("tune", "show", "--json").json
    assert len(shown["measurements"]) == known and "warnings" not in shown  # nothing is half
    shown = project("tune", "model.pt", *SIZES[1:], env=env)
    assert shown.code == 0 and f"cache/twinkle/tuning: {why}" in " ".join(shown.err.split())
    # A disk with space gets the rest.
    assert not_remembered(tuned(project)) == [] and len(files(cache)) == report["tuning"]["measured"]


def test_a_store_that_may_only_be_read_is_read(project, full_disk):
    project.bind(["small", "large"])
    first = tuned(project)
    env = {"LD_PRELOAD": full_disk, "FAIL_MODE": "read-only", "FAIL_BELOW": project.folder / "cache", "FAIL_FROM": "1"}
    again = tuned(project, env)
    assert again["tuning"] == {"measured": 0, "known": first["tuning"]["measured"]} and not_remembered(again) == []
    assert [found_of(site) for site in again["sites"]] == [found_of(site) for site in first["sites"]]


def test_a_file_system_without_locks_and_links_is_enough(project, plain_file_system):
    project.bind(["small", "large"])
    env = {"LD_PRELOAD": plain_file_system}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # two machines that share a home
        first, second = pool.map(lambda output: tuned(project, env, output), ("one.pt", "two.pt"))
    assert not_remembered(first) == not_remembered(second) == []
    count = first["tuning"]["measured"] + first["tuning"]["known"]
    assert len(files(project.folder / "cache")) == count  # no lease and no half of a file stays
    # What one has measured the other knows.
    assert first["tuning"]["measured"] + second["tuning"]["measured"] == count
    again = tuned(project, env)
    assert again["tuning"] == {"measured": 0, "known": count}
    assert project("tune", "export", "all.json", env=env).code == 0
    assert project("tune", "clear", env=env).code == 0 and files(project.folder / "cache") == []
    assert project("tune", "import", "all.json", env=env).code == 0
    assert tuned(project, env)["tuning"] == {"measured": 0, "known": count}
