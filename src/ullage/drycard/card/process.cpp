// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/process.h"

#include "ullage/drycard/card/uuid.h"
#include "ullage/drycard/card/work.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ullage::drycard {
namespace {

constexpr std::uint64_t kMostSpan = std::uint64_t{16} << 40;
constexpr std::uint64_t kLeastSpan = std::uint64_t{1} << 40;
// Lies below the kernel's place for programs, heaps and stacks (0x55 << 40 and up). It is the same in every run so that
// recordings can be compared. Two neighbouring 32-bit numbers, such as sizes, hardly ever look like an address in this
// range. That matters because arguments of kernels are searched for addresses (work.h).
constexpr Address kWantedPlace = Address{0x3a5d} << 32;

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

// Reads the cards that CUDA_VISIBLE_DEVICES leaves, in its order. Returns how many they are.
int read_visible(const char* text, int cards, int* card_of) {
  int count = 0;
  std::string list = text;
  for (std::size_t at = 0; at <= list.size() && count < cards;) {
    const std::size_t comma = list.find(',', at);
    const std::string word = list.substr(at, comma == std::string::npos ? comma : comma - at);
    int card = -1;
    if (word.starts_with("GPU-")) {
      for (int i = 0; i < cards; ++i) {
        if (uuid_text(i).compare(0, word.size(), word) == 0) card = i;
      }
    } else {
      char* end = nullptr;
      const long number = std::strtol(word.c_str(), &end, 10);
      if (end != word.c_str() && number >= 0 && number < cards) card = static_cast<int>(number);
    }
    if (card < 0) break;
    card_of[count++] = card;
    if (comma == std::string::npos) break;
    at = comma + 1;
  }
  return count;
}

Machine read_machine() {
  Machine made;
  const char* name = variable("ULLAGE_DRYCARD_CARD");
  const auto found = name != nullptr ? find_card(name) : std::nullopt;
  made.model = found ? *found : card_of_size(find_card("a100-80gb")->total);
  if (const char* bytes = variable("ULLAGE_DRYCARD_MEMORY")) made.model.total = std::strtoull(bytes, nullptr, 10);
  if (const char* refuses = variable("ULLAGE_DRYCARD_REFUSES")) made.refuses = std::string_view(refuses) != "0";
  if (const char* count = variable("ULLAGE_DRYCARD_COUNT")) {
    made.cards = static_cast<int>(std::clamp(std::strtol(count, nullptr, 10), 0L, static_cast<long>(kMostCards)));
  }
  if (const char* cuda = variable("ULLAGE_DRYCARD_CUDA")) {
    char* after = nullptr;
    const long major = std::strtol(cuda, &after, 10);
    made.cuda = major == 11 || major == 12 ? 12 : 13;  // what CUDA 11 has of a struct is the first part of CUDA 12's
    made.version = made.newest_known();
    if (*after == '.') made.version = static_cast<int>(major * 1000 + std::strtol(after + 1, nullptr, 10) * 10);
  }
  made.visible = made.cards;
  for (int i = 0; i < made.cards; ++i) made.card_of[i] = i;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) made.visible = read_visible(visible, made.cards, made.card_of);
  return made;
}

// Maps the ledger's file, and makes it if it is missing. Returns private memory if no file is named, or if it cannot be
// mapped or is of another build.
CardLedger* map_ledger() {
  const auto map = [](int flags, int fd) {
    void* place = ::mmap(nullptr, sizeof(CardLedger), PROT_READ | PROT_WRITE, flags, fd, 0);
    return place == MAP_FAILED ? nullptr : static_cast<CardLedger*>(place);
  };
  CardLedger* shared = nullptr;
  if (const char* path = variable("ULLAGE_DRYCARD_LEDGER")) {
    const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat info = {};
    if (fd >= 0 && ::fstat(fd, &info) == 0) {
      const bool made = info.st_size == 0 && ::ftruncate(fd, sizeof(CardLedger)) == 0;
      if (made || info.st_size >= static_cast<off_t>(sizeof(CardLedger))) shared = map(MAP_SHARED, fd);
    }
    if (fd >= 0) ::close(fd);
    if (shared != nullptr && shared->magic.load() == 0) {
      shared->layout.store(CardLedger::kLayout);
      shared->magic.store(CardLedger::kMagic);
    }
    if (shared != nullptr &&
        (shared->magic.load() != CardLedger::kMagic || shared->layout.load() != CardLedger::kLayout)) {
      ::munmap(shared, sizeof(CardLedger));
      shared = nullptr;
    }
  }
  if (shared == nullptr) shared = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (shared == nullptr) {
    static CardLedger own;  // no address space is left; the account is kept all the same
    shared = &own;
  }
  return shared;
}

struct Process {
  std::recursive_mutex lock;
  Machine machine = read_machine();
  CardLedger* ledger = map_ledger();
  LedgerProcess* slot = nullptr;
  LedgerProcess private_slot;            // used if the ledger has no free slot: other processes do not see its bytes
  std::atomic<bool> used[kMostCards]{};  // by ordinal
  std::atomic<Address> begin{0};
  std::atomic<Address> end{0};

  Process() {
    ledger->cards.store(static_cast<std::uint32_t>(machine.cards));
    for (int i = 0; i < machine.cards; ++i) {
      ledger->card[static_cast<std::size_t>(i)].total.store(machine.model.total);
      ledger->card[static_cast<std::size_t>(i)].context.store(machine.model.context);
    }
  }
};

Process& process() {
  static Process* made = new Process;  // never destroyed: torch's own objects are destroyed later
  return *made;
}

std::atomic<bool> after_fork{false};

bool reserve(Process& self) {
  if (self.begin.load() != 0) return true;
  for (std::uint64_t span = kMostSpan; span >= kLeastSpan; span /= 2) {
    void* place = ::mmap(reinterpret_cast<void*>(kWantedPlace), span, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) continue;
    ::madvise(place, span, MADV_DONTDUMP);
    self.end.store(reinterpret_cast<Address>(place) + span);
    self.begin.store(reinterpret_cast<Address>(place));
    ::pthread_atfork(nullptr, nullptr, [] { after_fork.store(true); });
    return true;
  }
  return false;
}

LedgerProcess* claim_slot(Process& self) {
  const std::int32_t pid = ::getpid();
  for (LedgerProcess& slot : self.ledger->process) {
    std::int32_t owner = slot.pid.load();
    const bool gone = owner > 0 && owner != pid && ::kill(owner, 0) != 0 && errno == ESRCH;
    if (owner != 0 && owner != pid && !gone) continue;
    if (!slot.pid.compare_exchange_strong(owner, pid)) continue;
    for (LedgerWord& word : slot.used) word.store(0);
    for (LedgerWord& word : slot.context) word.store(0);
    return &slot;
  }
  return &self.private_slot;
}

// Returns whether the process has ended but was not reaped by its parent yet.
bool is_zombie(std::int32_t pid) {
  char path[64];
  char text[512] = {};
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  const char* name_end = size > 0 ? std::strrchr(text, ')') : nullptr;
  return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

struct Taken {
  std::uint64_t used = 0;
  std::uint64_t contexts = 0;
};

Taken taken(Process& self, std::size_t card) {
  Taken sum;
  const std::int32_t own = ::getpid();
  const auto add = [&](LedgerProcess& slot) {
    sum.used += slot.used[card].load();
    sum.contexts += slot.context[card].load();
  };
  for (LedgerProcess& slot : self.ledger->process) {
    const std::int32_t pid = slot.pid.load();
    if (pid == 0 || (slot.used[card].load() == 0 && slot.context[card].load() == 0)) continue;
    if (pid != own && ((::kill(pid, 0) != 0 && errno == ESRCH) || is_zombie(pid))) {
      for (LedgerWord& word : slot.used) word.store(0);
      for (LedgerWord& word : slot.context) word.store(0);
      std::int32_t gone = pid;
      slot.pid.compare_exchange_strong(gone, 0);
      continue;
    }
    add(slot);
  }
  if (self.slot == &self.private_slot) add(self.private_slot);
  return sum;
}

// Adds the bytes to a word of this process. Then adds up all processes, and takes the bytes back if the sum is too
// large. If two processes ask for the last bytes at once, both may be refused, but they never both get them.
bool take(Process& self, std::size_t card, LedgerWord& word, std::uint64_t bytes) {
  LedgerCard& account = self.ledger->card[card];
  const std::uint64_t total = self.machine.refuses ? self.machine.model.total : UINT64_MAX;
  if (bytes > total) return false;
  word.fetch_add(bytes);
  const Taken now = taken(self, card);
  if (now.used + now.contexts > total) {
    word.fetch_sub(bytes);
    return false;
  }
  account.used.store(now.used);
  raise(account.peak, now.used);
  raise(account.taken_peak, now.used + now.contexts);
  return true;
}

void note_refusal(CardLedger& page, std::size_t card, std::uint64_t asked) {
  page.refused.fetch_add(1);
  page.refused_request.store(asked);
  page.refused_card.store(card);
  note_finding("a request of %zu bytes: the card has no more", static_cast<std::size_t>(asked));
}

thread_local int this_card = 0;
thread_local Error this_error = kSuccess;

std::size_t number_of(int ordinal) { return static_cast<std::size_t>(process().machine.card_of[ordinal]); }

}  // namespace

const Machine& machine() { return process().machine; }
CardLedger& ledger() { return *process().ledger; }
std::recursive_mutex& lock() { return process().lock; }

void raise(LedgerWord& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

Error use_card(int ordinal) {
  if (after_fork.load(std::memory_order_relaxed)) return kNotInitialized;
  Process& self = process();
  if (self.machine.visible == 0) return kNoDevice;
  if (ordinal < 0 || ordinal >= self.machine.visible) return kInvalidDevice;
  if (self.used[ordinal].load(std::memory_order_acquire)) return kSuccess;  // this is the path of every launch
  const std::lock_guard hold(self.lock);
  if (self.used[ordinal].load()) return kSuccess;
  if (!reserve(self)) return kOutOfMemory;
  if (self.slot == nullptr) {
    self.slot = claim_slot(self);
    self.ledger->processes.fetch_add(1);
  }
  const std::size_t card = number_of(ordinal);
  const std::uint64_t context = self.machine.model.context;
  if (!take(self, card, self.slot->context[card], context)) {
    note_refusal(*self.ledger, card, context);
    return kOutOfMemory;
  }
  self.ledger->card[card].processes.fetch_add(1);
  self.used[ordinal].store(true, std::memory_order_release);
  return kSuccess;
}

Error use_current() { return use_card(this_card); }

bool uses_card(int ordinal) {
  if (after_fork.load() || ordinal < 0 || ordinal >= machine().visible) return false;
  return process().used[ordinal].load();
}

int current_card() { return this_card; }

Error set_current_card(int ordinal) {
  if (after_fork.load(std::memory_order_relaxed)) return kNotInitialized;
  if (machine().visible == 0) return kNoDevice;
  if (ordinal < 0 || ordinal >= machine().visible) return kInvalidDevice;
  this_card = ordinal;
  return kSuccess;
}

Span span_of(int ordinal) {
  Process& self = process();
  const Address begin = self.begin.load();
  const Address size = (self.end.load() - begin) / static_cast<Address>(self.machine.visible);
  const Address part = size / (Address{1} << 30) * (Address{1} << 30);
  return {begin + part * static_cast<Address>(ordinal), begin + part * static_cast<Address>(ordinal + 1)};
}

bool is_device(Address at) {
  Process& self = process();
  const Address begin = self.begin.load(std::memory_order_relaxed);
  return begin != 0 && at >= begin && at < self.end.load(std::memory_order_relaxed);
}

int card_of_address(Address at) {
  for (int i = 0; is_device(at) && i < machine().visible; ++i) {
    const Span span = span_of(i);
    if (at >= span.begin && at < span.end) return i;
  }
  return -1;
}

bool charge(int ordinal, std::uint64_t bytes, std::uint64_t asked) {
  Process& self = process();
  const std::lock_guard hold(self.lock);
  const std::size_t card = number_of(ordinal);
  if (!take(self, card, self.slot->used[card], bytes)) {
    note_refusal(*self.ledger, card, asked);
    return false;
  }
  raise(self.ledger->card[card].largest, asked);
  return true;
}

void discharge(int ordinal, std::uint64_t bytes) {
  Process& self = process();
  const std::lock_guard hold(self.lock);
  const std::size_t card = number_of(ordinal);
  self.slot->used[card].fetch_sub(bytes);
  self.ledger->card[card].used.store(taken(self, card).used);
}

std::uint64_t free_bytes(int ordinal) {
  const std::uint64_t held = taken_bytes(machine().card_of[ordinal]);
  return machine().model.total > held ? machine().model.total - held : 0;
}

std::uint64_t own_bytes(int card) {
  Process& self = process();
  const std::lock_guard hold(self.lock);
  const auto at = static_cast<std::size_t>(card);
  return self.slot == nullptr ? 0 : self.slot->used[at].load() + self.slot->context[at].load();
}

std::uint64_t taken_bytes(int card) {
  Process& self = process();
  const std::lock_guard hold(self.lock);
  const Taken now = taken(self, static_cast<std::size_t>(card));
  return now.used + now.contexts;
}

Error noted(Error error) {
  if (error != kSuccess) this_error = error;
  return error;
}

Error take_last_error() {
  const Error error = this_error;
  this_error = kSuccess;
  return error;
}

Error last_error() { return this_error; }

}  // namespace ullage::drycard
