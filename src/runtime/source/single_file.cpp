#include "runtime/source/single_file.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

std::string module_name_of(const std::string& file) {
    const std::string stem = file.substr(0, file.find('.'));
    const bool plain = !stem.empty() && std::all_of(stem.begin(), stem.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
    });
    return plain ? stem : "source";
}

std::map<std::string, std::string> single_file_package(const std::string& file,
                                                       const std::string& text) {
    return {{"__init__.py", ""}, {module_name_of(file) + ".py", text}};
}

}  // namespace twinkle::runtime
