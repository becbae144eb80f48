// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/dry_card.h"

#include "ullage/base/sizes.h"
#include "ullage/cli/words.h"

#include <charconv>
#include <optional>

namespace ullage::cli {
namespace {

constexpr int kMostDryCards = 16;
constexpr const char* kUsualCard = "a100-80gb";

Result<drycard::CardModel> model_of(const std::string& name) {
  if (name == "cuda") return *drycard::find_card(kUsualCard);
  if (name.starts_with("cuda:")) {
    const Result<Bytes> size = parse_bytes(name.substr(5));
    if (!size)
      return wrong("'" + name + "': " + size.error().message + "; cuda:SIZE is a card of that size", "--device");
    const drycard::CardModel card = drycard::card_of_size(size->count);
    if (card.total <= card.context) {
      return wrong(
          "a card of " + to_string(*size) + " is too small: the context alone takes " + to_string(Bytes{card.context}),
          "--device");
    }
    return card;
  }
  if (const std::optional<drycard::CardModel> found = drycard::find_card(name)) return *found;
  std::string known;
  for (const std::string_view one : drycard::card_names()) known += (known.empty() ? "" : ", ") + std::string(one);
  return wrong("'" + name + "' is not a known card: name cuda:SIZE, or one of " + known, "--device");
}

}  // namespace

Result<DryCard> read_dry_card(const std::string& device) {
  const std::size_t star = device.rfind('*');
  ULLAGE_TRY_VALUE(const drycard::CardModel model, model_of(device.substr(0, star)));
  if (star == std::string::npos) return DryCard{model, 1};
  const std::string number = device.substr(star + 1);
  int count = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc{} || *rest != '\0' || count < 1 || count > kMostDryCards) {
    return wrong("'" + number + "' is not a number of cards from 1 to " + std::to_string(kMostDryCards), "--device");
  }
  return DryCard{model, count};
}

bool names_a_card(const std::string& device) {
  return drycard::find_card(device.substr(0, device.rfind('*'))).has_value();
}

}  // namespace ullage::cli
