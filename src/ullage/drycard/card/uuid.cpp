// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/uuid.h"

#include "ullage/drycard/ledger.h"

#include <cstdio>
#include <cstring>

namespace ullage::drycard {

Uuid uuid_of(int card) {
  Uuid made = {};
  std::memcpy(made.bytes, "ullage-drycard-", 15);
  made.bytes[15] = static_cast<char>(card);
  return made;
}

std::string uuid_text(int card) {
  const Uuid uuid = uuid_of(card);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += pair;
  }
  return text;
}

std::string bus_text(int card) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", static_cast<unsigned>(bus_of(card)) & 0xffU);
  return text;
}

int card_at_bus(const char* text) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  if (text == nullptr || std::sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3) return -1;
  const int card = static_cast<int>(bus) - 1;
  return domain == 0 && device == 0 && card >= 0 && card < static_cast<int>(kMostCards) ? card : -1;
}

}  // namespace ullage::drycard
