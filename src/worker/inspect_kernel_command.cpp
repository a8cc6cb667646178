#include "base/file.h"
#include "kernel/build.h"
#include "kernel/operators.h"
#include "runtime/inspect/loaded_library.h"
#include "runtime/trial/sandbox.h"
#include "worker/commands.h"
#include "worker/mapping_of.h"
#include "worker/unconfined.h"

namespace twinkle::worker {

namespace {

namespace fs = std::filesystem;

runtime::LibraryLoad what_to_load(const fs::path& kernel) {
    runtime::LibraryLoad load;
    const auto add_operators = [&](const std::vector<MappedOperator>& operators) {
        for (const MappedOperator& op : operators) {
            load.static_operators.push_back(op.schema);
        }
    };
    if (fs::is_regular_file(kernel)) {
        load.libraries.push_back(kernel);
        add_operators(kernel::find_operators(kernel, ""));
        return load;
    }
    const kernel::Build build = kernel::read_build(kernel);
    load.op_namespace = build.metadata ? build.metadata->id : "";
    add_operators(build.operators);
    for (const MappedFile& file : build.files) {
        if (file.path.ends_with(".so")) {
            load.libraries.push_back(build.path / file.path);
        }
    }
    return load;
}

}  // namespace

base::Json inspect_kernel_command(const Request& request, const Channel& channel) {
    const runtime::LibraryLoad load = what_to_load(kernel_of(request));
    if (load.libraries.empty()) {
        return {{"ok", true},
                {"why", "it has no library: there is nothing to load"},
                {"operators", base::Json::array()},
                {"problems", base::Json::array()},
                {"output", ""}};
    }
    channel.stage("inspect", base::display_path(*request.kernel));
    base::Json result = runtime::examine_load(load);
    warn_of_unconfined(channel);
    return result;
}

}  // namespace twinkle::worker
