#pragma once
// The changes in a lock, as lock, add and remove show them.

#include "cli/console.h"
#include "operations/lock_project.h"

namespace twinkle::cli {

void show_lock_report(const operations::LockReport& report, Console& console);
base::Json lock_report_json(const operations::LockReport& report);

}  // namespace twinkle::cli
