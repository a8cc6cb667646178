#pragma once
// Kernels from the Hub in C++, without LibTorch and without Python: what `twinkle fetch` and
// `twinkle lock` do. Library: libtwinkle-hub. The cache is the one of the Python tools.

#include "twinkle/api.h"
#include "twinkle/error.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace twinkle::hub {

struct ClientOptions {
    std::string endpoint{};  // empty: HF_ENDPOINT, else the public Hub
    // Empty: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH. It goes to an endpoint without https
    // on another machine only if TWINKLE_TOKEN_OVER_HTTP=1.
    std::string token{};
    std::filesystem::path cache_dir{};  // empty: KERNELS_CACHE, HF_HUB_CACHE, HF_HOME, …
    std::string user_agent{};           // your program's part: "my-server/2.1"
    bool offline = false;               // HF_HUB_OFFLINE says so too
    // Repositories ("org/name", "org/*") that are let in though the Hub does not vouch for their
    // publisher.
    std::vector<std::string> trust{};
    // Receives warnings for the user, on the thread that works.
    std::function<void(std::string_view)> warn{};
    // Receives the bytes received and the total bytes of the running call.
    std::function<void(std::uint64_t, std::uint64_t)> progress{};
};

// Selects a state of a repository: at most one of the two.
struct KernelRequest {
    // A version (branch v<int>), or a release: "0.1.0", ">=0.1,<0.3". Neither this nor a revision:
    // the newest version.
    std::optional<std::variant<int, std::string>> version{};
    std::string revision{};  // branch, tag or commit
    // The machine: "here" (also if empty), a file of `twinkle env --json`, or
    // "torch=2.13,backend=cu130,arch=9.0,…".
    std::string target{};
    std::string user_agent{};          // in addition to that of the client
    std::vector<std::string> trust{};  // likewise
};

// A build in the cache.
struct FetchedKernel {
    std::string repo_id;
    std::string commit;            // 40 hex digits
    std::string variant;           // "torch-stable-abi210-cu130-x86_64-linux"
    std::filesystem::path folder;  // the build: metadata.json, the libraries, the Python package
};

struct LockOptions {
    bool check = false;    // change nothing: throw Error(out_of_date) where the lock does not fit
    bool upgrade = false;  // decide anew what is locked already
};

struct FetchOptions {
    bool locked = false;                 // throw Error(out_of_date) without a lock that fits
    bool all_variants = false;           // every build, for whatever machine
    std::vector<std::string> targets{};  // like KernelRequest::target; empty: this machine
};

// All calls throw twinkle::Error: not_found, unreachable, refused (publisher not trusted),
// verification (wrong bytes), out_of_date, failed, malformed, interrupted. Whatever happens,
// nothing wrong or incomplete becomes visible in the cache, and the next call resumes what has
// arrived.
//
// Thread-safe: calls of several threads wait for each other. Several clients, and other processes,
// can use one cache at the same time.
class TWINKLE_API Client {
public:
    using Request = KernelRequest;

    explicit Client(ClientOptions options = {});
    ~Client();
    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;

    // The build that the target uses, followed by its dependencies. A build in the cache is not
    // downloaded again. Without a network: an exact version or revision that was fetched
    // before.
    std::vector<FetchedKernel> get(const std::string& repo_id, const KernelRequest& request = {});

    // Is there a build for the target's own backend, as has_kernel in Python asks? False also if
    // there is no such repository or version. Like get(), it refuses a publisher that is not
    // trusted.
    bool has(const std::string& repo_id, const KernelRequest& request = {});

    // A project is a folder with twinkle.toml or pyproject.toml. Returns the lock's path.
    std::filesystem::path lock(const std::filesystem::path& project,
                               const LockOptions& options = {});
    std::vector<FetchedKernel> fetch(const std::filesystem::path& project,
                                     const FetchOptions& options = {});

    // Callable from any thread: the running call ends with Error(interrupted).
    void cancel();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace twinkle::hub
