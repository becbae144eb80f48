// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/uuid.h"

#include "ullage/drycard/ledger.h"

#include <cstdio>
#include <cstdlib>
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
  if (text == nullptr) return -1;
  char* rest = nullptr;
  const unsigned long domain = std::strtoul(text, &rest, 16);
  if (*rest != ':') return -1;
  const unsigned long bus = std::strtoul(rest + 1, &rest, 16);
  if (*rest != ':') return -1;
  const unsigned long device = std::strtoul(rest + 1, &rest, 16);
  return domain == 0 && device == 0 && bus >= 1 && bus <= kMostCards ? static_cast<int>(bus) - 1 : -1;
}

}  // namespace ullage::drycard
