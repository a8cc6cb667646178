"""Programs that only call torch::jit::load run kernelized models with the preload library, and resolve needs
no LibTorch at all."""

import json
import pathlib
import shutil
import subprocess

import pytest
from conftest import PROGRAM, Twinkle, environment
from kernels_for_tests import (EXAMPLES, PREFIX, RUNTIME, TORCH_LIB, calling, compiled_kernel, libraries, models,
                               needs_runtime)

pytestmark = needs_runtime
PRELOAD = PREFIX / "lib/libtwinkle_preload.so"

# The server that somebody has: it knows nothing of kernels. By which overload it loads is up to it.
SERVER = r"""
#include <caffe2/serialize/file_adapter.h>
#include <torch/script.h>

#include <fstream>
#include <iostream>

torch::jit::Module load(const std::string& how, const std::string& path) {
    torch::jit::ExtraFilesMap extra;
    std::ifstream stream(path, std::ios::binary);
    if (how == "path") return torch::jit::load(path);
    if (how == "path-extra") return torch::jit::load(path, torch::kCPU, extra);
    if (how == "stream") return torch::jit::load(stream);
    if (how == "stream-extra") return torch::jit::load(stream, torch::kCPU, extra);
    auto reader = std::make_shared<caffe2::serialize::FileAdapter>(path);
    if (how == "reader") return torch::jit::load(reader);
    return torch::jit::load(reader, torch::kCPU, extra);
}

int main(int argc, char** argv) try {
    for (int i = 2; i < argc; ++i) {
        torch::jit::Module model = load(argv[1], argv[i]);
        torch::NoGradGuard no_grad;
        const auto tokens = torch::arange(256, torch::kLong).reshape({2, 128});
        std::cout << model.forward({tokens}).toTensor().to(torch::kDouble).abs().sum().item<double>() << "\n";
    }
    return 0;
} catch (const std::exception& error) {
    std::cerr << "the server fails: " << error.what() << "\n";
    return 7;
}
"""


def compile_server(source, output, *options):
    include = TORCH_LIB.parent / "include"
    output.with_suffix(".cpp").write_text(source)
    subprocess.run(["g++", "-std=c++20", "-O0", "-w", *options, f"-I{include}", f"-I{include}/torch/csrc/api/include",
                    output.with_suffix(".cpp"), "-o", output, f"-L{TORCH_LIB}", f"-Wl,-rpath,{TORCH_LIB}",
                    "-Wl,--as-needed", "-ltorch", "-ltorch_cpu", "-lc10"], check=True, timeout=300)
    return output


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    return compile_server(SERVER, tmp_path_factory.mktemp("server") / "server")


@pytest.fixture(scope="session")
def fast(tmp_path_factory):
    """A kernelized model of the bundled kernels."""
    folder = tmp_path_factory.mktemp("fast")
    done = Twinkle(folder)("kernelize", EXAMPLES / "traced.pt", "-o", "fast.pt")
    assert done.code == 0, done.err
    return folder / "fast.pt"


def serve(server, *arguments, preload=True, **variables):
    changes = {"LD_PRELOAD": PRELOAD} if preload else {}
    return subprocess.run([server, *arguments], env=environment(**changes, **variables), capture_output=True,
                          text=True, timeout=120)


@pytest.fixture(scope="session")
def expected(server):
    done = serve(server, "path", EXAMPLES / "traced.pt", preload=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize("how", ["path", "path-extra", "stream", "stream-extra", "reader", "reader-extra"])
def test_a_program_that_only_loads(server, fast, expected, how):
    done = serve(server, how, fast, EXAMPLES / "traced.pt", fast)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    results = [float(line) for line in done.stdout.split()]
    assert results == pytest.approx([expected] * 3, rel=1e-5)
    assert results[0] == results[2]


def test_without_the_library_the_model_is_refused(server, fast):
    done = serve(server, "path", fast, preload=False)
    assert done.returncode == 7 and "the server fails" in done.stderr


@pytest.mark.parametrize("name", ["traced.pt", "scripted.pt"])
def test_a_plain_model_is_loaded_as_ever(server, name):
    plain, preloaded = serve(server, "path", EXAMPLES / name, preload=False), serve(server, "path", EXAMPLES / name)
    assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (0, plain.stdout, "")


@pytest.mark.parametrize("how", ["path", "stream", "reader"])
def test_what_is_no_model_is_libtorch_s_error(server, tmp_path, how):
    (tmp_path / "text.pt").write_text("no model\n")
    plain = serve(server, how, tmp_path / "text.pt", preload=False)
    done = serve(server, how, tmp_path / "text.pt")
    assert plain.returncode == done.returncode == 7
    assert plain.stderr.splitlines()[0] in done.stderr
    assert serve(server, "path", tmp_path / "none.pt").returncode == 7


@pytest.mark.parametrize("command", [["ls", "/"], ["python3", "-c", "print(6 * 7)"], ["sh", "-c", "echo a | cat"]])
def test_other_programs_do_not_notice(command):
    plain = subprocess.run(command, capture_output=True, env=environment())
    done = subprocess.run(command, capture_output=True, env=environment(LD_PRELOAD=PRELOAD))
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_the_library_does_not_link_libtorch():
    needed = subprocess.run(["readelf", "-d", PRELOAD], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
    assert not [name for name in libraries if "torch" in name or "c10" in name]


@pytest.fixture
def own(twinkle, libraries, models):
    """A model that needs a kernel of the project, not a bundled one."""
    build = compiled_kernel(twinkle.folder, libraries.get("operators"), source=calling("copy"))
    done = twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt")
    assert done.code == 0, done.err
    assert (twinkle.folder / "kernel").is_dir()
    return twinkle.folder, build


def test_kernels_are_found_in_the_folders_of_the_user(server, own):
    folder, build = own
    for place in (folder, folder / "kernel", build):
        done = serve(server, "path", folder / "fast.pt", TWINKLE_KERNELS=f"/none:{place}")
        assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_missing_kernel_is_said(server, own):
    folder, _ = own
    done = serve(server, "path", folder / "fast.pt")
    assert done.returncode == 7
    assert "twinkle: " in done.stderr and "the model needs the kernel" in done.stderr
    assert "TWINKLE_KERNELS" in done.stderr and "misbehaving" in done.stderr
    assert done.stderr.index("twinkle: ") < done.stderr.index("the server fails")


def test_a_changed_kernel_is_not_loaded(server, own):
    folder, build = own
    (build / "layers.py").write_text((build / "layers.py").read_text() + "\n")
    done = serve(server, "path", folder / "fast.pt", TWINKLE_KERNELS=folder)
    assert done.returncode == 7 and "not the build that the model was made with" in done.stderr


def test_a_kernel_needs_a_library_that_the_program_has_not_loaded(server, twinkle, libraries):
    needed = subprocess.run(["readelf", "-d", server], capture_output=True, text=True, check=True).stdout
    assert "[libtorch_cpu.so]" in needed and "[libtorch.so]" not in needed
    compiled_kernel(twinkle.folder, libraries.get("whole"), source=calling("copy"))
    assert twinkle("kernelize", EXAMPLES / "scripted.pt", "-o", "fast.pt").code == 0
    done = serve(server, "path", twinkle.folder / "fast.pt", TWINKLE_KERNELS=twinkle.folder)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_no_runtime_is_said(server, fast, tmp_path):
    done = serve(server, "path", fast, TWINKLE_LIBEXEC=tmp_path)
    assert done.returncode == 7 and "no runtime for the LibTorch of this process" in done.stderr


@pytest.fixture(scope="session")
def packaged(tmp_path_factory):
    """The runtime as a package has it: it does not know where LibTorch is; beside it one for another LibTorch."""
    libexec = tmp_path_factory.mktemp("packaged")
    for name, changes in (("installed", {}), ("other", {"backend": "cu130"}), ("older", {"torch": "2.6.0"})):
        folder = libexec / name
        folder.mkdir()
        described = {key: value for key, value in RUNTIME.items() if key != "torch_lib"} | changes
        (folder / "runtime.json").write_text(json.dumps(described))
        (folder / "libtwinkle.so").write_text("not this one")
    (libexec / "installed/libtwinkle.so").unlink()
    (libexec / "installed/libtwinkle.so").symlink_to(next((PREFIX / "libexec/twinkle").glob("*/libtwinkle.so")))
    return libexec


def test_the_runtime_is_chosen_by_version_and_backend(server, fast, expected, packaged):
    done = serve(server, "path", fast, TWINKLE_LIBEXEC=packaged)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert float(done.stdout) == pytest.approx(expected, rel=1e-5)


HOST = r"""
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    void* backend = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
    if (backend == NULL) { fprintf(stderr, "%s\n", dlerror()); return 9; }
    return ((int (*)(int, char**))dlsym(backend, "backend_main"))(argc - 1, argv + 1);
}
"""


def test_a_server_whose_backend_is_a_library_of_its_own(fast, expected, packaged, tmp_path):
    """As Triton opens its PyTorch backend: LibTorch is in no scope that a preloaded library sees."""
    source = SERVER.replace("int main(", 'extern "C" int backend_main(')
    compile_server(source, tmp_path / "backend.so", "-shared", "-fPIC")
    (tmp_path / "host.c").write_text(HOST)
    subprocess.run(["cc", tmp_path / "host.c", "-o", tmp_path / "host", "-ldl"], check=True)
    for libexec in ({}, {"TWINKLE_LIBEXEC": packaged}):
        done = serve(tmp_path / "host", tmp_path / "backend.so", "stream", fast, **libexec)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert float(done.stdout) == pytest.approx(expected, rel=1e-5)


def opened(trace):
    names = []
    for line in trace.splitlines():
        if "open" in line and '"' in line and " = -1 " not in line:
            names.append(pathlib.Path(line.split('"')[1]).name)
    return names


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here (script/setup installs it)")
def test_resolve_opens_nothing_of_libtorch(twinkle):
    done = subprocess.run(["strace", "-f", "-e", "trace=open,openat,openat2,execve", "-o", "trace", PROGRAM, "resolve",
                           "--project", EXAMPLES, "-o", "map.json"], cwd=twinkle.folder, capture_output=True,
                          env=environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    trace = (twinkle.folder / "trace").read_text()
    assert trace.count("execve(") == 1  # and no worker does it instead
    names = opened(trace)
    assert "twinkle.toml" in names and "runtime.json" in names
    of_libtorch = ("libtorch", "libc10", "libtwinkle", "libgomp", "libmkl", "twinkle-worker")
    assert not [name for name in names if name.startswith(of_libtorch)]
