#include "runtime/inspect/loaded_library.h"
#include "base/json.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "base/unique_fd.h"
#include "runtime/kernels/op_library.h"
#include "runtime/kernels/operator_facts.h"
#include "runtime/trial/sandbox.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/script.h>

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace twinkle::runtime {

using base::Json;

namespace {

struct ByName {
    bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
        return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
    }
};
using OperatorKeys = std::map<c10::OperatorName, std::set<c10::DispatchKey>, ByName>;

constexpr std::size_t longest_output = 4096;
constexpr std::size_t most_listed = 2000;

std::string name_of(const c10::OperatorName& name) {
    return base::printable(name.overload_name.empty() ? name.name
                                                      : name.name + "." + name.overload_name);
}

// Every operator with the dispatch keys that it has kernels for.
OperatorKeys registered_operators() {
    OperatorKeys found;
    const auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(std::nullopt)) {
        found[name];
    }
    for (auto key = static_cast<int>(c10::DispatchKey::Undefined) + 1;
         key <= static_cast<int>(c10::DispatchKey::EndOfAliasKeys); ++key) {
        const auto dispatch_key = static_cast<c10::DispatchKey>(key);
        for (const c10::OperatorName& name :
             dispatcher.getRegistrationsForDispatchKey(dispatch_key)) {
            found[name].insert(dispatch_key);
        }
    }
    return found;
}

// State of the process that loading a library must not change.
struct ProcessState {
    unsigned float_control = 0;
    int rounding = 0;
    std::size_t threads = 0;
    int torch_threads = 0;
    std::string folder;
    std::map<int, void*> handlers;

    static ProcessState now() {
        ProcessState state;
#if defined(__SSE__)
        state.float_control = _mm_getcsr() & 0xffc0u;  // without the flags of past operations
#endif
        state.rounding = std::fegetround();
        std::error_code ignored;
        for (std::filesystem::directory_iterator it("/proc/self/task", ignored), end; it != end;
             it.increment(ignored)) {
            ++state.threads;
        }
        state.torch_threads = at::get_num_threads();
        state.folder = std::filesystem::current_path(ignored).string();
        for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGPIPE,
                                 SIGCHLD, SIGUSR1, SIGUSR2}) {
            struct sigaction action{};
            ::sigaction(signal, nullptr, &action);
            state.handlers[signal] = reinterpret_cast<void*>(action.sa_handler);
        }
        return state;
    }
};

std::vector<std::string> differences(const ProcessState& before, const ProcessState& after) {
    std::vector<std::string> found;
    if (before.float_control != after.float_control) {
        found.emplace_back(
            "it changes how the process computes with floating point (denormals become zero, as "
            "-ffast-math does): other results in every model");
    }
    if (before.rounding != after.rounding) {
        found.emplace_back("it changes the rounding mode of the process");
    }
    if (before.threads < after.threads) {
        found.push_back(fmt::format("it starts {} threads", after.threads - before.threads));
    }
    if (before.torch_threads != after.torch_threads) {
        found.push_back(fmt::format("it changes LibTorch's number of threads from {} to {}",
                                    before.torch_threads, after.torch_threads));
    }
    if (before.folder != after.folder) {
        found.emplace_back("it changes the current folder of the process");
    }
    for (const auto& [signal, handler] : before.handlers) {
        if (after.handlers.at(signal) != handler) {
            found.push_back(fmt::format("it takes over signal {}", signal));
        }
    }
    return found;
}

// "result 0 is x", "result 0 is a view of x"
std::vector<std::string> aliases(const c10::FunctionSchema& schema) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < schema.returns().size(); ++i) {
        const auto* result = schema.returns()[i].alias_info();
        for (const c10::Argument& argument : schema.arguments()) {
            const auto* info = argument.alias_info();
            if (result == nullptr || info == nullptr) {
                continue;
            }
            const auto& sets = info->beforeSets();
            const bool shared =
                std::any_of(result->beforeSets().begin(), result->beforeSets().end(),
                            [&](const c10::Symbol& set) { return sets.contains(set); });
            if (shared) {
                found.push_back(fmt::format("result {} is {}{}", i,
                                            info->isWrite() ? "" : "a view of ", argument.name()));
            }
        }
    }
    return found;
}

Json describe(const c10::OperatorName& name, const std::set<c10::DispatchKey>& keys,
              const LibraryLoad& load) {
    Json key_names = Json::array();
    for (const c10::DispatchKey key : keys) {
        key_names.push_back(c10::toString(key));
    }
    Json entry = {{"name", name_of(name)},    {"schema", nullptr},
                  {"keys", key_names},        {"mutates", Json::array()},
                  {"aliases", Json::array()}, {"found_statically", false},
                  {"declaration", nullptr}};
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) {
        return entry;
    }
    std::ostringstream text;
    text << op->schema();
    entry["schema"] = base::printable(text.str());
    entry["declaration"] = base::printable(declaration_of(op->schema()));
    for (const c10::Argument& argument : op->schema().arguments()) {
        if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
            entry["mutates"].push_back(base::printable(argument.name()));
        }
    }
    entry["aliases"] = aliases(op->schema());
    const std::string own = name_of(name);
    entry["found_statically"] = std::any_of(
        load.static_operators.begin(), load.static_operators.end(), [&](const std::string& one) {
            return own.substr(own.find("::") + 2) == one.substr(0, one.find('('));
        });
    return entry;
}

void send_problem(const Send& send, const std::string& text) {
    send(base::json_line({{"problem", base::printable(text)}}));
}

// Sends the operators that are new or have new keys.
void send_registrations(const OperatorKeys& before, const LibraryLoad& load, const Send& send) {
    std::size_t listed = 0;
    std::set<std::string> namespaces;
    for (const auto& [name, keys] : registered_operators()) {
        const auto known = before.find(name);
        if (known == before.end()) {
            namespaces.insert(name.getNamespace() ? std::string(*name.getNamespace()) : "");
            if (listed++ < most_listed) {
                send(base::json_line({{"operator", describe(name, keys, load)}}));
            }
            if (!c10::Dispatcher::singleton().findSchema(name)) {
                send_problem(send, name_of(name) + " has kernels, but is not defined");
            } else if (keys.empty()) {
                send_problem(send, name_of(name) + " is defined, but has no kernel");
            }
            continue;
        }
        std::vector<std::string> added;
        for (const c10::DispatchKey key : keys) {
            if (!known->second.contains(key)) {
                added.emplace_back(c10::toString(key));
            }
        }
        if (!added.empty()) {
            send_problem(send, fmt::format("it adds kernels to {}, which is not its own: {}",
                                           name_of(name), fmt::join(added, ", ")));
        }
    }
    for (const std::string& one : namespaces) {
        if (!load.op_namespace.empty() && one != load.op_namespace) {
            send_problem(send,
                         fmt::format("it registers operators in the namespace {}; its metadata "
                                     "say {}",
                                     one, load.op_namespace));
        }
    }
    if (namespaces.empty()) {
        send_problem(send, "it registers no operator");
    }
}

// Captures everything written to stdout and stderr from here on.
class CapturedOutput {
public:
    CapturedOutput() : memory_(::memfd_create("output", MFD_CLOEXEC)) {
        if (memory_) {
            ::dup2(memory_.get(), STDOUT_FILENO);
            ::dup2(memory_.get(), STDERR_FILENO);
        }
    }

    std::string text() const {
        std::string text(longest_output, '\0');
        const ssize_t size = memory_ ? ::pread(memory_.get(), text.data(), text.size(), 0) : 0;
        text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        return base::printable(text);
    }

private:
    base::UniqueFd memory_;
};

void load_in_child(const LibraryLoad& load, const Send& send) {
    provide_python_symbol();
    const OperatorKeys before = registered_operators();
    const ProcessState state = ProcessState::now();
    const CapturedOutput output;
    for (const auto& library : load.libraries) {
        if (::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
            const char* why = ::dlerror();
            send(base::json_line({{"failed", base::printable(why != nullptr ? why : "")}}));
            return;
        }
    }
    for (const std::string& text : differences(state, ProcessState::now())) {
        send_problem(send, text);
    }
    send_registrations(before, load, send);
    std::fflush(nullptr);
    send(base::json_line({{"output", output.text()}}));
}

}  // namespace

Json examine_load(const LibraryLoad& load) {
    Json result = {{"ok", true},
                   {"why", nullptr},
                   {"operators", Json::array()},
                   {"problems", Json::array()},
                   {"output", ""}};
    SandboxLimits limits = SandboxLimits::for_loading();
    for (const auto& library : load.libraries) {  // and those beside it, which it may need
        limits.confinement.readable.push_back(library);
        const auto files = child::libraries_in(library.parent_path());
        limits.confinement.readable.insert(limits.confinement.readable.end(), files.begin(),
                                           files.end());
    }
    const auto outcome = run_in_sandbox(
        limits, [&](const Send& send) { load_in_child(load, send); },
        [&](std::string_view line) {
            // The child is untrusted: a line of the wrong shape is dropped.
            const Json said = Json::parse(line, nullptr, /*allow_exceptions=*/false);
            if (!said.is_object() || said.size() != 1) {
                return;
            }
            const std::string& key = said.begin().key();
            const Json& value = said.begin().value();
            if (key == "operator" && value.is_object()) {
                result["operators"].push_back(value);
            } else if (key == "problem" && value.is_string()) {
                result["problems"].push_back(value);
            } else if (key == "output" && value.is_string()) {
                result["output"] = value;
            } else if (key == "failed" && value.is_string()) {
                result["ok"] = false;
                result["why"] = value;
            }
        });
    if (!outcome.finished) {
        result["ok"] = false;
        result["why"] = outcome.why + " while it was loaded, in a child process";
    }
    return result;
}

}  // namespace twinkle::runtime
