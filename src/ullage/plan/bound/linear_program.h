// SPDX-License-Identifier: Apache-2.0
#pragma once

// A linear program that grows: least cost, each row's sum at least so much, each column between its ends. Solved by Clp
// (COIN-OR). Clp stands on a BLAS, so nothing that is loaded into other programs may link this.

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

  // The index of a new column, with least <= x <= most, and `cost` (zero or more) for each unit of it.
  ColumnIndex add_column(double cost, double least, double most);
  // The index of a new row: the sum of the entries is at least `least`.
  RowIndex add_row(std::vector<Entry> entries, double least);
  // One more entry of a row that is there; `column` is not in it yet.
  void extend_row(RowIndex row, Entry entry);

  // From where the last one ended. `iterations`: at most so many pivots. GivenUp too where Clp is not installed.
  Outcome solve(int iterations);
  double value(ColumnIndex column) const;  // of the last solution
  // Below it no solution costs, whatever the solver's tolerances: worked out from the prices of the rows alone, which
  // bound the cost from below whether they are the best ones or not.
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
  ColumnIndex sent_columns_;                            // those before it are sent
  RowIndex sent_rows_;                                  // likewise
  Table<ColumnIndex, std::vector<InRow>> in_old_rows_;  // of columns that are not sent yet
  double proven_ = 0;
  std::unique_ptr<Model> model_;
};

}  // namespace ullage::plan
