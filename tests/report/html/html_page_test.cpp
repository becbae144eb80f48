// SPDX-License-Identifier: Apache-2.0
#include "report/page_text.h"
#include "report/sample_diagnosis.h"

#include "ullage/report/diagnosis_report.h"
#include "ullage/report/html/html_text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ullage::report {
namespace {

std::string page(const std::vector<Diagnosis>& diagnoses) {
  for (const Diagnosis& diagnosis : diagnoses) expect_adds_up(diagnosis);
  std::ostringstream out;
  write_html(diagnoses, trace::Log{}, out);
  return page_text(out);
}

TEST(HtmlPage, SaysWhatTheDiagnosisSays) {
  const std::string text = page({sample_snapshot()});
  for (const char* said : {"2.87 GiB asked for", "the cached bytes are in pieces", "likely, 85 %",
                           "expandable_segments:True", "saves 4.00 GiB", "model.py:42 forward", "Live at event 12345",
                           "ullage explain oom.pickle", "the figures are rounded"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said;
  }
  EXPECT_EQ(count(text, "<article>"), 1u);
  EXPECT_EQ(count(text, "<nav>"), 0u);
}

TEST(HtmlPage, HasAListOfSeveral) {
  const std::string text = page(std::vector<Diagnosis>(3, sample_message()));
  EXPECT_EQ(count(text, "<article>"), 3u);
  EXPECT_EQ(count(text, "href=\"#d"), 3u);
}

TEST(HtmlPage, EscapesEveryText) {
  const std::string evil = "</script></style><img onerror='x' title=\"&\">\x1b\u202e";
  Diagnosis d = sample_snapshot();
  d.source = {evil, evil, evil, evil, 1, 2};
  d.headline = d.bar->of = d.bar->parts.front().name = d.peak->owners.front().name = evil;
  d.causes.front() = {evil, evil, 0.5, {evil}};
  d.remedies.front() = {evil, evil, 1_GiB, Basis::Known, evil};
  d.notes = {evil};
  d.to_know_more = d.next = evil;
  const std::string plain = page({sample_snapshot()}), text = page({d, d});
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
  EXPECT_EQ(count(text, "</script>"), count(plain, "</script>"));
  EXPECT_EQ(count(text, "</style>"), 1u);
  EXPECT_NE(text.find("&lt;/script&gt;"), std::string::npos);
}

TEST(HtmlText, KeepsAScriptElementWhole) {
  EXPECT_EQ(escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(in_script("[\"</script><!--\"]"), "[\"\\u003c/script>\\u003c!--\"]");
}

}  // namespace
}  // namespace ullage::report
