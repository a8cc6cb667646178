#include "runtime/source/compile_report.h"

#include "runtime/source/lowering.h"

#include "base/text.h"

namespace twinkle::runtime {

std::string compile_report(const std::string& text) {
    std::string message;
    std::string place;
    for (const std::string& line : base::split(text, '\n')) {
        const auto begin = line.find_first_not_of(' ');
        if (begin == std::string::npos) {
            continue;
        }
        const std::string trimmed = line.substr(begin);
        if (trimmed.starts_with("File \"")) {
            const auto quote = trimmed.find('"', 6);
            const auto number = trimmed.find("line ");
            if (quote != std::string::npos && number != std::string::npos) {
                place = trimmed.substr(6, quote - 6) + ":" + trimmed.substr(number + 5);
                place = place.substr(0, place.find(','));
            }
            break;
        }
        message += (message.empty() ? "" : " ") + trimmed;
    }
    // Where LibTorch keeps a class in memory.
    for (auto at = message.find(" (of Python compilation unit"); at != std::string::npos;
         at = message.find(" (of Python compilation unit")) {
        const auto end = message.find(')', at);
        message.erase(at, end == std::string::npos ? end : end - at + 1);
    }
    if (message.find("INTERNAL ASSERT") != std::string::npos) {
        message = "LibTorch's compiler fails on this";
    }
    if (message.size() > 400) {
        message = message.substr(0, 400) + "…";
    }
    while (message.ends_with(':') || message.ends_with('.')) {
        message.pop_back();
    }
    return place.empty() ? message : place + ": " + message;
}

std::string compile_report(const std::exception& error) {
    return dynamic_cast<const CannotCompile*>(&error) != nullptr ? error.what()
                                                                 : compile_report(error.what());
}

}  // namespace twinkle::runtime
