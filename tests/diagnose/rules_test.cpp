// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/remedies.h"
#include "ullage/diagnose/rules.h"

#include "real.h"

#include <gtest/gtest.h>

#include <set>

namespace ullage::diagnose {
namespace {

std::set<std::string> cause_ids() {
  std::set<std::string> ids;
  for (const CauseRule& rule : all_rules()) ids.insert(std::string(rule.id));
  return ids;
}

TEST(Rules, HaveEachIdOnceAndATitle) {
  std::set<std::string_view> ids;
  for (const CauseRule& rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.title.empty()) << rule.id;
  }
  ids.clear();
  for (const RemedyRule& rule : all_remedies()) EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
}

TEST(Rules, NameEveryCauseThatWasPromised) {
  const std::set<std::string> ids = cause_ids();
  for (const char* id : {"too_big_for_device",
                         "single_request_too_big",
                         "device_full",
                         "fragmentation",
                         "other_process",
                         "outside_pool",
                         "memory_fraction_cap",
                         "leak_across_steps",
                         "validation_with_graph",
                         "optimizer_state",
                         "logits",
                         "attention_matrix",
                         "checkpoint_loaded_twice",
                         "ranks_on_one_device",
                         "host_memory",
                         "shared_memory",
                         "late_library_handle",
                         "index_error_in_disguise",
                         "garbage_size",
                         "buffer_limit",
                         "unified_memory",
                         "private_pools"}) {
    EXPECT_TRUE(ids.count(id)) << id;
  }
}

TEST(Rules, OfRemediesNameCausesThatExist) {
  const std::set<std::string> ids = cause_ids();
  std::set<std::string> remedied;
  for (const RemedyRule& rule : all_remedies()) {
    for (std::string_view id : rule.causes) {
      if (id.empty()) continue;
      EXPECT_TRUE(ids.count(std::string(id))) << rule.id << " is for " << id;
      remedied.insert(std::string(id));
    }
  }
  for (const std::string& id : ids) EXPECT_TRUE(remedied.count(id)) << id << " has no remedy";
}

TEST(Rules, AreAllInTheDocument) {
  const std::string text = text_of(data_folder() / "../../docs/explain.md");
  for (const std::string& id : cause_ids()) EXPECT_NE(text.find("`" + id + "`"), std::string::npos) << id;
  for (const RemedyRule& rule : all_remedies()) {
    EXPECT_NE(text.find("`" + std::string(rule.id) + "`"), std::string::npos) << rule.id;
  }
}

TEST(Figures, AreAddedOnlyWhileTheyCanBe) {
  EXPECT_EQ(sum(1_GiB, 2_GiB), 3_GiB);
  EXPECT_EQ(sum(Bytes{UINT64_MAX}, 1_B), std::nullopt);
  EXPECT_EQ(sum(1_B, Bytes{UINT64_MAX}), std::nullopt);
  EXPECT_EQ(sum(std::nullopt, 1_B), std::nullopt);
  EXPECT_EQ(difference(2_GiB, 3_GiB), std::nullopt);
  EXPECT_EQ(difference(3_GiB, 2_GiB), 1_GiB);
  EXPECT_EQ(share(1_GiB, 0_B), 0);
  EXPECT_EQ(share(1_GiB, 4_GiB), 0.25);
}

}  // namespace
}  // namespace ullage::diagnose
