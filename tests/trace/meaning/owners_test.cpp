// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/owners.h"

#include "ullage/trace/meaning/owner_rules.h"

#include <gtest/gtest.h>

#include <ostream>
#include <set>

namespace ullage::trace {
namespace {

const std::string kPackages = "/venv/lib/python3.11/site-packages/";
const std::string kOwnersTorch = kPackages + "torch/";

const Frame kOwnersScript{"/home/me/project/train.py", "main", 20};
const Frame kOwnersCall{kOwnersTorch + "nn/modules/module.py", "_call_impl", 1520};
const Frame kModel{"/home/me/project/model.py", "forward", 42};
const Frame kOwnersEngine{
    "??", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", 0};
const Frame kStep{kOwnersTorch + "optim/optimizer.py", "wrapper", 380};
const Frame kOwnersEmpty{"??", "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)", 0};
const Frame kOwnersTo{"??", "at::_ops::to_dtype_layout::call(at::Tensor const&)", 0};

struct Case {
  std::string name;
  std::vector<Frame> frames;  // innermost first
  Category category;
  Phase phase;
  std::string owner;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class MeaningOfStack : public testing::TestWithParam<Case> {};

TEST_P(MeaningOfStack, TellCategoryPhaseAndName) {
  Stacks stacks;
  std::vector<FrameId> frames;
  for (const Frame& one : GetParam().frames) frames.push_back(stacks.add(one));
  const StackId stack = stacks.add(frames);
  const StackMeaning meaning = meanings(stacks).at(stack.value);
  EXPECT_EQ(name(meaning.category), name(GetParam().category));
  EXPECT_EQ(name(meaning.phase), name(GetParam().phase));
  EXPECT_EQ(meaning.name, GetParam().owner);
}

const Case kCases[] = {
    {"NoFrames", {}, Category::Unattributed, Phase::Unknown, "no stack recorded"},
    {"HookOfALoadedState",  // as Lightning loads weights that bitsandbytes quantizes
     {{kPackages + "bitsandbytes/functional.py", "quantize_4bit", 816},
      {kPackages + "lightning/fabric/plugins/precision/bitsandbytes.py", "_quantize_on_load_hook", 167},
      {kOwnersTorch + "nn/modules/module.py", "__call__", 70},
      {kOwnersTorch + "nn/modules/module.py", "_load_from_state_dict", 1991},
      {kOwnersTorch + "nn/modules/module.py", "load_state_dict", 2138},
      kOwnersScript},
     Category::Parameters,
     Phase::Loading,
     "train.py:20 main"},
    {"PlainLine", {kOwnersScript}, Category::Unattributed, Phase::Unknown, "train.py:20 main"},
    {"ForwardOfAModule",
     {kOwnersEmpty, kModel, kOwnersCall, kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:42 forward"},
    {"WindowsPaths",
     {{"C:\\me\\model.py", "block", 1}, {"C:\\py\\Lib\\site-packages\\torch\\nn\\modules\\module.py", "_call_impl", 2}},
     Category::Activations,
     Phase::Forward,
     "model.py:1 block"},
    {"QualifiedNames",
     {{"/home/me/model.py", "Net.forward", 1}, kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:1 Net.forward"},
    {"Notebook",
     {{kOwnersTorch + "nn/functional.py", "relu", 7}, {"/tmp/ipykernel_77/3105.py", "<module>", 2}},
     Category::Activations,
     Phase::Forward,
     "3105.py:2 <module>"},
    {"LossOutsideTheModel",
     {{kOwnersTorch + "nn/functional.py", "cross_entropy", 3000}, kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "train.py:20 main"},
    {"BackwardNode",
     {kOwnersEmpty,
      {"??", "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)", 0},
      kOwnersEngine},
     Category::Temporaries,
     Phase::Backward,
     "BmmBackward0"},
    {"AccumulatedGradient",
     {{"??", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", 0}, kOwnersEngine},
     Category::Gradients,
     Phase::Backward,
     "AccumulateGrad"},
    {"CheckpointRecomputesInTheBackwardPass",
     {kOwnersEmpty, kModel, kOwnersCall, {kOwnersTorch + "utils/checkpoint.py", "backward", 3}, kOwnersEngine},
     Category::Temporaries,
     Phase::Backward,
     "model.py:42 forward"},
    {"CheckpointRecomputesWithPythonFramesAlone",
     {kModel, kOwnersCall, {kOwnersTorch + "utils/checkpoint.py", "unpack_hook", 3}},
     Category::Temporaries,
     Phase::Backward,
     "model.py:42 forward"},
    {"CustomFunctionInForward",
     {{"/home/me/op.py", "forward", 4}, {kOwnersTorch + "autograd/function.py", "apply", 5}, kModel, kOwnersCall},
     Category::Activations,
     Phase::Forward,
     "op.py:4 forward"},
    {"CustomFunctionInBackward",
     {{"/home/me/op.py", "backward", 9}, {kOwnersTorch + "autograd/function.py", "apply", 5}},
     Category::Temporaries,
     Phase::Backward,
     "op.py:9 backward"},
    {"OptimizerState",
     {kOwnersEmpty,
      {kOwnersTorch + "optim/adamw.py", "_init_group", 140},
      {kOwnersTorch + "optim/adamw.py", "step", 200},
      kStep,
      kOwnersScript},
     Category::OptimizerState,
     Phase::Optimizer,
     "train.py:20 main"},
    {"OptimizerTemporaries",
     {kOwnersEmpty, {kOwnersTorch + "optim/adamw.py", "_multi_tensor_adamw", 500}, kStep, kOwnersScript},
     Category::Temporaries,
     Phase::Optimizer,
     "train.py:20 main"},
    {"OwnOptimizer",
     {kOwnersEmpty, {"/home/me/optimizer.py", "step", 51}, kOwnersScript},
     Category::Temporaries,
     Phase::Optimizer,
     "optimizer.py:51 step"},
    {"OwnOptimizerMakesItsStateAtOnce",
     {kOwnersEmpty, {"/home/me/optimizer.py", "__init__", 27}, kOwnersScript},
     Category::OptimizerState,
     Phase::Loading,
     "optimizer.py:27 __init__"},
    {"ClosureRunsTheForwardPass",
     {kModel,
      kOwnersCall,
      {"/home/me/train.py", "closure", 9},
      {kOwnersTorch + "optim/lbfgs.py", "step", 300},
      kStep,
      kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:42 forward"},
    {"ClosureRunsTheBackwardPass",
     {{kOwnersTorch + "autograd/graph.py", "_engine_run_backward", 700},
      {kOwnersTorch + "_tensor.py", "backward", 500},
      {"/home/me/train.py", "closure", 10},
      {kOwnersTorch + "optim/lbfgs.py", "step", 300}},
     Category::Temporaries,
     Phase::Backward,
     "train.py:10 closure"},
    {"OptimizerInTheBackwardPass",
     {{kOwnersTorch + "optim/sgd.py", "step", 80}, kStep, {"/home/me/train.py", "hook", 3}, kOwnersEngine},
     Category::Temporaries,
     Phase::Optimizer,
     "train.py:3 hook"},
    {"ModuleIsMade",
     {{kOwnersTorch + "nn/modules/linear.py", "__init__", 100},
      {"/home/me/project/model.py", "__init__", 5},
      kOwnersScript},
     Category::Parameters,
     Phase::Loading,
     "model.py:5 __init__"},
    {"ModuleIsMoved",
     {kOwnersTo,
      {kOwnersTorch + "nn/modules/module.py", "convert", 1100},
      {kOwnersTorch + "nn/modules/module.py", "_apply", 800},
      kOwnersScript},
     Category::Parameters,
     Phase::Loading,
     "train.py:20 main"},
    {"Checkpoint",
     {{kOwnersTorch + "serialization.py", "load", 1000}, kOwnersScript},
     Category::Parameters,
     Phase::Loading,
     "train.py:20 main"},
    {"ModelOutOfAPackage",
     {{kOwnersTorch + "nn/modules/linear.py", "forward", 114},
      kOwnersCall,
      {kPackages + "transformers/models/bert/modeling_bert.py", "forward", 430},
      kOwnersCall,
      kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "modeling_bert.py:430 forward (train.py:20 main)"},
    {"OwnModuleWithinAModelOutOfAPackage",
     {kModel,
      kOwnersCall,
      {kPackages + "transformers/models/bert/modeling_bert.py", "forward", 430},
      kOwnersCall,
      kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:42 forward"},
    {"BatchIsMoved", {kOwnersTo, kOwnersScript}, Category::Inputs, Phase::Loading, "train.py:20 main"},
    {"MovedWithinTheForwardPass",
     {kOwnersTo, kModel, kOwnersCall, kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:42 forward"},
    {"DataLoader",
     {{kOwnersTorch + "utils/data/_utils/pin_memory.py", "pin_memory", 60}, kOwnersScript},
     Category::Inputs,
     Phase::Loading,
     "train.py:20 main"},
    {"Evaluation",
     {kModel, kOwnersCall, {"/home/me/project/train.py", "validate", 70}},
     Category::Activations,
     Phase::Evaluation,
     "model.py:42 forward"},
    {"BatchOfAnEvaluation",
     {kOwnersTo, {"/home/me/project/train.py", "validate", 69}},
     Category::Inputs,
     Phase::Evaluation,
     "train.py:69 validate"},
    {"CublasWorkspaceInForward",
     {{"??", "at::cuda::getNewWorkspace()", 0}, {"??", "at::cuda::getCurrentCUDABlasHandle()", 0}, kModel, kOwnersCall},
     Category::Library,
     Phase::Forward,
     "cuBLAS workspace"},
    {"CublasWorkspaceInBackward",
     {{"??", "at::cuda::getNewWorkspace()", 0}, kOwnersEngine},
     Category::Library,
     Phase::Backward,
     "cuBLAS workspace"},
    {"CudnnWorkspace",
     {{"??", "at::native::raw_cudnn_convolution_forward_out_32bit(at::Tensor const&)", 0}, kModel, kOwnersCall},
     Category::Library,
     Phase::Forward,
     "cuDNN workspace"},
    {"Compiler",
     {{kOwnersTorch + "_inductor/fx_passes/pad_mm.py", "pad_mm_benchmark", 5},
      {kOwnersTorch + "_dynamo/convert_frame.py", "_compile", 600},
      kModel,
      kOwnersCall},
     Category::Temporaries,
     Phase::Compiling,
     "model.py:42 forward"},
    {"CompiledCode",
     {{"/tmp/torchinductor_me/ik/cik.py", "call", 30},
      {kOwnersTorch + "_inductor/output_code.py", "__call__", 400},
      kModel,
      kOwnersScript},
     Category::Activations,
     Phase::Forward,
     "model.py:42 forward"},
    {"DistributedBuckets",
     {{"??", "c10d::Reducer::initialize_buckets(std::vector<long>)", 0}, kOwnersScript},
     Category::Gradients,
     Phase::Unknown,
     "DistributedDataParallel buckets"},
    {"ProfilerOps",
     {{"??", "aten::empty", 0}, {"??", "aten::mm", 0}, {"??", "autograd::engine::evaluate_function: MmBackward0", 0}},
     Category::Temporaries,
     Phase::Backward,
     "MmBackward0"},
    {"ProfilerOptimizer",
     {{"??", "aten::zeros_like", 0}, {"??", "Optimizer.step#Adam.step", 0}},
     Category::Temporaries,
     Phase::Optimizer,
     "aten::zeros_like"},
    {"NativeAlone",
     {kOwnersEmpty, {"??", "at::_ops::linear::call(int)", 0}},
     Category::Unattributed,
     Phase::Unknown,
     "aten::linear"},
    {"Unknown",
     {{"??", "torch::unwind::unwind()", 0}},
     Category::Unattributed,
     Phase::Unknown,
     "torch::unwind::unwind"},
};
INSTANTIATE_TEST_SUITE_P(, MeaningOfStack, testing::ValuesIn(kCases), [](const auto& one) { return one.param.name; });

TEST(StackMeanings, NameFilesOfOneNameByTheirFolder) {
  Stacks stacks;
  const StackId one = stacks.add(std::vector{stacks.add(Frame{"/me/a/model.py", "f", 1})});
  const StackId two = stacks.add(std::vector{stacks.add(Frame{"/me/b/model.py", "f", 1})});
  const StackId package = stacks.add(std::vector{stacks.add(Frame{"/me/b/__init__.py", "f", 1})});
  const std::vector<StackMeaning> all = meanings(stacks);
  EXPECT_EQ(all[one.value].name, "a/model.py:1 f");
  EXPECT_EQ(all[two.value].name, "b/model.py:1 f");
  EXPECT_EQ(all[package.value].name, "b/__init__.py:1 f");
}

TEST(StackMeanings, KnowWhoCalledTheOptimizer) {
  Stacks stacks;
  const FrameId caller = stacks.add(kOwnersScript);
  const StackId step =
      stacks.add(std::vector{stacks.add(Frame{kOwnersTorch + "optim/sgd.py", "step", 3}), stacks.add(kStep),
                             stacks.add(Frame{"??", "_PyEval_EvalFrameDefault", 0}), caller});
  const StackId zero =
      stacks.add(std::vector{stacks.add(Frame{kOwnersTorch + "optim/optimizer.py", "zero_grad", 3}), caller});
  const std::vector<StackMeaning> all = meanings(stacks);
  EXPECT_EQ(all[step.value].step_call, caller);
  EXPECT_EQ(all[zero.value].phase, Phase::Optimizer);
  EXPECT_EQ(all[zero.value].step_call, std::nullopt);
}

TEST(StackMeanings, TellTheLineOfAModulesForwardApart) {
  Stacks stacks;
  const auto stack = [&](std::uint64_t line) {
    return stacks.add(std::vector{stacks.add(Frame{"block.py", "forward", 1}), stacks.add(kOwnersCall),
                                  stacks.add(Frame{"model.py", "forward", line}), stacks.add(kOwnersCall),
                                  stacks.add(kOwnersScript)});
  };
  const StackId embedding = stack(5), block = stack(6);
  const std::vector<StackMeaning> all = meanings(stacks);
  const auto& a = all[embedding.value].module_calls;
  const auto& b = all[block.value].module_calls;
  ASSERT_EQ(a.size(), 4u);
  ASSERT_EQ(b.size(), 4u);
  EXPECT_EQ(a[0], b[0]);  // the same call of the model
  EXPECT_NE(a[1], b[1]);  // two lines of the model
}

TEST(OwnerRules, HaveStarsAtTheEndsAndInTheMiddle) {
  const auto holds = [](std::string_view pattern, std::string_view function) {
    OwnerRule rule;
    rule.file = "optim";
    rule.function = pattern;
    return matches(rule, "torch/optim/adam.py", function);
  };
  EXPECT_TRUE(holds("", "anything"));
  EXPECT_TRUE(holds("step", "step"));
  EXPECT_FALSE(holds("step", "steps"));
  EXPECT_FALSE(holds("step", "a_step"));
  EXPECT_TRUE(holds("step*", "steps"));
  EXPECT_FALSE(holds("step*", "a_step"));
  EXPECT_TRUE(holds("*step", "a_step"));
  EXPECT_TRUE(holds("*step", "step_by_step"));
  EXPECT_FALSE(holds("*step", "step_by"));
  EXPECT_TRUE(holds("*step*", "a_step_b"));
  EXPECT_TRUE(holds("*clip*grad*", "my_clip_the_grad_norm"));
  EXPECT_FALSE(holds("*clip*grad*", "grad_clip"));
  OwnerRule other;
  other.file = "sgd";
  EXPECT_FALSE(matches(other, "torch/optim/adam.py", "step"));
}

}  // namespace
}  // namespace ullage::trace
