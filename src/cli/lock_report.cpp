#include "cli/lock_report.h"

#include "base/file.h"
#include "base/quantity.h"
#include "cli/hub_command.h"

namespace twinkle::cli {
namespace {

std::string change_text(const operations::LockChange& change) {
    const auto before = change.before.substr(0, 12);
    const auto after = change.after.substr(0, 12);
    if (after.empty() && !before.empty()) {
        return "- " + kernel_text(change.kernel) + "  " + before;
    }
    if (before.empty()) {
        return "+ " + kernel_text(change.kernel) + (after.empty() ? "" : "  " + after);
    }
    return "~ " + kernel_text(change.kernel) + "  " +
           (before == after ? after : before + " → " + after);
}

base::Json text_or_null(const std::string& text) {
    return text.empty() ? base::Json() : base::Json(text);
}

}  // namespace

void show_lock_report(const operations::LockReport& report, Console& console) {
    for (const auto& change : report.changes) {
        console.note(change_text(change));
    }
    if (report.written.empty()) {
        console.note("the lock is up to date");
    }
    for (const auto& file : report.written) {
        console.note("wrote " + base::display_path(file) + ": " +
                     base::counted(report.lock.kernels.size(), "kernel"));
    }
}

base::Json lock_report_json(const operations::LockReport& report) {
    base::Json kernels = base::Json::array();
    for (const auto& kernel : report.lock.kernels) {
        base::Json variants = base::Json::array();
        for (const auto& variant : kernel.variants) {
            variants.push_back(variant.name);
        }
        kernels.push_back({{"name", kernel.name},
                           {"request", text_or_null(kernel.pin.text())},
                           {"ref", text_or_null(kernel.ref)},
                           {"commit", text_or_null(kernel.commit)},
                           {"variants", variants}});
    }
    base::Json changes = base::Json::array();
    for (const auto& change : report.changes) {
        changes.push_back({{"kernel", change.kernel},
                           {"before", text_or_null(change.before)},
                           {"after", text_or_null(change.after)}});
    }
    base::Json written = base::Json::array();
    for (const auto& file : report.written) {
        written.push_back(file.string());
    }
    return {{"kernels", kernels}, {"changes", changes}, {"written", written}};
}

}  // namespace twinkle::cli
