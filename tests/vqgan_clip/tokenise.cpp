// SPDX-License-Identifier: Apache-2.0
// Prints the tokens of texts, for the comparison with CLIP's own tokeniser.
// usage: vqgan_clip_tokenise VOCABULARY < TEXTS     each text ends with a zero byte; its tokens are printed as a line
#include "vqgan_clip/tokeniser.h"

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto tokeniser = ullage::vqgan_clip::Tokeniser::open(argv[1]);
  if (!tokeniser) {
    std::cerr << tokeniser.error().text() << "\n";
    return 3;
  }
  for (std::string text; std::getline(std::cin, text, '\0');) {
    const auto tokens = tokeniser->encode(text);
    if (!tokens) {
      std::cout << tokens.error().text() << "\n";
      continue;
    }
    for (const std::int64_t token : *tokens) std::cout << token << " ";
    std::cout << "\n";
  }
}
