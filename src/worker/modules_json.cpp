#include "worker/modules_json.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"

namespace twinkle::worker {

namespace {

constexpr std::size_t most_modules = 20000;
constexpr std::size_t longest_path = 1000;

}  // namespace

base::Json modules_json(const torch::jit::Module& model) {
    base::Json list = base::Json::array();
    for (const auto& one : model.named_modules()) {
        if (list.size() == most_modules) {
            break;
        }
        if (one.name.size() > longest_path || !one.value.type()->name()) {
            continue;
        }
        list.push_back({{"path", base::printable(one.name)},
                        {"class", base::printable(runtime::unmangled(
                                      one.value.type()->name()->qualifiedName()))}});
    }
    return list;
}

}  // namespace twinkle::worker
