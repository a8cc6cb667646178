#include "runtime/kernels/loaded_kernels.h"

#include "base/freed_memory.h"
#include "runtime/kernels/gpu_code.h"
#include "runtime/kernels/op_library.h"
#include "runtime/kernels/own_system.h"

#include <mutex>

namespace twinkle::runtime {

namespace {

struct Loaded {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const LoadedKernel>> by_id;
    std::vector<std::shared_ptr<const LoadedKernel>> in_order;

    void add(std::shared_ptr<const LoadedKernel> kernel) {
        by_id.emplace(kernel->build_id, kernel);
        in_order.push_back(std::move(kernel));
    }
};

Loaded& all_loaded() {
    static auto& loaded = *new Loaded();  // libraries stay open, and so do their records
    return loaded;
}

}  // namespace

bool is_loaded(const std::string& build_id) {
    Loaded& loaded = all_loaded();
    const std::scoped_lock lock(loaded.mutex);
    return loaded.by_id.contains(build_id);
}

namespace {

// `files` are read where the kernel is not loaded yet.
std::shared_ptr<const LoadedKernel> load(const MappedKernel& kernel,
                                         const std::function<VerifiedFiles()>& files) {
    Loaded& loaded = all_loaded();
    const std::string build_id = kernel.build_id();
    const std::scoped_lock lock(loaded.mutex);
    if (const auto found = loaded.by_id.find(build_id); found != loaded.by_id.end()) {
        return found->second;
    }
    require_own_system(kernel);
    require_gpu_code(kernel);
    VerifiedFiles verified = files();
    open_op_libraries(kernel, std::move(verified.code));
    base::keep_freed_memory();
    auto result = std::make_shared<LoadedKernel>();
    result->kernel = kernel;
    result->build_id = build_id;
    result->sources = std::move(verified.sources);
    loaded.add(result);
    return result;
}

}  // namespace

std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel) {
    return load(kernel, [&] { return read_verified(kernel); });
}

std::shared_ptr<const LoadedKernel> load_verified(const MappedKernel& kernel, VerifiedFiles files) {
    return load(kernel, [&] { return std::move(files); });
}

void add_loaded(std::shared_ptr<const LoadedKernel> kernel) {
    Loaded& loaded = all_loaded();
    const std::scoped_lock lock(loaded.mutex);
    loaded.add(std::move(kernel));
}

std::vector<std::shared_ptr<const LoadedKernel>> loaded_kernels() {
    Loaded& loaded = all_loaded();
    const std::scoped_lock lock(loaded.mutex);
    return loaded.in_order;
}

}  // namespace twinkle::runtime
