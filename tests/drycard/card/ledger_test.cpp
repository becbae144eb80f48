// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include "ullage/drycard/cards.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

namespace ullage::drycard {
namespace {

TEST(DryCardLedger, SaysWhatTheCardsAre) {
  CardLibrary card({{"ULLAGE_DRYCARD_CARD", "T4"}, {"ULLAGE_DRYCARD_COUNT", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0"}});
  int count = 0;
  EXPECT_EQ(card("cudaGetDeviceCount", &count), 0);
  EXPECT_EQ(count, 2);
  unsigned machine = 0;
  EXPECT_EQ(card("nvmlDeviceGetCount_v2", &machine), 0);
  EXPECT_EQ(machine, 3u);
  EXPECT_EQ(card.ledger().magic.load(), CardLedger::kMagic);
  EXPECT_EQ(card.ledger().cards.load(), 3u);
  EXPECT_EQ(card.ledger().card[2].total.load(), find_card("t4")->total);
  EXPECT_EQ(card.ledger().processes.load(), 0u);  // no context yet
  card.allocate(kMib);
  EXPECT_EQ(card.ledger().card[2].used.load(), 2 * kMib);  // ordinal 0 is the machine's third card
  EXPECT_EQ(card.ledger().card[2].processes.load(), 1u);
}

// The struct of CUDA 11 is smaller than the others. Torch keeps it between other variables.
TEST(DryCardLedger, WritesTheStructOfThatCuda) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CUDA", "11"}});
  std::vector<unsigned char> properties(2048, 0xa5);
  EXPECT_EQ(card("cudaGetDeviceProperties", properties.data(), 0), 0);
  EXPECT_EQ(std::count(properties.begin() + 728, properties.end(), 0xa5), 2048 - 728);  // its sizeof with CUDA 11
}

// bitsandbytes 0.40 chooses its library by the runtime's version.
// A process has one machine, so each version has a case of its own.
void expect_versions(const char* cuda, int runtime, int driver) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CUDA", cuda}});
  int stated = 0;
  EXPECT_EQ(card("cudaRuntimeGetVersion", &stated), 0);
  EXPECT_EQ(stated, runtime);
  EXPECT_EQ(card("cudaDriverGetVersion", &stated), 0);
  EXPECT_EQ(stated, driver);
}

TEST(DryCardLedger, StatesTheVersionOfTheRuntime) { expect_versions("12.1", 12010, 12090); }
TEST(DryCardLedger, StatesADriverNoOlderThanTheRuntime) { expect_versions("13.2", 13020, 13020); }
TEST(DryCardLedger, StatesTheVersionOfAnOldRuntime) { expect_versions("11.8", 11080, 12090); }
TEST(DryCardLedger, StatesTheNewestVersionItKnowsIfOneNumberIsGiven) { expect_versions("12", 12090, 12090); }

TEST(DryCardLedger, OutlivesAProcessThatIsKilledAndGivesItsBytesBack) {
  CardLibrary card({{"ULLAGE_DRYCARD_MEMORY", std::to_string(kGib)}});
  const pid_t child = ::fork();
  if (child == 0) {
    card.allocate(300 * kMib);
    ::raise(SIGKILL);
  }
  siginfo_t ended;
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // leaves it a zombie
  EXPECT_EQ(card.ledger().card[0].used.load(), 300 * kMib);
  const std::size_t context = card.ledger().card[0].context.load();
  EXPECT_EQ(card.free_bytes(), kGib - context);
  EXPECT_EQ(card.ledger().card[0].peak.load(), 300 * kMib);
  EXPECT_EQ(card.ledger().processes.load(), 2u);
  ::waitpid(child, nullptr, 0);
}

TEST(DryCardLedger, AddsUpTheLivingProcesses) {
  CardLibrary card({{"ULLAGE_DRYCARD_MEMORY", std::to_string(2 * kGib)}});
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    card.allocate(300 * kMib);
    char byte = 0;
    if (::write(ready[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 1) ::_exit(0);
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::size_t context = card.ledger().card[0].context.load();
  EXPECT_EQ(card.free_bytes(), 2 * kGib - 300 * kMib - 2 * context);
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(card.free_bytes(), 2 * kGib - context);
}

TEST(DryCardLedger, NotesUnknownFunctionsOnce) {
  CardLibrary card({});
  for (const char* name : {"cudaOne", "cudaTwo", "cudaOne", "cublasSgemm_v2"}) card("ullage_drycard_unknown", name);
  EXPECT_STREQ(card.ledger().unknown[0].text.data(), "cudaOne");
  EXPECT_STREQ(card.ledger().unknown[1].text.data(), "cudaTwo");
  EXPECT_EQ(card.ledger().unknown[2].set.load(), 0u);  // cublasSgemm_v2 only computes, so it is not noted
  EXPECT_EQ(card.ledger().unknown_calls.load(), 3u);
}

TEST(DryCardLedger, RefusesAChildByForkOfAUser) {
  CardLibrary card({});
  card.allocate(kMib);
  const pid_t child = ::fork();
  if (child == 0) {
    void* place = nullptr;
    ::_exit(card("cudaMalloc", &place, kMib));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);  // cudaErrorInitializationError
}

}  // namespace
}  // namespace ullage::drycard
