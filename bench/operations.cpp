#include "operations.h"

#include <utility>

namespace bench {
namespace {

std::string forward(const std::string& parameters, const std::string& expression) {
    return "def forward(self, " + parameters + "):\n    return " + expression + "\n";
}

// An activation: torch.nn's, or the formula in transformers.activations.
Operation activation(const std::string& name, const std::string& expression) {
    return {name, Inputs::one, 2, forward("x", expression), forward("x", "pack." + name + "(x)"),
            ""};
}

// The part of LlamaMLP.forward between the projections.
Operation gated(const std::string& name, const std::string& act) {
    return {name,
            Inputs::two,
            3,
            forward("gate, up", act + " * up"),
            forward("gate, up", "pack." + name + "(gate, up)"),
            ""};
}

// The same part of Phi3MLP.forward, where one projection computes both.
Operation halves(const std::string& name, const std::string& expression) {
    return {name,
            Inputs::halves,
            3,
            "def forward(self, x):\n"
            "    gate, up = x.chunk(2, dim=-1)\n"
            "    return " +
                expression + "\n",
            forward("x", "pack." + name + "(x)"),
            ""};
}

// kernels-community's layers allocate their result and let the operator fill it.
Operation silu_and_mul() {
    Operation operation = halves("silu_and_mul", "up * torch.silu(gate)");
    operation.community = R"(
def forward(self, x):
    if not x.is_contiguous():
        x = x.contiguous()
    d = x.shape[-1] // 2
    out = torch.empty(x.shape[:-1] + [d], dtype=x.dtype, device=x.device)
    community_activation.silu_and_mul(out, x)
    return out
)";
    return operation;
}

Operation relu() {
    Operation operation = activation("relu", "torch.relu(x)");
    operation.community = R"(
def forward(self, x):
    out = torch.empty_like(x)
    community_relu.relu(out, x)
    return out
)";
    return operation;
}

// The norms of transformers. 6 is torch.float32, as in a saved model.
const std::string normalize = R"(
    input_dtype = x.dtype
    x = x.to(6)
    variance = x.pow(2).mean(-1, keepdim=True)
    x = x * torch.rsqrt(variance + self.eps)
)";
const std::string llama_norm = normalize + "    return self.weight * x.to(input_dtype)\n";

std::vector<Operation> norms() {
    const std::string x = "def forward(self, x):", both = "def forward(self, x, residual):\n";
    const std::string add = both + "    residual = x + residual\n";
    const std::string weight_eps = "self.weight, self.eps",
                      weight_bias_eps = "self.weight, self.bias, self.eps";
    const std::string layer_norm = "torch.layer_norm(x, [self.width], " + weight_bias_eps + ")";
    return {
        {"rms_norm", Inputs::one, 2, x + llama_norm,
         forward("x", "pack.rms_norm(x, " + weight_eps + ")"),
         forward("x", "community_rmsnorm.apply_rms_norm(x, " + weight_eps + ")[0]")},
        {"rms_norm (Olmo)", Inputs::one, 2,
         x + normalize + "    return (self.weight * x).to(input_dtype)\n",
         forward("x", "pack.rms_norm(x, " + weight_eps + ", 0., True)"), ""},
        {"rms_norm (Gemma)", Inputs::one, 2,
         "def forward(self, x):\n"
         "    y = x.float()\n"
         "    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)\n"
         "    y = y * (1.0 + self.weight.float())\n"
         "    return y.type_as(x)\n",
         forward("x", "pack.rms_norm(x, " + weight_eps + ", 1., True)"), ""},
        {"add_rms_norm", Inputs::two, 4,
         "def norm(self, x):" + llama_norm + add + "    return self.norm(residual), residual\n",
         forward("x, residual", "pack.add_rms_norm(x, residual, " + weight_eps + ")"), ""},
        {"layer_norm", Inputs::one, 2, forward("x", layer_norm),
         forward("x", "pack.layer_norm(x, " + weight_bias_eps + ")"), ""},
        {"add_layer_norm", Inputs::two, 4,
         "def norm(self, x):\n    return " + layer_norm + "\n" + add +
             "    return self.norm(residual), residual\n",
         forward("x, residual", "pack.add_layer_norm(x, residual, " + weight_bias_eps + ")"), ""},
        // BERT does not use the sum again; the operator writes it anyway.
        {"add_layer_norm (BERT)", Inputs::two, 3,
         "def norm(self, x):\n    return " + layer_norm + "\n" + both +
             "    return self.norm(x + residual)\n",
         forward("x, residual", "pack.add_layer_norm(x, residual, " + weight_bias_eps + ")[0]"),
         ""},
    };
}

// transformers' apply_rotary_pos_emb of Llama, GPT-J's order of pairs, and StableLM's, which turns
// the first part of each head only.
const std::string rotate_half = R"(
def rotate(self, x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)
)";
const std::string rotate_pairs = R"(
def rotate(self, x):
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)
)";
const std::string rotary_head = R"(
def forward(self, q, k, cos, sin):
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
)";
const std::string rotary_original = rotary_head + R"(
    q_embed = (q * cos) + (self.rotate(q) * sin)
    k_embed = (k * cos) + (self.rotate(k) * sin)
    return q_embed, k_embed
)";
const std::string rotary_partial = rotary_head + R"(
    d = cos.shape[-1]
    q_rot, q_pass = q[..., :d], q[..., d:]
    k_rot, k_pass = k[..., :d], k[..., d:]
    q_embed = (q_rot * cos) + (self.rotate(q_rot) * sin)
    k_embed = (k_rot * cos) + (self.rotate(k_rot) * sin)
    return torch.cat((q_embed, q_pass), dim=-1), torch.cat((k_embed, k_pass), dim=-1)
)";
const std::string rotary_community = rotary_head + R"(
    q_rotated = q.clone()
    k_rotated = k.clone()
    half_dim = q.shape[-1] // 2
    q1 = q_rotated[..., :half_dim]
    q2 = q_rotated[..., half_dim:]
    k1 = k_rotated[..., :half_dim]
    k2 = k_rotated[..., half_dim:]
    if cos.shape[-1] != half_dim:
        cos = cos[..., :half_dim]
        sin = sin[..., :half_dim]
    community_rotary.apply_rotary(q1, q2, cos, sin, q1, q2, False)
    community_rotary.apply_rotary(k1, k2, cos, sin, k1, k2, False)
    return q_rotated, k_rotated
)";

std::string rotary_pack(const std::string& more) {
    const auto call = [&](const std::string& x) {
        return "pack.apply_rotary(" + x + ", cos, sin" + more + ")";
    };
    return rotary_head + "    return " + call("q") + ", " + call("k") + "\n";
}

std::vector<Operation> make() {
    const std::string gelu_new =
        "0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))";
    const std::string gelu_fast =
        "0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))";
    const std::string gelu_tanh_gate = "torch.gelu(gate, approximate=\"tanh\")";
    std::vector<Operation> all = {
        activation("silu", "torch.silu(x)"),
        activation("gelu", "torch.gelu(x)"),
        activation("gelu_tanh", "torch.gelu(x, approximate=\"tanh\")"),
        activation("gelu_new", gelu_new),
        activation("gelu_fast", gelu_fast),
        activation("gelu_quick", "x * torch.sigmoid(1.702 * x)"),
        relu(),
        gated("silu_mul", "torch.silu(gate)"),
        gated("gelu_mul", "torch.gelu(gate)"),
        gated("gelu_tanh_mul", gelu_tanh_gate),
        silu_and_mul(),
        halves("gelu_and_mul", "up * torch.gelu(gate)"),
        halves("gelu_tanh_and_mul", "up * " + gelu_tanh_gate),
        halves("mul_and_silu", "gate * torch.silu(up)"),
    };
    for (Operation& norm : norms()) all.push_back(std::move(norm));
    all.push_back({"apply_rotary", Inputs::rotary, 4, rotate_half + rotary_original,
                   rotary_pack(""), rotary_community});
    all.push_back({"apply_rotary (pairs)", Inputs::rotary, 4, rotate_pairs + rotary_original,
                   rotary_pack(", True"), ""});
    all.push_back({"apply_rotary (partial)", Inputs::rotary, 4, rotate_half + rotary_partial,
                   rotary_pack(""), "", 64});
    return all;
}

}  // namespace

const std::vector<Operation>& operations() {
    static const std::vector<Operation> all = make();
    return all;
}

}  // namespace bench
