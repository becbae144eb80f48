// SPDX-License-Identifier: Apache-2.0
// Implements prefix_length and rank_of of log_lines.h: what loggers and launchers write in front of a line.
#include "ullage/read/log/log_lines.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

namespace ullage::read {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

bool only(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) { return is_digit(c) || others.find(c) != others.npos; });
}

constexpr std::string_view kLevels[] = {"ERROR", "WARNING", "WARN", "INFO", "DEBUG",  "CRITICAL",
                                        "FATAL", "TRACE",   "ERR",  "[E]",  "stderr", "stdout"};

bool is_level(std::string_view word) { return std::ranges::find(kLevels, word) != std::end(kLevels); }

// "04-01", "23:46:56", "2025-01-01T00:00:00.123Z", "2025/01/01", "23:46:56,123"; not "23.69" nor "9.53/21.69".
bool is_time(std::string_view word) {
  if (word.size() < 5 || !is_digit(word[0]) || !only(word, "-:.,/+TZ")) return false;
  const std::size_t fraction = word.find_first_of(".,");
  return word.substr(0, fraction).find_first_of(fraction == word.npos ? ":-/" : ":") != word.npos && is_digit(word[1]);
}

// "[rank0]", "[0]", "[1,0]", "[2025-01-01 00:00:00]", "[engine.py:160]", "[ERROR]", "[3/8]", "[ 12.345678]"
bool is_bracketed_prefix(std::string_view inside) {
  if (inside.empty() || inside.size() > 64) return false;
  if (only(inside, " -:.,/+TZ")) return inside.find_first_of("0123456789") != inside.npos;
  if (is_level(inside)) return true;
  for (const std::string_view word : {"rank", "Rank", "RANK", "default", "node", "worker"}) {
    if (inside.starts_with(word) && only(inside.substr(word.size()), " ,:")) return true;
  }
  for (const std::string_view source : {".py:", ".cc:", ".cpp:", ".cu:"}) {
    const std::size_t at = inside.find(source);
    if (at != inside.npos && only(inside.substr(at + source.size()), "")) return true;
  }
  return false;
}

bool is_round_prefix(std::string_view inside) {
  return inside.size() <= 96 && (inside.find("pid=") != inside.npos || inside.find("rank=") != inside.npos ||
                                 inside.find("ip=") != inside.npos);
}

// "[...]", "[...]:", "[...]<stderr>:" or "(...)" with optional colon. Returns its end, or `at` if none is there.
std::size_t bracketed(std::string_view line, std::size_t at) {
  const bool round = line[at] == '(';
  const std::size_t close = line.substr(0, std::min(line.size(), at + 100)).find(round ? ')' : ']', at);
  if (close == line.npos) return at;
  const std::string_view inside = line.substr(at + 1, close - at - 1);
  if (!(round ? is_round_prefix(inside) : is_bracketed_prefix(inside))) return at;
  std::size_t end = close + 1;
  for (const std::string_view stream : {"<stderr>", "<stdout>"}) {
    if (line.substr(end).starts_with(stream)) end += stream.size();
  }
  return end < line.size() && line[end] == ':' ? end + 1 : end;
}

// One word followed by blanks and a bar, as docker compose writes ("web-1  | "). Returns as bracketed() does.
std::size_t container_name(std::string_view line, std::size_t at) {
  std::size_t end = at;
  while (end < line.size() && end < at + 64 && is_word(line[end])) ++end;
  if (end == at) return at;
  const std::size_t bar = line.find_first_not_of(' ', end);
  if (bar == line.npos || bar == end || line[bar] != '|') return at;
  return bar + 1;
}

// "somehost trainer[77]:", as syslog and journald write after the time. Returns as bracketed() does.
std::size_t host_and_process(std::string_view line, std::size_t at) {
  const std::size_t close = line.substr(0, std::min(line.size(), at + 100)).find("]:", at);
  if (close == line.npos) return at;
  const std::string_view inside = line.substr(at, close - at);
  const std::size_t open = inside.rfind('['), blank = inside.find(' ');
  if (open == inside.npos || blank == inside.npos || blank > open || !only(inside.substr(open + 1), "")) return at;
  const auto words = [](std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_word); };
  return words(inside.substr(0, blank)) && words(inside.substr(blank + 1, open - blank - 1)) ? close + 2 : at;
}

// Returns the end of the piece of prefix that begins at `at`; `at` if none begins there.
std::size_t piece(std::string_view line, std::size_t at) {
  const char c = line[at];
  if (c == '[' || c == '(') return bracketed(line, at);
  const bool last = at + 1 == line.size();
  if (c == '|' || c == '>') return last || line[at + 1] == ' ' ? at + 1 : at;
  if (const std::size_t name = container_name(line, at); name != at) return name;
  std::size_t end = line.substr(0, std::min(line.size(), at + 48)).find(' ', at);
  if (end == line.npos) end = std::min(line.size(), at + 48);
  const std::string_view word = line.substr(at, end - at);
  if (is_time(word)) return end;
  if (const std::size_t host = at > 0 ? host_and_process(line, at) : at; host != at) return host;
  if (is_level(word) && end < line.size()) return end;
  // Kubernetes: "stderr F ", "stdout P "; pytest: "E   ". Elsewhere such a letter may end a wrapped word.
  if (word == "F" || word == "P") {
    const std::string_view before = line.substr(0, at);
    return before.ends_with("stderr ") || before.ends_with("stdout ") ? end : at;
  }
  if (word == "E") return line.substr(end).starts_with("  ") ? end : at;
  if (word.size() > 1 && word.back() == ':') {
    const std::string_view before = word.substr(0, word.size() - 1);
    if (is_level(before) || (before.size() <= 6 && only(before, ""))) return end;
  }
  return at;
}

std::optional<unsigned> rank_at(std::string_view text, std::size_t at) {
  unsigned value = 0;
  const char* first = text.data() + at;
  const char* last = text.data() + std::min(text.size(), at + 6);
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end == first) return std::nullopt;
  return value;
}

}  // namespace

std::size_t prefix_length(std::string_view line) {
  std::size_t taken = 0;
  for (std::size_t at = 0; at < line.size() && at < 300;) {
    if (const std::size_t escape = line[at] == '\x1b' ? escape_length(line, at) : 0) {
      at += escape;
      if (taken != 0 || line[at == line.size() ? at - 1 : at] != ' ') taken = at;
      continue;
    }
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    const std::size_t end = piece(line, at);
    if (end == at) break;
    at = end;
    taken = end < line.size() && line[end] == ' ' ? end + 1 : end;
  }
  return taken;
}

std::optional<unsigned> rank_of(std::string_view line) {
  const std::string_view prefix = line.substr(0, prefix_length(line));
  for (const std::string_view word : {"rank=", "rank", "Rank ", "RANK ", "rank ", "Rank", "default"}) {
    const std::size_t at = prefix.find(word);
    if (at != prefix.npos) {
      if (const auto rank = rank_at(prefix, at + word.size())) return rank;
    }
  }
  // mpirun's "[job,rank]<stderr>:", torchrun's "[rank]:", slurm's "rank: "
  const std::size_t colon = prefix.find(':');
  if (colon == prefix.npos) return std::nullopt;
  std::string_view head = prefix.substr(0, colon);
  if (head.ends_with("<stderr>") || head.ends_with("<stdout>")) head.remove_suffix(8);
  if (head.starts_with('[') && head.ends_with(']')) {
    head = head.substr(1, head.size() - 2);
    if (const std::size_t comma = head.find(','); comma != head.npos) head.remove_prefix(comma + 1);
  }
  if (head.empty() || head.size() > 6 || !only(head, "")) return std::nullopt;
  if (colon + 1 < prefix.size() && is_digit(prefix[colon + 1])) return std::nullopt;  // a time
  return rank_at(head, 0);
}

bool has_error_level(std::string_view prefix) {
  constexpr std::string_view kErrors[] = {"ERROR", "CRITICAL", "FATAL"};
  return std::ranges::any_of(kErrors, [&](std::string_view level) { return prefix.find(level) != prefix.npos; });
}

}  // namespace ullage::read
