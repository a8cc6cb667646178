#include "runtime/verify/grouped_products.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/script.h>

#include <memory>
#include <optional>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Rows of x up to ends[0] are multiplied by weight[0], the next ones up to ends[1] by weight[1], …;
// without ends each matrix of x by its own. 7 is float64.
jit::Graph& product_of_groups() {
    static const std::shared_ptr<jit::CompilationUnit> unit = [] {
        auto made = std::make_shared<jit::CompilationUnit>();
        made->define(std::nullopt, R"(
def grouped_mm(x: Tensor, weight: Tensor, ends: Optional[Tensor], bias: Optional[Tensor], out: Optional[int]) -> Tensor:
    if x.dtype == 7 and bias is None and weight.dim() == 3 and x.dim() == 3 and ends is None:
        y = torch.bmm(x, weight)
    elif x.dtype == 7 and bias is None and weight.dim() == 3 and x.dim() == 2 and ends is not None:
        y = torch.zeros([x.size(0), weight.size(2)], dtype=x.dtype, device=x.device)
        begin = 0
        for i in range(weight.size(0)):
            end = int(ends[i])
            y[begin:end] = torch.mm(x[begin:end], weight[i])
            begin = end
    else:
        y = torch._grouped_mm(x, weight, ends, bias, out)
    return y
)",
                     jit::nativeResolver(), nullptr);
        return made;
    }();
    return *jit::toGraphFunction(unit->get_function("grouped_mm")).graph();
}

}  // namespace

bool is_grouped_product(const jit::Node* node) {
    static const auto kind = c10::Symbol::fromQualString("aten::_grouped_mm");
    return node->kind() == kind && node->inputs().size() == 5;
}

void take_double(jit::Node* product) {
    const jit::WithInsertPoint before(product);
    const auto results =
        jit::insertGraph(*product->owningGraph(), product_of_groups(), product->inputs());
    product->output()->replaceAllUsesWith(results.at(0));
    product->destroy();
}

}  // namespace twinkle::runtime
