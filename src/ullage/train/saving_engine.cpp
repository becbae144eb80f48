// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/saving_engine.h"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace ullage::train {
namespace {

namespace autograd = torch::autograd;
// An intrusive_ptr since torch 2.13, a shared_ptr before.
using NodePtr = std::decay_t<decltype(std::declval<const at::Tensor&>().grad_fn())>;

struct Asked {
  HookMaker* maker;
  std::size_t python_hooks;  // how many hooks Python had pushed on this thread before `maker`
};
thread_local std::vector<Asked> asked;
thread_local bool looking_for_engine = false;  // true: our engine, when asked, sets found_engine and gives no hooks
thread_local bool found_engine = false;

// Gives the hooks of this thread's innermost maker. Passes everything else on to the engine before it.
class SavingEngine final : public autograd::Engine {
 public:
  explicit SavingEngine(autograd::Engine& before) : before_(&before) {}
  ~SavingEngine() override { stop(); }

  autograd::variable_list execute(const autograd::edge_list& roots, const autograd::variable_list& inputs,
                                  bool keep_graph, bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    return before().execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<autograd::GraphTask>& task,
                                                                 NodePtr root,
                                                                 autograd::InputBuffer&& buffer) override {
    return before().execute_with_graph_task(task, std::move(root), std::move(buffer));
  }
  std::unique_ptr<autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return before().make_anomaly_metadata();
  }
  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (looking_for_engine) {
      found_engine = true;
      return nullptr;
    }
    const auto& python = at::SavedTensorDefaultHooks::get_tls_state();
    if (asked.empty() || python.is_tracing || python.stack.size() > asked.back().python_hooks)
      return before().get_default_saved_variable_hooks();
    return asked.back().maker->make();
  }

  autograd::Engine& before() const { return *before_.load(std::memory_order_acquire); }
  void put_before(autograd::Engine& engine) { before_.store(&engine, std::memory_order_release); }

 private:
  std::atomic<autograd::Engine*> before_;
};

// Made once and never destroyed: torch may ask it until the process ends.
std::atomic<SavingEngine*> saving_engine{nullptr};
std::mutex placing;

// Returns whether a question to `first` reaches our engine. It is asked as if torch traced, because then no engine
// answers with hooks of its own: Ullage's pass the question on, and Python's gives none. If two engines each stood
// before the other, the question would go round for ever.
bool leads_to_ours(autograd::Engine& first) {
  const bool was_tracing = at::SavedTensorDefaultHooks::set_tracing(true);
  looking_for_engine = true, found_engine = false;
  (void)first.get_default_saved_variable_hooks();
  looking_for_engine = false;
  at::SavedTensorDefaultHooks::set_tracing(was_tracing);
  return found_engine;
}

// Makes our engine the default one, unless the default one leads to ours. Another may have become the default since the
// last call: importing torch in Python sets one, and so does Ullage's runtime.
void be_asked() {
  autograd::Engine* ours = saving_engine.load(std::memory_order_acquire);
  if (ours != nullptr && &autograd::Engine::get_default_engine() == ours) return;
  const std::lock_guard lock(placing);
  autograd::Engine& first = autograd::Engine::get_default_engine();
  if (saving_engine.load() == nullptr) {
    saving_engine.store(new SavingEngine(first));
  } else if (leads_to_ours(first)) {
    return;
  } else {
    saving_engine.load()->put_before(first);
  }
  autograd::set_default_engine_stub([]() -> autograd::Engine& { return *saving_engine.load(); });
}

}  // namespace

SavingTo::SavingTo(HookMaker& maker) {
  be_asked();
  asked.push_back({&maker, at::SavedTensorDefaultHooks::get_tls_state().stack.size()});
}

SavingTo::~SavingTo() { asked.pop_back(); }

}  // namespace ullage::train
