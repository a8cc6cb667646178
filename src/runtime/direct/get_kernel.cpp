// get_kernel() and its siblings: from a name or a folder to a kernel in this process.

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"
#include "project/local_kernels.h"
#include "project/lock.h"
#include "runtime/direct/kernel_state.h"
#include "runtime/kernels/own_target.h"
#include "runtime/registry/registered_kernels.h"
#include "target/backend.h"
#include "target/machine.h"
#include "twinkle/error.h"

#include <map>
#include <mutex>

namespace twinkle {

namespace fs = std::filesystem;

namespace {

using runtime::Registrations;

Registrations registrations_of(const KernelOptions& options) {
    return runtime::effective(options.registry != nullptr ? *options.registry
                                                          : Registry::of_process());
}

// The one that is named, else that of LibTorch's own backend, as in Python.
std::string device_for(const KernelOptions& options) {
    if (options.device.empty()) {
        return runtime::own_target().backend.device();
    }
    const auto device = target::parse_device(options.device);
    if (!device) {
        throw Error(ErrorCode::malformed,
                    {.what = "there is no device \"" + base::printable(options.device) + "\"",
                     .where = "",
                     .why = "devices: " + target::device_names(),
                     .hint = ""});
    }
    return *device;
}

// What has no build for LibTorch's own backend may have one for the CPU.
std::vector<std::string> devices_for(const KernelOptions& options) {
    std::vector<std::string> devices = {device_for(options)};
    if (options.device.empty() && devices.front() != "cpu") {
        devices.emplace_back("cpu");
    }
    return devices;
}

// This process, or its CPU alone.
target::Target target_for(const std::string& device) {
    target::Target target = runtime::own_target();
    if (device == "cpu") {
        target.backend = {};
        target.arch.reset();
    }
    return target;
}

project::KernelRequest request_for(const std::string& repo_id, const KernelOptions& options) {
    if (!project::is_repository_id(repo_id)) {
        throw Error(ErrorCode::malformed, {.what = "this is not the name of a repository",
                                           .where = base::printable(repo_id),
                                           .why = "",
                                           .hint = "as in kernels-community/activation"});
    }
    return {repo_id, project::pin_of(repo_id, options.version, options.revision), {}, repo_id};
}

// One Kernel for each build of this process, so that functions are compiled once.
Kernel kernel_of(std::shared_ptr<const runtime::LoadedKernel> loaded,
                 std::vector<std::string> warnings) {
    static std::mutex mutex;
    static auto& known = *new std::map<std::string, std::shared_ptr<Kernel::State>>();
    const std::scoped_lock lock(mutex);
    auto& state = known[loaded->build_id];
    if (!state) {
        state = std::make_shared<Kernel::State>(std::move(loaded), std::move(warnings));
    }
    return Kernel(state);
}

// What the build depends on is loaded before it.
Kernel load(const project::KernelRequest& request, const fs::path& lockfile,
            const Registrations& registrations, const std::vector<std::string>& devices) {
    Mapping mapping;
    runtime::RegisteredKernels kernels(registrations, mapping);
    const MappedKernel wanted = kernels.build(request, lockfile, devices);
    for (const MappedKernel& needed : mapping.kernels) {
        if (needed.name != wanted.name) {
            runtime::load_kernel(needed);
        }
    }
    return kernel_of(runtime::load_kernel(wanted), kernels.warnings());
}

fs::path lock_for(const KernelOptions& options, const Registrations& registrations) {
    const fs::path lock = options.lockfile.empty() ? registrations.lock : options.lockfile;
    if (lock.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "no lock is named",
                     .where = "",
                     .why = "",
                     .hint = "set lockfile in the options, or Registry::use_lock()"});
    }
    return lock;
}

// The entry that a lock has for a repository, as a request that finds it.
project::KernelRequest locked_request(const fs::path& lockfile, const std::string& repo_id,
                                      const project::Pin& pin) {
    const project::Lock lock = project::read_lock(lockfile);
    std::vector<const project::LockedKernel*> found;
    std::vector<std::string> names;
    for (const project::LockedKernel& kernel : lock.kernels) {
        names.push_back(kernel.text());
        if (kernel.name == repo_id && (pin.empty() || kernel.pin == pin)) {
            found.push_back(&kernel);
        }
    }
    if (found.size() != 1) {
        throw Error(ErrorCode::not_found,
                    {.what = found.empty() ? "the lock does not name " + base::printable(repo_id)
                                           : "the lock has several versions of " + repo_id,
                     .where = base::display_path(lockfile),
                     .why = "it has: " + base::join(names, ", "),
                     .hint = found.empty() ? base::suggestion(repo_id, names)
                                           : "say which one: version or revision"});
    }
    return {repo_id, found.front()->pin, {}, base::display_path(lockfile)};
}

std::string only_kernel_of(const fs::path& lockfile) {
    const project::Lock lock = project::read_lock(lockfile);
    if (lock.kernels.size() != 1) {
        throw Error(ErrorCode::malformed,
                    {.what = "the lock has " + std::to_string(lock.kernels.size()) + " kernels",
                     .where = base::display_path(lockfile),
                     .why = "without a name, it must have one",
                     .hint = "name the repository, and set lockfile in the options"});
    }
    return lock.kernels.front().name;
}

}  // namespace

Kernel get_kernel(const std::string& repo_id, const KernelOptions& options) {
    Registrations registrations = registrations_of(options);
    const fs::path lock = options.lockfile.empty() ? registrations.lock : options.lockfile;
    registrations.user_agent = options.user_agent;
    return load(request_for(repo_id, options), lock, registrations, devices_for(options));
}

bool has_kernel(const std::string& repo_id, const KernelOptions& options) {
    Registrations registrations = registrations_of(options);
    const auto request = request_for(repo_id, options);
    const std::string device = device_for(options);
    const bool local = project::local_kernels(target::this_machine()).contains(repo_id);
    if (registrations.hub.has && !local) {
        return runtime::own_target().backend_for(device) &&
               registrations.hub.has({.repo_id = repo_id,
                                      .version = options.version,
                                      .revision = options.revision,
                                      .target = target_for(device).text(),
                                      .user_agent = options.user_agent,
                                      .trust = registrations.trust});
    }
    Mapping mapping;
    runtime::RegisteredKernels kernels(registrations, mapping);
    try {
        kernels.build(request, options.lockfile.empty() ? registrations.lock : options.lockfile,
                      {device});
        return true;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_found) {
            return false;
        }
        throw;
    }
}

Kernel get_local_kernel(const fs::path& folder, const KernelOptions& options) {
    const fs::path whole = base::absolute_path(folder);
    const fs::path last = whole.has_filename() ? whole : whole.parent_path();
    return load({last.filename().string(), {}, last, base::display_path(folder)}, {},
                registrations_of(options), devices_for(options));
}

Kernel get_locked_kernel(const std::string& repo_id, const KernelOptions& options) {
    const Registrations registrations = registrations_of(options);
    const fs::path lock = lock_for(options, registrations);
    const auto pin = project::pin_of(options.version, options.revision);
    return load(locked_request(lock, repo_id, pin), lock, registrations, devices_for(options));
}

Kernel load_kernel(const std::string& lockfile_or_repo_id, const KernelOptions& options) {
    Registrations offline = registrations_of(options);
    offline.hub = {};
    const bool named = !options.lockfile.empty();
    const fs::path lock = named ? options.lockfile : fs::path(lockfile_or_repo_id);
    const std::string repo_id = named ? lockfile_or_repo_id : only_kernel_of(lock);
    const auto pin = project::pin_of(options.version, options.revision);
    return load(locked_request(lock, repo_id, pin), lock, offline, devices_for(options));
}

std::vector<Kernel> get_loaded_kernels() {
    std::vector<Kernel> all;
    for (const auto& loaded : runtime::loaded_kernels()) {
        all.push_back(kernel_of(loaded, {}));
    }
    return all;
}

}  // namespace twinkle
