// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training program written to a TakeBuilder, and a take with its meaning.

#include "take_builder.h"
#include "ullage/trace/take/take_meaning.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::trace::test {

// A take with its meaning. The constructor checks what must hold for each.
struct Understood {
  explicit Understood(Take of);

  Category of(StorageId id) const { return meaning.categories.at(id.value); }
  Phase phase(std::uint64_t op) const { return meaning.op_phases.at(op); }
  std::string name(StorageId id) const {
    return meaning.meanings.at(take.trace.storages.at(id.value).stack.value).name;
  }

  Take take;
  TakeMeaning meaning;
};

// A network of two layers (convolution and norm) and its training. Every tensor that the program holds is a member.
class Training {
 public:
  struct Options {
    bool told = true;         // layers
    bool named = told;        // names of parameters
    bool set_to_none = true;  // zero_grad frees the gradients; else it fills them with zeros
    double decay = 0;         // of weights: a temporary for each parameter
    enum { Sgd, Momentum, Adam } optimizer = Adam;
  };
  explicit Training(Options options) : with(options) { load(); }
  Training() : Training(Options{}) {}

  void load();
  std::string layer() const { return with.told ? "net.conv" : ""; }
  void forward();
  void backward();
  void step();
  void zero_grad();
  void train();
  Understood understood() const { return Understood(b.take()); }

  const Options with;
  TakeBuilder b;
  StorageId weight, bias, running_mean, fixed_noise;
  std::optional<StorageId> noise, labels, loss, gradient, bias_gradient, exp_avg, bias_exp_avg;
  StorageId conv, scratch, norm, mask, dropped, grad_out, added, decayed, root;
  std::uint64_t first_of_step = 0;  // ordinal of an op

 private:
  void update(StorageId parameter, StorageId grad, std::optional<StorageId>& state, Bytes bytes);
};

}  // namespace ullage::trace::test
