// SPDX-License-Identifier: Apache-2.0
#include "program/sha256.h"

#include <gtest/gtest.h>

namespace ullage::program {
namespace {

std::string digest_of(std::string_view text) {
  Sha256 digest;
  digest.update(text);
  return digest.finish();
}

TEST(Sha256, GivesThePublishedDigests) {  // FIPS 180-4 examples
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, IsTheSameInPieces) {
  Sha256 digest;
  digest.update("a");
  digest.update("");
  digest.update("bc");
  EXPECT_EQ(digest.finish(), digest_of("abc"));
}

TEST(Sha256, TakesNothingAfterItsEnd) {
  Sha256 digest;
  digest.finish();
  EXPECT_THROW(digest.finish(), ContractError);
}

}  // namespace
}  // namespace ullage::program
