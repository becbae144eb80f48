// SPDX-License-Identifier: Apache-2.0
#include "pulse/loss_grammar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace ullage::pulse {
namespace {

constexpr std::array kTerms = {Term::L2, Term::L1, Term::GeoCross};

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Term> term_named(std::string_view name) {
  for (const Term term : kTerms) {
    if (name_of(term) == name) return term;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Term term) {
  switch (term) {
    case Term::L2:
      return "L2";
    case Term::L1:
      return "L1";
    case Term::GeoCross:
      return "GEOCROSS";
  }
  contract_broken("unknown Term", __FILE__, __LINE__);
}

// A '+' always begins a new part, so a weight cannot be written "1e+2". Weights may be negative.
Result<std::vector<LossPart>> parse_loss(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Error{Error::Kind::BadArgument, "'" + text + "': " + why, "--loss-str"};
  };
  std::vector<LossPart> parts;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    const std::size_t times = part.find('*');
    const auto weight = times == std::string_view::npos ? std::nullopt : number(part.substr(0, times));
    if (!weight) {
      return wrong("'" + std::string(part) + "' is not weight*TERM, as in " + std::string(kDefaultLoss));
    }
    const auto term = term_named(part.substr(times + 1));
    if (!term) return wrong("no term '" + std::string(part.substr(times + 1)) + "'; there are L2, L1, GEOCROSS");
    parts.push_back({*weight, *term});
    if (part.size() == rest.size()) return parts;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace ullage::pulse
