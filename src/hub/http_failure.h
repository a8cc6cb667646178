#pragma once
// Translates curl's errors into plain words.

#include <curl/curl.h>

#include <string>

#include "hub/http.h"

namespace twinkle::hub {

struct CurlReport {
    Failure failure = Failure::none;
    std::string reason;
};

// Is called after a transfer of `easy` has ended with `code`.
CurlReport report_of(CURL* easy, CURLcode code, const Settings& settings, bool download);

// Whether a retry can help.
bool is_transient(Failure failure);

// Advice for the user.
std::string hint_for(Failure failure, const Settings& settings);

}  // namespace twinkle::hub
