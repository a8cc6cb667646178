#include "operations/verify.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/evp.h"
#include "base/file.h"
#include "cache/snapshot.h"
#include "kernel/build.h"
#include "kernel/digest.h"
#include "operations/file_hashes.h"
#include "operations/hash_memory.h"
#include "operations/kernel_states.h"
#include "operations/lock_project.h"
#include "project/lock_files.h"
#include "project/locked_build.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

// A build with what it is held against, and its files among the jobs.
struct Check {
    VerifiedBuild build;
    std::optional<project::LockedVariant> locked;
    std::optional<kernel::Metadata> metadata;
    std::vector<std::string> paths;
    std::size_t first_job = 0;
};

// Reads the metadata; what is wrong with it is a problem, not the end.
Check begin_check(std::string kernel, std::string repo_id, std::string variant,
                  const fs::path& folder, const project::LockedVariant* locked) {
    Check check;
    check.build.kernel = std::move(kernel);
    check.build.repo_id = std::move(repo_id);
    check.build.variant = std::move(variant);
    check.build.folder = folder;
    if (locked != nullptr) {
        check.locked = *locked;
        check.build.locked = true;
    }
    std::error_code error;
    if (fs::exists(folder / "metadata.json", error)) {
        try {
            check.metadata = kernel::read_metadata(folder / "metadata.json");
        } catch (const Error& failure) {
            check.build.problems.push_back("metadata.json: " + failure.details().what + ": " +
                                           failure.details().why);
        }
    }
    if (check.metadata) {
        check.build.has_digest = check.metadata->digest.has_value();
        check.build.dirty = check.metadata->provenance && check.metadata->provenance->dirty();
    }
    return check;
}

bool uses_sha512(const Check& check) {
    return check.metadata && check.metadata->digest &&
           check.metadata->digest->algorithm == "sha512";
}

void add_jobs(Check& check, std::vector<HashJob>& jobs) {
    check.first_job = jobs.size();
    const bool sha512 = uses_sha512(check);
    for (const auto& path : base::list_files(check.build.folder)) {
        if (kernel::is_bytecode(path)) {
            continue;
        }
        const auto* file = check.locked ? check.locked->find(path) : nullptr;
        HashJob job;
        job.file = check.build.folder / path;
        job.sha512 = sha512 && !kernel::is_outside_digest(path);
        job.git_sha1 = file != nullptr && file->sha256.empty();
        // One hash is enough, unless both sides want another.
        job.sha256 = !job.git_sha1 || (check.build.has_digest && !sha512);
        check.paths.push_back(path);
        jobs.push_back(std::move(job));
    }
}

void compare_with_lock(Check& check, const std::vector<HashJob>& jobs) {
    std::vector<project::LockedFile> found;
    for (std::size_t i = 0; i < check.paths.size(); ++i) {
        const auto& job = jobs[check.first_job + i];
        found.push_back(
            {check.paths[i], job.size, job.git_sha1_hex, base::to_hex(job.sha256_bytes)});
    }
    std::ranges::move(project::lock_differences(*check.locked, found),
                      std::back_inserter(check.build.problems));
}

// Path → hash, by the algorithm of the metadata.
std::map<std::string, std::string> hashes_of(const Check& check, const std::vector<HashJob>& jobs) {
    std::map<std::string, std::string> hashes;
    for (std::size_t i = 0; i < check.paths.size(); ++i) {
        const auto& job = jobs[check.first_job + i];
        hashes[check.paths[i]] = uses_sha512(check) ? job.sha512_bytes : job.sha256_bytes;
    }
    return hashes;
}

void compare_with_digest(Check& check, const std::vector<HashJob>& jobs) {
    for (auto& violation :
         kernel::digest_violations(*check.metadata->digest, hashes_of(check, jobs))) {
        check.build.problems.push_back("digest: " + violation);
    }
}

// The files were hashed by the algorithm of the metadata; where that has changed since, every file
// counts as missing.
void check_signature(Check& check, const std::vector<HashJob>& jobs,
                     const project::SignatureRules& rules) {
    const kernel::KnownHashes known = [&](base::DigestKind kind) {
        if ((kind == base::DigestKind::sha512) != uses_sha512(check)) {
            return std::map<std::string, std::string>();
        }
        auto hashes = hashes_of(check, jobs);
        std::erase_if(hashes, [](const auto& one) { return kernel::is_outside_digest(one.first); });
        return hashes;
    };
    auto& build = check.build;
    build.signature =
        kernel::check_signature(build.folder, build.repo_id, rules.root(),
                                check.build.has_digest ? known : kernel::KnownHashes{});
    if (!build.signature->verified() && rules.policy() == kernel::SignaturePolicy::require) {
        build.problems.push_back(build.signature->words +
                                 (build.signature->why.empty() ? "" : ": " + build.signature->why));
    }
}

void finish(Check& check, const std::vector<HashJob>& jobs, const project::SignatureRules& rules) {
    check.build.files = check.paths.size();
    for (std::size_t i = 0; i < check.paths.size(); ++i) {
        check.build.bytes += jobs[check.first_job + i].size;
    }
    if (check.locked) {
        compare_with_lock(check, jobs);
    }
    if (check.build.has_digest) {
        compare_with_digest(check, jobs);
    }
    // Kernels in folders need no publisher, unless they claim one or somebody insists.
    std::error_code error;
    const bool claimed = !check.build.repo_id.empty() ||
                         fs::exists(check.build.folder / "metadata.json.sigstore", error);
    if (rules.policy() == kernel::SignaturePolicy::require || (rules.wanted() && claimed)) {
        check_signature(check, jobs, rules);
    }
}

[[noreturn]] void not_here(const std::string& kernel, const fs::path& folder,
                           const std::string& command) {
    throw Error(ErrorCode::not_found, {.what = kernel + " is not on this machine",
                                       .where = base::display_path(folder),
                                       .why = "there is no build of it",
                                       .hint = command});
}

// Every build in a repository's folder, against those of the lock that have its name.
void add_folder(std::vector<Check>& checks, const std::string& name, const std::string& repo_id,
                const fs::path& folder, const project::LockedKernel* locked) {
    const auto find = [&](const std::string& variant) {
        return locked != nullptr ? locked->find(variant) : nullptr;
    };
    const auto opened = kernel::open_kernel_folder(folder);
    if (opened.kind != kernel::FolderKind::repository) {
        checks.push_back(begin_check(name, repo_id, ".", folder, find(".")));
        return;
    }
    for (const auto& variant : opened.variants) {
        checks.push_back(
            begin_check(name, repo_id, variant, opened.builds / variant, find(variant)));
    }
}

// The Python tools leave metadata.json of every build behind, also of those that nobody fetched.
bool is_fetched(const fs::path& build) {
    std::error_code error;
    for (fs::directory_iterator entry(build, error), end; !error && entry != end;
         entry.increment(error)) {
        if (!entry->path().filename().string().starts_with("metadata.json")) {
            return true;
        }
    }
    return false;
}

void add_locked(const Context& context, const project::LockedKernel& kernel,
                const fs::path& project_folder, std::vector<Check>& checks) {
    if (kernel.is_local()) {
        return add_folder(checks, kernel.name, "", project_folder / kernel.path, &kernel);
    }
    const auto snapshot = context.cache().snapshot(kernel.home(), kernel.commit);
    bool any = false;
    const bool there = cache::has_snapshot(context.cache(), kernel.home(), kernel.commit);
    for (const auto& variant : kernel.variants) {
        const auto folder = snapshot / "build" / variant.name;
        if (there && is_fetched(folder)) {
            any = true;
            checks.push_back(
                begin_check(kernel.text(), kernel.home(), variant.name, folder, &variant));
        }
    }
    if (!any) {
        not_here(kernel.text(), snapshot, "twinkle fetch");
    }
}

// A lock of the Python tool: commits, no hashes. Only the digest speaks then.
void add_commit(const Context& context, const std::string& name, const std::string& repo_id,
                const std::string& commit, std::vector<Check>& checks) {
    const auto snapshot = context.cache().snapshot(repo_id, commit);
    if (!cache::has_snapshot(context.cache(), repo_id, commit)) {
        not_here(name, snapshot, "twinkle fetch '" + name + "'");
    }
    add_folder(checks, name, repo_id, snapshot, nullptr);
}

std::vector<Check> checks_of_lock(const Context& context, const Project& project) {
    const auto lock =
        need_lock(context, project, "only what is locked can be verified without a name");
    std::vector<Check> checks;
    for (const auto& kernel : lock.kernels) {
        if (kernel.is_local() || !kernel.variants.empty()) {
            add_locked(context, kernel, project.files.folder, checks);
        } else {
            add_commit(context, kernel.text(), kernel.home(), kernel.commit, checks);
        }
    }
    return checks;
}

void add_spec(Context& context, const std::optional<Project>& project,
              const project::KernelSpec& spec, std::vector<Check>& checks) {
    if (project) {
        const auto lock = project::read_project_lock(
            project::lock_files(project->manifest, context.options().lockfile));
        bool found = false;
        for (const auto& kernel : lock ? lock->kernels : std::vector<project::LockedKernel>{}) {
            if (kernel.name == spec.repo_id && !kernel.variants.empty() &&
                (spec.pin.empty() || spec.pin == kernel.pin)) {
                add_locked(context, kernel, project->files.folder, checks);
                found = true;
            }
        }
        if (found) {
            return;
        }
    }
    const auto state = cached_state(context, {spec.repo_id, spec.pin, spec.text()});
    if (!state) {
        not_here(spec.text(), context.cache().repository(spec.repo_id),
                 "twinkle fetch '" + spec.text() + "'");
    }
    add_commit(context, spec.text(), spec.repo_id, state->commit, checks);
}

// Every job gets its hashes: from the files or, where the user trusts it, from memory.
void hash_all(Context& context, std::vector<HashJob>& jobs, bool trust_unchanged) {
    const auto tell = [&](std::uint64_t done, std::uint64_t total) {
        context.listener().busy("verifying", done, total);
    };
    if (!trust_unchanged) {
        return hash_files(jobs, context.stop(), tell);
    }
    HashMemory memory(HashMemory::usual_place(context.machine()));
    std::vector<std::size_t> open;
    std::vector<HashJob> to_read;
    std::vector<std::string> identities;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!memory.recall(jobs[i])) {
            open.push_back(i);
            to_read.push_back(jobs[i]);
            identities.push_back(HashMemory::identity_of(jobs[i].file));
        }
    }
    hash_files(to_read, context.stop(), tell);
    for (std::size_t i = 0; i < open.size(); ++i) {
        memory.remember(to_read[i], identities[i]);
        jobs[open[i]] = std::move(to_read[i]);
    }
    if (!open.empty() && !memory.save()) {
        context.listener().detail("what was verified could not be remembered");
    }
}

}  // namespace

std::vector<VerifiedBuild> verify(Context& context, const VerifyOptions& options) {
    std::vector<Check> checks;
    const bool by_lock = options.specs.empty() && options.paths.empty();
    const auto project = by_lock
                             ? context.need_project("without a name, everything locked is verified")
                             : context.find_project();
    if (by_lock) {
        checks = checks_of_lock(context, *project);
    }
    for (const auto& spec : options.specs) {
        add_spec(context, project, spec, checks);
    }
    for (const auto& path : options.paths) {
        add_folder(checks, base::display_path(path), "", path, nullptr);
    }
    std::vector<HashJob> jobs;
    for (auto& check : checks) {
        add_jobs(check, jobs);
    }
    hash_all(context, jobs, options.trust_unchanged);
    const project::SignatureRules rules(options.signature, project ? &project->manifest : nullptr,
                                        kernel::SignaturePolicy::warn);
    std::vector<VerifiedBuild> builds;
    for (auto& check : checks) {
        finish(check, jobs, rules);
        builds.push_back(std::move(check.build));
    }
    return builds;
}

}  // namespace twinkle::operations
