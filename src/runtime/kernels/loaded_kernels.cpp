#include "runtime/kernels/loaded_kernels.h"

#include "runtime/kernels/op_library.h"
#include "runtime/kernels/verified_files.h"

#include <mutex>

namespace twinkle::runtime {

namespace {

std::mutex mutex;
auto& loaded = *new std::map<std::string, std::shared_ptr<const LoadedKernel>>();

}  // namespace

bool is_loaded(const std::string& build_id) {
    const std::scoped_lock lock(mutex);
    return loaded.contains(build_id);
}

std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel) {
    const std::string build_id = kernel.build_id();
    const std::scoped_lock lock(mutex);
    if (const auto found = loaded.find(build_id); found != loaded.end()) {
        return found->second;
    }
    VerifiedFiles files = read_verified(kernel);
    open_op_libraries(kernel, std::move(files.libraries));
    auto result = std::make_shared<LoadedKernel>();
    result->kernel = kernel;
    result->build_id = build_id;
    result->sources = std::move(files.sources);
    loaded.emplace(build_id, result);
    return result;
}

}  // namespace twinkle::runtime
