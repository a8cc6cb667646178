#include "hub/hub_error.h"

#include "base/number.h"
#include "base/text.h"
#include "hub/http_failure.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

using enum ErrorCode;

struct Refusal {
    const Settings& settings;
    const Subject& subject;
    int status;
    std::string code;     // X-Error-Code
    std::string message;  // X-Error-Message
    std::string where;
    bool at_hub;

    Error error(ErrorCode exit, std::string what, std::string why, std::string hint = "") const {
        return Error(exit, {.what = std::move(what),
                            .where = where,
                            .why = std::move(why),
                            .hint = std::move(hint)});
    }
    std::string said() const {
        return "status " + std::to_string(status) +
               (message.empty() ? "" : ", \"" + message + "\"");
    }
};

std::string header(const Head& head, std::string_view name) {
    const auto value = head.headers.get(name);
    return value ? base::printable(value->substr(0, 500)) : std::string();
}

Error gated(const Refusal& refusal) {
    const std::string& repo = refusal.subject.repo_id;
    const std::string page = redacted_url(refusal.settings.endpoint + "/kernels/" + repo);
    if (refusal.settings.token.empty()) {
        return refusal.error(unreachable, repo + " is gated, and there is no token", refusal.said(),
                             "ask for access at " + page + ", then set HF_TOKEN");
    }
    return refusal.error(unreachable, repo + " is gated, and the token has no access",
                         refusal.said(), "ask for access at " + page);
}

Error no_repository(const Refusal& refusal) {
    const std::string& repo = refusal.subject.repo_id;
    if (refusal.settings.token.empty()) {
        return refusal.error(not_found, repo + " is not on the Hub, or is private",
                             "without a token the Hub does not tell which (" + refusal.said() + ")",
                             "check the name; for a private repository set HF_TOKEN");
    }
    return refusal.error(not_found, repo + " is not on the Hub, or the token has no access to it",
                         refusal.said(), "check the name and the rights of the token");
}

Error missing(const Refusal& refusal) {
    const Subject& subject = refusal.subject;
    if (refusal.code == "RevisionNotFound") {
        return refusal.error(
            not_found,
            subject.repo_id + " has no revision \"" + base::printable(subject.revision) + "\"",
            refusal.said(), "twinkle versions " + subject.repo_id + " shows what there is");
    }
    if (refusal.code == "EntryNotFound") {
        return refusal.error(not_found, subject.text() + " is not there", refusal.said());
    }
    if (refusal.code == "RepoNotFound") {
        return no_repository(refusal);
    }
    return refusal.error(not_found, subject.text() + " is not there", refusal.said(),
                         "is HF_ENDPOINT a Hub? This answer does not look like one of it");
}

Error too_many(const Refusal& refusal, const Outcome& outcome) {
    std::string why = refusal.said();
    if (const std::string wait = header(outcome.head, "retry-after"); !wait.empty()) {
        why += "; it asks to wait: " + wait + (base::parse_number<std::uint64_t>(wait) ? " s" : "");
    }
    return refusal.error(unreachable, "too many requests: " + refusal.subject.text(), why,
                         refusal.settings.token.empty() ? "with a token (HF_TOKEN) more are allowed"
                                                        : "try again later");
}

Error error_for(const Refusal& refusal, const Outcome& outcome) {
    const std::string& repo = refusal.subject.repo_id;
    const bool denied = refusal.status == 401 || refusal.status == 403;
    if (refusal.code == "GatedRepo" && refusal.at_hub) {
        return gated(refusal);
    }
    if (denied && refusal.message == "Access to this resource is disabled.") {
        return refusal.error(unreachable, repo + " has been disabled on the Hub", refusal.said());
    }
    if (refusal.code == "RepoNotFound") {
        return no_repository(refusal);
    }
    if (denied && !refusal.at_hub) {
        return refusal.error(unreachable,
                             "the host that holds the files refuses " + refusal.subject.text(),
                             refusal.said(), "try again; a proxy may be in between");
    }
    if (refusal.status == 401) {
        return refusal.settings.token.empty()
                   ? no_repository(refusal)
                   : refusal.error(
                         unreachable, "the Hub refuses the token", refusal.said(),
                         "renew HF_TOKEN (or the file that HF_TOKEN_PATH names), or unset it "
                         "for public repositories");
    }
    if (refusal.status == 403) {
        return refusal.error(unreachable, "the Hub denies access to " + refusal.subject.text(),
                             refusal.said(), "check the rights of the token");
    }
    if (refusal.status == 404 || refusal.status == 410) {
        return missing(refusal);
    }
    if (refusal.status == 429) {
        return too_many(refusal, outcome);
    }
    const std::string tries =
        outcome.attempts > 1 ? " (tried " + std::to_string(outcome.attempts) + " times)" : "";
    return refusal.error(
        unreachable, "the Hub does not give " + refusal.subject.text(), refusal.said() + tries,
        refusal.status >= 500 ? "try again later; --offline works with what is cached"
                              : "is HF_ENDPOINT a Hub?");
}

}  // namespace

std::string Subject::text() const {
    std::string result = path.empty() ? repo_id : "\"" + base::printable(path) + "\" of " + repo_id;
    if (!revision.empty()) {
        result += " at " + base::printable(revision);
    }
    return result;
}

Error hub_error(const Settings& settings, const Subject& subject, const std::string& url,
                const Outcome& outcome) {
    const std::string where = redacted_url(outcome.head.url.empty() ? url : outcome.head.url);
    switch (outcome.kind) {
        case Outcome::Kind::interrupted:
        case Outcome::Kind::stopped:
            return Error(
                interrupted,
                {.what = "interrupted: " + subject.text(), .where = where, .why = "", .hint = ""});
        case Outcome::Kind::refused:
            return error_for(
                {settings, subject, outcome.head.status, header(outcome.head, "x-error-code"),
                 header(outcome.head, "x-error-message"), where,
                 origin_of(where) == origin_of(settings.endpoint)},
                outcome);
        default: break;
    }
    std::string why = outcome.reason;
    if (outcome.attempts > 1) {
        why += " (tried " + std::to_string(outcome.attempts) + " times)";
    }
    return Error(unreachable, {.what = "cannot get " + subject.text(),
                               .where = where,
                               .why = std::move(why),
                               .hint = hint_for(outcome.failure, settings)});
}

void refuse_answer(const std::string& url, std::string why) {
    throw Error(unreachable, {.what = "the Hub's answer makes no sense",
                              .where = redacted_url(url),
                              .why = std::move(why),
                              .hint = "is HF_ENDPOINT a Hub, and is there a proxy or login page in "
                                      "between?"});
}

bool is_missing(const Outcome& outcome) {
    const auto code = outcome.head.headers.get("x-error-code");
    return outcome.kind == Outcome::Kind::refused &&
           (outcome.head.status == 404 || outcome.head.status == 410 ||
            (outcome.head.status == 401 && code == "RepoNotFound"));
}

}  // namespace twinkle::hub
