#include "runtime/proof/bound_call.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/source/compile_report.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Kind = ParameterSource::Kind;

class Call {
public:
    Call(const Region& region, const Substitute& substitute, const CallBinding& binding)
        : region_(region),
          substitute_(substitute),
          binding_(binding),
          scalars_(scalars_of(region)),
          range_(std::make_shared<jit::Source>(substitute.name, "call", 1), 0,
                 substitute.name.size()) {}

    tl::expected<std::shared_ptr<jit::Graph>, std::string> graph() {
        for (const jit::Value* input : region_.inputs) {
            inputs_.push_back(graph_->addInput()->setType(c10::unshapedType(input->type())));
        }
        jit::Value* out = nullptr;
        if (binding_.out) {
            out = make_like(*graph_, *binding_.out, inputs_.at(binding_.out->argument));
        }
        jit::Value* result = call(out);
        if (auto problem = wrong_effects(out)) {
            return tl::make_unexpected(*problem);
        }
        give(out != nullptr ? out : result);
        return graph_;
    }

private:
    jit::Value* call(jit::Value* out) {
        std::vector<jit::NamedValue> positional;
        std::vector<jit::NamedValue> named;
        if (out != nullptr) {
            positional.emplace_back(range_, out);
        }
        const std::size_t skipped = positional.size();
        for (std::size_t i = 0; i < binding_.sources.size(); ++i) {
            const ParameterSource& source = binding_.sources[i];
            if (source.kind == Kind::omitted) {
                continue;
            }
            const SubstituteParameter& parameter = substitute_.parameters.at(skipped + i);
            jit::Value* value = source.kind == Kind::input
                                    ? inputs_.at(source.index)
                                    : graph_->insertConstant(scalars_.at(source.index));
            if (positional.size() == skipped + i && !parameter.keyword_only) {
                positional.emplace_back(range_, value);
            } else {
                named.emplace_back(range_, parameter.name, value);
            }
        }
        jit::GraphFunction body(c10::QualifiedName("__torch__.twinkle_functions.body"), graph_,
                                nullptr);
        return substitute_.value->call(range_, body, positional, named, 1)->asValue(range_, body);
    }

    // Traced code in a region has no effects, so the call must have none.
    std::optional<std::string> wrong_effects(const jit::Value* out) const {
        const auto written = written_roots(graph_->block());
        if (out != nullptr && !written.contains(out)) {
            return "it does not write into its first argument";
        }
        const bool input = std::any_of(inputs_.begin(), inputs_.end(), [&](const jit::Value* one) {
            return written.contains(one);
        });
        return input ? std::optional<std::string>("it writes into what it is given") : std::nullopt;
    }

    void give(jit::Value* result) {
        std::vector<jit::Value*> all{result};
        if (!binding_.results.empty() && result->type()->kind() == c10::TypeKind::TupleType) {
            const auto unpacked = graph_->insertNode(graph_->createTupleUnpack(result))->outputs();
            all.assign(unpacked.begin(), unpacked.end());
        }
        const bool list = is_list_of_tensors(result->type()) && !gives_list(region_);
        std::vector<jit::Value*> wanted;
        for (const auto& which : binding_.results) {
            if (which && list) {
                wanted.push_back(graph_->insert(c10::aten::__getitem__,
                                                {result, static_cast<std::int64_t>(*which)}));
            } else if (which) {
                wanted.push_back(all.at(*which));
            }
        }
        if (wanted.empty()) {
            graph_->registerOutput(result);
        } else {
            graph_->registerOutput(wanted.size() == 1
                                       ? wanted[0]
                                       : graph_->insertNode(graph_->createTuple(wanted))->output());
        }
    }

    const Region& region_;
    const Substitute& substitute_;
    const CallBinding& binding_;
    std::vector<c10::IValue> scalars_;
    jit::SourceRange range_;
    std::shared_ptr<jit::Graph> graph_ = std::make_shared<jit::Graph>();
    std::vector<jit::Value*> inputs_;
};

}  // namespace

tl::expected<std::shared_ptr<jit::Graph>, std::string> graph_of(const Region& region,
                                                                const Substitute& substitute,
                                                                const CallBinding& binding) {
    try {
        substitute.begin();
        return Call(region, substitute, binding).graph();
    } catch (const std::exception& error) {
        return tl::make_unexpected(compile_report(error));
    }
}

Region bound_part(Region region, const CallBinding& binding) {
    std::vector<jit::Value*> given;
    for (std::size_t i = 0; i < region.results.size(); ++i) {
        (binding.results.at(i) ? given : region.leaks).push_back(region.results[i]);
    }
    region.results = std::move(given);
    return region;
}

}  // namespace twinkle::runtime
