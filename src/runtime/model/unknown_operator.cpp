#include "runtime/model/unknown_operator.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <map>

namespace twinkle::runtime {

namespace {

struct Explanation {
    std::string why, hint;
};

// Operators in Python, which no kernel has.
const std::map<std::string, Explanation> known_of_python = {
    {"transformers::grouped_mm_fallback",
     {"transformers computes it in Python, for experts in float32",
      "make the model again: after model.set_experts_implementation(\"batched_mm\"), or in "
      "bfloat16"}},
};

const Explanation of_a_kernel = {
    "LibTorch does not have it, and no kernel that is loaded defines it",
    "name the folder of its kernel with --kernels or TWINKLE_KERNELS; one of the Hub: `twinkle "
    "add` it, then `twinkle fetch`"};

}  // namespace

void refuse_unknown_operator(const std::string& name, const std::string& where) {
    const auto known = known_of_python.find(name);
    const Explanation& explanation = known == known_of_python.end() ? of_a_kernel : known->second;
    throw Error(ErrorCode::not_found,
                {.what = "the model needs the operator " + base::printable(name),
                 .where = where,
                 .why = explanation.why,
                 .hint = explanation.hint});
}

}  // namespace twinkle::runtime
