/* Makes a program's changes to files fail, from one of them on: a library for LD_PRELOAD, so that any user can have a
 * disk that is full or read-only.
 *
 *     FAIL_FROM=n   the n-th change and all after it fail; 0: none
 *     FAIL_MODE     full: what needs space fails with ENOSPC. read-only: every change fails with EROFS
 *     FAIL_BELOW    only changes below these folders count (separated by colons)
 *     FAIL_COUNT    a file that gets the number of changes at the end */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long changes;

static int is_below(const char* path) {
    const char* folder = getenv("FAIL_BELOW");
    while (folder != NULL && *folder != '\0') {
        const size_t size = strcspn(folder, ":");
        if (strncmp(path, folder, size) == 0) return 1;
        folder += size + (folder[size] == ':');
    }
    return 0;
}

static int names_below(int folder, const char* path) {
    char name[2 * PATH_MAX] = "";
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        const ssize_t size = readlink(link, name, PATH_MAX);
        if (size < 0) return 0;
        name[size] = '/';
        name[size + 1] = '\0';
    }
    strncat(name, path, PATH_MAX - 1);
    return is_below(name);
}

/* What is there cannot be created, what is not cannot be removed: that is said first. */
static int is_new(int folder, const char* path) {
    struct stat info;
    return names_below(folder, path) && fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) != 0;
}

static int is_old(int folder, const char* path) {
    struct stat info;
    return names_below(folder, path) && fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_below(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && names_below(fd, "");
}

/* Of what needs space, or of what does not. */
static int fails(int below, int needs_space) {
    const char* mode = getenv("FAIL_MODE");
    const int full = mode != NULL && strcmp(mode, "full") == 0;
    if (!below || (full && !needs_space)) return 0;
    const long number = atomic_fetch_add(&changes, 1) + 1;
    const char* text = getenv("FAIL_FROM");
    const long from = text == NULL ? 0 : atol(text);
    if (from == 0 || number < from) return 0;
    errno = full ? ENOSPC : EROFS;
    return 1;
}

__attribute__((destructor)) static void tell(void) {
    const char* path = getenv("FAIL_COUNT");
    FILE* out = path == NULL ? NULL : fopen(path, "w");
    if (out == NULL) return;
    fprintf(out, "%ld\n", (long)changes);
    fclose(out);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int creates(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

static int open_fails(int folder, const char* path, int flags) {
    if ((flags & O_PATH) != 0 || (!creates(flags) && (flags & O_ACCMODE) == O_RDONLY)) return 0;
    const int makes = (flags & O_TMPFILE) == O_TMPFILE || ((flags & O_CREAT) != 0 && is_new(folder, path));
    if (!makes && (flags & O_EXCL) != 0) return 0;
    if (!makes && (flags & O_ACCMODE) == O_RDONLY) return 0;
    return fails(names_below(folder, path), makes);
}

static mode_t mode_of(int flags, va_list list) { return creates(flags) ? va_arg(list, mode_t) : 0; }

#define OPEN(name)                                                                              \
    int name(const char* path, int flags, ...) {                                                \
        va_list list;                                                                           \
        va_start(list, flags);                                                                  \
        const mode_t mode = mode_of(flags, list);                                               \
        va_end(list);                                                                           \
        if (open_fails(AT_FDCWD, path, flags)) return -1;                                       \
        return NEXT(name)(path, flags, mode);                                                   \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                          \
    int name(int folder, const char* path, int flags, ...) {                                  \
        va_list list;                                                                         \
        va_start(list, flags);                                                                \
        const mode_t mode = mode_of(flags, list);                                             \
        va_end(list);                                                                         \
        if (open_fails(folder, path, flags)) return -1;                                       \
        return NEXT(name)(folder, path, flags, mode);                                         \
    }
OPENAT(openat)
OPENAT(openat64)

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2) {
        const struct open_how* how = (const struct open_how*)a[2];
        if (how != NULL && open_fails((int)a[0], (const char*)a[1], (int)how->flags)) return -1;
    }
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

FILE* fopen(const char* path, const char* mode) {
    if (mode[0] != 'r' && fails(names_below(AT_FDCWD, path), 1)) return NULL;
    return NEXT(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
    if (mode[0] != 'r' && fails(names_below(AT_FDCWD, path), 1)) return NULL;
    return NEXT(fopen64)(path, mode);
}

#define CHANGE(type, name, parameters, arguments, below, space) \
    type name parameters { return fails(below, space) ? -1 : NEXT(name) arguments; }

CHANGE(ssize_t, write, (int fd, const void* bytes, size_t size), (fd, bytes, size), open_below(fd), 1)
CHANGE(ssize_t, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count), open_below(fd), 1)
CHANGE(ssize_t, pwrite, (int fd, const void* bytes, size_t size, off_t at), (fd, bytes, size, at), open_below(fd), 1)
CHANGE(ssize_t, pwrite64, (int fd, const void* bytes, size_t size, off64_t at), (fd, bytes, size, at), open_below(fd), 1)
CHANGE(int, ftruncate, (int fd, off_t size), (fd, size), open_below(fd), 1)
CHANGE(int, ftruncate64, (int fd, off64_t size), (fd, size), open_below(fd), 1)
CHANGE(int, mkdir, (const char* path, mode_t mode), (path, mode), is_new(AT_FDCWD, path), 1)
CHANGE(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), is_new(folder, path), 1)
CHANGE(int, symlink, (const char* target, const char* path), (target, path), is_new(AT_FDCWD, path), 1)
CHANGE(int, symlinkat, (const char* target, int folder, const char* path), (target, folder, path),
       is_new(folder, path), 1)
CHANGE(int, link, (const char* from, const char* to), (from, to), is_new(AT_FDCWD, to), 1)
CHANGE(int, linkat, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags),
       is_new(b, to), 1)
CHANGE(int, rename, (const char* from, const char* to), (from, to), is_old(AT_FDCWD, from), 0)
CHANGE(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), is_old(a, from), 0)
CHANGE(int, unlink, (const char* path), (path), is_old(AT_FDCWD, path), 0)
CHANGE(int, unlinkat, (int folder, const char* path, int flags), (folder, path, flags), is_old(folder, path), 0)
CHANGE(int, rmdir, (const char* path), (path), is_old(AT_FDCWD, path), 0)
CHANGE(int, fchmod, (int fd, mode_t mode), (fd, mode), open_below(fd), 0)
