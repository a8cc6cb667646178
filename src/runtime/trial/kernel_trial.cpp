#include "runtime/trial/kernel_trial.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "protocol/error_json.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/gpu_code.h"
#include "runtime/kernels/op_library.h"
#include "runtime/kernels/own_system.h"
#include "runtime/trial/child_error.h"
#include "runtime/trial/sandbox.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

using base::Json;

constexpr std::size_t most_operators = 10000;

[[noreturn]] void refuse(const MappedKernel& kernel, const std::string& why) {
    throw Error(ErrorCode::refused,
                {.what = "the library of the kernel " + kernel.name + " cannot be loaded",
                 .where = base::display_path(kernel.path),
                 .why = why + " while it was loaded, in a child process",
                 .hint = "the build is broken or not for this machine; `twinkle versions` shows "
                         "which fit"});
}

// Runs in the child.
void load_and_tell(const MappedKernel& kernel, SealedCode& code, const child::Send& send) {
    try {
        open_op_libraries(kernel, std::move(code));
    } catch (const Error& error) {
        send(base::json_line({{"error", protocol::to_json(error)}}));
        return;
    }
    for (const OperatorFacts& facts : operators_of(kernel.op_namespace)) {
        send(base::json_line({{"operator", to_json(facts)}}));
    }
}

// What a child says of the libraries: each line is an operator of the namespace, or an error.
class Hearing {
public:
    explicit Hearing(const MappedKernel& kernel) : kernel_(kernel) {}

    void take(std::string_view line) {
        const Json said = base::parse_json(line, "kernel");
        if (const auto error = said.find("error"); error != said.end()) {
            error_ = error_of_child(*error);
        } else if (operators.size() < most_operators) {
            add(said.at("operator"));
        }
    }

    void rethrow() const {
        if (error_) {
            ErrorDetails details = error_->details();
            details.where = base::display_path(kernel_.path);
            throw Error(error_->code(), std::move(details));
        }
    }

    void require_mapped_operators() const {
        for (const MappedOperator& op : kernel_.operators) {
            if (std::none_of(operators.begin(), operators.end(),
                             [&](const auto& one) { return one.name == op.name; })) {
                refuse(kernel_, "it registers no operator " + base::printable(op.name) +
                                    ", which is in its library,");
            }
        }
    }

    std::vector<OperatorFacts> operators;

private:
    // A schema that cannot be written down is taken from the mapping, if that has it.
    void add(const Json& json) {
        if (auto facts = operator_facts(json)) {
            operators.push_back(*std::move(facts));
            return;
        }
        Json known = json;
        const auto found = std::find_if(
            kernel_.operators.begin(), kernel_.operators.end(),
            [&](const MappedOperator& op) { return known.value("name", "") == op.name; });
        if (found != kernel_.operators.end()) {
            known["schema"] = found->schema;
            if (auto facts = operator_facts(known)) {
                operators.push_back(*std::move(facts));
            }
        }
    }

    const MappedKernel& kernel_;
    std::optional<Error> error_;
};

// Loads the libraries in a child and keeps what it says.
Hearing hear(const MappedKernel& kernel, VerifiedFiles& files) {
    Hearing hearing(kernel);
    if (files.code.empty()) {
        return hearing;
    }
    const auto outcome = run_in_sandbox(
        SandboxLimits::for_loading(),
        [&](const child::Send& send) { load_and_tell(kernel, files.code, send); },
        [&](std::string_view line) { hearing.take(line); });
    if (!outcome.finished) {
        refuse(kernel, outcome.why);
    }
    hearing.rethrow();
    return hearing;
}

VerifiedFiles checked_files(const MappedKernel& kernel) {
    require_own_system(kernel);
    require_gpu_code(kernel);
    return read_verified(kernel);
}

}  // namespace

std::shared_ptr<const LoadedKernel> try_kernel(const MappedKernel& kernel) {
    if (auto known = tried_kernel(kernel.build_id())) {
        return known;
    }
    VerifiedFiles files = checked_files(kernel);
    const Hearing hearing = hear(kernel, files);
    if (!files.code.empty()) {
        hearing.require_mapped_operators();
    }
    return declare_tried(kernel, std::move(files), hearing.operators);
}

std::vector<OperatorFacts> registered_operators(const MappedKernel& kernel) {
    VerifiedFiles files = checked_files(kernel);
    return hear(kernel, files).operators;
}

}  // namespace twinkle::runtime
