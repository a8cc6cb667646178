#include "worker/kernelizing.h"

#include "base/file.h"
#include "base/text.h"
#include "runtime/convert/dtype_conversion.h"
#include "runtime/convert/portability.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/model/no_kernel_loading.h"
#include "runtime/plan/outline.h"
#include "runtime/plan/replan.h"
#include "runtime/plan/run.h"
#include "runtime/selection/modes.h"
#include "runtime/trial/kernel_trial.h"
#include "target/machine.h"
#include "worker/mapping_of.h"
#include "worker/more_inputs.h"
#include "worker/opened_model.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <memory>

namespace twinkle::worker {

using runtime::Verdict;

namespace {

// None: the model is for the CPU, or this LibTorch can use no such GPU.
std::optional<torch::Device> gpu_for(const Request& request) {
    const auto device = request.device ? runtime::torch_device(*request.device) : std::nullopt;
    if (!device || !device->is_cuda() || !at::CUDAHooksRegistry()->Has("CUDAHooks")) {
        return std::nullopt;
    }
    const auto driver = target::this_machine().cuda_driver();
    const std::size_t index =
        request.gpu.value_or(device->has_index() ? static_cast<std::size_t>(device->index()) : 0);
    if (!driver || index >= driver->gpus.size()) {
        return std::nullopt;
    }
    return request.gpu ? torch::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index)) : device;
}

}  // namespace

Kernelizing::Kernelizing(const Request& request, const Channel& channel)
    : request_(request), channel_(channel), mapping_(mapping_of(request)) {
    runtime::leave_threads_to_children();
    options_.mode = request.mode;
    options_.device = request.device;
    options_.dtype = request.dtype;
    options_.load_kernels = request.load_kernels;
    options_.only = request.only;
    options_.exclude = request.exclude;
    options_.precisions = request.precisions;
    options_.fallback = parse_fallbacks(request.fallback);
    if (request.inputs) {
        inputs_ = runtime::read_inputs(*request.inputs);
        options_.inputs = inputs_.positional;
        options_.named_inputs = inputs_.named;
    }
    options_.kernels_in_children = true;
    options_.prove_on = request.load_kernels ? gpu_for(request) : std::nullopt;
    options_.observer = [this](const std::string& stage, const std::string& what) {
        observe(stage, what);
    };
}

void Kernelizing::observe(const std::string& stage, const std::string& what) {
    channel_.stage(stage, what);
    for (const MappedKernel& kernel : mapping_.kernels) {
        if (stage == "load-kernel" && kernel.name == what) {
            channel_.trace("  from " + base::display_path(kernel.path) + ", " +
                           std::to_string(kernel.files.size()) + " files, operators " +
                           (kernel.op_namespace.empty() ? "none" : kernel.op_namespace));
        }
    }
}

runtime::Job Kernelizing::job_for(torch::jit::Module& model) const {
    return {model, mapping_, options_,
            options_.load_kernels ? runtime::try_kernel : runtime::declare_kernel};
}

torch::jit::Module Kernelizing::open_model() {
    if (options_.load_kernels) {
        LoadOptions options;
        options.kernel_dirs = request_.kernel_dirs;
        options.model = request_.model_name;
        options.explain = [&](const std::string& attempt) { channel_.trace(attempt); };
        runtime::load_required_kernels(request_.model, options, runtime::try_kernel);
    } else {
        runtime::declare_required(request_.model, request_.model_name, mapping_);
    }
    torch::jit::Module model = open_to_use(request_, channel_);
    was_marked_ = runtime::remove_graphs_mark(model);
    return model;
}

Kernelized Kernelizing::kernelize(GivenChoices* choices) {
    const runtime::NoKernelLoading nothing_loaded;
    Kernelized made{open_model(), {}};
    const std::string own = runtime::unmangled(made.model.type()->name()->qualifiedName());
    if (!request_.recorded_model.empty() && request_.recorded_model != own) {
        channel_.warning("the recorded calls are of " + base::printable(request_.recorded_model) +
                         ", this model is " + base::printable(own));
    }
    planned_ = std::make_unique<runtime::PlannedModel>(job_for(made.model));
    if (choices != nullptr) {
        choices->apply(planned_->plan(), planned_->device());
    }
    made.report = planned_->apply();
    if (refuse_unfit(made.report)) {
        make_again(made);
    }
    replaced_any_ = made.report.count(SiteStatus::replaced) != 0;
    runtime::report_nothing_replaced(made.report, mapping_);
    return made;
}

// A candidate that could not take its site, as its code does not compile there, gives way to the
// next one. Whether any site has one.
bool Kernelizing::refuse_unfit(const Report& report) {
    bool any = false;
    for (const auto& [path, why] : planned_->unprepared()) {
        if (runtime::Site* site = runtime::reported_site(planned_->plan(), path)) {
            any = true;
            if (!runtime::refuse_chosen(planned_->plan(), *site, why)) {
                runtime::keep_original(planned_->plan(), *site, why);
            }
        }
    }
    for (const SiteReport& entry : report.sites) {
        runtime::Site* site = runtime::reported_site(planned_->plan(), entry.site);
        const bool another = site != nullptr && site->choice &&
                             planned_->failed().contains(entry.site) &&
                             site->candidates.size() > 1 && site->candidates[1].serves();
        any = (another && runtime::refuse_chosen(planned_->plan(), *site, entry.because)) || any;
    }
    return any;
}

runtime::VerificationContext Kernelizing::verification(const Report& report) const {
    runtime::VerificationContext context;
    context.original = request_.model;
    context.original_name = request_.model_name;
    const auto bytes = std::filesystem::file_size(request_.model);
    context.device = gpu();
    context.limits = gpu() ? runtime::SandboxLimits::for_bytes_on_gpu(bytes)
                           : runtime::SandboxLimits::for_bytes(bytes);
    context.limits.total +=
        std::chrono::seconds(static_cast<long>(4 * request_.duration.value_or(0)));
    context.limits.confinement.readable = {request_.model};
    context.limits.confinement.none = request_.allow_io;
    context.inputs = inputs_;
    if (report.dtype) {
        context.dtype = runtime::floating_dtype(*report.dtype);
        context.inputs = runtime::with_dtype(context.inputs, *context.dtype);
    }
    context.tolerance = request_.tolerance;
    if (request_.sizes) {
        context.sizes = runtime::size_variants(context.inputs);
    }
    context.gradients = runtime::wants_training(report.mode);
    context.prepare = [this](torch::jit::Module& model, const std::vector<std::string>& sites) {
        runtime::outline_sites(mapping_, planned_->plan(), model, sites);
    };
    context.observer = [this](std::size_t done, std::size_t total, const std::string& site) {
        channel_.progress(done, total, site);
    };
    return context;
}

std::map<std::string, Verdict> Kernelizing::judge(const Kernelized& made,
                                                  runtime::VerificationContext& context,
                                                  const std::vector<std::string>& sites) {
    context.coarser.clear();
    for (const SiteReport& site : made.report.sites) {
        if (!site.precision.empty() || !coarser_inside(site).empty()) {
            context.coarser.insert(site.site);
        }
    }
    auto [judged, sizes] = runtime::verify_sites(context, made.model, sites);
    keep_sizes(context, std::move(sizes));
    for (const SiteReport& site : made.report.sites) {
        const auto verdict = judged.find(site.site);
        // A run that only measures says nothing of values, unless it fails.
        if (verdict != judged.end() && (context.compares || !verdict->second.right)) {
            verdicts_.insert_or_assign({site.site, candidate_of(site)}, verdict->second);
        }
    }
    return judged;
}

void Kernelizing::keep_sizes(runtime::VerificationContext& context,
                             std::vector<runtime::SizeVariant> accepted) {
    refuse_lost_inputs(request_, channel_, context.sizes, accepted);
    say_unmeasured(context, accepted);
    context.sizes = std::move(accepted);
}

// Sizes that --tune-sizes names, once they have been tried.
void Kernelizing::say_unmeasured(const runtime::VerificationContext& tried,
                                 const std::vector<runtime::SizeVariant>& accepted) {
    const bool first = !said_unmeasured_ && std::any_of(tried.sizes.begin(), tried.sizes.end(),
                                                        [](const runtime::SizeVariant& one) {
                                                            return one.tuned && one.own == nullptr;
                                                        });
    said_unmeasured_ = said_unmeasured_ || first;
    for (const std::int64_t size :
         first ? runtime::unmeasured_sizes(tried.inputs, request_.tune_sizes, accepted)
               : std::vector<std::int64_t>()) {
        channel_.warning(fmt::format(
            "--tune-sizes: {} is not measured, as the original model does not run in it", size));
    }
}

void Kernelizing::drop_wrong(Kernelized& made, const std::map<std::string, Verdict>& verdicts) {
    if (refuse_failed(made, verdicts)) {
        make_again(made);
    }
}

void Kernelizing::say_if_nothing_is_left(Report& report) const {
    if (replaced_any_) {
        runtime::report_nothing_replaced(report, mapping_);
    }
}

std::map<std::string, Verdict> Kernelizing::verify_sites(Kernelized& made,
                                                         runtime::VerificationContext& context) {
    auto sites = unverified(made.report);
    if (sites.empty() && verdicts_.empty()) {
        context.sizes.clear();  // not tried with the original
    }
    while (!sites.empty()) {
        channel_.stage("verify", std::to_string(sites.size()) + " sites");
        drop_wrong(made, judge(made, context, sites));
        sites = unverified(made.report);  // parts of a layer put back, other candidates
    }
    std::map<std::string, Verdict> verdicts;
    for (SiteReport& site : made.report.sites) {
        const auto verdict = verdicts_.find({site.site, candidate_of(site)});
        if (verdict == verdicts_.end()) {
            continue;
        }
        verdicts.emplace(site.site, verdict->second);
        if (site.status == SiteStatus::replaced) {
            runtime::enter(verdict->second, site);
            if (!coarser_inside(site).empty()) {
                site.allowed_error.reset();  // the whole model's counts
            }
        }
    }
    return verdicts;
}

void Kernelizing::verify_conversion(Kernelized& made,
                                    const runtime::VerificationContext& context) const {
    if (!context.dtype) {
        return;
    }
    channel_.stage("verify", "the conversion to " + *made.report.dtype);
    const Verdict verdict = runtime::verify_conversion(context);
    runtime::enter(verdict, made.report.conversion.emplace());
    if (!verdict.right) {
        throw Error(ErrorCode::verification,
                    {.what = "the model is not right in " + *made.report.dtype + " on these inputs",
                     .where = base::display_path(request_.model),
                     .why = verdict.because,
                     .hint = "nothing was written; convert the model before it is traced"});
    }
}

void Kernelizing::verify_whole(Kernelized& made,
                               const runtime::VerificationContext& context) const {
    channel_.stage("verify", "the whole model");
    const Verdict whole = runtime::verify_whole(context, made.model);
    runtime::enter(whole, made.report.whole);
    made.report.verified = true;
    warn_of_unreached(made.report);
    if (made.report.device != "cpu" && !gpu()) {
        made.report.warnings.push_back("the values were compared on the CPU, not on " +
                                       made.report.device);
    }
    if (!whole.right) {
        throw Error(ErrorCode::verification,
                    {.what = "the kernelized model as a whole is not right on these inputs",
                     .where = base::display_path(request_.model),
                     .why = whole.because + "; every replaced site alone was right",
                     .hint = context.gradients && !request_.mode
                                 ? "nothing was written; the model is saved in training mode, so "
                                   "that its gradients count: --mode inference if it only serves"
                                 : "nothing was written; narrow it down with --only or --exclude"});
    }
}

void Kernelizing::warn_of_unreached(Report& report) const {
    std::size_t count = 0;
    std::string first;
    for (const SiteReport& site : report.sites) {
        const auto verdict = verdicts_.find({site.site, candidate_of(site)});
        if (site.status == SiteStatus::replaced && verdict != verdicts_.end() &&
            !verdict->second.reached) {
            first = count++ == 0 ? site.site : first;
        }
    }
    if (count != 0) {
        report.warnings.push_back(fmt::format(
            "{} of the replaced sites {} not reached by these inputs, so not verified "
            "({}{}): give inputs that run {}, or leave {} out with --exclude",
            count, count == 1 ? "is" : "are", base::printable(first), count == 1 ? "" : ", …",
            count == 1 ? "it" : "them", count == 1 ? "it" : "them"));
    }
}

base::Json verified_on(const runtime::VerificationContext& context) {
    base::Json shapes =
        base::Json::array({{{"size", "given"}, {"inputs", runtime::shapes_text(context.inputs)}}});
    for (const runtime::SizeVariant& size : context.sizes) {
        shapes.push_back(
            {{"size", size.name()}, {"inputs", runtime::shapes_text(size.of(context.inputs))}});
    }
    return {{"shapes", std::move(shapes)}, {"tolerance", context.tolerance}};
}

void Kernelizing::throw_failed(const std::string& site, const Verdict& verdict) const {
    // Wrong values are a failed verification; a kernel that gives none does not work on this
    // machine.
    throw Error(
        verdict.ran ? ErrorCode::verification : ErrorCode::refused,
        {.what = "a replaced site is not right on these inputs",
         .where = site,
         .why = verdict.because,
         .hint =
             "nothing was written; exclude the site, or leave out --strict to keep its original"});
}

// A failed candidate gives way to the next one, or to the original. Returns whether any did.
bool Kernelizing::refuse_failed(Kernelized& made, const std::map<std::string, Verdict>& verdicts) {
    bool any = false;
    for (SiteReport& entry : made.report.sites) {
        const auto verdict = verdicts.find(entry.site);
        runtime::Site* site = runtime::reported_site(planned_->plan(), entry.site);
        if (verdict == verdicts.end() || verdict->second.right || site == nullptr) {
            continue;
        }
        any = true;
        runtime::enter(verdict->second, entry);
        if (runtime::refuse_chosen(planned_->plan(), *site, entry.because)) {
            continue;
        }
        if (request_.strict) {
            throw_failed(entry.site, verdict->second);
        }
        verdicts_.insert_or_assign({entry.site, ""}, verdict->second);
        runtime::put_back(planned_->plan(), *site, entry);
    }
    return any;
}

void Kernelizing::make_again(Kernelized& made) {
    const runtime::NoKernelLoading nothing_loaded;
    do {
        made.model = open_model();
        auto planned = std::make_unique<runtime::PlannedModel>(job_for(made.model), *planned_);
        made.report.sites = planned->apply().sites;
        planned_ = std::move(planned);
    } while (refuse_unfit(made.report));
}

std::string Kernelizing::candidate_of(const SiteReport& entry) const {
    const runtime::Site* site = runtime::reported_site(planned_->plan(), entry.site);
    std::string text;
    if (site != nullptr && site->choice) {
        text = fmt::format("{}{}", site->choice->id(), site->choice->cfg_text());
        for (const auto& part :
             site->by_size ? site->by_size->parts : std::vector<runtime::ChoiceBySize::Part>()) {
            text += fmt::format(" {}:{}{}", part.up_to, part.choice ? part.choice->id() : nullptr,
                                part.choice ? part.choice->cfg_text() : "");
        }
    }
    for (const runtime::Site* part : coarser_inside(entry)) {
        text += fmt::format(" {}:{}", part->report.site, part->choice->id());
    }
    return text;
}

// Layers with fewer bits that a layer which serves the site calls: they are part of its errors.
std::vector<const runtime::Site*> Kernelizing::coarser_inside(const SiteReport& entry) const {
    std::vector<const runtime::Site*> parts;
    const runtime::Site* site = runtime::reported_site(planned_->plan(), entry.site);
    if (site == nullptr || !site->is_layer()) {
        return parts;
    }
    for (const runtime::Site& part : planned_->plan().sites) {
        if (part.is_layer() && part.is_reported() && part.choice &&
            !part.choice->precision().empty() &&
            runtime::is_inside(part.instance.path, site->instance.path)) {
            parts.push_back(&part);
        }
    }
    return parts;
}

std::vector<std::string> Kernelizing::unverified(const Report& report) const {
    std::vector<std::string> sites;
    for (const SiteReport& site : report.sites) {
        if (site.status == SiteStatus::replaced &&
            !verdicts_.contains({site.site, candidate_of(site)})) {
            sites.push_back(site.site);
        }
    }
    return sites;
}

}  // namespace twinkle::worker
