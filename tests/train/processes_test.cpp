// SPDX-License-Identifier: Apache-2.0
// Accumulation under torch.distributed's own Reducer. Two threads stand for two processes: each has a network, a batch
// and a Reducer of its own.
#include "ullage/train/accumulation.h"

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace ullage::train {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

constexpr int kProcesses = 2;
constexpr double kRounding = 1e-6;  // of the largest gradient, as in accumulation_test.cpp

class DoneWork final : public c10d::Work {
 public:
  explicit DoneWork(const std::vector<Tensor>& tensors)
      : future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    future_->markCompleted(c10::IValue(tensors));
  }
  bool wait(std::chrono::milliseconds) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// The place to which the threads give their tensors. The last one to come adds them up for all.
struct Meeting {
  std::mutex lock;
  std::condition_variable changed;
  std::vector<Tensor> given;
  int sums = 0;

  void add_up(const Tensor& mine) {
    std::unique_lock hold(lock);
    const int now = sums;
    given.push_back(mine);
    if (given.size() == kProcesses) {
      const Tensor sum = given[0] + given[1];
      for (const Tensor& one : given) one.copy_(sum);
      given.clear(), ++sums;
      changed.notify_all();
    }
    changed.wait(hold, [&] { return sums > now; });
  }
};

class ThreadBackend final : public c10d::Backend {
 public:
  ThreadBackend(int rank, Meeting& meeting) : Backend(rank, kProcesses), meeting_(meeting) {}
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions&) override {
    for (const Tensor& tensor : tensors) meeting_.add_up(tensor);
    return c10::make_intrusive<DoneWork>(tensors);
  }

 private:
  Meeting& meeting_;
};

nn::Sequential make_net() {
  torch::manual_seed(5);
  return nn::Sequential(nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 1));
}

// One bucket has all parameters, so the gradients are averaged in one call.
std::unique_ptr<c10d::Reducer> reducer_of(nn::Sequential& net, int rank, Meeting& meeting) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(rank, kProcesses);
  group->setBackend(torch::kCPU, c10d::ProcessGroup::CUSTOM,
                    c10::intrusive_ptr<c10d::Backend>(c10::make_intrusive<ThreadBackend>(rank, meeting)));
  const std::vector<Tensor> parameters = net->parameters();
  std::vector<std::size_t> all(parameters.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return std::make_unique<c10d::Reducer>(parameters, std::vector<std::vector<std::size_t>>{all}, std::move(group),
                                         std::vector<bool>(parameters.size(), false), c10d::kDefaultBucketBytesCap,
                                         /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
                                         std::unordered_map<std::size_t, std::string>(), c10d::kDefaultFirstBucketBytes,
                                         /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                                         std::vector<std::int64_t>());
}

// The batches of 7 and 5 samples differ, so the mean of their gradients is not the gradient of the 12.
TEST(Processes, AverageTheGradientOnceAWindow) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({12, 6}), y = torch::randn({12, 1});
  const std::vector<Slice> batches = {{0, 7}, {7, 12}};
  nn::Sequential alone = make_net();
  torch::mse_loss(alone->forward(x), y).backward();

  std::vector<nn::Sequential> nets = {make_net(), make_net()};
  Meeting meeting;
  std::vector<int> sums_before_last(kProcesses, -1);
  const auto run = [&](int rank) {
    nn::Sequential& net = nets[rank];
    const auto reducer = reducer_of(net, rank, meeting);
    const Tensor mine = batches[rank].of(x), wanted = batches[rank].of(y);
    auto window = Accumulation::create(*net, {.before_last = [&](const Tensor&) {
      sums_before_last[rank] = meeting.sums;
      reducer->prepare_for_backward({});
    }});
    ASSERT_TRUE(window);
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.0));
    const std::vector<Slice> slices = micro_batches(mine.size(0), 2).value();
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      const auto count = static_cast<double>(mine.size(0));
      ASSERT_TRUE(window->begin({{"samples", count}}, {{"samples", 6.0}}));
      for (const Slice& s : slices) {
        const Tensor loss = torch::mse_loss(net->forward(s.of(mine)), s.of(wanted));
        const Status done = window->backward(loss, static_cast<double>(s.size()));
        ASSERT_TRUE(done) << done.error().text();
      }
      ASSERT_TRUE(window->step(optimizer));
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();

  EXPECT_EQ(meeting.sums, 3) << "once in each of three windows";
  EXPECT_EQ(sums_before_last, (std::vector<int>{2, 2})) << "in the last window, before its last micro-batch";
  for (std::size_t i = 0; i < alone->parameters().size(); ++i) {
    const Tensor whole = alone->parameters()[i].grad();
    const Tensor ours = nets[0]->parameters()[i].grad();
    EXPECT_TRUE(torch::equal(ours, nets[1]->parameters()[i].grad())) << i << ": both have the same average";
    EXPECT_LE(((ours - whole).abs().max() / whole.abs().max()).item<double>(), kRounding) << i;
  }
}

TEST(Processes, RefuseAWindowThatWasAveragedTooEarlyOrNotAtAll) {
  nn::Sequential net = make_net();
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
  int averaged = 0;
  auto window = Accumulation::create(*net, {.before_last = [&](const Tensor&) { ++averaged; }});
  const auto loss = [&] { return net->forward(torch::randn({2, 6})).mean(); };
  ASSERT_TRUE(window->begin(4));
  ASSERT_TRUE(window->backward(loss(), 2));
  EXPECT_EQ(averaged, 0);
  ASSERT_TRUE(window->weigh(loss(), 2));  // its backward pass is forgotten
  const auto forgotten = window->step(optimizer);
  ASSERT_FALSE(forgotten);
  EXPECT_NE(forgotten.error().text().find("had no backward pass"), std::string::npos) << forgotten.error().text();
  ASSERT_TRUE(window->backward(loss()));
  EXPECT_EQ(averaged, 1);
  const Status after = window->backward(loss());
  ASSERT_FALSE(after);
  EXPECT_NE(after.error().text().find("averaged among processes already"), std::string::npos) << after.error().text();
  EXPECT_TRUE(window->step(optimizer));
  const Status lacks = window->begin({{"samples", 4.0}}, {{"tokens", 4.0}});
  ASSERT_FALSE(lacks);
  EXPECT_NE(lacks.error().text().find("no mean count of samples"), std::string::npos) << lacks.error().text();
}

}  // namespace
}  // namespace ullage::train
