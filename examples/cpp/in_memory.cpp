// Kernelizes a model in memory and says what became of every site. Usage: in_memory MODEL MAPPING
#include <twinkle/twinkle.h>

#include <iostream>

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: in_memory MODEL MAPPING\n";
        return 2;
    }
    try {
        torch::InferenceMode inference;
        auto [model, report] = twinkle::kernelize(argv[1], twinkle::Mapping::load(argv[2]), {});
        for (const twinkle::SiteReport& site : report.sites) {
            std::cout << twinkle::site_status_name(site.status) << "  " << site.site << "  "
                      << (site.kernel.empty() ? site.because : site.kernel) << "\n";
        }
        at::Tensor tokens = torch::randint(256, {2, 64}, torch::kLong);
        std::cout << model.forward({tokens}).toTensor().sizes() << "\n";
    } catch (const twinkle::Error& error) {
        std::cerr << error.what() << "\n";
        return error.exit_code();
    }
}
