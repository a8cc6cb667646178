#include "runtime/kernels/own_place.h"
#include "runtime/replay/graph_backend.h"

#include <dlfcn.h>

#include <filesystem>

namespace twinkle::runtime {

namespace {

FoundBackend open_backend() {
    const std::filesystem::path library = cuda_graphs_file();
    std::error_code ignored;
    if (!std::filesystem::exists(library, ignored)) {
        return {nullptr, "this libtwinkle was built without CUDA graphs"};
    }
    // It depends on LibTorch's CUDA libraries, which a process with CUDA tensors has loaded.
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle ? ::dlsym(handle, cuda_graphs_symbol) : nullptr;
    if (!symbol) {
        const char* why = ::dlerror();
        return {nullptr, std::string(cuda_graphs_library) +
                             " cannot be loaded: " + (why ? why : "it is not that library")};
    }
    return {reinterpret_cast<CudaGraphsFunction*>(symbol)(), {}};
}

}  // namespace

std::filesystem::path cuda_graphs_file() {
    return own_folder() / cuda_graphs_library;
}

FoundBackend cuda_graph_backend() {
    static const FoundBackend found = open_backend();
    return found;
}

}  // namespace twinkle::runtime
