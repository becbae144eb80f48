// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weight_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace ullage::read {
namespace {

using Numbers = std::vector<std::int64_t>;

class WeightTensorTest : public testing::Test {
 protected:
  WeightTensorTest() { std::iota(held_.begin(), held_.end(), std::int16_t{0}); }

  WeightTensor tensor(Numbers shape, Numbers strides, std::uint64_t offset = 0) const {
    return {Dtype::I16, std::move(shape), std::move(strides), offset, std::as_bytes(std::span(held_))};
  }
  std::string wrong(Numbers shape, Numbers strides, std::uint64_t offset = 0) const {
    return what_is_wrong(tensor(std::move(shape), std::move(strides), offset));
  }
  static std::vector<std::int16_t> copy(const WeightTensor& tensor) {
    std::vector<std::int16_t> all(tensor.elements());
    tensor.copy_to(std::as_writable_bytes(std::span(all)));
    return all;
  }

  std::array<std::int16_t, 24> held_{};
};

TEST_F(WeightTensorTest, CopiesInTheOrderOfIndices) {
  EXPECT_EQ(copy(tensor({2, 3}, {3, 1}, 4)), (std::vector<std::int16_t>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(copy(tensor({2, 2, 2}, {1, 12, 4})), (std::vector<std::int16_t>{0, 4, 12, 16, 1, 5, 13, 17}));
  EXPECT_EQ(copy(tensor({2, 3}, {1, 0}, 5)), (std::vector<std::int16_t>{5, 5, 5, 6, 6, 6}));
  EXPECT_EQ(copy(tensor({}, {}, 23)), std::vector<std::int16_t>{23});
  EXPECT_EQ(copy(tensor({3, 0}, {7, 7})), std::vector<std::int16_t>{});
  std::array<std::byte, 3> few{};
  EXPECT_THROW(tensor({2}, {1}).copy_to(few), ContractError);
}

TEST_F(WeightTensorTest, ContiguousIsWhatLiesSideBySide) {
  EXPECT_TRUE(tensor({2, 3}, {3, 1}).is_contiguous());
  EXPECT_TRUE(tensor({2, 1, 3}, {3, 99, 1}).is_contiguous());  // the stride of a dimension of size 1 does not matter
  EXPECT_TRUE(tensor({}, {}).is_contiguous());
  EXPECT_TRUE(tensor({0, 3}, {9, 9}).is_contiguous());
  EXPECT_FALSE(tensor({3, 2}, {1, 3}).is_contiguous());
  EXPECT_FALSE(tensor({2, 3}, {4, 1}).is_contiguous());
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Numbers{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Numbers{});
}

TEST_F(WeightTensorTest, EveryElementMustLieInTheStorage) {
  EXPECT_EQ(wrong({24}, {1}), "");
  EXPECT_EQ(wrong({4, 6}, {6, 1}), "");
  EXPECT_EQ(wrong({25}, {1}), "shape [25] with strides [1] from element 0 needs 25 elements, the storage has 24");
  EXPECT_EQ(wrong({24}, {1}, 1), "shape [24] with strides [1] from element 1 needs 25 elements, the storage has 24");
  EXPECT_EQ(wrong({2, 2}, {23, 1}),
            "shape [2, 2] with strides [23, 1] from element 0 needs 25 elements, the storage has 24");
  EXPECT_EQ(wrong({}, {}, 23), "");
  EXPECT_NE(wrong({}, {}, 24), "");
  EXPECT_EQ(wrong({0}, {1}, 24), "");
  EXPECT_EQ(wrong({0}, {1}, 25), "begins at element 25, the storage has 24");
  EXPECT_EQ(wrong({1000}, {0}, 23), "");  // expanded
}

TEST_F(WeightTensorTest, AbsurdNumbersAreRefused) {
  EXPECT_EQ(wrong({2}, {1, 1}), "1 extents, 2 strides");
  EXPECT_EQ(wrong({-1}, {1}), "an extent of shape [-1] is below zero");
  EXPECT_EQ(wrong({2}, {-1}, 5), "one of the strides [-1] is below zero");
  EXPECT_EQ(wrong({INT64_MAX, 4}, {0, 0}), "shape [9223372036854775807, 4] passes 2^63 bytes");
  EXPECT_EQ(wrong({INT64_MAX / 2 + 1}, {0}), "shape [4611686018427387904] passes 2^63 bytes");
  EXPECT_EQ(wrong({3}, {INT64_MAX / 2 + 1}), "shape [3] with strides [4611686018427387904] passes 2^63 elements");
  EXPECT_EQ(wrong({INT64_MAX, INT64_MAX, 0}, {1, 1, 1}), "");  // no elements; torch allows such shapes, too
}

}  // namespace
}  // namespace ullage::read
