// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/cuda.h"
#include "ullage/predict/predict.h"
#include "ullage/sim/caching.h"
#include "ullage/sim/device.h"

#include <optional>
#include <variant>

namespace ullage::predict {
namespace {

constexpr trace::StreamId kStream{0};
// Total of the card on which the peaks are found: more than any card has. The model reserves, for each expandable
// segment, a range of addresses somewhat larger than the card; such ranges still fit 64 bits.
constexpr Bytes kNoLimit{1ull << 50};

// Runs the history through the allocator's model, on a card of `total` bytes.
class Card final {
 public:
  Card(const CudaHistory& history, const sim::CachingSettings& settings, Bytes total)
      : history_(history), device_(total), model_(settings, device_) {
    live_.resize(history.blocks.size());
    requested_.resize(history.rows.size());
  }

  // Takes the bytes outside the allocator from the card. Returns false if the card does not have that many.
  bool take_outside() {
    return history_.outside == Bytes{} ||
           (history_.outside <= device_.total() && device_.allocate(history_.outside).has_value());
  }

  struct Refused {
    std::size_t request;  // in the history
    sim::Shortage shortage;
  };
  std::optional<Refused> run() {
    for (std::size_t i = 0; i < history_.requests.size(); ++i) {
      const CudaRequest& request = history_.requests[i];
      if (request.frees) {
        give_back(request.block);
      } else if (std::optional<sim::Shortage> shortage = take(request.block)) {
        return Refused{i, *shortage};
      }
    }
    return std::nullopt;
  }

  const sim::CachingStats& stats() const { return model_.stats(); }
  // For each row of the history, its requested bytes at the moment when the allocated bytes first reach their peak.
  const std::vector<Bytes>& at_peak() const { return at_peak_; }

 private:
  std::optional<sim::Shortage> take(std::size_t block) {
    const auto outcome = model_.allocate(history_.blocks[block].bytes, kStream);
    if (const auto* shortage = std::get_if<sim::Shortage>(&outcome)) return *shortage;
    live_[block] = std::get<sim::Allocation>(outcome).block;
    requested_[history_.blocks[block].row] += history_.blocks[block].bytes;
    if (model_.stats().allocated > peak_) {
      peak_ = model_.stats().allocated;
      at_peak_ = requested_;
    }
    return std::nullopt;
  }
  void give_back(std::size_t block) {
    if (!live_[block]) return;
    model_.free(*live_[block]);
    live_[block].reset();
    requested_[history_.blocks[block].row] -= history_.blocks[block].bytes;
  }

  const CudaHistory& history_;
  sim::SimulatedDevice device_;
  sim::CachingAllocator model_;
  std::vector<std::optional<sim::BlockId>> live_;  // index: block of the history
  std::vector<Bytes> requested_, at_peak_;         // index: row of the history
  Bytes peak_;
};

void add_rows(const CudaHistory& history, const Card& card, Cuda& cuda) {
  Bytes requested;
  for (std::size_t i = 0; i < history.rows.size() && i < card.at_peak().size(); ++i) {
    if (card.at_peak()[i] == Bytes{}) continue;
    cuda.rows.push_back(history.rows[i]);
    cuda.rows.back().bytes = card.at_peak()[i];
    requested += card.at_peak()[i];
  }
  cuda.rows.push_back({"rounding of the allocator", cuda.allocated_peak - requested, ""});
  cuda.rows.push_back({"cached by the allocator", cuda.reserved_peak - cuda.allocated_peak, ""});
  cuda.rows.insert(cuda.rows.end(), history.outside_rows.begin(), history.outside_rows.end());
}

std::string op_of(const trace::Take& take, EventId event) {
  // The last op that began at the event or before, and did not end before it.
  for (std::size_t op = take.details.size(); op-- > 0;)
    if (take.details[op].begin <= event && event <= take.details[op].end) return take.trace.ops[op].name;
  return {};
}

void ask_card(const CudaHistory& history, const trace::Take& take, const CudaQuestion& question, Cuda& cuda) {
  Card card(history, question.settings, *question.capacity);
  CudaAnswer answer;
  if (!card.take_outside()) {  // it does not fit: the answer is that the bytes outside were refused on an empty card
    answer.requested = history.outside;
    answer.device_free = *question.capacity;
    cuda.answer = answer;
    return;
  }
  const std::optional<Card::Refused> refused = card.run();
  answer.fits = !refused;
  answer.retries = card.stats().retries;
  if (refused) {
    answer.requested = refused->shortage.requested;
    answer.allocated = refused->shortage.allocated;
    answer.reserved = refused->shortage.reserved;
    answer.device_free = refused->shortage.device_free;
    answer.op = op_of(take, history.requests[refused->request].event);
  }
  cuda.answer = answer;
}

}  // namespace

Cuda on_cuda(const trace::TraceFile& file, const trace::Take& take, const CudaQuestion& question) {
  const CudaHistory history = cuda_history(file, take, question.capacity);
  Card card(history, question.settings, kNoLimit);
  card.run();
  Cuda cuda;
  cuda.allocated_peak = card.stats().allocated_peak;
  cuda.reserved_peak = card.stats().reserved_peak;
  cuda.process_peak = cuda.reserved_peak + history.outside;
  cuda.capacity = question.capacity;
  add_rows(history, card, cuda);
  if (question.capacity) ask_card(history, take, question, cuda);
  return cuda;
}

}  // namespace ullage::predict
