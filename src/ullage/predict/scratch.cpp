// SPDX-License-Identifier: Apache-2.0
// varying_scratch() and slack_of_ops(): scratch that a kernel takes only if its own cost estimate favours it. There is
// one function for each such kernel; it computes from the op's sizes the most that there can be.
#include "ullage/predict/thresholds.h"

#include <algorithm>
#include <unordered_map>

namespace ullage::predict {
namespace {

using trace::OpDetail;
using trace::TensorUse;
__extension__ typedef unsigned __int128 WideCount;  // "using" does not take __extension__

constexpr std::int64_t kChannels = 16;     // oneDNN pads channels to multiples of this
constexpr Bytes kMostScratch{1ull << 60};  // no bound is known (lift.h: kNoBound or more), or the file is damaged
constexpr WideCount kTooMany = WideCount{1} << 80;

Bytes bytes_of(WideCount count) {
  return count < kMostScratch.count ? Bytes{static_cast<std::uint64_t>(count)} : kMostScratch;
}

WideCount padded(std::int64_t channels) {
  return (WideCount(std::max<std::int64_t>(channels, 0)) + kChannels - 1) / kChannels * kChannels;
}

WideCount product_of(const std::vector<std::int64_t>& sizes, std::size_t from = 0) {
  WideCount product = 1;
  for (std::size_t i = from; i < sizes.size() && product < kTooMany; ++i)
    product *= WideCount(std::max<std::int64_t>(sizes[i], 0));
  return std::min(product, kTooMany);
}

// The tensors of rank 3 or more that the op reads, in its order.
std::vector<const TensorUse*> pictures(const OpDetail& op) {
  std::vector<const TensorUse*> read;
  for (const TensorUse& use : op.uses)
    if (use.how == TensorUse::How::Read && use.sizes.size() > 2) read.push_back(&use);
  return read;
}

// The tensors that a convolution reads: the input and the weights; in the backward op the gradient, then these. A take
// lacks the input if it is not the pool's, such as pictures that a data loader's worker made.
struct Convolution {
  std::vector<const TensorUse*> read;
  const std::vector<std::int64_t>* weights = nullptr;  // null if the op does not read that many tensors
  bool has_input = true;
};
Convolution convolution_of(const OpDetail& op, bool backward) {
  Convolution result{pictures(op)};
  if (result.read.size() >= (backward ? 3u : 2u)) {
    result.weights = &result.read[backward ? 2 : 1]->sizes;
  } else if (result.read.size() + 1 == (backward ? 3u : 2u) && !op.outside.mapped) {  // else the weights may lack
    result.weights = &result.read.back()->sizes;
    result.has_input = false;
  }
  return result;
}

// When several threads compute the gradient of a convolution's weights, oneDNN divides either the channels or the batch
// among them. If it divides the batch, each thread has a copy of the gradient, and the copies are added up at the end.
// oneDNN takes what it estimates to be cheaper. In its estimate, reading a weight costs as much as reading eight
// activations (jit_avx512_common_conv_kernel.cpp, balance() and init_scratchpad()). It certainly divides the channels
// if they can be shared evenly and the activations that would be read again are small against the weights. The factor
// six is this eight, less a margin. Measured with 2 to 16 threads.
bool shares_channels(const Convolution& convolution, std::uint32_t threads) {
  if (!convolution.has_input) return false;  // not known
  const std::vector<std::int64_t>& weights = *convolution.weights;
  const WideCount output = product_of(convolution.read[0]->sizes), input = product_of(convolution.read[1]->sizes);
  const WideCount room = product_of(weights) * 6;
  const bool evenly = padded(weights[0]) / kChannels % threads == 0 || padded(weights[1]) / kChannels % threads == 0;
  return evenly && input * threads + output <= room && output * threads + input <= room;
}

// Does the op return a gradient of the weights? Frozen weights get none.
bool makes_weight_gradient(const OpDetail& op, const std::vector<std::int64_t>& weights) {
  return std::any_of(op.uses.begin(), op.uses.end(),
                     [&](const TensorUse& use) { return use.how == TensorUse::How::Output && use.sizes == weights; });
}

WideCount weight_gradient(const OpDetail& op, const Convolution& convolution, std::uint32_t threads) {
  constexpr std::uint64_t kPerThread = 8192;  // barriers and transposed rows; measured: 4.3 KiB per thread
  if (threads == 1 || !makes_weight_gradient(op, *convolution.weights)) return 0;
  if (shares_channels(convolution, threads)) return 0;
  const std::vector<std::int64_t>& weights = *convolution.weights;
  const WideCount copy = padded(weights[0]) * padded(weights[1]) * product_of(weights, 2);
  const WideCount bias = padded(std::max(weights[0], weights[1]));
  return (copy + bias) * 4 * (threads - 1) + WideCount{kPerThread} * threads;
}

// The gradient of a strided convolution, and a transposed convolution, copy a picture with its borders for each thread,
// rounded up to pages. That follows no polynomial in a side (oneDNN, brgemm_convolution_bwd_strided). Measured: sides 8
// to 136.
//
// Other convolutions only make reordered copies, which follow the law. Measured with two threads, no byte off. Kernels
// of 1 and 3 pixels at sides 9 to 896. Kernels of 5 and 7 pixels, and transposed ones, at sides 24 to 311. A take does
// not record the stride, but the sides show it. If both are many kernels long and differ by less than one kernel, the
// stride is 1.
bool moves_by_one(const OpDetail& op, const std::vector<std::int64_t>& weights) {
  constexpr std::int64_t kKernels = 8;  // 3 would do to show a stride of 2; dilated kernels need more
  for (std::size_t i = 2; i < weights.size(); ++i) {
    std::int64_t least = INT64_MAX, most = 0;
    for (const TensorUse& use : op.uses) {
      if (use.sizes.size() != weights.size() || use.sizes == weights) continue;
      least = std::min(least, use.sizes[i]);
      most = std::max(most, use.sizes[i]);
    }
    if (most == 0 || weights[i] < 1 || least / weights[i] < kKernels || most - least >= weights[i]) return false;
  }
  return true;
}
WideCount pictures_of_threads(const OpDetail& op, const std::vector<std::int64_t>& weights, std::uint32_t threads) {
  constexpr std::uint64_t kPages = 16384;
  if (moves_by_one(op, weights)) return 0;
  WideCount most = 0;
  for (const TensorUse& use : op.uses) {
    if (use.sizes.size() != weights.size()) continue;
    WideCount picture = padded(use.sizes[1]) * 4;
    for (std::size_t i = 2; i < weights.size() && picture < kTooMany; ++i)
      picture *= product_of({use.sizes[i]}) + product_of({weights[i]}) + 3;
    most = std::max(most, picture);
  }
  return (most + kPages) * threads;
}

// At small sides oneDNN chooses layouts by the side, and the layouts decide which tensors are reordered. Measured: at
// sides of 2, 4 and 14, never above 16.
constexpr std::int64_t kSmallSide = 16;
bool small(const OpDetail& op, bool backward) {
  const std::vector<std::int64_t>* weights = convolution_of(op, backward).weights;
  return std::any_of(op.uses.begin(), op.uses.end(), [&](const TensorUse& use) {
    return &use.sizes != weights && use.sizes.size() > 2 &&
           std::any_of(use.sizes.begin() + 2, use.sizes.end(), [](std::int64_t side) { return side <= kSmallSide; });
  });
}
WideCount reordered(const OpDetail& op, const std::vector<std::int64_t>& weights) {
  WideCount sum = 0;
  for (const TensorUse& use : op.uses) {
    if (use.sizes.size() < 3 || use.how != TensorUse::How::Read) continue;
    const WideCount first = &use.sizes == &weights ? padded(use.sizes[0]) : product_of({use.sizes[0]});
    sum += first * padded(use.sizes[1]) * product_of(use.sizes, 2) * 4;
  }
  return sum;
}

struct Pictures {
  bool differ = true;  // the target's sides are not those of every take
  bool small = true;   // the target or some take has small sides
};

Bytes convolution(const OpDetail& op, bool backward, std::uint32_t threads, Pictures sides) {
  if (!sides.differ && (!backward || threads == 1)) return {};
  const Convolution convolution = convolution_of(op, backward);
  if (convolution.read.empty()) return {};  // it reads no picture, so oneDNN does not compute it
  if (convolution.weights == nullptr || (sides.differ && !convolution.has_input)) return kMostScratch;
  WideCount bytes = backward ? weight_gradient(op, convolution, threads) : 0;
  if (sides.differ) bytes += pictures_of_threads(op, *convolution.weights, threads);
  if (sides.differ && sides.small) bytes += reordered(op, *convolution.weights);
  return bytes_of(bytes);
}

// Several threads reduce 32,768 elements (at::internal::GRAIN_SIZE) or more to one in two passes. Between them there is
// a buffer of one element per thread (ATen/native/TensorIteratorReduce.cpp). Ops that reduce several times inside (std)
// have several such buffers, one after the other or at once.
Bytes reduction(const OpDetail& op, std::uint32_t threads) {
  constexpr std::uint64_t kElement = 16, kBuffers = 4;
  const bool to_one = std::any_of(op.uses.begin(), op.uses.end(), [](const TensorUse& use) {
    return use.how != TensorUse::How::Read && product_of(use.sizes) == 1;
  });
  const bool of_many = std::any_of(op.uses.begin(), op.uses.end(), [](const TensorUse& use) {
    return use.how != TensorUse::How::Output && product_of(use.sizes) > 1;
  });
  return to_one && of_many && threads > 1 ? Bytes{kElement * kBuffers} * threads : Bytes{};
}

// Above a size that depends on the number of threads, torch scales pictures with tables of indices and weights. They
// have two to four entries of 8 and 4 bytes for each row and column (ATen/native/cpu/UpSampleKernel.cpp). Measured with
// 2 threads: from height + width of 129 on.
Bytes scaling(const OpDetail& op) {
  constexpr std::uint64_t kTables = 64;
  WideCount sides = 0;
  for (const TensorUse& use : op.uses)
    for (std::size_t i = 2; i < use.sizes.size(); ++i) sides += product_of({use.sizes[i]});
  return bytes_of(sides * kTables);
}

// Attention takes the queries in blocks of 32 (64 from 192 tokens on, 256 from 768 on), and the keys in blocks of 512.
// Each thread has a buffer for a block (ATen/native/cpu/FlashAttentionKernel.cpp).
Bytes attention(const OpDetail& op, std::uint32_t threads) {
  constexpr std::int64_t kKeys = 512;
  WideCount queries = 0, keys = 0, head = 0;
  for (const TensorUse& use : op.uses) {
    if (use.sizes.size() != 4) continue;
    const std::int64_t tokens = std::max<std::int64_t>(use.sizes[2], 0);
    const std::int64_t block = tokens >= 768 ? 256 : tokens >= 192 ? 64 : 32;
    queries = std::max(queries, WideCount(std::min(block, tokens)));
    keys = std::max(keys, WideCount(std::min(kKeys, tokens)));
    head = std::max(head, product_of({use.sizes[3]}));
  }
  // Two blocks of scores (for backward), sums, maxima and results: in float, and half as much in a shorter type.
  return bytes_of((queries * keys * 2 + queries * 4 + queries * head) * 8 * threads);
}

// For tensors in channels-last layout, group_norm has sums for each thread, from 1,024 elements of a channel on
// (ATen/native/cpu/group_norm_kernel.cpp). A take does not have the layout.
Bytes group_sums(const OpDetail& op, std::uint32_t threads) {
  WideCount most = 0;
  for (const TensorUse& use : op.uses)
    if (use.sizes.size() > 2) most = std::max(most, product_of({use.sizes[0], use.sizes[1]}));
  return bytes_of(most * 2 * 8 * threads);
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

Bytes scratch_of(const trace::Take& take, OpId op, Pictures sides) {
  const OpDetail& detail = take.details[op.value];
  const std::string_view name = take.trace.ops[op.value].name;
  const std::uint32_t threads = threads_of(take);
  if (begins(name, "aten::convolution_backward")) return convolution(detail, true, threads, sides);
  if (begins(name, "aten::convolution") || begins(name, "aten::_convolution") || begins(name, "aten::mkldnn_conv"))
    return convolution(detail, false, threads, sides);
  if (begins(name, "aten::_scaled_dot_product_flash_attention_for_cpu"))
    return sides.differ ? attention(detail, threads) : Bytes{};
  if (begins(name, "aten::upsample_") || begins(name, "aten::_upsample_"))
    return sides.differ ? scaling(detail) : Bytes{};
  if (begins(name, "aten::native_group_norm")) return sides.differ ? group_sums(detail, threads) : Bytes{};
  return reduction(detail, threads);
}

// Are all sizes after the first two the same?
bool same_sides(const OpDetail& a, const OpDetail& b) {
  if (a.uses.size() != b.uses.size()) return false;
  for (std::size_t i = 0; i < a.uses.size(); ++i) {
    const std::vector<std::int64_t>&x = a.uses[i].sizes, &y = b.uses[i].sizes;
    if (x.size() != y.size() || (x.size() > 2 && !std::equal(x.begin() + 2, x.end(), y.begin() + 2))) return false;
  }
  return true;
}

// For each op, the most bytes that were left out of it in any take.
std::unordered_map<std::uint64_t, Bytes> most_left_out(const trace::TraceFile& file, const Sequence& sequence) {
  std::unordered_map<std::uint64_t, Bytes> most;
  for (std::size_t take = 0; take < std::min(file.takes.size(), sequence.left_out.size()); ++take) {
    const std::vector<trace::Storage>& storages = file.takes[take].trace.storages;
    std::unordered_map<std::uint64_t, Bytes> here;
    for (std::size_t i = 0; i < storages.size(); ++i) {
      if (sequence.left_out[take][i]) here[storages[i].op.value] += storages[i].bytes;
    }
    for (const auto& [op, bytes] : here) most[op] = std::max(most[op], bytes);
  }
  return most;
}

bool known(const trace::Take& take, OpId op) {
  return op.value < take.details.size() && op.value < take.trace.ops.size();
}

}  // namespace

Bytes varying_scratch(const trace::Take& take, OpId op) { return known(take, op) ? scratch_of(take, op, {}) : Bytes{}; }

std::vector<Slack> slack_of_ops(const trace::TraceFile& file, const Sequence& sequence, const trace::Take& target) {
  const std::unordered_map<std::uint64_t, Bytes> left_out = most_left_out(file, sequence);
  std::vector<Slack> found;
  for (std::size_t op = 0; op < target.details.size(); ++op) {
    if (!known(target, OpId{op})) continue;
    const bool backward = begins(target.trace.ops[op].name, "aten::convolution_backward");
    Pictures sides{false, small(target.details[op], backward)};
    for (const trace::Take& take : file.takes) {
      if (!known(take, OpId{op})) continue;
      sides.differ = sides.differ || !same_sides(take.details[op], target.details[op]);
      sides.small = sides.small || small(take.details[op], backward);
    }
    Bytes bytes = scratch_of(target, OpId{op}, sides);
    // If more than that was left out of a take, the target may take that scratch too, up to its full bound.
    if (const auto out = left_out.find(op); out != left_out.end() && out->second > bytes) {
      bytes = std::max(out->second, scratch_of(target, OpId{op}, {}));
    }
    if (bytes > Bytes{}) found.push_back({OpId{op}, bytes});
  }
  return found;
}

}  // namespace ullage::predict
