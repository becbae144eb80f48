// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/checkpoint.h"

#include "ullage/train/autocast_guard.h"
#include "ullage/train/saving_engine.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

namespace ullage::train::detail {
namespace {

// Keeps the states of default generators. While an InPlace lives, the generators have these states.
class KeptGenerators final {
 public:
  explicit KeptGenerators(const std::vector<at::Device>& devices) {
    for (const at::Device& device : devices) kept_.emplace_back(device, state_of(device));
  }

  class InPlace final {
   public:
    explicit InPlace(const KeptGenerators& kept) {
      for (const auto& [device, state] : kept.kept_) {
        before_.emplace_back(device, state_of(device));
        put(device, state);
      }
    }
    ~InPlace() {
      for (const auto& [device, state] : before_) put(device, state);
    }
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    std::vector<std::pair<at::Device, at::Tensor>> before_;
  };

 private:
  static at::Tensor state_of(const at::Device& device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    return generator.get_state();
  }
  static void put(const at::Device& device, const at::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }

  std::vector<std::pair<at::Device, at::Tensor>> kept_;
};

// Holds the guards of several devices, and destroys them in reverse order.
class AutocastGuards final {
 public:
  AutocastGuards() = default;
  ~AutocastGuards() {
    while (!guards_.empty()) guards_.pop_back();
  }
  AutocastGuards(const AutocastGuards&) = delete;
  AutocastGuards& operator=(const AutocastGuards&) = delete;
  void add(std::unique_ptr<AutocastGuard> guard) { guards_.push_back(std::move(guard)); }

 private:
  std::vector<std::unique_ptr<AutocastGuard>> guards_;
};

struct KeptAutocast {
  explicit KeptAutocast(at::DeviceType of)
      : device(of),
        dtype(at::autocast::get_autocast_dtype(of)),
        enabled(at::autocast::is_autocast_enabled(of)),
        cache_enabled(at::autocast::is_autocast_cache_enabled()) {}
  at::DeviceType device;
  at::ScalarType dtype;
  bool enabled;
  bool cache_enabled;
};

struct Layout {
  explicit Layout(const at::Tensor& tensor)
      : sizes(tensor.sizes().vec()), dtype(tensor.scalar_type()), device(tensor.device()) {}
  bool operator==(const Layout&) const = default;
  std::string text() const {
    std::ostringstream out;
    out << c10::toString(dtype) << " of " << at::IntArrayRef(sizes) << " on " << device;
    return std::move(out).str();
  }
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype;
  at::Device device;
};

// Returns a number for the backward pass that this thread works on. A tensor may be unpacked outside of a backward
// pass; then each call returns a new negative number.
std::int64_t current_pass() {
  static std::atomic<std::int64_t> outside{-1};
  const int task = torch::autograd::get_current_graph_task_id();
  return task != -1 ? task : --outside;
}

// Stands in the graph for a tensor that was not kept. The recomputed tensors are here, not in the frame. So if a
// backward pass leaves out the node that would have read them, they are freed with that node.
struct Holder {
  std::map<std::int64_t, std::optional<at::Tensor>> recomputed;  // by pass; none: it was unpacked
};

// Not a std::exception, so that a function that catches those does not stop it.
struct StopRecomputing {
  const void* frame;
};

}  // namespace

// One call of checkpoint(): what is kept for the second run, and the hooks of what the first run saves.
class CheckpointedForward::Frame final : public HookMaker, public std::enable_shared_from_this<Frame> {
 public:
  Frame(const CheckpointOptions& options, const std::vector<at::Tensor>& inputs, Recompute recompute)
      : options_(options), recompute_(std::move(recompute)) {
    std::vector<at::Device> devices = {at::Device(at::kCPU)};
    std::vector<at::DeviceType> types = {at::kCUDA, at::kCPU};
    for (const at::Tensor& input : inputs) {
      if (!input.defined()) continue;
      const at::Device device = input.device();
      if (std::find(devices.begin(), devices.end(), device) == devices.end() && device.type() != at::kMeta)
        devices.push_back(device);
      if (std::find(types.begin(), types.end(), device.type()) == types.end() &&
          at::autocast::is_autocast_available(device.type()))
        types.push_back(device.type());
    }
    if (options.preserve_rng_state) generators_.emplace(devices);
    for (const at::DeviceType type : types) autocast_.emplace_back(type);
    // Saved like an op's inputs. So saved-tensor hooks that are on outside the function (such as an outer checkpoint's)
    // see them, and a change in place is found.
    for (const at::Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  // Called before and after the first run.
  void begin() { saving_.emplace(*this); }
  void end() {
    saving_.reset();
    forward_completed_ = true;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override;

 private:
  class ForwardHook;
  class RecomputedHook;
  class Recomputing;
  struct Pass {
    std::size_t saved = 0;
    bool done = false;
  };

  std::shared_ptr<Holder> add(const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    auto holder = std::make_shared<Holder>();
    holders_.push_back(holder);
    layouts_.emplace_back(tensor);
    return holder;
  }
  at::Tensor recomputed(std::int64_t pass, const at::Tensor& tensor);
  at::Tensor unpack(Holder& holder);
  void recompute(std::int64_t pass);
  void check(std::int64_t pass) const;

  CheckpointOptions options_;
  Recompute recompute_;
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::optional<KeptGenerators> generators_;
  std::vector<KeptAutocast> autocast_;
  std::optional<SavingTo> saving_;
  bool forward_completed_ = false;
  bool other_count_is_right_ = false;  // the second run saved more because the first is not over: see recomputed()

  // Backward passes of several threads take turns. Recursive, because a thread that recomputes may unpack again.
  std::recursive_mutex mutex_;
  std::vector<std::weak_ptr<Holder>> holders_;  // in the order in which the first run saved
  std::vector<Layout> layouts_;
  std::map<std::int64_t, Pass> passes_;
};

class CheckpointedForward::Frame::ForwardHook final : public torch::autograd::SavedVariableHooks {
 public:
  explicit ForwardHook(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  void call_pack_hook(const at::Tensor& tensor) override { holder_ = frame_->add(tensor); }
  at::Tensor call_unpack_hook() override { return frame_->unpack(*holder_); }

 private:
  std::shared_ptr<Frame> frame_;
  std::shared_ptr<Holder> holder_;
};

// Packs what the second run saves. It keeps the tensors, because the function may call backward itself, on the graph of
// the second run.
class CheckpointedForward::Frame::RecomputedHook final : public torch::autograd::SavedVariableHooks {
 public:
  RecomputedHook(Frame& frame, std::int64_t pass) : frame_(frame), pass_(pass) {}
  void call_pack_hook(const at::Tensor& tensor) override { kept_ = frame_.recomputed(pass_, tensor); }
  at::Tensor call_unpack_hook() override { return kept_; }

 private:
  Frame& frame_;  // packs only while the frame recomputes
  std::int64_t pass_;
  at::Tensor kept_;
};

class CheckpointedForward::Frame::Recomputing final : public HookMaker {
 public:
  Recomputing(Frame& frame, std::int64_t pass) : frame_(frame), pass_(pass) {}
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<RecomputedHook>(frame_, pass_);
  }

 private:
  Frame& frame_;
  std::int64_t pass_;
};

std::unique_ptr<torch::autograd::SavedVariableHooks> CheckpointedForward::Frame::make() {
  return std::make_unique<ForwardHook>(shared_from_this());
}

at::Tensor CheckpointedForward::Frame::recomputed(std::int64_t pass, const at::Tensor& tensor) {
  at::Tensor kept = tensor.requires_grad() ? tensor.detach() : tensor;
  const std::size_t index = passes_[pass].saved++;
  if (index >= holders_.size()) {
    // If the function itself calls backward, the first run is not over yet. The second run then saves tensors that the
    // first run has not come to.
    TORCH_CHECK(!forward_completed_,
                "ullage::train::checkpoint: the function saved more tensors when it ran again than the ",
                holders_.size(), " of its first run; it must compute the same each time it is called");
    other_count_is_right_ = true;
    return kept;
  }
  // The holder is gone if the program freed that part of the graph.
  if (const std::shared_ptr<Holder> holder = holders_[index].lock()) holder->recomputed[pass] = kept;
  if (options_.early_stop && index + 1 == holders_.size()) throw StopRecomputing{this};
  return kept;
}

at::Tensor CheckpointedForward::Frame::unpack(Holder& holder) {
  const std::lock_guard lock(mutex_);
  const std::int64_t pass = current_pass();
  if (!passes_[pass].done) {
    recompute(pass);
    passes_[pass].done = true;
    check(pass);
  }
  const auto found = holder.recomputed.find(pass);
  TORCH_CHECK(found != holder.recomputed.end() && found->second.has_value(),
              "ullage::train::checkpoint: a saved tensor was read twice in one backward pass");
  at::Tensor tensor = *std::move(found->second);
  found->second.reset();
  return tensor;
}

void CheckpointedForward::Frame::recompute(std::int64_t pass) {
  std::vector<at::Tensor> inputs;
  for (const torch::autograd::SavedVariable& input : inputs_) inputs.push_back(input.unpack());
  Recomputing maker(*this, pass);
  const c10::AutoGradMode grad(true);
  std::optional<KeptGenerators::InPlace> generators;
  if (generators_) generators.emplace(*generators_);
  AutocastGuards autocast;
  for (const KeptAutocast& kept : autocast_)
    autocast.add(std::make_unique<AutocastGuard>(kept.device, kept.dtype, kept.enabled, kept.cache_enabled));
  try {
    const SavingTo saving(maker);
    recompute_(inputs);
  } catch (const StopRecomputing& stop) {
    if (stop.frame != this) throw;
  }
}

void CheckpointedForward::Frame::check(std::int64_t pass) const {
  if (other_count_is_right_) return;
  const std::size_t again = passes_.at(pass).saved;
  TORCH_CHECK(again == holders_.size(), "ullage::train::checkpoint: the function saved ", holders_.size(),
              " tensors in its first run and ", again,
              " when it ran again; it must compute the same each time it is called");
  if (!options_.determinism_check) return;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    const std::shared_ptr<Holder> holder = holders_[i].lock();
    if (holder == nullptr) continue;
    const Layout now(*holder->recomputed.at(pass));
    TORCH_CHECK(now == layouts_[i], "ullage::train::checkpoint: saved tensor ", i, " was ", layouts_[i].text(),
                " in the first run and is ", now.text(),
                " in the second; the function must compute the same each time");
  }
}

CheckpointedForward::CheckpointedForward(const CheckpointOptions& options, const std::vector<at::Tensor>& inputs,
                                         Recompute recompute)
    : frame_(std::make_shared<Frame>(options, inputs, std::move(recompute))) {
  frame_->begin();
}

CheckpointedForward::~CheckpointedForward() { frame_->end(); }

}  // namespace ullage::train::detail
