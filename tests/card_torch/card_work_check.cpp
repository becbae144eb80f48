// SPDX-License-Identifier: Apache-2.0
// Tests runtime/pool/card_work.h on the streams and events of the stand-in.

#include "card_programs.h"
#include "stand_in_card.h"

#include "ullage/runtime/pool/card_work.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

namespace card_torch {
namespace {

// done() must wait for every stream that was used, even if it was only announced by stream_used().
TEST(CardWork, WaitsForStreamsThatWereOnlyTold) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  constexpr ullage::Address kAt{1 << 20};
  ullage::runtime::CardWork work(kOnCard);
  EXPECT_FALSE(work.done(kAt, ullage::Bytes{4096})) << "no stream is known";
  const auto waits = [&] {
    work.op_ended();
    work.used(kAt, ullage::Bytes{4096});
    const std::uint64_t before = counts().synchronizations;
    EXPECT_TRUE(work.done(kAt, ullage::Bytes{4096}));
    return counts().synchronizations - before;
  };
  EXPECT_EQ(waits(), 1u);
  EXPECT_FALSE(work.has_several_streams());
  work.stream_used(guard.getStreamFromGlobalPool(kOnCard));
  EXPECT_TRUE(work.has_several_streams());
  EXPECT_EQ(waits(), 2u);
  work.stream_used(guard.getStream(kOnCard));
  EXPECT_EQ(waits(), 2u) << "known already";
}

// A collective works on a stream that nobody names. done() cannot wait for it, so the caller waits for all work.
TEST(CardWork, CannotWaitForTheWorkOfACollectiveAlone) {
  constexpr ullage::Address kAt{1 << 20};
  constexpr ullage::Bytes kSize{4096};
  ullage::runtime::CardWork work(kOnCard);
  work.op_ended();
  {
    const ullage::runtime::CardWork::InCollective in(true);
    work.used(kAt, kSize);
  }
  EXPECT_FALSE(work.done(kAt, kSize));
  EXPECT_TRUE(work.done(kAt + kSize, kSize)) << "other bytes";
  work.used(kAt, kSize);
  EXPECT_FALSE(work.done(kAt, kSize)) << "a later op that only reads need not have waited";
  work.fresh(kAt, kSize);
  EXPECT_TRUE(work.done(kAt, kSize));
}

}  // namespace
}  // namespace card_torch
