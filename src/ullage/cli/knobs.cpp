// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/knobs.h"

#include "ullage/cli/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cctype>
#include <optional>
#include <string_view>

namespace ullage::cli {
namespace {

using Axis = predict::Grid::Axis;

// The largest size accepted. No tensor with a larger one has a realistic count of bytes.
constexpr std::int64_t kMostSize = std::int64_t{1} << 40;
constexpr std::size_t kMostKnobs = 2;

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

std::optional<std::int64_t> size_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value > 0 && value <= kMostSize ? std::optional(value) : std::nullopt;
}

Error no_size(std::string_view text, const char* option) {
  return wrong(fmt::format("'{}' is not a size: write a whole number from 1 to {}", text, kMostSize), option);
}

Result<Knob> read_knob(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || !is_name(name)) {
    return wrong(fmt::format("'{}' is not NAME=SIZE, as batch=128 is", text), "--at");
  }
  const std::optional<std::int64_t> value = size_of(std::string_view(text).substr(equals + 1));
  if (!value) return no_size(std::string_view(text).substr(equals + 1), "--at");
  return Knob{name, *value};
}

// Returns an axis without values if the person stated none.
Result<Axis> read_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  Axis axis{text.substr(0, equals), {}};
  if (!is_name(axis.name)) return wrong(fmt::format("'{}' is not NAME or NAME=A,B,C", text), "--vary");
  if (equals == std::string::npos) return axis;
  for (std::string_view rest = std::string_view(text).substr(equals + 1);;) {
    const std::size_t comma = rest.find(',');
    const std::optional<std::int64_t> value = size_of(rest.substr(0, comma));
    if (!value) return no_size(rest.substr(0, comma), "--vary");
    if (!axis.values.empty() && *value <= axis.values.back()) {
      return wrong(fmt::format("{} after {}: write the sizes of {} in ascending order, each once", *value,
                               axis.values.back(), axis.name),
                   "--vary");
    }
    axis.values.push_back(*value);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (axis.values.size() < kSizes) {
    return wrong(fmt::format("{} has {} size{}, at least {} are needed: two to fit and one to check; or write {} alone",
                             axis.name, axis.values.size(), axis.values.size() == 1 ? "" : "s", kSizes, axis.name),
                 "--vary");
  }
  return axis;
}

template <class Named>
const Named* find(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

Result<std::vector<Axis>> read_axes(const std::vector<std::string>& vary) {
  std::vector<Axis> axes;
  for (const std::string& text : vary) {
    ULLAGE_TRY_VALUE(Axis axis, read_axis(text));
    if (find(axes, axis.name) != nullptr) return wrong("knob " + axis.name + " is named twice", "--vary");
    axes.push_back(std::move(axis));
  }
  if (axes.size() > kMostKnobs) {
    return wrong(fmt::format("there are {} knobs, at most {} can be varied at once", axes.size(), kMostKnobs),
                 "--vary");
  }
  return axes;
}

// Fills in the sizes of an axis that has none. Returns false if the target is below the smallest of them.
bool choose(Axis& axis, std::int64_t target) {
  if (!axis.values.empty()) return true;
  for (std::size_t i = 0; i < kSizes; ++i) axis.values.push_back(kLeastSize + static_cast<std::int64_t>(i));
  return target >= axis.values.front();
}

std::string placeholder(const std::string& name) { return "{" + name + "}"; }

}  // namespace

Result<std::vector<Knob>> read_at(const std::vector<std::string>& at) {
  std::vector<Knob> knobs;
  for (const std::string& text : at) {
    ULLAGE_TRY_VALUE(Knob knob, read_knob(text));
    if (find(knobs, knob.name) != nullptr) return wrong("knob " + knob.name + " is named twice", "--at");
    knobs.push_back(std::move(knob));
  }
  return knobs;
}

Result<Knobs> read_knobs(const std::vector<std::string>& vary, const std::vector<std::string>& at) {
  ULLAGE_TRY_VALUE(std::vector<Axis> axes, read_axes(vary));
  ULLAGE_TRY_VALUE(const std::vector<Knob> targets, read_at(at));
  for (const Knob& target : targets) {
    if (find(axes, target.name) == nullptr) {
      return wrong(fmt::format("{} is not varied: add --vary {}", target.name, target.name), "--at");
    }
  }
  Knobs knobs;
  for (Axis& axis : axes) {
    const Knob* target = find(targets, axis.name);
    if (target == nullptr) {
      return wrong(fmt::format("the size to predict is missing: add --at {}=SIZE", axis.name), "--vary");
    }
    const bool below = !choose(axis, target->value);
    knobs.below |= below;
    if (target->value < axis.values.front() && !below) {
      return wrong(fmt::format("{} {} is below {}, the smallest size of --vary: smaller sizes are not predicted from "
                               "larger ones; run it, or vary smaller sizes",
                               axis.name, target->value, axis.values.front()),
                   "--at");
    }
    knobs.at.push_back(*target);
    knobs.grid.axes.push_back(std::move(axis));
  }
  return knobs;
}

std::string in_words(const std::vector<Knob>& knobs) {
  std::string text;
  for (const Knob& knob : knobs) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", knob.name, knob.value);
  return text;
}

std::string as_text(const predict::Grid& grid) {
  std::string text;
  for (const Axis& axis : grid.axes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", axis.name, fmt::join(axis.values, ","));
  }
  return text;
}

std::vector<std::vector<Knob>> points(const predict::Grid& grid) {
  std::vector<std::vector<Knob>> all = {{}};
  for (const Axis& axis : grid.axes) {
    std::vector<std::vector<Knob>> longer;
    for (const std::vector<Knob>& begun : all) {
      for (const std::int64_t value : axis.values) {
        longer.push_back(begun);
        longer.back().push_back({axis.name, value});
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string fill(const std::string& word, const std::vector<Knob>& knobs) {
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view rest = std::string_view(word).substr(at);
    const auto knob = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& one) {
      return rest.starts_with(placeholder(one.name)) || rest.starts_with("{" + placeholder(one.name) + "}");
    });
    if (knob == knobs.end()) {
      out += word[at++];
      continue;
    }
    const std::string here = placeholder(knob->name);
    const bool literal = rest.starts_with("{{");
    out += literal ? here : std::to_string(knob->value);
    at += here.size() + (literal ? 2 : 0);
  }
  return out;
}

std::vector<std::string> fill(const std::vector<std::string>& words, const std::vector<Knob>& knobs) {
  std::vector<std::string> out;
  out.reserve(words.size());
  for (const std::string& word : words) out.push_back(fill(word, knobs));
  return out;
}

Status check_placeholders(const std::vector<std::string>& words, const std::vector<Knob>& knobs) {
  for (const Knob& knob : knobs) {
    const std::vector<Knob> one = {knob};
    // Compares two fillings with each other. Filling in also changes `{{batch}}`, to `{batch}`, but to the same for
    // every value.
    const std::vector<Knob> other = {{knob.name, knob.value + 1}};
    if (fill(words, one) != fill(words, other)) continue;
    return wrong(fmt::format("{} is in no word of the command: write it where the size of {} stands",
                             placeholder(knob.name), knob.name),
                 "--vary");
  }
  return success();
}

}  // namespace ullage::cli
