// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/record/rehearsal_sizes.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ullage::runtime {
namespace {

using Values = std::vector<std::int64_t>;

Values numbers_in(std::string_view text) {
  Values values;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && end == word.data() + word.size()) values.push_back(value);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return values;
}

// Returns the values of one knob in "batch=2,3,4;size=32,48,64"; nothing if it is not named.
std::optional<Values> chosen(std::string_view text, std::string_view knob) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    const std::size_t equals = part.find('=');
    if (equals != part.npos && part.substr(0, equals) == knob) return numbers_in(part.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return std::nullopt;
}

Values values_of(std::string_view text, const Knob& asked, const Values& usual) {
  if (text == "auto") return asked.value < usual.front() ? Values{asked.value} : usual;
  const std::optional<Values> values = chosen(text, asked.name);
  return values && !values->empty() ? *values : Values{asked.value};
}

// Called for a knob if another one keeps a single value. If both are sides of a picture, the law of both sides
// (predict/law.h) cannot be used then. The quadratic along this side alone needs one value more.
void add_value(Values& values) { values.push_back(2 * values.back() - values[values.size() - 2]); }

}  // namespace

std::vector<std::vector<Knob>> takes_of(std::string_view text, const std::vector<Knob>& asked,
                                        const std::vector<Values>& usual) {
  ULLAGE_CHECK(asked.size() == usual.size(), "values for each knob");
  bool one_is_left = false;
  for (std::size_t k = 0; k < asked.size(); ++k) one_is_left |= text == "auto" && asked[k].value < usual[k].front();
  std::vector<std::vector<Knob>> takes(1);
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Values values = values_of(text, asked[k], usual[k]);
    if (one_is_left && values.size() > 1) add_value(values);
    std::vector<std::vector<Knob>> longer;
    for (const auto& take : takes) {
      for (const std::int64_t value : values) {
        longer.push_back(take);
        longer.back().push_back({asked[k].name, value});
      }
    }
    takes = std::move(longer);
  }
  return takes;
}

}  // namespace ullage::runtime
