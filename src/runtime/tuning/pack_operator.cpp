#include "runtime/tuning/pack_operator.h"

#include "base/text.h"
#include "runtime/kernels/own_place.h"
#include "runtime/kernels/verified_files.h"
#include "tuning/declaration.h"
#include "twinkle/error.h"
#include "twinkle/kernel.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <string_view>

namespace twinkle::runtime {

namespace {

constexpr const char* implementation = "implementation";

// Loaded at the first use. Empty: it is not installed, or cannot be loaded here.
struct BundledPack {
    std::string op_namespace;
    std::string build_id;
    tuning::Declaration tuning;
};

tuning::Declaration declaration_of(const MappedKernel& build) {
    const auto text = read_verified_file(build, tuning::declaration_name);
    return text ? tuning::read_declaration(*text, tuning::declaration_name) : tuning::Declaration();
}

BundledPack load_pack() {
    try {
        const Kernel pack = get_local_kernel(bundled_kernels() / "twinkle-pack");
        return {pack.build().op_namespace, pack.build().build_id(), declaration_of(pack.build())};
    } catch (const Error&) {
        return {};  // LibTorch computes
    }
}

const BundledPack& bundled_pack() {
    static const BundledPack pack = load_pack();
    return pack;
}

bool is_served(const AbstractInput& input) {
    constexpr std::array<std::string_view, 4> dtypes{"float32", "bfloat16", "float16", "float64"};
    return input.layout.empty() ||
           (input.layout != "other" &&
            std::find(dtypes.begin(), dtypes.end(), input.dtype) != dtypes.end());
}

c10::IValue as_value(const CfgValue& value) {
    return std::visit([](const auto& given) { return c10::IValue(given); }, value);
}

[[noreturn]] void refuse_cfg(const CfgFields& cfg, const std::string& operation,
                             const std::string& why) {
    throw Error(ErrorCode::malformed, {.what = "a configuration does not fit its operation",
                                       .where = base::printable(operation),
                                       .why = why + ": " + base::printable(to_json(cfg)),
                                       .hint = ""});
}

}  // namespace

std::string pack_build() {
    return bundled_pack().build_id + " LibTorch " TORCH_VERSION;
}

CfgFields cfg_of(const char* who) {
    return {{implementation, std::string(who)}};
}

bool is_by_pack(const CfgFields& cfg) {
    const auto found = cfg.find(implementation);
    const auto* who = found != cfg.end() ? std::get_if<std::string>(&found->second) : nullptr;
    if (who == nullptr || (*who != by_pack && *who != by_libtorch)) {
        refuse_cfg(cfg, by_pack, "its implementation is neither twinkle-pack nor libtorch");
    }
    return *who == by_pack;
}

PackOperator::PackOperator(std::string name) : name_(std::move(name)) {
    const std::string& op_namespace = bundled_pack().op_namespace;
    if (op_namespace.empty()) {
        return;
    }
    handle_ = c10::Dispatcher::singleton().findSchema({op_namespace + "::" + name_, ""});
    if (!handle_) {
        return;
    }
    const c10::FunctionSchema& schema = handle_->schema();
    for (const c10::Argument& argument : schema.arguments()) {
        if (argument.kwarg_only() && argument.default_value()) {
            keywords_.push_back({argument.name(), *argument.default_value()});
        }
    }
    may_decline_ = schema.returns().at(0).type()->kind() == c10::TypeKind::OptionalType;
}

bool PackOperator::serves(const Invocation& invocation) const {
    const bool on_cpu = invocation.device == "cpu";
    return handle_ && (on_cpu || !may_decline_) &&
           std::all_of(invocation.inputs.begin(), invocation.inputs.end(), is_served) &&
           handle_->hasKernelForDispatchKey(on_cpu ? c10::DispatchKey::CPU
                                                   : c10::DispatchKey::CUDA);
}

CfgFields PackOperator::usual(const Invocation& invocation) const {
    return cfg_of(serves(invocation) ? by_pack : by_libtorch);
}

std::vector<CfgFields> PackOperator::configurations(const Invocation& invocation) const {
    if (!serves(invocation)) {
        return {cfg_of(by_libtorch)};
    }
    std::vector<CfgFields> all = {cfg_of(by_pack)};
    const auto* declared = bundled_pack().tuning.find(name_);
    if (declared != nullptr && declared->forward) {
        const auto properties = declared->properties_of(invocation, at::get_num_threads());
        for (const base::Json& values : declared->forward->configurations(properties)) {
            CfgFields cfg = other_than_usual(fields_from_json(base::json_line(values)));
            if (!cfg.empty()) {
                cfg.merge(cfg_of(by_pack));
                all.push_back(std::move(cfg));
            }
        }
    }
    all.push_back(cfg_of(by_libtorch));
    return all;
}

CfgFields PackOperator::other_than_usual(CfgFields values) const {
    std::erase_if(values, [&](const auto& value) {
        return std::none_of(keywords_.begin(), keywords_.end(), [&](const Keyword& keyword) {
            return keyword.name == value.first && as_value(value.second) != keyword.value;
        });
    });
    return values;
}

void PackOperator::run(const CfgFields& cfg, torch::jit::Stack& stack) const {
    if (!handle_) {
        throw Error(ErrorCode::not_found, {.what = "the bundled kernels do not compute this",
                                           .where = name_,
                                           .why = "they are not installed, or lack the operator",
                                           .hint = ""});
    }
    std::size_t taken = 1;  // "implementation"
    for (const Keyword& keyword : keywords_) {
        const auto given = cfg.find(keyword.name);
        stack.push_back(given != cfg.end() ? as_value(given->second) : keyword.value);
        taken += given != cfg.end() && stack.back().tagKind() == keyword.value.tagKind() ? 1 : 0;
    }
    if (taken != cfg.size()) {
        refuse_cfg(cfg, name_, "the operator has no such arguments");
    }
    handle_->callBoxed(&stack);
}

}  // namespace twinkle::runtime
