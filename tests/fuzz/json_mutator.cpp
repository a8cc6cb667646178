#include "json_mutator.h"

#include <vector>

#include "base/base64.h"
#include "base/json.h"

namespace twinkle::fuzz {
namespace {

using base::Json;

void collect(Json& value, std::vector<Json*>& leaves, int depth = 0) {
    if (depth > 20) {
        return;
    }
    if (value.is_structured()) {
        if (value.empty()) {
            leaves.push_back(&value);
        }
        for (auto& child : value) {
            collect(child, leaves, depth + 1);
        }
    } else {
        leaves.push_back(&value);
    }
}

std::string change_text(const std::string& text, std::mt19937& random, const MutateBytes& mutate) {
    const auto bytes = text.size() >= 8 ? base::from_base64(text) : std::nullopt;
    if (!bytes || random() % 8 == 0) {
        return mutate(text);
    }
    // The body of a log entry is JSON again.
    const bool nested = !bytes->empty() && bytes->front() == '{' && random() % 4 != 0;
    return base::to_base64(nested ? mutate_json(*bytes, random, mutate) : mutate(*bytes));
}

}  // namespace

std::string mutate_json(std::string_view bytes, std::mt19937& random, const MutateBytes& mutate) {
    Json document = Json::parse(bytes, nullptr, false);
    std::vector<Json*> leaves;
    if (!document.is_discarded()) {
        collect(document, leaves);
    }
    if (leaves.empty()) {
        return mutate(bytes);
    }
    Json& leaf = *leaves[random() % leaves.size()];
    switch (random() % 16) {
        case 0: leaf = *leaves[random() % leaves.size()]; break;
        case 1: leaf = nullptr; break;
        case 2: leaf = Json::array({leaf, leaf}); break;
        case 3: leaf = random() % 2 == 0 ? Json(static_cast<int>(random())) : Json::object(); break;
        default:
            leaf = leaf.is_string()
                       ? Json(change_text(leaf.get_ref<const std::string&>(), random, mutate))
                       : Json(mutate(leaf.dump()));
    }
    return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace twinkle::fuzz
