// Interposes torch::jit::load, and the constructor of AOTInductor's loader, for programs that call
// them themselves. Every overload is a small trampoline that keeps the argument registers, lets the
// hook load the model's kernels, and jumps to the real function. LibTorch is not linked: this library is loaded into every child process of
// whoever preloads it.
#define _GNU_SOURCE
#include "find_runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// The overloads, by mangled name; the same names in LibTorch 2.6 to 2.15. The first argument after
// the returned object is the model: a path, a stream, or a reader; then with and without extra
// files.
#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define DEVICE "St8optionalIN3c106DeviceEE"
#define PATH "_ZN5torch3jit4loadERK" STRING DEVICE "b"
#define PATH_EXTRA                        \
    "_ZN5torch3jit4loadERK" STRING DEVICE \
    "RSt13unordered_mapIS6_S6_St4hashIS6_ESt8equal_toIS6_ESaISt4pairIS7_S6_EEEb"
#define STREAM "_ZN5torch3jit4loadERSi" DEVICE "b"
#define STREAM_EXTRA                                             \
    "_ZN5torch3jit4loadERSi" DEVICE "RSt13unordered_mapI" STRING \
    "SC_St4hashISC_ESt8equal_toISC_ESaISt4pairIKSC_SC_EEEb"
#define READER \
    "_ZN5torch3jit4loadESt10shared_ptrIN6caffe29serialize20ReadAdapterInterfaceEE" DEVICE "b"
#define READER_EXTRA                                                                      \
    "_ZN5torch3jit4loadESt10shared_ptrIN6caffe29serialize20ReadAdapterInterfaceEE" DEVICE \
    "RSt13unordered_mapI" STRING "SG_St4hashISG_ESt8equal_toISG_ESaISt4pairIKSG_SG_EEEb"

// torch::inductor::AOTIModelPackageLoader(path, model, …): 2.6, 2.7, and since 2.8. The compiler makes
// two of each (C1, C2: of an object, and of a part of one).
#define LOADER(variant, more) \
    "_ZN5torch8inductor22AOTIModelPackageLoader" variant "ERK" STRING "S9_" more

static const struct {
    const char* symbol;
    enum twinkle_source source;
} overloads[] = {
    {PATH, TWINKLE_PATH},           {PATH_EXTRA, TWINKLE_PATH}, {STREAM, TWINKLE_STREAM},
    {STREAM_EXTRA, TWINKLE_STREAM}, {READER, TWINKLE_READER},   {READER_EXTRA, TWINKLE_READER},
    {LOADER("C1", ""), TWINKLE_PACKAGE}, {LOADER("C2", ""), TWINKLE_PACKAGE},
    {LOADER("C1", "bm"), TWINKLE_PACKAGE}, {LOADER("C2", "bm"), TWINKLE_PACKAGE},
    {LOADER("C1", "bma"), TWINKLE_PACKAGE}, {LOADER("C2", "bma"), TWINKLE_PACKAGE},
};

// Called by the trampolines with the number of the overload and its argument. Returns the real
// function.
__attribute__((used, visibility("hidden"))) void* twinkle_intercept(long overload, void* argument) {
    void* next = dlsym(RTLD_NEXT, overloads[overload].symbol);
    if (next == NULL) {
        // A program that loaded LibTorch with RTLD_LOCAL finds this definition, but no next
        // one.
        void* torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
        next = torch == NULL ? NULL : dlsym(torch, overloads[overload].symbol);
    }
    if (next == NULL) {
        fputs(
            "twinkle: a model is to be loaded, but no LibTorch is behind the preload library\n",
            stderr);
        abort();
    }
    // A std::string begins with the pointer to its characters, in both of libstdc++'s ABIs.
    const enum twinkle_source source = overloads[overload].source;
    const int is_path = source == TWINKLE_PATH || source == TWINKLE_PACKAGE;
    twinkle_prepare(source, is_path ? *(void**)argument : argument, next);
    return next;
}

// What is loaded is the second argument in registers of a constructor, after the object; of a function
// that returns an object, too, after its place, but not on aarch64, which has another register for
// that.
#if defined(__x86_64__)
#define CONSTRUCTOR TRAMPOLINE
#define TRAMPOLINE(symbol, number)                                                         \
    __asm__(".text\n.globl " symbol "\n.type " symbol ", @function\n" symbol               \
            ":\n"                                                                          \
            "  push %rbp\n  mov %rsp, %rbp\n"                                              \
            "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n" \
            "  mov $" #number                                                              \
            ", %edi\n"                                                                     \
            "  call twinkle_intercept\n"                                                   \
            "  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n"       \
            "  pop %rbp\n  jmp *%rax\n"                                                    \
            ".size " symbol ", .-" symbol "\n")
#elif defined(__aarch64__)
#define TRAMPOLINE(symbol, number) AARCH64(symbol, number, "  mov x1, x0\n")
#define CONSTRUCTOR(symbol, number) AARCH64(symbol, number, "")
#define AARCH64(symbol, number, choose)                                                   \
    __asm__(".text\n.globl " symbol "\n.type " symbol ", %function\n" symbol              \
            ":\n"                                                                         \
            "  stp x29, x30, [sp, #-96]!\n  mov x29, sp\n"                                \
            "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n" \
            "  stp x6, x7, [sp, #64]\n  str x8, [sp, #80]\n"                              \
            choose "  mov x0, #" #number                                                   \
            "\n"                                                                          \
            "  bl twinkle_intercept\n"                                                    \
            "  mov x16, x0\n"                                                             \
            "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n" \
            "  ldp x6, x7, [sp, #64]\n  ldr x8, [sp, #80]\n"                              \
            "  ldp x29, x30, [sp], #96\n  br x16\n"                                       \
            ".size " symbol ", .-" symbol "\n")
#else
#error "the preload library knows x86_64 and aarch64"
#endif

TRAMPOLINE(PATH, 0);
TRAMPOLINE(PATH_EXTRA, 1);
TRAMPOLINE(STREAM, 2);
TRAMPOLINE(STREAM_EXTRA, 3);
TRAMPOLINE(READER, 4);
TRAMPOLINE(READER_EXTRA, 5);
CONSTRUCTOR(LOADER("C1", ""), 6);
CONSTRUCTOR(LOADER("C2", ""), 7);
CONSTRUCTOR(LOADER("C1", "bm"), 8);
CONSTRUCTOR(LOADER("C2", "bm"), 9);
CONSTRUCTOR(LOADER("C1", "bma"), 10);
CONSTRUCTOR(LOADER("C2", "bma"), 11);
