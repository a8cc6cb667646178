#pragma once
// What curl reports, in plain words.

#include <curl/curl.h>

#include <string>

#include "hub/http.h"

namespace twinkle::hub {

struct CurlReport {
    Failure failure = Failure::none;
    std::string reason;
};

// After a transfer of `easy` has ended with `code`.
CurlReport report_of(CURL* easy, CURLcode code, const Settings& settings, bool download);

// Will another attempt be of any use?
bool is_transient(Failure failure);

// What to do about it.
std::string hint_for(Failure failure, const Settings& settings);

}  // namespace twinkle::hub
