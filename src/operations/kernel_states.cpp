#include "operations/kernel_states.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cache/snapshot.h"
#include "project/local_kernels.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

using project::KnownRefs;
using project::KnownVersion;

KnownRefs from_hub(const hub::Refs& refs) {
    KnownRefs known;
    for (const auto& branch : refs.branches) {
        known.branches[branch.name] = branch.commit;
    }
    for (const auto& tag : refs.tags) {
        known.tags[tag.name] = tag.commit;
    }
    return known;
}

std::string listed(const std::vector<KnownVersion>& versions) {
    std::vector<std::string> texts;
    for (const auto& version : versions) {
        texts.push_back(std::to_string(version.number));
    }
    return base::join(texts, ", ");
}

// What the cache does not know may well be on the Hub: not the same error.
[[noreturn]] void no_such_state(const Context& context, const KernelQuestion& question,
                                const KnownRefs& known) {
    const auto versions = known.versions();
    const bool newest = question.pin.empty();
    const std::string wanted = question.text();
    if (context.offline()) {
        throw Error(ErrorCode::unreachable,
                    {.what = wanted + " is not in the cache, and twinkle is offline",
                     .where = question.where,
                     .why = versions.empty() ? "" : "cached versions: " + listed(versions),
                     .hint = "with a network: twinkle fetch '" + wanted + "'"});
    }
    std::string what = "the repository " + question.repo_id + " has no version and no branch main";
    std::string why;
    if (question.pin.version) {
        what = question.repo_id + " has no version " + std::to_string(*question.pin.version);
        why = versions.empty() ? "it has no versions at all, only revisions"
                               : "its versions: " + listed(versions);
    } else if (!question.pin.specifier.empty()) {
        what = question.repo_id + " has no release that fits " + question.pin.specifier;
        why = known.tags.empty() ? "it has no tags"
                                 : "its tags: " + base::join(known.tag_names(), ", ");
    } else if (!newest) {
        what = question.repo_id + " has no revision " + question.pin.revision;
    }
    throw Error(ErrorCode::not_found,
                {.what = what,
                 .where = question.where,
                 .why = why,
                 .hint = "twinkle versions " + question.repo_id + " shows what there is"});
}

// Fills ref and commit from names; false where only the Hub's own resolution can tell.
bool decide(KernelState& state, const KernelQuestion& question, const KnownRefs& known) {
    state.versions = known.versions();
    const auto ref = ref_of(question.pin, known);
    if (!ref) {
        return false;
    }
    const bool tags_first = !question.pin.specifier.empty();
    for (const auto* names :
         {tags_first ? &known.tags : &known.branches, tags_first ? &known.branches : &known.tags}) {
        if (const auto found = names->find(*ref); found != names->end()) {
            state.ref = *ref;
            state.commit = found->second;
            return true;
        }
    }
    return false;
}

void follow_redirect(Context& context, const hub::Redirect& redirect, KernelState& state,
                     KernelQuestion& question) {
    context.listener().warn(question.repo_id + " has moved to " + redirect.repo_id + "@" +
                            redirect.revision + ": better name that (" + question.where + ")");
    state.moved_to = redirect.repo_id;
    question.repo_id = redirect.repo_id;
    question.pin = {};
    question.pin.revision = redirect.revision;
}

// Every repository is asked once, and one that has moved is not asked where it is now.
void follow_redirects(Context& context, std::vector<KernelQuestion>& questions,
                      std::vector<KernelState>& states) {
    std::map<std::string, std::size_t> asked;
    std::vector<hub::Revision> revisions;
    for (const auto& question : questions) {
        if (asked.try_emplace(question.repo_id, revisions.size()).second) {
            revisions.push_back({question.repo_id, "main"});
        }
    }
    const auto answers = context.hub().redirects(revisions);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        if (const auto& redirect = answers[asked.at(questions[i].repo_id)]) {
            follow_redirect(context, *redirect, states[i], questions[i]);
        }
    }
}

std::vector<KnownRefs> ask_refs(Context& context, std::span<const KernelQuestion> questions) {
    std::vector<std::string> repositories;
    for (const auto& question : questions) {
        repositories.push_back(question.repo_id);
    }
    std::sort(repositories.begin(), repositories.end());
    repositories.erase(std::unique(repositories.begin(), repositories.end()), repositories.end());
    const auto answers = context.hub().refs(repositories);
    std::vector<KnownRefs> known;
    for (const auto& question : questions) {
        const auto at =
            std::lower_bound(repositories.begin(), repositories.end(), question.repo_id);
        known.push_back(from_hub(answers[static_cast<std::size_t>(at - repositories.begin())]));
    }
    return known;
}

}  // namespace

std::optional<std::filesystem::path> local_copy(Context& context, const project::KernelSpec& spec) {
    const auto folders = project::local_kernels(context.machine());
    const auto found = folders.find(spec.repo_id);
    if (found == folders.end()) {
        return std::nullopt;
    }
    context.listener().warn(project::local_kernel_warning(spec.repo_id, found->second));
    return found->second;
}

std::optional<int> KernelState::version() const {
    return project::version_of(ref);
}

project::Pin KernelState::pin() const {
    return version() ? project::Pin{.version = version()} : project::Pin{.revision = ref};
}

KernelState find_state(Context& context, const project::KernelSpec& spec) {
    const KernelQuestion question{spec.repo_id, spec.pin, spec.text()};
    return std::move(find_states(context, std::span(&question, 1)).front());
}

std::optional<KernelState> cached_state(const Context& context, const KernelQuestion& question) {
    KernelState state{question.repo_id, {}, {}, {}, {}};
    if (decide(state, question, project::cached_refs(context.cache(), question.repo_id))) {
        return state;
    }
    const auto& revision = question.pin.revision;
    if (!revision.empty() && cache::find_snapshot(context.cache(), question.repo_id, revision)) {
        state.commit = *cache::find_commit(context.cache(), question.repo_id, revision);
        return state;
    }
    return std::nullopt;
}

std::vector<KernelState> find_states(Context& context, std::span<const KernelQuestion> asked) {
    std::vector<KernelState> states;
    if (context.offline()) {
        for (const auto& question : asked) {
            auto state = cached_state(context, question);
            if (!state) {
                no_such_state(context, question,
                              project::cached_refs(context.cache(), question.repo_id));
            }
            states.push_back(std::move(*state));
        }
        return states;
    }
    std::vector<KernelQuestion> questions(asked.begin(), asked.end());
    for (const auto& question : questions) {
        states.push_back({question.repo_id, {}, {}, {}, {}});
    }
    follow_redirects(context, questions, states);
    const auto known = ask_refs(context, questions);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        auto& state = states[i];
        const auto& question = questions[i];
        if (decide(state, question, known[i])) {
            continue;
        }
        if (question.pin.revision.empty()) {
            no_such_state(context, question, known[i]);
        }
        // A commit, whole or shortened: the Hub knows.
        state.commit = context.hub().commit(question.repo_id, question.pin.revision);
    }
    return states;
}

}  // namespace twinkle::operations
