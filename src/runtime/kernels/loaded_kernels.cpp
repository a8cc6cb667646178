#include "runtime/kernels/loaded_kernels.h"

#include "runtime/kernels/gpu_code.h"
#include "runtime/kernels/op_library.h"
#include "runtime/kernels/own_system.h"
#include "runtime/kernels/verified_files.h"

#include <mutex>

namespace twinkle::runtime {

namespace {

struct Loaded {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const LoadedKernel>> by_id;
    std::vector<std::shared_ptr<const LoadedKernel>> in_order;
};

Loaded& of_process() {
    static auto& loaded = *new Loaded();  // libraries stay open, and so do their records
    return loaded;
}

}  // namespace

bool is_loaded(const std::string& build_id) {
    Loaded& loaded = of_process();
    const std::scoped_lock lock(loaded.mutex);
    return loaded.by_id.contains(build_id);
}

std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel) {
    Loaded& loaded = of_process();
    const std::string build_id = kernel.build_id();
    const std::scoped_lock lock(loaded.mutex);
    if (const auto found = loaded.by_id.find(build_id); found != loaded.by_id.end()) {
        return found->second;
    }
    require_own_system(kernel);
    require_gpu_code(kernel);
    VerifiedFiles files = read_verified(kernel);
    open_op_libraries(kernel, std::move(files.libraries));
    auto result = std::make_shared<LoadedKernel>();
    result->kernel = kernel;
    result->build_id = build_id;
    result->sources = std::move(files.sources);
    loaded.by_id.emplace(build_id, result);
    loaded.in_order.push_back(result);
    return result;
}

std::vector<std::shared_ptr<const LoadedKernel>> loaded_kernels() {
    Loaded& loaded = of_process();
    const std::scoped_lock lock(loaded.mutex);
    return loaded.in_order;
}

}  // namespace twinkle::runtime
