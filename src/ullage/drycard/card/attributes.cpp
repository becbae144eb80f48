// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/attributes.h"

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/uuid.h"

#include <climits>

namespace ullage::drycard {

namespace {

// The ratio of single- to double-precision speed. Up to capability 10, the large chip of a generation (minor version 0)
// has many units for double precision.
int double_ratio(const CardModel& card) {
  if (card.major >= 12) return 64;
  return card.minor == 0 ? 2 : 32;
}

}  // namespace

int attribute_of(int attribute, int ordinal) {
  const CardModel& card = machine().model;
  // The numbers are those of CUdevice_attribute in cuda.h.
  switch (attribute) {
    case 1:
      return 1024;  // threads per block
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:
      return INT_MAX;  // blocks of a grid
    case 6:
    case 7:
      return 65535;
    case 8:
      return CardModel::kSharedPerBlock;
    case 9:
      return 65536;  // constant memory
    case 10:
      return 32;  // threads of a warp
    case 11:
      return INT_MAX;
    case 12:
      return CardModel::kRegisters;
    case 13:
      return card.clock_khz;
    case 14:
      return 512;
    case 15:
      return 1;
    case 16:
      return card.multiprocessors;
    case 19:
      return 1;
    case 21:
    case 22:
      return 131072;  // textures
    case 23:
      return 65536;
    case 24:
    case 25:
    case 26:
      return 16384;
    case 27:
    case 28:
      return 32768;
    case 29:
      return 2048;
    case 30:
      return 512;
    case 31:
      return 1;
    case 32:
      return card.ecc ? 1 : 0;
    case 33:
      return bus_of(machine().card_of[ordinal]);
    case 36:
      return card.memory_clock_khz;
    case 37:
      return card.bus_bits;
    case 38:
      return card.l2;
    case 39:
      return card.threads_per_multiprocessor;
    case 40:
      return card.copy_engines;
    case 41:
      return 1;  // unified addresses
    case 51:
      return 32;
    case 75:
      return card.major;
    case 76:
      return card.minor;
    case 78:
    case 79:
    case 80:
      return 1;
    case 81:
      return card.shared_per_multiprocessor;
    case 82:
      return CardModel::kRegisters;
    case 83:
      return 1;  // managed memory
    case 85:
      return ordinal;
    case 87:
      return double_ratio(card);
    case 89:
    case 90:
    case 91:
      return 1;
    case 95:
    case 96:
      return 1;  // cooperative launches
    case 97:
      return card.shared_per_block_optin;
    case 98:
      return 0;
    case 99:
      return 1;
    case 102:
    case 103:
      return 1;  // virtual memory, its handles
    case 106:
      return card.blocks_per_multiprocessor;
    case 107:
      return 0;
    case 108:
      return card.major >= 8 ? card.l2 / 4 * 3 : 0;
    case 109:
      return card.major >= 8 ? 134213632 : 0;
    case 110:
      return 0;
    case 111:
      return card.major >= 8 ? 1024 : 0;
    case 112:
    case 113:
    case 114:
    case 115:
      return 1;  // memory pools
    case 119:
      return 1;
    case 120:
      return card.major >= 9 ? 1 : 0;  // clusters
    case 121:
      return 1;
    case 122:
    case 123:
      return 1;  // memory operations of streams
    case 125:
      return 1;
    case 126:
      return card.major >= 9 ? 4 : 1;
    case 127:
      return card.major >= 9 ? 1 : 0;  // tensor maps
    case 129:
      return 1;
    case 134:
      return -1;
    case 139:
      return card.pci_device << 16 | 0x10de;
    default:
      return 0;  // not supported: 128 fabric, 132 multicast and others
  }
}

void* context_of(int ordinal) {
  return reinterpret_cast<void*>(Address{0xca4d0000} + static_cast<Address>(ordinal + 1) * 16);
}

int ordinal_of(const void* context) {
  const Address at = reinterpret_cast<Address>(context);
  for (int i = 0; i < machine().visible; ++i) {
    if (reinterpret_cast<Address>(context_of(i)) == at) return i;
  }
  return -1;
}

}  // namespace ullage::drycard
