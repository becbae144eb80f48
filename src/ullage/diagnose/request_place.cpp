// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/request_place.h"

#include "ullage/diagnose/signs.h"
#include "ullage/trace/meaning/owner_rules.h"

#include <fmt/format.h>

namespace ullage::diagnose {
namespace {

// Torch's own modules have a forward too, but "conv.py:712 forward" does not say which layer of the program it is.
bool is_models_forward(const trace::Frame& frame) {
  const std::string_view function = frame.function;
  if (function.substr(function.rfind('.') + 1) != "forward" || !trace::is_python(frame)) return false;
  return frame.file.find("torch/nn/") == frame.file.npos && frame.file.find("torch\\nn\\") == frame.file.npos;
}

}  // namespace

std::optional<Place> request_place(std::span<const trace::Frame* const> frames, trace::Phase phase) {
  const trace::Frame* layer = nullptr;
  const trace::Frame* innermost = nullptr;
  const trace::Frame* caller = nullptr;  // of the outermost forward seen so far
  for (const trace::Frame* frame : frames) {
    const bool forward = is_models_forward(*frame);
    if (forward && layer == nullptr) layer = frame;
    if (forward) {
      caller = nullptr;
    } else if (trace::is_own(*frame)) {
      if (innermost == nullptr && layer == nullptr) innermost = frame;
      if (layer != nullptr && caller == nullptr) caller = frame;
    }
  }
  const trace::Frame* line = layer == nullptr ? innermost : caller;
  if (layer == nullptr && line == nullptr) return std::nullopt;
  Place found;
  if (layer != nullptr) found.layer = place(*layer);
  if (line != nullptr) found.line = place(*line);
  found.phase = phase;
  return found;
}

std::string request_in_words(const Place& place) {
  std::string words = place.layer;
  if (!place.line.empty()) words += words.empty() ? place.line : ", called by " + place.line;
  if (place.phase != trace::Phase::Unknown) words += fmt::format(", in the {} phase", trace::name(place.phase));
  return words;
}

}  // namespace ullage::diagnose
