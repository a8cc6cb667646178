#include "operations/context.h"

#include "base/file.h"
#include "target/runtime.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

hub::Settings settings_of(const ContextOptions& options, const target::Machine& machine) {
    auto settings = hub::settings_from(machine, options.user_agent);
    settings.offline = settings.offline || options.offline;
    if (options.endpoint) {
        settings.endpoint = *options.endpoint;
    }
    if (options.token) {
        settings.token = *options.token;
    }
    return settings;
}

cache::Cache cache_at(const ContextOptions& options, const target::Machine& machine) {
    const cache::Cache usual = cache::cache_of(machine);
    return options.cache_dir ? cache::Cache(*options.cache_dir, usual.options()) : usual;
}

}  // namespace

Context::Context(ContextOptions options, Listener& listener, const std::atomic<bool>& stop)
    : options_(std::move(options)),
      machine_(options_.machine != nullptr ? options_.machine : &target::this_machine()),
      listener_(listener),
      stop_(stop),
      cache_(cache_at(options_, *machine_)),
      settings_(settings_of(options_, *machine_)) {}

hub::Hub& Context::hub() {
    if (!hub_) {
        hub::HttpOptions http;
        http.stop = &stop_;
        if (options_.explain_requests) {
            http.log = [this](const std::string& line) { listener_.trace(line); };
        }
        hub_.emplace(settings_, std::move(http));
    }
    return *hub_;
}

std::uint64_t Context::requests() const {
    return hub_ ? hub_->requests() : 0;
}

fs::path Context::presets_dir() const {
    return options_.presets_dir.value_or(target::installation(*machine_).presets);
}

std::optional<Project> Context::find_project() const {
    const auto files = project::find_project(options_.project, options_.start);
    if (!files) {
        return std::nullopt;
    }
    listener_.detail("manifest: " + base::display_path(files->manifest));
    if (!files->note.empty()) {
        listener_.warn(files->note);
    }
    return Project{*files, project::load_manifest(files->manifest, presets_dir())};
}

Project Context::need_project(std::string_view why) const {
    auto project = find_project();
    if (!project) {
        throw Error(ErrorCode::not_found,
                    {.what = "there is no project here",
                     .where = base::display_path(fs::absolute(options_.start)),
                     .why = std::string(why),
                     .hint = "twinkle init writes a manifest here; or go to a folder that has one, "
                             "or name it with --project DIR"});
    }
    return std::move(*project);
}

}  // namespace twinkle::operations
