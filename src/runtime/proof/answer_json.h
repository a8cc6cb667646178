#pragma once
// Answers as a child sends them to its parent.

#include "base/json.h"
#include "runtime/proof/question.h"

namespace twinkle::runtime {

base::Json to_json(const Answer& answer);
// Texts are printable afterwards; its numbers are unchecked.
Answer answer_from_json(const base::Json& json);

// Checks that a child's answer fits this question: its numbers are used as indices.
bool fits(const Answer& answer, const Question& question);

}  // namespace twinkle::runtime
