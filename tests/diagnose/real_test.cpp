// SPDX-License-Identifier: Apache-2.0

// Diagnoses recordings and messages of other people: every answer must be sound, and causes that public threads agreed
// on must be found.

#include "check.h"

#include "real.h"
#include "ullage/read/input.h"
#include "ullage/read/log/log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

namespace ullage::diagnose {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::filesystem::path& path) {
  std::vector<json> objects;
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);) objects.push_back(json::parse(line));
  return objects;
}

std::vector<Diagnosis> of_message(const json& message) {
  const auto log = read::read_log(message.at("text").get<std::string>(), message.at("id").get<std::string>());
  EXPECT_TRUE(log.ok()) << message.at("id");
  return log.ok() ? sound(diagnose(*log, {"train.log", {}, {}})) : std::vector<Diagnosis>{};
}

std::vector<std::string> strings(const json& list) { return list.get<std::vector<std::string>>(); }

bool holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// tests/data/messages/agreed.jsonl says what the threads agreed on; it was written from their words before any rule.
// Such a cause must be among the first three, and a cause that they ruled out must not get more than one half.
TEST(RealMessages, AgreedOnInAThreadAreAmongTheFirstThree) {
  std::map<std::string, json> messages;
  for (const json& message : lines_of(data_folder() / "messages/messages.jsonl")) messages[message.at("id")] = message;
  std::size_t found = 0;
  std::vector<std::string> missed;
  const std::vector<json> agreed = lines_of(data_folder() / "messages/agreed.jsonl");
  ASSERT_EQ(agreed.size(), 39u);
  for (const json& each : agreed) {
    const std::vector<Diagnosis> diagnoses = of_message(messages.at(each.at("id")));
    ASSERT_EQ(diagnoses.size(), 1u) << each.at("id");
    bool among = false;
    const std::vector<Cause>& causes = diagnoses[0].causes;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, causes.size()); ++i) {
      among |= holds(strings(each.at("accepted")), causes[i].id);
    }
    for (const Cause& cause : causes) {
      if (cause.confidence > 0.5) {
        EXPECT_FALSE(holds(strings(each.at("refuted")), cause.id)) << each.at("id") << " " << cause.id;
      }
    }
    found += among ? 1 : 0;
    if (!among) missed.push_back(each.at("id"));
  }
  // The texts of these three do not mention the cause; docs/measured.md explains each.
  EXPECT_EQ(missed, (std::vector<std::string>{"oom-091", "oom-100", "oom-115"}));
  EXPECT_EQ(found, 36u);
}

TEST(RealMessages, AreAllJudgedAndSayHowToKnowMore) {
  for (const json& message : lines_of(data_folder() / "messages/messages.jsonl")) {
    for (const Diagnosis& diagnosis : of_message(message)) {
      EXPECT_FALSE(diagnosis.causes.empty()) << message.at("id");
      EXPECT_FALSE(diagnosis.remedies.empty()) << message.at("id");
      const bool sure = !diagnosis.causes.empty() && diagnosis.causes[0].confidence >= 0.9;
      EXPECT_EQ(diagnosis.to_know_more.empty(), sure) << message.at("id");
    }
  }
}

TEST(RealMessages, GetManyDifferentListsOfRemedies) {
  std::set<std::string> lists;
  for (const json& message : lines_of(data_folder() / "messages/messages.jsonl")) {
    for (const Diagnosis& diagnosis : of_message(message)) {
      std::string list;
      for (const Remedy& remedy : diagnosis.remedies) list += remedy.id + " ";
      lists.insert(list);
    }
  }
  EXPECT_GE(lists.size(), 20u);
}

void judge_all_in(const std::filesystem::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const auto input = read::read_input_file(entry.path().string());
    if (!input.ok()) {  // beside the recordings lie notes about what was checked by hand
      const std::string kind = entry.path().extension();
      EXPECT_TRUE(kind == ".md" || kind == ".jsonl" || kind == ".py") << input.error().text();
      continue;
    }
    ++files;
    for (trace::At at : {trace::At::Peak, trace::At::OutOfMemory, trace::At::End}) {
      sound(diagnose(*input, {entry.path().string(), {}, at}));
    }
    EXPECT_FALSE(sound(diagnose(*input, {entry.path().string(), {}, {}})).empty());
  }
  EXPECT_GT(files, 0u);
}

TEST(RealFiles, InTheCheckoutAreJudged) {
  for (const char* folder : {"snapshots", "summaries", "profiles"}) judge_all_in(data_folder() / folder);
}

TEST(RealFiles, BesideTheCheckoutAreJudged) {
  ULLAGE_NEEDS_REAL_FILES();
  for (const char* folder : {"snapshots", "memory_summary", "kineto"}) judge_all_in(real_folder() / folder);
}

}  // namespace
}  // namespace ullage::diagnose
