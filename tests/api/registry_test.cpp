// Registered kernels, through the public interface: what replaces a layer, what keeps it and why.

#include "api/package.h"
#include "error_code.h"

#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::adds;
using tests::code_of;
using tests::model_of;
using tests::only_site;
using tests::output;
using tests::package;

namespace {

// A registry with the class of the models bound to "Add".
struct Bound {
    Bound() { registry.register_external_layer("tests.Plus", "Add"); }

    // A kernel that adds a number, under the name "Add".
    void add(const std::string& number, const std::string& mode = "", const std::string& flags = "",
             const std::string& device = "") {
        const auto path = package(folder.path() / ("kernel" + std::to_string(++made)),
                                  adds("Layer", number, flags));
        registry.register_layer_kernel({.kernel_name = "Add",
                                        .repo_path = path,
                                        .layer_name = "Layer",
                                        .device = device,
                                        .mode = mode});
    }

    Report kernelize(torch::jit::Module& model, ModelOptions options = {}) {
        options.registry = &registry;
        return kernelize_model(model, options);
    }

    // The model's result for 0 after kernelize in a mode.
    double in_mode(const std::string& mode) {
        auto model = model_of();
        kernelize(model, {.mode = mode});
        return output(model);
    }

    tests::Folder folder;
    Registry registry;
    int made = 0;
};

const std::string compiles = "    can_torch_compile = True\n";

}  // namespace

TEST_CASE("a local kernel is registered, bound to a class, and replaces its forward") {
    const tests::Folder folder;
    package(folder.path() / "kernels" / "my_kernels", adds("Qwen2MLPTrainingKernel", "5"));
    Registry registry;
    registry.register_layer_kernel({.kernel_name = "MyAwesomeMLP",
                                    .repo_path = folder.path() / "kernels",
                                    .package_name = "my_kernels",
                                    .layer_name = "Qwen2MLPTrainingKernel",
                                    .device = "cpu",
                                    .mode = "train"});
    registry.register_external_layer("tests.Plus", "MyAwesomeMLP");
    auto model = model_of();
    const Report report = kernelize_model(
        model, {.mode = "train", .device = "cpu", .use_fallback = true, .registry = &registry});
    CHECK(only_site(report).status == SiteStatus::replaced);
    CHECK(only_site(report).kernel == "my_kernels: Qwen2MLPTrainingKernel");
    CHECK(report.mode == "training");
    CHECK(output(model) == 5);
}

TEST_CASE("the registry of the process is the default, and can be emptied") {
    const tests::Folder folder;
    register_layer_kernel(
        {.kernel_name = "Add", .repo_path = package(folder.path() / "k", adds("Add", "3"))});
    register_external_layer("tests.Plus", "Add");
    auto model = model_of();
    kernelize(model, {});
    CHECK(output(model) == 3);
    Registry::of_process().clear();
    auto plain = model_of();
    CHECK(kernelize(plain, {}).sites.empty());
}

TEST_CASE("what is registered is cleared, the way to the Hub stays") {
    const tests::Folder folder;
    const tests::Variable cache("KERNELS_CACHE", (folder.path() / "cache").string());
    std::vector<WantedKernel> asked;
    Registry registry;
    registry.set_hub({.get = {}, .has = [&](const WantedKernel& wanted) {
                          asked.push_back(wanted);
                          return true;
                      }});
    registry.clear();
    CHECK(has_kernel("acme/norm", {.version = 1, .registry = &registry}));
    CHECK(asked.size() == 1);
}

TEST_CASE("a config's trust holds with and without a hub client") {
    const tests::Folder folder;
    const tests::Variable cache("KERNELS_CACHE", (folder.path() / "cache").string());
    tests::cached_kernel(folder.path() / "cache", "acme", "norm", "v1", '1', adds("Norm", "10"));
    folder.write("twinkle.toml",
                 "presets = []\ntrust = [\"acme/*\"]\n[layers.Norm]\nrepo_id = \"acme/norm\"\n"
                 "version = 1\nclasses = [\"tests.Plus\"]\n");
    Registry registry;
    registry.register_kernels(Config::load(folder.path() / "twinkle.toml"));
    auto model = model_of();
    const Report report = kernelize_model(model, {.registry = &registry});
    CHECK(output(model) == 10);
    for (const std::string& warning : report.warnings) {
        CHECK_THAT(warning, !ContainsSubstring("publisher"));
    }

    std::vector<WantedKernel> asked;
    const auto note = [&](const WantedKernel& wanted) {
        asked.push_back(wanted);
        return true;
    };
    const auto snapshot = folder.path() / "cache/kernels--acme--norm/snapshots" /
                          std::string(40, '1') / "build/torch-universal";
    registry.set_hub({.get =
                          [&](const WantedKernel& wanted) {
                              note(wanted);
                              return FoundKernel{std::string(40, '1'), snapshot};
                          },
                      .has = note});
    CHECK(has_kernel("acme/norm", {.version = 1, .registry = &registry}));
    auto online = model_of();
    kernelize_model(online, {.registry = &registry});
    CHECK(output(online) == 10);
    REQUIRE(asked.size() == 2);
    for (const WantedKernel& wanted : asked) {
        CHECK(wanted.trust == std::vector<std::string>{"acme/*"});
    }
}

TEST_CASE("a model on several devices is kernelized for the first, with a warning") {
    Bound bound;
    bound.add("2");
    auto model = model_of();
    for (const char* device : {"cpu", "meta"}) {
        model.register_parameter(std::string("on_") + device,
                                 torch::zeros({1}, c10::Device(device)), false);
    }
    const Report report = bound.kernelize(model);
    CHECK(only_site(report).status == SiteStatus::replaced);
    REQUIRE(report.warnings.size() == 1);
    CHECK_THAT(report.warnings[0], ContainsSubstring("several devices (cpu, meta)"));
}

TEST_CASE("which registration serves a mode: the order of the search") {
    const std::vector<std::string> registered = {"inference", "inference+compile", "training",
                                                 "training+compile", "fallback"};
    const std::map<std::string, std::vector<std::size_t>> orders = {
        {"inference", {0, 1, 2, 3, 4}},
        {"training", {2, 3, 4}},
        {"inference+compile", {1, 3, 4}},
        {"training+compile", {3, 4}},
    };
    // Every subset of the registrations: the first one present in the order wins, or none.
    for (unsigned subset = 0; subset < 32; ++subset) {
        Bound bound;
        for (std::size_t i = 0; i < registered.size(); ++i) {
            if ((subset >> i & 1) != 0) {
                bound.add(std::to_string(i + 1), registered[i], compiles);
            }
        }
        for (const auto& [asked, order] : orders) {
            double expected = 0;
            for (const std::size_t one : order) {
                expected = expected == 0 && (subset >> one & 1) != 0 ? one + 1.0 : expected;
            }
            INFO("subset " << subset << " asked for " << asked);
            CHECK(bound.in_mode(asked) == expected);
        }
    }
}

TEST_CASE("the mode is that of the model, or what the older options say") {
    Bound bound;
    bound.add("1", "inference", compiles);
    bound.add("2", "training", compiles);
    bound.add("4", "training+compile", compiles);
    auto model = model_of();
    CHECK(bound.kernelize(model).mode == "inference");
    CHECK(output(model) == 1);
    auto training = model_of();
    training.train();
    CHECK(bound.kernelize(training).mode == "training");
    auto backward = model_of();
    bound.kernelize(backward, {.needs_backward = true, .needs_torch_compile = true});
    CHECK(output(backward) == 4);
    auto both = model_of();
    CHECK(code_of([&] { bound.kernelize(both, {.mode = "inference", .needs_backward = true}); }) ==
          ErrorCode::malformed);
    CHECK(code_of([&] { bound.kernelize(both, {.mode = "fallback"}); }) == ErrorCode::malformed);
    CHECK(code_of([&] { bound.kernelize(both, {.mode = "quickly"}); }) == ErrorCode::malformed);
}

TEST_CASE("flags of a layer: an error where it is registered for a mode, else the original") {
    Bound bound;
    bound.add("1", "training", "    has_backward = False\n");
    auto model = model_of();
    CHECK(code_of([&] { bound.kernelize(model, {.mode = "training"}); }) == ErrorCode::malformed);
    CHECK(bound.in_mode("inference") == 1);  // which a registration for training serves, too

    Bound other;
    other.add("1", "inference+compile");  // can_torch_compile is false where nothing is said
    CHECK(other.in_mode("inference") == 1);
    CHECK(code_of([&] { other.kernelize(model, {.mode = "inference+compile"}); }) ==
          ErrorCode::malformed);

    Bound fallback;
    fallback.add("1", "", "    has_backward = False\n");
    CHECK(fallback.in_mode("inference") == 1);
    CHECK(fallback.in_mode("training") == 0);
    CHECK(fallback.in_mode("inference+compile") == 0);
    CHECK(code_of([&] {
              fallback.kernelize(model, {.mode = "training", .use_fallback = false});
          }) == ErrorCode::refused);
}

TEST_CASE("every case of a fallback: kept with its reason, or refused") {
    const auto kept = [](Bound& bound, ModelOptions options, Fallback which,
                         const std::string& reason) {
        INFO(fallback_name(which));
        auto model = model_of();
        FallbackSet with = default_fallbacks();
        with.insert(which);
        options.use_fallback = with;
        const Report report = bound.kernelize(model, options);
        CHECK(only_site(report).status == SiteStatus::kept);
        CHECK_THAT(only_site(report).because, ContainsSubstring(reason));
        CHECK(output(model) == 0);
        with.erase(which);
        options.use_fallback = with;
        auto again = model_of();
        CHECK_THROWS_AS(bound.kernelize(again, options), Error);
    };
    Bound empty;
    kept(empty, {}, Fallback::no_layer, "nothing is mapped to Add");
    Bound cuda;
    cuda.add("1", "", "", "cuda");
    kept(cuda, {.device = "cpu"}, Fallback::no_device, "no kernel for cpu, only for cuda");
    Bound range;
    range.registry.register_layer_kernel({.kernel_name = "Add",  // no such GPU exists
                                          .repo_path = range.folder.path(),
                                          .device = "cuda",
                                          .capability = std::pair(990, 991)});
    kept(range, {.device = "cuda"}, Fallback::no_compatible_properties, "capability");
    Bound inference;
    inference.add("1", "inference");
    kept(inference, {.mode = "training"}, Fallback::no_compatible_mode,
         "not registered for training");
    Bound beyond;
    const auto path = package(beyond.folder.path() / "beyond", adds("Layer", "x.numpy()"));
    beyond.registry.register_layer_kernel(
        {.kernel_name = "Add", .repo_path = path, .layer_name = "Layer"});
    kept(beyond, {}, Fallback::cannot_compile, "layers.py:");
}

TEST_CASE("a kernel that is not there is an error, or a fallback if that is allowed") {
    Bound bound;
    bound.registry.register_layer_kernel(
        {.kernel_name = "Add", .repo_path = bound.folder.path() / "nothing-here"});
    auto model = model_of();
    CHECK(code_of([&] { bound.kernelize(model); }) == ErrorCode::not_found);
    FallbackSet all = default_fallbacks();
    all.insert(Fallback::cannot_load);
    const Report report = bound.kernelize(model, {.use_fallback = all});
    CHECK_THAT(only_site(report).because, ContainsSubstring("no kernel in the folder"));
}

TEST_CASE("a model without the class costs nothing, not even a kernel that is not there") {
    Bound bound;
    bound.registry.register_layer_kernel(
        {.kernel_name = "Add", .repo_path = bound.folder.path() / "nothing-here"});
    auto other = model_of("Other");
    const Report report = bound.kernelize(other);
    CHECK(report.sites.empty());
    CHECK_THAT(report.warnings.front(), ContainsSubstring("Add binds no class of this model"));
}

TEST_CASE("a name that binds nothing is reported with the nearest class") {
    Registry registry;
    const tests::Folder folder;
    registry.register_layer_kernel(
        {.kernel_name = "plus", .repo_path = package(folder.path(), adds("plus", "1"))});
    auto model = model_of();
    const Report report = kernelize_model(model, {.registry = &registry});
    CHECK_THAT(report.warnings.front(), ContainsSubstring("plus binds no class") &&
                                            ContainsSubstring("classes = [\"tests.Plus\"]"));
}

TEST_CASE("conditions on instances, as data and as code") {
    Bound bound;
    bound.add("1");
    bound.registry.register_external_layer("tests.Plus", "Add", [](const torch::jit::Module& one) {
        return one.attr("weight").toTensor().size(0) == 8;
    });
    auto model = model_of();
    CHECK_THAT(only_site(bound.kernelize(model)).because, ContainsSubstring("condition"));
    bound.registry.register_external_layer("tests.Plus", "Add", [](const torch::jit::Module& one) {
        return one.attr("weight").toTensor().size(0) == 4;
    });
    CHECK(only_site(bound.kernelize(model)).status == SiteStatus::replaced);

    Registry registry;
    const auto path = package(bound.folder.path() / "when", adds("Add", "7"));
    registry.register_layer_kernel({.kernel_name = "Add",
                                    .repo_path = path,
                                    .classes = {"tests.Plus"},
                                    .when = {{"eps", 1e-5}}});
    auto kept = model_of();
    kernelize_model(kept, {.registry = &registry});
    CHECK(output(kept) == 0);
    registry.register_layer_kernel({.kernel_name = "Add",
                                    .repo_path = path,
                                    .classes = {"tests.Plus"},
                                    .when = {{"eps", 1e-6}}});
    auto replaced = model_of();
    kernelize_model(replaced, {.registry = &registry});
    CHECK(output(replaced) == 7);
}

TEST_CASE("of two bindings of one class the later one counts") {
    const tests::Folder folder;
    const auto path = [&](const std::string& number) {
        return package(folder.path() / number, adds("Layer", number));
    };
    const auto layer = [&](const std::string& name, const std::string& number) {
        return LayerKernel{.kernel_name = name, .repo_path = path(number), .layer_name = "Layer"};
    };
    const auto computed = [](const Registry& registry) {
        auto model = model_of();
        kernelize_model(model, {.registry = &registry});
        return output(model);
    };
    Registry registry;
    registry.register_layer_kernel(layer("One", "1"));
    registry.register_layer_kernel(layer("Two", "2"));
    registry.register_external_layer("tests.Plus", "One");
    registry.register_external_layer("tests.Plus", "Two");
    CHECK(computed(registry) == 2);
    registry.register_external_layer("tests.Plus", "One");
    CHECK(computed(registry) == 1);

    // With a condition it takes the instances where that holds, and leaves the others.
    const auto of_size = [](std::int64_t size) {
        return [=](const torch::jit::Module& one) {
            return one.attr("weight").toTensor().size(0) == size;
        };
    };
    registry.register_external_layer("tests.Plus", "Two", of_size(8));
    CHECK(computed(registry) == 1);
    registry.register_external_layer("tests.Plus", "Two", of_size(4));
    CHECK(computed(registry) == 2);
    registry.register_external_layer("tests.Pl*", "One");
    CHECK(computed(registry) == 1);

    // `classes` of a registration bind in the same way, and so does a whole config, in which the
    // first layer wins, as in a manifest.
    LayerKernel three = layer("Three", "3");
    three.classes = {"tests.Plus"};
    registry.register_layer_kernel(three);
    CHECK(computed(registry) == 3);
    Config config;
    config.layers = {layer("Four", "4"), layer("Five", "5")};
    config.layers[0].classes = config.layers[1].classes = {"tests.Plus"};
    registry.register_kernels(config);
    CHECK(computed(registry) == 4);
    registry.register_layer_kernel(three);
    CHECK(computed(registry) == 3);

    // A site that the later one cannot serve is left to the earlier.
    LayerKernel elsewhere = layer("Six", "6");
    elsewhere.classes = {"tests.Plus"};
    elsewhere.device = "cuda";
    registry.register_layer_kernel(elsewhere);
    CHECK(computed(registry) == 3);
}

TEST_CASE("mappings: per device and mode, scoped, nested, with and without what was there") {
    Bound bound;
    bound.add("1");
    const auto repository = [&](const char* number) {
        return LayerRepository{
            .layer_name = "Layer",
            .repo_path = package(bound.folder.path() / number, adds("Layer", number, compiles))};
    };
    const KernelMapping two{{"Add", {{"cpu", repository("2")}}}};
    const KernelMapping three{
        {"Add", {{"cpu", {{"inference", repository("3")}, {"training", repository("4")}}}}}};
    const KernelMapping unrelated{{"Other", {{Device("cuda", 80, 90), repository("5")}}}};
    {
        const auto scope = use_kernel_mapping(two);
        CHECK(bound.in_mode("inference") == 2);  // cpu before every device
        {
            const auto inner = use_kernel_mapping(three);
            CHECK(bound.in_mode("inference") == 3);
            CHECK(bound.in_mode("training") == 4);
            std::thread([&] { CHECK(bound.in_mode("inference") == 1); }).join();
            const auto alone = use_kernel_mapping(unrelated, /*inherit_mapping=*/false);
            CHECK(bound.in_mode("inference") == 0);
        }
        CHECK(bound.in_mode("training") == 2);
    }
    CHECK(bound.in_mode("inference") == 1);
    bound.registry.register_kernel_mapping(three);
    CHECK(bound.in_mode("training") == 4);
    // All modes of the device are replaced together.
    bound.registry.register_kernel_mapping(two);
    CHECK(bound.in_mode("training") == 2);
    bound.registry.register_kernel_mapping(unrelated, /*inherit_mapping=*/false);
    CHECK(bound.in_mode("inference") == 0);
}

TEST_CASE("registrations that cannot be meant are refused at once") {
    Registry registry;
    const auto refused = [&](LayerKernel layer) {
        CHECK(code_of([&] { registry.register_layer_kernel(std::move(layer)); }) ==
              ErrorCode::malformed);
    };
    refused({.kernel_name = ""});
    refused({.kernel_name = "A", .device = "gpu"});
    refused({.kernel_name = "A", .mode = "backward"});
    refused({.kernel_name = "A", .repo_id = "a/b", .version = 1, .revision = "main"});
    refused({.kernel_name = "A", .repo_id = "a/b", .repo_path = "/x"});
    refused({.kernel_name = "A", .device = "cuda", .capability = std::pair(90, 80)});
    refused({.kernel_name = "A", .device = "cpu", .capability = std::pair(80, 90)});
    CHECK(code_of([&] {
              const auto scope =
                  use_kernel_mapping({{"A", {{"gpu", LayerRepository{.repo_id = "a/b"}}}}});
          }) == ErrorCode::malformed);
    auto model = model_of();
    CHECK(kernelize_model(model, {.registry = &registry}).sites.empty());
}

TEST_CASE("strict: a bound site that is kept is an error") {
    Bound bound;
    bound.add("1", "training");
    bound.add("1", "fallback", "    has_backward = False\n");
    auto model = model_of();
    CHECK(code_of([&] { bound.kernelize(model, {.mode = "inference+compile", .strict = true}); }) ==
          ErrorCode::refused);
}

TEST_CASE("DISABLE_KERNEL_MAPPING keeps everything and looks for nothing") {
    Bound bound;
    bound.registry.register_layer_kernel({.kernel_name = "Add", .repo_path = "/nothing/here"});
    const tests::Variable disabled("DISABLE_KERNEL_MAPPING", "1");
    auto model = model_of();
    CHECK_THAT(only_site(bound.kernelize(model)).because,
               ContainsSubstring("DISABLE_KERNEL_MAPPING"));
}

TEST_CASE("kernels of the Hub come from the cache: two versions in one model") {
    const tests::Folder folder;
    const tests::Variable cache("KERNELS_CACHE", folder.path().string());
    tests::cached_kernel(folder.path(), "acme", "norm", "v1", '1', adds("Norm", "10"));
    tests::cached_kernel(folder.path(), "acme", "norm", "v2", '2', adds("Norm", "100"));
    Registry registry;
    registry.register_layer_kernel({.kernel_name = "One",
                                    .repo_id = "acme/norm",
                                    .version = 1,
                                    .layer_name = "Norm",
                                    .classes = {"tests.First"}});
    registry.register_layer_kernel({.kernel_name = "Two",
                                    .repo_id = "acme/norm",
                                    .version = 2,
                                    .layer_name = "Norm",
                                    .classes = {"tests.Second"}});
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    const std::string same = "def forward(self, x):\n    return x\n";
    torch::jit::Module model(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    model.register_module("a", tests::module_of("First", same, unit));
    model.register_module("b", tests::module_of("Second", same, unit));
    model.define("def forward(self, x):\n    return self.b.forward(self.a.forward(x))\n");
    model.eval();
    const Report report = kernelize_model(model, {.registry = &registry});
    CHECK(report.count(SiteStatus::replaced) == 2);
    CHECK(report.sites[0].kernel == "acme/norm@1: Norm");
    CHECK(report.sites[1].kernel == "acme/norm@2: Norm");
    CHECK(output(model) == 110);
    CHECK_THAT(report.warnings.front(), ContainsSubstring("publisher was not checked"));

    SECTION("what is not cached is named, with the command that gets it") {
        registry.register_layer_kernel({.kernel_name = "One",
                                        .repo_id = "acme/norm",
                                        .version = 3,
                                        .layer_name = "Norm",
                                        .classes = {"tests.First"}});
        auto again = model_of("First");
        try {
            kernelize_model(again, {.registry = &registry});
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::not_found);
            CHECK_THAT(error.what(),
                       ContainsSubstring("acme/norm@3") && ContainsSubstring("twinkle fetch"));
        }
    }
    SECTION("without a version: main, with a warning that names the newest") {
        tests::cached_kernel(folder.path(), "acme", "norm", "main", '3', adds("Norm", "1000"));
        Registry loose;
        loose.register_layer_kernel(
            {.kernel_name = "Norm", .repo_id = "acme/norm", .classes = {"tests.Plus"}});
        auto again = model_of();
        const Report said = kernelize_model(again, {.registry = &loose});
        CHECK(output(again) == 1000);
        CHECK_THAT(said.warnings.front(), ContainsSubstring("neither version nor revision") &&
                                              ContainsSubstring("newest known version is 2"));
    }
    SECTION("LOCAL_KERNELS takes its place") {
        package(folder.path() / "mine", adds("Norm", "7"));
        const tests::Variable local("LOCAL_KERNELS",
                                    "acme/norm=" + (folder.path() / "mine").string());
        auto again = model_of("First");
        kernelize_model(again, {.registry = &registry});
        CHECK(output(again) == 7);
    }
}

TEST_CASE("layers from a document, TOML or JSON") {
    const tests::Folder folder;
    package(folder.path() / "kernels" / "adders", adds("Three", "3"));
    folder.write("kernels.toml",
                 "[layers.Add]\nrepo_path = \"kernels\"\npackage_name = \"adders\"\n"
                 "layer_name = \"Three\"\nclasses = [\"tests.Plus\"]\n"
                 "[functions.add]\ntarget_module = \"my.ops\"\nrepo_path = \"kernels\"\n"
                 "package_name = \"adders\"\n");
    folder.write("kernels.json",
                 R"({"layers": {"Add": {"repo_path": "kernels", "package_name": "adders",
                     "layer_name": "Three", "classes": ["tests.Plus"]}}})");
    for (const char* name : {"kernels.toml", "kernels.json"}) {
        INFO(name);
        Registry registry;
        registry.register_kernels(Config::load(folder.path() / name));
        auto model = model_of();
        kernelize_model(model, {.registry = &registry});
        CHECK(output(model) == 3);
    }
    const Config config = Config::load(folder.path() / "kernels.toml");
    REQUIRE(config.functions.size() == 1);
    CHECK(config.functions.front().target_module == "my.ops");
    CHECK(config.functions.front().repo_path == folder.path() / "kernels");
    CHECK(code_of([&] { Config::load(folder.path() / "none.toml"); }) == ErrorCode::not_found);
    CHECK(code_of([&] { Config::preset("none"); }) == ErrorCode::not_found);
    CHECK(Config::preset("transformers").layers.size() > 1);
}

TEST_CASE("many threads register, and kernelize models of their own") {
    Bound bound;
    bound.add("1");
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round) {
                auto model = model_of();
                bound.registry.register_external_layer("tests.Other" + std::to_string(i), "Add");
                bound.kernelize(model);
                right += output(model) == 1 ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(right == 40);
}
