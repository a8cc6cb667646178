// Implements twinkle/hub.h over the operations.

#include <algorithm>
#include <atomic>
#include <mutex>

#include "operations/fetch.h"
#include "operations/lock_project.h"
#include "operations/targets.h"
#include "operations/trust.h"
#include "operations/versions.h"
#include "project/kernel_spec.h"
#include "twinkle/hub.h"

namespace fs = std::filesystem;

namespace twinkle::hub {
namespace {

// Sums up the files of a download.
class Totals : public DownloadObserver {
public:
    explicit Totals(const ClientOptions& options) : options_(options) {}

    void planned(std::uint64_t, std::uint64_t bytes) override {
        total_ = bytes;
        done_ = 0;
        files_.clear();
    }
    void file_started(const DownloadFile& file, std::uint64_t done) override { set(file, done); }
    void file_progress(const DownloadFile& file, std::uint64_t done) override { set(file, done); }
    void file_done(const DownloadFile& file, bool) override { set(file, file.size); }

private:
    void set(const DownloadFile& file, std::uint64_t done) {
        auto& known = files_[file.repo_id + "/" + file.path];
        done_ += done - known;
        known = done;
        if (options_.progress) {
            options_.progress(done_, total_);
        }
    }

    const ClientOptions& options_;
    std::map<std::string, std::uint64_t> files_;
    std::uint64_t total_ = 0, done_ = 0;
};

class ClientListener : public operations::Listener {
public:
    explicit ClientListener(const ClientOptions& options) : options_(options), totals_(options) {}

    void warn(std::string_view text) override {
        if (options_.warn) {
            options_.warn(text);
        }
    }
    DownloadObserver& downloads() override { return totals_; }

private:
    const ClientOptions& options_;
    Totals totals_;
};

project::KernelSpec spec_of(const std::string& repo_id, const KernelRequest& request) {
    auto spec = project::parse_kernel_spec(repo_id);
    if (!spec.pin.empty()) {
        throw Error(ErrorCode::malformed, {.what = "this is not the name of a repository",
                                           .where = repo_id,
                                           .why = "a version or revision is given beside the name",
                                           .hint = ""});
    }
    spec.pin = project::pin_of(repo_id, request.version, request.revision);
    return spec;
}

std::vector<std::string> targets_of(const KernelRequest& request) {
    return request.target.empty() ? std::vector<std::string>{} : std::vector{request.target};
}

}  // namespace

struct Client::State {
    explicit State(ClientOptions given) : options(std::move(given)), listener(options) {}

    // Each call has its own context: its connections end with it.
    operations::Context context(const fs::path& project = {}, const std::string& agent = {}) {
        stop = false;
        operations::ContextOptions internal;
        internal.offline = options.offline;
        internal.user_agent = options.user_agent;
        if (!agent.empty()) {
            internal.user_agent += (internal.user_agent.empty() ? "" : "; ") + agent;
        }
        if (!project.empty()) {
            internal.project = project;
        }
        if (!options.cache_dir.empty()) {
            internal.cache_dir = options.cache_dir;
        }
        if (!options.endpoint.empty()) {
            internal.endpoint = options.endpoint;
        }
        if (!options.token.empty()) {
            internal.token = Secret(options.token);
        }
        return operations::Context(std::move(internal), listener, stop);
    }

    std::vector<std::string> trusted_for(const KernelRequest& request) const {
        std::vector<std::string> trusted = options.trust;
        trusted.insert(trusted.end(), request.trust.begin(), request.trust.end());
        return trusted;
    }

    ClientOptions options;
    ClientListener listener;
    std::mutex mutex;
    std::atomic<bool> stop{false};
};

Client::Client(ClientOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

namespace {

// The requested kernel comes first, then its dependencies.
std::vector<FetchedKernel> kernels_of(const operations::FetchReport& report,
                                      const std::string& first) {
    std::vector<FetchedKernel> kernels;
    for (const auto& build : report.builds) {
        kernels.push_back({build.repo_id, build.commit, build.variant, build.folder});
    }
    std::stable_partition(kernels.begin(), kernels.end(),
                          [&](const auto& kernel) { return kernel.repo_id == first; });
    return kernels;
}

}  // namespace

std::vector<FetchedKernel> Client::get(const std::string& repo_id, const KernelRequest& request) {
    const std::lock_guard<std::mutex> guard(state_->mutex);
    auto context = state_->context({}, request.user_agent);
    operations::FetchOptions options;
    options.specs = {spec_of(repo_id, request)};
    options.targets = targets_of(request);
    options.trust = state_->trusted_for(request);
    options.alone = true;
    return kernels_of(operations::fetch(context, options), repo_id);
}

bool Client::has(const std::string& repo_id, const KernelRequest& request) {
    const std::lock_guard<std::mutex> guard(state_->mutex);
    auto context = state_->context({}, request.user_agent);
    try {
        const auto texts = targets_of(request);
        const auto target = operations::choose_targets(context, nullptr, texts).front();
        const auto listings = operations::list_versions(context, spec_of(repo_id, request), target);
        const bool fits = !listings.empty() && !listings.front().variants.empty() &&
                          listings.front().variants.front().accepted;
        if (fits && !listings.front().commit.empty()) {  // no local folder
            operations::require_trust(context, std::vector{repo_id}, state_->trusted_for(request));
        }
        return fits;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_found) {
            return false;
        }
        throw;
    }
}

fs::path Client::lock(const fs::path& project, const LockOptions& options) {
    const std::lock_guard<std::mutex> guard(state_->mutex);
    auto context = state_->context(project);
    if (options.check) {
        operations::check_project_lock(context);
        return project / "twinkle.lock";
    }
    operations::LockOptions internal;
    internal.upgrade_all = options.upgrade;
    internal.trust = state_->options.trust;
    return operations::lock_project(context, internal).file;
}

std::vector<FetchedKernel> Client::fetch(const fs::path& project, const FetchOptions& options) {
    const std::lock_guard<std::mutex> guard(state_->mutex);
    auto context = state_->context(project);
    operations::FetchOptions internal;
    internal.targets = options.targets;
    internal.all_variants = options.all_variants;
    internal.locked = options.locked;
    internal.trust = state_->options.trust;
    return kernels_of(operations::fetch(context, internal), "");
}

void Client::cancel() {
    state_->stop = true;
}

}  // namespace twinkle::hub
