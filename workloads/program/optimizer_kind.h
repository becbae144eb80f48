// SPDX-License-Identifier: Apache-2.0
#pragma once

// The optimizers that programs offer, for their options; torch_program/optimizer.h makes them.

namespace ullage::program {

// Each has Python's defaults except the learning rate. SgdMomentum has a momentum of 0.9.
enum class OptimizerKind {
  Adam,
  AdamW,
  Adagrad,
  Adamax,
  DiffGrad,
  AdamP,
  RAdam,
  RmsProp,
  Sgd,
  SgdMomentum,
};

}  // namespace ullage::program
