#include "binary/limited_api.h"

#include <set>

namespace twinkle::binary {

bool in_limited_api(std::string_view symbol) {
    static const auto& names = *[] {
        auto* all = new std::set<std::string_view>();
        std::string_view left = limited_api_names;
        for (auto end = left.find(' '); end != std::string_view::npos; end = left.find(' ')) {
            all->insert(left.substr(0, end));
            left.remove_prefix(end + 1);
        }
        return all;
    }();
    return names.contains(symbol);
}

}  // namespace twinkle::binary
