// SPDX-License-Identifier: Apache-2.0

// Files that are cut off, damaged, of another version, or malicious.

#include "trace/random_program.h"
#include "trace/take_text.h"
#include "trace/trace_file_repair.h"

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/file/file_parts.h"
#include "ullage/trace/file/packed.h"
#include "ullage/trace/file/trace_file.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

namespace ullage::trace {
namespace {

using test::lines_of;
using test::read_text;

std::string small_file() {
  EventLog log({64_KiB, 64_KiB});
  test::RandomProgram program(log, 7);
  program.begin_take({{"batch", 2}});
  program.run(60);
  program.finish({1_GiB, 1_MiB, 1_MiB, 1_MiB, 2, Bytes{}}, Take::End::StepBorder);
  program.begin_take({{"batch", 3}});
  program.run(40);
  std::ostringstream out;
  log.write({"2.13.0", "cpu", {"train"}, {{"batch", 9}}, {}, {}}, {}, Take::End::Program, out);
  return out.str();
}

std::string error_of(const std::string& content) {
  const auto file = read_text(content);
  return file ? "no error" : file.error().text();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(DamagedTrace, IsSaidToBeCutOffAtEveryLength) {
  const std::string content = small_file();
  for (std::size_t size = 0; size < content.size(); ++size) {
    const std::string error = error_of(content.substr(0, size));
    ASSERT_TRUE(has(error, size < kTraceFileMagic.size() ? "not a trace" : "cut off")) << size << ": " << error;
    ASSERT_TRUE(error.starts_with("run.ullage:")) << error;
  }
}

TEST(DamagedTrace, IsFoundWithAnyByteChanged) {
  const std::string content = small_file();
  const auto whole = lines_of(*read_text(content));
  for (std::size_t i = 0; i < content.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string damaged = content;
      damaged[i] = char(damaged[i] ^ flip);
      ASSERT_NE(error_of(damaged), "no error") << "byte " << i << " xor " << flip;
    }
  }
}

TEST(DamagedTrace, WithRightChecksumsIsAnErrorOrAWholeTake) {
  const std::string content = small_file();
  std::mt19937_64 random(1);
  std::size_t read = 0, refused = 0;
  for (int round = 0; round < 4'000; ++round) {
    std::string damaged = content;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      damaged[random() % damaged.size()] = char(random() % 4 == 0 ? random() : random() % 8);
    }
    std::ostringstream repaired;
    test::repair(damaged, repaired);
    const auto file = read_text(repaired.str());
    ++(file ? read : refused);
    if (!file) continue;
    for (const Take& take : file->takes) ASSERT_EQ(test::broken_invariant(take), "") << round;
    ASSERT_EQ(lines_of(*read_text(test::written(*file))), lines_of(*file)) << round;
  }
  EXPECT_GT(read, 200u);  // the damage reaches the inner checks, and some damaged files are still consistent
  EXPECT_GT(refused, 200u);
}

TEST(DamagedTrace, OfANewerVersionSaysWhatToDo) {
  std::string content = small_file();
  content.replace(0, content.find('\n'), "ULLAGE TRACE 12");
  EXPECT_EQ(error_of(content),
            "run.ullage:13: a trace of version 12, but this ullage reads version 1: read it with the ullage that wrote "
            "it, or a newer one");
  content.replace(0, content.find('\n'), "ULLAGE TRACE 0");
  EXPECT_TRUE(has(error_of(content), "no such version"));
  content.replace(0, content.find('\n'), "ULLAGE TRACE 1x");
  EXPECT_TRUE(has(error_of(content), "first line is damaged"));
}

TEST(DamagedTrace, SaysHowManyPartsAreMissing) {
  const std::string content = small_file();
  // Removes the first take with its end part.
  const std::size_t begin = content.find("TAKE"), end = content.find("TAKE", begin + 1);
  EXPECT_TRUE(has(error_of(content.substr(0, begin) + content.substr(end)), "parts are missing: 7 are there, 11 were"))
      << error_of(content.substr(0, begin) + content.substr(end));
  EXPECT_TRUE(has(error_of(content + "x"), "1 bytes after the end"));
}

// Makes a file with one take by hand, part by part.
class HandMade final {
 public:
  HandMade() : parts_(out_) {}

  static PackedBytes numbers(std::initializer_list<std::uint64_t> values) {
    PackedBytes bytes;
    for (const std::uint64_t value : values) append_packed(bytes, value);
    return bytes;
  }
  HandMade& front(const PackedBytes& texts = numbers({0}), const PackedBytes& shapes = numbers({0})) {
    parts_.write(part::kHead, R"({"format":"ullage-trace","torch":"","device":"cpu","command":[],"at":[],)"
                              R"("phases_left_out":[]})");
    parts_.write(part::kTexts, texts);
    parts_.write(part::kShapes, shapes);
    return *this;
  }
  HandMade& take(std::uint64_t first_storage, const PackedBytes& before) {
    parts_.write(part::kTake, R"({"knobs":[],"first_op":0,"first_storage":)" + std::to_string(first_storage) + "}");
    parts_.write(part::kBefore, before);
    return *this;
  }
  HandMade& events(std::initializer_list<std::uint64_t> position, std::uint64_t count, const PackedBytes& records) {
    PackedBytes bytes = numbers(position);
    append_packed(bytes, count);
    bytes.insert(bytes.end(), records.begin(), records.end());
    parts_.write(part::kChunk, bytes);
    return *this;
  }
  HandMade& part(std::string_view kind, const PackedBytes& bytes) {
    parts_.write(kind, bytes);
    return *this;
  }
  std::string end(std::uint64_t events) {
    parts_.write(part::kTakeEnd, R"({"end":"program","process_peak_bytes":0,"outside_peak_bytes":0,"threads":1,)"
                                 R"("pool_live_peak_bytes":0,"pool_resident_peak_bytes":0,"events":)" +
                                     std::to_string(events) + "}");
    parts_.finish();
    return out_.str();
  }

 private:
  std::ostringstream out_;
  PartWriter parts_;
};

constexpr std::uint64_t kAllocation = 0x10, kFree = 1, kOpBegin = 2, kSave = 4, kRefused = 6, kCharge = 10;
const auto numbers = [](std::initializer_list<std::uint64_t> values) { return HandMade::numbers(values); };

// A file of one take without storages from before, whose only chunk has these records.
std::string with_events(std::uint64_t count, std::initializer_list<std::uint64_t> records) {
  return HandMade().front().take(0, numbers({0})).events({0, 0, 0, 0}, count, numbers(records)).end(count);
}

TEST(DamagedTrace, MadeByHandIsReadWhenItIsRight) {
  EXPECT_EQ(error_of(with_events(2, {kAllocation, 5, 512, kFree, 1, 1})), "no error");
}

TEST(DamagedTrace, WithIdsThatWereNeverGivenOutIsRefused) {
  EXPECT_TRUE(has(error_of(with_events(1, {kFree, 1, 1})), "not allocated yet"));
  EXPECT_TRUE(has(error_of(with_events(2, {kAllocation, 5, 512, kFree, 1, 0})), "not allocated yet"));
  EXPECT_TRUE(has(error_of(with_events(2, {kAllocation, 5, 512, kSave, 1, 2})), "not allocated yet"));
  EXPECT_TRUE(has(error_of(with_events(1, {0, 5, 512, 1})), "an op that did not begin yet"));
  EXPECT_TRUE(has(error_of(with_events(1, {kOpBegin, 5, 1, 0, 0, 0})), "a name that the file does not have"));
  EXPECT_TRUE(has(error_of(with_events(2, {kAllocation, 5, 9, kOpBegin, 5, 0, 0, 0, 1, 1, 1 << 2})), "a shape that"));
  const std::string before = HandMade().front().take(3, numbers({1, 3, 64})).end(0);
  EXPECT_TRUE(has(error_of(before), "from before the take was not allocated yet"));
}

TEST(DamagedTrace, ThatFreesTwiceIsRefusedWithThePlace) {
  const std::string content = with_events(3, {kAllocation, 5, 512, kFree, 1, 1, kFree, 1, 1});
  const std::size_t chunk = content.find("EVTS") + 12;
  EXPECT_EQ(error_of(content), "run.ullage:" + std::to_string(chunk + 5 + 4 + 3) +
                                   ": the trace is damaged: a storage that is freed twice");
}

TEST(DamagedTrace, WithBytesThatNoMachineHasIsRefused) {
  constexpr std::uint64_t kHalf = 1ull << 61;
  EXPECT_EQ(error_of(with_events(2, {kAllocation, 5, kHalf, kAllocation, 5, kHalf})), "no error");
  EXPECT_TRUE(has(error_of(with_events(2, {kAllocation, 5, kHalf, kAllocation, 5, kHalf + 1})), "no machine"));
  EXPECT_TRUE(has(error_of(with_events(1, {kAllocation, 5, UINT64_MAX})), "no machine"));
  EXPECT_TRUE(has(error_of(with_events(1, {kRefused, 5, UINT64_MAX})), "no machine"));
  EXPECT_TRUE(has(error_of(with_events(0, {kCharge, UINT64_MAX})), "no machine"));
  EXPECT_TRUE(has(error_of(with_events(1, {kAllocation, UINT64_MAX, 8})), "a time that cannot be"));
}

TEST(DamagedTrace, WhoseCountsDifferIsRefused) {
  EXPECT_TRUE(has(error_of(with_events(3, {kAllocation, 5, 512})), "the events are 1, stated 3"));
  const std::string other = HandMade().front().take(0, numbers({0})).events({0, 0, 0, 0}, 0, {}).end(4);
  EXPECT_TRUE(has(error_of(other), "the take's events are 0, stated 4"));
  const std::string apart = HandMade().front().take(0, numbers({0})).events({9, 0, 0, 0}, 0, {}).end(0);
  EXPECT_TRUE(has(error_of(apart), "do not follow those before: storage 9"));
}

TEST(DamagedTrace, WithAnUnknownPartIsRefused) {
  const std::string content = HandMade().front().part("WHAT", {}).end(0);
  EXPECT_TRUE(has(error_of(content), "a part WHAT where TAKE or DONE is expected"));
}

// 5,000 ops of seven bytes each share a name of 100,000 bytes. A copy for each would make half a gigabyte from 135 KB.
TEST(DamagedTrace, ThatWouldTakeFarMoreMemoryThanItsSizeIsRefused) {
  PackedBytes texts = numbers({1, 100'000});
  append_text(texts, std::string(100'000, 'x'));
  PackedBytes records;
  for (int i = 0; i < 5'000; ++i) {
    for (const std::uint64_t value : {kOpBegin, std::uint64_t{0}, std::uint64_t{1}}) append_packed(records, value);
    for (int zeros = 0; zeros < 3; ++zeros) append_packed(records, 0);
  }
  const std::string content =
      HandMade().front(texts).take(0, numbers({0})).events({0, 0, 0, 0}, 5'000, records).end(5'000);
  EXPECT_TRUE(has(error_of(content), "not written by ullage")) << error_of(content);
}

TEST(DamagedTrace, WithCountsFarBeyondItsSizeIsRefused) {
  for (const PackedBytes& list : {numbers({UINT64_MAX}), numbers({1ull << 40}), numbers({2, 1, 65})}) {
    EXPECT_NE(error_of(HandMade().front(list).take(0, numbers({0})).end(0)), "no error");
    EXPECT_NE(error_of(HandMade().front(numbers({0}), list).take(0, numbers({0})).end(0)), "no error");
    EXPECT_NE(error_of(HandMade().front().take(1, list).end(0)), "no error");
  }
  EXPECT_TRUE(has(error_of(with_events(1, {kOpBegin, 5, 0, 0, 0, UINT64_MAX})), "cut off"));
}

}  // namespace
}  // namespace ullage::trace
