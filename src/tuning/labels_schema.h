#pragma once
// The format of labels: in a model, and as `inspect --choices` writes them.

namespace twinkle::tuning {

inline constexpr const char* labels_schema = "twinkle.labels/1";

}  // namespace twinkle::tuning
