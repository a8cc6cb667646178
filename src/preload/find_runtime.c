#define _GNU_SOURCE
#include "find_runtime.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*prepare_function)(int source, void* model);

static prepare_function prepare;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void* inside_libtorch;

static void say(const char* text, const char* detail) {
    fprintf(stderr, "twinkle: %s%s%s\n", text, *detail ? ": " : "", detail);
}

static int folder_of(const void* address, char* folder) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || realpath(info.dli_fname, folder) == NULL) {
        return 0;
    }
    *strrchr(folder, '/') = '\0';
    return 1;
}

// The value of a string in runtime.json, which our build writes on one line without escapes.
static int field(const char* json, const char* key, char* value, size_t size) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\": \"", key);
    const char* begin = strstr(json, pattern);
    if (begin == NULL) {
        return 0;
    }
    begin += strlen(pattern);
    const char* end = strchr(begin, '"');
    if (end == NULL || (size_t)(end - begin) >= size) {
        return 0;
    }
    memcpy(value, begin, (size_t)(end - begin));
    value[end - begin] = '\0';
    return 1;
}

// Reads the beginning of a short file.
static int read_text(const char* folder, const char* name, char* text, size_t size) {
    char path[2 * PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const size_t length = fread(text, 1, size - 1, file);
    fclose(file);
    text[length] = '\0';
    return 1;
}

// "2.13." for the LibTorch in this process: 2.10 and later report it, others have a file beside
// their libraries.
static void version_here(const char* lib, char* version, size_t size) {
    char text[4096], *begin = NULL;
    unsigned major = 0, minor = 0;
    // A program may have loaded LibTorch with RTLD_LOCAL.
    void* torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    uint64_t (*abi_version)(void) =
        (uint64_t (*)(void))dlsym(torch == NULL ? RTLD_DEFAULT : torch, "aoti_torch_abi_version");
    if (abi_version != NULL) {
        const uint64_t number = abi_version();
        major = (unsigned)(number >> 56);
        minor = (unsigned)(number >> 48) & 0xff;
    } else if (read_text(lib, "../build-version", text, sizeof text)) {
        begin = text;
    } else if (read_text(lib, "../version.py", text, sizeof text)) {
        begin = strstr(text, "__version__ = '");
        begin = begin == NULL ? NULL : strchr(begin, '\'') + 1;
    }
    version[0] = '\0';
    if (abi_version != NULL || (begin != NULL && sscanf(begin, "%u.%u", &major, &minor) == 2)) {
        snprintf(version, size, "%u.%u.", major, minor);
    }
}

static int is_for_cuda(const char* lib) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/libtorch_cuda.so", lib);
    return access(path, F_OK) == 0;
}

// How well a runtime fits: 4 named by the user, 3 built for this very LibTorch, 2 for its version
// and backend, 1 for its version, 0 not.
static int rank(const char* name, const char* folder) {
    char json[4096], value[PATH_MAX], version[32], here[PATH_MAX];
    if (!read_text(folder, "runtime.json", json, sizeof json)) {
        return 0;
    }
    const char* wanted = getenv("TWINKLE_RUNTIME");
    if (wanted != NULL && *wanted != '\0') {
        return strcmp(wanted, name) == 0 ? 4 : 0;
    }
    char resolved[PATH_MAX];
    if (!folder_of(inside_libtorch, here)) {
        return 0;
    }
    if (field(json, "torch_lib", value, sizeof value) && realpath(value, resolved) != NULL &&
        strcmp(resolved, here) == 0) {
        return 3;
    }
    version_here(here, version, sizeof version);
    if (version[0] == '\0' || !field(json, "torch", value, sizeof value) ||
        strncmp(value, version, strlen(version)) != 0 ||
        !field(json, "backend", value, sizeof value)) {
        return 0;
    }
    return (strncmp(value, "cu", 2) == 0) == is_for_cuda(here) ? 2 : 1;
}

static void find_runtime(void) {
    char folder[PATH_MAX], libexec[PATH_MAX + 32], candidate[2 * PATH_MAX], best[2 * PATH_MAX] = "";
    const char* override = getenv("TWINKLE_LIBEXEC");
    if (override != NULL && *override != '\0') {
        snprintf(libexec, sizeof libexec, "%s", override);
    } else if (folder_of((const void*)&find_runtime, folder)) {
        snprintf(libexec, sizeof libexec, "%s/../libexec/twinkle", folder);
    } else {
        return;
    }
    DIR* directory = opendir(libexec);
    int best_rank = 0;
    for (struct dirent* entry = NULL; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(candidate, sizeof candidate, "%s/%s", libexec, entry->d_name);
        const int fit = rank(entry->d_name, candidate);
        if (fit > best_rank) {
            best_rank = fit;
            snprintf(best, sizeof best, "%.*s/libtwinkle.so", (int)(sizeof best - 16), candidate);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    if (best_rank == 0) {
        say("no runtime for the LibTorch of this process is installed", libexec);
        return;
    }
    void* library = dlopen(best, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        say("libtwinkle cannot be loaded", dlerror());
        return;
    }
    *(void**)&prepare = dlsym(library, "twinkle_prepare_model");
}

void twinkle_prepare(enum twinkle_source source, void* model, void* load) {
    inside_libtorch = load;
    pthread_once(&once, find_runtime);
    if (prepare != NULL) {
        prepare(source, model);
    }
}
