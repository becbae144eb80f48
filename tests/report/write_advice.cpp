// SPDX-License-Identifier: Apache-2.0

// For test_page.py: writes the page of a made-up Advice.
// usage: write_advice FILE

#include "report/sample_advice.h"
#include "ullage/report/advice_report.h"

#include <fstream>

int main(int count, char** words) {
  if (count != 2) return 2;
  std::ofstream out(words[1]);
  ullage::report::write_html(ullage::report::sample_advice_with_curves(), out);
  return out ? 0 : 1;
}
