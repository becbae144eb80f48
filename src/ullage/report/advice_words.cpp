// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/advice_words.h"

#include "ullage/base/sizes.h"

#include <fmt/format.h>

#include <filesystem>

namespace ullage::report {

std::string headline(const advise::Advice& advice) {
  const std::string peak = advice.plain.peak ? to_string(*advice.plain.peak) : "more than is known";
  return fmt::format("{} {} of the {} of {}", advice.plain.fits.value_or(false) ? "fits as it is:" : "needs", peak,
                     to_string(advice.memory), advice.device);
}

std::string result_word(const advise::Row& row) {
  if (!row.effect_known) return "";
  switch (row.effect) {
    case advise::Effect::SameBits:
      return "same bits";
    case advise::Effect::Rounding:
      return "rounding";
    case advise::Effect::Different:
      return "different";
  }
  return "";
}

std::string fits_word(const advise::Row& row) {
  if (!row.fits) return "?";
  if (row.basis == advise::Basis::Computed) return *row.fits ? "may" : "no";
  return *row.fits ? "yes" : "no";
}

std::string peak_word(const advise::Row& row) {
  if (!row.peak) return "-";
  return (row.basis == advise::Basis::Computed ? "~" : "") + to_string(*row.peak);
}

std::string time_word(const advise::Row& row) {
  return row.more_time ? fmt::format("{:+.0f} %", *row.more_time * 100) : "-";
}

std::string place_word(const advise::Row& row) {
  if (row.place.file.empty()) return "";
  return fmt::format("{}:{}", std::filesystem::path(row.place.file).filename().string(), row.place.line);
}

std::string plainly_words(const advise::Row& row, Bytes memory) {
  if (!row.plainly) return "";
  const auto peak = [&](Bytes bytes, bool surely) {
    const char* just = surely ? ", fits three steps" : ", just fits three steps; another run may not";
    return to_string(bytes) + (bytes <= memory ? just : ", does not fit");
  };
  std::string words = "without Ullage: " + peak(row.plainly->peak, row.plainly->fits_surely(memory));
  if (row.plainly->others > Bytes{})
    words += fmt::format("; {} of them are in other processes", to_string(row.plainly->others));
  if (row.plainly->lean)
    words += fmt::format("; with {}={} {}", advise::kLeanMalloc.first, advise::kLeanMalloc.second,
                         peak(*row.plainly->lean, true));
  return words;
}

}  // namespace ullage::report
