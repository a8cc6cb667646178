#pragma once
// Measurements, for people and as JSON.

#include <filesystem>

#include "base/json.h"
#include "base/table.h"
#include "tuning/entry.h"

namespace twinkle::cli {

base::Table measurements_table(const tuning::Entries& entries);
base::Json measurements_json(const std::filesystem::path& root, const tuning::Entries& entries);

}  // namespace twinkle::cli
