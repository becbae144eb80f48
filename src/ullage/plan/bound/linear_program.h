// SPDX-License-Identifier: Apache-2.0
#pragma once

// A linear program to which columns and rows can be added between solutions. It minimises the cost. Each row's sum has
// a least value; each column has a least and a most value. Clp (COIN-OR) solves it. Clp needs a BLAS, so nothing that
// is loaded into other programs may link this.

#include "ullage/base/table.h"

#include <memory>
#include <vector>

namespace ullage::plan {

using ColumnIndex = Id<struct ColumnTag, int>;
using RowIndex = Id<struct RowTag, int>;

class LinearProgram final {
 public:
  struct Entry {
    ColumnIndex column;
    double factor = 0;
  };
  enum class Outcome { Solved, Infeasible, GivenUp };

  LinearProgram();
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  // Adds a column x with least <= x <= most that costs `cost` (zero or more) per unit.
  ColumnIndex add_column(double cost, double least, double most);
  // Adds a row: the sum of factor * column over the entries is at least `least`.
  RowIndex add_row(std::vector<Entry> entries, double least);
  // Adds an entry to a row. Its column must not be in the row yet. If solve() has run since the row was added, the
  // column must have been added after that solve().
  void extend_row(RowIndex row, Entry entry);

  // Continues from the last solution. GivenUp: more than `iterations` pivots are needed, Clp is not installed, or the
  // solver's claim that there is no solution could not be proven.
  Outcome solve(int iterations);
  std::uint64_t pivots() const { return pivots_; }  // of all calls of solve()
  double value(ColumnIndex column) const;           // in the last solution. Call it only after a solve() that Clp ran
  // A lower bound on the cost, whatever the solver's tolerances. It is computed from the prices of the rows alone: any
  // prices give a lower bound, the best ones give the highest.
  double proven() const { return proven_; }
  std::size_t columns() const { return columns_.size(); }
  std::size_t rows() const { return rows_.size(); }

 private:
  struct Column {
    double cost, least, most;
  };
  struct Row {
    std::vector<Entry> entries;
    double least;
  };
  struct InRow {
    RowIndex row;
    double factor;
  };
  struct Model;
  void send_columns();
  void send_rows();
  double bound_by(const Table<RowIndex, double>& prices, double with_costs) const;
  bool proven_infeasible() const;

  Table<ColumnIndex, Column> columns_;
  Table<RowIndex, Row> rows_;
  ColumnIndex sent_columns_;                            // columns before this one are in Clp's model
  RowIndex sent_rows_;                                  // rows before this one are in Clp's model
  Table<ColumnIndex, std::vector<InRow>> in_old_rows_;  // entries of unsent columns in sent rows
  double proven_ = 0;
  std::uint64_t pivots_ = 0;
  std::unique_ptr<Model> model_;
};

}  // namespace ullage::plan
