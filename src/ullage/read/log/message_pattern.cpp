// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/message_pattern.h"

#include "ullage/read/log/log_lines.h"

#include <algorithm>

namespace ullage::read {
namespace {

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// The digits of a number. `whole` still contains its commas.
struct Number {
  std::string_view whole;
  bool commas = false;
  std::string_view fraction;
  std::size_t end = 0;
};

// Returns whether the comma belongs to a number: exactly three digits follow it.
bool groups(std::string_view letters, std::size_t comma) {
  if (comma + 3 >= letters.size()) return false;
  for (std::size_t i = 1; i <= 3; ++i) {
    if (!is_digit(letters[comma + i])) return false;
  }
  return comma + 4 >= letters.size() || !is_digit(letters[comma + 4]);
}

std::optional<Number> number_at(std::string_view letters, std::size_t at) {
  constexpr std::size_t kLongest = 40;
  const std::string_view upto = letters.substr(0, std::min(letters.size(), at + kLongest));
  Number number;
  std::size_t i = at;
  while (i < upto.size() && (is_digit(upto[i]) || (i > at && upto[i] == ',' && groups(upto, i)))) {
    number.commas |= upto[i] == ',';
    ++i;
  }
  if (i == at) return std::nullopt;
  number.whole = letters.substr(at, i - at);
  if (i + 1 < upto.size() && upto[i] == '.' && is_digit(upto[i + 1])) {
    const std::size_t first = ++i;
    while (i < upto.size() && is_digit(upto[i])) ++i;
    number.fraction = letters.substr(first, i - first);
  }
  if (i == at + kLongest) return std::nullopt;  // no size is that long
  number.end = i;
  return number;
}

struct Unit {
  std::string_view name;
  unsigned shift;  // 2^shift bytes
  bool decimal_label;
};
// A longer name comes before a name that is its beginning, because the first match counts.
constexpr std::array<Unit, 14> kUnits = {{{"bytes", 0, false},
                                          {"kib", 10, false},
                                          {"mib", 20, false},
                                          {"gib", 30, false},
                                          {"tib", 40, false},
                                          {"pib", 50, false},
                                          {"eib", 60, false},
                                          {"kb", 10, true},
                                          {"mb", 20, true},
                                          {"gb", 30, true},
                                          {"tb", 40, true},
                                          {"pb", 50, true},
                                          {"eb", 60, true},
                                          {"b", 0, false}}};

const Unit* unit_at(std::string_view letters, std::size_t at) {
  const std::string_view rest = letters.substr(at);
  for (const Unit& unit : kUnits) {
    if (!rest.starts_with(unit.name)) continue;
    // "6727663616B)" is bytes; "4 b..." may be anything.
    if (unit.name == "b" && (rest.size() == 1 || is_letter(rest[1]))) return nullptr;
    return &unit;
  }
  return nullptr;
}

std::optional<std::uint64_t> whole_value(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c == ',') continue;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

// Returns 0.fraction times 2^shift, rounded up. Uses Horner's rule from the last digit. Each step rounds down and notes
// a rest in `rest`; nested floors of quotients equal one floor, so only the end has to round up. Nothing overflows: 9 *
// 2^60 + 2^60 fits into 64 bits.
std::uint64_t part_of(std::string_view fraction, unsigned shift) {
  const std::uint64_t unit = std::uint64_t{1} << shift;
  std::uint64_t sum = 0;
  bool rest = false;
  for (std::size_t i = fraction.size(); i-- > 0;) {
    const std::uint64_t scaled = static_cast<std::uint64_t>(fraction[i] - '0') * unit + sum;
    sum = scaled / 10;
    rest |= scaled % 10 != 0;
  }
  return sum + (rest ? 1 : 0);
}

std::optional<Bytes> value_of(const Number& number, unsigned shift) {
  const auto whole = whole_value(number.whole);
  if (!whole || *whole > (UINT64_MAX >> shift)) return std::nullopt;
  const std::uint64_t part = part_of(number.fraction, shift);
  const std::uint64_t bytes = *whole << shift;
  if (bytes > UINT64_MAX - part) return std::nullopt;
  return Bytes{bytes + part};
}

Bytes precision_of(const Number& number, unsigned shift) {
  if (shift == 0) return {};
  std::uint64_t last_digit = std::uint64_t{1} << shift;
  for (std::size_t i = 0; i < number.fraction.size(); ++i) last_digit = (last_digit + 9) / 10;
  return Bytes{(last_digit + 1) / 2};
}

MessageSize make_size(const Number& number, const Unit& unit) {
  MessageSize size;
  size.bytes = value_of(number, unit.shift);
  size.precision = precision_of(number, unit.shift);
  size.decimal_label = unit.decimal_label;
  return size;
}

// Returns the bytes of one element of a type by its TensorFlow name; 0 if unknown.
std::uint64_t width_of(std::string_view type) {
  struct Type {
    std::string_view name;
    std::uint64_t width;
  };
  constexpr std::array<Type, 16> kTypes = {{{"float", 4},
                                            {"double", 8},
                                            {"half", 2},
                                            {"bfloat16", 2},
                                            {"int8", 1},
                                            {"uint8", 1},
                                            {"int16", 2},
                                            {"uint16", 2},
                                            {"int32", 4},
                                            {"uint32", 4},
                                            {"int64", 8},
                                            {"uint64", 8},
                                            {"bool", 1},
                                            {"complex64", 8},
                                            {"complex128", 16},
                                            {"qint8", 1}}};
  const auto found = std::ranges::find(kTypes, type, &Type::name);
  return found == kTypes.end() ? 0 : found->width;
}

// Walks along pattern and text together.
class Matcher {
 public:
  Matcher(std::string_view letters, std::size_t at) : letters_(letters), at_(at) {}

  std::optional<Match> run(std::string_view pattern) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const char c = pattern[i];
      if (c == ' ') continue;
      const bool met = c == kLiteral ? letter(pattern[++i]) : is_gap(c) ? gap(c) : letter(c);
      if (!met) return std::nullopt;
    }
    match_.end = at_;
    return match_;
  }

 private:
  bool letter(char c) {
    if (at_ >= letters_.size() || letters_[at_] != folded(c)) return false;
    ++at_;
    return true;
  }

  bool gap(char c) {
    switch (c) {
      case '$':
      case '~':
        return size(c == '$');
      case '&':
        return number_in_the_unit_of_the_next();
      case '|':
        return bytes_without_unit();
      case '+':
        return short_unit();
      case '@':
        return shape();
      case '?':
        return type();
      case '*':
        return punctuation();
      default:
        return number(c);
    }
  }

  bool keep(const MessageSize& size) {
    if (match_.size_count == match_.sizes.size()) return false;
    match_.sizes[match_.size_count++] = size;
    return true;
  }

  bool size(bool kept) {
    const auto found = size_at(letters_, at_);
    if (!found) return false;
    at_ = found->end;
    return !kept || keep(*found);
  }

  // The first number of "109.53/121.69 GiB". One letter separates the two.
  bool number_in_the_unit_of_the_next() {
    const auto first = number_at(letters_, at_);
    if (!first || first->end >= letters_.size()) return false;
    const auto second = number_at(letters_, first->end + 1);
    const Unit* unit = second ? unit_at(letters_, second->end) : nullptr;
    if (unit == nullptr) return false;
    at_ = first->end;
    return keep(make_size(*first, *unit));
  }

  bool bytes_without_unit() {
    const auto found = number_at(letters_, at_);
    if (!found || !found->fraction.empty()) return false;
    at_ = found->end;
    MessageSize size;
    if (const auto value = whole_value(found->whole)) size.bytes = Bytes{*value};
    return keep(size);
  }

  // "21.95G", "16Gi". Squeezed text has no blank after the unit, so only a pattern can tell that the unit ends here.
  bool short_unit() {
    const auto found = number_at(letters_, at_);
    if (!found || found->end >= letters_.size()) return false;
    const std::size_t unit = std::string_view("kmgt").find(letters_[found->end]);
    if (unit == std::string_view::npos) return false;
    at_ = found->end + 1;
    if (at_ < letters_.size() && letters_[at_] == 'i') ++at_;
    if (at_ < letters_.size() && letters_[at_] == 'b') ++at_;
    return keep(make_size(*found, {"", static_cast<unsigned>(10 * (unit + 1)), false}));
  }

  bool number(char c) {
    const auto found = number_at(letters_, at_);
    if (!found || found->end >= letters_.size()) return false;
    if (c != '%' && (found->commas || !found->fraction.empty())) return false;
    const auto value = whole_value(found->whole);
    if (c == '#') match_.device = value;
    if (c == '^') match_.process = value;
    at_ = found->end;
    return true;
  }

  bool punctuation() {
    for (int i = 0; i < 3 && at_ < letters_.size() && std::string_view(":=('\"").find(letters_[at_]) != letters_.npos;
         ++i) {
      ++at_;
    }
    return true;
  }

  bool shape() {
    elements_ = 1;
    const std::size_t begin = at_;
    while (at_ < letters_.size() && at_ < begin + 200 && (is_digit(letters_[at_]) || letters_[at_] == ',')) {
      const std::size_t first = at_;
      while (at_ < letters_.size() && is_digit(letters_[at_])) ++at_;
      const auto length = whole_value(letters_.substr(first, at_ - first));
      const bool fits = length && elements_ && (*length == 0 || *elements_ <= UINT64_MAX / *length);
      elements_ = fits ? std::optional(*elements_ * *length) : std::nullopt;
      if (at_ < letters_.size() && letters_[at_] == ',') ++at_;
    }
    return at_ > begin && at_ < letters_.size();
  }

  // Squeezed text has no blank after the type's name. The next word is "on", so the name ends there.
  bool type() {
    const std::size_t end = letters_.substr(0, std::min(letters_.size(), at_ + 16)).find("on", at_);
    if (end == std::string_view::npos) return false;
    const std::uint64_t width = width_of(letters_.substr(at_, end - at_));
    if (width == 0) return false;
    at_ = end;
    MessageSize size;
    if (elements_ && *elements_ <= UINT64_MAX / width) size.bytes = Bytes{*elements_ * width};
    return keep(size);
  }

  std::string_view letters_;
  std::size_t at_;
  std::optional<std::uint64_t> elements_;
  Match match_;
};

}  // namespace

std::optional<MessageSize> size_at(std::string_view letters, std::size_t at) {
  auto number = number_at(letters, at);
  const Unit* unit = number ? unit_at(letters, number->end) : nullptr;
  // NumPy writes "858. GiB".
  if (number && unit == nullptr && number->fraction.empty() && letters.substr(number->end).starts_with('.')) {
    unit = unit_at(letters, ++number->end);
    if (unit != nullptr && unit->shift == 0) unit = nullptr;
  }
  if (unit == nullptr || (unit->shift == 0 && !number->fraction.empty())) return std::nullopt;
  MessageSize size = make_size(*number, *unit);
  size.end = number->end + unit->name.size();
  return size;
}

std::optional<Match> match_at(std::string_view pattern, std::string_view letters, std::size_t at) {
  // Nearly every pattern fails at its first letters, so they are compared before a Matcher is made.
  std::size_t i = 0;
  for (; i < pattern.size() && !is_gap(pattern[i]) && pattern[i] != kLiteral; ++i) {
    if (pattern[i] == ' ') continue;
    if (at >= letters.size() || letters[at] != folded(pattern[i])) return std::nullopt;
    ++at;
  }
  return Matcher(letters, at).run(pattern.substr(i));
}

}  // namespace ullage::read
