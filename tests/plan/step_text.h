// SPDX-License-Identifier: Apache-2.0
#pragma once

// A step as text, for tests that compare all of it. Storages are letters in their order ('a', 'b', ...). A value is the
// letter of its storage and its number there. Bytes are in KiB; seconds are omitted.
//
//   -ab                                       a gap: a and b are freed
//   +c                                        c is allocated
//   relu_ reads c0 writes c1 rise 0 recompute c0

#include "ullage/plan/model/step.h"

#include <string>
#include <vector>

namespace ullage::plan {

class StepText {
 public:
  explicit StepText(const Step& step) : step_(step) {
    Table<StorageIndex, std::size_t> of(step.storages.size());
    for (const Value& value : step.values) numbers_.push_back(of[value.storage]++);
  }

  std::string all() const {
    std::string text;
    for (const GapIndex k : step_.gaps.ids()) {
      text += gap(k);
      if (step_.ops.has(op_after(k))) text += op(op_after(k)) + "\n";
    }
    return text;
  }

  std::string gap(GapIndex k) const {
    std::string text;
    for (const GapEvent& event : step_.gaps[k]) text += (event.born ? "+" : "-") + letter(event.storage) + "\n";
    return text;
  }
  std::string op(const StepOp& op) const {
    std::string text = op.name.substr(op.name.rfind(':') + 1);
    if (!op.reads.empty()) text += " reads" + values(op.reads);
    if (op.overwrites > 0) text += " writes" + values({op.makes.begin(), op.makes.begin() + long(op.overwrites)});
    if (op.makes.size() > op.overwrites)
      text += " makes" + values({op.makes.begin() + long(op.overwrites), op.makes.end()});
    for (const StorageIndex one : op.hides) text += " hides " + letter(one);
    if (!op.unread.empty()) text += " unread";
    for (const std::uint32_t one : op.unread) text += " " + value(op.reads.at(one));
    text += " rise " + kib(op.rise);
    text += recomputing(" recompute", op.recompute) + recomputing(" batch_norm", op.batch_norm);
    return text;
  }
  std::string op(OpIndex k) const { return op(step_.ops.at(k)); }

 private:
  static std::string kib(Bytes bytes) { return std::to_string(bytes.count / 1024); }
  static std::string letter(StorageIndex one) { return std::string(1, char('a' + int(one.value))); }
  std::string value(ValueIndex one) const {
    return letter(step_.values.at(one).storage) + std::to_string(numbers_.at(one));
  }
  std::string values(const std::vector<ValueIndex>& all) const {
    std::string text;
    for (const ValueIndex one : all) text += " " + value(one);
    return text;
  }
  std::string recomputing(const char* name, const std::optional<Recompute>& one) const {
    if (!one) return "";
    return name + values(one->reads) + (one->rise == Bytes{} ? "" : " rise " + kib(one->rise));
  }

  const Step& step_;
  Table<ValueIndex, std::size_t> numbers_;  // the value's number in its storage
};

}  // namespace ullage::plan
