// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/zip_archive.h"

#include "read/weights_bytes.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::read {
namespace {

using written::Zip;

const std::vector<written::Member> kMembers = {{"b/one", "first"}, {"b/two", "the second"}, {"b/a", ""}};

// Returns the error of reading an archive; "read" if there is none.
std::string refusal_of_archive(const std::string& bytes) {
  const auto zip = ZipArchive::parse(pickled::bytes(bytes), "x.zip");
  if (zip) return "read";
  EXPECT_EQ(zip.error().kind, Error::Kind::BadFile);
  return zip.error().text();
}

std::string text(const ZipArchive& zip, std::string_view name) {
  const auto bytes = zip.stored(*zip.find(name));
  EXPECT_TRUE(bytes) << bytes.error().text();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(ZipArchive, FindsEntriesByName) {
  for (const bool in_64 : {false, true}) {
    for (const bool sizes_behind : {false, true}) {
      const Zip written(kMembers, in_64, sizes_behind);
      const auto zip = ZipArchive::parse(pickled::bytes(written.bytes), "x.zip");
      ASSERT_TRUE(zip) << zip.error().text();
      ASSERT_EQ(zip.value().entries().size(), 3u);
      EXPECT_EQ(text(*zip, "b/one"), "first");
      EXPECT_EQ(text(*zip, "b/two"), "the second");
      EXPECT_EQ(text(*zip, "b/a"), "");
      EXPECT_EQ(zip.value().find("b/on"), nullptr);
      EXPECT_EQ(zip.value().find("c"), nullptr);
    }
  }
}

TEST(ZipArchive, MayHaveACommentButNothingElseBehindIt) {
  Zip zip(kMembers, false, false);
  EXPECT_NE(refusal_of_archive(zip.bytes + "more").find("without its end"), std::string::npos);
  zip.put(zip.end + 20, 4, 2);
  EXPECT_EQ(refusal_of_archive(zip.bytes + "more"), "read");
  EXPECT_EQ(refusal_of_archive(Zip({}, false, false).bytes), "read");
}

TEST(ZipArchive, CutOffAtEveryByteIsRefused) {
  for (const bool in_64 : {false, true}) {
    const std::string whole = Zip(kMembers, in_64, true).bytes;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(refusal_of_archive(whole.substr(0, size)).find("cut short"), std::string::npos) << size;
    }
  }
}

// Each record of an archive is changed in turn, so that it says something wrong.
TEST(ZipArchive, DirectoriesThatLieAreRefused) {
  const auto changed = [](std::size_t Zip::*record, std::size_t at, std::uint64_t value, std::size_t size,
                          bool in_64 = false) {
    Zip zip(kMembers, in_64, false);
    zip.put(zip.*record + at, value, size);
    return refusal_of_archive(zip.bytes);
  };
  const auto in_entry = [](std::size_t at, std::uint64_t value, std::size_t size, bool in_64 = false) {
    Zip zip(kMembers, in_64, false);
    zip.put(zip.directory[1] + at, value, size);
    return refusal_of_archive(zip.bytes);
  };
  EXPECT_NE(changed(&Zip::end, 16, 5, 4).find("no entry of the directory"), std::string::npos);
  EXPECT_NE(changed(&Zip::end, 16, 1u << 30, 4).find("does not lie before"), std::string::npos);
  EXPECT_NE(changed(&Zip::end, 12, 1u << 30, 4).find("does not lie before"), std::string::npos);
  EXPECT_NE(changed(&Zip::end, 10, 4, 2).find("the directory has 3 entries, its end says 4"), std::string::npos);
  EXPECT_NE(changed(&Zip::end, 4, 1, 2).find("several files"), std::string::npos);
  EXPECT_NE(in_entry(20, 1u << 30, 4).find("is stored in 1073741824 bytes and said to have 10"), std::string::npos);
  EXPECT_NE(in_entry(42, 3, 4).find("entry 'b/two' is said to be here, where it is not"), std::string::npos);
  EXPECT_NE(in_entry(42, 0x7fffffff, 4).find("is said to be here, where it is not"), std::string::npos);
  EXPECT_NE(in_entry(42, 0, 4).find("entry 'b/two' has another name here"), std::string::npos);
  EXPECT_NE(in_entry(28, 0xffff, 2).find("an entry of"), std::string::npos);
  EXPECT_NE(in_entry(42, UINT32_MAX, 4).find("sizes of 64 bits that are not there"), std::string::npos);
  const std::size_t in_extra = 46 + 5 + 6 + 4;  // after the name, another field, and the field's own header
  EXPECT_NE(in_entry(in_extra + 16, UINT64_MAX - 10, 8, true).find("is said to be here"), std::string::npos);
  EXPECT_NE(in_entry(in_extra - 4, 2, 2, true).find("sizes of 64 bits that are not there"), std::string::npos);
  EXPECT_NE(in_entry(in_extra - 2, 8, 2, true).find("sizes of 64 bits that are not there"), std::string::npos);
}

TEST(ZipArchive, SizesBeyondTheDirectoryAreRefused) {
  for (const std::uint64_t size : {std::uint64_t{1000}, UINT64_MAX, UINT64_MAX - 100}) {
    Zip zip(kMembers, true, false);
    const std::size_t in_extra = zip.directory[1] + 46 + 5 + 6 + 4;
    zip.put(in_extra, size, 8);
    zip.put(in_extra + 8, size, 8);
    EXPECT_NE(refusal_of_archive(zip.bytes).find("entry 'b/two' has " + std::to_string(size) + " bytes from"),
              std::string::npos);
  }
}

TEST(ZipArchive, EndsOf64BitsThatLieAreRefused) {
  for (const auto& [at, value, said] : {std::tuple(8 - 20, std::uint64_t{3}, "is said to be at 3, where it is not"),
                                        {8 - 20, UINT64_MAX - 5, "where it is not"},
                                        {48 - 76, UINT64_MAX - 5, "does not lie before"},
                                        {40 - 76, UINT64_MAX - 5, "does not lie before"},
                                        {32 - 76, std::uint64_t{1} << 60, "its end says 1152921504606846976"}}) {
    Zip zip(kMembers, true, false);
    zip.put(std::size_t(std::int64_t(zip.end) + at), value, 8);
    EXPECT_NE(refusal_of_archive(zip.bytes).find(said), std::string::npos) << refusal_of_archive(zip.bytes);
  }
}

// A zip bomb lists the same bytes as many overlapping entries.
TEST(ZipArchive, OverlappingEntriesAreRefused) {
  Zip zip({{"b/one", std::string(300, 'x')}, {"b/two", "the second"}}, false, false);
  const std::uint64_t longer = zip.headers[1] - 0 - 63 + 10;
  zip.put(zip.directory[0] + 20, longer, 4);
  zip.put(zip.directory[0] + 24, longer, 4);
  EXPECT_NE(refusal_of_archive(zip.bytes).find("entry 'b/two' begins before entry 'b/one' ends"), std::string::npos)
      << refusal_of_archive(zip.bytes);
}

TEST(ZipArchive, NamesThatAreThereTwiceAreRefused) {
  EXPECT_NE(refusal_of_archive(written::zip({{"a", "1"}, {"a", "2"}})).find("entry 'a' is there twice"),
            std::string::npos);
}

TEST(ZipArchive, CompressedAndEncryptedEntriesAreNotGiven) {
  const std::string written = written::zip({{"deflated", "xyz", 8}, {"secret", "xyz", 0, 1}});
  const auto zip = ZipArchive::parse(pickled::bytes(written), "x.zip");
  ASSERT_TRUE(zip) << zip.error().text();
  EXPECT_EQ(zip.value().stored(*zip.value().find("deflated")).error().text(),
            "x.zip:0: entry 'deflated' is compressed (method 8), torch.save only stores; save it again with torch, or "
            "with zip -0");
  EXPECT_NE(zip.value().stored(*zip.value().find("secret")).error().text().find("entry 'secret' is encrypted"),
            std::string::npos);
}

}  // namespace
}  // namespace ullage::read
