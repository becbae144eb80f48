// SPDX-License-Identifier: Apache-2.0
#include "plan/random_step.h"

#include "plan/step_writer.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ullage::plan::test {
namespace {

using Storages = std::vector<StorageIndex>;

class Program final {
 public:
  Program(std::uint64_t seed, std::size_t ops) : random_(seed), ops_(ops) {}

  Step make() {
    begin();
    const std::size_t passes = 1 + below(2) * below(2);  // now and then two networks
    for (std::size_t i = 0; i < passes; ++i) {
      const std::size_t until = ops_ * (i * 9 + 4) / (passes * 9);
      input();
      while (b_.ops() < until || tape_.empty()) forward();
      if (late_zero_grad_ && i == 0) zero_grad();
      backward();
    }
    while (!live_.empty()) release(live_.back());
    update();
    for (const StorageIndex storage : passing_) b_.free(storage);
    return b_.step(Bytes{below(4) * 12'345}, saved_);
  }

 private:
  // The reads of a forward op's backward op, and the storages that it makes gradients for.
  struct Saved {
    Storages reads;
    std::size_t results = 1;
    std::vector<std::size_t> parameters;
  };
  struct Parameter {
    StorageIndex weight, state, old_gradient;
    std::optional<StorageIndex> gradient{};
  };

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool once_in(std::uint64_t n) { return below(n) == 0; }
  // Small sizes, sizes around the smallest that can be moved (64 KiB), and large ones.
  Bytes size() {
    const std::uint64_t sizes[] = {4, 1000, 65'535, 65'536, 65'537, 100'000, 262'144, 1'000'000, 3'000'000, 8'388'608};
    return Bytes{sizes[below(10)]};
  }
  Bytes large() { return Bytes{65'536 + below(64) * 50'000}; }
  Seconds seconds(Bytes bytes, bool heavy) { return {(heavy ? 8e-10 : 8e-11) * double(bytes.count) + 2e-6}; }
  StorageIndex some(const Storages& among) { return among[below(among.size())]; }
  // Picks late storages more often than early ones.
  StorageIndex recent() {
    const std::size_t back = std::min<std::size_t>(live_.size(), 1 + below(once_in(6) ? live_.size() : 3));
    return live_[live_.size() - back];
  }
  void born(StorageIndex storage) { live_.push_back(storage); }

  void begin() {
    const std::size_t parameters = 2 + ops_ / 12;
    for (std::size_t i = 0; i < parameters; ++i) {
      const Bytes bytes = once_in(2) ? large() : Bytes{64 + below(2000)};
      const std::string name = "net." + std::to_string(i);
      parameters_.push_back({b_.from_before(bytes, name + ".weight"),
                             b_.from_before(bytes, name + ".state"),
                             b_.from_before(bytes, name + ".gradient"),
                             {}});
    }
    for (int i = 0; i < 3; ++i) buffers_.push_back(b_.from_before(once_in(3) ? large() : Bytes{256}, "buffer"));
    old_input_ = b_.from_before(large(), "input");
    late_zero_grad_ = once_in(2);
    if (!late_zero_grad_) zero_grad();
  }
  void zero_grad() {
    for (const Parameter& parameter : parameters_) b_.free(parameter.old_gradient);
  }
  // Frees the old batch before or after the new one is made. The new one is the next step's old one.
  void input() {
    if (!b_.alive(old_input_)) return born(b_.born(large(), "more input"));
    const bool first = once_in(2);
    if (first) b_.free(old_input_);
    input_ = b_.born(b_.bytes(old_input_), "input");
    if (!first) b_.free(old_input_);
    born(*input_);
  }

  void forward() {
    Saved saved;
    OpSpec op{.name = "aten::add"};
    const std::size_t inputs = 1 + (once_in(3) ? 1 : 0) + (once_in(8) ? 2 : 0);
    for (std::size_t i = 0; i < inputs; ++i) add_once(op.reads, recent());
    if (!passing_.empty() && once_in(20)) add_once(op.reads, some(passing_));
    const std::uint64_t kind = below(20);
    if (kind < 5) {
      heavy(op, saved);
    } else if (kind < 8) {
      batch_norm(op, saved);
    } else if (kind < 11) {
      in_place(op, saved);
    } else if (kind < 13) {
      op.name = "aten::native_dropout";
      op.makes = {size(), size()};
    } else if (kind < 14) {
      op.name = "aten::split_copy";
      op.makes.assign(2 + below(3), size());
    } else {
      op.makes = {size()};
      if (once_in(3)) op.name = "aten::cat";
    }
    if (once_in(15)) op.recompute = false, op.name = "other::op";
    if (once_in(25)) op.hides = {size()};
    if (once_in(5)) op.scratch = size();
    if (op.took.count == 1e-3) op.took = seconds(total(op), false);
    carry_out(op, saved);
    if (once_in(30)) born(b_.born(size(), "from outside"));
    while (live_.size() > 3 + below(8)) let_go(live_[below(live_.size() - 1)]);
  }
  Bytes total(const OpSpec& op) {
    Bytes sum = Bytes{1};
    for (const StorageIndex storage : op.reads) sum += b_.bytes(storage);
    for (const Bytes bytes : op.makes) sum += bytes;
    return sum;
  }
  void heavy(OpSpec& op, Saved& saved) {
    op.name = "aten::convolution";
    op.makes = {once_in(3) ? size() : large()};
    op.scratch = once_in(2) ? large() : Bytes{};
    use_parameter(op, saved);
    op.took = seconds(total(op), true);
    saved.reads = {op.reads[0]};
  }
  void batch_norm(OpSpec& op, Saved& saved) {
    op.name = "aten::native_batch_norm";
    op.reads.resize(1);
    use_parameter(op, saved), use_parameter(op, saved);
    while (op.reads.size() < 3) add_once(op.reads, some(buffers_));
    const Bytes bytes = b_.bytes(op.reads[0]);
    op.makes = {bytes, Bytes{256}, Bytes{256}};
    op.took = seconds(total(op), false);
    op.batch_norm = Seconds{op.took.count / 4};
    saved.reads = {op.reads[0]};
  }
  // Writes in place to a live storage, or to a buffer, which lives from step to step.
  void in_place(OpSpec& op, Saved& saved) {
    op.name = "aten::relu_";
    op.writes = {once_in(8) ? some(buffers_) : recent()};
    if (once_in(10)) add_once(op.writes, recent());
    if (once_in(2)) op.reads = {op.writes[0]};
    if (once_in(6)) op.makes = {size()};
    if (once_in(2)) saved.reads = op.writes;
  }
  void use_parameter(OpSpec& op, Saved& saved) {
    const std::size_t which = below(parameters_.size());
    if (std::find(op.reads.begin(), op.reads.end(), parameters_[which].weight) != op.reads.end()) return;
    op.reads.push_back(parameters_[which].weight);
    saved.parameters.push_back(which);
  }
  static void add_once(Storages& to, StorageIndex storage) {
    if (std::find(to.begin(), to.end(), storage) == to.end()) to.push_back(storage);
  }

  void carry_out(const OpSpec& op, Saved& saved) {
    const Storages made = b_.op(op);
    for (std::size_t i = 0; i < op.makes.size(); ++i) {
      born(made[i]);
      if (op.batch_norm || once_in(3)) add_once(saved.reads, made[i]);
    }
    // The storages that the op hid live until the backward pass is done.
    for (std::size_t i = op.makes.size(); i < made.size(); ++i) passing_.push_back(made[i]);
    saved.results = op.reads.size();
    for (const StorageIndex storage : saved.reads) kept_.insert(storage);
    tape_.push_back(saved);
  }

  // The program no longer holds the storage. It is freed unless autograd keeps it.
  void let_go(StorageIndex storage) {
    live_.erase(std::find(live_.begin(), live_.end(), storage));
    if (!kept_.contains(storage)) end(storage);
  }
  void release(StorageIndex storage) {
    live_.pop_back();
    if (b_.alive(storage)) end(storage);
  }
  void end(StorageIndex storage) {
    if (storage == input_ || !b_.alive(storage)) return;
    if (std::find(buffers_.begin(), buffers_.end(), storage) != buffers_.end()) return;
    b_.free(storage);
  }

  void backward() {
    Bytes kept;
    for (const StorageIndex storage : kept_) kept += b_.bytes(storage);
    saved_ = std::max(saved_, kept);
    Storages gradients{b_.op1(
        {.name = "aten::loss_backward", .reads = {recent()}, .makes = {large()}, .phase = trace::Phase::Backward})};
    for (; !tape_.empty(); tape_.pop_back()) backward_of(tape_.back(), gradients);
    for (const StorageIndex gradient : gradients) b_.free(gradient);
    kept_.clear();
  }
  void backward_of(const Saved& saved, Storages& gradients) {
    OpSpec op{.name = "aten::backward", .reads = saved.reads, .makes = {size()}, .phase = trace::Phase::Backward};
    for (const StorageIndex storage : saved.reads) ULLAGE_CHECK(b_.alive(storage), "what is saved lives");
    add_once(op.reads, gradients.back());
    for (const std::size_t parameter : saved.parameters) {
      add_once(op.reads, parameters_[parameter].weight);
      op.makes.push_back(b_.bytes(parameters_[parameter].weight));
    }
    if (!saved.reads.empty() && once_in(10)) op.unread = {0};
    if (once_in(3)) op.scratch = size();
    op.took = seconds(total(op), !saved.parameters.empty());
    Storages made = b_.op(op);
    for (std::size_t i = 0; i < saved.parameters.size(); ++i) accumulate(saved.parameters[i], made[i + 1]);
    gradients.push_back(made[0]);
    if (gradients.size() > 1 + below(4)) {
      b_.free(gradients.front());
      gradients.erase(gradients.begin());
    }
    free_what_nobody_needs(saved);
  }
  void free_what_nobody_needs(const Saved& saved) {
    for (const StorageIndex storage : saved.reads) {
      const bool again = std::any_of(tape_.begin(), tape_.end() - 1, [&](const Saved& other) {
        return std::find(other.reads.begin(), other.reads.end(), storage) != other.reads.end();
      });
      if (again) continue;
      kept_.erase(storage);
      if (std::find(live_.begin(), live_.end(), storage) == live_.end()) end(storage);
    }
  }
  void accumulate(std::size_t which, StorageIndex made) {
    auto& gradient = parameters_[which].gradient;
    if (!gradient) {
      gradient = made;
      return;
    }
    b_.op({.name = "aten::add_", .reads = {made}, .writes = {*gradient}, .phase = trace::Phase::Backward});
    b_.free(made);
  }

  void update() {
    for (Parameter& parameter : parameters_) {
      const Bytes bytes = b_.bytes(parameter.weight);
      const auto phase = trace::Phase::Optimizer;
      if (!parameter.gradient) parameter.gradient = b_.op1({.name = "aten::zeros", .makes = {bytes}, .phase = phase});
      b_.op({.name = "aten::lerp_", .reads = {*parameter.gradient}, .writes = {parameter.state}, .phase = phase});
      const StorageIndex root =
          b_.op1({.name = "aten::sqrt", .reads = {parameter.state}, .makes = {bytes}, .phase = phase});
      b_.op({.name = "aten::addcdiv_", .reads = {root, parameter.state}, .writes = {parameter.weight}, .phase = phase});
      b_.free(root);
    }
  }

  std::mt19937_64 random_;
  const std::size_t ops_;
  StepWriter b_;
  std::vector<Parameter> parameters_;
  Storages buffers_;
  StorageIndex old_input_{};
  std::optional<StorageIndex> input_;
  bool late_zero_grad_ = false;
  Storages live_;                // results of forward ops that the program holds
  Storages passing_;             // hidden storages, freed when the step ends
  std::set<StorageIndex> kept_;  // by autograd
  std::vector<Saved> tape_;
  Bytes saved_;
};

}  // namespace

Step random_step(std::uint64_t seed, std::size_t ops) { return Program(seed, ops).make(); }

}  // namespace ullage::plan::test
