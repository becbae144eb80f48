// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_names.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ullage::trace {
namespace {

// Returns the name up to the first point: "netG" for "netG.main.6.weight" and for "netG.main.6".
std::string_view part_of_model(std::string_view name) { return name.substr(0, name.find('.')); }

class Names final {
 public:
  std::uint32_t number(std::string_view op, std::string_view place = {}) {
    std::string key(op);
    key += '\0';
    key += place;
    const auto [found, is_new] = numbers_.try_emplace(std::move(key), std::uint32_t(all_.size()));
    if (is_new) all_.push_back({std::string(op), std::string(place)});
    return found->second;
  }
  std::vector<TakeNames::Name> take() { return std::move(all_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<TakeNames::Name> all_;
};

class Namer final {
 public:
  Namer(const TakeIndex& index, const TakePhases& phases, const std::vector<Category>& categories)
      : index_(index), phases_(phases), categories_(categories), parameters_(index.leaf.size()) {}

  TakeNames run() {
    name_parameters();
    name_ops();
    find_parts();
    TakeNames names;
    for (std::size_t i = 0; i < categories_.size(); ++i) names.storages.push_back(storage(StorageId{i}));
    names.ops = std::move(ops_);
    names.names = names_.take();
    return names;
  }

 private:
  // Sets names such as "parameter 3 [512, 256, 4, 4]". Parameters are numbered in the order in which they were first
  // seen (Take::roles). The sizes are those of the first op that uses the parameter.
  void name_parameters() {
    std::vector<std::uint32_t> numbers(parameters_.size());
    std::uint32_t count = 0;
    for (const RoleSeen& one : index_.take.roles) {
      const std::size_t id = one.storage.value;
      if (categories_[id] == Category::Parameters && numbers[id] == 0) numbers[id] = ++count;
    }
    for (const OpDetail& op : index_.take.details) {
      for (const TensorUse& use : op.uses) {
        std::string& name = parameters_[use.storage.value];
        if (numbers[use.storage.value] == 0 || !name.empty()) continue;
        name = "parameter " + std::to_string(numbers[use.storage.value]) + " [";
        for (std::size_t i = 0; i < use.sizes.size(); ++i) {
          name += (i == 0 ? "" : ", ") + std::to_string(use.sizes[i]);
        }
        name += ']';
      }
    }
  }

  // The layer of an op as recorded, else its first parameter. Empty if it uses none.
  std::string_view own_layer(const OpDetail& op) const {
    if (!op.layer.empty()) return op.layer;
    for (const TensorUse& use : op.uses) {
      if (!parameters_[use.storage.value].empty()) return parameters_[use.storage.value];
    }
    return {};
  }

  void name_ops() {
    std::unordered_map<std::uint32_t, std::string> before;  // by thread: "after netG.main.6"
    for (std::size_t i = 0; i < index_.take.details.size(); ++i) {
      const OpDetail& op = index_.take.details[i];
      const std::string_view name = index_.take.trace.ops[i].name;
      const Phase phase = phases_.ops[i];
      if (phase != Phase::Forward && phase != Phase::Evaluation) {
        ops_.push_back(names_.number(name, phase == Phase::Backward ? std::string_view(op.node) : std::string_view()));
        before.erase(op.thread);
        continue;
      }
      const std::string_view layer = own_layer(op);
      if (!layer.empty()) before[op.thread] = "after " + std::string(layer);
      ops_.push_back(names_.number(name, layer.empty() ? std::string_view(before[op.thread]) : layer));
    }
  }

  // Finds two things. For each call of an optimizer: the part of the model whose parameters it writes. For each
  // storage: the part of the model of the first op that used it and has a layer.
  void find_parts() {
    of_storage_.resize(parameters_.size());
    for (std::size_t i = 0; i < index_.take.details.size(); ++i) {
      const OpDetail& op = index_.take.details[i];
      const std::uint32_t call = phases_.call[i];
      for (const TensorUse& use : op.uses) {
        if (!op.layer.empty() && of_storage_[use.storage.value].empty())
          of_storage_[use.storage.value] = part_of_model(op.layer);
        if (call == TakePhases::kNoCall) continue;
        used_in_.try_emplace(use.storage.value, call);
        if (use.how != TensorUse::How::Written || !index_.leaf[use.storage.value]) continue;
        const std::string_view model = part_of_parameter(use.storage);
        const auto [found, is_new] = of_call_.try_emplace(call, model);
        if (found->second != model) found->second = {};
      }
    }
  }

  // Takes the part from the parameter's name, else from the first op with a layer that used the parameter.
  std::string_view part_of_parameter(StorageId id) const {
    const std::string_view named = part_of_model(index_.take.roles[index_.role[id.value]].name);
    return named.empty() ? std::string_view(of_storage_[id.value]) : named;
  }

  std::string_view part(StorageId id) const {
    if (index_.leaf[id.value]) return part_of_parameter(id);
    if (categories_[id.value] == Category::Buffers) return of_storage_[id.value];
    const OpId maker = index_.maker(id);
    if (maker != kNoOp && !index_.detail(maker).layer.empty()) return part_of_model(index_.detail(maker).layer);
    const auto call = used_in_.find(id.value);
    if (call == used_in_.end()) return {};
    const auto found = of_call_.find(call->second);
    return found == of_call_.end() ? std::string_view() : found->second;
  }

  std::uint32_t storage(StorageId id) {
    const Category category = categories_[id.value];
    const OpId maker = index_.maker(id);
    switch (category) {
      case Category::Parameters:
      case Category::Gradients:
      case Category::OptimizerState:
      case Category::Buffers: {
        const std::string_view model = part(id);
        return names_.number(model.empty() ? name(category) : model);
      }
      default:
        return maker == kNoOp ? names_.number("outside any op") : ops_[maker.value];
    }
  }

  const TakeIndex& index_;
  const TakePhases& phases_;
  const std::vector<Category>& categories_;
  Names names_;
  std::vector<std::string> parameters_;  // by storage; empty: it is no parameter
  std::vector<std::uint32_t> ops_;
  std::unordered_map<std::uint32_t, std::string_view> of_call_;  // by call: part of the model; empty: several
  std::unordered_map<std::uint64_t, std::uint32_t> used_in_;     // by storage: the first call that used it
  std::vector<std::string_view> of_storage_;
};

}  // namespace

TakeNames take_names(const TakeIndex& index, const TakePhases& phases, const std::vector<Category>& categories) {
  return Namer(index, phases, categories).run();
}

}  // namespace ullage::trace
