// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cards.h"

#include <array>
#include <string>

namespace ullage::drycard {
namespace {

constexpr std::uint64_t mib(double count) { return static_cast<std::uint64_t>(count * 1048576.0); }
constexpr int kib(int count) { return count * 1024; }

constexpr std::array kCards = {
    CardModel{"t4", "Tesla T4", mib(14910), mib(103), 7, 5, 40, 1024, 16, kib(64), kib(64), kib(4096), 1590000, 5001000,
              256, true, 0x1eb8},
    CardModel{"a100-80gb", "NVIDIA A100-SXM4-80GB", mib(81153), mib(415), 8, 0, 108, 2048, 32, kib(163), kib(164),
              kib(40960), 1410000, 1593000, 5120, true, 0x20b2},
};

std::string plain(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    }
  }
  for (const std::string_view prefix : {"nvidia", "tesla", "geforce"}) {
    if (word.starts_with(prefix)) word.erase(0, prefix.size());
  }
  return word;
}

}  // namespace

std::optional<CardModel> find_card(std::string_view name) {
  const std::string wanted = plain(name);
  for (const CardModel& card : kCards) {
    if (plain(card.name) == wanted || plain(card.product) == wanted) return card;
  }
  return std::nullopt;
}

CardModel card_of_size(std::uint64_t total) {
  CardModel card = *find_card("a100-80gb");
  card.name = "cuda";
  card.product = "Ullage dry card";
  card.total = total;
  return card;
}

std::vector<std::string_view> card_names() {
  std::vector<std::string_view> names;
  for (const CardModel& card : kCards) names.push_back(card.name);
  return names;
}

}  // namespace ullage::drycard
