// A library of one operator whose schema no string of it shows, as a compiler may split the text of
// any. LibTorch's stable C interface is declared here, so that it compiles in no time.

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" {
std::int32_t aoti_torch_library_init_def(const char*, const char*, std::uint32_t, void**);
std::int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, std::uint32_t,
                                          void**);
std::int32_t aoti_torch_library_def(void*, const char*);
std::int32_t aoti_torch_library_impl(void*, const char*,
                                     void (*)(std::uint64_t*, std::uint64_t, std::uint64_t));
std::int32_t aoti_torch_clone(void*, void**);
std::int32_t aoti_torch_delete_tensor_object(void*);
}

namespace {

void copy(std::uint64_t* stack, std::uint64_t, std::uint64_t) {
    auto* argument = reinterpret_cast<void*>(stack[0]);
    void* result = nullptr;
    if (aoti_torch_clone(argument, &result) != 0) {
        std::abort();
    }
    aoti_torch_delete_tensor_object(argument);
    stack[0] = reinterpret_cast<std::uint64_t>(result);
}

const bool registered = [] {
    void* library = nullptr;
    void* kernels = nullptr;
    std::string schema = "split_copy(Tensor";
    schema += " x) -> Tensor";
    return aoti_torch_library_init_def("_split_1", __FILE__, __LINE__, &library) == 0 &&
           aoti_torch_library_init_impl("_split_1", "CPU", __FILE__, __LINE__, &kernels) == 0 &&
           aoti_torch_library_def(library, schema.c_str()) == 0 &&
           aoti_torch_library_impl(kernels, "split_copy", copy) == 0;
}();

}  // namespace
