#include "twinkle/ops.h"

#include "base/text.h"
#include "runtime/tuning/ops_parts.h"
#include "twinkle/error.h"

namespace twinkle::ops {

ConfigSelectorChain& selector() {
    static ConfigSelectorChain chain;
    return chain;
}

const Executor& executor() {
    static const Executor executor(selector());
    return executor;
}

Measurement tune_recorded(const Invocation& invocation, const AutotuneOptions& options) {
    static const TuneTable all = [] {
        TuneTable table;
        for (const auto& add : {list_activations, list_norms, list_rotary, list_linear, list_images,
                                list_attention}) {
            add(table);
        }
        return table;
    }();
    const auto known = all.find(invocation.operation);
    if (known == all.end()) {
        throw Error(ErrorCode::not_found, {.what = "the operation is none of the bundled kernels",
                                           .where = base::printable(invocation.operation),
                                           .why = "only its own program has its code",
                                           .hint = "call autotune_recorded() there"});
    }
    return known->second(invocation, options);
}

}  // namespace twinkle::ops
