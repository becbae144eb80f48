// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/list_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <string>

namespace ullage::runtime {
namespace {

constexpr std::size_t kTensors = 5;  // odd, so that the two halves of a cut differ

// Says that nothing fits, so that every list op is cut into single tensors.
class NothingFits final : public OpListener {
 public:
  bool fits(const OpCall&) override { return false; }
  void begin(OpCall& call) override { ++calls[std::string(call.name)]; }
  void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
  std::map<std::string, int> calls;
};

// Values are positive and below one, so that every function is defined there. They differ from list to list.
std::vector<torch::Tensor> tensors(int list) {
  std::vector<torch::Tensor> made;
  for (std::size_t i = 0; i < kTensors; ++i) {
    const auto n = static_cast<std::int64_t>(3 + 4 * i);
    made.push_back(torch::arange(1, n * n + 1, torch::kFloat).view({n, n}) / float(n * n + 1 + list));
  }
  return made;
}

// Returns a value for an argument: a list of kTensors tensors or numbers, or a single number.
std::optional<c10::IValue> value_for(const c10::Argument& argument, int list) {
  const c10::Type& type = *argument.real_type();
  switch (type.kind()) {
    case c10::TypeKind::ListType: {
      const c10::TypeKind element = type.expectRef<c10::ListType>().getElementType()->kind();
      if (element == c10::TypeKind::TensorType) return c10::IValue(tensors(list));
      if (element != c10::TypeKind::NumberType) return std::nullopt;
      c10::List<c10::Scalar> numbers;
      for (std::size_t i = 0; i < kTensors; ++i) numbers.push_back(1.5 + double(i));
      return c10::IValue(numbers);
    }
    case c10::TypeKind::TensorType:
      if (argument.name() == "scalars") return c10::IValue(torch::arange(1, double(kTensors) + 1, torch::kFloat));
      return c10::IValue(torch::full({}, 0.5f));
    case c10::TypeKind::OptionalType:
      return c10::IValue();
    case c10::TypeKind::NumberType:
      return c10::IValue(2.0);
    case c10::TypeKind::FloatType:
      return c10::IValue(0.25);
    case c10::TypeKind::BoolType:
      return c10::IValue(argument.name() == "amsgrad");
    default:
      return std::nullopt;
  }
}

std::optional<torch::jit::Stack> arguments_for(const c10::OperatorHandle& op) {
  torch::jit::Stack stack;
  int list = 0;
  for (const c10::Argument& argument : op.schema().arguments()) {
    std::optional<c10::IValue> value = value_for(argument, list++);
    if (argument.name() == "state_steps") {
      std::vector<torch::Tensor> steps;
      for (std::size_t i = 0; i < kTensors; ++i) steps.push_back(torch::full({}, float(i + 1)));
      value = c10::IValue(steps);
    }
    if (!value) return std::nullopt;
    stack.push_back(std::move(*value));
  }
  return stack;
}

void append_tensors(const c10::IValue& value, std::vector<torch::Tensor>& all) {
  if (value.isTensor()) all.push_back(value.toTensor());
  if (value.isTensorList())
    for (const torch::Tensor& t : value.toTensorVector()) all.push_back(t);
}

// Returns all tensors that a call changes or makes: its arguments afterwards and its outputs.
std::vector<torch::Tensor> leave_behind(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  std::vector<torch::Tensor> all;
  for (const c10::IValue& argument : stack) append_tensors(argument, all);
  op.callBoxed(stack);
  for (const c10::IValue& output : stack) append_tensors(output, all);
  return all;
}

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.strides() != b.strides()) return false;
  const torch::Tensor x = a.contiguous();
  const torch::Tensor y = b.contiguous();
  return x.numel() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

std::vector<c10::OperatorHandle> list_operators() {
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.find("foreach_") == std::string::npos && name.name.find("aten::_fused_") != 0) continue;
    if (const auto op = c10::Dispatcher::singleton().findSchema(name)) found.push_back(*op);
  }
  return found;
}

// Suppresses warnings: reductions with out= warn of every output that they resize.
struct Quiet final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

TEST(ListOps, SlicesGiveTheBitsOfTheWholeForEveryOperator) {
  NothingFits listener;
  Result<std::unique_ptr<Interceptor>> guard = Interceptor::install({&listener});
  if (!guard) GTEST_SKIP() << guard.error().text();
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard no_warnings(&quiet);
  int compared = 0;
  std::map<std::string, int> skipped;
  for (const c10::OperatorHandle& op : list_operators()) {
    const std::string name = toString(op.operator_name());
    if (!ListOp::of(op)) {
      ++skipped["is no list op here: " + name];
      continue;
    }
    if (!arguments_for(op)) {
      ++skipped["has arguments that the test cannot make: " + name];
      continue;
    }
    std::vector<torch::Tensor> whole;
    try {
      whole = leave_behind(op, *arguments_for(op));
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      ++skipped["torch refuses it: " + name + ": " + text.substr(0, text.find('\n')).substr(0, 90)];
      continue;
    }
    (*guard)->enable();
    listener.calls.clear();
    const std::vector<torch::Tensor> sliced = leave_behind(op, *arguments_for(op));
    (*guard)->disable();
    EXPECT_EQ(listener.calls[name], int(kTensors)) << name << " was not cut";
    ASSERT_EQ(whole.size(), sliced.size()) << name;
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(same_bits(whole[i], sliced[i])) << name << " " << i;
    ++compared;
  }
  for (const auto& [why, times] : skipped) std::cout << "left out: " << why << "\n";
  std::cout << compared << " operators compared\n";
  EXPECT_GT(compared, 150);
}

// Notes for each list op that runs as a whole how many of its inputs the largest slice would not use.
class AllFits final : public OpListener {
 public:
  void begin(OpCall& call) override {
    inputs = call.inputs.size(), sliceable = 0;
    for (const StorageUse& use : call.inputs) {
      if (use.sliceable) ++sliceable;
      if (!use.sliceable) kept.push_back(use.begin);
      slices[use.begin] = use.slice;
    }
  }
  void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
  std::size_t inputs = 0, sliceable = 0;
  std::vector<Address> kept;
  std::map<Address, std::optional<Bytes>> slices;
};

TEST(ListOps, AWholeOpSaysWhatItsLargestSliceWouldUse) {
  AllFits listener;
  Result<std::unique_ptr<Interceptor>> guard = Interceptor::install({&listener});
  if (!guard) GTEST_SKIP() << guard.error().text();
  std::vector<torch::Tensor> a = tensors(0), b = tensors(1);
  const auto begin = [](const torch::Tensor& t) { return Address{reinterpret_cast<std::uint64_t>(t.data_ptr())}; };
  const torch::Tensor one = torch::full({}, 2.0f);
  (*guard)->enable();
  torch::_foreach_add_(a, b);
  EXPECT_EQ(listener.inputs, 2 * kTensors);
  EXPECT_EQ(listener.sliceable, 2 * (kTensors - 1));
  EXPECT_EQ(std::set<Address>(listener.kept.begin(), listener.kept.end()),
            (std::set<Address>{begin(a.back()), begin(b.back())}))
      << "the last ones are the largest";
  torch::_foreach_mul_(a, one);
  EXPECT_EQ(listener.inputs, kTensors + 1);
  EXPECT_EQ(listener.sliceable, kTensors - 1) << "each slice uses the tensor beside the list";
  EXPECT_EQ(listener.slices[begin(a.back())], Bytes{a.back().nbytes()});
  EXPECT_EQ(listener.slices[begin(a[0])], 0_B) << "the largest slice does not use it";
  EXPECT_EQ(listener.slices[begin(one)], std::nullopt);
  a[0].add_(b[0]);
  EXPECT_EQ(listener.sliceable, 0u);
  EXPECT_EQ(listener.slices[begin(a[0])], std::nullopt);
  (*guard)->disable();
}

// Weights in a file are views of one storage.
TEST(ListOps, AWholeOpSaysHowMuchOfAStorageASliceUses) {
  AllFits listener;
  Result<std::unique_ptr<Interceptor>> guard = Interceptor::install({&listener});
  if (!guard) GTEST_SKIP() << guard.error().text();
  const auto slice = [&](const torch::Tensor& t) {
    return listener.slices.at(Address{reinterpret_cast<std::uint64_t>(t.storage().data())});
  };
  const torch::Tensor file = torch::zeros({160}), large = torch::zeros({1000}), matrix = torch::zeros({10, 10});
  std::vector<torch::Tensor> weights = {file.narrow(0, 0, 30), file.narrow(0, 30, 50)};
  const std::vector<torch::Tensor> moments = {file.narrow(0, 80, 30), file.narrow(0, 110, 50)};
  std::vector<torch::Tensor> of_two_files = {large.narrow(0, 0, 10), file.narrow(0, 0, 100), large.narrow(0, 10, 20)};
  std::vector<torch::Tensor> columns = {matrix.narrow(1, 0, 2), matrix.narrow(1, 2, 3)};
  (*guard)->enable();
  torch::_foreach_add_(weights, 1.0);
  EXPECT_EQ(slice(file), Bytes{50 * sizeof(float)});
  torch::_foreach_add_(weights, moments);
  EXPECT_EQ(slice(file), Bytes{(50 + 50) * sizeof(float)}) << "two lists";
  torch::_foreach_add_(of_two_files, 1.0);
  EXPECT_EQ(slice(file), Bytes{100 * sizeof(float)}) << "the largest tensor is in the smaller file";
  EXPECT_EQ(slice(large), Bytes{20 * sizeof(float)});
  torch::_foreach_add_(columns, 1.0);
  EXPECT_EQ(slice(matrix), Bytes{(9 * 10 + 3) * sizeof(float)}) << "the pages between the rows too";
  (*guard)->disable();
}

class ListOpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&listener});
    if (!made) GTEST_SKIP() << made.error().text();
    guard = std::move(*made);
    guard->enable();
  }
  NothingFits listener;
  std::unique_ptr<Interceptor> guard;
};

TEST_F(ListOpsTest, PassesEmptyListsAndRefusalsOfTheOpThrough) {
  std::vector<torch::Tensor> a = tensors(0);
  const std::vector<torch::Tensor> one(a.begin(), a.begin() + 1);
  EXPECT_THROW(torch::_foreach_add_(a, one), c10::Error);
  EXPECT_EQ(torch::_foreach_add(one, 1.0).size(), 1u);
  EXPECT_THROW((void)torch::_foreach_add(std::vector<torch::Tensor>{}, 1.0), c10::Error);
  EXPECT_EQ(torch::_foreach_add(a, torch::full({}, 2.0f)).size(), kTensors);
}

TEST_F(ListOpsTest, TakesAListThatHoldsATensorTwiceInOrder) {
  torch::Tensor x = torch::ones({4});
  const torch::Tensor y = torch::full({4}, 3.0f);
  torch::_foreach_add_({x, y, x, x}, std::vector<torch::Tensor>{x, x, y, x});
  guard->disable();
  torch::Tensor p = torch::ones({4});
  const torch::Tensor q = torch::full({4}, 3.0f);
  torch::_foreach_add_({p, q, p, p}, std::vector<torch::Tensor>{p, p, q, p});
  EXPECT_TRUE(torch::equal(x, p));
  EXPECT_TRUE(torch::equal(y, q));
}

TEST_F(ListOpsTest, IsFollowedByAutograd) {
  std::vector<torch::Tensor> w;
  for (const torch::Tensor& t : tensors(0)) w.push_back(t.clone().requires_grad_());
  std::vector<torch::Tensor> squares = torch::_foreach_mul(w, w);
  torch::Tensor sum = torch::zeros({});
  for (const torch::Tensor& s : squares) sum = sum + s.sum();
  sum.backward();
  for (const torch::Tensor& t : w) EXPECT_TRUE(torch::equal(t.grad(), 2 * t));
  EXPECT_EQ(listener.calls["aten::_foreach_mul.List"], int(kTensors));
}

}  // namespace
}  // namespace ullage::runtime
