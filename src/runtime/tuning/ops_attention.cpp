// Scaled dot product attention. Its gradients are LibTorch's, of its own way.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

#include <cmath>

namespace twinkle::ops {

namespace {

using runtime::ExactSizes;
using runtime::PackOperation;

// Rows, keys and width count as they are: they belong together.
using Sizes = ExactSizes<3>;

Tensor plain_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Maybe& mask, const double& scale, const bool& causal,
                       const bool& grouped, const Sizes&) {
    return at::scaled_dot_product_attention(query, key, value, mask, 0, causal, scale, grouped);
}

using Attention = PackOperation<Tensor(Tensor, Tensor, Tensor, Maybe, double, bool, bool, Sizes)>;

const Attention& attention_operation() {
    static const Attention operation("attention", plain_attention, nullptr);
    return operation;
}

// All as large as they were.
void fit_attention(Attention::Arguments& arguments) {
    auto& [query, key, value, mask, scale, causal, grouped, sizes] = arguments;
    const auto fitted = [&](const Tensor& one, std::int64_t rows) {
        return runtime::narrowed(runtime::narrowed(one, -2, rows), -1, sizes[2]);
    };
    query = fitted(query, sizes[0]);
    key = fitted(key, sizes[1]);
    value = fitted(value, sizes[1]);
    if (mask) {
        const std::int64_t rows = mask->size(-2) == 1 ? 1 : sizes[0];
        mask = runtime::narrowed(runtime::narrowed(*mask, -2, rows), -1, sizes[1]);
    }
}

}  // namespace

void list_attention(TuneTable& table) {
    list(table, attention_operation(), fit_attention);
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& how) {
    const double width = static_cast<double>(query.size(-1));
    const Sizes sizes = {query.size(-2), key.size(-2), query.size(-1)};
    const bool grouped = query.dim() == 4 && key.dim() == 4 && query.size(1) != key.size(1);
    return executor()(attention_operation(), query, key, value, how.mask,
                      how.scale.value_or(1 / std::sqrt(width)), how.causal, grouped, sizes);
}

}  // namespace twinkle::ops
