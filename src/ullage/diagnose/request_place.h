// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds where in the program a request was made, from the stack or traceback at which it was refused. A take knows more
// (take_facts.h): its ops and layers were recorded.

#include "ullage/diagnose/take_facts.h"
#include "ullage/trace/recording/stacks.h"

#include <optional>
#include <span>
#include <string>

namespace ullage::diagnose {

// `frames`, innermost first. `layer` is the innermost forward of a model, "model.py:42 forward". Forwards are often
// nested; `line` is the innermost line of the program's own code outside all of them, "train.py:57 train_step". Without
// any forward it is the innermost line of the program's own code. None if no frame is the program's own and none a
// model's.
std::optional<Place> request_place(std::span<const trace::Frame* const> frames, trace::Phase phase);

// "model.py:42 forward, called by train.py:57 train_step, in the forward phase".
std::string request_in_words(const Place& place);

}  // namespace ullage::diagnose
