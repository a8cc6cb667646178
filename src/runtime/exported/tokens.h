#pragma once
// Tokens: values that decomposed programs hand from one operator with effects to the next, so that
// nothing changes their order.

#include "runtime/exported/program.h"

namespace twinkle::runtime::exported {

// TorchScript runs operators in their order, so that tokens are not needed: with_effects(token, op,
// …) becomes the call of op, in its place, marked as one with effects. Throws InvalidJson
// (json_reader.h) where a token is used as anything else.
void remove_tokens(Program& program);

}  // namespace twinkle::runtime::exported
