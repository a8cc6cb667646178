#include "cli/lock_report.h"

#include "base/file.h"
#include "base/quantity.h"
#include "cli/hub_session.h"
#include "cli/json_fields.h"

namespace twinkle::cli {
namespace {

using operations::LockChange;

std::string change_text(const LockChange& change) {
    const char* const sign = change.kind == LockChange::Kind::added     ? "+ "
                             : change.kind == LockChange::Kind::changed ? "~ "
                                                                        : "- ";
    const auto before = change.before.substr(0, 12);
    const auto after = change.after.substr(0, 12);
    const bool both = !before.empty() && !after.empty() && before != after;
    const auto commits = both ? before + " → " + after : after.empty() ? before : after;
    return sign + kernel_text(change.kernel) + (commits.empty() ? "" : "  " + commits);
}

std::string kind_name(LockChange::Kind kind) {
    return kind == LockChange::Kind::added     ? "added"
           : kind == LockChange::Kind::changed ? "changed"
                                               : "removed";
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
                           {"change", kind_name(change.kind)},
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
