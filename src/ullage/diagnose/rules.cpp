// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/rules.h"

#include <algorithm>

namespace ullage::diagnose {
namespace {

constexpr double kLeastConfidence = 0.05;  // a less probable cause only takes the reader's time
constexpr std::size_t kMostCauses = 6;

// If the confidences add up to more than 1, the most likely cause keeps its own. The others are scaled down to share
// the rest.
void share_one(std::vector<Cause>& causes) {
  double others = 0;
  for (std::size_t i = 1; i < causes.size(); ++i) others += causes[i].confidence;
  if (causes.empty() || causes[0].confidence + others <= 1) return;
  const double scale = (1 - causes[0].confidence) / others;
  for (std::size_t i = 1; i < causes.size(); ++i) causes[i].confidence *= scale;
}

}  // namespace

std::vector<CauseRule> all_rules() {
  std::vector<CauseRule> all;
  for (auto family : {not_memory_rules(), cap_rules(), host_rules(), devices_rules(), fragmentation_rules(),
                      outside_rules(), leak_rules(), step_rules(), capacity_rules(), composition_rules()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

std::vector<Cause> causes_of(const Evidence& evidence) {
  std::vector<Cause> causes;
  for (const CauseRule& rule : all_rules()) {
    std::optional<Finding> found = rule.rule(evidence);
    if (!found) continue;
    causes.push_back({std::string(rule.id), std::string(rule.title), std::clamp(found->confidence, 0.0, 1.0),
                      std::move(found->evidence)});
  }
  // Equal confidences keep the order of the families above. It begins with those that are easiest to tell from the
  // others.
  const auto by_confidence = [](const Cause& a, const Cause& b) { return a.confidence > b.confidence; };
  std::stable_sort(causes.begin(), causes.end(), by_confidence);
  // A message has one failed request, and each confidence is the probability that the cause alone made it fail.
  if (evidence.message) share_one(causes);
  std::erase_if(causes, [](const Cause& cause) { return cause.confidence < kLeastConfidence; });
  if (causes.size() > kMostCauses) causes.resize(kMostCauses);
  return causes;
}

}  // namespace ullage::diagnose
