#include "worker/fit_precision.h"

#include "runtime/graph/format.h"
#include "runtime/graph/sites.h"
#include "runtime/plan/replan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace twinkle::worker {

using base::Json;
using runtime::Choice;

namespace {

// A way for a site to compute with fewer bits.
struct Option {
    Choice choice;
    double error = 0;       // of the site's own results, Euclidean
    std::size_t bytes = 0;  // of its weights
};

struct CoarserSite {
    std::string name;
    std::vector<runtime::Candidate> candidates;  // as the plan had them
    std::size_t bytes = 0;                       // of its weights as they are
    std::vector<Option> options;                 // ever fewer bytes
    std::map<std::string, std::string> wrong;    // by what was tried: why it is not right
};

// A step from one option of a site (or from exact) to its next.
struct Step {
    std::size_t site = 0;
    std::size_t option = 0;
    double cost = 0;  // squared error that it adds, for each byte that it saves
    double squared = 0;
};

std::size_t bytes_of(const torch::jit::Module& module) {
    std::set<const void*> seen;
    std::size_t bytes = 0;
    const auto add = [&](const at::Tensor& one) {
        bytes += one.defined() && seen.insert(one.unsafeGetTensorImpl()).second ? one.nbytes() : 0;
    };
    for (const at::Tensor& one : module.parameters()) {
        add(one);
    }
    for (const at::Tensor& one : module.buffers()) {
        add(one);
    }
    return bytes;
}

std::map<std::string, std::size_t> bytes_by_path(const torch::jit::Module& model) {
    std::map<std::string, std::size_t> bytes;
    for (const runtime::Instance& instance : runtime::instances_of(model)) {
        bytes[instance.path] = bytes_of(instance.module);
    }
    return bytes;
}

class PrecisionSearch {
public:
    PrecisionSearch(Kernelizing& kernelizing, Kernelized& made,
                    runtime::VerificationContext& context, const Request& request,
                    const Channel& channel)
        : kernelizing_(kernelizing),
          made_(made),
          context_(context),
          request_(request),
          channel_(channel) {
        for (const runtime::Site& site : kernelizing.plan().sites) {
            const bool any = std::any_of(
                site.candidates.begin(), site.candidates.end(),
                [](const auto& one) { return one.serves() && !one.choice.precision().empty(); });
            if (any && site.is_layer() && !site.left_out) {
                sites_.push_back({site.report.site, site.candidates, 0, {}, {}});
            }
        }
    }

    // All sites as they are without fewer bits, which some have taken for want of anything exact.
    void begin_exact() {
        take(0);
        const auto bytes = bytes_by_path(made_.model);
        for (CoarserSite& site : sites_) {
            site.bytes = bytes.at(site.name);
        }
        original_bytes_ = bytes_of(made_.model);
    }

    void measure_each() {
        for (const std::string& precision : request_.precisions) {
            measure(precision);
        }
        for (std::size_t i = 0; i < sites_.size(); ++i) {
            add_steps(i);
        }
        std::stable_sort(steps_.begin(), steps_.end(),
                         [](const Step& a, const Step& b) { return a.cost < b.cost; });
    }

    // Takes as many steps as fit; the model is made with them.
    void take_what_fits() {
        std::size_t fits = 0;
        std::size_t too_many = steps_.size() + 1;
        while (fits + 1 < too_many) {
            const std::size_t next =
                too_many > steps_.size() ? steps_.size() : between(fits, too_many);
            (within(next) ? fits : too_many) = next;
        }
        if (taken_ != fits) {
            take(fits);
        }
    }

    std::size_t original_bytes() const { return original_bytes_; }
    std::size_t site_count() const { return sites_.size(); }

    // Why no layer computes with fewer bits.
    std::string why_none() const {
        if (sites_.empty()) {
            return "no kernel offers that for any layer of the model";
        }
        return steps_.empty() ? "none is right on these inputs, reached by them, and smaller"
                              : "each of them alone takes the model's error above what it may be";
    }

private:
    runtime::Site& in_plan(const CoarserSite& site) {
        return *runtime::reported_site(kernelizing_.plan(), site.name);
    }

    const runtime::Candidate* candidate_in(const CoarserSite& site,
                                           const std::string& precision) const {
        const auto found =
            std::find_if(site.candidates.begin(), site.candidates.end(), [&](const auto& one) {
                return one.serves() && one.choice.precision() == precision &&
                       !site.wrong.contains(one.choice.describe());
            });
        return found != site.candidates.end() ? &*found : nullptr;
    }

    // Every site that can computes in this precision: what does each of them cost?
    void measure(const std::string& precision) {
        std::vector<std::string> names;
        for (const CoarserSite& site : sites_) {
            if (const auto* candidate = candidate_in(site, precision)) {
                choose(site, candidate->choice);
                names.push_back(site.name);
            } else {
                choose_exact(site);
            }
        }
        if (names.empty()) {
            return;
        }
        channel_.stage("precision",
                       fmt::format("as {} in {} layers, one by one", precision, names.size()));
        kernelizing_.make_again(made_);
        taken_.reset();
        std::erase_if(names,
                      [&](const std::string& name) { return !computes_in(name, precision); });
        const auto verdicts = kernelizing_.judge(made_, context_, names);
        const auto bytes = bytes_by_path(made_.model);
        for (CoarserSite& site : sites_) {
            const auto verdict = verdicts.find(site.name);
            const auto* candidate = candidate_in(site, precision);
            if (candidate == nullptr) {
                continue;
            }
            if (verdict == verdicts.end()) {  // it did not compile, or prepare its weights
                site.wrong[candidate->choice.describe()] = reason_of(site, *candidate);
            } else if (!verdict->second.right) {
                site.wrong[candidate->choice.describe()] = verdict->second.because;
            } else if (verdict->second.reached) {
                site.options.push_back(
                    {candidate->choice, verdict->second.comparison.error, bytes.at(site.name)});
            } else {
                site.wrong[candidate->choice.describe()] =
                    "the inputs do not reach it, so that its error is unknown";
            }
        }
    }

    // Asks the model that was made with what was tried.
    std::string reason_of(const CoarserSite& site, const runtime::Candidate& tried) {
        for (const runtime::Candidate& one : in_plan(site).candidates) {
            if (one.choice == tried.choice && !one.refused.empty()) {
                return one.refused;
            }
        }
        for (const SiteReport& entry : made_.report.sites) {
            if (entry.site == site.name && entry.status != SiteStatus::replaced) {
                return entry.because;
            }
        }
        return "it could not take the place of the original";
    }

    bool computes_in(const std::string& name, const std::string& precision) const {
        return std::any_of(made_.report.sites.begin(), made_.report.sites.end(),
                           [&](const SiteReport& site) {
                               return site.site == name && site.precision == precision &&
                                      site.status == SiteStatus::replaced;
                           });
    }

    // A site's options in the order of their bytes; each step must save some, and one that is
    // better in both is taken instead.
    void add_steps(std::size_t number) {
        CoarserSite& site = sites_[number];
        std::stable_sort(site.options.begin(), site.options.end(),
                         [](const Option& a, const Option& b) { return a.error < b.error; });
        double squared = 0;
        std::size_t bytes = site.bytes;
        std::vector<Option> better;
        for (const Option& option : site.options) {
            if (option.bytes < bytes) {
                const double added = option.error * option.error - squared;
                steps_.push_back({number, better.size(),
                                  added / static_cast<double>(bytes - option.bytes), added});
                squared = option.error * option.error;
                bytes = option.bytes;
                better.push_back(option);
            }
        }
        site.options = std::move(better);
    }

    void choose(const CoarserSite& site, const Choice& choice) {
        runtime::Site& planned = in_plan(site);
        planned.candidates = site.candidates;
        planned.put_back.reset();
        runtime::choose_candidate(kernelizing_.plan(), planned, choice);
    }

    void choose_exact(const CoarserSite& site) {
        runtime::Site& planned = in_plan(site);
        planned.candidates = site.candidates;
        for (runtime::Candidate& one : planned.candidates) {
            if (one.serves() && !one.choice.precision().empty()) {
                one.refused = why_not(site, one.choice);
            }
        }
        const auto exact = std::find_if(planned.candidates.begin(), planned.candidates.end(),
                                        [](const auto& one) { return one.serves(); });
        if (exact != planned.candidates.end()) {
            runtime::choose_candidate(kernelizing_.plan(), planned, Choice(exact->choice));
        } else {
            runtime::keep_original(kernelizing_.plan(), planned,
                                   planned.candidates.front().refused);
        }
    }

    std::string why_not(const CoarserSite& site, const Choice& choice) const {
        if (const auto wrong = site.wrong.find(choice.describe()); wrong != site.wrong.end()) {
            return wrong->second;
        }
        for (const Option& option : site.options) {
            if (option.choice == choice) {
                return fmt::format(
                    "its error, {:.2g}, does not fit into what the model may have, {:.2g}",
                    option.error, request_.max_error);
            }
        }
        return "another precision is better in both error and size";
    }

    void take(std::size_t count) {
        std::vector<const Option*> chosen(sites_.size(), nullptr);
        for (std::size_t i = 0; i < count; ++i) {
            const CoarserSite& site = sites_[steps_[i].site];
            const Option& option = site.options[steps_[i].option];
            const Option*& now = chosen[steps_[i].site];
            now = now == nullptr || option.bytes < now->bytes ? &option : now;
        }
        for (std::size_t i = 0; i < sites_.size(); ++i) {
            chosen[i] != nullptr ? choose(sites_[i], chosen[i]->choice) : choose_exact(sites_[i]);
        }
        kernelizing_.make_again(made_);
        taken_ = count;
    }

    bool within(std::size_t count) {
        take(count);
        channel_.stage("precision", fmt::format("in {} of {} steps", count, steps_.size()));
        runtime::VerificationContext context = context_;
        context.max_error = request_.max_error;
        context.agreement = request_.agree;
        const auto whole = runtime::verify_whole(context, made_.model);
        channel_.trace(fmt::format("  {} of {} steps: the model's error is {:.3g}{}{}", count,
                                   steps_.size(), whole.comparison.error, whole.right ? "" : "; ",
                                   whole.because));
        return whole.right;
    }

    // Between two counts: where the sum of the squared errors is in the middle.
    std::size_t between(std::size_t fits, std::size_t too_many) const {
        double all = 0;
        for (std::size_t i = fits; i < too_many; ++i) {
            all += steps_[i].squared;
        }
        double sum = 0;
        std::size_t middle = fits;
        while (middle + 1 < too_many && sum < all / 2) {
            sum += steps_[middle++].squared;
        }
        return std::clamp(middle, fits + 1, too_many - 1);
    }

    Kernelizing& kernelizing_;
    Kernelized& made_;
    runtime::VerificationContext& context_;
    const Request& request_;
    const Channel& channel_;
    std::vector<CoarserSite> sites_;
    std::vector<Step> steps_;  // the cheapest first
    std::size_t original_bytes_ = 0;
    std::optional<std::size_t> taken_;  // steps that the model is made with; none: with others
};

Json sites_by_precision(const Report& report) {
    Json sites = Json::object();
    for (const SiteReport& site : report.sites) {
        if (!site.precision.empty() && site.status == SiteStatus::replaced) {
            sites[site.precision] = sites.value(site.precision, 0) + 1;
        }
    }
    return sites;
}

}  // namespace

Json fit_precision(Kernelizing& kernelizing, Kernelized& made,
                   runtime::VerificationContext& context, const Request& request,
                   const Channel& channel) {
    PrecisionSearch search(kernelizing, made, context, request, channel);
    search.begin_exact();
    search.measure_each();
    search.take_what_fits();
    kernelizing.verify_sites(made, context);
    const Json sites = sites_by_precision(made.report);
    if (!sites.empty()) {
        context.max_error = request.max_error;
        context.agreement = request.agree;
    } else {
        made.report.warnings.push_back(fmt::format("no layer computes in {}: {}",
                                                   fmt::join(request.precisions, " or "),
                                                   search.why_none()));
    }
    return {{"asked", request.precisions},
            {"max_error", request.max_error},
            {"sites", sites},
            {"candidates", search.site_count()},
            {"weights_bytes", bytes_of(made.model)},
            {"original_bytes", search.original_bytes()}};
}

}  // namespace twinkle::worker
