// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of Clp (COIN-OR) that are used. They are loaded when the first linear program is solved, because
// loading the library and its BLAS takes 4 ms. Other uses of the command do not pay for that.

#include <Clp_C_Interface.h>

namespace ullage::plan {

struct Clp {
  decltype(&Clp_newModel) new_model;
  decltype(&Clp_deleteModel) delete_model;
  decltype(&Clp_setLogLevel) set_log_level;
  decltype(&Clp_addColumns) add_columns;
  decltype(&Clp_addRows) add_rows;
  decltype(&Clp_setNumberIterations) set_number_iterations;
  decltype(&Clp_setMaximumIterations) set_maximum_iterations;
  decltype(&Clp_numberIterations) number_iterations;
  decltype(&Clp_dual) dual;
  decltype(&Clp_status) status;
  decltype(&Clp_getRowPrice) row_price;
  decltype(&Clp_getColSolution) column_solution;
  decltype(&Clp_infeasibilityRay) infeasibility_ray;
  decltype(&Clp_freeRay) free_ray;

  // Loads the library at the first call. Null if it is not on this machine or lacks a function.
  static const Clp* find();
};

}  // namespace ullage::plan
