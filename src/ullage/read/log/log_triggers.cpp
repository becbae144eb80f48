// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/log_triggers.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ullage::read {
namespace {

constexpr std::string_view kWords[] = {
    // messages with figures
    "out of mem", "out of\n", "out of\r", "f memory", "tried to", "to alloc", "ut of m", "outofmem", "o allocat",
    "total capac", "already allo", "d by pytorch", "has a total", "buffer size:", "d allowed mem", "got an oom",
    "not allocate", "out_of_m", "defaultcpualloc", "enough memory", "allocation on device", "larger than the",
    "pool grew", "out-of-mem",
    // general words
    "enough gpu", "y exhaust", "enomem", "memory layout", "available memory", "llocatable", "device mem", "f_resourc",
    "buffer_size", "nvmapmem", "e_type_mem", "s_memory_err", "malloc fail", "enlarge mem", "borted(oom",
    "y object alloc", "enough space", "imum possible", "code 52", "3221225495", "(os error 14", "winerror 8]",
    "winerror 14", "data too l", "oom comman", "exceeded per-", "exceeded dist", "exceeded mem", "exceeded the mem",
    "exceeded its mem", "signal: 9", "b killed:", "allocation fail", "allocation of ",
    // libraries
    "cufft_al", "bad_alloc", "_status_", "type_alloc_buffer", "cudnn algorithm", "unable to find an engine", "magma: c",
    "magma_err", "cuda failure", "cuda runtime error (2)", "thcudacheck", "errormemory", "ur_result_error_out",
    // the machine's memory
    "bus error", "shared memory", "to write to file </torch", "unable to mmap", "memoryerror", "[errno 12]",
    "[errno 28]", "posix_fallocate", "posix_memalign", "runner process", "buffer allocation", "is out of bounds",
    "cuda calloc", "find any impl",
    // ends of processes
    "killed", "code 137", "code: 137", "code=137", "code = 137", "code (137", "code: -9", "code=-9", "code -9",
    "code = -9", "status 137", "status: 137", "status (137", "status -9", "status: -9", "signal 9", "sigkill",
    "oom-kill", "oom_kill", "oom_reaper", "term_memlimit", "dataloader worker",
    // programs
    "memory on dev", "on startup", "gpu memory ut", "desired gpu", "on device cuda", "cache blocks",
    "to serve at least", "within the budget", "below what the process needs", "exhausted: ", "oom when",
    "requested buffer", "gpu memory (", "--mem-fraction-static", "insufficient mem", "insufficient vram",
    "kiogpucommand", "max buffer size", "maximum binding", "allocation limit", "vkallocate", "out_of_device",
    "outofdevice", "out_of_host", "gpu video mem", "more system mem", "java.lang.outofmem", "paging file",
    "winerror 1455", "low on memory", "all available ram", "to have died", "kernel crashed", "job memory limit",
    "step memory limit", "metal memory", "allocating dev", "mamba cache", "memory pressure", "os error 1455",
    "memory limit", "memory quota", "more memory than", "signal: killed", "oom killer", "result 'oom-k",
    "container oom", "inuse: ", "alloc memory of", "reaching memory", "java heap", "gc overhead", "heap space is",
    "insufficient sys", "enough resources", "exceeds device", "allocation of size", "outofhost", "ate backend buf",
    "requested bytes of", "params buffer", "no_memory", "ocator::alloc", "resource limit", "invalid buffer",
    "cl_mem_obj", "resource alloc", "library was not", "vector of size", "mory allocation of", "out of gpu",
    "allowed memory size", "hostbuffer.", "low memory!", "oomd killed", "killed by yarn", "exit 137", "exit: 137",
    "exit=137", "exit (137", "ent memory on req", "error: runtime: ", "with error out", "to pin more", "context's mem",
    "not properly t", "executor was unex", "pool was termin", "cap ceiling", "an oom", "starves it", "exitcode",
    "returncode", "__rg_oom", "yallocate f", "memalloc f", "gpu resources", "alloc device",
    "(usage:", "locks_per_trans", "system memory", "led by the",
    // tables
    "memory summary", "large pool"};

constexpr std::size_t kShortest =
    std::ranges::min_element(kWords, {}, [](std::string_view word) { return word.size(); })->size();
constexpr std::size_t kWordCount = std::size(kWords);
constexpr std::size_t kFarthest = kShortest - 2;  // letters: the farthest that a window may move on
constexpr std::size_t kBuckets = 1 << 15;
static_assert(kShortest >= 6, "the shortest word limits how far the search may jump");

// Three letters as an index of 15 bits. The low five bits of a letter are the same in both cases.
constexpr std::size_t bucket(const char* at) {
  const auto bits = [&](int i) { return static_cast<std::size_t>(static_cast<unsigned char>(at[i]) & 0x1f); };
  return bits(0) << 10 | bits(1) << 5 | bits(2);
}

// The table of Wu and Manber's search. A window of kShortest letters slides over the text. The bucket of its last three
// letters says how far it may move on before a word can begin at its start (`jump`). If that is 0, `first` and `next`
// chain the words that have such letters at this place; these are compared with the text. -1 ends a chain.
struct TriggerTable {
  std::array<std::uint8_t, kBuckets> jump{};
  std::array<std::int16_t, kBuckets> first{};
  std::array<std::int16_t, kWordCount> next{};
};

constexpr TriggerTable make_table() {
  TriggerTable table;
  table.jump.fill(kFarthest);
  table.first.fill(-1);
  for (std::size_t word = kWordCount; word-- > 0;) {
    for (std::size_t i = 0; i + 3 <= kShortest; ++i) {
      std::uint8_t& jump = table.jump[bucket(kWords[word].data() + i)];
      jump = std::min(jump, static_cast<std::uint8_t>(kShortest - 3 - i));
    }
    std::int16_t& first = table.first[bucket(kWords[word].data() + kShortest - 3)];
    table.next[word] = first;
    first = static_cast<std::int16_t>(word);
  }
  return table;
}

constinit const TriggerTable kTable = make_table();

bool stands_at(std::string_view word, const char* at) {
  return std::equal(word.begin(), word.end(), at, [](char wanted, char c) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == wanted;
  });
}

}  // namespace

std::span<const std::string_view> trigger_words() { return kWords; }

std::size_t find_trigger(std::string_view text, std::size_t from) {
  const char* const data = text.data();
  std::size_t last = from + kShortest - 3;  // index of the window's last three letters
  while (last + 3 <= text.size()) {
    // Four windows at once, as far apart as a window may move: their loads need not wait for each other.
    while (last + 3 * kFarthest + 3 <= text.size()) {
      const std::uint8_t a = kTable.jump[bucket(data + last)], b = kTable.jump[bucket(data + last + kFarthest)];
      const std::uint8_t c = kTable.jump[bucket(data + last + 2 * kFarthest)];
      const std::uint8_t d = kTable.jump[bucket(data + last + 3 * kFarthest)];
      last += a;
      if (a != kFarthest) break;
      last += b;
      if (b != kFarthest) break;
      last += c;
      if (c != kFarthest) break;
      last += d;
      if (d != kFarthest) break;
    }
    if (last + 3 > text.size()) break;
    const std::size_t of = bucket(data + last);
    const std::uint8_t jump = kTable.jump[of];
    if (jump != 0) {
      last += jump;
      continue;
    }
    const std::size_t begin = last + 3 - kShortest;
    for (int word = kTable.first[of]; word >= 0; word = kTable.next[static_cast<std::size_t>(word)]) {
      const std::string_view wanted = kWords[word];
      if (begin + wanted.size() <= text.size() && stands_at(wanted, data + begin)) return begin;
    }
    ++last;
  }
  return std::string_view::npos;
}

}  // namespace ullage::read
