// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/linear_program.h"

#include "ullage/base/check.h"
#include "ullage/plan/bound/clp.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

namespace ullage::plan {
namespace {

// The entries of several columns or rows in Clp's format.
struct Packed {
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> indices;
  std::vector<double> factors;
  void end() { starts.push_back(CoinBigIndex(indices.size())); }
  void add(int index, double factor) {
    indices.push_back(index);
    factors.push_back(factor);
  }
};

}  // namespace

struct LinearProgram::Model {
  explicit Model(const Clp& functions) : clp(functions), simplex(functions.new_model()) {
    clp.set_log_level(simplex, 0);
  }
  ~Model() { clp.delete_model(simplex); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Clp& clp;
  Clp_Simplex* const simplex;
};

LinearProgram::LinearProgram() = default;
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

ColumnIndex LinearProgram::add_column(double cost, double least, double most) {
  ULLAGE_CHECK(cost >= 0 && least <= most, "a column costs less than nothing, or its ends are crossed");
  in_old_rows_.push_back({});
  return columns_.push_back({cost, least, most});
}

RowIndex LinearProgram::add_row(std::vector<Entry> entries, double least) {
  return rows_.push_back({std::move(entries), least});
}

void LinearProgram::extend_row(RowIndex row, Entry entry) {
  rows_[row].entries.push_back(entry);
  if (row >= sent_rows_) return;
  ULLAGE_CHECK(entry.column >= sent_columns_, "a column that was sent cannot join a row that was sent");
  in_old_rows_[entry.column].push_back({row, entry.factor});
}

void LinearProgram::send_columns() {
  Packed packed;
  std::vector<double> least, most, cost;
  for (const ColumnIndex c : IdRange<ColumnIndex>{sent_columns_, columns_.next_id()}) {
    for (const InRow& entry : in_old_rows_[c]) packed.add(entry.row.value, entry.factor);
    packed.end();
    least.push_back(columns_[c].least);
    most.push_back(columns_[c].most);
    cost.push_back(columns_[c].cost);
  }
  if (!cost.empty()) {
    model_->clp.add_columns(model_->simplex, int(cost.size()), least.data(), most.data(), cost.data(),
                            packed.starts.data(), packed.indices.data(), packed.factors.data());
  }
  for (const ColumnIndex c : IdRange<ColumnIndex>{sent_columns_, columns_.next_id()}) in_old_rows_[c] = {};
  sent_columns_ = columns_.next_id();
}

void LinearProgram::send_rows() {
  Packed packed;
  std::vector<double> least;
  for (const RowIndex r : IdRange<RowIndex>{sent_rows_, rows_.next_id()}) {
    for (const Entry& entry : rows_[r].entries) packed.add(entry.column.value, entry.factor);
    packed.end();
    least.push_back(rows_[r].least);
  }
  if (!least.empty()) {
    const std::vector<double> most(least.size(), DBL_MAX);
    model_->clp.add_rows(model_->simplex, int(least.size()), least.data(), most.data(), packed.starts.data(),
                         packed.indices.data(), packed.factors.data());
  }
  sent_rows_ = rows_.next_id();
}

// For any prices p >= 0 of the rows: cost x = p (A x) + (cost - p A) x >= p least + min over x of (cost - p A) x.
// `with_costs` of 0 leaves out the costs.
double LinearProgram::bound_by(const Table<RowIndex, double>& prices, double with_costs) const {
  double sum = 0;
  Table<ColumnIndex, double> reduced;
  for (const Column& column : columns_) reduced.push_back(with_costs * column.cost);
  for (const RowIndex r : rows_.ids()) {
    const double price = std::max(0.0, prices[r]);
    if (price == 0) continue;
    sum += price * rows_[r].least;
    for (const Entry& entry : rows_[r].entries) reduced[entry.column] -= price * entry.factor;
  }
  for (const ColumnIndex c : columns_.ids()) {
    sum += reduced[c] * (reduced[c] > 0 ? columns_[c].least : columns_[c].most);
  }
  return sum;
}

// By Farkas' lemma: there is no solution if some prices give a bound above zero although all columns cost nothing.
bool LinearProgram::proven_infeasible() const {
  double* ray = model_->clp.infeasibility_ray(model_->simplex);
  if (ray == nullptr) return false;
  std::vector<double> prices(ray, ray + rows_.size());
  model_->clp.free_ray(model_->simplex, ray);
  double largest = 0;
  for (const double price : prices) largest = std::max(largest, std::abs(price));
  if (largest == 0) return false;
  for (const double sign : {1.0, -1.0}) {  // Clp does not say which sign the ray has
    Table<RowIndex, double> turned;
    turned.reserve(prices.size());
    for (const double price : prices) turned.push_back(sign * price / largest);
    if (bound_by(turned, 0) > 1e-9) return true;
  }
  return false;
}

LinearProgram::Outcome LinearProgram::solve(int iterations) {
  const Clp* clp = Clp::find();
  if (clp == nullptr) return Outcome::GivenUp;
  if (!model_) model_ = std::make_unique<Model>(*clp);
  Clp_Simplex* const simplex = model_->simplex;
  send_columns();
  send_rows();
  clp->set_number_iterations(simplex, 0);
  clp->set_maximum_iterations(simplex, iterations);
  clp->dual(simplex, 0);
  pivots_ += static_cast<std::uint64_t>(std::max(0, clp->number_iterations(simplex)));
  const int status = clp->status(simplex);
  if (status == 1) return proven_infeasible() ? Outcome::Infeasible : Outcome::GivenUp;
  const double* prices = clp->row_price(simplex);
  const Table<RowIndex, double> of_rows(std::vector<double>(prices, prices + rows_.size()));
  proven_ = std::max(proven_, bound_by(of_rows, 1));
  return status == 0 ? Outcome::Solved : Outcome::GivenUp;
}

double LinearProgram::value(ColumnIndex column) const {
  return model_->clp.column_solution(model_->simplex)[column.value];
}

}  // namespace ullage::plan
