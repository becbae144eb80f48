// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures the rates at which a run has moved bytes, for the plan that it makes for itself.

#include "ullage/plan/model/plan.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/store/pager_counts.h"

namespace ullage::plan {

// If less was moved than this, the measured rate means nothing.
inline constexpr Bytes kWorthARate = 64_MiB;

// Out and back are different rates: the two directions of a link are, and so are a disk's writes and reads. A direction
// in which too little was moved to be measured gets the rate of both together, waiting included. If that is too little
// as well, the rates are those of Rates{}. On a card a copy's time includes its wait for kernels, and a dry card's copy
// takes none: there both directions have the rate of both together.
inline Rates rates_of(const store::PagerCounts& moves, Kernels kernels) {
  const auto rate = [](Bytes moved, double took, double otherwise) {
    return moved > kWorthARate && took > 0 ? static_cast<double>(moved.count) / took : otherwise;
  };
  Rates rates;
  const Bytes both = moves.written + moves.restored;
  const double took = moves.waited.count + moves.background.count;
  rates.write = rate(both, took, rates.write);
  rates.read = rate(both, took, rates.read);
  if (kernels == Kernels::Card) return rates;
  rates.write = rate(moves.written, moves.writing.count, rates.write);
  rates.read = rate(moves.restored, moves.reading.count, rates.read);
  return rates;
}

}  // namespace ullage::plan
