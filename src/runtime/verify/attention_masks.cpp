#include "runtime/verify/attention_masks.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/script.h>

#include <memory>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t query_at = 0, mask_at = 3;

jit::Graph& converted_mask() {
    static const std::shared_ptr<jit::CompilationUnit> unit = [] {
        auto made = std::make_shared<jit::CompilationUnit>();
        made->define(std::nullopt, R"(
def converted_mask(query: Tensor, mask: Optional[Tensor]) -> Optional[Tensor]:
    if mask is not None and mask.is_floating_point():
        mask = mask.to(query.dtype)
    return mask
)",
                     jit::nativeResolver(), nullptr);
        return made;
    }();
    return *jit::toGraphFunction(unit->get_function("converted_mask")).graph();
}

}  // namespace

bool is_masked_attention(const jit::Node* node) {
    static const auto kind = c10::Symbol::fromQualString("aten::scaled_dot_product_attention");
    return node->kind() == kind && node->inputs().size() > mask_at &&
           node->input(mask_at)->type()->kind() != c10::TypeKind::NoneType;
}

void convert_mask(jit::Node* attention) {
    const jit::WithInsertPoint before(attention);
    const auto results = jit::insertGraph(*attention->owningGraph(), converted_mask(),
                                          {attention->input(query_at), attention->input(mask_at)});
    attention->replaceInput(mask_at, results.at(0));
}

}  // namespace twinkle::runtime
