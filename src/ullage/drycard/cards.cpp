// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cards.h"

#include <array>
#include <string>

namespace ullage::drycard {
namespace {

constexpr std::uint64_t mib(std::uint64_t count) { return count << 20; }
constexpr int kib(int count) { return count * 1024; }

// The figures come from public printouts.
//
// Total memory: the comment above each card names the source. Drivers from 555 on keep about 0.1 GiB more for their own
// firmware; these are totals under such drivers, if any were found. Machines with the same driver differ by 2 to 20
// MiB.
//
// Context: within 5 %, as others measured it (an empty process in nvidia-smi, or total less free). For cards that
// nobody measured it is 29 MiB plus 1.88 KiB for each thread that the card can hold. This rule is within 8 % of the
// measured cards. The first matrix product adds 30 to 100 MiB, which are not counted.
//
// Everything else: deviceQuery of such cards and NVIDIA's data sheets. GeForce cards from RTX 30 on multiply in half
// precision and add up in fp32 at twice their fp32 rate. Sources: NVIDIA's papers on GA102, AD102 and Blackwell.
constexpr std::array kCards = {
    // clang-format off
    // printed under CUDA 13.0; older drivers 14.58 to 14.76 GiB
    CardModel{"t4", "Tesla T4", 15637086208u, mib(103), 7, 5, 40, 1024, 16, kib(64), kib(64),
              4194304, 1590000, 5001000, 256, 8.1, 65, true, 3, 0x1eb8},
    // deviceQuery, driver of CUDA 12.8; older drivers 10.75 GiB. Context by the rule
    CardModel{"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 11348672512u, mib(157), 7, 5, 68, 1024, 16, kib(64), kib(64),
              5767168, 1545000, 7000000, 352, 13.4, 53.8, false, 3, 0x1e07},
    // llama.cpp's log; others of the same age 11901 to 11911 MiB
    CardModel{"rtx3060", "NVIDIA GeForce RTX 3060", mib(11907), mib(113), 8, 6, 28, 1536, 16, kib(99), kib(100),
              2359296, 1777000, 7501000, 192, 12.7, 25.5, false, 2, 0x2504},
    // llama.cpp's logs, driver 580; others of the same age 24115 to 24126 MiB; older drivers 23.69 GiB
    CardModel{"rtx3090", "NVIDIA GeForce RTX 3090", mib(24124), mib(260), 8, 6, 82, 1536, 16, kib(99), kib(100),
              6291456, 1695000, 9751000, 384, 35.6, 71.2, false, 2, 0x2204},
    // a message of 2026 says 7.62 GiB; older drivers 7.75. Context by the rule
    CardModel{"rtx4060", "NVIDIA GeForce RTX 4060", mib(7803), mib(97), 8, 9, 24, 1536, 24, kib(99), kib(100),
              25165824, 2460000, 8501000, 128, 15.1, 30.2, false, 2, 0x2882},
    // printed under CUDA 13.0, driver 580.126; older drivers 23.61 to 23.68 GiB
    CardModel{"rtx4090", "NVIDIA GeForce RTX 4090", 25250627584u, mib(386), 8, 9, 128, 1536, 24, kib(99), kib(100),
              75497472, 2520000, 10501000, 384, 82.6, 165.2, false, 2, 0x2684},
    // deviceQuery under CUDA 13.0; others 32076 to 32120 MiB
    CardModel{"rtx5090", "NVIDIA GeForce RTX 5090", 33668857856u, mib(500), 12, 0, 170, 1536, 24, kib(99), kib(100),
              100663296, 2407000, 14001000, 512, 104.8, 209.5, false, 2, 0x2b85},
    // openxla/xla, specs/v100.txtpb
    CardModel{"v100-16gb", "Tesla V100-SXM2-16GB", 16935682048u, mib(306), 7, 0, 80, 2048, 32, kib(96), kib(96),
              6291456, 1530000, 877000, 4096, 15.7, 125, true, 6, 0x1db1},
    // torch 2.5.1 and deviceQuery under CUDA 12.9
    CardModel{"v100-32gb", "Tesla V100-SXM2-32GB", 34072559616u, mib(306), 7, 0, 80, 2048, 32, kib(96), kib(96),
              6291456, 1530000, 877000, 4096, 15.7, 125, true, 6, 0x1db5},
    // deviceQuery in a virtual machine, driver of CUDA 12.8. Context by the rule
    CardModel{"a10", "NVIDIA A10", 23696375808u, mib(232), 8, 6, 72, 1536, 16, kib(99), kib(100),
              6291456, 1695000, 6251000, 384, 31.2, 125, true, 2, 0x2236},
    // openxla/xla, specs/a100_sxm_40.txtpb; older drivers 39.42 to 39.59 GiB
    CardModel{"a100-40gb", "NVIDIA A100-SXM4-40GB", 42298834944u, mib(420), 8, 0, 108, 2048, 32, kib(163), kib(164),
              41943040, 1410000, 1215000, 5120, 19.5, 312, true, 3, 0x20b0},
    // torch 2.7.1 on CUDA 12.6; others 79.26 GiB
    CardModel{"a100-80gb", "NVIDIA A100-SXM4-80GB", 85094825984u, mib(420), 8, 0, 108, 2048, 32, kib(163), kib(164),
              41943040, 1410000, 1593000, 5120, 19.5, 312, true, 3, 0x20b2},
    // torch's and llama.cpp's logs, driver 580.173; older drivers 21.96 to 22.05 GiB
    CardModel{"l4", "NVIDIA L4", mib(22563), mib(192), 8, 9, 58, 1536, 24, kib(99), kib(100),
              50331648, 2040000, 6251000, 192, 30.3, 121, true, 2, 0x27b8},
    // printed by torch; llama.cpp's logs 45467 MiB. Context by the rule
    CardModel{"l40s", "NVIDIA L40S", 47677177856u, mib(429), 8, 9, 142, 1536, 24, kib(99), kib(100),
              100663296, 2520000, 9001000, 384, 91.6, 362, true, 2, 0x26b9},
    // openxla/xla, specs/h100_sxm.txtpb; 85017755648 is seen as often under the same CUDA 13.0, the reason is not known
    CardModel{"h100", "NVIDIA H100 80GB HBM3", 84942979072u, mib(525), 9, 0, 132, 2048, 32, kib(227), kib(228),
              52428800, 1980000, 2619000, 5120, 67, 989, true, 3, 0x2330},
    // torch prints 143156 MiB; others 143166
    CardModel{"h200", "NVIDIA H200", 150110011392u, mib(527), 9, 0, 132, 2048, 32, kib(227), kib(228),
              62914560, 1980000, 3201000, 6144, 67, 989, true, 3, 0x2335},
    // torch 2.7.1 and 2.13; others 182642 MiB
    CardModel{"b200", "NVIDIA B200", 191503007744u, mib(615), 10, 0, 148, 2048, 32, kib(227), kib(228),
              132644864, 1965000, 3996000, 7680, 80, 2250, true, 4, 0x2901},
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
