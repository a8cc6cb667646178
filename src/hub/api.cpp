#include "hub/api.h"

#include <functional>
#include <memory>
#include <utility>

#include "base/text.h"
#include "hub/answers.h"
#include "hub/hub_error.h"
#include "hub/names.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

constexpr std::size_t largest_answer = 8u << 20;
constexpr std::size_t largest_status_file = 64u << 10;

Request api_request(std::string url) {
    Request request;
    request.url = std::move(url);
    request.compressed = true;
    return request;
}

// One query; an outcome that is not `done` is thrown out of run().
Transfer question(const Settings& settings, Request request, Subject subject, std::size_t limit,
                  std::function<void(const Outcome&, std::string&)> on_answer) {
    const std::string url = request.url;
    return small_transfer(
        std::move(request), limit,
        [&settings, url, subject = std::move(subject), on_answer = std::move(on_answer)](
            const Outcome& outcome, std::string& body) {
            if (outcome.kind != Outcome::Kind::done) {
                throw hub_error(settings, subject, url, outcome);
            }
            on_answer(outcome, body);
        });
}

Transfer page_question(Http& http, const Settings& settings, const std::string& url,
                       const Subject& subject, const std::shared_ptr<TreePages>& pages,
                       Tree& result) {
    return question(
        settings, api_request(url), subject, largest_answer,
        [&http, &settings, url, subject, pages, &result](const Outcome& outcome,
                                                         const std::string& body) {
            pages->add(body, url);
            if (const auto next = pages->next(outcome.head.headers, outcome.head.url)) {
                http.start(page_question(http, settings, *next, subject, pages, result));
            } else {
                result = pages->take(url);
            }
        });
}

// Validates all queries before any starts: their answers go to variables of the
// caller.
void run_all(Http& http, std::vector<Transfer>& questions) {
    for (Transfer& transfer : questions) {
        http.start(std::move(transfer));
    }
    http.run();
}

// Accepts only the bytes that were asked for.
void check_file(const FileRequest& wanted, const std::string& url, std::string_view body) {
    const auto hash = wanted.file.hash();
    const bool size_fits = body.size() == wanted.file.size;
    if (size_fits && cache::hash_bytes(body, hash.kind) == hash.hex) {
        return;
    }
    throw Error(ErrorCode::verification,
                {.what = "\"" + base::printable(wanted.file.path) + "\" of " + wanted.repo_id +
                         " is not the file that the Hub lists",
                 .where = redacted_url(url),
                 .why = size_fits ? "its hash is another one than " + hash.hex
                                  : "it has " + std::to_string(body.size()) + " bytes, not " +
                                        std::to_string(wanted.file.size),
                 .hint = "try again; a proxy may be in between"});
}

}  // namespace

Hub::Hub(Settings settings, HttpOptions options)
    : settings_(std::move(settings)), http_(settings_, std::move(options)) {}

void Hub::require_online(const std::string& repo_id) const {
    if (settings_.offline) {
        throw Error(
            ErrorCode::unreachable,
            {.what = repo_id + " is not asked for: offline",
             .where = base::printable(settings_.endpoint),
             .why = "--offline or HF_HUB_OFFLINE forbids to reach the Hub, and the cache does "
                    "not hold all that is needed",
             .hint = "`twinkle fetch` gets it once the Hub may be reached"});
    }
}

std::string Hub::api_url(const std::string& repo_id) const {
    require_online(repo_id);
    check_repo_id(repo_id);
    return settings_.endpoint + "/api/kernels/" + repo_id;
}

std::vector<Refs> Hub::refs(std::span<const std::string> repo_ids) {
    std::vector<Refs> result(repo_ids.size());
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < repo_ids.size(); ++i) {
        const std::string url = api_url(repo_ids[i]) + "/refs";
        questions.push_back(
            question(settings_, api_request(url), {repo_ids[i], "", ""}, largest_answer,
                     [url, &answer = result[i]](const Outcome&, const std::string& body) {
                         answer = read_refs(body, url);
                     }));
    }
    run_all(http_, questions);
    return result;
}

std::vector<std::string> Hub::commits(std::span<const Revision> revisions) {
    std::vector<std::string> result(revisions.size());
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < revisions.size(); ++i) {
        const auto& [repo_id, revision] = revisions[i];
        check_revision(revision);
        const std::string url = api_url(repo_id) + "/revision/" + quote(revision);
        questions.push_back(
            question(settings_, api_request(url), {repo_id, revision, ""}, largest_answer,
                     [url, &answer = result[i]](const Outcome&, const std::string& body) {
                         answer = read_commit(body, url);
                     }));
    }
    run_all(http_, questions);
    return result;
}

std::vector<Tree> Hub::trees(std::span<const TreeRequest> requests) {
    std::vector<Tree> result(requests.size());
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const TreeRequest& wanted = requests[i];
        check_revision(wanted.revision);
        std::string url = api_url(wanted.repo_id) + "/tree/" + quote(wanted.revision);
        if (!wanted.folder.empty()) {
            check_path(wanted.folder);
            url += "/" + quote(wanted.folder, "/");
        }
        url += wanted.recursive ? "?recursive=true&expand=false" : "?recursive=false&expand=false";
        questions.push_back(page_question(http_, settings_, url,
                                          {wanted.repo_id, wanted.revision, wanted.folder},
                                          std::make_shared<TreePages>(wanted.folder), result[i]));
    }
    run_all(http_, questions);
    return result;
}

std::vector<std::string> Hub::read_files(std::span<const FileRequest> files, std::size_t limit) {
    std::vector<std::string> result(files.size());
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const FileRequest& wanted = files[i];
        require_online(wanted.repo_id);
        if (wanted.file.size > limit) {
            throw Error(ErrorCode::malformed,
                        {.what = "\"" + base::printable(wanted.file.path) + "\" of " +
                                 wanted.repo_id + " is too large",
                         .where = "",
                         .why = "it has " + std::to_string(wanted.file.size) +
                                " bytes, where at most " + std::to_string(limit) + " are expected",
                         .hint = ""});
        }
        Request request = file_request(wanted.repo_id, wanted.commit, wanted.file.path);
        request.download = false;
        const std::string url = request.url;
        questions.push_back(question(
            settings_, std::move(request), {wanted.repo_id, wanted.commit, wanted.file.path}, limit,
            [&wanted, url, &answer = result[i]](const Outcome&, std::string& body) {
                check_file(wanted, url, body);
                answer = std::move(body);
            }));
    }
    run_all(http_, questions);
    return result;
}

std::vector<bool> Hub::are_trusted_publishers(std::span<const std::string> orgs) {
    std::vector<bool> result(orgs.size(), false);
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < orgs.size(); ++i) {
        require_online(orgs[i]);
        check_repo_id(orgs[i] + "/x");
        const std::string url =
            settings_.endpoint + "/api/organizations/" + quote(orgs[i]) + "/overview";
        questions.push_back(small_transfer(api_request(url), largest_answer,
                                           [this, url, org = orgs[i], i, &result](
                                               const Outcome& outcome, const std::string& body) {
                                               if (outcome.kind == Outcome::Kind::done) {
                                                   result[i] = read_trust(body, url);
                                               } else if (!is_missing(outcome)) {
                                                   throw hub_error(settings_, {org, "", ""}, url,
                                                                   outcome);
                                               }
                                           }));
    }
    run_all(http_, questions);
    return result;
}

std::vector<std::optional<Redirect>> Hub::redirects(std::span<const Revision> revisions) {
    std::vector<std::optional<Redirect>> result(revisions.size());
    std::vector<Transfer> questions;
    for (std::size_t i = 0; i < revisions.size(); ++i) {
        const auto& [repo_id, revision] = revisions[i];
        require_online(repo_id);
        Request request = file_request(repo_id, revision, "kernel-status.toml");
        request.download = false;
        const std::string url = request.url;
        questions.push_back(small_transfer(std::move(request), largest_status_file,
                                           [this, url, wanted = revisions[i], &answer = result[i]](
                                               const Outcome& outcome, const std::string& body) {
                                               if (outcome.kind == Outcome::Kind::done) {
                                                   answer =
                                                       read_kernel_status(body, redacted_url(url));
                                               } else if (!is_missing(outcome)) {
                                                   throw file_error(wanted.repo_id, wanted.revision,
                                                                    "kernel-status.toml", outcome);
                                               }
                                           }));
    }
    run_all(http_, questions);
    return result;
}

std::string Hub::file_url(const std::string& repo_id, const std::string& revision,
                          const std::string& path) const {
    check_repo_id(repo_id);
    check_revision(revision);
    check_path(path);
    return settings_.endpoint + "/kernels/" + repo_id + "/resolve/" + quote(revision) + "/" +
           quote(path, "/");
}

Request Hub::file_request(const std::string& repo_id, const std::string& revision,
                          const std::string& path) const {
    Request request;
    request.url = file_url(repo_id, revision, path);
    request.download = true;
    if (settings_.telemetry) {
        request.headers.emplace_back("X-HF-Download-Counter", "1");
    }
    return request;
}

Error Hub::file_error(const std::string& repo_id, const std::string& revision,
                      const std::string& path, const Outcome& outcome) const {
    return hub_error(settings_, {repo_id, revision, path}, file_url(repo_id, revision, path),
                     outcome);
}

Refs Hub::refs(const std::string& repo_id) {
    return std::move(refs(std::span(&repo_id, 1)).front());
}

std::string Hub::commit(const std::string& repo_id, const std::string& revision) {
    const Revision wanted{repo_id, revision};
    return std::move(commits(std::span(&wanted, 1)).front());
}

std::vector<cache::TreeFile> Hub::tree(const std::string& repo_id, const std::string& commit,
                                       const std::string& folder, bool recursive) {
    const TreeRequest wanted{repo_id, commit, folder, recursive};
    return std::move(trees(std::span(&wanted, 1)).front().files);
}

std::string Hub::read_file(const std::string& repo_id, const std::string& commit,
                           const cache::TreeFile& file, std::size_t limit) {
    return std::move(read_files(repo_id, commit, std::span(&file, 1), limit).front());
}

std::vector<std::string> Hub::read_files(const std::string& repo_id, const std::string& commit,
                                         std::span<const cache::TreeFile> files,
                                         std::size_t limit) {
    std::vector<FileRequest> wanted;
    wanted.reserve(files.size());
    for (const cache::TreeFile& file : files) {
        wanted.push_back({repo_id, commit, file});
    }
    return read_files(wanted, limit);
}

std::optional<Redirect> Hub::redirect(const std::string& repo_id, const std::string& revision) {
    const Revision wanted{repo_id, revision};
    return std::move(redirects(std::span(&wanted, 1)).front());
}

}  // namespace twinkle::hub
