// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cards.h"

#include <array>
#include <string>

namespace ullage::drycard {
namespace {

constexpr std::uint64_t mib(std::uint64_t count) { return count << 20; }
constexpr int kib(int count) { return count * 1024; }
// Messages say it with two decimals; pages of a card are 2 MiB.
constexpr std::uint64_t gib(double count) {
  const auto whole = static_cast<std::uint64_t>(count * 512.0);
  return (whole + (count * 512.0 - static_cast<double>(whole) >= 0.5 ? 1 : 0)) << 21;
}

// Sources. The comment at each card: its total memory, of `torch.cuda` or its out-of-memory message, without the part
// that the driver keeps (it grows with newer drivers). Contexts: estimates, of CUDA 12 and 13 with modules loaded when
// they are used. All else: NVIDIA's data sheets and the tables of compute capabilities in the CUDA programming guide.
constexpr std::array kCards = {
    // clang-format off
    // CatVTON issue 133 (2025-11); older drivers 14.58 to 14.76
    CardModel{"t4", "Tesla T4", gib(14.56), mib(103), 7, 5, 40, 1024, 16, kib(64), kib(64),
              4194304, 1590000, 5001000, 256, true, 0x1eb8},
    // as remembered from public torch messages, not looked up
    CardModel{"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", gib(10.75), mib(150), 7, 5, 68, 1024, 16, kib(64), kib(64),
              5767168, 1545000, 7000000, 352, false, 0x1e07},
    // dreambooth-gui issue 78 (2022-12); newer drivers keep some 0.1 GiB more
    CardModel{"rtx3060", "NVIDIA GeForce RTX 3060", gib(11.75), mib(120), 8, 6, 28, 1536, 16, kib(99), kib(100),
              2359296, 1777000, 7501000, 192, false, 0x2504},
    // as remembered from public torch messages, not looked up; older drivers 23.69
    CardModel{"rtx3090", "NVIDIA GeForce RTX 3090", gib(23.57), mib(250), 8, 6, 82, 1536, 16, kib(99), kib(100),
              6291456, 1695000, 9751000, 384, false, 0x2204},
    // EdgeRegNet issue 2 (2025-04)
    CardModel{"rtx4060", "NVIDIA GeForce RTX 4060", gib(7.75), mib(120), 8, 9, 24, 1536, 24, kib(99), kib(100),
              25165824, 2460000, 8501000, 128, false, 0x2882},
    // SoulX-FlashTalk issue 5 (2026-01); older drivers 23.61 (flux-webui issue 11) to 23.68
    CardModel{"rtx4090", "NVIDIA GeForce RTX 4090", gib(23.52), mib(390), 8, 9, 128, 1536, 24, kib(99), kib(100),
              75497472, 2520000, 10501000, 384, false, 0x2684},
    // as remembered from public torch messages, not looked up
    CardModel{"rtx5090", "NVIDIA GeForce RTX 5090", gib(31.36), mib(480), 12, 0, 170, 1536, 24, kib(99), kib(100),
              100663296, 2407000, 14001000, 512, false, 0x2b85},
    // llama issue 918 (2023)
    CardModel{"v100-16gb", "Tesla V100-SXM2-16GB", gib(15.77), mib(300), 7, 0, 80, 2048, 32, kib(96), kib(96),
              6291456, 1530000, 877000, 4096, true, 0x1db1},
    // ChatGLM-Finetuning issue 73
    CardModel{"v100-32gb", "Tesla V100-SXM2-32GB", gib(31.74), mib(300), 7, 0, 80, 2048, 32, kib(96), kib(96),
              6291456, 1530000, 877000, 4096, true, 0x1db5},
    // as remembered from public torch messages, not looked up
    CardModel{"a10", "NVIDIA A10", gib(22.05), mib(220), 8, 6, 72, 1536, 16, kib(99), kib(100),
              6291456, 1695000, 6251000, 384, true, 0x2236},
    // as remembered from public torch messages, not looked up; older drivers 39.59
    CardModel{"a100-40gb", "NVIDIA A100-SXM4-40GB", gib(39.39), mib(415), 8, 0, 108, 2048, 32, kib(163), kib(164),
              41943040, 1410000, 1215000, 5120, true, 0x20b0},
    // public torch messages say 79.15 to 79.25, as remembered, not looked up
    CardModel{"a100-80gb", "NVIDIA A100-SXM4-80GB", gib(79.25), mib(415), 8, 0, 108, 2048, 32, kib(163), kib(164),
              41943040, 1410000, 1593000, 5120, true, 0x20b2},
    // as remembered from public torch messages, not looked up
    CardModel{"l4", "NVIDIA L4", gib(22.03), mib(190), 8, 9, 58, 1536, 24, kib(99), kib(100),
              50331648, 2040000, 6251000, 192, true, 0x27b8},
    // Qwen3-VL issue 2097 (2026-06), of an L40, which has the same memory
    CardModel{"l40s", "NVIDIA L40S", gib(44.40), mib(400), 8, 9, 142, 1536, 24, kib(99), kib(100),
              100663296, 2520000, 9001000, 384, true, 0x26b9},
    // vLLM issue 27508 (2025-10)
    CardModel{"h100", "NVIDIA H100 80GB HBM3", gib(79.11), mib(520), 9, 0, 132, 2048, 32, kib(227), kib(228),
              52428800, 1980000, 2619000, 5120, true, 0x2330},
    // as remembered from public torch messages, not looked up
    CardModel{"h200", "NVIDIA H200", gib(139.81), mib(520), 9, 0, 132, 2048, 32, kib(227), kib(228),
              62914560, 1980000, 3201000, 6144, true, 0x2335},
    // torchao pull request 4002 (2026-03), as are its bus, clock, cache and multiprocessors
    CardModel{"b200", "NVIDIA B200", gib(178.35), mib(600), 10, 0, 148, 2048, 32, kib(227), kib(228),
              132644864, 1965000, 3996000, 7680, true, 0x2901},
    // clang-format on
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
