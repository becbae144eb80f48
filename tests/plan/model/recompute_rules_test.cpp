// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/recompute_rules.h"

#include "ullage/plan/model/arguments.h"

#include <gtest/gtest.h>

namespace ullage::plan {
namespace {

using trace::TensorUse;
using How = TensorUse::How;
using Sizes = std::vector<std::int64_t>;

TEST(RecomputeRules, KnowsTheFamilies) {
  for (const char* name : {"aten::relu", "aten::add.Tensor", "aten::convolution", "aten::native_layer_norm", "aten::mm",
                           "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::max_pool2d_with_indices",
                           "aten::cat", "aten::_to_copy", "aten::embedding", "aten::nll_loss_forward", "aten::arange",
                           "aten::sum.dim_IntList", "aten::mkldnn_rnn_layer", "aten::_prelu_kernel", "aten::xlogy"}) {
    EXPECT_EQ(recompute_rule_of(name), RecomputeRule::Plain) << name;
  }
  for (const char* name : {"aten::native_dropout", "aten::bernoulli_.float", "aten::randn", "aten::rand_like"}) {
    EXPECT_EQ(recompute_rule_of(name), RecomputeRule::Random) << name;
  }
  for (const char* name : {"aten::empty.memory_format", "aten::zeros", "aten::full_like"}) {
    EXPECT_EQ(recompute_rule_of(name), RecomputeRule::Blank) << name;
  }
  EXPECT_EQ(recompute_rule_of("aten::native_batch_norm"), RecomputeRule::BatchNorm);
}

TEST(RecomputeRules, TakesAnOpInPlaceForItsFamily) {
  EXPECT_EQ(recompute_rule_of("aten::relu_"), RecomputeRule::Plain);
  EXPECT_EQ(recompute_rule_of("aten::add_.Tensor"), RecomputeRule::Plain);
  EXPECT_EQ(recompute_rule_of("aten::zero_"), RecomputeRule::Plain);
  EXPECT_EQ(recompute_rule_of("aten::fill_.Scalar"), RecomputeRule::Plain);
  EXPECT_EQ(recompute_rule_of("aten::detach_"), RecomputeRule::Never);
  EXPECT_EQ(recompute_rule_of("aten::__iand__.Tensor"), RecomputeRule::Never);
}

TEST(RecomputeRules, LeavesOutWhatIsNotKnown) {
  for (const char* name : {"",
                           "relu",
                           "aten::",
                           "aten::.",
                           "aten::view",
                           "aten::set_",
                           "aten::resize_",
                           "aten::requires_grad_",
                           "aten::_local_scalar_dense",
                           "aten::_foreach_add_.List",
                           "aten::_fused_adam_",
                           "aten::index_put_",
                           "aten::scatter_add",
                           "aten::scatter.reduce",
                           "aten::add.out",
                           "aten::mean.dtype_out",
                           "mine::relu",
                           "aten::convolution_backward",
                           "aten::rel",
                           "aten::elu relu",
                           "aten::_",
                           "aten:: relu",
                           "aten::r"}) {
    EXPECT_EQ(recompute_rule_of(name), RecomputeRule::Never) << name;
  }
}

TEST(RecomputeRules, TellsPartsOfAName) {
  EXPECT_EQ(parts_of("aten::add_.Tensor").base, "add");
  EXPECT_EQ(parts_of("aten::add_.Tensor").overload, "Tensor");
  EXPECT_TRUE(parts_of("aten::add_.Tensor").in_place);
  EXPECT_FALSE(parts_of("aten::add.Tensor").in_place);
  EXPECT_EQ(parts_of("aten::__ior__.Scalar").base, "__ior__");
  EXPECT_EQ(parts_of("mine::add").base, "");
}

TEST(RecomputeRules, TellsWhoseSchemaMarksAllThatItWrites) {
  for (const char* name : {"aten::mm", "aten::add_.Tensor", "aten::t", "aten::native_dropout", "aten::topk",
                           "aten::_scaled_dot_product_flash_attention", "aten::convolution_backward"}) {
    EXPECT_TRUE(writes_what_it_says(name)) << name;
  }
  for (const char* name : {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::_cudnn_rnn", "aten::unheard_of",
                           "other::mm", "mm", "aten::empty"}) {
    EXPECT_FALSE(writes_what_it_says(name)) << name;
  }
}

TEST(RecomputeRules, TellsWhatKindOfWorkItIs) {
  EXPECT_TRUE(is_heavy("aten::addmm"));
  EXPECT_FALSE(is_heavy("aten::relu"));
  EXPECT_TRUE(is_view("aten::transpose.int"));
  EXPECT_FALSE(is_view("aten::clone"));
  EXPECT_FALSE(is_view("aten::detach_"));
  EXPECT_TRUE(overwrites_all("aten::copy_"));
  EXPECT_FALSE(overwrites_all("aten::copy"));
  EXPECT_FALSE(overwrites_all("aten::add_.Tensor"));
  EXPECT_TRUE(makes_from_nothing("aten::randn.generator"));
  EXPECT_FALSE(makes_from_nothing("aten::randn_like"));
}

TensorUse use(std::uint64_t storage, How how, Sizes sizes) { return {StorageId{storage}, how, 6, std::move(sizes)}; }
trace::OpDetail call(std::vector<TensorUse> uses) {
  trace::OpDetail detail;
  detail.uses = std::move(uses);
  return detail;
}

// Storage 0 is the gradient, 1 the input, 2 the weight: of 8 channels to 16, unless `weight` says otherwise.
trace::OpDetail convolution_backward(std::vector<Sizes> results, Sizes weight = {16, 8, 3, 3}) {
  trace::OpDetail detail = call(
      {use(0, How::Read, {4, 16, 10, 10}), use(1, How::Read, {4, 8, 10, 10}), use(2, How::Read, std::move(weight))});
  for (Sizes& sizes : results) detail.uses.push_back(use(10 + detail.uses.size(), How::Output, std::move(sizes)));
  return detail;
}

TEST(Arguments, AConvolutionWithoutGradientForItsWeightDoesNotLookAtItsInput) {
  const auto unread = [](const trace::OpDetail& detail) {
    return unread_storages("aten::convolution_backward", detail);
  };
  const Sizes input{4, 8, 10, 10}, weight{16, 8, 3, 3}, transposed{8, 16, 3, 3}, grouped{16, 4, 3, 3};
  EXPECT_EQ(unread(convolution_backward({input})), std::vector{StorageId{1}});
  EXPECT_EQ(unread(convolution_backward({input, {16}})), std::vector{StorageId{1}});
  EXPECT_EQ(unread(convolution_backward({input}, transposed)), std::vector{StorageId{1}});
  EXPECT_TRUE(unread(convolution_backward({input}, grouped)).empty());
  EXPECT_TRUE(unread(convolution_backward({input, weight})).empty());
  EXPECT_EQ(unread(convolution_backward({weight})), std::vector{StorageId{2}});
  EXPECT_TRUE(unread(convolution_backward({{16}})).empty());
  EXPECT_TRUE(unread(convolution_backward({input}, input)).empty());  // the gradient of input or weight: ambiguous
  trace::OpDetail shared = convolution_backward({input});
  shared.uses[0].storage = StorageId{1};
  EXPECT_TRUE(unread(shared).empty());
  trace::OpDetail failed = convolution_backward({input});
  failed.failed = true;
  EXPECT_TRUE(unread(failed).empty());
}

TEST(Arguments, ViewsAndPoolingsBackwardLookAtSizesAlone) {
  const trace::OpDetail pool =
      call({use(0, How::Read, {1, 8, 5, 5}), use(1, How::Read, {1, 8, 10, 10}), use(2, How::Read, {1, 8, 5, 5})});
  EXPECT_EQ(unread_storages("aten::max_pool2d_with_indices_backward", pool), std::vector{StorageId{1}});
  EXPECT_TRUE(unread_storages("aten::max_pool2d_with_indices", pool).empty());
  EXPECT_EQ(unread_storages("aten::view", call({use(3, How::Read, {8})})), std::vector{StorageId{3}});
  EXPECT_EQ(unread_storages("aten::zeros_like", call({use(3, How::Read, {8})})), std::vector{StorageId{3}});
  EXPECT_TRUE(unread_storages("aten::clone", call({use(3, How::Read, {8})})).empty());
}

TEST(Arguments, NoticesTensorsThatAreNotThePools) {
  const TensorUse in = use(0, How::Read, {8}), other = use(1, How::Read, {8}), out = use(2, How::Output, {16});
  EXPECT_TRUE(all_arguments_seen("aten::_to_copy", call({in, out})));
  EXPECT_FALSE(all_arguments_seen("aten::_to_copy", call({out})));
  EXPECT_TRUE(all_arguments_seen("aten::randn", call({out})));
  EXPECT_FALSE(all_arguments_seen("aten::randn_like", call({out})));
  EXPECT_TRUE(all_arguments_seen("aten::add.Tensor", call({in, other, out})));
  EXPECT_FALSE(all_arguments_seen("aten::add.Tensor", call({in, out})));
  EXPECT_TRUE(all_arguments_seen("aten::add.Scalar", call({in, out})));
  EXPECT_FALSE(all_arguments_seen("aten::copy_", call({use(0, How::Written, {8})})));
  EXPECT_FALSE(all_arguments_seen("aten::addmm", call({in, other, out})));
  trace::OpDetail reads_more = call({in, out});
  reads_more.outside.mapped = true;
  EXPECT_TRUE(all_arguments_seen("aten::addmm", reads_more)) << "weights of a mapped file change by ops only";
  reads_more.outside.other = true;
  EXPECT_FALSE(all_arguments_seen("aten::addmm", reads_more));
  EXPECT_FALSE(all_arguments_seen("aten::native_layer_norm", reads_more));
  EXPECT_FALSE(all_arguments_seen("aten::scatter.src", call({in, other, out})));
  EXPECT_TRUE(all_arguments_seen("aten::scatter.value", call({in, other, out})));
  EXPECT_TRUE(all_arguments_seen("aten::cat", call({in, other, out})));
  EXPECT_FALSE(all_arguments_seen("aten::cat", call({in, out})));
}

}  // namespace
}  // namespace ullage::plan
