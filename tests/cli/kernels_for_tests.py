"""What the tests of real models share: where the runtime and the models are, and kernels made on purpose."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import PROGRAM, ROOT

EXAMPLES = ROOT / "examples/tiny-llama"
PREFIX = PROGRAM.parents[1]
RUNTIMES = sorted((PREFIX / "libexec/twinkle").glob("*/runtime.json"))
needs_runtime = pytest.mark.skipif(not RUNTIMES, reason="this twinkle was built without LibTorch")
RUNTIME = json.loads(RUNTIMES[0].read_text()) if RUNTIMES else {"torch": "0.0.0", "backend": "", "torch_lib": "/"}
TORCH_LIB = pathlib.Path(RUNTIME["torch_lib"])
MAJOR, MINOR = RUNTIME["torch"].split(".")[:2]
VARIANT = f"torch{MAJOR}{MINOR}-cxx11-cpu-{os.uname().machine}-linux"
NORM = "tiny_llama.model.RMSNorm"
MLP = "tiny_llama.model.SwiGLUMLP"

# How long a kernel may keep silent in the tests.
PATIENCE = {"TWINKLE_SANDBOX_SECONDS": "3"}
# Seconds of tuning. What is faster by far is found out long before, on whatever machine; what is known needs none.
AMPLE, NO_TIME = "60", "0.001"

RMS_NORM = """import torch
from torch import nn


class RMSNorm(nn.Module):
    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        input_dtype = hidden_states.dtype
        x = hidden_states.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(input_dtype)
"""


def found_of(site):
    """What was found of a tuned site, whether by this run or before."""
    return [{key: one[key] for key in ("rows", "kernel", "us", "problem")} for one in site["measured"]]


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def made_models():
    """The models of tests/models. script/test makes them before the tests; elsewhere they are made here, once."""
    folder = PREFIX / "tests/models"
    subprocess.run([sys.executable, ROOT / "tests/models/make_models.py", folder], check=True)
    return folder


def outcome(folder):
    """Everything in a folder, with hashes: to see that nothing was left behind."""
    return {str(path.relative_to(folder)): path.is_file() and sha256(path) for path in folder.rglob("*")}


def manifest(folder, kernel="kernel", layer="RMSNorm", classes=(NORM,), more=""):
    (folder / "twinkle.toml").write_text(f"presets = []\n\n[layers.{layer}]\nrepo_path = \"{kernel}\"\n"
                                         f"classes = {json.dumps(list(classes))}\n{more}")


def python_kernel(folder, source, classes=(NORM,), more="", layer="RMSNorm"):
    """A kernel that is a plain Python package, and the manifest that binds it."""
    package = folder / "kernel"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("from . import layers\n")
    (package / "layers.py").write_text(source)
    manifest(folder, classes=classes, more=more, layer=layer)
    return package


def metadata(build, op_namespace):
    """Writes metadata.json with the digest of what is there."""
    files = {path.name: base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
             for path in sorted(build.iterdir()) if path.name != "metadata.json"}
    (build / "metadata.json").write_text(json.dumps(
        {"id": op_namespace, "name": "kernel", "version": 1, "license": "Apache-2.0", "python-depends": [],
         "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": files}}))


def compiled_kernel(folder, library, op_namespace="misbehaving", source=RMS_NORM, name="kernel"):
    """A build in the Hub's layout around a library of operators, and the manifest that binds it."""
    build = folder / name / "build" / VARIANT
    build.mkdir(parents=True, exist_ok=True)
    (build / "__init__.py").write_text("from . import layers\n")
    (build / "layers.py").write_text(source)
    (build / "_ops.py").write_text(f"import torch\n\nops = torch.ops.{op_namespace}\n")
    (build / f"_{op_namespace}.so").write_bytes(pathlib.Path(library).read_bytes())
    metadata(build, op_namespace)
    manifest(folder, name)
    return build


def calling(operator):
    """The layer RMSNorm, with an operator of the library before it."""
    return (RMS_NORM.replace("from torch import nn\n", "from torch import nn\n\nfrom ._ops import ops\n")
            .replace("hidden_states.to(torch.float32)", f"ops.{operator}(hidden_states).to(torch.float32)"))


# LibTorch's stable C interface is small enough to declare here: such a library compiles in no time, and finds its
# functions in the process that loads it.
OPERATORS = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <fcntl.h>
#include <unistd.h>

extern "C" {
std::int32_t aoti_torch_library_init_def(const char*, const char*, std::uint32_t, void**);
std::int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, std::uint32_t, void**);
std::int32_t aoti_torch_library_def(void*, const char*);
std::int32_t aoti_torch_library_impl(void*, const char*, void (*)(std::uint64_t*, std::uint64_t, std::uint64_t));
std::int32_t aoti_torch_get_data_ptr(void*, void**);
std::int32_t aoti_torch_get_numel(void*, std::int64_t*);
std::int32_t aoti_torch_clone(void*, void**);
std::int32_t aoti_torch_delete_tensor_object(void*);
}

using Stack = std::uint64_t;

static float* data_of(Stack* stack) {
    void* data = nullptr;
    aoti_torch_get_data_ptr(reinterpret_cast<void*>(stack[0]), &data);
    return static_cast<float*>(data);
}

static void copy(Stack* stack, Stack, Stack) {
    void* argument = reinterpret_cast<void*>(stack[0]);
    void* result = nullptr;
    aoti_torch_clone(argument, &result);
    aoti_torch_delete_tensor_object(argument);
    stack[0] = reinterpret_cast<Stack>(result);
}
static void copy_into(Stack* stack, Stack, Stack) {
    std::int64_t count = 0;
    aoti_torch_get_numel(reinterpret_cast<void*>(stack[0]), &count);
    std::memcpy(data_of(stack), data_of(stack + 1), count * sizeof(float));
    for (int i = 0; i < 2; ++i) aoti_torch_delete_tensor_object(reinterpret_cast<void*>(stack[i]));
}
static void crash(Stack*, Stack, Stack) { *reinterpret_cast<volatile int*>(8) = 1; }
static void end(Stack*, Stack, Stack) { std::abort(); }
static void leave(Stack*, Stack, Stack) { _exit(0); }
static void hang(Stack*, Stack, Stack) { while (true) sleep(1); }
// After as many calls as it takes to compare values: what is left is measured.
static int calls = 0;
static void crash_later(Stack* stack, Stack n, Stack m) { ++calls > 16 ? crash(stack, n, m) : copy(stack, n, m); }
static void hang_later(Stack* stack, Stack n, Stack m) { ++calls > 16 ? hang(stack, n, m) : copy(stack, n, m); }
// Beyond one row of the model's.
static void crash_on_more(Stack* stack, Stack n, Stack m) {
    std::int64_t count = 0;
    aoti_torch_get_numel(reinterpret_cast<void*>(stack[0]), &count);
    count > 7 * 64 ? crash(stack, n, m) : copy(stack, n, m);
}
// In the process that measures whole models, which shares a page of memory with its parent.
static bool measures_models() {
    static const bool shares = [] {
        std::FILE* maps = std::fopen("/proc/self/maps", "r");
        char line[4096];
        bool found = false;
        while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
            found = found || std::strstr(line, "/dev/zero") != nullptr;
        }
        return found;
    }();
    return shares;
}
static void crash_measured(Stack* stack, Stack n, Stack m) { measures_models() ? crash(stack, n, m) : copy(stack, n, m); }
// There, once two models have been run, compared and warmed up, with two calls each.
static void crash_in_turns(Stack* stack, Stack n, Stack m) {
    measures_models() && ++calls > 10 ? crash(stack, n, m) : copy(stack, n, m);
}
// Configured by its keyword argument: slow, fast for up to 32 rows of 64, or fast for more.
static void tuned(Stack* stack, Stack n, Stack m) {
    std::int64_t count = 0;
    aoti_torch_get_numel(reinterpret_cast<void*>(stack[0]), &count);
    const Stack mode = stack[1];
    const bool fast = count <= 32 * 64 ? mode == 1 : mode == 2;
    if (!fast) usleep(12000);
    copy(stack, n, m);
}
// In the first calls of each size, as what compiles or tries something then.
static void slow_at_first(Stack* stack, Stack n, Stack m) {
    static std::map<std::int64_t, int> seen;
    std::int64_t count = 0;
    aoti_torch_get_numel(reinterpret_cast<void*>(stack[0]), &count);
    if (++seen[count] <= 4) usleep(100000);
    copy(stack, n, m);
}
static void refuse(Stack*, Stack, Stack) { throw std::runtime_error("the operator refuses"); }
static void overrun(Stack* stack, Stack n, Stack m) {
    std::memset(data_of(stack), 0x41, std::size_t(1) << 32);
    copy(stack, n, m);
}
static void scribble(Stack* stack, Stack n, Stack m) {
    float* data = data_of(stack);
    std::int64_t count = 0;
    aoti_torch_get_numel(reinterpret_cast<void*>(stack[0]), &count);
    copy(stack, n, m);
    for (std::int64_t i = 0; i < count; ++i) data[i] += 1;
}
static void devour(Stack*, Stack, Stack) {
    for (std::size_t size = 0; size < (std::size_t(1) << 40); size += std::size_t(1) << 30) {
        // Not touched: the limit is on address space.
        if (std::malloc(std::size_t(1) << 30) == nullptr) throw std::bad_alloc();
    }
    std::abort();
}

#define CHECKED(call) if ((call) != 0) throw std::runtime_error(#call)

static int define() {
    void* library = nullptr;
    CHECKED(aoti_torch_library_init_def(NAMESPACE, __FILE__, __LINE__, &library));
    void* kernels = nullptr;
    CHECKED(aoti_torch_library_init_impl(NAMESPACE, "CPU", __FILE__, __LINE__, &kernels));
    CHECKED(aoti_torch_library_def(library, "copy(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_def(library, "copy_into(Tensor! out, Tensor x) -> ()"));
    CHECKED(aoti_torch_library_impl(kernels, "copy_into", &copy_into));
    CHECKED(aoti_torch_library_impl(kernels, "copy", copy));
    CHECKED(aoti_torch_library_def(library, "crash(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "crash", crash));
    CHECKED(aoti_torch_library_def(library, "end(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "end", end));
    CHECKED(aoti_torch_library_def(library, "leave(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "leave", leave));
    CHECKED(aoti_torch_library_def(library, "hang(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "hang", hang));
    CHECKED(aoti_torch_library_def(library, "refuse(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "refuse", refuse));
    CHECKED(aoti_torch_library_def(library, "overrun(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "overrun", overrun));
    CHECKED(aoti_torch_library_def(library, "scribble(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "scribble", scribble));
    CHECKED(aoti_torch_library_def(library, "crash_later(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "crash_later", crash_later));
    CHECKED(aoti_torch_library_def(library, "hang_later(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "hang_later", hang_later));
    CHECKED(aoti_torch_library_def(library, "crash_on_more(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "crash_on_more", crash_on_more));
    CHECKED(aoti_torch_library_def(library, "crash_measured(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "crash_measured", crash_measured));
    CHECKED(aoti_torch_library_def(library, "crash_in_turns(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "crash_in_turns", crash_in_turns));
    CHECKED(aoti_torch_library_def(library, "tuned(Tensor x, *, int mode=0) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "tuned", tuned));
    CHECKED(aoti_torch_library_def(library, "slow_at_first(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "slow_at_first", slow_at_first));
    CHECKED(aoti_torch_library_def(library, "devour(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "devour", devour));
    return 0;
}

#ifdef UNDEFINED
extern "C" void no_library_defines_this();
#endif

static const int defined = [] {
    INITIALIZER;
    return define();
}();
"""

# What each library does when it is loaded, before it registers its operators.
INITIALIZERS = {
    "operators": "",
    "linked": "",  # names LibTorch, as real ones do: in Python its functions are not everybody's
    "whole": "",  # names libtorch.so, which is empty, so that a program may have dropped it
    "undefined": "no_library_defines_this()",
    "crashes": "*reinterpret_cast<volatile int*>(8) = 1",
    "aborts": "std::abort()",
    "hangs": "while (true) sleep(1)",
    "exits": "std::exit(0)",
    "leaves": "_exit(0)",
    "throws": "throw std::runtime_error(\"not today\")",
    "kills": "while (true) if (std::malloc(1 << 30) == nullptr) std::abort()",
}


class Libraries:
    """Compiles libraries of operators, each once."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "operators.cpp").write_text(OPERATORS)
        self.running = {name: self.start(name) for name in INITIALIZERS}

    def start(self, name, op_namespace="misbehaving"):
        torch = ["-Wl,--no-as-needed", f"-L{TORCH_LIB}", "-ltorch_cpu", "-lc10"]
        more = {"undefined": ["-DUNDEFINED"], "linked": torch, "whole": [*torch, "-ltorch"]}.get(name, [])
        return subprocess.Popen(["g++", "-std=c++17", "-O0", "-shared", "-fPIC",
                                 f"-DINITIALIZER={INITIALIZERS[name]}", f'-DNAMESPACE="{op_namespace}"',
                                 "-o", self.folder / f"{name}_{op_namespace}.so", self.folder / "operators.cpp", *more])

    def get(self, name, op_namespace="misbehaving"):
        key = name if op_namespace == "misbehaving" else f"{name}_{op_namespace}"
        process = self.running.setdefault(key, None) or self.start(name, op_namespace)
        self.running[key] = process
        assert process.wait(timeout=120) == 0
        return self.folder / f"{name}_{op_namespace}.so"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    return Libraries(tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="session")
def models():
    return made_models() / "models"
