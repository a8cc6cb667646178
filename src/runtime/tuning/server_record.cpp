#include "runtime/tuning/server_record.h"

#include "base/file.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"
#include "runtime/model/inputs.h"
#include "runtime/model/labels.h"
#include "runtime/model/marker.h"
#include "tuning/record_file.h"
#include "twinkle/error.h"

#include <ATen/record_function.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace {

constexpr std::size_t most_lines = 10'000;  // of one process
constexpr std::size_t most_seen = 100'000;  // shapes that a thread knows

struct ServerRecord {
    std::mutex mutex;
    std::atomic<std::uint64_t> generation = 0;
    std::optional<tuning::RecordFile> file;
    std::unordered_set<std::string> lines;
    at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
};

ServerRecord& server_record() {
    static auto& record = *new ServerRecord;  // threads may call models while the process ends
    return record;
}

// Once in a process: a server is not to be told with each call.
void say(const std::string& what) {
    static std::atomic_flag said;
    if (!said.test_and_set()) {
        std::fprintf(stderr, "twinkle: %s\n", what.c_str());
    }
}

// `generation`: of the recording that has seen the call begin; none: the current one. A later one
// has another file.
void note(const std::string& line, std::optional<std::uint64_t> generation = std::nullopt) {
    ServerRecord& record = server_record();
    const std::scoped_lock lock(record.mutex);
    if (generation && *generation != record.generation) {
        return;
    }
    if (!record.file || record.lines.size() >= most_lines || !record.lines.insert(line).second) {
        return;
    }
    if (const std::string problem = record.file->append(line); !problem.empty()) {
        say("calls are recorded no more in " + base::display_path(record.file->file()) + ": " +
            problem);
        record.file.reset();
    }
}

bool has_marker(torch::jit::Function& method) {
    auto* compiled = torch::jit::tryToGraphFunction(method);
    return compiled != nullptr && is_marked(*compiled->graph());
}

// A class by its address, which another one may have later.
class KernelizedClasses {
public:
    bool contains(const c10::ivalue::Object& model, const char* method) {
        const auto type = model.type();
        const auto known = known_.find(type.get());
        if (known != known_.end() && known->second.type.lock() == type) {
            return known->second.kernelized;
        }
        auto* function = type->findMethod(method);
        const bool kernelized = function != nullptr && (has_labels(*type) || has_marker(*function));
        known_.insert_or_assign(type.get(), Known{type, kernelized});
        return kernelized;
    }

private:
    struct Known {
        std::weak_ptr<const c10::ClassType> type;
        bool kernelized = false;
    };
    std::unordered_map<const void*, Known> known_;
};

void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
}

// A size as what tells calls apart: the width of numbers, all else in powers of two.
std::int64_t told_apart(const at::Tensor& tensor, std::int64_t dim) {
    const std::int64_t size = tensor.size(dim);
    return dim + 1 == tensor.dim() && tensor.is_floating_point() ? size : size_bucket(size);
}

using Arguments = c10::ArrayRef<const c10::IValue>;

// What is nested too deeply to be repeated is like any other value that is no input. `depth`: how
// many tuples and lists hold it.
void mix_value(std::uint64_t& hash, const c10::IValue& value, int depth) {
    if ((value.isTuple() || value.isTensorList()) && depth < deepest_input) {
        const auto parts =
            value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
        mix(hash, value.isTuple() ? 3 : 4);
        for (const c10::IValue& part : parts) {
            mix_value(hash, part, depth + 1);
        }
        mix(hash, 5);
    } else if (!value.isTensor() || !value.toTensor().defined()) {
        mix(hash, value.isNone() ? 1 : 2);
    } else {
        const at::Tensor& tensor = value.toTensor();
        mix(hash, 16 + static_cast<std::uint64_t>(tensor.scalar_type()));
        for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
            mix(hash, static_cast<std::uint64_t>(told_apart(tensor, dim)));
        }
    }
}

std::uint64_t hash_of(const void* type, Arguments arguments) {
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(type);
    for (const c10::IValue& value : arguments) {
        mix_value(hash, value, 0);
    }
    return hash;
}

tuning::RecordedRun described(const c10::ivalue::Object& model, Arguments arguments) {
    while (!arguments.empty() && arguments.back().isNone()) {  // left out
        arguments = arguments.slice(0, arguments.size() - 1);
    }
    tuning::RecordedRun run{unmangled(model.name()), "", ""};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto text = description_of(arguments[i]);
        if (!text) {
            run.inputs.clear();
            run.unfit = fmt::format(
                "input {} is {}, not a tensor, nor a tuple or list of tensors up to {} deep", i + 1,
                arguments[i].tagKind(), deepest_input);
            return run;
        }
        run.inputs += (i == 0 ? "" : ";") + *text;
    }
    if (run.inputs.empty()) {
        run.unfit = "it has no inputs";
    }
    return run;
}

// The calls that a thread knows, by hash_of().
std::unordered_set<std::uint64_t>& seen_calls() {
    thread_local std::uint64_t generation = 0;
    thread_local std::unordered_set<std::uint64_t> seen;
    const std::uint64_t now = server_record().generation.load(std::memory_order_acquire);
    if (generation != now || seen.size() >= most_seen) {
        generation = now;
        seen.clear();
    }
    return seen;
}

// A call of a new kind. It is described before it runs, which may change its inputs, and noted when
// it has returned without an exception. An asynchronous one returns before it is done.
struct NewCall : at::ObserverContext {
    std::uint64_t generation = 0;
    std::uint64_t hash = 0;
    std::string line;
    int exceptions = std::uncaught_exceptions();
};

std::unique_ptr<at::ObserverContext> see_call(const at::RecordFunction& function) {
    const Arguments arguments = function.inputs();
    if (arguments.empty() || !arguments.front().isObject()) {
        return nullptr;
    }
    thread_local KernelizedClasses classes;
    const c10::ivalue::Object& model = arguments.front().toObjectRef();
    if (!classes.contains(model, function.name())) {
        return nullptr;
    }
    const std::uint64_t generation = server_record().generation.load(std::memory_order_acquire);
    const std::uint64_t hash = hash_of(model.type().get(), arguments.slice(1));
    if (!seen_calls().insert(hash).second) {
        return nullptr;
    }
    auto call = std::make_unique<NewCall>();
    call->generation = generation;
    call->hash = hash;
    call->line = record_line(described(model, arguments.slice(1)));
    return call;
}

void see_end(const at::RecordFunction&, at::ObserverContext* context) {
    const auto* call = static_cast<const NewCall*>(context);
    if (call == nullptr) {
        return;
    }
    if (std::uncaught_exceptions() > call->exceptions) {
        seen_calls().erase(call->hash);  // another one of its kind may succeed
        return;
    }
    note(call->line, call->generation);
}

std::atomic<bool> left_off = false;

}  // namespace

void begin_record(const std::filesystem::path& file) {
    ServerRecord& record = server_record();
    const std::scoped_lock lock(record.mutex);
    if (record.file) {
        throw Error(ErrorCode::refused,
                    {.what = "calls are recorded already",
                     .where = base::display_path(record.file->file()),
                     .why = "a process has one record at a time",
                     .hint = "TWINKLE_RECORD names another file, or a recording still lives"});
    }
    record.file.emplace(file);
    record.lines.clear();
    ++record.generation;
    if (record.callback == at::INVALID_CALLBACK_HANDLE) {
        record.callback =
            at::addGlobalCallback(at::RecordFunctionCallback(see_call, see_end)
                                      .needsInputs(true)
                                      .scopes({at::RecordScope::TORCHSCRIPT_FUNCTION}));
    }
}

void end_record() {
    ServerRecord& record = server_record();
    const std::scoped_lock lock(record.mutex);
    record.file.reset();
    if (record.callback != at::INVALID_CALLBACK_HANDLE) {
        at::removeCallback(record.callback);
        record.callback = at::INVALID_CALLBACK_HANDLE;
    }
}

bool is_recorded_to_file() {
    ServerRecord& record = server_record();
    const std::scoped_lock lock(record.mutex);
    return record.file.has_value();
}

void note_in_record(const Invocation& invocation) {
    note(tuning::record_line(invocation));
}

void record_as_environment_says() {
    static const bool once = [] {
        const char* file = std::getenv("TWINKLE_RECORD");
        if (left_off || file == nullptr || *file == '\0') {
            return false;
        }
        try {
            begin_record(file);
        } catch (const Error& error) {
            say(Error::format(error.details()));
        }
        return true;
    }();
    static_cast<void>(once);
}

void leave_records_off() {
    left_off = true;
}

}  // namespace twinkle::runtime
