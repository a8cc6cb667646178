#include "twinkle/executor.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <atomic>

namespace twinkle {

namespace {

std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

// A per-thread cache. Two choices with the same slot evict each other and are looked up again.
class QuickTable {
public:
    struct Place {
        std::uint64_t executor = 0;  // 0: free
        std::uint64_t operation = 0;
        std::uint64_t version = 0;
        detail::CallKey key;
        std::shared_ptr<const void> cfg;
    };

    Place& place(std::uint64_t executor, std::uint64_t operation, const detail::CallKey& key) {
        const std::uint64_t mixed =
            (key.hash() ^ (operation * 0x9E3779B97F4A7C15ULL)) + executor * 0x632BE59BD9B4E019ULL;
        return places_[mixed >> (64 - digits)];
    }

private:
    static constexpr int digits = 8;
    std::vector<Place> places_ = std::vector<Place>(std::size_t{1} << digits);
};

QuickTable& quick_table() {
    thread_local QuickTable table;
    return table;
}

}  // namespace

const void* detail::quick_choice(std::uint64_t executor, std::uint64_t operation,
                                 std::uint64_t version, const CallKey& key) {
    const auto& place = quick_table().place(executor, operation, key);
    return place.executor == executor && place.operation == operation && place.version == version &&
                   place.key == key
               ? place.cfg.get()
               : nullptr;
}

void detail::remember_choice(std::uint64_t executor, std::uint64_t operation, std::uint64_t version,
                             const CallKey& key, std::shared_ptr<const void> cfg) {
    quick_table().place(executor, operation, key) = {executor, operation, version, key,
                                                     std::move(cfg)};
}

std::uint64_t detail::new_operation_id() {
    return next_number();
}

std::string_view detail::platform_of(const at::Tensor* first) {
    if (first == nullptr || first->is_cpu()) {
        return "cpu";
    }
    static const std::string gpu = get_device_platform(c10::kCUDA);
    if (first->is_cuda()) {
        return gpu;
    }
    get_device_platform(first->device());  // throws where it is neither
    return gpu;
}

void detail::no_code_for(const std::string& operation, std::string_view platform) {
    throw Error(ErrorCode::refused,
                {.what = "the operation does not run on " + std::string(platform),
                 .where = base::printable(operation),
                 .why = platform == "cpu" ? "it has neither run_cpu nor run"
                                          : "it has neither run_cuda nor run",
                 .hint = ""});
}

void detail::require_first_order(const std::string& operation) {
    if (at::GradMode::is_enabled()) {
        throw Error(ErrorCode::refused,
                    {.what = "there are no gradients of this operation's gradients",
                     .where = base::printable(operation),
                     .why = "they come from its vjp",
                     .hint = "without create_graph it can be differentiated once"});
    }
}

void detail::require_gradients(const std::string& operation, std::size_t given,
                               std::size_t wanted) {
    if (given != wanted) {
        throw Error(ErrorCode::malformed,
                    {.what = "vjp gave " + std::to_string(given) + " gradients",
                     .where = base::printable(operation),
                     .why = "its call has " + std::to_string(wanted) + " tensors",
                     .hint = "return one for each, undefined where there is none"});
    }
}

const std::string& detail::best_of(const std::string& operation, const Measurement& measurement) {
    if (measurement.best >= measurement.candidates.size()) {
        throw Error(ErrorCode::refused, {.what = "no configuration was measured",
                                         .where = base::printable(operation),
                                         .why = "the budget did not last for one",
                                         .hint = "allow more milliseconds"});
    }
    return measurement.candidates[measurement.best].cfg;
}

Executor::Executor() : Executor(ConfigSelectorChain()) {}

Executor::Executor(ConfigSelectorChain chain, ExecutorOptions options)
    : Executor(std::make_shared<ConfigSelectorChain>(std::move(chain)), std::move(options)) {}

Executor::Executor(std::shared_ptr<ConfigSelector> selector, ExecutorOptions options)
    : selector_(std::move(selector)), options_(std::move(options)), id_(next_number()) {}

std::string Executor::key_of(const Invocation& invocation) const {
    return options_.key_builder ? options_.key_builder(invocation)
                                : default_key_builder(invocation);
}

}  // namespace twinkle
