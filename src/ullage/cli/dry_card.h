// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the name of the card that a dry run pretends to have: "cuda", "cuda:24GiB" or "rtx3090". Each may end in "*2",
// for two cards.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/drycard/cards.h"

#include <string>

namespace ullage::cli {

struct DryCard {
  drycard::CardModel model;
  int count = 1;
};

// "cuda" is the A100 with 80 GB. "cuda:SIZE" states only how much memory the card has. BadArgument if the name is
// unknown, or if the count is not 1 to 16. BadArgument also if SIZE is not above what the A100's context takes (420
// MiB). If the name is unknown, the message lists all known ones.
Result<DryCard> read_dry_card(const std::string& device);

// Returns whether `device` names a card of the table, rather than "cpu", "cuda" or "cuda:...".
bool names_a_card(const std::string& device);

}  // namespace ullage::cli
