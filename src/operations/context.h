#pragma once
// What an operation works with: the machine, the project, the cache and the Hub, and whom it tells
// things. One per command or per call of the library.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cache/layout.h"
#include "hub/api.h"
#include "hub/download.h"
#include "project/find_project.h"
#include "project/manifest.h"
#include "target/machine.h"

namespace twinkle::operations {

// What an operation says while it works. Everything may be ignored.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void warn(std::string_view) {}
    virtual void note(std::string_view) {}
    virtual void detail(std::string_view) {}
    virtual void trace(std::string_view) {}
    virtual void busy(std::string_view /*what*/, std::uint64_t /*done*/, std::uint64_t /*total*/) {}
    virtual hub::DownloadObserver& downloads() = 0;
};

struct ContextOptions {
    std::optional<std::filesystem::path> project;      // --project
    std::filesystem::path start = ".";                 // where the search for a project begins
    std::optional<std::filesystem::path> lockfile;     // --lockfile
    std::optional<std::filesystem::path> presets_dir;  // none: as installed
    bool offline = false;                              // HF_HUB_OFFLINE says so too
    std::string user_agent;                            // the program's own part
    std::optional<std::filesystem::path> cache_dir;    // none: as the environment says
    std::optional<std::string> endpoint;
    std::optional<hub::Secret> token;
    bool explain_requests = false;             // one line per request to Listener::trace
    const target::Machine* machine = nullptr;  // none: this one
};

// A project whose manifest was read.
struct Project {
    project::ProjectFiles files;
    project::Manifest manifest;
};

// Not thread-safe: the Hub's connections belong to the thread that works.
class Context {
public:
    Context(ContextOptions options, Listener& listener, const std::atomic<bool>& stop);

    const ContextOptions& options() const { return options_; }
    const target::Machine& machine() const { return *machine_; }
    const cache::Cache& cache() const { return cache_; }
    Listener& listener() const { return listener_; }
    const std::atomic<bool>& stop() const { return stop_; }
    bool offline() const { return settings_.offline; }
    const hub::Settings& settings() const { return settings_; }
    hub::Hub& hub();                 // connects to nothing before it is asked something
    std::uint64_t requests() const;  // that went to the network so far
    std::filesystem::path presets_dir() const;

    // None: the current folder is in no project.
    std::optional<Project> find_project() const;
    // Throws Error(not_found) where there is none; `why` says what it is needed for.
    Project need_project(std::string_view why) const;

private:
    ContextOptions options_;
    const target::Machine* machine_;
    Listener& listener_;
    const std::atomic<bool>& stop_;
    cache::Cache cache_;
    hub::Settings settings_;
    std::optional<hub::Hub> hub_;
};

}  // namespace twinkle::operations
