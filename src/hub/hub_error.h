#pragma once
// Explains the Hub's refusals to the user: not found, not visible, not allowed, not
// now.

#include <string>

#include "hub/http.h"
#include "hub/settings.h"
#include "twinkle/error.h"

namespace twinkle::hub {

// The subject of a request; later members may be empty.
struct Subject {
    std::string repo_id, revision, path;

    std::string text() const;  // `"path" of org/name at v1`
};

// The error for an outcome that is not `done`.
Error hub_error(const Settings& settings, const Subject& subject, const std::string& url,
                const Outcome& outcome);

// Throws Error(unreachable) for an answer that no Hub gives.
[[noreturn]] void refuse_answer(const std::string& url, std::string why);

// Whether the Hub says that there is no such repository, revision or file.
bool is_missing(const Outcome& outcome);

}  // namespace twinkle::hub
