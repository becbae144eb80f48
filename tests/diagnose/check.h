// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks what must hold for every diagnosis, whatever the input: parts add up, causes and remedies are sorted and have
// evidence. Every test of this folder passes each of its diagnoses to sound().

#include "ullage/diagnose/diagnose.h"
#include "ullage/read/log/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ullage::diagnose {

inline void expect_sound(const Diagnosis& diagnosis) {
  EXPECT_FALSE(diagnosis.headline.empty());
  EXPECT_FALSE(diagnosis.next.empty());
  EXPECT_FALSE(diagnosis.source.kind.empty());
  EXPECT_EQ(diagnosis.headline.find('\n'), std::string::npos);
  if (diagnosis.bar) {
    Bytes sum;
    auto kind = Bar::Part::Kind::Live;
    for (const Bar::Part& part : diagnosis.bar->parts) {
      sum += part.bytes;
      EXPECT_GE(part.kind, kind) << part.name;
      EXPECT_FALSE(part.name.empty());
      EXPECT_GT(part.bytes, Bytes{}) << part.name;
      kind = part.kind;
    }
    EXPECT_EQ(sum, diagnosis.bar->total) << diagnosis.headline;
    EXPECT_FALSE(diagnosis.bar->of.empty());
  }
  if (diagnosis.peak) {
    Bytes sum;
    Bytes before{UINT64_MAX};
    for (const trace::Owner& owner : diagnosis.peak->owners) {
      sum += owner.bytes;
      EXPECT_LE(owner.bytes, before);
      before = owner.bytes;
    }
    EXPECT_EQ(sum, diagnosis.peak->bytes) << diagnosis.headline;
  }
  double confidence = 1;
  for (const Cause& cause : diagnosis.causes) {
    EXPECT_FALSE(cause.id.empty());
    EXPECT_FALSE(cause.title.empty());
    EXPECT_FALSE(cause.evidence.empty()) << cause.id;
    for (const std::string& line : cause.evidence) EXPECT_FALSE(line.empty()) << cause.id;
    EXPECT_GE(cause.confidence, 0) << cause.id;
    EXPECT_LE(cause.confidence, confidence) << cause.id;
    confidence = cause.confidence;
  }
  double sum_of_confidences = 0;
  for (const Cause& cause : diagnosis.causes) sum_of_confidences += cause.confidence;
  if (diagnosis.source.kind == "message") {
    EXPECT_LE(sum_of_confidences, 1 + 1e-9) << diagnosis.headline;
  }
  bool figures_over = false;
  Bytes saves{UINT64_MAX};
  for (const Remedy& remedy : diagnosis.remedies) {
    EXPECT_FALSE(remedy.id.empty());
    EXPECT_FALSE(remedy.action.empty()) << remedy.id;
    figures_over |= !remedy.saves.has_value();
    EXPECT_EQ(remedy.saves.has_value(), !figures_over) << remedy.id << " stands behind one without a figure";
    EXPECT_EQ(remedy.basis == Basis::Known, !remedy.saves.has_value()) << remedy.id;
    EXPECT_LE(remedy.saves.value_or(Bytes{}), saves) << remedy.id;
    saves = remedy.saves.value_or(saves);
  }
}

inline std::vector<Diagnosis> sound(std::vector<Diagnosis> diagnoses) {
  for (const Diagnosis& diagnosis : diagnoses) expect_sound(diagnosis);
  return diagnoses;
}

// Diagnoses a text that holds an error, as `ullage explain` does a file's.
inline std::vector<Diagnosis> diagnoses_of(const std::string& text) {
  const auto log = read::read_log(text, "text");
  EXPECT_TRUE(log.ok()) << text;
  return log.ok() ? sound(diagnose(*log, {"train.log", {}, {}})) : std::vector<Diagnosis>{};
}

inline const Cause* cause(const Diagnosis& diagnosis, const std::string& id) {
  const auto at =
      std::find_if(diagnosis.causes.begin(), diagnosis.causes.end(), [&](const Cause& c) { return c.id == id; });
  return at == diagnosis.causes.end() ? nullptr : &*at;
}

inline const Remedy* remedy(const Diagnosis& diagnosis, const std::string& id) {
  const auto at =
      std::find_if(diagnosis.remedies.begin(), diagnosis.remedies.end(), [&](const Remedy& r) { return r.id == id; });
  return at == diagnosis.remedies.end() ? nullptr : &*at;
}

inline std::string first(const Diagnosis& diagnosis) { return diagnosis.causes.empty() ? "" : diagnosis.causes[0].id; }

}  // namespace ullage::diagnose
