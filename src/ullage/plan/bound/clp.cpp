// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/clp.h"

#include "ullage/base/find_symbol.h"

#include <optional>

namespace ullage::plan {
namespace {

constexpr const char* kLibrary = "libClp.so.1";  // the headers are of version 1.17

std::optional<Clp> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Clp clp{};
  const bool all = find_symbol(library, clp.new_model, "Clp_newModel") &&
                   find_symbol(library, clp.delete_model, "Clp_deleteModel") &&
                   find_symbol(library, clp.set_log_level, "Clp_setLogLevel") &&
                   find_symbol(library, clp.add_columns, "Clp_addColumns") &&
                   find_symbol(library, clp.add_rows, "Clp_addRows") &&
                   find_symbol(library, clp.set_number_iterations, "Clp_setNumberIterations") &&
                   find_symbol(library, clp.set_maximum_iterations, "Clp_setMaximumIterations") &&
                   find_symbol(library, clp.number_iterations, "Clp_numberIterations") &&
                   find_symbol(library, clp.dual, "Clp_dual") && find_symbol(library, clp.status, "Clp_status") &&
                   find_symbol(library, clp.row_price, "Clp_getRowPrice") &&
                   find_symbol(library, clp.column_solution, "Clp_getColSolution") &&
                   find_symbol(library, clp.infeasibility_ray, "Clp_infeasibilityRay") &&
                   find_symbol(library, clp.free_ray, "Clp_freeRay");
  return all ? std::optional(clp) : std::nullopt;
}

}  // namespace

const Clp* Clp::find() {
  static const std::optional<Clp> found = load();
  return found ? &*found : nullptr;
}

}  // namespace ullage::plan
