#include "cli/model_mapping.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/model_request.h"
#include "cli/resolution.h"
#include "kernel/archs.h"
#include "project/find_project.h"
#include "target/backend.h"
#include "target/target.h"
#include "twinkle/error.h"
#include "twinkle/mapping.h"

namespace twinkle::cli {
namespace {

// A mapping names its machine; a --target given with it must agree.
void require_target(const Mapping& mapping, const std::string& file, const target::Target& target) {
    const auto wanted = target.to_map();
    for (const MappedKernel& kernel : mapping.kernels) {
        const auto kind = target::parse_backend_type(kernel.device);
        const std::string& arch = wanted.at("arch");
        if (kind && arch != "none" && !kernel.archs.empty() &&
            !kernel::archs_support(kernel.archs, *kind, arch)) {
            throw Error(ErrorCode::refused,
                        {.what = "the kernel " + kernel.name + " has no code for the target's GPU",
                         .where = file,
                         .why = "it is built for " + base::join(kernel.archs, ", ") +
                                ", the target is " + arch,
                         .hint = "twinkle versions --target shows which builds fit"});
        }
    }
    for (const auto& [key, value] : wanted) {
        const auto mapped = mapping.target.find(key);
        if (key != "arch" && mapped != mapping.target.end() && mapped->second != value) {
            throw Error(ErrorCode::malformed,
                        {.what = "the mapping is for another machine than --target says",
                         .where = file,
                         .why = "its " + key + " is " + base::printable(mapped->second) + ", not " +
                                base::printable(value),
                         .hint = "resolve it with that --target, or leave out --map"});
        }
    }
}

Mapping read_or_resolve_mapping(protocol::Request& request, const Arguments& arguments,
                                Console& console, const std::optional<std::string>& target) {
    if (const auto file = arguments.text("map")) {
        auto mapping = Mapping::load(existing_file(*file, "mapping"));
        if (target) {
            require_target(mapping, *file, named_target(console, *target));
        }
        return mapping;
    }
    ResolveChoices choices;
    choices.target = target;
    choices.lock = project::LockDemand::fits;
    auto resolution = resolve_now(console, choices);
    request.warnings = resolution.warnings;
    console.note(
        resolution.manifest
            ? "kernels as " + base::display_path(*resolution.manifest) + " says"
            : "no manifest here: the bundled kernels are used, by classes and by formulas");
    return std::move(resolution.mapping);
}

// A model for a target machine can only use a device that the target has.
void require_device(const std::string& device, const std::string& of_target) {
    const auto kind = target::parse_device(device.substr(0, device.find(':')));
    if (kind != "cpu" && kind != of_target) {
        throw Error(ErrorCode::malformed,
                    {.what = "the target has no device " + device,
                     .where = {},
                     .why = "its devices are cpu" + (of_target == "cpu" ? "" : " and " + of_target),
                     .hint = "leave out --device, or name another --target"});
    }
}

// The default device of a target machine: that of its backend.
std::string device_of(const Mapping& mapping) {
    const auto named = mapping.target.find("backend");
    const auto backend =
        named == mapping.target.end() ? std::nullopt : target::parse_backend(named->second);
    return backend ? backend->device() : "cpu";
}

}  // namespace

Mapping add_mapping(protocol::Request& request, const Arguments& arguments, Console& console,
                    const std::optional<std::string>& target) {
    auto mapping = read_or_resolve_mapping(request, arguments, console, target);
    request.map = mapping.to_json();
    if (target && !request.device) {
        request.device = device_of(mapping);
    } else if (target) {
        require_device(*request.device, device_of(mapping));
    }
    auto folders = kernel_folders({});
    for (const auto& kernel : mapping.kernels) {
        folders.push_back(kernel.path);
    }
    request.kernel_dirs = folders;
    return mapping;
}

void add_project_kernels(protocol::Request& request, Console& console) {
    project::ResolveOptions options;
    options.project = console.globals().project;
    options.start = std::filesystem::current_path();
    try {
        if (!project::find_project(options.project, options.start)) {
            return;
        }
        for (const MappedKernel& kernel : project::resolve(options).mapping.kernels) {
            request.kernel_dirs.push_back(kernel.path);
        }
    } catch (const Error& error) {
        if (options.project && error.code() == ErrorCode::not_found) {
            throw;
        }
        const auto& details = error.details();
        console.detail("the project's kernels are not used: " + details.what +
                       (details.why.empty() ? "" : ": " + details.why));
    }
}

}  // namespace twinkle::cli
