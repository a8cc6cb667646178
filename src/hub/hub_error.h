#pragma once
// What the Hub's refusals mean, in words for the user: not there, not visible, not allowed, not
// now.

#include <string>

#include "hub/http.h"
#include "hub/settings.h"
#include "twinkle/error.h"

namespace twinkle::hub {

// What was asked for; later members may be empty.
struct Subject {
    std::string repo_id, revision, path;

    std::string text() const;  // `"path" of org/name at v1`
};

// For an outcome that is not `done`.
Error hub_error(const Settings& settings, const Subject& subject, const std::string& url,
                const Outcome& outcome);

// Error(unreachable): an answer that no Hub gives.
[[noreturn]] void refuse_answer(const std::string& url, std::string why);

// Does the Hub say that there is no such repository, revision or file?
bool is_missing(const Outcome& outcome);

}  // namespace twinkle::hub
