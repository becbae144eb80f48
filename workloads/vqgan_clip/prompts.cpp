// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/prompts.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

namespace ullage::vqgan_clip {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(kWhite);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

std::optional<double> number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Python's rsplit(':', 2).
std::vector<std::string_view> split_at_last_colons(std::string_view text) {
  const std::size_t last = text.rfind(':');
  if (last == std::string_view::npos) return {text};
  const std::string_view stop = text.substr(last + 1);
  text = text.substr(0, last);
  const std::size_t one_before = text.rfind(':');
  if (one_before == std::string_view::npos) return {text, stop};
  return {text.substr(0, one_before), text.substr(one_before + 1), stop};
}

Result<Prompt> parse_prompt(std::string_view written, const std::string& option) {
  const std::string quoted = "'" + std::string(trimmed(written)) + "'";
  const auto wrong = [&](const std::string& what) { return Error{Error::Kind::BadArgument, what, option}; };
  const auto parts = split_at_last_colons(written);
  Prompt prompt{.text = std::string(trimmed(parts[0]))};
  if (prompt.text.empty()) return wrong("prompt " + quoted + " is empty; give a text before its weight");
  const auto no_number = [&](std::string_view part, const char* what, const char* allowed) {
    return wrong("prompt " + quoted + ": " + what + " '" + std::string(trimmed(part)) + "' is not " + allowed +
                 "; if the text has a colon, give weight and stop after it: " + quoted.substr(0, quoted.size() - 1) +
                 ":1:-inf'");
  };
  if (parts.size() > 1) {
    const auto weight = number(parts[1]);
    if (!weight || !std::isfinite(*weight)) return no_number(parts[1], "the weight", "a number");
    prompt.weight = *weight;
  }
  if (parts.size() > 2) {
    const auto stop = number(parts[2]);
    if (!stop || *stop == -prompt.stop) return no_number(parts[2], "the stop", "a number or -inf");
    prompt.stop = *stop;
  }
  return prompt;
}

Result<Phrase> parse_phrase(std::string_view text, const std::string& option) {
  Phrase phrase;
  for (const std::string_view part : split(text, '|')) {
    ULLAGE_TRY_VALUE(auto prompt, parse_prompt(part, option));
    phrase.push_back(std::move(prompt));
  }
  return phrase;
}

std::string shown(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::string to_string(const Phrase& phrase) {
  std::string text;
  for (const Prompt& prompt : phrase) {
    const bool is_both = prompt.stop != Prompt{}.stop || prompt.text.find(':') != std::string::npos;
    text += (text.empty() ? "" : "|") + prompt.text;
    if (is_both || prompt.weight != 1) text += ":" + shown(prompt.weight);
    if (is_both) text += ":" + shown(prompt.stop);
  }
  return text;
}

Result<std::vector<Phrase>> parse_story(std::string_view text) {
  std::vector<Phrase> story;
  for (const std::string_view part : split(text, '^')) {
    ULLAGE_TRY_VALUE(auto phrase, parse_phrase(part, "--prompts"));
    story.push_back(std::move(phrase));
  }
  return story;
}

Result<Phrase> parse_image_prompts(std::string_view text) { return parse_phrase(text, "--image-prompts"); }

}  // namespace ullage::vqgan_clip
