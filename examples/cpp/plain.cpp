// A server as they are: it knows torch::jit::load and nothing of twinkle. With the preload library
// it runs kernelized models too. Usage: plain MODEL
#include <torch/script.h>

#include <iostream>

int main(int, char** argv) {
    torch::InferenceMode inference;
    torch::manual_seed(1);
    torch::jit::Module model = torch::jit::load(argv[1]);
    at::Tensor tokens = torch::randint(256, {2, 64}, torch::kLong);
    at::Tensor logits = model.forward({tokens}).toTensor();
    std::cout << logits.sizes() << " " << logits.to(torch::kFloat).norm().item<float>() << "\n";
}
