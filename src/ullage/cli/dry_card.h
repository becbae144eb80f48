// SPDX-License-Identifier: Apache-2.0
#pragma once

// The card that a dry run claims to have, as a person names it: "cuda", "cuda:24GiB", "rtx3090", each with "*2" for
// two.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/drycard/cards.h"

#include <string>

namespace ullage::cli {

struct DryCard {
  drycard::CardModel model;
  int count = 1;
};

// "cuda" is the A100 with 80 GB; of "cuda:SIZE" only the memory is known. BadArgument: nobody knows the name, all that
// are known are listed; a size below 256 MiB; more than 16 cards.
Result<DryCard> read_dry_card(const std::string& device);

// Is it a name of the table, rather than "cpu", "cuda" or "cuda:..."?
bool names_a_card(const std::string& device);

}  // namespace ullage::cli
