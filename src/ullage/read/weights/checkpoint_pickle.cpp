// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/checkpoint_pickle.h"

#include "ullage/read/file/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace ullage::read {
namespace {

using ValueKind = PickleValue::Kind;

constexpr int kMostWrappings = 4;  // calls around a tensor; a parameter has one

class CheckpointWalk final {
 public:
  CheckpointWalk(const CheckpointPickle& file, const Storages& storages, const CheckpointLimits& limits)
      : file_(file),
        pickle_(file.pickle),
        storages_(storages),
        limits_(limits),
        most_described_(limits.described + limits.described_per_byte * file.pickle.end()) {
    keys_differ_.resize(pickle_.container_count());
  }

  Result<std::vector<NamedWeight>> run() {
    if (!visit(pickle_.root()) || !check_names()) return std::move(*error_);
    return std::move(found_);
  }

 private:
  // A key or an index in a path.
  using Step = std::variant<std::string_view, std::int64_t>;

  bool fail(PickleValue near, const std::string& message) { return fail(file_.bad(near, message)); }
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool fail_tensor(PickleValue near, const std::string& message) {
    return fail(near, fmt::format("tensor '{}': {}", printable(path(), kNameInMessage), message));
  }

  std::string path() const {
    std::string joined;
    for (const Step& step : steps_) {
      if (&step != &steps_.front()) joined += '.';
      joined += text(step);
    }
    return joined;
  }
  static std::string text(const Step& step) {
    if (const auto* key = std::get_if<std::string_view>(&step)) return std::string(*key);
    return std::to_string(std::get<std::int64_t>(step));
  }

  // limits_.depth bounds the recursion, limits_.values the time.
  bool visit(PickleValue value) {
    if (++values_ > limits_.values) {
      return fail(value, fmt::format("more than {} values in each other, the limit for checkpoints", limits_.values));
    }
    switch (value.kind()) {
      case ValueKind::Dict:
        return visit_dict(value);
      case ValueKind::List:
      case ValueKind::Tuple:
        return visit_list(value);
      case ValueKind::Object:
        return visit_object(value);
      default:
        return true;
    }
  }

  bool visit_object(PickleValue value) {
    const PickleObject object = pickle_.object(value);
    if (const PickleValue tensor = unwrapped(value); is_tensor(tensor)) return add_tensor(tensor);
    if (object.contents.kind() == ValueKind::Dict) return visit_dict(object.contents);
    if (object.contents.kind() == ValueKind::List) return visit_list(object.contents);
    const PickleGlobal type = pickle_.global(object.made_by);
    if (type.module.starts_with("__torch__") && object.state.kind() == ValueKind::Dict) return visit_dict(object.state);
    if (type.module == "collections" && type.name == "OrderedDict") return visit_pairs(object.arguments);
    return true;
  }

  bool visit_dict(PickleValue dict) {
    const auto items = pickle_.items(dict);
    if (!check_keys(dict)) return false;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (const auto key = step(items[i]); key && !enter(*key, items[i + 1])) return false;
    }
    return true;
  }

  bool visit_list(PickleValue list) {
    const auto items = pickle_.items(list);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!enter(std::int64_t(i), items[i])) return false;
    }
    return true;
  }

  // Python 2 passes an OrderedDict's items as one argument, a list of pairs.
  bool visit_pairs(PickleValue arguments) {
    const auto given = pickle_.items(arguments);
    if (given.empty()) return true;
    for (const PickleValue pair : pickle_.items(given[0])) {
      const auto parts = pickle_.items(pair);
      if (parts.size() != 2) continue;
      if (const auto key = step(parts[0]); key && !enter(*key, parts[1])) return false;
    }
    return true;
  }

  bool enter(const Step& by, PickleValue value) {
    if (steps_.size() >= limits_.depth) {
      return fail(value,
                  fmt::format("more than {} containers in each other, the limit for checkpoints", limits_.depth));
    }
    steps_.push_back(by);
    const bool well = visit(value);
    steps_.pop_back();
    return well;
  }

  std::optional<Step> step(PickleValue key) const {
    if (key.kind() == ValueKind::String) return pickle_.string(key);
    if (key.kind() == ValueKind::Integer) return key.small_integer();
    return std::nullopt;
  }

  // Fails if two keys are equal as text, because two tensors would have one name. Python writes no dict with two equal
  // keys, but 1 and "1" are equal only here.
  bool check_keys(PickleValue dict) {
    if (keys_differ_[dict.payload()]) return true;
    std::vector<std::string> keys;
    const auto items = pickle_.items(dict);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (const auto key = step(items[i])) keys.push_back(text(*key));
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      return fail(dict,
                  fmt::format("key '{}' is twice in a dict: the file is damaged", printable(*twice, kNameInMessage)));
    }
    return keys_differ_[dict.payload()] = true;
  }

  std::string_view torch_function(PickleValue value) const {
    const PickleGlobal made_by = pickle_.global(pickle_.object(value).made_by);
    return made_by.module == "torch._utils" ? made_by.name : std::string_view();
  }

  PickleValue unwrapped(PickleValue value) const {
    for (int i = 0; i < kMostWrappings; ++i) {
      const std::string_view function = torch_function(value);
      if (function != "_rebuild_parameter" && function != "_rebuild_parameter_with_state") break;
      const auto arguments = pickle_.items(pickle_.object(value).arguments);
      value = arguments.empty() ? PickleValue() : arguments[0];
    }
    return value;
  }

  bool is_tensor(PickleValue value) const {
    const std::string_view function = torch_function(value);
    return function == "_rebuild_tensor" || function == "_rebuild_tensor_v2" || function == "_rebuild_tensor_v3";
  }

  // The arguments are storage, offset, shape, strides, requires_grad, hooks and, for _v3, the type of the elements.
  bool add_tensor(PickleValue value) {
    const auto arguments = pickle_.items(pickle_.object(value).arguments);
    const bool typed = torch_function(value) == "_rebuild_tensor_v3";
    if (arguments.size() < (typed ? 7u : 4u) || arguments[0].kind() != ValueKind::Persistent) {
      return fail_tensor(
          value,
          fmt::format("is made of {} values, expected a storage, an offset, a shape and strides: the file is damaged",
                      arguments.size()));
    }
    const auto id = storage_id(file_, arguments[0]);
    if (!id) return fail(id.error());
    if (!id.value()) return fail_tensor(value, "is in something that is not a storage: the file is damaged");
    WeightTensor tensor;
    const auto dtype = typed ? dtype_named_by(arguments[6]) : id.value()->dtype;
    if (!dtype)
      return fail_tensor(value, "elements of a type that is not known; convert it to float and save it again");
    tensor.dtype = *dtype;
    const auto offset = pickle_.unsigned_integer(arguments[1]);
    if (!offset || *offset > INT64_MAX || !numbers(arguments[2], tensor.shape) ||
        !numbers(arguments[3], tensor.strides)) {
      return fail_tensor(value,
                         fmt::format("offset, shape and strides are not integers, or more than {}: the file is damaged",
                                     limits_.dimensions));
    }
    tensor.offset = *offset;
    auto storage = storages_(*id.value());
    if (!storage) return fail(storage.error());
    tensor.storage = *storage;
    if (const std::string wrong = what_is_wrong(tensor); !wrong.empty()) {
      return fail_tensor(value, wrong + ": the file is damaged");
    }
    return keep(value, std::move(tensor));
  }

  std::optional<Dtype> dtype_named_by(PickleValue value) const {
    const PickleGlobal type = pickle_.global(value);
    return type.module == "torch" ? dtype_of_torch(type.name) : std::nullopt;
  }

  bool numbers(PickleValue tuple, std::vector<std::int64_t>& into) const {
    const auto items = pickle_.items(tuple);
    if (tuple.kind() != ValueKind::Tuple || items.size() > limits_.dimensions) return false;
    for (const PickleValue item : items) {
      const auto number = pickle_.signed_integer(item);
      if (!number) return false;
      into.push_back(*number);
    }
    return true;
  }

  bool keep(PickleValue near, WeightTensor tensor) {
    std::size_t name_bytes = 0;
    for (const Step& step : steps_) {
      if (const auto* key = std::get_if<std::string_view>(&step)) name_bytes += key->size();
    }
    if (name_bytes > limits_.name_bytes) {
      return fail(near, fmt::format("a tensor's name of {} bytes; the limit is {}", name_bytes, limits_.name_bytes));
    }
    described_ += name_bytes + 2 * sizeof(std::int64_t) * tensor.shape.size() + sizeof(NamedWeight);
    if (described_ > most_described_) {
      return fail(near, fmt::format("names and shapes of {} tensors take more than {} bytes, the limit for checkpoints",
                                    found_.size(), most_described_));
    }
    found_.push_back({path(), std::move(tensor)});
    return true;
  }

  bool check_names() {
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice == found_.end()) return true;
    return fail(pickle_.root(), fmt::format("two tensors are called '{}'", printable(twice->name, kNameInMessage)));
  }

  const CheckpointPickle& file_;
  const Pickle& pickle_;
  const Storages& storages_;
  const CheckpointLimits limits_;
  const std::size_t most_described_;  // bytes
  std::vector<Step> steps_;
  std::vector<bool> keys_differ_;  // by container: dicts whose keys are checked already
  std::vector<NamedWeight> found_;
  std::size_t values_ = 0;
  std::size_t described_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<NamedWeight>> named_tensors(const CheckpointPickle& file, const Storages& storages,
                                               const CheckpointLimits& limits) {
  return CheckpointWalk(file, storages, limits).run();
}

}  // namespace ullage::read
