// SPDX-License-Identifier: Apache-2.0
// NCCL: communicators know their size and rank, but carry no data. The exception is a small buffer that was just copied
// from the host: every rank is assumed to send the same (copies.h). Buffers that NCCL itself allocates on a card are
// not counted.

#include "ullage/drycard/card/copies.h"
#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace ullage::drycard {
namespace {

struct Communicator {
  int size = 1;
  int rank = 0;
  int card = 0;
};

struct UniqueId {
  char bytes[128];
};

int make(Communicator** communicator, int size, int rank, int card) {
  *communicator = new Communicator{size, rank, card};
  return 0;
}

// Bytes of an ncclDataType_t, in its order: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16,
// and two types of one byte.
std::size_t size_of(int type) {
  constexpr std::array<std::size_t, 12> kSizes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && static_cast<std::size_t>(type) < kSizes.size() ? kSizes[static_cast<std::size_t>(type)] : 1;
}

int collective(const void* from, void* to, std::size_t count, int type, int times, const void* stream) {
  const std::array at = {reinterpret_cast<Address>(from), reinterpret_cast<Address>(to)};
  hand_on(at[0], at[1], count * size_of(type), times);
  give_kernel(stream, "a collective of NCCL", at);
  note_work(stream, 1);
  return 0;
}

}  // namespace

ULLAGE_CARD_API int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                  const Communicator* communicator, void* stream) {
  return collective(from, to, count, type, communicator->size, stream);
}
ULLAGE_CARD_API int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int, const Communicator*,
                                  void* stream) {
  return collective(from, to, count, type, 1, stream);
}
ULLAGE_CARD_API int ncclBcast(void* buffer, std::size_t count, int type, int, const Communicator*, void* stream) {
  return collective(buffer, buffer, count, type, 1, stream);
}
// If all ranks hold equal values, their minimum, maximum and mean are that value. Their sum is another and stays
// unknown.
ULLAGE_CARD_API int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                                  const Communicator*, void* stream) {
  constexpr int kMax = 2, kMin = 3, kMean = 4;
  const bool stays = operation == kMax || operation == kMin || operation == kMean;
  return collective(from, to, count, type, stays ? 1 : 0, stream);
}

ULLAGE_CARD_API int ncclGetVersion(int* version) {
  const char* text = std::getenv("ULLAGE_DRYCARD_NCCL");
  const long stated = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
  *version = stated > 0 ? static_cast<int>(stated) : 22907;
  return 0;
}
ULLAGE_CARD_API int ncclGetUniqueId(UniqueId* id) {
  std::memset(id, 1, sizeof *id);
  return 0;
}
// The id is passed by value: 128 bytes on the stack. The other arguments are in registers.
ULLAGE_CARD_API int ncclCommInitRank(Communicator** communicator, int size, UniqueId, int rank) {
  return make(communicator, size, rank, current_card());
}
ULLAGE_CARD_API int ncclCommInitRankConfig(Communicator** communicator, int size, UniqueId, int rank, void*) {
  return make(communicator, size, rank, current_card());
}
ULLAGE_CARD_API int ncclCommInitRankScalable(Communicator** communicator, int size, int rank, int, UniqueId*, void*) {
  return make(communicator, size, rank, current_card());
}
ULLAGE_CARD_API int ncclCommInitAll(Communicator** communicators, int count, const int* cards) {
  for (int i = 0; i < count; ++i) make(&communicators[i], count, i, cards != nullptr ? cards[i] : i);
  return 0;
}
// How many ranks share a colour is not known here, so the new communicator is as large as the old one.
ULLAGE_CARD_API int ncclCommSplit(Communicator* from, int, int, Communicator** made, void*) {
  return make(made, from->size, from->rank, from->card);
}
ULLAGE_CARD_API int ncclCommShrink(Communicator* from, int*, int, Communicator** made, void*, int) {
  return make(made, from->size, from->rank, from->card);
}
ULLAGE_CARD_API int ncclCommFinalize(Communicator*) { return 0; }
ULLAGE_CARD_API int ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return 0;
}
ULLAGE_CARD_API int ncclCommAbort(Communicator* communicator) {
  delete communicator;
  return 0;
}
ULLAGE_CARD_API int ncclCommGetAsyncError(Communicator*, int* error) {
  *error = 0;
  return 0;
}
ULLAGE_CARD_API int ncclCommCount(const Communicator* communicator, int* count) {
  *count = communicator->size;
  return 0;
}
ULLAGE_CARD_API int ncclCommUserRank(const Communicator* communicator, int* rank) {
  *rank = communicator->rank;
  return 0;
}
ULLAGE_CARD_API int ncclCommCuDevice(const Communicator* communicator, int* card) {
  *card = communicator->card;
  return 0;
}
ULLAGE_CARD_API const char* ncclGetErrorString(int error) { return error == 0 ? "no error" : "unknown result code"; }
ULLAGE_CARD_API const char* ncclGetLastError(Communicator*) { return ""; }
ULLAGE_CARD_API int ncclCommRegister(Communicator*, void*, std::size_t, void** handle) {
  *handle = nullptr;
  return 0;
}
ULLAGE_CARD_API int ncclCommWindowRegister(Communicator*, void*, std::size_t, void** window, int) {
  *window = nullptr;
  return 0;
}
ULLAGE_CARD_API int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, Communicator*) {
  *operation = 0;
  return 0;
}
ULLAGE_CARD_API int ncclMemAlloc(void** place, std::size_t bytes) {
  return allocate(current_card(), bytes, reinterpret_cast<Address*>(place)) == kSuccess ? 0 : 1;
}
ULLAGE_CARD_API int ncclMemFree(void* place) { return release(reinterpret_cast<Address>(place)) == kSuccess ? 0 : 1; }

}  // namespace ullage::drycard
