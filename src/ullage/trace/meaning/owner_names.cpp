// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/owner_names.h"

#include "ullage/trace/meaning/owner_rules.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace ullage::trace {
namespace {

// The last `parts` components of a path.
std::string_view end_of_path(std::string_view path, int parts) {
  std::size_t at = path.size();
  while (parts-- > 0 && at != path.npos && at != 0) at = path.find_last_of("/\\", at - 1);
  return at == path.npos || at == 0 ? path : path.substr(at + 1);
}

// The text between `before` and the next `after`, or up to the end. Empty if there is no `before`.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(after));
}

// "BmmBackward0", "AccumulateGrad"; empty if it is no node of the backward pass.
std::string_view backward_node(std::string_view function) {
  if (function.find("torch::autograd::AccumulateGrad") != function.npos) return "AccumulateGrad";
  const std::string_view generated = between(function, "torch::autograd::generated::", "::apply(");
  if (!generated.empty() && generated.find_first_of("(<:") == generated.npos) return generated;
  return between(function, "autograd::engine::evaluate_function: ", "\n");
}

// "aten::bmm"; empty if it is no op.
std::string op(std::string_view function) {
  const std::string_view name = between(function, "at::_ops::", "::");
  if (!name.empty() && function.starts_with("at::_ops::")) return "aten::" + std::string(name);
  return function.starts_with("aten::") ? std::string(function) : std::string();
}

// The function without its arguments, cut to fit into a table.
std::string shortened(std::string_view function) {
  constexpr std::size_t kMost = 60;
  const std::string_view bare = function.substr(0, function.find('('));
  return std::string((bare.empty() ? function : bare).substr(0, kMost));
}

}  // namespace

OwnerNames::OwnerNames(const Stacks& stacks) : stacks_(stacks) {
  kinds_.reserve(stacks.frame_count());
  shares_its_name_.resize(stacks.frame_count());
  std::unordered_map<std::string_view, std::string_view> path_of;  // by file name; empty: several files
  for (std::uint32_t i = 0; i < stacks.frame_count(); ++i) {
    const Frame& frame = stacks.frame({i});
    kinds_.push_back(kind_of(frame));
    if (kinds_.back() != Kind::Own) continue;
    const auto [found, is_new] = path_of.try_emplace(end_of_path(frame.file, 1), frame.file);
    if (!is_new && found->second != frame.file) found->second = {};
  }
  for (std::uint32_t i = 0; i < stacks.frame_count(); ++i) {
    if (kinds_[i] == Kind::Own) shares_its_name_[i] = path_of[end_of_path(stacks.frame({i}).file, 1)].empty();
  }
}

// A forward in torch's own modules is a part of a model, so it does not count as a packaged model.
OwnerNames::Kind OwnerNames::kind_of(const Frame& frame) const {
  if (is_own(frame)) return Kind::Own;
  if (!is_python(frame)) return Kind::Native;
  const std::string_view function = frame.function;
  const bool forward = function.substr(function.rfind('.') + 1) == "forward";
  const bool package =
      frame.file.find("-packages") != frame.file.npos || frame.file.find("/transformers/") != frame.file.npos;
  const bool torch = frame.file.find("/torch/") != frame.file.npos || frame.file.find("\\torch\\") != frame.file.npos;
  return forward && package && !torch ? Kind::PackagedModel : Kind::Library;
}

std::string OwnerNames::python_name(FrameId id) const {
  const Frame& frame = stacks_.frame(id);
  const bool more =
      shares_its_name_[id.value] || frame.file.ends_with("__init__.py") || kinds_[id.value] == Kind::Library;
  return std::string(end_of_path(frame.file, more ? 2 : 1)) + ":" + std::to_string(frame.line) + " " + frame.function;
}

std::string OwnerNames::native_name(std::span<const FrameId> stack) const {
  std::string outermost_op;
  for (const FrameId id : stack) {
    if (kinds_[id.value] != Kind::Native) continue;
    const std::string_view function = stacks_.frame(id).function;
    const std::string_view node = backward_node(function);
    if (!node.empty()) return std::string(node);
    if (std::string one = op(function); !one.empty()) outermost_op = std::move(one);
  }
  return outermost_op;
}

std::string OwnerNames::name(std::span<const FrameId> stack) const {
  const auto first = [&](auto... kinds) {
    return std::ranges::find_if(stack, [&](FrameId id) { return ((kinds_[id.value] == kinds) || ...); });
  };
  const auto own = first(Kind::Own), model = first(Kind::PackagedModel);
  if (own != stack.end()) {
    if (own <= model) return python_name(*own);
    return python_name(*model) + " (" + python_name(*own) + ")";
  }
  if (std::string native = native_name(stack); !native.empty()) return native;
  const auto library = first(Kind::PackagedModel, Kind::Library);
  if (library != stack.end()) return python_name(*library);
  return stack.empty() ? "no stack recorded" : shortened(stacks_.frame(stack.front()).function);
}

}  // namespace ullage::trace
