#pragma once
// One site, or several that are alike, as HTML: what a click shows of them.

#include <string>

#include "base/json.h"
#include "cli/site_groups.h"

namespace twinkle::cli {

std::string status_look(const base::Json& site);  // replaced, kept or reverted
std::string status_html(const base::Json& site);  // "put back", in its colour
// "6.0e-7 of 8.9e-7 allowed"; empty: nothing was compared.
std::string error_html(const base::Json& compared);
// "3.17 ms → 2.42 ms", with `speedup` also how many times as fast; empty: not measured.
std::string times_html(const base::Json& measured, bool speedup = false);

// Why, by which build, which other kernels there were, and each of the sites if there are several.
std::string site_details(const SiteGroup& group);

}  // namespace twinkle::cli
